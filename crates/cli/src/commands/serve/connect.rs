//! `/connect/…`: the page on which a caller logs in at an upstream.
//!
//! A link is for one caller and one upstream. Before the browser is sent to the upstream's
//! authorization server, it proves that its user is the caller: with the caller's static token, or by
//! a login at the caller's own issuer. Otherwise a caller could get another user's account at the
//! upstream by sending the link to that user. A user with a token also confirms its name, because a
//! link can contain a token. A cookie ties the steps to one browser.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, LOCATION, REFERRER_POLICY,
    SET_COOKIE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use nanoid::nanoid;
use sabir::{Authenticate, HttpSettings, NamedToken, Token};
use sabir_client::{Grant, HttpTarget, InMemory, Login, OAuth, OAuthSettings};
use sabir_sources::login::Connect;
use sabir_transports::http::{Access, Page, PageRequest, Pages};
use sabir_wire::Caller;
use serde_json::json;

use super::certificates::scheme;
use crate::config::Settings;
use crate::report::Failure;

const PREFIX: &str = "/connect/";
const CALLBACK: &str = "/connect/callback";
const PROOF: &str = "/connect/proof";
/// The query of a link that was agreed to.
const CONSENT: &str = "consent=";
/// The document about us, for authorization servers that read such documents.
const DOCUMENT: &str = "/connect/client.json";
/// How long a link can be used.
const LINK_TIME: Duration = Duration::from_secs(900);
/// Links at once. With one more, the oldest ends.
const MAX_LINKS: usize = 4096;
/// The issuer of callers with a static token.
const STATIC: &str = "token";

/// The page.
pub(super) struct ConnectPages {
    /// The origin at which browsers reach this server, once it is known.
    base: OnceLock<String>,
    tokens: Vec<NamedToken>,
    /// Whether authorization servers may read the document about us.
    has_document: bool,
    /// How callers of an issuer are recognised: they log in there, for this server.
    issuers: Vec<(String, OAuth)>,
    authenticate: Option<Arc<dyn Authenticate>>,
    links: Mutex<HashMap<String, Link>>,
}

/// A caller who should log in at an upstream.
#[derive(Clone)]
struct Link {
    caller: Caller,
    upstream: String,
    credentials: Arc<OAuth>,
    made: Instant,
    /// The cookie of the browser.
    browser: Option<String>,
    /// The secret that a browser with the caller's token must send to go on.
    consent: Option<String>,
    /// The login at the caller's own issuer.
    proof: Option<Login>,
    /// The login at the upstream.
    login: Option<Login>,
}

impl ConnectPages {
    /// The page, if any upstream needs it.
    pub(super) fn new(
        settings: &Settings,
        http: &HttpSettings,
    ) -> Result<Option<Arc<Self>>, Failure> {
        if !settings.sources.iter().any(|source| source.login().is_some()) {
            return Ok(None);
        }
        let resource = settings.auth.tokens.as_ref().map(|tokens| tokens.resource.as_str());
        let local = (http.address.ip().is_loopback() && http.address.port() != 0)
            .then(|| format!("{}://{}{}", scheme(http), http.address, http.endpoint));
        let resource = resource.filter(|url| !url.is_empty()).map(str::to_owned).or(local);
        let url = settings.page.url.clone().or_else(|| resource.clone());
        let base = url.as_deref().map(origin);
        let issuers = match (resource, &base) {
            (Some(resource), Some(base)) => proofs(settings, &resource, base)?,
            _ => Vec::new(),
        };
        Ok(Some(Arc::new(Self {
            base: base.map(OnceLock::from).unwrap_or_default(),
            tokens: http.tokens.clone(),
            has_document: settings.page.has_document,
            issuers,
            authenticate: http.authenticate.clone(),
            links: Mutex::default(),
        })))
    }

    /// Where the callers of an issuer log in.
    fn proof_of(&self, caller: &Caller) -> Option<&OAuth> {
        let mut issuers = self.issuers.iter();
        issuers.find(|(issuer, _)| issuer == caller.issuer()).map(|(_, oauth)| oauth)
    }

    /// The server listens there.
    pub(super) fn set_address(&self, scheme: &str, address: SocketAddr) {
        if address.ip().is_loopback() {
            // The file overrides the address.
            let _ = self.base.set(format!("{scheme}://{address}"));
        }
    }

