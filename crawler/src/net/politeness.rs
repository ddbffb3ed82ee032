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
    }
}

/// Longest time that a host can make us wait.
pub const MAX_PENALTY: Duration = Duration::from_secs(15 * 60);

/// What "too many requests" means when it does not say how long.
const DEFAULT_PENALTY: Duration = Duration::from_secs(30);

/// How long a host that throttled us is called half as often.
const SLOW_FOR: Duration = Duration::from_secs(60 * 60);

/// Idle entries are swept out when a table has grown to this size, and then at twice what was left.
const SWEEP_AT: usize = 1024;

/// Who may call whom, and when.
#[derive(Debug)]
pub struct Politeness {
    manners: Manners,
    everybody: Arc<Semaphore>,
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
}

impl Politeness {
    /// The manners of one process; share it between everything that calls out.
    #[must_use]
    pub fn new(manners: Manners) -> Self {
        let everybody = Arc::new(Semaphore::new(manners.concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self { manners, everybody, hosts: Mutex::default(), sites: Mutex::default() }
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
        let gap = pace.unwrap_or(Duration::from_millis(self.manners.pace_ms));
        Ok(Turn { host, gap, _alone: alone, _of_site: of_site, _of_all: of_all })
    }

    /// How long the host of `url` still asks to be left alone; zero when it does not.
    #[must_use]
    pub fn wait_for(&self, url: &Url) -> Duration {
        let known = held(&self.hosts).entries.get(&host_key(url)).map(|host| host.next_at());
        known.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    fn host(&self, url: &Url) -> Arc<Host> {
        let now = Instant::now();
        let fresh =
            || Host { one: Arc::new(Semaphore::new(1)), pace: Mutex::new(Pace { next_at: now, slow_until: None }) };
        held(&self.hosts).entry(host_key(url), fresh, |host| held(&host.pace).is_idle(now))
    }

    fn site(&self, url: &Url) -> Arc<Site> {
        let few = self.manners.per_site.clamp(1, Semaphore::MAX_PERMITS);
        held(&self.sites).entry(site_key(url), || Site { few: Arc::new(Semaphore::new(few)) }, |_| true)
    }
}

impl Turn {
    /// Notes an answer, so that a host that asks for a rest gets it.
    pub fn heard(&self, status: u16, retry_after: Option<&str>, now: DateTime<Utc>) {
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
        self.next_at <= now && self.slow_until.is_none_or(|until| until <= now)
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
            psl::domain_str(name).unwrap_or(name).to_owned()
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
