//! Waiting for a socket, a child's exit, SIGTERM or a timeout, in the supervisor process and the
//! monitors.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGTERM};

/// Turns the signals of this process into a readable stream. One per process.
pub(crate) struct Poller {
    signals: UnixStream,
    terminated: Arc<AtomicBool>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let (signals, handler) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        let terminated = Arc::new(AtomicBool::new(false));
        // The flag is registered first: handlers run in this order, and the stream announces it.
        signal_hook::flag::register(SIGTERM, Arc::clone(&terminated))?;
        signal_hook::low_level::pipe::register(SIGTERM, handler.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGCHLD, handler)?;
        Ok(Self { signals, terminated })
    }

    /// Whether SIGTERM has been received.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Acquire)
    }

    /// Sleeps until `socket` is readable, a signal arrives, or `timeout` has passed. Returns
    /// whether `socket` is readable.
    pub(crate) fn wait(
        &mut self,
        socket: Option<&UnixStream>,
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        let timeout = timeout.map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        let signals = PollFd::new(&self.signals, PollFlags::IN);
        let readable = match socket {
            Some(socket) => {
                let mut files = [signals, PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
                sleep(&mut files, timeout.as_ref())?;
                !files[1].revents().is_empty()
            }
            None => {
                sleep(&mut [signals], timeout.as_ref())?;
                false
            }
        };
        // Drained before the caller looks for exited children, so that none is missed.
        while matches!((&self.signals).read(&mut [0; 64]), Ok(64)) {}
        Ok(readable)
    }
}

/// A signal handler that interrupts the sleep has also written to the stream: nothing is lost.
fn sleep(files: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> io::Result<()> {
    match poll(files, timeout) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
