//! WebSocket, one message a text frame. The handshake is that of HTTP (`http/upgrade.rs`).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink as _, Stream as _, StreamExt as _};
use sabir_budget::{Hold, memory};
use sabir_engine::Engine;
use sabir_wire::{Caller, Line};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::expiry;
use crate::metered::{Buffer, Metered};
use crate::pump::{self, LINGER, Link, Step};

/// Bytes that are read at once. Allocated for every connection.
const CHUNK: usize = 16 << 10;

/// Bytes before the payload of a client's ping or pong: two, and the mask.
const CONTROL_HEAD: usize = 6;

/// How long a client may be silent, and how long a message may take to arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// A client that sends nothing for this long, not even a pong, is disconnected.
    pub(crate) ping: Duration,
    /// The time for a message, from its first bytes to its last.
    pub(crate) message: Duration,
}

/// Serves the client of a WebSocket whose handshake is complete, until it disconnects or the engine
/// stops.
pub(crate) async fn serve<S>(engine: &Arc<Engine>, caller: Caller, stream: S, patience: Patience)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limit = Some(engine.settings().engine_limits.message_size);
    let config = WebSocketConfig::default()
        .read_buffer_size(CHUNK)
        .max_message_size(limit)
        .max_frame_size(limit);
    let stream = Metered::new(stream, CHUNK);
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let mut link = WebSocket::new(socket, patience, &caller);
    // The link never fails: an error ends it, and sets the reason of the close frame.
    let _ = pump::serve(engine, caller, &mut link).await;
    // A client that does not answer the closing handshake in time is dropped.
    let _ = tokio::time::timeout(LINGER, link.close()).await;
}

/// Completes when credentials expire.
type Expiry = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A WebSocket as a link.
struct WebSocket<S> {
    socket: WebSocketStream<Metered<S>>,
    pings: Interval,
    /// A frame arrived since the last ping.
    was_heard: bool,
    /// Completes when the client's credentials expire.
    expiry: Option<Expiry>,
    /// Bytes that were queued since everything was last flushed.
    unsent: usize,
    /// The caller, by its share of the memory.
    share: u64,
    /// The memory of the socket's copies of queued messages, beyond the counted size of its buffer.
    copies: Hold,
    sent: Buffer,
    /// The time for one message, and the timer of the message that is arriving.
    message_time: Duration,
    late: Option<Pin<Box<Sleep>>>,
    received: Option<Bytes>,
    /// The reason to close, unless the engine stops.
    reason: Option<CloseFrame>,
    is_broken: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    fn new(socket: WebSocketStream<Metered<S>>, patience: Patience, caller: &Caller) -> Self {
        let Patience { ping, message } = patience;
        let mut pings = tokio::time::interval_at(Instant::now() + ping, ping);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (expires, share) = (caller.expires(), caller.share());
        Self {
            socket,
            pings,
            was_heard: true,
            expiry: expires.map(|_| -> Expiry { Box::pin(expiry::over(expires)) }),
            unsent: 0,
            share,
            copies: memory().take_anyway_for(share, 0),
            sent: Buffer::new(),
            message_time: message,
            late: None,
            received: None,
            reason: None,
            is_broken: false,
        }
    }

    fn queue(&mut self, message: Message) {
        let before = self.unsent.max(self.sent.size());
        self.unsent += message.len().max(1);
        let more = self.unsent.saturating_sub(before);
        self.copies.absorb(memory().take_anyway_for(self.share, more));
        self.is_broken |= Pin::new(&mut self.socket).start_send(message).is_err();
    }

    fn fail(&mut self, code: CloseCode, reason: &'static str) -> Poll<Step> {
        self.reason = Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) });
        Poll::Ready(Step::Gone)
    }

    /// Ends reading when the client's credentials expire. Running calls may finish.
    fn poll_expiry(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let Some(expiry) = &mut self.expiry else { return Poll::Pending };
        std::task::ready!(expiry.as_mut().poll(cx));
        self.expiry = None;
        let reason = Utf8Bytes::from_static("the credentials have expired");
        self.reason = Some(CloseFrame { code: CloseCode::Policy, reason });
        Poll::Ready(Step::End)
    }

    /// Everything was flushed. The buffer of the socket does not shrink.
    fn forget_copies(&mut self) {
        self.sent.was_filled(std::mem::take(&mut self.unsent));
        self.copies = memory().take_anyway_for(self.share, 0);
    }

    /// Disconnects the client if the message that has begun does not complete in time.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if !self.socket.get_ref().has_begun() {
            self.late = None;
            return Poll::Pending;
        }
        let time = self.message_time;
        let late = self.late.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        std::task::ready!(late.as_mut().poll(cx));
        self.fail(CloseCode::Policy, "the message took too long to arrive")
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            let Poll::Ready(next) = Pin::new(&mut self.socket).poll_next(cx) else {
                return self.poll_late(cx);
            };
            self.was_heard = true;
            match next {
                Some(Ok(Message::Text(text))) => {
                    self.socket.get_mut().finish();
                    self.late = None;
                    self.received = Some(memory().count(text.into()));
                    return Poll::Ready(Step::Progress);
                }
                Some(Ok(Message::Binary(_))) => {
                    let reason = "binary message (expected one JSON-RPC message per text frame)";
                    return self.fail(CloseCode::Unsupported, reason);
                }
                // Reading on answers a ping.
                Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                    self.socket.get_mut().skip(CONTROL_HEAD + payload.len());
                }
                // Reading on answers a close.
                Some(Ok(Message::Close(_))) => {}
                Some(Ok(Message::Frame(_))) => {}
                Some(Err(Error::Capacity(_))) => {
                    return self.fail(CloseCode::Size, "the message is longer than the limit");
                }
                Some(Err(Error::Io(error))) if error.kind() == io::ErrorKind::OutOfMemory => {
                    return self.fail(CloseCode::Again, "the server has no memory left");
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

    /// Closes the socket: sends the reason, and waits until the client has answered.
    async fn close(&mut self) {
        let reason = self.reason.take().unwrap_or_else(|| CloseFrame {
            code: CloseCode::Away,
            reason: Utf8Bytes::from_static("the server is stopping"),
        });
        // A client that has disconnected does not get the reason.
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
        if let Poll::Ready(end) = self.poll_expiry(cx) {
            return Poll::Ready(Ok(end));
        }
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
            self.forget_copies();
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
