//! `/regressions`: what broke that worked before, by cause; bars per day above.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use askama::Template;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_store::query::{self, Field, QueryError};
use plumbline_store::taken_on::TakenOn;
use plumbline_store::views::{FeedRow, RegressedDay};
use plumbline_store::words::{Cause, EventKind};
use serde::{Deserialize, Serialize};

use super::filled;
use crate::WebState;
use crate::acting;
use crate::cache::Cache;
use crate::chart::{self, Plot, Series};
use crate::error::Error;
use crate::filters;
use crate::operator::Acted;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::week::Week;

/// Days of the bars.
const DAYS: i64 = 30;
/// Regressions on one page.
const PAGE: usize = 100;
/// Looked through for one page when something is asked for.
const LOOKED_AT: i64 = 1_000;

/// What is asked for, and where the list goes on.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
    before: Option<String>,
}

/// What broke.
#[derive(Template, Serialize)]
#[template(path = "regressions.html")]
struct Regressions {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// What is asked for, in the language of lists.
    query: String,
    /// Thirty days by cause, days without any left out.
    days: Vec<RegressedDay>,
    /// The regressions of this page, newest first.
    regressions: Vec<FeedRow>,
    /// Those of them that somebody has taken on, by the number of the finding.
    taken: HashMap<i64, TakenOn>,
    /// Of this page those that are open and that nobody has taken on.
    untaken: i64,
    /// Address of older ones.
    next: Option<String>,
    #[serde(skip)]
    chart: Option<Chart>,
    #[serde(skip)]
    groups: Vec<Group>,
    #[serde(skip)]
    week: Week,
}

struct Chart {
    plot: Plot,
    caption: String,
    rows: Vec<RegressedDay>,
}

/// Regressions of one cause.
struct Group {
    title: String,
    says: String,
    url: Option<String>,
    rows: Vec<FeedRow>,
}

/// `GET /regressions`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let query = query::parse(asked.q.as_deref().unwrap_or_default())?;
    refuse_unknown(&query)?;
    let before = super::number("before", asked.before.as_deref())?.unwrap_or(i64::MAX);
    let today = visit.now / 86_400;
    let limit = if query.is_empty() { PAGE as i64 + 1 } else { LOOKED_AT };
    let days = days(&state, &query, today).await?;
    let found = state.store.finding_feed(EventKind::FindingRegressed, 0, before, limit).await?;
    let goes_on = found.len() as i64 == limit;
    let last_looked_at = found.last().map(|row| row.event);
    let mut rows: Vec<FeedRow> = found.into_iter().filter(|row| matches(row, &query)).collect();
    let is_cut = rows.len() > PAGE;
    rows.truncate(PAGE);
    let last = if is_cut { rows.last().map(|row| row.event) } else { last_looked_at.filter(|_| goes_on) };
    let newest = state.store.finding_feed(EventKind::FindingRegressed, 0, i64::MAX, 1).await?;
    let taken = taken(&state, &rows, visit.now).await?;
    let page = Regressions {
        frame: visit.framed(Place::Regressions),
        as_of_s: visit.now,
        answer: match (newest.first(), query.is_empty()) {
            (None, _) if !is_judged(&state, today).await? => "Nothing has been judged yet.".to_owned(),
            (_, true) => answer(&days.counted, newest.first(), today, visit.now),
            (_, false) => answer_of(&days, today),
        },
        chart: chart_of(&days.counted, today).filter(|_| !days.is_cut),
        next: last.map(|last| format!("/regressions?q={}&before={last}", text::query_escaped(&query.to_string()))),
        groups: groups(&rows, visit.now),
        week: Week::of_day(today),
        query: query.to_string(),
        untaken: untaken(&rows, &taken),
        taken,
        regressions: rows,
        days: days.counted,
    };
    visit.answer_rows(&page, &page.regressions, Cache::Fresh)
}

/// Days with regressions, and whether older ones of the period were not looked at.
struct Days {
    counted: Vec<RegressedDay>,
    is_cut: bool,
}

/// What regressed in thirty days, by day; of a query as far as its newest events reach.
async fn days(state: &WebState, query: &query::Query, today: i64) -> Result<Days, Error> {
    let from = state.store.first_event_at((today - DAYS + 1) * 86_400).await?;
    if query.is_empty() {
        return Ok(Days { counted: state.store.regressed_days(from).await?, is_cut: false });
    }
    let found = state.store.finding_feed(EventKind::FindingRegressed, from, i64::MAX, LOOKED_AT).await?;
    let is_cut = found.len() as i64 == LOOKED_AT;
    let rows: Vec<FeedRow> = found.into_iter().filter(|row| matches(row, query)).collect();
    Ok(Days { counted: by_day(&rows), is_cut })
}

