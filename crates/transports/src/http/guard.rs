//! Checks `Host`, `Origin`, and the form of a request.
//!
//! A web page can make its visitor's browser call us, even by a name that DNS rebinds to this
//! machine. So by default we answer only to the names of this machine and to pages from it.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::{self, HeaderName};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};

use super::headers::{self, Headers};
use super::reply::{Refusal, Reply};
use super::settings::Settings;

/// Checks `Host` and `Origin`.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Only this machine can reach us.
    is_local: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    pub(crate) fn new(settings: &Settings) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self {
            is_local: settings.address.ip().is_loopback(),
            hosts: lower(&settings.hosts),
            origins: lower(&settings.origins),
        }
    }

    /// Checks that the request names a host of ours, and comes from an allowed page. `named` is the
    /// name in the request's target, if it has one.
    pub(crate) fn check_origin(
        &self,
        named: Option<&Authority>,
        version: Version,
        headers: &impl Headers,
    ) -> Result<(), Refusal> {
        let forbidden = |what| Refusal::new(StatusCode::FORBIDDEN, what);
        let named = named.map(|authority| authority.as_str().as_bytes());
        let mut hosts = named.into_iter().chain(headers.all("host")).peekable();
        if hosts.peek().is_none() && version >= Version::HTTP_11 {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "the header Host is missing"));
        }
        if !hosts.all(|host| self.knows_host(host)) {
            return Err(forbidden("this server is not known by that Host"));
        }
        let mut origins = headers.all("origin");
        if !origins.all(|origin| self.knows_origin(origin)) {
            return Err(forbidden("pages of that Origin may not call this server"));
        }
        Ok(())
    }

    fn knows_host(&self, host: &[u8]) -> bool {
        let Ok(host) = std::str::from_utf8(host) else { return false };
        let name = without_port(host);
        if self.is_local && is_this_machine(name) {
            return true;
        }
        if self.hosts.is_empty() {
            return !self.is_local;
        }
        let is_same =
            |known: &String| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name);
        self.hosts.iter().any(is_same)
    }

    fn knows_origin(&self, origin: &[u8]) -> bool {
        let Ok(origin) = std::str::from_utf8(origin) else { return false };
        let is_same = |known: &String| known == "*" || known.eq_ignore_ascii_case(origin);
        if self.origins.iter().any(is_same) {
            return true;
        }
        let scheme_and_host = origin.split_once("://");
        self.is_local
            && scheme_and_host.is_some_and(|(scheme, host)| {
                matches!(scheme, "http" | "https") && is_this_machine(without_port(host))
            })
    }
}

/// `host:port` without the port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(at) if host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()) => &host[..at],
        _ => host,
    }
}

/// Whether a name is an IP address of this machine or `localhost`: DNS cannot rebind these.
fn is_this_machine(name: &str) -> bool {
    let is_six = || {
        let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inner.and_then(|inner| inner.parse().ok()).is_some_and(|six: Ipv6Addr| six.is_loopback())
    };
    name == "127.0.0.1"
        || name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|four: Ipv4Addr| four.is_loopback())
        || is_six()
}

/// Allows the page that called to read the answer. Only for origins that passed the check.
pub(crate) fn allow_origin(origin: &HeaderValue, reply: &mut Reply) {
    let exposed = HeaderValue::from_static("mcp-session-id, www-authenticate, retry-after");
    reply.headers.extend([
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()),
        (header::VARY, HeaderValue::from_static("origin")),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed),
    ]);
}

/// Answers a preflight request of a browser: the allowed methods and headers.
pub(crate) fn allow_methods(asked: &HeaderMap, allowed: &'static str, reply: &mut Reply) {
    reply.headers.extend([
        (header::ALLOW, HeaderValue::from_static(allowed)),
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(allowed)),
        (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400")),
    ]);
    let wanted = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let wanted = wanted.and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    // The names of mirrored arguments depend on the tool, so they cannot be listed.
    let mirrored = wanted.split(',').map(str::trim).filter(|name| {
        let prefix = name.as_bytes().get(..10);
        prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(b"mcp-param-"))
    });
    let names: Vec<_> = REQUEST_HEADERS.iter().copied().chain(mirrored).collect();
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        reply.headers.push((header::ACCESS_CONTROL_ALLOW_HEADERS, names));
    }
}

const REQUEST_HEADERS: &[&str] = &[
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// Checks the length of the head.
pub(crate) fn check_size(head: &Parts, limit: usize) -> Result<(), Refusal> {
    let lines = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let uri = head.uri.path_and_query().map_or(0, |path| path.as_str().len());
    if uri + lines.sum::<usize>() > limit {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Refusal::new(status, "the head of the request is longer than the limit"));
    }
    Ok(())
}

/// Checks that `Content-Type` is JSON.
pub(crate) fn check_content_type(headers: &impl Headers) -> Result<(), Refusal> {
    let content_type = headers.first("content-type");
    let is_json = content_type.is_some_and(|content_type| {
        let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
        content_type[..end].trim_ascii().eq_ignore_ascii_case(b"application/json")
    });
    if is_json {
        return Ok(());
    }
    let reason = "the body must be application/json, and its Content-Type must say so";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason))
}

/// The value of nearly every client; comparing it is cheaper than parsing it.
const USUAL_ACCEPT: &[u8] = b"application/json, text/event-stream";

/// Checks that the client accepts all of `kinds`.
pub(crate) fn check_accept(headers: &impl Headers, kinds: &[&str]) -> Result<(), Refusal> {
    match headers.first("accept") {
        // A client without `Accept` accepts everything.
        None => return Ok(()),
        Some(value) if value == USUAL_ACCEPT => return Ok(()),
        Some(_) => {}
    }
    let accepts = headers.all("accept").filter_map(headers::text);
    let ranges: Vec<_> = accepts.flat_map(|value| value.split(',')).filter_map(range).collect();
    let takes = |kind: &str| {
        let family = kind.split_once('/').map_or("", |(family, _)| family);
        ranges.iter().any(|range| {
            let of_family = range
                .strip_suffix("/*")
                .is_some_and(|range| range == "*" || range.eq_ignore_ascii_case(family));
            of_family || range.eq_ignore_ascii_case(kind)
        })
    };
    if kinds.iter().all(|kind| takes(kind)) {
        return Ok(());
    }
    let reason = format!("the client must accept {}", kinds.join(" and "));
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, reason))
}

/// One media range, unless its weight is zero.
fn range(item: &str) -> Option<&str> {
    let mut parts = item.split(';').map(str::trim);
    let range = parts.next()?;
    let is_refused = parts.any(|part| {
        let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
        weight.is_some_and(|weight| weight.parse() == Ok(0.0))
    });
    (!is_refused).then_some(range)
}

/// The refusal of a method that is not served at a path.
pub(crate) fn wrong_method(method: &Method, allowed: &'static str) -> Refusal {
    let reason = format!("{method} is not served here");
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, reason)
        .with(HeaderName::from_static("allow"), HeaderValue::from_static(allowed))
}

#[cfg(test)]
mod tests;
