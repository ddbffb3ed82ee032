//! A day of the trends, counted again from what happened.
//!
//! What begins and ends on a day stands in its events, written in the transaction that counted it. So what a day says of
//! findings and targets is what the day before said and what the events of that day add. What events do not tell (how many
//! surfaces were judged, in how many places a rule fires, words and reach) is counted anew for the newest day alone, by
//! [`crate::doctor`]. A day whose events are not all kept any more stays as it was published.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AnyConnection, Row};

use crate::Store;
use crate::doctor::{Checked, Hand, note};
use crate::error::Result;
use crate::rows::DAY_S;
use crate::trends::{self, ALL};
use crate::words::{EventKind, TargetKind};

/// The last cohort that is counted as things happen: those of kinds follow *all*.
const LAST_KIND: i64 = 6;

/// The last time that a day was counted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// Days since 1970.
    pub day: i64,
    /// When, in Unix seconds.
    pub at_s: i64,
    /// Numbers that differed.
    pub wrong: i64,
}

/// What a day says of a rule: opened, resolved, regressed, found at a first look, failing at its end.
type OfRule = [i64; 5];
/// What a day says of a cohort: targets at its end, added, retired; findings opened, resolved, regressed.
type OfCohort = [i64; 6];

/// What the events of a day add up to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Added {
    /// The last number is what is failing more than before.
    rules: BTreeMap<i64, OfRule>,
    /// The first number is how many targets more there are than before.
    cohorts: BTreeMap<i64, OfCohort>,
}

/// One event, as far as numbers go.
#[derive(Debug, Clone)]
struct Happening {
    kind: EventKind,
    rule: Option<i64>,
    of: Option<TargetKind>,
    a: Option<i64>,
    note: String,
}

impl Added {
    fn take(&mut self, event: &Happening) {
        use EventKind::{
            FindingFlappingStarted, FindingFlappingStopped, FindingOpened, FindingRegressed, FindingResolved,
            TargetAdded, TargetRetired, TargetReturned,
        };
        let is_marked = event.a == Some(1);
        let (rule, cohort): (OfRule, OfCohort) = match event.kind {
            FindingOpened if is_marked => ([0, 0, 0, 1, 1], [0; 6]),
            FindingOpened => ([1, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0]),
            FindingRegressed => ([1, 0, 1, 0, 1], [0, 0, 0, 1, 0, 1]),
            // It began with its coming and going.
            FindingFlappingStarted if is_marked => ([1, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0]),
            FindingFlappingStopped if event.note == "resolved" => ([0, 1, 0, 0, -1], [0, 0, 0, 0, 1, 0]),
            // What ends with its document or its target is nobody's work.
            FindingResolved if matches!(event.note.as_str(), "document_gone" | "target_retired") => {
                ([0, 1, 0, 0, -1], [0; 6])
            }
            FindingResolved => ([0, 1, 0, 0, -1], [0, 0, 0, 0, 1, 0]),
            TargetAdded => ([0; 5], [1, 1, 0, 0, 0, 0]),
            TargetRetired => ([0; 5], [-1, 0, 1, 0, 0, 0]),
            TargetReturned => ([0; 5], [1, 0, 0, 0, 0, 0]),
            _ => return,
        };
        if let Some(id) = event.rule {
            add(self.rules.entry(id).or_default(), rule);
        }
        if let Some(kind) = event.of {
            for id in [ALL, trends::cohort_of(kind)] {
                add(self.cohorts.entry(id).or_default(), cohort);
            }
        }
    }
}

