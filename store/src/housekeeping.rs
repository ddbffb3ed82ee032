//! Letting go of what is old, in steps so small that whoever records hardly waits.
//!
//! Only what a setting of [`Retention`] names is ever let go: single probes (their days stay, in `surface_month`), rows of
//! passes, events, conversations that prove nothing, leases of the past, and the bytes of most documents that are served no
//! more. Spans, findings and the numbers by day are history and have no age here; only spans of reach that lasted some
//! minutes are joined to the one before, with their number. What is still pointed at stays whatever its age, and so does the newest of everything that
//! is numbered, because numbers are counted on from it.
//!
//! A step finds its rows on a reading connection and deletes them by key in one short transaction. A dry run does the
//! same without the second half.

use std::collections::HashSet;
use std::path::PathBuf;

use plumbline_rules::{settings, words};
use sqlx::{AssertSqlSafe, Row};

use crate::Store;
use crate::dialect::{Backend, Writing};
use crate::error::Result;
use crate::rows::{DAY_S, in_statements, places};

settings! {
    /// How long things are kept, in days. Spans, findings and the numbers by day are kept for ever.
    pub struct Retention {
        /// Every single probe. What a day came to is kept for ever.
        pub probe_days: u32 = 14,
        /// Passes of the crawler with their faults, and the walks of registries with what was found. The newest of each
        /// source stay.
        pub crawl_days: u32 = 90,
        /// Events: what feeds, alerts and the pages of targets tell as news. Spans keep the same facts for ever.
        pub event_days: u32 = 400,
        /// Recorded conversations in which nothing began or ended; the newest of each surface stays.
        pub session_days: u32 = 90,
        /// The bytes of documents that are served no more. Those that opened or closed a finding, those that registries
        /// list, and the first of each week stay; of the others the hash and when they were served stay.
        pub document_days: u32 = 90,
        /// Spans of reach of less than ten minutes by themselves; after that they are joined to the one before.
        pub reach_days: u32 = 365,
        /// What fired once and was never confirmed; it is kept for the flips of a finding that comes and goes.
        pub refuted_days: u32 = 90,
        /// Leases that have run out.
        pub lease_days: u32 = 1,
        /// The sizes of tables.
        pub size_days: u32 = 400,
        /// Who changed what.
        pub audit_days: u32 = 730,
    }
}

words! {
    /// One kind of thing that is let go.
    pub enum Job {
        /// Single probes.
        Probes = "probes",
        /// Walks of registries.
        Walks = "walks",
        /// Passes, with their faults.
        Crawls = "crawls",
        /// Events.
        Events = "events",
        /// Conversations.
        Sessions = "sessions",
        /// Bytes of documents.
        Documents = "documents",
        /// Short spans of reach.
        Reach = "short spans of reach",
        /// Suspicions that another look refuted.
        Refuted = "refuted suspicions",
        /// Leases.
        Leases = "leases",
        /// Sizes of tables.
        Sizes = "sizes",
        /// Who changed what.
        Audit = "audit",
    }
}

/// Rows that one transaction deletes: some milliseconds of work.
const STEP: usize = 500;
/// The same for walks: for each of them the database reads the list of what registries hold.
const STEP_OF_WALKS: usize = 4;
/// A span of reach shorter than this may be joined to the one before, in seconds.
const SHORT_REACH_S: i64 = 600;
/// Of the documents of a surface the first of each week stays, in seconds.
const WEEK_S: i64 = 7 * DAY_S;
/// Pages given back to the system in one step (2 MB).
const STEP_OF_PAGES: u32 = 256;
/// Free pages left in the file for what comes next (8 MB).
const SPARE_PAGES: i64 = 1024;
/// A write-ahead log longer than this is emptied, in bytes.
pub const LONGEST_WAL: u64 = 64 << 20;

/// What names a row: one number, or two where the table needs them.
type Key = (i64, i64);

/// Rows to let go, and where the search goes on; `None`: there is no more.
struct Found {
    rows: Vec<Key>,
    next: Option<Key>,
}

/// One kind of thing being let go, and how far that has come.
#[derive(Debug, Clone)]
pub struct Sweep {
    job: Job,
    /// Older than this, in the unit of the job's column, goes.
    before: i64,
    kept: Kept,
    /// Where the search goes on; `None`: it is over.
    position: Option<Key>,
    rows: u64,
}

