//! Surfaces: what is due, who works on it, and what the crawler has to know before it asks again.

use std::collections::HashSet;

use sqlx::Row;

use crate::Store;
use crate::error::{Error, Result};
use crate::ids::{DocumentId, EvalId, ListingId, RulesetId, SurfaceId, TargetId};
use crate::reach::{OutcomeClass, Reach};
use crate::rows::{word, word_or_none};
use crate::verify::Episode;
use crate::words::{Headline, Known, ReachState, SurfaceKind};

/// A surface that somebody should look at now, leased to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSurface {
    /// Its number.
    pub id: SurfaceId,
    /// What it is.
    pub kind: SurfaceKind,
    /// Where it is fetched.
    pub url: String,
    /// Where its document comes from.
    pub from: Feed,
    /// What it served last.
    pub document: Option<DocumentId>,
    /// Validators of the last 200.
    pub validators: Validators,
    /// A target that shows it, for settings that belong to targets.
    pub target: Option<TargetId>,
    /// Seconds between checks, where its target says so.
    pub interval_s: Option<i64>,
    /// When it was due.
    pub due_s: i64,
    /// This look is to confirm what the one before brought.
    pub is_verification: bool,
    /// The rules it was judged with last; `None`: it never was.
    pub ruleset: Option<RulesetId>,
}

/// Where the document of a surface comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// It is fetched by itself.
    Fetched,
    /// It is an entry of a registry's list and is already kept.
    Listed(DocumentId),
}

/// What waits for another look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unconfirmed {
    /// Findings that fired and are not confirmed.
    pub pending: i64,
    /// Findings that no longer fire, which is not confirmed.
    pub clearing: i64,
    /// When a surface is looked at next out of turn, in Unix seconds; `None`: none is.
    pub next_look_s: Option<i64>,
}

/// What a conditional request sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag` of the last 200.
    pub etag: Option<String>,
    /// `Last-Modified` of the last 200.
    pub last_modified: Option<String>,
}

/// A surface as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surface {
    /// Its number.
    pub id: SurfaceId,
    /// What it is.
    pub kind: SurfaceKind,
    /// Where it is fetched.
    pub url: String,
    /// The listing whose document this is.
    pub listing: Option<ListingId>,
    /// No target names it any more.
    pub retired_s: Option<i64>,
    /// What it served last.
    pub document: Option<DocumentId>,
    /// The revision it was judged as.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// The one word.
    pub headline: Headline,
    /// How it can be reached.
    pub reach: Reach,
    /// Open findings that break clients.
    pub n_blocking: i64,
    /// Open errors.
    pub n_error: i64,
    /// Open warnings.
    pub n_warn: i64,
    /// Open hints.
    pub n_info: i64,
    /// Open findings tagged security.
    pub n_security: i64,
    /// Last answer.
    pub last_ok_s: Option<i64>,
    /// Last attempt.
    pub last_attempt_s: Option<i64>,
    /// Last judgement.
    pub last_evaluated_s: Option<i64>,
    /// When it is due.
    pub next_due_s: Option<i64>,
}

/// The statement that leases what is due: of each host only the next few, so that the queue of one platform never delays
/// anybody else. Only the oldest [`WINDOW`] times the limit are looked at.
macro_rules! lease_due {
    ($of_these:literal) => {
        concat!(
            "INSERT INTO lease (kind, subject_id, holder, taken_s, until_s)
             SELECT 'surface', due.id, $3, $1, $4
             FROM (
                 SELECT old.id, old.next_due_s,
                        ROW_NUMBER() OVER (
                            PARTITION BY COALESCE(old.host_id, -old.id) ORDER BY old.next_due_s, old.id
                        ) + COALESCE(busy.n, 0) AS place
                 FROM (
                     SELECT surface.id, surface.host_id, surface.next_due_s
                     FROM surface
                     WHERE surface.next_due_s <= $1",
            $of_these,
            "          AND NOT EXISTS (
                           SELECT 1 FROM lease
                           WHERE lease.kind = 'surface' AND lease.subject_id = surface.id AND lease.until_s > $1
                       )
                     ORDER BY surface.next_due_s, surface.id
                     LIMIT $6
                 ) AS old
                 LEFT JOIN (
                     SELECT held.host_id, COUNT(*) AS n
                     FROM lease
                     JOIN surface AS held ON held.id = lease.subject_id
                     WHERE lease.kind = 'surface' AND lease.until_s > $1 AND held.host_id IS NOT NULL
                     GROUP BY held.host_id
                 ) AS busy ON busy.host_id = old.host_id
             ) AS due
             WHERE due.place <= $5
             ORDER BY due.next_due_s, due.id
             LIMIT $2
             ON CONFLICT (kind, subject_id) DO UPDATE SET
                 holder = excluded.holder, taken_s = excluded.taken_s, until_s = excluded.until_s
             WHERE lease.until_s <= excluded.taken_s
             RETURNING subject_id"
        )
    };
}

