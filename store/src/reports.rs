//! Single checks that somebody asked for, kept for a while under an address nobody can guess.

use sqlx::Row;

use crate::Store;
use crate::error::{Error, Result};
use crate::rows::{pack, unpack};

/// How long a report is kept, in seconds: thirty days.
pub const KEPT_S: i64 = 30 * 86_400;

/// How far a check is.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportState {
    /// It is being asked.
    Running,
    /// It is judged.
    Done,
    /// There was nothing to judge, or we failed; the body says why.
    Failed,
}

/// One check.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReport {
    /// When it was asked for, in Unix seconds.
    pub at_s: i64,
    /// When it is forgotten, in Unix seconds.
    pub expires_s: i64,
    /// The address, or `pasted`.
    pub input: String,
    /// How far it is.
    pub state: ReportState,
    /// JSON as whoever keeps reports made it.
    pub body: Vec<u8>,
}

impl Store {
    /// Keeps a check, or what became of one; forgets those whose time is over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn keep_report(&self, id: &str, report: &StoredReport) -> Result<()> {
        let state = match report.state {
            ReportState::Running => "running",
            ReportState::Done => "done",
            ReportState::Failed => "failed",
        };
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM report WHERE expires_s < $1 OR id = $2")
            .bind(report.at_s)
            .bind(id.to_owned())
            .execute(w.on())
            .await?;
        sqlx::query("INSERT INTO report (id, at_s, expires_s, input, state, body) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(id.to_owned())
            .bind(report.at_s)
            .bind(report.expires_s)
            .bind(report.input.clone())
            .bind(state)
            .bind(pack(&report.body)?)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// The check of that id; `None`: it never was, or its time is over.
    ///
    /// # Errors
    /// When the database fails, or what is kept cannot be read.
    pub async fn kept_report(&self, id: &str, now_s: i64) -> Result<Option<StoredReport>> {
        let row =
            sqlx::query("SELECT at_s, expires_s, input, state, body FROM report WHERE id = $1 AND expires_s >= $2")
                .bind(id.to_owned())
                .bind(now_s)
                .fetch_optional(&self.pools.reader)
                .await?;
        let Some(row) = row else { return Ok(None) };
        let state = match row.try_get::<String, _>("state")?.as_str() {
            "running" => ReportState::Running,
            "done" => ReportState::Done,
            "failed" => ReportState::Failed,
            other => return Err(Error::corrupt("report", format!("state `{other}`"))),
        };
        let body: Vec<u8> = row.try_get("body")?;
        Ok(Some(StoredReport {
            at_s: row.try_get("at_s")?,
            expires_s: row.try_get("expires_s")?,
            input: row.try_get("input")?,
            state,
            body: unpack("report", &body)?,
        }))
    }
}
