//! `/crawls`: did the crawling work?

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_store::steering::Queue;
use plumbline_store::views::{CrawlRow, SourceRow};
use plumbline_store::words::{CrawlKind, CrawlState};
use serde::{Deserialize, Serialize};

use super::filled;
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::status::CrawlStatus;
use crate::text;

/// Crawls on one page.
const PAGE: i64 = 50;

/// Where the list goes on.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    before: Option<String>,
}

/// Passes, newest first.
#[derive(Template, Serialize)]
#[template(path = "crawls.html")]
struct Crawls {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The passes of this page.
    crawls: Vec<CrawlRow>,
    /// Address of the next page.
    next: Option<String>,
    /// Every source in use.
    sources: Vec<SourceRow>,
    /// What the crawler is doing.
    crawler: CrawlStatus,
    /// What waits and what comes.
    queue: Queue,
    /// Since when everything is paused.
    paused_since_s: Option<i64>,
    #[serde(skip)]
    is_first_page: bool,
}

/// `GET /crawls`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let before = match filled(asked.before.as_deref()) {
        None => i64::MAX,
        Some(text) => text
            .parse()
            .map_err(|_| Error::BadQuery { field: "before", reason: "is no number of a crawl".to_owned() })?,
    };
    let mut crawls = state.store.crawls(before, PAGE + 1).await?;
    let has_more = crawls.len() as i64 > PAGE;
    crawls.truncate(PAGE as usize);
    let mut crawler = state.status.borrow().clone();
    let paused_since_s = state.store.paused_since().await?;
    // While everything is paused no pass is planned, and one that should have begun is none that comes.
    crawler.next_pass_at = crawler.next_pass_at.filter(|at| paused_since_s.is_none() && *at > visit.now);
    let page = Crawls {
        frame: visit.framed(Place::Crawls),
        as_of_s: visit.now,
        answer: paused_or(paused_since_s, visit.now, answer(crawls.first(), &crawler, visit.now)),
        next: crawls.last().filter(|_| has_more).map(|last| format!("/crawls?before={}", last.id)),
        sources: state.store.sources_in_use().await?,
        is_first_page: before == i64::MAX,
        crawls,
        crawler,
        queue: state.store.queue(visit.now).await?,
        paused_since_s,
    };
    visit.answer(&page, Cache::Fresh)
}

/// That everything is paused comes before what came of the last pass.
pub(super) fn paused_or(since_s: Option<i64>, now: i64, answer: String) -> String {
    let Some(since_s) = since_s else { return answer };
    let mut letters = answer.chars();
    let rest = letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_lowercase(), letters.as_str()));
    format!("Everything is paused since {} UTC; {rest}", text::brief(since_s, now))
}

fn answer(newest: Option<&CrawlRow>, crawler: &CrawlStatus, now: i64) -> String {
    let Some(newest) = newest else {
        return match crawler.next_pass_at {
            Some(at) => format!("Nothing has been crawled yet; the first pass starts at {} UTC.", text::brief(at, now)),
            None => "Nothing has been crawled yet.".to_owned(),
        };
    };
    if matches!(newest.kind, CrawlKind::FullWalk | CrawlKind::IncrementalWalk) {
        return walked(newest);
    }
    let looked = format!(
        "{} of {}",
        text::number(newest.done),
        text::counted(newest.planned, "surface that was due", "surfaces that were due")
    );
    match newest.state {
        CrawlState::Running => format!("Crawl {} is running and has looked at {looked}.", text::number(newest.id)),
        CrawlState::Complete => format!("The last crawl looked at {looked} and ended complete."),
        CrawlState::Incomplete => format!("The last crawl looked at {looked} and did not see everything."),
        CrawlState::Interrupted => format!("The last crawl looked at {looked} before it was interrupted."),
    }
}

/// A walk reads entries and looks at nothing.
fn walked(newest: &CrawlRow) -> String {
    let read = text::counted(newest.entries, "entry", "entries");
    let of = newest.source.as_ref().map_or_else(String::new, |source| format!(" of {}", text::visible(source, 60)));
    match newest.state {
        CrawlState::Running => format!("A walk{of} is running and has read {read}."),
        CrawlState::Complete => format!("The last walk{of} read {read} and ended complete."),
        CrawlState::Incomplete => format!("The last walk{of} read {read} and did not see everything."),
        CrawlState::Interrupted => format!("The last walk{of} read {read} before it was interrupted."),
    }
}
