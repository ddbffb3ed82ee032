//! Walking a registry: pages come in one by one, each in one transaction with the cursor that follows it.
//!
//! A name is a target; each version is a listing; the target's `server.json` surface is the current version's document.
//! Storing the same page twice changes nothing the second time. Only complete full walks say that something is gone, and
//! only two in a row; too much gone at once is held back and told instead.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use plumbline_rules::canonical::{Hash, content_hash};
use sqlx::Row;

use crate::Store;
use crate::deploys::{self, Signal, SignalKind};
use crate::dialect::{Table, Writing};
use crate::documents::{self, Body};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::ids::{CrawlId, SourceId, WalkId};
use crate::rows::{clean_or_none, key, shortened, word};
use crate::sources::{self, CrawlCounts};
use crate::targets::{self, OwnWords, OwnerName, Seen, Tied};
use crate::trends::Trends;
use crate::versions::{self, Candidate};
use crate::words::{CrawlState, EventKind, RetireReason, Role, SurfaceKind, TargetKind};

/// A cursor older than this is not gone on with, in seconds.
const CURSOR_LIVES: i64 = 3600;
/// Complete full walks in a row without a listing before it is gone.
const GONE_AFTER: i64 = 2;
/// Characters kept of what an entry says in words.
const LONGEST_TEXT: usize = 500;
/// The share of a registry's listings, in percent, that may be missing at once and still be believed.
const MOST_GONE_PERCENT: i64 = 20;
/// So few may be missing whatever their share: one of three in a small registry is no reset.
const FEW_GONE: i64 = 5;

/// One entry of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The server's name, byte for byte.
    pub name: String,
    /// The version, any text.
    pub version: String,
    /// `active`, `deprecated`, `deleted`, or whatever was said.
    pub status: Option<String>,
    /// What was said about the status.
    pub status_message: Option<String>,
    /// The registry's stamp of publication.
    pub published_ms: Option<i64>,
    /// The registry's stamp of the last change.
    pub updated_ms: Option<i64>,
    /// What the registry says; `None`: nothing.
    pub is_latest: Option<bool>,
    /// The `server.json` as it stood in the page, byte for byte.
    pub server: Vec<u8>,
    /// The hash of its canonical form; `None`: the entry came with the document it had, which was not read again.
    pub semantic_hash: Option<Hash>,
    /// The `_meta` beside it, as received.
    pub meta: Option<String>,
    /// Its own name for people.
    pub title: Option<String>,
    /// Its own description.
    pub description: Option<String>,
}

/// A walk that takes pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// Its number.
    pub id: WalkId,
    /// The registry.
    pub source: SourceId,
    /// Everything, or only what moved.
    pub is_full: bool,
    /// Lower end of an incremental walk.
    pub since_s: Option<i64>,
    /// When it began.
    pub started_s: i64,
    /// For the next page; `None`: from the beginning.
    pub cursor: Option<String>,
    /// Pages stored.
    pub pages: i64,
    /// Entries on them.
    pub entries: i64,
}

/// What a page changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageStored {
    /// Entries on the page.
    pub entries: usize,
    /// Listings that were not known.
    pub new_listings: usize,
    /// Names that were not known.
    pub new_targets: usize,
    /// Listings whose document, status or flag moved.
    pub changed: usize,
    /// Surfaces that are due because of it.
    pub due: usize,
}

/// How a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkEnd {
    /// By itself: everything was seen.
    Complete,
    /// By itself, and a person says that what is missing from it is gone, however much that is.
    CompleteLossAccepted,
    /// For this reason, before everything was seen.
    Incomplete(String),
}

/// What the end of a walk changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WalkFinished {
    /// Listings marked gone.
    pub gone: i64,
    /// Listings that would be gone, were they not too many at once.
    pub held_back: i64,
    /// Distinct names seen.
    pub names: i64,
}

impl Store {
    /// Begins a walk. `since_s` makes it incremental.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_walk(&self, source: SourceId, crawl: CrawlId, since_s: Option<i64>, now_s: i64) -> Result<Walk> {
        let mut w = self.pools.write().await?;
        let id = w.next_id(Table::Walk).await?;
        sqlx::query(
            "INSERT INTO walk (id, source_id, crawl_id, is_full, since_s, state, started_s, page_s)
             VALUES ($1, $2, $3, $4, $5, 'running', $6, $6)",
        )
        .bind(id)
        .bind(source.0)
        .bind(crawl.0)
        .bind(i64::from(since_s.is_none()))
        .bind(since_s)
        .bind(now_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(Walk {
            id: WalkId(id),
            source,
            is_full: since_s.is_none(),
            since_s,
            started_s: now_s,
            cursor: None,
            pages: 0,
            entries: 0,
        })
    }

