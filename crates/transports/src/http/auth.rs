//! Authentication: the caller is established before anything of a request is parsed.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use sabir_wire::Caller;

use super::headers::{self, Headers};
use super::reply::Refusal;
use super::settings::{NamedToken, Settings, Token};
use crate::expiry;

/// Establishes the caller of a request from its `Authorization` header.
pub trait Authenticate: Send + Sync {
    /// The verdict on these credentials, if it is known without waiting.
    fn known(&self, authorization: Option<&[u8]>) -> Option<Result<Caller, Denied>> {
        let _ = authorization;
        None
    }

    /// Whether these credentials were accepted before, if that is known without any work. They are
    /// checked even while an address sends too many invalid ones.
    fn recognizes(&self, authorization: Option<&[u8]>) -> bool {
        let _ = authorization;
        false
    }

    /// Establishes the caller.
    fn authenticate(&self, authorization: Option<&[u8]>) -> Authenticating;

    /// The value of `WWW-Authenticate` for a request that was denied.
    fn challenge(&self, denied: &Denied) -> String {
        plain_challenge(denied)
    }

    /// The public document about authorization at a path below `/.well-known/`. `None` if there is
    /// none.
    fn document(&self, path: &str) -> Option<Document> {
        let _ = path;
        None
    }
}

/// The future of a caller.
pub type Authenticating = Pin<Box<dyn Future<Output = Result<Caller, Denied>> + Send>>;

/// The future of a JSON document; `None` if it is not available at present.
pub type Document = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It has no credentials: 401, with a plain challenge.
    Missing,
    /// Its credentials are refused, for this reason: 401, `invalid_token`.
    Invalid(&'static str),
    /// Its caller lacks these scopes: 403, `insufficient_scope`.
    Scopes(Vec<Box<str>>),
    /// Its credentials cannot be checked at present: 503.
    Unavailable,
}

/// How a server establishes callers. Without tokens and an authenticator all callers are anonymous.
pub(crate) struct Authentication {
    tokens: Vec<(Token, Caller)>,
    /// A header that may carry a token instead of `Authorization`.
    token_header: Option<Box<str>>,
    /// Establishes callers whom no token identifies.
    custom: Option<Arc<dyn Authenticate>>,
}

impl Authentication {
    pub(crate) fn new(settings: &Settings) -> Self {
        let caller = |token: &NamedToken| {
            Caller::new("token", &*token.name).with_scopes(token.scopes.iter().map(|s| &**s))
        };
        let tokens = settings.tokens.iter().map(|token| (token.token, caller(token)));
        Self {
            tokens: tokens.collect(),
            token_header: settings.token_header.clone(),
            custom: settings.authenticate.clone(),
        }
    }

    /// The caller, if it is known without waiting. The certificate, if there is one, identifies the
    /// caller of a request without a token.
    pub(crate) fn known(
        &self,
        headers: &impl Headers,
        certified: Option<&Caller>,
    ) -> Option<Result<Caller, Refusal>> {
        let is_open = self.tokens.is_empty() && self.custom.is_none();
        let authorization = match headers::only(headers, "authorization") {
            Ok(authorization) => authorization,
            Err(refusal) if is_open => return Some(Err(refusal)),
            Err(_) => return Some(Err(self.refusal(&Denied::Invalid(TWICE)))),
        };
        let bare = self.token_header.as_deref().and_then(|name| headers.first(name));
        if let Some(caller) = certified
            && (is_open || authorization.is_none() && bare.is_none())
        {
            return Some(match expiry::is_over(caller.expires()) {
                false => Ok(caller.clone()),
                true => Err(self.refusal(&Denied::Invalid("the certificate has expired"))),
            });
        }
        if is_open {
            return Some(Ok(Caller::anonymous()));
        }
        let known = match (self.among_tokens(authorization, bare), &self.custom) {
            (Ok(caller), _) => Ok(caller),
            (Err(_), Some(custom)) => custom.known(authorization)?,
            (Err(denied), None) => Err(denied),
        };
        Some(known.map_err(|denied| self.refusal(&denied)))
    }

    /// Whether the credentials were accepted before, decided without any work.
    pub(crate) fn recognizes(&self, headers: &impl Headers, certified: Option<&Caller>) -> bool {
        let authorization = headers.first("authorization");
        let bare = self.token_header.as_deref().and_then(|name| headers.first(name));
        certified.is_some()
            || self.among_tokens(authorization, bare).is_ok()
            || self.custom.as_ref().is_some_and(|custom| custom.recognizes(authorization))
    }

    /// Whether a request has credentials, valid or not.
    pub(crate) fn has_credentials(&self, headers: &impl Headers) -> bool {
        let named = self.token_header.as_deref().and_then(|name| headers.first(name));
        headers.first("authorization").or(named).is_some()
    }

    /// The caller.
    pub(crate) async fn caller(
        &self,
        headers: &impl Headers,
        certified: Option<&Caller>,
    ) -> Result<Caller, Refusal> {
        if let Some(known) = self.known(headers, certified) {
            return known;
        }
        let found = match self.establish(headers) {
            Some(establishing) => establishing.await,
            None => Err(Denied::Missing),
        };
        found.map_err(|denied| self.refusal(&denied))
    }

