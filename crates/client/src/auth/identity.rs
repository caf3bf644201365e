//! Our identity at an authorization server: registrations, and the authentication of requests.
//! Spec: RFC 6749 2.3, RFC 7523, RFC 7591.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::metadata::ServerMetadata;
use super::settings::OAuthSettings;
use super::tokens::now;
use super::{AuthError, pkce};

/// A registration at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Our name there.
    pub client_id: String,
    /// Our secret; a public client has none.
    pub client_secret: Option<String>,
    /// How requests are authenticated, if the registration says so.
    #[serde(rename = "token_endpoint_auth_method")]
    pub method: Option<String>,
    /// The redirect URI of a registration that we made ourselves.
    #[serde(default)]
    pub(crate) redirect_uri: Option<String>,
}

impl Registration {
    /// A registration that an operator made.
    pub fn new(client_id: impl Into<String>, client_secret: Option<String>) -> Self {
        Self { client_id: client_id.into(), client_secret, method: None, redirect_uri: None }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// A private key that authenticates us instead of a secret.
#[derive(Clone)]
pub struct ClientKey {
    key: EncodingKey,
    algorithm: Algorithm,
}

impl ClientKey {
    /// Reads a private key from PEM: PKCS #8, for the algorithms RS and PS also PKCS #1.
    pub fn from_pem(pem: &str, algorithm: &str) -> Result<Self, String> {
        let known = |_| format!("unknown algorithm `{algorithm}` (expected one such as ES256)");
        let algorithm: Algorithm = algorithm.parse().map_err(known)?;
        let key = match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => EncodingKey::from_ec_der(&der(pem, PKCS8)?),
            Algorithm::EdDSA => EncodingKey::from_ed_der(&der(pem, PKCS8)?),
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
                return Err(
                    "the algorithm needs no private key (expected one such as ES256)".into()
                );
            }
            _ if pem.contains(PKCS1) => EncodingKey::from_rsa_der(&der(pem, PKCS1)?),
            _ => {
                let der = der(pem, PKCS8)?;
                let key = rsa_inside(&der).ok_or("the private key is damaged")?;
                EncodingKey::from_rsa_der(key)
            }
        };
        let key = Self { key, algorithm };
        // Finds a key for another algorithm now, not with the first request.
        key.assertion("", "")
            .map_err(|_| format!("the private key is not one for {algorithm:?}"))?;
        Ok(key)
    }

    /// An assertion that we are `client_id`, for one use at `issuer`.
    fn assertion(&self, client_id: &str, issuer: &str) -> Result<String, AuthError> {
        let seconds = now() / 1000;
        let claims = json!({
            "iss": client_id, "sub": client_id, "aud": issuer, "jti": pkce::random()?,
            "iat": seconds, "exp": seconds + 60,
        });
        let signed = jsonwebtoken::encode(&Header::new(self.algorithm), &claims, &self.key);
        signed.map_err(|error| AuthError::Login(format!("cannot sign an assertion: {error}")))
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

const PKCS8: &str = "PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";

/// The bytes of a key in PEM.
fn der(pem: &str, label: &str) -> Result<Vec<u8>, String> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let body = pem.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
    let body: Option<String> = body.map(|(body, _)| body.split_whitespace().collect());
    let bytes = body.and_then(|body| STANDARD.decode(body).ok());
    bytes.ok_or_else(|| format!("invalid private key (expected PEM with `{begin}`)"))
}

/// The PKCS #1 key in a PKCS #8 one: after a version and an algorithm. Spec: RFC 5208 5.
fn rsa_inside(pkcs8: &[u8]) -> Option<&[u8]> {
    const INTEGER: u8 = 0x02;
    const OCTETS: u8 = 0x04;
    const SEQUENCE: u8 = 0x30;
    let (info, _) = element(pkcs8, SEQUENCE)?;
    let (_, rest) = element(info, INTEGER)?;
    let (_, rest) = element(rest, SEQUENCE)?;
    element(rest, OCTETS).map(|(key, _)| key)
}

/// The content of a DER element with this tag, and the bytes after it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // The low bits are the number of length bytes; 0x80 means an indefinite length.
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length)).flatten()
}

/// The parameters of a token request, and its header.
#[derive(Debug, Default)]
pub(crate) struct Form {
    pub(crate) pairs: Vec<(&'static str, String)>,
    pub(crate) authorization: Option<HeaderValue>,
}

impl Form {
    pub(crate) fn new(grant_type: &str) -> Self {
        Self { pairs: vec![("grant_type", grant_type.to_owned())], authorization: None }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.pairs.push((name, value.into()));
        self
    }

