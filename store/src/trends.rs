//! Numbers by day, kept as things happen: a batch gathers its changes here and writes each row once.

use std::collections::BTreeMap;

use sqlx::{AnyConnection, Row};

use crate::dialect::Writing;
use crate::error::Result;
use crate::rows::DAY_S;
use crate::words::{Headline, ReachState, TargetKind};

/// The cohort of everything.
pub const ALL: i64 = 1;

/// The cohort of a kind of target, as numbered by the migration.
#[must_use]
pub fn cohort_of(kind: TargetKind) -> i64 {
    match kind {
        TargetKind::McpServer => 2,
        TargetKind::A2aAgent => 3,
        TargetKind::OpenapiService => 4,
        TargetKind::OauthService => 5,
        TargetKind::Other => 6,
    }
}

/// Changes of one row of `rule_day`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RuleDelta {
    pub(crate) evaluated: i64,
    pub(crate) failing: i64,
    pub(crate) occurrences: i64,
    pub(crate) opened: i64,
    pub(crate) resolved: i64,
    pub(crate) regressed: i64,
    pub(crate) baseline: i64,
}

/// Changes of one row of `cohort_day`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CohortDelta {
    pub(crate) targets: i64,
    headlines: [i64; 5],
    reaches: [i64; 7],
    pub(crate) entries: i64,
    pub(crate) added: i64,
    pub(crate) retired: i64,
    pub(crate) opened: i64,
    pub(crate) resolved: i64,
    pub(crate) regressed: i64,
}

impl RuleDelta {
    /// What is there from then on, without what happened.
    fn stock(self) -> RuleDelta {
        let RuleDelta { evaluated, failing, occurrences, .. } = self;
        RuleDelta { evaluated, failing, occurrences, ..RuleDelta::default() }
    }
}

impl CohortDelta {
    /// What is there from then on, without what happened.
    fn stock(self) -> CohortDelta {
        let CohortDelta { targets, headlines, reaches, entries, .. } = self;
        CohortDelta { targets, headlines, reaches, entries, ..CohortDelta::default() }
    }
}

/// Which of the reach columns counts a state.
fn reach_column(reach: ReachState) -> Option<usize> {
    match reach {
        ReachState::Up => Some(0),
        ReachState::Suspect | ReachState::Flapping => Some(1),
        ReachState::Down => Some(2),
        ReachState::Gated => Some(3),
        ReachState::Absent => Some(4),
        ReachState::Throttled => Some(5),
        ReachState::Unknown => Some(6),
        ReachState::Retired => None,
    }
}

fn headline_column(headline: Headline) -> usize {
    match headline {
        Headline::Sound => 0,
        Headline::Deviates => 1,
        Headline::Blocked => 2,
        Headline::NotDetected => 3,
        Headline::NotEvaluated => 4,
    }
}

/// How many there are, as the newest day of a cohort should say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stock {
    targets: i64,
    headlines: [i64; 5],
    reaches: [i64; 7],
    pub(crate) entries: i64,
}

impl Stock {
    /// So many targets of this word and reach.
    pub(crate) fn add(&mut self, headline: Headline, reach: ReachState, n: i64) {
        self.targets += n;
        self.headlines[headline_column(headline)] += n;
        if let Some(column) = reach_column(reach) {
            self.reaches[column] += n;
        }
    }
}

impl std::fmt::Display for Stock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [sound, deviates, blocked, not_detected, not_evaluated] = self.headlines;
        let [up, suspect, down, gated, absent, throttled, unknown] = self.reaches;
        write!(
            f,
            "{} targets ({blocked} blocked, {deviates} deviate, {sound} sound, {not_detected} not detected, \
             {not_evaluated} not evaluated; {up} up, {gated} gated, {suspect} suspect, {down} down, {absent} absent, \
             {throttled} throttled, {unknown} unknown) and {} entries",
            self.targets, self.entries
        )
    }
}

