//! The list of targets: filtered, in three orders, paged by key.
//!
//! A page is found in one of a few ways, and each goes along an index: by walking the order (most filters), or from what is
//! asked for: words, a rule, an owner, a host, a tag, a cohort. What matches few targets lead to them; those that match many are
//! tested while walking, because then a page fills quickly.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumbline_rules::conversation::Era;
use plumbline_rules::standing::Access;
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Strip, first_month, maybe_word, word};
use crate::Store;
use crate::error::Result;
use crate::words::{Headline, Impact, Known, ReachState, Severity, TargetKind, headline_rank};

/// Which targets are meant. Everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetFilter {
    /// Beginnings of words in key, name, summary, owner or host; the first three count.
    pub words: Vec<String>,
    /// `mcp-server`, `a2a-agent`, …
    pub kind: Option<TargetKind>,
    /// Its word.
    pub headline: Option<Headline>,
    /// Its reach state.
    pub reach: Option<ReachState>,
    /// The revision it was detected as.
    pub profile: Option<String>,
    /// A rule with an open finding there.
    pub rule: Option<String>,
    /// A family of rules one of which has an open finding there.
    pub family: Option<String>,
    /// A rule of class fact that is set there.
    pub fact: Option<String>,
    /// How its revision is known.
    pub known: Option<Known>,
    /// What clients do about an open finding there.
    pub impact: Option<Impact>,
    /// The severity of an open finding there.
    pub severity: Option<Severity>,
    /// Whether a finding tagged security is open.
    pub security: Option<bool>,
    /// Whether an accepted deviation is among its findings.
    pub waived: Option<bool>,
    /// The slug of whoever stands behind it.
    pub owner: Option<String>,
    /// The host or registrable domain of itself or of anything that is asked for it.
    pub host: Option<String>,
    /// The key of a tag, and its value where one is asked for.
    pub tag: Option<(String, Option<String>)>,
    /// The name of a source that lists it.
    pub source: Option<String>,
    /// The slug of a cohort.
    pub cohort: Option<String>,
    /// Last changed at or after, in Unix seconds.
    pub changed_after_s: Option<i64>,
    /// Last changed before, in Unix seconds.
    pub changed_before_s: Option<i64>,
    /// First seen at or after, in Unix seconds.
    pub added_after_s: Option<i64>,
    /// First seen before, in Unix seconds.
    pub added_before_s: Option<i64>,
    /// What an endpoint of it speaks.
    pub era: Option<Era>,
    /// Who gets into an endpoint of it.
    pub access: Option<Access>,
    /// What must not hold.
    pub not: Excluded,
}

/// What must not hold of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excluded {
    /// `mcp-server`, `a2a-agent`, …
    pub kind: Option<TargetKind>,
    /// Its word.
    pub headline: Option<Headline>,
    /// Its reach state.
    pub reach: Option<ReachState>,
    /// The revision of its main surface.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// A rule with an open finding.
    pub rule: Option<String>,
    /// A family of rules one of which has an open finding.
    pub family: Option<String>,
    /// A rule of class fact that is set.
    pub fact: Option<String>,
    /// What clients do about an open finding.
    pub impact: Option<Impact>,
    /// The severity of an open finding.
    pub severity: Option<Severity>,
    /// Who stands behind it.
    pub owner: Option<String>,
    /// The host or registrable domain of itself or of anything that is asked for it.
    pub host: Option<String>,
    /// A tag.
    pub tag: Option<(String, Option<String>)>,
    /// A source that lists it.
    pub source: Option<String>,
    /// A cohort.
    pub cohort: Option<String>,
    /// What an endpoint speaks.
    pub era: Option<Era>,
    /// Who gets into an endpoint.
    pub access: Option<Access>,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetOrder {
    /// Blocked first, then newest change.
    #[default]
    Headline,
    /// Newest change first.
    Changed,
    /// By name.
    Name,
}

/// The last target of a page, from which the next page goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Rank of its headline.
    pub rank: i64,
    /// Its last change, in Unix seconds.
    pub changed_s: i64,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: i64,
}

impl Position {
    /// Before the first target, in every order.
    #[must_use]
    pub fn start() -> Self {
        Self { rank: -1, changed_s: i64::MAX, name: String::new(), id: -1 }
    }
}

