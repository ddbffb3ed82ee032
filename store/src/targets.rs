//! Targets: made when a source names them, retired when none does any more, never deleted.
//!
//! What lists show of a target is folded from its surfaces and kept on its row.

use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::Result;
use crate::events::{self, News};
use crate::findings;
use crate::ids::{SourceId, TargetId};
use crate::reach::gravity;
use crate::rows::{clean, in_statements, key, places, shortened, word, word_or_none};
use crate::trends::Trends;
use crate::words::{
    EventKind, Headline, Known, ReachState, RetireReason, Role, SurfaceKind, TargetKind, headline_rank,
};

/// Words of one target that can be searched for, and characters of each.
const MOST_TOKENS: usize = 16;
const LONGEST_TOKEN: usize = 40;
/// Bytes of an address that a document leads to; a longer one is not followed.
const LONGEST_URL: usize = 2000;
/// Characters kept of a name and of a summary.
const LONGEST_NAME: usize = 200;
const LONGEST_SUMMARY: usize = 300;

/// A target as the settings or the command line name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTarget {
    /// What it is.
    pub kind: TargetKind,
    /// What names it among its kind: host and path of a card, a registry name, an address.
    pub key: String,
    /// As shown; `None`: the key.
    pub name: Option<String>,
    /// The address of its own document.
    pub url: String,
    /// What is found there.
    pub surface: SurfaceKind,
    /// As what it is shown.
    pub role: Role,
    /// The host of that address.
    pub host: Option<HostName>,
    /// Who stands behind it.
    pub owner: Option<OwnerName>,
    /// Key and value; an empty value is a tag that is only a word.
    pub tags: Vec<(String, String)>,
    /// The operator says that it is theirs.
    pub is_own: bool,
    /// Seconds between checks; `None`: the default.
    pub interval_s: Option<i64>,
}

/// A host as politeness sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName {
    /// Host name, with `:port` where it is not the usual one.
    pub name: String,
    /// Its registrable domain.
    pub domain: String,
}

/// An owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerName {
    /// In addresses.
    pub slug: String,
    /// As shown.
    pub name: String,
}

/// A surface that a document leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// What it is.
    pub kind: SurfaceKind,
    /// Where.
    pub url: String,
    /// As what the target shows it.
    pub role: Role,
    /// The host of that address.
    pub host: Option<HostName>,
}

/// What naming targets changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetsChanged {
    /// Seen for the first time.
    pub added: usize,
    /// Known before.
    pub kept: usize,
    /// Retired before, watched again.
    pub returned: usize,
    /// No longer named by this source.
    pub left: usize,
}

impl Store {
    /// Makes these the targets of the source: new ones are added and due at once, known ones brought up to date, and those
    /// it no longer names leave it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_targets(&self, source: SourceId, targets: &[NewTarget], now_s: i64) -> Result<TargetsChanged> {
        let mut w = self.pools.write().await?;
        let mut trends = Trends::default();
        let (mut changed, named) = name_targets(&mut w, &mut trends, source, targets, now_s).await?;
        let rows = sqlx::query("SELECT target_id FROM target_source WHERE source_id = $1 AND gone_s IS NULL")
            .bind(source.0)
            .fetch_all(w.on())
            .await?;
        for row in rows {
            let target: i64 = row.try_get(0)?;
            if !named.contains(&target) {
                leave(&mut w, &mut trends, target, source.0, RetireReason::Source, now_s).await?;
                changed.left += 1;
            }
        }
        trends.write(&mut w, now_s).await?;
        w.commit().await?;
        Ok(changed)
    }

    /// Adds targets to a source, or brings them up to date, and lets the others be.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_targets(&self, source: SourceId, targets: &[NewTarget], now_s: i64) -> Result<TargetsChanged> {
        let mut w = self.pools.write().await?;
        let mut trends = Trends::default();
        let (changed, _) = name_targets(&mut w, &mut trends, source, targets, now_s).await?;
        trends.write(&mut w, now_s).await?;
        w.commit().await?;
        Ok(changed)
    }

    /// Makes these the surfaces that the target's documents lead to, main document apart: new ones are due at once, those
    /// no longer named are let go.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_links(&self, target: TargetId, links: &[Link], now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        let mut trends = Trends::default();
        link(&mut w, &mut trends, target.0, links, now_s).await?;
        trends.write(&mut w, now_s).await?;
        w.commit().await
    }

    /// Whether a target is the operator's own, and its tags as `key=value`, or `key` where the tag is only a word.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn target_traits(&self, target: TargetId) -> Result<(bool, Vec<String>)> {
        let is_own: Option<i64> = sqlx::query_scalar("SELECT is_own FROM target WHERE id = $1")
            .bind(target.0)
            .fetch_optional(&self.pools.reader)
            .await?;
        let rows = sqlx::query("SELECT key, value FROM tag WHERE target_id = $1 ORDER BY key, value")
            .bind(target.0)
            .fetch_all(&self.pools.reader)
            .await?;
        let tag = |row: &sqlx::any::AnyRow| {
            let (key, value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            Ok(if value.is_empty() { key } else { format!("{key}={value}") })
        };
        Ok((is_own == Some(1), rows.iter().map(tag).collect::<Result<_>>()?))
    }

    /// The target of this kind and key; `None`: nobody named it yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn target_named(&self, kind: TargetKind, key: &str) -> Result<Option<TargetId>> {
        let id: Option<i64> = sqlx::query_scalar("SELECT id FROM target WHERE kind = $1 AND key = $2")
            .bind(kind.as_str())
            .bind(key)
            .fetch_optional(&self.pools.reader)
            .await?;
        Ok(id.map(TargetId))
    }
}

