//! Recorded conversations: the newest of each surface, and for good those in which findings began or ended.

use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::error::Result;
use crate::ids::SurfaceId;
use crate::rows::unpack;

/// A recorded conversation, without what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conversation {
    /// Its number.
    pub id: i64,
    /// When it was had, in Unix seconds.
    pub at_s: i64,
    /// Findings began or ended in it; otherwise it is only the newest.
    pub has_moved: bool,
    /// The odd requests were made in it.
    pub is_odd: bool,
}

impl Store {
    /// The newest recorded conversation of a surface, as JSON; `None` where none was kept.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_session(&self, surface: SurfaceId) -> Result<Option<Vec<u8>>> {
        let newest = self.conversations(surface, 1).await?;
        match newest.first() {
            Some(newest) => self.session(surface, newest.id).await,
            None => Ok(None),
        }
    }

    /// The recorded conversation of a surface with that number, as JSON; `None` where it has none of that number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn session(&self, surface: SurfaceId, id: i64) -> Result<Option<Vec<u8>>> {
        let packed: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT body FROM probe_session WHERE surface_id = $1 AND id = $2")
                .bind(surface.0)
                .bind(id)
                .fetch_optional(&self.pools.reader)
                .await?;
        packed.map(|packed| unpack("conversation", &packed)).transpose()
    }

    /// The conversations with a surface that are kept, newest first, at most `most`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn conversations(&self, surface: SurfaceId, most: i64) -> Result<Vec<Conversation>> {
        let rows = sqlx::query(
            "SELECT id, at_s, is_latest, is_odd FROM probe_session WHERE surface_id = $1 ORDER BY id DESC LIMIT $2",
        )
        .bind(surface.0)
        .bind(most)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(conversation).collect()
    }
}

impl Store {
    /// The newest conversation with a surface in which odd requests were made; `None` where none is kept.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_odd_conversation(&self, surface: SurfaceId) -> Result<Option<Conversation>> {
        let row = sqlx::query(
            "SELECT id, at_s, is_latest, is_odd FROM probe_session WHERE surface_id = $1 AND is_odd = 1
             ORDER BY id DESC LIMIT 1",
        )
        .bind(surface.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        row.as_ref().map(conversation).transpose()
    }
}

fn conversation(row: &AnyRow) -> Result<Conversation> {
    let (is_latest, is_odd): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
    Ok(Conversation { id: row.try_get(0)?, at_s: row.try_get(1)?, has_moved: is_latest == 0, is_odd: is_odd != 0 })
}

/// The conversation in which something began or ended that is told from `from_s` and of which no number was noted: the first
/// in which findings moved since.
/// A span is told from the first of the looks that confirm it, so that its conversation may be up to a day younger.
#[must_use]
pub fn moved_in(kept: &[Conversation], from_s: i64) -> Option<&Conversation> {
    const CONFIRMED_WITHIN_S: i64 = 86_400;
    let is_meant = |one: &&Conversation| one.has_moved && (from_s..=from_s + CONFIRMED_WITHIN_S).contains(&one.at_s);
    kept.iter().rev().find(is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_was_said_in_the_first_conversation_since_in_which_something_moved() {
        let one = |id: i64, at_s: i64, has_moved: bool| Conversation { id, at_s, has_moved, is_odd: false };
        let kept = [one(5, 300_000, false), one(4, 200_000, true), one(3, 100_300, true), one(1, 50, true)];
        assert_eq!(moved_in(&kept, 100_000).map(|one| one.id), Some(3));
        assert_eq!(moved_in(&kept, 200_000).map(|one| one.id), Some(4));
        assert_eq!(moved_in(&kept, 50).map(|one| one.id), Some(1));
        assert_eq!(moved_in(&kept, 300_000), None, "nothing moved in the newest");
        assert_eq!(moved_in(&kept, 60), None, "that is too long ago");
    }
}