/// One target as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TargetRow {
    /// Its number here.
    pub id: i64,
    /// `mcp-server`, `a2a-agent`, …
    pub kind: TargetKind,
    /// The registry's name for it, or host and path of its card.
    pub key: String,
    /// As shown.
    pub name: String,
    /// Its word.
    pub headline: Headline,
    /// Since when, in Unix seconds; `None`: never judged.
    pub headline_since_s: Option<i64>,
    /// Whether it could be reached, apart from the word.
    pub reach: ReachState,
    /// Since when, in Unix seconds.
    pub reach_since_s: Option<i64>,
    /// The revision it was detected as.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// Open findings that break clients.
    pub n_blocking: i64,
    /// Open errors.
    pub n_error: i64,
    /// Open warnings.
    pub n_warn: i64,
    /// Open findings tagged security.
    pub n_security: i64,
    /// Last change of word, counts or document, in Unix seconds.
    pub changed_s: i64,
    /// Next check, in Unix seconds.
    pub next_due_s: Option<i64>,
}

impl TargetRow {
    /// Where a page that ends here goes on.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { rank: headline_rank(self.headline), changed_s: self.changed_s, name: self.name.clone(), id: self.id }
    }
}

/// How many targets share a headline and a reach state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TargetCount {
    /// The word.
    pub headline: Headline,
    /// The reach state.
    pub reach: ReachState,
    /// How many.
    pub targets: i64,
}

/// From this many matches on, walking the order finds a page sooner than sorting what matches.
const FEW: i64 = 1_000;

