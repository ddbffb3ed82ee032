//! Passes of the crawler, what went wrong in them, and the sources they walk.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::error::Result;
use crate::words::{CrawlKind, CrawlState, SourceKind};

use super::word;

/// One pass of the crawler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CrawlRow {
    /// Its number.
    pub id: i64,
    /// The source it walked, as the settings call it; `None`: a round over what was due from all of them.
    pub source: Option<String>,
    /// `full-walk`, `incremental-walk`, `round`, `check`.
    pub kind: CrawlKind,
    /// `running`, `complete`, `incomplete`, `interrupted`.
    pub state: CrawlState,
    /// Unix seconds.
    pub started_s: i64,
    /// Unix seconds; `None`: it runs, or its process ended before it did.
    pub finished_s: Option<i64>,
    /// The rules it judged with.
    pub ruleset: Option<String>,
    /// Surfaces that were to be looked at.
    pub planned: i64,
    /// Surfaces looked at.
    pub done: i64,
    /// Of done: they answered with what was asked for.
    pub ok: i64,
    /// Of done: they ask for credentials or payment.
    pub gated: i64,
    /// Of done: there is nothing at the address.
    pub absent: i64,
    /// Of done: no usable answer.
    pub unreachable: i64,
    /// Of done: we were asked to come back later.
    pub throttled: i64,
    /// Of done: not called, on purpose.
    pub skipped: i64,
    /// Our own failures.
    pub faults: i64,
    /// Judgements made or remembered.
    pub judged: i64,
    /// Findings that opened, first looks included.
    pub opened: i64,
    /// Findings that were mended.
    pub resolved: i64,
    /// Of opened: worked before, and the change was theirs.
    pub regressed: i64,
    /// Pages of a registry's list.
    pub pages: i64,
    /// Entries of these pages: one for each version of each name.
    pub entries: i64,
    /// Distinct names among them.
    pub names: i64,
    /// Targets seen for the first time.
    pub added: i64,
    /// Listings marked gone.
    pub gone: i64,
    /// Listings that would be gone but were too many at once to believe.
    pub held_back: i64,
    /// What a person should know.
    pub note: Option<String>,
}

/// Something that went wrong in a crawl, or was wrong with a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FaultRow {
    /// Unix seconds.
    pub at_s: i64,
    /// `cursor-repeated`, `walk-too-long`, …
    pub code: String,
    /// An address or a name.
    pub subject: Option<String>,
    /// More words.
    pub note: Option<String>,
}

/// The walk of a registry that belongs to a crawl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WalkRow {
    /// It ended by itself; only then may absence count.
    pub is_complete: bool,
    /// Everything, or only what moved.
    pub is_full: bool,
    /// `running`, `complete`, `incomplete`, `interrupted`.
    pub state: CrawlState,
    /// Pages read.
    pub pages: i64,
    /// Entries read.
    pub entries: i64,
    /// Why it is not complete.
    pub problem: Option<String>,
}

/// Where targets come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceRow {
    /// `mcp-registry`, `domains`, `file`, `settings`, `command-line`.
    pub kind: SourceKind,
    /// As the settings call it.
    pub name: String,
    /// Base address or path.
    pub base: Option<String>,
    /// Start of the last complete pass, in Unix seconds.
    pub last_pass_s: Option<i64>,
    /// Start of the last pass, complete or not.
    pub last_tried_s: Option<i64>,
    /// When it is walked next.
    pub next_pass_s: Option<i64>,
    /// Why the last pass was not complete.
    pub problem: Option<String>,
    /// The crawl that walked its whole list last.
    pub full_crawl: Option<i64>,
    /// Rules that accuse its list there, hints left out.
    pub list_findings: i64,
}

macro_rules! crawl_sql {
    ($which:literal) => {
        concat!(
            "
SELECT c.*, s.name AS source, r.version AS ruleset
FROM crawl c
LEFT JOIN source s ON s.id = c.source_id
LEFT JOIN ruleset r ON r.id = c.ruleset_id
WHERE ",
            $which,
            "
ORDER BY c.id DESC
LIMIT $2"
        )
    };
}

pub(super) const CRAWLS_BEFORE: &str = crawl_sql!("c.id < $1");
pub(super) const CRAWL: &str = crawl_sql!("c.id = $1");

pub(super) const FAULTS: &str = "
SELECT at_s, code, subject, note
FROM crawl_fault
WHERE crawl_id = $1
ORDER BY n
LIMIT $2";

