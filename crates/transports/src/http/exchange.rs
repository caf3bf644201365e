//! One POST: reads its body, decides its era, and answers it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{StatusCode, Version};
use http_body::Body;
use sabir_budget::{MemoryFull, memory};
use sabir_engine::Connection;
use sabir_session::{Dialect, SessionKind, era};
use sabir_wire::write_error;
use sabir_wire::{Caller, Era, Incoming, Malformed, Message, Meta, Method, ParsedRequest};

use super::accept::{self, VersionHeader, named_revision};
use super::auth::Denied;
use super::forward;
use super::guard;
use super::headers::Headers;
use super::one_shot::{self, STREAM_ID, StatusRules};
use super::reply::{self, Answer, Refusal, Reply};
use super::session::{self, Arrived, PostedMessage};
use super::state::{HttpConnection, InFlight, Parsing, ServerState};
use crate::received::ReceivedMessage;

/// Answers a POST to the endpoint.
pub(crate) async fn post<B>(
    in_flight: InFlight,
    caller: Caller,
    head: Parts,
    body: Pin<&mut B>,
) -> Result<Reply, Refusal>
where
    B: Body<Data = Bytes>,
{
    check(&head.headers)?;
    let body = read(&in_flight.connection, head.version, body).await?;
    let message = parse_long(in_flight.state(), &caller, body).await?;
    let answer = answer(in_flight, caller, &head.headers, message);
    Ok(answer.reply().await)
}

/// Checks `Content-Type` and `Accept` of a POST.
pub(crate) fn check(headers: &impl Headers) -> Result<(), Refusal> {
    guard::check_content_type(headers)?;
    guard::check_accept(headers, &["application/json", "text/event-stream"])
}

/// Answers a message according to its era, which is decided here.
pub(crate) fn answer(
    in_flight: InFlight,
    caller: Caller,
    headers: &impl Headers,
    mut message: PostedMessage,
) -> Answer {
    if let Some(arrived) = &mut message.arrived {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = headers.each().map(|(name, value)| (name.to_ascii_lowercase(), text(value)));
        arrived.headers = headers.collect();
    }
    let state = in_flight.state().clone();
    let settings = state.engine.settings();
    let named = named_revision(headers);
    let denied = denied(&state, &caller, &message);
    let PostedMessage { content, arrived } = message;
    let answer = match content {
        ReceivedMessage::Request(request) if is_modern(&settings.dialect, named, &request) => {
            modern(in_flight, caller, headers, named, (request, arrived))
        }
        ReceivedMessage::Other(frame) if names_modern(&settings.dialect, named) => {
            modern_other(&in_flight, caller, frame).into()
        }
        content => {
            let message = PostedMessage { content, arrived };
            session::post(in_flight, caller, headers, named, message)
        }
    };
    match (denied, answer) {
        // The error says so as well; the challenge tells the client which scopes to request.
        (Some(denied), Answer::Now(reply)) => challenged(&state, &denied, reply).into(),
        (Some(denied), Answer::Later(reply)) => Answer::Later(Box::pin(async move {
            let reply = reply.await;
            challenged(&state, &denied, reply)
        })),
        (None, answer) => answer,
    }
}

/// The same error, with the status and the challenge of a request that lacks scopes.
fn challenged(state: &ServerState, denied: &Denied, mut reply: Reply) -> Reply {
    if reply.status == StatusCode::OK {
        let refusal = Reply::from(state.authentication.refusal(denied));
        reply.status = refusal.status;
        reply.headers.extend(refusal.headers);
    }
    reply
}

/// The scopes that the caller lacks for a request, which the engine refuses.
fn denied(state: &ServerState, caller: &Caller, message: &PostedMessage) -> Option<Denied> {
    let ReceivedMessage::Request(ParsedRequest { request: Ok(request), .. }) = &message.content
    else {
        return None;
    };
    let catalog = state.engine.registry().snapshot();
    catalog.missing_scopes(request, caller).map(Denied::Scopes)
}

