//! Every rule over one and the same population, now and then: the surfaces of targets that were there on both days and had been
//! judged by then. What comes and goes does not move these shares, only what breaks and is mended does.
//!
//! This is computed of spans, which takes as long as there are surfaces, so an answer is kept for the hour: what changes within
//! it is less than a day moves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;

use crate::Store;
use crate::error::Result;
use crate::rows::{Bits, DAY_S};

/// Answers that are kept; beyond so many all are forgotten.
const MOST: usize = 64;

/// The cohort of everything.
const EVERYTHING: i64 = 1;

/// How long an answer holds, in seconds.
const HOLDS_S: i64 = 3_600;

/// One rule over a population that is the same on both days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FixedShare {
    /// `family/kebab-name`.
    pub rule: String,
    /// Surfaces of the population where it passed or fired when last looked at.
    pub evaluated: i64,
    /// Of these, with an open finding now; for a fact, where it is set.
    pub failing: i64,
    /// Of these, with an accepted deviation now.
    pub waived: i64,
    /// Of these, with an open finding at the end of the earlier day; for a fact, where it was set.
    pub failing_before: i64,
}

/// Answers by cohort and day, each with the hour that it is of.
pub(crate) type Kept = Arc<Mutex<HashMap<(i64, i64), (i64, Arc<Vec<FixedShare>>)>>>;

static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The population: surfaces that are watched and were judged by a moment, of targets that were there by then and still are.
macro_rules! population {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " surface.retired_s IS NULL AND surface.first_evaluated_s < $1
              AND surface.id IN (
                  SELECT target_surface.surface_id
                  FROM target_surface
                  JOIN target ON target.id = target_surface.target_id
                  WHERE target_surface.removed_s IS NULL AND target.retired_s IS NULL AND target.first_seen_s < $1
                    AND ($2 = 1 OR target.kind = (SELECT slug FROM cohort WHERE id = $2)
                         OR target.id IN (SELECT target_id FROM cohort_member WHERE cohort_id = $2))
              ) ",
            $after
        )
    };
}

const JUDGED: &str = population!("SELECT surface.id, surface.judged FROM surface WHERE", "");

const FAILING: &str = population!(
    "SELECT DISTINCT finding.rule_id, finding.surface_id,
            CAST(CASE WHEN finding.waiver_id IS NULL THEN 0 ELSE 1 END AS BIGINT)
     FROM finding
     JOIN surface ON surface.id = finding.surface_id
     WHERE finding.state IN ('open', 'clearing', 'flapping') AND",
    ""
);

const FAILING_THEN: &str = population!(
    "SELECT DISTINCT finding.rule_id, finding.surface_id, CAST(0 AS BIGINT)
     FROM finding_span
     JOIN finding ON finding.id = finding_span.finding_id
     JOIN surface ON surface.id = finding.surface_id
     WHERE finding_span.from_s < $1 AND (finding_span.to_s IS NULL OR finding_span.to_s >= $1) AND",
    ""
);

const SET: &str = population!(
    "SELECT DISTINCT fact_span.rule_id, fact_span.surface_id, CAST(0 AS BIGINT)
     FROM fact_span
     JOIN surface ON surface.id = fact_span.surface_id
     WHERE fact_span.to_s IS NULL AND",
    ""
);

const SET_THEN: &str = population!(
    "SELECT DISTINCT fact_span.rule_id, fact_span.surface_id, CAST(0 AS BIGINT)
     FROM fact_span
     JOIN surface ON surface.id = fact_span.surface_id
     WHERE fact_span.from_s < $1 AND (fact_span.to_s IS NULL OR fact_span.to_s >= $1) AND",
    ""
);

impl Store {
    /// Every rule of a cohort over the population that was there and judged at the end of a day and still is. Rules that
    /// had not been judged on that day are left out: they say nothing about it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn fixed_prevalence(&self, cohort: i64, day: i64, now_s: i64) -> Result<Arc<Vec<FixedShare>>> {
        let hour = now_s.div_euclid(HOLDS_S);
        let known = || {
            let kept = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(&(cohort, day)).filter(|(of, _)| *of == hour).map(|(_, shares)| shares.clone())
        };
        if let Some(shares) = known() {
            return Ok(shares);
        }
        // However many ask, one counts.
        let _turn = TURN.lock().await;
        if let Some(shares) = known() {
            return Ok(shares);
        }
        let shares = Arc::new(self.count_fixed(cohort, day).await?);
        let mut kept = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert((cohort, day), (hour, shares.clone()));
        Ok(shares)
    }

    async fn count_fixed(&self, cohort: i64, day: i64) -> Result<Vec<FixedShare>> {
        // Of everything: a cohort of its own has rows only of what failed in it.
        let before = self.prevalence(EVERYTHING, day).await?;
        let Some((_, judged_then)) = before else { return Ok(Vec::new()) };
        let until_s = (day + 1) * DAY_S;
        let (mut judged, mut evaluated) = (HashMap::new(), HashMap::<i64, i64>::new());
        for row in sqlx::query(JUDGED).bind(until_s).bind(cohort).fetch_all(&self.pools.reader).await? {
            let bits = Bits::from_bytes(&row.try_get::<Option<Vec<u8>>, _>(1)?.unwrap_or_default());
            bits.iter().for_each(|rule| *evaluated.entry(rule).or_default() += 1);
            judged.insert(row.try_get::<i64, _>(0)?, bits);
        }
        let now = self.surfaces_by_rule(&[FAILING, SET], cohort, until_s, &judged).await?;
        let then = self.surfaces_by_rule(&[FAILING_THEN, SET_THEN], cohort, until_s, &judged).await?;
        let slugs = sqlx::query("SELECT id, slug FROM rule").fetch_all(&self.pools.reader).await?;
        let mut shares = Vec::new();
        for row in &slugs {
            let (id, rule): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
            let was_judged = judged_then.iter().any(|one| one.rule == rule && one.evaluated > 0);
            let Some(evaluated) = evaluated.get(&id).copied().filter(|_| was_judged) else { continue };
            let (failing, waived) = now.get(&id).copied().unwrap_or_default();
            let (failing_before, _) = then.get(&id).copied().unwrap_or_default();
            shares.push(FixedShare { rule, evaluated, failing, waived, failing_before });
        }
        shares.sort_by(|a, b| a.rule.cmp(&b.rule));
        Ok(shares)
    }

    /// Surfaces by rule, and of these with an accepted deviation. Where a rule cannot be judged any more it counts on neither
    /// side, so that a surface that went over to another revision is no mending.
    async fn surfaces_by_rule(
        &self,
        statements: &[&'static str],
        cohort: i64,
        until_s: i64,
        judged: &HashMap<i64, Bits>,
    ) -> Result<HashMap<i64, (i64, i64)>> {
        let mut counts: HashMap<i64, (i64, i64)> = HashMap::new();
        for statement in statements {
            for row in sqlx::query(*statement).bind(until_s).bind(cohort).fetch_all(&self.pools.reader).await? {
                let (rule, surface, waived): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
                if judged.get(&surface).is_some_and(|bits| bits.has(rule)) {
                    let count = counts.entry(rule).or_default();
                    *count = (count.0 + 1, count.1 + waived);
                }
            }
        }
        Ok(counts)
    }
}
