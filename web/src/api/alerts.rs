//! `/api/v1/alerts`, `silences`, `waivers`, `maintenance`, `routes`: what holds and why it was told or not, and what keeps quiet.
//! Whoever writes shows a token with `alerts:write` or sits at this machine.

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use axum::{Json, Router};
use plumbline_alerts::quiet::{self, moment};
use plumbline_alerts::zones;
use plumbline_store::AlertId;
use plumbline_store::alerting::{Alert, Maintenance, Silence, Waiver};
use plumbline_store::hooks::Origin;
use plumbline_store::tokens::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Page;
use super::webhooks::{Wish, body};
use crate::WebState;
use crate::acting::{self, TakenOn};
use crate::error::Error;
use crate::operator::Actor;
use crate::pages::quiet::{matcher, would_cover};

/// Alerts on a page, and open ones that a preview looks at.
const SHOWN: i64 = 200;
const PREVIEWED: i64 = 5_000;

/// One alert, told or not.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AlertRow {
    /// Its number.
    id: i64,
    /// What it is about: `finding:48211`.
    key: String,
    /// One line.
    title: String,
    /// `firing`, `held`, `inhibited`, `silenced`, `acknowledged`, `resolved`.
    state: String,
    /// `critical`, `error`, `warning`, `info`.
    severity: String,
    /// The number of its target.
    target: Option<i64>,
    /// Its rule.
    rule: Option<String>,
    /// The group it was told in.
    group: Option<i64>,
    /// One sentence for each step: why it was told, or not.
    why: Vec<String>,
    /// When it opened, in Unix seconds.
    opened_s: i64,
    /// When it was first told, in Unix seconds; null: never.
    notified_s: Option<i64>,
    /// When it ended, in Unix seconds.
    ended_s: Option<i64>,
    /// Who took it on.
    acknowledged_by: Option<String>,
    /// With which words.
    acknowledged_note: Option<String>,
}

fn row(alert: Alert) -> AlertRow {
    AlertRow {
        id: alert.id.0,
        key: alert.key,
        title: alert.title,
        state: alert.state.to_string(),
        severity: alert.severity.to_string(),
        target: alert.target,
        rule: alert.rule,
        group: alert.group.map(|group| group.0),
        why: alert.why,
        opened_s: alert.opened_s,
        notified_s: alert.notified_s,
        ended_s: alert.ended_s,
        acknowledged_by: alert.ack_by,
        acknowledged_note: alert.ack_note,
    }
}

/// Something that keeps quiet.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuietRow {
    /// Its number.
    id: i64,
    /// What it covers.
    r#match: String,
    /// The rule or family, of a waiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// Why; the title of a maintenance window.
    reason: String,
    /// Whose it is.
    author: String,
    /// `file` (ended there only) or `ui`.
    origin: String,
    /// It holds now.
    holds: bool,
    /// When it ends, in Unix seconds; null: it comes again and again.
    ends_s: Option<i64>,
    /// The next beginnings and ends of a maintenance window, in Unix seconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<(i64, i64)>,
}

fn silence_row(one: &Silence, now_s: i64) -> QuietRow {
    QuietRow {
        id: one.id,
        r#match: one.matcher.clone(),
        rule: None,
        reason: one.reason.clone(),
        author: one.author.clone(),
        origin: one.origin.to_string(),
        holds: one.holds(now_s),
        ends_s: Some(one.ended_s.unwrap_or(one.ends_s)),
        next: Vec::new(),
    }
}

fn waiver_row(one: &Waiver, now_s: i64) -> QuietRow {
    QuietRow {
        id: one.id,
        r#match: one.matcher.clone(),
        rule: Some(one.rule.clone()),
        reason: one.reason.clone(),
        author: one.author.clone(),
        origin: one.origin.to_string(),
        holds: one.ended_s.is_none() && now_s < one.ends_s,
        ends_s: Some(one.ended_s.unwrap_or(one.ends_s)),
        next: Vec::new(),
    }
}

fn window_row(one: &Maintenance, now_s: i64) -> QuietRow {
    QuietRow {
        id: one.id,
        r#match: one.matcher.clone(),
        rule: None,
        reason: one.title.clone(),
        author: one.author.clone(),
        origin: one.origin.to_string(),
        holds: zones::holds(one, now_s),
        ends_s: one.ended_s.or(one.starts_s.map(|starts_s| starts_s + one.duration_s)),
        next: zones::next_windows(one, now_s, 3),
    }
}

/// A route, and where it leads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouteRow {
    /// Its name.
    name: String,
    /// As shown.
    title: String,
    /// Which alerts.
    r#match: String,
    /// Less grave ones are left out.
    min_severity: String,
    /// `file` or `ui`.
    origin: String,
    /// The names of its receivers.
    webhooks: Vec<String>,
    /// How long it waits for others of the same group, in seconds.
    wait_s: i64,
    /// Least time between two messages about one group, in seconds.
    interval_s: i64,
    /// After so long without news what still holds is said again, in seconds.
    repeat_s: i64,
}

/// Which alerts.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    cursor: Option<String>,
    r#match: Option<String>,
    open: Option<String>,
}

