//! Deploys and what each opened or mended; shared outages and who was in them.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::word;
use crate::Store;
use crate::error::Result;
use crate::words::{Headline, ReachState, Severity, SurfaceKind};

/// A change of a target's software that we were told of or inferred.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeployRow {
    /// Its number here.
    pub id: i64,
    /// The target.
    pub target_id: i64,
    /// Its name.
    pub name: String,
    /// Its word now.
    pub headline: Headline,
    /// Unix seconds.
    pub at_s: i64,
    /// Their pipeline told us; else it is inferred.
    pub is_told: bool,
    /// What it is called.
    pub version: Option<String>,
    /// Of its strongest signal, 1 to 5.
    pub weight: i64,
    /// What was seen: kind, from, to.
    pub signals: serde_json::Value,
    /// `clean`, `improved`, `regressed`, `mixed`, `unreachable`; `None`: not settled.
    pub outcome: Option<String>,
    /// Where they tell of it.
    pub url: Option<String>,
}

/// A finding that a deploy opened or mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeployFinding {
    /// The finding.
    pub finding_id: i64,
    /// Its rule.
    pub rule: String,
    /// Of its worst occurrence.
    pub severity: Severity,
    /// It opened; else it ended.
    pub opened: bool,
    /// How sure it is that it was this deploy.
    pub confidence: Option<String>,
    /// Unix seconds.
    pub at_s: i64,
}

/// Several surfaces failing together for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutageRow {
    /// Its number here.
    pub id: i64,
    /// Unix seconds.
    pub opened_s: i64,
    /// Unix seconds; `None`: it goes on.
    pub closed_s: Option<i64>,
    /// `host`, `prefix`, `certificate`, `ours`.
    pub cause: String,
    /// What they share.
    pub shared: String,
    /// Surfaces in it, at most.
    pub members: i64,
    /// More words.
    pub note: Option<String>,
}

/// A surface in an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutageMember {
    /// The surface.
    pub surface_id: i64,
    /// What kind it is.
    pub kind: SurfaceKind,
    /// Its address.
    pub url: String,
    /// How it can be reached now.
    pub reach: ReachState,
    /// Unix seconds.
    pub joined_s: i64,
    /// Unix seconds; `None`: it still fails.
    pub left_s: Option<i64>,
    /// A target that shows it.
    pub target_id: Option<i64>,
    /// Its name.
    pub name: Option<String>,
}

macro_rules! deploys {
    ($which:literal) => {
        concat!(
            "
SELECT d.id, d.target_id, t.name, t.headline, d.at_s, d.told, d.version, d.weight, d.signals, d.outcome, d.url
FROM deploy d
JOIN target t ON t.id = d.target_id
WHERE ",
            $which
        )
    };
}

pub(super) const DEPLOYS: &str = deploys!("d.id < $1\nORDER BY d.id DESC\nLIMIT $2");
pub(super) const DEPLOYS_OF: &str = deploys!("d.target_id = $1\nORDER BY d.at_s DESC\nLIMIT $2");
pub(super) const DEPLOY: &str = deploys!("d.id = $1");

/// The findings of the target's surfaces, so that it goes by their index.
pub(super) const DEPLOY_FINDINGS: &str = "
SELECT f.id AS finding_id, r.slug, f.severity, p.confidence, p.from_s, p.to_s, p.open_deploy, p.close_deploy
FROM target_surface ts
JOIN finding f ON f.surface_id = ts.surface_id
JOIN finding_span p ON p.finding_id = f.id
JOIN rule r ON r.id = f.rule_id
WHERE ts.target_id = $1 AND (p.open_deploy = $2 OR p.close_deploy = $2)
ORDER BY r.slug
LIMIT 500";

pub(super) const INCIDENTS: &str = "
SELECT id, opened_s, closed_s, cause, shared, n_members, note
FROM incident
WHERE id < $1
ORDER BY id DESC
LIMIT $2";

pub(super) const INCIDENT: &str = "
SELECT id, opened_s, closed_s, cause, shared, n_members, note
FROM incident
WHERE id = $1";

pub(super) const INCIDENT_MEMBERS: &str = "
SELECT m.surface_id, s.kind, s.url, s.reach, m.joined_s, m.left_s, t.id AS target_id, t.name
FROM incident_member m
JOIN surface s ON s.id = m.surface_id
LEFT JOIN target t ON t.id = (SELECT MIN(x.target_id) FROM target_surface x WHERE x.surface_id = s.id)
WHERE m.incident_id = $1
ORDER BY m.surface_id
LIMIT $2";