    /// These pages and others.
    pub(super) fn beside(self: Arc<Self>, others: Option<Arc<dyn Pages>>) -> impl Pages + use<> {
        Both { connect: self, others }
    }

    fn base(&self) -> &str {
        self.base.get().map(String::as_str).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Option<Link> {
        let link = self.lock().get(id).cloned();
        link.filter(|link| link.made.elapsed() < LINK_TIME)
    }

    /// The link whose login, as `of` finds it, has this state.
    fn find_state(&self, state: &str, of: fn(&Link) -> Option<&Login>) -> Option<(String, Link)> {
        let links = self.lock();
        let mut links = links.iter().filter(|(_, link)| link.made.elapsed() < LINK_TIME);
        let found = links.find(|(_, link)| of(link).is_some_and(|login| login.state == state));
        found.map(|(id, link)| (id.clone(), link.clone()))
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Link)) {
        if let Some(link) = self.lock().get_mut(id) {
            change(link);
        }
    }

    /// The first step.
    async fn open(self: Arc<Self>, id: String, query: String, headers: HeaderMap) -> Page {
        let Some(link) = self.find(&id) else { return expired() };
        if link.caller.issuer() == STATIC {
            return match self.is_token_of(&headers, link.caller.subject()) {
                true => match (query.strip_prefix(CONSENT), link.browser.clone()) {
                    (None, _) => self.ask_consent(&id, &link),
                    (given, Some(browser))
                        if given == link.consent.as_deref()
                            && is_same_browser(&id, &link, &headers) =>
                    {
                        self.visit(&id, &link, browser).await
                    }
                    _ => strange(),
                },
                false => {
                    let realm = "Basic realm=\"Your token for this server, as the password\"";
                    let text = "Enter your token for this server as the password.";
                    let realm = HeaderValue::from_static(realm);
                    message(StatusCode::UNAUTHORIZED, text).with(WWW_AUTHENTICATE, realm)
                }
            };
        }
        let Some(oauth) = self.proof_of(&link.caller) else { return expired() };
        let browser = nanoid!(32);
        match oauth.begin_login().await {
            Ok(login) => {
                let page = self.redirect(&id, login.url.as_str(), &browser);
                self.change(&id, |link| {
                    (link.proof, link.browser) = (Some(login), Some(browser));
                });
                page
            }
            Err(error) => message(StatusCode::BAD_GATEWAY, &format!("Login failed: {error}.")),
        }
    }

    /// Tells the user whose token the browser has: the link may contain one.
    fn ask_consent(&self, id: &str, link: &Link) -> Page {
        let (browser, consent) = (nanoid!(32), nanoid!(32));
        let (name, upstream) = (html(link.caller.subject()), html(&link.upstream));
        let text = format!(
            "<!doctype html><title>Log in to {upstream}</title><p>The account with which you log in \
             to {upstream} will be used for the calls of <b>{name}</b> here.</p><p><a \
             href=\"{PREFIX}{id}?{CONSENT}{consent}\">I am {name}: log in to {upstream}</a></p><p>If \
             you are not {name}, close this window.</p>"
        );
        let Ok(cookie) = HeaderValue::try_from(self.cookie(id, &browser)) else { return expired() };
        self.change(id, |link| {
            (link.browser, link.consent) = (Some(browser), Some(consent));
        });
        guarded(Page::new(StatusCode::OK, "text/html; charset=utf-8", text))
            .with(SET_COOKIE, cookie)
    }

