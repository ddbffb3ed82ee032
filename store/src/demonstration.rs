//! A database that holds a synthetic history says so, and nothing real is ever mixed with it.

use sqlx::Row;

use crate::Store;
use crate::dialect::{Backend, Writing};
use crate::error::Result;

/// Under this key stands what the history was made of.
const DEMONSTRATION: &str = "demonstration";
/// And under this one the same, once it was told to its end.
const TOLD: &str = "demonstration_told";

impl Store {
    /// What the synthetic history in this database was made of, in words; `None`: what it holds is real.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn demonstration(&self) -> Result<Option<String>> {
        let told = sqlx::query_scalar("SELECT value FROM kv WHERE key = $1")
            .bind(DEMONSTRATION)
            .fetch_optional(&self.pools.reader)
            .await?;
        Ok(told)
    }

    /// Whether a synthetic history was begun in this database and never told to its end.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_unfinished_demonstration(&self) -> Result<bool> {
        let keys: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM kv WHERE key IN ($1, $2)")
            .bind(DEMONSTRATION)
            .bind(TOLD)
            .fetch_one(&self.pools.reader)
            .await?;
        Ok(keys == 1)
    }

    /// Notes that what this database holds is made up, and of what. It counts as unfinished until
    /// [`Store::ends_demonstration`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_demonstration(&self, made_of: &str) -> Result<()> {
        let mut w = self.pools.write().await?;
        note(&mut w, DEMONSTRATION, made_of).await?;
        sqlx::query("DELETE FROM kv WHERE key = $1").bind(TOLD).execute(w.on()).await?;
        w.commit().await
    }

    /// Notes that the history was told to its end.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ends_demonstration(&self, made_of: &str) -> Result<()> {
        let mut w = self.pools.write().await?;
        note(&mut w, TOLD, made_of).await?;
        w.commit().await
    }

    /// Writes faster for the rest of this process: a crash of the machine, not of the program, may now cost the whole file,
    /// and more memory is used for its pages. For a database that is made anew if that happens.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn write_fast(&self) -> Result<()> {
        if self.backend() == Backend::Sqlite {
            sqlx::raw_sql("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 16384; PRAGMA cache_size = -98304")
                .execute(&self.pools.writer)
                .await?;
        }
        Ok(())
    }

    /// Whether nobody has watched anything with this database yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn holds_nothing(&self) -> Result<bool> {
        let row = sqlx::query("SELECT (SELECT MAX(id) FROM target), (SELECT MAX(id) FROM event)")
            .fetch_one(&self.pools.reader)
            .await?;
        let (targets, events): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        Ok(targets.is_none() && events.is_none())
    }
}

async fn note(w: &mut Writing, key: &str, value: &str) -> Result<()> {
    sqlx::query("INSERT INTO kv (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
        .bind(key)
        .bind(value)
        .execute(w.on())
        .await?;
    Ok(())
}
