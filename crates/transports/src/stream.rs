//! Any byte stream, one message a line: a pipe, a socket, a pair in memory.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use sabir_engine::Engine;
use sabir_wire::{Caller, Line, LineSplitter};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::pump::{self, Link, Step};

/// The bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Serves one client until it disconnects or the engine stops, and all messages are sent.
pub async fn serve<R, W>(
    engine: &Arc<Engine>,
    caller: Caller,
    reader: R,
    writer: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let lines = LineSplitter::new(engine.settings().engine_limits.message_size);
    let (unsent, is_flushed, is_over) = (BytesMut::new(), true, false);
    let mut link = Lines { reader, writer, lines, unsent, is_flushed, is_over };
    pump::serve(engine, caller, &mut link).await?;
    match link.writer.flush().await {
        // The client has closed its end.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        flushed => flushed,
    }
}

/// A byte stream, split into lines.
struct Lines<R, W> {
    reader: R,
    writer: W,
    lines: LineSplitter,
    unsent: BytesMut,
    is_flushed: bool,
    is_over: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    /// Writes some of the queued bytes, and flushes after the last of them.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Step>> {
        let has_unsent = !self.unsent.is_empty();
        if has_unsent {
            match ready!(Pin::new(&mut self.writer).poll_write(cx, &self.unsent)) {
                // The client has closed its end.
                Ok(0) => return Poll::Ready(Ok(Step::Gone)),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Poll::Ready(Ok(Step::Gone));
                }
                Err(error) => return Poll::Ready(Err(error)),
                Ok(written) => self.unsent.advance(written),
            }
            self.is_flushed = false;
        }
        if self.unsent.is_empty()
            && !self.is_flushed
            && let Poll::Ready(flushed) = Pin::new(&mut self.writer).poll_flush(cx)
        {
            flushed?;
            self.is_flushed = true;
        }
        if has_unsent { Poll::Ready(Ok(Step::Progress)) } else { Poll::Pending }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Link for Lines<R, W> {
    fn send(&mut self, message: &Bytes) {
        self.unsent.extend_from_slice(message);
        self.unsent.extend_from_slice(b"\n");
    }

    fn unsent(&self) -> usize {
        self.unsent.len()
    }

    fn poll(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<io::Result<Step>> {
        if let Poll::Ready(step) = self.poll_write(cx) {
            return Poll::Ready(step);
        }
        if !reads {
            return Poll::Pending;
        }
        self.lines.make_room(CHUNK);
        let read = pin!(self.reader.read_buf(self.lines.buffer())).poll(cx);
        // A read error counts as the end of the input.
        read.map(|read| match read.is_ok_and(|read| read > 0) {
            true => Ok(Step::Progress),
            false => {
                self.is_over = true;
                Ok(Step::End)
            }
        })
    }

    fn next(&mut self) -> Option<Line> {
        self.lines.next_line().or_else(|| {
            // The last line may lack its newline.
            std::mem::take(&mut self.is_over).then(|| self.lines.finish()).flatten()
        })
    }
}
