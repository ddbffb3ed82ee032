//! Rulesets one after the other, what differs between them, and what happened between two moments.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;

use super::{hex, maybe_word, word};
use crate::Store;
use crate::error::Result;
use crate::words::{Headline, Impact, Severity};

/// One released set of rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReleaseRow {
    /// Its number here.
    pub id: i64,
    /// As shown.
    pub version: String,
    /// What names it, in hex.
    pub hash: String,
    /// When this database first judged with it, in Unix seconds.
    pub released_s: i64,
    /// How many rules it holds.
    pub rules: i64,
}

/// A rule as one release has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReleasedRule {
    /// `family/kebab-name`.
    pub rule: String,
    /// Raised when its condition changes.
    pub version: i64,
    /// Of the rule in general.
    pub severity: Severity,
    /// What released clients do.
    pub impact: Option<Impact>,
}

/// What readers of a chart must know at a date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnnotationRow {
    /// Unix seconds.
    pub at_s: i64,
    /// `all`, or `cohort:`, `rule:`, `target:` with its name.
    pub scope: String,
    /// `ruleset`, `method`, `gap`, `incident`, `deploy`, `note`.
    pub kind: String,
    /// In few words.
    pub title: String,
    /// In more.
    pub body: String,
}

/// How the verdict of one target moved between two moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeadlineMove {
    /// The target.
    pub target_id: i64,
    /// Its name.
    pub name: String,
    /// The registry's name for it, or host and path of its card: names are not unique.
    pub key: String,
    /// At the beginning.
    pub before: Headline,
    /// At the end.
    pub after: Headline,
}

/// What happened to the findings of one rule between two moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleMove {
    /// The rule.
    pub rule: String,
    /// Opened, first looks and regressions left out.
    pub opened: i64,
    /// Regressed.
    pub regressed: i64,
    /// Ended.
    pub resolved: i64,
}

pub(super) const RELEASES: &str = "
SELECT id, version, hash, released_s, rules
FROM ruleset
ORDER BY id DESC
LIMIT $1";

pub(super) const RELEASED_RULES: &str = "
SELECT r.slug, u.version, u.severity, u.impact
FROM ruleset_rule u
JOIN rule r ON r.id = u.rule_id
WHERE u.ruleset_id = $1
ORDER BY r.slug";

pub(super) const ANNOTATIONS: &str = "
SELECT at_s, scope, kind, title, body
FROM annotation
WHERE at_s >= $1 AND (scope = 'all' OR scope = $2)
ORDER BY at_s DESC
LIMIT 200";

/// `a` of the first and `b` of the last change of each target; the newest forty thousand changes are looked through.
pub(super) const HEADLINE_MOVES: &str = "
SELECT e.target_id, t.name, t.key, MIN(e.id) AS first, MAX(e.id) AS last
FROM (SELECT id, target_id FROM event WHERE kind = 13 AND id >= $1 AND id < $2 ORDER BY id DESC LIMIT 40000) e
JOIN target t ON t.id = e.target_id
GROUP BY e.target_id, t.name, t.key";

pub(super) const EVENT_ENDS: &str = "
SELECT id, a, b
FROM event
WHERE kind = 13 AND id >= $1 AND id < $2
ORDER BY id DESC
LIMIT 40000";

pub(super) const RULE_MOVES: &str = "
SELECT r.slug, e.kind, COUNT(*) AS events
FROM (SELECT * FROM event WHERE kind = $3 AND id >= $1 AND id < $2 ORDER BY id DESC LIMIT 40000) e
JOIN rule r ON r.id = e.rule_id
WHERE e.a IS NULL OR e.a = 0
GROUP BY r.slug, e.kind";

impl Store {
    /// Released sets of rules, newest first, at most `limit`.
    pub async fn releases(&self, limit: i64) -> Result<Vec<ReleaseRow>> {
        let rows = sqlx::query(RELEASES).bind(limit).fetch_all(&self.pools.reader).await?;
        let releases = rows.iter().map(|row| {
            Ok(ReleaseRow {
                id: row.try_get("id")?,
                version: row.try_get("version")?,
                hash: hex(&row.try_get::<Vec<u8>, _>("hash")?),
                released_s: row.try_get("released_s")?,
                rules: row.try_get("rules")?,
            })
        });
        releases.collect()
    }

