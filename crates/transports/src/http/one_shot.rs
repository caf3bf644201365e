//! A connection that lives for one exchange: a modern request, or a legacy one without a session.
//!
//! A call that completes at once is answered as JSON, without a task or a timer. A call that sends
//! a message before its result gets an event stream. A client that disconnects cancels its call:
//! the connection is dropped, and its calls with it.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use sabir_budget::memory;
use sabir_engine::{Connection, Frame, Waiting};
use sabir_session::{MessageKind, StreamId};
use sabir_wire::Code;
use tokio::time::Instant;

use super::reply::{self, Answer, EventStream, Reply};
use super::sse;
use super::state::{InFlight, OpenStream};

/// The one stream of such a connection.
pub(crate) const STREAM_ID: StreamId = StreamId(0);

/// The HTTP status for an error of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusRules {
    /// A modern request.
    Modern {
        /// It lacks required metadata.
        is_undescribed: bool,
    },
    /// A legacy request: only a message that is not a valid request is an HTTP error as well.
    Legacy,
}

impl StatusRules {
    pub(crate) fn status(self, kind: MessageKind) -> StatusCode {
        match (kind, self) {
            (MessageKind::Refusal(_), _)
            | (MessageKind::Answer(Some(Code::UNSUPPORTED_VERSION)), _)
            | (
                MessageKind::Answer(Some(Code::HEADER_MISMATCH | Code::MISSING_CAPABILITY)),
                Self::Modern { .. },
            )
            | (
                MessageKind::Answer(Some(Code::INVALID_PARAMS)),
                Self::Modern { is_undescribed: true },
            ) => StatusCode::BAD_REQUEST,
            (MessageKind::Answer(Some(Code::METHOD_NOT_FOUND)), Self::Modern { .. }) => {
                StatusCode::NOT_FOUND
            }
            _ => StatusCode::OK,
        }
    }
}

/// Runs the work of the connection, and answers with its messages. A stream ends at `expires`, in
/// seconds since 1970.
pub(crate) fn answer(
    in_flight: InFlight,
    mut connection: Connection,
    rules: StatusRules,
    expires: Option<u64>,
) -> Answer {
    let waiting = connection.run();
    match connection.next_frame() {
        Some(frame) if is_last(&frame, &connection) => {
            reply::json(rules.status(frame.kind), frame.text).into()
        }
        None if !connection.is_active(STREAM_ID) => reply::empty(StatusCode::ACCEPTED).into(),
        first => {
            let exchange = Exchange { connection, waiting: waiting.into_iter().next(), first };
            Answer::Later(Box::pin(answer_later(in_flight, exchange, rules, expires)))
        }
    }
}

fn is_last(frame: &Frame, connection: &Connection) -> bool {
    matches!(frame.kind, MessageKind::Answer(_) | MessageKind::Refusal(_))
        && !connection.is_active(STREAM_ID)
}

/// An exchange whose call has to wait. The call is polled here; dropping it cancels the call.
struct Exchange {
    // Dropped first: the call is cancelled before `waiting` hands it to a task.
    connection: Connection,
    waiting: Option<Waiting>,
    first: Option<Frame>,
}

impl Exchange {
    /// The next message. `None` if there is none until `end`, or at the end of the exchange.
    async fn next(&mut self, end: Instant) -> Option<Frame> {
        let Self { connection, waiting, first } = self;
        if let Some(first) = first.take() {
            return Some(first);
        }
        loop {
            let wait = connection.wait().no_later_than(end.into_std());
            connection.advance();
            drop(connection.run());
            let next = connection.next_frame();
            if next.is_some() || !connection.is_active(STREAM_ID) || end <= Instant::now() {
                return next;
            }
            let done = async {
                match waiting {
                    Some(waiting) => waiting.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = done => {
                    *waiting = None;
                    connection.complete(done);
                }
                () = wait.happened() => {}
            }
        }
    }
}

async fn answer_later(
    in_flight: InFlight,
    mut exchange: Exchange,
    rules: StatusRules,
    expires: Option<u64>,
) -> Reply {
    let silence = in_flight.state().settings.keep_alive;
    match exchange.next(Instant::now() + silence).await {
        Some(frame) if is_last(&frame, &exchange.connection) => {
            reply::json(rules.status(frame.kind), frame.text)
        }
        first => {
            let events = stream(OpenStream::open(in_flight), exchange, first, silence);
            reply::stream(reply::until(events, expires))
        }
    }
}

/// All messages from now on, as events.
fn stream(
    open: OpenStream,
    exchange: Exchange,
    first: Option<Frame>,
    silence: Duration,
) -> EventStream {
    let begun = first.map_or_else(sse::keep_alive, |frame| event(&frame.text));
    let events = futures_util::stream::unfold(
        (Some(begun), exchange, open),
        move |(begun, mut exchange, open)| async move {
            let piece = match begun {
                Some(begun) => begun,
                None => next_piece(&mut exchange, silence).await?,
            };
            Some((piece, (None, exchange, open)))
        },
    );
    Box::pin(events)
}

/// The bytes that are sent at once; at least one message.
const MAX_PIECE: usize = 256 << 10;

/// The next piece; `None` at the end.
async fn next_piece(exchange: &mut Exchange, silence: Duration) -> Option<Bytes> {
    let Some(first) = exchange.next(Instant::now() + silence).await else {
        return exchange.connection.is_active(STREAM_ID).then(sse::keep_alive);
    };
    let mut piece = Vec::new();
    sse::write(&mut piece, None, &first.text);
    while piece.len() < MAX_PIECE {
        let Some(frame) = exchange.connection.next_frame() else { break };
        sse::write(&mut piece, None, &frame.text);
    }
    Some(memory().count(piece.into()))
}

fn event(text: &[u8]) -> Bytes {
    let mut piece = Vec::with_capacity(text.len() + 8);
    sse::write(&mut piece, None, text);
    piece.into()
}
