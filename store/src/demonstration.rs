//! A database that holds a synthetic history says so, and nothing real is ever mixed with it.

use sqlx::Row;

use crate::Store;
use crate::error::Result;

/// Under this key stands what the history was made of.
const DEMONSTRATION: &str = "demonstration";

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

    /// Notes that what this database holds is made up, and of what.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_demonstration(&self, made_of: &str) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query(
            "INSERT INTO kv (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        )
        .bind(DEMONSTRATION)
        .bind(made_of)
        .execute(w.on())
        .await?;
        w.commit().await
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
