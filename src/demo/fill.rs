//! Filling a database with the history of a synthetic ecosystem, day by day, through the same doors as the crawler.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use plumbline_rules::canonical::semantic_hash;
use plumbline_rules::document::Document;
use plumbline_rules::judge::Given;
use plumbline_store::deploys::{Marker, Whose};
use plumbline_store::housekeeping::{Job, Retention};
use plumbline_store::record::BATCH;
use plumbline_store::rulesets::RuleFacts;
use plumbline_store::sources::{CrawlCounts, CrawlEnd};
use plumbline_store::surfaces::{Feed, Take};
use plumbline_store::targets::{HostName, NewTarget, OwnerName};
use plumbline_store::walks::{Entry, WalkEnd};
use plumbline_store::words::{CrawlKind, CrawlState, Role, SourceKind, SurfaceKind, TargetKind};
use plumbline_store::{CrawlId, SourceId, Store};
use tokio::sync::mpsc;

use super::documents;
use super::looks::{Chunk, Observer, Release, Told};
use super::world::{BASES, DAY_S, Place, World};
use crate::settings::Settings;

/// Rules that come with the second release, and with the third.
const SECOND_RELEASE: [&str; 4] =
    ["a2a/skill-id-duplicate", "registry/no-install-method", "mcp/ping-failed", "openapi/path-parameter-undeclared"];
const THIRD_RELEASE: [&str; 4] =
    ["common/secret-pattern", "mcp/endpoint-get-status", "a2a/requirement-undefined-scheme", "oauth/as-pkce-missing"];

/// Where in its time the second and the third release come.
const RELEASES_AT: [f64; 2] = [0.42, 0.81];

/// How the walks and rounds of the history are signed.
const HOLDER: &str = "demo/1.1";

/// How long a round lasts, in seconds.
const ROUND_S: i64 = DAY_S / 4;

/// Days between two counts of the cohorts in the past, and between two sweeps of what is kept for some days only.
const COUNT_EVERY: i64 = 7;

/// Days between two whole lists of who is watched by address, which show who left.
const LIST_EVERY: i64 = 28;

/// How far filling has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Days lived through.
    pub days: i64,
    /// Of so many.
    pub of: i64,
    /// Looks recorded one by one.
    pub looks: u64,
    /// Looks written as quiet stretches.
    pub quiet: u64,
}

/// What is being filled.
pub struct Filling<'s> {
    store: &'s Store,
    observer: Option<Observer>,
    addresses: HashMap<(SurfaceKind, String), u32>,
    sources: HashMap<Place, SourceId>,
    releases: Vec<(i64, String, Vec<RuleFacts>, HashSet<&'static str>)>,
    /// Who appears, the latest first.
    to_come: Vec<u32>,
    /// Who is listed by address or domain at present.
    by_address: Vec<u32>,
    retention: Retention,
    progress: Progress,
}

