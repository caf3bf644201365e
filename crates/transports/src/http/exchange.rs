//! One POST: its body is read, its era decided, and it goes its way.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming as IncomingBody;
use sabir_engine::Conversation;
use sabir_session::{Dialect, Standing, era};
use sabir_wire::{Asked, Era, Incoming, Malformed, Message, Meta, Method, decode, write_error};

use super::accept::{self, Named, named_revision};
use super::guard;
use super::one_shot::{self, LANE, Manner};
use super::reply::{self, Answer, Refusal, Reply};
use super::route::Work;
use super::session::{self, Said};
use super::shared::{Connection, Flight, Shared};

/// A POST to the endpoint, whose body is being read. Nearly every request is one, so its state is
/// laid out by hand: those of nested functions would be copied into one another.
pub(crate) struct Posting {
    /// Until the body is there.
    flight: Option<Flight>,
    headers: HeaderMap,
    body: Collecting,
}

/// Begins to answer a POST to the endpoint.
pub(crate) fn post(flight: Flight, head: Parts, body: IncomingBody) -> Result<Work, Refusal> {
    guard::check_content_type(&head.headers)?;
    guard::check_accept(&head.headers, &["application/json", "text/event-stream"])?;
    let body = Collecting::begin(&flight.connection, body)?;
    let headers = head.headers;
    if head.version != Version::HTTP_2 {
        return Ok(Work::Post(Posting { flight: Some(flight), headers, body }));
    }
    // Many bodies share a connection: each has a timer of its own.
    Ok(Work::Later(Box::pin(async move {
        match in_time(&flight.connection, body).await {
            Ok(body) => answer(flight, &headers, &body).reply().await,
            Err(refusal) => refusal.into(),
        }
    })))
}

impl Posting {
    /// The answer, when the body is there.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(flight) = &self.flight else { return Poll::Pending };
        let polled = self.body.poll(cx);
        let body = ready!(flight.connection.pulse.poll_body(cx, polled));
        let Some(flight) = self.flight.take() else { return Poll::Pending };
        Poll::Ready(match body.unwrap_or(Err(Unread::Late)) {
            Ok(body) => answer(flight, &self.headers, &body),
            Err(unread) => self.body.refuse(unread).into(),
        })
    }
}

/// Which way a message goes.
fn answer(flight: Flight, headers: &HeaderMap, body: &Bytes) -> Answer {
    let settings = flight.shared().engine.settings();
    let named = named_revision(headers);
    match said(body, settings.engine_limits.depth) {
        Said::Asked(asked) if is_modern(&settings.dialect, named, &asked) => {
            modern(flight, headers, named, asked)
        }
        Said::Frame(frame) if names_modern(&settings.dialect, named) => {
            modern_other(&flight, frame).into()
        }
        said => session::post(flight, headers, named, said),
    }
}

pub(crate) fn said(body: &Bytes, depth: usize) -> Said {
    if let Some(asked) = Asked::decode(body, depth) {
        return Said::Asked(asked);
    }
    match decode(body, depth) {
        Ok(Incoming::One(Message::Request { id, method, params })) => {
            Said::Asked(Asked::read(id, method, params.as_ref()))
        }
        frame => Said::Frame(frame),
    }
}

/// The era of a request is told by its metadata; the header only tells that there should be some.
fn is_modern(dialect: &Dialect, named: Named, asked: &Asked) -> bool {
    // A handshake is for agreeing on a revision; what the client hopes for decides nothing yet.
    let is_handshake = asked.method == Method::Initialize;
    let header = !is_handshake && named.is_modern();
    match &asked.meta {
        Ok(meta) => era(is_handshake, meta, header, dialect) == Era::Modern,
        Err(_) => names_modern(dialect, named),
    }
}

fn names_modern(dialect: &Dialect, named: Named) -> bool {
    era(false, &Meta::default(), named.is_modern(), dialect) == Era::Modern
}

fn modern(flight: Flight, headers: &HeaderMap, named: Named, asked: Asked) -> Answer {
    let shared = flight.shared();
    let catalog = shared.engine.registry().snapshot();
    if let Err(problem) = accept::check(headers, named, &asked, &catalog) {
        let id = Some(&asked.id).filter(|id| !id.is_null());
        return reply::json(StatusCode::BAD_REQUEST, write_error(id, &problem.to_error())).into();
    }
    let is_described =
        asked.meta.as_ref().is_ok_and(|meta| meta.version.is_some() && meta.capabilities.is_some());
    let manner = Manner::Modern { is_undescribed: !is_described };
    let mut conversation = converse(shared);
    conversation.receive_asked(LANE, asked);
    one_shot::answer(flight, conversation, manner)
}

