//! What broke and what was mended, over all targets: the feed, its days and its weeks.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{maybe_word, word};
use crate::Store;
use crate::error::Result;
use crate::words::{Cause, EventKind, FindingState, Headline, Impact, OpenedAs, Resolution, Severity, TargetKind};

/// A finding that opened or ended, with its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FeedRow {
    /// The event, from which the next page goes on.
    pub event: i64,
    /// When it was confirmed, in Unix seconds.
    pub at_s: i64,
    /// `finding.opened`, `finding.regressed` or `finding.resolved`.
    pub kind: EventKind,
    /// The finding.
    pub finding: i64,
    /// Its rule.
    pub rule: String,
    /// Of its worst occurrence.
    pub severity: Severity,
    /// What released clients do about it.
    pub impact: Option<Impact>,
    /// Tagged security.
    pub is_security: bool,
    /// Where it stands now.
    pub state: FindingState,
    /// At how many places.
    pub occurrences: i64,
    /// The target.
    pub target_id: i64,
    /// Its name.
    pub name: String,
    /// The registry's name for it, or host and path of its card: names are not unique.
    pub key: String,
    /// Its kind.
    pub target_kind: TargetKind,
    /// Its word now.
    pub headline: Headline,
    /// The slug of whoever stands behind it.
    pub owner: Option<String>,
    /// The host of what it was found on, else its own.
    pub host: Option<String>,
    /// As what the finding opened.
    pub opened_as: Option<OpenedAs>,
    /// What moved.
    pub cause: Option<Cause>,
    /// Why it ended.
    pub resolution: Option<Resolution>,
    /// When the span began, in Unix seconds.
    pub from_s: Option<i64>,
    /// The deploy it came with, or ended with.
    pub deploy: Option<i64>,
    /// How sure that is.
    pub confidence: Option<String>,
}

/// Regressions of one day by what is known of their cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegressedDay {
    /// Days since 1970-01-01 UTC.
    pub day: i64,
    /// A deploy was seen.
    pub with_deploy: i64,
    /// The document changed, no deploy was seen.
    pub document: i64,
    /// The behaviour changed, or nobody can tell what did.
    pub other: i64,
}

pub(super) const FEED: &str = "
SELECT e.id, e.at_s, e.kind, e.subject_id, r.slug, f.severity, f.impact, f.security, f.state, f.occurrences,
       t.id AS target_id, t.name, t.key, t.kind AS target_kind, t.headline, o.slug AS owner, COALESCE(g.name, h.name) AS host,
       p.opened_as, p.cause, p.resolution, p.from_s, p.confidence,
       CASE WHEN e.kind = 3 THEN p.close_deploy ELSE p.open_deploy END AS deploy
FROM (SELECT * FROM event WHERE kind = $1 AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT $4) e
JOIN target t ON t.id = e.target_id
JOIN rule r ON r.id = e.rule_id
JOIN finding f ON f.id = e.subject_id
LEFT JOIN owner o ON o.id = t.owner_id
LEFT JOIN host h ON h.id = t.host_id
LEFT JOIN surface s ON s.id = f.surface_id
LEFT JOIN host g ON g.id = s.host_id
LEFT JOIN finding_span p
       ON p.finding_id = f.id
      AND p.from_s = (SELECT MAX(n.from_s) FROM finding_span n WHERE n.finding_id = f.id AND n.from_s <= e.at_s)
WHERE e.a IS NULL OR e.a = 0
ORDER BY e.id DESC";

pub(super) const REGRESSED_DAYS: &str = "
SELECT e.at_s / 86400 AS day, p.cause, CASE WHEN p.open_deploy IS NULL THEN 0 ELSE 1 END AS with_deploy, COUNT(*) AS findings
FROM (SELECT * FROM event WHERE kind = 2 AND id >= $1 ORDER BY id DESC LIMIT 20000) e
LEFT JOIN finding_span p
       ON p.finding_id = e.subject_id
      AND p.from_s = (SELECT MAX(n.from_s) FROM finding_span n WHERE n.finding_id = e.subject_id AND n.from_s <= e.at_s)
GROUP BY e.at_s / 86400, p.cause, CASE WHEN p.open_deploy IS NULL THEN 0 ELSE 1 END";

pub(super) const AT_OR_AFTER: &str = "
SELECT id, at_s
FROM event
WHERE id >= $1
ORDER BY id
LIMIT 1";

impl Store {
    /// Events of one kind about findings from `from` on and before `before`, newest first, at most `limit`; first looks left out.
    pub async fn finding_feed(&self, kind: EventKind, from: i64, before: i64, limit: i64) -> Result<Vec<FeedRow>> {
        let query = sqlx::query(FEED).bind(kind.number()).bind(before).bind(from).bind(limit);
        let rows = query.fetch_all(&self.pools.reader).await?;
        rows.iter().map(|row| feed_row(row, kind)).collect()
    }

    /// Regressions since the event `from`, by day and cause, oldest day first; days without any are left out.
    pub async fn regressed_days(&self, from: i64) -> Result<Vec<RegressedDay>> {
        let rows = sqlx::query(REGRESSED_DAYS).bind(from).fetch_all(&self.pools.reader).await?;
        let mut days: Vec<RegressedDay> = Vec::new();
        for row in &rows {
            let (day, findings): (i64, i64) = (row.try_get("day")?, row.try_get("findings")?);
            let at = match days.iter().position(|one| one.day == day) {
                Some(at) => at,
                None => {
                    days.push(RegressedDay { day, ..RegressedDay::default() });
                    days.len() - 1
                }
            };
            let cause: Option<Cause> = maybe_word(row, "cause")?;
            match (row.try_get::<i64, _>("with_deploy")?, cause) {
                (1, _) => days[at].with_deploy += findings,
                (_, Some(Cause::Document)) => days[at].document += findings,
                _ => days[at].other += findings,
            }
        }
        days.sort_by_key(|one| one.day);
        Ok(days)
    }

    /// The first event at or after a moment, or the one that will come next: events are numbered as they happen, so it is
    /// found by halving.
    pub async fn first_event_at(&self, at_s: i64) -> Result<i64> {
        let (mut low, mut high) = (1, self.newest_event().await?.0 + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let row = sqlx::query(AT_OR_AFTER).bind(middle).fetch_optional(&self.pools.reader).await?;
            let Some(row) = row else { return Ok(high) };
            if row.try_get::<i64, _>("at_s")? < at_s {
                low = row.try_get::<i64, _>("id")? + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

fn feed_row(row: &AnyRow, kind: EventKind) -> Result<FeedRow> {
    Ok(FeedRow {
        event: row.try_get("id")?,
        at_s: row.try_get("at_s")?,
        kind,
        finding: row.try_get("subject_id")?,
        rule: row.try_get("slug")?,
        severity: word(row, "severity")?,
        impact: maybe_word(row, "impact")?,
        is_security: row.try_get::<i64, _>("security")? == 1,
        state: word(row, "state")?,
        occurrences: row.try_get("occurrences")?,
        target_id: row.try_get("target_id")?,
        name: row.try_get("name")?,
        key: row.try_get("key")?,
        target_kind: word(row, "target_kind")?,
        headline: word(row, "headline")?,
        owner: row.try_get("owner")?,
        host: row.try_get("host")?,
        opened_as: maybe_word(row, "opened_as")?,
        cause: maybe_word(row, "cause")?,
        resolution: maybe_word(row, "resolution")?,
        from_s: row.try_get("from_s")?,
        deploy: row.try_get("deploy")?,
        confidence: row.try_get("confidence")?,
    })
}
