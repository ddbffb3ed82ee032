//! What people ask of the schedule: look again now, pause, go on, leave somebody alone for good. And who may work at all:
//! one process on a database file, and a clock that was set back does not leave the schedule in a far future.

use std::collections::BTreeSet;

use sqlx::Row;

use crate::Store;
use crate::dialect::{Backend, Writing};
use crate::error::{Error, Result};
use crate::ids::TargetId;
use crate::targets;
use crate::trends::Trends;
use crate::words::RetireReason;

/// The number of the lease that stands for the whole database.
const WHOLE_DATABASE: i64 = 1;

/// The number of the lease of whoever tells.
const TELLING: i64 = 2;

/// Under this key stands since when everything is paused.
const PAUSED: &str = "paused_s";

/// Whom to leave alone, as somebody asked: never called, never shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptOuts {
    /// Hosts, with `:port` where it is not the usual one.
    pub hosts: BTreeSet<String>,
    /// Registrable domains: every host below them.
    pub domains: BTreeSet<String>,
    /// Keys of targets: registry names, or hosts and paths of cards.
    pub names: BTreeSet<String>,
}

impl OptOuts {
    /// Whether nobody asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.domains.is_empty() && self.names.is_empty()
    }

    /// Whether a host is to be left alone. `host` may carry a port; an entry without one stands for all of them.
    #[must_use]
    pub fn covers_host(&self, host: &str, domain: &str) -> bool {
        let bare = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
        let is_below = |entry: &String| bare.strip_suffix(entry.as_str()).is_some_and(|rest| rest.ends_with('.'));
        self.hosts.contains(host)
            || self.hosts.contains(bare)
            || self.domains.contains(domain)
            || self.domains.iter().any(|entry| entry == bare || is_below(entry))
    }
}

/// What is being looked at, and what comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Queue {
    /// Due and not taken.
    pub waiting: i64,
    /// Of these: looked at first.
    pub urgent: i64,
    /// Taken by a process at work.
    pub at_work: i64,
    /// Due within the next hour, those waiting left out.
    pub next_hour: i64,
    /// Targets that are paused.
    pub paused: i64,
    /// The oldest of those that wait.
    pub oldest_due_s: Option<i64>,
}

impl Store {
    /// Makes every surface of a target that is fetched by itself, and its entry, due at once and before all others. Gives
    /// how many there are.
    ///
    /// # Errors
    /// When there is no such target, or the database fails.
    pub async fn recheck(&self, target: TargetId, now_s: i64) -> Result<u64> {
        let mut w = self.pools.write().await?;
        must_be_watched(&mut w, target).await?;
        let done = sqlx::query(
            "UPDATE surface SET next_due_s = $2, urgent = CASE WHEN urgent = 0 THEN 1 ELSE urgent END
             WHERE (retired_s IS NULL OR next_due_s IS NOT NULL) AND paused = 0
               AND id IN (SELECT surface_id FROM target_surface WHERE target_id = $1 AND removed_s IS NULL)",
        )
        .bind(target.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(done.rows_affected())
    }

    /// Stops looking at a target, or goes on. Surfaces that another target shows are looked at for that one's sake.
    ///
    /// # Errors
    /// When there is no such target, or the database fails.
    pub async fn set_paused(&self, target: TargetId, is_paused: bool, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        must_be_watched(&mut w, target).await?;
        sqlx::query("UPDATE target SET paused = $2 WHERE id = $1")
            .bind(target.0)
            .bind(i64::from(is_paused))
            .execute(w.on())
            .await?;
        sqlx::query(
            "UPDATE surface
             SET paused = CASE WHEN EXISTS (
                     SELECT 1 FROM target_surface
                     JOIN target ON target.id = target_surface.target_id
                     WHERE target_surface.surface_id = surface.id AND target_surface.removed_s IS NULL
                       AND target.paused = 0 AND target.retired_s IS NULL
                 ) THEN 0 ELSE 1 END
             WHERE id IN (SELECT surface_id FROM target_surface WHERE target_id = $1 AND removed_s IS NULL)",
        )
        .bind(target.0)
        .execute(w.on())
        .await?;
        sqlx::query(
            "UPDATE surface
             SET next_due_s = CASE WHEN paused = 1 THEN NULL WHEN next_due_s IS NULL THEN $2 ELSE next_due_s END
             WHERE (retired_s IS NULL OR next_due_s IS NOT NULL)
               AND id IN (SELECT surface_id FROM target_surface WHERE target_id = $1 AND removed_s IS NULL)",
        )
        .bind(target.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
        w.commit().await
    }

    /// Pauses everything, or goes on; stays so over restarts.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pause_all(&self, is_paused: bool, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM kv WHERE key = $1").bind(PAUSED).execute(w.on()).await?;
        if is_paused {
            sqlx::query("INSERT INTO kv (key, value) VALUES ($1, $2)")
                .bind(PAUSED)
                .bind(now_s.to_string())
                .execute(w.on())
                .await?;
        }
        w.commit().await
    }

    /// Since when everything is paused; `None`: it is not.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn paused_since(&self) -> Result<Option<i64>> {
        let since: Option<String> = sqlx::query_scalar("SELECT value FROM kv WHERE key = $1")
            .bind(PAUSED)
            .fetch_optional(&self.pools.reader)
            .await?;
        Ok(since.and_then(|since| since.parse().ok()))
    }