/// Filters every statement has, `$1` to `$48`. What leads to the targets is tested again, which costs little.
///
/// `$1` `$2` kind is and is not, `$3` `$4` headline rank, `$5` `$6` reach, `$7` `$8` profile, `$9` `$10` known, `$11`–`$16` three words
/// with their upper ends, `$17` `$18` rule, `$19` `$20` family, `$21` `$22` fact, `$23` `$24` impact, `$25` `$26` severity, `$27` `$28`
/// owner, `$29` `$30` host, `$31`–`$34` tag, `$35` `$36` source, `$37` `$38` cohort, `$39` `$40` security, waived (0 or 1), `$41`–`$44`
/// changed and added, from and to, `$45` `$46` era, `$47` `$48` access.
///
/// A target whose counts say that it has such a finding has one; only where they do not, findings are asked: counts leave out what
/// is a guess.
macro_rules! filters_sql {
    () => {
        "
  AND ($1 IS NULL OR t.kind = $1)
  AND ($2 IS NULL OR t.kind <> $2)
  AND ($3 IS NULL OR t.headline_rank = $3)
  AND ($4 IS NULL OR t.headline_rank <> $4)
  AND ($5 IS NULL OR t.reach = $5)
  AND ($6 IS NULL OR t.reach <> $6)
  AND (t.reach <> 'retired' OR $5 = 'retired')
  AND ($7 IS NULL OR t.profile = $7 OR EXISTS (
      SELECT 1
      FROM target_surface AS leads JOIN surface AS led ON led.id = leads.surface_id
      WHERE leads.target_id = t.id AND leads.removed_s IS NULL AND led.profile = $7
  ))
  AND ($8 IS NULL OR t.profile IS NULL OR t.profile <> $8)
  AND ($9 IS NULL OR t.known = $9)
  AND ($10 IS NULL OR t.known IS NULL OR t.known <> $10)
  AND ($11 IS NULL OR EXISTS (
        SELECT 1 FROM target_token w
        WHERE w.target_id = t.id AND w.token >= $11 AND w.token < $12 AND SUBSTR(w.token, 1, LENGTH($11)) = $11))
  AND ($13 IS NULL OR EXISTS (
        SELECT 1 FROM target_token w
        WHERE w.target_id = t.id AND w.token >= $13 AND w.token < $14 AND SUBSTR(w.token, 1, LENGTH($13)) = $13))
  AND ($15 IS NULL OR EXISTS (
        SELECT 1 FROM target_token w
        WHERE w.target_id = t.id AND w.token >= $15 AND w.token < $16 AND SUBSTR(w.token, 1, LENGTH($15)) = $15))
  AND ($17 IS NULL OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.rule_id = $17 AND f.state IN ('open', 'clearing', 'flapping')))
  AND ($18 IS NULL OR NOT EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.rule_id = $18 AND f.state IN ('open', 'clearing', 'flapping')))
  AND ($19 IS NULL OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f CROSS JOIN rule r
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.state IN ('open', 'clearing', 'flapping') AND r.id = f.rule_id AND r.family = $19))
  AND ($20 IS NULL OR NOT EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f CROSS JOIN rule r
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.state IN ('open', 'clearing', 'flapping') AND r.id = f.rule_id AND r.family = $20))
  AND ($21 IS NULL OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN fact_span f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id AND f.rule_id = $21 AND f.to_s IS NULL))
  AND ($22 IS NULL OR NOT EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN fact_span f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id AND f.rule_id = $22 AND f.to_s IS NULL))
  AND ($23 IS NULL OR ($23 = 'breaks-clients' AND t.n_blocking > 0) OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.impact = $23 AND f.state IN ('open', 'clearing', 'flapping')))
  AND ($24 IS NULL OR NOT (($24 = 'breaks-clients' AND t.n_blocking > 0) OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.impact = $24 AND f.state IN ('open', 'clearing', 'flapping'))))
  AND ($25 IS NULL OR ($25 = 'error' AND t.n_error > 0) OR ($25 = 'warning' AND t.n_warn > 0) OR ($25 = 'info' AND t.n_info > 0)
       OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.severity = $25 AND f.state IN ('open', 'clearing', 'flapping')))
  AND ($26 IS NULL OR NOT (($26 = 'error' AND t.n_error > 0) OR ($26 = 'warning' AND t.n_warn > 0) OR ($26 = 'info' AND t.n_info > 0)
       OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN finding f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.severity = $26 AND f.state IN ('open', 'clearing', 'flapping'))))
  AND ($27 IS NULL OR t.owner_id = $27)
  AND ($28 IS NULL OR t.owner_id IS NULL OR t.owner_id <> $28)
  AND ($29 IS NULL OR t.host_id IN (SELECT h.id FROM host h WHERE h.name = $29 OR h.domain = $29) OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN surface f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.id = s.surface_id
          AND f.host_id IN (SELECT h.id FROM host h WHERE h.name = $29 OR h.domain = $29)))
  AND ($30 IS NULL OR ((t.host_id IS NULL OR t.host_id NOT IN (SELECT h.id FROM host h WHERE h.name = $30 OR h.domain = $30))
       AND NOT EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN surface f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.id = s.surface_id
          AND f.host_id IN (SELECT h.id FROM host h WHERE h.name = $30 OR h.domain = $30))))
  AND ($31 IS NULL OR EXISTS (
        SELECT 1 FROM tag g WHERE g.target_id = t.id AND g.key = $31 AND ($32 IS NULL OR g.value = $32)))
  AND ($33 IS NULL OR NOT EXISTS (
        SELECT 1 FROM tag g WHERE g.target_id = t.id AND g.key = $33 AND ($34 IS NULL OR g.value = $34)))
  AND ($35 IS NULL OR EXISTS (
        SELECT 1 FROM target_source g WHERE g.target_id = t.id AND g.source_id = $35 AND g.gone_s IS NULL))
  AND ($36 IS NULL OR NOT EXISTS (
        SELECT 1 FROM target_source g WHERE g.target_id = t.id AND g.source_id = $36 AND g.gone_s IS NULL))
  AND ($37 IS NULL OR EXISTS (SELECT 1 FROM cohort_member m WHERE m.cohort_id = $37 AND m.target_id = t.id))
  AND ($38 IS NULL OR NOT EXISTS (SELECT 1 FROM cohort_member m WHERE m.cohort_id = $38 AND m.target_id = t.id))
  AND ($39 IS NULL OR ($39 = 1 AND t.n_security > 0) OR ($39 = 0 AND t.n_security = 0))
  AND ($40 IS NULL OR ($40 = 1 AND t.n_waived > 0) OR ($40 = 0 AND t.n_waived = 0))
  AND ($41 IS NULL OR t.changed_s >= $41)
  AND ($42 IS NULL OR t.changed_s < $42)
  AND ($43 IS NULL OR t.first_seen_s >= $43)
  AND ($44 IS NULL OR t.first_seen_s < $44)
  AND ($45 IS NULL OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN surface f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.id = s.surface_id AND f.era = $45))
  AND ($46 IS NULL OR NOT EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN surface f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.id = s.surface_id AND f.era = $46))
  AND ($47 IS NULL OR EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN surface f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.id = s.surface_id AND f.access = $47))
  AND ($48 IS NULL OR NOT EXISTS (
        SELECT 1 FROM target_surface s CROSS JOIN surface f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.id = s.surface_id AND f.access = $48))"
    };
}

