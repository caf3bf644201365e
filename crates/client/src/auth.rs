//! OAuth from the client's side: how we get the access token that a server demands.
//!
//! Start at [`OAuth`], which belongs to one user of one server: it adds the token to each request,
//! renews it before it expires, and reacts to refusals. `challenge`, `metadata`, `request` and
//! `pkce` do no I/O. Spec: basic/authorization of all revisions.

mod challenge; // the challenge of a refusal
mod discovery; // who issues tokens for a server
mod endpoint; // requests to an authorization server
mod grants; // the ways to a token
mod identity; // who we are at an authorization server
mod keep; // where credentials are kept
mod keeper; // a token that could not be kept yet
mod metadata; // well-known places, and the documents there
mod oauth; // the credentials of one server
mod pkce; // random values, and their hashes
mod proof; // tokens that are bound to a key
mod request; // the authorization request and its answer
mod send; // requests with the token
mod settings; // how tokens are obtained
mod tokens; // the answers of the token endpoint

pub use identity::{ClientKey, Registration};
pub use keep::{InMemory, Keep, Keeping, Kept, Locked};
pub use oauth::{Login, OAuth};
pub use send::SendError;
pub use settings::{ApiTokens, Grant, OAuthSettings, SubjectType, Visit, Visiting};
pub use tokens::Tokens;

/// The reason why a token is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// A person has to log in.
    #[error("a login is needed")]
    LoginNeeded,
    /// The caller has no token that could be exchanged.
    #[error("the caller has no access token that could be exchanged")]
    NoSubject,
    /// The server or its authorization server violates the rules, so that nothing is sent.
    #[error("{0}")]
    Untrusted(String),
    /// The authorization server refused.
    #[error("the authorization server refused: {error}{}", .description.as_deref().map(|d| format!(" ({d})")).unwrap_or_default())]
    Refused {
        /// The code of the error, such as `invalid_grant`.
        error: String,
        /// Its description.
        description: Option<String>,
    },
    /// The server refuses the token for lack of scopes that the token has.
    #[error("the server refuses the token, which has the scopes that it demands ({0})")]
    Scopes(String),
    /// An authorization server could not be reached, or gave no valid answer.
    #[error("{0}")]
    Unreachable(String),
    /// Credentials could not be read or written.
    #[error("cannot keep credentials: {0}")]
    Keep(String),
    /// The login did not complete.
    #[error("login failed: {0}")]
    Login(String),
}

impl AuthError {
    fn is_invalid_grant(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error == "invalid_grant")
    }

    /// Whether the authorization server does not know our registration.
    fn is_invalid_client(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error == "invalid_client")
    }
}