    /// What is being looked at, and what comes.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn queue(&self, now_s: i64) -> Result<Queue> {
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM surface WHERE next_due_s <= $1),
                    (SELECT COUNT(*) FROM surface WHERE urgent > 0 AND next_due_s <= $1),
                    (SELECT COUNT(*) FROM lease WHERE kind = 'surface' AND until_s > $1),
                    (SELECT COUNT(*) FROM surface WHERE next_due_s > $1 AND next_due_s <= $1 + 3600),
                    (SELECT COUNT(*) FROM target WHERE paused = 1 AND retired_s IS NULL),
                    (SELECT MIN(next_due_s) FROM surface WHERE next_due_s <= $1)",
        )
        .bind(now_s)
        .fetch_one(&self.pools.reader)
        .await?;
        let (due, at_work): (i64, i64) = (row.try_get(0)?, row.try_get(2)?);
        Ok(Queue {
            waiting: (due - at_work).max(0),
            urgent: row.try_get(1)?,
            at_work,
            next_hour: row.try_get(3)?,
            paused: row.try_get(4)?,
            oldest_due_s: row.try_get(5)?,
        })
    }

    /// Lets everybody go who asked to be left alone: their targets are retired, their surfaces no longer due. Gives the
    /// number of targets.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn honour(&self, opt_outs: &OptOuts, now_s: i64) -> Result<u64> {
        let mut w = self.pools.write().await?;
        let mut trends = Trends::default();
        let mut gone = 0;
        // Whoever no longer asks comes back first.
        sqlx::query(
            "UPDATE surface SET next_due_s = $1
             WHERE next_due_s IS NULL AND paused = 0 AND retired_s IS NULL AND listing_id IS NULL",
        )
        .bind(now_s)
        .execute(w.on())
        .await?;
        for target in concerned(&mut w, opt_outs).await? {
            let sources = sqlx::query("SELECT source_id FROM target_source WHERE target_id = $1 AND gone_s IS NULL")
                .bind(target)
                .fetch_all(w.on())
                .await?;
            for row in sources {
                targets::leave(&mut w, &mut trends, target, row.try_get(0)?, RetireReason::OptedOut, now_s).await?;
            }
            gone += 1;
        }
        trends.write(&mut w, now_s).await?;
        w.commit().await?;
        Ok(gone)
    }

    /// Makes this process the one that works on the database, or renews that, until `until_s`. On PostgreSQL several may
    /// work together, each with its leases, and this does nothing. `is_alive` says of another holder whether it runs.
    ///
    /// # Errors
    /// [`Error::Occupied`] when another process works on it, or the database fails.
    pub async fn occupy(&self, holder: &str, now_s: i64, until_s: i64, is_alive: impl Fn(&str) -> bool) -> Result<()> {
        if self.backend() == Backend::Postgres {
            return Ok(());
        }
        self.take(WHOLE_DATABASE, holder, now_s, until_s, is_alive).await
    }

    /// Makes this process the one that tells: of several on one database one composes and sends messages, or a receiver would
    /// hear everything several times. Taken and renewed as [`Store::occupy`] is, whatever the database.
    ///
    /// # Errors
    /// [`Error::Occupied`] when another process tells, or the database fails.
    pub async fn take_telling(
        &self,
        holder: &str,
        now_s: i64,
        until_s: i64,
        is_alive: impl Fn(&str) -> bool,
    ) -> Result<()> {
        self.take(TELLING, holder, now_s, until_s, is_alive).await
    }

    async fn take(
        &self,
        job: i64,
        holder: &str,
        now_s: i64,
        until_s: i64,
        is_alive: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let mut w = self.pools.write().await?;
        let row = sqlx::query("SELECT holder, taken_s, until_s FROM lease WHERE kind = 'job' AND subject_id = $1")
            .bind(job)
            .fetch_optional(w.on())
            .await?;
        if let Some(row) = row {
            let (other, since_s, ends_s): (String, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            if other != holder && ends_s > now_s && is_alive(&other) {
                return Err(Error::Occupied { holder: other, since_s });
            }
        }
        sqlx::query(
            "INSERT INTO lease (kind, subject_id, holder, taken_s, until_s)
             VALUES ('job', $1, $2, $3, $4)
             ON CONFLICT (kind, subject_id) DO UPDATE SET
                 taken_s = CASE WHEN lease.holder = excluded.holder THEN lease.taken_s ELSE excluded.taken_s END,
                 holder = excluded.holder, until_s = excluded.until_s",
        )
        .bind(job)
        .bind(holder)
        .bind(now_s)
        .bind(until_s)
        .execute(w.on())
        .await?;
        w.commit().await
    }

    /// Lets the next process work on the database.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn leave(&self, holder: &str) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM lease WHERE kind = 'job' AND holder = $1").bind(holder).execute(w.on()).await?;
        w.commit().await
    }

    /// Brings back what a clock that ran ahead has planned, looks and messages alike: everything is due `behind_s` seconds earlier, and what would be
    /// in the past is spread over the next `within_s` seconds. Gives how much that was.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rein_in(&self, now_s: i64, behind_s: i64, within_s: i64) -> Result<u64> {
        let mut w = self.pools.write().await?;
        let surfaces = sqlx::query(
            "UPDATE surface
             SET next_due_s = CASE WHEN next_due_s - $2 > $1 THEN next_due_s - $2 ELSE $1 + id % $3 END
             WHERE next_due_s > $1",
        )
        .bind(now_s)
        .bind(behind_s)
        .bind(within_s.max(1))
        .execute(w.on())
        .await?;
        let sources = sqlx::query(
            "UPDATE source
             SET next_pass_s = CASE WHEN next_pass_s - $2 > $1 THEN next_pass_s - $2 ELSE $1 END
             WHERE next_pass_s > $1",
        )
        .bind(now_s)
        .bind(behind_s)
        .execute(w.on())
        .await?;
        for told in [
            "UPDATE lease SET until_s = until_s - $2 WHERE until_s - $2 > $1",
            "UPDATE wh_delivery SET next_s = CASE WHEN next_s - $2 > $1 THEN next_s - $2 ELSE $1 END
             WHERE state = 'pending' AND next_s > $1",
            "UPDATE alert_group SET due_s = CASE WHEN due_s - $2 > $1 THEN due_s - $2 ELSE $1 END
             WHERE ended_s IS NULL AND due_s > $1",
            // A summary comes at the reader's hour: it is planned anew.
            "UPDATE wh_endpoint SET digest_due_s = NULL WHERE digest_due_s > $1 AND $2 > 0",
        ] {
            sqlx::query(told).bind(now_s).bind(behind_s).execute(w.on()).await?;
        }
        w.commit().await?;
        Ok(surfaces.rows_affected() + sources.rows_affected())
    }

    /// The newest moment that this database has seen, in Unix seconds; a clock before it has been set back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest_moment(&self) -> Result<Option<i64>> {
        let at = sqlx::query_scalar("SELECT MAX(started_s) FROM crawl WHERE id = (SELECT MAX(id) FROM crawl)")
            .fetch_one(&self.pools.reader)
            .await?;
        Ok(at)
    }
}