/// What leads to the targets of each way.
macro_rules! led_by {
    (Walk) => {
        "t.headline_rank >= 0"
    };
    (Word) => {
        "t.id IN (
        SELECT w.target_id FROM target_token w
        WHERE w.token >= $11 AND w.token < $12 AND SUBSTR(w.token, 1, LENGTH($11)) = $11)"
    };
    (Rule) => {
        "t.id IN (
        SELECT s.target_id
        FROM finding f
        CROSS JOIN target_surface s
        WHERE f.rule_id = $17 AND f.state IN ('open', 'clearing', 'flapping')
          AND s.surface_id = f.surface_id AND s.removed_s IS NULL)"
    };
    (Fact) => {
        "t.id IN (
        SELECT s.target_id
        FROM fact_span f
        CROSS JOIN target_surface s
        WHERE f.rule_id = $21 AND f.to_s IS NULL AND s.surface_id = f.surface_id AND s.removed_s IS NULL)"
    };
    (Owner) => {
        "t.owner_id = $27"
    };
    (Host) => {
        "t.id IN (
        SELECT d.id FROM target d WHERE d.host_id IN (SELECT h.id FROM host h WHERE h.name = $29 OR h.domain = $29)
        UNION
        SELECT s.target_id
        FROM surface f
        CROSS JOIN target_surface s
        WHERE f.host_id IN (SELECT h.id FROM host h WHERE h.name = $29 OR h.domain = $29)
          AND s.surface_id = f.id AND s.removed_s IS NULL)"
    };
    (Tag) => {
        "t.id IN (SELECT g.target_id FROM tag g WHERE g.key = $31 AND ($32 IS NULL OR g.value = $32))"
    };
    (Cohort) => {
        "t.id IN (SELECT m.target_id FROM cohort_member m WHERE m.cohort_id = $37)"
    };
}

/// One page in one order: `$49` limit, from `$50` on the position.
macro_rules! page_sql {
    ($way:ident, $order:ident) => {
        concat!(
            "
SELECT t.id, t.kind, t.key, t.name, t.headline, t.headline_since_s, t.reach, t.reach_since_s, t.profile, t.known,
       t.n_blocking, t.n_error, t.n_warn, t.n_security, t.changed_s, t.next_due_s
FROM target t
WHERE ",
            led_by!($way),
            $order!(after),
            filters_sql!(),
            $order!(by),
            "
LIMIT $49"
        )
    };
}

macro_rules! headline_order {
    (after) => {
        "
  AND t.headline_rank >= $50
  AND (t.headline_rank > $50 OR t.changed_s < $51 OR (t.changed_s = $51 AND t.id > $52))"
    };
    (by) => {
        "
ORDER BY t.headline_rank, t.changed_s DESC, t.id"
    };
}

macro_rules! changed_order {
    (after) => {
        "
  AND t.changed_s <= $50
  AND (t.changed_s < $50 OR t.id > $51)"
    };
    (by) => {
        "
ORDER BY t.changed_s DESC, t.id"
    };
}

macro_rules! name_order {
    (after) => {
        "
  AND t.name >= $50
  AND (t.name > $50 OR t.id > $51)"
    };
    (by) => {
        "
ORDER BY t.name, t.id"
    };
}

/// How many match, by headline and reach.
macro_rules! counts_sql {
    ($way:ident) => {
        concat!(
            "
SELECT t.headline_rank, t.reach, COUNT(*) AS targets
FROM target t
WHERE ",
            led_by!($way),
            filters_sql!(),
            "
GROUP BY t.headline_rank, t.reach"
        )
    };
}

/// How many match, counted no further than `$49`.
macro_rules! some_sql {
    ($way:ident) => {
        concat!(
            "
SELECT COUNT(*) AS targets
FROM (SELECT t.id FROM target t WHERE ",
            led_by!($way),
            filters_sql!(),
            "
      LIMIT $49) AS e"
        )
    };
}

