//! The credentials of one user at one server: added to requests, renewed, replaced when refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use sabir_outbound::HttpClient;
use tokio::time::Instant;
use url::Url;

use super::AuthError;
use super::challenge::Challenge;
use super::endpoint::Web;
use super::keep::{Keep, Kept};
use super::keeper::Keeper;
use super::proof::{NONCE, PROOF, ProofKey, WANTS_NONCE};
use super::request::Asked;
use super::settings::{Grant, OAuthSettings};
use super::tokens::{Tokens, now};

/// The credentials of one user at one server.
///
/// Any number of requests may use it at once: one of them gets or renews a token, and the others
/// wait for it. Processes that share the credentials take turns as well.
#[derive(Debug)]
pub struct OAuth {
    pub(super) settings: OAuthSettings,
    pub(super) web: Web,
    pub(super) keep: Arc<Keeper>,
    pub(super) subject: Mutex<Option<String>>,
    current: Mutex<Option<Arc<Tokens>>>,
    turn: tokio::sync::Mutex<Turn>,
    /// The token that was refused when only a login could help.
    hopeless: Mutex<Option<String>>,
    /// The last nonce of the server.
    nonce: Mutex<Option<String>>,
}

/// The state of requests that get or renew a token, one at a time.
#[derive(Debug, Default)]
struct Turn {
    /// The token that replaced a refused one. If it is refused as well, renewing does not help.
    forced: Option<String>,
    /// The last failure to renew, which is reused for a while.
    failed: Option<(Instant, AuthError)>,
}

/// The credentials that a request was sent with.
#[derive(Debug, Default)]
pub(crate) struct Used {
    tokens: Option<Arc<Tokens>>,
    /// The nonce in the proof of the key.
    nonce: Option<String>,
}

/// How long after a failure a token is not renewed again.
const FAILURE_TIME: Duration = Duration::from_secs(2);

/// A login in progress: the state while a person is at the authorization server.
#[derive(Clone, Debug)]
pub struct Login {
    /// Where to send the person.
    pub url: Url,
    /// The parameter `state` of the redirect that ends the login.
    pub state: String,
    asked: Asked,
}

impl OAuth {
    /// Credentials for the server at `url`, which is reached with `http`.
    pub fn new(
        url: &str,
        http: HttpClient,
        settings: OAuthSettings,
        keep: Arc<dyn Keep>,
    ) -> Result<Self, AuthError> {
        let invalid = || AuthError::Untrusted(format!("invalid URL `{url}`"));
        let mut server = Url::parse(url).map_err(|_| invalid())?;
        let web = if server.scheme() == "ws" { "http" } else { "https" };
        if server.scheme().starts_with("ws") {
            server.set_scheme(web).map_err(|()| invalid())?;
        }
        Ok(Self {
            web: Web::new(server, http, settings.issuer.is_some() || settings.api.is_some())?,
            subject: Mutex::new(settings.subject.clone()),
            settings,
            keep: Keeper::new(keep),
            current: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            hopeless: Mutex::default(),
            nonce: Mutex::default(),
        })
    }

    /// Replaces the token that is exchanged.
    pub fn set_subject(&self, subject: Option<String>) {
        *lock(&self.subject) = subject;
    }

    /// Whether requests can be made without a person, as far as is known.
    pub async fn is_ready(&self) -> bool {
        if self.settings.grant != Grant::Code {
            return true;
        }
        let Ok(Some(tokens)) = self.fresh().await else { return false };
        lock(&self.hopeless).as_deref() != Some(&tokens.access)
    }

    /// Begins a login. Each has its own secrets; any number may be in progress.
    pub async fn begin_login(&self) -> Result<Login, AuthError> {
        let challenge = match &self.settings.api {
            Some(_) => Challenge::default(),
            None => self.web.challenge().await?,
        };
        let wanted = self.keep.load().await.map_err(AuthError::Keep)?.wanted;
        let asked = self.ask(&challenge, &wanted).await?;
        Ok(Login { url: asked.url()?, state: asked.state.clone(), asked })
    }

