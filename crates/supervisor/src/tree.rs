//! The processes below this one: who they are, that they have ended, and ending them.
//!
//! Everything here is about *direct* children that this process has not yet waited for. The
//! kernel does not give such a process id to anybody else, so a signal cannot hit a stranger.
//! That is enough for whole trees, because a subreaper becomes the parent of every orphan below
//! it: end the children, and the grandchildren are children.

use std::collections::HashSet;
use std::{fs, io};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, kill_process, kill_process_group, wait,
};

/// What one look at the ended children found.
#[derive(Debug)]
pub(crate) enum Reaped {
    /// This child has ended and is no more, not even as a zombie.
    One(Pid, WaitStatus),
    /// There are children, all alive.
    NoneNow,
    /// There is no child, so nothing at all lives below this process.
    Childless,
}

/// Takes one ended child off the process table, without waiting.
pub(crate) fn reap() -> io::Result<Reaped> {
    match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG)) {
        Ok(Some((pid, status))) => Ok(Reaped::One(pid, status)),
        Ok(None) => Ok(Reaped::NoneNow),
        Err(rustix::io::Errno::CHILD) => Ok(Reaped::Childless),
        Err(error) => Err(error.into()),
    }
}

/// Becomes the parent of every orphan below this process, and takes a name of its own.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // `pkill sabir` goes by this name; see the header of `keeper`.
    rustix::thread::set_name(c"keeper")?;
    Ok(())
}

/// Elsewhere orphans go to the first process: only the group can be ended.
#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// The direct children of this process, ended ones included.
pub(crate) fn children() -> Vec<Pid> {
    // One small file, where the kernel has it; otherwise a walk over all processes.
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

/// The fourth field of `stat`; the second is a name in parentheses that may contain anything.
fn parent(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_whitespace().nth(1).map(str::to_owned)
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// Sends `signal` to the group that `leader` leads and to every direct child outside of it, but
/// not again to those in `told`, which grows by those that were sent one.
///
/// A signal that cannot be delivered (to a program that changed its user) is not an error here:
/// there is nothing else to try.
pub(crate) fn signal_all(
    leader: Pid,
    leader_reaped: bool,
    signal: Signal,
    told: &mut HashSet<Pid>,
) {
    let children = children();
    let in_group = |pid: &Pid| getpgid(Some(*pid)).is_ok_and(|group| group == leader);
    let members: Vec<Pid> = children.iter().copied().filter(in_group).collect();
    // The group's number is ours as long as an unreaped child of ours carries it: one of the
    // members, or, where children cannot be listed, the leader.
    let blind = children.is_empty() && !leader_reaped && told.insert(leader);
    if blind || members.iter().any(|pid| !told.contains(pid)) {
        let _ = kill_process_group(leader, signal);
        told.extend(members);
    }
    for pid in children {
        if told.insert(pid) {
            let _ = kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_listing_find_a_child_until_it_is_reaped() {
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
