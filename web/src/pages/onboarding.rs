//! `/onboarding`: from nothing to a badge in four steps, each of which may be skipped.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plumbline_store::views::{CrawlRow, SourceRow};
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Settings that watch one registry and one agent, as the page shows them.
pub const SAMPLE_SETTINGS: &str = r#"[[registries]]
name = "official"
base = "https://registry.modelcontextprotocol.io"

[[domains]]
list = ["agent.example.com"]"#;

/// How far this installation is.
#[derive(Template, Serialize)]
#[template(path = "onboarding.html")]
struct Onboarding {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// Where targets come from.
    sources: Vec<SourceRow>,
    /// Targets that are watched.
    targets: i64,
    /// Of these, judged at least once.
    judged: i64,
    /// The newest pass.
    last_crawl: Option<CrawlRow>,
    /// A target to try the badge with, and its name.
    example: Option<(i64, String)>,
}

/// `GET /onboarding`
pub async fn show(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let store = &state.store;
    let present = store.cohort_days(visit.now / 86_400 - 3).await?.pop().unwrap_or_default();
    let judged = present.targets - present.not_evaluated;
    let filter = plumbline_store::views::TargetFilter::default();
    let order = plumbline_store::views::TargetOrder::Headline;
    let first =
        store.targets_page(&filter, order, &plumbline_store::views::Position::start(), present.targets, 1).await?;
    let page = Onboarding {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer: answer(present.targets, judged),
        sources: store.sources_in_use().await?,
        targets: present.targets,
        judged,
        last_crawl: store.crawls(i64::MAX, 1).await?.into_iter().next(),
        example: first.into_iter().next().map(|target| (target.id, target.name)),
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(targets: i64, judged: i64) -> String {
    match (targets, judged) {
        (0, _) => "Four steps to the first verdict; the first is to say what to watch.".to_owned(),
        (n, 0) => format!(
            "{} known; the first crawl is the next step.",
            text::opened(&text::counted(n, "target is", "targets are"))
        ),
        (n, judged) => format!(
            "{} of {} judged. Two steps are left: a message and a badge.",
            text::number(judged),
            text::counted(n, "target is", "targets are")
        ),
    }
}
