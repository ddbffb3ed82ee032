//! `/`: how the ecosystem is, what just broke, and what the crawler is doing about it.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::rule::{Axis, Class, Severity};
use plumbline_store::views::{CohortDay, CrawlRow, KindDay, OpenedRow, RuleTally, SourceRow};
use plumbline_store::words::{CrawlState, Headline, TargetKind};
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::chart::{self, Plot, Series, Spark};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::status::CrawlStatus;
use crate::text;
use crate::words;

/// Days the chart reaches back, today included.
const DAYS: i64 = 90;
/// Rows of the two short lists.
const SHORT: usize = 6;

/// How all targets stand.
#[derive(Template, Serialize)]
#[template(path = "overview.html")]
struct Overview {
    #[serde(skip)]
    frame: Frame,
    /// The moment the numbers hold for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// What stands beside it: what is counted and what could not be judged.
    beside: String,
    /// All targets at present, names counted, entries beside them.
    present: CohortDay,
    /// The same by kind of target.
    kinds: Vec<KindDay>,
    /// All targets by day, oldest first.
    days: Vec<CohortDay>,
    /// What opened last at targets that were looked at before.
    opened: Vec<OpenedRow>,
    /// The rules most surfaces fail.
    most_failed: Vec<FailedRule>,
    /// Where targets come from.
    sources: Vec<SourceRow>,
    /// The newest pass.
    last_crawl: Option<CrawlRow>,
    /// What the crawler is doing.
    crawler: CrawlStatus,
    #[serde(skip)]
    stage: Stage,
    #[serde(skip)]
    chart: Option<ChartOfDays>,
    #[serde(skip)]
    sound: Tile,
    #[serde(skip)]
    regressed: Tile,
    #[serde(skip)]
    down: Tile,
}

/// How far this installation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is known and nothing is running.
    Empty,
    /// Nothing could be judged, because nothing could be reached.
    Unreached,
    /// The first pass is running.
    First,
    /// Targets are known.
    Known,
}

/// A rule and how many surfaces fail it.
#[derive(Debug, Clone, Serialize)]
struct FailedRule {
    /// The rule and its numbers.
    #[serde(flatten)]
    tally: RuleTally,
    /// Its title.
    title: String,
    /// Of the rule in general.
    severity: Severity,
    #[serde(skip)]
    share: String,
}

/// A number with its course.
struct Tile {
    number: String,
    of: String,
    note: String,
    spark: Option<Spark>,
}

/// The stacked chart, its sentence and the table of the same numbers.
struct ChartOfDays {
    plot: Plot,
    caption: String,
    below: String,
    rows: Vec<CohortDay>,
}

impl ChartOfDays {
    fn flagged(self, notes: &[(i64, String)], first_day: i64) -> Self {
        Self { plot: self.plot.flagged(first_day, notes), ..self }
    }
}

/// `GET /`
pub async fn show(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let store = &state.store;
    let today = visit.now / 86_400;
    let days = store.cohort_days(today - DAYS + 1).await?;
    let kinds: Vec<KindDay> = store.kind_days().await?.into_iter().filter(|kind| kind.counts.targets > 0).collect();
    let crawler = state.status.borrow().clone();
    let last_crawl = store.crawls(i64::MAX, 1).await?.into_iter().next();
    let present = days.last().cloned().unwrap_or_default();
    let stage = stage(&present, &crawler, last_crawl.as_ref());
    let notes = super::notes(&state, "all", (today - DAYS) * 86_400).await?;
    let page = Overview {
        frame: visit.framed(Place::Overview),
        as_of_s: visit.now,
        answer: answer(stage, &days, &crawler, last_crawl.as_ref()),
        beside: [paused_said(store.paused_since().await?, visit.now), beside(&present, &kinds)].concat(),
        opened: store.last_opened(SHORT as i64).await?,
        most_failed: most_failed(&store.rule_tallies().await?),
        sources: store.sources_in_use().await?,
        sound: sound_tile(&days),
        regressed: regressed_tile(&days, today),
        down: down_tile(&days),
        chart: chart_of(&days, today).map(|chart| chart.flagged(&notes, days.first().map_or(today, |day| day.day))),
        stage,
        present,
        kinds,
        days,
        last_crawl,
        crawler,
    };
    visit.answer(&page, Cache::Fresh)
}