fn add<const N: usize>(sum: &mut [i64; N], more: [i64; N]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl Store {
    /// The days that can be counted again, oldest first: those whose events are all kept.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn recountable_days(&self) -> Result<Vec<i64>> {
        let mut on = self.pools.reader.acquire().await?;
        recountable(&mut on).await
    }

    /// Counts one day again and compares; mends it if it is to, with a note beside the chart.
    ///
    /// # Errors
    /// When the database fails; then nothing was mended.
    pub async fn recount_day(&self, day: i64, hand: Hand, now_s: i64) -> Result<Checked> {
        let mut checked = Checked::new("days of the trends", 0);
        match hand {
            Hand::Look => {
                let mut tx = self.pools.read_at_once().await?;
                recount(&mut tx, day, hand, now_s, &mut checked).await?;
            }
            Hand::Mend => {
                let mut w = self.pools.write().await?;
                recount(w.on(), day, hand, now_s, &mut checked).await?;
                w.commit().await?;
            }
        }
        Ok(checked)
    }

    /// Counts every day again that can be, newest first: each hangs on the day after it. `progress` is told how many of how many are done.
    ///
    /// # Errors
    /// When the database fails; what was mended until then stays mended.
    pub async fn recount_days(
        &self,
        hand: Hand,
        now_s: i64,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Checked> {
        let days = self.recountable_days().await?;
        let mut checked = Checked::new("days of the trends", 0);
        for (done, day) in days.iter().rev().enumerate() {
            progress(done, days.len());
            checked.join(self.recount_day(*day, hand, now_s).await?);
        }
        progress(days.len(), days.len());
        Ok(checked)
    }

    /// Remembers what counting a day again came to.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn note_recount(&self, recount: Recount) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM recount").execute(w.on()).await?;
        sqlx::query("INSERT INTO recount (day, at_s, wrong) VALUES ($1, $2, $3)")
            .bind(recount.day)
            .bind(recount.at_s)
            .bind(recount.wrong)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// The last time that a day was counted again by itself.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_recount(&self) -> Result<Option<Recount>> {
        let row = sqlx::query("SELECT day, at_s, wrong FROM recount").fetch_optional(&self.pools.reader).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Recount { day: row.try_get(0)?, at_s: row.try_get(1)?, wrong: row.try_get(2)? }))
    }
}

async fn recountable(on: &mut AnyConnection) -> Result<Vec<i64>> {
    let from: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(event_id), 1) FROM recount_from").fetch_one(&mut *on).await?;
    let oldest: Option<i64> = sqlx::query_scalar("SELECT MIN(id) FROM event").fetch_one(&mut *on).await?;
    let first = oldest.unwrap_or(1).max(from);
    // The day of the first event that can be told from is not whole, unless it is the very first.
    let cut_s: Option<i64> = match first {
        1 => None,
        first => {
            sqlx::query_scalar("SELECT MIN(at_s) FROM event WHERE id >= $1").bind(first).fetch_one(&mut *on).await?
        }
    };
    if first > 1 && cut_s.is_none() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query("SELECT day FROM cohort_day WHERE cohort_id = 1 AND day > $1 ORDER BY day")
        .bind(cut_s.map_or(-1, |at_s| at_s / DAY_S))
        .fetch_all(on)
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn recount(on: &mut AnyConnection, day: i64, hand: Hand, now_s: i64, checked: &mut Checked) -> Result<()> {
    // What happened on a day without a row of its own was counted on the next that has one.
    let before: Option<i64> = sqlx::query_scalar("SELECT MAX(day) FROM cohort_day WHERE cohort_id = 1 AND day < $1")
        .bind(day)
        .fetch_one(&mut *on)
        .await?;
    let after: Option<i64> = sqlx::query_scalar("SELECT MIN(day) FROM cohort_day WHERE cohort_id = 1 AND day > $1")
        .bind(day)
        .fetch_one(&mut *on)
        .await?;
    let added = happened(on, before.map_or(0, |before| (before + 1) * DAY_S), (day + 1) * DAY_S).await?;
    // What there was at the end of a day is what there was at the end of the next without what happened in between: the newest
    // day is compared with what there is, so every day before it hangs on what can be seen.
    let since = match after {
        Some(after) => happened(on, (day + 1) * DAY_S, (after + 1) * DAY_S).await?,
        None => Added::default(),
    };
    let [kept, earlier, later] =
        [rules_of(on, day).await?, rules_of(on, before.unwrap_or(-1)).await?, rules_of(on, after.unwrap_or(-1)).await?];
    let rules: BTreeSet<i64> = kept.keys().chain(added.rules.keys()).chain(later.keys()).copied().collect();
    for rule in rules {
        let was = kept.get(&rule).copied().unwrap_or_default();
        let mut due = added.rules.get(&rule).copied().unwrap_or_default();
        due[4] = match later.get(&rule) {
            Some(later) => later[4] - since.rules.get(&rule).map_or(0, |moved| moved[4]),
            None if after.is_none() && kept.contains_key(&rule) => was[4],
            // The day that it would hang on has no row.
            None => earlier.get(&rule).map_or(0, |earlier| earlier[4]) + due[4],
        };
        checked.looked_at += 1;
        if was == due {
            continue;
        }
        let slug: String =
            sqlx::query_scalar("SELECT slug FROM rule WHERE id = $1").bind(rule).fetch_one(&mut *on).await?;
        let said = format!("{} on day {day}, but {}", said_of_rule(was), said_of_rule(due));
        checked.fault(format!("{slug}: {said}"));
        if hand == Hand::Mend {
            set_rule(on, rule, day, due).await?;
            note(on, now_s, &format!("rule:{slug}"), &format!("{said}.")).await?;
            checked.mended += 1;
        }
    }
    let (kept, later) = (cohorts_of(on, day).await?, cohorts_of(on, after.unwrap_or(-1)).await?);
    for (cohort, was) in kept {
        let mut due = added.cohorts.get(&cohort).copied().unwrap_or_default();
        let [at_end, moved] =
            [&later, &since.cohorts].map(|cohorts| cohorts.get(&cohort).map_or(0, |cohort| cohort[0]));
        due[0] = if after.is_some() { at_end - moved } else { was[0] };
        checked.looked_at += 1;
        if was == due {
            continue;
        }
        let said = format!("{} on day {day}, but {}", said_of_cohort(was), said_of_cohort(due));
        checked.fault(format!("cohort {cohort}: {said}"));
        if hand == Hand::Mend {
            set_cohort(on, cohort, day, due).await?;
            note(on, now_s, "all", &format!("cohort {cohort}: {said}.")).await?;
            checked.mended += 1;
        }
    }
    Ok(())
}

