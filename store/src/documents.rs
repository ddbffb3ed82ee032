//! Bodies, each kept once by its content.

use plumbline_rules::canonical::{Hash, content_hash, hex};
use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::ids::{DocumentId, SurfaceId};
use crate::rows::{count, hash, pack, unpack, word};
use crate::words::SurfaceKind;

/// Bytes kept of a body; of a longer one the rest is let go, its length and hash are not.
pub const KEPT_BYTES: usize = 1 << 20;

/// A body about to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// The bytes as received.
    pub bytes: Vec<u8>,
    /// Their hash.
    pub hash: Hash,
    /// The hash of their canonical form; `None` for what is no JSON.
    pub semantic_hash: Option<Hash>,
    /// As served.
    pub media_type: Option<String>,
}

impl Body {
    /// A body with its content hash.
    #[must_use]
    pub fn new(bytes: Vec<u8>, semantic_hash: Option<Hash>, media_type: Option<String>) -> Body {
        Body { hash: content_hash(&bytes), bytes, semantic_hash, media_type }
    }
}

/// A kept document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its number.
    pub id: DocumentId,
    /// SHA-256 of the bytes as received.
    pub hash: Hash,
    /// SHA-256 of the canonical form; `None` for what is no JSON.
    pub semantic_hash: Option<Hash>,
    /// What it is.
    pub kind: SurfaceKind,
    /// As served when first seen.
    pub media_type: Option<String>,
    /// Bytes received.
    pub raw_len: i64,
    /// Only the beginning is kept.
    pub is_cut: bool,
    /// The bytes; `None` where there was no room for them, or retention has let them go.
    pub bytes: Option<Vec<u8>>,
    /// When it was first seen.
    pub first_seen_s: i64,
}

/// Keeps a body and gives its number.
pub(crate) async fn keep(w: &mut Writing, kind: SurfaceKind, body: &Body, now_s: i64) -> Result<i64> {
    let known = sqlx::query("SELECT id, CASE WHEN body IS NULL THEN 1 ELSE 0 END FROM document WHERE hash = $1")
        .bind(body.hash.to_vec())
        .fetch_optional(w.on())
        .await?;
    let kept = &body.bytes[..body.bytes.len().min(KEPT_BYTES)];
    if let Some(row) = known {
        let id = row.try_get(0)?;
        if row.try_get::<i64, _>(1)? == 1 {
            sqlx::query("UPDATE document SET body = $2 WHERE id = $1")
                .bind(id)
                .bind(pack(kept)?)
                .execute(w.on())
                .await?;
        }
        return Ok(id);
    }
    insert(w, kind, body, Some(pack(kept)?), now_s).await
}

/// Keeps everything of a body but its bytes, for want of room; those of a known one stay.
pub(crate) async fn keep_hash(w: &mut Writing, kind: SurfaceKind, body: &Body, now_s: i64) -> Result<i64> {
    let known: Option<i64> = sqlx::query_scalar("SELECT id FROM document WHERE hash = $1")
        .bind(body.hash.to_vec())
        .fetch_optional(w.on())
        .await?;
    match known {
        Some(id) => Ok(id),
        None => insert(w, kind, body, None, now_s).await,
    }
}

