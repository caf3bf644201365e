//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the address is a loopback address, in any notation.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    canonical(address).is_loopback()
}

/// Whether a host on the Internet may have the address. Private, link-local (with the metadata
/// services of clouds), shared, documentation, multicast and reserved ranges are not public.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The IPv4 address inside an IPv6 address that only carries one, else the address itself.
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [a, b, .., y, z] = v6.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        // IPv4-mapped, and NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => v4(y, z),
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => v4(high, low),
        _ if v6 == Ipv6Addr::LOCALHOST || v6.is_unspecified() => address,
        // IPv4-compatible, long deprecated.
        [0, 0, 0, 0, 0, 0, ..] if (a, b) == (0, 0) => v4(y, z),
        _ => address,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0 // this network
        || a >= 224 // multicast, reserved, broadcast
        || (a == 100 && b & 0xc0 == 64) // shared by providers (RFC 6598)
        || (a == 198 && b & 0xfe == 18) // benchmarks (RFC 2544)
        || (a, b, c) == (192, 0, 0) // protocol assignments
        || (a, b, c) == (192, 88, 99)) // 6to4 relays
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Global unicast is 2000::/3; the rest is loopback, unique local, link-local, multicast or
    // unassigned.
    a & 0xe000 == 0x2000
        && !(a == 0x2001 && b < 0x200) // Teredo, benchmarks, protocol assignments
        && (a, b) != (0x2001, 0xdb8) // documentation
        && a & 0xfff0 != 0x3ff0 // documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_special_addresses_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.169.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn loopback_is_found_in_every_form() {
        for text in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(text.parse().unwrap()), "{text}");
        }
        assert!(!is_loopback("128.0.0.1".parse().unwrap()));
    }
}
