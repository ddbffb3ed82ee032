//! `/findings/{id}`: why this fires, since when, and because of what.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::rule::Rule;
use plumbline_store::SurfaceId;
use plumbline_store::alerting::Waiver;
use plumbline_store::conversations::{Conversation, moved_in};
use plumbline_store::views::{FeedRow, FindingDetail, FindingSpan};
use plumbline_store::words::{FindingState, OpenedAs};
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::lanes::{Axis, Bar, Lane, Lasted, Window};
use crate::page::{Frame, Place, Visit};
use crate::pages::target::document_url;
use crate::text;
use crate::words;

/// Spans on the page.
const SPANS: i64 = 100;
/// Conversations among which those are looked for in which spans began and ended.
const CONVERSATIONS: i64 = 500;

/// One finding whole.
#[derive(Template, Serialize)]
#[template(path = "finding_page.html")]
struct FindingPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The finding, where it is and who shows it.
    finding: FindingDetail,
    /// What the rule demands.
    title: String,
    /// What to do.
    fix: &'static str,
    /// When it was open, newest first.
    spans: Vec<FindingSpan>,
    /// The conversations in which each of these spans began and ended, where they are kept.
    said: Vec<Said>,
    #[serde(skip)]
    lane: Lane,
    #[serde(skip)]
    axis: Axis,
    #[serde(skip)]
    period: String,
    #[serde(skip)]
    flips: Option<Lane>,
    /// Who accepted it, and until when.
    waiver: Option<Waiver>,
    /// Hashes of two documents that are served in turn, where that is why it comes and goes.
    in_turn: Option<(String, String)>,
}

/// The pages with the conversations in which a span began and ended.
#[derive(Serialize)]
struct Said {
    /// Where it began.
    opened: Option<String>,
    /// Where it ended.
    closed: Option<String>,
}

impl Said {
    fn of(span: &FindingSpan, kept: &[Conversation], target: Option<i64>) -> Said {
        let page = |noted: Option<i64>, from_s: i64| {
            let one = match noted {
                Some(noted) => kept.iter().find(|one| one.id == noted)?,
                None => moved_in(kept, from_s)?,
            };
            Some(format!("/targets/{}/session?of={}", target?, one.id))
        };
        Said {
            opened: page(span.open_session, span.from_s),
            closed: span.to_s.and_then(|to_s| page(span.close_session, to_s)),
        }
    }
}

