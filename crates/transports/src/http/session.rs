//! Legacy clients over HTTP: the session that a handshake opens, POST in it, GET and DELETE.
//!
//! The only file of this transport that tells revisions apart.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use sabir_engine::Connection;
use sabir_session::{MessageKind, RequireReady, SessionKind, StreamId};
use sabir_wire::{Era, Incoming, Malformed, Method, ParsedRequest, Revision};
use tokio::time::Instant;

use super::accept::{VersionHeader, named_revision};
use super::attachment::{self, Attachment, Opening, earlier};
use super::headers::{self, Headers};
use super::one_shot::{self, StatusRules};
use super::reply::{self, Answer, Refusal, Reply};
use super::sse;
use super::state::{InFlight, OpenStream, ServerState};
use super::streams::{EventId, Origin, Posted, Reader, Streams};
use super::table::{SessionId, StoredSession};

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// The revision whose transport had a stream for everything.
pub(crate) const OLD_SSE: Revision = Revision::V2024_11_05;

/// What a client said in one POST.
#[expect(clippy::large_enum_variant, reason = "the large one is what nearly all are")]
pub(crate) enum PostedMessage {
    /// A request.
    Request(ParsedRequest),
    /// Anything else.
    Other(Result<Incoming, Malformed>),
}

impl PostedMessage {
    pub(crate) fn hand_to(self, connection: &mut Connection, stream: StreamId) {
        match self {
            Self::Request(asked) => connection.receive_request(stream, asked),
            Self::Other(frame) => connection.receive_decoded(stream, frame),
        }
    }

    fn is(&self, method: &Method) -> bool {
        matches!(self, Self::Request(asked) if asked.method == *method)
    }
}

/// One POST of a legacy client, whose header names a revision, or none.
pub(crate) fn post(
    in_flight: InFlight,
    headers: &impl Headers,
    named: VersionHeader,
    said: PostedMessage,
) -> Answer {
    let is_hello = said.is(&Method::Initialize);
    let revision = match spoken(named, is_hello) {
        Ok(revision) => revision,
        Err(refusal) => return refusal.into(),
    };
    if let PostedMessage::Other(Err(malformed)) = said {
        return misread(converse(in_flight.shared(), revision), malformed).into();
    }
    let Some(id) = headers.first(SESSION) else {
        return without_session(in_flight, said, revision);
    };
    match find(in_flight.shared(), id) {
        Ok(stored) => in_session(in_flight, stored, said),
        Err(refusal) => refusal.into(),
    }
}

/// What a legacy client says that it speaks.
fn spoken(named: VersionHeader, is_hello: bool) -> Result<Revision, Refusal> {
    match named {
        VersionHeader::Nothing => Ok(Revision::UNNAMED),
        VersionHeader::Known(revision) if revision.era() == Era::Legacy => Ok(revision),
        // What will be spoken is only being agreed on.
        VersionHeader::Known(_) if is_hello => Ok(Revision::UNNAMED),
        _ => {
            let reason = "the MCP-Protocol-Version is not supported here";
            Err(Refusal::new(StatusCode::BAD_REQUEST, reason))
        }
    }
}

fn find(shared: &ServerState, id: &[u8]) -> Result<Arc<StoredSession>, Refusal> {
    let stored = SessionId::parse(id).and_then(|id| shared.table.find(&id, false));
    stored.ok_or_else(no_such_session)
}

fn no_such_session() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is no such session, or it has ended")
}

fn no_session() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "the header Mcp-Session-Id is missing")
}

fn without_session(in_flight: InFlight, said: PostedMessage, revision: Revision) -> Answer {
    if said.is(&Method::Initialize) {
        return open(&in_flight, said, revision).into();
    }
    let ready = in_flight.shared().engine.settings().dialect.require_ready;
    let is_allowed = match ready.unwrap_or(RequireReady::All) {
        RequireReady::None => true,
        RequireReady::Tools => !said.is(&Method::CallTool),
        RequireReady::All => false,
    };
    if !is_allowed {
        return no_session().into();
    }
    let mut connection = converse(in_flight.shared(), revision);
    said.hand_to(&mut connection, one_shot::STREAM_ID);
    one_shot::answer(in_flight, connection, StatusRules::Legacy)
}

/// What cannot be read is refused, with or without a session.
pub(crate) fn misread(mut connection: Connection, malformed: Malformed) -> Reply {
    connection.receive_decoded(one_shot::STREAM_ID, Err(malformed));
    match connection.next_frame() {
        Some(frame) => reply::json(StatusCode::BAD_REQUEST, frame.text),
        // A notification: there is nobody to answer, but HTTP has a word for it.
        None => Refusal::new(StatusCode::BAD_REQUEST, "that is no JSON-RPC message").into(),
    }
}

