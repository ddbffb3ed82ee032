//! `/targets/{id}/checks`: what the last probes did. Two weeks as a grid of hours and days, and the newest probes one by one.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plumbline_store::probes::Probe;
use plumbline_store::reach::OutcomeClass;
use plumbline_store::views::{ProbeDay, SurfaceRow, TargetDetail};
use serde::Serialize;

use super::tabs::{self, Tab, Tabs};
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::lanes::{Bar, Lane};
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Days of the grid: as long as single probes are kept.
const DAYS: i64 = 14;
/// Probes listed one by one.
const LISTED: usize = 48;

/// The probes of one target.
#[derive(Template, Serialize)]
#[template(path = "checks.html")]
struct Checks {
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
    /// The newest probes, newest first.
    probes: Vec<Listed>,
    #[serde(skip)]
    grids: Vec<Grid>,
}

/// One probe.
#[derive(Serialize)]
struct Listed {
    /// What was looked at.
    surface: &'static str,
    /// Unix seconds, to the minute.
    at_s: i64,
    /// What came of it.
    outcome: OutcomeClass,
    /// The HTTP status; `None`: there was none.
    status: Option<u16>,
    /// How long it took, in milliseconds, at most 65535.
    took_ms: u16,
    /// It was made to confirm a change.
    is_verification: bool,
    /// Another document came than before.
    document_changed: bool,
    /// A maintenance window was open.
    in_maintenance: bool,
}

/// Two weeks of one surface.
struct Grid {
    surface: i64,
    name: &'static str,
    url: String,
    caption: String,
    days: Vec<(String, Lane, String)>,
}