fn said_of_rule([opened, resolved, regressed, baseline, failing]: OfRule) -> String {
    format!("{opened} opened, {resolved} resolved, {regressed} regressed, {baseline} found, {failing} fail")
}

fn said_of_cohort([targets, added, retired, opened, resolved, regressed]: OfCohort) -> String {
    format!(
        "{targets} targets, {added} added, {retired} retired, {opened} opened, {resolved} resolved, {regressed} regressed"
    )
}

/// What the events from one moment to another add up to.
async fn happened(on: &mut AnyConnection, from_s: i64, to_s: i64) -> Result<Added> {
    let kinds = [
        EventKind::FindingOpened,
        EventKind::FindingRegressed,
        EventKind::FindingResolved,
        EventKind::FindingFlappingStarted,
        EventKind::FindingFlappingStopped,
        EventKind::TargetAdded,
        EventKind::TargetRetired,
        EventKind::TargetReturned,
    ];
    let mut added = Added::default();
    for kind in kinds {
        let mut after = first_of(on, kind, from_s).await?;
        loop {
            let rows = sqlx::query(
                "SELECT event.id, event.at_s, event.rule_id, target.kind, event.a, event.note
                 FROM event
                 LEFT JOIN target ON target.id = event.target_id
                 WHERE event.kind = $1 AND event.id > $2
                 ORDER BY event.id
                 LIMIT 1000",
            )
            .bind(kind.number())
            .bind(after)
            .fetch_all(&mut *on)
            .await?;
            for row in &rows {
                let at_s: i64 = row.try_get(1)?;
                if !(from_s..to_s).contains(&at_s) {
                    continue;
                }
                let of: Option<String> = row.try_get(3)?;
                added.take(&Happening {
                    kind,
                    rule: row.try_get(2)?,
                    of: of.and_then(|kind| kind.parse().ok()),
                    a: row.try_get(4)?,
                    note: row.try_get::<Option<String>, _>(5)?.unwrap_or_default(),
                });
            }
            let Some(last) = rows.last() else { break };
            after = last.try_get(0)?;
            if last.try_get::<i64, _>(1)? >= to_s + DISORDER_S {
                break;
            }
        }
    }
    Ok(added)
}

