//! The allowed servers, and the limits of an exchange.

use std::net::IpAddr;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use url::{Host, Url};

use crate::address::{is_loopback, is_public};
use crate::error::Error;

/// The servers that may be reached. The default allows every host of the Internet over `https`.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The only hosts that may be named; all if empty.
    pub hosts: Vec<HostPattern>,
    /// The addresses that may be connected to.
    pub addresses: Addresses,
    /// Where `http` may be used.
    pub plain_http: PlainHttp,
    /// The redirects that are followed.
    pub redirects: Redirects,
    /// Certificate authorities beside those of the system.
    pub roots: Vec<CertificateDer<'static>>,
}

/// The addresses that may be connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Only public addresses.
    #[default]
    Public,
    /// Public addresses, and this machine.
    PublicAndLoopback,
    /// Every address, private networks included.
    Any,
}

/// Where `http` may be used instead of `https`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Nowhere.
    #[default]
    Never,
    /// On this machine: `localhost` and loopback addresses.
    Loopback,
    /// Everywhere.
    Allowed,
}

/// The redirects that are followed, at most ten in a row. A target is checked like a request. A
/// redirect from `https` to `http` is never followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirects {
    /// None: the caller receives the response.
    #[default]
    Never,
    /// Those to the same scheme, host and port; another is an error.
    SameOrigin,
    /// All. Secrets are not sent to another origin: `Authorization`, `Cookie`, and headers that are
    /// marked as sensitive.
    Follow,
}

/// A host name, or `*.` and the end of host names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

/// The limits of one exchange.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time until the head of the response, over all redirects. `Duration::MAX` means no limit.
    pub head: Duration,
    /// Time between two pieces of the body.
    pub idle: Option<Duration>,
    /// Time until the end of the body.
    pub total: Option<Duration>,
    /// Length of the body in bytes, after decompression.
    pub body: u64,
}

impl Default for Limits {
    /// A response within 30 seconds, its body within 60 seconds and of at most 16 MiB.
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            idle: Some(Duration::from_secs(30)),
            total: Some(Duration::from_secs(60)),
            body: 16 << 20,
        }
    }
}

impl Policy {
    /// The policy for servers that a person chose: also this machine and private networks, `http`
    /// on this machine only.
    pub fn trusting() -> Self {
        Self {
            addresses: Addresses::Any,
            plain_http: PlainHttp::Loopback,
            redirects: Redirects::SameOrigin,
            ..Self::default()
        }
    }

    /// Checks everything about the URL that is known before its name is resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Error> {
        let invalid = |reason| Error::Url { url: without_credentials(url), reason };
        let host = url.host().ok_or_else(|| invalid("it has no host"))?;
        let name = url.host_str().unwrap_or_default().to_owned();
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("it has credentials (use a header)"));
        }
        match (url.scheme(), self.plain_http) {
            ("https", _) | ("http", PlainHttp::Allowed) => {}
            ("http", PlainHttp::Loopback) if is_local(&host) => {}
            ("http", _) => return Err(Error::PlainHttp(name)),
            _ => return Err(invalid("unknown scheme (expected http or https)")),
        }
        if !self.hosts.is_empty() && !self.hosts.iter().any(|pattern| pattern.matches(&name)) {
            return Err(Error::Host(name));
        }
        match host {
            Host::Ipv4(address) => self.check_address(&name, address.into()),
            Host::Ipv6(address) => self.check_address(&name, address.into()),
            Host::Domain(_) => Ok(()),
        }
    }

    /// Checks an address that is about to be connected to.
    pub(crate) fn check_address(&self, host: &str, address: IpAddr) -> Result<(), Error> {
        let refused = |reason| Error::Address { host: host.to_owned(), address, reason };
        if self.plain_http == PlainHttp::Loopback && is_local_name(host) && !is_loopback(address) {
            // Otherwise `http://localhost` could be plain http to another host.
            return Err(refused("`localhost` must be this machine"));
        }
        match self.addresses {
            Addresses::Any => Ok(()),
            Addresses::PublicAndLoopback if is_loopback(address) => Ok(()),
            _ if is_public(address) => Ok(()),
            _ => Err(refused("it is not a public address")),
        }
    }
}

