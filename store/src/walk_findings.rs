//! What the rules say of a registry's list itself. It belongs to the walk that showed it and opens no finding of a target.

use plumbline_rules::listing::ListFinding;
use serde::Serialize;
use sqlx::Row;

use crate::Store;
use crate::dialect::Writing;
use crate::error::{Error, Result};
use crate::ids::{SourceId, WalkId};
use crate::rows::{count, shortened, unpack, word, word_or_none};
use crate::walks::Entry;
use crate::words::{Impact, Severity};

/// Characters kept of a place and of what is wrong there.
const LONGEST: usize = 500;

/// What one rule says of a list, as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WalkFindingRow {
    /// `family/kebab-name`.
    pub rule: String,
    /// The gravest of its occurrences.
    pub severity: Severity,
    /// The worst of its occurrences.
    pub impact: Option<Impact>,
    /// How often it fires.
    pub occurrences: i64,
    /// The first places and what is wrong there.
    pub places: Vec<(String, String)>,
}

/// An entry as it was stored before it came again with other content.
#[derive(Debug, Clone, PartialEq)]
pub struct Before {
    /// Which of the entries asked about.
    pub entry: usize,
    /// The `server.json` as it was.
    pub server: Vec<u8>,
    /// The `_meta` beside it.
    pub meta: Option<String>,
}

impl Store {
    /// Keeps what the rules say of a list, each in place of what it said of this walk before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn keep_walk_findings<'f>(
        &self,
        walk: WalkId,
        findings: impl Iterator<Item = &'f ListFinding>,
    ) -> Result<()> {
        let mut w = self.pools.write().await?;
        for finding in findings {
            sqlx::query("DELETE FROM walk_finding WHERE walk_id = $1 AND rule = $2")
                .bind(walk.0)
                .bind(finding.rule)
                .execute(w.on())
                .await?;
            insert(&mut w, walk, finding).await?;
        }
        w.commit().await
    }

    /// What the rules said of the list that a crawl walked, the gravest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn walk_findings(&self, crawl: i64) -> Result<Vec<WalkFindingRow>> {
        let rows = sqlx::query(
            "SELECT f.rule, f.severity, f.impact, f.occurrences, f.places
             FROM walk w
             JOIN walk_finding f ON f.walk_id = w.id
             WHERE w.crawl_id = $1
             ORDER BY CASE f.severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, f.rule",
        )
        .bind(crawl)
        .fetch_all(&self.pools.reader)
        .await?;
        let findings = rows.iter().map(|row| {
            let places: String = row.try_get(4)?;
            Ok(WalkFindingRow {
                rule: row.try_get(0)?,
                severity: word("walk_finding", row.try_get(1)?)?,
                impact: word_or_none("walk_finding", row.try_get(2)?)?,
                occurrences: row.try_get(3)?,
                places: serde_json::from_str(&places).map_err(|error| Error::corrupt("walk_finding", error))?,
            })
        });
        findings.collect()
    }

    /// Of these entries those that a registry listed with another document or `_meta` before, as they were.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn listed_before(&self, source: SourceId, entries: &[Entry]) -> Result<Vec<Before>> {
        let mut changed = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            let row = sqlx::query(
                "SELECT document.body, document.cut, listing.meta
                 FROM listing
                 JOIN document ON document.id = listing.document_id
                 WHERE listing.source_id = $1 AND listing.name = $2 AND listing.version = $3",
            )
            .bind(source.0)
            .bind(entry.name.as_str())
            .bind(entry.version.as_str())
            .fetch_optional(&self.pools.reader)
            .await?;
            let Some(row) = row else { continue };
            let (body, is_cut): (Option<Vec<u8>>, i64) = (row.try_get(0)?, row.try_get(1)?);
            let Some(body) = body.filter(|_| is_cut == 0) else { continue };
            let before = Before { entry: number, server: unpack("document", &body)?, meta: row.try_get(2)? };
            if before.server != entry.server || before.meta != entry.meta {
                changed.push(before);
            }
        }
        Ok(changed)
    }

    /// Names and versions of everything that a registry lists and that is not gone; of each whether this walk saw it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn listed_keys(&self, walk: WalkId) -> Result<Vec<(String, String, bool)>> {
        let rows = sqlx::query(
            "SELECT listing.name, listing.version, CASE WHEN listing.walk_id = walk.id THEN 1 ELSE 0 END
             FROM walk
             JOIN listing ON listing.source_id = walk.source_id
             WHERE walk.id = $1 AND listing.gone_s IS NULL",
        )
        .bind(walk.0)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get::<i64, _>(2)? == 1))).collect()
    }
}

async fn insert(w: &mut Writing, walk: WalkId, finding: &ListFinding) -> Result<()> {
    let places: Vec<_> =
        finding.places.iter().map(|(place, what)| (shortened(place, LONGEST), shortened(what, LONGEST))).collect();
    sqlx::query(
        "INSERT INTO walk_finding (walk_id, rule, severity, impact, occurrences, places) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(walk.0)
    .bind(finding.rule)
    .bind(finding.severity.as_str())
    .bind(finding.impact.map(Impact::as_str))
    .bind(count(finding.occurrences))
    .bind(serde_json::to_string(&places).expect("texts always have a JSON form"))
    .execute(w.on())
    .await?;
    Ok(())
}
