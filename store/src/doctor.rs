//! Is what the database holds true to itself? Everything that is counted is counted again, every span looked at.
//!
//! What is derived can be mended: numbers, words and reach on `target` and `surface`, the newest day of the trends, and what
//! processes that died left behind. History (spans, findings, events) is only looked at: what is wrong there needs a person.
//! A file that is damaged is not written to.
//!
//! All numbers are compared within one transaction, so that a crawl at work beside it is never taken for a fault.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{Any, AnyConnection, Row};

use crate::Store;
use crate::dialect::Backend;
use crate::error::Result;
use crate::rows::{Bits, count, word, word_or_none};
use crate::targets::{self, Counts, Face};
use crate::trends::{self, ALL, Stock};
use crate::words::{Headline, ReachState, TargetKind, headline_rank};

/// Faults of one check that are written out; all are counted.
const EXAMPLES: usize = 10;
/// Problems that SQLite tells of a damaged file.
const PROBLEMS: &str = "SELECT integrity_check FROM pragma_integrity_check";

/// What one check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// What was checked, as the end of a sentence that begins with "checked".
    pub what: &'static str,
    /// Rows looked at (of a file: its pages).
    pub looked_at: i64,
    /// How many are wrong.
    pub wrong: i64,
    /// How many of these were mended.
    pub mended: i64,
    /// What is wrong, in words; the first ten.
    pub examples: Vec<String>,
}

/// What all checks came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// In the order they were made.
    pub checks: Vec<Checked>,
    /// The file itself is damaged: nothing is written to it.
    pub is_damaged: bool,
}

impl Diagnosis {
    /// The same with one check more.
    #[must_use]
    pub fn with(mut self, checked: Checked) -> Diagnosis {
        self.checks.push(checked);
        self
    }

    /// Faults that are still there.
    #[must_use]
    pub fn left(&self) -> i64 {
        self.checks.iter().map(|check| check.wrong - check.mended).sum()
    }
}

/// Whether faults are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hand {
    /// Only look.
    Look,
    /// Mend what is derived.
    Mend,
}

impl Checked {
    pub(crate) fn new(what: &'static str, looked_at: i64) -> Checked {
        Checked { what, looked_at, wrong: 0, mended: 0, examples: Vec::new() }
    }

    pub(crate) fn fault(&mut self, says: String) {
        self.wrong += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(says);
        }
    }

    /// Takes in another check of the same.
    pub(crate) fn join(&mut self, other: Checked) {
        (self.looked_at, self.wrong) = (self.looked_at + other.looked_at, self.wrong + other.wrong);
        self.mended += other.mended;
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }

    fn faults(what: &'static str, looked_at: i64, says: impl IntoIterator<Item = String>) -> Checked {
        let mut checked = Checked::new(what, looked_at);
        says.into_iter().for_each(|says| checked.fault(says));
        checked
    }
}

impl Store {
    /// Checks everything, and mends what is derived if it is to. `is_alive` says of the holder of a lease whether its
    /// process still runs.
    ///
    /// # Errors
    /// When the database fails; then nothing was mended.
    pub async fn examine(&self, hand: Hand, now_s: i64, is_alive: impl Fn(&str) -> bool) -> Result<Diagnosis> {
        let mut checks = Vec::new();
        if self.pools.backend == Backend::Sqlite {
            checks.push(self.integrity().await?);
            checks.push(self.references().await?);
        }
        let is_damaged = checks.iter().any(|check| check.wrong > 0);
        let hand = if is_damaged { Hand::Look } else { hand };
        match hand {
            Hand::Look => {
                let mut tx = self.pools.read_at_once().await?;
                checks.extend(inside(&mut tx, hand, now_s).await?);
            }
            Hand::Mend => {
                let mut w = self.pools.write().await?;
                checks.extend(inside(w.on(), hand, now_s).await?);
                w.commit().await?;
            }
        }
        checks.push(self.dead(hand, now_s, is_alive).await?);
        Ok(Diagnosis { checks, is_damaged })
    }