impl Store {
    /// Deploys before the one of that number, newest first, at most `limit`.
    pub async fn deploys_before(&self, before: i64, limit: i64) -> Result<Vec<DeployRow>> {
        let rows = sqlx::query(DEPLOYS).bind(before).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(deploy_row).collect()
    }

    /// Deploys of one target, newest first, at most `limit`.
    pub async fn deploys_of(&self, target: i64, limit: i64) -> Result<Vec<DeployRow>> {
        let rows = sqlx::query(DEPLOYS_OF).bind(target).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(deploy_row).collect()
    }

    /// The deploy of that number.
    pub async fn deploy_row(&self, id: i64) -> Result<Option<DeployRow>> {
        let row = sqlx::query(DEPLOY).bind(id).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(deploy_row).transpose()
    }

    /// What it opened and mended.
    pub async fn deploy_findings(&self, deploy: &DeployRow) -> Result<Vec<DeployFinding>> {
        let query = sqlx::query(DEPLOY_FINDINGS).bind(deploy.target_id).bind(deploy.id);
        let mut found = Vec::new();
        for row in query.fetch_all(&self.pools.reader).await? {
            let opened = row.try_get::<Option<i64>, _>("open_deploy")? == Some(deploy.id);
            let ended = row.try_get::<Option<i64>, _>("close_deploy")? == Some(deploy.id);
            for is_opening in [true, false].into_iter().filter(|is_opening| if *is_opening { opened } else { ended }) {
                let at: Option<i64> = row.try_get(if is_opening { "from_s" } else { "to_s" })?;
                found.push(DeployFinding {
                    finding_id: row.try_get("finding_id")?,
                    rule: row.try_get("slug")?,
                    severity: word(&row, "severity")?,
                    opened: is_opening,
                    confidence: row.try_get("confidence")?,
                    at_s: at.unwrap_or(deploy.at_s),
                });
            }
        }
        Ok(found)
    }

    /// Shared outages before the one of that number, newest first, at most `limit`.
    pub async fn incidents_before(&self, before: i64, limit: i64) -> Result<Vec<OutageRow>> {
        let rows = sqlx::query(INCIDENTS).bind(before).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(incident_row).collect()
    }

    /// The shared outage of that number.
    pub async fn incident_row(&self, id: i64) -> Result<Option<OutageRow>> {
        let row = sqlx::query(INCIDENT).bind(id).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(incident_row).transpose()
    }

    /// Who was in it, at most `limit`.
    pub async fn members_of_incident(&self, id: i64, limit: i64) -> Result<Vec<OutageMember>> {
        let rows = sqlx::query(INCIDENT_MEMBERS).bind(id).bind(limit).fetch_all(&self.pools.reader).await?;
        let members = rows.iter().map(|row| {
            Ok(OutageMember {
                surface_id: row.try_get("surface_id")?,
                kind: word(row, "kind")?,
                url: row.try_get("url")?,
                reach: word(row, "reach")?,
                joined_s: row.try_get("joined_s")?,
                left_s: row.try_get("left_s")?,
                target_id: row.try_get("target_id")?,
                name: row.try_get("name")?,
            })
        });
        members.collect()
    }
}

fn deploy_row(row: &AnyRow) -> Result<DeployRow> {
    Ok(DeployRow {
        id: row.try_get("id")?,
        target_id: row.try_get("target_id")?,
        name: row.try_get("name")?,
        headline: word(row, "headline")?,
        at_s: row.try_get("at_s")?,
        is_told: row.try_get::<i64, _>("told")? == 1,
        version: row.try_get("version")?,
        weight: row.try_get("weight")?,
        signals: serde_json::from_str(&row.try_get::<String, _>("signals")?).unwrap_or_default(),
        outcome: row.try_get("outcome")?,
        url: row.try_get("url")?,
    })
}

fn incident_row(row: &AnyRow) -> Result<OutageRow> {
    Ok(OutageRow {
        id: row.try_get("id")?,
        opened_s: row.try_get("opened_s")?,
        closed_s: row.try_get("closed_s")?,
        cause: row.try_get("cause")?,
        shared: row.try_get("shared")?,
        members: row.try_get("n_members")?,
        note: row.try_get("note")?,
    })
}
