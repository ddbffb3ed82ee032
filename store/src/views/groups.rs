//! Owners, hosts and tags: what they are called, and what a search finds among them.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;

use super::targets::after_prefix;
use crate::Store;
use crate::error::Result;

/// A group of targets that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupRow {
    /// As addresses name it.
    pub slug: String,
    /// As people name it.
    pub name: String,
}

pub(super) const OWNER: &str = "
SELECT slug, name
FROM owner
WHERE slug = $1";

pub(super) const HOST: &str = "
SELECT name AS slug, domain AS name
FROM host
WHERE name = $1
UNION ALL
SELECT domain AS slug, domain AS name
FROM host
WHERE domain = $1
LIMIT 1";

pub(super) const TAG: &str = "
SELECT key AS slug, value AS name
FROM tag
WHERE key = $1 AND ($2 IS NULL OR value = $2)
LIMIT 1";

pub(super) const OWNERS_LIKE: &str = "
SELECT slug, name
FROM owner
WHERE slug >= $1 AND slug < $2
ORDER BY slug
LIMIT $3";

pub(super) const HOSTS_LIKE: &str = "
SELECT name AS slug, domain AS name
FROM host
WHERE name >= $1 AND name < $2
ORDER BY name
LIMIT $3";

pub(super) const TAGS_LIKE: &str = "
SELECT DISTINCT key AS slug, value AS name
FROM tag
WHERE key >= $1 AND key < $2
ORDER BY key, value
LIMIT $3";

pub(super) const OWNERS_OF: &str = "
SELECT DISTINCT o.slug, o.name
FROM target t
JOIN owner o ON o.id = t.owner_id
WHERE t.id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ORDER BY o.slug";

pub(super) const HOSTS_OF: &str = "
SELECT DISTINCT h.name AS slug, h.domain AS name
FROM target t
JOIN host h ON h.id = t.host_id
WHERE t.id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ORDER BY h.name";

impl Store {
    /// An owner by its slug.
    pub async fn owner_named(&self, slug: &str) -> Result<Option<GroupRow>> {
        let row = sqlx::query(OWNER).bind(slug.to_owned()).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(group_row).transpose()
    }

    /// A host, or a registrable domain of hosts.
    pub async fn host_named(&self, name: &str) -> Result<Option<GroupRow>> {
        let row = sqlx::query(HOST).bind(name.to_owned()).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(group_row).transpose()
    }

    /// Whether any target has a tag with this key, and this value where one is asked for.
    pub async fn has_tag(&self, key: &str, value: Option<&str>) -> Result<bool> {
        let query = sqlx::query(TAG).bind(key.to_owned()).bind(value.map(str::to_owned));
        Ok(query.fetch_optional(&self.pools.reader).await?.is_some())
    }

    /// Owners whose slug begins so, at most `limit`.
    pub async fn owners_like(&self, prefix: &str, limit: i64) -> Result<Vec<GroupRow>> {
        self.groups_like(OWNERS_LIKE, prefix, limit).await
    }

    /// Hosts whose name begins so, at most `limit`.
    pub async fn hosts_like(&self, prefix: &str, limit: i64) -> Result<Vec<GroupRow>> {
        self.groups_like(HOSTS_LIKE, prefix, limit).await
    }

    /// Tags whose key begins so, key and value, at most `limit`.
    pub async fn tags_like(&self, prefix: &str, limit: i64) -> Result<Vec<GroupRow>> {
        self.groups_like(TAGS_LIKE, prefix, limit).await
    }

    /// The owners of these targets; the first ten targets count.
    pub async fn owners_of(&self, targets: &[i64]) -> Result<Vec<GroupRow>> {
        self.groups_of(OWNERS_OF, targets).await
    }

    /// The hosts of these targets; the first ten targets count.
    pub async fn hosts_of(&self, targets: &[i64]) -> Result<Vec<GroupRow>> {
        self.groups_of(HOSTS_OF, targets).await
    }

    async fn groups_of(&self, statement: &'static str, targets: &[i64]) -> Result<Vec<GroupRow>> {
        let ids = targets.iter().copied().map(Some).chain(std::iter::repeat(None)).take(10);
        let query = ids.fold(sqlx::query(statement), sqlx::query::Query::bind);
        query.fetch_all(&self.pools.reader).await?.iter().map(group_row).collect()
    }

    async fn groups_like(&self, statement: &'static str, prefix: &str, limit: i64) -> Result<Vec<GroupRow>> {
        let query = sqlx::query(statement).bind(prefix.to_owned()).bind(after_prefix(prefix)).bind(limit);
        let rows = query.fetch_all(&self.pools.reader).await?;
        let found = rows.iter().map(group_row).collect::<Result<Vec<GroupRow>>>()?;
        Ok(found.into_iter().filter(|row| row.slug.starts_with(prefix)).collect())
    }
}

fn group_row(row: &sqlx::any::AnyRow) -> Result<GroupRow> {
    Ok(GroupRow { slug: row.try_get("slug")?, name: row.try_get("name")? })
}