/// How far events may stand out of the order of time, in seconds.
const DISORDER_S: i64 = 2 * DAY_S;

/// The number before the first event that may have happened then; numbers grow with time, give or take [`DISORDER_S`].
async fn first_of(on: &mut AnyConnection, kind: EventKind, from_s: i64) -> Result<i64> {
    let row = sqlx::query("SELECT MIN(id), MAX(id) FROM event WHERE kind = $1")
        .bind(kind.number())
        .fetch_one(&mut *on)
        .await?;
    let (Some(mut low), Some(mut high)) = (row.try_get::<Option<i64>, _>(0)?, row.try_get::<Option<i64>, _>(1)?) else {
        return Ok(0);
    };
    while low < high {
        let middle = low + (high - low) / 2;
        let then: Option<i64> =
            sqlx::query_scalar("SELECT at_s FROM event WHERE kind = $1 AND id >= $2 ORDER BY id LIMIT 1")
                .bind(kind.number())
                .bind(middle)
                .fetch_optional(&mut *on)
                .await?;
        if then.is_some_and(|then| then < from_s - DISORDER_S) { low = middle + 1 } else { high = middle }
    }
    Ok(low - 1)
}

async fn rules_of(on: &mut AnyConnection, day: i64) -> Result<BTreeMap<i64, OfRule>> {
    let rows = sqlx::query(
        "SELECT rule_day.rule_id, rule_day.opened, rule_day.resolved, rule_day.regressed, rule_day.baseline,
                rule_day.failing
         FROM rule_day
         JOIN rule ON rule.id = rule_day.rule_id
         WHERE rule_day.cohort_id = 1 AND rule_day.day = $1 AND rule.class <> 'fact'",
    )
    .bind(day)
    .fetch_all(on)
    .await?;
    let n = |row: &sqlx::any::AnyRow, column: usize| row.try_get::<i64, _>(column);
    rows.iter().map(|row| Ok((n(row, 0)?, [n(row, 1)?, n(row, 2)?, n(row, 3)?, n(row, 4)?, n(row, 5)?]))).collect()
}

async fn cohorts_of(on: &mut AnyConnection, day: i64) -> Result<BTreeMap<i64, OfCohort>> {
    let rows = sqlx::query(
        "SELECT cohort_id, targets, added, retired, opened, resolved, regressed
         FROM cohort_day
         WHERE cohort_id <= $1 AND day = $2",
    )
    .bind(LAST_KIND)
    .bind(day)
    .fetch_all(on)
    .await?;
    let n = |row: &sqlx::any::AnyRow, column: usize| row.try_get::<i64, _>(column);
    rows.iter()
        .map(|row| Ok((n(row, 0)?, [n(row, 1)?, n(row, 2)?, n(row, 3)?, n(row, 4)?, n(row, 5)?, n(row, 6)?])))
        .collect()
}

async fn set_rule(on: &mut AnyConnection, rule: i64, day: i64, due: OfRule) -> Result<()> {
    let mut insert = sqlx::query(
        "INSERT INTO rule_day (cohort_id, rule_id, day, opened, resolved, regressed, baseline, failing)
         VALUES (1, $1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (cohort_id, rule_id, day) DO UPDATE SET
             opened = excluded.opened, resolved = excluded.resolved, regressed = excluded.regressed,
             baseline = excluded.baseline, failing = excluded.failing",
    )
    .bind(rule)
    .bind(day);
    for number in due {
        insert = insert.bind(number);
    }
    insert.execute(on).await?;
    Ok(())
}

async fn set_cohort(on: &mut AnyConnection, cohort: i64, day: i64, due: OfCohort) -> Result<()> {
    let mut update = sqlx::query(
        "UPDATE cohort_day
         SET targets = $3, added = $4, retired = $5, opened = $6, resolved = $7, regressed = $8
         WHERE cohort_id = $1 AND day = $2",
    )
    .bind(cohort)
    .bind(day);
    for number in due {
        update = update.bind(number);
    }
    update.execute(on).await?;
    Ok(())
}
