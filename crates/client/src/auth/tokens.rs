//! The answers of the token endpoint. Spec: OAuth 2.1 3.2.3.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize};

use super::AuthError;
use super::identity::Registration;
use super::metadata::ServerMetadata;

/// An access token, and everything that is needed to renew it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tokens {
    /// Who issued it.
    pub(crate) metadata: ServerMetadata,
    /// Whom it was issued to. A refresh token is worthless to another registration.
    pub(crate) client: Registration,
    pub(crate) resource: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) access: String,
    /// In milliseconds since 1970.
    pub(crate) issued: u64,
    pub(crate) expires: Option<u64>,
    pub(crate) refresh: Option<String>,
    /// The refresh token before, and until when it may still be tried: the server may not have
    /// completed the rotation.
    pub(crate) previous: Option<(String, u64)>,
    /// The private key that the token is bound to, as PKCS #8 in Base64.
    pub(crate) key: Option<String>,
}

/// How long the previous refresh token is kept.
const GRACE: Duration = Duration::from_secs(600);
/// A token is renewed this long before it expires, or in the last quarter of a shorter life.
const MARGIN: Duration = Duration::from_secs(30);

impl Tokens {
    /// Whether the token can still be used for a request that begins now.
    pub(crate) fn is_fresh(&self, now: u64) -> bool {
        let margin =
            |end: u64| (MARGIN.as_millis() as u64).min(end.saturating_sub(self.issued) / 4);
        self.expires.is_none_or(|end| now + margin(end) < end)
    }

    pub(crate) fn is_valid(&self, now: u64) -> bool {
        self.expires.is_none_or(|end| now < end)
    }

    /// Who issued the token: the issuer, or its token endpoint if only that is known.
    pub fn issuer(&self) -> &str {
        match (self.metadata.issuer.as_str(), &self.metadata.token_endpoint) {
            ("", Some(endpoint)) => endpoint,
            (issuer, _) => issuer,
        }
    }

    /// The scopes of the token, as far as they are known.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Whether the token can be renewed without a person.
    pub fn is_renewable(&self) -> bool {
        self.refresh.is_some()
    }

    /// The refresh tokens to try, the current one first.
    pub(crate) fn refresh_tokens(&self, now: u64) -> Vec<String> {
        let previous = self.previous.as_ref().filter(|(_, until)| now < *until);
        self.refresh.iter().chain(previous.map(|(token, _)| token)).cloned().collect()
    }

    /// The tokens after a refresh with `used`.
    pub(crate) fn renewed(&self, answer: TokenAnswer, used: &str, now: u64) -> Self {
        let rotated = answer.refresh_token.is_some();
        let mut next = answer.into_tokens(
            self.metadata.clone(),
            self.client.clone(),
            self.resource.clone(),
            self.scopes.clone(),
            now,
        );
        next.key.clone_from(&self.key);
        match rotated {
            true => next.previous = Some((used.to_owned(), now + GRACE.as_millis() as u64)),
            false => {
                next.refresh = Some(used.to_owned());
                next.previous.clone_from(&self.previous);
            }
        }
        next
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("issuer", &self.metadata.issuer).finish_non_exhaustive()
    }
}

/// A successful answer.
#[derive(Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) access_token: String,
    token_type: String,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
    pub(crate) refresh_token: Option<String>,
    scope: Option<String>,
}

/// An error.
#[derive(Deserialize)]
pub(crate) struct TokenRefusal {
    pub(crate) error: String,
    pub(crate) error_description: Option<String>,
}

impl TokenAnswer {
    /// Refuses a token of a type that we cannot use.
    pub(crate) fn check(&self, is_bound: bool) -> Result<(), AuthError> {
        let is = |name: &str| self.token_type.eq_ignore_ascii_case(name);
        let is_plain = self.access_token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || self.access_token.is_empty() {
            return Err(AuthError::Unreachable("the access token is not valid".to_owned()));
        }
        if is("bearer") || is_bound && is("dpop") {
            return Ok(());
        }
        let reason = format!("unknown token type `{}` (expected Bearer)", self.token_type);
        Err(AuthError::Unreachable(reason))
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("dpop")
    }

    pub(crate) fn into_tokens(
        self,
        metadata: ServerMetadata,
        client: Registration,
        resource: String,
        asked: Vec<String>,
        now: u64,
    ) -> Tokens {
        let scopes = match self.scope {
            Some(granted) => granted.split_whitespace().map(Into::into).collect(),
            None => asked,
        };
        Tokens {
            metadata,
            client,
            resource,
            scopes,
            access: self.access_token,
            issued: now,
            expires: self
                .expires_in
                .map(|seconds| now.saturating_add(seconds.saturating_mul(1000))),
            refresh: self.refresh_token,
            previous: None,
            key: None,
        }
    }
}

/// The current time, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// Reads a number that some servers write as a string.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| match value {
        serde_json::Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64().map(|number| number as u64),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(json: &str) -> TokenAnswer {
        serde_json::from_str(json).unwrap()
    }

    fn tokens(json: &str, now: u64) -> Tokens {
        let metadata = ServerMetadata::by_default("https://as.example");
        let asked = vec!["asked".to_owned()];
        let me = Registration::new("me", None);
        answer(json).into_tokens(metadata, me, "https://r".into(), asked, now)
    }

    #[test]
    fn a_token_is_renewed_before_its_end() {
        let long = tokens(r#"{"access_token":"a","token_type":"bearer","expires_in":3600}"#, 0);
        assert!(long.is_fresh(3_569_000) && !long.is_fresh(3_570_000) && long.is_valid(3_599_999));
        let short = tokens(r#"{"access_token":"a","token_type":"Bearer","expires_in":"4"}"#, 0);
        assert!(short.is_fresh(2_999) && !short.is_fresh(3_000));
        let endless = tokens(r#"{"access_token":"a","token_type":"Bearer"}"#, 0);
        assert!(endless.is_fresh(u64::MAX / 2));
        assert_eq!(endless.scopes, ["asked"]);
    }

    #[test]
    fn the_previous_refresh_token_is_kept_for_a_while() {
        let first = tokens(r#"{"access_token":"a","token_type":"Bearer","refresh_token":"1"}"#, 0);
        let rotated = answer(r#"{"access_token":"b","token_type":"Bearer","refresh_token":"2"}"#);
        let second = first.renewed(rotated, "1", 1000);
        assert_eq!(second.refresh_tokens(1000), ["2", "1"]);
        assert_eq!(second.refresh_tokens(1000 + GRACE.as_millis() as u64), ["2"]);
        let kept = answer(r#"{"access_token":"c","token_type":"Bearer","scope":"x y"}"#);
        let third = second.renewed(kept, "2", 2000);
        assert_eq!(third.refresh_tokens(2000), ["2", "1"]);
        assert_eq!(third.scopes, ["x", "y"]);
    }

    #[test]
    fn tokens_of_other_types_and_broken_ones_are_refused() {
        for bad in [
            r#"{"access_token":"a","token_type":"mac"}"#,
            r#"{"access_token":"a","token_type":"dpop"}"#,
            r#"{"access_token":"a\r\nb","token_type":"bearer"}"#,
            r#"{"access_token":"","token_type":"bearer"}"#,
        ] {
            assert!(answer(bad).check(false).is_err(), "{bad}");
        }
        assert_eq!(answer(r#"{"access_token":"a","token_type":"DPoP"}"#).check(true), Ok(()));
    }

    #[test]
    fn nothing_secret_is_shown() {
        let shown =
            format!("{:?}", tokens(r#"{"access_token":"secret","token_type":"bearer"}"#, 0));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
