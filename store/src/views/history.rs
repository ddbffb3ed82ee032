//! One target over time: the spans of its surfaces and findings, its probes, and one finding whole.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::target::finding_row;
use super::{FindingRow, hex, maybe_word, word};
use crate::Store;
use crate::error::Result;
use crate::probes::{self, Probe};
use crate::words::{Cause, Headline, OpenedAs, ReachState, Resolution, SurfaceKind};

/// A stretch of time in which one document was served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DocumentSpan {
    /// The surface.
    pub surface_id: i64,
    /// What kind it is.
    pub kind: SurfaceKind,
    /// First time it was seen there, in Unix seconds.
    pub from_s: i64,
    /// Another one came, in Unix seconds; `None`: it is served now.
    pub to_s: Option<i64>,
    /// sha256 of its bytes, in hex.
    pub document: String,
    /// Bytes of it.
    pub raw_len: i64,
    /// What it calls its own version.
    pub declared_version: Option<String>,
}

/// A stretch of time in which a surface was in one reach state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReachSpan {
    /// The surface.
    pub surface_id: i64,
    /// What kind it is.
    pub kind: SurfaceKind,
    /// Unix seconds.
    pub from_s: i64,
    /// Unix seconds; `None`: it is so now.
    pub to_s: Option<i64>,
    /// The state.
    pub state: ReachState,
    /// Why, in the word of its outcome.
    pub reason: Option<String>,
}

/// A stretch of time in which a finding was open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingSpan {
    /// The finding.
    pub finding_id: i64,
    /// Its rule.
    pub rule: String,
    /// First time it fired, in Unix seconds.
    pub from_s: i64,
    /// First time it passed again, in Unix seconds; `None`: it is open.
    pub to_s: Option<i64>,
    /// As what it opened.
    pub opened_as: OpenedAs,
    /// What moved when it opened.
    pub cause: Cause,
    /// Why it is over.
    pub resolution: Option<Resolution>,
    /// The document that opened it, in hex.
    pub open_document: Option<String>,
    /// The document that closed it, in hex.
    pub close_document: Option<String>,
    /// The deploy that opened it.
    pub open_deploy: Option<i64>,
    /// The deploy that closed it.
    pub close_deploy: Option<i64>,
    /// How sure that is: `certain`, `likely`, `possible`, `none`.
    pub confidence: Option<String>,
    /// The number of the conversation in which it opened.
    pub open_session: Option<i64>,
    /// The number of the conversation in which it closed.
    pub close_session: Option<i64>,
}

/// The probes of one surface on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeDay {
    /// The surface.
    pub surface_id: i64,
    /// Days since 1970-01-01 UTC.
    pub day: i64,
    /// Oldest first.
    pub probes: Vec<Probe>,
}

/// A finding with where it is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FindingDetail {
    /// The finding.
    #[serde(flatten)]
    pub finding: FindingRow,
    /// Why it is over.
    pub resolution: Option<Resolution>,
    /// End of its last span, in Unix seconds.
    pub closed_s: Option<i64>,
    /// The rule's version when it last fired.
    pub rule_version: i64,
    /// Newest in bit 0: whether it fired at each of the last looks that could judge.
    #[serde(skip)]
    pub flips: i64,
    /// How many of these are real, at most 32.
    #[serde(skip)]
    pub observed: i64,
    /// What kind of surface it is on.
    pub surface_kind: SurfaceKind,
    /// Its address.
    pub surface_url: String,
    /// The document served there now, in hex.
    pub document: Option<String>,
    /// The targets that show the surface, at most twenty: number, name, verdict.
    pub targets: Vec<(i64, String, Headline)>,
}

pub(super) const DOCUMENT_SPANS: &str = "
SELECT d.surface_id, s.kind, d.from_s, d.to_s, o.hash, o.raw_len, d.declared_version
FROM target_surface ts
JOIN surface s ON s.id = ts.surface_id
JOIN doc_span d ON d.surface_id = ts.surface_id
JOIN document o ON o.id = d.document_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL
ORDER BY d.from_s DESC, d.surface_id
LIMIT $2";