    /// Goes on with the newest walk of a source that was cut short, when its cursor is less than an hour old. The pages
    /// to come count for `crawl`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn resume_walk(&self, source: SourceId, crawl: CrawlId, now_s: i64) -> Result<Option<Walk>> {
        let mut w = self.pools.write().await?;
        let row = sqlx::query(
            "SELECT id, is_full, since_s, started_s, cursor, pages, entries, state, page_s
             FROM walk
             WHERE source_id = $1
             ORDER BY id DESC
             LIMIT 1",
        )
        .bind(source.0)
        .fetch_optional(w.on())
        .await?;
        let Some(row) = row else { return Ok(None) };
        let cursor: Option<String> = row.try_get(4)?;
        let state: CrawlState = word("walk", row.try_get(7)?)?;
        let is_fresh = row.try_get::<i64, _>(8)? > now_s - CURSOR_LIVES;
        if cursor.is_none() || state == CrawlState::Complete || !is_fresh {
            return Ok(None);
        }
        let walk = Walk {
            id: WalkId(row.try_get(0)?),
            source,
            is_full: row.try_get::<i64, _>(1)? != 0,
            since_s: row.try_get(2)?,
            started_s: row.try_get(3)?,
            cursor,
            pages: row.try_get(5)?,
            entries: row.try_get(6)?,
        };
        sqlx::query(
            "UPDATE walk SET state = 'running', crawl_id = $2, problem = NULL, finished_s = NULL WHERE id = $1",
        )
        .bind(walk.id.0)
        .bind(crawl.0)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(Some(walk))
    }

    /// Sets the start of a walk to what the registry's own clock said with the first page: the next incremental walk
    /// begins from there.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn walk_started_at(&self, walk: WalkId, started_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("UPDATE walk SET started_s = $2 WHERE id = $1")
            .bind(walk.0)
            .bind(started_s)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// Stores a page and the cursor that follows it (`None`: it was the last), all or nothing.
    ///
    /// # Errors
    /// When the walk has ended or the database fails.
    pub async fn store_page(
        &self,
        walk: WalkId,
        entries: &[Entry],
        next: Option<&str>,
        now_s: i64,
    ) -> Result<PageStored> {
        let mut w = self.pools.write().await?;
        let mut page = Page::open(&mut w, walk, now_s).await?;
        for some in entries.chunks(NAMES) {
            let some: Vec<Entry> = some.iter().map(storable).collect();
            page.listed = listed_under(w.on(), page.walk.source, some.iter().map(|entry| entry.name.as_str())).await?;
            for entry in &some {
                page.store(&mut w, entry).await?;
            }
        }
        page.note_seen(&mut w).await?;
        page.choose_current(&mut w).await?;
        page.tell_stamps(&mut w).await?;
        page.close(&mut w, entries.len(), next).await?;
        let stored = page.stored;
        w.commit().await?;
        Ok(stored)
    }

    /// Ends a walk. A complete full walk counts who was absent; nothing else does.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn finish_walk(&self, walk: WalkId, end: &WalkEnd, now_s: i64) -> Result<WalkFinished> {
        let mut w = self.pools.write().await?;
        let mut trends = Trends::default();
        let open = OpenWalk::load(&mut w, walk).await?;
        let mut finished = WalkFinished { names: names_seen(&mut w, &open).await?, ..WalkFinished::default() };
        if open.is_full {
            match end {
                WalkEnd::Complete => count_absence(&mut w, &mut trends, &open, &mut finished, now_s).await?,
                WalkEnd::CompleteLossAccepted => accept_loss(&mut w, &mut trends, &open, &mut finished, now_s).await?,
                WalkEnd::Incomplete(_) => {}
            }
        }
        close_walk(&mut w, &open, end, now_s).await?;
        let counts = CrawlCounts {
            names: finished.names,
            gone: finished.gone,
            held_back: finished.held_back,
            ..CrawlCounts::default()
        };
        sources::add_counts(&mut w, open.crawl, &counts).await?;
        trends.write(&mut w, now_s).await?;
        w.commit().await?;
        Ok(finished)
    }
}

/// A walk that still takes pages.
struct OpenWalk {
    id: i64,
    source: i64,
    crawl: i64,
    is_full: bool,
    started_s: i64,
    cursor: Option<String>,
    pages: i64,
}

impl OpenWalk {
    async fn load(w: &mut Writing, walk: WalkId) -> Result<OpenWalk> {
        let row =
            sqlx::query("SELECT source_id, crawl_id, is_full, started_s, cursor, pages, state FROM walk WHERE id = $1")
                .bind(walk.0)
                .fetch_optional(w.on())
                .await?;
        let row = row.ok_or_else(|| Error::Missing { what: "walk", id: walk.to_string() })?;
        let state: CrawlState = word("walk", row.try_get(6)?)?;
        if state != CrawlState::Running {
            return Err(Error::WalkOver { walk: walk.0, state });
        }
        Ok(OpenWalk {
            id: walk.0,
            source: row.try_get(0)?,
            crawl: row.try_get(1)?,
            is_full: row.try_get::<i64, _>(2)? != 0,
            started_s: row.try_get(3)?,
            cursor: row.try_get(4)?,
            pages: row.try_get(5)?,
        })
    }
}

