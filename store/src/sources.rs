//! Where targets come from, and one row for each pass over those places.

use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::ids::{CrawlId, RulesetId, SourceId};
use crate::rows::{shortened, word};
use crate::trends::Trends;
use crate::words::{CrawlKind, CrawlState, EventKind, SourceKind, TargetKind};

/// Faults written out for one crawl; of more only the number is kept.
pub const MOST_FAULTS: i64 = 200;

/// A place targets come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its number.
    pub id: SourceId,
    /// What it is.
    pub kind: SourceKind,
    /// As the settings call it.
    pub name: String,
    /// Base address or path.
    pub base: Option<String>,
    /// Start of the last complete full walk.
    pub last_full_s: Option<i64>,
    /// Start of the last complete pass of any kind.
    pub last_pass_s: Option<i64>,
    /// Start of the last pass, complete or not.
    pub last_tried_s: Option<i64>,
    /// When it is walked next.
    pub next_pass_s: Option<i64>,
    /// Why the last pass was not complete.
    pub problem: Option<String>,
    /// When it was seen to ignore `updated_since`; `None`: it knows the parameter, or was never asked.
    pub since_ignored_s: Option<i64>,
    /// Pages of the last complete full walk.
    pub full_pages: Option<i64>,
}

/// How a crawl ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlEnd {
    /// Complete or incomplete.
    pub state: CrawlState,
    /// What a person should know; `None`: nothing.
    pub note: Option<String>,
}

/// Something wrong with a crawl or with what a listing said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// In kebab-case, such as `cursor-repeated`.
    pub code: String,
    /// The address or name concerned.
    pub subject: Option<String>,
    /// In words.
    pub note: Option<String>,
}

/// Counts of a crawl, as absolute numbers or as changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CrawlCounts {
    /// Surfaces that were to be looked at.
    pub planned: i64,
    /// Surfaces looked at.
    pub done: i64,
    /// Of these: whole answers.
    pub ok: i64,
    /// Of these: gated.
    pub gated: i64,
    /// Of these: nothing there.
    pub absent: i64,
    /// Of these: no usable answer.
    pub unreachable: i64,
    /// Of these: asked us to come back later.
    pub throttled: i64,
    /// Of these: not tried.
    pub skipped: i64,
    /// Of these, and of the listing: our own failures.
    pub faults: i64,
    /// Judgements made or remembered.
    pub judged: i64,
    /// Findings that opened.
    pub opened: i64,
    /// Findings that are over.
    pub resolved: i64,
    /// Of the opened: regressions.
    pub regressed: i64,
    /// Pages of a listing.
    pub pages: i64,
    /// Entries on them.
    pub entries: i64,
    /// Distinct names among them.
    pub names: i64,
    /// Targets seen for the first time.
    pub added: i64,
    /// Listings marked gone.
    pub gone: i64,
    /// Listings that would be gone, were they not too many at once.
    pub held_back: i64,
}

/// One crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crawl {
    /// Its number.
    pub id: CrawlId,
    /// The source it walked; `None`: a round over all.
    pub source: Option<SourceId>,
    /// What it was.
    pub kind: CrawlKind,
    /// How far it came.
    pub state: CrawlState,
    /// When it began.
    pub started_s: i64,
    /// When it ended.
    pub finished_s: Option<i64>,
    /// Its numbers.
    pub counts: CrawlCounts,
    /// What a person should know.
    pub note: Option<String>,
}

