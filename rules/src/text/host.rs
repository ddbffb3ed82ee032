//! Hosts by their text: whether everybody can reach them, and whose they are. Nothing is resolved.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use unicode_normalization::UnicodeNormalization;

use super::suffix::registered;

/// Endings of names that no public name server answers for.
const PRIVATE_SUFFIXES: &[&str] = &["localhost", "local", "internal", "lan", "home.arpa", "corp"];

/// Whether a host, by its text alone, can be reached from everywhere: no address of a loopback, private, link-local,
/// shared, unique-local, multicast or unspecified range in whatever notation, no name that only one machine or network
/// knows, and no name without a dot.
///
/// A host that a template fills in (`{region}.example.com`) is not held against anybody unless its fixed end says so.
pub fn is_public_host(host: &str) -> bool {
    let host = plain(host);
    if let Some(address) = ip_of_plain(&host) {
        return is_public_address(address);
    }
    let private =
        |suffix: &&str| host.strip_suffix(*suffix).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    if PRIVATE_SUFFIXES.iter().any(private) {
        return false;
    }
    host.contains('.') || host.contains(['{', '}'])
}

/// Whether a host, by its text alone, is this machine itself.
pub fn host_is_loopback(host: &str) -> bool {
    let host = plain(host);
    match ip_of_plain(&host) {
        Some(address) => address.is_loopback(),
        None => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// The address that a host is, in any notation that clients understand: dotted, decimal, octal, hexadecimal, IPv6 with
/// or without brackets. An IPv4 address wrapped into IPv6 is given as IPv4.
pub fn ip_literal(host: &str) -> Option<IpAddr> {
    ip_of_plain(&plain(host))
}

/// The domain that somebody registered: one label more than the public suffix. `None` for addresses, for public
/// suffixes themselves and for names without a dot.
pub fn registrable_domain(host: &str) -> Option<String> {
    let host = plain(host);
    if ip_of_plain(&host).is_some() || !host.contains('.') {
        return None;
    }
    registered(&host).map(str::to_owned)
}

/// Whether two hosts belong to one registrable domain. Hosts without one belong together only when they are the same.
pub fn same_site(one: &str, other: &str) -> bool {
    match (registrable_domain(one), registrable_domain(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => plain(one) == plain(other),
        _ => false,
    }
}

/// A host as clients read it: lower case, compatibility forms folded, percent escapes undone, no brackets, no zone, no
/// final dot.
fn plain(host: &str) -> Cow<'_, str> {
    let host = host.strip_prefix('[').map_or(host, |inner| inner.strip_suffix(']').unwrap_or(inner));
    if host.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b':')) {
        return Cow::Borrowed(without_final_dot(host));
    }
    if host.contains(':') {
        let zone = host.find('%').unwrap_or(host.len());
        return Cow::Owned(host[..zone].to_ascii_lowercase());
    }
    let unescaped = percent_decoded(host);
    let folded: String =
        unescaped.nfkc().flat_map(char::to_lowercase).map(|c| if c == '。' { '.' } else { c }).collect();
    Cow::Owned(without_final_dot(&folded).to_owned())
}

