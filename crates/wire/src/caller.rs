//! Who makes a request.
//!
//! The transport establishes the caller before it parses anything, and it travels with the request
//! through the session into the source's context. It stands in this crate because it is request
//! metadata: the session carries it and the registry hands it on, and the two share only this crate.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::raw::Raw;

/// Who makes a request: an issuer, a subject that the issuer vouches for, and what they may do.
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
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Caller(Arc<Identity>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    issuer: Box<str>,
    subject: Box<str>,
    #[serde(default)]
    scopes: BTreeSet<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claims: Option<Raw>,
}

/// The issuer of [`Caller::local`] and [`Caller::anonymous`].
const BUILT_IN: &str = "sabir";

static LOCAL: LazyLock<Caller> = LazyLock::new(|| Caller::new(BUILT_IN, "local"));
static ANONYMOUS: LazyLock<Caller> = LazyLock::new(|| Caller::new(BUILT_IN, "anonymous"));

impl Caller {
    /// A caller without scopes and claims.
    pub fn new(issuer: impl Into<Box<str>>, subject: impl Into<Box<str>>) -> Self {
        Self(Arc::new(Identity {
            issuer: issuer.into(),
            subject: subject.into(),
            scopes: BTreeSet::new(),
            claims: None,
        }))
    }

    /// The user of this machine who started the process: the caller on stdio.
    pub fn local() -> Self {
        LOCAL.clone()
    }

    /// The caller on an HTTP endpoint that demands no authentication.
    pub fn anonymous() -> Self {
        ANONYMOUS.clone()
    }

    /// Replaces the scopes.
    #[must_use]
    pub fn with_scopes<S: Into<Box<str>>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        Arc::make_mut(&mut self.0).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Replaces the claims: a JSON object, as the issuer signed it.
    #[must_use]
    pub fn with_claims(mut self, claims: Raw) -> Self {
        Arc::make_mut(&mut self.0).claims = Some(claims);
        self
    }

    /// Who vouches for the subject: a URL for OAuth, `token` for a static token, `sabir` for the
    /// built-in callers.
    pub fn issuer(&self) -> &str {
        &self.0.issuer
    }

    /// The issuer's name for the caller.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The scopes, in alphabetical order.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(|scope| &**scope)
    }

    /// Whether the caller was granted this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }

    /// The claims of the caller's token, if it had any.
    pub fn claims(&self) -> Option<&Raw> {
        self.0.claims.as_ref()
    }

    /// Whether both are the same subject of the same issuer. Scopes and claims may differ: a token
    /// that was refreshed is still the same caller's.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.issuer() == other.issuer() && self.subject() == other.subject())
    }
}

/// The subject alone for built-in callers, `subject@issuer` for all others. Claims are not shown:
/// they may hold personal data.
impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.subject())?;
        if self.issuer() != BUILT_IN { write!(f, "@{}", self.issuer()) } else { Ok(()) }
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
    fn a_caller_survives_serialization() {
        let claims = Raw::parse(r#"{"sub":"ann","n":12345678901234567890}"#).unwrap();
        let ann = Caller::new("https://i", "ann").with_scopes(["b", "a"]).with_claims(claims);
        let json = serde_json::to_string(&ann).unwrap();
        let read: Caller = serde_json::from_str(&json).unwrap();
        assert_eq!(read, ann);
        assert_eq!(read.scopes().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(read.claims().unwrap().text(), r#"{"sub":"ann","n":12345678901234567890}"#);
    }

    #[test]
    fn no_claims_are_printed() {
        let ann = Caller::new("https://i", "ann").with_claims(Raw::parse("{\"x\":1}").unwrap());
        assert_eq!(format!("{ann} {ann:?}"), "ann@https://i Caller(ann@https://i)");
        assert_eq!(Caller::local().to_string(), "local");
    }
}
