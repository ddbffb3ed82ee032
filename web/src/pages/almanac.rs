//! `/almanac/{yyyy-mm}`: the state of agents and tool servers in one month: findings in words with their numbers, charts, tables.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{Datelike, Months, NaiveDate};
use plumbline_rules::catalogue;
use plumbline_rules::rule::{Axis, Class};
use plumbline_store::views::{CohortDay, Prevalence};
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::chart::{self, Plot, Series};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::pages::regressions::most_on;
use crate::text;

/// One month.
#[derive(Template, Serialize)]
#[template(path = "almanac.html")]
struct Almanac {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// `2026-11`
    month: String,
    /// The answer in one sentence.
    answer: String,
    /// Up to five findings, each with its numbers.
    findings: Vec<String>,
    /// Every day of the month that was counted, oldest first.
    days: Vec<CohortDay>,
    /// The ten most common failures at its end: rule, failing, judged, and the failing share at its beginning in words.
    rules: Vec<(String, i64, i64, String)>,
    #[serde(skip)]
    charts: Vec<(Plot, String, &'static str)>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    before: String,
    #[serde(skip)]
    after: Option<String>,
}

/// `GET /almanac`: the month that runs.
pub async fn newest(visit: Visit) -> Response {
    let date = date_of(visit.now / 86_400);
    Redirect::to(&format!("/almanac/{:04}-{:02}", date.year(), date.month())).into_response()
}

fn date_of(day: i64) -> NaiveDate {
    NaiveDate::from_epoch_days(i32::try_from(day).unwrap_or(0)).unwrap_or_default()
}

fn day_of(date: NaiveDate) -> i64 {
    i64::from(date.to_epoch_days())
}

/// The first days of a month and of the one after; `None`: it is no month.
fn month(name: &str) -> Option<(NaiveDate, NaiveDate)> {
    let (year, month) = name.split_once('-')?;
    let is_short = year.len() == 4 && month.len() == 2;
    let first = NaiveDate::from_ymd_opt(year.parse().ok()?, month.parse().ok()?, 1).filter(|_| is_short)?;
    Some((first, first.checked_add_months(Months::new(1))?))
}

/// The first day of a month, and that of the one after, as days since 1970; `None`: it is no month.
pub(crate) fn days_of(name: &str) -> Option<(i64, i64)> {
    month(name).map(|(first, next)| (day_of(first), day_of(next)))
}

fn slug(date: NaiveDate) -> String {
    format!("{:04}-{:02}", date.year(), date.month())
}

/// `GET /almanac/{yyyy-mm}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "month", asked: asked.clone() };
    let (first, next) = month(&asked).filter(|(first, _)| day_of(*first) <= visit.now / 86_400).ok_or_else(unknown)?;
    let (from, to) = (day_of(first), day_of(next));
    let mut days = state.store.cohort_days(from).await?;
    days.retain(|day| day.day < to);
    let start = state.store.prevalence(1, from).await?.map(|(_, rules)| rules).unwrap_or_default();
    let end =
        state.store.prevalence(1, (to - 1).min(visit.now / 86_400)).await?.map(|(_, rules)| rules).unwrap_or_default();
    let name = format!(
        "{} {}",
        [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December"
        ][first.month0() as usize],
        first.year()
    );
    let page = Almanac {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer: answer(&name, &days, to > visit.now / 86_400),
        findings: findings(&days, &start, &end, to > visit.now / 86_400),
        rules: rules(&start, &end),
        charts: charts(&days, from, visit.now / 86_400),
        month: slug(first),
        before: slug(first.checked_sub_months(Months::new(1)).unwrap_or(first)),
        after: (to <= visit.now / 86_400).then(|| slug(next)),
        name,
        days,
    };
    visit.answer_rows(&page, &page.days, Cache::Fresh)
}

fn judged(day: &CohortDay) -> i64 {
    day.sound + day.deviates + day.blocked
}

fn answer(name: &str, days: &[CohortDay], is_running: bool) -> String {
    let Some(last) = days.iter().rfind(|day| judged(day) > 0) else {
        return format!("In {name} nothing was judged{}.", if is_running { " so far" } else { "" });
    };
    let (when, were) =
        if is_running { (format!("So far in {name}"), "are") } else { (format!("At the end of {name}"), "were") };
    format!(
        "{when}, {} of {} judged targets {were} sound and {} blocked.",
        text::share(last.sound, judged(last)),
        text::number(judged(last)),
        text::share(last.blocked, judged(last))
    )
}

