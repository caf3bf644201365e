//! Legacy clients over HTTP: the session that a handshake opens, POST in it, GET and DELETE.
//!
//! The only file of this transport that distinguishes revisions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use sabir_engine::{Connection, Waiting};
use sabir_session::{MessageKind, RequireReady, SessionKind, StreamId};
use sabir_wire::{Caller, Era, Incoming, Malformed, Message, Method, Revision};
use tokio::time::Instant;

use super::accept::{VersionHeader, named_revision};
use super::attachment::{self, Attachment, Opening, earlier};
use super::headers::{self, Headers};
use super::notices;
use super::one_shot::{self, StatusRules};
use super::replay;
use super::reply::{self, Answer, Refusal, Reply};
use super::shared::{self, no_such_session};
use super::sse;
use super::state::{InFlight, OpenStream, ServerState};
use super::streams::{EventId, Full, Origin, Posted, Reader, Streams};
use super::table::{SessionId, StoredSession};
use crate::received::ReceivedMessage;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// The revision whose transport had a stream for everything.
pub(crate) const OLD_SSE: Revision = Revision::V2024_11_05;

/// The message of one POST.
pub(crate) struct PostedMessage {
    pub(crate) content: ReceivedMessage,
    /// The raw message, if a tap records it.
    pub(crate) arrived: Option<Box<Arrived>>,
}

/// The body of a POST, and its headers.
pub(crate) struct Arrived {
    pub(crate) body: Bytes,
    pub(crate) headers: Vec<(String, String)>,
}

impl Arrived {
    pub(crate) fn record(arrived: Option<&Self>, connection: &mut Connection) {
        if let Some(Self { body, headers }) = arrived {
            connection.record(body, headers);
        }
    }
}

impl PostedMessage {
    pub(crate) fn hand_to(self, connection: &mut Connection, stream: StreamId, caller: Caller) {
        Arrived::record(self.arrived.as_deref(), connection);
        self.content.hand_to(connection, stream, caller);
    }

    /// Whether the message changes the record of its session.
    fn changes_session(&self) -> bool {
        match &self.content {
            ReceivedMessage::Request(request) => {
                matches!(request.method, Method::SetLevel | Method::Subscribe | Method::Unsubscribe)
            }
            ReceivedMessage::Other(Ok(Incoming::One(Message::Notification { method, .. }))) => {
                *method == Method::Initialized
            }
            ReceivedMessage::Other(_) => false,
        }
    }

    fn is(&self, method: &Method) -> bool {
        self.content.is(method)
    }
}

/// Answers a POST of a legacy client. `named` is the revision in its header.
pub(crate) fn post(
    in_flight: InFlight,
    caller: Caller,
    headers: &impl Headers,
    named: VersionHeader,
    message: PostedMessage,
) -> Answer {
    let is_hello = message.is(&Method::Initialize);
    let revision = match spoken(named, is_hello) {
        Ok(revision) => revision,
        Err(refusal) => return refusal.into(),
    };
    if let ReceivedMessage::Other(Err(malformed)) = message.content {
        let mut connection = connect(in_flight.state(), caller, revision);
        Arrived::record(message.arrived.as_deref(), &mut connection);
        return refuse(connection, malformed).into();
    }
    let id = match headers::only(headers, SESSION) {
        Ok(Some(id)) => SessionId::parse(id),
        Ok(None) => return without_session(in_flight, caller, message, revision),
        Err(refusal) => return refusal.into(),
    };
    let Some(id) = id else { return no_such_session().into() };
    if in_flight.state().sharing.is_some() {
        return Answer::Later(Box::pin(async move {
            let answered = in_shared_session(in_flight, caller, &id, message).await;
            answered.unwrap_or_else(Reply::from)
        }));
    }
    match in_flight.state().table.find(&id, &caller, false) {
        Some(stored) => in_session(in_flight, caller, stored, message),
        None => no_such_session().into(),
    }
}

