//! A socket that notes when its peer reads nothing, and that is closed so that the peer can still
//! read the last answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use sabir_budget::{Hold, memory};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::activity::Activity;

/// The time and the bytes that a peer may still send after the last response.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 20;

/// The longest body that is copied behind its head, to be sent in one write.
pub(crate) const TOGETHER: usize = 2 << 10;

/// A connection's socket.
pub(crate) struct Socket<S> {
    stream: S,
    activity: Arc<Activity>,
    /// Bytes that were read before, to be read again.
    again: Bytes,
    linger: Option<Linger>,
    head: Head,
    /// A request of HTTP/1 was answered: HTTP/2 may not follow.
    speaks_one: bool,
}

/// The bytes of a head that is not complete, counted in the memory of the process.
#[derive(Default)]
struct Head {
    bytes: usize,
    hold: Option<Hold>,
    /// The number of the last request that began.
    begun: u32,
}

/// The part of a head that is counted with its connection, and the maximum that is counted: other
/// bytes, such as pings, are not kept.
const PAID: usize = 16 << 10;
const MAX_HEAD: usize = 256 << 10;

/// The last response is written. Bytes that still arrive are read and dropped: closing a socket
/// with unread bytes makes the system reset the connection, and the peer loses that response.
struct Linger {
    end: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub(crate) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self {
            stream,
            activity,
            again: Bytes::new(),
            linger: None,
            head: Head::default(),
            speaks_one: false,
        }
    }

    /// A request was read in full: the next head follows.
    pub(crate) fn end_head(&mut self) {
        self.head.bytes = 0;
        self.head.hold = None;
        self.speaks_one = true;
    }

    /// Reads these bytes first, which were read before.
    pub(crate) fn again(self, again: Bytes) -> Self {
        Self { again, ..self }
    }

    /// Whether the connection may still turn out to be HTTP/2.
    pub(crate) fn may_speak_two(&self) -> bool {
        let begins = self.again.iter().zip(b"PRI * HTTP/2.0").all(|(read, begun)| read == begun);
        begins && !self.speaks_one
    }

    /// Reads and drops bytes while the peer sends; completes at once if none are in flight.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 16 << 10];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match (Pin::new(&mut self.stream).poll_read(cx, &mut buffer), &mut self.linger) {
                (Poll::Pending, Some(linger)) => return linger.end.as_mut().poll(cx),
                (Poll::Ready(Ok(())), linger) if !buffer.filled().is_empty() => {
                    let linger = linger.get_or_insert_with(Linger::new);
                    linger.bytes_left = linger.bytes_left.saturating_sub(buffer.filled().len());
                    if linger.bytes_left == 0 {
                        return Poll::Ready(());
                    }
                }
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl Head {
    /// Counts `read` bytes. Fails if there is no memory for them.
    fn note(&mut self, read: usize, activity: &Activity) -> io::Result<()> {
        let begun = activity.begun();
        if begun != self.begun || activity.in_flight() > 0 {
            *self = Self { begun, ..Self::default() };
            return Ok(());
        }
        let before = self.bytes.max(PAID);
        self.bytes = (self.bytes + read).min(MAX_HEAD);
        let more = self.bytes.saturating_sub(before);
        if more > 0 {
            let hold = self.hold.get_or_insert_with(|| memory().take_anyway(0));
            let full = |full| io::Error::new(io::ErrorKind::OutOfMemory, full);
            hold.grow_long(more).map_err(full)?;
        }
        Ok(())
    }
}

impl Linger {
    fn new() -> Self {
        Self { end: Box::pin(tokio::time::sleep(LINGER)), bytes_left: LINGER_BYTES }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.again.is_empty() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
            let Self { head, activity, .. } = &mut *self;
            return Poll::Ready(head.note(buffer.filled().len() - before, activity));
        }
        let length = buffer.remaining().min(self.again.len());
        buffer.put_slice(&self.again.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.activity.note_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A short head and a short body: copying them costs less than a vectored write.
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut together = [0; TOGETHER];
        let written = match together.get_mut(..length) {
            Some(room) => {
                let mut left = &mut *room;
                for part in parts {
                    let (place, rest) = left.split_at_mut(part.len());
                    place.copy_from_slice(part);
                    left = rest;
                }
                Pin::new(&mut self.stream).poll_write(cx, room)
            }
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, parts),
        };
        self.activity.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // With TLS, written bytes may wait here for a peer that does not read.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.activity.note_write(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        self.poll_linger(cx).map(Ok)
    }
}
