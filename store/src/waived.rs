//! Which findings a waiver covers: read with what matchers ask, kept beside the finding, and counted for targets and trends.
//!
//! A waiver hides nothing. A finding that is covered stays open, keeps its severity and its share; it is also counted apart.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use sqlx::Row;

use crate::Store;
use crate::dialect::Writing;
use crate::error::Result;
use crate::happened::Facts;

/// An open finding with what matchers read of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Waivable {
    /// Its number.
    pub id: i64,
    /// Its rule.
    pub rule: String,
    /// What matchers read, of every target that shows it.
    pub facts: Facts,
}

impl Store {
    /// Open findings of a rule, or of a family with `/*`, by number after one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn waivable(&self, rule: &str, after: i64, limit: i64) -> Result<Vec<Waivable>> {
        let rows = sqlx::query(
            "SELECT finding.id, rule.slug, rule.family, finding.severity, finding.impact, finding.security, finding.cause,
                    finding.opened_as, surface.kind, finding.surface_id
             FROM finding
             JOIN rule ON rule.id = finding.rule_id
             JOIN surface ON surface.id = finding.surface_id
             WHERE finding.state IN ('open', 'clearing', 'flapping')
               AND finding.id > $1
               AND (rule.slug = $2 OR rule.family = $3)
             ORDER BY finding.id
             LIMIT $4",
        )
        .bind(after)
        .bind(rule)
        .bind(rule.strip_suffix("/*"))
        .bind(limit)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut of_surface: BTreeMap<i64, Facts> = BTreeMap::new();
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let surface: i64 = row.try_get(9)?;
            let mut facts = match of_surface.entry(surface) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => place.insert(self.facts_of_surface(surface).await?).clone(),
            };
            let mut put = |word: &str, value: Option<String>| {
                facts.0.entry(word.to_owned()).or_default().extend(value);
            };
            let slug: String = row.try_get(1)?;
            put("rule", Some(slug.clone()));
            put("family", row.try_get(2)?);
            put("severity", row.try_get(3)?);
            put("impact", row.try_get(4)?);
            put("security", (row.try_get::<i64, _>(5)? != 0).then(|| "yes".to_owned()));
            put("cause", row.try_get(6)?);
            put("opened_as", row.try_get(7)?);
            put("surface", row.try_get(8)?);
            found.push(Waivable { id: row.try_get(0)?, rule: slug, facts });
        }
        Ok(found)
    }

    /// What matchers read of the targets that show a surface.
    async fn facts_of_surface(&self, surface: i64) -> Result<Facts> {
        let rows = sqlx::query(
            "SELECT target.key, target.name, target.kind, target.reach, target.headline, owner.slug, host.name, source.name,
                    target.id
             FROM target_surface
             JOIN target ON target.id = target_surface.target_id
             JOIN source ON source.id = target.source_id
             LEFT JOIN owner ON owner.id = target.owner_id
             LEFT JOIN host ON host.id = target.host_id
             WHERE target_surface.surface_id = $1 AND target_surface.removed_s IS NULL AND target.retired_s IS NULL
             ORDER BY target.id",
        )
        .bind(surface)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut facts = Facts::default();
        for row in &rows {
            let words = ["target", "name", "kind", "reach", "headline", "owner", "host", "source"];
            for (n, word) in words.into_iter().enumerate() {
                facts.0.entry(word.to_owned()).or_default().extend(row.try_get::<Option<String>, _>(n)?);
            }
            let tags = sqlx::query("SELECT key, value FROM tag WHERE target_id = $1 ORDER BY key, value")
                .bind(row.try_get::<i64, _>(8)?)
                .fetch_all(&self.pools.reader)
                .await?;
            for tag in &tags {
                let (key, value): (String, String) = (tag.try_get(0)?, tag.try_get(1)?);
                let tag = if value.is_empty() { key } else { format!("{key}={value}") };
                facts.0.entry("tag".to_owned()).or_default().push(tag);
            }
        }
        Ok(facts)
    }

    /// Every finding that a waiver covers, with the waiver.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn waived_findings(&self) -> Result<BTreeMap<i64, i64>> {
        let rows = sqlx::query("SELECT id, waiver_id FROM finding WHERE waiver_id IS NOT NULL")
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Keeps which waiver covers which finding, and what comes of that: how many of a target's findings are covered, and how
    /// many surfaces of each rule on the newest day.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_waivers(&self, changes: &BTreeMap<i64, Option<i64>>) -> Result<()> {
        let mut w = self.pools.write().await?;
        for (finding, waiver) in changes {
            sqlx::query("UPDATE finding SET waiver_id = $2 WHERE id = $1")
                .bind(finding)
                .bind(*waiver)
                .execute(w.on())
                .await?;
        }
        count_of_targets(&mut w).await?;
        count_of_rules(&mut w).await?;
        w.commit().await
    }
}

/// Targets whose number of covered findings is another one than it was.
async fn count_of_targets(w: &mut Writing) -> Result<()> {
    let rows = sqlx::query(
        "SELECT target.id, COUNT(finding.id)
         FROM target
         LEFT JOIN target_surface ON target_surface.target_id = target.id AND target_surface.removed_s IS NULL
         LEFT JOIN finding ON finding.surface_id = target_surface.surface_id AND finding.waiver_id IS NOT NULL
                          AND finding.state IN ('open', 'clearing', 'flapping')
         WHERE target.n_waived > 0
            OR target.id IN (SELECT shown.target_id FROM finding covered
                             JOIN target_surface shown ON shown.surface_id = covered.surface_id
                             WHERE covered.waiver_id IS NOT NULL)
         GROUP BY target.id",
    )
    .fetch_all(w.on())
    .await?;
    for row in &rows {
        let (target, many): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        sqlx::query("UPDATE target SET n_waived = $2 WHERE id = $1 AND n_waived <> $2")
            .bind(target)
            .bind(many)
            .execute(w.on())
            .await?;
    }
    Ok(())
}

/// Surfaces of each rule on the newest day of everything on which all that is open of it is covered.
async fn count_of_rules(w: &mut Writing) -> Result<()> {
    let day: Option<i64> =
        sqlx::query_scalar("SELECT MAX(day) FROM rule_day WHERE cohort_id = 1").fetch_one(w.on()).await?;
    let Some(day) = day else { return Ok(()) };
    let rows = sqlx::query(
        "SELECT finding.rule_id, COUNT(DISTINCT finding.surface_id)
         FROM finding
         WHERE finding.waiver_id IS NOT NULL AND finding.state IN ('open', 'clearing', 'flapping')
           AND NOT EXISTS (SELECT 1 FROM finding bare
                           WHERE bare.surface_id = finding.surface_id AND bare.rule_id = finding.rule_id
                             AND bare.waiver_id IS NULL AND bare.state IN ('open', 'clearing', 'flapping'))
         GROUP BY finding.rule_id",
    )
    .fetch_all(w.on())
    .await?;
    sqlx::query("UPDATE rule_day SET waived = 0 WHERE cohort_id = 1 AND day = $1 AND waived <> 0")
        .bind(day)
        .execute(w.on())
        .await?;
    for row in &rows {
        let (rule, many): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        sqlx::query("UPDATE rule_day SET waived = $3 WHERE cohort_id = 1 AND day = $1 AND rule_id = $2")
            .bind(day)
            .bind(rule)
            .bind(many)
            .execute(w.on())
            .await?;
    }
    Ok(())
}