fn is_failure(rule: &str) -> bool {
    catalogue::find(rule).is_some_and(|rule| {
        rule.axis == Axis::Conformity
            && rule.class == Class::Finding
            && rule.severity != plumbline_rules::rule::Severity::Info
    })
}

fn findings(days: &[CohortDay], start: &[Prevalence], end: &[Prevalence], is_running: bool) -> Vec<String> {
    let mut said = Vec::new();
    let with_verdict: Vec<&CohortDay> = days.iter().filter(|day| judged(day) > 0).collect();
    if let (Some(first), Some(last)) = (with_verdict.first(), with_verdict.last()) {
        let [then, now] = [first, last].map(|day| text::share(day.sound, judged(day)));
        said.push(match then == now {
            true => format!("The share of sound targets stayed at {now}."),
            false => format!("The share of sound targets went from {then} to {now}."),
        });
        let (added, retired): (i64, i64) = days.iter().fold((0, 0), |(a, r), day| (a + day.added, r + day.retired));
        said.push(format!(
            "{} came and {} left; {} are watched.",
            text::opened(&text::counted(added, "target", "targets")),
            text::number(retired),
            text::number(last.targets)
        ));
        let (broke, mended): (i64, i64) = days.iter().fold((0, 0), |(b, m), day| (b + day.regressed, m + day.resolved));
        said.push(format!(
            "{} regressed and {} were mended.",
            text::opened(&text::counted(broke, "finding", "findings")),
            text::number(mended)
        ));
        let silent = last.down + last.absent;
        said.push(format!(
            "{} {}, and {} {} for credentials or payment.",
            text::opened(&text::counted(silent, "target", "targets")),
            match (is_running, silent) {
                (true, 1) => "does not answer now",
                (true, _) => "do not answer now",
                (false, _) => "did not answer at its end",
            },
            text::number(last.gated),
            match (is_running, last.gated) {
                (true, 1) => "asks",
                (true, _) => "ask",
                (false, _) => "asked",
            }
        ));
    }
    let moved = end.iter().filter(|rule| rule.evaluated >= 5 && is_failure(&rule.rule)).filter_map(|rule| {
        let then = start.iter().find(|one| one.rule == rule.rule && one.evaluated >= 5)?;
        Some((rule, share(rule) - share(then)))
    });
    if let Some((rule, moved)) = moved.max_by_key(|(_, moved)| moved.abs()).filter(|(_, moved)| moved.abs() >= 10) {
        let way = if moved > 0 { "rose" } else { "fell" };
        said.push(format!(
            "`{}` {way} most, by {:.1}\u{a0}points to {}.",
            rule.rule,
            moved.abs() as f64 / 100.0,
            text::share(rule.failing, rule.evaluated)
        ));
    }
    said
}

fn share(rule: &Prevalence) -> i64 {
    rule.failing * 10_000 / rule.evaluated.max(1)
}

fn rules(start: &[Prevalence], end: &[Prevalence]) -> Vec<(String, i64, i64, String)> {
    let mut failing: Vec<&Prevalence> = end.iter().filter(|rule| rule.failing > 0 && is_failure(&rule.rule)).collect();
    failing.sort_by(|a, b| b.failing.cmp(&a.failing).then_with(|| a.rule.cmp(&b.rule)));
    failing
        .into_iter()
        .take(10)
        .map(|rule| {
            let then = start.iter().find(|one| one.rule == rule.rule);
            let then = then.map_or_else(|| "not judged".to_owned(), |one| text::share(one.failing, one.evaluated));
            (rule.rule.clone(), rule.failing, rule.evaluated, then)
        })
        .collect()
}

