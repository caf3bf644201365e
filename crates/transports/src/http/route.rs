//! Which request goes where.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use http::header;
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode, Version};
use http_body::Body;
use sabir_registry::SourceState;
use sabir_wire::Caller;
use serde_json::json;

use super::accept::named_revision;
use super::pages::{Access, PageRequest};
use super::reply::{self, Answer, Refusal, Reply};
use super::state::{HttpConnection, InFlight, ServerState};
use super::{exchange, forward, forwarded, guard, old_sse, pages, session, upgrade};

/// Whether the process serves, for supervisors that restart it.
const HEALTH: &str = "/healthz";

/// Whether all sources are ready, for load balancers.
const READY: &str = "/readyz";

/// Where the public documents about this server are.
const WELL_KNOWN: &str = "/.well-known/";

/// Whether `path` is taken, so that it cannot be the endpoint.
pub fn is_reserved(path: &str, old_sse: bool) -> bool {
    [HEALTH, READY, "/metrics", forward::PATH].contains(&path)
        || path.starts_with(WELL_KNOWN)
        || (old_sse && [old_sse::STREAM, old_sse::MESSAGES].contains(&path))
}

/// Answers one request. Never fails: a mistake in the request becomes a response.
pub(crate) async fn answer<B>(connection: &Arc<HttpConnection>, request: Request<B>) -> Reply
where
    B: Body<Data = Bytes>,
{
    let in_flight = InFlight::begin(connection);
    let (head, body) = request.into_parts();
    let mut body = pin!(body);
    let (state, version) = (&connection.state, head.version);
    let uri = head.uri.clone();
    let is_document = uri.path().starts_with(WELL_KNOWN);
    let client = connection.client(&head.headers);
    let guarded = guard::check_size(&head, state.settings.limits.head);
    let wanted = forwarded::wanted(state, &head);
    let guarded = guarded.and_then(|()| match &wanted {
        Some(_) => Ok(()),
        None => connection.admit(client, &head.headers),
    });
    let guarded = guarded.and_then(|()| {
        // Pages of every origin may read a document: a client in a browser begins with them. Nodes
        // use other host names than clients do.
        if is_document || wanted.is_some() {
            return Ok(());
        }
        state.guard.check_origin(head.uri.authority(), version, &head.headers)
    });
    if guarded.is_ok() && wanted.is_none() {
        state.floods.note_request(client);
    }
    // A page is allowed to read the response, unless its origin was refused.
    let is_read = guarded.is_ok() && !is_document;
    let origin = head.headers.get(header::ORIGIN).filter(|_| is_read).cloned();
    let origin = origin.filter(|_| page_access(state, uri.path()).is_none());
    let answered = match (guarded, wanted) {
        (Err(refusal), _) => Err(refusal),
        (Ok(()), Some(wanted)) => forwarded::answer(in_flight, &wanted, &head, body.as_mut()).await,
        (Ok(()), None) if is_document => document(state, &head).await,
        (Ok(()), None) => dispatch(in_flight, client, head, body.as_mut()).await,
    };
    let mut reply = match answered {
        Ok(reply) => reply,
        Err(refusal) => {
            note_refusal(state, &refusal, uri.path(), client);
            let is_discarded =
                refusal.is_about_the_body() || exchange::discard(connection, version, body).await;
            let mut reply = Reply::from(refusal);
            if !is_discarded && version < Version::HTTP_2 {
                reply.headers.push((header::CONNECTION, HeaderValue::from_static("close")));
            }
            reply
        }
    };
    if let Some(origin) = &origin {
        guard::allow_origin(origin, &mut reply);
    }
    reply
}

/// Answers a request that the plain reader has parsed.
pub(crate) async fn resume(answer: Answer, body: impl Body) -> Reply {
    // The body is known; it is skipped, so that hyper can read the next request.
    let mut body = pin!(body);
    while let Some(Ok(_)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {}
    answer.reply().await
}

async fn dispatch<B>(
    in_flight: InFlight,
    client: Option<IpAddr>,
    head: Parts,
    body: Pin<&mut B>,
) -> Result<Reply, Refusal>
where
    B: Body<Data = Bytes>,
{
    let state = in_flight.state();
    let settings = &state.settings;
    let path = head.uri.path();
    let serves_old = settings.old_sse && !settings.only_websocket;
    let is_endpoint = path == settings.endpoint || (settings.only_websocket && path == "/");
    let allowed = match path {
        _ if is_endpoint => "GET, POST, DELETE, OPTIONS",
        HEALTH | READY => "GET, HEAD, OPTIONS",
        old_sse::STREAM if serves_old => "GET, OPTIONS",
        old_sse::MESSAGES if serves_old => "POST, OPTIONS",
        _ => return page(in_flight, &head).await,
    };
    if head.method == Method::OPTIONS {
        let mut reply = reply::empty(StatusCode::NO_CONTENT);
        guard::allow_methods(&head.headers, allowed, &mut reply);
        return Ok(reply);
    }
    if path == HEALTH || path == READY {
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return Err(guard::wrong_method(&head.method, allowed));
        }
        return Ok(match path {
            HEALTH => health(state),
            _ => readiness(state, may_see_reasons(&in_flight, client, &head).await),
        });
    }
    check_running(state)?;
    let caller = established(&in_flight, &head).await?;
    let caller = in_flight.connection.caller(caller, client);
    let is_websocket = is_endpoint && upgrade::is_asked(&head.headers);
    match (&head.method, path) {
        (&Method::GET, _) if is_websocket && (settings.websocket || settings.only_websocket) => {
            upgrade::open(in_flight, caller, head)
        }
        _ if settings.only_websocket => Err(upgrade::required()),
        (&Method::POST, _) if is_endpoint => exchange::post(in_flight, caller, head, body).await,
        // The modern era has neither GET nor DELETE.
        (&Method::GET | &Method::DELETE, _)
            if is_endpoint && named_revision(&head.headers).is_modern() =>
        {
            Err(guard::wrong_method(&head.method, "POST, OPTIONS"))
        }
        (&Method::GET, _) if is_endpoint => {
            guard::check_accept(&head.headers, &["text/event-stream"])?;
            session::get(in_flight, &caller, &head).await
        }
        (&Method::DELETE, _) if is_endpoint => session::delete(state, &caller, &head.headers).await,
        (&Method::GET, old_sse::STREAM) => old_sse::open(in_flight, caller, &head).await,
        (&Method::POST, old_sse::MESSAGES) => old_sse::post(in_flight, caller, &head, body).await,
        _ => Err(guard::wrong_method(&head.method, allowed)),
    }
}