pub(super) const REACH_SPANS: &str = "
SELECT r.surface_id, s.kind, r.from_s, r.to_s, r.state, r.reason
FROM target_surface ts
JOIN surface s ON s.id = ts.surface_id
JOIN reach_span r ON r.surface_id = ts.surface_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL
ORDER BY r.from_s DESC, r.surface_id
LIMIT $2";

macro_rules! finding_spans {
    ($from:literal) => {
        concat!(
            "
SELECT p.finding_id, r.slug, p.from_s, p.to_s, p.opened_as, p.cause, p.resolution, p.open_deploy, p.close_deploy,
       p.confidence, p.open_session, p.close_session, o.hash AS open_hash, c.hash AS close_hash
FROM ",
            $from,
            "
JOIN finding_span p ON p.finding_id = f.id
JOIN rule r ON r.id = f.rule_id
LEFT JOIN document o ON o.id = p.open_doc
LEFT JOIN document c ON c.id = p.close_doc
WHERE "
        )
    };
}

pub(super) const TARGET_FINDING_SPANS: &str = concat!(
    finding_spans!(
        "target_surface ts
JOIN finding f ON f.surface_id = ts.surface_id"
    ),
    "ts.target_id = $1 AND ts.removed_s IS NULL
ORDER BY p.from_s DESC, p.finding_id
LIMIT $2"
);

pub(super) const FINDING_SPANS: &str = concat!(
    finding_spans!("finding f"),
    "f.id = $1
ORDER BY p.from_s DESC
LIMIT $2"
);

pub(super) const ALL_FINDINGS: &str = "
SELECT f.*, r.slug, NULL AS occ_body, s.last_evaluated_s, s.every_s, s.listing_id
FROM target_surface ts
JOIN surface s ON s.id = ts.surface_id
JOIN finding f ON f.surface_id = ts.surface_id
JOIN rule r ON r.id = f.rule_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL AND f.opens > 0
ORDER BY f.changed_s DESC, f.id
LIMIT $2";

pub(super) const FINDING: &str = "
SELECT f.*, r.slug, o.body AS occ_body, s.kind AS surface_kind, s.url, d.hash, s.last_evaluated_s,
       s.every_s, s.listing_id
FROM finding f
JOIN rule r ON r.id = f.rule_id
JOIN surface s ON s.id = f.surface_id
LEFT JOIN document d ON d.id = s.document_id
LEFT JOIN occ_set o ON o.id = f.occ_set_id
WHERE f.id = $1";

pub(super) const SHOWN_BY: &str = "
SELECT t.id, t.name, t.headline
FROM target_surface ts
JOIN target t ON t.id = ts.target_id
WHERE ts.surface_id = $1 AND ts.removed_s IS NULL
ORDER BY t.id
LIMIT 20";

pub(super) const PROBE_DAYS: &str = "
SELECT p.surface_id, p.day, p.probes
FROM target_surface ts
JOIN probe_day p ON p.surface_id = ts.surface_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL AND p.day >= $2
ORDER BY p.surface_id, p.day";

impl Store {
    /// Which documents its surfaces served, newest first, at most `limit`.
    pub async fn target_document_spans(&self, target: i64, limit: i64) -> Result<Vec<DocumentSpan>> {
        let rows = sqlx::query(DOCUMENT_SPANS).bind(target).bind(limit).fetch_all(&self.pools.reader).await?;
        let spans = rows.iter().map(|row| {
            Ok(DocumentSpan {
                surface_id: row.try_get("surface_id")?,
                kind: word(row, "kind")?,
                from_s: row.try_get("from_s")?,
                to_s: row.try_get("to_s")?,
                document: hex(&row.try_get::<Vec<u8>, _>("hash")?),
                raw_len: row.try_get("raw_len")?,
                declared_version: row.try_get("declared_version")?,
            })
        });
        spans.collect()
    }