async fn name_targets(
    w: &mut Writing,
    trends: &mut Trends,
    source: SourceId,
    targets: &[NewTarget],
    now_s: i64,
) -> Result<(TargetsChanged, std::collections::HashSet<i64>)> {
    let mut changed = TargetsChanged::default();
    let mut named = std::collections::HashSet::new();
    for target in targets {
        let host = host(w, target.host.as_ref(), now_s).await?;
        let owner = owner(w, target.owner.as_ref(), now_s).await?;
        let key = key(&target.key);
        let seen = Seen {
            kind: target.kind,
            key: &key,
            name: target.name.as_deref(),
            summary: None,
            url: Some(&target.url),
            declared_version: None,
            source: source.0,
            owner,
            host,
        };
        let (id, how) = see(w, trends, &seen, now_s).await?;
        match how {
            Sighting::New => changed.added += 1,
            Sighting::Known => changed.kept += 1,
            Sighting::Back => changed.returned += 1,
        }
        sqlx::query("UPDATE target SET is_own = $2, interval_s = $3, owner_id = COALESCE($4, owner_id) WHERE id = $1")
            .bind(id)
            .bind(i64::from(target.is_own))
            .bind(target.interval_s)
            .bind(owner)
            .execute(w.on())
            .await?;
        set_tags(w, id, &target.tags).await?;
        let tied =
            Tied { kind: target.surface, url: &target.url, role: target.role, host, interval_s: target.interval_s };
        let surface = tie(w, id, &tied, now_s).await?;
        // The operator's own are always looked at first.
        sqlx::query(
            "UPDATE surface
             SET interval_s = $2, urgent = CASE WHEN $3 = 1 THEN 2 WHEN urgent = 2 THEN 0 ELSE urgent END
             WHERE id = $1",
        )
        .bind(surface)
        .bind(target.interval_s)
        .bind(i64::from(target.is_own))
        .execute(w.on())
        .await?;
        let_other_addresses_go(w, trends, id, surface, target.role, now_s).await?;
        if how != Sighting::Known {
            refold(w, trends, id, now_s).await?;
        }
        named.insert(id);
    }
    Ok((changed, named))
}

/// A target whose address changed in the settings shows the new one only.
async fn let_other_addresses_go(
    w: &mut Writing,
    trends: &mut Trends,
    target: i64,
    surface: i64,
    role: Role,
    now_s: i64,
) -> Result<()> {
    let others = sqlx::query(
        "SELECT target_surface.surface_id
         FROM target_surface
         JOIN surface ON surface.id = target_surface.surface_id
         WHERE target_surface.target_id = $1 AND target_surface.role = $2 AND target_surface.surface_id <> $3
           AND target_surface.removed_s IS NULL AND surface.listing_id IS NULL",
    )
    .bind(target)
    .bind(role.as_str())
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    for row in others {
        untie(w, trends, target, row.try_get(0)?, role, now_s).await?;
    }
    Ok(())
}

async fn set_tags(w: &mut Writing, target: i64, tags: &[(String, String)]) -> Result<()> {
    let rows = sqlx::query("SELECT key, value FROM tag WHERE target_id = $1").bind(target).fetch_all(w.on()).await?;
    let mut before = Vec::with_capacity(rows.len());
    for row in rows {
        before.push((row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?));
    }
    let (mut a, mut b) = (before.iter().collect::<Vec<_>>(), tags.iter().collect::<Vec<_>>());
    a.sort();
    b.sort();
    b.dedup();
    if a == b {
        return Ok(());
    }
    sqlx::query("DELETE FROM tag WHERE target_id = $1").bind(target).execute(w.on()).await?;
    for (key, value) in b {
        sqlx::query("INSERT INTO tag (target_id, key, value) VALUES ($1, $2, $3)")
            .bind(target)
            .bind(clean(key))
            .bind(clean(value))
            .execute(w.on())
            .await?;
    }
    Ok(())
}

/// A target as a source shows it at this moment.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) kind: TargetKind,
    pub(crate) key: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) summary: Option<&'a str>,
    pub(crate) url: Option<&'a str>,
    pub(crate) declared_version: Option<&'a str>,
    pub(crate) source: i64,
    pub(crate) owner: Option<i64>,
    pub(crate) host: Option<i64>,
}

/// Whether a target was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sighting {
    New,
    Known,
    Back,
}

/// A source shows a target: it is made, or found, or brought back.
pub(crate) async fn see(w: &mut Writing, trends: &mut Trends, seen: &Seen<'_>, now_s: i64) -> Result<(i64, Sighting)> {
    let known = sqlx::query(
        "SELECT id, retired_s, CASE WHEN retire_reason = 'absent' THEN 1 ELSE 0 END
         FROM target WHERE kind = $1 AND key = $2",
    )
    .bind(seen.kind.as_str())
    .bind(seen.key)
    .fetch_optional(w.on())
    .await?;
    let (id, how) = match known {
        None => return Ok((make(w, trends, seen, now_s).await?, Sighting::New)),
        // That a list names it still is no answer.
        Some(row) if row.try_get::<i64, _>(2)? == 1 => (row.try_get(0)?, Sighting::Known),
        Some(row) if row.try_get::<Option<i64>, _>(1)?.is_some() => {
            let id = row.try_get(0)?;
            bring_back(w, trends, id, seen.kind, seen.source, now_s).await?;
            (id, Sighting::Back)
        }
        Some(row) => (row.try_get(0)?, Sighting::Known),
    };
    sqlx::query("UPDATE target SET last_seen_s = $2 WHERE id = $1 AND last_seen_s < $2")
        .bind(id)
        .bind(now_s)
        .execute(w.on())
        .await?;
    list(w, id, seen.source, now_s).await?;
    Ok((id, how))
}

