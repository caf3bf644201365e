//! The caller of a request.
//!
//! The transport establishes the caller before it parses anything, and it travels with the request
//! through the session into the source's context. It is in this crate because it is request
//! metadata: the session carries it and the registry hands it on, and the two share only this
//! crate.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::raw::Raw;

/// The caller of a request: an issuer, a subject that the issuer vouches for, and its scopes.
///
/// Cloning shares the data.
///
/// ```
/// use sabir_wire::Caller;
///
/// let ann = Caller::new("https://login.example", "ann").with_scopes(["notes:read"]);
/// assert!(ann.has_scope("notes:read"));
/// assert!(ann.is_same_as(&Caller::new("https://login.example", "ann")));
/// assert!(!ann.is_same_as(&Caller::local()));
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Caller {
    identity: Arc<Identity>,
    /// Not part of the identity.
    #[serde(skip)]
    remote: Option<Arc<Remote>>,
}

/// The other end of a connection. Its requests share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// The number of the connection.
    pub connection: u64,
    /// The address of the client, if it is known.
    pub address: Option<IpAddr>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    issuer: Box<str>,
    subject: Box<str>,
    #[serde(default)]
    scopes: BTreeSet<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claims: Option<Raw>,
    /// When its credentials expire, in seconds since 1970.
    #[serde(skip)]
    expires: Option<u64>,
    /// The access token, where a source exchanges it. It is never written anywhere.
    #[serde(skip)]
    token: Option<Arc<str>>,
}

/// The issuer of [`Caller::local`] and [`Caller::anonymous`].
const BUILT_IN: &str = "sabir";

static LOCAL: LazyLock<Caller> = LazyLock::new(|| Caller::new(BUILT_IN, "local"));
static ANONYMOUS: LazyLock<Caller> = LazyLock::new(|| Caller::new(BUILT_IN, "anonymous"));

impl Caller {
    /// A caller without scopes and claims.
    pub fn new(issuer: impl Into<Box<str>>, subject: impl Into<Box<str>>) -> Self {
        let (issuer, subject) = (issuer.into(), subject.into());
        let identity = Identity {
            issuer,
            subject,
            scopes: BTreeSet::new(),
            claims: None,
            expires: None,
            token: None,
        };
        Self { identity: Arc::new(identity), remote: None }
    }

    /// The user of this machine who started the process: the caller on stdio.
    pub fn local() -> Self {
        LOCAL.clone()
    }

    /// Whether this is the user who started the process.
    pub fn is_local(&self) -> bool {
        self.is_same_as(&LOCAL)
    }

    /// The caller on an HTTP endpoint that demands no authentication.
    pub fn anonymous() -> Self {
        ANONYMOUS.clone()
    }

    /// Replaces the scopes.
    #[must_use]
    pub fn with_scopes<S: Into<Box<str>>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        Arc::make_mut(&mut self.identity).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Replaces the claims: a JSON object, as the issuer signed it.
    #[must_use]
    pub fn with_claims(mut self, claims: Raw) -> Self {
        Arc::make_mut(&mut self.identity).claims = Some(claims);
        self
    }

    /// The issuer, which vouches for the subject: a URL for OAuth, `token` for a static token,
    /// `sabir` for the built-in callers.
    pub fn issuer(&self) -> &str {
        &self.identity.issuer
    }

    /// The issuer's name for the caller.
    pub fn subject(&self) -> &str {
        &self.identity.subject
    }