/// Every cohort with its newest day and what that says.
pub(crate) async fn newest_stock(on: &mut AnyConnection) -> Result<Vec<(i64, i64, Stock)>> {
    let rows = sqlx::query(
        "SELECT cohort_id, day, targets, sound, deviates, blocked, not_detected, not_evaluated,
                up, suspect, down, gated, absent, throttled, unknown, entries
         FROM cohort_day
         WHERE day = (SELECT MAX(day) FROM cohort_day WHERE cohort_id = 1) AND cohort_id <= 6
         ORDER BY cohort_id",
    )
    .fetch_all(on)
    .await?;
    let mut stocks = Vec::with_capacity(rows.len());
    for row in rows {
        let mut numbers = [0; 14];
        for (n, number) in numbers.iter_mut().enumerate() {
            *number = row.try_get(n + 2)?;
        }
        let [targets, h0, h1, h2, h3, h4, r0, r1, r2, r3, r4, r5, r6, entries] = numbers;
        let (headlines, reaches) = ([h0, h1, h2, h3, h4], [r0, r1, r2, r3, r4, r5, r6]);
        stocks.push((row.try_get(0)?, row.try_get(1)?, Stock { targets, headlines, reaches, entries }));
    }
    Ok(stocks)
}

/// Sets what a day says of a cohort.
pub(crate) async fn set_stock(on: &mut AnyConnection, cohort: i64, day: i64, stock: &Stock) -> Result<()> {
    let mut update = sqlx::query(
        "UPDATE cohort_day
         SET targets = $3, entries = $4, sound = $5, deviates = $6, blocked = $7, not_detected = $8, not_evaluated = $9,
             up = $10, suspect = $11, down = $12, gated = $13, absent = $14, throttled = $15, unknown = $16
         WHERE cohort_id = $1 AND day = $2",
    )
    .bind(cohort)
    .bind(day)
    .bind(stock.targets)
    .bind(stock.entries);
    for number in stock.headlines.into_iter().chain(stock.reaches) {
        update = update.bind(number);
    }
    update.execute(on).await?;
    Ok(())
}

/// The changes of one batch.
#[derive(Debug, Default)]
pub(crate) struct Trends {
    rules: BTreeMap<i64, RuleDelta>,
    cohorts: BTreeMap<i64, CohortDelta>,
}

impl Trends {
    /// The changes of one rule.
    pub(crate) fn rule(&mut self, rule: i64) -> &mut RuleDelta {
        self.rules.entry(rule).or_default()
    }

    /// Applies a change to everything and to the kind.
    pub(crate) fn count(&mut self, kind: TargetKind, mut change: impl FnMut(&mut CohortDelta)) {
        change(self.cohorts.entry(ALL).or_default());
        change(self.cohorts.entry(cohort_of(kind)).or_default());
    }

    /// A target of this word and reach comes in (1) or goes out (-1).
    pub(crate) fn population(&mut self, kind: TargetKind, headline: Headline, reach: ReachState, by: i64) {
        self.count(kind, |cohort| {
            cohort.targets += by;
            cohort.headlines[headline_column(headline)] += by;
            if let Some(column) = reach_column(reach) {
                cohort.reaches[column] += by;
            }
        });
    }

    /// Writes the changes to the day of `now_s`, or to the next there is if that day is over and has no row of its own. What
    /// comes late is there on every later day too.
    pub(crate) async fn write(self, w: &mut Writing, now_s: i64) -> Result<()> {
        let wanted = now_s / DAY_S;
        let newest = open_day(w, wanted).await?;
        let (day, later) = if newest > wanted { days_from(w, wanted).await? } else { (newest, Vec::new()) };
        for (cohort, delta) in self.cohorts {
            write_cohort(w, cohort, day, &delta).await?;
            for day in &later {
                write_cohort(w, cohort, *day, &delta.stock()).await?;
            }
        }
        for (rule, delta) in self.rules {
            write_rule(w, rule, day, &delta).await?;
            for day in &later {
                write_rule(w, rule, *day, &delta.stock()).await?;
            }
        }
        Ok(())
    }
}

/// Makes sure that the day has rows, which begin with what the newest day ended with. Gives the day to write to.
pub(crate) async fn open_day(w: &mut Writing, day: i64) -> Result<i64> {
    let newest: Option<i64> =
        sqlx::query_scalar("SELECT MAX(day) FROM cohort_day WHERE cohort_id = $1").bind(ALL).fetch_one(w.on()).await?;
    match newest {
        Some(newest) if newest >= day => return Ok(newest),
        None => {
            sqlx::query("INSERT INTO cohort_day (cohort_id, day) SELECT id, CAST($1 AS INTEGER) FROM cohort")
                .bind(day)
                .execute(w.on())
                .await?;
        }
        Some(newest) => carry_over(w, newest, day).await?,
    }
    Ok(day)
}