/// Makes a target that is known to be new.
pub(crate) async fn make(w: &mut Writing, trends: &mut Trends, seen: &Seen<'_>, now_s: i64) -> Result<i64> {
    let id = insert(w, trends, seen, now_s).await?;
    list(w, id, seen.source, now_s).await?;
    Ok(id)
}

/// Notes that the source lists the target.
async fn list(w: &mut Writing, target: i64, source: i64, now_s: i64) -> Result<()> {
    sqlx::query(
        "INSERT INTO target_source (target_id, source_id, first_seen_s, last_seen_s)
         VALUES ($1, $2, $3, $3)
         ON CONFLICT (target_id, source_id) DO UPDATE SET last_seen_s = excluded.last_seen_s, gone_s = NULL",
    )
    .bind(target)
    .bind(source)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}

async fn insert(w: &mut Writing, trends: &mut Trends, seen: &Seen<'_>, now_s: i64) -> Result<i64> {
    let id = w.next_id(Table::Target).await?;
    let name = shortened(seen.name.unwrap_or(seen.key), LONGEST_NAME);
    sqlx::query(
        "INSERT INTO target (id, kind, key, name, summary, url, source_id, owner_id, host_id, declared_version,
                             first_seen_s, last_seen_s, changed_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $11)",
    )
    .bind(id)
    .bind(seen.kind.as_str())
    .bind(seen.key)
    .bind(name.as_str())
    .bind(seen.summary.map(|text| shortened(text, LONGEST_SUMMARY)))
    .bind(seen.url)
    .bind(seen.source)
    .bind(seen.owner)
    .bind(seen.host)
    .bind(seen.declared_version.map(|text| shortened(text, LONGEST_NAME)))
    .bind(now_s)
    .execute(w.on())
    .await?;
    set_tokens(w, id, &[seen.key, &name, seen.summary.unwrap_or_default()]).await?;
    trends.population(seen.kind, Headline::NotEvaluated, ReachState::Unknown, 1);
    trends.count(seen.kind, |cohort| cohort.added += 1);
    let news = News { target: Some(id), subject: Some(seen.source), ..News::of(EventKind::TargetAdded) };
    events::append(w, now_s, news).await?;
    Ok(id)
}

/// What a document says about its target.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnWords<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) summary: Option<&'a str>,
    pub(crate) version: Option<&'a str>,
}

/// Its document says who it is; where it gives no name the key stands for it.
pub(crate) async fn describe(w: &mut Writing, target: i64, words: OwnWords<'_>) -> Result<()> {
    let key: String = sqlx::query_scalar("SELECT key FROM target WHERE id = $1").bind(target).fetch_one(w.on()).await?;
    let name = shortened(words.name.filter(|name| !name.trim().is_empty()).unwrap_or(&key), LONGEST_NAME);
    let summary = words.summary.map(|text| shortened(text, LONGEST_SUMMARY));
    let changed = sqlx::query(
        "UPDATE target SET name = $2, summary = $3, declared_version = $4
         WHERE id = $1
           AND (name <> $2 OR COALESCE(summary, '') <> COALESCE($3, '')
                OR COALESCE(declared_version, '') <> COALESCE($4, ''))",
    )
    .bind(target)
    .bind(name.as_str())
    .bind(summary.as_deref())
    .bind(words.version.map(|text| shortened(text, LONGEST_NAME)))
    .execute(w.on())
    .await?;
    if changed.rows_affected() > 0 {
        sqlx::query("DELETE FROM target_token WHERE target_id = $1").bind(target).execute(w.on()).await?;
        set_tokens(w, target, &[&key, &name, words.summary.unwrap_or_default()]).await?;
    }
    Ok(())
}

/// Another version is the current one, and nothing else is known of it.
pub(crate) async fn declare(w: &mut Writing, target: i64, version: &str) -> Result<()> {
    sqlx::query("UPDATE target SET declared_version = $2 WHERE id = $1")
        .bind(target)
        .bind(shortened(version, LONGEST_NAME))
        .execute(w.on())
        .await?;
    Ok(())
}

async fn bring_back(
    w: &mut Writing,
    trends: &mut Trends,
    target: i64,
    kind: TargetKind,
    source: i64,
    now_s: i64,
) -> Result<()> {
    sqlx::query(
        "UPDATE target
         SET retired_s = NULL, retire_reason = NULL, headline = 'not_evaluated', headline_rank = 4,
             headline_since_s = NULL, reach = 'unknown', reach_since_s = NULL, changed_s = $2
         WHERE id = $1",
    )
    .bind(target)
    .bind(now_s)
    .execute(w.on())
    .await?;
    trends.population(kind, Headline::NotEvaluated, ReachState::Unknown, 1);
    let news = News { target: Some(target), subject: Some(source), ..News::of(EventKind::TargetReturned) };
    events::append(w, now_s, news).await
}

