//! Authentication: the caller is established before anything of a request is parsed.

use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderValue, StatusCode, header};
use sabir_wire::Caller;
use subtle::ConstantTimeEq as _;

use super::headers::{self, Headers};
use super::reply::Refusal;
use super::settings::{NamedToken, Settings};

/// Establishes the caller of a request from its `Authorization` header.
pub trait Authenticate: Send + Sync {
    /// The verdict on these credentials, if it is known without waiting.
    fn known(&self, authorization: Option<&[u8]>) -> Option<Result<Caller, Denied>> {
        let _ = authorization;
        None
    }

    /// Finds out who calls.
    fn authenticate(&self, authorization: Option<&[u8]>) -> Authenticating;
}

/// A caller that is being established.
pub type Authenticating = Pin<Box<dyn Future<Output = Result<Caller, Denied>> + Send>>;

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It brings no credentials: 401, with a plain challenge.
    Missing,
    /// Its credentials are not accepted: 401, `invalid_token`.
    Invalid,
}

/// How a server establishes callers.
pub(crate) enum Authentication {
    /// Everybody is anonymous.
    Open,
    /// One of these tokens must be there, in `Authorization` or in the header of this name.
    Tokens(Vec<(NamedToken, Caller)>, Option<Box<str>>),
    /// Callers are established by the application.
    Custom(Arc<dyn Authenticate>),
}

impl Authentication {
    pub(crate) fn new(settings: &Settings) -> Self {
        if let Some(custom) = &settings.authenticate {
            return Self::Custom(custom.clone());
        }
        if settings.tokens.is_empty() {
            return Self::Open;
        }
        let caller = |token: &NamedToken| {
            Caller::new("token", &*token.name).with_scopes(token.scopes.iter().map(|s| &**s))
        };
        let tokens = settings.tokens.iter().map(|token| (token.clone(), caller(token)));
        Self::Tokens(tokens.collect(), settings.token_header.clone())
    }

    /// The caller, where it is known without waiting.
    pub(crate) fn known(&self, headers: &impl Headers) -> Option<Result<Caller, Refusal>> {
        let authorization = match headers::only(headers, "authorization") {
            Ok(authorization) => authorization,
            Err(refusal) => return Some(Err(refusal)),
        };
        let known = match self {
            Self::Open => Ok(Caller::anonymous()),
            Self::Tokens(tokens, header) => {
                let bare = header.as_deref().and_then(|name| headers.first(name));
                among(tokens, authorization, bare)
            }
            Self::Custom(custom) => custom.known(authorization)?,
        };
        Some(known.map_err(refusal))
    }

    /// The caller.
    pub(crate) async fn caller(&self, headers: &impl Headers) -> Result<Caller, Refusal> {
        if let Some(known) = self.known(headers) {
            return known;
        }
        match self {
            Self::Custom(custom) => {
                let found = custom.authenticate(headers.first("authorization"));
                found.await.map_err(refusal)
            }
            Self::Open | Self::Tokens(..) => Err(refusal(Denied::Invalid)),
        }
    }
}

/// Compares with every token, each in constant time.
fn among(
    tokens: &[(NamedToken, Caller)],
    authorization: Option<&[u8]>,
    bare: Option<&[u8]>,
) -> Result<Caller, Denied> {
    let given = match (authorization, bare) {
        (None, None) => return Err(Denied::Missing),
        (Some(authorization), _) => bearer(authorization).ok_or(Denied::Invalid)?,
        (None, Some(bare)) => bare,
    };
    let mut found = None;
    for (token, caller) in tokens {
        if bool::from(given.ct_eq(token.token.secret())) {
            found = Some(caller);
        }
    }
    found.cloned().ok_or(Denied::Invalid)
}

/// The token of a `Bearer` credential.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn refusal(denied: Denied) -> Refusal {
    let challenge = match denied {
        Denied::Missing => "Bearer",
        Denied::Invalid => "Bearer error=\"invalid_token\"",
    };
    Refusal::new(StatusCode::UNAUTHORIZED, "authentication required (expected a bearer token)")
        .with(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::http::settings::Token;

    fn named(name: &str, secret: &str, scopes: &[&str]) -> NamedToken {
        let scopes = scopes.iter().map(|scope| (*scope).into()).collect();
        NamedToken { scopes, ..NamedToken::new(name, Token::new(secret).unwrap()) }
    }

    fn caller(tokens: Vec<NamedToken>, authorization: Option<&str>) -> Result<Caller, StatusCode> {
        let settings = Settings { tokens, ..Settings::default() };
        let mut headers = HeaderMap::new();
        headers.extend(authorization.map(|value| (header::AUTHORIZATION, value.parse().unwrap())));
        let known = Authentication::new(&settings).known(&headers).unwrap();
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