fn without_final_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Percent escapes undone, as far as the result is text.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |n: usize| bytes.get(at + n).and_then(|&b| (b as char).to_digit(16));
        match (bytes[at], hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn ip_of_plain(host: &str) -> Option<IpAddr> {
    if host.contains(':') {
        return host.parse::<Ipv6Addr>().ok().map(unwrapped);
    }
    ipv4(host).map(IpAddr::V4)
}

/// An IPv4 address in the notations of the WHATWG URL standard: one to four parts, each decimal, octal or hexadecimal,
/// the last one filling what is left.
fn ipv4(host: &str) -> Option<Ipv4Addr> {
    if !host.ends_with(|c: char| c.is_ascii_hexdigit() || c == 'x') || !host.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut parts = [0u64; 4];
    let mut count = 0;
    for text in host.split('.') {
        *parts.get_mut(count)? = ipv4_part(text)?;
        count += 1;
    }
    let (last, before) = parts[..count].split_last()?;
    if before.iter().any(|&part| part > 255) || *last >= 1 << (8 * (4 - before.len())) {
        return None;
    }
    let high = before.iter().enumerate().fold(0, |sum, (n, part)| sum | part << (24 - 8 * n));
    Some(Ipv4Addr::from((high | last) as u32))
}

fn ipv4_part(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.is_empty() {
        return (radix == 16).then_some(0);
    }
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
}

/// The IPv4 address that an IPv6 address carries (mapped, compatible, NAT64), or the address itself.
fn unwrapped(address: Ipv6Addr) -> IpAddr {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let carried = Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => IpAddr::V4(carried),
        [0, 0, 0, 0, 0, 0] if high != 0 => IpAddr::V4(carried),
        _ => IpAddr::V6(address),
    }
}

fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && b & 0xc0 == 64;
            !(a == 0 || v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_multicast() || shared)
        }
        IpAddr::V6(v6) => {
            let site_local = v6.segments()[0] & 0xffc0 == 0xfec0;
            let local = v6.is_unicast_link_local() || v6.is_unique_local() || site_local;
            !(v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || local)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_hosts_are_known_in_every_notation() {
        let hosts = [
            "localhost",
            "LOCALHOST.",
            "api.localhost",
            "tides",
            "printer.local",
            "x.internal",
            "nas.lan",
            "a.home.arpa",
            "mail.corp",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "10.0.0.8",
            "172.16.9.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "224.0.0.1",
            "[::1]",
            "::1",
            "[::]",
            "[fe80::1%25eth0]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[ff02::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::10.0.0.1]",
            "127.0.0.1.",
            "%6cocalhost",
            "１２７.0.0.1",
            "ⓛocalhost",
            "{tenant}.local",
            "",
        ];
        for host in hosts {
            assert!(!is_public_host(host), "{host}");
        }
    }

    #[test]
    fn public_hosts_are_not_accused() {
        let hosts = [
            "example.com",
            "API.Example.COM",
            "example.com.",
            "localhost.example.com",
            "local.dev",
            "corp.example.com",
            "mylocal.co",
            "8.8.8.8",
            "172.32.0.1",
            "172.15.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "11.0.0.1",
            "[2606:4700::1111]",
            "[::ffff:8.8.8.8]",
            "134744072",
            "bücher.example",
            "1.2.3.999",
            "1.2.3.4.5",
            "0xcafe.dev",
            "{tenant}.example.com",
            "{host}",
            "10.example.com",
            "beef.cafe",
            "notlocalhost.com",
            "mycorp.net",
        ];
        for host in hosts {
            assert!(is_public_host(host), "{host}");
        }
    }

    #[test]
    fn loopback_is_this_machine_and_nothing_else() {
        for host in ["localhost", "x.localhost", "127.8.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
            assert!(host_is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "localhost.example.com", "0.0.0.0", "tides"] {
            assert!(!host_is_loopback(host), "{host}");
        }
    }

    #[test]
    fn registrable_domains_end_at_public_suffixes() {
        let rows = [
            ("www.example.co.uk", Some("example.co.uk")),
            ("EXAMPLE.com.", Some("example.com")),
            ("alice.github.io", Some("alice.github.io")),
            ("github.io", None),
            ("127.0.0.1", None),
            ("localhost", None),
        ];
        for (host, domain) in rows {
            assert_eq!(registrable_domain(host).as_deref(), domain, "{host}");
        }
        assert!(same_site("a.example.com", "b.EXAMPLE.com"));
        assert!(!same_site("alice.github.io", "bob.github.io"));
        assert!(same_site("127.0.0.1", "127.0.0.1."));
        assert!(!same_site("127.0.0.1", "127.0.0.2"));
    }
}
