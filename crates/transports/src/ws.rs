//! WebSocket, one message a text frame. The handshake is that of HTTP (`http/upgrade.rs`).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink as _, Stream as _, StreamExt as _};
use sabir_engine::Engine;
use sabir_wire::{Caller, Line};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::pump::{self, LINGER, Link, Step};

/// How much is read at once. Allocated for every connection.
const CHUNK: usize = 16 << 10;

/// Serves the client of a WebSocket whose handshake is complete, until it has left or the engine
/// stops. A client that sends nothing for as long as `ping`, not even the answer to a ping, is gone.
pub(crate) async fn serve<S>(engine: &Arc<Engine>, caller: Caller, stream: S, ping: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limit = Some(engine.settings().engine_limits.message_size);
    let config = WebSocketConfig::default()
        .read_buffer_size(CHUNK)
        .max_message_size(limit)
        .max_frame_size(limit);
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let mut link = WebSocket::new(socket, ping);
    // The link never fails: an error ends it, and decides how it is closed.
    let _ = pump::serve(engine, caller, &mut link).await;
    // A client that does not answer the closing handshake in time is dropped.
    let _ = tokio::time::timeout(LINGER, link.close()).await;
}

/// A WebSocket as a link.
struct WebSocket<S> {
    socket: WebSocketStream<S>,
    pings: Interval,
    /// Something came since the last ping.
    was_heard: bool,
    /// Bytes that were queued since everything was last flushed.
    unsent: usize,
    received: Option<Bytes>,
    /// Why it is closed, unless the engine stops.
    reason: Option<CloseFrame>,
    is_broken: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    fn new(socket: WebSocketStream<S>, ping: Duration) -> Self {
        let mut pings = tokio::time::interval_at(Instant::now() + ping, ping);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (was_heard, unsent, is_broken) = (true, 0, false);
        Self { socket, pings, was_heard, unsent, received: None, reason: None, is_broken }
    }

    fn queue(&mut self, message: Message) {
        self.unsent += message.len().max(1);
        self.is_broken |= Pin::new(&mut self.socket).start_send(message).is_err();
    }

    fn fail(&mut self, code: CloseCode, reason: &'static str) -> Poll<Step> {
        self.reason = Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) });
        Poll::Ready(Step::Gone)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            let next = std::task::ready!(Pin::new(&mut self.socket).poll_next(cx));
            self.was_heard = true;
            match next {
                Some(Ok(Message::Text(text))) => {
                    self.received = Some(text.into());
                    return Poll::Ready(Step::Progress);
                }
                Some(Ok(Message::Binary(_))) => {
                    let reason = "binary message (expected one JSON-RPC message per text frame)";
                    return self.fail(CloseCode::Unsupported, reason);
                }
                // Reading on answers a ping, and a close.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_))) => {}
                Some(Ok(Message::Frame(_))) => {}
                Some(Err(Error::Capacity(_))) => {
                    return self.fail(CloseCode::Size, "the message is longer than the limit");
                }
                Some(Err(Error::Utf8(_))) => {
                    return self.fail(CloseCode::Invalid, "the text is not UTF-8");
                }
                Some(Err(Error::Protocol(error)))
                    if error != ProtocolError::ResetWithoutClosingHandshake =>
                {
                    return self.fail(CloseCode::Protocol, "WebSocket protocol violation");
                }
                Some(Err(_)) | None => return Poll::Ready(Step::Gone),
            }
        }
    }

    /// Closes it: says why, and waits until the client has answered.
    async fn close(&mut self) {
        let reason = self.reason.take().unwrap_or_else(|| CloseFrame {
            code: CloseCode::Away,
            reason: Utf8Bytes::from_static("the server is stopping"),
        });
        // A client that has left needs no reason.
        let _ = self.socket.close(Some(reason)).await;
        while let Some(Ok(_)) = self.socket.next().await {}
        let _ = self.socket.get_mut().shutdown().await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link for WebSocket<S> {
    fn send(&mut self, message: &Bytes) {
        match Utf8Bytes::try_from(message.clone()) {
            Ok(text) => self.queue(Message::Text(text)),
            Err(error) => tracing::error!("a message was dropped: {error}"),
        }
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn poll(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<io::Result<Step>> {
        while self.pings.poll_tick(cx).is_ready() {
            // Pongs are seen only while we read.
            if reads && !self.was_heard {
                return self.fail(CloseCode::Error, "no answer to a ping").map(Ok);
            }
            self.was_heard = false;
            self.queue(Message::Ping(Bytes::new()));
        }
        if self.unsent > 0
            && !self.is_broken
            && let Poll::Ready(flushed) = Pin::new(&mut self.socket).poll_flush(cx)
        {
            self.unsent = 0;
            self.is_broken = flushed.is_err();
            if !self.is_broken {
                return Poll::Ready(Ok(Step::Progress));
            }
        }
        match (self.is_broken, reads) {
            (true, _) => Poll::Ready(Ok(Step::Gone)),
            (false, true) => self.poll_read(cx).map(Ok),
            (false, false) => Poll::Pending,
        }
    }

    fn next(&mut self) -> Option<Line> {
        self.received.take().map(Line::Message)
    }
}