/// A listing as it was before its entry came again.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    id: i64,
    target: i64,
    pub(crate) document: i64,
    status: Option<String>,
    status_message: Option<String>,
    published_ms: Option<i64>,
    updated_ms: Option<i64>,
    pub(crate) meta: Option<String>,
    is_latest: bool,
    is_gone: bool,
    /// Of its document.
    pub(crate) hash: Vec<u8>,
}

impl Known {
    /// The listing as it stands once its entry is stored.
    fn of(entry: &Entry, (id, target, document): (i64, i64, i64)) -> Known {
        Known {
            id,
            target,
            document,
            status: entry.status.clone(),
            status_message: entry.status_message.clone(),
            published_ms: entry.published_ms,
            updated_ms: entry.updated_ms,
            meta: entry.meta.clone(),
            is_latest: entry.is_latest.unwrap_or(false),
            is_gone: false,
            hash: content_hash(&entry.server).to_vec(),
        }
    }

    /// Nothing is to be written but that it was seen.
    fn is_as(&self, entry: &Entry, document: i64) -> bool {
        self.document == document
            && self.status == entry.status
            && self.status_message == entry.status_message
            && self.published_ms == entry.published_ms
            && self.updated_ms == entry.updated_ms
            && self.meta == entry.meta
            && self.is_latest == entry.is_latest.unwrap_or(false)
            && !self.is_gone
    }
}

/// Listings by name and version.
#[derive(Debug, Default)]
pub(crate) struct Listed(HashMap<String, Vec<(String, Known)>>);

impl Listed {
    /// The listing of this name and version.
    pub(crate) fn get(&self, name: &str, version: &str) -> Option<&Known> {
        self.0.get(name)?.iter().find(|(known, _)| known == version).map(|(_, known)| known)
    }

    fn put(&mut self, name: &str, version: &str, known: Known) {
        let versions = self.0.entry(name.to_owned()).or_default();
        versions.retain(|(known, _)| known != version);
        versions.push((version.to_owned(), known));
    }
}

/// Entries of one page that a registry may say were updated and be believed.
const MOST_STAMPS: usize = 20;

/// Names that are asked for in one statement, and ids that are written in one.
pub(crate) const NAMES: usize = 100;

/// The places of [`NAMES`] values in a statement, from the number on.
fn places(from: usize) -> String {
    (from..from + NAMES).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}

/// What a registry listed under these names, at most [`NAMES`] of them, one statement for all.
pub(crate) async fn listed_under<'n>(
    on: &mut sqlx::AnyConnection,
    source: i64,
    names: impl Iterator<Item = &'n str>,
) -> Result<Listed> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT listing.id, listing.target_id, listing.document_id, listing.status, listing.status_message,
                    listing.published_ms, listing.updated_ms, listing.meta, listing.is_latest, listing.gone_s,
                    document.hash, listing.name, listing.version
             FROM listing
             JOIN document ON document.id = listing.document_id
             WHERE listing.source_id = $1 AND listing.name IN ({})",
            places(2)
        )
    });
    let names: Vec<&str> = names.take(NAMES).collect();
    let Some(last) = names.last() else { return Ok(Listed::default()) };
    // The text is ours: numbered places and nothing else.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(SQL.as_str())).bind(source);
    for n in 0..NAMES {
        query = query.bind(*names.get(n).unwrap_or(last));
    }
    let mut listed = Listed::default();
    for row in query.fetch_all(on).await? {
        let known = Known {
            id: row.try_get(0)?,
            target: row.try_get(1)?,
            document: row.try_get(2)?,
            status: row.try_get(3)?,
            status_message: row.try_get(4)?,
            published_ms: row.try_get(5)?,
            updated_ms: row.try_get(6)?,
            meta: row.try_get(7)?,
            is_latest: row.try_get::<i64, _>(8)? != 0,
            is_gone: row.try_get::<Option<i64>, _>(9)?.is_some(),
            hash: row.try_get(10)?,
        };
        listed.put(row.try_get(11)?, row.try_get(12)?, known);
    }
    Ok(listed)
}

