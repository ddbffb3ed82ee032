//! A round: surfaces that are due are leased, probed, judged and recorded, many at a time and each host politely.
//!
//! Probing and judging happen side by side; one task records, in batches, so that the database has one writer. At
//! shutdown what is in flight may finish for a while; the rest is given back.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plumbline_rules::canonical::{Hash, content_hash, semantic_hash};
use plumbline_rules::document::{Document, Node};
use plumbline_rules::judge::{Given, Origin, Subject, judge, judge_without_document};
use plumbline_rules::kind::Kind;
use plumbline_rules::past::{MOST_BEFORE, judge_past};
use plumbline_rules::reach::{Outcome, Skip};
use plumbline_rules::report::{Outcome as Said, Report, RuleResult};
use plumbline_rules::rule::{Check, Evidence};
use plumbline_rules::session::Session;
use plumbline_rules::session_judge::document_of;
use plumbline_store::documents;
use plumbline_store::ids::{CrawlId, DocumentId, RulesetId, SurfaceId};
use plumbline_store::judged::Judged;
use plumbline_store::reach::OutcomeClass;
use plumbline_store::record::{BATCH, Observation, Place, Recorded, Served};
use plumbline_store::sources::CrawlCounts;
use plumbline_store::surfaces::{DueSurface, Feed, Take, Validators};
use plumbline_store::words::SurfaceKind;
use rand::Rng;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::counters::COUNTERS;
use crate::net::Client;
use crate::probe::a2a::CardAsk;
use crate::probe::{self, Body, Observed};
use crate::progress::Unreached;
use crate::schedule::{self, Wait};
use crate::sources::domains;
use crate::targets::{document_kind, file_path};
use crate::upstream::{self, WEEK_S};
use crate::witness::Look;
use crate::{CrawlError, Crawler, endpoint, pass};

/// Surfaces taken on at a time. Most of them wait for their host's turn, which costs next to nothing.
const IN_FLIGHT: usize = 1000;

/// The longest a batch waits for company.
const BATCH_WAIT: Duration = Duration::from_millis(250);

/// A host that is to be left alone for longer than this is not waited for: its surfaces come later.
const PATIENCE: Duration = Duration::from_secs(10);

/// How the database is called among what could not be reached.
const DATABASE: &str = "the database";

/// The longest wait for a database that is locked or full.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Characters taken over from what a document says about itself.
const MAX_OWN_WORDS: usize = 400;

/// What a round came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundEnd {
    /// Surfaces looked at.
    pub looked_at: u64,
    /// Of them, where the failure was our own.
    pub faults: u64,
    /// Of them, given back unlooked at because we were told to stop.
    pub given_back: u64,
    /// What recording changed.
    pub opened: i64,
    /// Findings that are over.
    pub resolved: i64,
    /// Findings that worked before.
    pub regressed: i64,
}

/// Whether a round goes on when it has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Going {
    /// More will come: it waits.
    On,
    /// It ends as soon as nothing is due.
    UntilDry,
    /// It takes nothing more and ends with what is in flight.
    Closing,
}

/// Looks at what is due. `going` is asked again and again, with the time since there was anything to do.
///
/// # Errors
/// Only when we failed. What was recorded until then stays, what was in flight is given back.
pub async fn round(
    crawler: &Arc<Crawler>,
    crawl: CrawlId,
    stop: &CancellationToken,
    going: impl Fn(Duration) -> Going,
) -> Result<RoundEnd, CrawlError> {
    let now_s = crawler.now_s();
    crawler.witness.expect(crawler.store.usual_failures(now_s).await?);
    crawler.reporter.note(|progress| progress.is_round_running = true);
    let mut end = RoundEnd::default();
    loop {
        let (observed, observations) = mpsc::channel(BATCH * 2);
        let recorder = tokio::spawn(record(crawler.clone(), stop.clone(), observations));
        let worked = work(crawler, crawl, stop, &going, observed).await;
        let recorded = recorder.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        let (recorded, given_back) = match (recorded, worked) {
            (Ok(recorded), Ok(given_back)) => (recorded, given_back),
            (Err(error), _) | (_, Err(error)) => {
                crawler.reporter.note(|progress| progress.is_round_running = false);
                return Err(error);
            }
        };
        end.add(&recorded);
        end.given_back += given_back;
        // What documents lead to is due as soon as it is recorded, which may be after the last look was begun.
        if recorded.linked == 0 || stop.is_cancelled() {
            break;
        }
    }
    crawler.reporter.note(|progress| progress.is_round_running = false);
    Ok(end)
}

