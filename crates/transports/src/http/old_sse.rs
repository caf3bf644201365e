//! The transport of the first revision: one stream for everything that we say, and a place to post.
//!
//! Spec 2024-11-05: basic/transports, "HTTP with SSE". The stream is the session: when it is gone,
//! so is the session.

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use hyper::body::Incoming as IncomingBody;
use sabir_engine::Conversation;
use sabir_session::Standing;
use sabir_wire::LastMeta;

use super::attachment::{self, Attachment, Opening};
use super::exchange::{read, said};
use super::guard;
use super::reply::{self, Refusal, Reply};
use super::session::{OLD_SSE, Said, misread, too_many_sessions};
use super::shared::{Flight, OpenStream};
use super::sse;
use super::streams::{Origin, Streams};
use super::table::SessionId;

/// Where the stream is opened.
pub(crate) const STREAM: &str = "/sse";
/// Where messages are posted.
pub(crate) const MESSAGES: &str = "/messages";

/// A GET of the stream: opens a session.
pub(crate) fn open(flight: Flight, head: &Parts) -> Result<Reply, Refusal> {
    guard::check_accept(&head.headers, &["text/event-stream"])?;
    let shared = flight.shared();
    let mut streams = Streams::new(converse(&flight), shared.bounds.clone());
    let Some(reader) = streams.open(Origin::Only) else { return Ok(too_many_sessions()) };
    let Some(stored) = shared.table.insert(streams, true) else { return Ok(too_many_sessions()) };
    let attachment = Attachment::new(shared, &stored, reader);
    let mut begun = Vec::new();
    let id = String::from_utf8_lossy(stored.id.as_bytes());
    sse::write_kind(&mut begun, "endpoint", format!("{MESSAGES}?sessionId={id}").as_bytes());
    let opening = Opening { begun: Bytes::from(begun), is_last: false, poll_at: None };
    Ok(reply::stream(attachment::stream(attachment, OpenStream::open(flight), opening)))
}

fn converse(flight: &Flight) -> Conversation {
    let shared = flight.shared();
    Conversation::new(&shared.engine, Standing::LegacyHttp(OLD_SSE), shared.principal.clone())
}

/// A POST of a message: what it causes is said on the stream.
pub(crate) async fn post(flight: Flight, head: &Parts, body: IncomingBody) -> Reply {
    if let Err(refusal) = guard::check_content_type(&head.headers) {
        return refusal.into();
    }
    let id = head.uri.query().into_iter().flat_map(|query| query.split('&'));
    let id = id.filter_map(|pair| pair.strip_prefix("sessionId=")).next();
    let Some(id) = id else {
        return Refusal::new(StatusCode::BAD_REQUEST, "the query must name a sessionId").into();
    };
    let shared = flight.shared().clone();
    let stored = SessionId::parse(id.as_bytes()).and_then(|id| shared.table.find(&id, true));
    let gone = || Refusal::new(StatusCode::NOT_FOUND, "there is no such session, or it has ended");
    let Some(stored) = stored else { return gone().into() };
    let body = match read(&flight.connection, head.version, body).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into(),
    };
    let depth = shared.engine.settings().engine_limits.depth;
    let said = said(&body, depth, &mut LastMeta::default());
    if let Said::Frame(Err(malformed)) = said {
        // Whoever posts what cannot be read learns it here, not among the answers.
        return misread(converse(&flight), malformed);
    }
    match stored.lock().as_mut() {
        None => gone().into(),
        Some(streams) => {
            streams.post_to_only(|conversation, lane| said.hand_to(conversation, lane));
            reply::empty(StatusCode::ACCEPTED)
        }
    }
}
