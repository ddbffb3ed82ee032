//! The list of targets: filtered, in three orders, paged by key.
//!
//! A page is found in one of three ways, and each goes along an index: by walking the order (most filters), from the words
//! searched for, or from the rule that is failed. Words and rules that match few targets lead to them; those that match many are
//! tested while walking, because then a page fills quickly.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Strip, first_month, maybe_word, word};
use crate::Store;
use crate::error::Result;
use crate::words::{Headline, Known, ReachState, TargetKind, headline_rank};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// Filters every statement has: `$1` kind, `$2` headline rank, `$3` reach, `$4` profile, `$5`–`$10` three words with their upper
/// ends, `$11` rule. What leads to the targets need not be tested again.
macro_rules! filters_sql {
    () => {
        "
  AND ($1 IS NULL OR t.kind = $1)
  AND ($2 IS NULL OR t.headline_rank = $2)
  AND ($3 IS NULL OR t.reach = $3)
  AND (t.reach <> 'retired' OR $3 = 'retired')
  AND ($4 IS NULL OR t.profile = $4 OR EXISTS (
      SELECT 1
      FROM target_surface AS leads JOIN surface AS led ON led.id = leads.surface_id
      WHERE leads.target_id = t.id AND leads.removed_s IS NULL AND led.profile = $4
  ))
  AND ($7 IS NULL OR EXISTS (
        SELECT 1 FROM target_token w
        WHERE w.target_id = t.id AND w.token >= $7 AND w.token < $8 AND SUBSTR(w.token, 1, LENGTH($7)) = $7))
  AND ($9 IS NULL OR EXISTS (
        SELECT 1 FROM target_token w
        WHERE w.target_id = t.id AND w.token >= $9 AND w.token < $10 AND SUBSTR(w.token, 1, LENGTH($9)) = $9))"
    };
}

/// Tests the first word.
macro_rules! has_word {
    () => {
        "
  AND ($5 IS NULL OR EXISTS (
        SELECT 1 FROM target_token w
        WHERE w.target_id = t.id AND w.token >= $5 AND w.token < $6 AND SUBSTR(w.token, 1, LENGTH($5)) = $5))"
    };
}

/// Tests the rule. The order of the join is forced: a target has few surfaces, a rule may fail on thousands.
macro_rules! fails_rule {
    () => {
        "
  AND ($11 IS NULL OR EXISTS (
        SELECT 1
        FROM target_surface s
        CROSS JOIN finding f
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.surface_id = s.surface_id
          AND f.rule_id = $11 AND f.state IN ('open', 'clearing', 'flapping')))"
    };
}

/// Walks the order and tests everything.
macro_rules! by_walk {
    () => {
        concat!("1 = 1", has_word!(), fails_rule!())
    };
}

/// Leads from the first word to its targets.
macro_rules! by_word {
    () => {
        concat!(
            "t.id IN (
        SELECT w.target_id FROM target_token w
        WHERE w.token >= $5 AND w.token < $6 AND SUBSTR(w.token, 1, LENGTH($5)) = $5)",
            fails_rule!()
        )
    };
}

/// Leads from the rule to the targets that fail it.
macro_rules! by_rule {
    () => {
        concat!(
            "t.id IN (
        SELECT s.target_id
        FROM finding f
        CROSS JOIN target_surface s
        WHERE f.rule_id = $11 AND f.state IN ('open', 'clearing', 'flapping')
          AND s.surface_id = f.surface_id AND s.removed_s IS NULL)",
            has_word!()
        )
    };
}

/// One page in one order: `$12` limit, from `$13` on the position.
macro_rules! page_sql {
    ($driver:expr, $order:ident) => {
        concat!(
            "
SELECT t.id, t.kind, t.key, t.name, t.headline, t.headline_since_s, t.reach, t.reach_since_s, t.profile, t.known,
       t.n_blocking, t.n_error, t.n_warn, t.n_security, t.changed_s, t.next_due_s
FROM target t
WHERE ",
            $driver,
            $order!(after),
            filters_sql!(),
            $order!(by),
            "
LIMIT $12"
        )
    };
}

macro_rules! headline_order {
    (after) => {
        "
  AND t.headline_rank >= $13
  AND (t.headline_rank > $13 OR t.changed_s < $14 OR (t.changed_s = $14 AND t.id > $15))"
    };
    (by) => {
        "
ORDER BY t.headline_rank, t.changed_s DESC, t.id"
    };
}

