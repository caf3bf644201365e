//! Legacy clients over HTTP: the session that a handshake opens, POST in it, GET and DELETE.
//!
//! The only file of this transport that tells revisions apart.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use sabir_engine::Conversation;
use sabir_session::{Kind, Lane, RequireReady, Standing};
use sabir_wire::{Asked, Era, Incoming, Malformed, Method, Revision};
use tokio::time::Instant;

use super::accept::{Named, named_revision};
use super::attachment::{self, Attachment, Opening, earlier};
use super::headers::{self, Headers};
use super::one_shot::{self, Manner};
use super::reply::{self, Answer, Refusal, Reply};
use super::shared::{Flight, OpenStream, Shared};
use super::sse;
use super::streams::{EventId, Origin, Posted, Reader, Streams};
use super::table::{SessionId, Stored};

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// The revision whose transport had a stream for everything.
pub(crate) const OLD_SSE: Revision = Revision::V2024_11_05;

/// What a client said in one POST.
#[expect(clippy::large_enum_variant, reason = "the large one is what nearly all are")]
pub(crate) enum Said {
    /// A request.
    Asked(Asked),
    /// Anything else.
    Frame(Result<Incoming, Malformed>),
}

impl Said {
    pub(crate) fn hand_to(self, conversation: &mut Conversation, lane: Lane) {
        match self {
            Self::Asked(asked) => conversation.receive_asked(lane, asked),
            Self::Frame(frame) => conversation.receive_decoded(lane, frame),
        }
    }

    fn is(&self, method: &Method) -> bool {
        matches!(self, Self::Asked(asked) if asked.method == *method)
    }
}

/// One POST of a legacy client, whose header names a revision, or none.
pub(crate) fn post(flight: Flight, headers: &impl Headers, named: Named, said: Said) -> Answer {
    let is_hello = said.is(&Method::Initialize);
    let revision = match spoken(named, is_hello) {
        Ok(revision) => revision,
        Err(refusal) => return refusal.into(),
    };
    if let Said::Frame(Err(malformed)) = said {
        return misread(converse(flight.shared(), revision), malformed).into();
    }
    let Some(id) = headers.first(SESSION) else {
        return without_session(flight, said, revision);
    };
    match find(flight.shared(), id) {
        Ok(stored) => in_session(flight, stored, said),
        Err(refusal) => refusal.into(),
    }
}

/// What a legacy client says that it speaks.
fn spoken(named: Named, is_hello: bool) -> Result<Revision, Refusal> {
    match named {
        Named::Nothing => Ok(Revision::UNNAMED),
        Named::Known(revision) if revision.era() == Era::Legacy => Ok(revision),
        // What will be spoken is only being agreed on.
        Named::Known(_) if is_hello => Ok(Revision::UNNAMED),
        _ => {
            let reason = "the MCP-Protocol-Version is not supported here";
            Err(Refusal::new(StatusCode::BAD_REQUEST, reason))
        }
    }
}

fn find(shared: &Shared, id: &[u8]) -> Result<Arc<Stored>, Refusal> {
    let stored = SessionId::parse(id).and_then(|id| shared.table.find(&id, false));
    stored.ok_or_else(no_such_session)
}

fn no_such_session() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is no such session, or it has ended")
}

fn no_session() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "the header Mcp-Session-Id is missing")
}

fn without_session(flight: Flight, said: Said, revision: Revision) -> Answer {
    if said.is(&Method::Initialize) {
        return open(&flight, said, revision).into();
    }
    let ready = flight.shared().engine.settings().dialect.require_ready;
    let is_allowed = match ready.unwrap_or(RequireReady::All) {
        RequireReady::None => true,
        RequireReady::Tools => !said.is(&Method::CallTool),
        RequireReady::All => false,
    };
    if !is_allowed {
        return no_session().into();
    }
    let mut conversation = converse(flight.shared(), revision);
    said.hand_to(&mut conversation, one_shot::LANE);
    one_shot::answer(flight, conversation, Manner::Legacy)
}

/// What cannot be read is refused, with or without a session.
pub(crate) fn misread(mut conversation: Conversation, malformed: Malformed) -> Reply {
    conversation.receive_decoded(one_shot::LANE, Err(malformed));
    match conversation.next_frame() {
        Some(frame) => reply::json(StatusCode::BAD_REQUEST, frame.text),
        // A notification: there is nobody to answer, but HTTP has a word for it.
        None => Refusal::new(StatusCode::BAD_REQUEST, "that is no JSON-RPC message").into(),
    }
}

fn converse(shared: &Shared, revision: Revision) -> Conversation {
    let standing = Standing::LegacyHttp(revision);
    Conversation::new(&shared.engine, standing, shared.principal.clone())
}

/// Opens a session, if the handshake succeeds.
fn open(flight: &Flight, said: Said, revision: Revision) -> Reply {
    let shared = flight.shared();
    let mut conversation = converse(shared, revision);
    said.hand_to(&mut conversation, Lane(0));
    let Some(frame) = conversation.next_frame() else { return reply::empty(StatusCode::ACCEPTED) };
    let mut reply = reply::json(Manner::Legacy.status(frame.kind), frame.text);
    if frame.kind != Kind::Answer(None) {
        return reply;
    }
    conversation.rest();
    let streams = Streams::new(conversation, shared.bounds.clone());
    let Some(stored) = shared.table.insert(streams, false) else { return too_many_sessions() };
    if let Ok(id) = HeaderValue::from_bytes(stored.id.as_bytes()) {
        reply.headers.push((HeaderName::from_static(SESSION), id));
    }
    reply
}