impl<'s> Filling<'s> {
    /// Prepares an empty database.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin(store: &'s Store, world: World, settings: &Settings) -> Result<Filling<'s>> {
        let (start_s, end_s) = (world.extent.start_s, world.extent.end_s);
        let mut sources = HashMap::new();
        for (place, name, base) in BASES {
            let id = store.ensure_source(SourceKind::McpRegistry, name, Some(base), start_s).await?;
            sources.insert(place, id);
        }
        sources.insert(Place::Domains, store.ensure_source(SourceKind::Domains, "domains", None, start_s).await?);
        sources.insert(Place::Addresses, store.ensure_source(SourceKind::Settings, "urls", None, start_s).await?);
        let mut releases = releases(settings, start_s, end_s);
        releases.reverse();
        let (_, version, facts, missing) = releases.pop().context("there is a first release")?;
        let ruleset = store.ensure_ruleset(&version, &facts, start_s).await?;
        let mut to_come: Vec<u32> = (0..world.things.len() as u32).collect();
        to_come.sort_by_key(|thing| std::cmp::Reverse(world.things[*thing as usize].born_s));
        let addresses = world.by_address();
        let observer = Observer {
            world,
            judging: settings.judging(),
            release: Release { ruleset, missing },
            round: None,
            listed: HashMap::new(),
            moved: Vec::new(),
            left: Vec::new(),
            looked: 0,
            told: Vec::new(),
        };
        Ok(Filling {
            store,
            observer: Some(observer),
            addresses,
            sources,
            releases,
            to_come,
            by_address: Vec::new(),
            retention: settings.retention.clone(),
            progress: Progress { of: (end_s - 1) / DAY_S - start_s / DAY_S + 1, ..Progress::default() },
        })
    }

    /// Lives through all days; `told` hears after each.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run(mut self, mut told: impl FnMut(Progress)) -> Result<Progress> {
        let extent = self.observer()?.world.extent;
        let mut from_s = extent.start_s;
        while from_s < extent.end_s {
            let to_s = ((from_s / DAY_S + 1) * DAY_S).min(extent.end_s);
            self.day(from_s, to_s).await?;
            if (from_s / DAY_S) % COUNT_EVERY == 0 {
                self.sweep(Job::Probes, to_s).await?;
            }
            self.count(to_s, extent.end_s).await?;
            self.progress.days += 1;
            told(self.progress);
            from_s = to_s;
        }
        self.end(extent.end_s).await?;
        Ok(self.progress)
    }

    /// Counts the cohorts: each day of the last quarter, and once a week before.
    async fn count(&self, to_s: i64, end_s: i64) -> Result<()> {
        let is_recent = end_s - to_s < 90 * DAY_S;
        if is_recent || (to_s / DAY_S) % COUNT_EVERY == 0 {
            self.store.count_cohorts(to_s - 1).await?;
        }
        Ok(())
    }

    fn observer(&self) -> Result<&Observer> {
        self.observer.as_ref().context("the observer is at home between two days")
    }

    fn observer_mut(&mut self) -> Result<&mut Observer> {
        self.observer.as_mut().context("the observer is at home between two days")
    }

    /// One day, or what there is of it: new rules, who is listed, then the looks of its rounds.
    async fn day(&mut self, from_s: i64, to_s: i64) -> Result<()> {
        self.release(from_s).await?;
        self.name(from_s, to_s).await?;
        for (place, ..) in BASES {
            self.walk(place, from_s, to_s).await?;
        }
        self.take_on(from_s + 120).await?;
        let mut start_s = from_s;
        while start_s < to_s {
            let end_s = ((start_s / ROUND_S + 1) * ROUND_S).min(to_s);
            self.round(start_s, end_s).await?;
            start_s = end_s;
        }
        Ok(())
    }

    async fn round(&mut self, start_s: i64, end_s: i64) -> Result<()> {
        let ruleset = self.observer()?.release.ruleset;
        let crawl = self.store.start_crawl(CrawlKind::Round, None, Some(ruleset), HOLDER, start_s).await?;
        let observer = self.observer_mut()?;
        observer.looked = 0;
        observer.round = Some(crawl);
        self.live(end_s).await?;
        self.finish_round(crawl, start_s, end_s).await
    }

    /// The next release of the rules, when its time has come.
    async fn release(&mut self, from_s: i64) -> Result<()> {
        if self.releases.last().is_none_or(|(at_s, ..)| *at_s > from_s) {
            return Ok(());
        }
        let Some((_, version, facts, missing)) = self.releases.pop() else { return Ok(()) };
        let ruleset = self.store.ensure_ruleset(&version, &facts, from_s).await?;
        let observer = self.observer_mut()?;
        observer.release = Release { ruleset, missing };
        observer.judge_again(from_s + 600);
        Ok(())
    }

    /// Who is watched by domain or address: the new ones each day, everybody now and then, so that those who left are gone.
    async fn name(&mut self, from_s: i64, to_s: i64) -> Result<()> {
        let mut new: HashMap<Place, Vec<u32>> = HashMap::new();
        let mut entries = Vec::new();
        while let Some(thing) = self.to_come.last().copied() {
            let known = &self.observer()?.world.things[thing as usize];
            if known.born_s >= to_s {
                break;
            }
            let (place, face) = (known.place, known.faces[0]);
            self.to_come.pop();
            if known_by_address(place) {
                self.by_address.push(thing);
                new.entry(place).or_default().push(thing);
            } else {
                entries.push(face);
            }
        }
        self.observer_mut()?.moved.extend(entries);
        let left: HashSet<u32> = self.observer()?.left.iter().copied().collect();
        let is_whole = (from_s / DAY_S) % LIST_EVERY == 3 && self.by_address.iter().any(|thing| left.contains(thing));
        for place in [Place::Domains, Place::Addresses] {
            let source = self.source(place)?;
            let world = &self.observer()?.world;
            if is_whole {
                let here = |thing: &&u32| world.things[**thing as usize].place == place && !left.contains(*thing);
                let all: Vec<NewTarget> =
                    self.by_address.iter().filter(here).map(|thing| named(world, *thing)).collect();
                self.store.set_targets(source, &all, from_s + 30).await?;
            } else if let Some(new) = new.get(&place) {
                let new: Vec<NewTarget> = new.iter().map(|thing| named(world, *thing)).collect();
                for some in new.chunks(BATCH) {
                    self.store.add_targets(source, some, from_s + 30).await?;
                }
            }
        }
        if is_whole {
            self.by_address.retain(|thing| !left.contains(thing));
            let observer = self.observer_mut()?;
            let things = std::mem::take(&mut observer.left);
            let still = |thing: &u32| !known_by_address(observer.world.things[*thing as usize].place);
            observer.left = things.into_iter().filter(still).collect();
        }
        Ok(())
    }

    fn source(&self, place: Place) -> Result<SourceId> {
        self.sources.get(&place).copied().context("every place has its source")
    }

    /// A walk of a registry: whole on the first day and once a month, else what moved.
    async fn walk(&mut self, place: Place, from_s: i64, to_s: i64) -> Result<()> {
        let source = self.source(place)?;
        let is_first = from_s == self.observer()?.world.extent.start_s;
        let at_s = (from_s + 60).min(to_s - 1);
        let (kind, since_s) =
            if is_first { (CrawlKind::FullWalk, None) } else { (CrawlKind::IncrementalWalk, Some(at_s - DAY_S)) };
        let ruleset = self.observer()?.release.ruleset;
        let crawl = self.store.start_crawl(kind, Some(source), Some(ruleset), HOLDER, at_s).await?;
        let walk = self.store.begin_walk(source, crawl, since_s, at_s).await?;
        let entries = self.entries(place)?;
        let pages = entries.chunks(100);
        let last = pages.len().saturating_sub(1);
        for (n, page) in pages.enumerate() {
            let next = page.last().filter(|_| n < last).map(|entry| format!("{}:{}", entry.name, entry.version));
            self.store.store_page(walk.id, page, next.as_deref(), at_s).await?;
        }
        self.store.finish_walk(walk.id, &WalkEnd::Complete, at_s + 30).await?;
        self.store.finish_crawl(crawl, &CrawlEnd { state: CrawlState::Complete, note: None }, at_s + 30).await?;
        Ok(())
    }

    /// The entries of a registry that are new, have another version, or are deleted.
    fn entries(&mut self, place: Place) -> Result<Vec<Entry>> {
        let observer = self.observer_mut()?;
        let world = &observer.world;
        let is_here = |thing: u32| world.things[thing as usize].place == place;
        let (here, elsewhere): (Vec<u32>, Vec<u32>) =
            observer.moved.iter().partition(|face| is_here(world.faces[**face as usize].thing));
        let (gone, staying): (Vec<u32>, Vec<u32>) = observer.left.iter().partition(|thing| is_here(**thing));
        let mut seen = HashSet::new();
        let mut entries: Vec<Entry> = Vec::with_capacity(here.len());
        for face in here {
            if seen.insert(face) && !world.faces[face as usize].is_over {
                entries.push(entry(world, face, "active"));
            }
        }
        for thing in &gone {
            entries.push(entry(world, world.things[*thing as usize].faces[0], "deleted"));
        }
        observer.moved = elsewhere;
        observer.left = staying;
        gone.into_iter().for_each(|thing| observer.world.leave(thing));
        Ok(entries)
    }

    /// Takes on what is due as the crawler does, and puts a look at it on the agenda.
    async fn take_on(&mut self, at_s: i64) -> Result<()> {
        loop {
            let take = Take { limit: 2000, per_host: 100_000, until_s: at_s + 600 };
            let due = self.store.due_surfaces(at_s, take, HOLDER).await?;
            if due.is_empty() {
                return Ok(());
            }
            let mut unknown = 0;
            for surface in due {
                let Some(face) = self.addresses.get(&(surface.kind, surface.url)).copied() else {
                    unknown += 1;
                    continue;
                };
                let observer = self.observer_mut()?;
                observer.world.faces[face as usize].id = Some(surface.id.0);
                if let Feed::Listed(document) = surface.from {
                    observer.listed.insert(face, document);
                }
                observer.world.take_on(face, at_s + 30 + i64::from(face % 1500));
            }
            if unknown > 0 {
                bail!("{unknown} surfaces are due that the synthetic ecosystem does not have");
            }
        }
    }

    /// Records what happens up to a moment. Looking and judging go on while the database writes.
    async fn live(&mut self, to_s: i64) -> Result<()> {
        let single_days_from = self.single_days_from()?;
        let mut observer = self.observer.take().context("the observer is at home between two days")?;
        let (give, mut chunks) = mpsc::channel::<Chunk>(2);
        let living = tokio::task::spawn_blocking(move || {
            observer.live(to_s, |chunk| give.blocking_send(chunk).is_ok());
            observer
        });
        while let Some(chunk) = chunks.recv().await {
            self.progress.looks += chunk.observations.len() as u64;
            self.keep(&chunk, single_days_from).await?;
        }
        self.observer = Some(living.await?);
        Ok(())
    }

    async fn keep(&mut self, chunk: &Chunk, single_days_from: i64) -> Result<()> {
        self.progress.quiet += chunk.stretches.iter().map(|stretch| stretch.looks as u64).sum::<u64>();
        for told in &chunk.markers {
            self.mark(told).await?;
        }
        self.store.keep_and_record(&chunk.stretches, single_days_from, &chunk.observations).await?;
        Ok(())
    }

    /// A deploy as a pipeline tells of it.
    async fn mark(&self, told: &Told) -> Result<()> {
        let whose = Whose::Targets(vec![told.key.clone()]);
        let marker = Marker {
            version: Some(told.version.clone()),
            at_s: told.at_s,
            dedupe_key: Some(format!("run {}", told.run)),
            environment: Some("production".to_owned()),
            ..Marker::default()
        };
        for target in self.store.targets_of(&whose, None).await? {
            self.store.mark_deploy(target, &marker).await?;
        }
        Ok(())
    }

    /// The first day of which every single look is kept in the end.
    fn single_days_from(&self) -> Result<i64> {
        Ok(self.observer()?.world.extent.end_s / DAY_S - i64::from(self.retention.probe_days))
    }

    async fn finish_round(&self, crawl: CrawlId, start_s: i64, end_s: i64) -> Result<()> {
        while self.store.settle_deploys(end_s - 1).await? > 0 {}
        let observer = self.observer()?;
        let usual = observer.usual_counts(start_s, end_s);
        let planned = usual.planned + observer.looked;
        self.store.add_to_crawl(crawl, &CrawlCounts { planned, ..usual }).await?;
        let note = (usual.faults > 0).then(|| {
            format!(
                "{} looks failed and nobody else answered either: our own network or resolver; no target was blamed",
                usual.faults
            )
        });
        let state = if note.is_some() { CrawlState::Incomplete } else { CrawlState::Complete };
        Ok(self.store.finish_crawl(crawl, &CrawlEnd { state, note }, end_s - 1).await?)
    }

    /// Quiet looks up to the end, plans for what would come next, and the house in order.
    async fn end(&mut self, end_s: i64) -> Result<()> {
        let single_days_from = self.single_days_from()?;
        let watched = self.observer()?.world.faces.len() as u32;
        let mut stretches = Vec::with_capacity(BATCH);
        for face in 0..watched {
            let observer = self.observer_mut()?;
            if observer.world.faces[face as usize].is_over {
                continue;
            }
            stretches.extend(observer.quiet(face, end_s));
            let known = &observer.world.faces[face as usize];
            if let (Some(stretch), Some(last_s)) = (stretches.last_mut(), known.last_s)
                && Some(stretch.surface.0) == known.id
            {
                stretch.next_due_s = Some(last_s + known.every_s);
            }
            if stretches.len() >= BATCH {
                self.keep(&Chunk { stretches: std::mem::take(&mut stretches), ..Chunk::default() }, single_days_from)
                    .await?;
            }
        }
        self.keep(&Chunk { stretches, ..Chunk::default() }, single_days_from).await?;
        self.store.recover(end_s, |holder| holder != HOLDER).await?;
        for job in Job::ALL {
            self.sweep(*job, end_s).await?;
        }
        self.store.optimize().await?;
        self.store.measure(end_s).await?;
        Ok(())
    }

    async fn sweep(&self, job: Job, now_s: i64) -> Result<()> {
        let mut sweep = self.store.begin_sweep(job, &self.retention, now_s).await?;
        while self.store.sweep_step(&mut sweep).await? {}
        Ok(())
    }
}

