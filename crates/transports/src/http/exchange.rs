//! One POST: its body is read, its era decided, and it goes its way.

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
use super::session::{self, Said};
use super::shared::{Connection, Flight, Shared};

/// Answers a POST to the endpoint.
pub(crate) async fn post(flight: Flight, head: &Parts, body: IncomingBody) -> Reply {
    let acceptable = guard::check_content_type(&head.headers).and_then(|()| {
        guard::check_accept(&head.headers, &["application/json", "text/event-stream"])
    });
    if let Err(refusal) = acceptable {
        return refusal.into();
    }
    let body = match read(&flight.connection, head.version, body).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into(),
    };
    answer(flight, &head.headers, &body).reply().await
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
    let limit = connection.shared.engine.settings().engine_limits.message_size;
    let too_long = || {
        let reason = format!("the body is longer than {limit} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_long());
    }
    let reading = collect(body, limit);
    let collected = if version == Version::HTTP_2 {
        // Many bodies share a connection: each has a timer of its own.
        let time = connection.shared.settings.limits.body_time;
        tokio::time::timeout(time, reading).await.ok()
    } else {
        connection.pulse.body_in_time(reading).await
    };
    match collected {
        Some(Ok(body)) => Ok(body),
        Some(Err(Unread::TooLong)) => Err(too_long()),
        Some(Err(Unread::Broken)) => {
            Err(Refusal::new(StatusCode::BAD_REQUEST, "the body could not be read"))
        }
        None => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
    }
}

enum Unread {
    TooLong,
    Broken,
}

/// All of a body. If it came in one piece it is not copied.
async fn collect(mut body: IncomingBody, limit: usize) -> Result<Bytes, Unread> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let expected = body.size_hint().lower();
    while let Some(frame) = next(&mut body).await {
        let Ok(piece) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        if first.len() + rest.len() + piece.len() > limit {
            return Err(Unread::TooLong);
        }
        if first.is_empty() && rest.is_empty() {
            first = piece;
        } else {
            if rest.is_empty() {
                rest.reserve(usize::try_from(expected).map_or(limit, |length| length.min(limit)));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&piece);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

type Piece = Result<http_body::Frame<Bytes>, hyper::Error>;

async fn next(body: &mut IncomingBody) -> Option<Piece> {
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *body).poll_frame(cx)).await
}
