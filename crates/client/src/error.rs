//! Reasons for failure.

use std::time::Duration;

use sabir_wire::{Code, ErrorObject};

use crate::auth::AuthError;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error.
    #[error("{} (code {})", .0.message, .0.code)]
    Rpc(ErrorObject),
    /// The server did not answer in time. The call was cancelled.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The link ended before the answer came. The server may have run the call.
    #[error("the connection ended before the answer came: {0}")]
    Lost(String),
    /// The request never reached the server.
    #[error("the request was not sent: {0}")]
    Unsent(String),
    /// There is no link, and opening one failed.
    #[error("{0}")]
    Down(OpenError),
    /// The answer is longer than the limit.
    #[error("the answer is too long (limit {0} bytes)")]
    TooLong(usize),
    /// The answer violates the protocol.
    #[error("invalid answer: {0}")]
    Invalid(String),
    /// The server refused the HTTP request without an error of the protocol.
    #[error("HTTP status {status}{}", detail(.body))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// There is no access token for the server.
    #[error("{0}")]
    Auth(AuthError),
    /// The server's era does not have the method.
    #[error("the server's protocol revision has no `{0}`")]
    NotInEra(String),
    /// Too many calls at once.
    #[error("too many calls at once (limit {0})")]
    Busy(usize),
    /// The server asked in too many rounds, or a question could not be answered.
    #[error("{0}")]
    Questions(String),
}

impl CallError {
    /// The error of the server, if it answered with one.
    pub fn rpc(&self) -> Option<&ErrorObject> {
        match self {
            Self::Rpc(error) => Some(error),
            _ => None,
        }
    }

    /// Why there is no access token, if that is the reason.
    pub fn auth(&self) -> Option<&AuthError> {
        match self {
            Self::Auth(error) | Self::Down(OpenError::Auth(error)) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn is_header_mismatch(&self) -> bool {
        self.rpc().is_some_and(|error| error.code == Code::HEADER_MISMATCH)
    }
}

/// Why a link could not be opened, or has ended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The program or the connection could not be started.
    #[error("{0}")]
    Start(String),
    /// The program or the connection cannot be started: another attempt would fail in the same way.
    #[error("{0}")]
    Impossible(String),
    /// The server demands credentials, or other ones.
    #[error("the server refused access (HTTP status {status})")]
    Unauthorized {
        /// 401, 403 or 407.
        status: u16,
        /// The `WWW-Authenticate` header.
        challenge: Option<String>,
    },
    /// There is no access token for the server.
    #[error("{0}")]
    Auth(AuthError),
    /// The server refused the handshake without an error of the protocol.
    #[error("the server refused the handshake: HTTP status {status}{}", detail(.body))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// The server answered the handshake with an error.
    #[error("the server refused the handshake: {} (code {})", .0.message, .0.code)]
    Rpc(ErrorObject),
    /// The server supports no protocol revision that this client knows.
    #[error("the server speaks no protocol revision known here (it offers: {0})")]
    Unsupported(String),
    /// The server did not answer in time.
    #[error("no answer to the handshake within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The answer to the handshake violates the protocol.
    #[error("invalid answer to the handshake: {0}")]
    Invalid(String),
    /// The link ended.
    #[error("{0}")]
    Ended(String),
    /// The link ended: the server was replaced by one that speaks another protocol revision.
    #[error("the server no longer speaks the protocol revision of the link")]
    OtherEra,
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

impl OpenError {
    /// Whether another attempt would fail in the same way.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Impossible(_) | Self::Unauthorized { .. } | Self::Unsupported(_) => true,
            Self::Auth(error) => !matches!(error, AuthError::Unreachable(_) | AuthError::Keep(_)),
            _ => matches!(self, Self::Closed),
        }
    }
}

/// The text of a body, in one line.
fn detail(body: &str) -> String {
    let line: String = body.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { String::new() } else { format!(": {line}") }
}