/// The caller of a request.
async fn established(in_flight: &InFlight, head: &Parts) -> Result<Caller, Refusal> {
    let connection = &in_flight.connection;
    in_flight.state().authentication.caller(&head.headers, connection.certified.as_ref()).await
}

/// Whether a probe is from a caller. Most probes have no credentials; invalid ones are counted like
/// those of any other request.
async fn may_see_reasons(in_flight: &InFlight, client: Option<IpAddr>, head: &Parts) -> bool {
    let state = in_flight.state();
    let Err(refusal) = established(in_flight, head).await else { return true };
    if state.authentication.has_credentials(&head.headers) {
        note_refusal(state, &refusal, head.uri.path(), client);
    }
    false
}

/// Counts and logs a refusal.
fn note_refusal(state: &ServerState, refusal: &Refusal, path: &str, client: Option<IpAddr>) {
    if refusal.status == StatusCode::UNAUTHORIZED {
        state.floods.note_refusal(client);
    }
    state.denials.log(state.clock.now(), refusal, path, client);
}

/// A document about this server.
async fn document(state: &ServerState, head: &Parts) -> Result<Reply, Refusal> {
    const ALLOWED: &str = "GET, HEAD, OPTIONS";
    let not_found = || Refusal::new(StatusCode::NOT_FOUND, "not found");
    let document = state.authentication.document(head.uri.path()).ok_or_else(not_found)?;
    let mut reply = match head.method {
        Method::OPTIONS => {
            let mut reply = reply::empty(StatusCode::NO_CONTENT);
            guard::allow_methods(&head.headers, ALLOWED, &mut reply);
            reply
        }
        Method::GET | Method::HEAD => {
            reply::json(StatusCode::OK, document.await.ok_or_else(not_found)?)
        }
        _ => return Err(guard::wrong_method(&head.method, ALLOWED)),
    };
    let everybody = HeaderValue::from_static("*");
    reply.headers.push((header::ACCESS_CONTROL_ALLOW_ORIGIN, everybody));
    Ok(reply)
}

/// Refuses requests while the server stops.
pub(crate) fn check_running(state: &ServerState) -> Result<(), Refusal> {
    if state.is_stopping() {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    }
    Ok(())
}

/// Who may see the page at `path`; `None` if there is no page.
fn page_access(state: &ServerState, path: &str) -> Option<Access> {
    let settings = &state.settings;
    let pages = settings.pages.as_ref().filter(|_| !settings.only_websocket)?;
    pages.access(path).filter(|_| path != settings.endpoint)
}

/// Answers a request that is not for the protocol.
async fn page(in_flight: InFlight, head: &Parts) -> Result<Reply, Refusal> {
    let state = in_flight.state().clone();
    let path = head.uri.path();
    let access = page_access(&state, path);
    let (Some(access), Some(pages)) = (access, &state.settings.pages) else {
        return Err(Refusal::new(StatusCode::NOT_FOUND, "not found"));
    };
    if access == Access::Callers {
        established(&in_flight, head).await?;
    }
    let query = head.uri.query().unwrap_or_default();
    let headers = &head.headers;
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or(head.uri.authority().map(|authority| authority.as_str()));
    let request = PageRequest { method: &head.method, path, query, headers, host };
    pages::answer(&**pages, in_flight, &request).await
}

fn health(state: &ServerState) -> Reply {
    let (status, text): (_, &[u8]) = match state.is_stopping() {
        false => (StatusCode::OK, br#"{"status":"ok"}"#),
        true => (StatusCode::SERVICE_UNAVAILABLE, br#"{"status":"stopping"}"#),
    };
    reply::json(status, Bytes::from_static(text))
}

/// Whether all sources are ready, and why not; the reasons are for callers only.
fn readiness(state: &ServerState, with_reasons: bool) -> Reply {
    let mut status = "ready";
    let mut waiting = Vec::new();
    for source in state.engine.registry().status() {
        let (word, reason) = match source.state {
            SourceState::Ready => continue,
            SourceState::Added | SourceState::Starting => ("starting", None),
            SourceState::Failed(reason) => ("failed", Some(reason.to_string())),
        };
        status = if status == "failed" { status } else { word };
        waiting.push(json!({ "name": source.name, "state": word, "reason": reason }));
    }
    if state.sharing.as_ref().is_some_and(|sharing| !sharing.has_reached()) {
        status = if status == "failed" { status } else { "starting" };
        waiting.push(json!({ "name": "cluster", "state": "starting", "reason": null }));
    }
    if state.is_stopping() {
        status = "stopping";
    }
    let code = match status {
        "ready" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut text = json!({ "status": status });
    if with_reasons && !waiting.is_empty() {
        text["sources"] = waiting.into();
    }
    reply::json(code, text.to_string().into())
}
