//! The monitor process: starts one program at a time, waits for it, and stops its remaining
//! descendants.
//!
//! Every process below this one belongs to that program. Nothing is left of it when the kernel
//! reports that this process has no children.
//!
//! Single-threaded and without a runtime. It waits for Sabir only between two programs.

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::message::{GracePeriod, MAX_REQUEST, Report, StartRequest};
use crate::poll::Poller;
use crate::socket;
use crate::tree::{self, Reaped};

/// The size of the first read, which holds most requests.
const USUAL_REQUEST: usize = 16 << 10;

/// How often to look for new orphans while a program is being stopped: the kernel does not announce
/// them.
const TERM_INTERVAL: Duration = Duration::from_millis(50);
const KILL_INTERVAL: Duration = Duration::from_millis(20);

/// Serves requests until `socket` closes or SIGTERM arrives, then until no descendant is left.
pub(crate) fn run(socket: UnixStream) -> io::Result<()> {
    let mut monitor = Monitor { socket, poller: Poller::new()?, closed: false };
    tree::adopt_orphans()?;
    monitor.report(&[Report::Ready]);
    while let Some((request, announce, files)) = monitor.next_request()? {
        let grace = request.grace;
        match start(request, files) {
            Ok(program) => {
                if announce {
                    monitor.report(&[Report::Started(program.as_raw_pid())]);
                }
                monitor.watch(program, grace)?;
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
                monitor.report(&[Report::NotStarted(errno)]);
            }
        }
    }
    Ok(())
}

struct Monitor {
    socket: UnixStream,
    poller: Poller,
    closed: bool,
}

impl Monitor {
    /// Waits for a request, whether to announce its start, and its file descriptors. `None` if
    /// there are no more requests.
    fn next_request(&mut self) -> io::Result<Option<(StartRequest, bool, Vec<OwnedFd>)>> {
        let mut files = Vec::new();
        let mut bytes = Vec::new();
        let mut wanted = 4;
        while !self.must_stop() {
            if !self.poller.wait(Some(&self.socket), None)? {
                continue;
            }
            let have = bytes.len();
            bytes.resize(wanted.max(USUAL_REQUEST), 0);
            let received = socket::receive(&self.socket, &mut bytes[have..], &mut files)?;
            bytes.truncate(have + received);
            if received == 0 {
                return Ok(None);
            }
            if let Some((length, body)) = bytes.split_first_chunk::<4>() {
                wanted = 4 + u32::from_le_bytes(*length) as usize;
                if wanted > 4 + MAX_REQUEST {
                    return Err(io::Error::other("the request is too large"));
                }
                if body.len() + 4 >= wanted {
                    let (request, announce) =
                        StartRequest::decode(body).ok_or(io::ErrorKind::InvalidData)?;
                    return Ok(Some((request, announce, files)));
                }
            }
        }
        Ok(None)
    }

    /// Waits until no process of the program is left, and stops it when asked to.
    fn watch(&mut self, program: Pid, grace: GracePeriod) -> io::Result<()> {
        let mut reports = Vec::with_capacity(2);
        let mut stage = Stage::Running;
        let mut exited = false;
        let mut signalled = HashSet::new();
        loop {
            let mut childless = false;
            while !childless {
                match tree::reap()? {
                    Reaped::One(pid, status) if pid == program && !exited => {
                        exited = true;
                        let signal = status.terminating_signal().map(Report::Signalled);
                        let code = Report::Exited(status.exit_status().unwrap_or(0));
                        reports.push(signal.unwrap_or(code));
                        signalled.remove(&pid);
                    }
                    Reaped::One(pid, _) => _ = signalled.remove(&pid),
                    Reaped::NoneNow => break,
                    Reaped::Childless => childless = true,
                }
            }
            if childless {
                let exiting = self.must_stop();
                reports.push(if exiting { Report::GoneAndExiting } else { Report::Gone });
                self.report(&reports);
                return Ok(());
            }
            self.report(&reports);
            reports.clear();

            let now = Instant::now();
            stage = stage.next(now, exited, self.must_stop(), grace);
            if let Some(signal) = stage.signal() {
                if signal == Signal::KILL {
                    signalled.clear(); // also kill those that have appeared since the last look
                }
                tree::signal_all(program, exited, signal, &mut signalled);
            }
            let open = !self.closed;
            let readable = self.poller.wait(open.then_some(&self.socket), stage.timeout(now))?;
            // Nothing is sent to us while a program runs: a readable socket has closed.
            self.closed |= readable;
        }
    }

