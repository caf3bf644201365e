//! The transport of the first revision: one stream for everything that we say, and a place to post.
//!
//! Spec 2024-11-05: basic/transports, "HTTP with SSE". The stream is the session: when it is gone,
//! so is the session.

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use http_body::Body;
use sabir_engine::Connection;
use sabir_session::SessionKind;
use sabir_wire::Caller;

use super::attachment::{self, Attachment, Opening};
use super::exchange::{parse, read};
use super::guard;
use super::reply::{self, Refusal, Reply};
use super::session::{OLD_SSE, PostedMessage, refuse, too_many_sessions};
use super::sse;
use super::state::{InFlight, OpenStream};
use super::streams::{Origin, Streams};
use super::table::SessionId;

/// Where the stream is opened.
pub(crate) const STREAM: &str = "/sse";
/// Where messages are posted.
pub(crate) const MESSAGES: &str = "/messages";

/// A GET of the stream: opens a session.
pub(crate) fn open(in_flight: InFlight, caller: Caller, head: &Parts) -> Result<Reply, Refusal> {
    guard::check_accept(&head.headers, &["text/event-stream"])?;
    let state = in_flight.state();
    let mut streams = Streams::new(connect(&in_flight, caller), state.bounds.clone());
    let Some(reader) = streams.open(Origin::Only) else { return Ok(too_many_sessions()) };
    let Some(stored) = state.table.insert(streams, true) else { return Ok(too_many_sessions()) };
    let attachment = Attachment::new(state, &stored, reader);
    let mut begun = Vec::new();
    let id = String::from_utf8_lossy(stored.id.as_bytes());
    sse::write_kind(&mut begun, "endpoint", format!("{MESSAGES}?sessionId={id}").as_bytes());
    let opening = Opening { begun: Bytes::from(begun), is_last: false, poll_at: None };
    Ok(reply::stream(attachment::stream(attachment, OpenStream::open(in_flight), opening)))
}

fn connect(in_flight: &InFlight, caller: Caller) -> Connection {
    Connection::new(&in_flight.state().engine, SessionKind::LegacyHttp(OLD_SSE), caller)
}

/// A POST of a message: what it causes is said on the stream.
pub(crate) async fn post<B>(in_flight: InFlight, caller: Caller, head: &Parts, body: B) -> Reply
where
    B: Body<Data = Bytes>,
{
    if let Err(refusal) = guard::check_content_type(&head.headers) {
        return refusal.into();
    }
    let id = head.uri.query().into_iter().flat_map(|query| query.split('&'));
    let id = id.filter_map(|pair| pair.strip_prefix("sessionId=")).next();
    let Some(id) = id else {
        return Refusal::new(StatusCode::BAD_REQUEST, "the query must name a sessionId").into();
    };
    let state = in_flight.state().clone();
    let stored =
        SessionId::parse(id.as_bytes()).and_then(|id| state.table.find(&id, &caller, true));
    let gone = || Refusal::new(StatusCode::NOT_FOUND, "unknown session, or it has ended");
    let Some(stored) = stored else { return gone().into() };
    let body = match read(&in_flight.connection, head.version, body).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into(),
    };
    let depth = state.engine.settings().engine_limits.depth;
    let message = parse(&body, depth);
    if let PostedMessage::Other(Err(malformed)) = message {
        // The mistake is reported here, not on the stream.
        return refuse(connect(&in_flight, caller), malformed);
    }
    let receive = |connection: &mut Connection, id| message.hand_to(connection, id, caller);
    match stored.with(|streams| streams.post_to_only(receive)) {
        None => gone().into(),
        Some(()) => reply::empty(StatusCode::ACCEPTED),
    }
}
