//! `/rules/{family}/{name}`: how common is this failure, is it growing, who fails it, and how is it mended?

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::clients;
use plumbline_rules::rule::{Basis, Evidence, Impact, Rule, Severity};
use plumbline_store::views::{FailingRow, KindDay, RuleDay, RuleRecord};
use plumbline_store::words::TargetKind;
use serde::{Deserialize, Serialize};

use super::filled;
use super::rules::{class, family_words};
use crate::WebState;
use crate::cache::Cache;
use crate::chart::{self, Plot, Series};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Days the chart reaches back.
const DAYS: i64 = 365;
/// Targets on one page.
const PAGE: i64 = 50;

/// Where the list of failing targets goes on.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    after: Option<String>,
}

/// A rule, its text and its numbers.
#[derive(Template, Serialize)]
#[template(path = "rule.html")]
struct RulePage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the numbers hold for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// What the rule says; `None`: it is no longer in the catalogue.
    rule: Option<RuleText>,
    /// `family/kebab-name`.
    id: String,
    /// What this database knows of it; `None`: it was never judged here.
    record: Option<RuleRecord>,
    /// Its days, oldest first; the last is the present.
    days: Vec<RuleDay>,
    /// Surfaces it could not look at, or that it is not about; `None`: not known.
    unknown: Option<i64>,
    /// Who fails it now.
    failing: Vec<FailingRow>,
    /// Address of the next page of them.
    next: Option<String>,
    #[serde(skip)]
    is_fact: bool,
    #[serde(skip)]
    chart: Option<ChartOfRule>,
    #[serde(skip)]
    first_place: i64,
    #[serde(skip)]
    all_failing: i64,
}

/// The text of a rule, made from its static.
#[derive(Serialize)]
struct RuleText {
    /// What it demands.
    title: String,
    /// Why it matters, in paragraphs.
    why: Vec<String>,
    /// `finding`, `fact` or `state`.
    class: &'static str,
    /// Of the rule in general.
    severity: Severity,
    /// Where a revision differs.
    severity_overrides: Vec<(&'static str, Severity)>,
    /// What released clients do.
    impact: Option<Impact>,
    /// Which SDKs were tested and when, or why without a run.
    impact_evidence: &'static str,
    /// What each affected SDK does.
    clients: &'static [&'static str],
    /// Documents of ours with this fault, and what pinned SDKs do with them.
    runs: Vec<&'static clients::Row>,
    /// Tagged security.
    is_security: bool,
    /// Where the demand comes from.
    basis: Basis,
    /// What can prove it.
    evidence: Evidence,
    /// The revisions it is about.
    versions: &'static [&'static str],
    /// Where it looks.
    place: &'static str,
    /// What to do.
    fix: &'static str,
    /// The section that asks for it.
    spec: &'static str,
    /// The same check in published catalogues.
    seeds: &'static [&'static str],
    /// Raised when its condition changes.
    version: u32,
    /// When it fires and when it just does not.
    examples: Vec<ExampleText>,
}

/// One example.
#[derive(Serialize)]
struct ExampleText {
    /// The pointers at which it fires; empty: it stays silent.
    fires: &'static [&'static str],
    /// What is laid over a valid document, laid out.
    text: String,
    /// The text is the whole document.
    is_whole: bool,
    /// The valid document it lies over; empty: the newest.
    base: &'static str,
    /// What is known besides the document, laid out; empty: nothing.
    given: String,
}

/// A document that asks for what a rule demands.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    name: &'static str,
    /// Where it can be read; `None` where no address is known.
    url: Option<String>,
}

/// The line of shares and the table of the same numbers.
struct ChartOfRule {
    plot: Plot,
    caption: String,
    rows: Vec<RuleDay>,
}

/// `GET /rules/{family}/{name}`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    Path((family, name)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let id = format!("{family}/{name}");
    let rule = catalogue::find(&id);
    let record = state.store.rule_record(&id).await?;
    if rule.is_none() && record.is_none() {
        return Err(Error::NotFound { what: "rule", asked: id });
    }
    let today = visit.now / 86_400;
    let (after, first_place) = position(&asked)?;
    let (days, mut failing) = match &record {
        Some(record) => (
            state.store.rule_days(record.id, today - DAYS + 1).await?,
            state.store.failing(record.id, after, PAGE + 1).await?,
        ),
        None => (Vec::new(), Vec::new()),
    };
    let has_more = failing.len() as i64 > PAGE;
    failing.truncate(PAGE as usize);
    let next = failing
        .last()
        .filter(|_| has_more)
        .map(|last| format!("/rules/{id}?after={}~{}~{}#h-who", first_place + PAGE, last.surface_id, last.target_id));
    let is_fact = rule.is_some_and(|rule| class(rule) == "fact");
    let notes = super::notes(&state, &format!("rule:{id}"), (today - DAYS) * 86_400).await?;
    let present = days.last().filter(|day| day.evaluated > 0);
    let page = RulePage {
        frame: visit.framed(Place::Rules),
        as_of_s: visit.now,
        answer: answer(rule, &days, is_fact),
        unknown: unknown(rule, present, &state.store.kind_days().await?),
        chart: chart_of(&days, today, is_fact)
            .map(|chart| ChartOfRule { plot: chart.plot.clone().flagged(chart.plot.first_day, &notes), ..chart }),
        all_failing: present.map_or(0, |day| day.failing),
        rule: rule.map(rule_text),
        id,
        record,
        days,
        failing,
        next,
        is_fact,
        first_place,
    };
    visit.answer(&page, Cache::Fresh)
}

