//! `/prevalence`: which failures matter across the ecosystem, and what moves. Every rule now beside thirty days ago, and the
//! most common ones week by week.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::rule::{Axis, Class, Rule};
use plumbline_store::views::{CohortRow, FixedShare, Prevalence};
use plumbline_store::words::{Impact, Severity};
use serde::{Deserialize, Serialize};

use super::{filled, word};
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::pages::rules::family_words;
use crate::text;
use crate::week::Week;

/// Rules in the dot plot.
const DOTS: usize = 30;
/// Rules and weeks of the heat map.
const HEAT_RULES: usize = 12;
const WEEKS: i64 = 13;
/// Fewer judged surfaces than this make a share that says nothing about an ecosystem.
const ENOUGH: i64 = 5;

/// Which rules, in which cohort.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    family: Option<String>,
    severity: Option<String>,
    impact: Option<String>,
    cohort: Option<String>,
    against: Option<String>,
    days: Option<String>,
    facts: Option<String>,
    population: Option<String>,
}

/// Rules side by side.
#[derive(Template, Serialize)]
#[template(path = "prevalence.html")]
struct PrevalencePage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The cohort whose shares these are.
    cohort: String,
    /// `floating`: whoever was there on each day; `fixed`: the same surfaces on both.
    population: &'static str,
    /// Every rule that was judged, the most common failure first.
    rules: Vec<Row>,
    #[serde(skip)]
    dots: Vec<Dot>,
    #[serde(skip)]
    top: i64,
    #[serde(skip)]
    heat: Option<Heat>,
    #[serde(skip)]
    choice: Choice,
    #[serde(skip)]
    cohorts: Vec<CohortRow>,
    #[serde(skip)]
    movers: String,
}

/// One rule now and before.
#[derive(Debug, Clone, Serialize)]
struct Row {
    /// The rule and its numbers now.
    #[serde(flatten)]
    now: Prevalence,
    /// What it demands.
    title: String,
    /// Of the rule in general.
    severity: Severity,
    /// What released clients do.
    impact: Option<Impact>,
    /// Share now, in hundredths of a percent.
    share: i64,
    /// Share before, or of the other cohort, in hundredths of a percent; `None`: not judged then.
    before: Option<i64>,
    /// Judged surfaces then.
    before_evaluated: Option<i64>,
}

impl Row {
    /// Hundredths of a percent point it moved.
    fn moved(&self) -> Option<i64> {
        self.before.map(|before| self.share - before)
    }
}

/// A row of the dot plot, in percent of its width.
struct Dot {
    row: Row,
    now: f64,
    then: Option<f64>,
    left: f64,
    width: f64,
    moved: String,
    is_large: bool,
}

