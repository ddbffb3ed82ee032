//! Named groups of targets, and how common each failure is in them: by surface, by name and by host, with the share beside
//! it that could not be judged.
//!
//! The days of *all* and of the kinds are counted as observations are recorded ([`crate::trends`]). Everything else is
//! counted here from the present state, about once an hour, by one function that also rebuilds it: there is no second way
//! of counting that could disagree. At the first count of a day the day before is closed, and what moved in it is held
//! against the four weeks before (dashboard §4.3).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Deserialize;
use sqlx::{AssertSqlSafe, Row};

use crate::Store;
use crate::dialect::Writing;
use crate::error::Result;
use crate::events::{self, News};
use crate::rows::{Bits, DAY_S, count, in_statements, places, unpack, word};
use crate::trends::{self, Stock};
use crate::words::{EventKind, Headline, ReachState, TargetKind};

/// The last cohort that is counted while recording.
const LAST_KIND: i64 = 6;
/// Where the last counted day stands.
const COUNTED_DAY: &str = "cohorts_counted_day";
/// Cohorts that are made by themselves, of each sort at most so many.
const MOST_OF_A_SORT: usize = 10;
/// Targets below which a host, an owner or a tag gets no cohort of its own.
const FEWEST: usize = 8;
/// Days of change that a jump is measured by.
const TRAIL: i64 = 28;
/// Targets that have to move for a jump.
const FEWEST_MOVED: i64 = 10;

/// What a count came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Cohorts.
    pub cohorts: usize,
    /// Rows written.
    pub rows: usize,
    /// Failures whose share jumped on the day that was closed.
    pub jumps: usize,
}

/// What belongs to a cohort: every term must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Kind(TargetKind),
    Source(String),
    Profile(String),
    Host(String),
    Owner(String),
    Tag(String, Option<String>),
    /// Seen first in this month, as months since January 1970.
    Added(i64),
    /// So many, by the number of versions listed.
    Top(usize),
}

/// Reads a cohort's query.
fn terms(query: &str) -> Result<Vec<Term>, String> {
    query.split_whitespace().map(term).collect()
}

fn term(text: &str) -> Result<Term, String> {
    let (field, value) = text.split_once(':').ok_or_else(|| format!("`{text}` is no term"))?;
    let value = value.trim_matches('"');
    Ok(match field {
        "kind" => Term::Kind(value.parse()?),
        "source" => Term::Source(value.to_owned()),
        "profile" => Term::Profile(value.to_owned()),
        "host" => Term::Host(value.to_owned()),
        "owner" => Term::Owner(value.to_owned()),
        "tag" => match value.split_once('=') {
            Some((key, value)) => Term::Tag(key.to_owned(), Some(value.to_owned())),
            None => Term::Tag(value.to_owned(), None),
        },
        "added" => Term::Added(month(value).ok_or_else(|| format!("`{value}` is no month such as 2026-11"))?),
        "top" => Term::Top(value.parse().map_err(|_| format!("`{value}` is no number"))?),
        _ => return Err(format!("cohorts know no `{field}:`")),
    })
}

/// `2026-11` as months since January 1970.
fn month(text: &str) -> Option<i64> {
    let (year, month) = text.split_once('-')?;
    let (year, month): (i64, i64) = (year.parse().ok()?, month.parse().ok()?);
    (1..=12).contains(&month).then_some((year - 1970) * 12 + month - 1)
}

/// The other way round.
fn month_name(months: i64) -> String {
    format!("{}-{:02}", 1970 + months.div_euclid(12), months.rem_euclid(12) + 1)
}

/// A target as cohorts see it.
struct Target {
    id: i64,
    kind: TargetKind,
    headline: Headline,
    reach: ReachState,
    owner: Option<String>,
    host: Option<String>,
    added_month: i64,
    sources: Vec<String>,
    tags: Vec<(String, String)>,
    versions: i64,
    surfaces: Vec<usize>,
    /// What is judged and what fails on any of its surfaces; the first by place.
    judged: usize,
    failing: Mask,
}

/// A surface as it was last judged.
#[derive(Default)]
struct Surface {
    host: Option<i64>,
    host_name: Option<String>,
    profile: Option<String>,
    judged: Mask,
    failing: Mask,
    /// With an open finding that no waiver covers.
    bare: Mask,
    /// With an open finding that one covers.
    covered: Mask,
    /// Which set says what could not be judged.
    unknown: Option<i64>,
    places: Vec<(i64, i64)>,
    /// What it has in common with many: the place of its group.
    group: usize,
}

/// Surfaces of one revision on which the same rules were judged and the same could not be: there are few such groups, so what
/// is counted of every rule is counted for a group at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Group {
    profile: Option<String>,
    judged: Mask,
    unknown: Mask,
}

/// A set of rules by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Mask(Vec<u64>);

impl Mask {
    fn of(bits: &Bits) -> Mask {
        let mut mask = Mask::default();
        bits.iter().for_each(|rule| mask.set(rule));
        mask
    }

