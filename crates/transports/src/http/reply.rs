//! Responses: JSON at once, a stream of events, or a refusal. Never HTML.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Frame, SizeHint};
use sabir_wire::{Code, ErrorObject, write_error};

/// What every request ends with.
pub(crate) type Reply = Response<Body>;

/// A reply that is ready, or will be. What is ready passes through no future on its way out.
pub(crate) enum Answer {
    /// At once.
    Now(Reply),
    /// When there is something to say.
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl Answer {
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

/// The body of a response.
pub(crate) enum Body {
    /// Nothing, or nothing more.
    Empty,
    /// All of it.
    Whole(Bytes),
    /// As it comes.
    Events(Events),
}

/// Pieces of a stream of events.
pub(crate) type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Events(events) => {
                return events
                    .as_mut()
                    .poll_next(cx)
                    .map(|piece| piece.map(|piece| Ok(Frame::data(piece))));
            }
            Self::Whole(bytes) => Some(std::mem::take(bytes)),
            Self::Empty => None,
        };
        *self = Self::Empty;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// One JSON text.
pub(crate) fn json(status: StatusCode, text: Bytes) -> Reply {
    let mut reply = Response::new(Body::Whole(text));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, JSON);
    reply
}

/// Nothing but a status.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Body::Empty);
    *reply.status_mut() = status;
    reply
}

/// A stream of events.
pub(crate) fn events(body: Body) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Proxies that gather what passes through them would hold back what must be heard now.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
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

    /// The same with a header that tells what would help.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }
}

/// The reason, as a JSON-RPC error that answers no request: who is refused here was not heard.
impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let code =
            if refusal.status.is_server_error() { Code::INTERNAL } else { Code::INVALID_REQUEST };
        let error = ErrorObject::new(code, refusal.reason);
        let mut reply = json(refusal.status, write_error(None, &error));
        reply.headers_mut().extend(refusal.header);
        reply
    }
}
