//! Manners: one request at a time per host with a gap, few per site, a bound on all, and waiting when asked to.
//!
//! Who wants to call a host takes a [`Turn`] and holds it until the answer is read. Turns are given in the order they
//! were asked for. A host that answers "too many requests" is left alone for as long as it says (at most 15 minutes)
//! and then called half as often for an hour.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
use plumbline_rules::settings;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use url::{Host as UrlHost, Url};

use super::NetError;

settings! {
    /// How politely we crawl.
    pub struct Manners {
        /// Gap between the end of one request to a host and the start of the next, milliseconds. 0 is allowed.
        pub pace_ms: u64 = 600,
        /// Most requests at a time to all hosts of one site (registrable domain). At least 1.
        pub per_site: usize = 4,
        /// Most requests at a time altogether. At least 1.
        pub concurrency: usize = 64,
        /// Most requests a minute altogether, evenly spread. 0: no such bound.
        pub per_minute: u32 = 0,
    }
}

/// Longest time that a host can make us wait.
pub const MAX_PENALTY: Duration = Duration::from_secs(15 * 60);

/// What "too many requests" means when it does not say how long.
const DEFAULT_PENALTY: Duration = Duration::from_secs(30);

/// How long a host that throttled us is called half as often.
const SLOW_FOR: Duration = Duration::from_secs(60 * 60);

/// So many requests in a row without an answer, and the circuit of a host opens: it is left alone for a while.
const CIRCUIT_OPENS_AT: u32 = 5;

/// How long at first; twice as long with every further failure, at most half an hour.
const CIRCUIT_FIRST: Duration = Duration::from_secs(60);
const CIRCUIT_MOST: Duration = Duration::from_secs(30 * 60);

/// Idle entries are swept out when a table has grown to this size, and then at twice what was left.
const SWEEP_AT: usize = 1024;

/// Who may call whom, and when.
#[derive(Debug)]
pub struct Politeness {
    manners: Manners,
    everybody: Arc<Semaphore>,
    /// When the next request of all may begin.
    beat: Mutex<Option<Instant>>,
    hosts: Mutex<Table<Host>>,
    sites: Mutex<Table<Site>>,
}

/// The right to make one request to one host. Its end starts the gap.
#[derive(Debug)]
pub struct Turn {
    host: Arc<Host>,
    gap: Duration,
    _alone: OwnedSemaphorePermit,
    _of_site: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Host {
    one: Arc<Semaphore>,
    pace: Mutex<Pace>,
}

#[derive(Debug)]
struct Site {
    few: Arc<Semaphore>,
}

/// When a host may be called next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pace {
    next_at: Instant,
    slow_until: Option<Instant>,
    /// Requests in a row that nobody answered.
    failures: u32,
    /// The circuit: nothing new is begun before.
    open_until: Option<Instant>,
}

