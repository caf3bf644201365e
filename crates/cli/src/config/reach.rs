//! What outgoing requests may reach, how they authenticate, and their limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use sabir_client::{ApiTokens, Grant, OAuthSettings, Registration};
use sabir_openapi::{KeyPlace, is_absolute};
use sabir_outbound::{Addresses, HostPattern, HttpClient, PlainHttp, Policy, Redirects};
use sabir_sources::http::{self, Credential, Secret, SenderSettings, UserLogin, host_of};
use sabir_sources::login::LoginServer;
use serde::Deserialize;
use toml::Spanned;

use super::file::Seal;
use super::mistake::{Mistake, RELATIVE, Text};
use super::sources::OpenContext;
use super::upstream_auth::{self, AuthPlan, Login};
use super::values::{duration, positive, size, variable};

/// An entry of `auth`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auth {
    r#type: Spanned<String>,
    scheme: Option<String>,
    env: Option<Spanned<String>>,
    file: Option<Spanned<String>>,
    name: Option<String>,
    r#in: Option<Spanned<String>>,
    prefix: Option<String>,
    user: Option<String>,
    token_url: Option<Spanned<String>>,
    client_id: Option<String>,
    scopes: Option<Vec<String>>,
    issuer: Option<Spanned<String>>,
    authorization_url: Option<Spanned<String>>,
    resource: Option<String>,
    #[serde(default)]
    shared: bool,
    folder: Option<String>,
}

impl Auth {
    /// Whether each user logs in.
    fn is_login(&self) -> bool {
        self.r#type.get_ref() == "login"
    }
}

/// The keys of a request or an API that concern outgoing requests.
pub(super) struct Reach<'f> {
    /// The request or the API, for error messages.
    pub(super) owner: &'f str,
    /// URLs in the file: their hosts are allowed.
    pub(super) urls: Vec<&'f str>,
    pub(super) hosts: Option<&'f Vec<Spanned<String>>>,
    pub(super) private: Option<bool>,
    pub(super) auth: Option<&'f Vec<Auth>>,
    pub(super) timeout: Option<&'f Spanned<String>>,
    pub(super) max_response: Option<&'f Spanned<String>>,
    pub(super) concurrency: Option<&'f Spanned<usize>>,
    pub(super) call_time: Option<Duration>,
    /// The name and the URL under which users log in, if there can be logins.
    pub(super) login_at: Option<(&'f str, &'f str)>,
    pub(super) seal: &'f Seal,
}

/// How requests are sent, as decided.
pub(super) struct SettledReach {
    pub(super) sender: SenderSettings,
    /// The logins of users, not opened yet.
    pub(super) login: Option<ApiLogin>,
}

/// The logins of users at an API.
pub(super) struct ApiLogin {
    scheme: Option<String>,
    pub(super) login: Login,
}

impl ApiLogin {
    /// Opens the place where credentials are kept.
    pub(super) fn open(self, context: &OpenContext) -> Result<http::Auth, Mistake> {
        let Login { server, plan } = self.login;
        let login = UserLogin::new(plan.open(context.connect(), context.cluster())?, server);
        Ok(http::Auth { scheme: self.scheme, credential: Credential::User(Arc::new(login)) })
    }
}

