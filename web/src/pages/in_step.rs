//! `/targets/{id}/listing`: what a registry lists of a server, beside what answered at its addresses when they were last
//! asked.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_rules::document::Document;
use plumbline_rules::in_step::{Face, Line, Match, compare};
use plumbline_rules::session::Session;
use plumbline_store::ids::SurfaceId;
use plumbline_store::words::SurfaceKind;
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};

/// The comparison for one target.
#[derive(Template, Serialize)]
#[template(path = "in_step.html")]
struct InStepPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The target's number here.
    target: i64,
    /// What it is called.
    name: String,
    /// The name to ask a registry for.
    key: String,
    /// The oldest of the looks that are compared, in Unix seconds; `None` where nothing was asked.
    asked_s: Option<i64>,
    /// Whether a registry lists it at all.
    is_listed: bool,
    /// Differences first, then what could not be compared, then what is the same.
    lines: Vec<Line>,
}

impl InStepPage {
    fn count(&self, state: Match) -> usize {
        self.lines.iter().filter(|line| line.state == state).count()
    }

    fn answer(&self) -> String {
        let (differ, unknown) = (self.count(Match::Differs), self.count(Match::NotCompared));
        match (self.is_listed, differ, unknown) {
            (false, ..) => "No registry lists it".to_owned(),
            (true, 0, 0) => "The listing is in step with what answers".to_owned(),
            (true, 0, _) => "The listing is in step, as far as it could be compared".to_owned(),
            (true, 1, _) => "The listing differs from what answers in one thing".to_owned(),
            (true, differ, _) => format!("The listing differs from what answers in {differ} things"),
        }
    }
}

/// `GET /targets/{id}/listing`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "target", asked: asked.clone() };
    let id: i64 = asked.parse().map_err(|_| unknown())?;
    let target = state.store.target(id).await?.ok_or_else(unknown)?;
    let (mut asked_s, mut sessions) = (None::<i64>, Vec::new());
    let surfaces = state.store.target_surfaces(id).await?;
    for surface in surfaces.into_iter().filter(|surface| surface.kind == SurfaceKind::McpEndpoint) {
        let Some(session) = state.store.last_session(SurfaceId(surface.id)).await? else { continue };
        let Ok(session) = serde_json::from_slice::<Session>(&session) else { continue };
        asked_s = [asked_s, surface.last_attempt_s].into_iter().flatten().min();
        sessions.push((surface.url, session));
    }
    let faces: Vec<Face<'_>> = sessions.iter().map(|(url, session)| Face { url, session: Some(session) }).collect();
    let listed = listed(&state, id).await?;
    let (status, document) = listed.unwrap_or_default();
    let root = document.as_ref().and_then(Document::root);
    let mut lines = root.map(|root| compare(root, status.as_deref(), &faces)).unwrap_or_default();
    lines.sort_by_key(|line| match line.state {
        Match::Differs => 0,
        Match::NotCompared => 1,
        Match::Same => 2,
    });
    let page = InStepPage {
        frame: visit.framed(Place::Targets),
        as_of_s: visit.now,
        target: id,
        name: target.name,
        key: target.key,
        asked_s,
        is_listed: document.is_some(),
        lines,
    };
    visit.answer(&page, Cache::Fresh)
}

/// The status and the document of the version that is judged, else of the latest.
async fn listed(state: &WebState, target: i64) -> Result<Option<(Option<String>, Option<Document>)>, Error> {
    let (listings, _) = state.store.target_listings(target, 20).await?;
    let current = listings.iter().find(|listing| listing.is_current);
    let Some(listing) = current.or_else(|| listings.iter().find(|listing| listing.is_latest)) else { return Ok(None) };
    let Some(document) = state.store.document_of_hash(&listing.document).await? else { return Ok(None) };
    let bytes = state.store.document_bytes(&document).await?;
    Ok(Some((listing.status.clone(), bytes.map(|bytes| Document::read(&bytes)))))
}
