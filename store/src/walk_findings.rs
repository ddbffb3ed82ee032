//! What the rules say of a registry's list itself. It belongs to the walk that showed it and opens no finding of a target.

use plumbline_rules::canonical::content_hash;
use plumbline_rules::listing::ListFinding;
use serde::Serialize;
use sqlx::Row;

use crate::Store;
use crate::dialect::Writing;
use crate::error::{Error, Result};
use crate::ids::{SourceId, WalkId};
use crate::rows::{count, shortened, unpack, word, word_or_none};
use crate::walks::{NAMES, listed_under};
use crate::words::{Impact, Severity};

/// Characters kept of a place and of what is wrong there.
const LONGEST: usize = 500;

/// What one rule says of a list, as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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

/// An entry as it comes, as far as it is compared with what was there.
#[derive(Debug, Clone, Copy)]
pub struct Coming<'e> {
    /// The server's name.
    pub name: &'e str,
    /// The version.
    pub version: &'e str,
    /// The `server.json` as it stands in the page.
    pub server: &'e [u8],
    /// The `_meta` beside it.
    pub meta: Option<&'e str>,
}

/// How entries were listed before.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedBefore {
    /// Of each entry whether it came with the document and the `_meta` it had.
    pub is_same: Vec<bool>,
    /// Those that had others.
    pub changed: Vec<Before>,
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

    /// How a registry listed these entries before: which came as they were, and of the others how they were.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn listed_before(&self, source: SourceId, entries: &[Coming<'_>]) -> Result<ListedBefore> {
        let mut before = ListedBefore { is_same: vec![false; entries.len()], changed: Vec::new() };
        let mut reader = self.pools.reader.acquire().await?;
        for (first, some) in entries.chunks(NAMES).enumerate().map(|(n, some)| (n * NAMES, some)) {
            let known = listed_under(&mut reader, source.0, some.iter().map(|entry| entry.name)).await?;
            for (number, entry) in some.iter().enumerate() {
                let Some(listed) = known.get(entry.name, entry.version) else { continue };
                if listed.hash == content_hash(entry.server) && listed.meta.as_deref() == entry.meta {
                    before.is_same[first + number] = true;
                } else if let Some(server) = self.body_of(listed.document).await? {
                    before.changed.push(Before { entry: first + number, server, meta: listed.meta.clone() });
                }
            }
        }
        Ok(before)
    }

    /// The whole body of a document; `None` where only a part or nothing of it is kept.
    async fn body_of(&self, document: i64) -> Result<Option<Vec<u8>>> {
        let row = sqlx::query("SELECT body, cut FROM document WHERE id = $1")
            .bind(document)
            .fetch_one(&self.pools.reader)
            .await?;
        let (body, is_cut): (Option<Vec<u8>>, i64) = (row.try_get(0)?, row.try_get(1)?);
        body.filter(|_| is_cut == 0).map(|body| unpack("document", &body)).transpose()
    }

    /// Names and versions that a registry lists and that a walk did not see, at most so many, and five times as many that
    /// it did see, so that what is missing is judged beside what is not. Empty where nothing, or too much, is missing.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn missing_keys(&self, walk: WalkId, most: u32) -> Result<(Vec<Key>, Vec<Key>)> {
        let missing = self.keys(walk, false, i64::from(most)).await?;
        let wanted = count(missing.len()) * 5;
        let seen = if missing.is_empty() { Vec::new() } else { self.keys(walk, true, wanted).await? };
        if count(seen.len()) < wanted { Ok((Vec::new(), Vec::new())) } else { Ok((missing, seen)) }
    }

    async fn keys(&self, walk: WalkId, are_seen: bool, most: i64) -> Result<Vec<Key>> {
        let rows = sqlx::query(
            "SELECT listing.name, listing.version
             FROM walk
             JOIN listing ON listing.source_id = walk.source_id
             WHERE walk.id = $1 AND listing.gone_s IS NULL
               AND CASE WHEN listing.walk_id = walk.id THEN 1 ELSE 0 END = $2
             LIMIT $3",
        )
        .bind(walk.0)
        .bind(i64::from(are_seen))
        .bind(most)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}

/// Name and version of an entry.
pub type Key = (String, String);

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