/// Rows counted by day and cause, the oldest day first.
fn by_day(rows: &[FeedRow]) -> Vec<RegressedDay> {
    let mut days: BTreeMap<i64, RegressedDay> = BTreeMap::new();
    for row in rows {
        let number = row.at_s / 86_400;
        let day = days.entry(number).or_insert_with(|| RegressedDay { day: number, ..RegressedDay::default() });
        match (row.deploy, row.cause) {
            (Some(_), _) => day.with_deploy += 1,
            (None, Some(Cause::Document)) => day.document += 1,
            (None, _) => day.other += 1,
        }
    }
    days.into_values().collect()
}

/// Whether anything has a verdict.
async fn is_judged(state: &WebState, today: i64) -> Result<bool, Error> {
    let present = state.store.cohort_days(today - 3).await?.pop().unwrap_or_default();
    Ok(present.targets > present.not_evaluated)
}

/// Fields that can be asked of a regression.
const FIELDS: [Field; 9] = [
    Field::Kind,
    Field::Headline,
    Field::Rule,
    Field::Severity,
    Field::Impact,
    Field::Security,
    Field::Owner,
    Field::Host,
    Field::Changed,
];

pub(super) fn refuse_unknown(query: &query::Query) -> Result<(), Error> {
    let Some(term) = query.terms.iter().find(|term| !FIELDS.contains(&term.field)) else { return Ok(()) };
    let text = query.to_string();
    let known: Vec<&str> = FIELDS.iter().map(|field| field.name()).collect();
    let at = text.find(&term.text()).unwrap_or(0);
    let says = format!("A regression cannot be asked for “{}:”. There are {}.", term.field.name(), known.join(", "));
    Err(Error::BadWord(QueryError { length: term.text().len(), query: text, at, says }))
}

/// Whether a row is what is asked for.
pub(super) fn matches(row: &FeedRow, query: &query::Query) -> bool {
    let holds = |field: Field, value: &str| match field {
        Field::Kind => row.target_kind.as_str() == value,
        Field::Headline => row.headline.as_str() == value,
        Field::Rule => {
            value.strip_suffix("/*").map_or(row.rule == value, |family| row.rule.starts_with(&format!("{family}/")))
        }
        Field::Severity => row.severity.as_str() == value,
        Field::Impact => row.impact.is_some_and(|impact| impact.as_str() == value),
        Field::Security => row.is_security == (value == "yes"),
        Field::Owner => row.owner.as_deref() == Some(value),
        Field::Host => row.host.as_deref().is_some_and(|host| host == value || host.ends_with(&format!(".{value}"))),
        _ => true,
    };
    let name = row.name.to_lowercase();
    query.terms.iter().all(|term| holds(term.field, &term.value) != term.is_not)
        && query.words.iter().all(|word| name.contains(&word.to_lowercase()) || row.rule.contains(word.as_str()))
}

/// Who has taken on what is open; an acknowledgement of an earlier time, or one that ran out, is none.
async fn taken(state: &WebState, rows: &[FeedRow], now_s: i64) -> Result<HashMap<i64, TakenOn>, Error> {
    let open: Vec<&FeedRow> = rows.iter().filter(|row| row.state.is_open()).collect();
    let ids: Vec<i64> = open.iter().map(|row| row.finding).collect();
    let mut taken = state.store.taken_on(&ids).await?;
    taken.retain(|finding, one| {
        let began_s = open.iter().filter(|row| row.finding == *finding).filter_map(|row| row.from_s).max();
        one.until_s.is_none_or(|until_s| now_s < until_s) && began_s.is_none_or(|began_s| one.at_s >= began_s)
    });
    Ok(taken)
}

fn untaken(rows: &[FeedRow], taken: &HashMap<i64, TakenOn>) -> i64 {
    let open: BTreeSet<i64> = rows.iter().filter(|row| row.state.is_open()).map(|row| row.finding).collect();
    open.iter().filter(|finding| !taken.contains_key(finding)).count() as i64
}