impl Reach<'_> {
    /// Settles the keys.
    pub(super) fn settle(&self, text: &Text<'_>) -> Result<SettledReach, Mistake> {
        let (logins, auth): (Vec<_>, Vec<_>) =
            self.auth.into_iter().flatten().partition(|auth| auth.is_login());
        let issuers = auth.iter().filter_map(|auth| auth.token_url.as_ref());
        let issuers = issuers.map(|url| url.get_ref().as_str());
        let urls: Vec<&str> = self.urls.iter().copied().chain(issuers).collect();
        let policy = self.policy_for(&urls, text)?;
        let mut settings = SenderSettings { policy, ..SenderSettings::default() };
        settings.auth.extend(auth.iter().filter_map(|auth| text.checked(self.auth(auth, text))));
        self.limit(&mut settings, text);
        let login = match logins[..] {
            [] => None,
            [auth] => Some(self.login(auth, &settings.policy, text)?),
            [_, second, ..] => {
                let what = format!("{}: auth: more than one login (expected one)", self.owner);
                return Err(text.mistake(second.r#type.span(), what));
            }
        };
        Ok(SettledReach { sender: settings, login })
    }

    /// Settles the limits. Mistakes are reported.
    pub(super) fn limit(&self, settings: &mut SenderSettings, text: &Text<'_>) {
        text.set(&mut settings.timeout, self.checked_timeout(text));
        if let Some(size) = text.checked(size(self.max_response, text)).flatten() {
            settings.max_response = size as u64;
        }
        text.set(&mut settings.concurrency, positive(self.concurrency, text));
    }

    fn checked_timeout(&self, text: &Text<'_>) -> Result<Option<Duration>, Mistake> {
        let timeout = duration(self.timeout, text)?;
        let Some((written, time)) = self.timeout.zip(timeout) else { return Ok(None) };
        let wrong = |what: String| text.mistake(written.span(), format!("{}: {what}", self.owner));
        if time.is_zero() {
            return Err(wrong("timeout must be greater than zero".to_owned()));
        }
        if let Some(limit) = self.call_time.filter(|limit| time > *limit) {
            let what = format!("timeout is longer than `call_time` (limit {limit:?})");
            return Err(wrong(what).hint("set a longer `call_time` in [limits]"));
        }
        Ok(timeout)
    }

    /// What may be reached without credentials.
    pub(super) fn policy(&self, text: &Text<'_>) -> Result<Policy, Mistake> {
        self.policy_for(&self.urls, text)
    }

    /// The hosts that the file names. An address of this machine or of a private network is allowed
    /// if the file names it.
    fn policy_for(&self, urls: &[&str], text: &Text<'_>) -> Result<Policy, Mistake> {
        let mut policy = Policy {
            plain_http: PlainHttp::Loopback,
            redirects: Redirects::Follow,
            ..Policy::default()
        };
        let mut named: Vec<&str> = Vec::new();
        for url in urls {
            named.extend(host_of(url));
            if url.starts_with("http://") && !is_loopback(host_of(url).unwrap_or_default()) {
                policy.plain_http = PlainHttp::Allowed;
            }
        }
        for host in named.iter() {
            policy.hosts.extend(HostPattern::parse(host));
        }
        for host in self.hosts.into_iter().flatten() {
            let pattern = HostPattern::parse(host.get_ref());
            let pattern = pattern.map_err(|_| {
                text.invalid(host, "host", "e.g. \"api.example.com\", \"*.example.com\"")
            })?;
            policy.hosts.push(pattern);
            named.push(host.get_ref());
        }
        policy.addresses =
            if self.private == Some(true) || named.iter().any(|host| is_private(host)) {
                Addresses::Any
            } else if named.iter().any(|host| is_loopback(host)) {
                Addresses::PublicAndLoopback
            } else {
                Addresses::Public
            };
        Ok(policy)
    }

    fn auth(&self, file: &Auth, text: &Text<'_>) -> Result<http::Auth, Mistake> {
        let wrong =
            |what: &str| text.mistake(file.r#type.span(), format!("{}: auth: {what}", self.owner));
        let Some(secret) = self.secret(file, text)? else {
            return Err(wrong("expected `env` or `file`, which refer to the secret"));
        };
        let secret = Secret::new(&secret);
        let credential = match file.r#type.get_ref().as_str() {
            "bearer" => Credential::Bearer(secret),
            "basic" => {
                let user = file.user.clone().ok_or_else(|| wrong("basic needs a `user`"))?;
                Credential::Basic { user, password: secret }
            }
            "api_key" => {
                let place = match file.r#in.as_ref().map(|place| place.get_ref().as_str()) {
                    None | Some("header") => KeyPlace::Header,
                    Some("query") => KeyPlace::Query,
                    Some("cookie") => KeyPlace::Cookie,
                    Some(_) => {
                        return Err(wrong("`in` must be \"header\", \"query\" or \"cookie\""));
                    }
                };
                let name = file.name.clone().ok_or_else(|| wrong("api_key needs a `name`"))?;
                let prefix = file.prefix.clone().unwrap_or_default();
                Credential::Key { place, name, prefix, secret }
            }
            "oauth2" => {
                let url =
                    file.token_url.as_ref().ok_or_else(|| wrong("oauth2 needs a `token_url`"))?;
                let id =
                    file.client_id.clone().ok_or_else(|| wrong("oauth2 needs a `client_id`"))?;
                if !is_absolute(url.get_ref()) {
                    return Err(text.invalid(url, "URL", "https://…"));
                }
                let scopes = file.scopes.clone().unwrap_or_default();
                Credential::client(url.get_ref().as_str(), id, secret, scopes)
            }
            _ => {
                let types = "\"bearer\", \"basic\", \"api_key\", \"oauth2\" or \"login\"";
                return Err(text.invalid(&file.r#type, "type", types));
            }
        };
        Ok(http::Auth { scheme: file.scheme.clone(), credential })
    }

    /// A login of each user, with `type = "login"`.
    fn login(&self, file: &Auth, policy: &Policy, text: &Text<'_>) -> Result<ApiLogin, Mistake> {
        let place = file.r#type.span();
        let wrong =
            |what: &str| text.mistake(place.clone(), format!("{}: auth: {what}", self.owner));
        let (name, url) = self
            .login_at
            .ok_or_else(|| wrong("a login needs `base_url`, where the tokens are sent"))?;
        let endpoints = match (&file.issuer, &file.authorization_url, &file.token_url) {
            (_, Some(authorization), Some(token)) => Some((authorization, token)),
            (Some(_), None, None) => None,
            _ => {
                let expected = "expected `issuer`, or `authorization_url` and `token_url`";
                return Err(wrong(&format!("a login needs an authorization server ({expected})")));
            }
        };
        let urls = [&file.issuer, &file.authorization_url, &file.token_url];
        if let Some(bad) = urls.into_iter().flatten().find(|url| !is_absolute(url.get_ref())) {
            return Err(text.invalid(bad, "URL", "https://…"));
        }
        if endpoints.is_some() && file.client_id.is_none() {
            return Err(wrong("`authorization_url` needs a `client_id`, registered there"));
        }
        let mut settings = OAuthSettings::new(Grant::Code);
        let secret = self.secret(file, text)?;
        settings.client = file.client_id.clone().map(|id| Registration::new(id, secret));
        settings.issuer = file.issuer.as_ref().map(|issuer| issuer.get_ref().clone());
        settings.scopes = file.scopes.clone().unwrap_or_default();
        let owned = |(authorization, token): (&Spanned<String>, &Spanned<String>)| {
            (authorization.get_ref().clone(), token.get_ref().clone())
        };
        let (endpoints, resource) = (endpoints.map(owned), file.resource.clone());
        settings.api = Some(ApiTokens { endpoints, resource });
        let http = HttpClient::new(policy.clone()).map_err(|error| wrong(&error.to_string()))?;
        let server = LoginServer { name: name.to_owned(), url: url.to_owned(), http };
        let folder = upstream_auth::folder(file.folder.as_deref(), text);
        let plan = AuthPlan {
            settings,
            folder: folder.ok_or_else(|| wrong(upstream_auth::NO_FOLDER))?,
            has_folder: file.folder.is_some(),
            key: upstream_auth::key(self.seal, text),
            is_shared: file.shared,
            place: text.place(place.clone()),
        };
        Ok(ApiLogin { scheme: file.scheme.clone(), login: Login { server, plan } })
    }

    /// The secret that `env` or `file` refers to, if there is one.
    fn secret(&self, auth: &Auth, text: &Text<'_>) -> Result<Option<String>, Mistake> {
        let owner = self.owner;
        match (&auth.env, &auth.file) {
            (Some(name), None) => variable(name, text).map(Some),
            (None, Some(path)) => {
                let secret = text.read_secret(path.get_ref());
                let secret = secret.map_err(|error| {
                    let what = format!("{owner}: auth: cannot read `{}`: {error}", path.get_ref());
                    text.mistake(path.span(), what).hint(RELATIVE)
                })?;
                Ok(Some(secret.trim().to_owned()))
            }
            (None, None) => Ok(None),
            (Some(_), Some(path)) => {
                let what = format!("{owner}: auth: expected either `env` or `file`");
                Err(text.mistake(path.span(), what))
            }
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Whether a host is a private address, written as a number.
fn is_private(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    match name.parse() {
        Ok(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
        Err(_) => false,
    }
}