async fn must_be_watched(w: &mut Writing, target: TargetId) -> Result<()> {
    let known: Option<i64> = sqlx::query_scalar("SELECT id FROM target WHERE id = $1 AND retired_s IS NULL")
        .bind(target.0)
        .fetch_optional(w.on())
        .await?;
    known.map(|_| ()).ok_or_else(|| Error::Missing { what: "watched target", id: target.to_string() })
}

/// The watched targets that an opt-out is about: by key, or because the host of their own address is.
async fn concerned(w: &mut Writing, opt_outs: &OptOuts) -> Result<Vec<i64>> {
    let mut found = BTreeSet::new();
    for name in &opt_outs.names {
        let rows =
            sqlx::query("SELECT id FROM target WHERE key = $1 AND (retired_s IS NULL OR retire_reason = 'absent')")
                .bind(name.as_str())
                .fetch_all(w.on())
                .await?;
        for row in rows {
            found.insert(row.try_get(0)?);
        }
    }
    if opt_outs.hosts.is_empty() && opt_outs.domains.is_empty() {
        return Ok(found.into_iter().collect());
    }
    let hosts = sqlx::query("SELECT id, name, domain FROM host").fetch_all(w.on()).await?;
    for host in hosts {
        let (id, name, domain): (i64, String, String) = (host.try_get(0)?, host.try_get(1)?, host.try_get(2)?);
        if opt_outs.covers_host(&name, &domain) {
            let rows = sqlx::query(
                "SELECT id FROM target WHERE host_id = $1 AND (retired_s IS NULL OR retire_reason = 'absent')",
            )
            .bind(id)
            .fetch_all(w.on())
            .await?;
            for row in rows {
                found.insert(row.try_get(0)?);
            }
            sqlx::query("UPDATE surface SET next_due_s = NULL WHERE host_id = $1").bind(id).execute(w.on()).await?;
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_covers_what_is_below_it_and_a_host_only_itself() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let opt_outs = OptOuts {
            hosts: set(&["a.example.org", "b.dev:8443"]),
            domains: set(&["tides.dev"]),
            ..OptOuts::default()
        };
        for (host, domain, is_covered) in [
            ("a.example.org", "example.org", true),
            ("a.example.org:8443", "example.org", true),
            ("www.a.example.org", "example.org", false),
            ("b.dev:8443", "b.dev", true),
            ("b.dev", "b.dev", false),
            ("tides.dev", "tides.dev", true),
            ("x.y.tides.dev:81", "tides.dev", true),
            ("lowtides.dev", "lowtides.dev", false),
        ] {
            assert_eq!(opt_outs.covers_host(host, domain), is_covered, "{host}");
        }
    }
}