    /// Establishes a caller that is not known.
    pub(crate) fn establish(&self, headers: &impl Headers) -> Option<Authenticating> {
        Some(self.custom.as_ref()?.authenticate(headers.first("authorization")))
    }

    /// The document about authorization at this path.
    pub(crate) fn document(&self, path: &str) -> Option<Document> {
        self.custom.as_ref()?.document(path)
    }

    /// The refusal of a request, with its challenge.
    pub(crate) fn refusal(&self, denied: &Denied) -> Refusal {
        let (status, reason) = match denied {
            Denied::Missing => (
                StatusCode::UNAUTHORIZED,
                "authentication required (expected a bearer token)".to_owned(),
            ),
            Denied::Invalid(reason) => {
                (StatusCode::UNAUTHORIZED, format!("authentication failed: {reason}"))
            }
            Denied::Scopes(needed) => {
                let needed = needed.join(", ");
                (StatusCode::FORBIDDEN, format!("insufficient scope (expected {needed})"))
            }
            Denied::Unavailable => {
                let reason = "the issuer of the token cannot be reached; try again later";
                let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason);
                return refusal.with(RETRY_AFTER, HeaderValue::from_static("10"));
            }
        };
        let refusal = Refusal::new(status, reason);
        match &self.custom {
            Some(custom) => self.with_challenge(refusal, &custom.challenge(denied)),
            None => self.with_challenge(refusal, &plain_challenge(denied)),
        }
    }

    fn with_challenge(&self, refusal: Refusal, challenge: &str) -> Refusal {
        let is_open = self.tokens.is_empty() && self.custom.is_none();
        match HeaderValue::from_str(challenge) {
            Ok(challenge) if !is_open => refusal.with(WWW_AUTHENTICATE, challenge),
            _ => refusal,
        }
    }

    /// Compares with every token, each in constant time.
    fn among_tokens(
        &self,
        authorization: Option<&[u8]>,
        bare: Option<&[u8]>,
    ) -> Result<Caller, Denied> {
        const UNKNOWN: Denied = Denied::Invalid("the token is unknown");
        let given = match (authorization, bare) {
            (None, None) => return Err(Denied::Missing),
            // RFC 6750 3.1: another scheme counts as no credentials.
            (Some(authorization), _) => bearer(authorization).ok_or(Denied::Missing)?,
            (None, Some(bare)) => bare,
        };
        let given = std::str::from_utf8(given).ok().and_then(Token::new).ok_or(UNKNOWN)?;
        let mut found = None;
        for (token, caller) in &self.tokens {
            if token.is_same_as(&given) {
                found = Some(caller);
            }
        }
        found.cloned().ok_or(UNKNOWN)
    }
}

/// Why a request with two credentials is refused: two parsers might use different ones.
const TWICE: &str = "the request has two Authorization headers";

/// The token of a `Bearer` credential; `None` if there is none.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// The challenge of a server whose clients get their tokens from its operator.
fn plain_challenge(denied: &Denied) -> String {
    match denied {
        Denied::Missing | Denied::Unavailable => "Bearer".to_owned(),
        Denied::Invalid(_) => "Bearer error=\"invalid_token\"".to_owned(),
        Denied::Scopes(needed) => {
            format!("Bearer error=\"insufficient_scope\", scope=\"{}\"", needed.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;

    fn named(name: &str, secret: &str, scopes: &[&str]) -> NamedToken {
        let scopes = scopes.iter().map(|scope| (*scope).into()).collect();
        NamedToken { scopes, ..NamedToken::new(name, Token::new(secret).unwrap()) }
    }

    fn caller(tokens: Vec<NamedToken>, authorization: Option<&str>) -> Result<Caller, StatusCode> {
        let settings = Settings { tokens, ..Settings::default() };
        let mut headers = HeaderMap::new();
        headers.extend(authorization.map(|value| (header::AUTHORIZATION, value.parse().unwrap())));
        let known = Authentication::new(&settings).known(&headers, None).unwrap();
        known.map_err(|refusal| refusal.status)
    }

    #[test]
    fn a_token_must_be_right_to_the_last_letter() {
        let told = |value: &str| caller(vec![named("token", "s3cret", &[])], Some(value)).err();
        assert_eq!(told("Bearer s3cret"), None);
        assert_eq!(told("bearer s3cret"), None);
        for wrong in
            ["Bearer s3cre", "Bearer s3crets", "Bearer", "Basic s3cret", "s3cret", "Bearer "]
        {
            assert_eq!(told(wrong), Some(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        assert!(caller(vec![named("token", "s3cret", &[])], None).is_err());
        assert!(Token::new("").is_none() && Token::new("a b").is_none());
        assert_eq!(format!("{:?}", Token::new("s3cret").unwrap()), "Token(…)");
    }

    #[test]
    fn each_token_is_a_caller_with_its_scopes() {
        let tokens = || vec![named("ann", "a1", &["read", "write"]), named("bob", "b2", &["read"])];
        let ann = caller(tokens(), Some("Bearer a1")).unwrap();
        assert!(ann.is_same_as(&Caller::new("token", "ann")) && ann.has_scope("write"));
        let bob = caller(tokens(), Some("Bearer b2")).unwrap();
        assert!(bob.is_same_as(&Caller::new("token", "bob")) && !bob.has_scope("write"));
        assert!(caller(Vec::new(), None).unwrap().is_same_as(&Caller::anonymous()));
    }
}
