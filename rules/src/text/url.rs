//! Absolute URLs, taken apart where they stand. Nothing is normalised: what a document says is what is judged.

use super::host::is_public_host;

/// An absolute URL with an authority: `scheme://host`, and what may stand around it (RFC 3986 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbsoluteUrl<'t> {
    /// As written, without the colon.
    pub scheme: &'t str,
    /// What stands before `@`.
    pub user_information: Option<&'t str>,
    /// As written, IPv6 in its brackets; never empty.
    pub host: &'t str,
    /// The port when one is written; an empty one (`host:`) is none.
    pub port: Option<u16>,
    /// From the first slash, or empty.
    pub path: &'t str,
    /// Without the question mark.
    pub query: Option<&'t str>,
    /// Without the hash.
    pub fragment: Option<&'t str>,
}

impl<'t> AbsoluteUrl<'t> {
    /// Reads a whole text as one URL. `None` for relative references, an empty host, a port that is none, and white
    /// space or control characters anywhere.
    pub fn parse(text: &'t str) -> Option<AbsoluteUrl<'t>> {
        let (scheme, rest) = text.split_once("://")?;
        if !is_scheme(scheme) || text.bytes().any(|b| b <= b' ' || b == 0x7f) {
            return None;
        }
        let (rest, fragment) = divided(rest, '#');
        let (rest, query) = divided(rest, '?');
        // Browsers take a backslash for a slash, so `https://private\@public` goes to the first of the two.
        let slash = rest.find(['/', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        let (user_information, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let (host, port) = host_and_port(address)?;
        Some(AbsoluteUrl { scheme, user_information, host, port, path, query, fragment })
    }

    /// Reads an absolute `http` or `https` URL.
    pub fn http(text: &'t str) -> Option<AbsoluteUrl<'t>> {
        AbsoluteUrl::parse(text).filter(|url| url.is("http") || url.is("https"))
    }

    /// Whether it has that scheme, in any letter case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Whether its host is, by its text, one that everybody can reach.
    pub fn is_public(&self) -> bool {
        is_public_host(self.host)
    }

    /// The port that a client connects to; `None` where neither the text nor the scheme says.
    pub fn effective_port(&self) -> Option<u16> {
        self.port.or_else(|| match self.scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => Some(80),
            "https" | "wss" => Some(443),
            _ => None,
        })
    }
}

/// Whether a text is an absolute URI of any scheme (`urn:` included): a scheme, a colon, something behind it, and no
/// white space.
pub fn is_absolute_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn divided(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn host_and_port(address: &str) -> Option<(&str, Option<u16>)> {
    let end = match address.strip_prefix('[') {
        Some(inner) => inner.find(']')? + 2,
        None => address.rfind(':').unwrap_or(address.len()),
    };
    let (host, rest) = address.split_at(end);
    let is_ipv6 = host.starts_with('[');
    if host.is_empty() || host.trim_matches(['[', ']']).is_empty() || (host.contains(':') && !is_ipv6) {
        return None;
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((host, None)),
        None => None,
        Some("") => Some((host, None)),
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some((host, Some(port.parse().ok()?))),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_falls_into_its_parts() {
        let url = AbsoluteUrl::parse("HTTPS://me:pw@Tides.example.com:8443/a/b?x=1?y#top#2").expect("it is one");
        assert_eq!((url.scheme, url.user_information), ("HTTPS", Some("me:pw")));
        assert_eq!((url.host, url.port, url.path), ("Tides.example.com", Some(8443), "/a/b"));
        assert_eq!((url.query, url.fragment), (Some("x=1?y"), Some("top#2")));
        let url = AbsoluteUrl::http("http://[::1]").expect("it is one");
        assert_eq!((url.host, url.effective_port(), url.path, url.is_public()), ("[::1]", Some(80), "", false));
        assert_eq!(AbsoluteUrl::parse("https://x.example:?q").map(|u| (u.host, u.port)), Some(("x.example", None)));
        assert_eq!(AbsoluteUrl::parse("https://localhost\\@x.example/").map(|u| u.host), Some("localhost"));
    }

    #[test]
    fn what_is_no_absolute_url_is_none() {
        let texts = [
            "",
            "x.example",
            "/a2a",
            "//x.example",
            "https://",
            "https:///path",
            "https://:80",
            "https://x.example:70000",
            "https://x.example:8o",
            "https://x:1:2",
            "https://x.example/a b",
            " https://x.example",
            "1http://x.example",
            "mailto:a@b.example",
            "https://[::1",
            "https://[]",
            "https://[::1]x",
            "https://x\u{7f}",
            "see https://x.example",
        ];
        for text in texts {
            assert_eq!(AbsoluteUrl::parse(text), None, "{text}");
        }
        assert_eq!(AbsoluteUrl::http("wss://x.example"), None);
    }

    #[test]
    fn uris_of_every_scheme_are_absolute() {
        for text in ["urn:isbn:1", "https://x.example", "custom+x:1"] {
            assert!(is_absolute_uri(text), "{text}");
        }
        for text in ["", "x", "/a:b", "urn:", ":x", "https://x y", "9p:x"] {
            assert!(!is_absolute_uri(text), "{text}");
        }
    }
}
