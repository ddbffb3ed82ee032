//! `/status` and `/status/{slug}`: is what I depend on up and sound? One row for each target tagged `status` or `status=slug`.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_store::query::{Field, Query};
use plumbline_store::views::{IncidentRow, Position, TARGET_PAGE, TargetOrder, TargetRow};
use plumbline_store::words::{Headline, ReachState};
use serde::Serialize;

use super::targets::strips;
use crate::WebState;
use crate::cache::Cache;
use crate::chart::Strip;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// The page for the public.
#[derive(Template, Serialize)]
#[template(path = "status.html")]
struct Status {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// One word for all, in a sentence.
    answer: String,
    /// Which status page; empty: the one for everything tagged.
    slug: String,
    /// What it consists of.
    components: Vec<TargetRow>,
    /// Shared outages of the last weeks, newest first.
    incidents: Vec<IncidentRow>,
    #[serde(skip)]
    tag: String,
    #[serde(skip)]
    strips: HashMap<i64, Strip>,
}

/// `GET /status`
pub async fn all(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    show(visit, state, String::new()).await
}

/// `GET /status/{slug}`
pub async fn one(visit: Visit, State(state): State<WebState>, Path(slug): Path<String>) -> Result<Response, Error> {
    if !state.store.has_tag("status", Some(&slug)).await? {
        return Err(Error::NotFound { what: "status page", asked: slug });
    }
    show(visit, state, slug).await
}

async fn show(visit: Visit, state: WebState, slug: String) -> Result<Response, Error> {
    let tag = if slug.is_empty() { "status".to_owned() } else { format!("status={slug}") };
    let filter = Query::default().with(Field::Tag, Some(&tag)).filter(visit.now)?;
    let limit = TARGET_PAGE as i64;
    let components = state.store.targets_page(&filter, TargetOrder::Name, &Position::start(), 1, limit).await?;
    let strips = strips(&state, &components, visit.now / 86_400).await?;
    let incidents = state.store.incidents(None, 10).await?;
    let page = Status {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer: answer(&components),
        incidents: incidents.into_iter().filter(|one| one.opened_s > visit.now - 30 * 86_400).collect(),
        slug,
        components,
        tag,
        strips,
    };
    visit.answer_rows(&page, &page.components, Cache::Minute)
}

fn answer(components: &[TargetRow]) -> String {
    let count = |wanted: fn(&TargetRow) -> bool| components.iter().filter(|one| wanted(one)).count() as i64;
    let down = count(|one| matches!(one.reach, ReachState::Down | ReachState::Absent));
    let blocked = count(|one| one.headline == Headline::Blocked);
    let all = components.len() as i64;
    match (all, down, blocked) {
        (0, ..) => "No component is named for this page yet.".to_owned(),
        (_, 0, 0) => format!("Everything answers: {}.", text::counted(all, "component", "components")),
        (_, 0, blocked) => {
            format!("Everything answers, and clients refuse {} of {}.", text::number(blocked), text::number(all))
        }
        (_, down, _) => {
            format!("{} of {} not answering.", text::number(down), text::counted(all, "component is", "components are"))
        }
    }
}
