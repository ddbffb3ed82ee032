//! `/alerts`: what holds, what was told of it, and why the rest was not; `/alerts/groups/{id}` one group; `/routes` where they lead.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_store::alerting::{Alert, Group, Route};
use plumbline_store::hooks::Endpoint;
use plumbline_store::{AlertId, GroupId};
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::acting::{self, TakenOn};
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::operator::Acted;
use crate::page::{Frame, Place, Visit};
use crate::pages::filled;
use crate::text;

/// Groups, waiting alerts and past ones shown.
const SHOWN: i64 = 100;

/// All alerts.
#[derive(Template, Serialize)]
#[template(path = "alerts.html")]
struct AlertsPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// Groups that are open, the gravest first.
    groups: Vec<Group>,
    /// Alerts that are open and were not told, each with why.
    waiting: Vec<Alert>,
    /// The newest alerts, told or not.
    newest: Vec<Alert>,
}

/// `GET /alerts`
pub async fn show(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let (groups, alerts) = state.store.open_counts().await?;
    let waiting = state.store.waiting_alerts(SHOWN).await?;
    let page = AlertsPage {
        frame: visit.framed(Place::Alerts),
        as_of_s: visit.now,
        answer: answer(groups, alerts, state.store.routes().await?.is_empty()),
        groups: state.store.open_groups(SHOWN).await?,
        waiting,
        newest: state.store.newest_alerts(i64::MAX, SHOWN).await?,
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(groups: i64, alerts: i64, is_without_route: bool) -> String {
    if alerts == 0 && is_without_route {
        return "No alert leads anywhere yet.".to_owned();
    }
    if alerts == 0 {
        return "Nothing calls for attention.".to_owned();
    }
    let (alerts, groups) = (text::counted(alerts, "alert is", "alerts are"), text::counted(groups, "group", "groups"));
    format!("{alerts} open, told in {groups}.")
}

/// One group.
#[derive(Template, Serialize)]
#[template(path = "alert_group.html")]
struct GroupPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The group.
    group: Group,
    /// Its members, those that hold first.
    members: Vec<Alert>,
    /// Who was told.
    told: Vec<String>,
}

/// `GET /alerts/groups/{id}`
pub async fn group(visit: Visit, State(state): State<WebState>, Path(id): Path<i64>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "alert group", asked: id.to_string() };
    let group = state.store.alert_group(GroupId(id)).await.map_err(|error| match error {
        plumbline_store::Error::Missing { .. } => unknown(),
        other => other.into(),
    })?;
    let told = state.store.told_of(group.id).await?;
    let endpoints = state.store.endpoints().await?;
    let named = endpoints.into_iter().filter(|endpoint| told.contains(&endpoint.id)).map(|endpoint| endpoint.is.slug);
    let page = GroupPage {
        frame: visit.framed(Place::Alerts),
        as_of_s: visit.now,
        members: state.store.members(group.id).await?,
        told: named.collect(),
        group,
    };
    visit.answer(&page, Cache::Fresh)
}

/// An acknowledgement as it is sent.
#[derive(Deserialize)]
pub struct Acknowledgement {
    note: String,
    by: Option<String>,
    hours: Option<String>,
}

/// `POST /alerts/{id}/acknowledge`: somebody takes it on; it is not repeated.
pub async fn acknowledge(
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
    Acted { by: actor, form: sent }: Acted<Acknowledgement>,
) -> Result<Response, Error> {
    let note = filled(Some(&sent.note)).ok_or_else(|| empty("note"))?;
    let hours = match filled(sent.hours.as_deref()) {
        None => None,
        Some(text) => Some(
            text.parse::<i64>()
                .ok()
                .filter(|hours| (1..=8_760).contains(hours))
                .ok_or(Error::BadQuery { field: "hours", reason: "is no number from 1 to 8760".to_owned() })?,
        ),
    };
    let asked = TakenOn { note, who: filled(sent.by.as_deref()), hours };
    acting::acknowledge(&state, &actor, AlertId(id), asked, visit.now).await?;
    Ok(Redirect::to("/alerts").into_response())
}

/// A field that must not be empty.
pub(super) fn empty(field: &'static str) -> Error {
    Error::BadQuery { field, reason: "is empty".to_owned() }
}

/// Where alerts lead.
#[derive(Template, Serialize)]
#[template(path = "routes.html")]
struct RoutesPage {
    #[serde(skip)]
    frame: Frame,
    /// Each with its receivers.
    routes: Vec<Leading>,
}

/// A route and its receivers by name.
#[derive(Serialize)]
struct Leading {
    /// The route.
    #[serde(flatten)]
    route: Route,
    /// Its receivers.
    webhooks: Vec<String>,
}

impl RoutesPage {
    /// The answer in one sentence.
    fn answer(&self) -> String {
        let mut receivers: Vec<&str> = self.routes.iter().flat_map(|one| &one.webhooks).map(String::as_str).collect();
        receivers.sort_unstable();
        receivers.dedup();
        match (self.routes.len() as i64, receivers.len() as i64) {
            (0, _) => "No alert leads anywhere yet.".to_owned(),
            (n, 0) => format!("{} to nobody.", text::counted(n, "route leads", "routes lead")),
            (n, to) => format!(
                "{} to {}.",
                text::counted(n, "route leads", "routes lead"),
                text::counted(to, "receiver", "receivers")
            ),
        }
    }
}

/// `GET /routes`
pub async fn routes(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let endpoints = state.store.endpoints().await?;
    let named = |route: &Route| {
        let is_its = |endpoint: &&Endpoint| route.endpoints.contains(&endpoint.id);
        endpoints.iter().filter(is_its).map(|endpoint| endpoint.is.slug.clone()).collect()
    };
    let routes = state.store.routes().await?;
    let routes = routes.into_iter().map(|route| Leading { webhooks: named(&route), route }).collect();
    visit.answer(&RoutesPage { frame: visit.framed(Place::Alerts), routes }, Cache::Fresh)
}