/// Answers a POST in a session that nodes share.
async fn in_shared_session(
    in_flight: InFlight,
    caller: Caller,
    id: &SessionId,
    message: PostedMessage,
) -> Result<Reply, Refusal> {
    let state = in_flight.state().clone();
    let stored = find(&state, &caller, id).await?;
    let Some(sharing) = &state.sharing else { return Err(no_such_session()) };
    if let ReceivedMessage::Other(Ok(incoming)) = &message.content {
        notices::pass_on(sharing, &stored, incoming).await?;
    }
    let changes_session = message.changes_session();
    let reply = in_session(in_flight, caller, stored.clone(), message).reply().await;
    // Saved before the client gets the answer: its next request may reach another node.
    match shared::save(&state, sharing, &stored).await {
        Err(error) if changes_session => Err(shared::away(&error)),
        // Only a change of an earlier request could not be saved.
        _ => Ok(reply),
    }
}

/// The revision in the header of a legacy client.
fn spoken(named: VersionHeader, is_hello: bool) -> Result<Revision, Refusal> {
    match named {
        VersionHeader::Nothing => Ok(Revision::UNNAMED),
        VersionHeader::Known(revision) if revision.era() == Era::Legacy => Ok(revision),
        // The revision is still being negotiated.
        VersionHeader::Known(_) if is_hello => Ok(Revision::UNNAMED),
        _ => {
            let reason = "the MCP-Protocol-Version is not supported here";
            Err(Refusal::new(StatusCode::BAD_REQUEST, reason))
        }
    }
}

/// The caller's session with this id.
async fn find(
    state: &ServerState,
    caller: &Caller,
    id: &SessionId,
) -> Result<Arc<StoredSession>, Refusal> {
    match &state.sharing {
        Some(sharing) => shared::find(state, sharing, id, caller).await,
        None => state.table.find(id, caller, false).ok_or_else(no_such_session),
    }
}

/// The session that a request names.
async fn named_session(
    state: &ServerState,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Arc<StoredSession>, Refusal> {
    let id = headers::only(headers, SESSION)?.ok_or_else(no_session)?;
    find(state, caller, &SessionId::parse(id).ok_or_else(no_such_session)?).await
}

fn no_session() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "the header Mcp-Session-Id is missing")
}

fn without_session(
    in_flight: InFlight,
    caller: Caller,
    message: PostedMessage,
    revision: Revision,
) -> Answer {
    if message.is(&Method::Initialize) {
        let (reply, opened) = open(&in_flight, caller, message, revision);
        let Some(stored) = opened.filter(|_| in_flight.state().sharing.is_some()) else {
            return reply.into();
        };
        return Answer::Later(Box::pin(async move {
            let state = in_flight.state();
            let Some(sharing) = &state.sharing else { return reply };
            // A session that cannot be stored is not opened.
            let created = shared::create(state, sharing, &stored).await;
            created.map_or_else(Reply::from, |()| reply)
        }));
    }
    let ready = in_flight.state().engine.settings().dialect.require_ready;
    let is_allowed = match ready.unwrap_or(RequireReady::All) {
        RequireReady::None => true,
        RequireReady::Tools => !message.is(&Method::CallTool),
        RequireReady::All => false,
    };
    if !is_allowed {
        return no_session().into();
    }
    let mut connection = connect(in_flight.state(), caller.clone(), revision);
    message.hand_to(&mut connection, one_shot::STREAM_ID, caller);
    one_shot::answer(in_flight, connection, StatusRules::Legacy, None)
}

/// Refuses a message that cannot be parsed, with or without a session.
pub(crate) fn refuse(mut connection: Connection, malformed: Malformed) -> Reply {
    let caller = connection.session().owner().clone();
    connection.receive_decoded(one_shot::STREAM_ID, caller, Err(malformed));
    match connection.next_frame() {
        Some(frame) => reply::json(StatusCode::BAD_REQUEST, frame.text),
        // JSON-RPC does not answer a notification, but HTTP does.
        None => Refusal::new(StatusCode::BAD_REQUEST, "invalid JSON-RPC message").into(),
    }
}

fn connect(state: &ServerState, caller: Caller, revision: Revision) -> Connection {
    Connection::new(&state.engine, SessionKind::LegacyHttp(revision), caller)
}