/// The same from the index alone, where only kind, headline and reach are asked for; grouped as the index is ordered. `$1` and `$2`
/// are the first and last kind, so that the index is searched and not scanned.
pub(super) const KIND_COUNTS: &str = "
SELECT t.kind, t.headline_rank, t.reach, COUNT(*) AS targets
FROM target t
WHERE t.kind >= $1 AND t.kind <= $2
  AND ($3 IS NULL OR t.headline_rank = $3)
  AND ($4 IS NULL OR t.reach = $4)
  AND (t.reach <> 'retired' OR $4 = 'retired')
GROUP BY t.kind, t.headline_rank, t.reach";

/// Declares the ways and their statements.
macro_rules! ways {
    ($($(#[$doc:meta])* $way:ident,)+) => {
        /// Which way leads to the targets of a filter.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Way { $($(#[$doc])* $way,)+ }

        impl Way {
            /// Every way.
            #[cfg(test)]
            pub(super) const ALL: &'static [Way] = &[$(Way::$way,)+];
        }

        pub(super) fn page_statement(way: Way, order: TargetOrder) -> &'static str {
            match (way, order) {
                $((Way::$way, TargetOrder::Headline) => page_sql!($way, headline_order),
                (Way::$way, TargetOrder::Changed) => page_sql!($way, changed_order),
                (Way::$way, TargetOrder::Name) => page_sql!($way, name_order),)+
            }
        }

        pub(super) fn counts_statement(way: Way) -> &'static str {
            match way {
                $(Way::$way => counts_sql!($way),)+
            }
        }

        pub(super) fn some_statement(way: Way) -> &'static str {
            match way {
                $(Way::$way => some_sql!($way),)+
            }
        }
    };
}

ways! {
    /// Along the order, testing each.
    Walk,
    /// From the first word.
    Word,
    /// From the rule.
    Rule,
    /// From the fact.
    Fact,
    /// From whoever stands behind it.
    Owner,
    /// From the host.
    Host,
    /// From the tag.
    Tag,
    /// From the members of a cohort.
    Cohort,
}

/// The months of the strips of one page of targets: fifty ids, those there are not repeated.
pub(super) const STRIPS: &str = "
SELECT s.target_id, s.surface_id, m.month, m.days, f.headline, f.headline_since_s,
       CASE WHEN f.listing_id IS NULL THEN 0 ELSE 1 END AS is_listed
FROM target_surface s
JOIN surface f ON f.id = s.surface_id
LEFT JOIN surface_month m ON m.surface_id = f.id AND m.month >= $51
WHERE s.target_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                      $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44,
                      $45, $46, $47, $48, $49, $50)
  AND s.removed_s IS NULL";

/// Targets on one page.
pub const PAGE: usize = 50;

/// From so many targets on, how many match is counted once for a while and not for every page.
const CROWD: i64 = 20_000;

/// For how long.
const CROWD_LASTS: Duration = Duration::from_secs(10);

/// Crowds remembered.
const MOST_CROWDS: usize = 16;

/// Counts of filters that very many targets match, such as a word that all of them have: counting a hundred thousand takes
/// longer than a page may.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crowds(Arc<Mutex<Vec<Crowd>>>);

/// A filter, when its targets were counted, and how many there were.
type Crowd = (TargetFilter, Instant, Vec<TargetCount>);

impl Crowds {
    fn recent(&self, filter: &TargetFilter, now: Instant) -> Option<Vec<TargetCount>> {
        let mut crowds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        crowds.retain(|(_, at, _)| now.saturating_duration_since(*at) < CROWD_LASTS);
        crowds.iter().find(|(known, _, _)| known == filter).map(|(_, _, counts)| counts.clone())
    }

    fn keep(&self, filter: &TargetFilter, counts: &[TargetCount], now: Instant) {
        if counts.iter().map(|count| count.targets).sum::<i64>() < CROWD {
            return;
        }
        let mut crowds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if crowds.len() == MOST_CROWDS {
            // The oldest stands first.
            crowds.remove(0);
        }
        crowds.push((filter.clone(), now, counts.to_vec()));
    }
}