impl Sweep {
    /// Rows so far. A crawl counts as one, however many faults it had; so does a day of sizes.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// What a checkpoint came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Bytes of the write-ahead log before it.
    pub wal_bytes: u64,
    /// The log was to be emptied, not only copied.
    pub was_emptied: bool,
}

/// Numbers of rows that stay whatever their age: the newest of their kind, or pointed at.
type Kept = HashSet<i64>;

impl Store {
    /// Begins to let go of everything of one kind that is past its time now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_sweep(&self, job: Job, retention: &Retention, now_s: i64) -> Result<Sweep> {
        let before = before(job, retention, now_s);
        let kept = match job {
            Job::Walks => self.kept_walks().await?,
            Job::Crawls => self.kept_crawls(before).await?,
            Job::Events => self.kept_events().await?,
            Job::Documents => self.kept_documents().await?,
            Job::Probes | Job::Sessions | Job::Reach | Job::Refuted | Job::Leases | Job::Sizes | Job::Audit => {
                Kept::new()
            }
        };
        Ok(Sweep { job, before, kept, position: Some((i64::MIN, i64::MIN)), rows: 0 })
    }

    /// Lets go of one step's rows in one transaction. Whether there may be more.
    ///
    /// # Errors
    /// When the database fails; then none of the step's rows is gone.
    pub async fn sweep_step(&self, sweep: &mut Sweep) -> Result<bool> {
        let rows = self.look_step(sweep).await?;
        if !rows.is_empty() {
            let mut w = self.pools.write().await?;
            if sweep.job == Job::Probes {
                delete_probes(&mut w, &rows).await?;
            } else {
                for row in rows {
                    delete(&mut w, sweep.job, row).await?;
                }
            }
            w.commit().await?;
        }
        Ok(sweep.position.is_some())
    }

    /// How many rows would be let go now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sweepable(&self, job: Job, retention: &Retention, now_s: i64) -> Result<u64> {
        let mut sweep = self.begin_sweep(job, retention, now_s).await?;
        while sweep.position.is_some() {
            self.look_step(&mut sweep).await?;
        }
        Ok(sweep.rows)
    }

    /// The next step's rows; the sweep goes on behind them.
    async fn look_step(&self, sweep: &mut Sweep) -> Result<Vec<Key>> {
        let Some(after) = sweep.position else { return Ok(Vec::new()) };
        let (before, kept) = (sweep.before, &sweep.kept);
        let found = match sweep.job {
            Job::Probes => self.old_probes(before, after).await,
            Job::Sizes => self.old_sizes(before).await,
            Job::Walks => self.old_walks(before, kept, after).await,
            Job::Crawls => self.old_crawls(before, kept, after).await,
            Job::Events => self.old_events(before, kept, after).await,
            Job::Sessions => self.old_sessions(before, after).await,
            Job::Documents => self.old_documents(before, kept, after).await,
            Job::Reach => self.short_reach(before, after).await,
            Job::Refuted => self.old_refuted(before, after).await,
            Job::Leases => self.old_leases(before, after).await,
            Job::Audit => self.old_audit(before, after).await,
        }?;
        sweep.rows += found.rows.len() as u64;
        sweep.position = found.next;
        Ok(found.rows)
    }

    async fn old_probes(&self, before_day: i64, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT day, surface_id
             FROM probe_day
             WHERE day < $1 AND (day > $2 OR (day = $2 AND surface_id > $3))
             ORDER BY day, surface_id
             LIMIT $4",
        )
        .bind(before_day)
        .bind(after.0)
        .bind(after.1)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        found(&rows, STEP)
    }

    /// There is one row a day and table: all of a day are let go at once.
    async fn old_sizes(&self, before_day: i64) -> Result<Found> {
        let rows = sqlx::query("SELECT DISTINCT day, 0 FROM table_size WHERE day < $1 ORDER BY day")
            .bind(before_day)
            .fetch_all(&self.pools.reader)
            .await?;
        found(&rows, usize::MAX)
    }

    async fn old_leases(&self, before_s: i64, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT until_s, subject_id
             FROM lease
             WHERE until_s < $1 AND (until_s > $2 OR (until_s = $2 AND subject_id > $3))
             ORDER BY until_s, subject_id
             LIMIT $4",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(after.1)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        found(&rows, STEP)
    }

    /// The newest row stays: numbers are counted on from it.
    async fn old_audit(&self, before_s: i64, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT at_s, id
             FROM audit
             WHERE at_s < $1 AND (at_s > $2 OR (at_s = $2 AND id > $3)) AND id < (SELECT MAX(newest.id) FROM audit newest)
             ORDER BY at_s, id
             LIMIT $4",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(after.1)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        found(&rows, STEP)
    }

    async fn old_walks(&self, before_s: i64, kept: &Kept, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT id, CASE WHEN page_s < $1 AND state <> 'running' THEN 1 ELSE 0 END
             FROM walk
             WHERE id > $2
             ORDER BY id
             LIMIT $3",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        old_of(&rows, kept, STEP_OF_WALKS)
    }

    async fn old_crawls(&self, before_s: i64, kept: &Kept, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT id, CASE WHEN COALESCE(finished_s, started_s) < $1 AND state <> 'running' THEN 1 ELSE 0 END
             FROM crawl
             WHERE id > $2
             ORDER BY id
             LIMIT $3",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        old_of(&rows, kept, STEP)
    }

    async fn old_events(&self, before_s: i64, kept: &Kept, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT id, CASE WHEN at_s < $1 THEN 1 ELSE 0 END
             FROM event
             WHERE id > $2
               AND id < (SELECT MAX(id) FROM event)
               AND id <= (SELECT COALESCE(MIN(event_id), (SELECT MAX(id) FROM event)) FROM event_cursor)
             ORDER BY id
             LIMIT $3",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        old_of(&rows, kept, STEP)
    }

    /// A span names its conversations. One from before they were noted begins with the first of the observations that
    /// confirm it, so that its conversation may be a little younger.
    async fn old_sessions(&self, before_s: i64, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT probe_session.id, 0
             FROM probe_session
             WHERE probe_session.is_latest = 0 AND probe_session.at_s < $1 AND probe_session.id > $2
               AND EXISTS (
                   SELECT 1 FROM probe_session later
                   WHERE later.surface_id = probe_session.surface_id AND later.id > probe_session.id
               )
               AND NOT EXISTS (
                   SELECT 1
                   FROM finding
                   JOIN finding_span ON finding_span.finding_id = finding.id
                   WHERE finding.surface_id = probe_session.surface_id
                     AND (finding_span.open_session = probe_session.id
                          OR finding_span.close_session = probe_session.id
                          OR finding_span.from_s BETWEEN probe_session.at_s - 86400 AND probe_session.at_s
                          OR finding_span.to_s BETWEEN probe_session.at_s - 86400 AND probe_session.at_s)
               )
             ORDER BY probe_session.id
             LIMIT $3",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        found(&rows, STEP)
    }

    /// Findings that never opened and have not moved for long, the earliest move first.
    async fn old_refuted(&self, before_s: i64, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT changed_s, id
             FROM finding
             WHERE changed_s < $1 AND (changed_s > $2 OR (changed_s = $2 AND id < $3))
               AND state = 'resolved' AND opens = 0 AND id < (SELECT MAX(newest.id) FROM finding newest)
               AND NOT EXISTS (SELECT 1 FROM finding_note WHERE finding_note.finding_id = finding.id)
             ORDER BY changed_s, id DESC
             LIMIT $4",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(after.1)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        found(&rows, STEP)
    }

    /// Bytes of documents that no surface has served for long, no registry lists, and that are not the first of their week.
    async fn old_documents(&self, before_s: i64, kept: &Kept, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT document.id, 1
             FROM document
             WHERE document.id > $2 AND document.body IS NOT NULL AND document.first_seen_s < $1
               AND EXISTS (SELECT 1 FROM doc_span WHERE doc_span.document_id = document.id)
               AND NOT EXISTS (SELECT 1 FROM surface WHERE surface.document_id = document.id)
               AND NOT EXISTS (SELECT 1 FROM listing WHERE listing.document_id = document.id)
               AND NOT EXISTS (
                   SELECT 1
                   FROM doc_span served
                   WHERE served.document_id = document.id
                     AND (served.to_s IS NULL OR served.to_s >= $1
                          OR NOT EXISTS (
                              SELECT 1 FROM doc_span earlier
                              WHERE earlier.surface_id = served.surface_id AND earlier.from_s < served.from_s
                                AND earlier.from_s >= served.from_s / $4 * $4
                          ))
               )
             ORDER BY document.id
             LIMIT $3",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(STEP as i64)
        .bind(WEEK_S)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut found = found(&rows, STEP)?;
        found.rows.retain(|(id, _)| !kept.contains(id));
        Ok(found)
    }

    /// Closed spans of reach that are old and short and have one before them.
    async fn short_reach(&self, before_s: i64, after: Key) -> Result<Found> {
        let rows = sqlx::query(
            "SELECT surface_id, from_s
             FROM reach_span
             WHERE (surface_id > $2 OR (surface_id = $2 AND from_s > $3))
               AND to_s < $1 AND to_s - from_s < $4
               AND EXISTS (
                   SELECT 1 FROM reach_span earlier
                   WHERE earlier.surface_id = reach_span.surface_id AND earlier.to_s = reach_span.from_s
                     AND earlier.from_s < reach_span.from_s
               )
             ORDER BY surface_id, from_s
             LIMIT $5",
        )
        .bind(before_s)
        .bind(after.0)
        .bind(after.1)
        .bind(SHORT_REACH_S)
        .bind(STEP as i64)
        .fetch_all(&self.pools.reader)
        .await?;
        found(&rows, STEP)
    }

    /// Documents in which a finding began or ended.
    async fn kept_documents(&self) -> Result<Kept> {
        self.numbers(
            "SELECT open_doc FROM finding_span WHERE open_doc IS NOT NULL
             UNION SELECT close_doc FROM finding_span WHERE close_doc IS NOT NULL",
        )
        .await
    }

    /// The newest walk of each source, its newest complete full one, and those that listings were last seen in.
    async fn kept_walks(&self) -> Result<Kept> {
        self.numbers(
            "SELECT DISTINCT walk_id FROM listing
             UNION SELECT MAX(id) FROM walk GROUP BY source_id
             UNION SELECT MAX(id) FROM walk WHERE complete = 1 GROUP BY source_id, is_full",
        )
        .await
    }

    /// The newest crawl of each source and kind, and those that a walk belongs to which stays.
    async fn kept_crawls(&self, before_s: i64) -> Result<Kept> {
        let mut crawls = self.numbers("SELECT MAX(id) FROM crawl GROUP BY source_id, kind").await?;
        let kept_walks = self.kept_walks().await?;
        let walks = sqlx::query(
            "SELECT id, crawl_id, CASE WHEN page_s < $1 AND state <> 'running' THEN 1 ELSE 0 END FROM walk",
        )
        .bind(before_s)
        .fetch_all(&self.pools.reader)
        .await?;
        for walk in walks {
            let (id, crawl, is_old): (i64, i64, i64) = (walk.try_get(0)?, walk.try_get(1)?, walk.try_get(2)?);
            if is_old == 0 || kept_walks.contains(&id) {
                crawls.insert(crawl);
            }
        }
        Ok(crawls)
    }

    /// Events that an alert points at which has not ended.
    async fn kept_events(&self) -> Result<Kept> {
        self.numbers(
            "SELECT opened_event FROM alert WHERE ended_s IS NULL
             UNION SELECT last_event FROM alert WHERE ended_s IS NULL",
        )
        .await
    }

    async fn numbers(&self, statement: &'static str) -> Result<Kept> {
        let rows = sqlx::query(statement).fetch_all(&self.pools.reader).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Gives pages that hold nothing back to the system, a few; some are left for what comes next. Gives how many more
    /// there are to give. PostgreSQL does this by itself.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn vacuum_step(&self) -> Result<u64> {
        if self.pools.backend == Backend::Postgres || self.free_pages().await? <= SPARE_PAGES {
            return Ok(0);
        }
        sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA incremental_vacuum({STEP_OF_PAGES})")))
            .execute(&self.pools.writer)
            .await?;
        Ok(u64::try_from(self.free_pages().await? - SPARE_PAGES).unwrap_or(0))
    }

    async fn free_pages(&self) -> Result<i64> {
        Ok(sqlx::query_scalar("SELECT freelist_count FROM pragma_freelist_count").fetch_one(&self.pools.writer).await?)
    }

    /// Copies the write-ahead log into the file without making anybody wait, or empties it once it is longer than so many
    /// bytes ([`LONGEST_WAL`]). `None` on PostgreSQL, which does this by itself.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn checkpoint(&self, longest_wal: u64) -> Result<Option<Checkpoint>> {
        let Some(wal_bytes) = self.wal_bytes() else { return Ok(None) };
        let was_emptied = wal_bytes > longest_wal;
        let how = if was_emptied { "PRAGMA wal_checkpoint(TRUNCATE)" } else { "PRAGMA wal_checkpoint(PASSIVE)" };
        sqlx::query(how).fetch_all(&self.pools.writer).await?;
        Ok(Some(Checkpoint { wal_bytes, was_emptied }))
    }

    /// Bytes of the write-ahead log; `None` on PostgreSQL.
    #[must_use]
    pub fn wal_bytes(&self) -> Option<u64> {
        let mut wal = self.pools.file.clone()?.into_os_string();
        wal.push("-wal");
        Some(std::fs::metadata(PathBuf::from(wal)).map_or(0, |file| file.len()))
    }

    /// Lets the database look over what it knows of its own tables, where that has changed. PostgreSQL does this by itself.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn optimize(&self) -> Result<()> {
        if self.pools.backend == Backend::Sqlite {
            sqlx::query("PRAGMA optimize").execute(&self.pools.writer).await?;
        }
        Ok(())
    }
}