impl Politeness {
    /// The manners of one process; share it between everything that calls out.
    #[must_use]
    pub fn new(manners: Manners) -> Self {
        let everybody = Arc::new(Semaphore::new(manners.concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self { manners, everybody, beat: Mutex::default(), hosts: Mutex::default(), sites: Mutex::default() }
    }

    /// Waits until it is our turn at the host of `url`. `pace` replaces the usual gap after this request.
    ///
    /// The order of the waits matters: while we wait for the host, nobody else is kept from other hosts.
    ///
    /// # Errors
    /// Only when the semaphores were closed, which nothing does.
    pub async fn turn(&self, url: &Url, pace: Option<Duration>) -> Result<Turn, NetError> {
        let host = self.host(url);
        let alone = host.one.clone().acquire_owned().await?;
        tokio::time::sleep_until(host.next_at()).await;
        let of_site = self.site(url).few.clone().acquire_owned().await?;
        let of_all = self.everybody.clone().acquire_owned().await?;
        if let Some(beat) = self.beat() {
            tokio::time::sleep_until(beat).await;
        }
        let gap = pace.unwrap_or(Duration::from_millis(self.manners.pace_ms));
        Ok(Turn { host, gap, _alone: alone, _of_site: of_site, _of_all: of_all })
    }

    /// How long the host of `url` is still to be left alone, because it asked for that or because it does not answer;
    /// zero when it is not.
    #[must_use]
    pub fn wait_for(&self, url: &Url) -> Duration {
        let known = held(&self.hosts).entries.get(&host_key(url)).map(|host| held(&host.pace).rests_until());
        known.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    /// When the next request of all may begin; `None` without a bound on them.
    fn beat(&self) -> Option<Instant> {
        let gap = Duration::from_secs(60).checked_div(self.manners.per_minute)?;
        let mut beat = held(&self.beat);
        let at = beat.unwrap_or_else(Instant::now).max(Instant::now());
        *beat = Some(at + gap);
        Some(at)
    }

    fn host(&self, url: &Url) -> Arc<Host> {
        let now = Instant::now();
        let fresh = || Host { one: Arc::new(Semaphore::new(1)), pace: Mutex::new(Pace::from(now)) };
        held(&self.hosts).entry(host_key(url), fresh, |host| held(&host.pace).is_idle(now))
    }

    fn site(&self, url: &Url) -> Arc<Site> {
        let few = self.manners.per_site.clamp(1, Semaphore::MAX_PERMITS);
        held(&self.sites).entry(site_key(url), || Site { few: Arc::new(Semaphore::new(few)) }, |_| true)
    }
}

impl Turn {
    /// Notes that nobody answered, so that a host that is down is not asked for each of its surfaces.
    pub fn failed(&self) {
        held(&self.host.pace).fail(Instant::now());
    }

    /// Notes an answer, so that a host that asks for a rest gets it.
    pub fn heard(&self, status: u16, retry_after: Option<&str>, now: DateTime<Utc>) {
        held(&self.host.pace).answer();
        if let Some(rest) = penalty(status, retry_after, now) {
            held(&self.host.pace).rest(Instant::now(), rest);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        held(&self.host.pace).leave(Instant::now(), self.gap);
    }
}

impl Host {
    fn next_at(&self) -> Instant {
        held(&self.pace).next_at
    }
}

impl Pace {
    fn from(now: Instant) -> Pace {
        Pace { next_at: now, slow_until: None, failures: 0, open_until: None }
    }

    /// Nobody answered.
    fn fail(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if let Some(beyond) = self.failures.checked_sub(CIRCUIT_OPENS_AT) {
            let rest = CIRCUIT_FIRST.saturating_mul(1 << beyond.min(16)).min(CIRCUIT_MOST);
            self.open_until = Some(now + rest);
        }
    }

    /// Somebody answered, whatever it was.
    fn answer(&mut self) {
        (self.failures, self.open_until) = (0, None);
    }

    /// Before this nothing new is begun.
    fn rests_until(&self) -> Instant {
        self.open_until.map_or(self.next_at, |open| open.max(self.next_at))
    }

    /// A request has ended: the next may follow after the gap, or twice the gap while the host is slow.
    fn leave(&mut self, now: Instant, gap: Duration) {
        let is_slow = self.slow_until.is_some_and(|until| now < until);
        let gap = if is_slow { gap.saturating_mul(2) } else { gap };
        self.next_at = self.next_at.max(now + gap);
    }

    /// The host asked for a rest.
    fn rest(&mut self, now: Instant, rest: Duration) {
        self.next_at = self.next_at.max(now + rest);
        self.slow_until = Some(now + rest + SLOW_FOR);
    }

    /// Forgetting it changes nothing.
    fn is_idle(&self, now: Instant) -> bool {
        let is_past = |until: Option<Instant>| until.is_none_or(|until| until + CIRCUIT_MOST <= now);
        self.next_at <= now && self.slow_until.is_none_or(|until| until <= now) && is_past(self.open_until)
    }
}

/// How long an answer asks to be left alone; `None` when it does not ask.
#[must_use]
pub fn penalty(status: u16, retry_after: Option<&str>, now: DateTime<Utc>) -> Option<Duration> {
    let asked = retry_after.and_then(|value| parse_retry_after(value, now));
    match status {
        429 => Some(asked.unwrap_or(DEFAULT_PENALTY).min(MAX_PENALTY)),
        503 => asked.map(|rest| rest.min(MAX_PENALTY)),
        _ => None,
    }
}

/// The wait that a `Retry-After` names: whole seconds, or an HTTP date in one of its three forms. A date that has
/// passed is no wait at all. Several fields joined by commas count as their first.
#[must_use]
pub fn parse_retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    let first = value.split(',').next().unwrap_or_default().trim();
    if !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(first.parse().unwrap_or(u64::MAX)));
    }
    let until = parse_http_date(value)?;
    Some((until - now).to_std().unwrap_or(Duration::ZERO))
}

/// RFC 9110 5.6.7: the form of today and the two of old.
fn parse_http_date(text: &str) -> Option<DateTime<Utc>> {
    const FORMS: [&str; 3] = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).map(|naive| naive.and_utc())
}

