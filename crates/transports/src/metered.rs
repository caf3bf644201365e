//! A byte stream that takes from the memory of the process while a message arrives.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sabir_budget::{Hold, MemoryFull, memory};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A buffer that grows and never shrinks, and the memory that it takes.
pub(crate) struct Buffer {
    hold: Hold,
    size: usize,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self { hold: memory().take_anyway(0), size: 0 }
    }

    /// The most bytes that were in it.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// So many bytes are in it. Fails if there is no memory for them.
    fn fill(&mut self, size: usize) -> Result<(), MemoryFull> {
        let more = size.saturating_sub(self.size);
        if more > 0 {
            self.hold.grow_long(more)?;
            self.size += more;
        }
        Ok(())
    }

    /// So many bytes were in it.
    pub(crate) fn was_filled(&mut self, size: usize) {
        let more = size.saturating_sub(self.size);
        self.hold.absorb(memory().take_anyway(more));
        self.size += more;
    }
}

/// A stream whose reader collects messages in a buffer of its own. Reading fails when the memory of the
/// process does not suffice for a message that has begun.
pub(crate) struct Metered<S> {
    stream: S,
    /// What is not counted here: the connection has paid for it.
    free: usize,
    unfinished: usize,
    buffer: Buffer,
}

impl<S> Metered<S> {
    /// Counts what exceeds `free` bytes.
    pub(crate) fn new(stream: S, free: usize) -> Self {
        Self { stream, free, unfinished: 0, buffer: Buffer::new() }
    }

    /// A message is complete. Bytes behind it are not counted: there are at most as many as are read at
    /// once.
    pub(crate) fn finish(&mut self) {
        self.unfinished = 0;
    }

    /// So many bytes were not part of a message.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.unfinished = self.unfinished.saturating_sub(bytes);
    }

    /// Whether a message has begun to arrive that takes memory.
    pub(crate) fn has_begun(&self) -> bool {
        self.unfinished > self.free
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.unfinished += buffer.filled().len() - before;
        let counted = self.unfinished.saturating_sub(self.free);
        let filled = self.buffer.fill(counted);
        Poll::Ready(filled.map_err(|full| io::Error::new(io::ErrorKind::OutOfMemory, full)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
