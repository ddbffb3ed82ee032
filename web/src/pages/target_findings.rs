//! `/targets/{id}/findings`: every finding there ever was, with the spans in which it was open.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_store::views::{FindingRow, FindingSpan, TargetDetail};
use plumbline_store::words::FindingState;
use serde::{Deserialize, Serialize};

use super::tabs::{self, Tab, Tabs};
use super::word;
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::lanes::{Axis, Lane, Lasted, Window};
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Findings and spans on the page; a target with more shows those that changed last.
const MOST: i64 = 300;

/// The choice of those that nobody looked at for three intervals, whatever their state.
const STALE: &str = "stale";

/// Which of them.
#[derive(Debug, Default, Deserialize)]
pub struct Choice {
    state: Option<String>,
}

/// Every finding of one target.
#[derive(Template, Serialize)]
#[template(path = "target_findings.html")]
struct TargetFindings {
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
    /// The findings, the one that changed last first.
    findings: Vec<FindingRow>,
    /// When they were open, newest first.
    spans: Vec<FindingSpan>,
    #[serde(skip)]
    rows: Vec<Row>,
    #[serde(skip)]
    axis: Axis,
    #[serde(skip)]
    period: String,
    #[serde(skip)]
    state: Option<FindingState>,
    #[serde(skip)]
    only_stale: bool,
    #[serde(skip)]
    is_filtered: bool,
}

struct Row {
    id: i64,
    rule: String,
    instance: String,
    severity: plumbline_store::words::Severity,
    state: FindingState,
    stale: String,
    lane: Lane,
    first_seen_s: i64,
    last: String,
    opens: i64,
    deploy: Option<i64>,
}

/// `GET /targets/{id}/findings`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    tabs::Asked(target): tabs::Asked,
    Query(choice): Query<Choice>,
) -> Result<Response, Error> {
    let only_stale = choice.state.as_deref() == Some(STALE);
    let only: Option<FindingState> = word("state", choice.state.as_deref().filter(|_| !only_stale))?;
    let mut findings = state.store.target_all_findings(target.id, MOST).await?;
    let spans = state.store.target_finding_spans(target.id, MOST * 2).await?;
    let answer = answer(&findings);
    findings.retain(|finding| only.is_none_or(|state| finding.state == state));
    findings.retain(|finding| !only_stale || finding.is_stale(visit.now));
    let window = Window::up_to(visit.now, 365, spans.iter().map(|span| span.from_s).min().unwrap_or(visit.now));
    let page = TargetFindings {
        frame: visit.framed(Place::Targets),
        tabs: Tabs::of(target.id, Tab::Findings),
        as_of_s: visit.now,
        answer,
        rows: findings.iter().map(|finding| row(finding, &spans, &window, visit.now)).collect(),
        axis: window.axis(),
        period: window.period(),
        target,
        findings,
        spans,
        state: only,
        only_stale,
        is_filtered: only_stale || only.is_some(),
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(findings: &[FindingRow]) -> String {
    let count = |state: fn(FindingState) -> bool| findings.iter().filter(|one| state(one.state)).count() as i64;
    let open = count(|state| matches!(state, FindingState::Open | FindingState::Clearing));
    let flapping = count(|state| state == FindingState::Flapping);
    let over = count(|state| matches!(state, FindingState::Resolved | FindingState::Retired));
    if findings.is_empty() {
        return "No finding was ever confirmed here.".to_owned();
    }
    let flaps =
        if flapping == 0 { String::new() } else { format!(", {} and go", text::counted(flapping, "comes", "come")) };
    format!(
        "{} open{flaps}; {} over.",
        text::opened(&text::counted(open, "finding is", "findings are")),
        text::counted(over, "is", "are")
    )
}

fn row(finding: &FindingRow, spans: &[FindingSpan], window: &Window, now: i64) -> Row {
    let of: Vec<&FindingSpan> = spans.iter().filter(|span| span.finding_id == finding.id).collect();
    let lasted: Vec<Lasted> =
        of.iter().map(|span| Lasted { class: "l-open", from_s: span.from_s, to_s: span.to_s }).collect();
    let last = of.first().map_or_else(String::new, |span| match span.to_s {
        None => format!("open since {}", text::brief(span.from_s, now)),
        Some(to) => format!("over since {}", text::brief(to, now)),
    });
    let times = text::counted(of.len() as i64, "time", "times");
    Row {
        id: finding.id,
        rule: finding.rule.clone(),
        instance: finding.instance.clone(),
        severity: finding.severity,
        state: finding.state,
        stale: words::stale(finding, now),
        lane: window.lane(&lasted, format!("open {times}; {last}")),
        first_seen_s: finding.first_seen_s,
        deploy: of.first().and_then(|span| span.open_deploy),
        opens: finding.opens,
        last,
    }
}

impl TargetFindings {
    fn states(&self) -> Vec<(&'static str, &'static str, bool)> {
        let mut states = [
            FindingState::Open,
            FindingState::Clearing,
            FindingState::Flapping,
            FindingState::Resolved,
            FindingState::Retired,
        ]
        .map(|state| (state.as_str(), words::finding_state(state), self.state == Some(state)))
        .to_vec();
        states.push((STALE, "stale", self.only_stale));
        states
    }
}