impl RoundEnd {
    /// Adds what a further round came to.
    pub fn add_up(&mut self, more: &RoundEnd) {
        self.looked_at += more.looked_at;
        self.faults += more.faults;
        self.given_back += more.given_back;
        self.opened += more.opened;
        self.resolved += more.resolved;
        self.regressed += more.regressed;
    }

    fn add(&mut self, recorded: &Recorded) {
        self.looked_at += recorded.observations as u64;
        self.faults += recorded.faults as u64;
        self.opened += recorded.opened;
        self.resolved += recorded.resolved;
        self.regressed += recorded.regressed;
    }
}

async fn work(
    crawler: &Arc<Crawler>,
    crawl: CrawlId,
    stop: &CancellationToken,
    going: &impl Fn(Duration) -> Going,
    observed: mpsc::Sender<Observation>,
) -> Result<u64, CrawlError> {
    let mut at_work = HashSet::new();
    let mut tasks: Looks = JoinSet::new();
    let ended = look_around(crawler, crawl, stop, going, &observed, &mut tasks, &mut at_work).await;
    let patience = match &ended {
        Ok(()) => Duration::from_secs(crawler.settings.drain_s),
        Err(_) => Duration::ZERO,
    };
    drop(observed);
    let given_back = drain(crawler, tasks, at_work, patience).await;
    ended?;
    given_back
}

/// Looks in flight.
type Looks = JoinSet<(SurfaceId, Result<(), CrawlError>)>;

async fn look_around(
    crawler: &Arc<Crawler>,
    crawl: CrawlId,
    stop: &CancellationToken,
    going: impl Fn(Duration) -> Going,
    observed: &mpsc::Sender<Observation>,
    tasks: &mut Looks,
    at_work: &mut HashSet<SurfaceId>,
) -> Result<(), CrawlError> {
    let mut idle_since = tokio::time::Instant::now();
    while !stop.is_cancelled() {
        let going = going(idle_since.elapsed());
        let taken = match going {
            Going::Closing => Vec::new(),
            Going::On | Going::UntilDry => take_or_wait(crawler, crawl, at_work, IN_FLIGHT - tasks.len()).await?,
        };
        let is_idle = taken.is_empty() && tasks.is_empty();
        // What waits for its host's turn is still to be taken, though nothing could be just now.
        if is_idle && (going == Going::Closing || going == Going::UntilDry && pass::is_nothing_to_do(crawler).await?) {
            return Ok(());
        }
        if !is_idle {
            idle_since = tokio::time::Instant::now();
        }
        for surface in taken {
            at_work.insert(surface.id);
            tasks.spawn(look(crawler.clone(), crawl, surface, observed.clone()));
        }
        // Wait until there is room for a good number, or for news of what is due.
        let pause = tokio::time::sleep(BATCH_WAIT);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    let (surface, result) = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
                    at_work.remove(&surface);
                    result?;
                    if tasks.is_empty() { break }
                }
                () = &mut pause => break,
                () = stop.cancelled() => break,
            }
        }
    }
    Ok(())
}

/// Leases what is due; nothing while the database is locked for a moment.
async fn take_or_wait(
    crawler: &Crawler,
    crawl: CrawlId,
    at_work: &HashSet<SurfaceId>,
    room: usize,
) -> Result<Vec<DueSurface>, CrawlError> {
    match take(crawler, crawl, at_work, room).await {
        Err(CrawlError::Store(error)) if error.may_pass() => {
            tracing::warn!("nothing is taken on for now: {error}");
            Ok(Vec::new())
        }
        taken => taken,
    }
}

/// Leases what is due, as far as there is room, unless everything is paused or the hour's budget is used up.
async fn take(
    crawler: &Crawler,
    crawl: CrawlId,
    at_work: &HashSet<SurfaceId>,
    room: usize,
) -> Result<Vec<DueSurface>, CrawlError> {
    let now_s = crawler.now_s();
    // Whether it is worth asking is a matter of room alone: the last looks of a budget are looks too.
    let is_crowded = room < IN_FLIGHT / 4 && room < IN_FLIGHT - at_work.len();
    let room = room.min(usize::try_from(crawler.budget.left(now_s)).unwrap_or(usize::MAX));
    if is_crowded || pass::is_nothing_to_do(crawler).await? {
        return Ok(Vec::new());
    }
    let take = Take {
        limit: u32::try_from(room).unwrap_or(u32::MAX),
        per_host: schedule::per_host(crawler.client.usual_gap()),
        until_s: now_s + i64::try_from(crawler.settings.lease_s).unwrap_or(i64::MAX / 2),
    };
    let mut due = crawler.store.due_surfaces(now_s, take, &crawler.holder).await?;
    due.retain(|surface| !at_work.contains(&surface.id));
    if !due.is_empty() {
        crawler.budget.spend(due.len() as u64);
        let counts = CrawlCounts { planned: due.len() as i64, ..CrawlCounts::default() };
        crawler.store.add_to_crawl(crawl, &counts).await?;
        crawler.reporter.note(|progress| progress.planned += due.len() as u64);
    }
    Ok(due)
}