impl Overview {
    fn is_known(&self) -> bool {
        self.stage == Stage::Known
    }

    fn is_first(&self) -> bool {
        self.stage == Stage::First
    }

    /// Whether the page should look again by itself: only while a first pass fills it, or is about to.
    fn refreshes(&self) -> bool {
        let has_nothing_judged = self.present.targets == self.present.not_evaluated;
        self.stage == Stage::First || (self.stage == Stage::Known && has_nothing_judged)
    }

    /// How much of what was due the newest pass has looked at, or read where it was a walk.
    fn coverage(&self) -> String {
        self.last_crawl.as_ref().map_or_else(String::new, |crawl| match (crawl.planned, crawl.entries) {
            (0, 0) => "nothing was due".to_owned(),
            (0, entries) => format!("{} entries read", text::number(entries)),
            (planned, _) => format!("{} of what was due", text::share(crawl.done, planned)),
        })
    }
}

/// That nothing is looked at, before what is known.
fn paused_said(since_s: Option<i64>, now: i64) -> String {
    let said = |at: i64| format!("Everything is paused since {} UTC; nothing new is looked at. ", text::brief(at, now));
    since_s.map_or_else(String::new, said)
}

fn stage(present: &CohortDay, crawler: &CrawlStatus, last_crawl: Option<&CrawlRow>) -> Stage {
    let is_running = crawler.running.is_some() || last_crawl.is_some_and(|crawl| crawl.state == CrawlState::Running);
    if present.targets > present.not_evaluated {
        Stage::Known
    } else if is_running {
        Stage::First
    } else if !crawler.unreached.is_empty() || (present.targets == 0 && last_crawl.is_some()) {
        Stage::Unreached
    } else if present.targets > 0 {
        Stage::Known
    } else {
        Stage::Empty
    }
}

fn judged(day: &CohortDay) -> i64 {
    day.sound + day.deviates + day.blocked
}

fn answer(stage: Stage, days: &[CohortDay], crawler: &CrawlStatus, last_crawl: Option<&CrawlRow>) -> String {
    match stage {
        Stage::Empty => "There are no targets yet, and nothing is on its way.".to_owned(),
        Stage::Unreached => unreached_answer(days),
        Stage::First => first_answer(crawler, last_crawl),
        Stage::Known => known_answer(days),
    }
}

fn unreached_answer(days: &[CohortDay]) -> String {
    match days.last().map_or(0, |present| present.targets) {
        0 => "Nothing could be reached yet, so there is nothing to judge.".to_owned(),
        n => format!(
            "Nothing could be reached yet: {} known, and none could be judged.",
            text::counted(n, "target is", "targets are")
        ),
    }
}

fn first_answer(crawler: &CrawlStatus, last_crawl: Option<&CrawlRow>) -> String {
    let (listed, done, planned) = match (&crawler.running, last_crawl) {
        (Some(pass), _) => (pass.listed, pass.done, pass.planned),
        (None, Some(crawl)) => (crawl.entries, crawl.done, crawl.planned),
        (None, None) => (0, 0, 0),
    };
    if planned == 0 && listed == 0 {
        return "The first crawl has begun.".to_owned();
    }
    let read = if listed > 0 { format!("{} read, ", text::counted(listed, "entry", "entries")) } else { String::new() };
    format!(
        "The first crawl is running: {read}{} of {} looked at.",
        text::number(done),
        text::counted(planned, "surface", "surfaces")
    )
}

