//! What leaves as it is: whole lists in the order of their numbers, so that a download can go on where it was.

use plumbline_rules::conversation::Era;
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::{FindingRow, hex, maybe_word, word};
use crate::Store;
use crate::error::Result;
use crate::rows::{in_statements, places};
use crate::words::{Headline, Known, ReachState};

/// The current entry of one name in a registry, with how its target stands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServerEntry {
    /// The listing, from which the next page goes on.
    pub id: i64,
    /// The registry's name for it.
    pub name: String,
    /// Any text.
    pub version: String,
    /// `active`, `deprecated`, `deleted`, or whatever was said.
    pub status: Option<String>,
    /// The registry's own stamp, in Unix milliseconds.
    pub published_ms: Option<i64>,
    /// The registry's own stamp, in Unix milliseconds.
    pub updated_ms: Option<i64>,
    /// The registry says so.
    pub is_latest: bool,
    /// The `server.json` as it was listed.
    pub body: Option<Vec<u8>>,
    /// Hash of it, in hex.
    pub document: String,
    /// The `_meta` beside it, as it was listed.
    pub meta: Option<String>,
    /// The target of that name.
    pub target_id: i64,
    /// Its word.
    pub headline: Headline,
    /// Which conversation its endpoint holds; `None`: it has none, or it was never heard.
    pub era: Option<Era>,
    /// Its reach.
    pub reach: ReachState,
    /// The revision its main surface was judged as.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// Open errors.
    pub n_error: i64,
    /// Open warnings.
    pub n_warn: i64,
    /// Last look, in Unix seconds.
    pub last_attempt_s: Option<i64>,
    /// When the listing was first seen or last moved here, in Unix seconds.
    pub changed_s: i64,
}

macro_rules! entries {
    ($which:literal) => {
        concat!(
            "
SELECT l.id, l.name, l.version, l.status, l.published_ms, l.updated_ms, l.is_latest, l.meta, l.changed_s, d.body, d.hash,
       t.id AS target_id, t.headline, t.reach, t.profile, t.known, t.n_error, t.n_warn, t.last_attempt_s,
       (SELECT MIN(f.era) FROM target_surface s JOIN surface f ON f.id = s.surface_id
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.era IS NOT NULL) AS era
FROM listing l
JOIN document d ON d.id = l.document_id
JOIN target t ON t.id = l.target_id
WHERE ",
            $which
        )
    };
}

pub(super) const ENTRIES: &str = entries!(
    "l.id > $1 AND l.gone_s IS NULL
  AND ($2 IS NULL OR l.is_current = $2)
  AND ($3 IS NULL OR t.headline = $3)
  AND ($4 IS NULL OR t.reach = $4)
  AND ($6 IS NULL OR EXISTS (
        SELECT 1 FROM target_surface s JOIN surface f ON f.id = s.surface_id
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.era = $6))
ORDER BY l.id
LIMIT $5"
);

/// The same in the order in which entries last moved here.
pub(super) const ENTRIES_SINCE: &str = entries!(
    "l.changed_s >= $7 AND (l.changed_s > $7 OR l.id > $1) AND l.gone_s IS NULL
  AND ($2 IS NULL OR l.is_current = $2)
  AND ($3 IS NULL OR t.headline = $3)
  AND ($4 IS NULL OR t.reach = $4)
  AND ($6 IS NULL OR EXISTS (
        SELECT 1 FROM target_surface s JOIN surface f ON f.id = s.surface_id
        WHERE s.target_id = t.id AND s.removed_s IS NULL AND f.era = $6))
ORDER BY l.changed_s, l.id
LIMIT $5"
);

pub(super) const VERSIONS: &str = entries!(
    "l.target_id = (SELECT x.id FROM target x WHERE x.kind = 'mcp-server' AND x.key = $1) AND l.gone_s IS NULL\nORDER BY l.id DESC\nLIMIT 200"
);

/// Of each of these targets the version that its registry calls the latest, else the newest here; the list of their numbers
/// follows.
const LATEST_OF: &str = entries!(
    "l.gone_s IS NULL
  AND l.id = (SELECT x.id FROM listing x WHERE x.target_id = l.target_id AND x.gone_s IS NULL
              ORDER BY x.is_latest DESC, x.id DESC LIMIT 1)
  AND l.target_id IN "
);