    /// Ends a login with the query of the redirect. The credentials are kept.
    pub async fn finish_login(&self, login: &Login, query: &str) -> Result<(), AuthError> {
        let tokens = self.redeem(&login.asked, query).await?;
        let mut turn = self.turn.lock().await;
        *turn = Turn::default();
        self.store(tokens).await
    }

    /// Ends a login, and returns the access token without keeping it: it only shows who logged in.
    pub async fn token_of_login(&self, login: &Login, query: &str) -> Result<String, AuthError> {
        self.redeem(&login.asked, query).await.map(|tokens| tokens.access)
    }

    /// Forgets the token and the registrations that we made, here and where they are kept. The next
    /// login registers again.
    pub async fn forget(&self) -> Result<(), AuthError> {
        let _turn = self.turn.lock().await;
        self.change(|kept| {
            kept.tokens = None;
            kept.registrations.clear();
        })
        .await?;
        self.publish(None);
        Ok(())
    }

    /// The token, as it is kept.
    pub async fn kept(&self) -> Result<Option<Tokens>, AuthError> {
        self.keep.load().await.map(|kept| kept.tokens).map_err(AuthError::Keep)
    }

    /// Adds the token to a request, if there is one.
    pub(crate) async fn apply(&self, request: &mut Request<Bytes>) -> Result<Used, AuthError> {
        let Some(tokens) = self.fresh().await? else { return Ok(Used::default()) };
        let key = tokens.key.as_deref().map(ProofKey::read).transpose()?;
        let scheme = if key.is_some() { "DPoP" } else { "Bearer" };
        let invalid = |_| AuthError::Unreachable("the access token is not valid".to_owned());
        let value = HeaderValue::try_from(format!("{scheme} {}", tokens.access));
        let mut value = value.map_err(invalid)?;
        value.set_sensitive(true);
        let mut nonce = None;
        if let Some(key) = key {
            nonce.clone_from(&lock(&self.nonce));
            let (method, url) = (request.method().as_str(), request.uri().to_string());
            let proof = key.prove(method, &url, nonce.as_deref(), Some(&tokens.access))?;
            request.headers_mut().insert(PROOF, proof);
        }
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(Used { tokens: Some(tokens), nonce })
    }

