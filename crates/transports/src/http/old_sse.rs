//! The transport of the first revision: one stream for all messages of the server, and a path to
//! post to.
//!
//! Spec 2024-11-05: basic/transports, "HTTP with SSE". The session ends with its stream.

use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use http_body::Body;
use sabir_engine::Connection;
use sabir_session::SessionKind;
use sabir_wire::Caller;

use super::attachment::{self, Attachment, Opening};
use super::exchange::{parse_long, read};
use super::guard;
use super::notices;
use super::reply::{self, Refusal, Reply};
use super::session::{OLD_SSE, refuse, too_many_sessions, too_much};
use super::shared::{away, no_such_session};
use super::sse;
use super::state::{InFlight, OpenStream};
use super::streams::{Origin, Streams};
use super::table::SessionId;
use crate::received::ReceivedMessage;

/// Where the stream is opened.
pub(crate) const STREAM: &str = "/sse";
/// Where messages are posted.
pub(crate) const MESSAGES: &str = "/messages";

/// A GET of the stream: opens a session.
pub(crate) async fn open(
    in_flight: InFlight,
    caller: Caller,
    head: &Parts,
) -> Result<Reply, Refusal> {
    guard::check_accept(&head.headers, &["text/event-stream"])?;
    let (state, expires) = (in_flight.state(), caller.expires());
    let mut streams = Streams::new(connect(&in_flight, caller), state.bounds.clone());
    let Some(reader) = streams.open(Origin::Only) else { return Ok(too_many_sessions()) };
    let Some(stored) = state.table.insert(streams, true) else { return Ok(too_many_sessions()) };
    // Dropping it ends the session.
    let attachment = Attachment::new(state, &stored, reader);
    if let Some(sharing) = &state.sharing {
        // Otherwise other nodes would refuse its messages.
        notices::claim_old(sharing, &stored).await.map_err(|error| away(&error))?;
    }
    let mut begun = Vec::new();
    let id = String::from_utf8_lossy(stored.id.as_bytes());
    sse::write_kind(&mut begun, "endpoint", format!("{MESSAGES}?sessionId={id}").as_bytes());
    let opening = Opening { begun: Bytes::from(begun), is_last: false, poll_at: None };
    let events = attachment::stream(attachment, OpenStream::open(in_flight), opening);
    Ok(reply::stream(reply::until(events, expires)))
}

fn connect(in_flight: &InFlight, caller: Caller) -> Connection {
    Connection::new(&in_flight.state().engine, SessionKind::LegacyHttp(OLD_SSE), caller)
}

/// A POST of a message: its responses are sent on the stream.
pub(crate) async fn post<B>(
    in_flight: InFlight,
    caller: Caller,
    head: &Parts,
    body: Pin<&mut B>,
) -> Result<Reply, Refusal>
where
    B: Body<Data = Bytes>,
{
    guard::check_content_type(&head.headers)?;
    let query = head.uri.query().into_iter().flat_map(|query| query.split('&'));
    let id = query.filter_map(|pair| pair.strip_prefix("sessionId=")).next();
    let no_id = || Refusal::new(StatusCode::BAD_REQUEST, "the query must name a sessionId");
    let id = id.ok_or_else(no_id)?;
    let state = in_flight.state().clone();
    let id = SessionId::parse(id.as_bytes()).ok_or_else(no_such_session)?;
    let stored = match (state.table.find(&id, &caller, true), &state.sharing) {
        (Some(stored), _) => stored,
        (None, None) => return Err(no_such_session()),
        (None, Some(sharing)) => {
            let body = read(&in_flight.connection, head.version, body).await?;
            let text = String::from_utf8_lossy(&body).into_owned();
            notices::pass_on_old(sharing, &id, caller, text).await?;
            return Ok(reply::empty(StatusCode::ACCEPTED));
        }
    };
    let body = read(&in_flight.connection, head.version, body).await?;
    let message = parse_long(&state, &caller, body).await?;
    if let ReceivedMessage::Other(Err(malformed)) = message.content {
        // The mistake is reported here, not on the stream.
        return Ok(refuse(connect(&in_flight, caller), malformed));
    }
    let receive = |connection: &mut Connection, id| message.hand_to(connection, id, caller);
    let posted = stored.with(|streams| streams.post_to_only(receive));
    match posted.ok_or_else(no_such_session)? {
        Ok(()) => Ok(reply::empty(StatusCode::ACCEPTED)),
        Err(full) => Err(too_much(&state, full)),
    }
}