/// Lets what is in flight finish for a while, then gives the rest back.
async fn drain(
    crawler: &Crawler,
    mut tasks: Looks,
    mut at_work: HashSet<SurfaceId>,
    patience: Duration,
) -> Result<u64, CrawlError> {
    let finishing = async {
        while let Some(ended) = tasks.join_next().await {
            if let Ok((surface, Ok(()))) = ended {
                at_work.remove(&surface);
            }
        }
    };
    let _ = tokio::time::timeout(patience, finishing).await;
    tasks.shutdown().await;
    let left: Vec<SurfaceId> = at_work.into_iter().collect();
    if !left.is_empty() {
        crawler.store.release(&left, &crawler.holder).await?;
    }
    Ok(left.len() as u64)
}

async fn look(
    crawler: Arc<Crawler>,
    crawl: CrawlId,
    surface: DueSurface,
    observed: mpsc::Sender<Observation>,
) -> (SurfaceId, Result<(), CrawlError>) {
    let id = surface.id;
    let result = observe(&crawler, crawl, surface).await;
    let result = match result {
        // The recorder is gone only when it failed, and says so itself.
        Ok(observation) => observed.send(observation).await.map_err(|_| ()).or(Ok(())),
        Err(error) => Err(error),
    };
    (id, result)
}

/// Looks at one surface: asks, judges what came, and says when to look again.
async fn observe(crawler: &Crawler, crawl: CrawlId, surface: DueSurface) -> Result<Observation, CrawlError> {
    if let Some(rest) = rest_of(crawler, &surface) {
        return Ok(postponed(crawler, crawl, &surface, rest));
    }
    if surface.kind == SurfaceKind::McpEndpoint {
        return endpoint::observe(crawler, crawl, &surface).await;
    }
    let client = client_for(crawler, &surface);
    let mut seen = see(crawler, &client, &surface).await?;
    let now_s = crawler.now_s();
    if matches!(surface.from, Feed::Fetched) && file_path(&surface.url).is_none() {
        seen.observed.outcome = weighed(crawler, &surface, &seen.observed, now_s).await;
    }
    let traits = crawler.traits_of(&surface).await?;
    let ruleset = crawler.ruleset_of(&traits).await?;
    let fires_on_old = match document_before(&surface, &seen, ruleset) {
        Some(before) => judge_old(crawler, &surface, before, &traits).await?,
        None => None,
    };
    let before = match present(&surface, &seen) {
        Some(present) => documents_before(crawler, &surface, present).await?,
        None => Vec::new(),
    };
    let looks_behind = crawler.upstream.is_on() && is_settled(&surface, ruleset);
    let is_listing = matches!(surface.from, Feed::Listed(_)) && surface.kind == SurfaceKind::ServerJson;
    let server = seen.document.as_ref().and_then(Document::root).filter(|_| is_listing).map(Node::to_value);
    let (behind, of_behind) = match server {
        Some(server) if looks_behind => {
            let (judging, is_verification) = (&crawler.judging, surface.is_verification);
            crawler.upstream.look(&client, &server, judging, is_verification, now_s).await?
        }
        // Nobody asked, and so what is known of it stays as it was.
        Some(server) => (Session::default(), upstream::unasked(&server, &crawler.judging)),
        None => Default::default(),
    };
    let judgement = judge_seen(crawler, &surface, &seen, &before, of_behind, traits, ruleset);
    count(&surface, &seen, &judgement);
    crawler.reporter.note(|progress| {
        progress.looked_at += 1;
        progress.answered += u64::from(seen.observed.outcome.is_up());
    });
    let next_due_s = match surface.from {
        Feed::Fetched => next_due(crawler, &surface, seen.observed.outcome, now_s).await?,
        // It changes with its listing, and the walk that sees that makes it due. What stands behind it does not.
        Feed::Listed(_) => next_look_behind(crawler, looks_behind, now_s),
    };
    let is_listed = surface.kind == SurfaceKind::ServerJson && crawler.probing.endpoints;
    let listed = seen.document.as_ref().and_then(Document::root).filter(|_| is_listed);
    let links = listed.map(endpoint::links);
    let of_record = match seen.observed.body {
        Body::Answer(number) => Some(number),
        Body::None | Body::Unchanged | Body::File(_) => None,
    };
    let session = match surface.from {
        Feed::Fetched if !seen.observed.session.exchanges.is_empty() => {
            endpoint::kept(&seen.observed.recorded(), of_record)
        }
        Feed::Listed(_) if !behind.exchanges.is_empty() => endpoint::kept(&behind, None),
        Feed::Fetched | Feed::Listed(_) => None,
    };
    Ok(Observation {
        surface: surface.id,
        crawl: Some(crawl),
        at_s: now_s,
        outcome: seen.observed.outcome,
        status: seen.observed.status(),
        took_ms: u32::try_from(seen.observed.took_ms()).unwrap_or(u32::MAX),
        is_verification: surface.is_verification,
        // Nothing is called unreachable here that no witness vouches for.
        witness_good: true,
        served: judgement.served,
        declared_version: judgement.declared_version,
        name: judgement.name,
        summary: judgement.summary,
        validators: seen.validators,
        judged: judgement.judged,
        fires_on_old,
        place: place_of(&seen.observed.session),
        session,
        standing: None,
        links,
        next_due_s,
        every_s: every_s(crawler, &surface),
    })
}

