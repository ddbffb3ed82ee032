//! Who may change anything: until there are accounts, whoever sits at this machine (decisions 22).
//!
//! A request counts as theirs when it comes from the loopback, was handed on by nobody, is addressed to the loopback by name
//! (a stranger's page that resolves its own name to this machine sends its own name), and was not sent by another site's page.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::WebState;
use crate::error::Error;

/// The person at this machine; taking one as an argument keeps everybody else out of a handler.
#[derive(Debug, Clone, Copy)]
pub struct Operator;

impl FromRequestParts<WebState> for Operator {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &WebState) -> Result<Self, Error> {
        if is_operator(parts) { Ok(Self) } else { Err(Error::NotYours) }
    }
}

/// Whether a request is the operator's.
pub fn is_operator(parts: &Parts) -> bool {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    is_from_here(peer, &parts.headers)
}

fn is_from_here(peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_handed_on =
        ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name));
    let host = text(header::HOST).unwrap_or_default();
    let has_own_origin =
        text(header::ORIGIN).is_none_or(|origin| origin.split_once("://").is_some_and(|o| o.1 == host));
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let is_own_page = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    peer.is_some_and(|ip| ip.to_canonical().is_loopback())
        && !is_handed_on
        && names_the_loopback(host)
        && has_own_origin
        && is_own_page
}

fn names_the_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<axum::http::uri::Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(peer: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(header::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        is_from_here(Some(peer.parse().unwrap()), &map)
    }

    #[test]
    fn only_the_person_at_this_machine_may_change_anything() {
        let here = ("host", "127.0.0.1:8080");
        assert!(asked("127.0.0.1", &[here]));
        assert!(asked("::ffff:127.0.0.1", &[("host", "localhost:8080"), ("origin", "http://localhost:8080")]));
        assert!(asked("::1", &[("host", "[::1]:8080"), ("sec-fetch-site", "same-origin")]));
        for (why, peer, headers) in [
            ("from elsewhere", "192.0.2.7", vec![here]),
            ("handed on by a proxy", "127.0.0.1", vec![here, ("x-forwarded-for", "192.0.2.7")]),
            ("a name that was made to lead here", "127.0.0.1", vec![("host", "evil.example:8080")]),
            ("another site's page", "127.0.0.1", vec![here, ("origin", "https://evil.example")]),
            ("another site's form", "127.0.0.1", vec![here, ("sec-fetch-site", "cross-site")]),
            ("no name at all", "127.0.0.1", vec![]),
        ] {
            assert!(!asked(peer, &headers), "{why}");
        }
        assert!(!is_from_here(None, &HeaderMap::from_iter([(header::HOST, "127.0.0.1".parse().unwrap())])));
    }
}