/// The surface and target that `after` holds, `place~surface~target`, and the place of the first of the page, from 1.
fn position(asked: &Asked) -> Result<((i64, i64), i64), Error> {
    let Some(after) = filled(asked.after.as_deref()) else { return Ok(((i64::MAX, 0), 1)) };
    let numbers: Vec<i64> = after.split('~').filter_map(|part| part.parse().ok()).collect();
    match numbers[..] {
        [place, surface, target] => Ok(((surface, target), place)),
        _ => Err(Error::BadQuery {
            field: "after",
            reason: "is no place in this list; begin at its first page".to_owned(),
        }),
    }
}

fn answer(rule: Option<&Rule>, days: &[RuleDay], is_fact: bool) -> String {
    let Some(present) = days.last().filter(|day| day.evaluated > 0) else {
        return match rule {
            Some(_) => "No surface has been judged by this rule yet.".to_owned(),
            None => "This rule is no longer in the catalogue.".to_owned(),
        };
    };
    let verb = match (is_fact, present.failing) {
        (true, 1) => "has this attribute",
        (true, _) => "have this attribute",
        (false, 1) => "fails this",
        (false, _) => "fail this",
    };
    if present.failing == 0 {
        let none = if is_fact { "has this attribute" } else { "fails this" };
        return format!(
            "None of the {} {none}.",
            text::counted(present.evaluated, "surface that could be judged", "surfaces that could be judged")
        );
    }
    let share = text::share(present.failing, present.evaluated);
    let waived = match present.waived {
        0 => String::new(),
        n => format!(", of which {} accepted", text::counted(n, "is", "are")),
    };
    format!(
        "{} of {} ({share}) {verb}{waived}{}.",
        text::number(present.failing),
        text::counted(present.evaluated, "judged surface", "judged surfaces"),
        moved(days, present)
    )
}

/// How the share moved in thirty days, where it is known.
fn moved(days: &[RuleDay], present: &RuleDay) -> String {
    let then = days.iter().rev().find(|day| day.day <= present.day - 30).filter(|day| day.evaluated > 0);
    let Some(then) = then else { return String::new() };
    let share = |day: &RuleDay| day.failing as f64 * 100.0 / day.evaluated as f64;
    match ((share(present) - share(then)) * 10.0).round() / 10.0 {
        0.0 => ", as many as 30 days ago".to_owned(),
        p if p > 0.0 => format!(", {p:.1}\u{a0}points more than 30 days ago"),
        p => format!(", {:.1}\u{a0}points fewer than 30 days ago", -p),
    }
}

/// Surfaces of the rule's kind of target that stand outside evaluated: not looked at, or of a revision it is not about.
fn unknown(rule: Option<&Rule>, present: Option<&RuleDay>, kinds: &[KindDay]) -> Option<i64> {
    let kind = match rule?.family() {
        "a2a" => Some(TargetKind::A2aAgent),
        "registry" => Some(TargetKind::McpServer),
        _ => None,
    };
    let population: i64 =
        kinds.iter().filter(|day| kind.is_none_or(|kind| day.kind == kind)).map(|day| day.counts.targets).sum();
    Some((population - present.map_or(0, |day| day.evaluated)).max(0))
}

fn rule_text(rule: &'static Rule) -> RuleText {
    RuleText {
        title: rule.title(),
        why: rule.why(),
        class: class(rule),
        severity: rule.severity,
        severity_overrides: rule.severity_overrides.to_vec(),
        impact: rule.impact,
        impact_evidence: rule.impact_evidence,
        clients: rule.clients,
        runs: clients::rows_of(rule.id).collect(),
        is_security: rule.security,
        basis: rule.basis,
        evidence: rule.evidence,
        versions: rule.versions,
        place: rule.place,
        fix: rule.fix,
        spec: rule.spec,
        seeds: rule.seeds,
        version: rule.version,
        examples: rule
            .examples
            .iter()
            .map(|example| ExampleText {
                fires: example.fires,
                text: laid_out(example.text),
                is_whole: example.whole,
                base: example.base,
                given: laid_out(example.context),
            })
            .collect(),
    }
}