impl Store {
    /// How many targets match, by headline and reach.
    pub async fn target_counts(&self, filter: &TargetFilter) -> Result<Vec<TargetCount>> {
        if let Some(counts) = self.crowds.recent(filter, Instant::now()) {
            return Ok(counts);
        }
        let Some(bounds) = self.bounds(filter).await? else { return Ok(Vec::new()) };
        let rows = if filter.is_plain() {
            let (first, last) = filter.kind.map_or(("", "~"), |kind| (kind.as_str(), kind.as_str()));
            let query = sqlx::query(KIND_COUNTS).bind(first).bind(last);
            query
                .bind(filter.headline.map(headline_rank))
                .bind(filter.reach.map(ReachState::as_str))
                .fetch_all(&self.pools.reader)
                .await?
        } else {
            bounds.bind(sqlx::query(counts_statement(bounds.way)), filter).fetch_all(&self.pools.reader).await?
        };
        let counts = merged(&rows)?;
        self.crowds.keep(filter, &counts, Instant::now());
        Ok(counts)
    }

    /// How many targets match, counted only as far as it matters to how a page of them is found: for lists that do not tell the number.
    pub async fn some_targets(&self, filter: &TargetFilter) -> Result<i64> {
        let Some(bounds) = self.bounds(filter).await? else { return Ok(0) };
        let query = bounds.bind(sqlx::query(some_statement(bounds.way)), filter).bind(FEW + 1);
        Ok(query.fetch_one(&self.pools.reader).await?.try_get("targets")?)
    }

    /// The targets after `after`, at most `limit`. `matching` is how many match in all, as counted before.
    pub async fn targets_page(
        &self,
        filter: &TargetFilter,
        order: TargetOrder,
        after: &Position,
        matching: i64,
        limit: i64,
    ) -> Result<Vec<TargetRow>> {
        let Some(bounds) = self.bounds(filter).await? else { return Ok(Vec::new()) };
        let way = if matching > FEW { Way::Walk } else { bounds.way };
        let query = bounds.bind(sqlx::query(page_statement(way, order)), filter).bind(limit);
        let query = match order {
            TargetOrder::Headline => query.bind(after.rank).bind(after.changed_s).bind(after.id),
            TargetOrder::Changed => query.bind(after.changed_s).bind(after.id),
            TargetOrder::Name => query.bind(after.name.clone()).bind(after.id),
        };
        let rows = query.fetch_all(&self.pools.reader).await?;
        rows.iter().map(target_row).collect()
    }

    /// Ninety days up to `today` of each of at most fifty targets, where any are recorded: the worst of its surfaces.
    pub async fn target_strips(&self, targets: &[i64], today: i64) -> Result<Vec<Strip>> {
        let mut query = sqlx::query(STRIPS);
        for place in 0..PAGE {
            query = query.bind(targets.get(place).copied().unwrap_or(-1));
        }
        let rows = query.bind(first_month(today)).fetch_all(&self.pools.reader).await?;
        super::strips(&rows, "target_id", today)
    }

    /// Turns names of a filter into the numbers that statements bind; `None` where one was never recorded and nothing can match.
    async fn bounds(&self, filter: &TargetFilter) -> Result<Option<Bounds>> {
        let mut bounds = Bounds { way: way_of(filter), ..Bounds::default() };
        for (slug, id) in [
            (&filter.rule, &mut bounds.rule),
            (&filter.not.rule, &mut bounds.not_rule),
            (&filter.fact, &mut bounds.fact),
            (&filter.not.fact, &mut bounds.not_fact),
        ] {
            if let Some(slug) = slug {
                *id = self.rule_id(slug).await?;
            }
        }
        for (statement, name, id) in [
            (OWNER_ID, &filter.owner, &mut bounds.owner),
            (OWNER_ID, &filter.not.owner, &mut bounds.not_owner),
            (SOURCE_ID, &filter.source, &mut bounds.source),
            (SOURCE_ID, &filter.not.source, &mut bounds.not_source),
            (COHORT_ID, &filter.cohort, &mut bounds.cohort),
            (COHORT_ID, &filter.not.cohort, &mut bounds.not_cohort),
        ] {
            if let Some(name) = name {
                *id = sqlx::query_scalar(statement).bind(name.clone()).fetch_optional(&self.pools.reader).await?;
            }
        }
        let is_known = (filter.rule.is_none() || bounds.rule.is_some())
            && (filter.fact.is_none() || bounds.fact.is_some())
            && (filter.owner.is_none() || bounds.owner.is_some())
            && (filter.source.is_none() || bounds.source.is_some())
            && (filter.cohort.is_none() || bounds.cohort.is_some());
        Ok(is_known.then_some(bounds))
    }
}

