//! robots.txt: what a host asks crawlers not to fetch, remembered for a day.
//!
//! It applies to everything that is neither below `/.well-known/`, which exists to be fetched by machines, nor an
//! endpoint that its owner listed somewhere (RFC 9309).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plumbline_rules::session::{Exchange, WireError};
use texting_robots::Robot;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use url::{Position, Url};

/// The name that robots.txt files know us by.
pub(super) const AGENT: &str = "plumbline";

/// How long an answer is believed.
const ANSWER_LASTS: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a server that failed to answer is left alone.
const FAILURE_LASTS: Duration = Duration::from_secs(60 * 60);

/// Longest gap that `Crawl-delay` can ask for.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Most hosts remembered at a time.
const MAX_HOSTS: usize = 1024;

/// Most rules that end in `$`: each becomes a regular expression, and a file could hold a hundred thousand. A host that
/// goes beyond is left alone.
const MAX_PATTERNS: usize = 1_000;

/// What a host asks of us.
#[derive(Debug)]
pub(super) struct Policy {
    rules: Rules,
    lasts: Duration,
}

#[derive(Debug)]
enum Rules {
    /// It has no wishes.
    Everything,
    /// It could not say.
    Nothing,
    Listed(Robot),
}

/// The answer for one address.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wish {
    /// Go on, with at least this gap where one is asked for.
    Fetch { gap: Option<Duration> },
    /// Please do not.
    Stay,
}

impl Policy {
    /// What the fetch of a robots.txt means.
    ///
    /// # Errors
    /// The host could not be reached at all. That is not remembered: what is wrong with it is wrong with the surface
    /// as well, and the next observation asks again.
    pub(super) fn from_answer(last: &Exchange, body: &[u8]) -> Result<Self, WireError> {
        let Some(response) = &last.response else {
            return match last.error {
                // Too many redirects count as "there is none" (RFC 9309 2.3.1.2).
                Some(WireError::RedirectLimit) => Ok(Self { rules: Rules::Everything, lasts: ANSWER_LASTS }),
                // Where it leads may not be called, which does not speak for permission.
                Some(WireError::AddressGuard | WireError::BadUrl) | None => Ok(Self::failed()),
                Some(error) => Err(error),
            };
        };
        Ok(match response.status {
            200..=299 => Self { rules: listed(body), lasts: ANSWER_LASTS },
            // Being asked to slow down is no permission either.
            429 | 500.. => Self::failed(),
            _ => Self { rules: Rules::Everything, lasts: ANSWER_LASTS },
        })
    }

    fn failed() -> Self {
        Self { rules: Rules::Nothing, lasts: FAILURE_LASTS }
    }

    /// What the host wishes for one of its addresses.
    pub(super) fn wish(&self, url: &Url) -> Wish {
        match &self.rules {
            Rules::Everything => Wish::Fetch { gap: None },
            Rules::Nothing => Wish::Stay,
            Rules::Listed(robot) if robot.allowed(&url[Position::BeforePath..Position::AfterQuery]) => {
                Wish::Fetch { gap: robot.delay.and_then(gap) }
            }
            Rules::Listed(_) => Wish::Stay,
        }
    }
}

fn listed(body: &[u8]) -> Rules {
    if body.iter().filter(|b| **b == b'$').count() > MAX_PATTERNS {
        return Rules::Nothing;
    }
    match Robot::new(AGENT, body) {
        Ok(mut robot) => {
            robot.sitemaps = Vec::new();
            Rules::Listed(robot)
        }
        // A file that nobody can read asks for nothing.
        Err(_) => Rules::Everything,
    }
}

fn gap(delay: f32) -> Option<Duration> {
    Duration::try_from_secs_f32(delay).ok().map(|delay| delay.min(MAX_DELAY))
}

/// Whether robots.txt has a say about this address, unless its owner listed it.
pub(super) fn applies(url: &Url) -> bool {
    !url.path().starts_with("/.well-known/") && url.path() != "/robots.txt"
}

/// Where the robots.txt for this address is.
pub(super) fn address(url: &Url) -> Url {
    let mut robots = url.clone();
    robots.set_path("/robots.txt");
    robots.set_query(None);
    robots.set_fragment(None);
    robots
}

/// What hosts have asked of us.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<String, Arc<Entry>>>);

/// One host: asked by whoever comes first, while the others wait.
#[derive(Debug, Default)]
pub(super) struct Entry {
    policy: OnceCell<(Policy, Instant)>,
}

impl Entry {
    /// The policy, asked for with `ask` unless it is known.
    pub(super) async fn policy<E>(&self, ask: impl Future<Output = Result<Policy, E>>) -> Result<&Policy, E> {
        let known = self.policy.get_or_try_init(|| async {
            let policy = ask.await?;
            let until = Instant::now() + policy.lasts;
            Ok((policy, until))
        });
        known.await.map(|(policy, _)| policy)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.policy.get().is_some_and(|(_, until)| *until <= now)
    }
}

impl Cache {
    /// The entry of an address's host, a fresh one when the known one is too old.
    pub(super) fn entry(&self, url: &Url) -> Arc<Entry> {
        let now = Instant::now();
        let key = url[..Position::BeforePath].to_owned();
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= MAX_HOSTS {
            hosts.retain(|_, entry| !entry.is_over(now));
        }
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        let entry = hosts.entry(key).or_default();
        if entry.is_over(now) {
            *entry = Arc::default();
        }
        entry.clone()
    }
}