/// `GET /findings/{id}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "finding", asked: asked.clone() };
    let id: i64 = asked.trim_start_matches("fnd_").parse().map_err(|_| unknown())?;
    let finding = state.store.finding(id).await?.ok_or_else(unknown)?;
    let spans = state.store.finding_spans(id, SPANS).await?;
    let kept = state.store.conversations(SurfaceId(finding.finding.surface_id), CONVERSATIONS).await?;
    let rule = catalogue::find(&finding.finding.rule);
    let window = Window::up_to(visit.now, 365, finding.finding.first_seen_s.min(visit.now - 30 * 86_400));
    let lasted: Vec<Lasted> =
        spans.iter().map(|span| Lasted { class: "l-open", from_s: span.from_s, to_s: span.to_s }).collect();
    let in_turn = match finding.finding.state {
        FindingState::Flapping => state.store.two_versions(SurfaceId(finding.finding.surface_id)).await?,
        _ => None,
    };
    let target = finding.targets.first().map(|(target, ..)| *target);
    let page = FindingPage {
        frame: visit.framed(Place::Targets),
        as_of_s: visit.now,
        answer: answer(&finding, visit.now),
        title: rule.map(Rule::title).unwrap_or_default(),
        fix: rule.map_or("", |rule| rule.fix),
        lane: window.lane(&lasted, text::counted(spans.len() as i64, "span", "spans")),
        axis: window.axis(),
        period: window.period(),
        flips: flips(&finding),
        in_turn,
        waiver: match finding.finding.waiver {
            Some(waiver) => state.store.waiver(waiver).await?,
            None => None,
        },
        said: spans.iter().map(|span| Said::of(span, &kept, target)).collect(),
        finding,
        spans,
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(finding: &FindingDetail, now: i64) -> String {
    let one = &finding.finding;
    let since = text::brief(one.opened_s.unwrap_or(one.first_seen_s), now);
    let places = text::counted(one.occurrences, "place", "places");
    let came = match one.opened_as {
        Some(OpenedAs::Broke) => ". It held before, so this is a regression",
        Some(OpenedAs::Again) => ". It had been mended before, so this is a regression",
        Some(OpenedAs::Rule) => ", because our rule changed; that is no regression",
        Some(OpenedAs::Baseline) => ", the first time we could look",
        Some(OpenedAs::First) | None => "",
    };
    match one.state {
        FindingState::Pending => format!("Seen once, at {places}, and not confirmed yet."),
        FindingState::Open => format!("Open since {since} at {places}{came}."),
        FindingState::Clearing => {
            format!("Open since {since}; the last look did not find it, which is not confirmed yet.")
        }
        FindingState::Flapping => format!("Comes and goes since {since}, so we stop saying each time."),
        FindingState::Resolved | FindingState::Retired => {
            let over =
                finding.closed_s.map_or_else(|| "Over".to_owned(), |at| format!("Over since {}", text::brief(at, now)));
            let why = finding.resolution.map_or("", words::resolution);
            format!("{over}{why}. It was open {}.", text::counted(one.opens, "time", "times"))
        }
    }
}

/// The last looks, the newest on the right, where they went back and forth.
fn flips(finding: &FindingDetail) -> Option<Lane> {
    let count = finding.observed.clamp(0, 32);
    let fired = |n: i64| finding.flips >> (count - 1 - n) & 1 == 1;
    let changes = (1..count).filter(|n| fired(*n) != fired(n - 1)).count();
    if changes < 2 {
        return None;
    }
    let step = 100.0 / 32.0;
    let bars = (0..count)
        .map(|n| {
            let (class, says) = if fired(n) { ("l-open", "it fired") } else { ("l-up", "it did not fire") };
            Bar { class, x: n as f64 * step, width: step * 0.8, says: says.to_owned() }
        })
        .collect();
    Some(Lane { bars, words: format!("{changes} changes in the last {count} looks that could judge") })
}

/// What matches the finding of a row of a feed, where it is still open.
pub fn matcher_of(row: &FeedRow) -> Option<String> {
    let is_over = matches!(row.state, FindingState::Resolved | FindingState::Retired);
    (!is_over).then(|| matcher(&row.rule, &row.name))
}

fn matcher(rule: &str, name: &str) -> String {
    format!("rule:{rule} name:\"{}\"", name.replace('"', ""))
}

impl FindingPage {
    fn place_url(&self, pointer: &str) -> Option<String> {
        self.finding.document.as_ref().filter(|_| !pointer.is_empty()).map(|hash| document_url(hash, pointer))
    }

    /// A matcher for the first target that shows it.
    fn matcher(&self) -> String {
        let key = self.finding.targets.first().map(|(_, name, _)| name.as_str()).unwrap_or_default();
        matcher(&self.finding.finding.rule, key)
    }

    fn name(&self) -> &str {
        self.finding.targets.first().map_or("no target", |(_, name, _)| name)
    }

    fn span_words(&self, span: &FindingSpan) -> String {
        words::span_history(span)
    }

    fn diff_url(&self, span: &FindingSpan) -> Option<String> {
        let (target, ..) = self.finding.targets.first()?;
        span.open_document.as_ref().map(|hash| format!("/targets/{target}/diff?to={}", &hash[..16]))
    }

    /// Whether nobody looked for long, as the end of its state.
    fn stale(&self) -> String {
        words::stale(&self.finding.finding, self.as_of_s)
    }

    fn is_open(&self) -> bool {
        self.finding.finding.state.is_open()
    }
}
