//! What the person at this machine asks of the crawler: look at a target again now, pause it, pause everything, go on.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_store::{SurfaceId, TargetId};
use serde::Deserialize;
use serde_json::json;

use crate::WebState;
use crate::acting;
use crate::error::Error;
use crate::operator::Operator;
use crate::page::{Form, Visit};

/// `POST /targets/{id}/recheck`: its surfaces are due at once, before all others.
pub async fn recheck(
    Operator(by): Operator,
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
) -> Result<Response, Error> {
    let surfaces = state.store.recheck(target(id), visit.now).await.map_err(|error| gone(error, id))?;
    acting::steered(&state, &by, "target.recheck", Some(target(id))).await?;
    Ok(done(&visit, &format!("/targets/{id}"), &json!({ "target": id, "surfaces_due": surfaces })))
}

/// `POST /targets/{id}/pause`
pub async fn pause(
    Operator(by): Operator,
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
) -> Result<Response, Error> {
    state.store.set_paused(target(id), true, visit.now).await.map_err(|error| gone(error, id))?;
    acting::steered(&state, &by, "target.pause", Some(target(id))).await?;
    Ok(done(&visit, &format!("/targets/{id}"), &json!({ "target": id, "paused": true })))
}

/// `POST /targets/{id}/resume`
pub async fn resume(
    Operator(by): Operator,
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
) -> Result<Response, Error> {
    state.store.set_paused(target(id), false, visit.now).await.map_err(|error| gone(error, id))?;
    acting::steered(&state, &by, "target.resume", Some(target(id))).await?;
    Ok(done(&visit, &format!("/targets/{id}"), &json!({ "target": id, "paused": false })))
}

/// A place of a surface's documents.
#[derive(Debug, Deserialize)]
pub struct Place {
    surface: i64,
    pointer: String,
}

/// `POST /targets/{id}/documents/count`: a place that differed at every fetch counts as part of the document again.
pub async fn count_again(
    Operator(by): Operator,
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
    axum::Form(place): axum::Form<Place>,
) -> Result<Response, Error> {
    let places = state.store.target_volatile_places(target(id)).await?;
    let is_one = places.iter().any(|one| one.surface_id == place.surface && one.pointer == place.pointer);
    let unknown = || Error::NotFound { what: "volatile place", asked: place.pointer.clone() };
    if !is_one || !state.store.count_place_again(SurfaceId(place.surface), &place.pointer).await? {
        return Err(unknown());
    }
    let was = json!({ "surface": place.surface, "pointer": place.pointer, "volatile": true });
    by.note(&state, "place.count", format!("target:{id}"), (Some(was), None)).await?;
    let what = json!({ "target": id, "surface": place.surface, "pointer": place.pointer, "volatile": false });
    Ok(done(&visit, &format!("/targets/{id}/documents"), &what))
}

/// `POST /crawls/pause`: nothing new is begun, here or after a restart.
pub async fn pause_all(Operator(by): Operator, visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    state.store.pause_all(true, visit.now).await?;
    acting::steered(&state, &by, "crawls.pause", None).await?;
    Ok(done(&visit, "/crawls", &json!({ "paused": true })))
}

/// `POST /crawls/resume`
pub async fn resume_all(
    Operator(by): Operator,
    visit: Visit,
    State(state): State<WebState>,
) -> Result<Response, Error> {
    state.store.pause_all(false, visit.now).await?;
    acting::steered(&state, &by, "crawls.resume", None).await?;
    Ok(done(&visit, "/crawls", &json!({ "paused": false })))
}

fn target(id: i64) -> TargetId {
    TargetId(id)
}

fn gone(error: plumbline_store::Error, id: i64) -> Error {
    match error {
        plumbline_store::Error::Missing { .. } => Error::NotFound { what: "watched target", asked: id.to_string() },
        other => other.into(),
    }
}

/// Back to the page for people, what was done for machines.
fn done(visit: &Visit, page: &str, what: &serde_json::Value) -> Response {
    match visit.form {
        Form::Html => Redirect::to(page).into_response(),
        Form::Json | Form::Csv | Form::JsonLines => (StatusCode::ACCEPTED, Json(what)).into_response(),
    }
}