/// What is older than this goes: a day for what is kept by the day, a second for the rest.
fn before(job: Job, retention: &Retention, now_s: i64) -> i64 {
    let second = |days: u32| now_s - i64::from(days) * DAY_S;
    let day = |days: u32| now_s / DAY_S - i64::from(days);
    match job {
        Job::Probes => day(retention.probe_days),
        Job::Sizes => day(retention.size_days),
        Job::Walks | Job::Crawls => second(retention.crawl_days),
        Job::Events => second(retention.event_days),
        Job::Sessions => second(retention.session_days),
        Job::Documents => second(retention.document_days),
        Job::Reach => second(retention.reach_days),
        Job::Refuted => second(retention.refuted_days),
        Job::Leases => second(retention.lease_days),
        Job::Audit => second(retention.audit_days),
    }
}

/// Rows that are all to go.
fn found(rows: &[sqlx::any::AnyRow], limit: usize) -> Result<Found> {
    let rows = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<Vec<Key>>>()?;
    let next = rows.last().copied().filter(|_| rows.len() == limit);
    Ok(Found { rows, next })
}

/// Of rows in the order of their numbers, each with a mark whether it is old, those to go. Numbers grow with time: a whole
/// step without an old row is the end of the old ones.
fn old_of(rows: &[sqlx::any::AnyRow], kept: &Kept, limit: usize) -> Result<Found> {
    let marked = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get::<i64, _>(1)? == 1)));
    Ok(choose(&marked.collect::<Result<Vec<_>>>()?, kept, limit))
}