    fn must_stop(&self) -> bool {
        self.closed || self.poller.is_terminated()
    }

    /// Sends reports. A socket that cannot be written to counts as closed.
    fn report(&mut self, reports: &[Report]) {
        let bytes: Vec<u8> = reports.iter().flat_map(|report| report.encode()).collect();
        if !bytes.is_empty() && self.socket.write_all(&bytes).is_err() {
            self.closed = true;
        }
    }
}

/// Starts the program in its own process group. Our copies of its descriptors close with `command`.
fn start(request: StartRequest, files: Vec<OwnedFd>) -> io::Result<Pid> {
    let mut files = files.into_iter().map(Stdio::from);
    let stdin = if request.stdin { files.next() } else { Some(Stdio::null()) };
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, files.next(), files.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut command = Command::new(request.program);
    command.args(request.args).env_clear().envs(request.env).current_dir(request.cwd);
    command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    // The handle is dropped: `tree::reap` waits for the program.
    let child = command.spawn()?;
    Ok(Pid::from_child(&child))
}

/// The steps of stopping a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// Standard input is closed; the program may exit by itself until this time.
    Closing(Instant),
    /// SIGTERM has been sent; the processes may clean up until this time.
    Terminating(Instant),
    /// SIGKILL is sent repeatedly until no process is left.
    Killing,
}

impl Stage {
    /// The next step. After the program's own exit its descendants get SIGTERM immediately.
    fn next(self, now: Instant, exited: bool, must_stop: bool, grace: GracePeriod) -> Self {
        let terminating = Self::Terminating(now + grace.after_term);
        match self {
            Self::Running if exited => terminating,
            Self::Running if must_stop && grace.after_stdin.is_zero() => terminating,
            Self::Running if must_stop => Self::Closing(now + grace.after_stdin),
            Self::Closing(until) if exited || now >= until => terminating,
            Self::Terminating(until) if now >= until => Self::Killing,
            stage => stage,
        }
    }

    /// The signal that every descendant gets in this step.
    fn signal(self) -> Option<Signal> {
        match self {
            Self::Running | Self::Closing(_) => None,
            Self::Terminating(_) => Some(Signal::TERM),
            Self::Killing => Some(Signal::KILL),
        }
    }

    /// How long to sleep before the next check.
    fn timeout(self, now: Instant) -> Option<Duration> {
        match self {
            Self::Running => None,
            Self::Closing(until) => Some(until.saturating_duration_since(now)),
            Self::Terminating(until) => {
                Some(until.saturating_duration_since(now).min(TERM_INTERVAL))
            }
            Self::Killing => Some(KILL_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: GracePeriod =
        GracePeriod { after_stdin: Duration::from_secs(2), after_term: Duration::from_secs(3) };

    #[test]
    fn stdin_is_closed_then_sigterm_then_sigkill_is_sent() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let running = Stage::Running;
        assert_eq!(running.next(at(0), false, false, GRACE), Stage::Running);
        let closing = running.next(at(0), false, true, GRACE);
        assert_eq!(closing, Stage::Closing(at(2)));
        assert_eq!(closing.next(at(1), false, true, GRACE), closing);
        let terminating = closing.next(at(2), false, true, GRACE);
        assert_eq!(terminating, Stage::Terminating(at(5)));
        assert_eq!(terminating.next(at(4), true, true, GRACE), terminating);
        let killing = terminating.next(at(5), true, true, GRACE);
        assert_eq!(killing, Stage::Killing);
        assert_eq!(killing.next(at(9), true, true, GRACE), killing);
    }

    #[test]
    fn the_descendants_of_an_exited_program_get_sigterm_immediately() {
        let now = Instant::now();
        let terminating = Stage::Terminating(now + GRACE.after_term);
        assert_eq!(Stage::Running.next(now, true, false, GRACE), terminating);
        let closing = Stage::Closing(now + GRACE.after_stdin);
        assert_eq!(closing.next(now, true, true, GRACE), terminating);
    }

    #[test]
    fn without_a_grace_period_for_stdin_sigterm_is_sent_immediately() {
        let now = Instant::now();
        let grace = GracePeriod { after_stdin: Duration::ZERO, ..GRACE };
        let terminating = Stage::Terminating(now + GRACE.after_term);
        assert_eq!(Stage::Running.next(now, false, true, grace), terminating);
    }
}
