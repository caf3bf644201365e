//! Which request goes where.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;

use super::accept::named_revision;
use super::headers::Headers;
use super::reply::{self, Answer, Refusal, Reply};
use super::state::{HttpConnection, InFlight, ServerState};
use super::{exchange, guard, old_sse, session};

/// For load balancers.
const HEALTH: &str = "/healthz";

/// Answers one request. Never fails: whatever is wrong with it is an answer.
pub(crate) async fn answer(connection: &Arc<HttpConnection>, request: Request<Incoming>) -> Reply {
    let in_flight = InFlight::begin(connection);
    let (head, body) = request.into_parts();
    let shared = &connection.shared;
    let guarded = guard::check_size(&head, shared.settings.limits.head).and_then(|()| {
        shared.guard.check_origin(head.uri.authority(), head.version, &head.headers)
    });
    if let Err(refusal) = guarded {
        return refusal.into();
    }
    // The page that asks, if one does, must be allowed to read the answer.
    let origin = head.headers.get(header::ORIGIN).cloned();
    let mut reply = dispatch(in_flight, head, body).await.unwrap_or_else(Reply::from);
    if let Some(origin) = &origin {
        guard::allow_origin(origin, &mut reply);
    }
    reply
}

/// Goes on with a request that was taken in before.
pub(crate) async fn resume(answer: Answer, mut body: Incoming) -> Reply {
    // Its body is known, but what comes behind it is not.
    while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
    answer.reply().await
}

async fn dispatch(in_flight: InFlight, head: Parts, body: Incoming) -> Result<Reply, Refusal> {
    let shared = in_flight.shared();
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
        return Ok(reply);
    }
    if path == HEALTH {
        return health(&in_flight, &head.method, allowed);
    }
    admit(shared, &head.headers)?;
    let is_endpoint = path == settings.endpoint;
    match (&head.method, path) {
        (&Method::POST, _) if is_endpoint => exchange::post(in_flight, head, body).await,
        // A modern client has no use for either, and is told so.
        (&Method::GET | &Method::DELETE, _)
            if is_endpoint && named_revision(&head.headers).is_modern() =>
        {
            Err(guard::wrong_method(&head.method, "POST, OPTIONS"))
        }
        (&Method::GET, _) if is_endpoint => {
            guard::check_accept(&head.headers, &["text/event-stream"])?;
            session::get(in_flight, &head)
        }
        (&Method::DELETE, _) if is_endpoint => session::delete(shared, &head.headers),
        (&Method::GET, old_sse::STREAM) => old_sse::open(in_flight, &head),
        (&Method::POST, old_sse::MESSAGES) => Ok(old_sse::post(in_flight, &head, body).await),
        _ => Err(guard::wrong_method(&head.method, allowed)),
    }
}

/// Whether anything is done for the caller, now.
pub(crate) fn admit(shared: &ServerState, headers: &impl Headers) -> Result<(), Refusal> {
    shared.guard.check_token(headers)?;
    if shared.is_stopping() {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    }
    Ok(())
}

fn health(in_flight: &InFlight, method: &Method, allowed: &'static str) -> Result<Reply, Refusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(guard::wrong_method(method, allowed));
    }
    let (status, text): (_, &[u8]) = match in_flight.shared().is_stopping() {
        false => (StatusCode::OK, br#"{"status":"ok"}"#),
        true => (StatusCode::SERVICE_UNAVAILABLE, br#"{"status":"stopping"}"#),
    };
    Ok(reply::json(status, Bytes::from_static(text)))
}