/// Whether it is a listing that was judged as it stands by these very rules: only then is there a look behind it. A walk
/// and a new release make thousands due at once, and all of them lead to the same few hosts.
fn is_settled(surface: &DueSurface, ruleset: RulesetId) -> bool {
    let Feed::Listed(document) = surface.from else { return false };
    surface.document == Some(document) && surface.ruleset == Some(ruleset)
}

/// When a listing is looked at again though it has not changed: a week after the look behind it, or at any time within the
/// week where there was none yet; never where the settings ask for no such looks.
fn next_look_behind(crawler: &Crawler, has_looked: bool, now_s: i64) -> Option<i64> {
    let within = |most_s: i64| rand::rng().random_range(0..most_s);
    let after_s = if has_looked { WEEK_S + within(WEEK_S / 7) } else { within(WEEK_S) };
    crawler.upstream.is_on().then_some(now_s + after_s)
}

/// How long the host of a surface is still to be left alone, if that is too long to wait.
fn rest_of(crawler: &Crawler, surface: &DueSurface) -> Option<Duration> {
    let url = url::Url::parse(&surface.url).ok().filter(|_| matches!(surface.from, Feed::Fetched))?;
    Some(crawler.client.politeness().wait_for(&url)).filter(|rest| *rest > PATIENCE)
}

/// The look comes when the host's rest is over; nothing is known of the surface meanwhile.
fn postponed(crawler: &Crawler, crawl: CrawlId, surface: &DueSurface, rest: Duration) -> Observation {
    let now_s = crawler.now_s();
    let after_s = i64::try_from(rest.as_secs()).unwrap_or(i64::MAX / 2) + rand::rng().random_range(1..30);
    Observation {
        surface: surface.id,
        crawl: Some(crawl),
        at_s: now_s,
        outcome: Outcome::Skipped(Skip::CircuitOpen),
        status: None,
        took_ms: 0,
        is_verification: false,
        witness_good: true,
        served: Served::Nothing,
        declared_version: None,
        name: None,
        summary: None,
        validators: None,
        judged: None,
        fires_on_old: None,
        place: None,
        session: None,
        standing: None,
        links: None,
        next_due_s: Some(now_s + after_s),
        every_s: every_s(crawler, surface),
    }
}

/// The outcome as it may be recorded: whoever does not answer is blamed only when somebody else does.
pub(crate) async fn weighed(crawler: &Crawler, surface: &DueSurface, observed: &Observed, now_s: i64) -> Outcome {
    let look = Look::of(&surface.url, observed.outcome, &observed.session.exchanges, now_s * 1_000);
    crawler.witness.note(look, now_s);
    crawler.witness.weigh(&crawler.client, &crawler.settings.canaries, look, now_s).await
}

/// Counts a look for whoever watches the process.
fn count(surface: &DueSurface, seen: &Seen, judgement: &Judgement) {
    let is_asked = matches!(surface.from, Feed::Fetched) && !seen.observed.session.exchanges.is_empty();
    let took = is_asked.then(|| Duration::from_millis(seen.observed.took_ms()));
    COUNTERS.looked(surface.kind, seen.observed.outcome.into(), took, judgement.judged.is_some());
}

/// What a look brought, before judging.
struct Seen {
    observed: Observed,
    /// The document's bytes, wherever they came from.
    document: Option<Document>,
    /// How the store gets them.
    served: Arrived,
    media_type: Option<String>,
    validators: Option<Validators>,
}

