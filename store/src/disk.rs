//! Room on the disk that holds the database, and what is done when it runs out.
//!
//! At 80 % somebody is told; at 95 % the bodies of probed documents are no longer kept, while their hashes, what the rules
//! say of them and everything else still are. Both end a little below where they began, so that a disk at the border does
//! not tell of it every minute. On PostgreSQL the disk is the server's and cannot be seen from here.

use std::path::Path;
use std::sync::atomic::Ordering;

use plumbline_rules::words;
use serde::Serialize;

use crate::Store;
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::rows::word_or_none;
use crate::words::EventKind;

/// Percent in use from which somebody is told, and below which it is over.
const FILLING: (u64, u64) = (80, 78);
/// Percent in use from which bodies are no longer kept, and below which they are again.
const FULL: (u64, u64) = (95, 93);
/// Where the last state told stands in `kv`.
const KEY: &str = "disk.state";

words! {
    /// How much room is left.
    pub enum DiskState {
        /// Enough.
        Roomy = "roomy",
        /// Somebody should make room.
        Filling = "filling",
        /// So little that bodies are no longer kept.
        Full = "full",
    }
}

/// The room on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Bytes in use by anybody.
    pub used: u64,
    /// Bytes this process may still write.
    pub free: u64,
}

impl Space {
    /// The room on the disk that holds a file or folder.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn of(path: &Path) -> std::io::Result<Space> {
        let disk = rustix::fs::statvfs(path)?;
        let blocks = disk.f_blocks.saturating_sub(disk.f_bfree);
        Ok(Space { used: blocks.saturating_mul(disk.f_frsize), free: disk.f_bavail.saturating_mul(disk.f_frsize) })
    }

    /// The share in use of what can be used, in whole percent.
    #[must_use]
    pub fn used_percent(&self) -> u64 {
        let (used, free) = (u128::from(self.used), u128::from(self.free));
        let percent = (used * 100).checked_div(used + free).unwrap_or(0);
        u64::try_from(percent).unwrap_or(100)
    }
}

/// The state of a disk that is so full, after it was in the state before.
#[must_use]
pub fn next_state(before: DiskState, used_percent: u64) -> DiskState {
    let is_over = |(from, until): (u64, u64), was: bool| used_percent >= if was { until } else { from };
    if is_over(FULL, before == DiskState::Full) {
        DiskState::Full
    } else if is_over(FILLING, before != DiskState::Roomy) {
        DiskState::Filling
    } else {
        DiskState::Roomy
    }
}

impl Store {
    /// The room on the disk that holds the database; `None` for a server, or where the system does not tell.
    #[must_use]
    pub fn disk(&self) -> Option<Space> {
        let file = self.pools.file.as_deref()?;
        Space::of(file.parent().unwrap_or(file)).ok()
    }

    /// Takes note of the room there is: an event tells when the state changes, and bodies are kept or not from now on.
    ///
    /// # Errors
    /// When the database fails. Whether bodies are kept is settled even then.
    pub async fn note_disk(&self, space: &Space, now_s: i64) -> Result<DiskState> {
        let percent = space.used_percent();
        let word: Option<String> = sqlx::query_scalar("SELECT value FROM kv WHERE key = $1")
            .bind(KEY)
            .fetch_optional(&self.pools.reader)
            .await?;
        let before = word_or_none("disk state", word.as_deref())?.unwrap_or(DiskState::Roomy);
        let after = next_state(before, percent);
        self.pools.keeps_bodies.store(after != DiskState::Full, Ordering::Relaxed);
        if after != before {
            self.tell_disk(after, percent, now_s).await?;
        }
        Ok(after)
    }

    async fn tell_disk(&self, state: DiskState, percent: u64, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query(
            "INSERT INTO kv (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        )
        .bind(KEY)
        .bind(state.as_str())
        .execute(w.on())
        .await?;
        let kind = match state {
            DiskState::Roomy => EventKind::DiskRelieved,
            DiskState::Filling => EventKind::DiskFilling,
            DiskState::Full => EventKind::DiskFull,
        };
        let percent = i64::try_from(percent).map_err(|error| Error::corrupt("disk", error))?;
        events::append(&mut w, now_s, News { a: Some(percent), ..News::of(kind) }).await?;
        w.commit().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_at_the_border_does_not_change_its_mind() {
        use DiskState::{Filling, Full, Roomy};
        for (before, percent, after) in [
            (Roomy, 79, Roomy),
            (Roomy, 80, Filling),
            (Filling, 79, Filling),
            (Filling, 78, Filling),
            (Filling, 77, Roomy),
            (Filling, 95, Full),
            (Roomy, 97, Full),
            (Full, 94, Full),
            (Full, 92, Filling),
            (Full, 10, Roomy),
        ] {
            assert_eq!(next_state(before, percent), after, "{before} at {percent} %");
        }
    }

    #[test]
    fn the_share_in_use_is_of_what_can_be_used() {
        assert_eq!(Space { used: 95, free: 5 }.used_percent(), 95);
        assert_eq!(Space { used: 0, free: 0 }.used_percent(), 0);
        assert_eq!(Space { used: u64::MAX, free: u64::MAX }.used_percent(), 50);
        let here = Space::of(Path::new(".")).unwrap();
        assert!(here.used + here.free > 0);
    }
}
