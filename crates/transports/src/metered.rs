//! A byte stream that counts the memory of messages while they arrive.

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

    /// The most bytes that the buffer has held.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The buffer holds `size` bytes. Fails if there is no memory for them.
    fn fill(&mut self, size: usize) -> Result<(), MemoryFull> {
        let more = size.saturating_sub(self.size);
        if more > 0 {
            self.hold.grow_long(more)?;
            self.size += more;
        }
        Ok(())
    }

    /// The buffer held `size` bytes, which are counted even without memory for them.
    pub(crate) fn was_filled(&mut self, size: usize) {
        let more = size.saturating_sub(self.size);
        self.hold.absorb(memory().take_anyway(more));
        self.size += more;
    }
}

/// A stream whose reader collects messages in its own buffer. Reading fails if the process has no
/// memory for a message that has begun.
pub(crate) struct Metered<S> {
    stream: S,
    /// Bytes that are not counted here: they are counted with the connection.
    free: usize,
    unfinished: usize,
    buffer: Buffer,
}

impl<S> Metered<S> {
    /// Counts the bytes above `free`.
    pub(crate) fn new(stream: S, free: usize) -> Self {
        Self { stream, free, unfinished: 0, buffer: Buffer::new() }
    }

    /// A message is complete. Bytes after it are not counted: one read bounds them.
    pub(crate) fn finish(&mut self) {
        self.unfinished = 0;
    }

    /// These bytes were not part of a message.
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