enum Arrived {
    Nothing,
    Unchanged,
    Kept(plumbline_store::ids::DocumentId),
    Bytes(Vec<u8>),
}

/// A second look goes over connections of its own.
pub(crate) fn client_for(crawler: &Crawler, surface: &DueSurface) -> Client {
    if surface.is_verification { crawler.client.anew() } else { crawler.client.clone() }
}

async fn see(crawler: &Crawler, client: &Client, surface: &DueSurface) -> Result<Seen, CrawlError> {
    if let Feed::Listed(document) = surface.from {
        let kept = crawler.store.document(document).await?;
        let observed =
            Observed { session: Session::default(), robots: Vec::new(), outcome: Outcome::Ok, body: Body::None };
        let document_read = kept.bytes.as_deref().filter(|_| !kept.is_cut).map(Document::read);
        return Ok(Seen {
            observed,
            document: document_read,
            served: Arrived::Kept(document),
            media_type: None,
            validators: None,
        });
    }
    let observed = ask(crawler, client, surface).await?;
    let answer = match &observed.body {
        Body::Answer(number) => observed.session.exchanges.get(*number).and_then(|exchange| exchange.response.as_ref()),
        Body::None | Body::Unchanged | Body::File(_) => None,
    };
    let media_type = answer.and_then(|response| response.header("content-type")).map(str::to_owned);
    let validators = answer.map(|response| Validators {
        etag: response.header("etag").map(str::to_owned),
        last_modified: response.header("last-modified").map(str::to_owned),
    });
    let (document, served) = match (&observed.body, answer) {
        (Body::Answer(_), Some(response)) => {
            (Some(document_of(response)), Arrived::Bytes(response.body().into_owned()))
        }
        (Body::File(bytes), _) => (Some(Document::read(bytes)), Arrived::Bytes(bytes.to_vec())),
        (Body::Unchanged, _) => {
            let last = crawler.store.last_document(surface.id).await?;
            let bytes = last.filter(|document| !document.is_cut).and_then(|document| document.bytes);
            (bytes.as_deref().map(Document::read), Arrived::Unchanged)
        }
        (Body::None | Body::Answer(_), _) => (None, Arrived::Nothing),
    };
    Ok(Seen { observed, document, served, media_type, validators })
}

async fn ask(crawler: &Crawler, client: &Client, surface: &DueSurface) -> Result<Observed, CrawlError> {
    let Some(kind) = document_kind(surface.kind) else {
        return Ok(probe::document::observe(client, &surface.url, Kind::Unknown, &[], None).await?);
    };
    if let Some(path) = file_path(&surface.url) {
        return Ok(probe::document::observe_file(path, kind).await);
    }
    let headers = crawler.headers.get(&surface.url).cloned().unwrap_or_default();
    let known = &surface.validators;
    let validators = (known.etag.is_some() || known.last_modified.is_some()).then(|| crate::net::Validators {
        url: surface.url.clone(),
        etag: known.etag.clone(),
        last_modified: known.last_modified.clone(),
    });
    if kind == Kind::AgentCard {
        let legacy_url = domains::card_address(&surface.url).ok().and_then(|address| address.legacy_url);
        let is_first = endpoint::is_first_today(crawler, surface).await?;
        let kept = match validators {
            Some(_) => crawler.store.last_document(surface.id).await?.filter(|document| !document.is_cut),
            None => None,
        };
        let card = CardAsk {
            url: surface.url.clone(),
            legacy_url,
            headers,
            validators,
            kept: kept.and_then(|document| document.bytes),
            surroundings: is_first,
            interfaces: is_first && crawler.probing.odd_requests,
        };
        Ok(probe::a2a::observe(client, &card, &crawler.key_sets).await?)
    } else {
        Ok(probe::document::observe(client, &surface.url, kind, &headers, validators).await?)
    }
}

/// What judging gave, ready to be recorded.
struct Judgement {
    served: Served,
    judged: Option<Judged>,
    declared_version: Option<String>,
    name: Option<String>,
    summary: Option<String>,
}

/// Which of the kept documents is the present one.
enum Present {
    /// The one with this hash, if it was kept before.
    Hash(Hash),
    /// What was served last, unchanged.
    Last,
}

