//! The metadata and the keys of an issuer: fetched when they are needed, and kept.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, StatusCode};
use jsonwebtoken::Header;
use sabir_outbound::{HttpClient, Limits};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::keys::KeySet;

/// Older keys are fetched again when they are next used, so that withdrawn keys are noticed.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// The longest pause after a failed fetch: the issuer may be starting.
const RETRY: Duration = Duration::from_secs(2);

/// The bounds of one exchange with an issuer.
pub(crate) fn limits() -> Limits {
    Limits {
        head: Duration::from_secs(10),
        idle: Some(Duration::from_secs(10)),
        total: Some(Duration::from_secs(15)),
        body: 1 << 20,
    }
}

/// An issuer of tokens.
#[derive(Debug)]
pub(crate) struct Issuer {
    url: String,
    client: HttpClient,
    /// The shortest time between two fetches. Only after the first one the keys may be fetched
    /// again at once: the issuer may have changed them just then.
    interval: Duration,
    state: ArcSwap<State>,
    /// One fetch at a time.
    fetching: Mutex<()>,
}

/// The known metadata and keys of an issuer.
#[derive(Clone, Debug, Default)]
struct State {
    metadata: Option<Arc<Metadata>>,
    keys: Arc<KeySet>,
    /// When the keys were fetched.
    fetched: Option<Instant>,
    /// When the next fetch may begin.
    next: Option<Instant>,
}

impl State {
    fn is_old(&self) -> bool {
        self.fetched.is_none_or(|at| at.elapsed() > MAX_AGE) && self.may_fetch()
    }

    fn may_fetch(&self) -> bool {
        self.next.is_none_or(|next| next <= Instant::now())
    }
}

/// The metadata of an issuer. Spec: RFC 8414, OpenID Connect Discovery.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// The whole document.
    pub(crate) text: Bytes,
    keys: Option<String>,
    /// The introspection endpoint.
    pub(crate) introspection: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    jwks_uri: Option<String>,
    introspection_endpoint: Option<String>,
}

/// The issuer gave no valid answer. The reason is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable;

impl Issuer {
    pub(crate) fn new(url: &str, client: HttpClient, interval: Duration) -> Arc<Self> {
        Arc::new(Self {
            url: url.to_owned(),
            client,
            interval,
            state: ArcSwap::default(),
            fetching: Mutex::default(),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The keys for a token, if they are cached. Old keys are used while they are fetched again.
    pub(crate) fn known_keys(self: &Arc<Self>, header: &Header) -> Option<Arc<KeySet>> {
        let state = self.state.load_full();
        if !state.keys.fits(header) {
            return None;
        }
        let keys = state.keys.clone();
        if state.is_old()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let issuer = self.clone();
            runtime.spawn(async move { issuer.refresh(&state).await });
        }
        Some(keys)
    }

    /// The keys for a token. They are fetched if no cached key fits the token.
    pub(crate) async fn keys(
        self: &Arc<Self>,
        header: &Header,
    ) -> Result<Arc<KeySet>, Unavailable> {
        if let Some(keys) = self.known_keys(header) {
            return Ok(keys);
        }
        let before = self.state.load_full();
        let state = self.refresh(&before).await;
        if state.fetched.is_none() { Err(Unavailable) } else { Ok(state.keys.clone()) }
    }

    /// The metadata. It is fetched if it is not cached.
    pub(crate) async fn metadata(self: &Arc<Self>) -> Result<Arc<Metadata>, Unavailable> {
        let mut state = self.state.load_full();
        if state.metadata.is_none() {
            state = self.refresh(&state).await;
        }
        state.metadata.clone().ok_or(Unavailable)
    }

    /// Fetches metadata and keys, unless another caller has done so since `before` was read, or the
    /// last fetch was too recent. A failure keeps the cached state.
    async fn refresh(&self, before: &Arc<State>) -> Arc<State> {
        let _one = self.fetching.lock().await;
        let known = self.state.load_full();
        let is_new = !Arc::ptr_eq(before, &known);
        if is_new || !known.may_fetch() {
            return known;
        }
        let state = match self.fetch().await {
            Ok((metadata, keys)) => {
                let (metadata, keys) = (Some(Arc::new(metadata)), Arc::new(keys));
                let fetched = Some(Instant::now());
                let next = known.fetched.and(fetched).map(|now| now + self.interval);
                State { metadata, keys, fetched, next }
            }
            Err(reason) => {
                tracing::warn!("issuer {}: {reason}", self.url);
                let next = Some(Instant::now() + self.interval.min(RETRY));
                State { next, ..State::clone(&known) }
            }
        };
        let state = Arc::new(state);
        self.state.store(state.clone());
        state
    }

    async fn fetch(&self) -> Result<(Metadata, KeySet), String> {
        let metadata = self.discover().await?;
        // An issuer of opaque tokens may have no keys.
        let Some(url) = metadata.keys.as_deref() else { return Ok((metadata, KeySet::default())) };
        let json = self.get(url).await?.ok_or("its keys were not found")?;
        let keys = KeySet::parse(&json).map_err(|error| format!("invalid keys: {error}"))?;
        Ok((metadata, keys))
    }

    /// Looks for the metadata at each of its places, in the order of the specification.
    async fn discover(&self) -> Result<Metadata, String> {
        for place in places(&self.url) {
            let Some(text) = self.get(&place).await? else { continue };
            let document: Document = serde_json::from_slice(&text)
                .map_err(|error| format!("invalid metadata at {place}: {error}"))?;
            // Otherwise one issuer could issue tokens in the name of another.
            if document.issuer != self.url {
                let named = &document.issuer;
                return Err(format!("its metadata names the issuer `{named}` (expected this one)"));
            }
            let (keys, introspection) = (document.jwks_uri, document.introspection_endpoint);
            return Ok(Metadata { text, keys, introspection });
        }
        Err("no metadata at any of its well-known places".to_owned())
    }

    /// Fetches a document; `None` if the issuer answers with a client error.
    async fn get(&self, url: &str) -> Result<Option<Bytes>, String> {
        let request = Request::get(url).header("accept", "application/json").body(Bytes::new());
        let request = request.map_err(|_| format!("invalid URL `{url}`"))?;
        let response = self.client.send(request, &limits()).await.map_err(|e| e.to_string())?;
        match response.status() {
            StatusCode::OK => {
                let body = response.into_body().read().await;
                body.map(Some).map_err(|error| error.to_string())
            }
            status if status.is_client_error() => Ok(None),
            status => Err(format!("{url} answers {status}")),
        }
    }
}

/// The places of an issuer's metadata.
fn places(issuer: &str) -> Vec<String> {
    let Ok(url) = Url::parse(issuer) else { return Vec::new() };
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_metadata() {
        assert_eq!(
            places("https://a.example/realms/x/"),
            [
                "https://a.example/.well-known/oauth-authorization-server/realms/x",
                "https://a.example/.well-known/openid-configuration/realms/x",
                "https://a.example/realms/x/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places("http://127.0.0.1:9"),
            [
                "http://127.0.0.1:9/.well-known/oauth-authorization-server",
                "http://127.0.0.1:9/.well-known/openid-configuration",
            ]
        );
    }
}