impl Store {
    /// The source of this kind and name, made or brought up to date.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ensure_source(
        &self,
        kind: SourceKind,
        name: &str,
        base: Option<&str>,
        now_s: i64,
    ) -> Result<SourceId> {
        let mut w = self.pools.write().await?;
        let known: Option<i64> = sqlx::query_scalar("SELECT id FROM source WHERE kind = $1 AND name = $2")
            .bind(kind.as_str())
            .bind(name)
            .fetch_optional(w.on())
            .await?;
        let id = match known {
            Some(id) => id,
            None => w.next_id(Table::Source).await?,
        };
        sqlx::query(
            "INSERT INTO source (id, kind, name, base, added_s)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (id) DO UPDATE SET base = excluded.base, retired_s = NULL",
        )
        .bind(id)
        .bind(kind.as_str())
        .bind(name)
        .bind(base)
        .bind(now_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(SourceId(id))
    }

    /// Every source that is in use, in the order they were added.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sources(&self) -> Result<Vec<Source>> {
        let rows = sqlx::query(
            "SELECT id, kind, name, base, last_full_s, last_pass_s, last_tried_s, next_pass_s, problem,
                    since_ignored_s, full_pages
             FROM source
             WHERE retired_s IS NULL
             ORDER BY id",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(source).collect()
    }

    /// One source.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn source(&self, id: SourceId) -> Result<Source> {
        let row = sqlx::query(
            "SELECT id, kind, name, base, last_full_s, last_pass_s, last_tried_s, next_pass_s, problem,
                    since_ignored_s, full_pages
             FROM source
             WHERE id = $1",
        )
        .bind(id.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        source(&row.ok_or_else(|| Error::Missing { what: "source", id: id.to_string() })?)
    }

    /// Says when a source is walked next.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn plan_pass(&self, id: SourceId, next_pass_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("UPDATE source SET next_pass_s = $2 WHERE id = $1")
            .bind(id.0)
            .bind(next_pass_s)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// Notes that a registry ignores `updated_since`, so that it is walked completely from now on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn since_is_ignored(&self, id: SourceId, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("UPDATE source SET since_ignored_s = $2 WHERE id = $1")
            .bind(id.0)
            .bind(now_s)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// Marks a source as no longer in the settings, and what it listed as gone. Its targets are retired by an empty
    /// [`Store::set_targets`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn retire_source(&self, id: SourceId, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        let mut trends = Trends::default();
        // Should it be named again, only a full walk can tell what it lists then.
        sqlx::query(
            "UPDATE source SET retired_s = $2, next_pass_s = NULL, last_full_s = NULL, last_pass_s = NULL
             WHERE id = $1 AND retired_s IS NULL",
        )
        .bind(id.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
        let entries = sqlx::query(
            "UPDATE listing SET gone_s = $2, is_current = 0, changed_s = $2 WHERE source_id = $1 AND gone_s IS NULL",
        )
        .bind(id.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
        let entries = i64::try_from(entries.rows_affected()).unwrap_or(0);
        trends.count(TargetKind::McpServer, |cohort| cohort.entries -= entries);
        trends.write(&mut w, now_s).await?;
        w.commit().await
    }

    /// Opens the row of a crawl. `holder` names this process, as for leases.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn start_crawl(
        &self,
        kind: CrawlKind,
        source: Option<SourceId>,
        ruleset: Option<RulesetId>,
        holder: &str,
        now_s: i64,
    ) -> Result<CrawlId> {
        let mut w = self.pools.write().await?;
        let id = w.next_id(Table::Crawl).await?;
        sqlx::query(
            "INSERT INTO crawl (id, source_id, kind, state, holder, started_s, ruleset_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(id)
        .bind(source.map(|source| source.0))
        .bind(kind.as_str())
        .bind(CrawlState::Running.as_str())
        .bind(holder)
        .bind(now_s)
        .bind(ruleset.map(|ruleset| ruleset.0))
        .execute(w.on())
        .await?;
        if let Some(source) = source {
            sqlx::query("UPDATE source SET last_tried_s = $2 WHERE id = $1")
                .bind(source.0)
                .bind(now_s)
                .execute(w.on())
                .await?;
        }
        w.commit().await?;
        Ok(CrawlId(id))
    }

    /// The median share of looks that found nobody, over the days of the last week; `None` where there were none. Today
    /// is left out.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn usual_failures(&self, now_s: i64) -> Result<Option<f64>> {
        let today_s = now_s - now_s.rem_euclid(86_400);
        let rows = sqlx::query(
            "SELECT started_s / 86400, CAST(SUM(unreachable) AS BIGINT),
                    CAST(SUM(ok + gated + absent + unreachable) AS BIGINT)
             FROM crawl
             WHERE started_s >= $1 AND started_s < $2 AND kind = 'round'
             GROUP BY started_s / 86400
             HAVING SUM(ok + gated + absent + unreachable) > 0",
        )
        .bind(today_s - 7 * 86_400)
        .bind(today_s)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut shares = Vec::with_capacity(rows.len());
        for row in rows {
            let (failed, looks): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
            shares.push(failed as f64 / looks as f64);
        }
        shares.sort_by(f64::total_cmp);
        Ok(shares.get(shares.len() / 2).copied())
    }

    /// Adds to the counts of a crawl what the store cannot count by itself: chiefly `planned`, and faults.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_to_crawl(&self, id: CrawlId, counts: &CrawlCounts) -> Result<()> {
        let mut w = self.pools.write().await?;
        add_counts(&mut w, id.0, counts).await?;
        w.commit().await
    }

    /// Notes a fault of a crawl. Only the first few hundred are written out; all are counted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn crawl_fault(&self, id: CrawlId, fault: &Fault, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        let n: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM crawl_fault WHERE crawl_id = $1")
            .bind(id.0)
            .fetch_one(w.on())
            .await?;
        if n < MOST_FAULTS {
            sqlx::query(
                "INSERT INTO crawl_fault (crawl_id, n, at_s, code, subject, note) VALUES ($1, $2, $3, $4, $5, $6)",
            )
            .bind(id.0)
            .bind(n + 1)
            .bind(now_s)
            .bind(fault.code.as_str())
            .bind(fault.subject.as_deref().map(|text| shortened(text, 500)))
            .bind(fault.note.as_deref().map(|text| shortened(text, 1000)))
            .execute(w.on())
            .await?;
        }
        add_counts(&mut w, id.0, &CrawlCounts { faults: 1, ..CrawlCounts::default() }).await?;
        w.commit().await
    }

    /// Closes the row of a crawl. One that was stopped says nothing: it is neither complete nor a failure.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn finish_crawl(&self, id: CrawlId, end: &CrawlEnd, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query(
            "UPDATE crawl
             SET state = $2, finished_s = $3, note = CASE WHEN $4 IS NULL THEN note ELSE $4 END
             WHERE id = $1",
        )
        .bind(id.0)
        .bind(end.state.as_str())
        .bind(now_s)
        .bind(end.note.as_deref().map(|text| shortened(text, 1000)))
        .execute(w.on())
        .await?;
        let kind = match end.state {
            CrawlState::Complete => Some(EventKind::CrawlCompleted),
            CrawlState::Running | CrawlState::Incomplete => Some(EventKind::CrawlDegraded),
            CrawlState::Interrupted => None,
        };
        if let Some(kind) = kind {
            let news = News { subject: Some(id.0), note: end.note.clone(), ..News::of(kind) };
            events::append(&mut w, now_s, news).await?;
        }
        w.commit().await
    }

    /// Cleans up after processes that died: their crawls and walks are marked interrupted, their leases are free again.
    /// `is_alive` says of a holder whether its process still runs. Gives the number of crawls that were cut short.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn recover(&self, now_s: i64, is_alive: impl Fn(&str) -> bool) -> Result<u64> {
        let mut w = self.pools.write().await?;
        let rows = sqlx::query("SELECT id, holder FROM crawl WHERE state = 'running'").fetch_all(w.on()).await?;
        let mut interrupted = 0;
        for row in rows {
            let id: i64 = row.try_get(0)?;
            if is_alive(row.try_get(1)?) {
                continue;
            }
            interrupted += 1;
            sqlx::query("UPDATE crawl SET state = 'interrupted', finished_s = $2 WHERE id = $1")
                .bind(id)
                .bind(now_s)
                .execute(w.on())
                .await?;
            sqlx::query("UPDATE walk SET state = 'interrupted' WHERE crawl_id = $1 AND state = 'running'")
                .bind(id)
                .execute(w.on())
                .await?;
        }
        let holders = sqlx::query("SELECT DISTINCT holder FROM lease").fetch_all(w.on()).await?;
        for row in holders {
            let holder: String = row.try_get(0)?;
            if !is_alive(&holder) {
                sqlx::query("DELETE FROM lease WHERE holder = $1").bind(holder).execute(w.on()).await?;
            }
        }
        w.commit().await?;
        Ok(interrupted)
    }

    /// One crawl.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn crawl(&self, id: CrawlId) -> Result<Crawl> {
        let row = sqlx::query(
            "SELECT id, source_id, kind, state, started_s, finished_s, note,
                    planned, done, ok, gated, absent, unreachable, throttled, skipped, faults, judged,
                    opened, resolved, regressed, pages, entries, names, added, gone, held_back
             FROM crawl
             WHERE id = $1",
        )
        .bind(id.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        crawl(&row.ok_or_else(|| Error::Missing { what: "crawl", id: id.to_string() })?)
    }

    /// The faults of a crawl that were written out, in the order they happened.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn crawl_faults(&self, id: CrawlId) -> Result<Vec<Fault>> {
        let rows = sqlx::query("SELECT code, subject, note FROM crawl_fault WHERE crawl_id = $1 ORDER BY n")
            .bind(id.0)
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter()
            .map(|row| Ok(Fault { code: row.try_get(0)?, subject: row.try_get(1)?, note: row.try_get(2)? }))
            .collect()
    }
}

