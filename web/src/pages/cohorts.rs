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
    let is_judged =
        |cohort: &&CohortRow| cohort.slug != "all" && cohort.present.as_ref().is_some_and(|day| judged(day) > 0);
    let best = cohorts.iter().filter(is_judged).max_by_key(|cohort| cohort.present.as_ref().map_or(0, share));
    let answer = match best {
        Some(best) => {
            let present = best.present.clone().unwrap_or_default();
            format!(
                "{} do best: {} of the {} that could be judged there are sound.",
                text::opened(&said(best)),
                text::share(present.sound, judged(&present)),
                text::counted(judged(&present), "target", "targets")
            )
        }
        None => "No cohort has a judged target yet.".to_owned(),
    };
    let page = Cohorts { frame: visit.framed(Place::Elsewhere), as_of_s: visit.now, answer, cohorts };
    visit.answer_rows(&page, &page.cohorts, Cache::Fresh)
}

fn judged(day: &CohortDay) -> i64 {
    day.sound + day.deviates + day.blocked
}

/// A cohort inside a sentence: `targets on tides.example`.
fn said(cohort: &CohortRow) -> String {
    let (field, value) = cohort.query.split_once(':').unwrap_or_default();
    let value = text::visible(value, 80);
    match (field, cohort.slug.as_str()) {
        (_, "top-1000") => "the 1,000 names with the most versions".to_owned(),
        (_, "all") => "all targets".to_owned(),
        ("kind", "other") => "other addresses".to_owned(),
        ("source", _) => format!("targets listed in {value}"),
        ("profile", _) => format!("targets judged as {}", words::profile(&value)),
        ("host", _) => format!("targets on {value}"),
        ("owner", _) => format!("targets of {value}"),
        ("tag", _) => format!("targets tagged {value}"),
        ("added", _) => format!("targets first seen in {value}"),
        _ => text::visible(&cohort.title, 120),
    }
}

/// What the cohorts of one kind have in common, in the order of the page.
const KINDS: [(&str, &str); 7] = [
    ("kind", "By kind"),
    ("source", "By source"),
    ("profile", "By revision"),
    ("host", "By host"),
    ("owner", "By owner"),
    ("tag", "By tag"),
    ("added", "By month"),
];

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
        return format!("Of {} nothing could be judged yet.", said(cohort));
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
        said(cohort),
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
    /// The cohorts by what they have in common; the first group is everything, and what was named by hand.
    fn groups(&self) -> Vec<(&'static str, Vec<&CohortRow>)> {
        let field = |cohort: &CohortRow| match cohort.query.split_once(':') {
            Some((field, value)) if !value.contains(':') => field.to_owned(),
            _ => String::new(),
        };
        let is_known = |cohort: &&CohortRow| KINDS.iter().any(|(known, _)| *known == field(cohort));
        let mut groups =
            vec![("Everything, and chosen by hand", self.cohorts.iter().filter(|one| !is_known(one)).collect())];
        groups.extend(
            KINDS.map(|(kind, said)| (said, self.cohorts.iter().filter(|one| field(one) == kind).collect::<Vec<_>>())),
        );
        groups.retain(|(_, cohorts): &(_, Vec<_>)| !cohorts.is_empty());
        groups
    }

    fn name(&self, cohort: &CohortRow) -> String {
        text::opened(&said(cohort))
    }

    fn sound(&self, day: &CohortDay) -> String {
        text::share(day.sound, judged(day))
    }
}