fn known_answer(days: &[CohortDay]) -> String {
    let Some(present) = days.last() else { return String::new() };
    let judged_now = judged(present);
    if judged_now == 0 {
        return format!(
            "{} known, and none could be judged yet.",
            text::counted(present.targets, "target is", "targets are")
        );
    }
    let week_ago = days.iter().rev().find(|day| day.day <= present.day - 7).filter(|day| judged(day) > 0);
    let moved = week_ago.map_or_else(String::new, |then| {
        let points = (present.sound as f64 / judged_now as f64 - then.sound as f64 / judged(then) as f64) * 100.0;
        match (points * 10.0).round() / 10.0 {
            0.0 => ", as many as a week ago".to_owned(),
            p if p > 0.0 => format!(", {p:.1}\u{a0}points more than a week ago"),
            p => format!(", {:.1}\u{a0}points fewer than a week ago", -p),
        }
    });
    let regressed = match present.regressed {
        0 => String::new(),
        n => format!(" {} regressed today.", text::opened(&text::counted(n, "finding", "findings"))),
    };
    format!(
        "{} of the {} we could judge are sound{moved}. {}.{regressed}",
        text::share(present.sound, judged_now),
        text::counted(judged_now, "target", "targets"),
        text::opened(&words::headline_claim(Headline::Blocked, present.blocked)),
    )
}

/// What is counted: names and cards; entries beside them, never among them. Then what could not be judged.
fn beside(present: &CohortDay, kinds: &[KindDay]) -> String {
    let counted: Vec<String> = kinds
        .iter()
        .map(|kind| {
            let words = words::counted_kind(kind.kind, kind.counts.targets);
            if kind.kind == TargetKind::McpServer && present.entries > 0 {
                format!("{words} (with {})", text::counted(present.entries, "entry", "entries"))
            } else {
                words
            }
        })
        .collect();
    let watched = if counted.is_empty() { String::new() } else { format!("We watch {}.", text::listed(&counted)) };
    let unjudged = present.not_evaluated + present.not_detected;
    let because = match (present.not_evaluated, present.not_detected) {
        (0, 0) => return watched,
        (silent, 0) => format!("{} gated, silent or new", if silent == 1 { "it is" } else { "they are" }),
        (0, other) => format!("{} what the listing says", if other == 1 { "it is not" } else { "they are not" }),
        (silent, other) => {
            format!(
                "{} gated, silent or new, and {} not what the listing says",
                text::number(silent),
                text::number(other)
            )
        }
    };
    format!("{watched} {} not be judged: {because}.", text::opened(&format!("{} could", text::number(unjudged))))
}

fn most_failed(tallies: &[RuleTally]) -> Vec<FailedRule> {
    let mut failed: Vec<FailedRule> = tallies
        .iter()
        .filter(|tally| tally.failing > 0)
        .filter_map(|tally| {
            let rule = catalogue::find(&tally.rule)?;
            let counts =
                rule.axis == Axis::Conformity && rule.class == Class::Finding && rule.severity != Severity::Info;
            counts.then(|| FailedRule {
                tally: tally.clone(),
                title: rule.title(),
                severity: rule.severity,
                share: text::share(tally.failing, tally.evaluated),
            })
        })
        .collect();
    failed.sort_by(|a, b| b.tally.failing.cmp(&a.tally.failing).then_with(|| a.tally.rule.cmp(&b.tally.rule)));
    failed.truncate(SHORT);
    failed
}

fn sound_tile(days: &[CohortDay]) -> Tile {
    let present = days.last().cloned().unwrap_or_default();
    let gained = days.iter().rev().find(|day| day.day <= present.day - 7).map(|then| present.sound - then.sound);
    let moved = match gained {
        None | Some(0) => String::new(),
        Some(n) if n > 0 => format!("+{} in 7 days; ", text::number(n)),
        Some(n) => format!("{} in 7 days; ", text::number(n)),
    };
    Tile {
        number: text::number(present.sound),
        of: format!("of {}", text::number(judged(&present))),
        note: format!(
            "{moved}{}, {}",
            words::headline_claim(Headline::Deviates, present.deviates),
            words::headline_claim(Headline::Blocked, present.blocked)
        ),
        spark: chart::spark(&last_month(days, |day| day.sound)),
    }
}

