//! Responses: JSON at once, a stream of events, or a refusal. Only pages are ever HTML.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Frame, SizeHint};
use sabir_wire::{Code, ErrorObject, write_error};

use super::activity::{Activity, Untaken};
use crate::expiry;

/// The response to a request.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// The headers beside those of the content.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Content,
}

/// A reply that is ready, or will be. A ready one needs no future.
pub(crate) enum Answer {
    /// A reply that is ready.
    Now(Reply),
    /// A reply that is ready later.
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl Answer {
    /// The reply and its body, if both are complete.
    pub(crate) fn at_once(&self) -> Option<(&Reply, &Bytes)> {
        match self {
            Self::Now(reply) => reply.body.whole().map(|body| (reply, body)),
            Self::Later(_) => None,
        }
    }

    pub(crate) async fn reply(self) -> Reply {
        match self {
            Self::Now(reply) => reply,
            Self::Later(reply) => reply.await,
        }
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Now(reply)
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Now(refusal.into())
    }
}

/// The body of a response: JSON, events, or nothing.
pub struct Body {
    content: Content,
    /// Over HTTP/2: the time limit for the peer to read what is sent, or to ask for more.
    timing: Option<Timing>,
}

impl Body {
    /// Sets a time limit for the peer to read the body.
    pub(crate) fn timed(self, activity: Arc<Activity>, stall: Duration) -> Self {
        let mut body = Self { timing: Some(Timing { activity, stall, poll: None }), ..self };
        body.content = match std::mem::replace(&mut body.content, Content::Empty) {
            Content::Json(text) => Content::Json(body.expect_taken(text)),
            Content::Events(text) => Content::Events(body.expect_taken(text)),
            Content::Whole(text) => Content::Whole(body.expect_taken(text)),
            other => other,
        };
        body.expect_poll();
        body
    }

    /// The text, wrapped so that the peer must read it in time.
    fn expect_taken(&self, text: Bytes) -> Bytes {
        let Some(Timing { activity, stall, .. }) = &self.timing else { return text };
        let untaken = activity.expect_taken(text.len(), *stall);
        Bytes::from_owner(Timed { text, _untaken: untaken })
    }

    /// The peer must ask for more in time.
    fn expect_poll(&mut self) {
        if let Some(Timing { activity, stall, poll }) = &mut self.timing {
            *poll = Some(activity.expect_taken(0, *stall));
        }
    }
}

/// The time limit for a peer that reads nothing.
struct Timing {
    activity: Arc<Activity>,
    stall: Duration,
    poll: Option<Untaken>,
}

/// A text that the peer must read in time.
struct Timed {
    text: Bytes,
    _untaken: Untaken,
}

impl AsRef<[u8]> for Timed {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// The content of a body.
pub(crate) enum Content {
    /// Nothing, or nothing more.
    Empty,
    /// One JSON text.
    Json(Bytes),
    /// Events, all of them.
    Events(Bytes),
    /// Events as they happen.
    Stream(EventStream),
    /// A page, whose own headers describe it.
    Whole(Bytes),
}

/// Server-sent events, as they happen.
pub type EventStream = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

impl Content {
    /// The headers that describe the content.
    pub(crate) fn headers(&self) -> &'static [(HeaderName, HeaderValue)] {
        static JSON: [(HeaderName, HeaderValue); 1] =
            [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        static EVENTS: [(HeaderName, HeaderValue); 3] = [
            (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
            // Buffering proxies would delay events.
            (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        match self {
            Self::Empty | Self::Whole(_) => &[],
            Self::Json(_) => &JSON,
            Self::Events(_) | Self::Stream(_) => &EVENTS,
        }
    }

    /// The whole content, unless it is a stream.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        static NOTHING: Bytes = Bytes::new();
        match self {
            Self::Empty => Some(&NOTHING),
            Self::Json(text) | Self::Events(text) | Self::Whole(text) => Some(text),
            Self::Stream(_) => None,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(timing) = &mut self.timing {
            timing.poll = None;
        }
        let content = &mut self.content;
        let piece = match content {
            Content::Stream(pieces) => {
                let piece = ready!(pieces.as_mut().poll_next(cx));
                self.expect_poll();
                let piece = piece.map(|piece| self.expect_taken(piece));
                return Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))));
            }
            Content::Json(text) | Content::Events(text) | Content::Whole(text) => {
                Some(std::mem::take(text))
            }
            Content::Empty => None,
        };
        *content = Content::Empty;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Json(text) | Content::Events(text) | Content::Whole(text) => {
                SizeHint::with_exact(text.len() as u64)
            }
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

impl From<Reply> for Response<Body> {
    fn from(reply: Reply) -> Self {
        let headers = reply.body.headers();
        let mut response = Self::new(Body { content: reply.body, timing: None });
        *response.status_mut() = reply.status;
        response.headers_mut().extend(headers.iter().cloned().chain(reply.headers));
        response
    }
}

/// One JSON text.
pub(crate) fn json(status: StatusCode, text: Bytes) -> Reply {
    Reply { status, headers: Vec::new(), body: Content::Json(text) }
}

/// Nothing but a status.
pub(crate) fn empty(status: StatusCode) -> Reply {
    Reply { status, headers: Vec::new(), body: Content::Empty }
}

/// Events, all of them.
pub(crate) fn events(text: Bytes) -> Reply {
    Reply { status: StatusCode::OK, headers: Vec::new(), body: Content::Events(text) }
}

/// Events as they happen.
pub(crate) fn stream(pieces: EventStream) -> Reply {
    Reply { status: StatusCode::OK, headers: Vec::new(), body: Content::Stream(pieces) }
}

/// Ends the events when the credentials of their reader expire.
pub(crate) fn until(events: EventStream, expires: Option<u64>) -> EventStream {
    if expires.is_none() {
        return events;
    }
    Box::pin(events.take_until(Box::pin(expiry::over(expires))))
}

/// Keeps `held` until the events end.
pub(crate) fn holding(events: EventStream, held: impl Send + 'static) -> EventStream {
    Box::pin(events.map(move |piece| {
        let _ = &held;
        piece
    }))
}

/// Why a request is not served.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    reason: Cow<'static, str>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { status, reason: reason.into(), header: None }
    }

    /// There is no memory or no thread for a request.
    pub(crate) fn try_later(reason: &impl ToString) -> Self {
        let later = HeaderValue::from_static("5");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason.to_string()).with(RETRY_AFTER, later)
    }

    /// Whether the reason is the body itself, so that the rest of it is not read.
    pub(crate) fn is_about_the_body(&self) -> bool {
        matches!(self.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT)
    }

    /// Sets a header, such as a challenge.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }
}

/// The reason, as a JSON-RPC error without an id: the refused request was not parsed.
impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let code =
            if refusal.status.is_server_error() { Code::INTERNAL } else { Code::INVALID_REQUEST };
        let error = ErrorObject::new(code, refusal.reason);
        let mut reply = json(refusal.status, write_error(None, &error));
        reply.headers.extend(refusal.header);
        reply
    }
}