macro_rules! changed_order {
    (after) => {
        "
  AND t.changed_s <= $13
  AND (t.changed_s < $13 OR t.id > $14)"
    };
    (by) => {
        "
ORDER BY t.changed_s DESC, t.id"
    };
}

macro_rules! name_order {
    (after) => {
        "
  AND t.name >= $13
  AND (t.name > $13 OR t.id > $14)"
    };
    (by) => {
        "
ORDER BY t.name, t.id"
    };
}

/// How many match, by headline and reach.
macro_rules! counts_sql {
    ($driver:expr) => {
        concat!(
            "
SELECT t.headline_rank, t.reach, COUNT(*) AS targets
FROM target t
WHERE ",
            $driver,
            filters_sql!(),
            "
GROUP BY t.headline_rank, t.reach"
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

/// Which way leads to the targets of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Along the order, testing each.
    Walk,
    /// From the first word.
    Word,
    /// From the rule.
    Rule,
}

pub(super) fn page_statement(way: Way, order: TargetOrder) -> &'static str {
    match (way, order) {
        (Way::Walk, TargetOrder::Headline) => page_sql!(by_walk!(), headline_order),
        (Way::Walk, TargetOrder::Changed) => page_sql!(by_walk!(), changed_order),
        (Way::Walk, TargetOrder::Name) => page_sql!(by_walk!(), name_order),
        (Way::Word, TargetOrder::Headline) => page_sql!(by_word!(), headline_order),
        (Way::Word, TargetOrder::Changed) => page_sql!(by_word!(), changed_order),
        (Way::Word, TargetOrder::Name) => page_sql!(by_word!(), name_order),
        (Way::Rule, TargetOrder::Headline) => page_sql!(by_rule!(), headline_order),
        (Way::Rule, TargetOrder::Changed) => page_sql!(by_rule!(), changed_order),
        (Way::Rule, TargetOrder::Name) => page_sql!(by_rule!(), name_order),
    }
}

pub(super) fn counts_statement(way: Way) -> &'static str {
    match way {
        Way::Walk => counts_sql!(concat!("t.headline_rank >= 0 AND ", by_walk!())),
        Way::Word => counts_sql!(by_word!()),
        Way::Rule => counts_sql!(by_rule!()),
    }
}

/// The months of the strips of one page of targets: fifty ids, those there are not repeated.
pub(super) const STRIPS: &str = "
SELECT s.target_id, m.surface_id, m.month, m.days
FROM target_surface s
JOIN surface_month m ON m.surface_id = s.surface_id
WHERE s.target_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                      $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44,
                      $45, $46, $47, $48, $49, $50)
  AND s.role = 'main' AND s.removed_s IS NULL
  AND m.month >= $51";

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
        let rows = if bounds.way == Way::Walk && filter.profile.is_none() {
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

    /// Ninety days up to `today` of the main surface of each of at most fifty targets, where any are recorded.
    pub async fn target_strips(&self, targets: &[i64], today: i64) -> Result<Vec<Strip>> {
        let mut query = sqlx::query(STRIPS);
        for place in 0..PAGE {
            query = query.bind(targets.get(place).copied().unwrap_or(-1));
        }
        let rows = query.bind(first_month(today)).fetch_all(&self.pools.reader).await?;
        super::strips(&rows, "target_id", today)
    }

    /// Turns words and rule of a filter into what statements bind; `None` where the rule was never recorded and nothing can match.
    async fn bounds(&self, filter: &TargetFilter) -> Result<Option<Bounds>> {
        let rule = match &filter.rule {
            None => None,
            Some(slug) => match self.rule_id(slug).await? {
                Some(id) => Some(id),
                None => return Ok(None),
            },
        };
        let way = match (filter.words.is_empty(), rule) {
            (false, _) => Way::Word,
            (true, Some(_)) => Way::Rule,
            (true, None) => Way::Walk,
        };
        Ok(Some(Bounds { way, rule }))
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

struct Bounds {
    way: Way,
    rule: Option<i64>,
}

type Query = sqlx::query::Query<'static, sqlx::Any, sqlx::any::AnyArguments>;

impl Bounds {
    fn bind(&self, query: Query, filter: &TargetFilter) -> Query {
        let mut query = query
            .bind(filter.kind.map(TargetKind::as_str))
            .bind(filter.headline.map(headline_rank))
            .bind(filter.reach.map(ReachState::as_str))
            .bind(filter.profile.clone());
        for place in 0..3 {
            let word = filter.words.get(place);
            query = query.bind(word.cloned()).bind(word.map(|word| after_prefix(word)));
        }
        query.bind(self.rule)
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
