//! Requests to authorization servers. Servers name their URLs, so only public addresses are
//! reached, over `https`, and no redirect is followed. A server on this machine may name another
//! one there.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use sabir_outbound::{Addresses, Error, HttpClient, Limits, PlainHttp, Policy, Redirects};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

use super::AuthError;
use super::challenge::Challenge;
use super::identity::{Form, Registration};
use super::proof::{NONCE, PROOF, ProofKey, WANTS_NONCE};
use super::tokens::{TokenAnswer, TokenRefusal};

/// Bytes of a document or an answer. A longer one is an error.
const MAX_BODY: u64 = 256 << 10;
const TIME: Duration = Duration::from_secs(15);

/// Reaches a server and its authorization servers.
#[derive(Debug)]
pub(crate) struct Web {
    pub(crate) server: Url,
    /// For the server's own origin.
    own: HttpClient,
    /// For URLs of other origins that the server names.
    named: HttpClient,
    /// For the authorization server, which the operator may have chosen.
    others: HttpClient,
    /// The last nonce of the authorization server.
    nonce: Mutex<Option<String>>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Web {
    /// `is_chosen`: the operator named the authorization server.
    pub(crate) fn new(server: Url, own: HttpClient, is_chosen: bool) -> Result<Self, AuthError> {
        let is_local = match server.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        let named = Policy {
            addresses: match is_local {
                true => Addresses::PublicAndLoopback,
                false => Addresses::Public,
            },
            plain_http: if is_local { PlainHttp::Loopback } else { PlainHttp::Never },
            redirects: Redirects::Never,
            roots: own.policy().roots.clone(),
            ..Policy::default()
        };
        let (addresses, plain_http) = (Addresses::Any, PlainHttp::Loopback);
        let chosen = is_chosen.then(|| Policy { addresses, plain_http, ..named.clone() });
        let client = |policy| HttpClient::new(policy).map_err(|error| failure(&error));
        let named = client(named)?;
        let others = chosen.map(client).transpose()?.unwrap_or_else(|| named.clone());
        Ok(Self { server, own, named, others, nonce: Mutex::default() })
    }

    fn client(&self, url: &str) -> &HttpClient {
        if self.is_own(url) { &self.own } else { &self.others }
    }

    fn is_own(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| url.origin() == self.server.origin())
    }

    /// Whether a person may be sent to the URL.
    pub(crate) fn check(&self, url: &str) -> Result<(), AuthError> {
        self.client(url).check(url).map_err(|error| failure(&error))
    }

    /// The document at a URL; `None` if the status is not 200.
    pub(crate) async fn document<T: DeserializeOwned>(
        &self,
        url: &str,
    ) -> Result<Option<T>, AuthError> {
        self.read(url, self.client(url)).await
    }

    /// The same for a URL that the server names. It must not make us reach a private network, even
    /// if the operator chose an issuer there.
    pub(crate) async fn named_document<T: DeserializeOwned>(
        &self,
        url: &str,
    ) -> Result<Option<T>, AuthError> {
        self.read(url, if self.is_own(url) { &self.own } else { &self.named }).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        url: &str,
        client: &HttpClient,
    ) -> Result<Option<T>, AuthError> {
        let (body, headers) = (Bytes::new(), HeaderMap::new());
        let answer = send_with(client, Method::GET, url, body, headers).await?;
        if answer.status != StatusCode::OK {
            return Ok(None);
        }
        let read = serde_json::from_slice(&answer.body);
        read.map(Some).map_err(|error| {
            AuthError::Untrusted(format!("the document at `{url}` is not valid: {error}"))
        })
    }

