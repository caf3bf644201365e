//! What outgoing requests may reach, how they authenticate, and their limits.

use std::net::IpAddr;
use std::time::Duration;

use sabir_openapi::{KeyPlace, is_absolute};
use sabir_outbound::{Addresses, HostPattern, PlainHttp, Policy, Redirects};
use sabir_sources::http::{self, Credential, Secret, SenderSettings, host_of};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, RELATIVE, Text};
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
}

impl Reach<'_> {
    /// Settles the keys.
    pub(super) fn settle(&self, text: &Text<'_>) -> Result<SenderSettings, Mistake> {
        let mut settings =
            SenderSettings { policy: self.policy(text)?, ..SenderSettings::default() };
        for auth in self.auth.into_iter().flatten() {
            settings.auth.push(self.auth(auth, &mut settings.policy, text)?);
        }
        if let (Some(written), Some(timeout)) = (self.timeout, duration(self.timeout, text)?) {
            let wrong =
                |what: String| text.mistake(written.span(), format!("{}: {what}", self.owner));
            if timeout.is_zero() {
                return Err(wrong("timeout must be greater than zero".to_owned()));
            }
            if let Some(limit) = self.call_time.filter(|limit| timeout > *limit) {
                let what = format!("timeout is longer than `call_time` (limit {limit:?})");
                return Err(wrong(what).hint("set a longer `call_time` in [limits]"));
            }
            settings.timeout = timeout;
        }
        let size = size(self.max_response, text)?;
        settings.max_response = size.map_or(settings.max_response, |size| size as u64);
        settings.concurrency = positive(self.concurrency, text)?.unwrap_or(settings.concurrency);
        Ok(settings)
    }

    /// The hosts that the file names. An address of this machine or of a private network is allowed
    /// if the file names it.
    pub(super) fn policy(&self, text: &Text<'_>) -> Result<Policy, Mistake> {
        let mut policy = Policy {
            plain_http: PlainHttp::Loopback,
            redirects: Redirects::Follow,
            ..Policy::default()
        };
        let mut named: Vec<&str> = Vec::new();
        for url in &self.urls {
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

    fn auth(
        &self,
        file: &Auth,
        policy: &mut Policy,
        text: &Text<'_>,
    ) -> Result<http::Auth, Mistake> {
        let wrong =
            |what: &str| text.mistake(file.r#type.span(), format!("{}: auth: {what}", self.owner));
        let secret = self.secret(file, text)?;
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
                policy
                    .hosts
                    .extend(host_of(url.get_ref()).map(HostPattern::parse).into_iter().flatten());
                let scopes = file.scopes.clone().unwrap_or_default();
                Credential::client(url.get_ref().as_str(), id, secret, scopes)
            }
            _ => {
                let types = "\"bearer\", \"basic\", \"api_key\" or \"oauth2\"";
                return Err(text.invalid(&file.r#type, "type", types));
            }
        };
        Ok(http::Auth { scheme: file.scheme.clone(), credential })
    }

    /// The secret that `env` or `file` refers to.
    fn secret(&self, auth: &Auth, text: &Text<'_>) -> Result<Secret, Mistake> {
        let owner = self.owner;
        match (&auth.env, &auth.file) {
            (Some(name), None) => variable(name, text).map(|secret| Secret::new(&secret)),
            (None, Some(path)) => {
                let secret =
                    std::fs::read_to_string(text.resolve(path.get_ref())).map_err(|error| {
                        let what =
                            format!("{owner}: auth: cannot read `{}`: {error}", path.get_ref());
                        text.mistake(path.span(), what).hint(RELATIVE)
                    })?;
                Ok(Secret::new(&secret))
            }
            _ => {
                let what =
                    format!("{owner}: auth: expected `env` or `file`, which refer to the secret");
                Err(text.mistake(auth.r#type.span(), what))
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