/// How many of the oldest due surfaces are looked at for every one that may be taken.
const WINDOW: i64 = 20;

/// How much is taken at a time, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Take {
    /// Surfaces at most.
    pub limit: u32,
    /// Of one host at most, those that are being looked at included.
    pub per_host: u32,
    /// End of the leases.
    pub until_s: i64,
}

/// A surface whose last judgement was made by other rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedOtherwise {
    /// Its number.
    pub id: SurfaceId,
    /// What it is.
    pub kind: SurfaceKind,
    /// Where it is fetched.
    pub url: String,
    /// What it served last.
    pub document: Option<DocumentId>,
    /// That judgement.
    pub eval: EvalId,
    /// When it is due.
    pub next_due_s: Option<i64>,
}

impl Store {
    /// Surfaces that were last judged by other rules than these, from behind one on, in the order of their numbers.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn judged_otherwise(
        &self,
        ruleset: crate::ids::RulesetId,
        after: SurfaceId,
        limit: u32,
    ) -> Result<Vec<JudgedOtherwise>> {
        let rows = sqlx::query(
            "SELECT surface.id, surface.kind, surface.url, surface.document_id, surface.eval_id, surface.next_due_s
             FROM surface
             JOIN eval ON eval.id = surface.eval_id
             WHERE surface.id > $2 AND surface.retired_s IS NULL AND eval.ruleset_id <> $1
             ORDER BY surface.id
             LIMIT $3",
        )
        .bind(ruleset.0)
        .bind(after.0)
        .bind(i64::from(limit))
        .fetch_all(&self.pools.reader)
        .await?;
        let one = |row: &sqlx::any::AnyRow| {
            Ok(JudgedOtherwise {
                id: SurfaceId(row.try_get(0)?),
                kind: word("surface", row.try_get(1)?)?,
                url: row.try_get(2)?,
                document: row.try_get::<Option<i64>, _>(3)?.map(DocumentId),
                eval: EvalId(row.try_get(4)?),
                next_due_s: row.try_get(5)?,
            })
        };
        rows.iter().map(one).collect()
    }

    /// How many there are.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_judged_otherwise(&self, ruleset: crate::ids::RulesetId) -> Result<i64> {
        let n = sqlx::query_scalar(
            "SELECT COUNT(*)
             FROM surface
             JOIN eval ON eval.id = surface.eval_id
             WHERE surface.retired_s IS NULL AND eval.ruleset_id <> $1",
        )
        .bind(ruleset.0)
        .fetch_one(&self.pools.reader)
        .await?;
        Ok(n)
    }

    /// Takes surfaces that are due and leases them to `holder`: the urgent ones first, then the oldest. Those leased to
    /// others who are still at work are left alone.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn due_surfaces(&self, now_s: i64, take: Take, holder: &str) -> Result<Vec<DueSurface>> {
        let Take { limit, per_host, until_s } = take;
        let mut w = self.pools.write().await?;
        let mut taken = Vec::new();
        for statement in [lease_due!(" AND surface.urgent > 0"), lease_due!("")] {
            let room = i64::from(limit) - crate::rows::count(taken.len());
            let more = sqlx::query(statement)
                .bind(now_s)
                .bind(room)
                .bind(holder)
                .bind(until_s)
                .bind(i64::from(per_host))
                .bind(room * WINDOW)
                .fetch_all(w.on())
                .await?;
            taken.extend(more);
        }
        let mut ids = HashSet::with_capacity(taken.len());
        for row in taken {
            ids.insert(SurfaceId(row.try_get(0)?));
        }
        // The holder may have others from before, taken in the same second.
        let rows = sqlx::query(
            "SELECT surface.id, surface.kind, surface.url, surface.document_id, surface.etag,
                    surface.last_modified, surface.interval_s, surface.next_due_s, listing.document_id,
                    (SELECT MIN(target_surface.target_id) FROM target_surface
                     WHERE target_surface.surface_id = surface.id AND target_surface.removed_s IS NULL),
                    surface.verifying, surface.verify_from_s, eval.ruleset_id
             FROM lease
             JOIN surface ON surface.id = lease.subject_id
             LEFT JOIN eval ON eval.id = surface.eval_id
             LEFT JOIN listing ON listing.id = surface.listing_id
             WHERE lease.kind = 'surface' AND lease.holder = $1 AND lease.taken_s = $2",
        )
        .bind(holder)
        .bind(now_s)
        .fetch_all(w.on())
        .await?;
        let mut due = Vec::with_capacity(ids.len());
        for row in rows {
            let surface = due_surface(&row, now_s)?;
            if ids.contains(&surface.id) {
                due.push(surface);
            }
        }
        w.commit().await?;
        due.sort_by_key(|surface| (surface.due_s, surface.id));
        Ok(due)
    }

    /// Gives surfaces back unlooked at; they are due again at once.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release(&self, surfaces: &[SurfaceId], holder: &str) -> Result<()> {
        let mut w = self.pools.write().await?;
        for surface in surfaces {
            sqlx::query("DELETE FROM lease WHERE kind = 'surface' AND subject_id = $1 AND holder = $2")
                .bind(surface.0)
                .bind(holder)
                .execute(w.on())
                .await?;
        }
        w.commit().await
    }

    /// Says when a surface is due next; `None` takes it off the schedule.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_due(&self, surface: SurfaceId, next_due_s: Option<i64>) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("UPDATE surface SET next_due_s = $2 WHERE id = $1")
            .bind(surface.0)
            .bind(next_due_s)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// Whether any surface is due that nobody works on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_anything_due(&self, now_s: i64) -> Result<bool> {
        let found: Option<i64> = sqlx::query_scalar(
            "SELECT surface.id FROM surface
             WHERE surface.next_due_s <= $1
               AND NOT EXISTS (
                   SELECT 1 FROM lease
                   WHERE lease.kind = 'surface' AND lease.subject_id = surface.id AND lease.until_s > $1
               )
             LIMIT 1",
        )
        .bind(now_s)
        .fetch_optional(&self.pools.reader)
        .await?;
        Ok(found.is_some())
    }

    /// How many surfaces are due, leased ones included.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_due(&self, now_s: i64) -> Result<i64> {
        let n = sqlx::query_scalar("SELECT COUNT(*) FROM surface WHERE next_due_s <= $1")
            .bind(now_s)
            .fetch_one(&self.pools.reader)
            .await?;
        Ok(n)
    }

    /// When the next surface is due; `None`: none is scheduled.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_due(&self) -> Result<Option<i64>> {
        let at = sqlx::query_scalar("SELECT MIN(next_due_s) FROM surface WHERE next_due_s IS NOT NULL")
            .fetch_one(&self.pools.reader)
            .await?;
        Ok(at)
    }

    /// Findings that another look would settle: seen and not yet confirmed, or gone and not yet confirmed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_unconfirmed(&self) -> Result<Unconfirmed> {
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM finding WHERE state IN ('pending', 'clearing') AND state = 'pending'),
                    (SELECT COUNT(*) FROM finding WHERE state IN ('pending', 'clearing') AND state = 'clearing'),
                    (SELECT MIN(next_due_s) FROM surface WHERE verifying > 0)",
        )
        .fetch_one(&self.pools.reader)
        .await?;
        Ok(Unconfirmed { pending: row.try_get(0)?, clearing: row.try_get(1)?, next_look_s: row.try_get(2)? })
    }

    /// Gives every listing that waits for nothing but a change a turn within the week, so that what stands behind it is
    /// looked at. Gives their number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn look_behind_listings(&self, now_s: i64) -> Result<u64> {
        // Neighbours are strewn over the week: their number is multiplied by a prime.
        const WEEK_S: i64 = 7 * 86_400;
        let mut w = self.pools.write().await?;
        let done = sqlx::query(
            "UPDATE surface SET next_due_s = $1 + CAST(id AS BIGINT) * 48271 % $2
             WHERE next_due_s IS NULL AND listing_id IS NOT NULL AND retired_s IS NULL AND paused = 0",
        )
        .bind(now_s)
        .bind(WEEK_S)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(done.rows_affected())
    }

    /// Makes every surface due whose last judgement was made by other rules than these, so that a new ruleset reaches
    /// all. Only those whose document is at hand (entries of a registry) unless `fetched_too`. Gives their number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rejudge_under(&self, ruleset: crate::ids::RulesetId, fetched_too: bool, now_s: i64) -> Result<u64> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query(
            "UPDATE surface SET next_due_s = $2
             WHERE retired_s IS NULL
               AND (next_due_s IS NULL OR next_due_s > $2)
               AND paused = 0
               AND (listing_id IS NOT NULL OR $3 = 1)
               AND (SELECT eval.ruleset_id FROM eval WHERE eval.id = surface.eval_id) <> $1",
        )
        .bind(ruleset.0)
        .bind(now_s)
        .bind(i64::from(fetched_too))
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(done.rows_affected())
    }

    /// One surface.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn surface(&self, id: SurfaceId) -> Result<Surface> {
        let row = sqlx::query(
            "SELECT id, kind, url, listing_id, retired_s, document_id, profile, known, headline,
                    reach, reach_reason, reach_since_s, streak, streak_outcome, streak_since_s,
                    n_blocking, n_error, n_warn, n_info, n_security,
                    last_ok_s, last_attempt_s, last_evaluated_s, next_due_s
             FROM surface
             WHERE id = $1",
        )
        .bind(id.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        surface(&row.ok_or_else(|| Error::Missing { what: "surface", id: id.to_string() })?)
    }

    /// Whether somebody named the surface itself, and it was not only found in a document.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_named_itself(&self, id: SurfaceId) -> Result<bool> {
        let target: Option<i64> = sqlx::query_scalar(
            "SELECT target_id
             FROM target_surface
             WHERE surface_id = $1 AND role = 'main' AND removed_s IS NULL
             LIMIT 1",
        )
        .bind(id.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        Ok(target.is_some())
    }

    /// The surface of this kind at this address; `None`: nobody named it yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn surface_at(&self, kind: SurfaceKind, url: &str) -> Result<Option<SurfaceId>> {
        let id: Option<i64> = sqlx::query_scalar("SELECT id FROM surface WHERE kind = $1 AND url = $2")
            .bind(kind.as_str())
            .bind(url)
            .fetch_optional(&self.pools.reader)
            .await?;
        Ok(id.map(SurfaceId))
    }

    /// What a conditional request to this surface sends; empty where no 200 carried any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn validators(&self, id: SurfaceId) -> Result<Validators> {
        let row = sqlx::query("SELECT etag, last_modified FROM surface WHERE id = $1")
            .bind(id.0)
            .fetch_optional(&self.pools.reader)
            .await?;
        let Some(row) = row else { return Ok(Validators::default()) };
        Ok(Validators { etag: row.try_get(0)?, last_modified: row.try_get(1)? })
    }
}