/// What is no request, from a client that says it is modern.
fn modern_other(flight: &Flight, frame: Result<Incoming, Malformed>) -> Reply {
    let bad = |reason| Refusal::new(StatusCode::BAD_REQUEST, reason).into();
    match frame {
        // The revision gives them no meaning, and demands none of the headers.
        Ok(Incoming::One(Message::Notification { .. })) => reply::empty(StatusCode::ACCEPTED),
        Ok(Incoming::One(_)) => bad("a client of this revision sends no responses"),
        Ok(Incoming::Batch(_)) => bad("this revision knows no batches"),
        Err(malformed) => session::misread(converse(flight.shared()), malformed),
    }
}

fn converse(shared: &Shared) -> Conversation {
    Conversation::new(&shared.engine, Standing::ModernHttp, shared.principal.clone())
}

/// Reads the body of a request, within its limits.
pub(crate) async fn read(
    connection: &Connection,
    version: Version,
    body: IncomingBody,
) -> Result<Bytes, Refusal> {
    let mut body = Collecting::begin(connection, body)?;
    if version == Version::HTTP_2 {
        return in_time(connection, body).await;
    }
    let collected = connection.pulse.body_in_time(poll_fn(|cx| body.poll(cx))).await;
    collected.unwrap_or(Err(Unread::Late)).map_err(|unread| body.refuse(unread))
}

/// Reads a body that has a timer of its own.
async fn in_time(connection: &Connection, mut body: Collecting) -> Result<Bytes, Refusal> {
    let time = connection.shared.settings.limits.body_time;
    let collected = tokio::time::timeout(time, poll_fn(|cx| body.poll(cx))).await;
    collected.unwrap_or(Err(Unread::Late)).map_err(|unread| body.refuse(unread))
}

enum Unread {
    TooLong,
    Broken,
    Late,
}

/// A body that is being read. If it comes in one piece it is not copied.
struct Collecting {
    body: IncomingBody,
    limit: usize,
    first: Bytes,
    rest: BytesMut,
}

impl Collecting {
    fn begin(connection: &Connection, body: IncomingBody) -> Result<Self, Refusal> {
        let limit = connection.shared.engine.settings().engine_limits.message_size;
        let is_too_long = body.size_hint().lower() > limit as u64;
        let collecting = Self { body, limit, first: Bytes::new(), rest: BytesMut::new() };
        if is_too_long { Err(collecting.refuse(Unread::TooLong)) } else { Ok(collecting) }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Unread>> {
        while let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            let Ok(frame) = frame else { return Poll::Ready(Err(Unread::Broken)) };
            let Ok(piece) = frame.into_data() else { continue };
            if self.first.len() + self.rest.len() + piece.len() > self.limit {
                return Poll::Ready(Err(Unread::TooLong));
            }
            self.take(piece);
            if self.body.is_end_stream() {
                break;
            }
        }
        let rest = std::mem::take(&mut self.rest);
        let first = std::mem::take(&mut self.first);
        Poll::Ready(Ok(if rest.is_empty() { first } else { rest.freeze() }))
    }

    fn take(&mut self, piece: Bytes) {
        if self.first.is_empty() && self.rest.is_empty() {
            self.first = piece;
            return;
        }
        if self.rest.is_empty() {
            // What is still to come is told by the hint, as far as it is known.
            let more = usize::try_from(self.body.size_hint().lower()).unwrap_or(self.limit);
            let all = self.first.len().saturating_add(piece.len()).saturating_add(more);
            self.rest.reserve(all.min(self.limit));
            self.rest.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.rest.extend_from_slice(&piece);
    }

    fn refuse(&self, unread: Unread) -> Refusal {
        match unread {
            Unread::TooLong => {
                let reason = format!("the body is longer than {} bytes", self.limit);
                Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
            }
            Unread::Broken => Refusal::new(StatusCode::BAD_REQUEST, "the body could not be read"),
            Unread::Late => {
                Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")
            }
        }
    }
}