/// Rules by weeks.
struct Heat {
    weeks: Vec<String>,
    rows: Vec<(String, Vec<(String, &'static str)>)>,
    caption: String,
}

/// What was chosen.
#[derive(Debug, Clone, Default)]
struct Choice {
    family: Option<String>,
    severity: Option<Severity>,
    impact: Option<Impact>,
    cohort: String,
    against: Option<String>,
    days: i64,
    facts: bool,
    is_fixed: bool,
}

/// `GET /prevalence`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let choice = asked.choice()?;
    let cohorts = state.store.cohorts().await?;
    let cohort = found(&cohorts, "cohort", &choice.cohort)?;
    let today = visit.now / 86_400;
    let (now, before) = if choice.is_fixed {
        let shares = state.store.fixed_prevalence(cohort.id, today - choice.days, visit.now).await?;
        fixed_sides(&shares)
    } else {
        let now = state.store.prevalence(cohort.id, today).await?;
        let before = match &choice.against {
            Some(other) => state.store.prevalence(found(&cohorts, "against", other)?.id, today).await?,
            None => state.store.prevalence(cohort.id, today - choice.days).await?,
        };
        (now.map(|(_, rules)| rules).unwrap_or_default(), before.map(|(_, rules)| rules).unwrap_or_default())
    };
    let rows = rows(now, before, &choice);
    let heat = heat(&state, cohort.id, &rows, today).await?;
    let top = rows.iter().take(DOTS).map(|row| row.share.max(row.before.unwrap_or(0))).max().unwrap_or(0);
    let top = [200, 500, 1_000, 2_000, 5_000].into_iter().find(|step| *step >= top).unwrap_or(10_000);
    let page = PrevalencePage {
        frame: visit.framed(Place::Prevalence),
        as_of_s: visit.now,
        answer: answer(&rows, cohort, &choice),
        cohort: cohort.slug.clone(),
        population: if choice.is_fixed { "fixed" } else { "floating" },
        dots: rows
            .iter()
            .filter(|row| row.now.failing > 0 || row.before.unwrap_or(0) > 0)
            .take(DOTS)
            .map(|row| dot(row, top))
            .collect(),
        movers: movers(&rows, &choice),
        top,
        heat,
        rules: rows,
        choice,
        cohorts,
    };
    visit.answer_rows(&page, &page.rules, Cache::Fresh)
}

fn found<'c>(cohorts: &'c [CohortRow], field: &'static str, slug: &str) -> Result<&'c CohortRow, Error> {
    cohorts
        .iter()
        .find(|cohort| cohort.slug == slug)
        .ok_or_else(|| Error::BadQuery { field, reason: format!("names no cohort: “{}”", text::visible(slug, 60)) })
}

impl Asked {
    fn choice(&self) -> Result<Choice, Error> {
        let days = super::number("days", self.days.as_deref())?.unwrap_or(30);
        if !(1..=365).contains(&days) {
            return Err(Error::BadQuery { field: "days", reason: "is not between 1 and 365".to_owned() });
        }
        let is_fixed = match filled(self.population.as_deref()) {
            None | Some("floating") => false,
            Some("fixed") => true,
            Some(_) => {
                return Err(Error::BadQuery {
                    field: "population",
                    reason: "is neither floating nor fixed".to_owned(),
                });
            }
        };
        if is_fixed && filled(self.against.as_deref()).is_some() {
            let reason = "can be fixed against the past only, not against another cohort".to_owned();
            return Err(Error::BadQuery { field: "population", reason });
        }
        Ok(Choice {
            is_fixed,
            family: filled(self.family.as_deref()).map(str::to_owned),
            severity: word("severity", self.severity.as_deref())?,
            impact: word("impact", self.impact.as_deref())?,
            cohort: filled(self.cohort.as_deref()).unwrap_or("all").to_owned(),
            against: filled(self.against.as_deref()).map(str::to_owned),
            days,
            facts: filled(self.facts.as_deref()).is_some(),
        })
    }
}

/// Both sides of a population that is the same on both days.
fn fixed_sides(shares: &[FixedShare]) -> (Vec<Prevalence>, Vec<Prevalence>) {
    let side = |one: &FixedShare, failing: i64, waived: i64| Prevalence {
        rule: one.rule.clone(),
        evaluated: one.evaluated,
        failing,
        waived,
    };
    let now = shares.iter().map(|one| side(one, one.failing, one.waived)).collect();
    (now, shares.iter().map(|one| side(one, one.failing_before, 0)).collect())
}

fn rows(now: Vec<Prevalence>, before: Vec<Prevalence>, choice: &Choice) -> Vec<Row> {
    let before: HashMap<String, Prevalence> = before.into_iter().map(|rule| (rule.rule.clone(), rule)).collect();
    let mut rows: Vec<Row> = now
        .into_iter()
        .filter(|rule| rule.evaluated > 0)
        .filter_map(|now| {
            let rule = catalogue::find(&now.rule)?;
            if !is_wanted(rule, choice) {
                return None;
            }
            let then = before.get(&now.rule).filter(|then| then.evaluated > 0);
            Some(Row {
                title: rule.title(),
                severity: rule.severity,
                impact: rule.impact,
                share: share(&now),
                before: then.map(share),
                before_evaluated: then.map(|then| then.evaluated),
                now,
            })
        })
        .collect();
    rows.sort_by(|a, b| {
        b.share.cmp(&a.share).then_with(|| b.now.failing.cmp(&a.now.failing)).then_with(|| a.now.rule.cmp(&b.now.rule))
    });
    rows
}

fn share(rule: &Prevalence) -> i64 {
    rule.failing * 10_000 / rule.evaluated.max(1)
}

fn is_wanted(rule: &Rule, choice: &Choice) -> bool {
    let is_kind = if choice.facts {
        rule.class == Class::Fact
    } else {
        rule.axis == Axis::Conformity && rule.class == Class::Finding
    };
    // Hints count for nothing; whoever wants them asks for them.
    let is_counted = choice.facts || choice.severity.is_some() || rule.severity != Severity::Info;
    is_kind
        && is_counted
        && choice.family.as_deref().is_none_or(|family| rule.family() == family)
        && choice.severity.is_none_or(|severity| rule.severity == severity)
        && choice.impact.is_none_or(|impact| rule.impact == Some(impact))
}

/// Hundredths of a percent point in words: `+0.6 points`.
fn points(hundredths: i64) -> String {
    let sign = match hundredths {
        5.. => "+",
        ..=-5 => "−",
        _ => return "±0.0\u{a0}pt".to_owned(),
    };
    format!("{sign}{:.1}\u{a0}pt", hundredths.abs() as f64 / 100.0)
}

fn percent(hundredths: i64) -> String {
    text::share(hundredths, 10_000)
}

/// The rules that moved most, with enough judged on both ends.
fn moved_most(rows: &[Row]) -> Vec<&Row> {
    let mut moved: Vec<&Row> = rows
        .iter()
        .filter(|row| row.now.evaluated >= ENOUGH && row.before_evaluated.unwrap_or(0) >= ENOUGH)
        .filter(|row| row.moved().is_some_and(|moved| moved.abs() >= 5))
        .collect();
    moved.sort_by_key(|row| std::cmp::Reverse(row.moved().map_or(0, i64::abs)));
    moved.truncate(3);
    moved
}

fn answer(rows: &[Row], cohort: &CohortRow, choice: &Choice) -> String {
    let what = if choice.facts { "attribute" } else { "failure" };
    let verb = if choice.facts { "have it" } else { "fail it" };
    let Some(first) = rows.iter().find(|row| row.now.failing > 0) else {
        return match rows.len() {
            0 => "Nothing has been judged by rules like these yet.".to_owned(),
            n => format!("None of {} is broken anywhere we could look.", text::counted(n as i64, "rule", "rules")),
        };
    };
    let where_ = if cohort.slug == "all" { String::new() } else { format!(" among {}", cohort.title) };
    format!(
        "The most common {what}{where_} is `{}`: {} of {} ({}) {verb}.",
        first.now.rule,
        text::number(first.now.failing),
        text::counted(first.now.evaluated, "judged surface", "judged surfaces"),
        percent(first.share)
    )
}

fn movers(rows: &[Row], choice: &Choice) -> String {
    let moved = moved_most(rows);
    let since = choice
        .against
        .as_ref()
        .map_or_else(|| format!("in {} days", choice.days), |other| format!("against {}", text::visible(other, 60)));
    if moved.is_empty() {
        return format!("No share moved by a twentieth of a point {since}, or too little was judged to say so.");
    }
    let said: Vec<String> =
        moved.iter().map(|row| format!("`{}` {}", row.now.rule, points(row.moved().unwrap_or(0)))).collect();
    format!("The largest moves {since}: {}.", text::listed(&said))
}

fn dot(row: &Row, top: i64) -> Dot {
    let place = |share: i64| share as f64 * 100.0 / top as f64;
    let (now, then) = (place(row.share), row.before.map(place));
    let other = then.unwrap_or(now);
    let moved = row.moved();
    Dot {
        now,
        then,
        left: now.min(other),
        width: (now - other).abs(),
        moved: moved.map_or_else(|| "new".to_owned(), points),
        is_large: moved.is_some_and(|moved| moved.abs() >= 50),
        row: row.clone(),
    }
}

async fn heat(state: &WebState, cohort: i64, rows: &[Row], today: i64) -> Result<Option<Heat>, Error> {
    let this_week = Week::of_day(today);
    let first = this_week.later(1 - WEEKS);
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| row.now.failing > 0).take(HEAT_RULES) {
        let days = state.store.rule_in_cohort(cohort, &row.now.rule, first.first_day).await?;
        let cells = (0..WEEKS)
            .rev()
            .map(|n| {
                let week = first.later(n);
                let of: Vec<i64> = days
                    .iter()
                    .filter(|day| (week.first_day..week.first_day + 7).contains(&day.day) && day.evaluated > 0)
                    .map(|day| day.failing * 10_000 / day.evaluated)
                    .collect();
                (!of.is_empty()).then(|| of.iter().sum::<i64>() / of.len() as i64)
            })
            .collect::<Vec<_>>();
        lines.push((row.now.rule.clone(), cells));
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let most = lines.iter().flat_map(|(_, cells)| cells).flatten().copied().max().unwrap_or(0);
    let counted = (0..WEEKS as usize).filter(|n| lines.iter().any(|(_, cells)| cells[*n].is_some())).count();
    let caption = heat_caption(&lines, counted);
    let rows = lines
        .into_iter()
        .map(|(rule, cells)| (rule, cells.into_iter().map(|cell| cell_of(cell, most)).collect()))
        .collect();
    let weeks = (0..WEEKS).rev().map(|n| text::day(first.later(n).first_day)).collect();
    Ok(Some(Heat { weeks, rows, caption }))
}

fn cell_of(share: Option<i64>, most: i64) -> (String, &'static str) {
    let Some(share) = share else { return (String::new(), "none") };
    let said = format!("{:.1}", share as f64 / 100.0);
    let class = match share * 5 / most.max(1) {
        0 => "h0",
        1 => "h1",
        2 => "h2",
        3 => "h3",
        _ => "h4",
    };
    (said, class)
}

fn heat_caption(lines: &[(String, Vec<Option<i64>>)], counted: usize) -> String {
    if counted <= 1 {
        return "One week so far, so nothing can have moved yet.".to_owned();
    }
    let moves = lines.iter().filter_map(|(rule, cells)| {
        let mut known = cells.iter().flatten();
        let first = known.next()?;
        Some((rule, *known.last()? - first))
    });
    match moves.max_by_key(|(_, moved)| moved.abs()) {
        Some((rule, moved)) if moved.abs() >= 10 => {
            format!("Over {counted} weeks `{rule}` moved most, by {}.", points(moved))
        }
        _ => format!("None of these moved by a tenth of a point in {counted} weeks."),
    }
}

impl PrevalencePage {
    fn families(&self) -> Vec<(&'static str, &'static str, bool)> {
        ["a2a", "mcp", "oauth", "registry", "openapi", "common"]
            .map(|family| (family, family_words(family), self.choice.family.as_deref() == Some(family)))
            .to_vec()
    }