/// `GET /api/v1/alerts`
pub async fn list(State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Json<Page<AlertRow>>, Error> {
    let before = super::read::before(asked.cursor.as_deref())?;
    let found = state.store.newest_alerts(before, SHOWN).await?;
    let next = found.last().filter(|_| found.len() as i64 == SHOWN).map(|alert| alert.id.to_string());
    let only = asked.r#match.as_deref().filter(|text| !text.trim().is_empty()).map(matcher).transpose()?;
    let is_open = asked.open.as_deref() == Some("yes");
    let fits = |alert: &Alert| {
        only.as_ref().is_none_or(|only| only.matches(&alert.facts)) && (!is_open || alert.ended_s.is_none())
    };
    Ok(Json(Page { items: found.into_iter().filter(fits).map(row).collect(), next }))
}

/// `GET /api/v1/silences`
pub async fn silences(State(state): State<WebState>) -> Result<Json<Page<QuietRow>>, Error> {
    let now_s = (state.now)();
    let found = state.store.silences(now_s).await?;
    Ok(Json(Page { items: found.iter().map(|one| silence_row(one, now_s)).collect(), next: None }))
}

/// `GET /api/v1/waivers`
pub async fn waivers(State(state): State<WebState>) -> Result<Json<Page<QuietRow>>, Error> {
    let now_s = (state.now)();
    let found = state.store.waivers(now_s).await?;
    Ok(Json(Page { items: found.iter().map(|one| waiver_row(one, now_s)).collect(), next: None }))
}

/// `GET /api/v1/maintenance`
pub async fn maintenance(State(state): State<WebState>) -> Result<Json<Page<QuietRow>>, Error> {
    let now_s = (state.now)();
    let found = state.store.maintenances(now_s).await?;
    Ok(Json(Page { items: found.iter().map(|one| window_row(one, now_s)).collect(), next: None }))
}

/// `GET /api/v1/routes`
pub async fn routes(State(state): State<WebState>) -> Result<Json<Page<RouteRow>>, Error> {
    let endpoints = state.store.endpoints().await?;
    let items = state.store.routes().await?.into_iter().map(|route| RouteRow {
        webhooks: endpoints
            .iter()
            .filter(|endpoint| route.endpoints.contains(&endpoint.id))
            .map(|endpoint| endpoint.is.slug.clone())
            .collect(),
        name: route.is.slug,
        title: route.is.title,
        r#match: route.is.matcher,
        min_severity: route.is.min_severity.to_string(),
        origin: route.origin.to_string(),
        wait_s: route.is.wait_s,
        interval_s: route.is.interval_s,
        repeat_s: route.is.repeat_s,
    });
    Ok(Json(Page { items: items.collect(), next: None }))
}

/// Who takes an alert on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acknowledgement {
    /// What will be done.
    note: String,
    /// For so many hours, 8760 at most; without it until it ends.
    hours: Option<i64>,
}

/// `POST /api/v1/alerts/{id}/acknowledge`
async fn acknowledge(
    actor: Actor,
    State(state): State<WebState>,
    Path(id): Path<i64>,
    sent: Result<Json<Acknowledgement>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let asked = body(sent)?;
    if asked.note.trim().is_empty() || asked.hours.is_some_and(|hours| !(1..=8_760).contains(&hours)) {
        return Err(Error::BadForm("A note is needed, and hours from 1 to 8760.".to_owned()));
    }
    let taken = TakenOn { note: &asked.note, who: None, hours: asked.hours };
    let alert = acting::acknowledge(&state, &actor, AlertId(id), taken, (state.now)()).await?;
    Ok(Json(alert.map(row)).into_response())
}

/// A silence as it is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSilence {
    /// What it covers; not empty.
    r#match: String,
    /// Why.
    reason: String,
    /// Until when (RFC 3339), within 90 days.
    until: String,
    /// It ends early after so many hours without a match.
    calm_hours: Option<i64>,
}

/// What a matcher covers now, of what is open.
async fn covered(state: &WebState, text: &str) -> Result<Value, Error> {
    let matcher = matcher(text)?;
    let open = state.store.all_open_alerts(PREVIEWED).await?;
    let titles: Vec<String> =
        open.into_iter().filter(|alert| matcher.matches(&alert.facts)).map(|alert| alert.title).collect();
    Ok(json!({ "dry_run": true, "open_alerts": titles.len(), "some": titles.iter().take(25).collect::<Vec<_>>() }))
}

fn read_moment(text: &str) -> Result<i64, Error> {
    Ok(moment(text)?)
}