/// Which one the present document is, where what came before it is looked at. Not for what a registry lists, whose changes
/// are told by its walks.
fn present(surface: &DueSurface, seen: &Seen) -> Option<Present> {
    let has_history = matches!(document_kind(surface.kind), Some(Kind::AgentCard | Kind::Openapi));
    if seen.document.is_none() || surface.document.is_none() || !has_history {
        return None;
    }
    match &seen.served {
        Arrived::Bytes(bytes) => Some(Present::Hash(content_hash(bytes))),
        Arrived::Unchanged => Some(Present::Last),
        Arrived::Nothing | Arrived::Kept(_) => None,
    }
}

/// The documents that were served before the present one, oldest first: what has changed is judged by them.
async fn documents_before(
    crawler: &Crawler,
    surface: &DueSurface,
    present: Present,
) -> Result<Vec<Document>, CrawlError> {
    let served = crawler.store.documents_of(surface.id, HISTORY + 1).await?;
    let is_present = |kept: &documents::Document| match present {
        Present::Hash(hash) => kept.hash == hash,
        Present::Last => surface.document == Some(kept.id),
    };
    let whole = served.into_iter().filter(|kept| !is_present(kept) && !kept.is_cut).filter_map(|kept| kept.bytes);
    let mut before: Vec<Document> = whole.map(|bytes| Document::read(&bytes)).take(MOST_BEFORE).collect();
    before.reverse();
    Ok(before)
}

/// Documents before the present one that are looked at.
const HISTORY: u32 = 3;
const _: () = assert!(MOST_BEFORE == HISTORY as usize, "the two are one number");

fn judge_seen(
    crawler: &Crawler,
    surface: &DueSurface,
    seen: &Seen,
    before: &[Document],
    of_behind: Vec<RuleResult>,
    traits: Given,
    ruleset: RulesetId,
) -> Judgement {
    let url = address_of_record(surface, &seen.observed);
    let given = Given { url: Some(url.clone()), ..traits };
    let live = matches!(surface.from, Feed::Fetched) && !seen.observed.session.exchanges.is_empty();
    let answer = match seen.observed.body {
        Body::Answer(number) => Some(number),
        Body::None | Body::Unchanged | Body::File(_) => None,
    };
    let subject = Subject {
        kind: document_kind(surface.kind),
        version: None,
        origin: origin(&url),
        given: &given,
        session: live.then_some(&seen.observed.session),
        answer,
    };
    let report = match &seen.document {
        Some(document) => {
            let mut report = judge(document, &subject, &crawler.judging);
            if let Some(kind) = subject.kind.filter(|_| !before.is_empty()) {
                report.results.extend(judge_past(before, document, kind, subject.session, &crawler.judging));
            }
            report.results.extend(of_behind);
            Some(report)
        }
        None if live => Some(judge_without_document(&subject, &crawler.judging)),
        None => None,
    };
    let may_move = matches!(seen.observed.outcome, Outcome::Ok | Outcome::Gated(_) | Outcome::Absent(_));
    let judged = report.filter(|_| may_move).map(|report| {
        let context = context_hash(crawler, &subject, &report);
        Judged { is_complete: seen.document.is_some(), ..Judged::of(&report, ruleset, context) }
    });
    let root = seen.document.as_ref().and_then(Document::root);
    let says = |keys: &[&str]| root.and_then(|root| own_words(root, keys));
    Judgement {
        served: served(seen, root),
        judged,
        declared_version: says(&["version", "/info/version"]),
        name: says(&["title", "name", "/info/title"]),
        summary: says(&["description", "/info/description"]),
    }
}

/// Where the last answer came from, as far as the connection shows it.
pub(crate) fn place_of(session: &Session) -> Option<Place> {
    let answered = session.exchanges.iter().rev().find(|exchange| exchange.response.is_some())?;
    let server = answered.response.as_ref().and_then(|response| response.header("server")).map(str::to_owned);
    let address = answered.peer.as_ref().and_then(|peer| peer.address.parse::<std::net::SocketAddr>().ok());
    let certificate = answered.peer.as_ref().and_then(|peer| peer.certificate.as_ref());
    Some(Place {
        address: address.map(|address| address.ip().to_canonical().to_string()),
        certificate: certificate.map(|shown| format!("{}, until {}", shown.issuer, date_of(shown.not_after_s))),
        leaf: certificate.map(|shown| shown.sha256.clone()),
        server,
    })
}

fn date_of(seconds: i64) -> String {
    let moment = chrono::DateTime::from_timestamp(seconds, 0);
    moment.map_or_else(|| seconds.to_string(), |moment| moment.format("%Y-%m-%d %H:%M").to_string())
}

