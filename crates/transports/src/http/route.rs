//! Which request goes where.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header;
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;

use super::accept::named_revision;
use super::exchange::{self, Posting};
use super::reply::{self, Answer, Refusal, Reply};
use super::shared::{Connection, Flight};
use super::{guard, old_sse, session};

/// For load balancers.
const HEALTH: &str = "/healthz";

/// A request that is being answered.
pub(crate) struct Answering {
    /// The page that asks, if one does: it must be allowed to read the answer.
    origin: Option<HeaderValue>,
    work: Work,
}

/// What is left to do.
pub(crate) enum Work {
    /// Nothing; the reply is taken once.
    Done(Option<Reply>),
    /// To read the body of a message.
    Post(Posting),
    /// Something else.
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// Answers one request. Never fails: whatever is wrong with it is an answer.
pub(crate) fn answer(connection: &Arc<Connection>, request: Request<Incoming>) -> Answering {
    let flight = Flight::begin(connection);
    let (head, body) = request.into_parts();
    let guarded = guard::check_size(&head, connection.shared.settings.limits.head)
        .and_then(|()| connection.shared.guard.check_origin(&head));
    if let Err(refusal) = guarded {
        return Answering { origin: None, work: Work::Done(Some(refusal.into())) };
    }
    let origin = head.headers.get(header::ORIGIN).cloned();
    let work = dispatch(flight, head, body);
    let work = work.unwrap_or_else(|refusal| Work::Done(Some(refusal.into())));
    Answering { origin, work }
}

impl Future for Answering {
    type Output = Result<Reply, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut reply = loop {
            match &mut self.work {
                Work::Done(reply) => match reply.take() {
                    Some(reply) => break reply,
                    // Only who polls what has ended comes here.
                    None => return Poll::Pending,
                },
                Work::Later(work) => break ready!(work.as_mut().poll(cx)),
                Work::Post(posting) => match ready!(posting.poll(cx)) {
                    Answer::Now(reply) => break reply,
                    Answer::Later(work) => self.work = Work::Later(work),
                },
            }
        };
        self.work = Work::Done(None);
        if let Some(origin) = &self.origin {
            guard::allow_origin(origin, &mut reply);
        }
        Poll::Ready(Ok(reply))
    }
}

fn dispatch(flight: Flight, head: Parts, body: Incoming) -> Result<Work, Refusal> {
    let shared = flight.shared();
    let settings = &shared.settings;
    let path = head.uri.path();
    let allowed = match path {
        path if path == settings.endpoint => "GET, POST, DELETE, OPTIONS",
        HEALTH => "GET, HEAD, OPTIONS",
        old_sse::STREAM if settings.old_sse => "GET, OPTIONS",
        old_sse::MESSAGES if settings.old_sse => "POST, OPTIONS",
        _ => return Err(Refusal::new(StatusCode::NOT_FOUND, "there is nothing at that path")),
    };
    if head.method == Method::OPTIONS {
        let mut reply = reply::empty(StatusCode::NO_CONTENT);
        guard::allow_methods(&head.headers, allowed, &mut reply);
        return Ok(reply.into());
    }
    if path == HEALTH {
        return health(&flight, &head.method, allowed).map(Work::from);
    }
    shared.guard.check_token(&head.headers)?;
    if shared.is_stopping() {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    }
    let is_endpoint = path == settings.endpoint;
    match (&head.method, path) {
        (&Method::POST, _) if is_endpoint => exchange::post(flight, head, body),
        // A modern client has no use for either, and is told so.
        (&Method::GET | &Method::DELETE, _)
            if is_endpoint && named_revision(&head.headers).is_modern() =>
        {
            Err(guard::wrong_method(&head.method, "POST, OPTIONS"))
        }
        (&Method::GET, _) if is_endpoint => {
            guard::check_accept(&head.headers, &["text/event-stream"])?;
            session::get(flight, &head).map(Work::from)
        }
        (&Method::DELETE, _) if is_endpoint => {
            session::delete(shared, &head.headers).map(Work::from)
        }
        (&Method::GET, old_sse::STREAM) => old_sse::open(flight, &head).map(Work::from),
        (&Method::POST, old_sse::MESSAGES) => {
            Ok(Work::Later(Box::pin(async move { old_sse::post(flight, &head, body).await })))
        }
        _ => Err(guard::wrong_method(&head.method, allowed)),
    }
}

impl From<Reply> for Work {
    fn from(reply: Reply) -> Self {
        Self::Done(Some(reply))
    }
}

fn health(flight: &Flight, method: &Method, allowed: &'static str) -> Result<Reply, Refusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(guard::wrong_method(method, allowed));
    }
    let (status, text): (_, &[u8]) = match flight.shared().is_stopping() {
        false => (StatusCode::OK, br#"{"status":"ok"}"#),
        true => (StatusCode::SERVICE_UNAVAILABLE, br#"{"status":"stopping"}"#),
    };
    Ok(reply::json(status, Bytes::from_static(text)))
}