/// Writes the words a target is found by, sixteen in one statement: a word twice is a word once.
async fn set_tokens(w: &mut Writing, target: i64, texts: &[&str]) -> Result<()> {
    let tokens = tokens(texts);
    let Some(last) = tokens.last() else { return Ok(()) };
    let mut insert = sqlx::query(
        "INSERT INTO target_token (target_id, token)
         VALUES ($1, $2), ($1, $3), ($1, $4), ($1, $5), ($1, $6), ($1, $7), ($1, $8), ($1, $9),
                ($1, $10), ($1, $11), ($1, $12), ($1, $13), ($1, $14), ($1, $15), ($1, $16), ($1, $17)
         ON CONFLICT (token, target_id) DO NOTHING",
    )
    .bind(target);
    for n in 0..MOST_TOKENS {
        insert = insert.bind(tokens.get(n).unwrap_or(last).as_str());
    }
    insert.execute(w.on()).await?;
    Ok(())
}

/// The words of texts: lower case, two letters or more, each once, the first few.
fn tokens(texts: &[&str]) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for text in texts {
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let word: String = word.to_lowercase().chars().take(LONGEST_TOKEN).collect();
            if word.chars().count() >= 2 && !tokens.contains(&word) {
                tokens.push(word);
            }
            if tokens.len() == MOST_TOKENS {
                return tokens;
            }
        }
    }
    tokens
}

/// The row of a host, made when it is new.
pub(crate) async fn host(w: &mut Writing, host: Option<&HostName>, now_s: i64) -> Result<Option<i64>> {
    let Some(host) = host else { return Ok(None) };
    let known: Option<i64> = sqlx::query_scalar("SELECT id FROM host WHERE name = $1")
        .bind(host.name.as_str())
        .fetch_optional(w.on())
        .await?;
    if known.is_some() {
        return Ok(known);
    }
    let id = w.next_id(Table::Host).await?;
    sqlx::query("INSERT INTO host (id, name, domain, added_s) VALUES ($1, $2, $3, $4)")
        .bind(id)
        .bind(host.name.as_str())
        .bind(host.domain.as_str())
        .bind(now_s)
        .execute(w.on())
        .await?;
    Ok(Some(id))
}

/// The row of an owner, made when it is new.
pub(crate) async fn owner(w: &mut Writing, owner: Option<&OwnerName>, now_s: i64) -> Result<Option<i64>> {
    let Some(owner) = owner else { return Ok(None) };
    let known: Option<i64> = sqlx::query_scalar("SELECT id FROM owner WHERE slug = $1")
        .bind(owner.slug.as_str())
        .fetch_optional(w.on())
        .await?;
    if known.is_some() {
        return Ok(known);
    }
    let id = w.next_id(Table::Owner).await?;
    sqlx::query("INSERT INTO owner (id, slug, name, added_s) VALUES ($1, $2, $3, $4)")
        .bind(id)
        .bind(owner.slug.as_str())
        .bind(owner.name.as_str())
        .bind(now_s)
        .execute(w.on())
        .await?;
    Ok(Some(id))
}

/// A surface that a target shows.
#[derive(Debug)]
pub(crate) struct Tied<'a> {
    pub(crate) kind: SurfaceKind,
    pub(crate) url: &'a str,
    pub(crate) role: Role,
    pub(crate) host: Option<i64>,
    pub(crate) interval_s: Option<i64>,
}

/// What linking came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    /// Surfaces that are new to the target.
    pub(crate) new: usize,
    /// Surfaces came or went.
    pub(crate) is_other: bool,
}

/// Makes these the surfaces that a target leads to, beside its own.
pub(crate) async fn link(
    w: &mut Writing,
    trends: &mut Trends,
    target: i64,
    links: &[Link],
    now_s: i64,
) -> Result<Linked> {
    let rows = sqlx::query(
        "SELECT surface_id, role FROM target_surface WHERE target_id = $1 AND removed_s IS NULL AND role <> 'main'",
    )
    .bind(target)
    .fetch_all(w.on())
    .await?;
    let mut before: Vec<(i64, Role)> = Vec::with_capacity(rows.len());
    for row in rows {
        before.push((row.try_get(0)?, word("role", row.try_get(1)?)?));
    }
    let mut named = Vec::with_capacity(links.len());
    for link in links.iter().filter(|link| link.url.len() <= LONGEST_URL) {
        let host = host(w, link.host.as_ref(), now_s).await?;
        let tied = Tied { kind: link.kind, url: &link.url, role: link.role, host, interval_s: None };
        named.push((tie(w, target, &tied, now_s).await?, link.role));
    }
    let mut is_other = named.len() != before.len();
    for (surface, role) in before.iter().filter(|tie| !named.contains(tie)) {
        untie(w, trends, target, *surface, *role, now_s).await?;
        is_other = true;
    }
    let new = named.iter().filter(|tie| !before.contains(tie)).count();
    is_other |= new > 0;
    if is_other {
        refold(w, trends, target, now_s).await?;
    }
    Ok(Linked { new, is_other })
}

/// Ties a surface to a target, making it (due at once) when nobody named it before.
pub(crate) async fn tie(w: &mut Writing, target: i64, tied: &Tied<'_>, now_s: i64) -> Result<i64> {
    let known = sqlx::query("SELECT id, retired_s FROM surface WHERE kind = $1 AND url = $2")
        .bind(tied.kind.as_str())
        .bind(tied.url)
        .fetch_optional(w.on())
        .await?;
    let surface = match known {
        None => insert_surface(w, tied, now_s).await?,
        Some(row) => {
            let surface = row.try_get(0)?;
            if is_tied(w, target, surface, tied.role).await? {
                return Ok(surface);
            }
            if row.try_get::<Option<i64>, _>(1)?.is_some() {
                revive(w, surface, now_s).await?;
            }
            surface
        }
    };
    sqlx::query(
        "INSERT INTO target_surface (target_id, surface_id, role, added_s)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (target_id, surface_id, role) DO UPDATE SET removed_s = NULL",
    )
    .bind(target)
    .bind(surface)
    .bind(tied.role.as_str())
    .bind(now_s)
    .execute(w.on())
    .await?;
    sqlx::query("UPDATE target SET n_surfaces = n_surfaces + 1 WHERE id = $1").bind(target).execute(w.on()).await?;
    Ok(surface)
}

