//! `/targets/{id}/timeline`: what happened when. Lanes of reach, documents and findings on one axis, and the events below.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_store::views::{DocumentSpan, EventRow, FindingSpan, ReachSpan, TargetDetail};
use plumbline_store::words::{EventKind, ReachState};
use serde::{Deserialize, Serialize};

use super::filled;
use super::tabs::{self, Tab, Tabs};
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::lanes::{Axis, Lane, Lasted, Window};
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Days shown when none are asked for.
const DAYS: i64 = 90;
/// Spans of one kind that are looked at; a target that changes more often than this is drawn from its newest.
const SPANS: i64 = 500;
/// Events on one page.
const EVENTS: usize = 100;
/// Findings that get a lane of their own.
const LANES: usize = 12;

/// The period and the events that are asked for.
#[derive(Debug, Default, Deserialize)]
pub struct Query_ {
    days: Option<String>,
    what: Option<String>,
    before: Option<String>,
}

/// One target over time.
#[derive(Template, Serialize)]
#[template(path = "timeline.html")]
struct Timeline {
    #[serde(skip)]
    frame: Frame,
    #[serde(skip)]
    tabs: Tabs,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The target.
    target: TargetDetail,
    /// How it could be reached, newest first.
    reach: Vec<ReachSpan>,
    /// What it served, newest first.
    documents: Vec<DocumentSpan>,
    /// When findings were open, newest first.
    findings: Vec<FindingSpan>,
    /// What happened, newest first.
    events: Vec<EventRow>,
    /// Address of older events.
    next: Option<String>,
    #[serde(skip)]
    lanes: Vec<Row>,
    #[serde(skip)]
    axis: Axis,
    #[serde(skip)]
    period: String,
    #[serde(skip)]
    choices: Choices,
}

/// One lane with its name.
struct Row {
    name: String,
    below: String,
    url: Option<String>,
    lane: Lane,
    said: String,
}

/// What stands in the form.
struct Choices {
    days: i64,
    what: Option<Kind>,
}

/// The kinds of event a reader can choose between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Findings,
    Reach,
    Documents,
    Verdict,
    Deploys,
}

impl Kind {
    const ALL: [(Kind, &'static str, &'static str); 5] = [
        (Kind::Findings, "findings", "findings"),
        (Kind::Reach, "reach", "reach"),
        (Kind::Documents, "documents", "documents"),
        (Kind::Verdict, "verdict", "verdict"),
        (Kind::Deploys, "deploys", "deploys"),
    ];

    fn holds(self, event: EventKind) -> bool {
        let prefix = match self {
            Kind::Findings => "finding.",
            Kind::Documents => "document.",
            Kind::Deploys => "deploy.",
            Kind::Verdict => "target.headline_changed",
            Kind::Reach => {
                return matches!(
                    event,
                    EventKind::TargetDown
                        | EventKind::TargetRecovered
                        | EventKind::TargetGone
                        | EventKind::TargetRetired
                        | EventKind::TargetReturned
                );
            }
        };
        event.as_str().starts_with(prefix)
    }
}

/// `GET /targets/{id}/timeline`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    tabs::Asked(target): tabs::Asked,
    Query(asked): Query<Query_>,
) -> Result<Response, Error> {
    let choices = asked.choices()?;
    let store = &state.store;
    let reach = store.target_reach_spans(target.id, SPANS).await?;
    let documents = store.target_document_spans(target.id, SPANS).await?;
    let findings = store.target_finding_spans(target.id, SPANS).await?;
    let before = super::number("before", asked.before.as_deref())?.unwrap_or(i64::MAX);
    let (events, next) = events(&state, &target, &choices, before).await?;
    let window = Window::up_to(visit.now, choices.days, target.first_seen_s);
    let page = Timeline {
        frame: visit.framed(Place::Targets),
        tabs: Tabs::of(target.id, Tab::Timeline),
        as_of_s: visit.now,
        answer: answer(&target, &store.target_events(target.id, 20).await?, &findings, visit.now),
        lanes: lanes(&window, &reach, &documents, &findings),
        axis: window.axis(),
        period: window.period(),
        target,
        reach,
        documents,
        findings,
        events,
        next,
        choices,
    };
    visit.answer(&page, Cache::Fresh)
}

