//! The catalogue in the database: which rules there were in which version, so that a stored result says what it is about.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use plumbline_rules::canonical::content_hash;
use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::ids::{RuleRow, RulesetId};
use crate::rows::{count, word};
use crate::words::{Axis, Basis, Class, EventKind, Evidence, Impact, Severity};

/// Under which key the mark of the rules in use is kept.
const SETTLED: &str = "rules_settled";

/// One rule of a release, as the database needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFacts {
    /// `family/kebab-name`.
    pub slug: Cow<'static, str>,
    /// Raised when its condition changes.
    pub version: u32,
    /// The first sentence of its documentation.
    pub title: Cow<'static, str>,
    /// What it says something about.
    pub axis: Axis,
    /// Whether it accuses or describes.
    pub class: Class,
    /// What the specification says.
    pub severity: Severity,
    /// What clients do; `None` for hints, facts and reach.
    pub impact: Option<Impact>,
    /// Tagged security.
    pub security: bool,
    /// A guess by name, left out of headline and counts.
    pub guess: bool,
    /// Where the demand comes from.
    pub basis: Basis,
    /// What can prove it.
    pub evidence: Evidence,
    /// Place in the first release.
    pub rank: Option<u32>,
    /// Switched off by the operator: known, and in no ruleset.
    pub is_off: bool,
}

impl From<&plumbline_rules::rule::Rule> for RuleFacts {
    fn from(rule: &plumbline_rules::rule::Rule) -> Self {
        RuleFacts {
            slug: Cow::Borrowed(rule.id),
            version: rule.version,
            title: Cow::Borrowed(first_sentence(rule.doc)),
            axis: rule.axis,
            class: rule.class,
            severity: rule.severity,
            impact: rule.impact,
            security: rule.security,
            guess: rule.guess,
            basis: rule.basis,
            evidence: rule.evidence,
            rank: (rule.rank > 0).then(|| u32::from(rule.rank)),
            is_off: false,
        }
    }
}

/// The title of a documentation: its first line.
fn first_sentence(doc: &'static str) -> &'static str {
    doc.trim().lines().next().unwrap_or_default().trim()
}

/// What recording asks of a rule.
#[derive(Debug, Clone)]
pub(crate) struct RuleInfo {
    pub(crate) id: i64,
    pub(crate) slug: Cow<'static, str>,
    pub(crate) axis: Axis,
    pub(crate) class: Class,
    pub(crate) security: bool,
    pub(crate) guess: bool,
    pub(crate) evidence: Evidence,
    pub(crate) version: i64,
    pub(crate) version_s: i64,
}

impl RuleInfo {
    /// Its results are findings: it accuses.
    pub(crate) fn accuses(&self) -> bool {
        self.axis == Axis::Conformity && self.class == Class::Finding
    }

    /// Its results are attributes.
    pub(crate) fn describes(&self) -> bool {
        self.axis == Axis::Conformity && self.class == Class::Fact
    }
}

/// Rules by name and by number, and what each ruleset held. Rows of these tables never change their meaning, so what was
/// read once stays true; what is missing is read again.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    rules: HashMap<Cow<'static, str>, Arc<RuleInfo>>,
    by_id: HashMap<i64, Arc<RuleInfo>>,
    /// Rule → version, by ruleset.
    rulesets: HashMap<i64, Arc<HashMap<i64, i64>>>,
}

impl Catalogue {
    pub(crate) fn named(&self, slug: &str) -> Option<Arc<RuleInfo>> {
        self.rules.get(slug).cloned()
    }

    pub(crate) fn numbered(&self, id: i64) -> Option<Arc<RuleInfo>> {
        self.by_id.get(&id).cloned()
    }

    /// How many rules and rulesets it knows.
    pub(crate) fn size(&self) -> (i64, i64) {
        (count(self.by_id.len()), count(self.rulesets.len()))
    }

    /// Rule → version of a ruleset; `None` where it is not known.
    pub(crate) fn ruleset(&self, id: i64) -> Option<Arc<HashMap<i64, i64>>> {
        self.rulesets.get(&id).cloned()
    }
}

/// The catalogue as all clones of a store share it.
pub(crate) type SharedCatalogue = Arc<RwLock<Arc<Catalogue>>>;

