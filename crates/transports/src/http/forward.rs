//! Passes a call on to the only node that can resume it: the call is alive there, at an upstream,
//! while its client is asked.
//!
//! The state that the client keeps for such a call contains the node and its address, sealed, so
//! that no lookup is needed. The request is sent to that node over HTTP, sealed with the key of the
//! cluster, and its answer is relayed unchanged. If the node has stopped, the call is lost.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use sabir_budget::memory;
use sabir_cluster::Cluster;
use sabir_engine::split_route;
use sabir_outbound::{Body, Error, Limits};
use sabir_wire::{Caller, Id, ParsedRequest, Problem, write_error, write_request};
use serde::{Deserialize, Serialize};

use super::headers::Headers;
use super::reply::{self, Content, EventStream, Reply};
use super::sharing::Sharing;
use super::sse;
use super::state::{InFlight, OpenStream, ServerState};

/// Where nodes pass calls on to each other.
pub(crate) const PATH: &str = "/cluster/call";

/// Names a node: in a request the destination, sealed; in an answer the sender.
pub(crate) const NODE: HeaderName = HeaderName::from_static("sabir-node");

/// The names under which the header of a request, its body, and the route of a state are sealed.
pub(crate) const TO: &str = "call to";
const CALL: &str = "call";
const ROUTE: &str = "route";

/// How much longer than its message a request may be: for its caller and its headers.
pub(crate) const MORE: usize = 128 << 10;

/// Added to two keep-alive periods: a node that sends nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The caller and the headers of a call. The message follows, after a line break.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) caller: Caller,
    pub(crate) address: Option<std::net::IpAddr>,
    pub(crate) headers: Vec<(String, String)>,
}

impl Envelope {
    fn seal(&self, cluster: &Cluster, message: &[u8]) -> Option<Bytes> {
        let mut text = serde_json::to_vec(self).ok()?;
        text.push(b'\n');
        text.extend_from_slice(message);
        Some(cluster.seal.seal(CALL, &text).into())
    }

    /// Opens an envelope and its message; `None` if no node of the cluster has sealed it.
    pub(crate) fn open(cluster: &Cluster, sealed: &[u8]) -> Option<(Self, Bytes)> {
        let text = Bytes::from(cluster.seal.open(CALL, sealed).ok()?);
        // The JSON of the envelope contains no line break.
        let end = memchr::memchr(b'\n', &text)?;
        Some((serde_json::from_slice(&text[..end]).ok()?, text.slice(end + 1..)))
    }
}

/// A node, and where it is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    node: String,
    address: String,
}

/// The sealed address of this node; `None` without a bus, or before the node listens.
pub(crate) fn route(cluster: &Cluster) -> Option<String> {
    let address = cluster.address.get().filter(|_| cluster.bus.is_some())?;
    let place = format!("{} {address}", cluster.node);
    Some(URL_SAFE_NO_PAD.encode(cluster.seal.seal(ROUTE, place.as_bytes())))
}

/// The node that a request is for; `None` if any node can answer, or the state cannot be read.
pub(crate) fn place(cluster: &Cluster, request: &ParsedRequest) -> Option<Place> {
    let state = request.request.as_ref().ok()?.resume()?.state.as_deref()?;
    let sealed = URL_SAFE_NO_PAD.decode(split_route(state).0?).ok()?;
    let place = String::from_utf8(cluster.seal.open(ROUTE, &sealed).ok()?).ok()?;
    let (node, address) = place.split_once(' ')?;
    Some(Place { node: node.to_owned(), address: address.to_owned() })
}

/// The other node that a request is for.
pub(crate) fn elsewhere(state: &ServerState, request: &ParsedRequest) -> Option<Place> {
    let cluster = &state.sharing.as_ref()?.cluster;
    place(cluster, request).filter(|place| *place.node != *cluster.node)
}

/// Whether a request is for this node only.
pub(crate) fn is_for(cluster: &Cluster, request: &ParsedRequest) -> bool {
    place(cluster, request).is_some_and(|place| *place.node == *cluster.node)
}

/// The headers that belong to the call.
pub(crate) fn named(headers: &impl Headers) -> Vec<(String, String)> {
    let named = headers.each().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let named = named.filter(|(name, _)| name.starts_with("mcp-") || name == "traceparent");
    named
        .filter_map(|(name, value)| Some((name, String::from_utf8(value.to_vec()).ok()?)))
        .collect()
}

