//! Judgements: what every rule said of one observation, kept small enough to remember each of them.
//!
//! Who was looked at and who was not is much the same for all documents of a profile, so it is kept once
//! (`judged_set`); so are the places where a rule fires (`occ_set`). What is left of a judgement is one short row of
//! `eval`, which is at the same time the memo that spares judging the same document again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use plumbline_rules::canonical::Hash;
use plumbline_rules::report;
use serde::{Deserialize, Serialize};
use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::ids::{DocumentId, EvalId, RulesetId};
use crate::rows::{context_key, count, pack, short_hash, shortened, unpack, word, word_or_none};
use crate::rulesets::{Catalogue, RuleInfo};
use crate::words::{Headline, Impact, Known, Severity};

/// Places written out for one rule and document; of more only the number is kept.
pub const MOST_PLACES: usize = 1000;
/// Characters kept of what is wrong at a place, and of the pointer to it.
const LONGEST_MESSAGE: usize = 1000;
const LONGEST_POINTER: usize = 2000;

/// What the rules said of one observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Which rules were used.
    pub ruleset: RulesetId,
    /// The hash of everything that rules read besides the document.
    pub context_hash: Hash,
    /// The revision it was judged as, such as `a2a-1.0`; `None` where none could be told.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// The one word.
    pub headline: Headline,
    /// Every rule that could apply was asked. Then a rule that is not in `outcomes` does not apply; otherwise it was not
    /// evaluated.
    pub is_complete: bool,
    /// What each rule said.
    pub outcomes: Vec<RuleOutcome>,
}

/// One rule and what it said.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleOutcome {
    /// `family/kebab-name`.
    pub rule: Cow<'static, str>,
    /// What it said.
    pub said: Said,
}

/// What a rule can say.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// It fires here.
    Fires(Vec<Occurrence>),
    /// It looked and found nothing.
    Passes,
    /// There is nothing for it to look at.
    NotApplicable,
    /// It could not look, for this reason.
    NotEvaluated(Cow<'static, str>),
}

/// A place where a rule fires.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Occurrence {
    /// A JSON Pointer into the document, or the name of a step; empty for the whole.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
    /// How grave.
    pub severity: Severity,
    /// What clients do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub impact: Option<Impact>,
    /// Line of the document, from 1; `None` where the place is not in its text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<u32>,
}

impl Judged {
    /// A report of the rules as the store keeps it.
    #[must_use]
    pub fn of(report: &report::Report, ruleset: RulesetId, context_hash: Hash) -> Judged {
        let profile = report.detected.profile;
        Judged {
            ruleset,
            context_hash,
            profile: (!profile.is_empty()).then(|| profile.to_owned()),
            known: Some(report.detected.known),
            headline: report.headline(),
            is_complete: true,
            outcomes: report.results.iter().map(outcome).collect(),
        }
    }

    /// Whether it was told what this is, so that a rule which was not asked does not apply.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_complete
            && self.headline != Headline::NotDetected
            && self.known.is_some_and(|known| known != Known::Undetermined)
    }

    /// Whether it counts as having looked: most rules could be judged. A body that does not parse is not a look at the
    /// document, so that the first one that does still gives the baseline.
    pub(crate) fn is_a_look(&self) -> bool {
        let could =
            |outcome: &&RuleOutcome| matches!(outcome.said, Said::Fires(_) | Said::Passes | Said::NotApplicable);
        let could = self.outcomes.iter().filter(could).count();
        let has_word = !matches!(self.headline, Headline::NotDetected | Headline::NotEvaluated);
        self.is_complete && has_word && could * 2 >= self.outcomes.len()
    }
}

fn outcome(result: &report::RuleResult) -> RuleOutcome {
    let said = match &result.outcome {
        report::Outcome::Fires(found) => Said::Fires(found.iter().map(Occurrence::from).collect()),
        report::Outcome::Passes => Said::Passes,
        report::Outcome::NotApplicable => Said::NotApplicable,
        report::Outcome::NotEvaluated(reason) => Said::NotEvaluated(Cow::Borrowed(reason.as_str())),
    };
    RuleOutcome { rule: Cow::Borrowed(result.rule.id), said }
}

impl From<&report::Occurrence> for Occurrence {
    fn from(found: &report::Occurrence) -> Self {
        let small = |n: Option<usize>| n.and_then(|n| u32::try_from(n).ok());
        Occurrence {
            pointer: found.pointer.clone(),
            message: found.message.clone(),
            severity: found.severity,
            impact: found.impact,
            line: small(found.line),
            column: small(found.column),
        }
    }
}