    /// How its surfaces could be reached, newest first, at most `limit`.
    pub async fn target_reach_spans(&self, target: i64, limit: i64) -> Result<Vec<ReachSpan>> {
        let rows = sqlx::query(REACH_SPANS).bind(target).bind(limit).fetch_all(&self.pools.reader).await?;
        let spans = rows.iter().map(|row| {
            Ok(ReachSpan {
                surface_id: row.try_get("surface_id")?,
                kind: word(row, "kind")?,
                from_s: row.try_get("from_s")?,
                to_s: row.try_get("to_s")?,
                state: word(row, "state")?,
                reason: row.try_get("reason")?,
            })
        });
        spans.collect()
    }

    /// When its findings were open, newest first, at most `limit`.
    pub async fn target_finding_spans(&self, target: i64, limit: i64) -> Result<Vec<FindingSpan>> {
        let rows = sqlx::query(TARGET_FINDING_SPANS).bind(target).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(finding_span).collect()
    }

    /// When one finding was open, newest first, at most `limit`.
    pub async fn finding_spans(&self, finding: i64, limit: i64) -> Result<Vec<FindingSpan>> {
        let rows = sqlx::query(FINDING_SPANS).bind(finding).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(finding_span).collect()
    }

    /// Every finding that was ever confirmed on its surfaces, the one that changed last first, at most `limit`; without places.
    pub async fn target_all_findings(&self, target: i64, limit: i64) -> Result<Vec<FindingRow>> {
        let rows = sqlx::query(ALL_FINDINGS).bind(target).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(finding_row).collect()
    }

    /// Its single probes since `first_day`, as long as they are kept.
    pub async fn target_probe_days(&self, target: i64, first_day: i64) -> Result<Vec<ProbeDay>> {
        let rows = sqlx::query(PROBE_DAYS).bind(target).bind(first_day).fetch_all(&self.pools.reader).await?;
        let days = rows.iter().map(|row| {
            let packed: Vec<u8> = row.try_get("probes")?;
            Ok(ProbeDay {
                surface_id: row.try_get("surface_id")?,
                day: row.try_get("day")?,
                probes: probes::probes(&packed).collect(),
            })
        });
        days.collect()
    }

    /// The finding of that number.
    pub async fn finding(&self, id: i64) -> Result<Option<FindingDetail>> {
        let Some(row) = sqlx::query(FINDING).bind(id).fetch_optional(&self.pools.reader).await? else {
            return Ok(None);
        };
        let surface: i64 = row.try_get("surface_id")?;
        let shown = sqlx::query(SHOWN_BY).bind(surface).fetch_all(&self.pools.reader).await?;
        let targets = shown.iter().map(|row| Ok((row.try_get("id")?, row.try_get("name")?, word(row, "headline")?)));
        Ok(Some(FindingDetail {
            finding: finding_row(&row)?,
            resolution: maybe_word(&row, "resolution")?,
            closed_s: row.try_get("closed_s")?,
            rule_version: row.try_get("rule_version")?,
            flips: row.try_get("flips")?,
            observed: row.try_get("observed")?,
            surface_kind: word(&row, "surface_kind")?,
            surface_url: row.try_get("url")?,
            document: row.try_get::<Option<Vec<u8>>, _>("hash")?.as_deref().map(hex),
            targets: targets.collect::<Result<_>>()?,
        }))
    }
}

fn finding_span(row: &AnyRow) -> Result<FindingSpan> {
    let hash = |column| Ok::<_, sqlx::Error>(row.try_get::<Option<Vec<u8>>, _>(column)?.as_deref().map(hex));
    Ok(FindingSpan {
        finding_id: row.try_get("finding_id")?,
        rule: row.try_get("slug")?,
        from_s: row.try_get("from_s")?,
        to_s: row.try_get("to_s")?,
        opened_as: word(row, "opened_as")?,
        cause: word(row, "cause")?,
        resolution: maybe_word(row, "resolution")?,
        open_document: hash("open_hash")?,
        close_document: hash("close_hash")?,
        open_deploy: row.try_get("open_deploy")?,
        close_deploy: row.try_get("close_deploy")?,
        confidence: row.try_get("confidence")?,
        open_session: row.try_get("open_session")?,
        close_session: row.try_get("close_session")?,
    })
}