fn known_by_address(place: Place) -> bool {
    matches!(place, Place::Domains | Place::Addresses)
}

/// The three releases: when each comes, and what it lacks.
fn releases(
    settings: &Settings,
    start_s: i64,
    end_s: i64,
) -> Vec<(i64, String, Vec<RuleFacts>, HashSet<&'static str>)> {
    let all = plumbline_crawler::rule_settings::facts(&settings.judging(), &Given::default());
    let [second, third] = RELEASES_AT.map(|share| start_s + ((end_s - start_s) as f64 * share) as i64);
    let last = env!("CARGO_PKG_VERSION").to_owned();
    let without = |missing: HashSet<&'static str>| {
        let facts = all.iter().filter(|rule| !missing.contains(rule.slug.as_ref())).cloned().collect();
        (facts, missing)
    };
    let (first_facts, first_missing) = without(SECOND_RELEASE.into_iter().chain(THIRD_RELEASE).collect());
    let (second_facts, second_missing) = without(THIRD_RELEASE.into_iter().collect());
    vec![
        (start_s, format!("{last}-demo.1"), first_facts, first_missing),
        (second, format!("{last}-demo.2"), second_facts, second_missing),
        (third, last, all.clone(), HashSet::new()),
    ]
}

fn named(world: &World, thing: u32) -> NewTarget {
    let thing = &world.things[thing as usize];
    let face = &world.faces[thing.faces[0] as usize];
    let host = face.url.split('/').nth(2).unwrap_or_default();
    let owner = &world.owners[thing.owner as usize];
    NewTarget {
        kind: thing.kind,
        key: thing.key.clone(),
        name: (thing.kind != TargetKind::A2aAgent).then(|| thing.name.clone()),
        url: face.url.clone(),
        surface: face.form.surface(),
        role: Role::Main,
        host: Some(HostName {
            name: host.to_owned(),
            domain: plumbline_rules::text::registrable_domain(host).unwrap_or_else(|| host.to_owned()),
        }),
        owner: Some(OwnerName { slug: format!("demo.{owner}"), name: format!("demo.{owner}") }),
        tags: thing.tags.clone(),
        is_own: thing.is_own,
        interval_s: None,
    }
}

fn entry(world: &World, face: u32, status: &str) -> Entry {
    let face = &world.faces[face as usize];
    let version = face.version();
    let served = world.served(face, &version);
    let server = documents::bytes(&served);
    let document = Document::read(&server);
    let text = |member: &str| document.root().and_then(|root| root.get(member)?.text()).map(str::to_owned);
    let stamp = world.extent.start_s * 1000 + i64::from(face.edition) * 86_400_000;
    Entry {
        name: served.key.to_owned(),
        status: Some(status.to_owned()),
        status_message: None,
        published_ms: Some(stamp),
        updated_ms: Some(stamp),
        is_latest: Some(true),
        semantic_hash: document.root().map(semantic_hash),
        meta: None,
        title: text("title"),
        description: text("description"),
        version,
        server,
    }
}

/// How long filling takes, in words.
pub fn rate(progress: &Progress, began: Instant) -> String {
    let seconds = began.elapsed().as_secs_f64().max(0.001);
    format!(
        "{} looks recorded ({:.0}/s), {} quiet ones",
        progress.looks,
        progress.looks as f64 / seconds,
        progress.quiet
    )
}