    fn severities(&self) -> Vec<(&'static str, bool)> {
        Severity::ALL.iter().map(|word| (word.as_str(), self.choice.severity == Some(*word))).collect()
    }

    fn impacts(&self) -> Vec<(&'static str, bool)> {
        Impact::ALL.iter().map(|word| (word.as_str(), self.choice.impact == Some(*word))).collect()
    }

    fn top_words(&self) -> String {
        percent(self.top)
    }

    fn percent(&self, hundredths: &i64) -> String {
        percent(*hundredths)
    }

    fn is_cohort(&self, slug: &str) -> bool {
        self.choice.cohort == slug
    }

    fn is_against(&self, slug: &str) -> bool {
        self.choice.against.as_deref() == Some(slug)
    }

    fn then_words(&self) -> String {
        self.choice
            .against
            .as_ref()
            .map_or_else(|| format!("{} days ago", self.choice.days), |slug| text::visible(slug, 60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rule: &str, evaluated: i64, share: i64, before: Option<i64>) -> Row {
        let now = Prevalence { rule: rule.to_owned(), evaluated, failing: evaluated * share / 10_000, waived: 0 };
        let before_evaluated = before.map(|_| evaluated);
        Row { now, title: String::new(), severity: Severity::Error, impact: None, share, before, before_evaluated }
    }

    #[test]
    fn movers_are_told_only_where_enough_was_judged() {
        let rows = [
            row("a/up", 100, 900, Some(800)),
            row("a/few", 2, 5_000, Some(0)),
            row("a/new", 100, 900, None),
            row("a/still", 100, 100, Some(100)),
        ];
        let choice = Choice { days: 30, ..Choice::default() };
        assert_eq!(movers(&rows, &choice), "The largest moves in 30 days: `a/up` +1.0\u{a0}pt.");
        assert!(movers(&rows[1..], &choice).starts_with("No share moved"));
    }

    #[test]
    fn a_week_without_a_day_is_a_hole_and_no_zero() {
        assert_eq!(cell_of(None, 100), (String::new(), "none"));
        assert_eq!(cell_of(Some(0), 100), ("0.0".to_owned(), "h0"));
        assert_eq!(cell_of(Some(100), 100).1, "h4");
    }
}
