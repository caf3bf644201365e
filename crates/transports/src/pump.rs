//! The pump of every stream: it moves messages between one link and one connection.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use sabir_engine::{Connection, Engine};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::{Caller, Line, Malformed};
use tokio::time::Instant;

use crate::received::{PARSED_IN_PLACE, ReceivedMessage};

/// Bytes that may wait to be written. At the limit no message is read and no event is handled until
/// the client has read some: backpressure for a client that does not read its responses.
const MAX_UNSENT: usize = 16 << 20;

/// The minimum time for a client to read the last messages.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// A link to one client. It frames messages: one a line, one a WebSocket frame.
pub(crate) trait Link {
    /// Queues a message.
    fn send(&mut self, message: &Bytes);

    /// The number of queued bytes.
    fn unsent(&self) -> usize;

    /// Writes what is queued, and reads if `reads`. Completes when either made progress.
    fn poll(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<io::Result<Step>>;

    /// The next message that was read.
    fn next(&mut self) -> Option<Line>;
}

/// An event of a link.
pub(crate) enum Step {
    /// Something was written or read.
    Progress,
    /// The client sends no more messages, and may still read.
    End,
    /// The client has disconnected.
    Gone,
}

/// Serves one client until it disconnects or the engine stops, and all messages are sent.
pub(crate) async fn serve<L>(engine: &Arc<Engine>, caller: Caller, link: &mut L) -> io::Result<()>
where
    L: Link,
{
    let mut connection = Connection::new(engine, SessionKind::Stream, caller.clone());
    let depth = engine.settings().engine_limits.depth;
    let mut reading = true;
    let mut is_ended = false;
    let mut closed_at = None;
    loop {
        // Responses to requests that were read together are written together, up to the limit.
        let mut is_blocked = gather(&mut connection, link);
        while !is_blocked && let Some(line) = link.next() {
            receive(&mut connection, &caller, line, depth).await;
            is_blocked = gather(&mut connection, link);
        }
        if !reading && !is_blocked && !std::mem::replace(&mut is_ended, true) {
            connection.end();
        }
        let mut wait = connection.wait();
        if is_blocked {
            wait = wait.for_time_only();
            connection.advance_time();
        } else {
            connection.advance();
            drop(connection.run());
            is_blocked = gather(&mut connection, link);
        }
        let is_closed = connection.is_closed();
        if is_closed && link.unsent() == 0 {
            return Ok(());
        }
        if is_closed {
            closed_at.get_or_insert_with(Instant::now);
        }
        let reads = reading && !is_blocked;
        let step = tokio::select! {
            biased;
            step = poll_fn(|cx| link.poll(cx, reads)) => step?,
            () = wait.happened(), if !is_closed => Step::Progress,
            () = lingered(closed_at, engine), if is_closed => Step::Gone,
        };
        match step {
            Step::Progress => {}
            Step::End => reading = false,
            Step::Gone => return Ok(()),
        }
    }
}

/// Completes when the time for reading the last messages is over.
async fn lingered(closed_at: Option<Instant>, engine: &Engine) {
    let patience = engine.settings().limits.grace.max(LINGER);
    match closed_at.and_then(|closed| closed.checked_add(patience)) {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Moves messages to the link while it has room. Returns whether it is full.
fn gather(connection: &mut Connection, link: &mut impl Link) -> bool {
    while link.unsent() < MAX_UNSENT {
        let Some(frame) = connection.next_frame() else { return false };
        link.send(&frame.text);
    }
    true
}

async fn receive(connection: &mut Connection, caller: &Caller, line: Line, depth: usize) {
    let stream = StreamId::default();
    let message = match line {
        Line::Message(text) if text.len() <= PARSED_IN_PLACE => {
            return connection.receive(stream, caller.clone(), &text);
        }
        Line::Message(text) => {
            connection.record(&text, &[]);
            // If the pool is full, the message is parsed here.
            let parsed = ReceivedMessage::parse_long(caller, text.clone(), depth).await;
            parsed.unwrap_or_else(|_| ReceivedMessage::parse(&text, depth))
        }
        Line::TooLong => ReceivedMessage::Other(Err(Malformed::TOO_LONG)),
    };
    message.hand_to(connection, stream, caller.clone());
    drop(connection.run());
}
