//! Writes that may be asked for twice: who sends an `Idempotency-Key` is answered the second time as the first, for a day.
//!
//! What is kept is bounded: of each asker the newest [`MOST_KEPT`], each no longer than its caller allows.

use sqlx::Row;

use crate::Store;
use crate::error::Result;

/// How long an answer is kept, in seconds.
pub const KEPT_S: i64 = 86_400;

/// Answers kept of one asker.
pub const MOST_KEPT: i64 = 1_000;

/// After so long without an answer whoever answered is believed to be gone, in seconds.
const GONE_S: i64 = 120;

/// What a key stands for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repeat {
    /// Nobody has used it: it is this request's from now on.
    First,
    /// The same request is being answered.
    Running,
    /// The same request was begun, and whoever answered it is gone: it may be done or not.
    Unknown,
    /// The same request was answered so.
    Answered(Vec<u8>),
    /// It was another request.
    Other,
}

const FORGET: &str = "DELETE FROM kept_answer WHERE at_s <= $1";

impl Store {
    /// Lets answers go that are older than they are kept, also where no further key comes.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_answers(&self, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query(FORGET).bind(now_s - KEPT_S).execute(w.on()).await?;
        w.commit().await
    }

    /// Takes a key for a request, or says what became of it before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_answer(&self, who: &str, key: [u8; 32], request: [u8; 32], now_s: i64) -> Result<Repeat> {
        let mut w = self.pools.write().await?;
        sqlx::query(FORGET).bind(now_s - KEPT_S).execute(w.on()).await?;
        let known = sqlx::query("SELECT request, answer, at_s FROM kept_answer WHERE who = $1 AND key_hash = $2")
            .bind(who)
            .bind(key.to_vec())
            .fetch_optional(w.on())
            .await?;
        let repeat = match known {
            None => Repeat::First,
            Some(row) if row.try_get::<Vec<u8>, _>(0)? != request => Repeat::Other,
            Some(row) => match row.try_get::<Option<Vec<u8>>, _>(1)? {
                Some(answer) => Repeat::Answered(answer),
                None if row.try_get::<i64, _>(2)? <= now_s - GONE_S => Repeat::Unknown,
                None => Repeat::Running,
            },
        };
        if repeat == Repeat::First {
            sqlx::query(
                "DELETE FROM kept_answer
                 WHERE who = $1 AND answer IS NOT NULL
                   AND at_s <= (SELECT at_s FROM kept_answer WHERE who = $1 ORDER BY at_s DESC LIMIT 1 OFFSET $2)",
            )
            .bind(who)
            .bind(MOST_KEPT - 1)
            .execute(w.on())
            .await?;
            sqlx::query("INSERT INTO kept_answer (who, key_hash, request, at_s) VALUES ($1, $2, $3, $4)")
                .bind(who)
                .bind(key.to_vec())
                .bind(request.to_vec())
                .bind(now_s)
                .execute(w.on())
                .await?;
        }
        w.commit().await?;
        Ok(repeat)
    }

    /// Keeps the answer to a request that took a key; `None`: it is forgotten, and the key is free again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn keep_answer(&self, who: &str, key: [u8; 32], answer: Option<&[u8]>) -> Result<()> {
        let mut w = self.pools.write().await?;
        match answer {
            Some(answer) => {
                sqlx::query("UPDATE kept_answer SET answer = $3 WHERE who = $1 AND key_hash = $2")
                    .bind(who)
                    .bind(key.to_vec())
                    .bind(answer.to_vec())
                    .execute(w.on())
                    .await?
            }
            None => {
                sqlx::query("DELETE FROM kept_answer WHERE who = $1 AND key_hash = $2 AND answer IS NULL")
                    .bind(who)
                    .bind(key.to_vec())
                    .execute(w.on())
                    .await?
            }
        };
        w.commit().await
    }
}