#[cfg(test)]
mod tests {
    use plumbline_rules::session::Response;

    use super::*;

    fn answered(status: u16) -> Exchange {
        let response = Response { status, ..Response::default() };
        Exchange { response: Some(response), ..Exchange::default() }
    }

    fn failed(error: WireError) -> Exchange {
        Exchange { response: None, error: Some(error), ..answered(0) }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn wish(exchange: &Exchange, body: &str, path: &str) -> Result<Wish, WireError> {
        let policy = Policy::from_answer(exchange, body.as_bytes())?;
        Ok(policy.wish(&url(&format!("https://a.dev{path}"))))
    }

    const FETCH: Result<Wish, WireError> = Ok(Wish::Fetch { gap: None });
    const STAY: Result<Wish, WireError> = Ok(Wish::Stay);

    #[test]
    fn it_has_no_say_about_well_known_places() {
        assert!(applies(&url("https://a.dev/openapi.json")));
        assert!(!applies(&url("https://a.dev/.well-known/agent-card.json")));
        assert!(applies(&url("https://a.dev/.well-known-not/x")));
        assert!(applies(&url("https://a.dev/x/.well-known/agent-card.json")));
    }

    #[test]
    fn it_lies_at_the_root_of_the_host() {
        assert_eq!(address(&url("http://a.dev:8080/x/y?z#w")), url("http://a.dev:8080/robots.txt"));
    }

    #[test]
    fn our_own_group_beats_the_group_for_everybody() {
        let body = "User-agent: *\nDisallow: /\n\nUser-agent: Plumbline\nDisallow: /private\nAllow: /private/card\n";
        assert_eq!(wish(&answered(200), body, "/api"), FETCH);
        assert_eq!(wish(&answered(200), body, "/private/x"), STAY);
        assert_eq!(wish(&answered(200), body, "/private/card?v=1"), FETCH);
        assert_eq!(wish(&answered(200), "User-agent: *\nDisallow: /\n", "/api"), STAY);
    }

    #[test]
    fn a_crawl_delay_is_kept_up_to_a_bound() {
        let delay = |text: &str| wish(&answered(200), &format!("User-agent: *\nCrawl-delay: {text}\n"), "/");
        assert_eq!(delay("2"), Ok(Wish::Fetch { gap: Some(Duration::from_secs(2)) }));
        assert_eq!(delay("86400"), Ok(Wish::Fetch { gap: Some(MAX_DELAY) }));
    }

    #[test]
    fn none_allows_everything_and_a_failing_server_nothing() {
        for status in [301, 400, 401, 403, 404, 410] {
            assert_eq!(wish(&answered(status), "", "/api"), FETCH, "{status}");
        }
        for status in [429, 500, 503] {
            assert_eq!(wish(&answered(status), "", "/api"), STAY, "{status}");
        }
        assert_eq!(wish(&failed(WireError::RedirectLimit), "", "/api"), FETCH);
        assert_eq!(wish(&failed(WireError::AddressGuard), "", "/api"), STAY);
        assert_eq!(wish(&failed(WireError::Refused), "", "/api"), Err(WireError::Refused));
    }

    #[test]
    fn garbage_asks_for_nothing() {
        for body in ["", "\0\0\0", "<html>", "Disallow", "User-agent: *\nDisallow: /$*$*$*(((\n", "\u{feff}User-agent"]
        {
            assert_eq!(wish(&answered(200), body, "/api"), FETCH, "{body}");
        }
    }

    #[test]
    fn a_file_that_would_cost_much_to_read_keeps_us_away() {
        let costly = format!("User-agent: *\n{}", "Disallow: /*x$\n".repeat(MAX_PATTERNS + 1));
        assert_eq!(wish(&answered(200), &costly, "/api"), STAY);
        let long = format!("User-agent: *\n{}", "Disallow: /*x\n".repeat(30_000));
        assert_eq!(wish(&answered(200), &long, "/api"), FETCH);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_lasts_a_day_and_a_failure_an_hour() {
        let cache = Cache::default();
        for (status, lasts) in [(200, ANSWER_LASTS), (500, FAILURE_LASTS)] {
            let place = url(&format!("https://host{status}.dev/x"));
            let ask = async || Policy::from_answer(&answered(status), b"");
            let entry = cache.entry(&place);
            entry.policy(ask()).await.unwrap();
            tokio::time::advance(lasts - Duration::from_secs(1)).await;
            assert!(Arc::ptr_eq(&entry, &cache.entry(&place)), "{status}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!Arc::ptr_eq(&entry, &cache.entry(&place)), "{status}");
        }
    }

    #[tokio::test]
    async fn a_host_out_of_reach_is_asked_again() {
        let entry = Cache::default().entry(&url("https://a.dev/"));
        let down = entry.policy(async { Policy::from_answer(&failed(WireError::Refused), b"") }).await;
        assert_eq!(down.err(), Some(WireError::Refused));
        let up = entry.policy(async { Policy::from_answer(&answered(404), b"") }).await;
        assert!(up.is_ok());
    }
}