    fn set(&mut self, rule: i64) {
        let Ok(rule) = usize::try_from(rule) else { return };
        if self.0.len() <= rule / 64 {
            self.0.resize(rule / 64 + 1, 0);
        }
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    fn add(&mut self, other: &Mask) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn word(&self, n: usize) -> u64 {
        self.0.get(n).copied().unwrap_or(0)
    }

    /// What is in this set and in the other.
    fn and(&self, other: &Mask) -> Mask {
        Mask(self.0.iter().enumerate().map(|(n, word)| word & other.word(n)).collect())
    }

    /// What is in this set and not in the other.
    fn less(&self, other: &Mask) -> Mask {
        Mask(self.0.iter().enumerate().map(|(n, word)| word & !other.word(n)).collect())
    }

    fn len(&self) -> i64 {
        self.0.iter().map(|word| i64::from(word.count_ones())).sum()
    }

    fn each(&self, mut of: impl FnMut(usize)) {
        for (n, word) in self.0.iter().enumerate() {
            let mut bits = *word;
            while bits != 0 {
                of(n * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

/// The present state, as much of it as counting needs.
struct Present {
    targets: Vec<Target>,
    surfaces: Vec<Surface>,
    /// What could not be judged, by set.
    unknown: HashMap<i64, Mask>,
    /// Rules that a specification demands, by family.
    must: BTreeMap<String, Mask>,
    rules: usize,
    groups: Vec<Group>,
    /// Sets of rules that are judged on targets.
    judged: Vec<Mask>,
}

/// One cohort of the table.
struct Cohort {
    id: i64,
    slug: String,
    query: String,
}

/// What one rule comes to in one cohort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    evaluated: i64,
    failing: i64,
    waived: i64,
    unknown: i64,
    occurrences: i64,
    targets: [i64; 2],
    hosts: [i64; 2],
}

/// What one cohort comes to.
#[derive(Default)]
struct Tally {
    stock: Stock,
    members: i64,
    shares: Vec<Share>,
    /// Passed, judged and unknown of what must be, by profile and family.
    must: BTreeMap<(String, String), [i64; 3]>,
}

/// What happened to one rule, or to a whole cohort, on a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flow {
    opened: i64,
    resolved: i64,
    regressed: i64,
    baseline: i64,
}

/// What happened on a day, by target.
#[derive(Default)]
struct Happened {
    /// Target, rule, and what.
    findings: Vec<(i64, i64, Flow)>,
    /// Openings less mendings that neither the rules nor a first look brought, by rule and target.
    moved: HashMap<i64, HashMap<i64, i64>>,
    added: HashMap<i64, i64>,
    retired: HashMap<i64, i64>,
}

impl Store {
    /// Counts every cohort anew, those included that come into being by it: who belongs to it, how its targets stand, and
    /// how common each failure is in it. At the first count of a day the day before is closed, and jumps in it are told.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_cohorts(&self, now_s: i64) -> Result<Counted> {
        let present = self.present_state().await?;
        let mut w = self.pools.write().await?;
        make_cohorts(&mut w, &present, now_s).await?;
        let cohorts = cohorts(&mut w).await?;
        let day = trends::open_day(&mut w, now_s / DAY_S).await?;
        let before = counted_day(&mut w).await?;
        let mut counted = Counted { cohorts: cohorts.len(), ..Counted::default() };
        let today = happened(&mut w, day).await?;
        let closed = match before.filter(|before| *before < day) {
            Some(before) => Some((before, happened(&mut w, before).await?)),
            None => None,
        };
        for cohort in &cohorts {
            let members = match terms(&cohort.query) {
                Ok(terms) => members(&present, &terms),
                Err(problem) => {
                    note_problem(&mut w, cohort.id, &problem).await?;
                    continue;
                }
            };
            if cohort.id > LAST_KIND {
                keep_members(&mut w, cohort.id, &present, &members).await?;
            }
            if let Some((before, then)) = &closed {
                counted.jumps += close_day(&mut w, cohort, &present, &members, *before, then, now_s).await?;
            }
            let tally = tally(&present, &members);
            counted.rows += write(&mut w, cohort, day, &tally, before, now_s).await?;
            write_flows(&mut w, cohort, &present, &members, day, &today).await?;
        }
        note_counted(&mut w, day).await?;
        w.commit().await?;
        Ok(counted)
    }

    async fn present_state(&self) -> Result<Present> {
        let mut present = Present {
            targets: Vec::new(),
            surfaces: Vec::new(),
            unknown: HashMap::new(),
            must: BTreeMap::new(),
            rules: 0,
            groups: Vec::new(),
            judged: Vec::new(),
        };
        let mut tx = self.pools.reader.begin().await?;
        let on = &mut *tx;
        let places = read_surfaces(on, &mut present).await?;
        read_rules(on, &mut present, &places).await?;
        read_targets(on, &mut present, &places).await?;
        present.group();
        Ok(present)
    }
}

/// Rows that one statement reads.
const STEP: i64 = 10_000;

async fn read_surfaces(on: &mut sqlx::AnyConnection, present: &mut Present) -> Result<HashMap<i64, usize>> {
    let mut places = HashMap::new();
    let mut after = i64::MIN;
    loop {
        let rows = sqlx::query(
            "SELECT surface.id, surface.host_id, surface.profile, surface.judged, eval.judged_set_id, host.domain
             FROM surface
             LEFT JOIN eval ON eval.id = surface.eval_id
             LEFT JOIN host ON host.id = surface.host_id
             WHERE surface.retired_s IS NULL AND surface.id > $1
             ORDER BY surface.id
             LIMIT $2",
        )
        .bind(after)
        .bind(STEP)
        .fetch_all(&mut *on)
        .await?;
        for row in &rows {
            after = row.try_get(0)?;
            places.insert(after, present.surfaces.len());
            present.surfaces.push(Surface {
                host: row.try_get(1)?,
                host_name: row.try_get(5)?,
                profile: row.try_get(2)?,
                judged: Mask::of(&Bits::from_bytes(&row.try_get::<Option<Vec<u8>>, _>(3)?.unwrap_or_default())),
                unknown: row.try_get(4)?,
                ..Surface::default()
            });
        }
        if count(rows.len()) < STEP {
            break;
        }
    }
    let sets: HashSet<i64> = present.surfaces.iter().filter_map(|surface| surface.unknown).collect();
    for set in sets {
        let body: Vec<u8> =
            sqlx::query_scalar("SELECT body FROM judged_set WHERE id = $1").bind(set).fetch_one(&mut *on).await?;
        present.unknown.insert(set, not_evaluated(&unpack("judgement", &body)?));
    }
    Ok(places)
}

/// The rules that a judgement names as not evaluated, those left out that are switched off.
fn not_evaluated(set: &[u8]) -> Mask {
    #[derive(Deserialize)]
    struct Unjudged {
        #[serde(default)]
        not_evaluated: BTreeMap<String, Vec<i64>>,
    }
    let mut mask = Mask::default();
    let Ok(set) = serde_json::from_slice::<Unjudged>(set) else { return mask };
    let rules = set.not_evaluated.iter().filter(|(reason, _)| *reason != "off").flat_map(|(_, rules)| rules);
    rules.for_each(|rule| mask.set(*rule));
    mask
}

async fn read_rules(on: &mut sqlx::AnyConnection, present: &mut Present, places: &HashMap<i64, usize>) -> Result<()> {
    let rules = sqlx::query(
        "SELECT id, family,
                CASE WHEN severity = 'error' AND basis = 'spec' AND class = 'finding' AND axis = 'conformity'
                          AND guess = 0 AND withdrawn_s IS NULL THEN 1 ELSE 0 END
         FROM rule
         ORDER BY id",
    )
    .fetch_all(&mut *on)
    .await?;
    for rule in &rules {
        let id: i64 = rule.try_get(0)?;
        let number = usize::try_from(id).unwrap_or(0);
        present.rules = present.rules.max(number + 1);
        if rule.try_get::<i64, _>(2)? == 1 {
            present.must.entry(rule.try_get(1)?).or_default().set(id);
        }
        let failing = sqlx::query(
            "SELECT surface_id, occurrences, CASE WHEN waiver_id IS NULL THEN 0 ELSE 1 END
             FROM finding
             WHERE rule_id = $1 AND state IN ('open', 'clearing', 'flapping')
             UNION ALL
             SELECT surface_id, 0, 0 FROM fact_span WHERE rule_id = $1 AND to_s IS NULL",
        )
        .bind(id)
        .fetch_all(&mut *on)
        .await?;
        for row in &failing {
            let Some(place) = places.get(&row.try_get::<i64, _>(0)?) else { continue };
            let surface = &mut present.surfaces[*place];
            surface.failing.set(id);
            let is_covered = row.try_get::<i64, _>(2)? == 1;
            let mask = if is_covered { &mut surface.covered } else { &mut surface.bare };
            mask.set(id);
            surface.places.push((id, row.try_get(1)?));
        }
    }
    Ok(())
}

async fn read_targets(on: &mut sqlx::AnyConnection, present: &mut Present, places: &HashMap<i64, usize>) -> Result<()> {
    let mut by_id: HashMap<i64, usize> = HashMap::new();
    let rows = sqlx::query(
        "SELECT target.id, target.kind, target.headline, target.reach, owner.slug, host.domain, target.first_seen_s
         FROM target
         LEFT JOIN owner ON owner.id = target.owner_id
         LEFT JOIN host ON host.id = target.host_id
         WHERE target.retired_s IS NULL
         ORDER BY target.id",
    )
    .fetch_all(&mut *on)
    .await?;
    for row in &rows {
        let id = row.try_get(0)?;
        by_id.insert(id, present.targets.len());
        let first_seen_s: i64 = row.try_get(6)?;
        present.targets.push(Target {
            id,
            kind: word("target", row.try_get(1)?)?,
            headline: word("target", row.try_get(2)?)?,
            reach: word("target", row.try_get(3)?)?,
            owner: row.try_get(4)?,
            host: row.try_get(5)?,
            added_month: crate::probes::month_of(first_seen_s / DAY_S).0,
            sources: Vec::new(),
            tags: Vec::new(),
            versions: 0,
            surfaces: Vec::new(),
            judged: 0,
            failing: Mask::default(),
        });
    }
    let ties = sqlx::query("SELECT target_id, surface_id FROM target_surface WHERE removed_s IS NULL")
        .fetch_all(&mut *on)
        .await?;
    for row in &ties {
        let (target, surface): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if let (Some(target), Some(surface)) = (by_id.get(&target), places.get(&surface)) {
            let surfaces = &mut present.targets[*target].surfaces;
            if !surfaces.contains(surface) {
                surfaces.push(*surface);
            }
        }
    }
    for row in sqlx::query("SELECT target_id, key, value FROM tag").fetch_all(&mut *on).await? {
        if let Some(target) = by_id.get(&row.try_get::<i64, _>(0)?) {
            present.targets[*target].tags.push((row.try_get(1)?, row.try_get(2)?));
        }
    }
    let sources = sqlx::query(
        "SELECT target_source.target_id, source.name
         FROM target_source
         JOIN source ON source.id = target_source.source_id
         WHERE target_source.gone_s IS NULL",
    )
    .fetch_all(&mut *on)
    .await?;
    for row in &sources {
        if let Some(target) = by_id.get(&row.try_get::<i64, _>(0)?) {
            present.targets[*target].sources.push(row.try_get(1)?);
        }
    }
    let versions = sqlx::query("SELECT target_id, COUNT(*) FROM listing WHERE gone_s IS NULL GROUP BY target_id")
        .fetch_all(&mut *on)
        .await?;
    for row in &versions {
        if let Some(target) = by_id.get(&row.try_get::<i64, _>(0)?) {
            present.targets[*target].versions = row.try_get(1)?;
        }
    }
    Ok(())
}

/// Who belongs to a cohort, by place.
fn members(present: &Present, terms: &[Term]) -> Vec<usize> {
    let holds = |target: &Target, term: &Term| match term {
        Term::Kind(kind) => target.kind == *kind,
        Term::Source(name) => target.sources.contains(name),
        Term::Profile(profile) => {
            target.surfaces.iter().any(|n| present.surfaces[*n].profile.as_deref() == Some(profile))
        }
        Term::Host(host) => {
            let of_surface = |n: &usize| present.surfaces[*n].host_name.as_deref() == Some(host);
            target.host.as_deref() == Some(host) || target.surfaces.iter().any(of_surface)
        }
        Term::Owner(owner) => target.owner.as_deref() == Some(owner),
        Term::Tag(key, value) => {
            target.tags.iter().any(|(k, v)| k == key && value.as_ref().is_none_or(|value| value == v))
        }
        Term::Added(month) => target.added_month == *month,
        Term::Top(_) => true,
    };
    let mut members: Vec<usize> =
        (0..present.targets.len()).filter(|n| terms.iter().all(|term| holds(&present.targets[*n], term))).collect();
    for most in terms.iter().filter_map(|term| if let Term::Top(most) = term { Some(*most) } else { None }) {
        members.sort_by_key(|n| (std::cmp::Reverse(present.targets[*n].versions), present.targets[*n].id));
        members.truncate(most);
        members.sort_unstable();
    }
    members
}

/// The place of a value among those that were seen.
fn place_of<T: Clone + Eq + std::hash::Hash>(value: T, seen: &mut HashMap<T, usize>, all: &mut Vec<T>) -> usize {
    let next = all.len();
    let place = *seen.entry(value.clone()).or_insert(next);
    if place == next {
        all.push(value);
    }
    place
}

impl Present {
    /// Finds what surfaces and targets have in common, once for all cohorts.
    fn group(&mut self) {
        let (mut groups, mut sets) = (HashMap::new(), HashMap::new());
        let none = Mask::default();
        for surface in &mut self.surfaces {
            let unknown = surface.unknown.and_then(|set| self.unknown.get(&set)).unwrap_or(&none);
            let group = Group {
                profile: surface.profile.clone(),
                judged: surface.judged.clone(),
                unknown: unknown.less(&surface.judged),
            };
            surface.group = place_of(group, &mut groups, &mut self.groups);
        }
        for target in &mut self.targets {
            let mut judged = Mask::default();
            for surface in target.surfaces.iter().map(|n| &self.surfaces[*n]) {
                judged.add(&surface.judged);
                target.failing.add(&surface.failing);
            }
            target.judged = place_of(judged, &mut sets, &mut self.judged);
        }
    }
}

/// Counts a cohort.
fn tally(present: &Present, members: &[usize]) -> Tally {
    let mut tally =
        Tally { members: count(members.len()), shares: vec![Share::default(); present.rules], ..Tally::default() };
    let mut seen = vec![false; present.surfaces.len()];
    let mut hosts: HashMap<i64, [Mask; 2]> = HashMap::new();
    let mut groups = vec![0; present.groups.len()];
    let mut judged = vec![0; present.judged.len()];
    for target in members.iter().map(|n| &present.targets[*n]) {
        tally.stock.add(target.headline, target.reach, 1);
        judged[target.judged] += 1;
        target.failing.each(|rule| tally.shares[rule].targets[1] += 1);
        for n in &target.surfaces {
            let surface = &present.surfaces[*n];
            if !std::mem::replace(&mut seen[*n], true) {
                groups[surface.group] += 1;
                count_failing(present, surface, &mut tally);
                if let Some(host) = surface.host {
                    let of_host = hosts.entry(host).or_default();
                    of_host[0].add(&surface.judged);
                    of_host[1].add(&surface.failing);
                }
            }
        }
    }
    for (set, n) in present.judged.iter().zip(&judged).filter(|(_, n)| **n > 0) {
        set.each(|rule| tally.shares[rule].targets[0] += n);
    }
    for (group, n) in present.groups.iter().zip(&groups).filter(|(_, n)| **n > 0) {
        count_group(present, group, *n, &mut tally);
    }
    for of_host in hosts.values() {
        for (n, mask) in of_host.iter().enumerate() {
            mask.each(|rule| tally.shares[rule].hosts[n] += 1);
        }
    }
    tally
}

/// What so many surfaces of a group have in common.
fn count_group(present: &Present, group: &Group, n: i64, tally: &mut Tally) {
    group.judged.each(|rule| tally.shares[rule].evaluated += n);
    group.unknown.each(|rule| tally.shares[rule].unknown += n);
    let Some(profile) = &group.profile else { return };
    for (family, demanded) in &present.must {
        let (judged, unknown) = (group.judged.and(demanded).len(), group.unknown.and(demanded).len());
        if judged > 0 || unknown > 0 {
            let must = tally.must.entry((profile.clone(), family.clone())).or_default();
            must[0] += judged * n;
            must[1] += judged * n;
            must[2] += unknown * n;
        }
    }
}

/// What fails on one surface, which its group does not say.
fn count_failing(present: &Present, surface: &Surface, tally: &mut Tally) {
    surface.failing.each(|rule| tally.shares[rule].failing += 1);
    surface.covered.less(&surface.bare).each(|rule| tally.shares[rule].waived += 1);
    for (rule, occurrences) in &surface.places {
        tally.shares[usize::try_from(*rule).unwrap_or(0)].occurrences += occurrences;
    }
    let Some(profile) = &surface.profile else { return };
    for (family, demanded) in &present.must {
        let failing = surface.failing.and(&surface.judged).and(demanded).len();
        if failing > 0 {
            tally.must.entry((profile.clone(), family.clone())).or_default()[0] -= failing;
        }
    }
}

/// A cohort for every source, revision, month, and for the largest hosts, owners and tags there are.
async fn make_cohorts(w: &mut Writing, present: &Present, now_s: i64) -> Result<()> {
    let mut found: BTreeMap<(u8, String), usize> = BTreeMap::new();
    for target in &present.targets {
        let surfaces = target.surfaces.iter().map(|n| &present.surfaces[*n]);
        let mut of_target: BTreeSet<(u8, String)> = BTreeSet::new();
        of_target.extend(target.sources.iter().map(|source| (0, source.clone())));
        of_target.extend(surfaces.clone().filter_map(|surface| Some((1, surface.profile.clone()?))));
        of_target.extend(surfaces.filter_map(|surface| Some((2, surface.host_name.clone()?))));
        of_target.extend(target.owner.iter().map(|owner| (3, owner.clone())));
        of_target.extend(
            target
                .tags
                .iter()
                .map(|(key, value)| (4, if value.is_empty() { key.clone() } else { format!("{key}={value}") })),
        );
        of_target.insert((5, month_name(target.added_month)));
        of_target.into_iter().for_each(|one| *found.entry(one).or_default() += 1);
    }
    let known = sqlx::query("SELECT slug FROM cohort").fetch_all(w.on()).await?;
    let mut slugs = HashSet::new();
    for row in &known {
        slugs.insert(row.try_get::<String, _>(0)?);
    }
    let mut sorts: BTreeMap<u8, Vec<(usize, String)>> = BTreeMap::new();
    for ((sort, value), members) in found {
        let is_large = members >= FEWEST || matches!(sort, 0 | 1 | 5);
        if is_large && !value.contains(char::is_whitespace) {
            sorts.entry(sort).or_default().push((members, value));
        }
    }
    for (sort, mut values) in sorts {
        // Months the newest first, everything else the largest.
        values.sort_by(|a, b| if sort == 5 { b.1.cmp(&a.1) } else { b.0.cmp(&a.0).then(a.1.cmp(&b.1)) });
        let (field, title) = SORTS[usize::from(sort)];
        let here: Vec<String> = values.iter().map(|(_, value)| format!("{field}-{}", slug(value))).collect();
        // One that was made once stays, whatever became of its size.
        let mut room = MOST_OF_A_SORT.saturating_sub(slugs.iter().filter(|known| known.starts_with(field)).count());
        if sort == 5 {
            room = 1 + usize::from(!slugs.iter().any(|known| known.starts_with(field))) * (MOST_OF_A_SORT - 1);
        }
        for ((_, value), slug) in values.iter().zip(&here).filter(|(_, slug)| !slugs.contains(*slug)).take(room) {
            insert(w, slug, &format!("{title} {value}"), &format!("{field}:{value}"), now_s).await?;
        }
    }
    if !slugs.contains("top-1000") && present.targets.iter().any(|target| target.versions > 0) {
        insert(w, "top-1000", "The 1,000 names with the most versions", "kind:mcp-server top:1000", now_s).await?;
    }
    Ok(())
}

/// Sorts of cohorts that make themselves: the field of their query, and how they are called.
const SORTS: [(&str, &str); 6] = [
    ("source", "Listed in"),
    ("profile", "Judged as"),
    ("host", "On"),
    ("owner", "Of"),
    ("tag", "Tagged"),
    ("added", "First seen in"),
];

/// A value as the part of an address.
fn slug(value: &str) -> String {
    value.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '-' }).collect()
}

async fn insert(w: &mut Writing, slug: &str, title: &str, query: &str, now_s: i64) -> Result<()> {
    sqlx::query(
        "INSERT INTO cohort (id, slug, title, query, refreshed_s, origin)
         SELECT MAX(id) + 1, $1, $2, $3, $4, 'found' FROM cohort",
    )
    .bind(slug)
    .bind(title)
    .bind(query)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}

async fn cohorts(w: &mut Writing) -> Result<Vec<Cohort>> {
    let rows = sqlx::query("SELECT id, slug, query FROM cohort ORDER BY id").fetch_all(w.on()).await?;
    rows.iter().map(|row| Ok(Cohort { id: row.try_get(0)?, slug: row.try_get(1)?, query: row.try_get(2)? })).collect()
}

async fn counted_day(w: &mut Writing) -> Result<Option<i64>> {
    let day: Option<String> =
        sqlx::query_scalar("SELECT value FROM kv WHERE key = $1").bind(COUNTED_DAY).fetch_optional(w.on()).await?;
    Ok(day.and_then(|day| day.parse().ok()))
}

async fn note_counted(w: &mut Writing, day: i64) -> Result<()> {
    sqlx::query("INSERT INTO kv (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
        .bind(COUNTED_DAY)
        .bind(day.to_string())
        .execute(w.on())
        .await?;
    Ok(())
}

async fn note_problem(w: &mut Writing, cohort: i64, problem: &str) -> Result<()> {
    sqlx::query("UPDATE cohort SET problem = $2, members = 0 WHERE id = $1")
        .bind(cohort)
        .bind(problem)
        .execute(w.on())
        .await?;
    Ok(())
}

/// Brings the table of members to who belongs to it now.
async fn keep_members(w: &mut Writing, cohort: i64, present: &Present, members: &[usize]) -> Result<()> {
    let rows =
        sqlx::query("SELECT target_id FROM cohort_member WHERE cohort_id = $1").bind(cohort).fetch_all(w.on()).await?;
    let mut before = HashSet::with_capacity(rows.len());
    for row in &rows {
        before.insert(row.try_get::<i64, _>(0)?);
    }
    let now: HashSet<i64> = members.iter().map(|n| present.targets[*n].id).collect();
    for target in before.difference(&now) {
        sqlx::query("DELETE FROM cohort_member WHERE cohort_id = $1 AND target_id = $2")
            .bind(cohort)
            .bind(*target)
            .execute(w.on())
            .await?;
    }
    for target in now.difference(&before) {
        sqlx::query("INSERT INTO cohort_member (cohort_id, target_id) VALUES ($1, $2)")
            .bind(cohort)
            .bind(*target)
            .execute(w.on())
            .await?;
    }
    Ok(())
}

/// Writes what a cohort comes to. Of *all* and the kinds the numbers of targets, and of *all* those of surfaces, are counted
/// elsewhere.
async fn write(
    w: &mut Writing,
    cohort: &Cohort,
    day: i64,
    tally: &Tally,
    before: Option<i64>,
    now_s: i64,
) -> Result<usize> {
    sqlx::query("UPDATE cohort SET refreshed_s = $2, members = $3, problem = NULL WHERE id = $1")
        .bind(cohort.id)
        .bind(now_s)
        .bind(tally.members)
        .execute(w.on())
        .await?;
    if cohort.id > LAST_KIND {
        sqlx::query("INSERT INTO cohort_day (cohort_id, day) VALUES ($1, $2) ON CONFLICT (cohort_id, day) DO NOTHING")
            .bind(cohort.id)
            .bind(day)
            .execute(w.on())
            .await?;
        trends::set_stock(w.on(), cohort.id, day, &tally.stock).await?;
    }
    let kept = kept_rules(w, cohort.id, before).await?;
    let is_told = |rule: &i64, share: &Share| {
        kept.contains(rule) || *share != Share::default() && (cohort.id <= LAST_KIND || share.failing > 0)
    };
    let shares: Vec<(i64, Share)> =
        (0_i64..).zip(tally.shares.iter().copied()).filter(|(rule, share)| is_told(rule, share)).collect();
    write_shares(w, cohort.id, day, &shares).await?;
    write_must(w, cohort.id, day, &tally.must).await?;
    Ok(shares.len() + tally.must.len())
}

/// Rules with a row when the cohort was last counted.
async fn kept_rules(w: &mut Writing, cohort: i64, day: Option<i64>) -> Result<HashSet<i64>> {
    let rows = sqlx::query("SELECT rule_id FROM rule_day WHERE cohort_id = $1 AND day = $2")
        .bind(cohort)
        .bind(day)
        .fetch_all(w.on())
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Columns of a share as a row of `rule_day`.
const SHARE_COLUMNS: usize = 12;

/// Writes what rules come to in a cohort on a day.
async fn write_shares(w: &mut Writing, cohort: i64, day: i64, shares: &[(i64, Share)]) -> Result<()> {
    let kept_elsewhere = if cohort == trends::ALL {
        ""
    } else {
        "evaluated = excluded.evaluated, failing = excluded.failing, occurrences = excluded.occurrences, "
    };
    for some in in_statements(shares) {
        let statement = format!(
            "INSERT INTO rule_day (cohort_id, rule_id, day, evaluated, failing, occurrences, unknown, targets_evaluated,
                                   targets_failing, hosts_evaluated, hosts_failing, waived)
             VALUES {}
             ON CONFLICT (cohort_id, rule_id, day) DO UPDATE SET {kept_elsewhere}
                 unknown = excluded.unknown, targets_evaluated = excluded.targets_evaluated,
                 targets_failing = excluded.targets_failing, hosts_evaluated = excluded.hosts_evaluated,
                 hosts_failing = excluded.hosts_failing, waived = excluded.waived",
            places(some.len(), SHARE_COLUMNS)
        );
        // Of our own words and numbers only.
        let mut insert = sqlx::query(AssertSqlSafe(statement));
        for (rule, share) in some {
            insert = insert
                .bind(cohort)
                .bind(*rule)
                .bind(day)
                .bind(share.evaluated)
                .bind(share.failing)
                .bind(share.occurrences)
                .bind(share.unknown)
                .bind(share.targets[0])
                .bind(share.targets[1])
                .bind(share.hosts[0])
                .bind(share.hosts[1])
                .bind(share.waived);
        }
        insert.execute(w.on()).await?;
    }
    Ok(())
}

/// Columns of a row of `must_day`.
const MUST_COLUMNS: usize = 7;

/// Writes how much of what must be is, in a cohort on a day.
async fn write_must(w: &mut Writing, cohort: i64, day: i64, must: &BTreeMap<(String, String), [i64; 3]>) -> Result<()> {
    let must: Vec<_> = must.iter().collect();
    for some in in_statements(&must) {
        let statement = format!(
            "INSERT INTO must_day (cohort_id, profile, family, day, passed, judged, unknown)
             VALUES {}
             ON CONFLICT (cohort_id, profile, family, day) DO UPDATE SET
                 passed = excluded.passed, judged = excluded.judged, unknown = excluded.unknown",
            places(some.len(), MUST_COLUMNS)
        );
        let mut insert = sqlx::query(AssertSqlSafe(statement));
        for ((profile, family), [passed, judged, unknown]) in some {
            insert = insert
                .bind(cohort)
                .bind(profile.as_str())
                .bind(family.as_str())
                .bind(day)
                .bind(*passed)
                .bind(*judged)
                .bind(*unknown);
        }
        insert.execute(w.on()).await?;
    }
    Ok(())
}

/// The first event that may have happened at that moment or later; ids grow with time.
async fn first_event_at(w: &mut Writing, at_s: i64) -> Result<i64> {
    let row = sqlx::query("SELECT MIN(id), MAX(id) FROM event").fetch_one(w.on()).await?;
    let (Some(mut low), Some(mut high)) = (row.try_get::<Option<i64>, _>(0)?, row.try_get::<Option<i64>, _>(1)?) else {
        return Ok(0);
    };
    while low < high {
        let middle = low + (high - low) / 2;
        let then: Option<i64> = sqlx::query_scalar("SELECT at_s FROM event WHERE id >= $1 ORDER BY id LIMIT 1")
            .bind(middle)
            .fetch_optional(w.on())
            .await?;
        if then.is_some_and(|then| then < at_s) { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

/// How far events may stand out of the order of time, in seconds.
const DISORDER_S: i64 = 3600;

/// What happened on a day.
async fn happened(w: &mut Writing, day: i64) -> Result<Happened> {
    crate::events::flush(w).await?;
    let from = first_event_at(w, day * DAY_S - DISORDER_S).await?;
    let to = first_event_at(w, (day + 1) * DAY_S + DISORDER_S).await?;
    let rows = sqlx::query(
        "SELECT kind, target_id, rule_id, a, note
         FROM event
         WHERE id BETWEEN $1 AND $2 AND at_s BETWEEN $3 AND $4 AND kind IN (1, 2, 3, 10, 15)
         ORDER BY id",
    )
    .bind(from)
    .bind(to)
    .bind(day * DAY_S)
    .bind((day + 1) * DAY_S - 1)
    .fetch_all(w.on())
    .await?;
    let mut happened = Happened::default();
    for row in &rows {
        let Some(target) = row.try_get::<Option<i64>, _>(1)? else { continue };
        let kind = EventKind::numbered(row.try_get(0)?);
        let (rule, a): (Option<i64>, Option<i64>) = (row.try_get(2)?, row.try_get(3)?);
        let note: Option<String> = row.try_get(4)?;
        match (kind, rule) {
            (Some(EventKind::TargetAdded), _) => *happened.added.entry(target).or_default() += 1,
            (Some(EventKind::TargetRetired), _) => *happened.retired.entry(target).or_default() += 1,
            (Some(kind), Some(rule)) => happened.note_finding(kind, target, rule, a == Some(1), note.as_deref()),
            _ => {}
        }
    }
    Ok(happened)
}

impl Happened {
    fn note_finding(&mut self, kind: EventKind, target: i64, rule: i64, is_first_look: bool, note: Option<&str>) {
        let note = note.unwrap_or_default();
        let by_rules = note.ends_with(" rule") || note.ends_with(" joint") || note == "rule_changed";
        let (mut flow, mut by) = (Flow::default(), 0);
        match kind {
            EventKind::FindingOpened if is_first_look => flow.baseline = 1,
            EventKind::FindingOpened => (flow.opened, by) = (1, 1),
            EventKind::FindingRegressed => (flow.opened, flow.regressed, by) = (1, 1, 1),
            EventKind::FindingResolved => (flow.resolved, by) = (1, -i64::from(note == "fixed")),
            _ => return,
        }
        self.findings.push((target, rule, flow));
        if by != 0 && !by_rules {
            *self.moved.entry(rule).or_default().entry(target).or_default() += by;
        }
    }
}

/// What happened in a cohort on a day. Of *all* and the kinds the sums, and of *all* those of rules, are counted elsewhere.
async fn write_flows(
    w: &mut Writing,
    cohort: &Cohort,
    present: &Present,
    members: &[usize],
    day: i64,
    happened: &Happened,
) -> Result<()> {
    if cohort.id == trends::ALL {
        return Ok(());
    }
    let ids: HashSet<i64> = members.iter().map(|n| present.targets[*n].id).collect();
    let mut by_rule: BTreeMap<i64, Flow> = BTreeMap::new();
    let mut sum = Flow::default();
    for (_, rule, flow) in happened.findings.iter().filter(|(target, ..)| ids.contains(target)) {
        for total in [by_rule.entry(*rule).or_default(), &mut sum] {
            total.opened += flow.opened;
            total.resolved += flow.resolved;
            total.regressed += flow.regressed;
            total.baseline += flow.baseline;
        }
    }
    for (rule, flow) in by_rule {
        sqlx::query(
            "UPDATE rule_day SET opened = $4, resolved = $5, regressed = $6, baseline = $7
             WHERE cohort_id = $1 AND rule_id = $2 AND day = $3",
        )
        .bind(cohort.id)
        .bind(rule)
        .bind(day)
        .bind(flow.opened)
        .bind(flow.resolved)
        .bind(flow.regressed)
        .bind(flow.baseline)
        .execute(w.on())
        .await?;
    }
    if cohort.id <= LAST_KIND {
        return Ok(());
    }
    let of = |counts: &HashMap<i64, i64>| counts.iter().filter(|(id, _)| ids.contains(id)).map(|(_, n)| n).sum::<i64>();
    sqlx::query(
        "UPDATE cohort_day SET added = $3, retired = $4, opened = $5, resolved = $6, regressed = $7
         WHERE cohort_id = $1 AND day = $2",
    )
    .bind(cohort.id)
    .bind(day)
    .bind(of(&happened.added))
    .bind(of(&happened.retired))
    .bind(sum.opened)
    .bind(sum.resolved)
    .bind(sum.regressed)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Closes a day that is over: what still happened in it after its last count, and what jumped in it.
async fn close_day(
    w: &mut Writing,
    cohort: &Cohort,
    present: &Present,
    members: &[usize],
    day: i64,
    then: &Happened,
    now_s: i64,
) -> Result<usize> {
    write_flows(w, cohort, present, members, day, then).await?;
    let ids: HashSet<i64> = members.iter().map(|n| present.targets[*n].id).collect();
    let mut jumps = 0;
    for (rule, moved) in &then.moved {
        let net: i64 = moved.iter().filter(|(target, _)| ids.contains(target)).map(|(_, by)| by.signum()).sum();
        if net.abs() < FEWEST_MOVED {
            continue;
        }
        let trail = trail(w, cohort.id, *rule, day).await?;
        let Some((_, evaluated, failing)) = trail.last().copied() else { continue };
        if !is_jump(net, evaluated, &trail[..trail.len() - 1]) {
            continue;
        }
        let news = News {
            rule: Some(*rule),
            subject: Some(cohort.id),
            a: Some(failing - net),
            b: Some(failing),
            note: Some(cohort.slug.clone()),
            ..News::of(EventKind::RulePrevalenceJumped)
        };
        events::append(w, now_s, news).await?;
        jumps += 1;
    }
    Ok(jumps)
}

/// Day, targets judged and targets failing of a rule in a cohort, over the days before one and that day.
async fn trail(w: &mut Writing, cohort: i64, rule: i64, day: i64) -> Result<Vec<(i64, i64, i64)>> {
    let rows = sqlx::query(
        "SELECT day, targets_evaluated, targets_failing
         FROM rule_day
         WHERE cohort_id = $1 AND rule_id = $2 AND day BETWEEN $3 AND $4
         ORDER BY day",
    )
    .bind(cohort)
    .bind(rule)
    .bind(day - TRAIL - 1)
    .bind(day)
    .fetch_all(w.on())
    .await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
}

/// Whether so many targets more or less are a jump: more than one point in a hundred, and than three times what the share
/// usually moves in a day (dashboard §4.3).
fn is_jump(net: i64, evaluated: i64, before: &[(i64, i64, i64)]) -> bool {
    if evaluated == 0 || net.abs() < FEWEST_MOVED {
        return false;
    }
    let share = |(_, evaluated, failing): &(i64, i64, i64)| *failing as f64 / (*evaluated).max(1) as f64;
    let changes: Vec<f64> = before.windows(2).map(|pair| share(&pair[1]) - share(&pair[0])).collect();
    let mean = changes.iter().sum::<f64>() / changes.len().max(1) as f64;
    let variance = changes.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / changes.len().max(1) as f64;
    net.abs() as f64 / evaluated as f64 > (3.0 * variance.sqrt()).max(0.01)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_or_its_word_is_blamed() {
        assert_eq!(terms(""), Ok(vec![]));
        assert_eq!(
            terms("kind:a2a-agent tag:tier=1 tag:own added:2026-11 top:1000"),
            Ok(vec![
                Term::Kind(TargetKind::A2aAgent),
                Term::Tag("tier".into(), Some("1".into())),
                Term::Tag("own".into(), None),
                Term::Added(682),
                Term::Top(1000),
            ])
        );
        for wrong in ["free", "colour:red", "added:2026-13", "top:many", "kind:toaster"] {
            assert!(terms(wrong).is_err(), "{wrong}");
        }
        assert_eq!((month("2026-11"), month_name(682).as_str()), (Some(682), "2026-11"));
    }

    #[test]
    fn a_jump_is_more_than_what_usually_moves() {
        let calm: Vec<_> = (0..28).map(|day| (day, 1000, 100)).collect();
        let restless: Vec<_> = (0..28).map(|day| (day, 1000, 100 + (day % 2) * 40)).collect();
        assert!(is_jump(11, 1000, &calm));
        assert!(!is_jump(9, 1000, &calm), "too few targets");
        assert!(!is_jump(10, 1000, &calm), "not more than one point");
        assert!(!is_jump(90, 1000, &restless), "it moves by that every day");
        assert!(is_jump(-150, 1000, &restless));
        assert!(!is_jump(50, 0, &[]));
    }

    #[test]
    fn masks_are_sets() {
        let mut bits = Bits::default();
        [1, 64, 700].into_iter().for_each(|rule| bits.set(rule, true));
        let mut mask = Mask::of(&bits);
        let mut other = Mask::default();
        other.set(2);
        mask.add(&other);
        let mut all = Vec::new();
        mask.each(|rule| all.push(rule));
        assert_eq!(all, [1, 2, 64, 700]);
        assert_eq!(
            (mask.len(), mask.and(&other).len(), mask.less(&other).len(), other.less(&mask).len()),
            (4, 1, 3, 0)
        );
    }

    #[test]
    fn what_could_not_be_judged_leaves_out_what_is_switched_off() {
        let mask = not_evaluated(br#"{"judged":[1],"not_evaluated":{"parent":[3,4],"off":[5]}}"#);
        let mut rules = Vec::new();
        mask.each(|rule| rules.push(rule));
        assert_eq!(rules, [3, 4]);
    }
}
