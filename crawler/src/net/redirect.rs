//! Where a redirect leads, decided without calling anybody.

use std::collections::HashSet;

use http::Method;
use url::Url;

use super::limits::{MAX_REDIRECTS, MAX_URL};

/// One request of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) method: Method,
    /// Without its fragment.
    pub(super) url: Url,
    /// Headers that are secret go along: true until the chain leaves the origin that they are meant for.
    pub(super) with_secrets: bool,
    /// robots.txt has no say: true for a well-known or listed place and for where it leads within its origin.
    pub(super) is_exempt: bool,
}

/// What to do with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// It is the last one.
    Stay,
    /// Ask there.
    Follow(Hop),
    /// The chain has become too long or runs in a circle; this is where it would have gone.
    TooFar(Hop),
    /// The address it names is none.
    Nowhere(String),
}

/// The places a chain has been to.
#[derive(Debug, Default)]
pub(super) struct Trail(HashSet<Url>);

impl Trail {
    /// Notes that this hop is being made.
    pub(super) fn note(&mut self, hop: &Hop) {
        self.0.insert(hop.url.clone());
    }

    fn ends_before(&self, hop: &Hop) -> bool {
        self.0.len() > MAX_REDIRECTS || self.0.contains(&hop.url)
    }
}

/// Where an answer leads.
pub(super) fn next(hop: &Hop, status: u16, location: Option<&str>, trail: &Trail) -> Next {
    let (true, Some(location)) = (matches!(status, 301 | 302 | 303 | 307 | 308), location) else { return Next::Stay };
    let Ok(mut url) = hop.url.join(location) else { return Next::Nowhere(location.to_owned()) };
    url.set_fragment(None);
    if url.as_str().len() > MAX_URL {
        return Next::Nowhere(location.to_owned());
    }
    if hop.with_secrets && is_downgrade(&hop.url, &url) {
        return Next::Stay;
    }
    let stays_home = url.origin() == hop.url.origin();
    let followed = Hop {
        method: method_after(&hop.method, status),
        url,
        with_secrets: hop.with_secrets && stays_home,
        is_exempt: hop.is_exempt && stays_home,
    };
    if trail.ends_before(&followed) { Next::TooFar(followed) } else { Next::Follow(followed) }
}

/// As browsers and client libraries do: 303 always becomes GET, 301 and 302 turn POST into GET, 307 and 308 keep it.
fn method_after(method: &Method, status: u16) -> Method {
    match (status, method) {
        (303, _) => Method::GET,
        (301 | 302, &Method::POST) => Method::GET,
        _ => method.clone(),
    }
}

fn is_downgrade(from: &Url, to: &Url) -> bool {
    from.scheme() == "https" && to.scheme() == "http"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: Method, url: &str, with_secrets: bool) -> Hop {
        Hop { method, url: Url::parse(url).unwrap(), with_secrets, is_exempt: false }
    }

    fn from(hop: &Hop, status: u16, location: &str) -> Next {
        let mut trail = Trail::default();
        trail.note(hop);
        next(hop, status, Some(location), &trail)
    }

    #[test]
    fn only_redirects_with_a_location_lead_on() {
        let start = hop(Method::GET, "https://a.dev/1", false);
        for status in [200, 300, 304, 305, 306, 404] {
            assert_eq!(from(&start, status, "/2"), Next::Stay, "{status}");
        }
        assert_eq!(next(&start, 302, None, &Trail::default()), Next::Stay);
        assert_eq!(from(&start, 302, "/2#part"), Next::Follow(hop(Method::GET, "https://a.dev/2", false)));
    }

    #[test]
    fn the_method_changes_as_clients_change_it() {
        let start = hop(Method::POST, "https://a.dev/1", false);
        for (status, method) in
            [(301, Method::GET), (302, Method::GET), (303, Method::GET), (307, Method::POST), (308, Method::POST)]
        {
            assert_eq!(from(&start, status, "/2"), Next::Follow(hop(method, "https://a.dev/2", false)), "{status}");
        }
    }

    #[test]
    fn secrets_stay_at_their_origin_and_never_come_back() {
        let start = hop(Method::GET, "https://a.dev/1", true);
        for (location, kept) in
            [("/2", true), ("https://a.dev:443/2", true), ("https://a.dev:444/2", false), ("https://b.dev/2", false)]
        {
            let Next::Follow(followed) = from(&start, 302, location) else { panic!("{location} is followed") };
            assert_eq!(followed.with_secrets, kept, "{location}");
        }
        let away = hop(Method::GET, "https://b.dev/1", false);
        let Next::Follow(back) = from(&away, 302, "https://a.dev/2") else { panic!("followed") };
        assert!(!back.with_secrets);
    }

    #[test]
    fn what_was_listed_stays_listed_within_its_origin() {
        let start = Hop { is_exempt: true, ..hop(Method::POST, "https://a.dev/mcp", false) };
        for (location, kept) in [("/mcp/", true), ("https://b.dev/mcp", false)] {
            let Next::Follow(followed) = from(&start, 307, location) else { panic!("{location} is followed") };
            assert_eq!(followed.is_exempt, kept, "{location}");
        }
    }

    #[test]
    fn a_step_down_to_http_is_taken_only_without_secrets() {
        assert_eq!(from(&hop(Method::GET, "https://a.dev/1", true), 302, "http://a.dev/1"), Next::Stay);
        let plain = from(&hop(Method::GET, "https://a.dev/1", false), 302, "http://a.dev/1");
        assert_eq!(plain, Next::Follow(hop(Method::GET, "http://a.dev/1", false)));
    }

    #[test]
    fn a_circle_and_a_sixth_redirect_go_too_far() {
        let start = hop(Method::GET, "https://a.dev/1", false);
        assert_eq!(from(&start, 302, ""), Next::TooFar(start.clone()));
        assert_eq!(from(&start, 302, "#again"), Next::TooFar(start));
        let mut trail = Trail::default();
        for n in 0..=MAX_REDIRECTS {
            let here = hop(Method::GET, &format!("https://a.dev/{n}"), false);
            trail.note(&here);
            let on = next(&here, 302, Some("/next"), &trail);
            assert_eq!(matches!(on, Next::Follow(_)), n < MAX_REDIRECTS, "redirect {}", n + 1);
        }
    }

    #[test]
    fn a_location_that_is_no_address_leads_nowhere() {
        let start = hop(Method::GET, "https://a.dev/1", false);
        assert_eq!(from(&start, 302, "https://["), Next::Nowhere("https://[".to_owned()));
        let long = format!("/{}", "x".repeat(MAX_URL));
        assert_eq!(from(&start, 302, &long), Next::Nowhere(long));
    }
}