/// Opens a session, if the handshake succeeds.
fn open(
    in_flight: &InFlight,
    caller: Caller,
    message: PostedMessage,
    revision: Revision,
) -> (Reply, Option<Arc<StoredSession>>) {
    let state = in_flight.state();
    let mut connection = connect(state, caller.clone(), revision);
    message.hand_to(&mut connection, StreamId(0), caller);
    drop(connection.run());
    let Some(frame) = connection.next_frame() else {
        return (reply::empty(StatusCode::ACCEPTED), None);
    };
    let mut reply = reply::json(StatusRules::Legacy.status(frame.kind), frame.text);
    if frame.kind != MessageKind::Answer(None) {
        return (reply, None);
    }
    let mut streams = Streams::new(connection, state.bounds.clone());
    if state.sharing.is_some() {
        streams = shared::numbered(streams);
    }
    streams.rest();
    let Some(stored) = state.table.insert(streams, false) else {
        return (too_many_sessions(), None);
    };
    if let Ok(id) = HeaderValue::from_bytes(stored.id.as_bytes()) {
        reply.headers.push((HeaderName::from_static(SESSION), id));
    }
    (reply, Some(stored))
}

pub(crate) fn too_many_sessions() -> Reply {
    let reason = "too many sessions on this server; try again later";
    let later = HeaderValue::from_static("60");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason).with(header::RETRY_AFTER, later).into()
}

fn in_session(
    in_flight: InFlight,
    caller: Caller,
    stored: Arc<StoredSession>,
    message: PostedMessage,
) -> Answer {
    let receive = |connection: &mut Connection, id| message.hand_to(connection, id, caller);
    let (posted, waiting) = match stored.with_waiting(|streams| streams.post(receive)) {
        None => return no_such_session().into(),
        Some((Err(full), _)) => return too_much(in_flight.state(), full).into(),
        Some((Ok(id), waiting)) => (stored.with(|streams| streams.finish_post(id)), waiting),
    };
    match posted {
        None => no_such_session().into(),
        Some(Posted::Done(frames)) => match frames.as_slice() {
            [] => reply::empty(StatusCode::ACCEPTED).into(),
            [frame] if frame.kind != MessageKind::Notification => {
                reply::json(StatusRules::Legacy.status(frame.kind), frame.text.clone()).into()
            }
            frames => {
                let mut body = Vec::new();
                for frame in frames {
                    sse::write(&mut body, None, &frame.text);
                }
                reply::events(body.into()).into()
            }
        },
        Some(Posted::Waits(reader)) => {
            let waiting = waiting.into_iter().next();
            Answer::Later(Box::pin(answer_later(in_flight, stored, reader, waiting)))
        }
    }
}

pub(crate) fn too_much(state: &ServerState, full: Full) -> Refusal {
    let limits = &state.settings.limits;
    let reason = match full {
        Full::Memory(full) => return Refusal::try_later(&full),
        Full::Streams => {
            let limit = limits.streams;
            format!("too many concurrent requests in this session (limit {limit})")
        }
        Full::Unsent => {
            let limit = limits.unsent;
            format!("the client does not read its responses (limit {limit} bytes)")
        }
    };
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason)
}

