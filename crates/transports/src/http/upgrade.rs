//! WebSocket by upgrade: the handshake, after the checks of every request.

use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sabir_wire::Caller;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::create_response;

use super::reply::{self, Refusal, Reply};
use super::state::{InFlight, OpenStream};
use crate::ws::{self, Patience};

/// The subprotocol of MCP messages.
const SUBPROTOCOL: &str = "mcp";

/// Whether a request asks for a WebSocket.
pub(crate) fn is_asked(headers: &HeaderMap) -> bool {
    headers.get_all(header::UPGRADE).iter().any(|value| names(value, "websocket"))
}

/// Opens a WebSocket. It is served by a task of its own once the response is sent.
pub(crate) fn open(in_flight: InFlight, caller: Caller, head: Parts) -> Result<Reply, Refusal> {
    let protocol = subprotocol(&head.headers)?;
    let mut request = Request::from_parts(head, ());
    let response = create_response(&request).map_err(refusal)?;
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().ok_or_else(|| {
        let reason = "this connection cannot become a WebSocket (expected HTTP/1.1)";
        Refusal::new(StatusCode::BAD_REQUEST, reason)
    })?;
    tokio::spawn(serve(in_flight, caller, upgrade));
    let mut reply = reply::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers().iter();
    reply.headers.extend(headers.map(|(name, value)| (name.clone(), value.clone())));
    reply.headers.extend(protocol.map(|value| (header::SEC_WEBSOCKET_PROTOCOL, value)));
    Ok(reply)
}

/// The refusal of a request that does not ask for a WebSocket.
pub(crate) fn required() -> Refusal {
    Refusal::new(StatusCode::UPGRADE_REQUIRED, "only WebSocket clients are served here")
        .with(header::UPGRADE, HeaderValue::from_static("websocket"))
}

async fn serve(in_flight: InFlight, caller: Caller, upgrade: OnUpgrade) {
    // It fails only if the client disconnects before it has read the response.
    let Ok(stream) = upgrade.await else { return };
    let open = OpenStream::open(in_flight);
    let settings = open.settings();
    let patience = Patience { ping: settings.ping, message: settings.limits.body_time };
    let serving = ws::serve(open.engine(), caller, TokioIo::new(stream), patience);
    match open.activity() {
        // The server may end it: the client does not read, or the grace period is over.
        Some(activity) => drop(activity.drive(serving, |_| {}).await),
        None => serving.await,
    }
}

/// The subprotocol to confirm; `None` if the client offers none. A client that offers only others
/// is refused.
fn subprotocol(headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
    let mut offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().peekable();
    if offered.peek().is_none() {
        return Ok(None);
    }
    if offered.any(|value| names(value, SUBPROTOCOL)) {
        return Ok(Some(HeaderValue::from_static(SUBPROTOCOL)));
    }
    let reason = "unsupported WebSocket subprotocol (expected `mcp`)";
    Err(Refusal::new(StatusCode::BAD_REQUEST, reason))
}

/// Whether a comma-separated header has this item.
fn names(value: &HeaderValue, wanted: &str) -> bool {
    let text = value.to_str().unwrap_or_default();
    text.split(',').any(|item| item.trim().eq_ignore_ascii_case(wanted))
}

fn refusal(error: Error) -> Refusal {
    let is_version =
        matches!(error, Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader));
    if is_version {
        let version = HeaderName::from_static("sec-websocket-version");
        return Refusal::new(StatusCode::UPGRADE_REQUIRED, "unsupported WebSocket version")
            .with(version, HeaderValue::from_static("13"));
    }
    Refusal::new(StatusCode::BAD_REQUEST, format!("invalid WebSocket handshake: {error}"))
}