/// `GET /targets/{id}/checks`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    tabs::Asked(target): tabs::Asked,
) -> Result<Response, Error> {
    let today = visit.now / 86_400;
    let surfaces = state.store.target_surfaces(target.id).await?;
    let days = state.store.target_probe_days(target.id, today - DAYS + 1).await?;
    let page = Checks {
        frame: visit.framed(Place::Targets),
        tabs: Tabs::of(target.id, Tab::Checks),
        as_of_s: visit.now,
        answer: answer(&target, visit.now),
        probes: newest(&surfaces, &days),
        grids: surfaces.iter().filter_map(|surface| grid(surface, &days, today)).collect(),
        target,
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(target: &TargetDetail, now: i64) -> String {
    let last = target.last_attempt_s.map_or_else(
        || "It has not been looked at yet".to_owned(),
        |at| format!("The last look was {}", text::ago(at, now)),
    );
    let next = match target.next_due_s {
        Some(at) if at <= now => "; the next is due now".to_owned(),
        Some(at) => format!("; the next is due at {} UTC", text::brief(at, now)),
        None => "; no other is planned".to_owned(),
    };
    format!("{last}{next}.")
}

fn newest(surfaces: &[SurfaceRow], days: &[ProbeDay]) -> Vec<Listed> {
    let mut all: Vec<Listed> = days
        .iter()
        .flat_map(|day| {
            let surface = surfaces.iter().find(|surface| surface.id == day.surface_id);
            let surface = surface.map_or("Document", |surface| words::surface_kind(surface.kind));
            day.probes.iter().map(move |probe| listed(surface, day.day, probe))
        })
        .collect();
    all.sort_by_key(|probe| std::cmp::Reverse(probe.at_s));
    all.truncate(LISTED);
    all
}

fn listed(surface: &'static str, day: i64, probe: &Probe) -> Listed {
    Listed {
        surface,
        at_s: day * 86_400 + i64::from(probe.minute) * 60,
        outcome: probe.outcome,
        status: (probe.status != 0).then_some(probe.status),
        took_ms: probe.took_ms,
        is_verification: probe.verification,
        document_changed: probe.document_changed,
        in_maintenance: probe.in_maintenance,
    }
}

/// A row for each day, a cell for each hour in which anything was asked, the worst outcome of the hour.
fn grid(surface: &SurfaceRow, days: &[ProbeDay], today: i64) -> Option<Grid> {
    let of: Vec<&ProbeDay> = days.iter().filter(|day| day.surface_id == surface.id).collect();
    let probes: i64 = of.iter().map(|day| day.probes.len() as i64).sum();
    if probes == 0 {
        return None;
    }
    let failed: i64 = of.iter().map(|day| count(&day.probes, OutcomeClass::Unreachable)).sum();
    let planned: i64 = of.iter().map(|day| day.probes.iter().filter(|probe| probe.in_maintenance).count() as i64).sum();
    let faults: i64 = of.iter().map(|day| count(&day.probes, OutcomeClass::CrawlerFault)).sum();
    let rows = (today - DAYS + 1..=today).rev().map(|day| {
        let probes = of.iter().find(|one| one.day == day).map_or(&[][..], |one| &one.probes[..]);
        (text::day(day), hours(probes), text::number(probes.len() as i64))
    });
    let ours = match faults {
        0 => String::new(),
        n => format!(" {} by our own fault and count for nothing.", text::counted(n, "look failed", "looks failed")),
    };
    let planned = match planned {
        0 => String::new(),
        n => format!(" {} during planned work, which counts for nothing.", text::counted(n, "look was", "looks were")),
    };
    let caption = match failed {
        0 => format!("Each of {} in two weeks was answered.{ours}{planned}", text::counted(probes, "look", "looks")),
        n => format!(
            "{} of {} had no usable answer.{ours}{planned}",
            text::number(n),
            text::counted(probes, "look", "looks")
        ),
    };
    Some(Grid {
        surface: surface.id,
        name: words::surface_kind(surface.kind),
        url: surface.url.clone(),
        caption,
        days: rows.collect(),
    })
}

/// Looks of that outcome, those during planned work left out.
fn count(probes: &[Probe], outcome: OutcomeClass) -> i64 {
    probes.iter().filter(|probe| probe.outcome == outcome && !probe.in_maintenance).count() as i64
}

fn hours(probes: &[Probe]) -> Lane {
    let bars: Vec<Bar> = (0..24_u16)
        .filter_map(|hour| {
            let of_hour = probes.iter().filter(|probe| probe.minute / 60 == hour);
            let worst = of_hour.max_by_key(|probe| (!probe.in_maintenance, gravity(probe.outcome)))?;
            let class = if worst.in_maintenance { "l-plan" } else { outcome_class(worst.outcome) };
            let says = format!("{hour:02}:00 to {hour:02}:59");
            Some(Bar { class, x: f64::from(hour) * 100.0 / 24.0, width: 3.6, says })
        })
        .collect();
    let failed = count(probes, OutcomeClass::Unreachable);
    let words = match (probes.len(), failed) {
        (0, _) => "no look".to_owned(),
        (n, 0) => format!("{n} looks, none failed"),
        (n, failed) => format!("{n} looks, {failed} failed"),
    };
    Lane { bars, words }
}

/// Which outcome an hour shows, when there were several.
fn gravity(outcome: OutcomeClass) -> u8 {
    match outcome {
        OutcomeClass::Skipped => 0,
        OutcomeClass::Ok => 1,
        OutcomeClass::Gated => 2,
        OutcomeClass::Throttled => 3,
        OutcomeClass::CrawlerFault => 4,
        OutcomeClass::Absent => 5,
        OutcomeClass::Unreachable => 6,
    }
}

fn outcome_class(outcome: OutcomeClass) -> &'static str {
    match outcome {
        OutcomeClass::Ok => "l-up",
        OutcomeClass::Gated | OutcomeClass::Throttled => "l-gated",
        OutcomeClass::Absent => "l-part",
        OutcomeClass::Unreachable => "l-down",
        OutcomeClass::Skipped => "l-none",
        OutcomeClass::CrawlerFault => "l-fault",
    }
}

impl Listed {
    fn outcome_words(&self) -> &'static str {
        words::outcome(self.outcome)
    }

    /// What else is to be known of it.
    fn more(&self) -> String {
        let mut said = Vec::new();
        if self.is_verification {
            said.push("asked again to confirm a change");
        }
        if self.document_changed {
            said.push("another document came");
        }
        if self.in_maintenance {
            said.push("in a maintenance window");
        }
        said.join(", ")
    }
}