impl HostPattern {
    /// Reads a host name such as `api.example.com`, or `*.example.com` for every name below
    /// `example.com`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |reason| Error::Url { url: text.to_owned(), reason };
        let (star, name) = match text.strip_prefix("*.") {
            Some(rest) => ("*.", rest),
            None => ("", text),
        };
        if name.contains('*') {
            return Err(invalid("`*` may only be the first label of a host"));
        }
        // The form that URLs have: lower case, punycode, brackets around IPv6.
        let host = Host::parse(name).map_err(|_| invalid("not a host name"))?;
        Ok(Self(format!("{star}{host}")))
    }

    fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self.0.strip_prefix('*') {
            Some(end) => host.len() > end.len() && host.ends_with(end),
            None => host == self.0,
        }
    }
}

fn is_local(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => is_local_name(name),
        Host::Ipv4(address) => is_loopback((*address).into()),
        Host::Ipv6(address) => is_loopback((*address).into()),
    }
}

/// RFC 6761: names that always mean this machine.
fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// The URL as errors may show it.
pub(crate) fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for URLs that cannot have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &Policy, url: &str) -> String {
        match policy.check(&Url::parse(url).unwrap()) {
            Ok(()) => "allowed".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_default_allows_https_to_public_hosts() {
        let policy = Policy::default();
        assert_eq!(check(&policy, "https://example.com/x"), "allowed");
        assert_eq!(
            check(&policy, "http://example.com"),
            "plain http to `example.com` is not allowed (expected https)"
        );
        assert_eq!(
            check(&policy, "https://10.0.0.1"),
            "address 10.0.0.1 of host `10.0.0.1` is not allowed (it is not a public address)"
        );
        // Other spellings of 127.0.0.1.
        for url in ["https://127.1", "https://0x7f.1", "https://2130706433", "https://[::1]"] {
            assert!(check(&policy, url).contains("is not a public address"), "{url}");
        }
        assert_eq!(
            check(&policy, "ftp://example.com"),
            "invalid URL `ftp://example.com/`: unknown scheme (expected http or https)"
        );
        assert_eq!(
            check(&policy, "https://me:secret@example.com/?token=1"),
            "invalid URL `https://example.com/`: it has credentials (use a header)"
        );
    }

    #[test]
    fn plain_http_on_this_machine_only() {
        let policy = Policy::trusting();
        for url in ["http://localhost:1", "http://127.0.0.1", "http://[::1]:8", "https://10.1.1.1"]
        {
            assert_eq!(check(&policy, url), "allowed", "{url}");
        }
        assert!(check(&policy, "http://10.1.1.1").starts_with("plain http"));
        assert!(check(&policy, "http://localhost.example.com").starts_with("plain http"));
        let rebound = policy.check_address("localhost", "10.0.0.1".parse().unwrap());
        assert!(rebound.unwrap_err().to_string().contains("must be this machine"));
    }

    #[test]
    fn host_patterns() {
        let policy = |patterns: &[&str]| Policy {
            hosts: patterns.iter().map(|text| HostPattern::parse(text).unwrap()).collect(),
            ..Policy::default()
        };
        let allowed = policy(&["API.example.com", "*.wiki.example.org"]);
        for url in
            ["https://api.example.com", "https://a.wiki.example.org", "https://API.example.com."]
        {
            assert_eq!(check(&allowed, url), "allowed", "{url}");
        }
        for url in ["https://example.com", "https://wiki.example.org", "https://xapi.example.com"] {
            assert!(check(&allowed, url).starts_with("host `"), "{url}");
        }
        for bad in ["", "a b", "*", "a.*.com", "http://x"] {
            assert!(HostPattern::parse(bad).is_err(), "{bad:?}");
        }
    }
}