    /// The scopes, in alphabetical order.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.identity.scopes.iter().map(|scope| &**scope)
    }

    /// Whether the caller was granted this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.identity.scopes.contains(scope)
    }

    /// The claims of the caller's token, if it had any.
    pub fn claims(&self) -> Option<&Raw> {
        self.identity.claims.as_ref()
    }

    /// The same caller, with the access token that the request came with.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        Arc::make_mut(&mut self.identity).token = Some(token.into());
        self
    }

    /// The access token of the request, if a source may exchange it for another. It must be sent to
    /// its issuer only.
    pub fn token(&self) -> Option<&Arc<str>> {
        self.identity.token.as_ref()
    }

    /// The same caller, at the other end of this connection.
    #[must_use]
    pub fn at(self, remote: Arc<Remote>) -> Self {
        Self { remote: Some(remote), ..self }
    }

    /// The address from which the request comes, if it is known.
    pub fn address(&self) -> Option<IpAddr> {
        self.remote.as_ref()?.address
    }

    /// The same caller, whose credentials expire at `expires`, in seconds since 1970.
    #[must_use]
    pub fn until(mut self, expires: u64) -> Self {
        Arc::make_mut(&mut self.identity).expires = Some(expires);
        self
    }

    /// When its credentials expire, in seconds since 1970; `None` if they do not.
    pub fn expires(&self) -> Option<u64> {
        self.identity.expires
    }

    /// A number for queues in which callers take turns. A caller that no issuer vouches for has one
    /// number per connection; any other caller has one number for all of its connections.
    pub fn share(&self) -> u64 {
        if !self.is_vouched_for() {
            return self.remote.as_ref().map_or(0, |remote| remote.connection);
        }
        let mut hasher = DefaultHasher::new();
        (self.issuer(), self.subject()).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether an issuer vouches for the caller. Other callers differ by their connections only.
    pub fn is_vouched_for(&self) -> bool {
        self.issuer() != BUILT_IN
    }

    /// Whether both are the same subject of the same issuer. Scopes and claims may differ: a token
    /// that was refreshed is still the same caller's.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity)
            || (self.issuer() == other.issuer() && self.subject() == other.subject())
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for Caller {}

/// The subject alone for built-in callers, `subject@issuer` for all others. Claims are not shown:
/// they may hold personal data.
impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.subject())?;
        if self.is_vouched_for() { write!(f, "@{}", self.issuer()) } else { Ok(()) }
    }
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Caller({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_issuer_and_subject() {
        let ann = Caller::new("a", "ann");
        assert!(ann.is_same_as(&ann.clone().with_scopes(["x"])));
        assert!(!ann.is_same_as(&Caller::new("b", "ann")));
        assert!(!ann.is_same_as(&Caller::new("a", "bob")));
        assert!(!Caller::local().is_same_as(&Caller::anonymous()));
    }

    #[test]
    fn only_unknown_callers_are_told_apart_by_their_connections() {
        let [first, second] =
            [1, 2].map(|connection| Arc::new(Remote { connection, address: None }));
        let [one, two] = [&first, &second].map(|remote| Caller::anonymous().at(remote.clone()));
        assert!(one.is_same_as(&two) && one == two);
        assert_ne!(one.share(), two.share());
        let ann = Caller::new("a", "ann");
        let again = ann.clone().with_scopes(["x"]).at(second);
        assert_eq!(ann.clone().at(first).share(), again.share());
        assert_ne!(ann.share(), Caller::new("a", "bob").share());
    }

    #[test]
    fn a_caller_survives_serialization() {
        let claims = Raw::parse(r#"{"sub":"ann","n":12345678901234567890}"#).unwrap();
        let ann = Caller::new("https://i", "ann").with_scopes(["b", "a"]).with_claims(claims);
        let json = serde_json::to_string(&ann.clone().with_token("s3cret")).unwrap();
        assert!(!json.contains("s3cret"), "{json}");
        let read: Caller = serde_json::from_str(&json).unwrap();
        assert_eq!(read, ann);
        assert_eq!(read.scopes().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(read.claims().unwrap().text(), r#"{"sub":"ann","n":12345678901234567890}"#);
    }

    #[test]
    fn neither_claims_nor_tokens_are_printed() {
        let ann = Caller::new("https://i", "ann").with_claims(Raw::parse("{\"x\":1}").unwrap());
        let ann = ann.with_token("s3cret");
        assert_eq!(format!("{ann} {ann:?}"), "ann@https://i Caller(ann@https://i)");
        assert_eq!(Caller::local().to_string(), "local");
    }
}
