//! The process that keeps the keepers. It is Sabir's only child.
//!
//! It starts a keeper for every socket that Sabir sends. If a keeper is killed, all that it kept
//! comes to the warden, which ends it; if Sabir closes the line or dies, it tells the keepers to
//! end what they keep, and leaves as the last one.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::modes::{KEEP_ONE, this_program};
use crate::socket;
use crate::tree::{self, Reaped};
use crate::wake::Wake;

/// How often we look again for what a killed keeper left, until it is gone.
const LOOK_WHILE_KILLING: Duration = Duration::from_millis(20);

/// Starts keepers for `line` until it closes or SIGTERM comes, and nothing is left below.
pub(crate) fn watch(line: UnixStream) -> io::Result<()> {
    // A session of our own: what is sent to Sabir's group or terminal is not meant for us.
    rustix::process::setsid()?;
    std::env::set_current_dir("/")?;
    tree::adopt_orphans()?;
    let mut wake = Wake::new()?;
    let mut keepers = HashSet::new();
    let mut open = true;
    loop {
        if open && wake.asked_to_leave() {
            open = false;
        }
        if !open {
            for keeper in &keepers {
                let _ = kill_process(*keeper, Signal::TERM);
            }
        }
        let strays = tend(&mut keepers)?;
        if !open && keepers.is_empty() && !strays {
            return Ok(());
        }
        let look_again = strays.then_some(LOOK_WHILE_KILLING);
        if wake.wait(open.then_some(&line), look_again)? {
            open = admit(&line, &mut keepers)?;
        }
    }
}

/// Reaps what has ended and kills what no keeper keeps. Returns whether there is any of that.
fn tend(keepers: &mut HashSet<Pid>) -> io::Result<bool> {
    loop {
        match tree::reap()? {
            Reaped::One(pid, _) => _ = keepers.remove(&pid),
            Reaped::NoneNow => break,
            Reaped::Childless => return Ok(false),
        }
    }
    let mut strays = false;
    for child in tree::children() {
        if !keepers.contains(&child) {
            strays = true;
            let _ = kill_process(child, Signal::KILL);
        }
    }
    Ok(strays)
}

/// Starts a keeper for each socket that has come. Returns whether more may come.
fn admit(line: &UnixStream, keepers: &mut HashSet<Pid>) -> io::Result<bool> {
    let mut sockets = Vec::new();
    if socket::receive(line, &mut [0], &mut sockets)? == 0 {
        return Ok(false);
    }
    for socket in sockets {
        // Not started: the socket closes, and so Sabir hears of it.
        if let Ok(keeper) = start_keeper(socket) {
            keepers.insert(keeper);
        }
    }
    Ok(true)
}

fn start_keeper(socket: OwnedFd) -> io::Result<Pid> {
    let mut run = Command::new(this_program());
    // A group of its own: nobody can hit the warden and its keepers with one signal.
    run.arg(KEEP_ONE).process_group(0);
    if let Some(name) = std::env::args_os().next() {
        run.arg0(name);
    }
    run.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Pid::from_child(&run.spawn()?))
}
