//! The supervisor process: Sabir's only child, and the parent of the monitors.
//!
//! It starts a monitor for every socket that Sabir sends. If a monitor is killed, its descendants
//! are reparented to this process, which kills them. When Sabir closes the socket or dies, it tells
//! the monitors to stop their programs, and exits last.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::modes::{self, current_executable};
use crate::poll::Poller;
use crate::socket;
use crate::tree::{self, Reaped};

/// How often to look for descendants of a killed monitor until all are gone.
const KILL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts monitors until `socket` closes or SIGTERM arrives, then until no descendant is left.
pub(crate) fn run(socket: UnixStream) -> io::Result<()> {
    // A new session: signals to Sabir's process group or terminal do not reach this process.
    rustix::process::setsid()?;
    std::env::set_current_dir("/")?;
    tree::adopt_orphans()?;
    let mut poller = Poller::new()?;
    let mut monitors = HashSet::new();
    let mut open = true;
    loop {
        if open && poller.is_terminated() {
            open = false;
        }
        if !open {
            for monitor in &monitors {
                let _ = kill_process(*monitor, Signal::TERM);
            }
        }
        let orphans = reap_and_kill(&mut monitors)?;
        if !open && monitors.is_empty() && !orphans {
            return Ok(());
        }
        let timeout = orphans.then_some(KILL_INTERVAL);
        if poller.wait(open.then_some(&socket), timeout)? {
            open = accept(&socket, &mut monitors)?;
        }
    }
}

/// Reaps exited children and kills those that are not monitors. Returns whether there are any.
fn reap_and_kill(monitors: &mut HashSet<Pid>) -> io::Result<bool> {
    loop {
        match tree::reap()? {
            Reaped::One(pid, _) => _ = monitors.remove(&pid),
            Reaped::NoneNow => break,
            Reaped::Childless => return Ok(false),
        }
    }
    let mut orphans = false;
    for child in tree::children() {
        if !monitors.contains(&child) {
            orphans = true;
            let _ = kill_process(child, Signal::KILL);
        }
    }
    Ok(orphans)
}

/// Starts a monitor for each socket received. Returns whether more may be received.
fn accept(socket: &UnixStream, monitors: &mut HashSet<Pid>) -> io::Result<bool> {
    let mut received = Vec::new();
    if socket::receive(socket, &mut [0], &mut received)? == 0 {
        return Ok(false);
    }
    for socket in received {
        // On failure the socket closes, which tells Sabir.
        if let Ok(monitor) = start_monitor(socket) {
            monitors.insert(monitor);
        }
    }
    Ok(true)
}

fn start_monitor(socket: OwnedFd) -> io::Result<Pid> {
    let mut command = Command::new(current_executable());
    // A process group of its own: no single signal reaches this process and its monitors.
    command.arg(modes::MONITOR).process_group(0);
    if let Some(title) = std::env::args_os().next() {
        command.arg0(title);
    }
    command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Pid::from_child(&command.spawn()?))
}
