//! How tokens are checked.

use std::str::FromStr as _;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use url::{Host, Url};

use crate::scopes::Grants;

/// How tokens are checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The URL of the endpoint as clients write it. It is an accepted audience, and is in the
    /// metadata.
    pub resource: String,
    /// The issuers whose tokens are accepted, as the tokens name them.
    pub issuers: Vec<String>,
    /// Audiences that are accepted beside `resource`: some issuers cannot write a URL.
    pub audiences: Vec<String>,
    /// The scopes that a client should request at first.
    pub scopes: Vec<String>,
    /// The signature algorithms that are accepted.
    pub algorithms: Vec<String>,
    /// How far the clocks of the issuers may be from ours.
    pub leeway: Duration,
    /// The scopes that a token's scopes and claims grant.
    pub grants: Grants,
    /// How the first issuer is asked about opaque tokens; without it they are refused.
    pub introspection: Option<Introspection>,
    /// The shortest time between two fetches of an issuer's keys.
    pub key_interval: Duration,
    /// How long a verdict is kept; never longer than the token is valid.
    pub cache_time: Duration,
    /// Whether callers carry their token, for sources that exchange it.
    pub lends_tokens: bool,
}

/// How an issuer is asked about opaque tokens. Spec: RFC 7662.
#[derive(Clone)]
pub struct Introspection {
    /// The introspection endpoint; if `None`, that of the issuer's metadata.
    pub url: Option<String>,
    /// Our id there.
    pub client_id: String,
    /// Our secret there.
    pub client_secret: String,
}

impl std::fmt::Debug for Introspection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Introspection").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// Why settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// The list of issuers is empty.
    #[error("no issuer (expected at least one)")]
    NoIssuer,
    /// A URL cannot be used.
    #[error("invalid {what} `{url}` (expected an https URL, or http on this machine)")]
    Url {
        /// `issuer`, `resource` or `introspection URL`.
        what: &'static str,
        /// As written.
        url: String,
    },
    /// An algorithm is unknown, or needs a shared secret.
    #[error("invalid algorithm `{0}` (expected e.g. RS256, ES256 or EdDSA)")]
    Algorithm(String),
    /// A scope cannot be written in a challenge.
    #[error("invalid scope `{0}` (expected printable characters without spaces and quotes)")]
    Scope(String),
    /// Clients decide themselves whether they request refresh tokens.
    #[error("scope `offline_access` (expected only scopes of this server)")]
    OfflineAccess,
    /// Requests cannot be sent.
    #[error("outgoing requests: {0}")]
    Outgoing(String),
}

impl Settings {
    /// The settings for one issuer, with all defaults.
    pub fn new(resource: impl Into<String>, issuer: impl Into<String>) -> Self {
        let algorithms = ALGORITHMS.iter().map(|name| (*name).to_owned());
        Self {
            resource: resource.into(),
            issuers: vec![issuer.into()],
            audiences: Vec::new(),
            scopes: Vec::new(),
            algorithms: algorithms.collect(),
            leeway: Duration::from_secs(30),
            grants: Grants::default(),
            introspection: None,
            key_interval: Duration::from_secs(30),
            cache_time: Duration::from_secs(300),
            lends_tokens: false,
        }
    }

    /// Checks everything that needs no request to an issuer.
    pub fn check(&self) -> Result<(), BadSettings> {
        if self.issuers.is_empty() {
            return Err(BadSettings::NoIssuer);
        }
        for issuer in &self.issuers {
            check_url("issuer", issuer)?;
        }
        check_url("resource", &self.resource)?;
        if let Some(url) = self.introspection.as_ref().and_then(|asked| asked.url.as_ref()) {
            check_url("introspection URL", url)?;
        }
        self.algorithms()?;
        self.scopes.iter().try_for_each(|scope| check_scope(scope))
    }

    pub(crate) fn algorithms(&self) -> Result<Vec<Algorithm>, BadSettings> {
        let bad = |name: &String| BadSettings::Algorithm(name.clone());
        let parsed = self.algorithms.iter().map(|name| algorithm(name).ok_or_else(|| bad(name)));
        parsed.collect()
    }
}

/// The algorithms that are accepted by default: all that need no shared secret.
const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/// The algorithm of that name, unless it needs a shared secret: each verifier could then sign
/// tokens.
fn algorithm(name: &str) -> Option<Algorithm> {
    Algorithm::from_str(name).ok().filter(|_| ALGORITHMS.contains(&name))
}

/// Whether a signature algorithm of this name can be accepted.
pub fn is_algorithm(name: &str) -> bool {
    algorithm(name).is_some()
}

/// Checks that a challenge may name a scope.
pub fn check_scope(scope: &str) -> Result<(), BadSettings> {
    // RFC 6749, 3.3.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    match scope {
        "offline_access" => Err(BadSettings::OfflineAccess),
        scope if !scope.is_empty() && scope.bytes().all(is_plain) => Ok(()),
        scope => Err(BadSettings::Scope(scope.to_owned())),
    }
}

fn check_url(what: &'static str, text: &str) -> Result<(), BadSettings> {
    let bad = || BadSettings::Url { what, url: text.to_owned() };
    let url = Url::parse(text).map_err(|_| bad())?;
    let is_local = match url.host() {
        None => return Err(bad()),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    };
    let is_allowed = url.scheme() == "https" || (url.scheme() == "http" && is_local);
    let is_plain = url.username().is_empty() && url.password().is_none();
    if is_allowed && is_plain && url.fragment().is_none() { Ok(()) } else { Err(bad()) }
}

/// A URL in the form that is compared: lower case where case does not matter, no trailing slash.
/// `None` for an invalid URL, one without a host, or one with a fragment.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|url| url.has_host() && url.fragment().is_none())?;
    let text = String::from(url);
    Some(text.strip_suffix('/').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut Settings)) -> Result<(), String> {
        let mut settings = Settings::new("https://mcp.example/mcp", "https://login.example");
        change(&mut settings);
        settings.check().map_err(|bad| bad.to_string())
    }

    #[test]
    fn unsafe_settings_are_refused() {
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|s| s.issuers = vec!["http://localhost:9/".into()]), Ok(()));
        for bad in ["http://login.example", "login.example", "https://u:p@x", "ftp://x", ""] {
            assert!(with(|s| s.issuers = vec![bad.into()]).is_err(), "{bad}");
            assert!(with(|s| s.resource = bad.into()).is_err(), "{bad}");
        }
        assert!(with(|s| s.issuers.clear()).is_err());
        for bad in ["HS256", "none", "RS1", ""] {
            assert!(with(|s| s.algorithms = vec![bad.into()]).is_err(), "{bad}");
        }
        for bad in ["offline_access", "a b", "a\"b", ""] {
            assert!(with(|s| s.scopes = vec![bad.into()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn urls_are_compared_in_one_form() {
        let ours = canonical("https://mcp.example/mcp").unwrap();
        for same in ["HTTPS://MCP.Example/mcp", "https://mcp.example:443/mcp/"] {
            assert_eq!(canonical(same).as_ref(), Some(&ours), "{same}");
        }
        for other in ["https://mcp.example/MCP", "https://mcp.example", "http://mcp.example/mcp"] {
            assert_ne!(canonical(other).as_ref(), Some(&ours), "{other}");
        }
        assert_eq!(canonical("https://mcp.example"), canonical("https://mcp.example/"));
        assert_eq!(canonical("https://mcp.example/mcp#x"), None);
        assert_eq!(canonical("api"), None);
    }
}
