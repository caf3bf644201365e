//! The process that keeps one child at a time: it starts it, waits for it, and ends what is left.
//!
//! Whatever lives below this process belongs to that one child. So "nothing is left" is not a
//! guess: it is the kernel's answer that this process has no children any more.
//!
//! One thread and no runtime. Nothing here waits for Sabir, but for the next order.

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::order::{MAX_ORDER, Order, Patience, Word};
use crate::socket;
use crate::tree::{self, Reaped};
use crate::wake::Wake;

/// Room for most orders at the first read.
const USUAL_ORDER: usize = 16 << 10;

/// How often, while a child is being ended, we look for orphans that have come to us: the kernel
/// does not announce them.
const LOOK_WHILE_ASKING: Duration = Duration::from_millis(50);
const LOOK_WHILE_KILLING: Duration = Duration::from_millis(20);

/// Serves orders from `line` until it closes or SIGTERM comes, and nothing is left below.
pub(crate) fn keep(line: UnixStream) -> io::Result<()> {
    let mut keeper = Keeper { line, wake: Wake::new()?, line_closed: false };
    tree::adopt_orphans()?;
    keeper.say(&[Word::Ready]);
    while let Some((order, announce, files)) = keeper.next_order()? {
        let patience = order.patience;
        match start(order, files) {
            Ok(child) => {
                if announce {
                    keeper.say(&[Word::Started(child.as_raw_pid())]);
                }
                keeper.attend(child, patience)?;
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
                keeper.say(&[Word::NotStarted(errno)]);
            }
        }
    }
    Ok(())
}

struct Keeper {
    line: UnixStream,
    wake: Wake,
    line_closed: bool,
}

impl Keeper {
    /// Waits for an order, whether to announce it, and its files. `None`: there will be none.
    fn next_order(&mut self) -> io::Result<Option<(Order, bool, Vec<OwnedFd>)>> {
        let mut files = Vec::new();
        let mut bytes = Vec::new();
        let mut wanted = 4;
        while !self.told_to_end() {
            if !self.wake.wait(Some(&self.line), None)? {
                continue;
            }
            let have = bytes.len();
            bytes.resize(wanted.max(USUAL_ORDER), 0);
            let received = socket::receive(&self.line, &mut bytes[have..], &mut files)?;
            bytes.truncate(have + received);
            if received == 0 {
                return Ok(None);
            }
            if let Some((length, body)) = bytes.split_first_chunk::<4>() {
                wanted = 4 + u32::from_le_bytes(*length) as usize;
                if wanted > 4 + MAX_ORDER {
                    return Err(io::Error::other("an order beyond all bounds"));
                }
                if body.len() + 4 >= wanted {
                    let (order, announce) =
                        Order::decode(body).ok_or(io::ErrorKind::InvalidData)?;
                    return Ok(Some((order, announce, files)));
                }
            }
        }
        Ok(None)
    }

    /// Stays with a child until nothing of it is left.
    fn attend(&mut self, child: Pid, patience: Patience) -> io::Result<()> {
        let mut words = Vec::with_capacity(2);
        let mut stage = Stage::Running;
        let mut child_reaped = false;
        let mut told = HashSet::new();
        loop {
            let mut childless = false;
            while !childless {
                match tree::reap()? {
                    Reaped::One(pid, status) if pid == child && !child_reaped => {
                        child_reaped = true;
                        let killed = status.terminating_signal().map(Word::Signalled);
                        words.push(
                            killed.unwrap_or(Word::Exited(status.exit_status().unwrap_or(0))),
                        );
                        told.remove(&pid);
                    }
                    Reaped::One(pid, _) => _ = told.remove(&pid),
                    Reaped::NoneNow => break,
                    Reaped::Childless => childless = true,
                }
            }
            if childless {
                words.push(if self.told_to_end() { Word::GoneToo } else { Word::Gone });
                self.say(&words);
                return Ok(());
            }
            self.say(&words);
            words.clear();

            let now = Instant::now();
            stage = stage.next(now, child_reaped, self.told_to_end(), patience);
            if let Some(signal) = stage.signal() {
                if signal == Signal::KILL {
                    told.clear(); // whoever has come since the last look gets it too, at once
                }
                tree::signal_all(child, child_reaped, signal, &mut told);
            }
            let listening = !self.line_closed;
            let readable = self.wake.wait(listening.then_some(&self.line), stage.sleep(now))?;
            // Nothing may be sent to us while a child runs: whatever can be read means the end.
            self.line_closed |= readable;
        }
    }