/// `POST /api/v1/silences`
async fn add_silence(
    actor: Actor,
    State(state): State<WebState>,
    Query(wish): Query<Wish>,
    sent: Result<Json<NewSilence>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let (asked, now_s) = (body(sent)?, (state.now)());
    actor.must_cover(&asked.r#match)?;
    let silence = Silence {
        id: 0,
        matcher: asked.r#match.trim().to_owned(),
        reason: asked.reason,
        author: actor.name(),
        origin: Origin::Ui,
        created_s: now_s,
        starts_s: now_s,
        ends_s: read_moment(&asked.until)?,
        calm_s: asked.calm_hours.map(|hours| hours.saturating_mul(3_600)),
        matched_s: None,
        ended_s: None,
        is_told: false,
    };
    quiet::check_silence(&silence)?;
    if wish.dry_run {
        return Ok(Json(covered(&state, &silence.matcher).await?).into_response());
    }
    let silence = acting::add_silence(&state, &actor, silence).await?;
    Ok((StatusCode::CREATED, Json(silence_row(&silence, now_s))).into_response())
}

/// A waiver as it is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWaiver {
    /// A rule, or a family such as `openapi/*`.
    rule: String,
    /// On whom; not empty.
    r#match: String,
    /// Why it is accepted.
    reason: String,
    /// Until when (RFC 3339), within a year.
    until: String,
}

/// `POST /api/v1/waivers`
async fn add_waiver(
    actor: Actor,
    State(state): State<WebState>,
    Query(wish): Query<Wish>,
    sent: Result<Json<NewWaiver>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let (asked, now_s) = (body(sent)?, (state.now)());
    actor.must_cover(&asked.r#match)?;
    let waiver = Waiver {
        id: 0,
        rule: asked.rule.trim().to_owned(),
        matcher: asked.r#match.trim().to_owned(),
        reason: asked.reason,
        author: actor.name(),
        origin: Origin::Ui,
        created_s: now_s,
        ends_s: read_moment(&asked.until)?,
        ended_s: None,
    };
    quiet::check_waiver(&waiver)?;
    if wish.dry_run {
        let would = would_cover(&state, &waiver.rule, &waiver.matcher).await?;
        return Ok(Json(json!({ "dry_run": true, "covers": would })).into_response());
    }
    let waiver = acting::add_waiver(&state, &actor, waiver).await?;
    Ok((StatusCode::CREATED, Json(waiver_row(&waiver, now_s))).into_response())
}

/// A maintenance window as it is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMaintenance {
    /// What is done.
    title: String,
    /// What it covers; not empty.
    r#match: String,
    /// The zone of its times; UTC where it is not given.
    zone: Option<String>,
    /// Once: its beginning (RFC 3339).
    starts: Option<String>,
    /// Again and again: five fields of cron.
    cron: Option<String>,
    /// How long.
    minutes: i64,
}

/// `POST /api/v1/maintenance`
async fn add_maintenance(
    actor: Actor,
    State(state): State<WebState>,
    Query(wish): Query<Wish>,
    sent: Result<Json<NewMaintenance>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let (asked, now_s) = (body(sent)?, (state.now)());
    actor.must_cover(&asked.r#match)?;
    let window = Maintenance {
        id: 0,
        title: asked.title,
        matcher: asked.r#match.trim().to_owned(),
        author: actor.name(),
        origin: Origin::Ui,
        zone: asked.zone.unwrap_or_else(|| "UTC".to_owned()),
        starts_s: asked.starts.as_deref().map(read_moment).transpose()?,
        cron: asked.cron,
        duration_s: asked.minutes.saturating_mul(60),
        created_s: now_s,
        ended_s: None,
    };
    quiet::check_maintenance(&window)?;
    if wish.dry_run {
        let mut preview = covered(&state, &window.matcher).await?;
        preview["next"] = json!(zones::next_windows(&window, now_s, 3));
        return Ok(Json(preview).into_response());
    }
    let window = acting::add_maintenance(&state, &actor, window).await?;
    Ok((StatusCode::CREATED, Json(window_row(&window, now_s))).into_response())
}

/// `DELETE /api/v1/silences/{id}`
async fn end_silence(actor: Actor, State(state): State<WebState>, Path(id): Path<i64>) -> Result<StatusCode, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    acting::end_silence(&state, &actor, id, (state.now)()).await.map(|()| StatusCode::NO_CONTENT)
}

/// `DELETE /api/v1/waivers/{id}`
async fn end_waiver(actor: Actor, State(state): State<WebState>, Path(id): Path<i64>) -> Result<StatusCode, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    acting::end_waiver(&state, &actor, id, (state.now)()).await.map(|()| StatusCode::NO_CONTENT)
}

/// `DELETE /api/v1/maintenance/{id}`
async fn end_maintenance(
    actor: Actor,
    State(state): State<WebState>,
    Path(id): Path<i64>,
) -> Result<StatusCode, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    acting::end_maintenance(&state, &actor, id, (state.now)()).await.map(|()| StatusCode::NO_CONTENT)
}

/// What is written; what is read stands in the table.
pub(super) fn router() -> Router<WebState> {
    Router::new()
        .route("/api/v1/alerts/{id}/acknowledge", post(acknowledge))
        .route("/api/v1/silences", post(add_silence))
        .route("/api/v1/silences/{id}", delete(end_silence))
        .route("/api/v1/waivers", post(add_waiver))
        .route("/api/v1/waivers/{id}", delete(end_waiver))
        .route("/api/v1/maintenance", post(add_maintenance))
        .route("/api/v1/maintenance/{id}", delete(end_maintenance))
}
