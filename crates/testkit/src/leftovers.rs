//! Finds processes that should be gone.

use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, wait};

/// Makes this process the parent of its orphaned descendants (a subreaper), so that the kernel reports
/// whether one is left, zombies included.
///
/// # Panics
/// If the kernel has no subreapers.
pub fn adopt_orphans() {
    set_child_subreaper(Some(rustix::process::getpid())).expect("a kernel with subreapers");
}

/// Waits until this process has no child, adopted ones included.
///
/// # Panics
/// If that takes longer than `limit`.
pub fn wait_until_childless(when: &str, limit: Duration) {
    let mut is_childless = false;
    wait_until(&format!("{when}: nothing is left"), limit, || {
        while !is_childless {
            match wait(WaitOptions::NOHANG) {
                Err(rustix::io::Errno::CHILD) => is_childless = true,
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => panic!("{error}"),
            }
        }
        is_childless
    });
}

/// Waits until a condition is true. The failure names the condition.
///
/// # Panics
/// If that takes longer than `limit`.
pub fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        thread::sleep(Duration::from_millis(3));
    }
}

/// Sends a signal.
///
/// # Panics
/// If there is no such process.
pub fn kill(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a process");
    kill_process(pid, signal).expect("a process that can be told");
}

/// The command lines of all other processes that have `token` in it.
///
/// # Panics
/// If there is no `/proc`.
pub fn alive(token: &str) -> Vec<String> {
    let me = std::process::id().to_string();
    let processes = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    processes
        .filter(|entry| entry.file_name().to_str() != Some(&me))
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(token))
        .collect()
}

/// The parent of a process, and its state.
pub fn stat(pid: i32) -> Option<(i32, char)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 2..].split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}
