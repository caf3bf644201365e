//! A conversation that lives for one exchange: a modern request, or a legacy one without a session.
//!
//! What answers at once is answered as JSON, without a task or a timer. What has something to say
//! before its answer gets a stream of events. Whoever goes away cancels: the conversation is
//! dropped, and its calls with it.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use sabir_engine::{Conversation, Frame};
use sabir_session::{Kind, Lane};
use sabir_wire::Code;

use super::reply::{self, Answer, Pieces, Reply};
use super::shared::{Flight, OpenStream};
use super::sse;

/// The one lane of such a conversation.
pub(crate) const LANE: Lane = Lane(0);

/// How an error of the protocol is told in the language of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A modern request.
    Modern {
        /// It does not say about itself what it must.
        is_undescribed: bool,
    },
    /// A legacy one: only what was no request at all is an error of HTTP too.
    Legacy,
}

impl Manner {
    pub(crate) fn status(self, kind: Kind) -> StatusCode {
        match (kind, self) {
            (Kind::Refusal(_), _)
            | (Kind::Answer(Some(Code::UNSUPPORTED_VERSION)), _)
            | (
                Kind::Answer(Some(Code::HEADER_MISMATCH | Code::MISSING_CAPABILITY)),
                Self::Modern { .. },
            )
            | (Kind::Answer(Some(Code::INVALID_PARAMS)), Self::Modern { is_undescribed: true }) => {
                StatusCode::BAD_REQUEST
            }
            (Kind::Answer(Some(Code::METHOD_NOT_FOUND)), Self::Modern { .. }) => {
                StatusCode::NOT_FOUND
            }
            _ => StatusCode::OK,
        }
    }
}

/// Answers with what the conversation has to say.
pub(crate) fn answer(flight: Flight, mut conversation: Conversation, manner: Manner) -> Answer {
    match conversation.next_frame() {
        Some(frame) if is_last(&frame, &conversation) => {
            reply::json(manner.status(frame.kind), frame.text).into()
        }
        None if !conversation.is_active(LANE) => reply::empty(StatusCode::ACCEPTED).into(),
        first => Answer::Later(Box::pin(answer_later(flight, conversation, first, manner))),
    }
}

fn is_last(frame: &Frame, conversation: &Conversation) -> bool {
    matches!(frame.kind, Kind::Answer(_) | Kind::Refusal(_)) && !conversation.is_active(LANE)
}

async fn answer_later(
    flight: Flight,
    mut conversation: Conversation,
    mut first: Option<Frame>,
    manner: Manner,
) -> Reply {
    let silence = flight.shared().settings.keep_alive;
    let opening = tokio::time::sleep(silence);
    tokio::pin!(opening);
    while first.is_none() && conversation.is_active(LANE) {
        tokio::select! {
            () = conversation.wait() => first = conversation.next_frame(),
            () = &mut opening => break,
        }
    }
    match first {
        Some(frame) if is_last(&frame, &conversation) => {
            reply::json(manner.status(frame.kind), frame.text)
        }
        first => reply::stream(stream(OpenStream::open(flight), conversation, first, silence)),
    }
}

/// All that is to be said from now on, as events.
fn stream(
    open: OpenStream,
    conversation: Conversation,
    first: Option<Frame>,
    silence: Duration,
) -> Pieces {
    let begun = first.map_or_else(sse::keep_alive, |frame| event(&frame.text));
    let events = futures_util::stream::unfold(
        (Some(begun), conversation, open),
        move |(begun, mut conversation, open)| async move {
            let piece = match begun {
                Some(begun) => begun,
                None => next(&mut conversation, silence).await?,
            };
            Some((piece, (None, conversation, open)))
        },
    );
    Box::pin(events)
}

/// The next piece; `None` at the end.
async fn next(conversation: &mut Conversation, silence: Duration) -> Option<Bytes> {
    let mut piece = Vec::new();
    loop {
        while let Some(frame) = conversation.next_frame() {
            sse::write(&mut piece, None, &frame.text);
        }
        if !piece.is_empty() {
            return Some(piece.into());
        }
        if !conversation.is_active(LANE) {
            return None;
        }
        tokio::select! {
            () = conversation.wait() => {}
            () = tokio::time::sleep(silence) => return Some(sse::keep_alive()),
        }
    }
}

fn event(text: &[u8]) -> Bytes {
    let mut piece = Vec::with_capacity(text.len() + 8);
    sse::write(&mut piece, None, text);
    piece.into()
}