/// The first day from one on that has rows, and those after it.
async fn days_from(w: &mut Writing, day: i64) -> Result<(i64, Vec<i64>)> {
    let rows = sqlx::query("SELECT day FROM cohort_day WHERE cohort_id = $1 AND day >= $2 ORDER BY day")
        .bind(ALL)
        .bind(day)
        .fetch_all(w.on())
        .await?;
    let mut days = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    let first = if days.is_empty() { day } else { days.remove(0) };
    Ok((first, days))
}

async fn carry_over(w: &mut Writing, from: i64, to: i64) -> Result<()> {
    sqlx::query(
        "INSERT INTO cohort_day (cohort_id, day, targets, sound, deviates, blocked, not_detected, not_evaluated,
                                 up, suspect, down, gated, absent, throttled, unknown, entries)
         SELECT cohort_id, CAST($2 AS INTEGER), targets, sound, deviates, blocked, not_detected, not_evaluated,
                up, suspect, down, gated, absent, throttled, unknown, entries
         FROM cohort_day
         WHERE day = $1",
    )
    .bind(from)
    .bind(to)
    .execute(w.on())
    .await?;
    sqlx::query(
        "INSERT INTO rule_day (cohort_id, rule_id, day, evaluated, failing, waived, occurrences, unknown,
                               targets_evaluated, targets_failing, hosts_evaluated, hosts_failing)
         SELECT cohort_id, rule_id, CAST($2 AS INTEGER), evaluated, failing, waived, occurrences, unknown,
                targets_evaluated, targets_failing, hosts_evaluated, hosts_failing
         FROM rule_day
         WHERE cohort_id = 1 AND day = $1",
    )
    .bind(from)
    .bind(to)
    .execute(w.on())
    .await?;
    Ok(())
}

async fn write_cohort(w: &mut Writing, cohort: i64, day: i64, delta: &CohortDelta) -> Result<()> {
    if *delta == CohortDelta::default() {
        return Ok(());
    }
    let [sound, deviates, blocked, not_detected, not_evaluated] = delta.headlines;
    let [up, suspect, down, gated, absent, throttled, unknown] = delta.reaches;
    sqlx::query(
        "UPDATE cohort_day
         SET targets = targets + $3, sound = sound + $4, deviates = deviates + $5, blocked = blocked + $6,
             not_detected = not_detected + $7, not_evaluated = not_evaluated + $8,
             up = up + $9, suspect = suspect + $10, down = down + $11, gated = gated + $12, absent = absent + $13,
             throttled = throttled + $14, unknown = unknown + $15,
             entries = entries + $16, added = added + $17, retired = retired + $18,
             opened = opened + $19, resolved = resolved + $20, regressed = regressed + $21
         WHERE cohort_id = $1 AND day = $2",
    )
    .bind(cohort)
    .bind(day)
    .bind(delta.targets)
    .bind(sound)
    .bind(deviates)
    .bind(blocked)
    .bind(not_detected)
    .bind(not_evaluated)
    .bind(up)
    .bind(suspect)
    .bind(down)
    .bind(gated)
    .bind(absent)
    .bind(throttled)
    .bind(unknown)
    .bind(delta.entries)
    .bind(delta.added)
    .bind(delta.retired)
    .bind(delta.opened)
    .bind(delta.resolved)
    .bind(delta.regressed)
    .execute(w.on())
    .await?;
    Ok(())
}

async fn write_rule(w: &mut Writing, rule: i64, day: i64, delta: &RuleDelta) -> Result<()> {
    if *delta == RuleDelta::default() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO rule_day (cohort_id, rule_id, day, evaluated, failing, occurrences, opened, resolved, regressed,
                               baseline)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (cohort_id, rule_id, day) DO UPDATE SET
             evaluated = rule_day.evaluated + excluded.evaluated,
             failing = rule_day.failing + excluded.failing,
             occurrences = rule_day.occurrences + excluded.occurrences,
             opened = rule_day.opened + excluded.opened,
             resolved = rule_day.resolved + excluded.resolved,
             regressed = rule_day.regressed + excluded.regressed,
             baseline = rule_day.baseline + excluded.baseline",
    )
    .bind(ALL)
    .bind(rule)
    .bind(day)
    .bind(delta.evaluated)
    .bind(delta.failing)
    .bind(delta.occurrences)
    .bind(delta.opened)
    .bind(delta.resolved)
    .bind(delta.regressed)
    .bind(delta.baseline)
    .execute(w.on())
    .await?;
    Ok(())
}
