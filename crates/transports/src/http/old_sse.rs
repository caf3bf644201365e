//! The transport of the first revision: one stream for everything that we say, and a place to post.
//!
//! Spec 2024-11-05: basic/transports, "HTTP with SSE". The stream is the session: when it is gone,
//! so is the session.

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use hyper::body::Incoming as IncomingBody;
use sabir_engine::Connection;
use sabir_session::SessionKind;

use super::attachment::{self, Attachment, Opening};
use super::exchange::{read, said};
use super::guard;
use super::reply::{self, Refusal, Reply};
use super::session::{OLD_SSE, PostedMessage, misread, too_many_sessions};
use super::sse;
use super::state::{InFlight, OpenStream};
use super::streams::{Origin, Streams};
use super::table::SessionId;

/// Where the stream is opened.
pub(crate) const STREAM: &str = "/sse";
/// Where messages are posted.
pub(crate) const MESSAGES: &str = "/messages";

/// A GET of the stream: opens a session.
pub(crate) fn open(in_flight: InFlight, head: &Parts) -> Result<Reply, Refusal> {
    guard::check_accept(&head.headers, &["text/event-stream"])?;
    let shared = in_flight.shared();
    let mut streams = Streams::new(converse(&in_flight), shared.bounds.clone());
    let Some(reader) = streams.open(Origin::Only) else { return Ok(too_many_sessions()) };
    let Some(stored) = shared.table.insert(streams, true) else { return Ok(too_many_sessions()) };
    let attachment = Attachment::new(shared, &stored, reader);
    let mut begun = Vec::new();
    let id = String::from_utf8_lossy(stored.id.as_bytes());
    sse::write_kind(&mut begun, "endpoint", format!("{MESSAGES}?sessionId={id}").as_bytes());
    let opening = Opening { begun: Bytes::from(begun), is_last: false, poll_at: None };
    Ok(reply::stream(attachment::stream(attachment, OpenStream::open(in_flight), opening)))
}

fn converse(in_flight: &InFlight) -> Connection {
    let shared = in_flight.shared();
    Connection::new(&shared.engine, SessionKind::LegacyHttp(OLD_SSE), shared.caller.clone())
}

/// A POST of a message: what it causes is said on the stream.
pub(crate) async fn post(in_flight: InFlight, head: &Parts, body: IncomingBody) -> Reply {
    if let Err(refusal) = guard::check_content_type(&head.headers) {
        return refusal.into();
    }
    let id = head.uri.query().into_iter().flat_map(|query| query.split('&'));
    let id = id.filter_map(|pair| pair.strip_prefix("sessionId=")).next();
    let Some(id) = id else {
        return Refusal::new(StatusCode::BAD_REQUEST, "the query must name a sessionId").into();
    };
    let shared = in_flight.shared().clone();
    let stored = SessionId::parse(id.as_bytes()).and_then(|id| shared.table.find(&id, true));
    let gone = || Refusal::new(StatusCode::NOT_FOUND, "there is no such session, or it has ended");
    let Some(stored) = stored else { return gone().into() };
    let body = match read(&in_flight.connection, head.version, body).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into(),
    };
    let depth = shared.engine.settings().engine_limits.depth;
    let said = said(&body, depth);
    if let PostedMessage::Other(Err(malformed)) = said {
        // Whoever posts what cannot be read learns it here, not among the answers.
        return misread(converse(&in_flight), malformed);
    }
    match stored.lock().as_mut() {
        None => gone().into(),
        Some(streams) => {
            streams.post_to_only(|connection, stream| said.hand_to(connection, stream));
            reply::empty(StatusCode::ACCEPTED)
        }
    }
}
