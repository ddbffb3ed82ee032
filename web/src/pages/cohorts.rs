//! `/cohorts` and `/cohorts/{slug}`: how a group of targets does against all.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_store::views::{CohortDay, CohortRow, MustDay};
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::chart::{self, Plot, Series};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::pages::rules::family_words;
use crate::text;
use crate::words;

/// Days the charts reach back.
const DAYS: i64 = 90;

/// Every cohort.
#[derive(Template, Serialize)]
#[template(path = "cohorts.html")]
struct Cohorts {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// Every cohort with its present.
    cohorts: Vec<CohortRow>,
}

/// One cohort.
#[derive(Template, Serialize)]
#[template(path = "cohort.html")]
struct Cohort {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The cohort and its present.
    cohort: CohortRow,
    /// Its days, oldest first.
    days: Vec<CohortDay>,
    /// The conformance share per profile and family, newest day.
    shares: Vec<MustDay>,
    #[serde(skip)]
    chart: Option<(Plot, String)>,
    #[serde(skip)]
    rows: Vec<(CohortDay, String, String)>,
    #[serde(skip)]
    members_url: String,
}

/// `GET /cohorts`
pub async fn list(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let cohorts = state.store.cohorts().await?;
    let judged =
        |cohort: &&CohortRow| cohort.slug != "all" && cohort.present.as_ref().is_some_and(|day| judged(day) > 0);
    let best = cohorts.iter().filter(judged).max_by_key(|cohort| cohort.present.as_ref().map_or(0, share));
    let answer = match best {
        Some(best) => format!(
            "{} do best: {} of what could be judged there is sound.",
            best.title,
            text::share(
                best.present.as_ref().map_or(0, |day| day.sound),
                best.present.as_ref().map_or(0, judged_count)
            )
        ),
        None => "No cohort has a judged target yet.".to_owned(),
    };
    let page = Cohorts { frame: visit.framed(Place::Elsewhere), as_of_s: visit.now, answer, cohorts };
    visit.answer_rows(&page, &page.cohorts, Cache::Fresh)
}

fn judged(day: &CohortDay) -> i64 {
    day.sound + day.deviates + day.blocked
}

fn judged_count(day: &CohortDay) -> i64 {
    judged(day)
}

/// The share of sound ones, in hundredths of a percent.
fn share(day: &CohortDay) -> i64 {
    day.sound * 10_000 / judged(day).max(1)
}

/// `GET /cohorts/{slug}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(slug): Path<String>) -> Result<Response, Error> {
    let cohorts = state.store.cohorts().await?;
    let unknown = || Error::NotFound { what: "cohort", asked: slug.clone() };
    let cohort = cohorts.iter().find(|one| one.slug == slug).cloned().ok_or_else(unknown)?;
    let today = visit.now / 86_400;
    let days = state.store.days_of_cohort(cohort.id, today - DAYS + 1).await?;
    let all = state.store.cohort_days(today - DAYS + 1).await?;
    let must = state.store.must_days(cohort.id, today - 7).await?;
    let newest = must.iter().map(|day| day.day).max();
    let page = Cohort {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer: answer(&cohort, &all),
        chart: chart_of(&cohort, &days, &all, today),
        rows: table(&days, &all),
        shares: must.into_iter().filter(|day| Some(day.day) == newest).collect(),
        members_url: format!("/targets?q={}", text::query_escaped(&format!("cohort:{slug}"))),
        days,
        cohort,
    };
    visit.answer_rows(&page, &page.days, Cache::Fresh)
}

fn answer(cohort: &CohortRow, all: &[CohortDay]) -> String {
    let Some(present) = cohort.present.as_ref().filter(|day| judged(day) > 0) else {
        return format!("Nothing in “{}” could be judged yet.", cohort.title);
    };
    let of_all = all.last().filter(|day| judged(day) > 0 && cohort.slug != "all");
    let against = of_all.map_or_else(String::new, |all| {
        let points = (share(present) - share(all)) as f64 / 100.0;
        match (points * 10.0).round() as i64 {
            0 => ", as of all targets".to_owned(),
            n if n > 0 => format!(", {points:.1}\u{a0}points more than of all targets"),
            _ => format!(", {:.1}\u{a0}points fewer than of all targets", -points),
        }
    });
    format!(
        "{} of the {} we could judge among {} are sound{against}. {}.",
        text::share(present.sound, judged(present)),
        text::counted(judged(present), "target", "targets"),
        cohort.title,
        text::opened(&words::headline_claim(plumbline_store::words::Headline::Blocked, present.blocked))
    )
}

fn chart_of(cohort: &CohortRow, days: &[CohortDay], all: &[CohortDay], today: i64) -> Option<(Plot, String)> {
    let first = days.first()?.day.min(all.first()?.day);
    let length = usize::try_from(today - first + 1).ok()?;
    let line = |days: &[CohortDay]| {
        let mut values = vec![None; length];
        for day in days.iter().filter(|day| judged(day) > 0) {
            if let Some(place) = usize::try_from(day.day - first).ok().and_then(|n| values.get_mut(n)) {
                *place = Some(share(day));
            }
        }
        values
    };
    let mut series = vec![Series { name: "Here", class: "1", values: line(days) }];
    if cohort.slug != "all" {
        series.push(Series { name: "All", class: "2", values: line(all) });
    }
    let (then, now) = (days.iter().find(|day| judged(day) > 0)?, days.iter().rfind(|day| judged(day) > 0)?);
    let caption = format!(
        "Sound here: {} on {}, {} now.",
        text::share(then.sound, judged(then)),
        text::day(then.day),
        text::share(now.sound, judged(now))
    );
    let frame = chart::Frame {
        id: "against",
        title: "Share of judged targets that are sound, per day".to_owned(),
        description: caption.clone(),
        first_day: first,
        is_last_day_open: true,
    };
    Some((chart::shares(frame, &series), caption))
}

fn table(days: &[CohortDay], all: &[CohortDay]) -> Vec<(CohortDay, String, String)> {
    let step = if days.len() > 14 { 7 } else { 1 };
    days.iter()
        .rev()
        .step_by(step)
        .map(|day| {
            let other = all.iter().find(|one| one.day == day.day);
            let of_all = other.map_or_else(|| "–".to_owned(), |one| text::share(one.sound, judged(one)));
            (day.clone(), text::share(day.sound, judged(day)), of_all)
        })
        .collect()
}

impl Cohort {
    fn family<'n>(&self, name: &'n str) -> &'n str {
        family_words(name)
    }
}

impl Cohorts {
    fn sound(&self, day: &CohortDay) -> String {
        text::share(day.sound, judged(day))
    }
}
