//! Documents that differ at every fetch and say nothing new: a time stamp, a nonce, a number of requests.
//!
//! A place of a document whose value differed in five fetches in a row, with nothing else moving beside it, is volatile for
//! its surface from then on (dashboard §9.3): a document that differs from the one before only there is the one before. A
//! document that was served earlier and comes back is none of these, however often it comes: that is two builds served in
//! turn, and must be told. Nor is a version, whatever somebody counts in it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::Row;

use crate::Store;
use crate::dialect::Writing;
use crate::documents::Body;
use crate::error::Result;
use crate::ids::{SurfaceId, TargetId};
use crate::rows::{DAY_S, unpack, word};
use crate::words::SurfaceKind;

/// Fetches in a row after which a place is volatile.
const RUNS: i64 = 5;
/// More places than these at once are a new document.
const MOST_PLACES: usize = 4;
/// A longer pointer is not remembered.
const LONGEST_POINTER: usize = 200;
/// A larger document is not compared place by place.
const LARGEST: i64 = 512 << 10;
/// Documents of a surface whose bytes are kept in a day; of more only the hash is.
const MOST_A_DAY: i64 = 24;
/// What never counts as volatile.
const SAYS_SOMETHING: [&str; 6] =
    ["/version", "/info/version", "/serverInfo/version", "/name", "/protocolVersion", "/url"];

/// Scalar places in which two documents differ; `None`: they differ in their members, or in more places than are followed.
fn differing(before: &Value, now: &Value) -> Option<Vec<String>> {
    let mut places = Vec::new();
    compare(before, now, &mut String::new(), &mut places)?;
    places.sort();
    let may_be_volatile = |place: &String| place.len() <= LONGEST_POINTER && !SAYS_SOMETHING.contains(&place.as_str());
    places.iter().all(may_be_volatile).then_some(places)
}

fn compare(before: &Value, now: &Value, at: &mut String, places: &mut Vec<String>) -> Option<()> {
    let mut below = |before: &Value, now: &Value, token: &str, at: &mut String| {
        let end = at.len();
        at.push('/');
        at.push_str(&token.replace('~', "~0").replace('/', "~1"));
        let done = compare(before, now, at, places);
        at.truncate(end);
        done
    };
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            if before.len() != now.len() {
                return None;
            }
            before.iter().try_for_each(|(name, value)| below(value, now.get(name)?, name, at))
        }
        (Value::Array(before), Value::Array(now)) => {
            if before.len() != now.len() {
                return None;
            }
            let pairs = before.iter().zip(now).enumerate();
            pairs.into_iter().try_for_each(|(n, (before, now))| below(before, now, &n.to_string(), at))
        }
        (before, now) if before == now => Some(()),
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) => {
            places.push(at.clone());
            (places.len() <= MOST_PLACES).then_some(())
        }
        _ => None,
    }
}

/// A place that is followed.
struct Followed {
    pointer: String,
    runs: i64,
    is_volatile: bool,
    seen_s: Option<i64>,
}