pub(super) const OWNER_ID: &str = "
SELECT id
FROM owner
WHERE slug = $1";

pub(super) const SOURCE_ID: &str = "
SELECT id
FROM source
WHERE name = $1
ORDER BY id
LIMIT 1";

pub(super) const COHORT_ID: &str = "
SELECT id
FROM cohort
WHERE slug = $1";

/// What leads to the fewest targets, as far as that can be said beforehand.
fn way_of(filter: &TargetFilter) -> Way {
    let ways = [
        (filter.owner.is_some(), Way::Owner),
        (filter.host.is_some(), Way::Host),
        (!filter.words.is_empty(), Way::Word),
        (filter.tag.is_some(), Way::Tag),
        (filter.rule.is_some(), Way::Rule),
        (filter.fact.is_some(), Way::Fact),
        (filter.cohort.is_some(), Way::Cohort),
    ];
    ways.into_iter().find(|(is_set, _)| *is_set).map_or(Way::Walk, |(_, way)| way)
}

impl TargetFilter {
    /// Whether nothing but kind, headline and reach is asked for.
    fn is_plain(&self) -> bool {
        let plain =
            TargetFilter { kind: self.kind, headline: self.headline, reach: self.reach, ..TargetFilter::default() };
        *self == plain
    }
}

/// Counts by headline and reach, whatever else the rows are grouped by.
fn merged(rows: &[AnyRow]) -> Result<Vec<TargetCount>> {
    let mut counts: Vec<TargetCount> = Vec::new();
    for row in rows {
        let rank: i64 = row.try_get("headline_rank")?;
        let headline = Headline::ALL.iter().copied().find(|headline| headline_rank(*headline) == rank);
        let headline = headline.unwrap_or(Headline::NotEvaluated);
        let (reach, targets) = (word(row, "reach")?, row.try_get("targets")?);
        match counts.iter_mut().find(|count| count.headline == headline && count.reach == reach) {
            Some(count) => count.targets += targets,
            None => counts.push(TargetCount { headline, reach, targets }),
        }
    }
    Ok(counts)
}

/// The numbers of what a filter names.
struct Bounds {
    way: Way,
    rule: Option<i64>,
    not_rule: Option<i64>,
    fact: Option<i64>,
    not_fact: Option<i64>,
    owner: Option<i64>,
    not_owner: Option<i64>,
    source: Option<i64>,
    not_source: Option<i64>,
    cohort: Option<i64>,
    not_cohort: Option<i64>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            way: Way::Walk,
            rule: None,
            not_rule: None,
            fact: None,
            not_fact: None,
            owner: None,
            not_owner: None,
            source: None,
            not_source: None,
            cohort: None,
            not_cohort: None,
        }
    }
}

type Query = sqlx::query::Query<'static, sqlx::Any, sqlx::any::AnyArguments>;

