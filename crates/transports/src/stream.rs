//! Any byte stream, one message a line: a pipe, a socket, a pair in memory.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use sabir_engine::{Connection, Engine};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::{Caller, Line, LineSplitter, Malformed};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

/// How much may wait to be written. At the limit nothing more is read and no event is handled until
/// the client has taken some of it: backpressure for a client that sends requests and does not read
/// the responses.
const MAX_UNSENT: usize = 16 << 20;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// The least time that a client gets to read the last messages.
const LINGER: Duration = Duration::from_secs(1);

/// Serves one client until it has left, or the engine stops, and everything is sent.
pub async fn serve<R, W>(
    engine: &Arc<Engine>,
    caller: Caller,
    mut reader: R,
    mut writer: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut connection = Connection::new(engine, SessionKind::Stream, caller.clone());
    let mut lines = LineSplitter::new(engine.settings().engine_limits.message_size);
    let mut unsent = BytesMut::new();
    let mut reading = true;
    let mut is_ended = false;
    let mut closed_at = None;
    loop {
        // Responses to requests that were read together are written together, but no more is done
        // than can be sent.
        let mut is_blocked = gather(&mut connection, &mut unsent);
        while !is_blocked && let Some(line) = lines.next_line() {
            receive(&mut connection, &caller, line);
            is_blocked = gather(&mut connection, &mut unsent);
        }
        if !reading && !is_blocked && !std::mem::replace(&mut is_ended, true) {
            if let Some(line) = lines.finish() {
                receive(&mut connection, &caller, line);
            }
            connection.end();
        }
        let mut wait = connection.wait();
        if is_blocked {
            wait = wait.for_time_only();
            connection.advance_time();
        } else {
            connection.advance();
            drop(connection.run());
            is_blocked = gather(&mut connection, &mut unsent);
        }
        let is_closed = connection.is_closed();
        if is_closed && unsent.is_empty() {
            return writer.flush().await;
        }
        if is_closed {
            closed_at.get_or_insert_with(Instant::now);
        }
        lines.make_room(CHUNK);
        tokio::select! {
            biased;
            written = writer.write(&unsent), if !unsent.is_empty() => match written {
                // The client reads no more; nothing can be answered.
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
            }
            () = wait.happened(), if !is_closed => {}
            () = lingered(closed_at, engine), if is_closed => return Ok(()),
        }
    }
}

/// Completes when a client that reads nothing has had enough time.
async fn lingered(closed_at: Option<Instant>, engine: &Engine) {
    let patience = engine.settings().limits.grace.max(LINGER);
    match closed_at.and_then(|closed| closed.checked_add(patience)) {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Moves messages to what is to be written, as far as that has room. Whether it has none.
fn gather(connection: &mut Connection, unsent: &mut BytesMut) -> bool {
    while unsent.len() < MAX_UNSENT {
        let Some(frame) = connection.next_frame() else { return false };
        unsent.extend_from_slice(&frame.text);
        unsent.extend_from_slice(b"\n");
    }
    true
}

fn receive(connection: &mut Connection, caller: &Caller, line: Line) {
    let stream = StreamId::default();
    match line {
        Line::Message(frame) => connection.receive(stream, caller.clone(), &frame),
        Line::TooLong => {
            connection.receive_decoded(stream, caller.clone(), Err(Malformed::TOO_LONG));
        }
    }
}
