//! Walking a registry: page by page, each stored with its cursor before the next is asked for, so that a walk that was
//! cut goes on where it stood. A walk that did not end by itself is incomplete and says nothing about absence.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use http::header::{HeaderName, HeaderValue};
use plumbline_rules::canonical::semantic_hash;
use plumbline_rules::document::{Document, Node};
use plumbline_rules::listing::{self, Course, ListFindings, WalkRecord};
use plumbline_rules::session::{Cut, Session, Step, WireError};
use plumbline_store::ids::{CrawlId, SourceId};
use plumbline_store::sources::{Fault, Source};
use plumbline_store::walk_findings::Coming;
use plumbline_store::walks::{self, Walk};
use rand::Rng;
use tokio_util::sync::CancellationToken;

use crate::net::{Ask, BodyKind, Fetched, Header, Way, politeness};
use crate::progress::Unreached;
use crate::round::patiently;
use crate::settings::Registry;
use crate::sources::mcp_registry::{self, ApiPath, Next, Page, Tries, Trouble};
use crate::{CrawlError, Crawler};

/// What an incremental pass looks back beyond the start of the last complete one: clocks differ, and transactions of the
/// registry may have been in flight.
const OVERLAP_S: i64 = 300;

/// How long a registry that ignored `updated_since` is taken to ignore it, in seconds: a month.
const SINCE_IGNORED_S: i64 = 30 * 86_400;

/// A list of fewer pages than this is walked completely in every pass.
const SHORT_LIST: i64 = 10;

/// Missing entries that are judged after a walk; of more nothing is told but their number.
const MOST_MISSING: u32 = 1000;

/// Empty pages in a row after which a registry is taken to be going round in circles.
const MAX_EMPTY_RUN: u32 = 3;

/// A registry as a source.
#[derive(Debug, Clone)]
pub struct RegistrySource {
    /// Its row.
    pub id: SourceId,
    /// What the settings say.
    pub settings: Registry,
    /// Its key, ready to send.
    pub key: Option<HeaderValue>,
}

/// How a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkEnd {
    /// The registry.
    pub registry: String,
    /// It ended by itself: only then may absence count.
    pub is_complete: bool,
    /// We were told to stop: it goes on later.
    pub is_stopped: bool,
    /// Everything was walked, not only what moved.
    pub is_full: bool,
    /// Pages read, those of an earlier attempt included.
    pub pages: u64,
    /// Entries read.
    pub entries: u64,
    /// Why it is not complete.
    pub problem: Option<String>,
}

/// A walk at work.
struct Walker<'c> {
    crawler: &'c Crawler,
    registry: &'c RegistrySource,
    crawl: CrawlId,
    walk: Walk,
    stop: CancellationToken,
    path: ApiPath,
    since: Option<String>,
    seen_cursors: HashSet<String>,
    has_started_over: bool,
    empty_run: u32,
    /// A page in the middle held nothing, so what is missing proves nothing.
    has_hole: bool,
    /// It goes on where an earlier process stood, whose pages are not here.
    is_resumed: bool,
    /// What the rules about the whole walk look at.
    record: WalkRecord,
    /// What the rules say of the list.
    findings: ListFindings,
}

/// What a pass over a registry is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// Everything is walked, whatever is due.
    pub full: bool,
    /// A person has looked: what is missing from this walk is gone, however much that is. Implies `full`.
    pub accept_loss: bool,
}

/// Why no further page is asked for.
enum Stop {
    /// The list has ended.
    End,
    /// The walk cannot go on.
    Incomplete(String),
    /// We are shutting down: the walk goes on later from its cursor.
    Interrupted,
}

/// Walks a registry, or what moved in it since the last complete pass.
///
/// # Errors
/// Only when we failed; whatever the registry did is in how the walk ended.
pub async fn walk(
    crawler: &Crawler,
    registry: &RegistrySource,
    crawl: CrawlId,
    wish: Wish,
    stop: &CancellationToken,
) -> Result<WalkEnd, CrawlError> {
    let wants_full = wish.full || wish.accept_loss;
    let now_s = crawler.now_s();
    let resumed = crawler.store.resume_walk(registry.id, crawl, now_s).await?;
    let walk = match resumed {
        Some(walk) if walk.is_full || !wants_full => walk,
        _ => crawler.store.begin_walk(registry.id, crawl, since(crawler, registry, wants_full).await?, now_s).await?,
    };
    let since = walk.since_s.and_then(|s| DateTime::from_timestamp(s, 0));
    let mut walker = Walker {
        crawler,
        registry,
        crawl,
        stop: stop.clone(),
        path: ApiPath::V01,
        since: since.map(|moment| moment.to_rfc3339_opts(SecondsFormat::Secs, true)),
        seen_cursors: walk.cursor.iter().cloned().collect(),
        has_started_over: false,
        empty_run: 0,
        has_hole: false,
        is_resumed: walk.pages > 0,
        record: WalkRecord::default(),
        findings: ListFindings::default(),
        walk,
    };
    let stopped = walker.run(stop).await?;
    walker.finish(stopped, wish.accept_loss).await
}