impl Bounds {
    fn bind(&self, query: Query, filter: &TargetFilter) -> Query {
        let not = &filter.not;
        let mut query = query
            .bind(filter.kind.map(TargetKind::as_str))
            .bind(not.kind.map(TargetKind::as_str))
            .bind(filter.headline.map(headline_rank))
            .bind(not.headline.map(headline_rank))
            .bind(filter.reach.map(ReachState::as_str))
            .bind(not.reach.map(ReachState::as_str))
            .bind(filter.profile.clone())
            .bind(not.profile.clone())
            .bind(filter.known.map(Known::as_str))
            .bind(not.known.map(Known::as_str));
        for place in 0..3 {
            let word = filter.words.get(place);
            query = query.bind(word.cloned()).bind(word.map(|word| after_prefix(word)));
        }
        let query = query
            .bind(self.rule)
            .bind(self.not_rule)
            .bind(filter.family.clone())
            .bind(not.family.clone())
            .bind(self.fact)
            .bind(self.not_fact)
            .bind(filter.impact.map(Impact::as_str))
            .bind(not.impact.map(Impact::as_str))
            .bind(filter.severity.map(Severity::as_str))
            .bind(not.severity.map(Severity::as_str))
            .bind(self.owner)
            .bind(self.not_owner)
            .bind(filter.host.clone())
            .bind(not.host.clone());
        let tag = |tag: &Option<(String, Option<String>)>| {
            (tag.as_ref().map(|(key, _)| key.clone()), tag.as_ref().and_then(|(_, value)| value.clone()))
        };
        let ((key, value), (not_key, not_value)) = (tag(&filter.tag), tag(&not.tag));
        query
            .bind(key)
            .bind(value)
            .bind(not_key)
            .bind(not_value)
            .bind(self.source)
            .bind(self.not_source)
            .bind(self.cohort)
            .bind(self.not_cohort)
            .bind(filter.security.map(i64::from))
            .bind(filter.waived.map(i64::from))
            .bind(filter.changed_after_s)
            .bind(filter.changed_before_s)
            .bind(filter.added_after_s)
            .bind(filter.added_before_s)
            .bind(filter.era.map(Era::as_str))
            .bind(not.era.map(Era::as_str))
            .bind(filter.access.map(Access::as_str))
            .bind(not.access.map(Access::as_str))
    }
}

/// The end of the range of words that begin with `prefix`, exclusive. It may hold more than those, never less: every order of
/// letters that a database may have puts `a` before `b` and `8` before `9` before `a`; other letters are left to the exact test.
pub(super) fn after_prefix(prefix: &str) -> String {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        let next = match last {
            '0'..='8' | 'a'..='y' => Some((last as u8 + 1) as char),
            '9' => Some('a'),
            _ => None,
        };
        if let Some(next) = next {
            letters.push(next);
            return letters.into_iter().collect();
        }
    }
    "\u{10ffff}".to_owned()
}

fn target_row(row: &AnyRow) -> Result<TargetRow> {
    Ok(TargetRow {
        id: row.try_get("id")?,
        kind: word(row, "kind")?,
        key: row.try_get("key")?,
        name: row.try_get("name")?,
        headline: word(row, "headline")?,
        headline_since_s: row.try_get("headline_since_s")?,
        reach: word(row, "reach")?,
        reach_since_s: row.try_get("reach_since_s")?,
        profile: row.try_get("profile")?,
        known: maybe_word(row, "known")?,
        n_blocking: row.try_get("n_blocking")?,
        n_error: row.try_get("n_error")?,
        n_warn: row.try_get("n_warn")?,
        n_security: row.try_get("n_security")?,
        changed_s: row.try_get("changed_s")?,
        next_due_s: row.try_get("next_due_s")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_lies_behind_every_word_with_it() {
        for (prefix, end) in
            [("abc", "abd"), ("az", "b"), ("a9", "aa"), ("zz", "\u{10ffff}"), ("mü", "n"), ("東", "\u{10ffff}")]
        {
            assert_eq!(after_prefix(prefix), end, "{prefix}");
        }
    }

    #[test]
    fn a_crowd_is_counted_once_for_a_while_and_few_are_counted_anew() {
        let crowds = Crowds::default();
        let filter = |word: &str| TargetFilter { words: vec![word.to_owned()], ..TargetFilter::default() };
        let counts = |targets| vec![TargetCount { headline: Headline::Sound, reach: ReachState::Up, targets }];
        let now = Instant::now();
        crowds.keep(&filter("few"), &counts(CROWD - 1), now);
        crowds.keep(&filter("io"), &counts(CROWD), now);
        assert_eq!(crowds.recent(&filter("few"), now), None);
        assert_eq!(crowds.recent(&filter("other"), now), None);
        assert_eq!(crowds.recent(&filter("io"), now + CROWD_LASTS / 2), Some(counts(CROWD)));
        assert_eq!(crowds.recent(&filter("io"), now + CROWD_LASTS), None);
        for n in 0..=MOST_CROWDS {
            crowds.keep(&filter(&n.to_string()), &counts(CROWD), now);
        }
        assert_eq!(crowds.recent(&filter("0"), now), None, "the oldest gives way");
        assert!((1..=MOST_CROWDS).all(|n| crowds.recent(&filter(&n.to_string()), now).is_some()));
    }
}
