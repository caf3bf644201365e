//! A call that another node passes on, because only this node can resume it.

use std::pin::Pin;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body::Body;

use super::exchange;
use super::forward::{Envelope, MORE, NODE, PATH, TO, is_for};
use super::reply::{Refusal, Reply};
use super::session::PostedMessage;
use super::state::{InFlight, ServerState};
use crate::received::ReceivedMessage;

/// The node that a request of another node is for; `None` if a client sent the request. The header
/// is sealed with the key of the cluster, and is checked before the rest of the request is read.
pub(crate) fn wanted(state: &ServerState, head: &Parts) -> Option<String> {
    let cluster = &state.sharing.as_ref()?.cluster;
    if head.uri.path() != PATH || head.method != Method::POST || cluster.bus.is_none() {
        return None;
    }
    let sealed = URL_SAFE_NO_PAD.decode(head.headers.get(NODE)?.as_bytes()).ok()?;
    String::from_utf8(cluster.seal.open(TO, &sealed).ok()?).ok()
}

/// Answers a call that another node passes on.
///
/// A replayed request has no effect: a state resumes its call only once. So the seal needs no
/// timestamp, and the nodes no synchronous clocks.
pub(crate) async fn answer<B>(
    in_flight: InFlight,
    wanted: &str,
    head: &Parts,
    body: Pin<&mut B>,
) -> Result<Reply, Refusal>
where
    B: Body<Data = Bytes>,
{
    let bad = || Refusal::new(StatusCode::BAD_REQUEST, "not a call that a node may pass on");
    let state = in_flight.state().clone();
    if state.is_stopping() {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    }
    let Some(sharing) = &state.sharing else { return Err(bad()) };
    let node = &sharing.cluster.node;
    if wanted != &**node {
        return Err(Refusal::new(StatusCode::GONE, "this node does not have the call"));
    }
    let limit = state.engine.settings().engine_limits.message_size + MORE;
    let body = exchange::read_within(&in_flight.connection, head.version, body, limit).await?;
    let (envelope, message) = Envelope::open(&sharing.cluster, &body).ok_or_else(bad)?;
    drop(body);
    let caller = in_flight.connection.caller(envelope.caller, envelope.address);
    let message = exchange::parse_long(&state, &caller, message).await?;
    match &message {
        PostedMessage { content: ReceivedMessage::Request(request), .. }
            if is_for(&sharing.cluster, request) => {}
        _ => return Err(bad()),
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &envelope.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    let mut reply = exchange::answer(in_flight, caller, &headers, message).reply().await;
    reply.headers.extend(HeaderValue::from_str(node).ok().map(|node| (NODE, node)));
    Ok(reply)
}