pub(crate) fn too_many_sessions() -> Reply {
    let reason = "there are as many sessions as this server allows; try again later";
    let later = HeaderValue::from_static("60");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason).with(header::RETRY_AFTER, later).into()
}

fn in_session(flight: Flight, stored: Arc<Stored>, said: Said) -> Answer {
    let posted = match stored.lock().as_mut() {
        Some(streams) => streams.post(|conversation, lane| said.hand_to(conversation, lane)),
        None => return no_such_session().into(),
    };
    match posted {
        None => too_many_streams().into(),
        Some(Posted::Done(None, _)) => reply::empty(StatusCode::ACCEPTED).into(),
        Some(Posted::Done(Some(frame), rest)) if rest.is_empty() && frame.kind != Kind::Note => {
            reply::json(Manner::Legacy.status(frame.kind), frame.text).into()
        }
        Some(Posted::Done(first, rest)) => {
            let mut body = Vec::new();
            for frame in first.into_iter().chain(rest) {
                sse::write(&mut body, None, &frame.text);
            }
            reply::events(body.into()).into()
        }
        Some(Posted::Waits(reader)) => {
            Answer::Later(Box::pin(answer_later(flight, stored, reader)))
        }
    }
}

fn too_many_streams() -> Refusal {
    let reason = "as much is waited for in this session as this server allows";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason)
}

/// Answers as JSON if nothing else comes first, and with a stream if something does.
async fn answer_later(flight: Flight, stored: Arc<Stored>, reader: Reader) -> Reply {
    let began = Instant::now();
    let mut attachment = Attachment::new(flight.shared(), &stored, reader);
    let settings = &flight.shared().settings;
    let can_come_back = can_come_back(&stored);
    let poll_after = settings.poll_after.filter(|_| can_come_back);
    let first = tokio::select! {
        biased;
        first = attachment.next() => Some(first),
        () = tokio::time::sleep(earlier(settings.keep_alive, poll_after)) => None,
    };
    let (events, is_last) = match first {
        // Cancelled: there is no answer, and so nothing to come back for.
        Some(None) => return reply::events(Bytes::new()),
        Some(Some((events, true))) if events.len() == 1 && events[0].frame.kind != Kind::Note => {
            let frame = &events[0].frame;
            return reply::json(Manner::Legacy.status(frame.kind), frame.text.clone());
        }
        Some(Some((events, is_last))) => (events, is_last),
        None => (Vec::new(), false),
    };
    let mut begun = beginning(&attachment, settings.retry, can_come_back);
    attachment.write(&mut begun, &events);
    let poll_at = poll_after.map(|after| began + after);
    let opening = Opening { begun: begun.into(), is_last, poll_at };
    reply::stream(attachment::stream(attachment, OpenStream::open(flight), opening))
}

/// Whether the client knows what to do when its stream ends too early.
fn can_come_back(stored: &Stored) -> bool {
    let revision = stored.lock().as_ref().map(|s| s.conversation().session().revision());
    revision >= Some(Revision::V2025_11_25)
}

/// What a stream begins with: at once, so that the client knows where it can come back to.
fn beginning(attachment: &Attachment, retry: Duration, can_come_back: bool) -> Vec<u8> {
    match can_come_back {
        true => sse::prime(&attachment.origin().to_string(), retry.as_millis()).into(),
        // Older clients take an event without data for a message, and fail to read it.
        false => sse::keep_alive().into(),
    }
}

/// A GET: opens a stream for what belongs to no request, or goes on with one that was lost.
pub(crate) fn get(flight: Flight, head: &Parts) -> Result<Reply, Refusal> {
    spoken(named_revision(&head.headers), false)?;
    let stored = find(flight.shared(), head.headers.first(SESSION).ok_or_else(no_session)?)?;
    let last_seen = head.headers.first(LAST_EVENT).map(last_seen).transpose()?;
    let reader = match stored.lock().as_mut() {
        None => return Err(no_such_session()),
        Some(streams) => match last_seen.and_then(|last_seen| streams.resume(last_seen)) {
            Some(reader) => reader,
            // Of a stream for what belongs to no request the rest may be gone; a new one is as
            // good. That a request's answer is gone must be told.
            None if last_seen.is_some_and(|last_seen| last_seen.origin == Origin::Post) => {
                let reason = "what came after that event is no longer kept";
                return Err(Refusal::new(StatusCode::BAD_REQUEST, reason));
            }
            None => streams.open(Origin::Get).ok_or_else(too_many_streams)?,
        },
    };
    let attachment = Attachment::new(flight.shared(), &stored, reader);
    let settings = &flight.shared().settings;
    let can_come_back = can_come_back(&stored);
    // Whoever has come back knows its place, and the same id must not be given twice.
    let begun = beginning(&attachment, settings.retry, can_come_back && last_seen.is_none());
    let polls = can_come_back && reader.origin == Origin::Post;
    let poll_at = settings.poll_after.filter(|_| polls).map(|after| Instant::now() + after);
    let opening = Opening { begun: begun.into(), is_last: false, poll_at };
    Ok(reply::stream(attachment::stream(attachment, OpenStream::open(flight), opening)))
}

fn last_seen(id: &[u8]) -> Result<EventId, Refusal> {
    let id = headers::text(id).and_then(EventId::parse);
    id.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "that Last-Event-ID is none of ours"))
}

/// A DELETE: ends the session.
pub(crate) fn delete(shared: &Shared, headers: &HeaderMap) -> Result<Reply, Refusal> {
    spoken(named_revision(headers), false)?;
    let stored = find(shared, headers.first(SESSION).ok_or_else(no_session)?)?;
    match shared.table.remove(&stored.id) {
        true => Ok(reply::empty(StatusCode::NO_CONTENT)),
        false => Err(no_such_session()),
    }
}