/// One page being stored.
struct Page {
    walk: OpenWalk,
    base: String,
    now_s: i64,
    trends: Trends,
    /// Targets whose current version may have moved.
    unsettled: BTreeSet<i64>,
    /// Name and description by listing, for the row of the target should it become current.
    described: HashMap<i64, (Option<String>, Option<String>)>,
    /// Key of each unsettled target.
    names: HashMap<i64, String>,
    /// Targets that this page made, by the listing that made and described them.
    made_by: HashMap<i64, i64>,
    /// Owners met on this page.
    owners: HashMap<String, i64>,
    /// What is listed under the names of this page.
    listed: Listed,
    /// Listings that came again as they were.
    seen_again: Vec<i64>,
    /// Entries whose stamp of the registry advanced: target, listing, before and now in milliseconds.
    stamped: Vec<(i64, i64, i64, i64)>,
    stored: PageStored,
}

impl Page {
    async fn open(w: &mut Writing, walk: WalkId, now_s: i64) -> Result<Page> {
        let walk = OpenWalk::load(w, walk).await?;
        let base: Option<String> =
            sqlx::query_scalar("SELECT base FROM source WHERE id = $1").bind(walk.source).fetch_one(w.on()).await?;
        Ok(Page {
            walk,
            base: base.unwrap_or_default(),
            now_s,
            trends: Trends::default(),
            unsettled: BTreeSet::new(),
            described: HashMap::new(),
            names: HashMap::new(),
            made_by: HashMap::new(),
            owners: HashMap::new(),
            listed: Listed::default(),
            seen_again: Vec::new(),
            stamped: Vec::new(),
            stored: PageStored::default(),
        })
    }

    async fn store(&mut self, w: &mut Writing, entry: &Entry) -> Result<()> {
        self.stored.entries += 1;
        let known = self.listed.get(&entry.name, &entry.version).cloned();
        let document = match &known {
            Some(known) if known.hash == content_hash(&entry.server) => known.document,
            _ => {
                let body = Body::new(entry.server.clone(), entry.semantic_hash, None);
                documents::keep(w, SurfaceKind::ServerJson, &body, self.now_s).await?
            }
        };
        if let Some(known) = known.as_ref().filter(|known| known.is_as(entry, document)) {
            self.seen_again.push(known.id);
            return Ok(());
        }
        let (listing, target) = match known {
            Some(known) => {
                self.stamped.extend(advanced(&known, entry));
                let has_moved = known.document != document
                    || known.status != entry.status
                    || known.is_latest != entry.is_latest.unwrap_or(false)
                    || known.is_gone;
                self.update(w, entry, &known, document, has_moved).await?;
                if !has_moved {
                    return Ok(());
                }
                self.stored.changed += 1;
                (known.id, known.target)
            }
            None => self.insert(w, entry, document).await?,
        };
        // The same key may come again on this page.
        self.listed.put(&entry.name, &entry.version, Known::of(entry, (listing, target, document)));
        if entry.is_latest == Some(true) && self.made_by.get(&target) != Some(&listing) {
            self.note_seen(w).await?;
            // The version that loses the flag is not told of by the registry; one that this walk showed with it keeps it.
            sqlx::query(
                "UPDATE listing SET is_latest = 0, changed_s = $4
                 WHERE source_id = $1 AND target_id = $2 AND id <> $3 AND is_latest = 1 AND walk_id <> $5",
            )
            .bind(self.walk.source)
            .bind(target)
            .bind(listing)
            .bind(self.now_s)
            .bind(self.walk.id)
            .execute(w.on())
            .await?;
        }
        self.unsettled.insert(target);
        if entry.semantic_hash.is_some() {
            self.described.insert(listing, (entry.title.clone(), entry.description.clone()));
        }
        self.names.insert(target, entry.name.clone());
        Ok(())
    }

    /// Notes of what came again as it was that this walk has seen it.
    async fn note_seen(&mut self, w: &mut Writing) -> Result<()> {
        static SQL: LazyLock<String> = LazyLock::new(|| {
            format!("UPDATE listing SET last_seen_s = $1, walk_id = $2, missed = 0 WHERE id IN ({})", places(3))
        });
        for ids in std::mem::take(&mut self.seen_again).chunks(NAMES) {
            // The text is ours: numbered places and nothing else.
            let mut update = sqlx::query(sqlx::AssertSqlSafe(SQL.as_str())).bind(self.now_s).bind(self.walk.id);
            for n in 0..NAMES {
                update = update.bind(ids.get(n).or(ids.last()).copied());
            }
            update.execute(w.on()).await?;
        }
        Ok(())
    }