fn source(row: &sqlx::any::AnyRow) -> Result<Source> {
    Ok(Source {
        id: SourceId(row.try_get(0)?),
        kind: word("source", row.try_get(1)?)?,
        name: row.try_get(2)?,
        base: row.try_get(3)?,
        last_full_s: row.try_get(4)?,
        last_pass_s: row.try_get(5)?,
        last_tried_s: row.try_get(6)?,
        next_pass_s: row.try_get(7)?,
        problem: row.try_get(8)?,
        since_ignored_s: row.try_get(9)?,
        full_pages: row.try_get(10)?,
    })
}

fn crawl(row: &sqlx::any::AnyRow) -> Result<Crawl> {
    Ok(Crawl {
        id: CrawlId(row.try_get(0)?),
        source: row.try_get::<Option<i64>, _>(1)?.map(SourceId),
        kind: word("crawl", row.try_get(2)?)?,
        state: word("crawl", row.try_get(3)?)?,
        started_s: row.try_get(4)?,
        finished_s: row.try_get(5)?,
        note: row.try_get(6)?,
        counts: CrawlCounts {
            planned: row.try_get(7)?,
            done: row.try_get(8)?,
            ok: row.try_get(9)?,
            gated: row.try_get(10)?,
            absent: row.try_get(11)?,
            unreachable: row.try_get(12)?,
            throttled: row.try_get(13)?,
            skipped: row.try_get(14)?,
            faults: row.try_get(15)?,
            judged: row.try_get(16)?,
            opened: row.try_get(17)?,
            resolved: row.try_get(18)?,
            regressed: row.try_get(19)?,
            pages: row.try_get(20)?,
            entries: row.try_get(21)?,
            names: row.try_get(22)?,
            added: row.try_get(23)?,
            gone: row.try_get(24)?,
            held_back: row.try_get(25)?,
        },
    })
}

