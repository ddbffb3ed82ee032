//! Findings that somebody has taken on: who, with which words, until when; and the alerts about them, which are not repeated.

use std::collections::HashMap;

use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::Result;
use crate::ids::AlertId;
use crate::rows::{clean, in_statements, places, shortened};

/// How a note says that somebody has taken a finding on.
const KIND: &str = "acknowledged";

/// How the key of an alert about a finding begins.
const ABOUT: &str = "finding:";

/// That somebody has taken a finding on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TakenOn {
    /// Who.
    pub by: String,
    /// With which words.
    pub note: String,
    /// When, in Unix seconds.
    pub at_s: i64,
    /// Until when, in Unix seconds; `None`: until it ends.
    pub until_s: Option<i64>,
}

impl TakenOn {
    /// What an audit keeps of it.
    #[must_use]
    pub fn told(&self) -> serde_json::Value {
        serde_json::json!({ "by": self.by, "note": self.note, "until_s": self.until_s })
    }

    /// Notes it on a finding. Gives whether there is one of that number.
    async fn note(&self, w: &mut Writing, finding: i64) -> Result<bool> {
        let there: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM finding WHERE id = $1").bind(finding).fetch_one(w.on()).await?;
        if there == 0 {
            return Ok(false);
        }
        let id = w.next_id(Table::FindingNote).await?;
        sqlx::query(
            "INSERT INTO finding_note (id, finding_id, at_s, author, kind, body, until_s)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(id)
        .bind(finding)
        .bind(self.at_s)
        .bind(clean(&self.by))
        .bind(KIND)
        .bind(shortened(&self.note, 2000))
        .bind(self.until_s)
        .execute(w.on())
        .await?;
        Ok(true)
    }

    /// Marks an alert. Gives what it is about; `None`: it is not open.
    async fn mark(&self, w: &mut Writing, alert: i64) -> Result<Option<String>> {
        let key = sqlx::query_scalar(
            "UPDATE alert SET state = 'acknowledged', ack_by = $2, ack_note = $3, ack_s = $4, ack_until_s = $5
             WHERE id = $1 AND ended_s IS NULL
             RETURNING key",
        )
        .bind(alert)
        .bind(clean(&self.by))
        .bind(shortened(&self.note, 2000))
        .bind(self.at_s)
        .bind(self.until_s)
        .fetch_optional(w.on())
        .await?;
        Ok(key)
    }
}

/// The finding that an alert with this key is about.
pub(crate) fn finding_of(key: &str) -> Option<i64> {
    key.strip_prefix(ABOUT)?.parse().ok()
}

/// Nobody has taken a finding on any more.
pub(crate) async fn put_down(w: &mut Writing, finding: i64, now_s: i64) -> Result<()> {
    sqlx::query(
        "UPDATE finding_note SET until_s = $2
         WHERE finding_id = $1 AND kind = 'acknowledged' AND (until_s IS NULL OR until_s > $2)",
    )
    .bind(finding)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}

impl Store {
    /// Somebody takes findings on, and with them every open alert about one. Gives the findings; what is none is left out.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_on(&self, findings: &[i64], taken: &TakenOn) -> Result<Vec<i64>> {
        let mut w = self.pools.write().await?;
        let mut done = Vec::new();
        for finding in findings {
            if taken.note(&mut w, *finding).await? {
                let alerts: Vec<i64> = sqlx::query_scalar("SELECT id FROM alert WHERE key = $1 AND ended_s IS NULL")
                    .bind(format!("{ABOUT}{finding}"))
                    .fetch_all(w.on())
                    .await?;
                for alert in alerts {
                    taken.mark(&mut w, alert).await?;
                }
                done.push(*finding);
            }
        }
        w.commit().await?;
        Ok(done)
    }

    /// Somebody takes an alert on, and with it the finding that it is about; what other routes have of that finding stays as it
    /// is. Gives whether it was open.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn acknowledge(&self, id: AlertId, taken: &TakenOn) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let key = taken.mark(&mut w, id.0).await?;
        let finding = key.as_deref().and_then(finding_of);
        if let Some(finding) = finding {
            taken.note(&mut w, finding).await?;
        }
        w.commit().await?;
        Ok(key.is_some())
    }

    /// Who has taken which of these findings on last.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn taken_on(&self, findings: &[i64]) -> Result<HashMap<i64, TakenOn>> {
        let mut found = HashMap::new();
        for some in in_statements(findings) {
            let statement = format!(
                "SELECT finding_id, author, body, at_s, until_s FROM finding_note
                 WHERE kind = 'acknowledged' AND finding_id IN {} ORDER BY id",
                places(1, some.len())
            );
            let query = some.iter().fold(sqlx::query(sqlx::AssertSqlSafe(statement)), |query, id| query.bind(*id));
            for row in query.fetch_all(&self.pools.reader).await? {
                let taken = TakenOn {
                    by: row.try_get(1)?,
                    note: row.try_get(2)?,
                    at_s: row.try_get(3)?,
                    until_s: row.try_get(4)?,
                };
                found.insert(row.try_get(0)?, taken);
            }
        }
        Ok(found)
    }

    /// Of these findings those that no target of an owner shows.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn not_of_owner(&self, findings: &[i64], owner: &str) -> Result<Vec<i64>> {
        let mut strange = Vec::new();
        for finding in findings {
            let theirs: i64 = sqlx::query_scalar(
                "SELECT COUNT(*)
                 FROM finding
                 JOIN target_surface ON target_surface.surface_id = finding.surface_id
                                    AND target_surface.removed_s IS NULL
                 JOIN target ON target.id = target_surface.target_id
                 JOIN owner ON owner.id = target.owner_id
                 WHERE finding.id = $1 AND owner.slug = $2",
            )
            .bind(finding)
            .bind(owner)
            .fetch_one(&self.pools.reader)
            .await?;
            if theirs == 0 {
                strange.push(*finding);
            }
        }
        Ok(strange)
    }
}
