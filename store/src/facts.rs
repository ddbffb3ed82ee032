//! Facts: what rules of class fact say of a surface, as spans. The machine is [`crate::attributes`]; nothing here is counted
//! as wrong or told.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row;

use crate::attributes::{self, Attribute, Change, Waits};
use crate::dialect::Writing;
use crate::error::{Error, Result};
use crate::findings::{Occasion, signal};
use crate::judged::Kept;
use crate::machine::{Look, Recent, Signal};
use crate::rows::shortened;
use crate::rulesets::Catalogue;
use crate::trends::Trends;
use crate::words::Evidence;

/// Characters kept of a fact's value.
const LONGEST_VALUE: usize = 200;

/// What a rule says, and where.
type Value = (String, String);

/// Steps the facts of a surface with what was judged. Gives how many wait to be confirmed.
pub(crate) async fn step_all(
    w: &mut Writing,
    trends: &mut Trends,
    catalogue: &Catalogue,
    occasion: &Occasion<'_>,
    kept: &Kept,
) -> Result<i64> {
    let mut known = load(w, occasion.surface).await?;
    let fired: BTreeMap<i64, Value> = kept
        .fired
        .iter()
        .filter(|fired| fired.rule.describes())
        .map(|fired| {
            let text = |text: &str| shortened(text, LONGEST_VALUE);
            (fired.rule.id, (text(&fired.first.0), text(&fired.first.1)))
        })
        .collect();
    let rules: BTreeSet<i64> = known.keys().chain(fired.keys()).copied().collect();
    let mut waiting = 0;
    for id in rules {
        let before = known.remove(&id).unwrap_or_default();
        let value = fired.get(&id).cloned();
        // A rule that is not in the catalogue, or is of another class now, is withdrawn as a fact.
        let rule = catalogue.numbered(id).filter(|rule| rule.describes());
        let (look, evidence) = match &rule {
            Some(rule) if value.is_some() => (occasion.look(Signal::Fires, rule), rule.evidence),
            Some(rule) => (occasion.look(signal(occasion, kept, id), rule), rule.evidence),
            None => (withdrawn(occasion.at_s), Evidence::Document),
        };
        let (after, change) = attributes::step(&before, &look, value, evidence);
        match change {
            Change::Stay => {}
            Change::Wait => keep_waiting(w, occasion.surface, id, after.waits.as_ref()).await?,
            Change::Settle(since_s) => {
                if before.waits.is_some() {
                    keep_waiting(w, occasion.surface, id, None).await?;
                }
                settle(w, trends, occasion.surface, id, (&before, &after), since_s).await?;
            }
        }
        waiting += i64::from(after.waits.is_some());
    }
    Ok(waiting)
}

/// A look that only tells that the rule is gone.
fn withdrawn(at_s: i64) -> Look {
    let signal = Signal::RuleWithdrawn;
    Look { signal, at_s, is_verification: false, is_first: false, is_settled: false, is_same_document: true }
}

async fn load(w: &mut Writing, surface: i64) -> Result<BTreeMap<i64, Attribute<Value>>> {
    let mut known: BTreeMap<i64, Attribute<Value>> = BTreeMap::new();
    let rows = sqlx::query("SELECT rule_id, value, pointer FROM fact_span WHERE surface_id = $1 AND to_s IS NULL")
        .bind(surface)
        .fetch_all(w.on())
        .await?;
    for row in rows {
        known.entry(row.try_get(0)?).or_default().holds = Some((row.try_get(1)?, row.try_get(2)?));
    }
    let rows = sqlx::query(
        "SELECT rule_id, value, pointer, confirmations, recent, others, since_s FROM fact_pending WHERE surface_id = $1",
    )
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    for row in rows {
        let (value, pointer): (Option<String>, String) = (row.try_get(1)?, row.try_get(2)?);
        let recent =
            u8::try_from(row.try_get::<i64, _>(4)?).map_err(|error| Error::corrupt("fact that waits", error))?;
        known.entry(row.try_get(0)?).or_default().waits = Some(Waits {
            says: value.map(|value| (value, pointer)),
            count: row.try_get(3)?,
            recent: Recent(recent),
            others: row.try_get(5)?,
            since_s: row.try_get(6)?,
        });
    }
    Ok(known)
}

async fn keep_waiting(w: &mut Writing, surface: i64, rule: i64, waits: Option<&Waits<Value>>) -> Result<()> {
    let Some(waits) = waits else {
        sqlx::query("DELETE FROM fact_pending WHERE surface_id = $1 AND rule_id = $2")
            .bind(surface)
            .bind(rule)
            .execute(w.on())
            .await?;
        return Ok(());
    };
    sqlx::query(
        "INSERT INTO fact_pending (surface_id, rule_id, value, pointer, confirmations, recent, others, since_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (surface_id, rule_id) DO UPDATE SET
             value = excluded.value, pointer = excluded.pointer, confirmations = excluded.confirmations,
             recent = excluded.recent, others = excluded.others, since_s = excluded.since_s",
    )
    .bind(surface)
    .bind(rule)
    .bind(waits.says.as_ref().map(|(value, _)| value.as_str()))
    .bind(waits.says.as_ref().map_or("", |(_, pointer)| pointer.as_str()))
    .bind(waits.count)
    .bind(i64::from(waits.recent.0))
    .bind(waits.others)
    .bind(waits.since_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Ends what held and begins what holds, at one moment.
async fn settle(
    w: &mut Writing,
    trends: &mut Trends,
    surface: i64,
    rule: i64,
    (before, after): (&Attribute<Value>, &Attribute<Value>),
    since_s: i64,
) -> Result<()> {
    if before.holds.is_some() {
        end(w, trends, surface, rule, since_s).await?;
    }
    let Some((value, pointer)) = &after.holds else { return Ok(()) };
    sqlx::query(
        "INSERT INTO fact_span (surface_id, rule_id, from_s, value, pointer) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (surface_id, rule_id, from_s) DO UPDATE SET
             to_s = NULL, value = excluded.value, pointer = excluded.pointer",
    )
    .bind(surface)
    .bind(rule)
    .bind(since_s)
    .bind(value)
    .bind(pointer)
    .execute(w.on())
    .await?;
    trends.rule(rule).failing += 1;
    Ok(())
}

async fn end(w: &mut Writing, trends: &mut Trends, surface: i64, rule: i64, at_s: i64) -> Result<()> {
    sqlx::query("UPDATE fact_span SET to_s = $3 WHERE surface_id = $1 AND rule_id = $2 AND to_s IS NULL")
        .bind(surface)
        .bind(rule)
        .bind(at_s)
        .execute(w.on())
        .await?;
    trends.rule(rule).failing -= 1;
    Ok(())
}

/// Ends every fact of a surface that nobody shows any more, and forgets what waited.
pub(crate) async fn end_all(w: &mut Writing, trends: &mut Trends, surface: i64, now_s: i64) -> Result<()> {
    for (rule, attribute) in load(w, surface).await? {
        if attribute.holds.is_some() {
            end(w, trends, surface, rule, now_s).await?;
        }
        if attribute.waits.is_some() {
            keep_waiting(w, surface, rule, None).await?;
        }
    }
    Ok(())
}