/// The moment from which an incremental pass reads; `None` for a full walk.
async fn since(crawler: &Crawler, registry: &RegistrySource, wants_full: bool) -> Result<Option<i64>, CrawlError> {
    let source = crawler.store.source(registry.id).await?;
    let interval_s = registry.settings.full_interval_s.unwrap_or(crawler.settings.registry_full_interval_s);
    let is_full = wants_full || is_full_due(&source, crawler.now_s(), interval_s);
    Ok(source.last_pass_s.filter(|_| !is_full).map(|last| last - OVERLAP_S))
}

/// Whether a pass has to read the whole list: the last complete walk is too long ago (or lies in a future that a wrong
/// clock made up), the registry knows no `updated_since`, or the list is so short that it makes no difference.
fn is_full_due(source: &Source, now_s: i64, interval_s: u64) -> bool {
    let interval_s = i64::try_from(interval_s).unwrap_or(i64::MAX);
    let is_old = source.last_full_s.is_none_or(|last| now_s - last >= interval_s || last > now_s + OVERLAP_S);
    let ignores_since = source.since_ignored_s.is_some_and(|at| now_s - at < SINCE_IGNORED_S);
    let is_short = source.full_pages.is_some_and(|pages| pages < SHORT_LIST);
    is_old || ignores_since || is_short
}