/// The document before, where it has changed since it was judged and the rules have too.
fn document_before(surface: &DueSurface, seen: &Seen, ruleset: RulesetId) -> Option<DocumentId> {
    let is_new = match &seen.served {
        Arrived::Bytes(_) => true,
        Arrived::Kept(document) => surface.document != Some(*document),
        Arrived::Nothing | Arrived::Unchanged => false,
    };
    surface.document.filter(|_| is_new && surface.ruleset.is_some_and(|before| before != ruleset))
}

/// What the present rules say of the document before: it tells a change of ours from a change of theirs (dashboard §4.3).
async fn judge_old(
    crawler: &Crawler,
    surface: &DueSurface,
    before: DocumentId,
    traits: &Given,
) -> Result<Option<Vec<String>>, CrawlError> {
    let kept = crawler.store.document(before).await?;
    let Some(bytes) = kept.bytes.filter(|_| !kept.is_cut) else { return Ok(None) };
    let given = Given { url: Some(surface.url.clone()), ..traits.clone() };
    let subject = Subject {
        kind: document_kind(surface.kind),
        version: None,
        origin: origin(&surface.url),
        given: &given,
        session: None,
        answer: None,
    };
    let report = judge(&Document::read(&bytes), &subject, &crawler.judging);
    let fires = report.results.iter().filter(|result| matches!(result.outcome, Said::Fires(_)));
    Ok(Some(fires.map(|result| result.rule.id.to_owned()).collect()))
}

fn served(seen: &Seen, root: Option<Node<'_>>) -> Served {
    match &seen.served {
        Arrived::Nothing => Served::Nothing,
        Arrived::Unchanged => Served::Unchanged,
        Arrived::Kept(document) => Served::Kept(*document),
        Arrived::Bytes(bytes) => {
            let semantic = root.map(semantic_hash);
            Served::Body(documents::Body::new(bytes.clone(), semantic, seen.media_type.clone()))
        }
    }
}

/// The address the document came from, after redirects.
fn address_of_record(surface: &DueSurface, observed: &Observed) -> String {
    let exchange = match observed.body {
        Body::Answer(number) => observed.session.exchanges.get(number),
        Body::None | Body::Unchanged | Body::File(_) => None,
    };
    exchange.map_or_else(|| surface.url.clone(), |exchange| exchange.request.url.clone())
}

fn origin(url: &str) -> Origin {
    match crate::targets::host_name(url) {
        None => Origin::Nowhere,
        Some(host) if plumbline_rules::text::is_public_host(&host) => Origin::PublicHost,
        Some(_) => Origin::PrivateHost,
    }
}

/// The first of these members that is a text, shortened; a key that begins with a slash is a pointer (OpenAPI keeps its
/// words one step down).
fn own_words(root: Node<'_>, keys: &[&str]) -> Option<String> {
    let text = |key: &&str| match key.strip_prefix('/') {
        Some(path) => root.select(path).first().copied().and_then(Node::text),
        None => root.get(key).and_then(Node::text),
    };
    keys.iter().find_map(text).map(|text| text.chars().take(MAX_OWN_WORDS).collect())
}

/// The hash of everything that the judgement depends on besides the document. What rules said about the conversation is
/// part of it, so that a memo is never taken for a judgement of another conversation.
fn context_hash(crawler: &Crawler, subject: &Subject<'_>, report: &Report) -> Hash {
    let live: Vec<_> = report
        .results
        .iter()
        .filter(|result| result.rule.evidence != Evidence::Document || matches!(result.rule.check, Check::Session(_)))
        .map(|result| (result.rule.id, said(&result.outcome)))
        .collect();
    let context = serde_json::json!({
        "settings": crawler.judging,
        "kind": subject.kind,
        "origin": format!("{:?}", subject.origin),
        "given": subject.given,
        "live": live,
    });
    content_hash(context.to_string().as_bytes())
}

pub(crate) fn said(outcome: &Said) -> serde_json::Value {
    match outcome {
        Said::Fires(occurrences) => serde_json::json!(occurrences),
        Said::Passes => serde_json::json!("passes"),
        Said::NotApplicable => serde_json::json!("not_applicable"),
        Said::NotEvaluated(reason) => serde_json::json!(reason),
    }
}

pub(crate) async fn next_due(
    crawler: &Crawler,
    surface: &DueSurface,
    outcome: Outcome,
    now_s: i64,
) -> Result<Option<i64>, CrawlError> {
    let settings = &crawler.settings;
    let interval_s = interval_s(crawler, surface);
    let failures = if outcome.is_up() { 0 } else { failures_by_now(crawler, surface.id, interval_s, now_s).await? };
    let luck = rand::rng().random_range(0.0..1.0);
    let wait =
        Wait { interval: Duration::from_secs(interval_s), ceiling: Duration::from_secs(settings.backoff_ceiling_s) };
    let place = schedule::place_of(surface.id.0);
    Ok(Some(schedule::next_look(now_s, outcome, failures, wait, place, luck)))
}