/// The gravest severity and the worst impact among places.
pub(crate) fn worst(places: &[Occurrence]) -> (Severity, Option<Impact>) {
    let severity = places.iter().map(|place| place.severity).max().unwrap_or(Severity::Info);
    (severity, places.iter().filter_map(|place| place.impact).max())
}

/// A judgement as it was kept, with its rules as the catalogue knows them.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) eval: i64,
    /// Rules that fire.
    pub(crate) fired: Vec<Fired>,
    /// Rules that passed, by number.
    pub(crate) passed: Vec<i64>,
    /// Rules that were named as not evaluated, by number.
    pub(crate) unjudged: Vec<i64>,
}

/// A rule that fires.
#[derive(Debug)]
pub(crate) struct Fired {
    pub(crate) rule: Arc<RuleInfo>,
    pub(crate) occ_set: i64,
    pub(crate) occurrences: i64,
    pub(crate) severity: Severity,
    pub(crate) impact: Option<Impact>,
    /// What a fact is worth: its first message and pointer.
    pub(crate) first: (String, String),
}

/// The JSON of a `judged_set`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct JudgedSet {
    judged: Vec<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_applicable: Vec<i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    not_evaluated: BTreeMap<String, Vec<i64>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
}

/// The last judgement of a surface, as far as the next one asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) eval: i64,
    /// `None`: of a conversation.
    pub(crate) document: Option<i64>,
    pub(crate) ruleset: i64,
    /// What is kept of the hash of its context.
    pub(crate) context: Vec<u8>,
}

/// Keeps a judgement of a document, or of a conversation (`document` is `None`; then the surface's last one is rewritten if
/// it was of one too).
pub(crate) async fn keep(
    w: &mut Writing,
    catalogue: &Catalogue,
    document: Option<i64>,
    earlier: Option<&Earlier>,
    judged: &Judged,
    now_s: i64,
) -> Result<Kept> {
    let mut set = JudgedSet { partial: !judged.is_complete, ..JudgedSet::default() };
    let mut kept = Kept { eval: 0, fired: Vec::new(), passed: Vec::new(), unjudged: Vec::new() };
    for outcome in &judged.outcomes {
        let rule = catalogue.named(&outcome.rule).ok_or_else(|| Error::UnknownRule(outcome.rule.to_string()))?;
        match &outcome.said {
            Said::Fires(places) => {
                set.judged.push(rule.id);
                kept.fired.push(fired(w, rule, places).await?);
            }
            Said::Passes => {
                set.judged.push(rule.id);
                kept.passed.push(rule.id);
            }
            Said::NotApplicable => set.not_applicable.push(rule.id),
            Said::NotEvaluated(reason) => {
                set.not_evaluated.entry(reason.to_string()).or_default().push(rule.id);
                kept.unjudged.push(rule.id);
            }
        }
    }
    set.judged.sort_unstable();
    kept.fired.sort_by_key(|fired| fired.rule.id);
    let body = serde_json::to_vec(&set).expect("numbers and words always have a JSON form");
    let set_id = shared(w, Table::JudgedSet, &body, 0).await?;
    let of_conversation = earlier.filter(|earlier| earlier.document.is_none());
    kept.eval = match (document, earlier.filter(|earlier| earlier.is_of(document, judged)), of_conversation) {
        (Some(_), Some(same), _) => same.eval,
        (Some(document), None, _) => eval_of_document(w, document, judged, set_id, &kept.fired, now_s).await?,
        (None, _, Some(earlier)) => rewrite(w, earlier.eval, judged, set_id, &kept.fired, now_s).await?,
        (None, _, None) => insert(w, None, judged, set_id, &kept.fired, now_s).await?,
    };
    Ok(kept)
}

impl Earlier {
    /// Whether it is what the memo has of a document.
    fn is_of(&self, document: Option<i64>, judged: &Judged) -> bool {
        self.document == document
            && self.ruleset == judged.ruleset.0
            && self.context == context_key(&judged.context_hash)
    }
}

async fn fired(w: &mut Writing, rule: Arc<RuleInfo>, places: &[Occurrence]) -> Result<Fired> {
    let body = serde_json::to_vec(&kept_places(places)).expect("places always have a JSON form");
    let occ_set = shared(w, Table::OccSet, &body, places.len()).await?;
    let (severity, impact) = worst(places);
    let first = places.first().map(|place| (place.message.clone(), place.pointer.clone())).unwrap_or_default();
    Ok(Fired { rule, occ_set, occurrences: count(places.len()), severity, impact, first })
}