/// Parses a message that may be long.
pub(crate) async fn parse_long(
    state: &ServerState,
    caller: &Caller,
    body: Bytes,
) -> Result<PostedMessage, Refusal> {
    let parsing = state.parsing();
    let arrived = arrived(parsing, &body);
    let content = ReceivedMessage::parse_long(caller, body, parsing.depth).await;
    let content = content.map_err(|error| Refusal::try_later(&error))?;
    Ok(PostedMessage { content, arrived })
}

pub(crate) fn parse(body: &Bytes, parsing: Parsing) -> PostedMessage {
    let content = ReceivedMessage::parse(body, parsing.depth);
    PostedMessage { content, arrived: arrived(parsing, body) }
}

/// The body, if a tap records it.
fn arrived(parsing: Parsing, body: &Bytes) -> Option<Box<Arrived>> {
    parsing.keeps_body.then(|| Box::new(Arrived { body: body.clone(), headers: Vec::new() }))
}

/// Whether a request is modern: by its metadata, or by a header that demands metadata.
fn is_modern(dialect: &Dialect, named: VersionHeader, request: &ParsedRequest) -> bool {
    // A handshake negotiates the revision; the header of its request decides nothing.
    let is_handshake = request.method == Method::Initialize;
    let header = !is_handshake && named.is_modern();
    match &request.meta {
        Ok(meta) => era(is_handshake, meta, header, dialect) == Era::Modern,
        Err(_) => names_modern(dialect, named),
    }
}

fn names_modern(dialect: &Dialect, named: VersionHeader) -> bool {
    era(false, &Meta::default(), named.is_modern(), dialect) == Era::Modern
}

fn modern(
    in_flight: InFlight,
    caller: Caller,
    headers: &impl Headers,
    named: VersionHeader,
    (request, arrived): (ParsedRequest, Option<Box<Arrived>>),
) -> Answer {
    let state = in_flight.state();
    let catalog = state.engine.registry().snapshot();
    if let Err(problem) = accept::check(headers, named, &request, &catalog) {
        let id = Some(&request.id).filter(|id| !id.is_null());
        return reply::json(StatusCode::BAD_REQUEST, write_error(id, &problem.to_error())).into();
    }
    if let Some(place) = forward::elsewhere(state, &request) {
        let passing = forward::pass_on(in_flight, caller, forward::named(headers), place, request);
        return Answer::Later(Box::pin(passing));
    }
    let meta = request.meta.as_ref();
    let is_described = meta.is_ok_and(|meta| meta.version.is_some() && meta.capabilities.is_some());
    let rules = StatusRules::Modern { is_undescribed: !is_described };
    // A call may finish after its credentials expire; a subscription ends with them.
    let expires = caller.expires().filter(|_| request.method == Method::Listen);
    let mut connection = open(state, caller.clone());
    Arrived::record(arrived.as_deref(), &mut connection);
    connection.receive_request(STREAM_ID, caller, request, Some(catalog));
    one_shot::answer(in_flight, connection, rules, expires)
}

/// Answers a message that is not a request, from a client whose header names a modern revision.
fn modern_other(in_flight: &InFlight, caller: Caller, frame: Result<Incoming, Malformed>) -> Reply {
    let bad = |reason| Refusal::new(StatusCode::BAD_REQUEST, reason).into();
    match frame {
        // The revision ignores notifications, and demands no headers for them.
        Ok(Incoming::One(Message::Notification { .. })) => reply::empty(StatusCode::ACCEPTED),
        Ok(Incoming::One(_)) => bad("clients of this revision send no responses"),
        Ok(Incoming::Batch(_)) => bad("JSON-RPC batches are not supported in this revision"),
        Err(malformed) => session::refuse(open(in_flight.state(), caller), malformed),
    }
}