/// One server: scheme and user are no part of it, the port is.
fn host_key(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

/// One owner: the registrable domain, where users of one hosting platform count as owners of their own.
fn site_key(url: &Url) -> String {
    match url.host() {
        Some(UrlHost::Domain(name)) => {
            let name = name.trim_end_matches('.');
            plumbline_rules::text::suffix::registered(name).unwrap_or(name).to_owned()
        }
        Some(ip) => ip.to_string(),
        None => String::new(),
    }
}

/// Entries by name that are forgotten when nobody uses them and they are idle.
#[derive(Debug)]
struct Table<T> {
    entries: HashMap<String, Arc<T>>,
    sweep_at: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), sweep_at: SWEEP_AT }
    }
}

impl<T> Table<T> {
    fn entry(&mut self, key: String, fresh: impl FnOnce() -> T, is_idle: impl Fn(&T) -> bool) -> Arc<T> {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| Arc::strong_count(entry) > 1 || !is_idle(entry));
            self.sweep_at = (self.entries.len() * 2).max(SWEEP_AT);
        }
        self.entries.entry(key).or_insert_with(|| Arc::new(fresh())).clone()
    }
}

/// The value behind a lock; the sections are short and cannot leave it half changed, so poison means nothing here.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn politeness(pace_ms: u64, per_site: usize, concurrency: usize) -> Arc<Politeness> {
        Arc::new(Politeness::new(Manners { pace_ms, per_site, concurrency, per_minute: 0 }))
    }

    fn noon() -> DateTime<Utc> {
        "2026-08-01T12:00:00Z".parse().unwrap()
    }

    /// Makes one request that takes `takes` at each address, all asked for at once and in this order; when each began.
    async fn begun_at(politeness: &Arc<Politeness>, addresses: &[&str], takes: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let requests = addresses.iter().map(|address| {
            let (politeness, address) = (politeness.clone(), url(address));
            async move {
                let _turn = politeness.turn(&address, None).await.unwrap();
                let begun = start.elapsed();
                tokio::time::sleep(takes).await;
                begun
            }
        });
        futures_util::future::join_all(requests).await
    }

    fn seconds(times: &[Duration]) -> Vec<u64> {
        times.iter().map(Duration::as_secs).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn one_host_is_called_once_at_a_time_with_a_gap_and_in_order() {
        let politeness = politeness(2_000, 9, 9);
        let times = begun_at(&politeness, &["https://a.dev/1", "https://a.dev/2", "https://a.dev/3"], SECOND).await;
        assert_eq!(seconds(&times), [0, 3, 6]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_gap_requests_follow_at_once() {
        let politeness = politeness(0, 9, 9);
        let times = begun_at(&politeness, &["https://a.dev/1", "https://a.dev/2"], SECOND).await;
        assert_eq!(seconds(&times), [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_is_a_host_of_its_own_and_a_scheme_is_not() {
        let politeness = politeness(0, 9, 9);
        let hosts = ["http://a.dev:443/", "https://a.dev./", "https://a.dev:8443/"];
        assert_eq!(seconds(&begun_at(&politeness, &hosts, SECOND).await), [0, 1, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_of_one_site_share_its_bound_and_tenants_of_a_platform_do_not() {
        let politeness = politeness(0, 2, 9);
        let hosts =
            ["https://a.dev/", "https://b.a.dev/", "https://c.a.dev/", "https://x.github.io/", "https://y.github.io/"];
        assert_eq!(seconds(&begun_at(&politeness, &hosts, SECOND).await), [0, 0, 1, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn all_hosts_share_one_bound() {
        let politeness = politeness(0, 9, 2);
        let hosts = ["https://a.dev/", "https://b.dev/", "https://c.dev/", "https://d.dev/", "https://e.dev/"];
        assert_eq!(seconds(&begun_at(&politeness, &hosts, SECOND).await), [0, 0, 1, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_one_host_keeps_nobody_from_another() {
        let politeness = politeness(60_000, 9, 2);
        let hosts = ["https://a.dev/", "https://a.dev/", "https://a.dev/", "https://b.dev/"];
        assert_eq!(seconds(&begun_at(&politeness, &hosts, SECOND).await), [0, 61, 122, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_may_ask_for_a_gap_of_its_own() {
        let politeness = politeness(60_000, 9, 9);
        let start = Instant::now();
        drop(politeness.turn(&url("https://a.dev/"), Some(SECOND)).await.unwrap());
        drop(politeness.turn(&url("https://a.dev/"), None).await.unwrap());
        assert_eq!(start.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_throttles_is_left_alone_and_then_called_half_as_often() {
        let politeness = politeness(1_000, 9, 9);
        let place = url("https://a.dev/");
        politeness.turn(&place, None).await.unwrap().heard(429, Some("100"), noon());
        assert_eq!(politeness.wait_for(&place).as_secs(), 100);
        assert_eq!(politeness.wait_for(&url("https://b.dev/")), Duration::ZERO);

        let times = begun_at(&politeness, &["https://a.dev/1", "https://a.dev/2"], Duration::ZERO).await;
        assert_eq!(seconds(&times), [100, 102]);
        tokio::time::advance(SLOW_FOR).await;
        let times = begun_at(&politeness, &["https://a.dev/1", "https://a.dev/2"], Duration::ZERO).await;
        assert_eq!(seconds(&times), [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_does_not_answer_is_left_alone_ever_longer_until_it_does() {
        let politeness = politeness(0, 9, 9);
        let place = url("https://a.dev/");
        let mut rests = Vec::new();
        for _ in 0..12 {
            politeness.turn(&place, None).await.unwrap().failed();
            rests.push(politeness.wait_for(&place).as_secs());
        }
        assert_eq!(rests, [0, 0, 0, 0, 60, 120, 240, 480, 960, 1800, 1800, 1800]);
        politeness.turn(&place, None).await.unwrap().heard(500, None, noon());
        assert_eq!(politeness.wait_for(&place), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bound_on_all_requests_spreads_them_evenly() {
        let manners = Manners { pace_ms: 0, per_site: 9, concurrency: 9, per_minute: 30 };
        let politeness = Arc::new(Politeness::new(manners));
        let hosts = ["https://a.dev/", "https://b.dev/", "https://c.dev/"];
        assert_eq!(seconds(&begun_at(&politeness, &hosts, Duration::ZERO).await), [0, 2, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_nobody_waits_for_any_more_is_passed_on() {
        let politeness = politeness(0, 9, 9);
        let place = url("https://a.dev/");
        let held = politeness.turn(&place, None).await.unwrap();
        let given_up = tokio::time::timeout(SECOND, politeness.turn(&place, None)).await;
        assert!(given_up.is_err());
        drop(held);
        assert!(tokio::time::timeout(SECOND, politeness.turn(&place, None)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_hosts_are_forgotten_and_busy_ones_are_not() {
        let politeness = politeness(1_000, 9, 9);
        let busy = url("https://busy.dev/");
        let turn = politeness.turn(&busy, None).await.unwrap();
        politeness.turn(&url("https://slow.dev/"), None).await.unwrap().heard(429, Some("900"), noon());
        for n in 0..5 * SWEEP_AT {
            drop(politeness.turn(&url(&format!("https://host{n}.dev/")), None).await.unwrap());
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        let hosts = held(&politeness.hosts).entries.len();
        assert!(hosts <= SWEEP_AT + 100, "{hosts}");
        assert!(held(&politeness.sites).entries.len() <= SWEEP_AT);
        assert!(politeness.wait_for(&url("https://slow.dev/")) > 800 * SECOND);
        assert!(Arc::ptr_eq(&turn.host, &politeness.host(&busy)));
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        for (value, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 120 ", Some(120)),
            ("120, 60", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sat, 01 Aug 2026 12:01:00 GMT", Some(60)),
            ("Saturday, 01-Aug-26 12:01:00 GMT", Some(60)),
            ("Sat Aug  1 12:01:00 2026", Some(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("0x10", None),
            ("Sat, 32 Aug 2026 12:01:00 GMT", None),
            ("Mon, 01 Aug 2026 12:01:00 GMT", None),
            ("2026-08-01T12:01:00Z", None),
            ("\u{661}\u{662}", None),
        ] {
            assert_eq!(parse_retry_after(value, noon()), seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn only_answers_that_throttle_are_penalties_and_none_is_longer_than_the_bound() {
        for (status, retry_after, expected) in [
            (429, None, Some(DEFAULT_PENALTY)),
            (429, Some("nonsense"), Some(DEFAULT_PENALTY)),
            (429, Some("7"), Some(7 * SECOND)),
            (429, Some("86400"), Some(MAX_PENALTY)),
            (503, Some("7"), Some(7 * SECOND)),
            (503, Some("Fri, 01 Jan 9999 00:00:00 GMT"), Some(MAX_PENALTY)),
            (503, None, None),
            (503, Some("nonsense"), None),
            (200, Some("7"), None),
            (500, Some("7"), None),
        ] {
            assert_eq!(penalty(status, retry_after, noon()), expected, "{status} {retry_after:?}");
        }
    }

    proptest! {
        #[test]
        fn no_retry_after_is_a_panic_or_a_wait_beyond_the_bound(status: u16, value in ".{0,40}", at in 0..4_000_000_000_i64) {
            let now = DateTime::from_timestamp(at, 0).unwrap();
            prop_assert!(penalty(status, Some(&value), now).is_none_or(|rest| rest <= MAX_PENALTY));
        }

        #[test]
        fn a_date_is_read_as_the_time_until_then(at in 0..4_000_000_000_i64, wait in 0..100_000_u32) {
            let now = DateTime::from_timestamp(at, 0).unwrap();
            let then = (now + chrono::TimeDelta::seconds(i64::from(wait))).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
            prop_assert_eq!(parse_retry_after(&then, now), Some(Duration::from_secs(u64::from(wait))));
        }

        #[test]
        fn a_host_is_never_called_before_its_gap_or_rest(gaps in prop::collection::vec((0..5_000_u64, 0..1_000_u64, any::<bool>()), 1..20)) {
            let mut now = Instant::now();
            let mut pace = Pace::from(now);
            for (gap_ms, rest_s, is_throttled) in gaps {
                now = now.max(pace.next_at);
                let rest = Duration::from_secs(rest_s);
                if is_throttled {
                    pace.rest(now, rest);
                }
                pace.leave(now, Duration::from_millis(gap_ms));
                prop_assert!(pace.next_at >= now + Duration::from_millis(gap_ms));
                prop_assert!(!is_throttled || pace.next_at >= now + rest);
            }
        }
    }
}