    async fn update(
        &mut self,
        w: &mut Writing,
        entry: &Entry,
        known: &Known,
        document: i64,
        has_moved: bool,
    ) -> Result<()> {
        if known.is_gone {
            self.trends.count(TargetKind::McpServer, |cohort| cohort.entries += 1);
        }
        sqlx::query(
            "UPDATE listing
             SET status = $2, status_message = $3, published_ms = $4, updated_ms = $5, is_latest = $6, document_id = $7,
                 meta = $8, last_seen_s = $9, walk_id = $10, missed = 0, gone_s = NULL,
                 changed_s = CASE WHEN $11 = 1 THEN $9 ELSE changed_s END
             WHERE id = $1",
        )
        .bind(known.id)
        .bind(entry.status.as_deref())
        .bind(entry.status_message.as_deref())
        .bind(entry.published_ms)
        .bind(entry.updated_ms)
        .bind(i64::from(entry.is_latest.unwrap_or(false)))
        .bind(document)
        .bind(entry.meta.as_deref())
        .bind(self.now_s)
        .bind(self.walk.id)
        .bind(i64::from(has_moved))
        .execute(w.on())
        .await?;
        Ok(())
    }

    async fn insert(&mut self, w: &mut Writing, entry: &Entry, document: i64) -> Result<(i64, i64)> {
        let id = w.next_id(Table::Listing).await?;
        let target = self.target(w, entry, id).await?;
        sqlx::query(
            "INSERT INTO listing (id, source_id, target_id, name, version, status, status_message, published_ms,
                                  updated_ms, is_latest, document_id, meta, first_seen_s, last_seen_s, changed_s,
                                  walk_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $13, $14)",
        )
        .bind(id)
        .bind(self.walk.source)
        .bind(target)
        .bind(entry.name.as_str())
        .bind(entry.version.as_str())
        .bind(entry.status.as_deref())
        .bind(entry.status_message.as_deref())
        .bind(entry.published_ms)
        .bind(entry.updated_ms)
        .bind(i64::from(entry.is_latest.unwrap_or(false)))
        .bind(document)
        .bind(entry.meta.as_deref())
        .bind(self.now_s)
        .bind(self.walk.id)
        .execute(w.on())
        .await?;
        self.trends.count(TargetKind::McpServer, |cohort| cohort.entries += 1);
        self.stored.new_listings += 1;
        Ok((id, target))
    }

    /// The target with the entry's name, made when it is new. One that is retired comes back when it has a current
    /// version again.
    async fn target(&mut self, w: &mut Writing, entry: &Entry, listing: i64) -> Result<i64> {
        let known: Option<i64> = sqlx::query_scalar("SELECT id FROM target WHERE kind = 'mcp-server' AND key = $1")
            .bind(entry.name.as_str())
            .fetch_optional(w.on())
            .await?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.stored.new_targets += 1;
        let owner = self.owner(w, &entry.name).await?;
        let title = (entry.title.as_deref(), entry.description.as_deref());
        let seen = self.seen(&entry.name, title, &entry.version, owner);
        let id = targets::make(w, &mut self.trends, &seen, self.now_s).await?;
        self.made_by.insert(id, listing);
        Ok(id)
    }

    async fn owner(&mut self, w: &mut Writing, name: &str) -> Result<Option<i64>> {
        let Some(slug) = namespace(name) else { return Ok(None) };
        if let Some(id) = self.owners.get(slug) {
            return Ok(Some(*id));
        }
        let owner = OwnerName { slug: slug.to_owned(), name: slug.to_owned() };
        let id = targets::owner(w, Some(&owner), self.now_s).await?;
        self.owners.extend(id.map(|id| (owner.slug, id)));
        Ok(id)
    }

    fn seen<'a>(
        &self,
        name: &'a str,
        (title, description): (Option<&'a str>, Option<&'a str>),
        version: &'a str,
        owner: Option<i64>,
    ) -> Seen<'a> {
        Seen {
            kind: TargetKind::McpServer,
            key: name,
            name: title,
            summary: description,
            url: None,
            declared_version: Some(version),
            source: self.walk.source,
            owner,
            host: None,
        }
    }

    /// For every target whose listings moved, finds the current version and points the surface at it.
    async fn choose_current(&mut self, w: &mut Writing) -> Result<()> {
        for target in std::mem::take(&mut self.unsettled) {
            let name = self.names.get(&target).cloned().unwrap_or_default();
            let listings = listings_of(w, self.walk.source, target).await?;
            if let Some(current) = versions::current(&listings) {
                self.point_at(w, target, &name, &listings[current]).await?;
            } else {
                let reason = RetireReason::Deleted;
                retract(w, &mut self.trends, self.walk.source, target, reason, self.now_s).await?;
            }
        }
        Ok(())
    }

    async fn point_at(&mut self, w: &mut Writing, target: i64, name: &str, current: &Candidate) -> Result<()> {
        if self.made_by.get(&target) != Some(&current.listing) {
            let owner = self.owner(w, name).await?;
            let described = self.described.get(&current.listing).cloned();
            let (title, description) = described.clone().unwrap_or_default();
            let seen = self.seen(name, (title.as_deref(), description.as_deref()), &current.version, owner);
            targets::see(w, &mut self.trends, &seen, self.now_s).await?;
            if described.is_some() {
                let words = OwnWords { name: seen.name, summary: seen.summary, version: seen.declared_version };
                targets::describe(w, target, words).await?;
            } else {
                targets::declare(w, target, &current.version).await?;
            }
        }
        let url = versions::latest_url(&self.base, name);
        let tied = Tied { kind: SurfaceKind::ServerJson, url: &url, role: Role::Main, host: None, interval_s: None };
        let surface = targets::tie(w, target, &tied, self.now_s).await?;
        if point_surface(w, target, self.walk.source, surface, current, self.now_s).await? {
            self.stored.due += 1;
        }
        Ok(())
    }

    /// What the registry says was updated is a deploy of its target, if it is the version that counts. When it restamps a
    /// good part of a page it has tidied up its own house.
    async fn tell_stamps(&mut self, w: &mut Writing) -> Result<()> {
        let stamped = std::mem::take(&mut self.stamped);
        if stamped.len() > MOST_STAMPS {
            return Ok(());
        }
        for (target, listing, before, now) in stamped {
            let is_current: Option<i64> = sqlx::query_scalar("SELECT is_current FROM listing WHERE id = $1")
                .bind(listing)
                .fetch_optional(w.on())
                .await?;
            if is_current != Some(1) {
                continue;
            }
            let signal = Signal { kind: SignalKind::Listing, from: moment(before), to: moment(now), at_s: self.now_s };
            deploys::record(w, target, &[signal], Some(self.walk.crawl), self.now_s).await?;
        }
        Ok(())
    }

    /// Moves the cursor and counts the page, unless this very page was counted already.
    async fn close(&mut self, w: &mut Writing, entries: usize, next: Option<&str>) -> Result<()> {
        let is_repeat = self.walk.pages > 0 && self.walk.cursor.as_deref() == next;
        let pages = i64::from(!is_repeat);
        let entries = if is_repeat { 0 } else { crate::rows::count(entries) };
        sqlx::query(
            "UPDATE walk SET cursor = $2, page_s = $3, pages = pages + $4, entries = entries + $5 WHERE id = $1",
        )
        .bind(self.walk.id)
        .bind(next)
        .bind(self.now_s)
        .bind(pages)
        .bind(entries)
        .execute(w.on())
        .await?;
        let added = crate::rows::count(self.stored.new_targets);
        let counts = CrawlCounts { pages, entries, added, ..CrawlCounts::default() };
        sources::add_counts(w, self.walk.crawl, &counts).await?;
        std::mem::take(&mut self.trends).write(w, self.now_s).await
    }
}