    /// Handles a refusal of a request with the credentials `used`. `true`: the request may be sent again.
    pub(crate) async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        used: &Used,
    ) -> Result<bool, AuthError> {
        let challenge = Challenge::read(headers);
        if status == StatusCode::FORBIDDEN && !challenge.wants_more_scopes() {
            return Ok(false);
        }
        let Used { tokens: used, nonce } = used;
        let used = used.as_deref();
        let is_bound = used.is_some_and(|tokens| tokens.key.is_some());
        if is_bound && challenge.error.as_deref() == Some(WANTS_NONCE) {
            return Ok(self.take_nonce(headers, nonce.as_deref()));
        }
        let mut turn = self.turn.lock().await;
        // A kept token that has expired and cannot be renewed helps no more than none.
        let is_other = |tokens: &Tokens| {
            tokens.is_valid(now()) && used.is_none_or(|used| used.access != tokens.access)
        };
        // Another request has got a token meanwhile, in this process or in another.
        if self.current().is_some_and(|tokens| is_other(&tokens)) {
            return Ok(true);
        }
        let kept = self.keep.load().await.map_err(AuthError::Keep)?;
        if let Some(tokens) = kept.tokens.clone().filter(|tokens| is_other(tokens)) {
            self.publish(Some(tokens));
            return Ok(true);
        }
        if let Some(used) = used {
            if lock(&self.hopeless).as_deref() == Some(&used.access) {
                return Err(AuthError::LoginNeeded);
            }
            // A token that has expired meanwhile is refused for that reason.
            let is_forced = turn.forced.as_deref() == Some(&used.access) && used.is_valid(now());
            if status == StatusCode::UNAUTHORIZED
                && !is_forced
                && let Some(next) = self.renew_kept(used).await?
            {
                turn.forced = Some(next.access.clone());
                return Ok(true);
            }
            if status == StatusCode::FORBIDDEN {
                let has = |scope: &String| used.scopes.contains(scope);
                if challenge.scopes.iter().all(has) {
                    return Err(AuthError::Scopes(challenge.scopes.join(" ")));
                }
            }
        }
        let held = used.filter(|_| status == StatusCode::FORBIDDEN);
        let held = held.map(|used| used.scopes.clone()).unwrap_or_default();
        let got = self.get(&challenge, &held).await;
        if let (Err(AuthError::LoginNeeded), Some(used)) = (&got, used) {
            *lock(&self.hopeless) = Some(used.access.clone());
            self.want(held, challenge.scopes).await?;
        }
        got.map(|()| true)
    }

    /// Keeps the nonce of the server. `true` if it is another than that of the refused request.
    fn take_nonce(&self, headers: &HeaderMap, used: Option<&str>) -> bool {
        let Some(nonce) = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok()) else {
            return false;
        };
        *lock(&self.nonce) = Some(nonce.to_owned());
        used != Some(nonce)
    }

    /// A token that is valid long enough for a request; `None` if there is none.
    async fn fresh(&self) -> Result<Option<Arc<Tokens>>, AuthError> {
        let is_fresh = |tokens: &Arc<Tokens>| tokens.is_fresh(now());
        if let Some(tokens) = self.current().filter(is_fresh) {
            return Ok(Some(tokens));
        }
        let mut turn = self.turn.lock().await;
        if let Some(tokens) = self.current().filter(is_fresh) {
            return Ok(Some(tokens));
        }
        let kept = self.keep.load().await.map_err(AuthError::Keep)?;
        let Some(tokens) = kept.tokens else {
            self.publish(None);
            return Ok(None);
        };
        if tokens.is_fresh(now()) {
            return Ok(Some(self.publish_some(tokens)));
        }
        let usable = |tokens: Tokens| tokens.is_valid(now()).then(|| self.publish_some(tokens));
        if let Some((at, error)) = &turn.failed
            && at.elapsed() < FAILURE_TIME
        {
            return usable(tokens).map(Some).ok_or_else(|| error.clone());
        }
        // Boxed: every request asks for a fresh token, and few renew it.
        match Box::pin(self.renew_kept(&tokens)).await {
            Ok(Some(next)) => Ok(Some(next)),
            Ok(None) => Ok(usable(tokens)),
            Err(error) => {
                turn.failed = Some((Instant::now(), error.clone()));
                usable(tokens).map(Some).ok_or(error)
            }
        }
    }

    /// Renews a token without a person, unless another process has done so; `None` if a person must
    /// log in.
    async fn renew_kept(&self, old: &Tokens) -> Result<Option<Arc<Tokens>>, AuthError> {
        let _locked = self.keep.lock().await.map_err(AuthError::Keep)?;
        let mut kept = self.keep.load().await.map_err(AuthError::Keep)?;
        if let Some(tokens) = kept.tokens.clone().filter(|tokens| tokens.access != old.access) {
            return Ok(Some(self.publish_some(tokens)));
        }
        let Some(next) = self.renew(old, &mut kept).await? else { return Ok(None) };
        // Saved before it is used: the old refresh token may be invalid by now.
        kept.tokens = Some(next.clone());
        self.keep.save_renewed(&kept, old, &next).await;
        Ok(Some(self.publish_some(next)))
    }

    /// Gets a token for the first time, or for more scopes.
    async fn get(&self, challenge: &Challenge, held: &[String]) -> Result<(), AuthError> {
        let tokens = match (&self.settings.grant, &self.settings.visit) {
            (Grant::Code, None) => return Err(AuthError::LoginNeeded),
            (Grant::Code, Some(visit)) => {
                let asked = self.ask(challenge, held).await?;
                let query = visit.visit(asked.url()?).await.map_err(AuthError::Login)?;
                self.redeem(&asked, &query).await?
            }
            _ => {
                let found = self.discover(challenge).await?;
                let scopes = self.scopes(&found, held);
                let (metadata, resource) = (found.metadata, found.resource);
                let client = self.registration(&metadata).await?;
                self.without_person(client, metadata, resource, scopes).await?
            }
        };
        self.store(tokens).await
    }

    async fn store(&self, tokens: Tokens) -> Result<(), AuthError> {
        self.change(|kept| {
            kept.tokens = Some(tokens.clone());
            kept.wanted.clear();
        })
        .await?;
        self.publish(Some(tokens));
        Ok(())
    }

    /// Remembers the scopes that the next login requests.
    async fn want(&self, held: Vec<String>, missing: Vec<String>) -> Result<(), AuthError> {
        self.change(|kept| {
            for scope in held.into_iter().chain(missing) {
                if !kept.wanted.contains(&scope) {
                    kept.wanted.push(scope);
                }
            }
        })
        .await
    }

    pub(super) async fn change(&self, change: impl FnOnce(&mut Kept)) -> Result<(), AuthError> {
        let _locked = self.keep.lock().await.map_err(AuthError::Keep)?;
        let mut kept = self.keep.load().await.map_err(AuthError::Keep)?;
        change(&mut kept);
        self.keep.save(&kept).await.map_err(AuthError::Keep)
    }

    fn current(&self) -> Option<Arc<Tokens>> {
        lock(&self.current).clone()
    }

    fn publish(&self, tokens: Option<Tokens>) {
        *lock(&self.current) = tokens.map(Arc::new);
    }

    fn publish_some(&self, tokens: Tokens) -> Arc<Tokens> {
        let tokens = Arc::new(tokens);
        *lock(&self.current) = Some(tokens.clone());
        tokens
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use http::header::WWW_AUTHENTICATE;
    use sabir_outbound::Policy;

    use super::*;
    use crate::auth::metadata::ServerMetadata;
    use crate::auth::{InMemory, Registration};

    /// Credentials with a token that is bound to a key.
    async fn bound() -> OAuth {
        let tokens = Tokens {
            metadata: ServerMetadata::default(),
            client: Registration::new("me", None),
            resource: String::new(),
            scopes: Vec::new(),
            access: "token".into(),
            issued: 0,
            expires: None,
            refresh: None,
            previous: None,
            key: Some(ProofKey::generate().unwrap().write()),
        };
        let keep = InMemory::default();
        keep.save(&Kept { tokens: Some(tokens), ..Kept::default() }).await.unwrap();
        let http = HttpClient::new(Policy::trusting()).unwrap();
        let settings = OAuthSettings::new(Grant::Code);
        OAuth::new("https://s.example/mcp", http, settings, Arc::new(keep)).unwrap()
    }

    #[tokio::test]
    async fn all_requests_that_lack_the_nonce_are_repeated() {
        let auth = bound().await;
        let apply = async || {
            let mut request = Request::post("https://s.example/mcp").body(Bytes::new()).unwrap();
            auth.apply(&mut request).await.unwrap()
        };
        let mut headers = HeaderMap::new();
        let challenge = HeaderValue::from_static("DPoP error=\"use_dpop_nonce\"");
        headers.insert(WWW_AUTHENTICATE, challenge);
        headers.insert(NONCE, HeaderValue::from_static("n1"));
        let refused = async |used| auth.refused(StatusCode::UNAUTHORIZED, &headers, used).await;
        let at_once = [apply().await, apply().await];
        for used in &at_once {
            assert_eq!(refused(used).await, Ok(true));
        }
        assert_eq!(refused(&apply().await).await, Ok(false), "this one has the nonce");
    }
}
