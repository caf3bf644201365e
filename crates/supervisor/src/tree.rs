//! The descendants of this process: listing, reaping and signalling them.
//!
//! Only *direct* children that have not been reaped are signalled. The kernel does not reuse the
//! process id of such a child, so a signal cannot hit an unrelated process. This is enough for
//! whole trees, because a subreaper becomes the parent of every orphaned descendant: once the
//! children are gone, the grandchildren are children.

use std::collections::HashSet;
use std::{fs, io};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, kill_process, kill_process_group, wait,
};

/// The result of [`reap`].
#[derive(Debug)]
pub(crate) enum Reaped {
    /// This child has exited and was reaped.
    One(Pid, WaitStatus),
    /// There are children, and all of them are alive.
    NoneNow,
    /// There are no children, and therefore no descendants.
    Childless,
}

/// Reaps one exited child, without waiting.
pub(crate) fn reap() -> io::Result<Reaped> {
    match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG)) {
        Ok(Some((pid, status))) => Ok(Reaped::One(pid, status)),
        Ok(None) => Ok(Reaped::NoneNow),
        Err(rustix::io::Errno::CHILD) => Ok(Reaped::Childless),
        Err(error) => Err(error.into()),
    }
}

/// Makes this process the parent of every orphaned descendant, and renames it.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // `pkill sabir` matches this name; see the crate documentation.
    rustix::thread::set_name(c"supervisor")?;
    Ok(())
}

/// On other systems orphans go to the init process: only the process group can be stopped.
#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// The direct children of this process, including those that have exited.
pub(crate) fn children() -> Vec<Pid> {
    // One small file if the kernel provides it; otherwise a walk over all processes.
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => list.split_whitespace().filter_map(pid).collect(),
        Err(_) => children_by_walk(),
    }
}

fn children_by_walk() -> Vec<Pid> {
    let me = rustix::process::getpid().as_raw_pid().to_string();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| pid(entry.ok()?.file_name().to_str()?))
        .filter(|pid| parent(*pid).is_some_and(|parent| parent == me))
        .collect()
}

/// The fourth field of `stat`. The second is a name in parentheses, with arbitrary characters.
fn parent(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_whitespace().nth(1).map(str::to_owned)
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// Sends `signal` to the process group of `leader` and to every direct child outside of it, except
/// to those in `signalled`. Adds the receivers to `signalled`.
///
/// A signal that cannot be delivered (to a program that changed its user) is ignored: there is
/// nothing else to try.
pub(crate) fn signal_all(
    leader: Pid,
    leader_reaped: bool,
    signal: Signal,
    signalled: &mut HashSet<Pid>,
) {
    let children = children();
    let in_group = |pid: &Pid| getpgid(Some(*pid)).is_ok_and(|group| group == leader);
    let members: Vec<Pid> = children.iter().copied().filter(in_group).collect();
    // The group id cannot be reused as long as an unreaped child of ours has it: one of the
    // members or, where children cannot be listed, the leader.
    let blind = children.is_empty() && !leader_reaped && signalled.insert(leader);
    if blind || members.iter().any(|pid| !signalled.contains(pid)) {
        let _ = kill_process_group(leader, signal);
        signalled.extend(members);
    }
    for pid in children {
        if signalled.insert(pid) {
            let _ = kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_listing_children_find_a_child_until_it_is_reaped() {
        let mut child = std::process::Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(children().contains(&pid));
        assert!(children_by_walk().contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children().contains(&pid));
        assert!(!children_by_walk().contains(&pid));
    }
}