fn open(state: &Arc<ServerState>, caller: Caller) -> Connection {
    Connection::new(&state.engine, SessionKind::ModernHttp, caller)
}

/// Reads the body of a request, within its limits.
pub(crate) async fn read<B>(
    connection: &HttpConnection,
    version: Version,
    body: Pin<&mut B>,
) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
{
    let limit = connection.state.engine.settings().engine_limits.message_size;
    read_within(connection, version, body, limit).await
}

/// The same with a limit of its own.
pub(crate) async fn read_within<B>(
    connection: &HttpConnection,
    version: Version,
    body: Pin<&mut B>,
    limit: usize,
) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
{
    let too_long = || {
        let reason = format!("the body is longer than {limit} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_long());
    }
    match in_time(connection, version, collect(body, limit)).await {
        Some(Ok(body)) => Ok(body),
        Some(Err(Unread::TooLong)) => Err(too_long()),
        Some(Err(Unread::NoMemory(full))) => Err(Refusal::try_later(&full)),
        Some(Err(Unread::Broken)) => {
            Err(Refusal::new(StatusCode::BAD_REQUEST, "the body could not be read"))
        }
        None => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
    }
}

/// The longest unwanted body that is read, so that its connection can be used again.
const MAX_UNWANTED: usize = 64 << 10;

/// Reads and drops the body of a refused request. `false` if it is too long or too slow: then the
/// connection must be closed.
pub(crate) async fn discard<B>(
    connection: &HttpConnection,
    version: Version,
    mut body: Pin<&mut B>,
) -> bool
where
    B: Body<Data = Bytes>,
{
    if body.size_hint().lower() > MAX_UNWANTED as u64 {
        return false;
    }
    let discarding = async {
        let mut length = 0;
        while !body.is_end_stream() {
            match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                None => break,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => length += frame.data_ref().map_or(0, Bytes::len),
            }
            if length > MAX_UNWANTED {
                return false;
            }
        }
        true
    };
    in_time(connection, version, discarding).await == Some(true)
}

/// Waits for a body within the time limit of the settings.
async fn in_time<T>(
    connection: &HttpConnection,
    version: Version,
    reading: impl Future<Output = T>,
) -> Option<T> {
    match connection.activity.as_ref().filter(|_| version < Version::HTTP_2) {
        Some(activity) => activity.body_in_time(reading).await,
        // Many bodies share an HTTP/2 connection: each has a timer of its own.
        None => {
            let time = connection.state.settings.limits.body_time;
            tokio::time::timeout(time, reading).await.ok()
        }
    }
}

enum Unread {
    TooLong,
    NoMemory(MemoryFull),
    Broken,
}

/// Shorter bodies are not counted: the memory of the connection covers them.
const COUNTED_BODY: usize = 8 << 10;

/// Collects a body. If it arrives in one piece it is not copied. Its memory is counted as it
/// arrives, until the last part of it is dropped.
async fn collect<B>(mut body: Pin<&mut B>, limit: usize) -> Result<Bytes, Unread>
where
    B: Body<Data = Bytes>,
{
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    let mut hold = memory().take_anyway(0);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(frame) = frame else { return Err(Unread::Broken) };
        let Ok(piece) = frame.into_data() else { continue };
        if first.len() + rest.len() + piece.len() > limit {
            return Err(Unread::TooLong);
        }
        hold.grow(piece.len()).map_err(Unread::NoMemory)?;
        if first.is_empty() && rest.is_empty() {
            first = piece;
        } else {
            if rest.is_empty() {
                // The hint is the rest of the body, as far as it is known.
                let more = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
                rest.reserve((first.len() + piece.len()).saturating_add(more).min(limit));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&piece);
        }
        if body.is_end_stream() {
            break;
        }
    }
    let body = if rest.is_empty() { first } else { rest.freeze() };
    Ok(if body.len() < COUNTED_BODY { body } else { hold.keep(body) })
}