/// The places that are written out, what they say in bounds.
fn kept_places(places: &[Occurrence]) -> Cow<'_, [Occurrence]> {
    let places = &places[..places.len().min(MOST_PLACES)];
    let is_long = |place: &Occurrence| place.message.len() > LONGEST_MESSAGE || place.pointer.len() > LONGEST_POINTER;
    if !places.iter().any(is_long) {
        return Cow::Borrowed(places);
    }
    let cut = |place: &Occurrence| Occurrence {
        message: shortened(&place.message, LONGEST_MESSAGE),
        pointer: shortened(&place.pointer, LONGEST_POINTER),
        ..place.clone()
    };
    places.iter().map(cut).collect()
}

/// The row of a small body that many share.
async fn shared(w: &mut Writing, table: Table, body: &[u8], occurrences: usize) -> Result<i64> {
    let key = short_hash(body);
    if let Some(id) = w.remembered(table, &key) {
        return Ok(id);
    }
    let find = match table {
        Table::OccSet => "SELECT id FROM occ_set WHERE hash = $1",
        _ => "SELECT id FROM judged_set WHERE hash = $1",
    };
    let known: Option<i64> = sqlx::query_scalar(find).bind(key.to_vec()).fetch_optional(w.on()).await?;
    let id = match known {
        Some(id) => id,
        None => {
            let id = w.next_id(table).await?;
            let insert = match table {
                Table::OccSet => sqlx::query("INSERT INTO occ_set (id, hash, body, count) VALUES ($1, $2, $3, $4)"),
                _ => sqlx::query("INSERT INTO judged_set (id, hash, body) VALUES ($1, $2, $3)"),
            };
            let insert = insert.bind(id).bind(key.to_vec()).bind(pack(body)?);
            let insert = if table == Table::OccSet { insert.bind(count(occurrences)) } else { insert };
            insert.execute(w.on()).await?;
            id
        }
    };
    w.remember(table, key, id);
    Ok(id)
}

async fn eval_of_document(
    w: &mut Writing,
    document: i64,
    judged: &Judged,
    set_id: i64,
    fired: &[Fired],
    now_s: i64,
) -> Result<i64> {
    let known: Option<i64> =
        sqlx::query_scalar("SELECT id FROM eval WHERE document_id = $1 AND ruleset_id = $2 AND context_hash = $3")
            .bind(document)
            .bind(judged.ruleset.0)
            .bind(context_key(&judged.context_hash))
            .fetch_optional(w.on())
            .await?;
    match known {
        Some(id) => Ok(id),
        None => insert(w, Some(document), judged, set_id, fired, now_s).await,
    }
}