fn choose(marked: &[(i64, bool)], kept: &Kept, limit: usize) -> Found {
    let mut rows = Vec::new();
    let mut position = None;
    for (id, is_old) in marked {
        if rows.len() == limit {
            break;
        }
        position = Some((*id, 0));
        if *is_old && !kept.contains(id) {
            rows.push((*id, 0));
        }
    }
    let is_over = !marked.iter().any(|(_, is_old)| *is_old);
    Found { rows, next: position.filter(|_| !is_over) }
}

/// Packed days, which are the most there is to let go: those of one day together.
async fn delete_probes(w: &mut Writing, rows: &[Key]) -> Result<()> {
    for day in rows.chunk_by(|one, other| one.0 == other.0) {
        for some in in_statements(day) {
            let n = some.len();
            let statement = format!("DELETE FROM probe_day WHERE surface_id IN {} AND day = ${}", places(1, n), n + 1);
            let delete = sqlx::query(AssertSqlSafe(statement));
            let delete = some.iter().fold(delete, |delete, (_, surface)| delete.bind(*surface));
            delete.bind(some[0].0).execute(w.on()).await?;
        }
    }
    Ok(())
}

async fn delete(w: &mut Writing, job: Job, (key, second): Key) -> Result<()> {
    let gone = match job {
        Job::Probes => return delete_probes(w, &[(key, second)]).await,
        Job::Sizes => sqlx::query("DELETE FROM table_size WHERE day = $1").bind(key),
        Job::Walks => {
            sqlx::query("DELETE FROM walk_finding WHERE walk_id = $1").bind(key).execute(w.on()).await?;
            sqlx::query("DELETE FROM walk WHERE id = $1").bind(key)
        }
        Job::Crawls => {
            sqlx::query("DELETE FROM crawl_fault WHERE crawl_id = $1").bind(key).execute(w.on()).await?;
            sqlx::query("DELETE FROM crawl WHERE id = $1").bind(key)
        }
        Job::Events => sqlx::query("DELETE FROM event WHERE id = $1").bind(key),
        Job::Sessions => sqlx::query("DELETE FROM probe_session WHERE id = $1").bind(key),
        Job::Documents => sqlx::query("UPDATE document SET body = NULL WHERE id = $1").bind(key),
        Job::Reach => return join(w, key, second).await,
        Job::Refuted => sqlx::query("DELETE FROM finding WHERE id = $1").bind(second),
        Job::Audit => sqlx::query("DELETE FROM audit WHERE id = $1").bind(second),
        Job::Leases => sqlx::query("DELETE FROM lease WHERE until_s = $1 AND subject_id = $2").bind(key).bind(second),
    };
    gone.execute(w.on()).await?;
    Ok(())
}

