//! Who changed what: every write that a person or a token made, and nothing secret of it. Rows are only ever added, and name
//! their subjects by words, so that they outlive them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::Row;

use crate::Store;
use crate::dialect::Table;
use crate::error::{Error, Result};
use crate::rows::{clean, shortened};

/// Characters of what something was before or after, at most.
const LONGEST: usize = 16_000;

/// A write that is about to be noted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Noted {
    /// Who: `operator`, a token with its number and scopes, or the command line.
    pub actor: String,
    /// What was done: `silence.add`.
    pub action: &'static str,
    /// To what: `silence:3`.
    pub entity: String,
    /// How it was, without secrets.
    pub before: Option<Value>,
    /// How it is, without secrets.
    pub after: Option<Value>,
    /// From which address.
    pub ip: Option<String>,
}

/// A write that was noted.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AuditRow {
    /// Its number; later ones are greater.
    pub id: i64,
    /// When, in Unix seconds.
    pub at_s: i64,
    /// Who: `operator`, a token with its number and scopes, or the command line.
    pub actor: String,
    /// What was done: `silence.add`.
    pub action: String,
    /// To what: `silence:3`.
    pub entity: String,
    /// How it was, without secrets.
    pub before: Option<Value>,
    /// How it is, without secrets.
    pub after: Option<Value>,
    /// From which address.
    pub ip: Option<String>,
}

impl Store {
    /// Notes a write.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn note(&self, new: &Noted, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        let id = w.next_id(Table::Audit).await?;
        let json = |value: &Option<Value>| value.as_ref().map(bounded);
        sqlx::query(
            "INSERT INTO audit (id, at_s, actor, action, entity, before_json, after_json, ip)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id)
        .bind(now_s)
        .bind(shortened(&new.actor, 200))
        .bind(new.action)
        .bind(shortened(&new.entity, 200))
        .bind(json(&new.before))
        .bind(json(&new.after))
        .bind(&new.ip)
        .execute(w.on())
        .await?;
        w.commit().await
    }

    /// What was noted before a number, the newest first; of one entity, or of all.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn noted(&self, before: i64, entity: Option<&str>, limit: i64) -> Result<Vec<AuditRow>> {
        let rows = sqlx::query(
            "SELECT id, at_s, actor, action, entity, before_json, after_json, ip
             FROM audit
             WHERE id < $1 AND (CAST($2 AS TEXT) IS NULL OR entity = $2)
             ORDER BY id DESC
             LIMIT $3",
        )
        .bind(before)
        .bind(entity)
        .bind(limit)
        .fetch_all(&self.pools.reader)
        .await?;
        let json = |text: Option<String>| text.map(|text| serde_json::from_str(&text)).transpose();
        let read = |text: Option<String>| json(text).map_err(|error| Error::corrupt("audit", error));
        rows.iter()
            .map(|row| {
                Ok(AuditRow {
                    id: row.try_get(0)?,
                    at_s: row.try_get(1)?,
                    actor: row.try_get(2)?,
                    action: row.try_get(3)?,
                    entity: row.try_get(4)?,
                    before: read(row.try_get(5)?)?,
                    after: read(row.try_get(6)?)?,
                    ip: row.try_get(7)?,
                })
            })
            .collect()
    }
}

/// A value as it is kept: one that is too long is only said to have been.
fn bounded(value: &Value) -> String {
    let text = value.to_string();
    let kept = if text.len() > LONGEST { Value::from(format!("{} bytes", text.len())).to_string() } else { text };
    clean(&kept)
}
