//! One POST and its answer.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use sabir_outbound::{Body, Error};
use sabir_wire::{Code, Era, ErrorObject, Id, Incoming, Message, Method, Revision, decode};

use super::remote::{Remote, broken, failure};
use super::stream;
use crate::error::{CallError, OpenError};
use crate::io::{CallKey, Head, Outgoing};
use crate::pending::Pending;

/// Bytes of an error body that are read. A longer one is reported by its status alone.
const MAX_ERROR: u64 = 64 << 10;
/// Characters of a body that an error shows.
const MAX_SHOWN: usize = 200;
/// How long a server may take to accept a message that has no answer. Then the message is dropped.
const TELL_TIME: Duration = Duration::from_secs(60);
/// How long ending a session may take.
const LEAVE_TIME: Duration = Duration::from_secs(3);

/// Posts a request, and reports its answer. The rare branches are boxed: the task of every call is
/// as large as the largest of them.
pub(super) async fn call(remote: Arc<Remote>, call: CallKey, outgoing: Outgoing) {
    let Outgoing { frame, head, .. } = outgoing;
    let response = match remote.post(Some(call), frame, &head).await {
        Ok(response) => response,
        Err(error) => return remote.inbox.fail(call, failure(&error), None),
    };
    if head.method == Some(Method::Initialize) && response.status().is_success() {
        remote.remember_session(&response);
    }
    if !response.status().is_success() {
        return Box::pin(refused(&remote, call, &head, response)).await;
    }
    if is_of_type(&response, "text/event-stream") {
        return Box::pin(stream::answer(&remote, call, response.into_body())).await;
    }
    let body = response.into_body().with_limit(remote.inbox.limits.message_size as u64);
    let mut pending = Pending::new();
    match body.read_with(|more| pending.add(more)).await {
        Ok(body) => remote.inbox.receive(Some(call), pending.keep(body)).await,
        Err(Error::TooLong { .. }) => remote.inbox.receive_too_long(Some(call)),
        Err(error) => remote.inbox.fail(call, broken(&error), None),
    }
    if remote.inbox.is_waiting(call) {
        let nothing = CallError::Invalid("the body is not an answer to the request".to_owned());
        remote.inbox.fail(call, nothing, None);
    }
}

/// Posts a notification, or the answer to a question.
pub(super) async fn tell(remote: &Remote, outgoing: Outgoing) {
    let posting = remote.post(None, outgoing.frame, &outgoing.head);
    match tokio::time::timeout(TELL_TIME, posting).await {
        Ok(Ok(response)) if response.status().is_success() => {}
        Ok(Ok(response)) => {
            let status = response.status().as_u16();
            tracing::debug!(status, "the server refused a message that has no answer");
        }
        Ok(Err(error)) => tracing::debug!(%error, "a message that has no answer was not sent"),
        Err(_) => tracing::debug!("the server did not accept a message that has no answer"),
    }
}

/// Ends the session of the legacy era.
pub(super) async fn leave(remote: &Remote) {
    let _ = tokio::time::timeout(LEAVE_TIME, remote.delete()).await;
}

/// Reports a status other than success: an error of the protocol, or of a proxy on the way.
async fn refused(remote: &Remote, call: CallKey, head: &Head, response: Response<Body>) {
    let status = response.status();
    let challenge = response.headers().get(WWW_AUTHENTICATE);
    let challenge = challenge.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = response.into_body().with_limit(MAX_ERROR).read().await.unwrap_or_default();
    let error = match decode(&body, remote.inbox.limits.message_depth) {
        Ok(Incoming::One(Message::Response { id, result: Err(error) })) => Some((id, error)),
        _ => None,
    };
    let names_no_call = |(id, _): &(Option<Id>, _)| id.as_ref().is_none_or(Id::is_null);
    let is_unnamed = error.as_ref().is_none_or(names_no_call);
    if is_of_other_era(status, head, error.as_ref().map(|(_, error)| error), is_unnamed) {
        return remote.inbox.end(OpenError::OtherEra, &[call]);
    }
    // Many servers that do not know the session answer 400, with an error that names no request.
    let is_unknown_session = match status {
        StatusCode::NOT_FOUND => remote.has_session(),
        StatusCode::BAD_REQUEST => {
            remote.is_session_accepted() && error.as_ref().is_some_and(names_no_call)
        }
        _ => false,
    };
    if is_unknown_session {
        // The session has ended, and the call was not run. The next handshake opens another
        // session.
        let reason = "the server ended the session".to_owned();
        return remote.inbox.end(OpenError::Ended(reason), &[call]);
    }
    let is_about_access = matches!(status.as_u16(), 401 | 403 | 407);
    if error.is_some() && !is_about_access {
        return remote.inbox.receive(Some(call), body).await;
    }
    let body = String::from_utf8_lossy(&body).chars().take(MAX_SHOWN).collect();
    let error = CallError::Status { status: status.as_u16(), body };
    remote.inbox.fail(call, error, challenge);
}

/// Whether an open link is refused because the server at the URL was replaced by one of the other
/// era. `is_unnamed`: the answer does not name the request.
fn is_of_other_era(
    status: StatusCode,
    head: &Head,
    error: Option<&ErrorObject>,
    is_unnamed: bool,
) -> bool {
    let is_modern_error = error.is_some_and(|error| {
        let modern = [Code::UNSUPPORTED_VERSION, Code::HEADER_MISMATCH, Code::MISSING_CAPABILITY];
        modern.contains(&error.code)
    });
    match head.revision.map(Revision::era) {
        _ if head.method == Some(Method::Discover) => false,
        Some(Era::Modern) => {
            matches!(status.as_u16(), 400 | 404 | 405) && is_unnamed && !is_modern_error
        }
        Some(Era::Legacy) => error.is_some_and(|error| error.code == Code::UNSUPPORTED_VERSION),
        None => false,
    }
}

pub(super) fn is_of_type(response: &Response<Body>, expected: &str) -> bool {
    let r#type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let r#type = r#type.and_then(|value| value.split(';').next()).unwrap_or_default();
    r#type.trim().eq_ignore_ascii_case(expected)
}