fn charts(days: &[CohortDay], from: i64, today: i64) -> Vec<(Plot, String, &'static str)> {
    let Some(last) = days.last().filter(|_| days.iter().any(|day| day.targets > 0)) else { return Vec::new() };
    let length = usize::try_from(last.day - from + 1).unwrap_or(1);
    let daily = |value: fn(&CohortDay) -> i64| {
        let mut values = vec![None; length];
        for day in days {
            if let Some(place) = usize::try_from(day.day - from).ok().and_then(|n| values.get_mut(n)) {
                *place = Some(value(day));
            }
        }
        values
    };
    let frame = |id: &'static str, title: &str, description: &str| chart::Frame {
        id,
        title: title.to_owned(),
        description: description.to_owned(),
        first_day: from,
        is_last_day_open: last.day == today,
    };
    let verdicts = [
        Series { name: "Sound", class: "sound", values: daily(|day| day.sound) },
        Series { name: "Deviates", class: "deviates", values: daily(|day| day.deviates) },
        Series { name: "Blocked", class: "blocked", values: daily(|day| day.blocked) },
        Series { name: "Not judged", class: "unjudged", values: daily(|day| day.not_evaluated + day.not_detected) },
    ];
    let broke = [Series { name: "Regressed", class: "2", values: daily(|day| day.regressed) }];
    let mended = [Series { name: "Mended", class: "1", values: daily(|day| day.resolved) }];
    let broke_on: Vec<(i64, i64)> = days.iter().map(|day| (day.day, day.regressed)).collect();
    let broke_in_all: i64 = broke_on.iter().map(|(_, n)| n).sum();
    let busiest = most_on(&broke_on).map_or_else(
        || "Nothing regressed in this month.".to_owned(),
        |most| format!("{} regressed; {most}.", text::opened(&text::counted(broke_in_all, "finding", "findings"))),
    );
    let all: i64 = days.iter().map(|day| day.resolved).sum();
    vec![
        (
            chart::stacked(frame("verdicts", "Targets by verdict, per day", "Stacked areas."), &verdicts),
            format!(
                "{} watched {}.",
                text::opened(&text::counted(last.targets, "target", "targets")),
                if last.day == today { "now" } else { "at the end" }
            ),
            "Targets by verdict, per day.",
        ),
        (
            chart::bars(frame("broke", "Regressions per day", &busiest), &broke),
            busiest,
            "Findings that regressed, per day.",
        ),
        (
            chart::bars(frame("mended", "Findings mended per day", ""), &mended),
            format!("{} mended.", text::opened(&text::counted(all, "finding was", "findings were"))),
            "Findings that ended, per day.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64, sound: i64, deviates: i64) -> CohortDay {
        CohortDay { day, targets: sound + deviates, sound, deviates, ..CohortDay::default() }
    }

    #[test]
    fn a_month_that_runs_has_no_end_yet_and_a_level_share_stayed() {
        let days = [day(20_000, 3, 1), CohortDay { down: 1, absent: 1, ..day(20_001, 3, 1) }];
        assert!(answer("May 2026", &days, true).starts_with("So far in May 2026, 75\u{a0}%"));
        assert!(answer("May 2026", &days, false).starts_with("At the end of May 2026, 75\u{a0}%"));
        let said = findings(&days, &[], &[], true);
        assert_eq!(said[0], "The share of sound targets stayed at 75\u{a0}%.");
        assert_eq!(said[3], "2 targets do not answer now, and 0 ask for credentials or payment.");
        assert!(findings(&days, &[], &[], false)[3].starts_with("2 targets did not answer at its end"));
    }

    #[test]
    fn days_that_tie_are_not_told_as_one() {
        for (days, said) in [
            (vec![(20_000, 1), (20_001, 3)], Some("most, 3, on 5\u{a0}Oct")),
            (vec![(20_000, 1), (20_001, 1)], Some("most, 1 each, on 4\u{a0}Oct and 5\u{a0}Oct")),
            (vec![(20_000, 1), (20_001, 1), (20_002, 1)], Some("at most 1 on one day")),
            (vec![(20_000, 0)], None),
        ] {
            assert_eq!(most_on(&days).as_deref(), said, "{days:?}");
        }
    }

    #[test]
    fn a_month_without_targets_has_no_charts() {
        assert!(charts(&[CohortDay { day: 20_000, ..CohortDay::default() }], 20_000, 20_000).is_empty());
        assert_eq!(charts(&[day(20_000, 1, 0)], 20_000, 20_000).len(), 3);
    }

    #[test]
    fn months_are_read_or_refused() {
        assert_eq!(month("2026-12").map(|(_, next)| slug(next)).as_deref(), Some("2027-01"));
        for none in ["2026-13", "2026-1", "26-01", "x", "2026-00"] {
            assert_eq!(month(none), None, "{none}");
        }
    }
}