/// The documents that a rule names, each with its address where one is known.
fn sources(spec: &'static str) -> Vec<Source> {
    spec.split(';')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| Source { name, url: url_of(name) })
        .collect()
}

fn url_of(name: &str) -> Option<String> {
    let first = |text: &str| -> String {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].trim_end_matches('.').to_owned()
    };
    if let Some(rest) = name.strip_prefix("RFC ") {
        let section = rest.split_once('§').map(|(_, rest)| first(rest)).filter(|section| !section.is_empty());
        let section = section.map_or_else(String::new, |section| format!("#section-{section}"));
        return Some(format!("https://www.rfc-editor.org/rfc/rfc{}{section}", first(rest)));
    }
    if let Some(rest) = name.strip_prefix("OpenAPI ") {
        let version = first(rest);
        return (version.split('.').count() == 3).then(|| format!("https://spec.openapis.org/oas/v{version}.html"));
    }
    if let Some(rest) = name.strip_prefix("A2A ") {
        return match first(rest).as_str() {
            "1.0" => Some("https://a2a-protocol.org/v1.0.0/specification/".to_owned()),
            "0.3" => Some("https://a2a-protocol.org/v0.3.0/specification/".to_owned()),
            _ => None,
        };
    }
    let revision =
        name.get(..10).filter(|date| plumbline_rules::text::Instant::parse(&format!("{date}T00:00:00Z")).is_some())?;
    Some(format!("https://modelcontextprotocol.io/specification/{revision}"))
}

/// JSON in lines a person can read; anything else as it is.
fn laid_out(example: &str) -> String {
    if example.len() <= 72 {
        return example.to_owned();
    }
    serde_json::from_str::<serde_json::Value>(example)
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| example.to_owned())
}

fn chart_of(days: &[RuleDay], today: i64, is_fact: bool) -> Option<ChartOfRule> {
    let last = days.last().filter(|day| day.evaluated > 0)?;
    let days = &days[days.iter().position(|day| day.evaluated > 0)?..];
    let first = days.first()?;
    let length = usize::try_from(last.day - first.day + 1).ok()?;
    let mut values = vec![None; length];
    for day in days.iter().filter(|day| day.evaluated > 0) {
        if let Some(place) = usize::try_from(day.day - first.day).ok().and_then(|n| values.get_mut(n)) {
            *place = Some(day.failing * 10_000 / day.evaluated);
        }
    }
    let name = if is_fact { "Have it" } else { "Fail" };
    let period = format!("{} to {}", text::date(first.day * 86_400), text::date(last.day * 86_400));
    let shares = [(first, "at the beginning"), (last, "at the end")]
        .map(|(day, when)| format!("{} {when}", text::share(day.failing, day.evaluated)));
    let frame = chart::Frame {
        id: "share",
        title: format!("Share of judged surfaces, {period}"),
        description: format!("One line: {}.", shares.join(", ")),
        first_day: first.day,
        is_last_day_open: last.day == today,
    };
    let series = [Series { name, class: "1", values }];
    let step = if days.len() > 14 { 7 } else { 1 };
    Some(ChartOfRule {
        plot: chart::shares(frame, &series),
        caption: caption(days, first, last),
        rows: days.iter().rev().step_by(step).cloned().collect(),
    })
}

fn caption(days: &[RuleDay], first: &RuleDay, last: &RuleDay) -> String {
    let now = text::share(last.failing, last.evaluated);
    if first.day == last.day {
        return format!("This is the first day: {now} of what could be judged.");
    }
    let said = |day: &RuleDay| text::share(day.failing, day.evaluated);
    if days.iter().filter(|day| day.evaluated > 0).all(|day| said(day) == now) {
        return format!("It was {now} throughout, since {}.", text::day(first.day));
    }
    format!("The share went from {} on {} to {now}.", text::share(first.failing, first.evaluated), text::day(first.day))
}

impl RulePage {
    fn name(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(_, name)| name)
    }

    fn family(&self) -> &str {
        self.id.split_once('/').map_or("", |(family, _)| family)
    }

    fn family_words(&self) -> &str {
        family_words(self.family())
    }

    fn title(&self) -> String {
        match (&self.rule, &self.record) {
            (Some(rule), _) => rule.title.clone(),
            (None, Some(record)) => record.title.clone(),
            (None, None) => String::new(),
        }
    }

    fn share(&self) -> String {
        self.days.last().filter(|day| day.evaluated > 0).map_or_else(
            || "not judged yet".to_owned(),
            |day| {
                format!("{} {}", text::share(day.failing, day.evaluated), if self.is_fact { "have it" } else { "fail" })
            },
        )
    }

    fn last_place(&self) -> i64 {
        self.first_place + self.failing.len() as i64 - 1
    }
}

