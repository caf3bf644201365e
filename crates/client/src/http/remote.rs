//! The server's address, and the session of the legacy era.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use sabir_outbound::{Body, Error, Limits};
use sabir_wire::{Era, HttpExchange, MASK, Revision};

use super::{HttpTarget, SendError};
use crate::error::CallError;
use crate::io::{CallKey, Head};
use crate::link::Inbox;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// No limits: the conversation bounds the time of an answer.
const LIMITS: Limits = Limits { head: Duration::MAX, idle: None, total: None, body: u64::MAX };

/// One link to a server over HTTP.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) target: Arc<HttpTarget>,
    pub(super) inbox: Inbox,
    uri: Uri,
    /// The headers of every request.
    headers: HeaderMap,
    session: Mutex<Session>,
}

#[derive(Clone, Debug, Default)]
struct Session {
    id: Option<HeaderValue>,
    /// The server has accepted a message in it.
    is_accepted: bool,
    /// The revision of the handshake, once it is known.
    revision: Option<Revision>,
}

impl Remote {
    pub(super) fn new(target: Arc<HttpTarget>, inbox: Inbox) -> Self {
        // The URL was checked when the link was opened.
        let uri = target.url.parse().unwrap_or_default();
        let mut headers = target.headers.clone();
        // Events must arrive one by one.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Self { target, inbox, uri, headers, session: Mutex::default() }
    }

    /// Posts a message, for `call` if it begins one.
    pub(super) async fn post(
        &self,
        call: Option<CallKey>,
        frame: Bytes,
        head: &Head,
    ) -> Result<Response<Body>, SendError> {
        let mut request = self.request(http::Method::POST, frame);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        if let Some(revision) = head.revision {
            headers.insert(VERSION, HeaderValue::from_static(revision.date()));
        }
        if head.revision.is_some_and(|revision| revision.era() == Era::Modern) {
            let method = head.method.as_ref().map(|method| method.name());
            let standard = [(METHOD, method), (NAME, head.name.as_deref())];
            let standard = standard.into_iter().filter_map(|(name, value)| Some((name, value?)));
            let mirrored = head
                .mirrored
                .iter()
                .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, &**value)));
            for (name, value) in standard.chain(mirrored) {
                // Encoded values are always valid.
                if let Ok(value) = HeaderValue::from_str(value) {
                    headers.append(name, value);
                }
            }
        } else {
            self.add_session(&mut request);
            self.remember_revision(head.revision);
        }
        let has_session = request.headers().contains_key(&SESSION);
        let response = self.send(call, request).await?;
        if has_session && response.status().is_success() {
            self.session.lock().unwrap_or_else(PoisonError::into_inner).is_accepted = true;
        }
        Ok(response)
    }

    /// Opens a stream of events, or resumes one after this event.
    pub(super) async fn listen(&self, after: Option<&str>) -> Result<Response<Body>, SendError> {
        let mut request = self.request(http::Method::GET, Bytes::new());
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(after) = after.and_then(|after| HeaderValue::try_from(after).ok()) {
            headers.insert(LAST_EVENT, after);
        }
        self.add_session(&mut request);
        self.send(None, request).await
    }

    /// Ends the session, if there is one.
    pub(super) async fn delete(&self) {
        if self.has_session() {
            let mut request = self.request(http::Method::DELETE, Bytes::new());
            self.add_session(&mut request);
            // The server may not support it, or may be down.
            let _ = self.send(None, request).await;
        }
    }

    pub(super) fn has_session(&self) -> bool {
        self.session().id.is_some()
    }

    /// Whether there is a session in which the server has accepted a message.
    pub(super) fn is_session_accepted(&self) -> bool {
        self.session().is_accepted
    }

    /// Remembers the session that the answer to the handshake names.
    pub(super) fn remember_session(&self, response: &Response<Body>) {
        if let Some(id) = response.headers().get(&SESSION) {
            let mut id = id.clone();
            id.set_sensitive(true);
            self.session.lock().unwrap_or_else(PoisonError::into_inner).id = Some(id);
        }
    }

    fn remember_revision(&self, revision: Option<Revision>) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.revision = session.revision.or(revision);
    }

    fn session(&self) -> Session {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn request(&self, method: http::Method, body: Bytes) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    fn add_session(&self, request: &mut Request<Bytes>) {
        let session = self.session();
        if let Some(id) = session.id {
            request.headers_mut().insert(SESSION, id);
        }
        if let Some(revision) = session.revision {
            let date = HeaderValue::from_static(revision.date());
            request.headers_mut().insert(VERSION, date);
        }
    }

    async fn send(
        &self,
        call: Option<CallKey>,
        request: Request<Bytes>,
    ) -> Result<Response<Body>, SendError> {
        let sent = self.inbox.is_tapped().then(|| texts(request.headers()));
        let response = self.target.send(request, &LIMITS).await?;
        if let Some(request) = sent {
            let (status, response) = (response.status().as_u16(), texts(response.headers()));
            self.inbox.exchanged(call, &HttpExchange { request, status, response });
        }
        Ok(response)
    }
}

/// The headers as texts.
fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| match value.is_sensitive() {
        true => MASK.to_owned(),
        false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// The error of a call whose exchange failed.
pub(super) fn failure(error: &SendError) -> CallError {
    match error {
        SendError::Auth(error) => CallError::Auth(error.clone()),
        SendError::Http(error) => broken(error),
    }
}

/// The error of a call whose connection failed.
pub(super) fn broken(error: &Error) -> CallError {
    if error.is_unsent() {
        CallError::Unsent(error.to_string())
    } else {
        CallError::Lost(error.to_string())
    }
}
