//! Token introspection: asks the issuer about an opaque token. Spec: RFC 7662.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sabir_outbound::HttpClient;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::issuer::{Issuer, Unavailable, limits};
use crate::settings::Introspection;

/// Concurrent requests. Further callers wait for their turn.
const MAX_AT_ONCE: usize = 32;

/// Asks an issuer about opaque tokens.
#[derive(Debug)]
pub(crate) struct Introspector {
    pub(crate) issuer: Arc<Issuer>,
    client: HttpClient,
    settings: Introspection,
    turns: Semaphore,
}

/// The answer: the claims of the token, and their JSON; `None` if the token is not valid.
pub(crate) type Told = Option<(Map<String, Value>, String)>;

impl Introspector {
    pub(crate) fn new(issuer: Arc<Issuer>, client: HttpClient, settings: Introspection) -> Self {
        Self { issuer, client, settings, turns: Semaphore::new(MAX_AT_ONCE) }
    }

    /// Asks the issuer about a token.
    pub(crate) async fn ask(&self, token: &str) -> Result<Told, Unavailable> {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.map_err(|_| Unavailable)?;
        let url = match &self.settings.url {
            Some(url) => url.clone(),
            None => self.issuer.metadata().await?.introspection.clone().ok_or_else(|| {
                let issuer = self.issuer.url();
                tracing::warn!("issuer {issuer}: its metadata has no `introspection_endpoint`");
                Unavailable
            })?,
        };
        self.send(&url, token).await.map_err(|reason| {
            tracing::warn!("introspection at {url}: {reason}");
            Unavailable
        })
    }

    async fn send(&self, url: &str, token: &str) -> Result<Told, String> {
        let body = format!("token={}&token_type_hint=access_token", encoded(token));
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .header(header::AUTHORIZATION, self.credentials()?)
            .body(Bytes::from(body))
            .map_err(|error| error.to_string())?;
        let response = self.client.send(request, &limits()).await.map_err(|e| e.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("the answer is {} (expected 200)", response.status()));
        }
        let body = response.into_body().read().await.map_err(|error| error.to_string())?;
        let text = String::from_utf8(body.into()).map_err(|error| error.to_string())?;
        let claims: Map<String, Value> =
            serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let is_active = claims.get("active").and_then(Value::as_bool).unwrap_or(false);
        Ok(is_active.then_some((claims, text)))
    }

    fn credentials(&self) -> Result<HeaderValue, String> {
        let Introspection { client_id, client_secret, .. } = &self.settings;
        let pair = format!("{}:{}", encoded(client_id), encoded(client_secret));
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
        let mut value = value.map_err(|error| error.to_string())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
