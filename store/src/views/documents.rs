//! One document: its bytes, what was judged of it, and who serves it.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;

use super::{hex, maybe_word, word};
use crate::Store;
use crate::error::{Error, Result};
use crate::judged::Occurrence;
use crate::rows::unpack;
use crate::words::{Headline, Known, SurfaceKind};

/// A document without its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DocumentRow {
    /// Its number here.
    #[serde(skip)]
    pub id: i64,
    /// sha256 of the bytes as received, in hex.
    pub hash: String,
    /// `a2a-card`, `server-json`, …
    pub kind: Option<SurfaceKind>,
    /// As served when first seen.
    pub media_type: Option<String>,
    /// Bytes of the whole body, also where it was cut.
    pub raw_len: i64,
    /// Only the beginning was kept.
    pub is_cut: bool,
    /// Unix seconds.
    pub first_seen_s: i64,
    /// The newest judgement of it; `None`: never judged.
    pub judged: Option<Judgement>,
}

/// What the newest judgement of a document said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// Its word.
    pub headline: Headline,
    /// The revision it was judged as.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// The rules it was judged with.
    pub ruleset: String,
    /// When, in Unix seconds.
    pub judged_s: i64,
    /// Rules that fire (findings, facts and states), with their places.
    pub fired: Vec<(String, Vec<Occurrence>)>,
}

/// A target that serves a document at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServedBy {
    /// The target.
    pub target_id: i64,
    /// Its name.
    pub name: String,
    /// The address of the surface.
    pub url: String,
    /// What kind of surface it is.
    pub kind: SurfaceKind,
}

pub(super) const DOCUMENT: &str = "
SELECT id, hash, kind, media_type, raw_len, cut, first_seen_s
FROM document
WHERE hash = $1";

pub(super) const BODY: &str = "
SELECT body
FROM document
WHERE id = $1";

/// The judgement that a surface shows now, if one does, else the newest.
pub(super) const JUDGEMENT: &str = "
SELECT e.headline, e.profile, e.known, e.fired, e.judged_s, r.version AS ruleset
FROM eval e
JOIN ruleset r ON r.id = e.ruleset_id
WHERE e.document_id = $1
ORDER BY e.judged_s DESC, e.id DESC
LIMIT 1";

pub(super) const SERVED_BY: &str = "
SELECT t.id AS target_id, t.name, s.url, s.kind
FROM surface s
JOIN target_surface ts ON ts.surface_id = s.id AND ts.removed_s IS NULL
JOIN target t ON t.id = ts.target_id
WHERE s.document_id = $1
ORDER BY s.id, t.id
LIMIT $2";

impl Store {
    /// The document with this hash (64 hex digits), and the newest that was judged of it.
    pub async fn document_of_hash(&self, hash: &str) -> Result<Option<DocumentRow>> {
        let Some(bytes) = unhex(hash) else { return Ok(None) };
        let Some(row) = sqlx::query(DOCUMENT).bind(bytes).fetch_optional(&self.pools.reader).await? else {
            return Ok(None);
        };
        let id = row.try_get("id")?;
        Ok(Some(DocumentRow {
            id,
            hash: hex(&row.try_get::<Vec<u8>, _>("hash")?),
            kind: row.try_get::<String, _>("kind")?.parse().ok(),
            media_type: row.try_get("media_type")?,
            raw_len: row.try_get("raw_len")?,
            is_cut: row.try_get::<i64, _>("cut")? == 1,
            first_seen_s: row.try_get("first_seen_s")?,
            judged: self.judgement(id).await?,
        }))
    }

    /// The bytes that are kept of it; `None` once retention has let them go.
    pub async fn document_bytes(&self, document: &DocumentRow) -> Result<Option<Vec<u8>>> {
        let row = sqlx::query(BODY).bind(document.id).fetch_one(&self.pools.reader).await?;
        let body: Option<Vec<u8>> = row.try_get("body")?;
        body.map(|packed| unpack("document", &packed)).transpose()
    }

    /// The targets that serve it now, at most `limit`.
    pub async fn document_served_by(&self, document: &DocumentRow, limit: i64) -> Result<Vec<ServedBy>> {
        let rows = sqlx::query(SERVED_BY).bind(document.id).bind(limit).fetch_all(&self.pools.reader).await?;
        let served = rows.iter().map(|row| {
            Ok(ServedBy {
                target_id: row.try_get("target_id")?,
                name: row.try_get("name")?,
                url: row.try_get("url")?,
                kind: word(row, "kind")?,
            })
        });
        served.collect()
    }

    async fn judgement(&self, document: i64) -> Result<Option<Judgement>> {
        let Some(row) = sqlx::query(JUDGEMENT).bind(document).fetch_optional(&self.pools.reader).await? else {
            return Ok(None);
        };
        let fired: Vec<(i64, i64)> = serde_json::from_str(&row.try_get::<String, _>("fired")?)
            .map_err(|error| Error::corrupt("judgement", error))?;
        let mut named = Vec::with_capacity(fired.len());
        for (rule, set) in fired {
            named.push((self.rule_slug(rule).await?, self.occurrences(set).await?));
        }
        Ok(Some(Judgement {
            headline: word(&row, "headline")?,
            profile: row.try_get("profile")?,
            known: maybe_word(&row, "known")?,
            ruleset: row.try_get("ruleset")?,
            judged_s: row.try_get("judged_s")?,
            fired: named,
        }))
    }
}

/// The bytes of 64 hex digits; `None` for anything else.
fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..32).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).ok()).collect()
}