    fn told_to_end(&self) -> bool {
        self.line_closed || self.wake.asked_to_leave()
    }

    /// A line that cannot be written to is a closed line.
    fn say(&mut self, words: &[Word]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.encode()).collect();
        if !bytes.is_empty() && self.line.write_all(&bytes).is_err() {
            self.line_closed = true;
        }
    }
}

/// Starts the child in a process group of its own. Our copies of its files are closed with `run`.
fn start(order: Order, files: Vec<OwnedFd>) -> io::Result<Pid> {
    let mut files = files.into_iter().map(Stdio::from);
    let stdin = if order.stdin { files.next() } else { Some(Stdio::null()) };
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, files.next(), files.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut run = Command::new(order.program);
    run.args(order.args).env_clear().envs(order.env).current_dir(order.cwd);
    run.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    // The handle is dropped: it is `tree::reap` that waits.
    let child = run.spawn()?;
    Ok(Pid::from_child(&child))
}

/// How far the ending of a child has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It works.
    Running,
    /// Its standard input is closed; until then it may leave by itself.
    Closing(Instant),
    /// It and all it left have been sent SIGTERM; until then they may tidy up.
    Asking(Instant),
    /// SIGKILL, again and again, until nothing is left.
    Killing,
}

impl Stage {
    /// The whole ladder. A child that has left leaves nothing to wait for but its leftovers.
    fn next(self, now: Instant, left: bool, told_to_end: bool, patience: Patience) -> Self {
        let asking = Self::Asking(now + patience.after_term);
        match self {
            Self::Running if left => asking,
            Self::Running if told_to_end && patience.after_stdin.is_zero() => asking,
            Self::Running if told_to_end => Self::Closing(now + patience.after_stdin),
            Self::Closing(until) if left || now >= until => asking,
            Self::Asking(until) if now >= until => Self::Killing,
            stage => stage,
        }
    }

    /// What everybody below is sent in this stage.
    fn signal(self) -> Option<Signal> {
        match self {
            Self::Running | Self::Closing(_) => None,
            Self::Asking(_) => Some(Signal::TERM),
            Self::Killing => Some(Signal::KILL),
        }
    }

    /// How long to sleep at most before looking again.
    fn sleep(self, now: Instant) -> Option<Duration> {
        match self {
            Self::Running => None,
            Self::Closing(until) => Some(until.saturating_duration_since(now)),
            Self::Asking(until) => {
                Some(until.saturating_duration_since(now).min(LOOK_WHILE_ASKING))
            }
            Self::Killing => Some(LOOK_WHILE_KILLING),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience =
        Patience { after_stdin: Duration::from_secs(2), after_term: Duration::from_secs(3) };

    #[test]
    fn the_ladder_is_stdin_then_sigterm_then_sigkill() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let running = Stage::Running;
        assert_eq!(running.next(at(0), false, false, PATIENCE), Stage::Running);
        let closing = running.next(at(0), false, true, PATIENCE);
        assert_eq!(closing, Stage::Closing(at(2)));
        assert_eq!(closing.next(at(1), false, true, PATIENCE), closing);
        let asking = closing.next(at(2), false, true, PATIENCE);
        assert_eq!(asking, Stage::Asking(at(5)));
        assert_eq!(asking.next(at(4), true, true, PATIENCE), asking);
        let killing = asking.next(at(5), true, true, PATIENCE);
        assert_eq!(killing, Stage::Killing);
        assert_eq!(killing.next(at(9), true, true, PATIENCE), killing);
    }

    #[test]
    fn what_a_child_leaves_behind_is_asked_to_leave_at_once() {
        let now = Instant::now();
        let asking = Stage::Asking(now + PATIENCE.after_term);
        assert_eq!(Stage::Running.next(now, true, false, PATIENCE), asking);
        assert_eq!(
            Stage::Closing(now + PATIENCE.after_stdin).next(now, true, true, PATIENCE),
            asking
        );
    }

    #[test]
    fn without_patience_for_its_input_sigterm_comes_at_once() {
        let now = Instant::now();
        let hurried = Patience { after_stdin: Duration::ZERO, ..PATIENCE };
        let asking = Stage::Asking(now + PATIENCE.after_term);
        assert_eq!(Stage::Running.next(now, false, true, hurried), asking);
    }
}
