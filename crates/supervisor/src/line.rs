//! Sabir's end of the sockets to the warden and the keepers.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::net::Shutdown;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;

use crate::order::Word;
use crate::socket;

/// Our end of the socket to a keeper.
#[derive(Debug)]
pub(crate) struct Line {
    stream: UnixStream,
    partial: [u8; Word::SIZE],
    have: usize,
}

impl Line {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, partial: [0; Word::SIZE], have: 0 }
    }

    /// The next word. `None`: the keeper has left. What was read of a word is kept if this is
    /// dropped.
    pub(crate) async fn hear(&mut self) -> io::Result<Option<Word>> {
        while self.have < Word::SIZE {
            match self.stream.read(&mut self.partial[self.have..]).await? {
                0 => return Ok(None),
                read => self.have += read,
            }
        }
        self.have = 0;
        Word::decode(self.partial).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Sends an order, and its files.
    pub(crate) async fn send(&self, order: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(&self.stream, order, files).await
    }

    /// Whether the keeper has left or said something unasked while it was idle.
    pub(crate) fn is_stale(&self) -> bool {
        !matches!(self.stream.try_read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Closes our half: the keeper ends what it keeps, and can still tell us about it.
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
