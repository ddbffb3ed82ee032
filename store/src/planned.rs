//! Which surfaces are under planned work, and when: what recording asks, so that a look in a window is flagged and counts for no
//! uptime. Who is covered by a window is decided by matchers, elsewhere; here it is kept.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row;

use crate::Store;
use crate::dialect::Writing;
use crate::error::Result;
use crate::happened::Facts;
use crate::ids::SurfaceId;
use crate::rows::{in_statements, places};

/// Planned work on a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    /// On which surface.
    pub surface: SurfaceId,
    /// Which maintenance window.
    pub maintenance: i64,
    /// Its beginning, in Unix seconds.
    pub from_s: i64,
    /// Its end, in Unix seconds.
    pub to_s: i64,
}

/// Surfaces whose facts are read at a time, by the span of their numbers.
const SPAN: i64 = 5_000;

impl Store {
    /// Surfaces that are watched, with what matchers read of the targets that show them: those with a number after one, some
    /// thousands at a time. `None`: there are no more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn surface_facts(&self, after: i64) -> Result<Option<(Vec<(SurfaceId, Facts)>, i64)>> {
        let next: Option<i64> = sqlx::query_scalar("SELECT MIN(id) FROM surface WHERE id > $1 AND retired_s IS NULL")
            .bind(after)
            .fetch_one(&self.pools.reader)
            .await?;
        let Some(first) = next else { return Ok(None) };
        let last = first + SPAN - 1;
        let rows = sqlx::query(
            "SELECT surface.id, target.id, surface.kind, target.key, target.name, target.kind, target.reach, target.headline,
                    owner.slug, host.name, source.name
             FROM surface
             JOIN target_surface ON target_surface.surface_id = surface.id AND target_surface.removed_s IS NULL
             JOIN target ON target.id = target_surface.target_id AND target.retired_s IS NULL
             JOIN source ON source.id = target.source_id
             LEFT JOIN owner ON owner.id = target.owner_id
             LEFT JOIN host ON host.id = target.host_id
             WHERE surface.id BETWEEN $1 AND $2 AND surface.retired_s IS NULL
             ORDER BY surface.id, target.id",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut more = self.words_of_targets(first, last).await?;
        let mut found: Vec<(SurfaceId, Facts)> = Vec::new();
        for row in &rows {
            let (surface, target) = (SurfaceId(row.try_get(0)?), row.try_get::<i64, _>(1)?);
            if found.last().is_none_or(|(known, _)| *known != surface) {
                found.push((surface, Facts::default()));
            }
            let Some((_, facts)) = found.last_mut() else { continue };
            let mut put = |word: &str, value: Option<String>| {
                facts.0.entry(word.to_owned()).or_default().extend(value);
            };
            let words = ["surface", "target", "name", "kind", "reach", "headline", "owner", "host", "source"];
            for (n, word) in words.into_iter().enumerate() {
                put(word, row.try_get(n + 2)?);
            }
            put("cohort", Some("all".to_owned()));
            put("cohort", row.try_get(5)?);
            for (word, value) in more.entry(target).or_default() {
                put(word, Some(value.clone()));
            }
        }
        Ok(Some((found, last)))
    }

    /// Tags and cohorts of the targets that show these surfaces.
    async fn words_of_targets(&self, first: i64, last: i64) -> Result<BTreeMap<i64, Vec<(&'static str, String)>>> {
        let mut words: BTreeMap<i64, Vec<(&'static str, String)>> = BTreeMap::new();
        let tags = sqlx::query(
            "SELECT tag.target_id, tag.key, tag.value
             FROM tag
             WHERE tag.target_id IN (SELECT target_id FROM target_surface WHERE surface_id BETWEEN $1 AND $2)
             ORDER BY tag.target_id, tag.key, tag.value",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pools.reader)
        .await?;
        for tag in &tags {
            let (key, value): (String, String) = (tag.try_get(1)?, tag.try_get(2)?);
            let tag_text = if value.is_empty() { key } else { format!("{key}={value}") };
            words.entry(tag.try_get(0)?).or_default().push(("tag", tag_text));
        }
        let cohorts = sqlx::query(
            "SELECT cohort_member.target_id, cohort.slug
             FROM cohort_member
             JOIN cohort ON cohort.id = cohort_member.cohort_id
             WHERE cohort_member.target_id IN (SELECT target_id FROM target_surface WHERE surface_id BETWEEN $1 AND $2)
             ORDER BY cohort_member.target_id, cohort.slug",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pools.reader)
        .await?;
        for cohort in &cohorts {
            words.entry(cohort.try_get(0)?).or_default().push(("cohort", cohort.try_get(1)?));
        }
        Ok(words)
    }

    /// All planned work that is kept.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn planned_work(&self) -> Result<BTreeSet<Work>> {
        let rows = sqlx::query("SELECT surface_id, maintenance_id, from_s, to_s FROM surface_work")
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter().map(work).collect()
    }

    /// Brings planned work from what is kept to what is planned now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn plan_work(&self, kept: &BTreeSet<Work>, planned: &BTreeSet<Work>) -> Result<()> {
        if kept == planned {
            return Ok(());
        }
        let mut w = self.pools.write().await?;
        for gone in kept.difference(planned) {
            sqlx::query("DELETE FROM surface_work WHERE surface_id = $1 AND maintenance_id = $2 AND from_s = $3")
                .bind(gone.surface.0)
                .bind(gone.maintenance)
                .bind(gone.from_s)
                .execute(w.on())
                .await?;
        }
        for new in planned.difference(kept) {
            // Two may bring the same window at once.
            sqlx::query(
                "INSERT INTO surface_work (surface_id, maintenance_id, from_s, to_s) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (surface_id, maintenance_id, from_s) DO UPDATE SET to_s = excluded.to_s",
            )
            .bind(new.surface.0)
            .bind(new.maintenance)
            .bind(new.from_s)
            .bind(new.to_s)
            .execute(w.on())
            .await?;
        }
        w.commit().await
    }
}

fn work(row: &sqlx::any::AnyRow) -> Result<Work> {
    Ok(Work {
        surface: SurfaceId(row.try_get(0)?),
        maintenance: row.try_get(1)?,
        from_s: row.try_get(2)?,
        to_s: row.try_get(3)?,
    })
}

/// Planned work on some surfaces, as a batch of looks asks for it.
pub(crate) async fn read(w: &mut Writing, surfaces: &[i64]) -> Result<Vec<Work>> {
    let mut all = Vec::new();
    for some in in_statements(surfaces) {
        let statement = format!(
            "SELECT surface_id, maintenance_id, from_s, to_s FROM surface_work WHERE surface_id IN {}",
            places(1, some.len())
        );
        for row in &w.rows_of(statement, some).await? {
            all.push(work(row)?);
        }
    }
    Ok(all)
}

/// Whether a surface is under planned work at a moment.
pub(crate) fn is_planned(works: &[Work], surface: SurfaceId, at_s: i64) -> bool {
    works.iter().any(|work| work.surface == surface && work.from_s <= at_s && at_s < work.to_s)
}