impl RuleText {
    fn sources(&self) -> Vec<Source> {
        sources(self.spec)
    }

    fn versions(&self) -> String {
        if self.versions == ["all"] { "every revision".to_owned() } else { self.versions.join(", ") }
    }

    fn basis_words(&self) -> &'static str {
        match self.basis {
            Basis::Spec => "by the specification",
            Basis::Policy => "by our policy or a registry operator's",
            Basis::Hint => "by experience",
        }
    }

    fn evidence_words(&self) -> &'static str {
        match self.evidence {
            Evidence::Document => "the bytes alone prove it, twice in a row",
            Evidence::Live => "it takes three looks at the endpoint to confirm",
            Evidence::Timing => "it takes three of five looks to confirm, because order and speed vary",
            Evidence::Time => "the clock proves it",
            Evidence::History => "two stored observations prove it",
        }
    }

    fn fires(&self) -> Vec<&ExampleText> {
        self.examples.iter().filter(|example| !example.fires.is_empty()).collect()
    }

    fn silent(&self) -> Vec<&ExampleText> {
        self.examples.iter().filter(|example| example.fires.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64, evaluated: i64, failing: i64) -> RuleDay {
        RuleDay { day, evaluated, failing, waived: 0, opened: 0, resolved: 0 }
    }

    #[test]
    fn the_answer_is_fired_of_judged_and_how_that_moved() {
        let days = [day(1, 1_000, 39), day(31, 2_871, 96)];
        assert_eq!(
            answer(None, &days, false),
            "96 of 2,871 judged surfaces (3.3\u{a0}%) fail this, 0.6\u{a0}points fewer than 30 days ago."
        );
        let waived = [RuleDay { waived: 3, ..day(1, 200, 24) }];
        assert_eq!(
            answer(None, &waived, false),
            "24 of 200 judged surfaces (12\u{a0}%) fail this, of which 3 are accepted."
        );
        assert_eq!(answer(None, &[day(1, 5, 0)], false), "None of the 5 surfaces that could be judged fails this.");
    }

    #[test]
    fn a_chart_begins_where_something_was_judged_and_a_level_line_is_called_level() {
        let days = [day(20_700, 0, 0), day(20_701, 0, 0), day(20_702, 10, 0), day(20_703, 10, 0)];
        let chart = chart_of(&days, 20_703, false).unwrap();
        assert_eq!(chart.caption, "It was 0\u{a0}% throughout, since 6\u{a0}Sep.");
        assert_eq!((chart.plot.first_day, chart.rows.len()), (20_702, 2));
        let moved = [day(20_700, 0, 0), day(20_701, 10, 1), day(20_702, 10, 2)];
        assert_eq!(
            chart_of(&moved, 20_702, false).unwrap().caption,
            "The share went from 10\u{a0}% on 5\u{a0}Sep to 20\u{a0}%."
        );
    }

    #[test]
    fn what_was_never_judged_is_not_said_to_pass() {
        let rule = catalogue::rules().next();
        assert_eq!(answer(rule, &[], false), "No surface has been judged by this rule yet.");
    }

    #[test]
    fn a_place_in_the_list_is_read_back_or_refused() {
        let asked = |after: &str| Asked { after: Some(after.to_owned()) };
        assert_eq!(position(&asked("51~7~3")).unwrap(), ((7, 3), 51));
        assert!(position(&asked("51~x~3")).is_err());
    }

    #[test]
    fn a_rule_leads_to_the_documents_that_ask_for_it() {
        let urls: Vec<_> = sources(
            "RFC 7518 §3.3, §3.4; A2A 1.0 §8.4.1; OpenAPI 3.1.1 Info Object; 2025-11-25 transports, stdio; hint",
        )
        .into_iter()
        .map(|source| source.url.unwrap_or_default())
        .collect();
        let expected = [
            "https://www.rfc-editor.org/rfc/rfc7518#section-3.3",
            "https://a2a-protocol.org/v1.0.0/specification/",
            "https://spec.openapis.org/oas/v3.1.1.html",
            "https://modelcontextprotocol.io/specification/2025-11-25",
            "",
        ];
        assert_eq!(urls, expected);
        assert_eq!(sources("é"), [Source { name: "é", url: None }]);
        assert!(sources("").is_empty());
    }
}