impl Walker<'_> {
    async fn run(&mut self, stop: &CancellationToken) -> Result<Stop, CrawlError> {
        loop {
            let page = tokio::select! {
                page = self.page() => page?,
                () = stop.cancelled() => return Ok(Stop::Interrupted),
            };
            let page = match page {
                Ok(page) => page,
                Err(stop) => return Ok(stop),
            };
            if let Some(stop) = self.keep(page).await? {
                return Ok(stop);
            }
        }
    }

    /// The next page, asked for as often as the recipe allows.
    async fn page(&mut self) -> Result<Result<Page, Stop>, CrawlError> {
        let mut tries = Tries::default();
        loop {
            let fetched = self.ask().await?;
            let trouble = match read(&fetched) {
                Ok(page) => {
                    self.note_start(&fetched).await?;
                    self.judge_page(&fetched);
                    return Ok(Ok(page));
                }
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Throttled(_) => tries.throttled += 1,
                Trouble::Failing => tries.failing += 1,
                Trouble::Timeout => tries.timeouts += 1,
                Trouble::Refused | Trouble::KeyNeeded | Trouble::NotFound | Trouble::Other(_) => {}
            }
            let jitter = rand::rng().random_range(0.5..1.5);
            match mcp_registry::next_step(trouble, tries, self.walk.cursor.is_some(), jitter) {
                Next::Again(wait) => self.wait(wait, &fetched).await,
                Next::StartOver if self.has_started_over => {
                    return Ok(Err(Stop::Incomplete("the registry refused its own cursor twice".to_owned())));
                }
                Next::StartOver => self.start_over().await?,
                Next::OlderPath if self.path == ApiPath::V01 => self.path = ApiPath::V0,
                Next::OlderPath => return Ok(Err(Stop::Incomplete("there is no list at this address".to_owned()))),
                Next::GiveUp(why) => return Ok(Err(Stop::Incomplete(format!("{why}: {}", described(&fetched))))),
            }
        }
    }

    /// Waits before the same page is asked for again, and says so to whoever watches.
    async fn wait(&self, wait: Duration, fetched: &Fetched) {
        let Registry { name, base, .. } = &self.registry.settings;
        let why = described(fetched);
        tracing::info!("registry {name}: {why}; asked again in {} s", wait.as_secs());
        self.crawler.reporter.unreached(Unreached {
            what: name.clone(),
            url: base.clone(),
            why,
            retry_at_s: Some(self.crawler.now_s() + i64::try_from(wait.as_secs()).unwrap_or(0)),
        });
        tokio::time::sleep(wait).await;
    }

    async fn ask(&self) -> Result<Fetched, CrawlError> {
        let base = &self.registry.settings.base;
        let url = mcp_registry::page_url(base, self.path, self.walk.cursor.as_deref(), self.since.as_deref())
            .map_err(|_| CrawlError::Base(base.clone()))?;
        let key = self.registry.key.iter().map(|key| Header::secret(HeaderName::from_static("x-api-key"), key.clone()));
        let ask = Ask {
            step: Some(Step::RegistryPage),
            accept: Some("application/json"),
            headers: key.collect(),
            way: Way::Registry,
            pace: Some(Duration::from_millis(self.registry.settings.pace_ms)),
            ..Ask::get(url, BodyKind::RegistryPage)
        };
        Ok(self.crawler.client.fetch(ask).await?)
    }

    /// What the rules say of a page as it came.
    fn judge_page(&mut self, fetched: &Fetched) {
        let body = fetched.body.as_deref().unwrap_or_default();
        let session = Session::from(vec![fetched.last().clone()]);
        let place = format!("page {} ", self.walk.pages + 1);
        self.findings.add(&listing::judge_page(body, &session, &self.crawler.judging), &place);
        let so_far = self.course(true);
        if let Some((place, report)) = self.record.add(body, so_far, &self.crawler.judging) {
            self.findings.add(&report, &place);
        }
    }

    /// What the rules say of entries that were listed otherwise before; of each entry whether it came as it was.
    async fn judge_changes(&mut self, entries: &[mcp_registry::Entry]) -> Result<Vec<bool>, CrawlError> {
        let coming: Vec<_> = entries.iter().map(coming).collect();
        let listed = self.crawler.store.listed_before(self.registry.id, &coming).await?;
        for before in listed.changed {
            let entry = &entries[before.entry];
            let was = listing::entry(&String::from_utf8_lossy(&before.server), before.meta.as_deref());
            let is = listing::entry(&entry.server, entry.meta.as_deref());
            if let (Some(was), Some(is)) = (was, is) {
                let report = listing::judge_change(&was, &is, &self.crawler.judging);
                self.findings.add(&report, &format!("{} {} ", entry.name, entry.version));
            }
        }
        Ok(listed.is_same)
    }

    /// What the rules say of the walk as a whole, and everything they said of its parts, kept beside it.
    async fn judge_walk(&mut self, is_complete: bool) -> Result<(), CrawlError> {
        let course = self.course(is_complete);
        let (place, report) = self.record.judge(course, &self.crawler.judging);
        self.findings.add(&report, &place);
        if course.is_complete {
            let (missing, others) = self.crawler.store.missing_keys(self.walk.id, MOST_MISSING).await?;
            if !missing.is_empty() {
                let known: Vec<_> = missing.into_iter().chain(others.iter().cloned()).collect();
                self.findings.add(&listing::judge_absence(&known, &others, &self.crawler.judging), "");
            }
        }
        Ok(self.crawler.store.keep_walk_findings(self.walk.id, self.findings.findings()).await?)
    }

    fn course(&self, is_complete: bool) -> Course {
        let is_whole = self.walk.is_full && !self.is_resumed;
        Course {
            is_complete: is_complete && is_whole,
            with_deleted: self.walk.is_full,
            max_pages: self.crawler.settings.max_walk_pages,
        }
    }

    /// The next incremental pass begins where this one did, by the registry's own clock.
    async fn note_start(&self, fetched: &Fetched) -> Result<(), CrawlError> {
        let date = fetched.response().and_then(|response| response.header("date"));
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        if let Some(date) = date.filter(|_| self.walk.pages == 0) {
            self.crawler.store.walk_started_at(self.walk.id, date.timestamp()).await?;
        }
        Ok(())
    }

    /// The cursor died: the same walk once more from its beginning.
    async fn start_over(&mut self) -> Result<(), CrawlError> {
        self.fault("cursor-refused", None, "the registry refused its own cursor; the walk began anew").await?;
        self.has_started_over = true;
        self.begin_again("began anew", self.walk.since_s).await
    }

    /// The registry answered with all it has: the walk becomes a full one, and those to come are.
    async fn read_everything(&mut self) -> Result<(), CrawlError> {
        let note = "the list holds entries that are older than was asked for; this registry is walked completely";
        self.fault("updated-since-ignored", None, note).await?;
        self.crawler.store.since_is_ignored(self.registry.id, self.crawler.now_s()).await?;
        self.since = None;
        self.begin_again("the registry ignores updated_since", None).await
    }

    async fn begin_again(&mut self, why: &str, since_s: Option<i64>) -> Result<(), CrawlError> {
        let now_s = self.crawler.now_s();
        let end = walks::WalkEnd::Incomplete(why.to_owned());
        self.crawler.store.finish_walk(self.walk.id, &end, now_s).await?;
        self.walk = self.crawler.store.begin_walk(self.registry.id, self.crawl, since_s, now_s).await?;
        self.seen_cursors.clear();
        self.has_hole = false;
        self.empty_run = 0;
        self.is_resumed = false;
        self.record = WalkRecord::default();
        Ok(())
    }

    /// Stores a page and says whether the walk ends with it.
    async fn keep(&mut self, page: Page) -> Result<Option<Stop>, CrawlError> {
        for why in page.unreadable.iter().take(10) {
            self.fault("entry-unreadable", self.walk.cursor.clone(), why).await?;
        }
        if self.ignores_since(&page) {
            self.read_everything().await?;
            return Ok(None);
        }
        let stop = self.after(&page);
        self.empty_run = if page.entries.is_empty() { self.empty_run + 1 } else { 0 };
        if page.entries.is_empty() && page.next.is_some() && !self.has_hole {
            self.has_hole = true;
            self.fault("empty-page", self.walk.cursor.clone(), "a page in the middle of the list holds nothing")
                .await?;
        }
        let next = if stop.is_none() { page.next.clone() } else { None };
        let names = &self.crawler.opt_outs.names;
        let wanted = page.entries.into_iter().filter(|entry| !names.contains(&entry.name));
        let wanted: Vec<_> = wanted.collect();
        let is_same = self.judge_changes(&wanted).await?;
        let entries: Vec<_> = wanted.into_iter().zip(is_same).map(|(entry, is_same)| listed(entry, is_same)).collect();
        let store = &self.crawler.store;
        let now_s = self.crawler.now_s();
        let stored =
            patiently(self.crawler, &self.stop, || store.store_page(self.walk.id, &entries, next.as_deref(), now_s));
        stored.await?;
        self.walk.pages += 1;
        self.walk.entries += entries.len() as i64;
        self.walk.cursor.clone_from(&next);
        self.seen_cursors.extend(next);
        let (pages, count) = (self.walk.pages, self.walk.entries);
        self.crawler.reporter.note(|progress| {
            let walk = progress.walks.entry(self.registry.settings.name.clone()).or_default();
            (walk.pages, walk.entries) = (pages as u64, count as u64);
        });
        if let Some(Stop::Incomplete(why)) = &stop {
            let code = if why.contains("cursor") { "cursor-repeated" } else { "walk-too-long" };
            self.fault(code, page.next, why).await?;
        }
        Ok(stop)
    }

    /// Whether the list ends here, or goes round in circles, or is longer than any list we believe in.
    fn after(&self, page: &Page) -> Option<Stop> {
        let settings = &self.crawler.settings;
        let Some(next) = &page.next else { return Some(Stop::End) };
        if self.seen_cursors.contains(next) {
            return Some(Stop::Incomplete("a cursor came back that was used before".to_owned()));
        }
        if page.entries.is_empty() && self.empty_run >= MAX_EMPTY_RUN {
            return Some(Stop::Incomplete("empty pages with ever new cursors".to_owned()));
        }
        let too_long = self.walk.pages + 1 >= i64::from(settings.max_walk_pages)
            || self.walk.entries as u64 >= settings.max_walk_entries;
        too_long.then(|| Stop::Incomplete("more pages or entries than a list may have".to_owned()))
    }

    /// `updated_since` is exclusive: an entry that is not later shows that the registry does not know it.
    fn ignores_since(&self, page: &Page) -> bool {
        let Some(since_s) = self.walk.since_s else { return false };
        page.entries.iter().any(|entry| entry.updated_ms.is_some_and(|at| at <= since_s * 1000))
    }

    async fn fault(&self, code: &str, subject: Option<String>, note: &str) -> Result<(), CrawlError> {
        let fault = Fault { code: code.to_owned(), subject, note: Some(note.to_owned()) };
        Ok(self.crawler.store.crawl_fault(self.crawl, &fault, self.crawler.now_s()).await?)
    }

    async fn finish(mut self, stop: Stop, accept_loss: bool) -> Result<WalkEnd, CrawlError> {
        let problem = match stop {
            Stop::End if self.has_hole && self.walk.is_full => {
                Some("a page in the middle of the list was empty, so what is missing proves nothing".to_owned())
            }
            Stop::End => None,
            Stop::Incomplete(why) => Some(why),
            // Left open on purpose: the next pass goes on from the stored cursor.
            Stop::Interrupted => {
                self.judge_walk(false).await?;
                let end = self.ended(Some("interrupted; it goes on from here".to_owned()));
                return Ok(WalkEnd { is_stopped: true, ..end });
            }
        };
        self.judge_walk(problem.is_none()).await?;
        let end = match &problem {
            None if accept_loss => walks::WalkEnd::CompleteLossAccepted,
            None => walks::WalkEnd::Complete,
            Some(why) => walks::WalkEnd::Incomplete(why.clone()),
        };
        self.crawler.store.finish_walk(self.walk.id, &end, self.crawler.now_s()).await?;
        Ok(self.ended(problem))
    }

    fn ended(self, problem: Option<String>) -> WalkEnd {
        self.crawler.reporter.note(|progress| {
            progress.walks.entry(self.registry.settings.name.clone()).or_default().has_ended = true;
        });
        WalkEnd {
            registry: self.registry.settings.name.clone(),
            is_complete: problem.is_none(),
            is_stopped: false,
            is_full: self.walk.is_full,
            pages: self.walk.pages as u64,
            entries: self.walk.entries as u64,
            problem,
        }
    }
}