/// `POST /regressions/acknowledge`: what was selected is taken on, in one go.
pub async fn acknowledge(
    visit: Visit,
    State(state): State<WebState>,
    Acted { by, form }: Acted<Vec<(String, String)>>,
) -> Result<Response, Error> {
    let field = |name: &str| filled(form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()));
    let ids = form.iter().filter(|(name, _)| name == "finding").map(|(_, value)| value.parse::<i64>());
    let ids: Result<BTreeSet<i64>, _> = ids.collect();
    let ids = ids.map_err(|_| Error::BadQuery { field: "finding", reason: "is no number of a finding".to_owned() })?;
    if ids.is_empty() || ids.len() > PAGE {
        return Err(Error::BadForm(format!("Select the regressions that you take on, {PAGE} at most.")));
    }
    let note = field("note").ok_or_else(|| super::alerts::empty("note"))?;
    let hours = super::number("hours", field("hours"))?;
    if hours.is_some_and(|hours| !(1..=8_760).contains(&hours)) {
        return Err(Error::BadQuery { field: "hours", reason: "is no number from 1 to 8760".to_owned() });
    }
    let asked = acting::TakenOn { note, who: field("by"), hours };
    acting::take_on(&state, &by, &ids.into_iter().collect::<Vec<_>>(), asked, visit.now).await?;
    let back = field("q").map_or_else(String::new, |q| format!("?q={}", text::query_escaped(q)));
    Ok(Redirect::to(&format!("/regressions{back}")).into_response())
}

/// What is to be said of those that were asked for.
fn answer_of(days: &Days, today: i64) -> String {
    let (of_month, _) = sum(&days.counted, today, DAYS);
    let (of_week, with_deploy) = sum(&days.counted, today, 7);
    let least = if days.is_cut { "at least " } else { "" };
    match of_month {
        0 if days.is_cut => "Among the newest regressions nothing like that is.".to_owned(),
        0 => format!("Nothing like that regressed in {DAYS} days."),
        n => format!(
            "{} like that regressed in {DAYS} days{}.",
            text::opened(&format!("{least}{}", text::counted(n, "finding", "findings"))),
            in_a_week(of_week, with_deploy)
        ),
    }
}

/// `, 4 in seven days, 3 of them with a deploy`.
fn in_a_week(of_week: i64, with_deploy: i64) -> String {
    let known = match (of_week, with_deploy) {
        (0, _) => return ", none in seven days".to_owned(),
        (1, 0) => "without a deploy that we saw",
        (1, _) => "with a deploy",
        (_, 0) => "none of them with a deploy that we saw",
        (all, with) if all == with => "all of them with a deploy",
        (_, n) => {
            return format!(", {} in seven days, {} of them with a deploy", text::number(of_week), text::number(n));
        }
    };
    let of_week = if of_week == 1 { "one".to_owned() } else { text::number(of_week) };
    format!(", {of_week} in seven days, {known}")
}

/// All and those with a deploy, of the last so many days.
fn sum(days: &[RegressedDay], today: i64, length: i64) -> (i64, i64) {
    let within = days.iter().filter(|day| day.day > today - length);
    within.fold((0, 0), |(all, known), day| (all + total(day), known + day.with_deploy))
}

fn answer(days: &[RegressedDay], newest: Option<&FeedRow>, today: i64, now: i64) -> String {
    let ((of_today, _), (of_week, with_deploy)) = (sum(days, today, 1), sum(days, today, 7));
    if days.is_empty() {
        return newest.map_or_else(
            || "Nothing that worked before has broken.".to_owned(),
            |row| format!("No regressions in {DAYS} days; the last was on {}.", text::date(row.at_s)),
        );
    }
    let today_said = match of_today {
        0 => "Nothing has regressed today".to_owned(),
        n => format!("{} regressed today", text::counted(n, "finding has", "findings have")),
    };
    let last = newest.map_or_else(String::new, |row| format!(" The last was {}.", text::ago(row.at_s, now)));
    format!("{today_said}{}.{last}", in_a_week(of_week, with_deploy))
}

fn total(day: &RegressedDay) -> i64 {
    day.with_deploy + day.document + day.other
}

/// When most happened: `most, 7, on 3 Nov`, or that several days tie.
pub(super) fn most_on(days: &[(i64, i64)]) -> Option<String> {
    let most = days.iter().map(|(_, n)| *n).max().filter(|most| *most > 0)?;
    let on: Vec<i64> = days.iter().filter(|(_, n)| *n == most).map(|(day, _)| *day).collect();
    Some(match on.as_slice() {
        [day] => format!("most, {}, on {}", text::number(most), text::day(*day)),
        [a, b] => format!("most, {} each, on {} and {}", text::number(most), text::day(*a), text::day(*b)),
        _ => format!("at most {} on one day", text::number(most)),
    })
}