    /// Whether the password of the request is the static token of that name.
    fn is_token_of(&self, headers: &HeaderMap, name: &str) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Basic "));
        let given = given.and_then(|value| STANDARD.decode(value).ok());
        let given = given.and_then(|bytes| String::from_utf8(bytes).ok());
        let password = given.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, word)| word);
        let Some(token) = password.and_then(Token::new) else { return false };
        self.tokens.iter().any(|known| *known.name == *name && known.token.is_same_as(&token))
    }

    /// The browser was redirected from the caller's own issuer.
    async fn prove(self: Arc<Self>, query: String, headers: HeaderMap) -> Page {
        let found = self.find_state(state(&query), |link| link.proof.as_ref());
        let Some((id, link)) = found else { return expired() };
        let (Some(oauth), Some(authenticate), Some(proof)) =
            (self.proof_of(&link.caller), &self.authenticate, &link.proof)
        else {
            return expired();
        };
        if !is_same_browser(&id, &link, &headers) {
            return strange();
        }
        let token = match oauth.token_of_login(proof, &query).await {
            Ok(token) => token,
            Err(error) => {
                return message(StatusCode::FORBIDDEN, &format!("Login failed: {error}."));
            }
        };
        let authorization = format!("Bearer {token}");
        match authenticate.authenticate(Some(authorization.as_bytes())).await {
            Ok(user) if user.is_same_as(&link.caller) => {
                let browser = link.browser.clone().unwrap_or_else(|| nanoid!(32));
                self.visit(&id, &link, browser).await
            }
            _ => {
                let text = "This link is for another user than the one who is logged in.";
                message(StatusCode::FORBIDDEN, text)
            }
        }
    }

    /// Sends a browser that has proved whose it is to the upstream's authorization server.
    async fn visit(&self, id: &str, link: &Link, browser: String) -> Page {
        match link.credentials.begin_login().await {
            Ok(login) => {
                let page = self.redirect(id, login.url.as_str(), &browser);
                self.change(id, |link| {
                    (link.login, link.browser) = (Some(login), Some(browser));
                    (link.proof, link.consent) = (None, None);
                });
                page
            }
            Err(error) => {
                let text = format!("Cannot log in to {}: {error}.", link.upstream);
                message(StatusCode::BAD_GATEWAY, &text)
            }
        }
    }

    /// The browser was redirected from the upstream's authorization server.
    async fn finish(self: Arc<Self>, query: String, headers: HeaderMap) -> Page {
        let found = self.find_state(state(&query), |link| link.login.as_ref());
        let Some((id, link)) = found else { return expired() };
        let Some(login) = &link.login else { return expired() };
        if !is_same_browser(&id, &link, &headers) {
            return strange();
        }
        let upstream = &link.upstream;
        match link.credentials.finish_login(login, &query).await {
            Ok(()) => {
                self.lock().remove(&id);
                let text = format!("You are logged in to {upstream}. You can close this window.");
                message(StatusCode::OK, &text)
            }
            Err(error) => {
                let text = format!("Not logged in to {upstream}: {error}.");
                message(StatusCode::FORBIDDEN, &text)
            }
        }
    }

    /// The document about us, like a registration. Spec: OAuth Client ID Metadata Document.
    fn about(&self) -> Page {
        let Some(client_id) = document(self.base(), self.has_document) else { return expired() };
        let base = self.base();
        let document = json!({
            "client_id": client_id,
            "client_name": "Sabir",
            "redirect_uris": [format!("{base}{CALLBACK}"), format!("{base}{PROOF}")],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        });
        Page::new(StatusCode::OK, "application/json", document.to_string())
    }

    fn redirect(&self, id: &str, url: &str, browser: &str) -> Page {
        match (HeaderValue::try_from(url), HeaderValue::try_from(self.cookie(id, browser))) {
            (Ok(url), Ok(cookie)) => message(StatusCode::FOUND, "You are sent on to log in.")
                .with(LOCATION, url)
                .with(SET_COOKIE, cookie),
            _ => expired(),
        }
    }

    fn cookie(&self, id: &str, browser: &str) -> String {
        let secure = if self.base().starts_with("https://") { "; Secure" } else { "" };
        format!(
            "{}={browser}; Path=/connect; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
            cookie_name(id),
            LINK_TIME.as_secs()
        )
    }
}

impl Connect for ConnectPages {
    fn redirect_uri(&self) -> String {
        format!("{}{CALLBACK}", self.base())
    }

    fn document(&self) -> Option<String> {
        document(self.base(), self.has_document)
    }

    fn link(&self, caller: &Caller, upstream: &str, credentials: &Arc<OAuth>) -> Option<String> {
        let base = self.base.get()?;
        if caller.issuer() != STATIC && self.proof_of(caller).is_none() {
            return None;
        }
        let mut links = self.lock();
        links.retain(|_, link| link.made.elapsed() < LINK_TIME);
        // One link per caller and upstream, so that repeated logins do not displace the links of others.
        let known = links
            .iter_mut()
            .find(|(_, link)| link.caller.is_same_as(caller) && link.upstream == upstream);
        if let Some((id, link)) = known {
            (link.credentials, link.made) = (credentials.clone(), Instant::now());
            return Some(format!("{base}{PREFIX}{id}"));
        }
        if links.len() >= MAX_LINKS {
            let oldest = links.iter().min_by_key(|(_, link)| link.made).map(|(id, _)| id.clone());
            oldest.map(|id| links.remove(&id));
        }
        let id = nanoid!(32);
        links.insert(
            id.clone(),
            Link {
                caller: caller.clone(),
                upstream: upstream.to_owned(),
                credentials: credentials.clone(),
                made: Instant::now(),
                browser: None,
                consent: None,
                proof: None,
                login: None,
            },
        );
        Some(format!("{base}{PREFIX}{id}"))
    }
}

