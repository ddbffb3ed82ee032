//! `/compare?a&b`: what differs between two crawls. What changed its verdict in between, and the rules that moved.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_store::views::{CrawlRow, HeadlineMove, RuleMove};
use plumbline_store::words::headline_rank;
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Crawls to choose from.
const CRAWLS: i64 = 60;
/// Rows of each list.
const MOST: usize = 100;

/// The two crawls.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    a: Option<String>,
    b: Option<String>,
}

/// Two crawls side by side.
#[derive(Template, Serialize)]
#[template(path = "compare.html")]
struct Compare {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The older crawl.
    a: Option<CrawlRow>,
    /// The newer crawl.
    b: Option<CrawlRow>,
    /// Targets whose verdict is worse, at most a hundred.
    worse: Vec<HeadlineMove>,
    /// Targets whose verdict is better, at most a hundred.
    better: Vec<HeadlineMove>,
    /// Targets that were judged for the first time or could no longer be judged.
    other: Vec<HeadlineMove>,
    /// Findings by rule, what moved most first.
    rules: Vec<RuleMove>,
    #[serde(skip)]
    crawls: Vec<CrawlRow>,
}

/// `GET /compare`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let crawls = state.store.crawls(i64::MAX, CRAWLS).await?;
    let (a, b) = (chosen(&state, "a", &asked.a).await?, chosen(&state, "b", &asked.b).await?);
    let ended: Vec<&CrawlRow> = crawls.iter().filter(|crawl| crawl.finished_s.is_some()).collect();
    let b = b.or_else(|| ended.first().map(|crawl| (*crawl).clone()));
    let a = a.or_else(|| {
        ended.iter().find(|crawl| b.as_ref().is_some_and(|b| crawl.id < b.id)).map(|crawl| (*crawl).clone())
    });
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) if a.started_s > b.started_s => (Some(b), Some(a)),
        pair => pair,
    };
    let (moves, mut rules) = match (&a, &b) {
        (Some(a), Some(b)) => moved(&state, a, b).await?,
        _ => (Vec::new(), Vec::new()),
    };
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.opened + rule.regressed + rule.resolved));
    let sorted = sorted(moves);
    let crawls = with_chosen(crawls, [&a, &b]);
    let page = Compare {
        frame: visit.framed(Place::Crawls),
        as_of_s: visit.now,
        answer: answer(a.as_ref(), b.as_ref(), &sorted),
        a,
        b,
        worse: sorted.worse.into_iter().take(MOST).collect(),
        better: sorted.better.into_iter().take(MOST).collect(),
        other: sorted.other.into_iter().take(MOST).collect(),
        rules: rules.into_iter().take(MOST).collect(),
        crawls,
    };
    visit.answer(&page, Cache::Fresh)
}

/// The crawls to choose from, newest first, the chosen ones among them however old they are.
fn with_chosen(mut crawls: Vec<CrawlRow>, chosen: [&Option<CrawlRow>; 2]) -> Vec<CrawlRow> {
    for one in chosen.into_iter().flatten() {
        if crawls.iter().all(|crawl| crawl.id != one.id) {
            crawls.push(one.clone());
        }
    }
    crawls.sort_by_key(|crawl| std::cmp::Reverse(crawl.id));
    crawls
}

async fn chosen(state: &WebState, field: &'static str, asked: &Option<String>) -> Result<Option<CrawlRow>, Error> {
    let Some(id) = super::number(field, asked.as_deref())? else { return Ok(None) };
    let crawl = state.store.crawl_row(id).await?;
    crawl.map(Some).ok_or_else(|| Error::BadQuery { field, reason: format!("names no crawl: {id}") })
}

/// What happened after the older crawl ended and until the newer one did.
async fn moved(state: &WebState, a: &CrawlRow, b: &CrawlRow) -> Result<(Vec<HeadlineMove>, Vec<RuleMove>), Error> {
    let end = |crawl: &CrawlRow| crawl.finished_s.unwrap_or(crawl.started_s);
    let from = state.store.first_event_at(end(a) + 1).await?;
    let to = state.store.first_event_at(end(b) + 1).await?;
    Ok((state.store.headline_moves(from, to).await?, state.store.rule_moves(from, to).await?))
}

struct Sorted {
    worse: Vec<HeadlineMove>,
    better: Vec<HeadlineMove>,
    other: Vec<HeadlineMove>,
}

fn sorted(moves: Vec<HeadlineMove>) -> Sorted {
    let is_verdict = |rank: i64| rank <= 2;
    let mut sorted = Sorted { worse: Vec::new(), better: Vec::new(), other: Vec::new() };
    for one in moves {
        let (before, after) = (headline_rank(one.before), headline_rank(one.after));
        match (is_verdict(before) && is_verdict(after), after < before) {
            (true, true) => sorted.worse.push(one),
            (true, false) => sorted.better.push(one),
            (false, _) => sorted.other.push(one),
        }
    }
    sorted
}

fn answer(a: Option<&CrawlRow>, b: Option<&CrawlRow>, moves: &Sorted) -> String {
    let (Some(a), Some(b)) = (a, b) else { return "There are not two crawls yet to compare.".to_owned() };
    if a.id == b.id {
        return "Both are the same crawl.".to_owned();
    }
    format!(
        "From crawl {} to crawl {}: {} improved, {} worsened, {} judged for the first time or no longer.",
        text::number(a.id),
        text::number(b.id),
        text::number(moves.better.len() as i64),
        text::number(moves.worse.len() as i64),
        text::number(moves.other.len() as i64)
    )
}

impl Compare {
    fn is_a(&self, id: &i64) -> bool {
        self.a.as_ref().is_some_and(|crawl| crawl.id == *id)
    }

    fn is_b(&self, id: &i64) -> bool {
        self.b.as_ref().is_some_and(|crawl| crawl.id == *id)
    }

    fn name(&self, crawl: &CrawlRow) -> String {
        format!("{}, {} {}", crawl.id, words::crawl_kind(crawl.kind), text::brief(crawl.started_s, self.as_of_s))
    }

    fn groups(&self) -> [(&'static str, &Vec<HeadlineMove>); 3] {
        [
            ("Worsened", &self.worse),
            ("Improved", &self.better),
            ("Judged for the first time, or no longer", &self.other),
        ]
    }
}