/// Adds changes to the row of a crawl.
pub(crate) async fn add_counts(w: &mut Writing, crawl: i64, counts: &CrawlCounts) -> Result<()> {
    if *counts == CrawlCounts::default() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE crawl
         SET planned = planned + $2, done = done + $3, ok = ok + $4, gated = gated + $5, absent = absent + $6,
             unreachable = unreachable + $7, throttled = throttled + $8, skipped = skipped + $9,
             faults = faults + $10, judged = judged + $11, opened = opened + $12, resolved = resolved + $13,
             regressed = regressed + $14, pages = pages + $15, entries = entries + $16, names = names + $17,
             added = added + $18, gone = gone + $19, held_back = held_back + $20
         WHERE id = $1",
    )
    .bind(crawl)
    .bind(counts.planned)
    .bind(counts.done)
    .bind(counts.ok)
    .bind(counts.gated)
    .bind(counts.absent)
    .bind(counts.unreachable)
    .bind(counts.throttled)
    .bind(counts.skipped)
    .bind(counts.faults)
    .bind(counts.judged)
    .bind(counts.opened)
    .bind(counts.resolved)
    .bind(counts.regressed)
    .bind(counts.pages)
    .bind(counts.entries)
    .bind(counts.names)
    .bind(counts.added)
    .bind(counts.gone)
    .bind(counts.held_back)
    .execute(w.on())
    .await?;
    Ok(())
}
