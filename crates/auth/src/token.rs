//! A parsed JSON Web Token. Nothing in it is trusted before its signature is verified.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Header, decode_header};
use serde_json::{Map, Value};

/// The longest token that is parsed, in bytes. A longer one is refused.
pub(crate) const MAX_TOKEN: usize = 16 << 10;

/// A token that has the form of a JSON Web Token.
pub(crate) struct Token<'t> {
    pub(crate) header: Header,
    pub(crate) claims: Map<String, Value>,
    /// The claims, as the issuer wrote them.
    pub(crate) text: String,
    /// The signed part of the token.
    pub(crate) message: &'t str,
    pub(crate) signature: &'t str,
}

/// Whether a token claims to be a JSON Web Token: three parts, of which the first is a JSON object.
pub(crate) fn is_jwt(token: &str) -> bool {
    token.starts_with("eyJ") && token.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'t> Token<'t> {
    /// Parses a token. `None` if it is malformed, or not an access token.
    pub(crate) fn parse(token: &'t str) -> Option<Self> {
        let header = decode_header(token).ok()?;
        // Critical extensions: none is supported.
        if header.crit.is_some() || !is_access_token(header.typ.as_deref()) {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (_, payload) = message.split_once('.')?;
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
        let claims = serde_json::from_str(&text).ok()?;
        Some(Self { header, claims, text, message, signature })
    }
}

/// Issuers of RFC 9068 write `at+jwt`, others `JWT` or nothing. An ID token has `JWT` too, but
/// another audience; a logout token or a client's assertion has a type of its own.
fn is_access_token(r#type: Option<&str>) -> bool {
    let Some(r#type) = r#type else { return true };
    let end = r#type.len().min(12);
    let rest = match r#type.get(..end) {
        Some(start) if start.eq_ignore_ascii_case("application/") => &r#type[12..],
        _ => r#type,
    };
    rest.eq_ignore_ascii_case("at+jwt") || rest.eq_ignore_ascii_case("jwt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_access_tokens() {
        for good in [None, Some("JWT"), Some("jwt"), Some("at+jwt"), Some("application/at+JWT")] {
            assert!(is_access_token(good), "{good:?}");
        }
        for bad in ["", "logout+jwt", "application/", "oauth-id-jag+jwt", "dpop+jwt", "é+jwt"] {
            assert!(!is_access_token(Some(bad)), "{bad}");
        }
    }

    #[test]
    fn only_three_parts_are_a_jwt() {
        assert!(is_jwt("eyJh.eyJi.c"));
        for opaque in ["", "eyJh", "eyJh.b", "eyJh.b.c.d", "opaque.a.b"] {
            assert!(!is_jwt(opaque), "{opaque}");
        }
    }
}