fn due_surface(row: &sqlx::any::AnyRow, now_s: i64) -> Result<DueSurface> {
    let listed: Option<i64> = row.try_get(8)?;
    let episode = Episode::of(row.try_get(10)?, row.try_get(11)?);
    Ok(DueSurface {
        id: SurfaceId(row.try_get(0)?),
        kind: word("surface", row.try_get(1)?)?,
        url: row.try_get(2)?,
        document: row.try_get::<Option<i64>, _>(3)?.map(DocumentId),
        validators: Validators { etag: row.try_get(4)?, last_modified: row.try_get(5)? },
        interval_s: row.try_get(6)?,
        due_s: row.try_get(7)?,
        from: listed.map_or(Feed::Fetched, |document| Feed::Listed(DocumentId(document))),
        target: row.try_get::<Option<i64>, _>(9)?.map(TargetId),
        is_verification: episode.is_some_and(|episode| episode.is_out_of_turn(now_s)),
        ruleset: row.try_get::<Option<i64>, _>(12)?.map(RulesetId),
    })
}

fn surface(row: &sqlx::any::AnyRow) -> Result<Surface> {
    Ok(Surface {
        id: SurfaceId(row.try_get(0)?),
        kind: word("surface", row.try_get(1)?)?,
        url: row.try_get(2)?,
        listing: row.try_get::<Option<i64>, _>(3)?.map(ListingId),
        retired_s: row.try_get(4)?,
        document: row.try_get::<Option<i64>, _>(5)?.map(DocumentId),
        profile: row.try_get(6)?,
        known: word_or_none("surface", row.try_get(7)?)?,
        headline: word("surface", row.try_get(8)?)?,
        reach: Reach {
            state: word::<ReachState>("surface", row.try_get(9)?)?,
            reason: row.try_get(10)?,
            since_s: row.try_get(11)?,
            streak: row.try_get(12)?,
            streak_of: word_or_none::<OutcomeClass>("surface", row.try_get(13)?)?,
            streak_since_s: row.try_get(14)?,
        },
        n_blocking: row.try_get(15)?,
        n_error: row.try_get(16)?,
        n_warn: row.try_get(17)?,
        n_info: row.try_get(18)?,
        n_security: row.try_get(19)?,
        last_ok_s: row.try_get(20)?,
        last_attempt_s: row.try_get(21)?,
        last_evaluated_s: row.try_get(22)?,
        next_due_s: row.try_get(23)?,
    })
}
