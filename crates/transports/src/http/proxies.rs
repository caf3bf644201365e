//! The address of a client behind proxies. No I/O.
//!
//! A proxy appends the address of its peer to `X-Forwarded-For`, or to `Forwarded` (RFC 7239). The
//! values before that come from the peer, which may forge them. So the headers are read from their
//! end, as far as trusted proxies wrote them.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::headers::{self, Headers};

/// The maximum number of proxies on the way of a request.
const MAX_HOPS: usize = 16;

/// Where a request comes from: the nearest address that is not one of `trusted`.
pub(crate) fn client(trusted: &[IpNet], peer: IpAddr, headers: &impl Headers) -> IpAddr {
    let trusts = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    if !trusts(peer) {
        return peer;
    }
    let nearest = |name: &str, read: fn(&str) -> Option<IpAddr>| {
        let values: Vec<_> = headers.all(name).collect();
        // The client's part may be garbage; it must not hide the part that the proxy added.
        let hops = values.iter().rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
        let mut found = None;
        for hop in hops.take(MAX_HOPS) {
            let Some(address) = headers::text(hop).and_then(|hop| read(hop.trim())) else { break };
            found = Some(address);
            if !trusts(address) {
                break;
            }
        }
        found
    };
    let (new, old) = (nearest("forwarded", forwarded), nearest("x-forwarded-for", address));
    match (new, old) {
        (Some(one), Some(other)) if one == other => one,
        // A proxy writes one of them. The client may have sent the other.
        (Some(_), Some(_)) => peer,
        (one, other) => one.or(other).unwrap_or(peer),
    }
}

/// The `for` of one element of `Forwarded`.
fn forwarded(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    address(value.trim_matches('"'))
}

/// An address, which may have a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    let address: Option<IpAddr> = text.parse().ok().or_else(bare).or_else(with_port);
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    #[track_caller]
    fn check(peer: &str, headers: &[(&str, &str)], expected: &str) {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
            })
            .collect();
        let found = client(&trusted, peer.parse().unwrap(), &headers);
        assert_eq!(found, expected.parse::<IpAddr>().unwrap(), "{headers:?}");
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        check("8.8.8.8", &[("x-forwarded-for", "1.1.1.1")], "8.8.8.8");
        check("10.0.0.1", &[("x-forwarded-for", "1.1.1.1")], "1.1.1.1");
        check("10.0.0.1", &[], "10.0.0.1");
        check("fd00::1", &[("forwarded", "for=\"[2001:db8::1]:4711\"")], "2001:db8::1");
    }

    #[test]
    fn headers_are_read_from_their_end() {
        check("10.0.0.1", &[("x-forwarded-for", "6.6.6.6, 1.1.1.1")], "1.1.1.1");
        check("10.0.0.1", &[("x-forwarded-for", "6.6.6.6,1.1.1.1 , 10.0.0.2")], "1.1.1.1");
        let two = [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "1.1.1.1")];
        check("10.0.0.1", &two, "1.1.1.1");
        check("10.0.0.1", &[("forwarded", "for=6.6.6.6, for=1.1.1.1;proto=https")], "1.1.1.1");
        check("10.0.0.1", &[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], "10.0.0.3");
    }

    #[test]
    fn invalid_text_hides_nothing_that_follows() {
        check("10.0.0.1", &[("x-forwarded-for", "ÿ, 1.1.1.1")], "1.1.1.1");
        check("10.0.0.1", &[("x-forwarded-for", "1.1.1.1, ÿ")], "10.0.0.1");
        let two = [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "ÿ")];
        check("10.0.0.1", &two, "10.0.0.1");
    }

    #[test]
    fn an_invalid_address_ends_the_chain() {
        for bad in ["unknown", "", "1.1.1.1, _hidden", "1.1.1.1, for"] {
            check("10.0.0.1", &[("x-forwarded-for", bad)], "10.0.0.1");
        }
        check("10.0.0.1", &[("x-forwarded-for", "1.1.1.1, unknown, 10.0.0.2")], "10.0.0.2");
        check("10.0.0.1", &[("forwarded", "by=1.1.1.1")], "10.0.0.1");
        check("10.0.0.1", &[("x-forwarded-for", "::ffff:1.1.1.1")], "1.1.1.1");
        check("10.0.0.1", &[("x-forwarded-for", "1.1.1.1:4711")], "1.1.1.1");
    }

    #[test]
    fn two_headers_that_disagree_are_not_believed() {
        let both = |other| [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", other)];
        check("10.0.0.1", &both("1.1.1.1"), "1.1.1.1");
        check("10.0.0.1", &both("6.6.6.6"), "10.0.0.1");
    }
}