impl Store {
    /// Stores a set of rules that judging is about to use and gives its number. The same set twice is one ruleset; a rule
    /// whose version is new is dated `now_s`; rules that are not in it are marked withdrawn.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ensure_ruleset(&self, version: &str, rules: &[RuleFacts], now_s: i64) -> Result<RulesetId> {
        let hash = ruleset_hash(rules);
        let mut w = self.pools.write().await?;
        let known: Option<i64> = sqlx::query_scalar("SELECT id FROM ruleset WHERE hash = $1")
            .bind(hash.clone())
            .fetch_optional(w.on())
            .await?;
        let mut ids = Vec::with_capacity(rules.len());
        for rule in rules {
            ids.push(keep_rule(&mut w, rule, now_s).await?);
        }
        withdraw_others(&mut w, &ids, now_s).await?;
        let id = match known {
            Some(id) => id,
            None => new_ruleset(&mut w, version, hash, rules, &ids, now_s).await?,
        };
        w.commit().await?;
        self.read_catalogue().await?;
        Ok(RulesetId(id))
    }

    /// The number of the ruleset in which some rules are switched off or graded otherwise for some targets. All of `rules`
    /// were stored with [`Store::ensure_ruleset`] before.
    ///
    /// # Errors
    /// When the database fails, or a rule was not stored.
    pub async fn ruleset_variant(&self, version: &str, rules: &[RuleFacts], now_s: i64) -> Result<RulesetId> {
        let hash = ruleset_hash(rules);
        let catalogue = self.catalogue();
        let mut w = self.pools.write().await?;
        let known: Option<i64> = sqlx::query_scalar("SELECT id FROM ruleset WHERE hash = $1")
            .bind(hash.clone())
            .fetch_optional(w.on())
            .await?;
        if let Some(id) = known {
            return Ok(RulesetId(id));
        }
        let mut ids = Vec::with_capacity(rules.len());
        for rule in rules {
            let known = catalogue.named(&rule.slug).ok_or_else(|| Error::UnknownRule(rule.slug.to_string()))?;
            ids.push(known.id);
        }
        let id = new_ruleset(&mut w, version, hash, rules, &ids, now_s).await?;
        w.commit().await?;
        self.read_catalogue().await?;
        Ok(RulesetId(id))
    }

    /// Rules that are in only one of two rulesets, or in both with different versions.
    #[must_use]
    pub fn moved_rules(&self, before: RulesetId, now: RulesetId) -> std::collections::HashSet<String> {
        let catalogue = self.catalogue();
        let (before, now) =
            (catalogue.ruleset(before.0).unwrap_or_default(), catalogue.ruleset(now.0).unwrap_or_default());
        let moved = before.keys().chain(now.keys()).filter(|rule| before.get(rule) != now.get(rule));
        moved.filter_map(|rule| Some(catalogue.numbered(*rule)?.slug.to_string())).collect()
    }

    /// Whether surfaces are to be judged again because the rules, or what is settled about them, are not those that `mark`
    /// stood for at the last start. [`Store::rules_are_settled`] ends that.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rules_have_moved(&self, mark: &str) -> Result<bool> {
        let known: Option<String> = sqlx::query_scalar("SELECT value FROM kv WHERE key = $1")
            .bind(SETTLED)
            .fetch_optional(&self.pools.reader)
            .await?;
        Ok(known.as_deref() != Some(mark))
    }

    /// Notes that what `mark` stands for is what surfaces are judged with, or are due to be.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rules_are_settled(&self, mark: &str) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query(
            "INSERT INTO kv (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        )
        .bind(SETTLED)
        .bind(mark)
        .execute(w.on())
        .await?;
        w.commit().await
    }

    /// The number of a rule; `None` for one this database never had.
    #[must_use]
    pub fn rule_row(&self, slug: &str) -> Option<RuleRow> {
        self.catalogue().named(slug).map(|rule| RuleRow(rule.id))
    }

    /// The rules as they were read last.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Reads rules and rulesets again.
    pub(crate) async fn read_catalogue(&self) -> Result<Arc<Catalogue>> {
        let fresh = Arc::new(read(&self.pools.reader).await?);
        *self.catalogue.write().unwrap_or_else(std::sync::PoisonError::into_inner) = fresh.clone();
        Ok(fresh)
    }
}

/// The hash of a set: of (rule, version, severity, impact) in the order of the names.
fn ruleset_hash(rules: &[RuleFacts]) -> Vec<u8> {
    let mut lines: Vec<String> = rules
        .iter()
        .filter(|rule| !rule.is_off)
        .map(|rule| {
            let impact = rule.impact.map_or("-", Impact::as_str);
            format!("{} {} {} {impact}\n", rule.slug, rule.version, rule.severity)
        })
        .collect();
    lines.sort_unstable();
    content_hash(lines.concat().as_bytes()).to_vec()
}