fn converse(shared: &ServerState, revision: Revision) -> Connection {
    let standing = SessionKind::LegacyHttp(revision);
    Connection::new(&shared.engine, standing, shared.caller.clone())
}

/// Opens a session, if the handshake succeeds.
fn open(in_flight: &InFlight, said: PostedMessage, revision: Revision) -> Reply {
    let shared = in_flight.shared();
    let mut connection = converse(shared, revision);
    said.hand_to(&mut connection, StreamId(0));
    let Some(frame) = connection.next_frame() else { return reply::empty(StatusCode::ACCEPTED) };
    let mut reply = reply::json(StatusRules::Legacy.status(frame.kind), frame.text);
    if frame.kind != MessageKind::Answer(None) {
        return reply;
    }
    connection.rest();
    let streams = Streams::new(connection, shared.bounds.clone());
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

fn in_session(in_flight: InFlight, stored: Arc<StoredSession>, said: PostedMessage) -> Answer {
    let posted = match stored.lock().as_mut() {
        Some(streams) => streams.post(|connection, stream| said.hand_to(connection, stream)),
        None => return no_such_session().into(),
    };
    match posted {
        None => too_many_streams().into(),
        Some(Posted::Done(None, _)) => reply::empty(StatusCode::ACCEPTED).into(),
        Some(Posted::Done(Some(frame), rest))
            if rest.is_empty() && frame.kind != MessageKind::Notification =>
        {
            reply::json(StatusRules::Legacy.status(frame.kind), frame.text).into()
        }
        Some(Posted::Done(first, rest)) => {
            let mut body = Vec::new();
            for frame in first.into_iter().chain(rest) {
                sse::write(&mut body, None, &frame.text);
            }
            reply::events(body.into()).into()
        }
        Some(Posted::Waits(reader)) => {
            Answer::Later(Box::pin(answer_later(in_flight, stored, reader)))
        }
    }
}

fn too_many_streams() -> Refusal {
    let reason = "as much is waited for in this session as this server allows";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason)
}

/// Answers as JSON if nothing else comes first, and with a stream if something does.
async fn answer_later(in_flight: InFlight, stored: Arc<StoredSession>, reader: Reader) -> Reply {
    let began = Instant::now();
    let mut attachment = Attachment::new(in_flight.shared(), &stored, reader);
    let settings = &in_flight.shared().settings;
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
        Some(Some((events, true)))
            if events.len() == 1 && events[0].frame.kind != MessageKind::Notification =>
        {
            let frame = &events[0].frame;
            return reply::json(StatusRules::Legacy.status(frame.kind), frame.text.clone());
        }
        Some(Some((events, is_last))) => (events, is_last),
        None => (Vec::new(), false),
    };
    let mut begun = beginning(&attachment, settings.retry, can_come_back);
    attachment.write(&mut begun, &events);
    let poll_at = poll_after.map(|after| began + after);
    let opening = Opening { begun: begun.into(), is_last, poll_at };
    reply::stream(attachment::stream(attachment, OpenStream::open(in_flight), opening))
}

/// Whether the client knows what to do when its stream ends too early.
fn can_come_back(stored: &StoredSession) -> bool {
    let revision = stored.lock().as_ref().map(|s| s.connection().session().revision());
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
pub(crate) fn get(in_flight: InFlight, head: &Parts) -> Result<Reply, Refusal> {
    spoken(named_revision(&head.headers), false)?;
    let stored = find(in_flight.shared(), head.headers.first(SESSION).ok_or_else(no_session)?)?;
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
    let attachment = Attachment::new(in_flight.shared(), &stored, reader);
    let settings = &in_flight.shared().settings;
    let can_come_back = can_come_back(&stored);
    // Whoever has come back knows its place, and the same id must not be given twice.
    let begun = beginning(&attachment, settings.retry, can_come_back && last_seen.is_none());
    let polls = can_come_back && reader.origin == Origin::Post;
    let poll_at = settings.poll_after.filter(|_| polls).map(|after| Instant::now() + after);
    let opening = Opening { begun: begun.into(), is_last: false, poll_at };
    Ok(reply::stream(attachment::stream(attachment, OpenStream::open(in_flight), opening)))
}

fn last_seen(id: &[u8]) -> Result<EventId, Refusal> {
    let id = headers::text(id).and_then(EventId::parse);
    id.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "that Last-Event-ID is none of ours"))
}

/// A DELETE: ends the session.
pub(crate) fn delete(shared: &ServerState, headers: &HeaderMap) -> Result<Reply, Refusal> {
    spoken(named_revision(headers), false)?;
    let stored = find(shared, headers.first(SESSION).ok_or_else(no_session)?)?;
    match shared.table.remove(&stored.id) {
        true => Ok(reply::empty(StatusCode::NO_CONTENT)),
        false => Err(no_such_session()),
    }
}
