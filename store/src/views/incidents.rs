//! What failed together, and with whom.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::error::Result;
use crate::incidents::Shared;
use crate::words::{ReachState, SurfaceKind};

use super::{maybe_word, word};

/// Several surfaces that failed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IncidentRow {
    /// Its number.
    pub id: i64,
    /// When it was noticed, in Unix seconds.
    pub opened_s: i64,
    /// When the last member answered again, in Unix seconds; `None`: it goes on.
    pub closed_s: Option<i64>,
    /// `host`, `certificate` or `prefix`: what members share.
    pub cause: Shared,
    /// The host, the issuer and end of the certificate, the network.
    pub shared: String,
    /// What they fail with: `dns`, `connect`, `tls`, `http`, `answer`.
    pub reason: Option<String>,
    /// Surfaces that were ever part of it.
    pub members: i64,
    /// Of them, those that still fail.
    pub failing: i64,
    /// What a person noted.
    pub note: Option<String>,
}

/// A surface in an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemberRow {
    /// The surface.
    pub surface_id: i64,
    /// What it is.
    pub kind: SurfaceKind,
    /// Where it is fetched.
    pub url: String,
    /// A target that shows it.
    pub target_id: Option<i64>,
    /// What that is called.
    pub target: Option<String>,
    /// How it is reached now.
    pub reach: ReachState,
    /// Why, where that has a reason.
    pub reason: Option<String>,
    /// Unix seconds.
    pub joined_s: i64,
    /// Unix seconds; `None`: it still fails.
    pub left_s: Option<i64>,
}

pub(super) const INCIDENTS: &str = "
SELECT i.*, (SELECT COUNT(*) FROM incident_member m WHERE m.incident_id = i.id AND m.left_s IS NULL) AS failing
FROM incident i
WHERE i.id < $1
ORDER BY i.id DESC
LIMIT $2";

pub(super) const INCIDENT: &str = "
SELECT i.*, (SELECT COUNT(*) FROM incident_member m WHERE m.incident_id = i.id AND m.left_s IS NULL) AS failing
FROM incident i
WHERE i.id = $1";

pub(super) const MEMBERS: &str = "
SELECT m.surface_id, m.joined_s, m.left_s, s.kind, s.url, s.reach, s.reach_reason, t.id AS target_id, t.name AS target
FROM incident_member m
JOIN surface s ON s.id = m.surface_id
LEFT JOIN target t ON t.id = (
    SELECT MIN(ts.target_id) FROM target_surface ts WHERE ts.surface_id = s.id AND ts.removed_s IS NULL
)
WHERE m.incident_id = $1
ORDER BY CASE WHEN m.left_s IS NULL THEN 0 ELSE 1 END, m.surface_id
LIMIT 500";

impl Store {
    /// Incidents, the newest first, before one of them (`None`: from the newest on).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn incidents(&self, before: Option<i64>, limit: i64) -> Result<Vec<IncidentRow>> {
        let rows = sqlx::query(INCIDENTS)
            .bind(before.unwrap_or(i64::from(i32::MAX)))
            .bind(limit)
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter().map(incident).collect()
    }

    /// One incident with its members, those that still fail first, at most 500; `None`: there is none of that number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn incident(&self, id: i64) -> Result<Option<(IncidentRow, Vec<MemberRow>)>> {
        let Some(row) = sqlx::query(INCIDENT).bind(id).fetch_optional(&self.pools.reader).await? else {
            return Ok(None);
        };
        let members = sqlx::query(MEMBERS).bind(id).fetch_all(&self.pools.reader).await?;
        Ok(Some((incident(&row)?, members.iter().map(member).collect::<Result<_>>()?)))
    }
}

fn incident(row: &AnyRow) -> Result<IncidentRow> {
    Ok(IncidentRow {
        id: row.try_get("id")?,
        opened_s: row.try_get("opened_s")?,
        closed_s: row.try_get("closed_s")?,
        cause: word(row, "cause")?,
        shared: row.try_get("shared")?,
        reason: row.try_get("reason")?,
        members: row.try_get("n_members")?,
        failing: row.try_get("failing")?,
        note: row.try_get("note")?,
    })
}

fn member(row: &AnyRow) -> Result<MemberRow> {
    Ok(MemberRow {
        surface_id: row.try_get("surface_id")?,
        kind: word(row, "kind")?,
        url: row.try_get("url")?,
        target_id: row.try_get("target_id")?,
        target: row.try_get("target")?,
        reach: maybe_word(row, "reach")?.unwrap_or(ReachState::Unknown),
        reason: row.try_get("reach_reason")?,
        joined_s: row.try_get("joined_s")?,
        left_s: row.try_get("left_s")?,
    })
}
