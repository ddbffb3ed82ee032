//! `/incidents` and `/incidents/{id}`: is it them, us, or something shared?

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use plumbline_store::incidents::Shared;
use plumbline_store::views::{IncidentRow, MemberRow};
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::lanes::{Axis, Lane, Lasted, Window};
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Incidents on one page.
const PAGE: i64 = 50;

/// Where the list goes on.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    before: Option<String>,
}

/// Shared outages, newest first.
#[derive(Template, Serialize)]
#[template(path = "incidents.html")]
struct Incidents {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The incidents of this page.
    incidents: Vec<IncidentRow>,
    /// Address of older ones.
    next: Option<String>,
}

/// One of them.
#[derive(Template, Serialize)]
#[template(path = "incident.html")]
struct Incident {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The incident.
    incident: IncidentRow,
    /// Who was in it.
    members: Vec<MemberRow>,
    #[serde(skip)]
    lanes: Vec<Lane>,
    #[serde(skip)]
    axis: Axis,
    #[serde(skip)]
    period: String,
}

/// `GET /incidents`
pub async fn list(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let before = super::number("before", asked.before.as_deref())?.unwrap_or(i64::MAX);
    let mut incidents = state.store.incidents(Some(before), PAGE + 1).await?;
    let has_more = incidents.len() as i64 > PAGE;
    incidents.truncate(PAGE as usize);
    let open = incidents.iter().filter(|incident| incident.closed_s.is_none()).count() as i64;
    let answer = match (incidents.first(), open) {
        (None, _) => "No shared outage has been recorded.".to_owned(),
        (Some(newest), 0) => {
            format!("Nothing shared fails now; the last outage began {}.", text::ago(newest.opened_s, visit.now))
        }
        (_, n) => format!("{} now.", text::opened(&text::counted(n, "shared outage goes on", "shared outages go on"))),
    };
    let page = Incidents {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer,
        next: incidents.last().filter(|_| has_more).map(|last| format!("/incidents?before={}", last.id)),
        incidents,
    };
    visit.answer_rows(&page, &page.incidents, Cache::Fresh)
}

/// `GET /incidents/{id}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "incident", asked: asked.clone() };
    let id: i64 = asked.parse().map_err(|_| unknown())?;
    let (incident, members) = state.store.incident(id).await?.ok_or_else(unknown)?;
    let to_s = incident.closed_s.map_or(visit.now, |at| (at + 600).min(visit.now));
    let window = Window { from_s: incident.opened_s - 600, to_s, now_s: visit.now };
    let lanes = members
        .iter()
        .map(|member| {
            let lasted = Lasted { class: "l-down", from_s: member.joined_s, to_s: member.left_s };
            window.lane(&[lasted], "in the outage".to_owned())
        })
        .collect();
    let page = Incident {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer: answer(&incident, visit.now),
        axis: window.axis(),
        period: window.period(),
        incident,
        members,
        lanes,
    };
    visit.answer(&page, Cache::Fresh)
}

/// What is shared, in words.
fn cause(incident: &IncidentRow) -> String {
    let shared = text::visible(&incident.shared, 80);
    match incident.cause {
        Shared::Host => format!("the host {shared}"),
        Shared::Prefix => format!("the network {shared}"),
        Shared::Certificate => format!("a certificate of {shared}"),
    }
}

fn answer(incident: &IncidentRow, now: i64) -> String {
    let who = text::counted(incident.members, "surface", "surfaces");
    let lasted = match incident.closed_s {
        None => format!("for {} and still", text::span(now - incident.opened_s)),
        Some(end) => format!("for {}", text::span(end - incident.opened_s)),
    };
    format!("{} failed together {lasted}; what they share is {}.", text::opened(&who), cause(incident))
}

impl Incidents {
    fn cause(&self, incident: &IncidentRow) -> String {
        cause(incident)
    }

    fn lasted(&self, incident: &IncidentRow) -> String {
        text::span(incident.closed_s.unwrap_or(self.as_of_s) - incident.opened_s)
    }
}

impl Incident {
    fn rows(&self) -> impl Iterator<Item = (&MemberRow, &Lane)> {
        self.members.iter().zip(&self.lanes)
    }
}
