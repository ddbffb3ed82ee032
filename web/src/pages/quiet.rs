//! `/silences`, `/maintenance`, `/waivers`: who keeps what quiet, why, and until when; what each covers is shown before it is saved.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_alerts::matcher::Matcher;
use plumbline_alerts::{quiet, zones};
use plumbline_store::alerting::{Alert, Maintenance, Silence, Waiver};
use plumbline_store::hooks::Origin;
use serde::{Deserialize, Serialize};

use super::alerts::empty;
use crate::WebState;
use crate::acting;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::operator::Acted;
use crate::page::{Frame, Place, Visit};
use crate::pages::filled;
use crate::text;

/// The longest silence, in hours.
const LONGEST_SILENCE_H: i64 = quiet::LONGEST_SILENCE_S / 3_600;

/// The longest waiver, in days.
const LONGEST_WAIVER_D: i64 = 365;

/// Open alerts that a preview looks at.
const PREVIEWED: i64 = 5_000;

/// What was typed, for a preview.
#[derive(Deserialize, Default)]
pub struct Asked {
    r#match: Option<String>,
    rule: Option<String>,
}

/// All silences.
#[derive(Template, Serialize)]
#[template(path = "silences.html")]
struct SilencesPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// Those that end first, first; ended ones for a week.
    silences: Vec<Silenced>,
    /// What a matcher would cover now.
    preview: Option<Preview>,
}

/// A silence, and whether it holds.
#[derive(Serialize)]
struct Silenced {
    /// The silence.
    #[serde(flatten)]
    silence: Silence,
    /// It holds now.
    holds: bool,
}

impl SilencesPage {
    /// The answer in one sentence.
    fn answer(&self) -> String {
        let mut ends: Vec<i64> = self.silences.iter().filter(|one| one.holds).map(|one| one.silence.ends_s).collect();
        ends.sort_unstable();
        let over = (self.silences.len() - ends.len()) as i64;
        match ends.first() {
            Some(first) => format!(
                "{}; the next ends {} UTC.",
                text::counted(ends.len() as i64, "silence holds", "silences hold"),
                text::brief(*first, self.as_of_s)
            ),
            None if over > 0 => format!(
                "Nothing is silenced now; {} in the last week.",
                text::counted(over, "silence ended", "silences ended")
            ),
            None => "Nothing is silenced.".to_owned(),
        }
    }
}

impl MaintenancePage {
    /// The answer in one sentence.
    fn answer(&self) -> String {
        let planned = text::counted(self.windows.len() as i64, "window is planned", "windows are planned");
        let now = self.windows.iter().filter(|one| one.holds).count() as i64;
        let next = self.windows.iter().flat_map(|one| &one.next).map(|(began, _)| *began);
        match (self.windows.len(), now, next.filter(|at| *at > self.as_of_s).min()) {
            (0, ..) => "No maintenance is planned.".to_owned(),
            (_, 1.., _) => format!("Planned work is going on now; {planned}."),
            (_, _, Some(at)) => format!("{planned}; the next begins {} UTC.", text::brief(at, self.as_of_s)),
            (_, _, None) => format!("{planned}, and none comes again."),
        }
    }
}

impl WaiversPage {
    /// The answer in one sentence.
    fn answer(&self) -> String {
        let covered: i64 = self.waivers.iter().map(|one| one.findings as i64).sum();
        match self.waivers.iter().map(|one| one.waiver.ends_s).min() {
            None => "No deviation is accepted.".to_owned(),
            Some(first) => format!(
                "{} {}; the next ends {} UTC.",
                text::counted(self.waivers.len() as i64, "waiver accepts", "waivers accept"),
                text::counted(covered, "open finding", "open findings"),
                text::brief(first, self.as_of_s)
            ),
        }
    }
}

/// What a matcher covers.
#[derive(Serialize)]
struct Preview {
    /// The matcher.
    matcher: String,
    /// Open alerts it covers, the newest first.
    alerts: Vec<Alert>,
}

async fn preview(state: &WebState, asked: Option<&str>) -> Result<Option<Preview>, Error> {
    let Some(text) = filled(asked) else { return Ok(None) };
    let matcher = matcher(text)?;
    let open = state.store.all_open_alerts(PREVIEWED).await?;
    let alerts = open.into_iter().filter(|alert| matcher.matches(&alert.facts)).collect();
    Ok(Some(Preview { matcher: text.to_owned(), alerts }))
}

/// A matcher that says something: nothing is kept quiet as a whole.
pub(crate) fn matcher(text: &str) -> Result<Matcher, Error> {
    let read = Matcher::parse(text)?;
    if read.is_empty() { Err(empty("match")) } else { Ok(read) }
}

fn number(field: &'static str, text: &str, most: i64) -> Result<i64, Error> {
    let read = text.trim().parse::<i64>().ok().filter(|n| (1..=most).contains(n));
    read.ok_or_else(|| Error::BadQuery { field, reason: format!("is no number from 1 to {most}") })
}