fn regressed_tile(days: &[CohortDay], today: i64) -> Tile {
    let of_today = days.last().filter(|day| day.day == today).map_or(0, |day| day.regressed);
    let of_week: i64 = days.iter().filter(|day| day.day > today - 7).map(|day| day.regressed).sum();
    let mended: i64 = days.iter().filter(|day| day.day > today - 7).map(|day| day.resolved).sum();
    Tile {
        number: text::number(of_today),
        of: String::new(),
        note: format!("{} in 7 days; {} mended", text::number(of_week), text::number(mended)),
        spark: chart::spark(&last_month(days, |day| day.regressed)),
    }
}

fn down_tile(days: &[CohortDay]) -> Tile {
    let present = days.last().cloned().unwrap_or_default();
    let note = match (present.gated, present.absent + present.throttled) {
        (0, 0) => "everything else that was tried answers".to_owned(),
        (gated, 0) => format!("{} gated", text::number(gated)),
        (gated, other) => format!("{} gated, {} absent or throttled", text::number(gated), text::number(other)),
    };
    Tile {
        number: text::number(present.down),
        of: if present.down > 0 { text::share(present.down, present.targets) } else { String::new() },
        note,
        spark: chart::spark(&last_month(days, |day| day.down)),
    }
}

fn last_month(days: &[CohortDay], value: fn(&CohortDay) -> i64) -> Vec<i64> {
    days[days.len().saturating_sub(30)..].iter().map(value).collect()
}

/// The stack over the days there are; `None` before anything was counted.
fn chart_of(days: &[CohortDay], today: i64) -> Option<ChartOfDays> {
    let (first, last) = (days.first()?, days.last()?);
    if last.targets == 0 {
        return None;
    }
    let length = usize::try_from(last.day - first.day + 1).ok()?;
    let daily = |value: fn(&CohortDay) -> i64| {
        let mut values = vec![None; length];
        for day in days {
            if let Some(place) = usize::try_from(day.day - first.day).ok().and_then(|n| values.get_mut(n)) {
                *place = Some(value(day));
            }
        }
        values
    };
    let series = [
        Series { name: "Sound", class: "sound", values: daily(|day| day.sound) },
        Series { name: "Deviates", class: "deviates", values: daily(|day| day.deviates) },
        Series { name: "Blocked", class: "blocked", values: daily(|day| day.blocked) },
        Series { name: "Not judged", class: "unjudged", values: daily(|day| day.not_evaluated + day.not_detected) },
    ];
    let period = format!("{} to {}", text::date(first.day * 86_400), text::date(last.day * 86_400));
    let frame = chart::Frame {
        id: "verdicts",
        title: format!("Targets by verdict, {period}"),
        description: described(first, last),
        first_day: first.day,
        is_last_day_open: last.day == today,
    };
    let missing = length - days.len();
    let below = format!(
        "Targets by verdict, per day: names and cards, not entries. {}{}",
        if first.targets == last.targets || length == 1 {
            String::new()
        } else {
            format!("They went from {} to {}. ", text::number(first.targets), text::number(last.targets))
        },
        if missing == 0 {
            String::new()
        } else {
            format!("On {} nothing was counted; nothing is filled in.", text::counted(missing as i64, "day", "days"))
        }
    );
    let rows = chosen_rows(days);
    Some(ChartOfDays { plot: chart::stacked(frame, &series), caption: caption(first, last), below, rows })
}

fn caption(first: &CohortDay, last: &CohortDay) -> String {
    if first.day == last.day {
        return format!(
            "This is the first day: {}, {} and {}.",
            words::headline_claim(Headline::Sound, last.sound),
            words::headline_claim(Headline::Deviates, last.deviates),
            words::headline_claim(Headline::Blocked, last.blocked)
        );
    }
    let moved = |name: &str, from: i64, to: i64| match to.cmp(&from) {
        std::cmp::Ordering::Greater => format!("{name} grew from {} to {}", text::number(from), text::number(to)),
        std::cmp::Ordering::Less => format!("{name} fell from {} to {}", text::number(from), text::number(to)),
        std::cmp::Ordering::Equal => format!("{name} stayed at {}", text::number(to)),
    };
    format!(
        "{} since {}; {}.",
        moved("Sound targets", first.sound, last.sound),
        text::day(first.day),
        moved("blocked ones", first.blocked, last.blocked)
    )
}