    /// Counts every cohort anew and corrects what the newest counted day says. Rows that were counted while nothing has been
    /// recorded since and differ all the same are wrong, and a note beside the chart says so.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn recount_cohorts(&self, now_s: i64) -> Result<Checked> {
        // A database whose history ended before today is counted as of its end.
        let seen_s: Option<i64> =
            sqlx::query_scalar("SELECT MAX(last_attempt_s) FROM target").fetch_one(&self.pools.reader).await?;
        let as_of_s = seen_s.unwrap_or(now_s).min(now_s);
        let counted_s: Option<i64> =
            sqlx::query_scalar("SELECT MAX(refreshed_s) FROM cohort").fetch_one(&self.pools.reader).await?;
        let is_settled = counted_s.is_some_and(|counted_s| counted_s >= as_of_s);
        let before = self.counted().await?;
        self.count_cohorts(counted_s.unwrap_or(as_of_s).max(as_of_s)).await?;
        let after = self.counted().await?;
        let mut checked = Checked::new("what every cohort comes to", count(after.len()));
        if !is_settled {
            return Ok(checked);
        }
        let mut w = self.pools.write().await?;
        for (what, now) in &after {
            if let Some(was) = before.get(what).filter(|was| *was != now) {
                checked.fault(format!("{what}: {was}, but {now}"));
                note(w.on(), now_s, "all", &format!("{what} said {was}; it is {now}.")).await?;
            }
        }
        w.commit().await?;
        checked.mended = checked.wrong;
        Ok(checked)
    }

    /// The rows of the newest counted day of cohorts and rules, as text to compare.
    async fn counted(&self) -> Result<BTreeMap<String, String>> {
        let rows = sqlx::query(
            "SELECT cohort.slug, rule.slug, rule_day.evaluated, rule_day.failing, rule_day.unknown, rule_day.targets_failing
             FROM rule_day
             JOIN cohort ON cohort.id = rule_day.cohort_id
             JOIN rule ON rule.id = rule_day.rule_id
             WHERE rule_day.day = (SELECT MAX(newest.day) FROM rule_day newest WHERE newest.cohort_id = rule_day.cohort_id)",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        let mut counted = BTreeMap::new();
        for row in &rows {
            let (cohort, rule): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let n = |column: usize| row.try_get::<i64, _>(column);
            let says = format!("{} of {} fail, {} unknown, {} targets", n(3)?, n(2)?, n(4)?, n(5)?);
            counted.insert(format!("{rule} in {cohort}"), says);
        }
        Ok(counted)
    }

    async fn integrity(&self) -> Result<Checked> {
        let pages: i64 =
            sqlx::query_scalar("SELECT page_count FROM pragma_page_count").fetch_one(&self.pools.reader).await?;
        let rows = sqlx::query(PROBLEMS).fetch_all(&self.pools.reader).await;
        let says = match rows {
            Ok(rows) => rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<String>>>()?,
            Err(error) => vec![error.to_string()],
        };
        Ok(Checked::faults("the file", pages, says.into_iter().filter(|says| says != "ok")))
    }

    async fn references(&self) -> Result<Checked> {
        let rows = sqlx::query("SELECT \"table\", parent, COUNT(*) FROM pragma_foreign_key_check GROUP BY 1, 2")
            .fetch_all(&self.pools.reader)
            .await?;
        let says = |row: &AnyRow| -> Result<String> {
            let (child, parent): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            Ok(format!("{} rows of {child} point at no {parent}", row.try_get::<i64, _>(2)?))
        };
        let says = rows.iter().map(says).collect::<Result<Vec<_>>>()?;
        Ok(Checked::faults("that what is pointed at is there", 0, says))
    }

    /// What processes left behind that died: crawls that still run, leases that nobody will give back.
    async fn dead(&self, hand: Hand, now_s: i64, is_alive: impl Fn(&str) -> bool) -> Result<Checked> {
        let crawls =
            sqlx::query("SELECT id, holder FROM crawl WHERE state = 'running'").fetch_all(&self.pools.reader).await?;
        let leases =
            sqlx::query("SELECT COUNT(*), holder FROM lease GROUP BY holder").fetch_all(&self.pools.reader).await?;
        let mut checked = Checked::new("crawls and leases of processes", count(crawls.len() + leases.len()));
        for row in crawls {
            let holder: String = row.try_get(1)?;
            if !is_alive(&holder) {
                checked.fault(format!("crawl {} is running, but {holder} is not", row.try_get::<i64, _>(0)?));
            }
        }
        for row in leases {
            let holder: String = row.try_get(1)?;
            if !is_alive(&holder) {
                checked.fault(format!("{holder} holds {} leases and does not run", row.try_get::<i64, _>(0)?));
            }
        }
        if hand == Hand::Mend && checked.wrong > 0 {
            self.recover(now_s, is_alive).await?;
            checked.mended = checked.wrong;
        }
        Ok(checked)
    }
}