fn coming(entry: &mcp_registry::Entry) -> Coming<'_> {
    Coming { name: &entry.name, version: &entry.version, server: entry.server.as_bytes(), meta: entry.meta.as_deref() }
}

/// The entry as the store takes it. What came as it was is not read again.
fn listed(entry: mcp_registry::Entry, is_same: bool) -> walks::Entry {
    let document = (!is_same).then(|| Document::from_text(&entry.server));
    let root = document.as_ref().and_then(Document::root);
    let text = |key: &str| root.and_then(|root| root.get(key)).and_then(Node::text).map(str::to_owned);
    walks::Entry {
        semantic_hash: root.map(semantic_hash),
        title: text("title"),
        description: text("description"),
        name: entry.name,
        version: entry.version,
        server: entry.server.into_bytes(),
        meta: entry.meta,
        status: entry.status,
        status_message: entry.status_message,
        published_ms: entry.published_ms,
        updated_ms: entry.updated_ms,
        is_latest: entry.is_latest,
    }
}

/// The page of an answer, or what came in its place.
fn read(fetched: &Fetched) -> Result<Page, Trouble> {
    let last = fetched.last();
    let Some(response) = &last.response else {
        return Err(match last.error {
            Some(WireError::Timeout | WireError::ConnectTimeout | WireError::DnsTimeout) => Trouble::Timeout,
            _ => Trouble::Failing,
        });
    };
    match (response.status, response.cut) {
        (200..300, None) => {
            let body = fetched.body.as_deref().unwrap_or_default();
            mcp_registry::read_page(body).map_err(|_| Trouble::Failing)
        }
        (200..300, Some(Cut::Timeout)) => Err(Trouble::Timeout),
        (200..300 | 500..600, _) => Err(Trouble::Failing),
        (429, _) => Err(Trouble::Throttled(retry_after(response.headers.get("retry-after")))),
        (400 | 422, _) => Err(Trouble::Refused),
        (401 | 403, _) => Err(Trouble::KeyNeeded),
        (404, _) => Err(Trouble::NotFound),
        (status, _) => Err(Trouble::Other(status)),
    }
}

fn retry_after(value: Option<&String>) -> Option<Duration> {
    politeness::parse_retry_after(value?, Utc::now())
}

/// What came in place of a page, in words.
fn described(fetched: &Fetched) -> String {
    let last = fetched.last();
    match (&last.response, last.error) {
        (Some(response), _) => match response.cut {
            Some(cut) => format!("status {}, body cut ({cut:?})", response.status),
            None => format!("status {}", response.status),
        },
        (None, Some(error)) => crate::words::wire_error(error).to_owned(),
        (None, None) => "nothing was said".to_owned(),
    }
}