/// Whether another document of a surface says nothing new; what is followed is brought up to date. `last_s`: when the surface
/// answered last, with the document `before`.
pub(crate) async fn says_nothing_new(
    w: &mut Writing,
    surface: i64,
    before: i64,
    now: &Body,
    last_s: Option<i64>,
    at_s: i64,
) -> Result<bool> {
    let followed = followed(w, surface).await?;
    let differing = match was_served(w, surface, now).await? {
        true => None,
        false => kept_json(w, before).await?.zip(json(&now.bytes)).and_then(|(before, now)| differing(&before, &now)),
    };
    let is_volatile = |place: &String| followed.iter().any(|known| known.is_volatile && known.pointer == *place);
    let fresh: Vec<String> = differing.iter().flatten().filter(|place| !is_volatile(place)).cloned().collect();
    if differing.is_some() && fresh.is_empty() {
        return Ok(true);
    }
    let waiting: Vec<&Followed> = followed.iter().filter(|known| !known.is_volatile).collect();
    let goes_on = waiting.len() == fresh.len()
        && waiting.iter().all(|known| known.seen_s == last_s && fresh.contains(&known.pointer));
    let runs = if goes_on { waiting.first().map_or(1, |known| known.runs + 1) } else { 1 };
    if !waiting.is_empty() {
        sqlx::query("DELETE FROM volatile_pointer WHERE surface_id = $1 AND marked_s IS NULL")
            .bind(surface)
            .execute(w.on())
            .await?;
    }
    for place in &fresh {
        sqlx::query(
            "INSERT INTO volatile_pointer (surface_id, pointer, runs, marked_s, seen_s) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(surface)
        .bind(place.as_str())
        .bind(runs)
        .bind((runs >= RUNS).then_some(at_s))
        .bind(at_s)
        .execute(w.on())
        .await?;
    }
    Ok(false)
}

async fn followed(w: &mut Writing, surface: i64) -> Result<Vec<Followed>> {
    let rows = sqlx::query(
        "SELECT pointer, runs, marked_s, seen_s FROM volatile_pointer WHERE surface_id = $1 ORDER BY pointer",
    )
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    let known = |row: &sqlx::any::AnyRow| {
        let marked_s: Option<i64> = row.try_get(2)?;
        Ok(Followed {
            pointer: row.try_get(0)?,
            runs: row.try_get(1)?,
            is_volatile: marked_s.is_some(),
            seen_s: row.try_get(3)?,
        })
    };
    rows.iter().map(known).collect()
}

/// Whether a surface served these bytes before.
async fn was_served(w: &mut Writing, surface: i64, body: &Body) -> Result<bool> {
    let known: Option<i64> = sqlx::query_scalar("SELECT id FROM document WHERE hash = $1")
        .bind(body.hash.to_vec())
        .fetch_optional(w.on())
        .await?;
    let Some(known) = known else { return Ok(false) };
    let spans: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM doc_span WHERE document_id = $1 AND surface_id = $2")
        .bind(known)
        .bind(surface)
        .fetch_one(w.on())
        .await?;
    Ok(spans > 0)
}

/// A kept document as JSON; `None` where its bytes are gone, cut, too many, or no JSON.
async fn kept_json(w: &mut Writing, document: i64) -> Result<Option<Value>> {
    let packed: Option<Option<Vec<u8>>> =
        sqlx::query_scalar("SELECT body FROM document WHERE id = $1 AND cut = 0 AND raw_len <= $2")
            .bind(document)
            .bind(LARGEST)
            .fetch_optional(w.on())
            .await?;
    match packed.flatten() {
        Some(packed) => Ok(json(&unpack("document", &packed)?)),
        None => Ok(None),
    }
}

fn json(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

/// Whether so many documents of a surface were written out within a day that of another only the hash is kept.
pub(crate) async fn has_enough(w: &mut Writing, surface: i64, at_s: i64) -> Result<bool> {
    let today: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM doc_span WHERE surface_id = $1 AND from_s > $2")
        .bind(surface)
        .bind(at_s - DAY_S)
        .fetch_one(w.on())
        .await?;
    Ok(today >= MOST_A_DAY)
}

/// A place that differs at every fetch and so does not count as a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VolatilePlace {
    /// The surface whose documents have it.
    pub surface_id: i64,
    /// What kind of surface that is.
    pub kind: SurfaceKind,
    /// Its address.
    pub url: String,
    /// JSON Pointer.
    pub pointer: String,
    /// Since when it does not count, in Unix seconds.
    pub marked_s: i64,
}

/// Volatile places that are shown of one target.
const MOST_SHOWN: i64 = 100;

pub(crate) const PLACES_OF_TARGET: &str = "
SELECT DISTINCT s.id, s.kind, s.url, v.pointer, v.marked_s
FROM target_surface ts
JOIN surface s ON s.id = ts.surface_id
JOIN volatile_pointer v ON v.surface_id = ts.surface_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL AND v.marked_s IS NOT NULL
ORDER BY s.id, v.pointer
LIMIT $2";

impl Store {
    /// The volatile places in the documents that a target shows, at most a hundred.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn target_volatile_places(&self, target: TargetId) -> Result<Vec<VolatilePlace>> {
        let rows = sqlx::query(PLACES_OF_TARGET).bind(target.0).bind(MOST_SHOWN).fetch_all(&self.pools.reader).await?;
        let place = |row: &sqlx::any::AnyRow| {
            Ok(VolatilePlace {
                surface_id: row.try_get(0)?,
                kind: word("surface", row.try_get(1)?)?,
                url: row.try_get(2)?,
                pointer: row.try_get(3)?,
                marked_s: row.try_get(4)?,
            })
        };
        rows.iter().map(place).collect()
    }

    /// The places of a surface's document that differ at every fetch and so do not count as a change, as JSON Pointers with
    /// the moment since when (Unix seconds).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn volatile_places(&self, surface: SurfaceId) -> Result<Vec<(String, i64)>> {
        let rows = sqlx::query(
            "SELECT pointer, marked_s FROM volatile_pointer
             WHERE surface_id = $1 AND marked_s IS NOT NULL
             ORDER BY pointer",
        )
        .bind(surface.0)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// A place counts as part of the document again, from the next fetch on. Whether it was volatile.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_place_again(&self, surface: SurfaceId, pointer: &str) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query("DELETE FROM volatile_pointer WHERE surface_id = $1 AND pointer = $2")
            .bind(surface.0)
            .bind(pointer)
            .execute(w.on())
            .await?;
        w.commit().await?;
        Ok(done.rows_affected() > 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_that_differ_are_named_where_nothing_else_does() {
        let before = json!({"at": "1", "skills": [{"id": "a", "n/m": 1}], "version": "1.0"});
        let later = json!({"at": "2", "skills": [{"id": "a", "n/m": 2}], "version": "1.0"});
        assert_eq!(differing(&before, &later), Some(vec!["/at".to_owned(), "/skills/0/n~1m".to_owned()]));
        assert_eq!(differing(&before, &before), Some(vec![]));
        let mut deployed = later.clone();
        deployed["version"] = json!("1.1");
        assert_eq!(differing(&before, &deployed), None, "another version is another document");
        let grown = json!({"at": "2", "skills": [], "version": "1.0"});
        assert_eq!(differing(&before, &grown), None);
        assert_eq!(differing(&json!({"a": 1}), &json!({"a": "1"})), None);
        let all = |n: i64| json!({"a": n, "b": n, "c": n, "d": n, "e": n});
        assert_eq!(differing(&all(1), &all(2)), None, "that many places are a new document");
    }
}