/// Seconds between two regular looks at a surface that answers; an entry of a list is looked at with its list.
fn interval_s(crawler: &Crawler, surface: &DueSurface) -> u64 {
    let settings = &crawler.settings;
    let usual_s = match document_kind(surface.kind) {
        _ if matches!(surface.from, Feed::Listed(_)) => settings.registry_interval_s,
        Some(Kind::AgentCard) => settings.card_interval_s,
        _ if surface.kind == SurfaceKind::McpEndpoint => settings.endpoint_interval_s,
        _ if file_path(&surface.url).is_some() => settings.file_interval_s,
        _ => settings.url_interval_s,
    };
    surface.interval_s.and_then(|s| u64::try_from(s).ok()).unwrap_or(usual_s)
}

/// The same as it is written down.
pub(crate) fn every_s(crawler: &Crawler, surface: &DueSurface) -> Option<i64> {
    i64::try_from(interval_s(crawler, surface)).ok()
}

/// How many regular looks in a row failed, this one included. Looks out of turn are not counted: they are made because
/// it fails, and must not make the next regular one later.
async fn failures_by_now(
    crawler: &Crawler,
    surface: SurfaceId,
    interval_s: u64,
    now_s: i64,
) -> Result<u32, CrawlError> {
    let reach = crawler.store.surface(surface).await?.reach;
    let is_failing = reach.streak_of.is_some_and(|class| !matches!(class, OutcomeClass::Ok | OutcomeClass::Gated));
    let since_s = reach.streak_since_s.filter(|_| is_failing).unwrap_or(now_s);
    Ok(schedule::failures(now_s.saturating_sub(since_s), Duration::from_secs(interval_s)))
}

/// Records what arrives, in batches. A database that is locked or full for a while is waited for: what was seen is not
/// lost, and while the batch waits nothing new is asked.
async fn record(
    crawler: Arc<Crawler>,
    stop: CancellationToken,
    mut observations: mpsc::Receiver<Observation>,
) -> Result<Recorded, CrawlError> {
    let mut total = Recorded::default();
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(first) = observations.recv().await {
        batch.push(first);
        let deadline = tokio::time::Instant::now() + BATCH_WAIT;
        while batch.len() < BATCH {
            match tokio::time::timeout_at(deadline, observations.recv()).await {
                Ok(Some(observation)) => batch.push(observation),
                Ok(None) | Err(_) => break,
            }
        }
        let began = std::time::Instant::now();
        let room = room_to_verify(&crawler);
        let recorded = patiently(&crawler, &stop, || crawler.store.record_and_verify(&batch, room)).await?;
        crawler.verifications.spend(recorded.verifications);
        crawler.store.settle_deploys(crawler.now_s()).await?;
        COUNTERS.record.add(began.elapsed());
        batch.clear();
        total.observations += recorded.observations;
        total.faults += recorded.faults;
        total.opened += recorded.opened;
        total.resolved += recorded.resolved;
        total.regressed += recorded.regressed;
        total.documents_changed += recorded.documents_changed;
        total.linked += recorded.linked;
        total.verifications += recorded.verifications;
    }
    Ok(total)
}

/// Looks out of turn that may still be planned in this hour.
fn room_to_verify(crawler: &Crawler) -> u64 {
    match crawler.settings.verifications_per_hour() {
        0 => 0,
        _ => crawler.verifications.left(crawler.now_s()),
    }
}

/// Writes, and tries again for as long as the database fails in a way that passes.
pub(crate) async fn patiently<T, F: Future<Output = plumbline_store::Result<T>>>(
    crawler: &Crawler,
    stop: &CancellationToken,
    write: impl Fn() -> F,
) -> Result<T, CrawlError> {
    let mut wait = Duration::from_secs(1);
    loop {
        let error = match write().await {
            Ok(written) => {
                crawler.reporter.reached(DATABASE);
                return Ok(written);
            }
            Err(error) if error.may_pass() && !stop.is_cancelled() => error,
            Err(error) => return Err(error.into()),
        };
        tracing::warn!("not recorded yet, tried again in {} s: {error}", wait.as_secs());
        crawler.reporter.unreached(Unreached {
            what: DATABASE.to_owned(),
            url: String::new(),
            why: error.to_string(),
            retry_at_s: Some(crawler.now_s() + i64::try_from(wait.as_secs()).unwrap_or(0)),
        });
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return Err(error.into()),
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}
