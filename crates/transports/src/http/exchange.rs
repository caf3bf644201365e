//! One POST: its body is read, its era decided, and it goes its way.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming as IncomingBody;
use sabir_engine::Connection;
use sabir_session::{Dialect, SessionKind, era};
use sabir_wire::{
    Era, Incoming, Malformed, Message, Meta, Method, ParsedRequest, decode, write_error,
};

use super::accept::{self, VersionHeader, named_revision};
use super::guard;
use super::headers::Headers;
use super::one_shot::{self, STREAM_ID, StatusRules};
use super::reply::{self, Answer, Refusal, Reply};
use super::session::{self, PostedMessage};
use super::state::{HttpConnection, InFlight, ServerState};

/// Answers a POST to the endpoint.
pub(crate) async fn post(
    in_flight: InFlight,
    head: Parts,
    body: IncomingBody,
) -> Result<Reply, Refusal> {
    check(&head.headers)?;
    let body = read(&in_flight.connection, head.version, body).await?;
    let answer = answer(in_flight, &head.headers, &body);
    Ok(answer.reply().await)
}

/// Whether the headers of a POST allow an answer.
pub(crate) fn check(headers: &impl Headers) -> Result<(), Refusal> {
    guard::check_content_type(headers)?;
    guard::check_accept(headers, &["application/json", "text/event-stream"])
}

/// Routes a message by its era.
pub(crate) fn answer(in_flight: InFlight, headers: &impl Headers, body: &Bytes) -> Answer {
    let settings = in_flight.shared().engine.settings();
    let named = named_revision(headers);
    match said(body, settings.engine_limits.depth) {
        PostedMessage::Request(asked) if is_modern(&settings.dialect, named, &asked) => {
            modern(in_flight, headers, named, asked)
        }
        PostedMessage::Other(frame) if names_modern(&settings.dialect, named) => {
            modern_other(&in_flight, frame).into()
        }
        said => session::post(in_flight, headers, named, said),
    }
}

pub(crate) fn said(body: &Bytes, depth: usize) -> PostedMessage {
    if let Some(asked) = ParsedRequest::decode(body, depth) {
        return PostedMessage::Request(asked);
    }
    match decode(body, depth) {
        Ok(Incoming::One(Message::Request { id, method, params })) => {
            PostedMessage::Request(ParsedRequest::read(id, method, params))
        }
        frame => PostedMessage::Other(frame),
    }
}

/// The era of a request is told by its metadata; the header only tells that there should be some.
fn is_modern(dialect: &Dialect, named: VersionHeader, asked: &ParsedRequest) -> bool {
    // A handshake is for agreeing on a revision; what the client hopes for decides nothing yet.
    let is_handshake = asked.method == Method::Initialize;
    let header = !is_handshake && named.is_modern();
    match &asked.meta {
        Ok(meta) => era(is_handshake, meta, header, dialect) == Era::Modern,
        Err(_) => names_modern(dialect, named),
    }
}

fn names_modern(dialect: &Dialect, named: VersionHeader) -> bool {
    era(false, &Meta::default(), named.is_modern(), dialect) == Era::Modern
}

fn modern(
    in_flight: InFlight,
    headers: &impl Headers,
    named: VersionHeader,
    asked: ParsedRequest,
) -> Answer {
    let shared = in_flight.shared();
    let catalog = shared.engine.registry().snapshot();
    if let Err(problem) = accept::check(headers, named, &asked, &catalog) {
        let id = Some(&asked.id).filter(|id| !id.is_null());
        return reply::json(StatusCode::BAD_REQUEST, write_error(id, &problem.to_error())).into();
    }
    let is_described =
        asked.meta.as_ref().is_ok_and(|meta| meta.version.is_some() && meta.capabilities.is_some());
    let rules = StatusRules::Modern { is_undescribed: !is_described };
    let mut connection = converse(shared);
    connection.receive_request(STREAM_ID, asked);
    one_shot::answer(in_flight, connection, rules)
}

/// What is no request, from a client that says it is modern.
fn modern_other(in_flight: &InFlight, frame: Result<Incoming, Malformed>) -> Reply {
    let bad = |reason| Refusal::new(StatusCode::BAD_REQUEST, reason).into();
    match frame {
        // The revision gives them no meaning, and demands none of the headers.
        Ok(Incoming::One(Message::Notification { .. })) => reply::empty(StatusCode::ACCEPTED),
        Ok(Incoming::One(_)) => bad("a client of this revision sends no responses"),
        Ok(Incoming::Batch(_)) => bad("this revision knows no batches"),
        Err(malformed) => session::misread(converse(in_flight.shared()), malformed),
    }
}

fn converse(shared: &ServerState) -> Connection {
    Connection::new(&shared.engine, SessionKind::ModernHttp, shared.caller.clone())
}

/// Reads the body of a request, within its limits.
pub(crate) async fn read(
    connection: &HttpConnection,
    version: Version,
    body: IncomingBody,
) -> Result<Bytes, Refusal> {
    let mut body = Collecting::begin(connection, body)?;
    let collecting = poll_fn(|cx| body.poll(cx));
    let collected = if version == Version::HTTP_2 {
        // Many bodies share a connection: each has a timer of its own.
        let time = connection.shared.settings.limits.body_time;
        tokio::time::timeout(time, collecting).await.ok()
    } else {
        connection.activity.body_in_time(collecting).await
    };
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
    fn begin(connection: &HttpConnection, body: IncomingBody) -> Result<Self, Refusal> {
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
