//! A connection that lives for one exchange: a modern request, or a legacy one without a session.
//!
//! A call that completes at once is answered as JSON, without a task or a timer. A call that reports
//! something before its result gets an event stream. A client that goes away cancels: the connection
//! is dropped, and its calls with it.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use sabir_engine::{Connection, Frame};
use sabir_session::{MessageKind, StreamId};
use sabir_wire::Code;

use super::reply::{self, Answer, EventStream, Reply};
use super::sse;
use super::state::{InFlight, OpenStream};

/// The one stream of such a connection.
pub(crate) const STREAM_ID: StreamId = StreamId(0);

/// How an error of the protocol is told in the language of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusRules {
    /// A modern request.
    Modern {
        /// It does not say about itself what it must.
        is_undescribed: bool,
    },
    /// A legacy one: only what was no request at all is an error of HTTP too.
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

/// Answers with what the connection has to say.
pub(crate) fn answer(
    in_flight: InFlight,
    mut connection: Connection,
    rules: StatusRules,
) -> Answer {
    match connection.next_frame() {
        Some(frame) if is_last(&frame, &connection) => {
            reply::json(rules.status(frame.kind), frame.text).into()
        }
        None if !connection.is_active(STREAM_ID) => reply::empty(StatusCode::ACCEPTED).into(),
        first => Answer::Later(Box::pin(answer_later(in_flight, connection, first, rules))),
    }
}

fn is_last(frame: &Frame, connection: &Connection) -> bool {
    matches!(frame.kind, MessageKind::Answer(_) | MessageKind::Refusal(_))
        && !connection.is_active(STREAM_ID)
}

async fn answer_later(
    in_flight: InFlight,
    mut connection: Connection,
    mut first: Option<Frame>,
    rules: StatusRules,
) -> Reply {
    let silence = in_flight.state().settings.keep_alive;
    let opening = tokio::time::sleep(silence);
    tokio::pin!(opening);
    while first.is_none() {
        let wait = connection.wait();
        connection.advance();
        connection.run();
        first = connection.next_frame();
        if first.is_some() || !connection.is_active(STREAM_ID) {
            break;
        }
        tokio::select! {
            () = wait.happened() => {}
            () = &mut opening => break,
        }
    }
    match first {
        Some(frame) if is_last(&frame, &connection) => {
            reply::json(rules.status(frame.kind), frame.text)
        }
        first => reply::stream(stream(OpenStream::open(in_flight), connection, first, silence)),
    }
}

/// All that is to be said from now on, as events.
fn stream(
    open: OpenStream,
    connection: Connection,
    first: Option<Frame>,
    silence: Duration,
) -> EventStream {
    let begun = first.map_or_else(sse::keep_alive, |frame| event(&frame.text));
    let events = futures_util::stream::unfold(
        (Some(begun), connection, open),
        move |(begun, mut connection, open)| async move {
            let piece = match begun {
                Some(begun) => begun,
                None => next(&mut connection, silence).await?,
            };
            Some((piece, (None, connection, open)))
        },
    );
    Box::pin(events)
}

/// The next piece; `None` at the end.
async fn next(connection: &mut Connection, silence: Duration) -> Option<Bytes> {
    let mut piece = Vec::new();
    loop {
        let wait = connection.wait();
        connection.advance();
        connection.run();
        while let Some(frame) = connection.next_frame() {
            sse::write(&mut piece, None, &frame.text);
        }
        if !piece.is_empty() {
            return Some(piece.into());
        }
        if !connection.is_active(STREAM_ID) {
            return None;
        }
        tokio::select! {
            () = wait.happened() => {}
            () = tokio::time::sleep(silence) => return Some(sse::keep_alive()),
        }
    }
}

fn event(text: &[u8]) -> Bytes {
    let mut piece = Vec::with_capacity(text.len() + 8);
    sse::write(&mut piece, None, text);
    piece.into()
}