fn described(first: &CohortDay, last: &CohortDay) -> String {
    let at = |day: &CohortDay| {
        format!(
            "sound {}, deviates {}, blocked {}, not judged {}",
            text::number(day.sound),
            text::number(day.deviates),
            text::number(day.blocked),
            text::number(day.not_evaluated + day.not_detected)
        )
    };
    if first.day == last.day {
        format!("Stacked areas, one day: {}.", at(last))
    } else {
        format!("Stacked areas. At the beginning {}; at the end {}.", at(first), at(last))
    }
}

/// Every day of a short history; of a long one each seventh from the end, newest first.
fn chosen_rows(days: &[CohortDay]) -> Vec<CohortDay> {
    let step = if days.len() > 14 { 7 } else { 1 };
    days.iter().rev().step_by(step).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64, sound: i64, deviates: i64, blocked: i64, not_evaluated: i64) -> CohortDay {
        let targets = sound + deviates + blocked + not_evaluated;
        CohortDay { day, targets, sound, deviates, blocked, not_evaluated, ..CohortDay::default() }
    }

    #[test]
    fn the_answer_counts_only_what_was_judged() {
        assert_eq!(
            known_answer(&[day(1, 60, 30, 10, 900)]),
            "60\u{a0}% of the 100 targets we could judge are sound. 10 are blocked."
        );
        assert_eq!(known_answer(&[day(1, 0, 0, 0, 3)]), "3 targets are known, and none could be judged yet.");
    }

    #[test]
    fn the_answer_says_how_the_share_moved_in_a_week() {
        let answer = known_answer(&[day(1, 50, 50, 0, 0), day(8, 60, 40, 0, 0)]);
        assert!(answer.contains("10.0\u{a0}points more than a week ago"), "{answer}");
    }

    #[test]
    fn names_and_entries_stand_beside_each_other() {
        let present = CohortDay { entries: 159, not_evaluated: 21, ..day(1, 100, 33, 0, 21) };
        let kinds = [
            KindDay { kind: TargetKind::McpServer, counts: day(1, 133, 0, 0, 0) },
            KindDay { kind: TargetKind::A2aAgent, counts: day(1, 150, 0, 0, 0) },
        ];
        assert_eq!(
            beside(&present, &kinds),
            "We watch 133 names in MCP registries (with 159 entries) and 150 A2A agent cards. 21 could not be judged: they are \
             gated, silent or new."
        );
    }

    #[test]
    fn known_names_without_an_answer_are_no_ecosystem_yet() {
        let silent = crate::Unreached { what: String::new(), url: String::new(), why: String::new(), retry_at: None };
        let crawler = CrawlStatus { unreached: vec![silent], ..CrawlStatus::default() };
        let present = day(1, 0, 0, 0, 150);
        assert_eq!(stage(&present, &crawler, None), Stage::Unreached);
        assert_eq!(
            unreached_answer(&[present]),
            "Nothing could be reached yet: 150 targets are known, and none could be judged."
        );
        assert_eq!(stage(&day(1, 1, 0, 0, 149), &crawler, None), Stage::Known);
    }

    #[test]
    fn a_first_crawl_says_how_far_it_is() {
        let crawler = CrawlStatus {
            running: Some(crate::RunningPass {
                started_at: 0,
                activity: String::new(),
                listed: 1_200,
                planned: 1_500,
                done: 800,
            }),
            ..CrawlStatus::default()
        };
        assert_eq!(stage(&CohortDay::default(), &crawler, None), Stage::First);
        assert_eq!(
            first_answer(&crawler, None),
            "The first crawl is running: 1,200 entries read, 800 of 1,500 surfaces looked at."
        );
    }
}
