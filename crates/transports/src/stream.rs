//! Any byte stream, one message a line: a pipe, a socket, a pair in memory.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use sabir_engine::{Connection, Engine};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::{Line, LineSplitter, Malformed};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

/// How much may wait to be written. When it is reached nothing more is read, and what running calls
/// say and what changes is not told, until the client has taken some of it: a client that asks and
/// does not listen is made to wait.
const MAX_UNSENT: usize = 16 << 20;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// How long a client may take to take the last of what it is sent, at least.
const LINGER: Duration = Duration::from_secs(1);

/// Serves one client until it has left, or the engine stops, and all is sent.
pub async fn serve<R, W>(engine: &Arc<Engine>, mut reader: R, mut writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut connection = Connection::new(engine, SessionKind::Stream, None);
    let mut lines = LineSplitter::new(engine.settings().engine_limits.message_size);
    let mut unsent = BytesMut::new();
    let mut reading = true;
    let mut closed_at = None;
    loop {
        // All that was answered by what came in together goes out together.
        while let Some(frame) = connection.next_frame() {
            unsent.extend_from_slice(&frame.text);
            unsent.extend_from_slice(b"\n");
        }
        let is_closed = connection.is_closed();
        if is_closed && unsent.is_empty() {
            return writer.flush().await;
        }
        if is_closed {
            closed_at.get_or_insert_with(Instant::now);
        }
        let is_blocked = unsent.len() >= MAX_UNSENT;
        lines.make_room(CHUNK);
        tokio::select! {
            biased;
            written = writer.write(&unsent), if !unsent.is_empty() => match written {
                // The client listens no more; whatever it asked for, it will not hear.
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error),
                Ok(written) => {
                    unsent.advance(written);
                    if unsent.is_empty() {
                        writer.flush().await?;
                    }
                }
            },
            read = reader.read_buf(lines.buffer()), if reading && !is_blocked => {
                // A client that vanished reads like one that has left.
                reading = read.is_ok_and(|read| read > 0);
                receive(&mut connection, &mut lines, reading);
                // A client that never stops asking must not keep all else from happening.
                connection.catch_up();
            }
            () = wait(&mut connection, is_blocked), if !is_closed => {}
            () = lingered(closed_at, engine), if is_closed => return Ok(()),
        }
    }
}

/// Waits for whatever happens; for time alone while the client does not take what it is sent.
async fn wait(connection: &mut Connection, is_blocked: bool) {
    if is_blocked { connection.wait_for_time().await } else { connection.wait().await }
}

/// Comes back when a client that takes nothing has been waited for long enough.
async fn lingered(closed_at: Option<Instant>, engine: &Engine) {
    let patience = engine.settings().limits.grace.max(LINGER);
    match closed_at.and_then(|closed| closed.checked_add(patience)) {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

fn receive(connection: &mut Connection, lines: &mut LineSplitter, more: bool) {
    let mut take = |line| match line {
        Line::Message(frame) => connection.receive(StreamId::default(), &frame),
        Line::TooLong => connection.receive_decoded(StreamId::default(), Err(Malformed::TOO_LONG)),
    };
    while let Some(line) = lines.next_line() {
        take(line);
    }
    if !more {
        lines.finish().map(take);
        connection.end();
    }
}