async fn insert(w: &mut Writing, kind: SurfaceKind, body: &Body, packed: Option<Vec<u8>>, now_s: i64) -> Result<i64> {
    let id = w.next_id(Table::Document).await?;
    sqlx::query(
        "INSERT INTO document (id, hash, semantic_hash, kind, media_type, raw_len, cut, body, first_seen_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(body.hash.to_vec())
    .bind(body.semantic_hash.map(|hash| hash.to_vec()))
    .bind(kind.as_str())
    .bind(body.media_type.as_deref())
    .bind(count(body.bytes.len()))
    .bind(i64::from(body.bytes.len() > KEPT_BYTES))
    .bind(packed)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(id)
}

impl Store {
    /// A document by its number.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn document(&self, id: DocumentId) -> Result<Document> {
        let row = sqlx::query(
            "SELECT id, hash, semantic_hash, kind, media_type, raw_len, cut, body, first_seen_s
             FROM document
             WHERE id = $1",
        )
        .bind(id.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        let row = row.ok_or_else(|| Error::Missing { what: "document", id: id.to_string() })?;
        document(&row)
    }

    /// The hashes (hex) of the two documents that a surface serves in turn, as two back ends with different builds do; `None` where it does
    /// not. It does when its last four changes of document went to and fro between two that say different things, and the
    /// newest is no older than a few of these changes took.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn two_versions(&self, surface: SurfaceId) -> Result<Option<(String, String)>> {
        let rows = sqlx::query(
            "SELECT document.hash, document.semantic_hash, doc_span.from_s, surface.last_attempt_s
             FROM doc_span
             JOIN document ON document.id = doc_span.document_id
             JOIN surface ON surface.id = doc_span.surface_id
             WHERE doc_span.surface_id = $1
             ORDER BY doc_span.from_s DESC
             LIMIT 5",
        )
        .bind(surface.0)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut spans = Vec::with_capacity(rows.len());
        for row in &rows {
            let says: Option<Vec<u8>> = row.try_get(1)?;
            spans.push(Served { document: row.try_get(0)?, says, from_s: row.try_get(2)? });
        }
        let now_s: Option<i64> = rows.first().map(|row| row.try_get(3)).transpose()?.flatten();
        Ok(in_turn(&spans, now_s).map(|(now, before)| (hex(now), hex(before))))
    }

    /// The documents that a surface served, each once, the one that came last first; at most so many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn documents_of(&self, surface: SurfaceId, most: u32) -> Result<Vec<Document>> {
        let ids: Vec<i64> = sqlx::query_scalar(
            "SELECT document_id FROM doc_span WHERE surface_id = $1
             GROUP BY document_id ORDER BY MAX(from_s) DESC LIMIT $2",
        )
        .bind(surface.0)
        .bind(i64::from(most))
        .fetch_all(&self.pools.reader)
        .await?;
        let mut documents = Vec::with_capacity(ids.len());
        for id in ids {
            documents.push(self.document(DocumentId(id)).await?);
        }
        Ok(documents)
    }

    /// What a surface served last; `None` before its first document.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_document(&self, surface: SurfaceId) -> Result<Option<Document>> {
        let row = sqlx::query(
            "SELECT document.id, document.hash, document.semantic_hash, document.kind, document.media_type,
                    document.raw_len, document.cut, document.body, document.first_seen_s
             FROM surface
             JOIN document ON document.id = surface.document_id
             WHERE surface.id = $1",
        )
        .bind(surface.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        row.as_ref().map(document).transpose()
    }
}

fn document(row: &sqlx::any::AnyRow) -> Result<Document> {
    let semantic: Option<Vec<u8>> = row.try_get(2)?;
    let packed: Option<Vec<u8>> = row.try_get(7)?;
    Ok(Document {
        id: DocumentId(row.try_get(0)?),
        hash: hash("document", &row.try_get::<Vec<u8>, _>(1)?)?,
        semantic_hash: semantic.map(|bytes| hash("document", &bytes)).transpose()?,
        kind: word("document", row.try_get(3)?)?,
        media_type: row.try_get(4)?,
        raw_len: row.try_get(5)?,
        is_cut: row.try_get::<i64, _>(6)? != 0,
        bytes: packed.map(|packed| unpack("document", &packed)).transpose()?,
        first_seen_s: row.try_get(8)?,
    })
}
/// A span of a document, for telling whether two are served in turn.
struct Served {
    document: Vec<u8>,
    says: Option<Vec<u8>>,
    from_s: i64,
}

/// The present document and the other one, where the newest five spans (newest first) go to and fro between them.
fn in_turn(spans: &[Served], now_s: Option<i64>) -> Option<(&[u8], &[u8])> {
    let [newest, before, .., oldest] = spans else { return None };
    let is_there = |n: usize, span: &Served| {
        span.document == if n.is_multiple_of(2) { &*newest.document } else { &*before.document }
    };
    let are_two = newest.says.is_none() || newest.says != before.says;
    if spans.len() < 5 || !are_two || !spans.iter().enumerate().all(|(n, span)| is_there(n, span)) {
        return None;
    }
    let took_s = newest.from_s - oldest.from_s;
    (now_s? - newest.from_s <= took_s).then_some((&*newest.document, &*before.document))
}
