//! Tokens of programs: what they may do, kept as hashes (decisions 22). The text of a token is seen once, when it is made.

use plumbline_rules::canonical::content_hash;
use plumbline_rules::words;
use serde::Serialize;
use sqlx::Row;

use crate::Store;
use crate::dialect::Table;
use crate::error::{Error, Result};
use crate::rows::shortened;

/// How every token begins, so that it is recognised where it should not be.
pub const BEGINS: &str = "plb_";
/// Characters by which a token is recognised in lists.
const SHOWN: usize = 10;
/// Its last use is written down once in so long, in seconds.
const USE_NOTED_S: i64 = 60;

words! {
    /// What a token allows.
    pub enum Scope {
        /// Reading, where that is not open to all.
        Read = "read",
        /// Telling of deploys.
        DeploysWrite = "deploys:write",
        /// Acknowledging, silencing, subscribing.
        AlertsWrite = "alerts:write",
        /// Everything.
        Admin = "admin",
    }
}

/// A token, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenRow {
    /// Its number.
    pub id: i64,
    /// Its first characters.
    pub prefix: String,
    /// What it is for.
    pub title: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// The one owner whose targets it may touch; `None`: all.
    pub owner: Option<String>,
    /// When it was made, in Unix seconds.
    pub created_s: i64,
    /// Until when it holds, in Unix seconds; `None`: until it is revoked.
    pub expires_s: Option<i64>,
    /// When it was revoked, in Unix seconds.
    pub revoked_s: Option<i64>,
    /// When it was used last, in Unix seconds, to the minute.
    pub last_used_s: Option<i64>,
}

/// A token about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for.
    pub title: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// The one owner whose targets it may touch.
    pub owner: Option<String>,
    /// Who makes it.
    pub created_by: String,
    /// Until when it holds, in Unix seconds.
    pub expires_s: Option<i64>,
}

impl TokenRow {
    /// Whether it allows that.
    #[must_use]
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }
}

/// The text of a token out of 32 random bytes.
#[must_use]
pub fn text_of(random: [u8; 32]) -> String {
    let hex = plumbline_rules::canonical::hex(&random);
    format!("{BEGINS}{hex}")
}

impl Store {
    /// Keeps a token by its hash. `text` is forgotten.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn create_token(&self, text: &str, token: &NewToken, now_s: i64) -> Result<TokenRow> {
        let mut w = self.pools.write().await?;
        let id = w.next_id(Table::ApiToken).await?;
        let prefix: String = text.chars().take(SHOWN).collect();
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let title = shortened(&token.title, 200);
        sqlx::query(
            "INSERT INTO api_token (id, hash, prefix, title, scopes, owner_slug, created_by, created_s, expires_s)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(id)
        .bind(content_hash(text.as_bytes()).to_vec())
        .bind(prefix.as_str())
        .bind(title.as_str())
        .bind(serde_json::json!(scopes).to_string())
        .bind(token.owner.as_deref())
        .bind(token.created_by.as_str())
        .bind(now_s)
        .bind(token.expires_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(TokenRow {
            id,
            prefix,
            title,
            scopes: token.scopes.clone(),
            owner: token.owner.clone(),
            created_s: now_s,
            expires_s: token.expires_s,
            revoked_s: None,
            last_used_s: None,
        })
    }

    /// All tokens, revoked ones too, in the order they were made.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>> {
        let rows = sqlx::query(
            "SELECT id, prefix, title, scopes, owner_slug, created_s, expires_s, revoked_s, last_used_s
             FROM api_token
             ORDER BY id",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(token_row).collect()
    }

    /// Ends a token. Tells whether there was one of that number that held.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn revoke_token(&self, id: i64, now_s: i64) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query("UPDATE api_token SET revoked_s = $2 WHERE id = $1 AND revoked_s IS NULL")
            .bind(id)
            .bind(now_s)
            .execute(w.on())
            .await?;
        w.commit().await?;
        Ok(done.rows_affected() > 0)
    }

    /// The token of that text, if it holds now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn token(&self, text: &str, now_s: i64) -> Result<Option<TokenRow>> {
        let row = sqlx::query(
            "SELECT id, prefix, title, scopes, owner_slug, created_s, expires_s, revoked_s, last_used_s
             FROM api_token
             WHERE hash = $1 AND revoked_s IS NULL AND (expires_s IS NULL OR expires_s > $2)",
        )
        .bind(content_hash(text.as_bytes()).to_vec())
        .bind(now_s)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(token) = row.as_ref().map(token_row).transpose()? else { return Ok(None) };
        if token.last_used_s.is_none_or(|last| now_s - last >= USE_NOTED_S) {
            let mut w = self.pools.write().await?;
            sqlx::query("UPDATE api_token SET last_used_s = $2 WHERE id = $1")
                .bind(token.id)
                .bind(now_s)
                .execute(w.on())
                .await?;
            w.commit().await?;
        }
        Ok(Some(token))
    }
}

fn token_row(row: &sqlx::any::AnyRow) -> Result<TokenRow> {
    let scopes: String = row.try_get(3)?;
    let words: Vec<String> = serde_json::from_str(&scopes).map_err(|error| Error::corrupt("token", error))?;
    let scopes = words.iter().map(|word| word.parse().map_err(|error| Error::corrupt("token", error)));
    Ok(TokenRow {
        id: row.try_get(0)?,
        prefix: row.try_get(1)?,
        title: row.try_get(2)?,
        scopes: scopes.collect::<Result<Vec<Scope>>>()?,
        owner: row.try_get(4)?,
        created_s: row.try_get(5)?,
        expires_s: row.try_get(6)?,
        revoked_s: row.try_get(7)?,
        last_used_s: row.try_get(8)?,
    })
}