pub(super) const FINDINGS_FROM: &str = "
SELECT f.*, r.slug, NULL AS occ_body, s.last_evaluated_s, s.every_s, s.listing_id
FROM finding f
JOIN surface s ON s.id = f.surface_id
JOIN rule r ON r.id = f.rule_id
WHERE f.id > $1 AND f.state IN ('open', 'clearing', 'flapping')
ORDER BY f.id
LIMIT $2";

/// What is asked of the list of entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Changed here at or after, in Unix seconds; entries then come in the order in which they changed.
    pub updated_since_s: Option<i64>,
    /// Only the version that is judged, of each name.
    pub current_only: bool,
    /// The target's word.
    pub headline: Option<Headline>,
    /// The conversation that an endpoint of its holds.
    pub era: Option<Era>,
    /// Its reach.
    pub reach: Option<ReachState>,
}

impl Store {
    /// Entries after the one of that number, in the order of their numbers, at most `limit`.
    pub async fn server_entries(&self, after: i64, filter: &EntryFilter, limit: i64) -> Result<Vec<ServerEntry>> {
        let statement = if filter.updated_since_s.is_some() { ENTRIES_SINCE } else { ENTRIES };
        let mut query = sqlx::query(statement)
            .bind(after)
            .bind(filter.current_only.then_some(1_i64))
            .bind(filter.headline.map(Headline::as_str))
            .bind(filter.reach.map(ReachState::as_str))
            .bind(limit)
            .bind(filter.era.map(Era::as_str));
        if let Some(since) = filter.updated_since_s {
            query = query.bind(since);
        }
        let rows = query.fetch_all(&self.pools.reader).await?;
        rows.iter().map(entry).collect()
    }

    /// Every listed version of one name, newest here first.
    pub async fn server_versions(&self, name: &str) -> Result<Vec<ServerEntry>> {
        let rows = sqlx::query(VERSIONS).bind(name.to_owned()).fetch_all(&self.pools.reader).await?;
        rows.iter().map(entry).collect()
    }

    /// The latest listed version of each of these targets, in their order; those without one are left out.
    pub async fn latest_entries(&self, targets: &[i64]) -> Result<Vec<ServerEntry>> {
        let mut entries = Vec::with_capacity(targets.len());
        for some in in_statements(targets) {
            let statement = format!("{LATEST_OF}{}", places(1, some.len()));
            let query = some.iter().fold(sqlx::query(AssertSqlSafe(statement)), |query, id| query.bind(*id));
            for row in &query.fetch_all(&self.pools.reader).await? {
                entries.push(entry(row)?);
            }
        }
        entries.sort_by_key(|entry| targets.iter().position(|target| *target == entry.target_id));
        Ok(entries)
    }

    /// Open findings after the one of that number, in the order of their numbers, at most `limit`; without places.
    pub async fn findings_from(&self, after: i64, limit: i64) -> Result<Vec<FindingRow>> {
        let rows = sqlx::query(FINDINGS_FROM).bind(after).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(super::target::finding_row).collect()
    }
}

fn entry(row: &AnyRow) -> Result<ServerEntry> {
    let body: Option<Vec<u8>> = row.try_get("body")?;
    Ok(ServerEntry {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        status: row.try_get("status")?,
        published_ms: row.try_get("published_ms")?,
        updated_ms: row.try_get("updated_ms")?,
        is_latest: row.try_get::<i64, _>("is_latest")? == 1,
        body: body.map(|packed| crate::rows::unpack("document", &packed)).transpose()?,
        document: hex(&row.try_get::<Vec<u8>, _>("hash")?),
        meta: row.try_get("meta")?,
        target_id: row.try_get("target_id")?,
        headline: word(row, "headline")?,
        era: maybe_word(row, "era")?,
        reach: word(row, "reach")?,
        profile: row.try_get("profile")?,
        known: maybe_word(row, "known")?,
        n_error: row.try_get("n_error")?,
        n_warn: row.try_get("n_warn")?,
        last_attempt_s: row.try_get("last_attempt_s")?,
        changed_s: row.try_get("changed_s")?,
    })
}