/// Joins a short span of reach to the one before it, and that to the one behind, where both say the same.
async fn join(w: &mut Writing, surface: i64, from_s: i64) -> Result<()> {
    let short = sqlx::query("SELECT to_s, probes, merged FROM reach_span WHERE surface_id = $1 AND from_s = $2")
        .bind(surface)
        .bind(from_s)
        .fetch_optional(w.on())
        .await?;
    let before =
        sqlx::query("SELECT from_s, state FROM reach_span WHERE surface_id = $1 AND to_s = $2 AND from_s < $2")
            .bind(surface)
            .bind(from_s)
            .fetch_optional(w.on())
            .await?;
    let (Some(short), Some(before)) = (short, before) else { return Ok(()) };
    let (to_s, probes, merged): (i64, i64, i64) = (short.try_get(0)?, short.try_get(1)?, short.try_get(2)?);
    let (kept_s, state): (i64, String) = (before.try_get(0)?, before.try_get(1)?);
    let behind = sqlx::query(
        "SELECT from_s, to_s, probes, merged FROM reach_span
         WHERE surface_id = $1 AND from_s = $2 AND state = $3 AND to_s IS NOT NULL",
    )
    .bind(surface)
    .bind(to_s)
    .bind(state)
    .fetch_optional(w.on())
    .await?;
    let (mut end_s, mut probes, mut merged) = (to_s, probes, merged + 1);
    let mut gone = vec![from_s];
    if let Some(behind) = behind {
        gone.push(behind.try_get(0)?);
        end_s = behind.try_get(1)?;
        probes += behind.try_get::<i64, _>(2)?;
        merged += behind.try_get::<i64, _>(3)?;
    }
    for from_s in gone {
        sqlx::query("DELETE FROM reach_span WHERE surface_id = $1 AND from_s = $2")
            .bind(surface)
            .bind(from_s)
            .execute(w.on())
            .await?;
    }
    sqlx::query(
        "UPDATE reach_span SET to_s = $3, probes = probes + $4, merged = merged + $5
         WHERE surface_id = $1 AND from_s = $2",
    )
    .bind(surface)
    .bind(kept_s)
    .bind(end_s)
    .bind(probes)
    .bind(merged)
    .execute(w.on())
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_where_the_next_one_begins() {
        let kept = Kept::from([2]);
        let marked: Vec<(i64, bool)> = (1..=6).map(|id| (id, id <= 4)).collect();
        let first = choose(&marked, &kept, 2);
        assert_eq!((first.rows, first.next), (vec![(1, 0), (3, 0)], Some((3, 0))));
        let second = choose(&marked[3..], &kept, 2);
        assert_eq!((second.rows, second.next), (vec![(4, 0)], Some((6, 0))));
        let third = choose(&marked[4..], &kept, 2);
        assert_eq!((third.rows, third.next), (vec![], None), "no old one is left");
        assert_eq!(choose(&[], &kept, 2).next, None);
    }
}