/// A surface that was put away is looked at again as if for the first time.
async fn revive(w: &mut Writing, surface: i64, now_s: i64) -> Result<()> {
    sqlx::query(
        "UPDATE surface
         SET retired_s = NULL, next_due_s = $2, headline = 'not_evaluated', reach = 'unknown', reach_reason = NULL,
             reach_since_s = NULL, streak = 0, streak_outcome = NULL, streak_since_s = NULL
         WHERE id = $1",
    )
    .bind(surface)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// A surface where nothing has been for a month is put away with its findings, and so is every target of which no main
/// surface is left. It stays with those that show it and is asked now and then: see [`welcome`].
pub(crate) async fn forsake(
    w: &mut Writing,
    trends: &mut Trends,
    surface: i64,
    next_due_s: Option<i64>,
    now_s: i64,
) -> Result<()> {
    findings::retire_surface(w, trends, surface, now_s).await?;
    sqlx::query(
        "UPDATE surface
         SET headline = 'not_evaluated', next_due_s = CASE WHEN paused = 1 THEN NULL ELSE $2 END
         WHERE id = $1",
    )
    .bind(surface)
    .bind(next_due_s)
    .execute(w.on())
    .await?;
    let rows = sqlx::query(
        "SELECT target.id, target.source_id,
                (SELECT COUNT(*) FROM target_surface alive
                 JOIN surface ON surface.id = alive.surface_id
                 WHERE alive.target_id = target.id AND alive.removed_s IS NULL AND surface.retired_s IS NULL
                   AND alive.role = 'main')
         FROM target_surface
         JOIN target ON target.id = target_surface.target_id
         WHERE target_surface.surface_id = $1 AND target_surface.removed_s IS NULL AND target.retired_s IS NULL
           AND target_surface.role = 'main'
         ORDER BY target.id",
    )
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    let mut retired = Vec::new();
    for row in rows {
        let (target, source, alive): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if alive == 0 {
            retire(w, trends, target, source, RetireReason::Absent, now_s).await?;
            retired.push(target);
        }
    }
    let shown = sqlx::query(
        "SELECT DISTINCT target_id FROM target_surface WHERE surface_id = $1 AND removed_s IS NULL ORDER BY target_id",
    )
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    for row in shown {
        let target = row.try_get(0)?;
        if !retired.contains(&target) {
            refold(w, trends, target, now_s).await?;
        }
    }
    Ok(())
}

/// Somebody answers at a surface: if it was put away for its silence it is looked at again, and so are the targets that
/// were. Tells whether any was.
pub(crate) async fn welcome(w: &mut Writing, trends: &mut Trends, surface: i64, now_s: i64) -> Result<bool> {
    let rows = sqlx::query(
        "SELECT target.id, target.kind, target.source_id
         FROM target_surface
         JOIN target ON target.id = target_surface.target_id
         WHERE target_surface.surface_id = $1 AND target_surface.removed_s IS NULL AND target.retire_reason = 'absent'
         ORDER BY target.id",
    )
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    for row in &rows {
        let kind = word("target", row.try_get(1)?)?;
        bring_back(w, trends, row.try_get(0)?, kind, row.try_get(2)?, now_s).await?;
    }
    let is_away: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM surface
         WHERE id = $1 AND retired_s IS NOT NULL
           AND EXISTS (SELECT 1 FROM target_surface WHERE surface_id = $1 AND removed_s IS NULL)",
    )
    .bind(surface)
    .fetch_one(w.on())
    .await?;
    if is_away > 0 {
        revive(w, surface, now_s).await?;
    }
    Ok(is_away > 0 || !rows.is_empty())
}

async fn is_tied(w: &mut Writing, target: i64, surface: i64, role: Role) -> Result<bool> {
    let tie: Option<i64> = sqlx::query_scalar(
        "SELECT surface_id FROM target_surface
         WHERE target_id = $1 AND surface_id = $2 AND role = $3 AND removed_s IS NULL",
    )
    .bind(target)
    .bind(surface)
    .bind(role.as_str())
    .fetch_optional(w.on())
    .await?;
    Ok(tie.is_some())
}

async fn insert_surface(w: &mut Writing, tied: &Tied<'_>, now_s: i64) -> Result<i64> {
    let id = w.next_id(Table::Surface).await?;
    sqlx::query(
        "INSERT INTO surface (id, kind, url, host_id, added_s, interval_s, next_due_s)
         VALUES ($1, $2, $3, $4, $5, $6, $5)",
    )
    .bind(id)
    .bind(tied.kind.as_str())
    .bind(tied.url)
    .bind(tied.host)
    .bind(now_s)
    .bind(tied.interval_s)
    .execute(w.on())
    .await?;
    Ok(id)
}