    /// The rules of one of them, by name.
    pub async fn released_rules(&self, ruleset: i64) -> Result<Vec<ReleasedRule>> {
        let rows = sqlx::query(RELEASED_RULES).bind(ruleset).fetch_all(&self.pools.reader).await?;
        let rules = rows.iter().map(|row| {
            Ok(ReleasedRule {
                rule: row.try_get("slug")?,
                version: row.try_get("version")?,
                severity: word(row, "severity")?,
                impact: maybe_word(row, "impact")?,
            })
        });
        rules.collect()
    }

    /// Notes since `from_s` about everything or about `scope`, newest first.
    pub async fn annotations(&self, from_s: i64, scope: &str) -> Result<Vec<AnnotationRow>> {
        let query = sqlx::query(ANNOTATIONS).bind(from_s).bind(scope.to_owned());
        let rows = query.fetch_all(&self.pools.reader).await?;
        let notes = rows.iter().map(|row| {
            Ok(AnnotationRow {
                at_s: row.try_get("at_s")?,
                scope: row.try_get("scope")?,
                kind: row.try_get("kind")?,
                title: row.try_get("title")?,
                body: row.try_get("body")?,
            })
        });
        notes.collect()
    }

    /// Targets whose verdict is another after the events of `[from, to)` than before them.
    pub async fn headline_moves(&self, from: i64, to: i64) -> Result<Vec<HeadlineMove>> {
        let ends = sqlx::query(EVENT_ENDS).bind(from).bind(to).fetch_all(&self.pools.reader).await?;
        let mut ranks = std::collections::HashMap::new();
        for row in &ends {
            let (id, a, b): (i64, Option<i64>, Option<i64>) =
                (row.try_get("id")?, row.try_get("a")?, row.try_get("b")?);
            ranks.insert(id, (a, b));
        }
        let named = |rank: Option<i64>| {
            Headline::ALL.iter().copied().find(|word| Some(crate::words::headline_rank(*word)) == rank)
        };
        let mut moves = Vec::new();
        for row in sqlx::query(HEADLINE_MOVES).bind(from).bind(to).fetch_all(&self.pools.reader).await? {
            let (first, last): (i64, i64) = (row.try_get("first")?, row.try_get("last")?);
            let before = ranks.get(&first).and_then(|(a, _)| named(*a));
            let after = ranks.get(&last).and_then(|(_, b)| named(*b));
            if let (Some(before), Some(after)) = (before, after)
                && before != after
            {
                moves.push(HeadlineMove {
                    target_id: row.try_get("target_id")?,
                    name: row.try_get("name")?,
                    key: row.try_get("key")?,
                    before,
                    after,
                });
            }
        }
        Ok(moves)
    }

    /// What happened to findings in the events of `[from, to)`, by rule.
    pub async fn rule_moves(&self, from: i64, to: i64) -> Result<Vec<RuleMove>> {
        let mut moves: Vec<RuleMove> = Vec::new();
        for kind in [1_i64, 2, 3] {
            let query = sqlx::query(RULE_MOVES).bind(from).bind(to).bind(kind);
            for row in query.fetch_all(&self.pools.reader).await? {
                let rule: String = row.try_get("slug")?;
                let events: i64 = row.try_get("events")?;
                let at = match moves.iter().position(|one| one.rule == rule) {
                    Some(at) => at,
                    None => {
                        moves.push(RuleMove { rule, opened: 0, regressed: 0, resolved: 0 });
                        moves.len() - 1
                    }
                };
                match kind {
                    1 => moves[at].opened += events,
                    2 => moves[at].regressed += events,
                    _ => moves[at].resolved += events,
                }
            }
        }
        Ok(moves)
    }
}