/// A form without fields of its own.
#[derive(Deserialize)]
pub struct Nothing {}

/// `GET /silences`
pub async fn silences(
    visit: Visit,
    State(state): State<WebState>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let silences = state.store.silences(visit.now).await?;
    let page = SilencesPage {
        frame: visit.framed(Place::Alerts),
        as_of_s: visit.now,
        silences: silences.into_iter().map(|silence| Silenced { holds: silence.holds(visit.now), silence }).collect(),
        preview: preview(&state, asked.r#match.as_deref()).await?,
    };
    visit.answer(&page, Cache::Fresh)
}

/// A silence as it is sent.
#[derive(Deserialize)]
pub struct NewSilence {
    r#match: String,
    reason: String,
    author: Option<String>,
    hours: String,
    calm_hours: Option<String>,
}

/// `POST /silences`
pub async fn add_silence(
    visit: Visit,
    State(state): State<WebState>,
    Acted { by: actor, form: sent }: Acted<NewSilence>,
) -> Result<Response, Error> {
    matcher(&sent.r#match)?;
    let hours = number("hours", &sent.hours, LONGEST_SILENCE_H)?;
    let calm =
        filled(sent.calm_hours.as_deref()).map(|text| number("calm_hours", text, LONGEST_SILENCE_H)).transpose()?;
    let silence = Silence {
        id: 0,
        matcher: sent.r#match.trim().to_owned(),
        reason: filled(Some(&sent.reason)).ok_or_else(|| empty("reason"))?.to_owned(),
        author: filled(sent.author.as_deref()).map_or_else(|| actor.name(), ToOwned::to_owned),
        origin: Origin::Ui,
        created_s: visit.now,
        starts_s: visit.now,
        ends_s: visit.now + hours * 3_600,
        calm_s: calm.map(|hours| hours * 3_600),
        matched_s: None,
        ended_s: None,
        is_told: false,
    };
    acting::add_silence(&state, &actor, silence).await?;
    Ok(Redirect::to("/silences").into_response())
}

/// `POST /silences/{id}/end`
pub async fn end_silence(
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
    Acted { by, .. }: Acted<Nothing>,
) -> Result<Response, Error> {
    acting::end_silence(&state, &by, id, visit.now).await?;
    Ok(Redirect::to("/silences").into_response())
}

/// All maintenance windows.
#[derive(Template, Serialize)]
#[template(path = "maintenance.html")]
struct MaintenancePage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// Each with its next three times.
    windows: Vec<Window>,
    /// What a matcher would cover now.
    preview: Option<Preview>,
}

/// A window and when it comes.
#[derive(Serialize)]
struct Window {
    /// The window.
    #[serde(flatten)]
    window: Maintenance,
    /// It holds now.
    holds: bool,
    /// How long it lasts, in words.
    lasts: String,
    /// The next beginnings and ends, in Unix seconds.
    next: Vec<(i64, i64)>,
}

/// `GET /maintenance`
pub async fn maintenance(
    visit: Visit,
    State(state): State<WebState>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let windows = state.store.maintenances(visit.now).await?;
    let windows = windows.into_iter().map(|window| Window {
        holds: zones::holds(&window, visit.now),
        lasts: crate::text::span(window.duration_s),
        next: zones::next_windows(&window, visit.now, 3),
        window,
    });
    let page = MaintenancePage {
        frame: visit.framed(Place::Alerts),
        as_of_s: visit.now,
        windows: windows.collect(),
        preview: preview(&state, asked.r#match.as_deref()).await?,
    };
    visit.answer(&page, Cache::Fresh)
}

/// A maintenance window as it is sent.
#[derive(Deserialize)]
pub struct NewMaintenance {
    title: String,
    r#match: String,
    author: Option<String>,
    zone: String,
    cron: Option<String>,
    starts: Option<String>,
    minutes: String,
}

/// `POST /maintenance`
pub async fn add_maintenance(
    visit: Visit,
    State(state): State<WebState>,
    Acted { by: actor, form: sent }: Acted<NewMaintenance>,
) -> Result<Response, Error> {
    matcher(&sent.r#match)?;
    let starts_s = match filled(sent.starts.as_deref()) {
        None => None,
        Some(text) => Some(chrono::DateTime::parse_from_rfc3339(text).map_err(|_| Error::BadQuery {
            field: "starts",
            reason: "is no moment such as 2026-12-01T22:00:00+01:00".to_owned(),
        })?),
    };
    let window = Maintenance {
        id: 0,
        title: filled(Some(&sent.title)).ok_or_else(|| empty("title"))?.to_owned(),
        matcher: sent.r#match.trim().to_owned(),
        author: filled(sent.author.as_deref()).map_or_else(|| actor.name(), ToOwned::to_owned),
        origin: Origin::Ui,
        zone: sent.zone.trim().to_owned(),
        starts_s: starts_s.map(|at| at.timestamp()),
        cron: filled(sent.cron.as_deref()).map(ToOwned::to_owned),
        duration_s: number("minutes", &sent.minutes, 7 * 24 * 60)? * 60,
        created_s: visit.now,
        ended_s: None,
    };
    acting::add_maintenance(&state, &actor, window).await?;
    Ok(Redirect::to("/maintenance").into_response())
}

/// `POST /maintenance/{id}/end`
pub async fn end_maintenance(
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
    Acted { by, .. }: Acted<Nothing>,
) -> Result<Response, Error> {
    acting::end_maintenance(&state, &by, id, visit.now).await?;
    Ok(Redirect::to("/maintenance").into_response())
}

/// All waivers.
#[derive(Template, Serialize)]
#[template(path = "waivers.html")]
struct WaiversPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// Those that end first, first, each with how many open findings it covers.
    waivers: Vec<Covering>,
    /// What one would cover.
    would: Option<WouldCover>,
    #[serde(skip)]
    rule: String,
    #[serde(skip)]
    matcher: String,
}

/// A waiver and what it covers.
#[derive(Serialize)]
struct Covering {
    /// The waiver.
    #[serde(flatten)]
    waiver: Waiver,
    /// Open findings that it covers.
    findings: usize,
}

/// What a waiver would cover.
#[derive(Serialize)]
pub(crate) struct WouldCover {
    /// Open findings.
    findings: usize,
    /// Of them the first, with rule and target.
    some: Vec<(i64, String, String)>,
}

/// Findings that a preview of a waiver looks at.
const WAIVED_PREVIEWED: i64 = 5_000;

/// The open findings that a waiver would cover.
pub(crate) async fn would_cover(state: &WebState, rule: &str, text: &str) -> Result<WouldCover, Error> {
    let matcher = matcher(text)?;
    let findings = state.store.waivable(rule, 0, WAIVED_PREVIEWED).await?;
    let covered: Vec<_> = findings.into_iter().filter(|one| matcher.matches(&one.facts)).collect();
    let first = |one: &plumbline_store::waived::Waivable| {
        one.facts.0.get("target").and_then(|keys| keys.first()).cloned().unwrap_or_default()
    };
    let some = covered.iter().take(25).map(|one| (one.id, one.rule.clone(), first(one))).collect();
    Ok(WouldCover { findings: covered.len(), some })
}

/// `GET /waivers`
pub async fn waivers(
    visit: Visit,
    State(state): State<WebState>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let covered = state.store.waived_findings().await?;
    let covering =
        |waiver: Waiver| Covering { findings: covered.values().filter(|id| **id == waiver.id).count(), waiver };
    let (rule, matcher) = (filled(asked.rule.as_deref()), filled(asked.r#match.as_deref()));
    let page = WaiversPage {
        frame: visit.framed(Place::Alerts),
        as_of_s: visit.now,
        waivers: state.store.waivers(visit.now).await?.into_iter().map(covering).collect(),
        would: match (rule, matcher) {
            (Some(rule), Some(matcher)) => Some(would_cover(&state, rule, matcher).await?),
            _ => None,
        },
        rule: rule.unwrap_or_default().to_owned(),
        matcher: matcher.unwrap_or_default().to_owned(),
    };
    visit.answer(&page, Cache::Fresh)
}

/// A waiver as it is sent.
#[derive(Deserialize)]
pub struct NewWaiver {
    rule: String,
    r#match: String,
    reason: String,
    author: Option<String>,
    days: String,
}

/// `POST /waivers`
pub async fn add_waiver(
    visit: Visit,
    State(state): State<WebState>,
    Acted { by: actor, form: sent }: Acted<NewWaiver>,
) -> Result<Response, Error> {
    matcher(&sent.r#match)?;
    let rule = filled(Some(&sent.rule)).ok_or_else(|| empty("rule"))?;
    let waiver = Waiver {
        id: 0,
        rule: rule.to_owned(),
        matcher: sent.r#match.trim().to_owned(),
        reason: filled(Some(&sent.reason)).ok_or_else(|| empty("reason"))?.to_owned(),
        author: filled(sent.author.as_deref()).map_or_else(|| actor.name(), ToOwned::to_owned),
        origin: Origin::Ui,
        created_s: visit.now,
        ends_s: visit.now + number("days", &sent.days, LONGEST_WAIVER_D)? * 86_400,
        ended_s: None,
    };
    acting::add_waiver(&state, &actor, waiver).await?;
    Ok(Redirect::to("/waivers").into_response())
}

/// `POST /waivers/{id}/end`
pub async fn end_waiver(
    visit: Visit,
    State(state): State<WebState>,
    Path(id): Path<i64>,
    Acted { by, .. }: Acted<Nothing>,
) -> Result<Response, Error> {
    acting::end_waiver(&state, &by, id, visit.now).await?;
    Ok(Redirect::to("/waivers").into_response())
}