/// The target no longer shows the surface; a surface that nobody shows is put away with its findings.
pub(crate) async fn untie(
    w: &mut Writing,
    trends: &mut Trends,
    target: i64,
    surface: i64,
    role: Role,
    now_s: i64,
) -> Result<()> {
    let done = sqlx::query(
        "UPDATE target_surface SET removed_s = $4
         WHERE target_id = $1 AND surface_id = $2 AND role = $3 AND removed_s IS NULL",
    )
    .bind(target)
    .bind(surface)
    .bind(role.as_str())
    .bind(now_s)
    .execute(w.on())
    .await?;
    if done.rows_affected() == 0 {
        return Ok(());
    }
    sqlx::query("UPDATE target SET n_surfaces = n_surfaces - 1 WHERE id = $1").bind(target).execute(w.on()).await?;
    let shown: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM target_surface WHERE surface_id = $1 AND removed_s IS NULL")
            .bind(surface)
            .fetch_one(w.on())
            .await?;
    if shown == 0 {
        findings::retire_surface(w, trends, surface, now_s).await?;
    }
    Ok(())
}

/// A source no longer lists a target; a target that no source lists is retired.
pub(crate) async fn leave(
    w: &mut Writing,
    trends: &mut Trends,
    target: i64,
    source: i64,
    reason: RetireReason,
    now_s: i64,
) -> Result<()> {
    sqlx::query("UPDATE target_source SET gone_s = $3 WHERE target_id = $1 AND source_id = $2 AND gone_s IS NULL")
        .bind(target)
        .bind(source)
        .bind(now_s)
        .execute(w.on())
        .await?;
    let listed: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM target_source WHERE target_id = $1 AND gone_s IS NULL")
        .bind(target)
        .fetch_one(w.on())
        .await?;
    if listed == 0 { retire(w, trends, target, source, reason, now_s).await } else { Ok(()) }
}

async fn retire(
    w: &mut Writing,
    trends: &mut Trends,
    target: i64,
    source: i64,
    reason: RetireReason,
    now_s: i64,
) -> Result<()> {
    let row = sqlx::query("SELECT kind, headline, reach FROM target WHERE id = $1 AND retired_s IS NULL")
        .bind(target)
        .fetch_optional(w.on())
        .await?;
    let Some(row) = row else { return never_again(w, trends, target, reason, now_s).await };
    let kind = word("target", row.try_get(0)?)?;
    trends.population(kind, word("target", row.try_get(1)?)?, word("target", row.try_get(2)?)?, -1);
    trends.count(kind, |cohort| cohort.retired += 1);
    let ties = sqlx::query("SELECT surface_id, role FROM target_surface WHERE target_id = $1 AND removed_s IS NULL")
        .bind(target)
        .fetch_all(w.on())
        .await?;
    for tie in ties {
        let role = word("role", tie.try_get(1)?)?;
        // What is only silent is asked now and then.
        if reason != RetireReason::Absent || role != Role::Main {
            untie(w, trends, target, tie.try_get(0)?, role, now_s).await?;
        }
    }
    sqlx::query(
        "UPDATE target
         SET retired_s = $2, retire_reason = $3, next_due_s = NULL, changed_s = $2,
             reach = 'retired', reach_since_s = $2
         WHERE id = $1",
    )
    .bind(target)
    .bind(now_s)
    .bind(reason.as_str())
    .execute(w.on())
    .await?;
    let note = Some(reason.to_string());
    let news = News { target: Some(target), subject: Some(source), note, ..News::of(EventKind::TargetRetired) };
    events::append(w, now_s, news).await
}

/// A target that was put away for its silence leaves its sources too: nobody asks any more.
async fn never_again(
    w: &mut Writing,
    trends: &mut Trends,
    target: i64,
    reason: RetireReason,
    now_s: i64,
) -> Result<()> {
    let done = sqlx::query("UPDATE target SET retire_reason = $2 WHERE id = $1 AND retire_reason = 'absent'")
        .bind(target)
        .bind(reason.as_str())
        .execute(w.on())
        .await?;
    if done.rows_affected() == 0 || reason == RetireReason::Absent {
        return Ok(());
    }
    let ties = sqlx::query("SELECT surface_id, role FROM target_surface WHERE target_id = $1 AND removed_s IS NULL")
        .bind(target)
        .fetch_all(w.on())
        .await?;
    for tie in ties {
        untie(w, trends, target, tie.try_get(0)?, word("role", tie.try_get(1)?)?, now_s).await?;
    }
    Ok(())
}

/// What a surface gives to the row of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Face {
    pub(crate) is_main: bool,
    pub(crate) headline: Headline,
    pub(crate) reach: ReachState,
    pub(crate) reach_since_s: Option<i64>,
    pub(crate) profile: Option<String>,
    pub(crate) known: Option<Known>,
    pub(crate) counts: Counts,
    pub(crate) last_ok_s: Option<i64>,
    pub(crate) last_attempt_s: Option<i64>,
    pub(crate) next_due_s: Option<i64>,
}

/// Open findings, guesses left out of the first four.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) blocking: i64,
    pub(crate) error: i64,
    pub(crate) warn: i64,
    pub(crate) info: i64,
    pub(crate) security: i64,
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            blocking: self.blocking + other.blocking,
            error: self.error + other.error,
            warn: self.warn + other.warn,
            info: self.info + other.info,
            security: self.security + other.security,
        }
    }
}

/// The target's own row from its surfaces: the worst word, the gravest reach, the sums.
pub(crate) fn fold(faces: &[Face]) -> Face {
    let headline = faces.iter().map(|face| face.headline).max().unwrap_or(Headline::NotEvaluated);
    let gravest = faces.iter().max_by_key(|face| gravity(face.reach));
    let main = faces.iter().find(|face| face.is_main && face.profile.is_some());
    let shown = main.or_else(|| faces.iter().find(|face| face.profile.is_some()));
    Face {
        is_main: true,
        headline,
        reach: gravest.map_or(ReachState::Unknown, |face| face.reach),
        reach_since_s: gravest.and_then(|face| face.reach_since_s),
        profile: shown.and_then(|face| face.profile.clone()),
        known: shown.and_then(|face| face.known),
        counts: faces.iter().fold(Counts::default(), |sum, face| sum.plus(face.counts)),
        last_ok_s: faces.iter().filter_map(|face| face.last_ok_s).max(),
        last_attempt_s: faces.iter().filter_map(|face| face.last_attempt_s).max(),
        next_due_s: faces.iter().filter_map(|face| face.next_due_s).min(),
    }
}

