//! `/crawls/{id}`: what one pass saw, what it did not, and whose fault that was.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_store::views::{CrawlRow, FaultRow, WalkFindingRow, WalkRow};
use plumbline_store::words::CrawlState;
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Faults shown; a crawl keeps a few hundred at most.
const FAULTS: i64 = 300;

/// One pass.
#[derive(Template, Serialize)]
#[template(path = "crawl.html")]
struct CrawlPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// Its numbers.
    crawl: CrawlRow,
    /// The walk of a registry that it was.
    walk: Option<WalkRow>,
    /// What the rules say of the list itself, the gravest first.
    list_findings: Vec<WalkFindingRow>,
    /// What went wrong, in order.
    faults: Vec<FaultRow>,
    #[serde(skip)]
    outcomes: Vec<Outcome>,
}

/// How many surfaces came out one way, and how wide that is.
struct Outcome {
    said: &'static str,
    meaning: &'static str,
    count: i64,
    share: String,
    width: f64,
    class: &'static str,
}

/// `GET /crawls/{id}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "crawl", asked: asked.clone() };
    let id: i64 = asked.parse().map_err(|_| unknown())?;
    let crawl = state.store.crawl_row(id).await?.ok_or_else(unknown)?;
    let page = CrawlPage {
        frame: visit.framed(Place::Crawls),
        as_of_s: visit.now,
        answer: answer(&crawl),
        outcomes: outcomes(&crawl),
        walk: state.store.crawl_walk(id).await?,
        list_findings: state.store.walk_findings(id).await?,
        faults: state.store.first_crawl_faults(id, FAULTS).await?,
        crawl,
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(crawl: &CrawlRow) -> String {
    let name = format!("Crawl {}, a {},", text::number(crawl.id), words::crawl_kind(crawl.kind));
    let planned = crawl.planned.max(crawl.done);
    let looked = match (planned, crawl.entries) {
        (0, 0) => "had nothing to look at".to_owned(),
        (0, entries) => format!(
            "read {} of {}",
            text::counted(entries, "entry", "entries"),
            text::counted(crawl.names, "name", "names")
        ),
        _ => format!(
            "looked at {} of {} ({})",
            text::number(crawl.done),
            text::counted(planned, "surface", "surfaces"),
            text::share(crawl.done, planned)
        ),
    };
    let ended = match crawl.state {
        CrawlState::Running => " and is still running",
        CrawlState::Complete => "",
        CrawlState::Incomplete => " and did not see everything",
        CrawlState::Interrupted => " before its process ended",
    };
    let faults = match crawl.faults {
        0 => String::new(),
        n => format!(" {} of ours came in between.", text::opened(&text::counted(n, "failure", "failures"))),
    };
    format!("{name} {looked}{ended}.{faults}")
}

fn outcomes(crawl: &CrawlRow) -> Vec<Outcome> {
    [
        ("Answered", "with what was asked for", crawl.ok, "of-sound"),
        ("Gated", "credentials or payment asked for", crawl.gated, "of-unjudged"),
        ("Absent", "nothing at the address", crawl.absent, "of-unjudged"),
        ("No answer", "tried, and no usable answer came", crawl.unreachable, "of-1"),
        ("Throttled", "asked to come back later", crawl.throttled, "of-unjudged"),
        ("Skipped", "not called, on purpose", crawl.skipped, "of-unjudged"),
        ("Our fault", "says nothing about the target", crawl.faults, "of-2"),
    ]
    .into_iter()
    .filter(|(_, _, count, _)| *count > 0)
    .map(|(said, meaning, count, class)| Outcome {
        said,
        meaning,
        count,
        // A failure of ours may happen outside any look, so it is no share of them.
        share: if class == "of-2" { "–".to_owned() } else { text::share(count, crawl.done) },
        width: count as f64 * 100.0 / crawl.done.max(count) as f64,
        class,
    })
    .collect()
}
