//! The overview: how many targets stand where, how that moved, and what broke last.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::error::Result;
use crate::words::{EventKind, TargetKind};

use super::word;

/// One cohort on one day, counted in targets; the newest day is the present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CohortDay {
    /// Days since 1970-01-01 UTC.
    pub day: i64,
    /// Targets that are not retired: names and cards, never their versions. The five headlines add up to it.
    pub targets: i64,
    /// Judged, no error.
    pub sound: i64,
    /// Judged, an error, but none that breaks clients.
    pub deviates: i64,
    /// Judged, a tested client refuses it.
    pub blocked: i64,
    /// Something is there, but not what the listing says.
    pub not_detected: i64,
    /// Nobody could look yet.
    pub not_evaluated: i64,
    /// Reach, apart; the seven add up to targets as well. It answers.
    pub up: i64,
    /// It has just failed to answer, or comes and goes.
    pub suspect: i64,
    /// It does not answer.
    pub down: i64,
    /// It asks for credentials or payment.
    pub gated: i64,
    /// There is nothing at its address.
    pub absent: i64,
    /// It asks us to come back later.
    pub throttled: i64,
    /// Not tried yet.
    pub unknown: i64,
    /// Entries of registries: one for each version of each name. Never added to targets.
    pub entries: i64,
    /// Targets seen for the first time that day.
    pub added: i64,
    /// Targets that left their sources that day.
    pub retired: i64,
    /// Findings that opened that day, first looks left out.
    pub opened: i64,
    /// Findings that were mended that day.
    pub resolved: i64,
    /// Findings that regressed that day.
    pub regressed: i64,
}

/// The present of one kind of target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KindDay {
    /// `mcp-server`, `a2a-agent`, …
    pub kind: TargetKind,
    /// Its newest day.
    #[serde(flatten)]
    pub counts: CohortDay,
}

/// A finding that opened after its surface had been looked at before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpenedRow {
    /// Unix seconds.
    pub at_s: i64,
    /// The target it was seen at.
    pub target_id: i64,
    /// Its name.
    pub name: String,
    /// The registry's name for it, or host and path of its card: names are not unique.
    pub key: String,
    /// The rule.
    pub rule: String,
    /// `finding.opened` or `finding.regressed`.
    pub event: EventKind,
    /// Why it opened: `first document`, as the store noted it.
    pub note: Option<String>,
}

pub(super) fn cohort_day(row: &AnyRow) -> Result<CohortDay> {
    Ok(CohortDay {
        day: row.try_get("day")?,
        targets: row.try_get("targets")?,
        sound: row.try_get("sound")?,
        deviates: row.try_get("deviates")?,
        blocked: row.try_get("blocked")?,
        not_detected: row.try_get("not_detected")?,
        not_evaluated: row.try_get("not_evaluated")?,
        up: row.try_get("up")?,
        suspect: row.try_get("suspect")?,
        down: row.try_get("down")?,
        gated: row.try_get("gated")?,
        absent: row.try_get("absent")?,
        throttled: row.try_get("throttled")?,
        unknown: row.try_get("unknown")?,
        entries: row.try_get("entries")?,
        added: row.try_get("added")?,
        retired: row.try_get("retired")?,
        opened: row.try_get("opened")?,
        resolved: row.try_get("resolved")?,
        regressed: row.try_get("regressed")?,
    })
}

pub(super) const COHORT_DAYS: &str = "
SELECT *
FROM cohort_day
WHERE cohort_id = 1 AND day >= $1
ORDER BY day";

pub(super) const KIND_DAYS: &str = "
SELECT c.slug, d.*
FROM cohort c
JOIN cohort_day d ON d.cohort_id = c.id
WHERE c.id BETWEEN 2 AND 6
  AND d.day = (SELECT MAX(n.day) FROM cohort_day n WHERE n.cohort_id = c.id)
ORDER BY c.id";

/// The first crawl opens a great many findings that say nothing about change; so only the newest events are looked through.
pub(super) const LAST_OPENED: &str = "
SELECT e.id, e.at_s, e.target_id, t.name, t.key, r.slug, e.note
FROM (SELECT * FROM event WHERE kind = $1 ORDER BY id DESC LIMIT 500) e
JOIN target t ON t.id = e.target_id
JOIN rule r ON r.id = e.rule_id
WHERE e.a IS NULL OR e.a = 0
ORDER BY e.id DESC
LIMIT $2";

impl Store {
    /// All targets by day since `first_day`, oldest first; the last row is the present.
    pub async fn cohort_days(&self, first_day: i64) -> Result<Vec<CohortDay>> {
        let rows = sqlx::query(COHORT_DAYS).bind(first_day).fetch_all(&self.pools.reader).await?;
        rows.iter().map(cohort_day).collect()
    }

    /// The present of every kind of target there is.
    pub async fn kind_days(&self) -> Result<Vec<KindDay>> {
        let rows = sqlx::query(KIND_DAYS).fetch_all(&self.pools.reader).await?;
        let kinds = rows.iter().map(|row| Ok(KindDay { kind: word(row, "slug")?, counts: cohort_day(row)? }));
        kinds.collect()
    }

    /// What opened last at targets that were looked at before, newest first, at most `limit`.
    pub async fn last_opened(&self, limit: i64) -> Result<Vec<OpenedRow>> {
        let mut opened = Vec::new();
        for kind in [EventKind::FindingOpened, EventKind::FindingRegressed] {
            for row in sqlx::query(LAST_OPENED).bind(kind.number()).bind(limit).fetch_all(&self.pools.reader).await? {
                let one = OpenedRow {
                    at_s: row.try_get("at_s")?,
                    target_id: row.try_get("target_id")?,
                    name: row.try_get("name")?,
                    key: row.try_get("key")?,
                    rule: row.try_get("slug")?,
                    event: kind,
                    note: row.try_get("note")?,
                };
                opened.push((row.try_get::<i64, _>("id")?, one));
            }
        }
        opened.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        opened.truncate(usize::try_from(limit).unwrap_or(0));
        Ok(opened.into_iter().map(|(_, one)| one).collect())
    }
}