/// What a target's row says before it is folded anew.
#[derive(Debug, Clone)]
pub(crate) struct TargetRow {
    pub(crate) id: i64,
    pub(crate) kind: TargetKind,
    pub(crate) headline: Headline,
    pub(crate) headline_since_s: Option<i64>,
    pub(crate) reach: ReachState,
    pub(crate) reach_since_s: Option<i64>,
    pub(crate) profile: Option<String>,
    pub(crate) known: Option<Known>,
    pub(crate) n_surfaces: i64,
    pub(crate) counts: Counts,
    /// As what it shows the surface it was found by.
    pub(crate) role: Role,
}

/// The targets that show surfaces, each with the surface.
pub(crate) async fn showing(w: &mut Writing, surfaces: &[i64]) -> Result<Vec<(i64, TargetRow)>> {
    let mut found = Vec::with_capacity(surfaces.len());
    for some in in_statements(surfaces) {
        let statement = format!(
            "SELECT target.id, target.kind, target.headline, target.headline_since_s, target.reach, target.n_surfaces,
                    target.n_blocking, target.n_error, target.n_warn, target.n_info, target.n_security,
                    target.reach_since_s, target.profile, target.known, target_surface.role, target_surface.surface_id
             FROM target_surface
             JOIN target ON target.id = target_surface.target_id
             WHERE target_surface.surface_id IN {}
               AND target_surface.removed_s IS NULL AND target.retired_s IS NULL
             ORDER BY target_surface.surface_id, target.id",
            places(1, some.len())
        );
        for row in w.rows_of(statement, some).await? {
            found.push((row.try_get(15)?, target_row(&row)?));
        }
    }
    Ok(found)
}

fn target_row(row: &sqlx::any::AnyRow) -> Result<TargetRow> {
    Ok(TargetRow {
        id: row.try_get(0)?,
        kind: word("target", row.try_get(1)?)?,
        headline: word("target", row.try_get(2)?)?,
        headline_since_s: row.try_get(3)?,
        reach: word("target", row.try_get(4)?)?,
        reach_since_s: row.try_get(11)?,
        profile: row.try_get(12)?,
        known: word_or_none("target", row.try_get(13)?)?,
        n_surfaces: row.try_get(5)?,
        counts: Counts {
            blocking: row.try_get(6)?,
            error: row.try_get(7)?,
            warn: row.try_get(8)?,
            info: row.try_get(9)?,
            security: row.try_get(10)?,
        },
        role: word("role", row.try_get(14)?)?,
    })
}

/// Folds a target from all its surfaces.
pub(crate) async fn refold(w: &mut Writing, trends: &mut Trends, target: i64, now_s: i64) -> Result<()> {
    let row = sqlx::query(
        "SELECT id, kind, headline, headline_since_s, reach, n_surfaces,
                n_blocking, n_error, n_warn, n_info, n_security, reach_since_s, profile, known, 'main'
         FROM target
         WHERE id = $1 AND retired_s IS NULL",
    )
    .bind(target)
    .fetch_optional(w.on())
    .await?;
    let Some(row) = row else { return Ok(()) };
    let faces: Vec<Face> = faces(w, &[target]).await?.into_iter().map(|(_, _, face)| face).collect();
    write_folded(w, trends, &target_row(&row)?, &fold(&faces), false, now_s).await?;
    Ok(())
}

/// What surfaces give to their targets.
macro_rules! faces_sql {
    () => {
        "SELECT surface.headline, surface.reach, surface.reach_since_s, surface.profile, surface.known,
                surface.n_blocking, surface.n_error, surface.n_warn, surface.n_info, surface.n_security,
                surface.last_ok_s, surface.last_attempt_s, surface.next_due_s, target_surface.role,
                target_surface.target_id, surface.id
         FROM target_surface
         JOIN surface ON surface.id = target_surface.surface_id
         WHERE target_surface.removed_s IS NULL"
    };
}

/// The surfaces of all targets.
pub(crate) const ALL_FACES: &str = concat!(faces_sql!(), " ORDER BY surface.id");

/// The surfaces of targets, each with the number of its target and its own.
pub(crate) async fn faces(w: &mut Writing, targets: &[i64]) -> Result<Vec<(i64, i64, Face)>> {
    let mut found = Vec::with_capacity(targets.len());
    for some in in_statements(targets) {
        let statement = format!(
            concat!(faces_sql!(), " AND target_surface.target_id IN {} ORDER BY surface.id"),
            places(1, some.len())
        );
        for row in w.rows_of(statement, some).await? {
            found.push((row.try_get(14)?, row.try_get(15)?, face(&row)?));
        }
    }
    Ok(found)
}

/// A row of what surfaces give to their targets.
pub(crate) fn face(row: &sqlx::any::AnyRow) -> Result<Face> {
    Ok(Face {
        headline: word("surface", row.try_get(0)?)?,
        reach: word("surface", row.try_get(1)?)?,
        reach_since_s: row.try_get(2)?,
        profile: row.try_get(3)?,
        known: word_or_none("surface", row.try_get(4)?)?,
        counts: Counts {
            blocking: row.try_get(5)?,
            error: row.try_get(6)?,
            warn: row.try_get(7)?,
            info: row.try_get(8)?,
            security: row.try_get(9)?,
        },
        last_ok_s: row.try_get(10)?,
        last_attempt_s: row.try_get(11)?,
        next_due_s: row.try_get(12)?,
        is_main: word::<Role>("role", row.try_get(13)?)? == Role::Main,
    })
}