/// The events of the chosen kind before a number, and where older ones are. A kind that is rare is looked for in a bounded number
/// of events; the link goes on from there.
async fn events(
    state: &WebState,
    target: &TargetDetail,
    choices: &Choices,
    before: i64,
) -> Result<(Vec<EventRow>, Option<String>), Error> {
    const LOOKED_AT: i64 = 1_000;
    let limit = if choices.what.is_some() { LOOKED_AT } else { EVENTS as i64 + 1 };
    let all = state.store.target_events_before(target.id, before, limit).await?;
    let is_whole = (all.len() as i64) < limit;
    let last_seen = all.last().map(|event| event.id);
    let mut events: Vec<EventRow> =
        all.into_iter().filter(|event| choices.what.is_none_or(|kind| kind.holds(event.kind))).collect();
    let goes_on = events.len() > EVENTS || !is_whole;
    let is_cut = events.len() > EVENTS;
    events.truncate(EVENTS);
    let last = if is_cut { events.last().map(|event| event.id) } else { last_seen };
    let next = last.filter(|_| goes_on).map(|last| {
        let what = choices.what.map_or_else(String::new, |kind| format!("&what={}", word_of(kind)));
        format!("/targets/{}/timeline?days={}{what}&before={last}#events", target.id, choices.days)
    });
    Ok((events, next))
}

fn word_of(kind: Kind) -> &'static str {
    Kind::ALL.into_iter().find(|(one, ..)| *one == kind).map_or("", |(_, word, _)| word)
}

impl Query_ {
    fn choices(&self) -> Result<Choices, Error> {
        let days = super::number("days", self.days.as_deref())?.unwrap_or(DAYS);
        if !(1..=3_660).contains(&days) {
            return Err(Error::BadQuery { field: "days", reason: "is not between 1 and 3660".to_owned() });
        }
        let what = filled(self.what.as_deref());
        let kind =
            what.and_then(|what| Kind::ALL.into_iter().find(|(_, word, _)| *word == what)).map(|(kind, ..)| kind);
        if let (Some(what), None) = (what, kind) {
            let names = Kind::ALL.map(|(_, word, _)| word).join(", ");
            return Err(Error::BadQuery { field: "what", reason: format!("is none of {names}: “{what}”") });
        }
        Ok(Choices { days, what: kind })
    }
}

fn answer(target: &TargetDetail, events: &[EventRow], findings: &[FindingSpan], now: i64) -> String {
    let newest = events.iter().find(|event| event.kind != EventKind::TargetAdded);
    let Some(newest) = newest else {
        return format!("Nothing has changed since it was first seen on {}.", text::date(target.first_seen_s));
    };
    let cause = newest
        .rule
        .as_ref()
        .and_then(|rule| findings.iter().find(|span| span.rule == *rule && span.to_s.is_none()))
        .map_or("", |span| words::cause_clause(span.cause));
    format!("Newest change, {}: {}{cause}.", text::ago(newest.at_s, now), words::event(newest))
}

fn lanes(window: &Window, reach: &[ReachSpan], documents: &[DocumentSpan], findings: &[FindingSpan]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut surfaces: Vec<(i64, String)> =
        reach.iter().map(|span| (span.surface_id, words::surface_kind(span.kind).to_owned())).collect();
    surfaces.extend(documents.iter().map(|span| (span.surface_id, words::surface_kind(span.kind).to_owned())));
    surfaces.sort();
    surfaces.dedup();
    for (surface, name) in &surfaces {
        let of: Vec<&ReachSpan> = reach.iter().filter(|span| span.surface_id == *surface).collect();
        if !of.is_empty() {
            rows.push(reach_row(window, name, &of));
        }
    }
    for (surface, name) in &surfaces {
        let of: Vec<&DocumentSpan> = documents.iter().filter(|span| span.surface_id == *surface).collect();
        if !of.is_empty() {
            rows.push(document_row(window, name, &of));
        }
    }
    let mut rules: Vec<(i64, &str)> = Vec::new();
    for span in findings.iter().filter(|span| span.to_s.is_none_or(|to| to >= window.from_s)) {
        if !rules.iter().any(|(id, _)| *id == span.finding_id) {
            rules.push((span.finding_id, &span.rule));
        }
    }
    rules.truncate(LANES);
    rows.extend(rules.into_iter().map(|(id, rule)| {
        let of: Vec<&FindingSpan> = findings.iter().filter(|span| span.finding_id == id).collect();
        finding_row(window, id, rule, &of)
    }));
    rows
}

