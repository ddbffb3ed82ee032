//! How common each rule's failure is, how that moved, and who fails it now. Counted in surfaces, by the rollups.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;

use super::{places, word};
use crate::Store;
use crate::error::{Error, Result};
use crate::judged::Occurrence;
use crate::words::Headline;

/// One rule's present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleTally {
    /// `family/kebab-name`.
    pub rule: String,
    /// Surfaces where it passed or fired when last looked at.
    pub evaluated: i64,
    /// Of these, with an open finding; for a fact, where it is set.
    pub failing: i64,
}

/// One rule on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleDay {
    /// Days since 1970-01-01 UTC.
    pub day: i64,
    /// Surfaces where it passed or fired.
    pub evaluated: i64,
    /// Of these, with an open finding.
    pub failing: i64,
    /// Of these, with an accepted deviation.
    pub waived: i64,
    /// Findings that opened that day, first looks left out.
    pub opened: i64,
    /// Findings that were mended that day.
    pub resolved: i64,
}

/// What this database knows of a rule besides its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleRecord {
    /// Its number here.
    pub id: i64,
    /// Raised when its condition changes.
    pub version: i64,
    /// When this version was first used here, in Unix seconds.
    pub version_s: i64,
    /// When the catalogue stopped having it.
    pub withdrawn_s: Option<i64>,
    /// The title it had, for rules that are no longer in the catalogue.
    pub title: String,
}

/// A target that fails a rule now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FailingRow {
    /// The surface that fails, from which the next page goes on.
    pub surface_id: i64,
    /// The target that shows it.
    pub target_id: i64,
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Its word.
    pub headline: Headline,
    /// Since when the finding is open, in Unix seconds.
    pub opened_s: Option<i64>,
    /// At how many places.
    pub occurrences: i64,
    /// The first place.
    pub first: Option<Occurrence>,
}

pub(super) const RULE: &str = "
SELECT id, version, version_s, withdrawn_s, title
FROM rule
WHERE slug = $1";

pub(super) const NEWEST_DAY: &str = "
SELECT MAX(day) AS day
FROM rule_day
WHERE cohort_id = 1";

pub(super) const TALLIES: &str = "
SELECT r.slug, d.evaluated, d.failing
FROM rule_day d
JOIN rule r ON r.id = d.rule_id
WHERE d.cohort_id = 1 AND d.day = $1";

pub(super) const RULE_DAYS: &str = "
SELECT day, evaluated, failing, waived, opened, resolved
FROM rule_day
WHERE cohort_id = 1 AND rule_id = $1 AND day >= $2
ORDER BY day";

pub(super) const FAILING: &str = "
SELECT f.surface_id, f.opened_s, f.occurrences, o.body,
       t.id AS target_id, t.name, t.key, t.headline
FROM finding f
JOIN target_surface s ON s.surface_id = f.surface_id AND s.removed_s IS NULL
JOIN target t ON t.id = s.target_id
LEFT JOIN occ_set o ON o.id = f.occ_set_id
WHERE f.rule_id = $1 AND f.state IN ('open', 'clearing', 'flapping')
  AND f.surface_id <= $2 AND (f.surface_id < $2 OR s.target_id > $3)
ORDER BY f.surface_id DESC, s.target_id
LIMIT $4";

impl Store {
    /// The number of a rule here; `None` while it was never recorded.
    pub(super) async fn rule_id(&self, slug: &str) -> Result<Option<i64>> {
        if let Some(known) = self.rule_row(slug) {
            return Ok(Some(known.0));
        }
        // Another process may have recorded it since the catalogue was read.
        Ok(self.rule_record(slug).await?.map(|rule| rule.id))
    }

    /// The name of a rule by its number here.
    pub(super) async fn rule_slug(&self, id: i64) -> Result<String> {
        let known = self.catalogue().numbered(id).map(|rule| rule.slug.to_string());
        match known {
            Some(slug) => Ok(slug),
            None => {
                let fresh = self.read_catalogue().await?;
                let rule = fresh.numbered(id).ok_or_else(|| Error::corrupt("judgement", format!("rule {id}")))?;
                Ok(rule.slug.to_string())
            }
        }
    }

    /// What this database knows of a rule; `None` while it was never recorded.
    pub async fn rule_record(&self, slug: &str) -> Result<Option<RuleRecord>> {
        let row = sqlx::query(RULE).bind(slug.to_owned()).fetch_optional(&self.pools.reader).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(RuleRecord {
            id: row.try_get("id")?,
            version: row.try_get("version")?,
            version_s: row.try_get("version_s")?,
            withdrawn_s: row.try_get("withdrawn_s")?,
            title: row.try_get("title")?,
        }))
    }

    /// The present of every rule that was ever judged, over all targets.
    pub async fn rule_tallies(&self) -> Result<Vec<RuleTally>> {
        let newest = sqlx::query(NEWEST_DAY).fetch_one(&self.pools.reader).await?;
        let Some(day) = newest.try_get::<Option<i64>, _>("day")? else { return Ok(Vec::new()) };
        let rows = sqlx::query(TALLIES).bind(day).fetch_all(&self.pools.reader).await?;
        let tallies = rows.iter().map(|row| {
            Ok(RuleTally {
                rule: row.try_get("slug")?,
                evaluated: row.try_get("evaluated")?,
                failing: row.try_get("failing")?,
            })
        });
        tallies.collect()
    }

    /// One rule by day since `first_day`, oldest first.
    pub async fn rule_days(&self, rule: i64, first_day: i64) -> Result<Vec<RuleDay>> {
        let rows = sqlx::query(RULE_DAYS).bind(rule).bind(first_day).fetch_all(&self.pools.reader).await?;
        rows.iter().map(rule_day).collect()
    }

    /// Who fails a rule now, newest surface first, after the given surface and target, at most `limit`.
    pub async fn failing(&self, rule: i64, after: (i64, i64), limit: i64) -> Result<Vec<FailingRow>> {
        let rows = sqlx::query(FAILING)
            .bind(rule)
            .bind(after.0)
            .bind(after.1)
            .bind(limit)
            .fetch_all(&self.pools.reader)
            .await?;
        let failing = rows.iter().map(|row| {
            let body: Option<Vec<u8>> = row.try_get("body")?;
            Ok(FailingRow {
                surface_id: row.try_get("surface_id")?,
                target_id: row.try_get("target_id")?,
                name: row.try_get("name")?,
                key: row.try_get("key")?,
                headline: word(row, "headline")?,
                opened_s: row.try_get("opened_s")?,
                occurrences: row.try_get("occurrences")?,
                first: places(body.as_deref())?.into_iter().next(),
            })
        });
        failing.collect()
    }
}

pub(super) fn rule_day(row: &sqlx::any::AnyRow) -> Result<RuleDay> {
    Ok(RuleDay {
        day: row.try_get("day")?,
        evaluated: row.try_get("evaluated")?,
        failing: row.try_get("failing")?,
        waived: row.try_get("waived")?,
        opened: row.try_get("opened")?,
        resolved: row.try_get("resolved")?,
    })
}