/// Writes the folded row, counts what moved and tells of a changed headline. `document_moved` alone also is a change.
/// Gives the row as it is then.
pub(crate) async fn write_folded(
    w: &mut Writing,
    trends: &mut Trends,
    before: &TargetRow,
    folded: &Face,
    document_moved: bool,
    now_s: i64,
) -> Result<TargetRow> {
    let is_other_word = folded.headline != before.headline;
    let moved = is_other_word || folded.counts != before.counts || document_moved;
    let was_judged = before.headline_since_s.is_some();
    let since = if is_other_word || !was_judged && folded.headline != Headline::NotEvaluated {
        Some(now_s)
    } else {
        before.headline_since_s
    };
    let after = TargetRow {
        headline: folded.headline,
        headline_since_s: since,
        reach: folded.reach,
        reach_since_s: folded.reach_since_s,
        profile: folded.profile.clone(),
        known: folded.known,
        counts: folded.counts,
        ..before.clone()
    };
    if moved || !after.says_what(before) {
        write_row(w, &after, folded, moved, now_s).await?;
    } else {
        write_moments(w, before.id, folded).await?;
    }
    if is_other_word || folded.reach != before.reach {
        trends.population(before.kind, before.headline, before.reach, -1);
        trends.population(before.kind, folded.headline, folded.reach, 1);
    }
    if is_other_word && was_judged {
        let news = News {
            target: Some(before.id),
            a: Some(headline_rank(before.headline)),
            b: Some(headline_rank(folded.headline)),
            ..News::of(EventKind::TargetHeadlineChanged)
        };
        events::append(w, now_s, news).await?;
    }
    Ok(after)
}

impl TargetRow {
    /// Whether it says what the other says, of the same target.
    fn says_what(&self, other: &TargetRow) -> bool {
        self.headline == other.headline
            && self.headline_since_s == other.headline_since_s
            && self.reach == other.reach
            && self.reach_since_s == other.reach_since_s
            && self.profile == other.profile
            && self.known == other.known
            && self.counts == other.counts
    }
}

async fn write_row(w: &mut Writing, row: &TargetRow, folded: &Face, moved: bool, now_s: i64) -> Result<()> {
    sqlx::query(
        "UPDATE target
         SET headline = $2, headline_rank = $3, headline_since_s = $4, reach = $5, reach_since_s = $6,
             profile = $7, known = $8, n_blocking = $9, n_error = $10, n_warn = $11, n_info = $12, n_security = $13,
             last_ok_s = $14, last_attempt_s = $15, next_due_s = $16,
             changed_s = CASE WHEN $17 = 1 THEN $18 ELSE changed_s END
         WHERE id = $1",
    )
    .bind(row.id)
    .bind(row.headline.as_str())
    .bind(headline_rank(row.headline))
    .bind(row.headline_since_s)
    .bind(row.reach.as_str())
    .bind(row.reach_since_s)
    .bind(row.profile.as_deref())
    .bind(row.known.map(Known::as_str))
    .bind(row.counts.blocking)
    .bind(row.counts.error)
    .bind(row.counts.warn)
    .bind(row.counts.info)
    .bind(row.counts.security)
    .bind(folded.last_ok_s)
    .bind(folded.last_attempt_s)
    .bind(folded.next_due_s)
    .bind(i64::from(moved))
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Most looks move nothing but these, which stand in no index.
async fn write_moments(w: &mut Writing, target: i64, folded: &Face) -> Result<()> {
    sqlx::query("UPDATE target SET last_ok_s = $2, last_attempt_s = $3, next_due_s = $4 WHERE id = $1")
        .bind(target)
        .bind(folded.last_ok_s)
        .bind(folded.last_attempt_s)
        .bind(folded.next_due_s)
        .execute(w.on())
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_words() {
        assert_eq!(
            tokens(&["io.github.some-body/Weather", "Weather a Ü2"]),
            ["io", "github", "some", "body", "weather", "ü2"]
        );
        assert_eq!(tokens(&[&"ab ".repeat(3), "c"]), ["ab"]);
        let many: String = (10..60).map(|n| format!("w{n} ")).collect();
        assert_eq!(tokens(&[&many]).len(), MOST_TOKENS);
    }

    #[test]
    fn a_target_has_the_worst_word_of_its_surfaces() {
        let face = |headline, reach, error| Face {
            is_main: false,
            headline,
            reach,
            reach_since_s: Some(7),
            profile: None,
            known: None,
            counts: Counts { error, ..Counts::default() },
            last_ok_s: None,
            last_attempt_s: Some(error),
            next_due_s: Some(100 - error),
        };
        let folded = fold(&[
            face(Headline::Sound, ReachState::Up, 0),
            face(Headline::Deviates, ReachState::Down, 2),
            face(Headline::NotEvaluated, ReachState::Unknown, 1),
        ]);
        assert_eq!((folded.headline, folded.reach, folded.counts.error), (Headline::Deviates, ReachState::Down, 3));
        assert_eq!((folded.last_attempt_s, folded.next_due_s), (Some(2), Some(98)));
        assert_eq!(fold(&[]).headline, Headline::NotEvaluated);
    }
}
