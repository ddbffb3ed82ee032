//! `/methodology`: how the numbers are made.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plumbline_rules::catalogue;
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};

/// The method, with the numbers that are in force.
#[derive(Template, Serialize)]
#[template(path = "methodology.html")]
struct Methodology {
    #[serde(skip)]
    frame: Frame,
    /// Rules in the catalogue.
    rules: i64,
    /// The gap between two requests to one host, in milliseconds.
    pace_ms: u64,
    /// The User-Agent of every request.
    user_agent: String,
}

/// `GET /methodology`
pub async fn show(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let site = state.site();
    let page = Methodology {
        frame: visit.framed(Place::Elsewhere),
        rules: catalogue::rules().count() as i64,
        pace_ms: site.pace_ms,
        user_agent: site.user_agent.clone(),
    };
    visit.answer(&page, Cache::Minute)
}
