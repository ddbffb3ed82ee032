//! The few numbers that whoever watches the watcher asks for every half minute. None of them counts history.

use std::time::Duration;

use serde::Serialize;
use sqlx::Row;

use crate::Store;
use crate::error::{Error, Result};
use crate::rows::{word, word_or_none};
use crate::words::{Headline, Impact, ReachState, Severity, TargetKind, headline_rank};

/// How long a writer may keep others waiting before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Targets that have this much in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TargetsAlike {
    /// What they are.
    pub kind: TargetKind,
    /// Their word.
    pub headline: Headline,
    /// How they are reached.
    pub reach: ReachState,
    /// How many.
    pub targets: i64,
}

/// Open findings that have this much in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FindingsAlike {
    /// Of their rules.
    pub family: String,
    /// Of their rules.
    pub severity: Severity,
    /// Of their rules; `None` for hints.
    pub impact: Option<Impact>,
    /// How many.
    pub findings: i64,
}

/// The rules in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulesetInUse {
    /// Its version, as shown.
    pub version: String,
    /// Rules in it.
    pub rules: i64,
    /// Since when this database is judged by it, in Unix seconds.
    pub since_s: i64,
}

/// Counted from an index of a few columns alone.
const TARGETS: &str = "
SELECT kind, headline_rank, reach, COUNT(*)
FROM target
WHERE reach <> 'retired'
GROUP BY kind, headline_rank, reach";

/// The newest day of the trends is the present.
const FINDINGS: &str = "
SELECT rule.family, rule.severity, rule.impact, CAST(SUM(rule_day.failing) AS BIGINT)
FROM rule_day
JOIN rule ON rule.id = rule_day.rule_id
WHERE rule_day.cohort_id = 1 AND rule_day.day = (SELECT MAX(day) FROM cohort_day WHERE cohort_id = 1)
  AND rule.class = 'finding' AND rule_day.failing > 0
GROUP BY rule.family, rule.severity, rule.impact
ORDER BY rule.family, rule.severity, rule.impact";

impl Store {
    /// Watched targets by kind, word and reach.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn targets_alike(&self) -> Result<Vec<TargetsAlike>> {
        let rows = sqlx::query(TARGETS).fetch_all(&self.pools.reader).await?;
        let alike = rows.iter().map(|row| {
            let rank: i64 = row.try_get(1)?;
            let headline = Headline::ALL.iter().copied().find(|headline| headline_rank(*headline) == rank);
            Ok(TargetsAlike {
                kind: word("target", row.try_get(0)?)?,
                headline: headline.ok_or_else(|| Error::corrupt("target", format!("rank {rank}")))?,
                reach: word("target", row.try_get(2)?)?,
                targets: row.try_get(3)?,
            })
        });
        let mut alike = alike.collect::<Result<Vec<_>>>()?;
        alike.sort_by_key(|alike| (alike.kind, headline_rank(alike.headline), alike.reach));
        Ok(alike)
    }

    /// Open findings by family, severity and impact of their rules.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn findings_alike(&self) -> Result<Vec<FindingsAlike>> {
        let rows = sqlx::query(FINDINGS).fetch_all(&self.pools.reader).await?;
        let alike = rows.iter().map(|row| {
            Ok(FindingsAlike {
                family: row.try_get(0)?,
                severity: word("rule", row.try_get(1)?)?,
                impact: word_or_none("rule", row.try_get(2)?)?,
                findings: row.try_get(3)?,
            })
        });
        alike.collect()
    }

    /// The rules that were last begun to judge with; `None` before any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ruleset_in_use(&self) -> Result<Option<RulesetInUse>> {
        let row = sqlx::query("SELECT version, rules, released_s FROM ruleset ORDER BY id DESC LIMIT 1")
            .fetch_optional(&self.pools.reader)
            .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(RulesetInUse { version: row.try_get(0)?, rules: row.try_get(1)?, since_s: row.try_get(2)? }))
    }

    /// Whether somebody who wants to write gets their turn; false when whoever writes does not end, or writing fails.
    pub async fn can_write(&self) -> bool {
        matches!(tokio::time::timeout(STUCK_AFTER, self.pools.write()).await, Ok(Ok(_)))
    }
}
