//! What wakes a warden or a keeper: its line, a child that ended, a request to leave, time.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGTERM};

/// The signals of this process, as a stream to wait on. One per process.
pub(crate) struct Wake {
    signals: UnixStream,
    asked_to_leave: Arc<AtomicBool>,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let (signals, handler) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        let asked_to_leave = Arc::new(AtomicBool::new(false));
        // The flag first: the handlers run in this order, and the stream announces the flag.
        signal_hook::flag::register(SIGTERM, Arc::clone(&asked_to_leave))?;
        signal_hook::low_level::pipe::register(SIGTERM, handler.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGCHLD, handler)?;
        Ok(Self { signals, asked_to_leave })
    }

    /// Whether SIGTERM has come.
    pub(crate) fn asked_to_leave(&self) -> bool {
        self.asked_to_leave.load(Ordering::Acquire)
    }

    /// Sleeps until `line` can be read, a signal has come, or `at_most` has passed.
    /// Returns whether `line` can be read; a line that is not given is not looked at.
    pub(crate) fn wait(
        &mut self,
        line: Option<&UnixStream>,
        at_most: Option<Duration>,
    ) -> io::Result<bool> {
        let at_most = at_most.map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        let signals = PollFd::new(&self.signals, PollFlags::IN);
        let readable = match line {
            Some(line) => {
                let mut files = [signals, PollFd::from_borrowed_fd(line.as_fd(), PollFlags::IN)];
                sleep(&mut files, at_most.as_ref())?;
                !files[1].revents().is_empty()
            }
            None => {
                sleep(&mut [signals], at_most.as_ref())?;
                false
            }
        };
        // Emptied before anybody looks for ended children, so that none is overlooked.
        while matches!((&self.signals).read(&mut [0; 64]), Ok(64)) {}
        Ok(readable)
    }
}

/// A signal handler that interrupts the sleep has also filled the stream: nothing is lost.
fn sleep(files: &mut [PollFd<'_>], at_most: Option<&Timespec>) -> io::Result<()> {
    match poll(files, at_most) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