    /// The challenge of the server to a request without a token.
    pub(crate) async fn challenge(&self) -> Result<Challenge, AuthError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
        let answer = self.send(Method::POST, self.server.as_str(), ping, headers).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED => Ok(Challenge::read(&answer.headers)),
            _ => Ok(Challenge::default()),
        }
    }

    pub(crate) async fn register(
        &self,
        url: &str,
        request: &Value,
    ) -> Result<Registration, AuthError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answer = self.send(Method::POST, url, request.to_string().into(), headers).await?;
        if !answer.status.is_success() {
            return Err(answer.refusal());
        }
        serde_json::from_slice(&answer.body)
            .map_err(|error| AuthError::Unreachable(format!("invalid registration: {error}")))
    }

    /// Requests a token, which is bound to the key if there is one and the server supports it.
    pub(crate) async fn token(
        &self,
        url: &str,
        form: &Form,
        key: Option<&ProofKey>,
    ) -> Result<TokenAnswer, AuthError> {
        for is_again in [false, true] {
            let mut headers = HeaderMap::new();
            let encoded = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(CONTENT_TYPE, encoded);
            if let Some(authorization) = &form.authorization {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            if let Some(key) = key {
                let nonce = self.nonce.lock().unwrap_or_else(PoisonError::into_inner).clone();
                headers.insert(PROOF, key.prove("POST", url, nonce.as_deref(), None)?);
            }
            let answer = self.send(Method::POST, url, form.body(), headers).await?;
            if let Some(nonce) = answer.headers.get(NONCE).and_then(|nonce| nonce.to_str().ok()) {
                let mut kept = self.nonce.lock().unwrap_or_else(PoisonError::into_inner);
                *kept = Some(nonce.to_owned());
            }
            if answer.status.is_success() {
                let read: TokenAnswer = serde_json::from_slice(&answer.body)
                    .map_err(|error| AuthError::Unreachable(format!("invalid answer: {error}")))?;
                return Ok(read);
            }
            match answer.refusal() {
                AuthError::Refused { error, .. }
                    if error == WANTS_NONCE && key.is_some() && !is_again => {}
                refusal => return Err(refusal),
            }
        }
        Err(AuthError::Unreachable("the authorization server always wants another nonce".into()))
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        body: Bytes,
        headers: HeaderMap,
    ) -> Result<Answer, AuthError> {
        send_with(self.client(url), method, url, body, headers).await
    }
}

async fn send_with(
    client: &HttpClient,
    method: Method,
    url: &str,
    body: Bytes,
    headers: HeaderMap,
) -> Result<Answer, AuthError> {
    let invalid = |_| AuthError::Untrusted(format!("invalid URL `{url}`"));
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url.parse().map_err(invalid)?;
    *request.headers_mut() = headers;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().entry(ACCEPT).or_insert(json);
    let limits = Limits { head: TIME, idle: Some(TIME), total: Some(TIME), body: MAX_BODY };
    let response = client.send(request, &limits).await;
    let response = response.map_err(|error| failure(&error))?;
    let (head, body) = response.into_parts();
    // The head of a refusal has the challenge; its body may be an endless stream.
    let body = match head.status {
        StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED => body.read().await.unwrap_or_default(),
        _ => body.read().await.map_err(|error| failure(&error))?,
    };
    Ok(Answer { status: head.status, headers: head.headers, body })
}

impl Answer {
    fn refusal(&self) -> AuthError {
        match serde_json::from_slice::<TokenRefusal>(&self.body) {
            Ok(TokenRefusal { error, error_description: description }) => {
                AuthError::Refused { error, description }
            }
            Err(_) => {
                let status = self.status.as_u16();
                AuthError::Unreachable(format!("the authorization server: HTTP status {status}"))
            }
        }
    }
}

fn failure(error: &Error) -> AuthError {
    match error.is_refused() {
        true => AuthError::Untrusted(error.to_string()),
        false => AuthError::Unreachable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operator has chosen an issuer, which may be in a private network. The server may not
    /// name a place there.
    #[tokio::test]
    async fn a_server_does_not_make_us_reach_a_private_network() {
        let own = HttpClient::new(Policy::trusting()).unwrap();
        let server = Url::parse("https://wiki.example/mcp").unwrap();
        for is_chosen in [false, true] {
            let web = Web::new(server.clone(), own.clone(), is_chosen).unwrap();
            for url in ["http://127.0.0.1:1/x", "https://10.0.0.1/x", "https://[::1]/x"] {
                let found = web.named_document::<Value>(url).await;
                assert!(matches!(found, Err(AuthError::Untrusted(_))), "{url}: {found:?}");
                assert_eq!(web.check(url).is_ok(), is_chosen, "{url}");
            }
        }
    }
}
