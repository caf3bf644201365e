//! How we authenticate to an API: keys, passwords, tokens, and tokens that a server issues to us.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue};
use sabir_openapi::{KeyPlace, encode_query};
use sabir_outbound::{HttpClient, Limits};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::login::UserLogin;

/// A secret. It is never printed.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// A secret without white space at its ends.
    pub fn new(secret: &str) -> Self {
        Self(secret.trim().into())
    }

    /// The secret itself.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// How we authenticate.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A secret under a name.
    Key {
        /// Where it is sent.
        place: KeyPlace,
        /// The name of the header, parameter or cookie.
        name: String,
        /// The text before the secret, such as `Token `.
        prefix: String,
        /// The secret.
        secret: Secret,
    },
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token.
    Bearer(Secret),
    /// OAuth 2: a token that we get with our own credentials.
    Client(Arc<ClientCredentials>),
    /// OAuth 2: the token of the user who calls.
    User(Arc<UserLogin>),
}

/// The client credentials flow of OAuth 2 (RFC 6749, 4.4).
#[derive(Debug)]
pub struct ClientCredentials {
    token_url: String,
    id: String,
    secret: Secret,
    scopes: Vec<String>,
    token: Mutex<Option<Token>>,
}

#[derive(Clone, Debug)]
struct Token {
    value: Secret,
    until: Instant,
}

/// A credential, and the scheme of the description that it is for.
#[derive(Clone, Debug)]
pub struct Auth {
    /// Sent only to operations that name this scheme. `None`: to all.
    pub scheme: Option<String>,
    /// The credential.
    pub credential: Credential,
}

/// A token is renewed this long before it expires.
const EARLY: Duration = Duration::from_secs(30);

/// How long a token is used if its server does not say.
const UNSTATED: Duration = Duration::from_secs(300);

impl Credential {
    /// Client credentials for the server at `token_url`.
    pub fn client(
        token_url: impl Into<String>,
        id: impl Into<String>,
        secret: Secret,
        scopes: Vec<String>,
    ) -> Self {
        let (token_url, id) = (token_url.into(), id.into());
        let token = Mutex::new(None);
        Self::Client(Arc::new(ClientCredentials { token_url, id, secret, scopes, token }))
    }

    /// Adds the credential to a request. The error is for the operator.
    pub(super) async fn apply(
        &self,
        request: &mut http::Request<Bytes>,
        client: &HttpClient,
    ) -> Result<(), String> {
        match self {
            Self::Basic { user, password } => {
                let pair = STANDARD.encode(format!("{user}:{}", password.reveal()));
                set(request, AUTHORIZATION, &format!("Basic {pair}"))
            }
            Self::Bearer(secret) => set(request, AUTHORIZATION, &bearer(secret.reveal())),
            Self::Client(flow) => {
                let token = flow.token(client).await?;
                set(request, AUTHORIZATION, &bearer(token.reveal()))
            }
            // The token is added where the request is sent.
            Self::User(_) => Ok(()),
            Self::Key { place, name, prefix, secret } => {
                let value = format!("{prefix}{}", secret.reveal());
                match place {
                    KeyPlace::Header => {
                        let name = HeaderName::from_bytes(name.as_bytes())
                            .map_err(|_| format!("`{name}` is not the name of a header"))?;
                        set(request, name, &value)
                    }
                    KeyPlace::Cookie => {
                        let known = request.headers().get(COOKIE).and_then(|c| c.to_str().ok());
                        let own = format!("{name}={}", encode_query(&value));
                        let all = known.map_or(own.clone(), |known| format!("{known}; {own}"));
                        set(request, COOKIE, &all)
                    }
                    KeyPlace::Query => add_to_query(request, name, &value),
                }
            }
        }
    }

    /// The logins of users, if it is [`Credential::User`].
    pub(super) fn login(&self) -> Option<&Arc<UserLogin>> {
        match self {
            Self::User(login) => Some(login),
            _ => None,
        }
    }

    /// Forgets a token that the API refused, by the header that it was sent in. Returns whether
    /// another attempt would have another token.
    pub(super) async fn forget(&self, refused: &HeaderValue) -> bool {
        let Self::Client(flow) = self else { return false };
        let is_refused = |token: &mut Token| bearer(token.value.reveal()).as_bytes() == refused;
        // A concurrent call may have renewed it already.
        flow.token.lock().await.take_if(is_refused);
        true
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn set(request: &mut http::Request<Bytes>, name: HeaderName, value: &str) -> Result<(), String> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| "the secret contains a character that a header cannot have".to_owned())?;
    value.set_sensitive(true);
    request.headers_mut().insert(name, value);
    Ok(())
}

fn add_to_query(request: &mut http::Request<Bytes>, name: &str, value: &str) -> Result<(), String> {
    let url = request.uri().to_string();
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}{}={}", encode_query(name), encode_query(value));
    *request.uri_mut() =
        url.parse().map_err(|_| "the secret does not fit into a URL".to_owned())?;
    Ok(())
}

impl ClientCredentials {
    /// The current token, or a new one. Concurrent calls wait for the same one.
    async fn token(&self, client: &HttpClient) -> Result<Secret, String> {
        let mut known = self.token.lock().await;
        if let Some(token) = known.as_ref().filter(|token| token.until > Instant::now()) {
            return Ok(token.value.clone());
        }
        let token = self.request(client).await?;
        let value = token.value.clone();
        *known = Some(token);
        Ok(value)
    }

    async fn request(&self, client: &HttpClient) -> Result<Token, String> {
        #[derive(Deserialize)]
        struct Issued {
            access_token: String,
            expires_in: Option<f64>,
        }
        let failed = |what: &dyn fmt::Display| format!("cannot get a token: {what}");
        let mut form = "grant_type=client_credentials".to_owned();
        if !self.scopes.is_empty() {
            form += &format!("&scope={}", encode_query(&self.scopes.join(" ")));
        }
        let (id, secret) = (encode_query(&self.id), encode_query(self.secret.reveal()));
        let pair = STANDARD.encode(format!("{id}:{secret}"));
        let mut request = http::Request::post(self.token_url.as_str())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .map_err(|error| failed(&error))?;
        set(&mut request, AUTHORIZATION, &format!("Basic {pair}"))?;
        let limits = Limits { body: 64 << 10, ..Limits::default() };
        let response = client.send(request, &limits).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let body = response.into_body().read().await.map_err(|error| failed(&error))?;
        if !status.is_success() {
            return Err(failed(&format!("HTTP {status}")));
        }
        let issued: Issued = serde_json::from_slice(&body)
            .map_err(|_| failed(&"the answer has no `access_token`"))?;
        let seconds = issued.expires_in.filter(|seconds| (0.0..1e9).contains(seconds));
        let lifetime = seconds.map_or(UNSTATED, Duration::from_secs_f64);
        let until = Instant::now() + lifetime.saturating_sub(EARLY);
        Ok(Token { value: Secret::new(&issued.access_token), until })
    }
}