/// Passes a request on to the node that has the call, and relays the answer.
pub(crate) async fn pass_on(
    in_flight: InFlight,
    caller: Caller,
    headers: Vec<(String, String)>,
    place: Place,
    request: ParsedRequest,
) -> Reply {
    let state = in_flight.state().clone();
    let id = request.id.clone();
    let Some(sharing) = &state.sharing else { return gone(&id) };
    let address = caller.address();
    let envelope = Envelope { caller, address, headers };
    let message = write_request(&request.id, request.method.name(), request.params.as_ref());
    drop(request);
    let silence = 2 * state.settings.keep_alive + PATIENCE;
    match send(sharing, &place, &envelope, &message, silence).await {
        Some(Ok(response)) => relay(in_flight, id, &place, response).await,
        Some(Err(error)) => {
            tracing::warn!("a call cannot be passed on to {}: {error}", place.address);
            if error.is_unsent() { gone(&id) } else { broken(&id) }
        }
        None => broken(&id),
    }
}

/// Sends a call to its node. `None` if it cannot be encoded.
async fn send(
    sharing: &Sharing,
    place: &Place,
    envelope: &Envelope,
    message: &[u8],
    silence: Duration,
) -> Option<Result<Response<Body>, Error>> {
    let cluster = &sharing.cluster;
    let to = URL_SAFE_NO_PAD.encode(cluster.seal.seal(TO, place.node.as_bytes()));
    let body = envelope.seal(cluster, message)?;
    let request = Request::post(format!("{}{PATH}", place.address))
        .header(NODE, to)
        .header(CONTENT_TYPE, "application/octet-stream");
    let client = match sharing.client() {
        Ok(client) => client,
        Err(error) => return Some(Err(error)),
    };
    // A node that works on a call sends a stream with keep-alive comments.
    let limits = Limits { head: silence, idle: Some(silence), total: None, body: u64::MAX };
    Some(client.send(request.body(body).ok()?, &limits).await)
}

/// Relays the answer of another node.
async fn relay(in_flight: InFlight, id: Id, place: &Place, response: Response<Body>) -> Reply {
    let (head, body) = response.into_parts();
    // Another node, or another service, may have this address by now.
    let node = head.headers.get(NODE).map(|node| node.as_bytes());
    if node != Some(place.node.as_bytes()) {
        return gone(&id);
    }
    let is_stream = first(&head.headers, &CONTENT_TYPE) == Some("text/event-stream");
    let content = if is_stream {
        Content::Stream(events(OpenStream::open(in_flight), id, body))
    } else {
        match body.read().await {
            Ok(text) if text.is_empty() => Content::Empty,
            Ok(text) => Content::Json(memory().count(text)),
            Err(_) => return broken(&id),
        }
    };
    let passed = [WWW_AUTHENTICATE, RETRY_AFTER].into_iter();
    let passed =
        passed.filter_map(|name| head.headers.get(&name).map(|v| (name.clone(), v.clone())));
    Reply { status: head.status, headers: passed.collect(), body: content }
}

fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Relays the events of another node. If its stream breaks, the last event is an error.
fn events(open: OpenStream, id: Id, body: Body) -> EventStream {
    let all = futures_util::stream::unfold(Some((open, id, body)), |rest| async move {
        let (open, id, mut body) = rest?;
        match body.chunk().await {
            Ok(Some(piece)) => Some((piece, Some((open, id, body)))),
            Ok(None) => None,
            Err(_) => {
                let mut last = Vec::new();
                // The relayed bytes may end within an event.
                last.extend_from_slice(b"\n\n");
                sse::write(&mut last, None, &write_error(Some(&id), &broken_off().to_error()));
                Some((last.into(), None))
            }
        }
    });
    Box::pin(all)
}

/// The answer if the node has stopped, and the call is lost.
fn gone(id: &Id) -> Reply {
    let reason = "invalid `requestState`: the node that had the call is gone; make the call again, \
                  without it";
    failed(id, &Problem::Params(reason.into()))
}

/// The answer if the outcome of the call is not known.
fn broken(id: &Id) -> Reply {
    failed(id, &broken_off())
}

fn broken_off() -> Problem {
    Problem::Internal("the connection to the node that has the call failed".into())
}

fn failed(id: &Id, problem: &Problem) -> Reply {
    reply::json(StatusCode::OK, write_error(Some(id), &problem.to_error()))
}