pub(super) const WALK: &str = "
SELECT w.complete, w.is_full, w.state, w.pages, w.entries, w.problem
FROM crawl c
JOIN walk w ON w.source_id = c.source_id AND w.crawl_id = c.id
WHERE c.id = $1";

pub(super) const SOURCES: &str = "
SELECT s.kind, s.name, s.base, s.last_pass_s, s.last_tried_s, s.next_pass_s, s.problem, w.crawl_id AS full_crawl,
       (SELECT COUNT(*) FROM walk_finding f WHERE f.walk_id = w.id AND f.severity <> 'info') AS list_findings
FROM source s
LEFT JOIN walk w
       ON w.id = (SELECT MAX(whole.id) FROM walk whole
                  WHERE whole.source_id = s.id AND whole.is_full = 1 AND whole.state <> 'running')
WHERE s.retired_s IS NULL
ORDER BY s.id";

impl Store {
    /// The crawls before `before`, newest first, at most `limit`.
    pub async fn crawls(&self, before: i64, limit: i64) -> Result<Vec<CrawlRow>> {
        let rows = sqlx::query(CRAWLS_BEFORE).bind(before).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(crawl_row).collect()
    }

    /// One crawl.
    pub async fn crawl_row(&self, id: i64) -> Result<Option<CrawlRow>> {
        let row = sqlx::query(CRAWL).bind(id).bind(1_i64).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(crawl_row).transpose()
    }

    /// What went wrong in it, in order, at most `limit`.
    pub async fn first_crawl_faults(&self, id: i64, limit: i64) -> Result<Vec<FaultRow>> {
        let rows = sqlx::query(FAULTS).bind(id).bind(limit).fetch_all(&self.pools.reader).await?;
        let faults = rows.iter().map(|row| {
            Ok(FaultRow {
                at_s: row.try_get("at_s")?,
                code: row.try_get("code")?,
                subject: row.try_get("subject")?,
                note: row.try_get("note")?,
            })
        });
        faults.collect()
    }

    /// The walk of a registry that it was, if it was one.
    pub async fn crawl_walk(&self, id: i64) -> Result<Option<WalkRow>> {
        let Some(row) = sqlx::query(WALK).bind(id).fetch_optional(&self.pools.reader).await? else { return Ok(None) };
        Ok(Some(WalkRow {
            is_complete: row.try_get::<i64, _>("complete")? == 1,
            is_full: row.try_get::<i64, _>("is_full")? == 1,
            state: word(&row, "state")?,
            pages: row.try_get("pages")?,
            entries: row.try_get("entries")?,
            problem: row.try_get("problem")?,
        }))
    }

    /// Every source in use.
    pub async fn sources_in_use(&self) -> Result<Vec<SourceRow>> {
        let rows = sqlx::query(SOURCES).fetch_all(&self.pools.reader).await?;
        let sources = rows.iter().map(|row| {
            Ok(SourceRow {
                kind: word(row, "kind")?,
                name: row.try_get("name")?,
                base: row.try_get("base")?,
                last_pass_s: row.try_get("last_pass_s")?,
                last_tried_s: row.try_get("last_tried_s")?,
                next_pass_s: row.try_get("next_pass_s")?,
                problem: row.try_get("problem")?,
                full_crawl: row.try_get("full_crawl")?,
                list_findings: row.try_get("list_findings")?,
            })
        });
        sources.collect()
    }
}

fn crawl_row(row: &AnyRow) -> Result<CrawlRow> {
    Ok(CrawlRow {
        id: row.try_get("id")?,
        source: row.try_get("source")?,
        kind: word(row, "kind")?,
        state: word(row, "state")?,
        started_s: row.try_get("started_s")?,
        finished_s: row.try_get("finished_s")?,
        ruleset: row.try_get("ruleset")?,
        planned: row.try_get("planned")?,
        done: row.try_get("done")?,
        ok: row.try_get("ok")?,
        gated: row.try_get("gated")?,
        absent: row.try_get("absent")?,
        unreachable: row.try_get("unreachable")?,
        throttled: row.try_get("throttled")?,
        skipped: row.try_get("skipped")?,
        faults: row.try_get("faults")?,
        judged: row.try_get("judged")?,
        opened: row.try_get("opened")?,
        resolved: row.try_get("resolved")?,
        regressed: row.try_get("regressed")?,
        pages: row.try_get("pages")?,
        entries: row.try_get("entries")?,
        names: row.try_get("names")?,
        added: row.try_get("added")?,
        gone: row.try_get("gone")?,
        held_back: row.try_get("held_back")?,
        note: row.try_get("note")?,
    })
}