/// Whether the registry says that an entry was updated since it was seen, and not only that its standing changed, which stamps
/// it as well: its target, its number here, the stamp before and now.
fn advanced(known: &Known, entry: &Entry) -> Option<(i64, i64, i64, i64)> {
    let (before, now) = (known.updated_ms?, entry.updated_ms?);
    let is_standing = !known.is_gone
        && entry.status.as_deref() != Some("deleted")
        && known.status == entry.status
        && known.status_message == entry.status_message
        && known.is_latest == entry.is_latest.unwrap_or(known.is_latest);
    (is_standing && now > before).then_some((known.target, known.id, before, now))
}

/// A stamp in milliseconds as it is shown.
fn moment(ms: i64) -> Option<String> {
    Some(chrono::DateTime::from_timestamp_millis(ms)?.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

/// The entry with names that an index takes and texts that a column takes.
fn storable(entry: &Entry) -> Entry {
    let text = |text: &Option<String>| text.as_deref().map(|text| shortened(text, LONGEST_TEXT));
    Entry {
        name: key(&entry.name),
        version: key(&entry.version),
        status: text(&entry.status),
        status_message: text(&entry.status_message),
        meta: clean_or_none(entry.meta.as_deref()),
        title: text(&entry.title),
        description: text(&entry.description),
        ..entry.clone()
    }
}

/// Who a registry name belongs to: what stands before its slash.
fn namespace(name: &str) -> Option<&str> {
    name.split_once('/').map(|(namespace, _)| namespace).filter(|namespace| !namespace.is_empty())
}

/// The listings of a target in a source that are not gone.
async fn listings_of(w: &mut Writing, source: i64, target: i64) -> Result<Vec<Candidate>> {
    let rows = sqlx::query(
        "SELECT id, version, status, is_latest, published_ms, document_id, is_current
         FROM listing
         WHERE source_id = $1 AND target_id = $2 AND gone_s IS NULL
         ORDER BY id",
    )
    .bind(source)
    .bind(target)
    .fetch_all(w.on())
    .await?;
    let mut listings = Vec::with_capacity(rows.len());
    for row in rows {
        listings.push(Candidate {
            listing: row.try_get(0)?,
            version: row.try_get(1)?,
            is_deleted: row.try_get::<Option<String>, _>(2)?.as_deref() == Some("deleted"),
            is_latest: row.try_get::<i64, _>(3)? != 0,
            published_ms: row.try_get(4)?,
            document: row.try_get(5)?,
            is_current: row.try_get::<i64, _>(6)? != 0,
        });
    }
    Ok(listings)
}

/// Makes a listing the current one and its document the surface's. Gives whether the surface is due because of it.
async fn point_surface(
    w: &mut Writing,
    target: i64,
    source: i64,
    surface: i64,
    current: &Candidate,
    now_s: i64,
) -> Result<bool> {
    if !current.is_current {
        sqlx::query(
            "UPDATE listing SET is_current = CASE WHEN id = $3 THEN 1 ELSE 0 END
             WHERE source_id = $1 AND target_id = $2 AND (is_current = 1 OR id = $3)",
        )
        .bind(source)
        .bind(target)
        .bind(current.listing)
        .execute(w.on())
        .await?;
    }
    let done = sqlx::query(
        "UPDATE surface SET listing_id = $2, next_due_s = $4, urgent = CASE WHEN urgent = 0 THEN 1 ELSE urgent END
         WHERE id = $1 AND (listing_id IS NULL OR listing_id <> $2 OR document_id IS NULL OR document_id <> $3)",
    )
    .bind(surface)
    .bind(current.listing)
    .bind(current.document)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(done.rows_affected() > 0)
}

/// A target without a current version in this source leaves it.
async fn retract(
    w: &mut Writing,
    trends: &mut Trends,
    source: i64,
    target: i64,
    reason: RetireReason,
    now_s: i64,
) -> Result<()> {
    let current = sqlx::query(
        "SELECT target_surface.surface_id
         FROM listing
         JOIN surface ON surface.listing_id = listing.id
         JOIN target_surface ON target_surface.surface_id = surface.id AND target_surface.target_id = listing.target_id
         WHERE listing.source_id = $1 AND listing.target_id = $2 AND target_surface.role = 'main'
           AND target_surface.removed_s IS NULL",
    )
    .bind(source)
    .bind(target)
    .fetch_all(w.on())
    .await?;
    sqlx::query("UPDATE listing SET is_current = 0 WHERE source_id = $1 AND target_id = $2 AND is_current = 1")
        .bind(source)
        .bind(target)
        .execute(w.on())
        .await?;
    for row in current {
        targets::untie(w, trends, target, row.try_get(0)?, Role::Main, now_s).await?;
    }
    targets::leave(w, trends, target, source, reason, now_s).await?;
    targets::refold(w, trends, target, now_s).await
}

async fn names_seen(w: &mut Writing, walk: &OpenWalk) -> Result<i64> {
    let n = sqlx::query_scalar("SELECT COUNT(DISTINCT target_id) FROM listing WHERE source_id = $1 AND walk_id = $2")
        .bind(walk.source)
        .bind(walk.id)
        .fetch_one(w.on())
        .await?;
    Ok(n)
}

/// After a complete full walk: who was not in it has missed one more; who missed two is gone, unless so many are missing
/// that the list itself is not believed.
async fn count_absence(
    w: &mut Writing,
    trends: &mut Trends,
    walk: &OpenWalk,
    finished: &mut WalkFinished,
    now_s: i64,
) -> Result<()> {
    let row = sqlx::query(
        "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN walk_id <> $2 THEN 1 ELSE 0 END), 0) AS BIGINT)
         FROM listing
         WHERE source_id = $1 AND gone_s IS NULL",
    )
    .bind(walk.source)
    .bind(walk.id)
    .fetch_one(w.on())
    .await?;
    let (known, absent): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if !is_believable(known, absent) {
        finished.held_back = absent;
        return hold_back(w, walk, absent, known, now_s).await;
    }
    if absent == 0 {
        return Ok(());
    }
    sqlx::query("UPDATE listing SET missed = missed + 1 WHERE source_id = $1 AND gone_s IS NULL AND walk_id <> $2")
        .bind(walk.source)
        .bind(walk.id)
        .execute(w.on())
        .await?;
    mark_gone(w, trends, walk, finished, now_s).await
}

/// Whether a complete list from which `absent` of `known` listings are missing tells of a smaller world, and not of a
/// registry that was reset or a proxy that cuts. A list without any of them never does.
fn is_believable(known: i64, absent: i64) -> bool {
    let is_empty = known > 0 && absent == known;
    !is_empty && (absent < FEW_GONE || absent * 100 <= known * MOST_GONE_PERCENT)
}

/// A person has looked: what is missing from this walk is gone.
async fn accept_loss(
    w: &mut Writing,
    trends: &mut Trends,
    walk: &OpenWalk,
    finished: &mut WalkFinished,
    now_s: i64,
) -> Result<()> {
    sqlx::query("UPDATE listing SET missed = $3 WHERE source_id = $1 AND gone_s IS NULL AND walk_id <> $2")
        .bind(walk.source)
        .bind(walk.id)
        .bind(GONE_AFTER)
        .execute(w.on())
        .await?;
    mark_gone(w, trends, walk, finished, now_s).await
}

/// Marks what has missed enough complete walks, and settles the targets that lose by it.
async fn mark_gone(
    w: &mut Writing,
    trends: &mut Trends,
    walk: &OpenWalk,
    finished: &mut WalkFinished,
    now_s: i64,
) -> Result<()> {
    let gone = sqlx::query(
        "UPDATE listing SET gone_s = $2, is_current = 0, changed_s = $2
         WHERE source_id = $1 AND gone_s IS NULL AND missed >= $3
         RETURNING target_id",
    )
    .bind(walk.source)
    .bind(now_s)
    .bind(GONE_AFTER)
    .fetch_all(w.on())
    .await?;
    let mut unsettled = BTreeSet::new();
    for row in &gone {
        unsettled.insert(row.try_get::<i64, _>(0)?);
    }
    finished.gone = crate::rows::count(gone.len());
    trends.count(TargetKind::McpServer, |cohort| cohort.entries -= finished.gone);
    for target in unsettled {
        settle_after_loss(w, trends, walk, target, now_s).await?;
    }
    Ok(())
}

/// A target that lost listings shows the version that is current now, or leaves.
async fn settle_after_loss(
    w: &mut Writing,
    trends: &mut Trends,
    walk: &OpenWalk,
    target: i64,
    now_s: i64,
) -> Result<()> {
    let listings = listings_of(w, walk.source, target).await?;
    let Some(current) = versions::current(&listings).map(|n| &listings[n]) else {
        return retract(w, trends, walk.source, target, RetireReason::Source, now_s).await;
    };
    let surface: Option<i64> = sqlx::query_scalar(
        "SELECT surface.id
         FROM surface
         JOIN listing ON listing.id = surface.listing_id
         WHERE listing.source_id = $1 AND listing.target_id = $2",
    )
    .bind(walk.source)
    .bind(target)
    .fetch_optional(w.on())
    .await?;
    if let Some(surface) = surface {
        point_surface(w, target, walk.source, surface, current, now_s).await?;
    }
    targets::declare(w, target, &current.version).await
}

/// Too much is missing: a registry that was reset, or a proxy that cuts. A person is told, nothing is counted.
async fn hold_back(w: &mut Writing, walk: &OpenWalk, absent: i64, known: i64, now_s: i64) -> Result<()> {
    let source: String =
        sqlx::query_scalar("SELECT name FROM source WHERE id = $1").bind(walk.source).fetch_one(w.on()).await?;
    let note = format!(
        "{absent} of {known} listings are missing from this walk, more than {MOST_GONE_PERCENT} % at once: none was \
         counted as missing. If the registry did drop them, say so with `plumbline crawl --accept-loss {source}`."
    );
    sqlx::query("UPDATE crawl SET note = $2 WHERE id = $1")
        .bind(walk.crawl)
        .bind(note.as_str())
        .execute(w.on())
        .await?;
    let (a, b) = (Some(absent), Some(known));
    let news = News { subject: Some(walk.crawl), a, b, note: Some(note), ..News::of(EventKind::CrawlDegraded) };
    events::append(w, now_s, news).await
}

async fn close_walk(w: &mut Writing, walk: &OpenWalk, end: &WalkEnd, now_s: i64) -> Result<()> {
    let (state, problem) = match end {
        WalkEnd::Complete | WalkEnd::CompleteLossAccepted => (CrawlState::Complete, None),
        WalkEnd::Incomplete(problem) => (CrawlState::Incomplete, Some(shortened(problem, 500))),
    };
    let is_complete = i64::from(state == CrawlState::Complete);
    sqlx::query("UPDATE walk SET state = $2, complete = $3, finished_s = $4, problem = $5 WHERE id = $1")
        .bind(walk.id)
        .bind(state.as_str())
        .bind(is_complete)
        .bind(now_s)
        .bind(problem.as_deref())
        .execute(w.on())
        .await?;
    sqlx::query(
        "UPDATE source
         SET problem = $2,
             last_pass_s = CASE WHEN $3 = 1 THEN $5 ELSE last_pass_s END,
             last_full_s = CASE WHEN $3 = 1 AND $4 = 1 THEN $5 ELSE last_full_s END,
             full_pages = CASE WHEN $3 = 1 AND $4 = 1 THEN $6 ELSE full_pages END
         WHERE id = $1",
    )
    .bind(walk.source)
    .bind(problem.as_deref())
    .bind(is_complete)
    .bind(i64::from(walk.is_full))
    .bind(walk.started_s)
    .bind(walk.pages)
    .execute(w.on())
    .await?;
    Ok(())
}