fn chart_of(days: &[RegressedDay], today: i64) -> Option<Chart> {
    let first = today - DAYS + 1;
    if days.is_empty() {
        return None;
    }
    let of = |value: fn(&RegressedDay) -> i64| {
        (first..=today).map(|day| Some(days.iter().find(|one| one.day == day).map_or(0, value))).collect()
    };
    let series = [
        Series { name: "Deploy", class: "1", values: of(|day| day.with_deploy) },
        Series { name: "Document", class: "2", values: of(|day| day.document) },
        Series { name: "Other", class: "unjudged", values: of(|day| day.other) },
    ];
    let (all, known) = days.iter().fold((0, 0), |(all, known), day| (all + total(day), known + day.with_deploy));
    let most = most_on(&days.iter().map(|day| (day.day, total(day))).collect::<Vec<_>>())?;
    let caption = match known {
        0 => format!(
            "{} in {DAYS} days; {most}. No deploy was seen with any.",
            text::counted(all, "regression", "regressions"),
        ),
        _ => format!(
            "{} of {} in {DAYS} days came with a deploy; {most}.",
            text::number(known),
            text::counted(all, "regression", "regressions"),
        ),
    };
    let frame = chart::Frame {
        id: "broke",
        title: format!("Regressions per day, {DAYS} days, by what is known of the cause"),
        description: format!("Stacked bars. {} in all, {} with a deploy.", text::number(all), text::number(known)),
        first_day: first,
        is_last_day_open: true,
    };
    let rows = days.iter().rev().copied().collect();
    Some(Chart { plot: chart::bars(frame, &series), caption, rows })
}

/// Rows of one deploy together, else those of one day; the newest group first.
fn groups(rows: &[FeedRow], now: i64) -> Vec<Group> {
    let key = |row: &FeedRow| row.deploy.map_or((1, row.at_s / 86_400), |deploy| (0, deploy));
    let mut keys = Vec::new();
    for row in rows {
        if !keys.contains(&key(row)) {
            keys.push(key(row));
        }
    }
    keys.iter()
        .map(|one| {
            let of: Vec<FeedRow> = rows.iter().filter(|row| key(row) == *one).cloned().collect();
            group(of, now)
        })
        .collect()
}

fn group(rows: Vec<FeedRow>, now: i64) -> Group {
    let first = &rows[0];
    let mut targets: Vec<i64> = rows.iter().map(|row| row.target_id).collect();
    targets.sort_unstable();
    targets.dedup();
    let findings = text::opened(&text::counted(rows.len() as i64, "finding", "findings"));
    if let Some(deploy) = first.deploy {
        let since = text::brief(first.from_s.unwrap_or(first.at_s), now);
        let name = text::visible(&first.name, 80);
        let sure = first.confidence.as_deref().unwrap_or("possible");
        let others = targets.len() as i64 - 1;
        let who = if others == 0 { name } else { format!("{name} and {} more", text::number(others)) };
        return Group {
            title: format!("Deploy at {who}"),
            says: format!("Since {since} UTC. {findings} opened with it; that it was this deploy is {sure}."),
            url: Some(format!("/deploys/{deploy}")),
            rows,
        };
    }
    let documents = rows.iter().filter(|row| row.cause == Some(Cause::Document)).count() as i64;
    let why = match (documents, rows.len() as i64 - documents) {
        (_, 0) => "Another document came each time, and no deploy was seen.".to_owned(),
        (0, _) => "The document stayed; behaviour moved, or what moved cannot be proved.".to_owned(),
        (n, _) => format!("Another document came with {} of them; no deploy was seen.", text::number(n)),
    };
    Group {
        title: format!("{}, no deploy known", text::date(first.at_s)),
        says: format!("{findings} at {}. {why}", text::counted(targets.len() as i64, "target", "targets")),
        url: None,
        rows,
    }
}

impl Regressions {
    fn taken_on(&self, row: &FeedRow) -> Option<&TakenOn> {
        self.taken.get(&row.finding).filter(|_| row.state.is_open())
    }

    /// Whether any of them is open, so that it can be selected.
    fn has_open(&self) -> bool {
        self.regressions.iter().any(|row| row.state.is_open())
    }

    fn is_asked(&self) -> bool {
        filled(Some(&self.query)).is_some()
    }

    fn offers(&self) -> Vec<String> {
        let before = if self.query.is_empty() { String::new() } else { format!("{} ", self.query) };
        FIELDS
            .into_iter()
            .flat_map(|field| {
                let values = field.values();
                let values = if values.is_empty() { vec![""] } else { values };
                values.into_iter().map(|value| format!("{before}{}:{value}", field.name())).collect::<Vec<_>>()
            })
            .collect()
    }
}
