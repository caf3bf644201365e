//! Sabir's end of the sockets to the supervisor process and the monitors.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::net::Shutdown;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;

use crate::message::Report;
use crate::socket;

/// Our end of the socket to a monitor.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    partial: [u8; Report::SIZE],
    filled: usize,
}

impl Channel {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, partial: [0; Report::SIZE], filled: 0 }
    }

    /// Waits for the next report. `None` if the monitor has exited. Cancel safe.
    pub(crate) async fn receive(&mut self) -> io::Result<Option<Report>> {
        while self.filled < Report::SIZE {
            match self.stream.read(&mut self.partial[self.filled..]).await? {
                0 => return Ok(None),
                read => self.filled += read,
            }
        }
        self.filled = 0;
        Report::decode(self.partial).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Sends a request together with its file descriptors.
    pub(crate) async fn send(&self, request: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(&self.stream, request, files).await
    }

    /// Whether the monitor exited, or sent something unexpected, while it was idle.
    pub(crate) fn is_stale(&self) -> bool {
        !matches!(self.stream.try_read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Closes the write half: the monitor stops its program and can still report about it.
    pub(crate) fn close(&self) {
        let _ = rustix::net::shutdown(&self.stream, Shutdown::Write);
    }
}

/// Sends all of `bytes`, and `files` with the first of them.
pub(crate) async fn send(
    stream: &UnixStream,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes.len() {
        let files = if sent == 0 { files } else { &[] };
        sent += stream
            .async_io(Interest::WRITABLE, || socket::send(stream, &bytes[sent..], files))
            .await?;
    }
    Ok(())
}
