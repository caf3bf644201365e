//! WebSocket, one message a text frame.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{self, HeaderValue};
use http::response::Parts;
use http::{Request, StatusCode};
use sabir_outbound::Upgraded;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::auth::SendError;
use crate::error::OpenError;
use crate::http::{HttpTarget, HttpTransport, web_url};
use crate::io::{CallKey, LinkKind, Order};
use crate::link::{Inbox, Link, Opening, Transport};
use crate::pipe::call_of;

/// The subprotocol of MCP messages.
const SUBPROTOCOL: &str = "mcp";

/// A WebSocket to the server at a `ws://` or `wss://` URL. The rules for addresses and certificates
/// are those of HTTP.
#[derive(Debug)]
pub struct WsTransport(Arc<HttpTarget>);

impl WsTransport {
    /// A transport to this server.
    pub fn new(target: HttpTarget) -> Self {
        Self(Arc::new(target))
    }
}

impl HttpTarget {
    /// The transport that the URL names: WebSocket for `ws://` and `wss://`, else HTTP.
    pub fn transport(self) -> Arc<dyn Transport> {
        match web_url(&self.url) {
            Cow::Owned(_) => Arc::new(WsTransport::new(self)),
            Cow::Borrowed(_) => Arc::new(HttpTransport::new(self)),
        }
    }
}

impl Transport for WsTransport {
    fn kind(&self) -> LinkKind {
        LinkKind::Pipe
    }

    fn open(&self, link: Link) -> Opening<'_> {
        Box::pin(async move {
            let limits = &link.inbox.limits;
            let stream = shake_hands(&self.0, limits.open_time).await?;
            let limit = Some(limits.message_size);
            let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
            let socket = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
            tokio::spawn(async move {
                let inbox = link.inbox.clone();
                let (reason, unsent) = carry(socket, link).await;
                inbox.end(OpenError::Ended(reason), &unsent);
            });
            Ok(())
        })
    }
}

/// Performs the WebSocket handshake.
async fn shake_hands(target: &HttpTarget, time: Duration) -> Result<Upgraded, OpenError> {
    let start = |error: &dyn std::fmt::Display| OpenError::Start(error.to_string());
    let key = generate_key();
    let request = Request::get(&*web_url(&target.url)).body(Bytes::new());
    let mut request = request.map_err(|e| OpenError::Impossible(e.to_string()))?;
    let headers = request.headers_mut();
    headers.extend(target.headers.clone());
    for (name, value) in [
        (header::CONNECTION, "Upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_VERSION, "13"),
        (header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL),
        (header::ACCEPT_ENCODING, "identity"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::try_from(&key).map_err(|e| start(&e))?);
    let (response, stream) = upgrade(target, request, time).await?;
    let accept = response.headers.get(header::SEC_WEBSOCKET_ACCEPT);
    let status = response.status;
    match (status, stream) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            let challenge = response.headers.get(header::WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok()).map(str::to_owned);
            Err(OpenError::Unauthorized { status: status.as_u16(), challenge })
        }
        (_, Some(stream))
            if accept.is_some_and(|accept| *accept == *derive_accept_key(key.as_bytes())) =>
        {
            Ok(stream)
        }
        (_, Some(_)) => {
            let reason = "the server's `Sec-WebSocket-Accept` does not fit our key";
            Err(OpenError::Invalid(reason.to_owned()))
        }
        (_, None) => Err(OpenError::Status { status: status.as_u16(), body: String::new() }),
    }
}

/// Sends the request with the access token, if there is one.
async fn upgrade(
    target: &HttpTarget,
    request: Request<Bytes>,
    time: Duration,
) -> Result<(Parts, Option<Upgraded>), OpenError> {
    let send = |attempt| target.http.upgrade(attempt, time);
    let sent = match &target.auth {
        Some(auth) => auth.attempt(&request, send, |(head, _)| (head.status, &head.headers)).await,
        None => send(request).await.map_err(SendError::Http),
    };
    sent.map_err(|error| match error {
        SendError::Auth(error) => OpenError::Auth(error),
        SendError::Http(error) if error.is_refused() => OpenError::Impossible(error.to_string()),
        SendError::Http(error) => OpenError::Start(error.to_string()),
    })
}

/// Carries messages until either side ends. Returns the reason, and the calls that were not sent.
async fn carry(socket: WebSocketStream<Upgraded>, link: Link) -> (String, Vec<CallKey>) {
    let Link { mut orders, inbox } = link;
    let (mut sink, stream) = socket.split();
    let reason = tokio::select! {
        reason = read(stream, &inbox) => reason,
        written = write(&mut sink, &mut orders, &inbox) => match written {
            Ok(()) => {
                // A server that does not read the close frame does not get it.
                let _ = sink.close().await;
                "closed".to_owned()
            }
            Err(error) => format!("writing failed: {error}"),
        },
    };
    orders.close();
    let mut unsent = Vec::new();
    while let Ok(order) = orders.try_recv() {
        unsent.extend(call_of(&order));
    }
    (reason, unsent)
}

/// Reads messages until the link ends, and returns the reason. Pings are answered meanwhile.
async fn read(mut stream: SplitStream<WebSocketStream<Upgraded>>, inbox: &Inbox) -> String {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => inbox.receive(None, text.into()).await,
            Some(Ok(Message::Binary(bytes))) => inbox.receive(None, bytes).await,
            Some(Ok(Message::Close(Some(frame)))) if !frame.reason.is_empty() => {
                return format!("the server closed the connection: {}", frame.reason);
            }
            Some(Ok(_)) => {}
            Some(Err(Error::Capacity(_))) => {
                inbox.receive_too_long(None);
                return "the server sent a message that is too long".to_owned();
            }
            Some(Err(error)) => return format!("reading failed: {error}"),
            None => return "the server closed the connection".to_owned(),
        }
    }
}

/// Writes messages until there are no more.
async fn write(
    sink: &mut SplitSink<WebSocketStream<Upgraded>, Message>,
    orders: &mut mpsc::UnboundedReceiver<Order>,
    inbox: &Inbox,
) -> Result<(), Error> {
    while let Some(order) = orders.recv().await {
        let Order::Send(outgoing) = order else { continue };
        let length = outgoing.frame.len();
        let sent = match Utf8Bytes::try_from(outgoing.frame) {
            Ok(text) => sink.send(Message::Text(text)).await,
            Err(_) => Ok(()),
        };
        inbox.sent(length);
        sent?;
    }
    Ok(())
}