async fn insert(
    w: &mut Writing,
    document: Option<i64>,
    judged: &Judged,
    set_id: i64,
    fired: &[Fired],
    now_s: i64,
) -> Result<i64> {
    let id = w.next_id(Table::Eval).await?;
    sqlx::query(
        "INSERT INTO eval (id, document_id, ruleset_id, context_hash, judged_set_id, headline, profile, known,
                           n_error, n_warn, fired, judged_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(id)
    .bind(document)
    .bind(judged.ruleset.0)
    .bind(context_key(&judged.context_hash))
    .bind(set_id)
    .bind(judged.headline.as_str())
    .bind(judged.profile.as_deref())
    .bind(judged.known.map(Known::as_str))
    .bind(counted(fired, Severity::Error))
    .bind(counted(fired, Severity::Warning))
    .bind(fired_json(fired))
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(id)
}

/// Of a conversation only the newest judgement is kept.
async fn rewrite(w: &mut Writing, id: i64, judged: &Judged, set_id: i64, fired: &[Fired], now_s: i64) -> Result<i64> {
    sqlx::query(
        "UPDATE eval
         SET ruleset_id = $2, context_hash = $3, judged_set_id = $4, headline = $5, profile = $6, known = $7,
             n_error = $8, n_warn = $9, fired = $10, judged_s = $11
         WHERE id = $1 AND (fired <> $10 OR judged_set_id <> $4 OR ruleset_id <> $2 OR context_hash <> $3)",
    )
    .bind(id)
    .bind(judged.ruleset.0)
    .bind(context_key(&judged.context_hash))
    .bind(set_id)
    .bind(judged.headline.as_str())
    .bind(judged.profile.as_deref())
    .bind(judged.known.map(Known::as_str))
    .bind(counted(fired, Severity::Error))
    .bind(counted(fired, Severity::Warning))
    .bind(fired_json(fired))
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(id)
}

fn counted(fired: &[Fired], severity: Severity) -> i64 {
    let counts = |fired: &&Fired| fired.rule.accuses() && !fired.rule.guess && fired.severity == severity;
    count(fired.iter().filter(counts).count())
}

fn fired_json(fired: &[Fired]) -> String {
    let pairs: Vec<String> = fired.iter().map(|fired| format!("[{},{}]", fired.rule.id, fired.occ_set)).collect();
    format!("[{}]", pairs.join(","))
}

impl Store {
    /// What was said before of this document by these rules in this context; `None`: nobody asked yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memo(
        &self,
        document: DocumentId,
        ruleset: RulesetId,
        context_hash: &Hash,
    ) -> Result<Option<(EvalId, Judged)>> {
        let id: Option<i64> =
            sqlx::query_scalar("SELECT id FROM eval WHERE document_id = $1 AND ruleset_id = $2 AND context_hash = $3")
                .bind(document.0)
                .bind(ruleset.0)
                .bind(context_key(context_hash))
                .fetch_optional(&self.pools.reader)
                .await?;
        let Some(id) = id.map(EvalId) else { return Ok(None) };
        let mut judged = self.judged(id).await?;
        judged.context_hash = *context_hash;
        Ok(Some((id, judged)))
    }

    /// A judgement as it was kept. Of its context hash only the first eight bytes are known; the rest is zero.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn judged(&self, id: EvalId) -> Result<Judged> {
        let row = sqlx::query(
            "SELECT eval.ruleset_id, eval.context_hash, eval.profile, eval.known, eval.headline, eval.fired,
                    judged_set.body
             FROM eval
             JOIN judged_set ON judged_set.id = eval.judged_set_id
             WHERE eval.id = $1",
        )
        .bind(id.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        let row = row.ok_or_else(|| Error::Missing { what: "judgement", id: id.to_string() })?;
        let fired: Vec<(i64, i64)> = from_json("judgement", row.try_get::<String, _>(5)?.as_bytes())?;
        let set: JudgedSet = from_json("judgement", &unpack("judgement", &row.try_get::<Vec<u8>, _>(6)?)?)?;
        let mut context_hash = [0; 32];
        let key: Vec<u8> = row.try_get(1)?;
        context_hash[..key.len().min(8)].copy_from_slice(&key[..key.len().min(8)]);
        Ok(Judged {
            ruleset: RulesetId(row.try_get(0)?),
            context_hash,
            profile: row.try_get(2)?,
            known: word_or_none("judgement", row.try_get(3)?)?,
            headline: word("judgement", row.try_get(4)?)?,
            is_complete: !set.partial,
            outcomes: self.outcomes(&fired, &set).await?,
        })
    }

    /// The places of one shared set.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn occurrences(&self, occ_set: i64) -> Result<Vec<Occurrence>> {
        let packed: Option<Vec<u8>> = sqlx::query_scalar("SELECT body FROM occ_set WHERE id = $1")
            .bind(occ_set)
            .fetch_optional(&self.pools.reader)
            .await?;
        let packed = packed.ok_or_else(|| Error::Missing { what: "set of places", id: occ_set.to_string() })?;
        from_json("set of places", &unpack("set of places", &packed)?)
    }

    async fn outcomes(&self, fired: &[(i64, i64)], set: &JudgedSet) -> Result<Vec<RuleOutcome>> {
        let catalogue = match fired
            .iter()
            .map(|(rule, _)| rule)
            .chain(&set.judged)
            .all(|rule| self.catalogue().numbered(*rule).is_some())
        {
            true => self.catalogue(),
            false => self.read_catalogue().await?,
        };
        let named = |id: i64| {
            let rule = catalogue.numbered(id).ok_or_else(|| Error::corrupt("judgement", format!("rule {id}")))?;
            Ok::<_, Error>(rule.slug.clone())
        };
        let mut outcomes = Vec::new();
        for (rule, occ_set) in fired {
            outcomes.push(RuleOutcome { rule: named(*rule)?, said: Said::Fires(self.occurrences(*occ_set).await?) });
        }
        let passed = set.judged.iter().filter(|id| !fired.iter().any(|(rule, _)| rule == *id));
        for id in passed {
            outcomes.push(RuleOutcome { rule: named(*id)?, said: Said::Passes });
        }
        for id in &set.not_applicable {
            outcomes.push(RuleOutcome { rule: named(*id)?, said: Said::NotApplicable });
        }
        for (reason, ids) in &set.not_evaluated {
            for id in ids {
                let said = Said::NotEvaluated(Cow::Owned(reason.clone()));
                outcomes.push(RuleOutcome { rule: named(*id)?, said });
            }
        }
        Ok(outcomes)
    }
}

fn from_json<T: for<'de> Deserialize<'de>>(what: &'static str, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| Error::corrupt(what, error))
}