async fn keep_rule(w: &mut Writing, rule: &RuleFacts, now_s: i64) -> Result<i64> {
    let known = sqlx::query("SELECT id, version, version_s FROM rule WHERE slug = $1")
        .bind(rule.slug.as_ref())
        .fetch_optional(w.on())
        .await?;
    let version = i64::from(rule.version);
    let (id, version_s) = match &known {
        Some(row) if row.try_get::<i64, _>(1)? == version => (row.try_get(0)?, row.try_get(2)?),
        Some(row) => (row.try_get(0)?, now_s),
        None => (w.next_id(Table::Rule).await?, now_s),
    };
    sqlx::query(
        "INSERT INTO rule (id, slug, family, axis, class, severity, impact, security, guess, basis, evidence, rank,
                           version, version_s, title, withdrawn_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, NULL)
         ON CONFLICT (id) DO UPDATE SET
             axis = excluded.axis, class = excluded.class, severity = excluded.severity, impact = excluded.impact,
             security = excluded.security, guess = excluded.guess, basis = excluded.basis,
             evidence = excluded.evidence, rank = excluded.rank, version = excluded.version,
             version_s = excluded.version_s, title = excluded.title, withdrawn_s = NULL",
    )
    .bind(id)
    .bind(rule.slug.as_ref())
    .bind(rule.slug.split('/').next().unwrap_or_default())
    .bind(rule.axis.as_str())
    .bind(rule.class.as_str())
    .bind(rule.severity.as_str())
    .bind(rule.impact.map(Impact::as_str))
    .bind(i64::from(rule.security))
    .bind(i64::from(rule.guess))
    .bind(rule.basis.as_str())
    .bind(rule.evidence.as_str())
    .bind(rule.rank.map(i64::from))
    .bind(version)
    .bind(version_s)
    .bind(rule.title.as_ref())
    .execute(w.on())
    .await?;
    Ok(id)
}

async fn withdraw_others(w: &mut Writing, kept: &[i64], now_s: i64) -> Result<()> {
    let rows = sqlx::query("SELECT id FROM rule WHERE withdrawn_s IS NULL").fetch_all(w.on()).await?;
    for row in rows {
        let id: i64 = row.try_get(0)?;
        if !kept.contains(&id) {
            sqlx::query("UPDATE rule SET withdrawn_s = $2 WHERE id = $1").bind(id).bind(now_s).execute(w.on()).await?;
        }
    }
    Ok(())
}

async fn new_ruleset(
    w: &mut Writing,
    version: &str,
    hash: Vec<u8>,
    rules: &[RuleFacts],
    ids: &[i64],
    now_s: i64,
) -> Result<i64> {
    let id = w.next_id(Table::Ruleset).await?;
    sqlx::query("INSERT INTO ruleset (id, version, hash, released_s, rules) VALUES ($1, $2, $3, $4, $5)")
        .bind(id)
        .bind(version)
        .bind(hash)
        .bind(now_s)
        .bind(count(rules.iter().filter(|rule| !rule.is_off).count()))
        .execute(w.on())
        .await?;
    for (rule, rule_id) in rules.iter().zip(ids).filter(|(rule, _)| !rule.is_off) {
        sqlx::query(
            "INSERT INTO ruleset_rule (ruleset_id, rule_id, version, severity, impact) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(id)
        .bind(*rule_id)
        .bind(i64::from(rule.version))
        .bind(rule.severity.as_str())
        .bind(rule.impact.map(Impact::as_str))
        .execute(w.on())
        .await?;
    }
    let news = News { subject: Some(id), a: Some(count(rules.len())), ..News::of(EventKind::RulesetReleased) };
    events::append(w, now_s, news).await?;
    Ok(id)
}

async fn read(reader: &sqlx::AnyPool) -> Result<Catalogue> {
    let mut catalogue = Catalogue::default();
    let rows = sqlx::query("SELECT id, slug, axis, class, security, guess, evidence, version, version_s FROM rule")
        .fetch_all(reader)
        .await?;
    for row in rows {
        let rule = Arc::new(RuleInfo {
            id: row.try_get(0)?,
            slug: Cow::Owned(row.try_get(1)?),
            axis: word("axis", row.try_get(2)?)?,
            class: word("class", row.try_get(3)?)?,
            security: row.try_get::<i64, _>(4)? != 0,
            guess: row.try_get::<i64, _>(5)? != 0,
            evidence: word("evidence", row.try_get(6)?)?,
            version: row.try_get(7)?,
            version_s: row.try_get(8)?,
        });
        catalogue.by_id.insert(rule.id, rule.clone());
        catalogue.rules.insert(rule.slug.clone(), rule);
    }
    let mut rulesets: HashMap<i64, HashMap<i64, i64>> = HashMap::new();
    for row in sqlx::query("SELECT id FROM ruleset").fetch_all(reader).await? {
        rulesets.entry(row.try_get(0)?).or_default();
    }
    let rows = sqlx::query("SELECT ruleset_id, rule_id, version FROM ruleset_rule").fetch_all(reader).await?;
    for row in rows {
        rulesets.entry(row.try_get(0)?).or_default().insert(row.try_get(1)?, row.try_get(2)?);
    }
    catalogue.rulesets = rulesets.into_iter().map(|(id, rules)| (id, Arc::new(rules))).collect();
    Ok(catalogue)
}