    pub(crate) fn with_some(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn with_resource(self, resource: &str) -> Self {
        if resource.is_empty() { self } else { self.with("resource", resource) }
    }

    pub(crate) fn with_scopes(self, scopes: &[String]) -> Self {
        if scopes.is_empty() { self } else { self.with("scope", scopes.join(" ")) }
    }

    pub(crate) fn body(&self) -> Bytes {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(&self.pairs).finish().into()
    }

    /// Authenticates the request, in a way that the server offers.
    pub(crate) fn signed(
        mut self,
        client: &Registration,
        key: Option<&ClientKey>,
        metadata: &ServerMetadata,
    ) -> Result<Self, AuthError> {
        if let Some(key) = key {
            const JWT: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            let assertion = key.assertion(&client.client_id, &metadata.issuer)?;
            return Ok(self
                .with("client_id", &client.client_id)
                .with("client_assertion_type", JWT)
                .with("client_assertion", assertion));
        }
        match (method(client, metadata), &client.client_secret) {
            ("client_secret_basic", Some(secret)) => {
                let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encode(&client.client_id), encode(secret));
                let mut value =
                    HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                        .map_err(|_| AuthError::Login("invalid client secret".to_owned()))?;
                value.set_sensitive(true);
                self.authorization = Some(value);
                Ok(self)
            }
            ("client_secret_post", Some(secret)) => {
                Ok(self.with("client_id", &client.client_id).with("client_secret", secret))
            }
            _ => Ok(self.with("client_id", &client.client_id)),
        }
    }
}

const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";

/// How a registration authenticates its requests.
fn method<'a>(client: &'a Registration, metadata: &'a ServerMetadata) -> &'a str {
    let offered = metadata.token_endpoint_auth_methods_supported.as_deref();
    let offers = |name: &str| offered.is_none_or(|all| all.iter().any(|method| method == name));
    match (&client.method, &client.client_secret) {
        (_, None) => "none",
        (Some(agreed), Some(_)) => agreed,
        (None, Some(_)) if offers(BASIC) => BASIC,
        (None, Some(_)) if offers(POST) => POST,
        (None, Some(_)) => "none",
    }
}

/// Whether the redirect leads to a program on the user's machine.
fn is_native(redirect_uri: &str) -> bool {
    let url = Url::parse(redirect_uri).ok();
    url.is_some_and(|url| {
        matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
            && url.scheme() == "http"
    })
}

/// The request for a registration.
pub(crate) fn registration_request(settings: &OAuthSettings, metadata: &ServerMetadata) -> Value {
    let native = is_native(&settings.redirect_uri);
    // A program on a user's machine cannot keep a secret.
    let preferred = if native { ["none", BASIC, POST] } else { [BASIC, POST, "none"] };
    let offered = metadata.token_endpoint_auth_methods_supported.as_deref();
    let method = match offered {
        None => preferred[0],
        Some(offered) => {
            let mut all = preferred.into_iter();
            all.find(|name| offered.iter().any(|method| method == name)).unwrap_or("none")
        }
    };
    json!({
        "client_name": settings.name,
        "redirect_uris": [settings.redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": if native { "native" } else { "web" },
    })
}

#[cfg(test)]
mod tests {
    use super::super::settings::Grant;
    use super::*;

    fn offering(methods: &[&str]) -> ServerMetadata {
        let methods = methods.iter().map(ToString::to_string).collect();
        ServerMetadata {
            token_endpoint_auth_methods_supported: Some(methods),
            ..ServerMetadata::by_default("https://as.example")
        }
    }

    fn signed(client: &Registration, methods: &[&str]) -> Form {
        Form::new("x").signed(client, None, &offering(methods)).unwrap()
    }

    #[test]
    fn a_secret_is_shown_in_the_way_that_the_server_offers() {
        let client = Registration::new("a:b", Some("s e/c".into()));
        let basic = signed(&client, &[POST, BASIC]);
        let header = basic.authorization.unwrap();
        assert!(header.is_sensitive());
        let decoded = STANDARD.decode(header.to_str().unwrap().strip_prefix("Basic ").unwrap());
        assert_eq!(decoded.unwrap(), b"a%3Ab:s+e%2Fc");
        let post = signed(&client, &[POST]);
        assert!(post.authorization.is_none());
        assert_eq!(
            post.pairs[1..],
            [("client_id", "a:b".into()), ("client_secret", "s e/c".into())]
        );
        assert_eq!(signed(&client, &["none"]).pairs[1..], [("client_id", "a:b".into())]);
        let public = Registration::new("p", None);
        assert_eq!(signed(&public, &[BASIC]).pairs[1..], [("client_id", "p".into())]);
        let agreed = Registration { method: Some(POST.into()), ..client };
        assert_eq!(signed(&agreed, &[BASIC, POST]).pairs.len(), 3);
    }

    #[test]
    fn we_register_as_what_we_are() {
        let mut settings = OAuthSettings::new(Grant::Code);
        settings.redirect_uri = "http://127.0.0.1:7/callback".into();
        let native = registration_request(&settings, &offering(&[BASIC, "none"]));
        assert_eq!(native["application_type"], "native");
        assert_eq!(native["token_endpoint_auth_method"], "none");
        settings.redirect_uri = "https://sabir.example/connect/callback".into();
        let web = registration_request(&settings, &offering(&["none", POST]));
        assert_eq!(web["application_type"], "web");
        assert_eq!(web["token_endpoint_auth_method"], POST);
    }

    #[test]
    fn an_algorithm_without_a_private_key_is_refused() {
        assert!(ClientKey::from_pem("", "HS256").unwrap_err().contains("ES256"));
        assert!(ClientKey::from_pem("", "none").unwrap_err().contains("unknown algorithm"));
        assert!(ClientKey::from_pem("nonsense", "ES256").unwrap_err().contains("private key"));
    }

    #[test]
    fn rsa_keys_are_read_in_both_formats() {
        use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
        use aws_lc_rs::rsa::{KeyPair, KeySize};
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let pkcs8: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let inside = rsa_inside(pkcs8.as_ref()).unwrap();
        for (label, bytes) in [(PKCS8, pkcs8.as_ref()), (PKCS1, inside)] {
            let body = STANDARD.encode(bytes);
            let pem = format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
            for algorithm in ["RS256", "PS384"] {
                ClientKey::from_pem(&pem, algorithm).unwrap();
            }
            assert!(ClientKey::from_pem(&pem, "ES256").is_err());
        }
        // Every truncated key is refused.
        for end in 0..pkcs8.as_ref().len() {
            assert_eq!(rsa_inside(&pkcs8.as_ref()[..end]), None, "{end}");
        }
    }
}
