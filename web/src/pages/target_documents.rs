//! `/targets/{id}/documents`: which versions were served, since when, and what each opened or mended.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plumbline_store::TargetId;
use plumbline_store::views::{DocumentSpan, FindingSpan, TargetDetail};
use plumbline_store::volatile::VolatilePlace;
use serde::Serialize;

use super::tabs::{self, Tab, Tabs};
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::lanes::{Axis, Lane, Lasted, Window};
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Versions on the page.
const MOST: i64 = 300;

/// What one target served.
#[derive(Template, Serialize)]
#[template(path = "target_documents.html")]
struct TargetDocuments {
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
    /// What was served, newest first.
    versions: Vec<Version>,
    /// Places that differ at every fetch: a document that differs only there makes no version.
    volatile: Vec<VolatilePlace>,
    #[serde(skip)]
    lanes: Vec<(String, Lane)>,
    #[serde(skip)]
    axis: Axis,
    #[serde(skip)]
    period: String,
}

/// One document in one stretch of time.
#[derive(Serialize)]
struct Version {
    /// What, where, from when to when.
    #[serde(flatten)]
    span: DocumentSpan,
    /// Findings it opened.
    opened: i64,
    /// Findings it mended.
    mended: i64,
    /// The document before it on the same surface, in hex.
    before: Option<String>,
}

/// `GET /targets/{id}/documents`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    tabs::Asked(target): tabs::Asked,
) -> Result<Response, Error> {
    let spans = state.store.target_document_spans(target.id, MOST).await?;
    let findings = state.store.target_finding_spans(target.id, MOST * 2).await?;
    let window = Window::up_to(visit.now, 365, spans.iter().map(|span| span.from_s).min().unwrap_or(visit.now));
    let page = TargetDocuments {
        frame: visit.framed(Place::Targets),
        tabs: Tabs::of(target.id, Tab::Documents),
        as_of_s: visit.now,
        answer: answer(&spans, visit.now),
        lanes: lanes(&spans, &window),
        axis: window.axis(),
        period: window.period(),
        versions: versions(&spans, &findings),
        volatile: state.store.target_volatile_places(TargetId(target.id)).await?,
        target,
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(spans: &[DocumentSpan], now: i64) -> String {
    let Some(newest) = spans.first() else { return "No document was ever kept of it.".to_owned() };
    let version = newest
        .declared_version
        .as_ref()
        .map_or_else(String::new, |version| format!(", which calls itself {}", text::visible(version, 40)));
    let comma = if version.is_empty() { "" } else { "," };
    let served = match newest.to_s {
        None => format!("has been served since {}", text::brief(newest.from_s, now)),
        Some(to) => format!("was served until {}", text::brief(to, now)),
    };
    let here = spans.iter().filter(|span| span.surface_id == newest.surface_id).count() as i64;
    let elsewhere = match spans.len() as i64 - here {
        0 => String::new(),
        n => format!(", and {} at its other addresses", text::number(n)),
    };
    format!(
        "The newest document{version}{comma} {served}; {} of it so far{elsewhere}.",
        text::counted(here, "version", "versions")
    )
}

fn versions(spans: &[DocumentSpan], findings: &[FindingSpan]) -> Vec<Version> {
    spans
        .iter()
        .enumerate()
        .map(|(n, span)| {
            let hash = Some(&span.document);
            Version {
                opened: findings.iter().filter(|one| one.open_document.as_ref() == hash).count() as i64,
                mended: findings.iter().filter(|one| one.close_document.as_ref() == hash).count() as i64,
                before: spans[n + 1..]
                    .iter()
                    .find(|older| older.surface_id == span.surface_id)
                    .map(|older| older.document.clone()),
                span: span.clone(),
            }
        })
        .collect()
}

fn lanes(spans: &[DocumentSpan], window: &Window) -> Vec<(String, Lane)> {
    let mut surfaces: Vec<i64> = spans.iter().map(|span| span.surface_id).collect();
    surfaces.sort_unstable();
    surfaces.dedup();
    surfaces
        .into_iter()
        .filter_map(|surface| {
            let of: Vec<&DocumentSpan> = spans.iter().filter(|span| span.surface_id == surface).collect();
            let name = words::surface_kind(of.first()?.kind).to_owned();
            let lasted: Vec<Lasted> = of
                .iter()
                .enumerate()
                .map(|(n, span)| Lasted {
                    class: if (of.len() - n).is_multiple_of(2) { "l-doc" } else { "l-doc other" },
                    from_s: span.from_s,
                    to_s: span.to_s,
                })
                .collect();
            let said = text::counted(of.len() as i64, "version", "versions");
            Some((name, window.lane(&lasted, said)))
        })
        .collect()
}