/// The checks that are made within one transaction. Surfaces come before targets and targets before trends, because each
/// is counted from what stands before it.
async fn inside(on: &mut AnyConnection, hand: Hand, now_s: i64) -> Result<Vec<Checked>> {
    Ok(vec![
        spans(on, "spans of documents", DOC_SPANS, "SELECT COUNT(*) FROM doc_span").await?,
        spans(on, "spans of reach", REACH_SPANS, "SELECT COUNT(*) FROM reach_span").await?,
        spans(on, "spans of facts", FACT_SPANS, "SELECT COUNT(*) FROM fact_span").await?,
        spans(on, "spans of findings", FINDING_SPANS, "SELECT COUNT(*) FROM finding_span").await?,
        finding_states(on).await?,
        present(on).await?,
        listings(on).await?,
        cursors(on).await?,
        surfaces(on, hand).await?,
        all_targets(on, hand).await?,
        cohorts(on, hand, now_s).await?,
        rules(on, hand, now_s).await?,
    ])
}

/// Spans that end before they begin, reach into the next one, or are open though another follows.
macro_rules! span_sql {
    ($table:literal, $subject:literal, $by:literal) => {
        concat!(
            "SELECT subject, from_s, to_s, next_s
             FROM (SELECT ",
            $subject,
            " AS subject, from_s, to_s, LEAD(from_s) OVER (PARTITION BY ",
            $by,
            " ORDER BY from_s) AS next_s FROM ",
            $table,
            ") span
             WHERE to_s < from_s OR to_s > next_s OR (to_s IS NULL AND next_s IS NOT NULL)
             ORDER BY subject, from_s"
        )
    };
}

const DOC_SPANS: &str = span_sql!("doc_span", "surface_id", "surface_id");
const REACH_SPANS: &str = span_sql!("reach_span", "surface_id", "surface_id");
const FACT_SPANS: &str = span_sql!("fact_span", "surface_id", "surface_id, rule_id");
const FINDING_SPANS: &str = span_sql!("finding_span", "finding_id", "finding_id");

async fn spans(
    on: &mut AnyConnection,
    what: &'static str,
    statement: &'static str,
    all: &'static str,
) -> Result<Checked> {
    let looked_at = number(on, all).await?;
    let rows = sqlx::query(statement).fetch_all(on).await?;
    let says = rows.iter().map(|row| {
        let (subject, from_s, to_s): (i64, i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(span_fault(subject, from_s, to_s, row.try_get(3)?))
    });
    Ok(Checked::faults(what, looked_at, says.collect::<Result<Vec<_>>>()?))
}

fn span_fault(subject: i64, from_s: i64, to_s: Option<i64>, next_s: Option<i64>) -> String {
    match (to_s, next_s) {
        (Some(to_s), _) if to_s < from_s => format!("of {subject}: the span from {from_s} ends before, at {to_s}"),
        (Some(to_s), Some(next_s)) => {
            format!("of {subject}: the span from {from_s} ends at {to_s}, after the next began at {next_s}")
        }
        _ => format!("of {subject}: the span from {from_s} is open though another follows"),
    }
}

/// A finding that is open has one open span, from when it opened; any other has none.
async fn finding_states(on: &mut AnyConnection) -> Result<Checked> {
    let looked_at = number(on, "SELECT COUNT(*) FROM finding").await?;
    let rows = sqlx::query(
        "SELECT finding.id, finding.state, COUNT(finding_span.from_s)
         FROM finding
         LEFT JOIN finding_span ON finding_span.finding_id = finding.id AND finding_span.to_s IS NULL
         GROUP BY finding.id, finding.state, finding.opened_s
         HAVING (finding.state IN ('open', 'clearing', 'flapping')
                 AND (COUNT(finding_span.from_s) <> 1 OR MIN(finding_span.from_s) <> finding.opened_s))
             OR (finding.state IN ('pending', 'resolved', 'retired') AND COUNT(finding_span.from_s) > 0)
         ORDER BY finding.id",
    )
    .fetch_all(on)
    .await?;
    let says = rows.iter().map(|row| {
        let (id, state, open): (i64, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(match open {
            1 if matches!(state.as_str(), "open" | "clearing" | "flapping") => {
                format!("finding {id} is {state}, but not since its open span began")
            }
            open => format!("finding {id} is {state} and has {open} open spans"),
        })
    });
    Ok(Checked::faults("that findings agree with their spans", looked_at, says.collect::<Result<Vec<_>>>()?))
}

/// What a surface serves and how it is reached is what its open spans say.
async fn present(on: &mut AnyConnection) -> Result<Checked> {
    let looked_at = number(on, "SELECT COUNT(*) FROM surface WHERE retired_s IS NULL").await?;
    let rows = sqlx::query(
        "SELECT surface.id,
                CASE WHEN COALESCE(surface.document_id, 0) <> COALESCE(doc_span.document_id, 0) THEN 1 ELSE 0 END
         FROM surface
         LEFT JOIN doc_span ON doc_span.surface_id = surface.id AND doc_span.to_s IS NULL
         LEFT JOIN reach_span ON reach_span.surface_id = surface.id AND reach_span.to_s IS NULL
         WHERE surface.retired_s IS NULL
           AND (COALESCE(surface.document_id, 0) <> COALESCE(doc_span.document_id, 0)
                OR COALESCE(reach_span.state, 'unknown') <> surface.reach)
         ORDER BY surface.id",
    )
    .fetch_all(on)
    .await?;
    let says = rows.iter().map(|row| {
        let what = if row.try_get::<i64, _>(1)? == 1 { "serves" } else { "is reached as" };
        Ok(format!("surface {} {what} something else than its open span says", row.try_get::<i64, _>(0)?))
    });
    Ok(Checked::faults("that surfaces agree with their spans", looked_at, says.collect::<Result<Vec<_>>>()?))
}

/// Of the versions of a name in one registry one is current where one can be. How many of them it flags as the latest is
/// its own affair.
async fn listings(on: &mut AnyConnection) -> Result<Checked> {
    let looked_at = number(on, "SELECT COUNT(*) FROM listing WHERE gone_s IS NULL").await?;
    let rows = sqlx::query(
        "SELECT MIN(name), CAST(SUM(is_current) AS BIGINT)
         FROM listing
         WHERE gone_s IS NULL
         GROUP BY source_id, target_id
         HAVING SUM(is_current) > 1
             OR (SUM(is_current) = 0 AND SUM(CASE WHEN COALESCE(status, '') <> 'deleted' THEN 1 ELSE 0 END) > 0)
         ORDER BY 1",
    )
    .fetch_all(&mut *on)
    .await?;
    let says = rows
        .iter()
        .map(|row| Ok(format!("{} has {} current versions", row.try_get::<String, _>(0)?, row.try_get::<i64, _>(1)?)));
    let mut checked = Checked::faults("the versions of names", looked_at, says.collect::<Result<Vec<_>>>()?);
    let gone = number(on, "SELECT COUNT(*) FROM listing WHERE gone_s IS NOT NULL AND is_current = 1").await?;
    if gone > 0 {
        checked.fault(format!("{gone} versions are gone and current"));
    }
    Ok(checked)
}

/// A reader of events that stands behind the newest one would miss what comes.
async fn cursors(on: &mut AnyConnection) -> Result<Checked> {
    let looked_at = number(on, "SELECT COUNT(*) FROM event_cursor").await?;
    let rows = sqlx::query(
        "SELECT reader, event_id
         FROM event_cursor
         WHERE event_id > (SELECT COALESCE(MAX(id), 0) FROM event)
         ORDER BY reader",
    )
    .fetch_all(on)
    .await?;
    let says = rows.iter().map(|row| {
        let (reader, at): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(format!("the reader {reader} has read event {at}, which is not there"))
    });
    Ok(Checked::faults("readers of events", looked_at, says.collect::<Result<Vec<_>>>()?))
}

/// A surface as it stands, and what its findings come to.
struct SurfaceRow {
    id: i64,
    kept: Counts,
    headline: Headline,
    reach: ReachState,
    /// The word of its last judgement.
    judged: Option<Headline>,
    counted: Counts,
}

/// The word a surface should have; `None`: nothing speaks against the one it has.
fn due_word(row: &SurfaceRow) -> Option<Headline> {
    let by_findings = match row.counted {
        Counts { blocking: 1.., .. } => Headline::Blocked,
        Counts { error: 1.., .. } => Headline::Deviates,
        _ => Headline::Sound,
    };
    // What has been absent for days has no word, and what could not be judged keeps the one it had.
    let is_without = row.headline == Headline::NotEvaluated || row.reach == ReachState::Retired;
    let due = match row.judged? {
        _ if is_without => return None,
        Headline::NotEvaluated => return None,
        Headline::NotDetected => Headline::NotDetected,
        Headline::Sound | Headline::Deviates | Headline::Blocked => by_findings,
    };
    (due != row.headline).then_some(due)
}

async fn surfaces(on: &mut AnyConnection, hand: Hand) -> Result<Checked> {
    let rows = sqlx::query(
        "SELECT surface.id, surface.n_blocking, surface.n_error, surface.n_warn, surface.n_info, surface.n_security,
                surface.headline, surface.reach, eval.headline,
                COALESCE(f.blocking, 0), COALESCE(f.error, 0), COALESCE(f.warn, 0), COALESCE(f.info, 0),
                COALESCE(f.security, 0)
         FROM surface
         LEFT JOIN eval ON eval.id = surface.eval_id
         LEFT JOIN (
             SELECT finding.surface_id,
                    CAST(SUM(CASE WHEN rule.guess = 0 AND finding.impact = 'breaks-clients' THEN 1 ELSE 0 END) AS BIGINT)
                        AS blocking,
                    CAST(SUM(CASE WHEN rule.guess = 0 AND finding.severity = 'error' THEN 1 ELSE 0 END) AS BIGINT)
                        AS error,
                    CAST(SUM(CASE WHEN rule.guess = 0 AND finding.severity = 'warning' THEN 1 ELSE 0 END) AS BIGINT)
                        AS warn,
                    CAST(SUM(CASE WHEN rule.guess = 0 AND finding.severity = 'info' THEN 1 ELSE 0 END) AS BIGINT)
                        AS info,
                    CAST(SUM(finding.security) AS BIGINT) AS security
             FROM finding
             JOIN rule ON rule.id = finding.rule_id
             WHERE finding.state IN ('open', 'clearing', 'flapping') AND finding.instance = ''
             GROUP BY finding.surface_id
         ) f ON f.surface_id = surface.id
         ORDER BY surface.id",
    )
    .fetch_all(&mut *on)
    .await?;
    let mut checked = Checked::new("the numbers and words of surfaces", count(rows.len()));
    for row in &rows {
        let row = surface_row(row)?;
        let due = due_word(&row);
        if row.kept == row.counted && due.is_none() {
            continue;
        }
        checked.fault(match due {
            Some(due) => format!("surface {} is {}, but its findings make it {due}", row.id, row.headline),
            None => format!("surface {} keeps {}, but {} are open", row.id, said(row.kept), said(row.counted)),
        });
        if hand == Hand::Mend {
            mend_surface(on, &row, due.unwrap_or(row.headline)).await?;
            checked.mended += 1;
        }
    }
    Ok(checked)
}

fn surface_row(row: &AnyRow) -> Result<SurfaceRow> {
    Ok(SurfaceRow {
        id: row.try_get(0)?,
        kept: counts(row, 1)?,
        headline: word("surface", row.try_get(6)?)?,
        reach: word("surface", row.try_get(7)?)?,
        judged: word_or_none("judgement", row.try_get(8)?)?,
        counted: counts(row, 9)?,
    })
}

fn counts(row: &AnyRow, first: usize) -> Result<Counts> {
    Ok(Counts {
        blocking: row.try_get(first)?,
        error: row.try_get(first + 1)?,
        warn: row.try_get(first + 2)?,
        info: row.try_get(first + 3)?,
        security: row.try_get(first + 4)?,
    })
}

fn said(counts: Counts) -> String {
    let Counts { blocking, error, warn, info, security } = counts;
    format!("{error} errors ({blocking} block), {warn} warnings, {info} hints, {security} of security")
}

async fn mend_surface(on: &mut AnyConnection, row: &SurfaceRow, headline: Headline) -> Result<()> {
    sqlx::query(
        "UPDATE surface
         SET n_blocking = $2, n_error = $3, n_warn = $4, n_info = $5, n_security = $6, headline = $7
         WHERE id = $1",
    )
    .bind(row.id)
    .bind(row.counted.blocking)
    .bind(row.counted.error)
    .bind(row.counted.warn)
    .bind(row.counted.info)
    .bind(row.counted.security)
    .bind(headline.as_str())
    .execute(on)
    .await?;
    Ok(())
}

/// Each target's row is folded from its surfaces.
async fn all_targets(on: &mut AnyConnection, hand: Hand) -> Result<Checked> {
    let mut faces: BTreeMap<i64, Vec<Face>> = BTreeMap::new();
    let rows = sqlx::query(targets::ALL_FACES).fetch_all(&mut *on).await?;
    for row in &rows {
        faces.entry(row.try_get(14)?).or_default().push(targets::face(row)?);
    }
    let rows = sqlx::query(
        "SELECT id, n_blocking, n_error, n_warn, n_info, n_security, headline, reach, headline_rank, n_surfaces
         FROM target
         WHERE retired_s IS NULL
         ORDER BY id",
    )
    .fetch_all(&mut *on)
    .await?;
    let mut checked = Checked::new("the numbers and words of targets", count(rows.len()));
    for row in &rows {
        let id: i64 = row.try_get(0)?;
        let faces = faces.remove(&id).unwrap_or_default();
        let folded = targets::fold(&faces);
        let due = (folded.counts, folded.headline, folded.reach, headline_rank(folded.headline), count(faces.len()));
        let headline: Headline = word("target", row.try_get(6)?)?;
        let reach: ReachState = word("target", row.try_get(7)?)?;
        let kept = (counts(row, 1)?, headline, reach, row.try_get(8)?, row.try_get(9)?);
        if kept == due {
            continue;
        }
        checked.fault(format!(
            "target {id} is {headline} and {reach} with {} on {} surfaces, but {} and {} with {} on {} by its surfaces",
            said(kept.0),
            kept.4,
            due.1,
            due.2,
            said(due.0),
            due.4
        ));
        if hand == Hand::Mend {
            mend_target(on, id, &folded, due.4).await?;
            checked.mended += 1;
        }
    }
    Ok(checked)
}

async fn mend_target(on: &mut AnyConnection, id: i64, folded: &Face, surfaces: i64) -> Result<()> {
    sqlx::query(
        "UPDATE target
         SET n_blocking = $2, n_error = $3, n_warn = $4, n_info = $5, n_security = $6, headline = $7, headline_rank = $8,
             reach = $9, n_surfaces = $10
         WHERE id = $1",
    )
    .bind(id)
    .bind(folded.counts.blocking)
    .bind(folded.counts.error)
    .bind(folded.counts.warn)
    .bind(folded.counts.info)
    .bind(folded.counts.security)
    .bind(folded.headline.as_str())
    .bind(headline_rank(folded.headline))
    .bind(folded.reach.as_str())
    .bind(surfaces)
    .execute(on)
    .await?;
    Ok(())
}

/// The newest day of every cohort is its present state.
async fn cohorts(on: &mut AnyConnection, hand: Hand, now_s: i64) -> Result<Checked> {
    let rows = sqlx::query(
        "SELECT kind, headline, reach, COUNT(*) FROM target WHERE retired_s IS NULL GROUP BY kind, headline, reach",
    )
    .fetch_all(&mut *on)
    .await?;
    let mut due: BTreeMap<i64, Stock> = BTreeMap::new();
    for row in &rows {
        let kind: TargetKind = word("target", row.try_get(0)?)?;
        let (headline, reach) = (word("target", row.try_get(1)?)?, word("target", row.try_get(2)?)?);
        let n: i64 = row.try_get(3)?;
        for cohort in [ALL, trends::cohort_of(kind)] {
            due.entry(cohort).or_default().add(headline, reach, n);
        }
    }
    let entries = number(on, "SELECT COUNT(*) FROM listing WHERE gone_s IS NULL").await?;
    for cohort in [ALL, trends::cohort_of(TargetKind::McpServer)] {
        due.entry(cohort).or_default().entries = entries;
    }
    let kept = trends::newest_stock(on).await?;
    let mut checked = Checked::new("the newest day of the cohorts", count(kept.len()));
    for (cohort, day, stock) in kept {
        let due = due.get(&cohort).copied().unwrap_or_default();
        if stock == due {
            continue;
        }
        checked.fault(format!("cohort {cohort} counts {stock} on day {day}, but there are {due}"));
        if hand == Hand::Mend {
            trends::set_stock(on, cohort, day, &due).await?;
            note(on, now_s, "all", &format!("cohort {cohort} counted {stock}; there are {due}.")).await?;
            checked.mended += 1;
        }
    }
    Ok(checked)
}

/// Surfaces judged, surfaces failing, and places, of one rule.
type Tally = (i64, i64, i64);

/// The newest day of every rule is its present state.
async fn rules(on: &mut AnyConnection, hand: Hand, now_s: i64) -> Result<Checked> {
    let Some(day) = newest_rule_day(on).await? else { return Ok(Checked::new("the newest day of the rules", 0)) };
    let due = present_tallies(on).await?;
    let rows = sqlx::query(
        "SELECT rule.id, rule.slug, COALESCE(rule_day.evaluated, 0), COALESCE(rule_day.failing, 0),
                COALESCE(rule_day.occurrences, 0)
         FROM rule
         LEFT JOIN rule_day ON rule_day.rule_id = rule.id AND rule_day.cohort_id = 1 AND rule_day.day = $1
         ORDER BY rule.id",
    )
    .bind(day)
    .fetch_all(&mut *on)
    .await?;
    let mut checked = Checked::new("the newest day of the rules", count(rows.len()));
    for row in &rows {
        let (rule, slug): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        let kept: Tally = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        let due = due.get(&rule).copied().unwrap_or_default();
        if kept == due {
            continue;
        }
        let says =
            format!("{} of {} fail in {} places, but {} of {} in {}", kept.1, kept.0, kept.2, due.1, due.0, due.2);
        checked.fault(format!("{slug} on day {day}: {says}"));
        if hand == Hand::Mend {
            mend_rule(on, rule, day, due).await?;
            note(on, now_s, &format!("rule:{slug}"), &format!("{says}.")).await?;
            checked.mended += 1;
        }
    }
    Ok(checked)
}

async fn newest_rule_day(on: &mut AnyConnection) -> Result<Option<i64>> {
    Ok(sqlx::query_scalar("SELECT MAX(day) FROM cohort_day WHERE cohort_id = 1").fetch_one(on).await?)
}

async fn present_tallies(on: &mut AnyConnection) -> Result<BTreeMap<i64, Tally>> {
    let mut tallies: BTreeMap<i64, Tally> = BTreeMap::new();
    let judged = sqlx::query("SELECT judged FROM surface WHERE judged IS NOT NULL").fetch_all(&mut *on).await?;
    for row in &judged {
        for rule in Bits::from_bytes(&row.try_get::<Vec<u8>, _>(0)?).iter() {
            tallies.entry(rule).or_default().0 += 1;
        }
    }
    let failing = sqlx::query(
        "SELECT rule_id, COUNT(*), CAST(SUM(occurrences) AS BIGINT)
         FROM finding
         WHERE state IN ('open', 'clearing', 'flapping')
         GROUP BY rule_id
         UNION ALL
         SELECT rule_id, COUNT(*), 0 FROM fact_span WHERE to_s IS NULL GROUP BY rule_id",
    )
    .fetch_all(on)
    .await?;
    for row in &failing {
        let tally = tallies.entry(row.try_get(0)?).or_default();
        tally.1 += row.try_get::<i64, _>(1)?;
        tally.2 += row.try_get::<i64, _>(2)?;
    }
    Ok(tallies)
}

async fn mend_rule(on: &mut AnyConnection, rule: i64, day: i64, due: Tally) -> Result<()> {
    sqlx::query(
        "INSERT INTO rule_day (cohort_id, rule_id, day, evaluated, failing, occurrences)
         VALUES (1, $1, $2, $3, $4, $5)
         ON CONFLICT (cohort_id, rule_id, day) DO UPDATE SET
             evaluated = excluded.evaluated, failing = excluded.failing, occurrences = excluded.occurrences",
    )
    .bind(rule)
    .bind(day)
    .bind(due.0)
    .bind(due.1)
    .bind(due.2)
    .execute(on)
    .await?;
    Ok(())
}

/// A number that was published is not corrected in silence.
pub(crate) async fn note(on: &mut AnyConnection, now_s: i64, scope: &str, body: &str) -> Result<()> {
    sqlx::query(
        "INSERT INTO annotation (id, at_s, scope, kind, title, body)
         SELECT COALESCE(MAX(id), 0) + 1, $1, $2, 'note', 'Corrected by counting again', $3 FROM annotation",
    )
    .bind(now_s)
    .bind(scope)
    .bind(body)
    .execute(on)
    .await?;
    Ok(())
}

async fn number(on: &mut AnyConnection, statement: &'static str) -> Result<i64> {
    let n: i64 = sqlx::query_scalar::<Any, i64>(statement).fetch_one(on).await?;
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_surface_follows_its_findings_where_it_has_one() {
        use Headline::{Blocked, Deviates, NotDetected, NotEvaluated, Sound};
        let row = |headline, judged, error, blocking, reach| SurfaceRow {
            id: 1,
            kept: Counts::default(),
            headline,
            reach,
            judged,
            counted: Counts { error, blocking, ..Counts::default() },
        };
        let up = ReachState::Up;
        for (row, due) in [
            (row(Sound, Some(Sound), 0, 0, up), None),
            (row(Sound, Some(Sound), 1, 0, up), Some(Deviates)),
            (row(Deviates, Some(Sound), 1, 1, up), Some(Blocked)),
            (row(Blocked, Some(Blocked), 0, 0, up), Some(Sound)),
            (row(Sound, Some(NotDetected), 0, 0, up), Some(NotDetected)),
            (row(Sound, Some(NotEvaluated), 3, 0, up), None),
            (row(NotEvaluated, Some(Blocked), 0, 0, ReachState::Absent), None),
            (row(Sound, None, 0, 0, ReachState::Retired), None),
        ] {
            assert_eq!(due_word(&row), due);
        }
    }

    #[test]
    fn what_is_wrong_with_a_span_is_said() {
        assert!(span_fault(7, 10, Some(9), None).ends_with("the span from 10 ends before, at 9"));
        assert!(span_fault(7, 10, Some(30), Some(20)).contains("after the next began at 20"));
        assert!(span_fault(7, 10, None, Some(20)).contains("open though another follows"));
    }

    #[test]
    fn faults_are_all_counted_and_the_first_ten_written_out() {
        let checked = Checked::faults("x", 40, (0..12).map(|n| n.to_string()));
        assert_eq!((checked.wrong, checked.examples.len()), (12, 10));
        let mended = Checked { mended: 5, ..checked.clone() };
        assert_eq!(Diagnosis { checks: vec![checked, mended], is_damaged: false }.left(), 19);
    }
}