impl std::fmt::Debug for ConnectPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ConnectPages").field(&self.base()).finish()
    }
}

struct Both {
    connect: Arc<ConnectPages>,
    others: Option<Arc<dyn Pages>>,
}

impl Pages for Both {
    fn access(&self, path: &str) -> Option<Access> {
        match path.starts_with(PREFIX) {
            true => Some(Access::Everyone),
            false => self.others.as_ref()?.access(path),
        }
    }

    fn takes_post(&self, path: &str) -> bool {
        !path.starts_with(PREFIX)
            && self.others.as_ref().is_some_and(|others| others.takes_post(path))
    }

    fn get(&self, request: &PageRequest<'_>) -> Page {
        let (query, headers) = (request.query.to_owned(), request.headers.clone());
        let connect = self.connect.clone();
        match (request.path, request.path.strip_prefix(PREFIX), &self.others) {
            (CALLBACK, ..) => Page::later(connect.finish(query, headers)),
            (PROOF, ..) => Page::later(connect.prove(query, headers)),
            (DOCUMENT, ..) => connect.about(),
            (_, Some(id), _) => Page::later(connect.open(id.to_owned(), query, headers)),
            (_, None, Some(others)) => others.get(request),
            (_, None, None) => expired(),
        }
    }
}

/// How callers prove who they are, at each issuer.
fn proofs(
    settings: &Settings,
    resource: &str,
    base: &str,
) -> Result<Vec<(String, OAuth)>, Failure> {
    let issuers = settings.auth.tokens.iter().flat_map(|tokens| &tokens.issuers);
    let proof = |issuer: &String| {
        let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
        let target = HttpTarget::new(resource).map_err(|error| failed(&error))?;
        let mut oauth = OAuthSettings::new(Grant::Code);
        oauth.issuer = Some(issuer.clone());
        oauth.redirect_uri = format!("{base}{PROOF}");
        oauth.client.clone_from(&settings.page.client);
        oauth.document = document(base, settings.page.has_document);
        let oauth = OAuth::new(resource, target.http, oauth, Arc::new(InMemory::default()));
        Ok((issuer.clone(), oauth.map_err(|error| failed(&error))?))
    };
    issuers.map(proof).collect()
}

/// The URL of the document about us. Authorization servers accept only https.
fn document(base: &str, has_document: bool) -> Option<String> {
    (has_document && base.starts_with("https://")).then(|| format!("{base}{DOCUMENT}"))
}

/// The scheme, the host and the port of a URL.
fn origin(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |at| &url[..host + at]).to_owned()
}

/// The value of `state` in a query. Ours needs no decoding.
fn state(query: &str) -> &str {
    query.split('&').find_map(|pair| pair.strip_prefix("state=")).unwrap_or_default()
}

fn cookie_name(id: &str) -> String {
    format!("sabir-connect-{}", id.get(..8).unwrap_or_default())
}

fn is_same_browser(id: &str, link: &Link, headers: &HeaderMap) -> bool {
    let name = cookie_name(id);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|value| value.split(';')).map(str::trim);
    let given = cookies.find_map(|one| one.strip_prefix(&name)?.strip_prefix('='));
    given.is_some() && given == link.browser.as_deref()
}

fn expired() -> Page {
    message(StatusCode::NOT_FOUND, "This link has expired. Repeat the call to get another.")
}

fn strange() -> Page {
    message(StatusCode::FORBIDDEN, "This login was begun in another browser. Open the link again.")
}

/// A page of one sentence.
fn message(status: StatusCode, text: &str) -> Page {
    guarded(Page::new(status, "text/plain; charset=utf-8", format!("{text}\n")))
}

/// A page that runs and loads nothing, and must not be framed.
fn guarded(page: Page) -> Page {
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    page.with(CONTENT_SECURITY_POLICY, policy)
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}

/// A text within HTML.
fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