fn reach_row(window: &Window, name: &str, spans: &[&ReachSpan]) -> Row {
    let lasted: Vec<Lasted> = spans
        .iter()
        .map(|span| Lasted { class: reach_class(span.state), from_s: span.from_s, to_s: span.to_s })
        .collect();
    let bad = spans.iter().filter(|span| matches!(span.state, ReachState::Down | ReachState::Absent)).count() as i64;
    let now = spans.first().map_or("not tried", |span| words::reach(span.state));
    let said = format!("{now} now; {} in all", text::counted(bad, "outage", "outages"));
    Row { name: "Reach".to_owned(), below: name.to_owned(), url: None, lane: window.lane(&lasted, said.clone()), said }
}

fn reach_class(state: ReachState) -> &'static str {
    match state {
        ReachState::Up => "l-up",
        ReachState::Gated | ReachState::Throttled => "l-gated",
        ReachState::Suspect | ReachState::Flapping => "l-part",
        ReachState::Down | ReachState::Absent => "l-down",
        ReachState::Unknown | ReachState::Retired => "l-none",
    }
}

fn document_row(window: &Window, name: &str, spans: &[&DocumentSpan]) -> Row {
    let lasted: Vec<Lasted> = spans
        .iter()
        .enumerate()
        .map(|(n, span)| Lasted {
            // Two shades in turn, so that neighbours can be told apart.
            class: if (spans.len() - n).is_multiple_of(2) { "l-doc" } else { "l-doc other" },
            from_s: span.from_s,
            to_s: span.to_s,
        })
        .collect();
    let said = text::counted(spans.len() as i64, "version", "versions");
    Row {
        name: "Documents".to_owned(),
        below: name.to_owned(),
        url: None,
        lane: window.lane(&lasted, said.clone()),
        said,
    }
}

fn finding_row(window: &Window, id: i64, rule: &str, spans: &[&FindingSpan]) -> Row {
    let lasted: Vec<Lasted> =
        spans.iter().map(|span| Lasted { class: "l-open", from_s: span.from_s, to_s: span.to_s }).collect();
    let is_open = spans.iter().any(|span| span.to_s.is_none());
    let times = text::counted(spans.len() as i64, "time", "times");
    let said = if is_open { format!("open now, {times} in all") } else { format!("over, open {times}") };
    Row {
        name: rule.to_owned(),
        below: String::new(),
        url: Some(format!("/findings/{id}")),
        lane: window.lane(&lasted, said.clone()),
        said,
    }
}

impl Timeline {
    fn event_words(&self, event: &EventRow) -> String {
        words::event(event)
    }

    fn periods(&self) -> [(i64, bool); 4] {
        [14, 30, 90, 365].map(|days| (days, days == self.choices.days))
    }

    fn kinds(&self) -> [(&'static str, &'static str, bool); 5] {
        Kind::ALL.map(|(kind, word, said)| (word, said, self.choices.what == Some(kind)))
    }

    fn event_url(&self, event: &EventRow) -> Option<String> {
        match event.kind {
            EventKind::DocumentChanged => Some(format!("/targets/{}/documents", self.target.id)),
            EventKind::FindingOpened | EventKind::FindingRegressed | EventKind::FindingResolved => {
                event.rule.as_ref().map(|rule| format!("/rules/{rule}"))
            }
            _ => None,
        }
    }
}