/// Answers as JSON if the result is the first message, else with a stream.
async fn answer_later(
    in_flight: InFlight,
    stored: Arc<StoredSession>,
    reader: Reader,
    mut waiting: Option<Waiting>,
) -> Reply {
    let began = Instant::now();
    let mut attachment = Attachment::new(in_flight.state(), &stored, reader);
    let settings = &in_flight.state().settings;
    let can_come_back = can_come_back(&stored);
    let poll_after = settings.poll_after.filter(|_| can_come_back);
    // If this is dropped, a task takes over the call: a lost connection does not cancel it.
    let run = async {
        if let Some(waiting) = &mut waiting {
            let done = waiting.await;
            stored.with(|streams| streams.complete(done));
        }
        std::future::pending::<()>().await;
    };
    let first = tokio::select! {
        biased;
        first = attachment.next() => Some(first),
        () = run => None,
        () = tokio::time::sleep(earlier(settings.keep_alive, poll_after)) => None,
    };
    drop(waiting);
    let (events, is_last) = match first {
        // Cancelled: there is no response, and nothing to resume.
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
    attachment.log(&events, is_last).await;
    let mut begun = beginning(&attachment, settings.retry, can_come_back);
    attachment.write(&mut begun, &events);
    let poll_at = poll_after.map(|after| began + after);
    let opening = Opening { begun: begun.into(), is_last, poll_at };
    reply::stream(attachment::stream(attachment, OpenStream::open(in_flight), opening))
}

/// Whether the client's revision can resume a stream that ends too early.
fn can_come_back(stored: &StoredSession) -> bool {
    let revision = stored.lock().as_ref().map(|s| s.connection().session().revision());
    revision >= Some(Revision::V2025_11_25)
}

/// The first event of a stream, sent at once, so that the client can resume it.
fn beginning(attachment: &Attachment, retry: Duration, can_come_back: bool) -> Vec<u8> {
    match can_come_back {
        true => sse::prime(&attachment.origin().to_string(), retry.as_millis()).into(),
        // Older clients take an event without data for a message, and fail to read it.
        false => sse::keep_alive().into(),
    }
}

/// A GET: opens a stream for messages that belong to no request, or resumes a stream.
pub(crate) async fn get(
    in_flight: InFlight,
    caller: &Caller,
    head: &Parts,
) -> Result<Reply, Refusal> {
    spoken(named_revision(&head.headers), false)?;
    let stored = named_session(in_flight.state(), caller, &head.headers).await?;
    let last_seen = head.headers.first(LAST_EVENT).map(last_seen).transpose()?;
    let resumed = last_seen.and_then(|last_seen| stored.lock().as_mut()?.resume(last_seen));
    let reader = match (resumed, last_seen) {
        (Some(reader), _) => reader,
        // The rest of a GET stream may be lost, and a new stream takes its place. A request whose
        // answer is lost must fail.
        (None, Some(last_seen)) if last_seen.origin == Origin::Post => {
            let foreign = replay::resume(in_flight.state(), &stored, last_seen).await?;
            let reason = "the events after that Last-Event-ID are no longer kept";
            let lost = || Refusal::new(StatusCode::BAD_REQUEST, reason);
            let foreign = foreign.ok_or_else(lost)?;
            return Ok(reply::stream(foreign.stream(OpenStream::open(in_flight))));
        }
        (None, _) => {
            let opened = stored.lock().as_mut().map(|streams| streams.open(Origin::Get));
            let opened = opened.ok_or_else(no_such_session)?;
            opened.ok_or_else(|| too_much(in_flight.state(), Full::Streams))?
        }
    };
    let attachment = Attachment::new(in_flight.state(), &stored, reader);
    let settings = &in_flight.state().settings;
    let can_come_back = can_come_back(&stored);
    // A resumed stream has an id already, and ids must be unique.
    let begun = beginning(&attachment, settings.retry, can_come_back && last_seen.is_none());
    let polls = can_come_back && reader.origin == Origin::Post;
    let poll_at = settings.poll_after.filter(|_| polls).map(|after| Instant::now() + after);
    let opening = Opening { begun: begun.into(), is_last: false, poll_at };
    let events = attachment::stream(attachment, OpenStream::open(in_flight), opening);
    Ok(reply::stream(reply::until(events, caller.expires())))
}

fn last_seen(id: &[u8]) -> Result<EventId, Refusal> {
    let id = headers::text(id).and_then(EventId::parse);
    id.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "invalid Last-Event-ID"))
}

/// A DELETE: ends the session.
pub(crate) async fn delete(
    state: &ServerState,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Reply, Refusal> {
    spoken(named_revision(headers), false)?;
    let stored = named_session(state, caller, headers).await?;
    if let Some(sharing) = &state.sharing {
        shared::end(state, sharing, &stored).await?;
        return Ok(reply::empty(StatusCode::NO_CONTENT));
    }
    match state.table.remove(&stored.id) {
        true => Ok(reply::empty(StatusCode::NO_CONTENT)),
        false => Err(no_such_session()),
    }
}
