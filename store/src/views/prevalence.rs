//! Every rule side by side, now and before, in any cohort; and the cohorts themselves.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;

use super::RuleDay;
use super::overview::{CohortDay, cohort_day};
use crate::Store;
use crate::error::Result;

/// A named group of targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CohortRow {
    /// Its number here.
    #[serde(skip)]
    pub id: i64,
    /// As addresses name it.
    pub slug: String,
    /// As people name it.
    pub title: String,
    /// Which targets belong to it, in the language of the target list; empty: all.
    pub query: String,
    /// Its newest day; `None`: nothing was counted yet.
    pub present: Option<CohortDay>,
}

/// One rule in one cohort on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Prevalence {
    /// `family/kebab-name`.
    pub rule: String,
    /// Surfaces where it passed or fired.
    pub evaluated: i64,
    /// Of these, with an open finding; for a fact, where it is set.
    pub failing: i64,
    /// Of these, with an accepted deviation.
    pub waived: i64,
}

/// The conformance share of one profile and family on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MustDay {
    /// `a2a-1.0`, …
    pub profile: String,
    /// `a2a`, `mcp`, …
    pub family: String,
    /// Days since 1970-01-01 UTC.
    pub day: i64,
    /// MUST rules that passed, over all surfaces.
    pub passed: i64,
    /// MUST rules that could look.
    pub judged: i64,
    /// MUST rules that could not.
    pub unknown: i64,
}

pub(super) const COHORTS: &str = "
SELECT id, slug, title, query
FROM cohort c
ORDER BY id";

pub(super) const COHORT_NOW: &str = "
SELECT *
FROM cohort_day
WHERE cohort_id = $1
ORDER BY day DESC
LIMIT 1";

pub(super) const COHORT_SINCE: &str = "
SELECT *
FROM cohort_day
WHERE cohort_id = $1 AND day >= $2
ORDER BY day";

pub(super) const PREVALENCE: &str = "
SELECT r.slug, d.evaluated, d.failing, d.waived
FROM rule_day d
JOIN rule r ON r.id = d.rule_id
WHERE d.cohort_id = $1 AND d.day = $2";

pub(super) const DAY_AT_OR_BEFORE: &str = "
SELECT MAX(day) AS day
FROM rule_day
WHERE cohort_id = $1 AND day <= $2";

pub(super) const RULE_IN_COHORT: &str = "
SELECT day, evaluated, failing, waived, opened, resolved
FROM rule_day
WHERE cohort_id = $1 AND rule_id = $2 AND day >= $3
ORDER BY day";

pub(super) const MUST_SINCE: &str = "
SELECT profile, family, day, passed, judged, unknown
FROM must_day
WHERE cohort_id = $1 AND day >= $2
ORDER BY profile, family, day";

impl Store {
    /// Every cohort with its present.
    pub async fn cohorts(&self) -> Result<Vec<CohortRow>> {
        let rows = sqlx::query(COHORTS).fetch_all(&self.pools.reader).await?;
        let mut cohorts = Vec::with_capacity(rows.len());
        for row in &rows {
            let id: i64 = row.try_get("id")?;
            let present = sqlx::query(COHORT_NOW).bind(id).fetch_optional(&self.pools.reader).await?;
            cohorts.push(CohortRow {
                id,
                slug: row.try_get("slug")?,
                title: row.try_get("title")?,
                query: row.try_get("query")?,
                present: present.as_ref().map(cohort_day).transpose()?,
            });
        }
        Ok(cohorts)
    }

    /// One cohort by day since `first_day`, oldest first.
    pub async fn days_of_cohort(&self, cohort: i64, first_day: i64) -> Result<Vec<CohortDay>> {
        let rows = sqlx::query(COHORT_SINCE).bind(cohort).bind(first_day).fetch_all(&self.pools.reader).await?;
        rows.iter().map(cohort_day).collect()
    }

    /// Every rule in a cohort on the last day up to `day` on which anything was counted, and that day; `None`: there is none.
    pub async fn prevalence(&self, cohort: i64, day: i64) -> Result<Option<(i64, Vec<Prevalence>)>> {
        let row = sqlx::query(DAY_AT_OR_BEFORE).bind(cohort).bind(day).fetch_one(&self.pools.reader).await?;
        let Some(day) = row.try_get::<Option<i64>, _>("day")? else { return Ok(None) };
        let rows = sqlx::query(PREVALENCE).bind(cohort).bind(day).fetch_all(&self.pools.reader).await?;
        let rules = rows.iter().map(|row| {
            Ok(Prevalence {
                rule: row.try_get("slug")?,
                evaluated: row.try_get("evaluated")?,
                failing: row.try_get("failing")?,
                waived: row.try_get("waived")?,
            })
        });
        Ok(Some((day, rules.collect::<Result<_>>()?)))
    }

    /// One rule in one cohort by day since `first_day`, oldest first; empty where it was never recorded.
    pub async fn rule_in_cohort(&self, cohort: i64, slug: &str, first_day: i64) -> Result<Vec<RuleDay>> {
        let Some(rule) = self.rule_id(slug).await? else { return Ok(Vec::new()) };
        let query = sqlx::query(RULE_IN_COHORT).bind(cohort).bind(rule).bind(first_day);
        let rows = query.fetch_all(&self.pools.reader).await?;
        rows.iter().map(super::rules::rule_day).collect()
    }

    /// The conformance share of a cohort by profile, family and day since `first_day`.
    pub async fn must_days(&self, cohort: i64, first_day: i64) -> Result<Vec<MustDay>> {
        let rows = sqlx::query(MUST_SINCE).bind(cohort).bind(first_day).fetch_all(&self.pools.reader).await?;
        let days = rows.iter().map(|row| {
            Ok(MustDay {
                profile: row.try_get("profile")?,
                family: row.try_get("family")?,
                day: row.try_get("day")?,
                passed: row.try_get("passed")?,
                judged: row.try_get("judged")?,
                unknown: row.try_get("unknown")?,
            })
        });
        days.collect()
    }
}
