//! Series in, geometry out. Templates turn the geometry into SVG, the stylesheet gives it colour.
//!
//! Shapes live in a nested SVG that is stretched to the width of the page; texts and flags stand outside it in percent, so
//! letters keep their size at every width and no script is needed. What was not measured is a hole, never a line across it.

use askama::Template;

use crate::filters;
use crate::text;

/// One value per day; `None` where nothing was measured.
pub type Daily = Vec<Option<i64>>;

/// One band of a stack or one line, from the first day on.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name at its end.
    pub name: &'static str,
    /// The class that gives its colour, without the `of-`.
    pub class: &'static str,
    /// From the first day to the last.
    pub values: Daily,
}

/// A mark on an axis: a place in percent or pixels, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Along the axis.
    pub at: f64,
    /// What stands there.
    pub label: String,
    /// `start`, `middle` or `end`.
    pub anchor: &'static str,
    /// Left out where there is little room.
    pub spare: bool,
}

/// A filled or stroked outline with its classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Space separated classes.
    pub class: String,
    /// SVG path data in days and pixels.
    pub d: String,
}

/// The name and last value of a series, at its height.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// Pixels from the top.
    pub y: f64,
    /// The name of the series.
    pub name: &'static str,
    /// Its last value, in words.
    pub value: String,
}

/// A stretch without data.
#[derive(Debug, Clone, PartialEq)]
pub struct Hole {
    /// Where it begins, in percent.
    pub x: f64,
    /// How wide it is, in percent.
    pub width: f64,
}

/// A chart over days, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "chart.html")]
pub struct Plot {
    /// Unique on the page; ties title and description to the drawing.
    pub id: &'static str,
    /// What is drawn, for people who hear it.
    pub title: String,
    /// What is to be seen.
    pub description: String,
    /// The first day, as days since 1970.
    pub first_day: i64,
    /// Whether each day has a column of its own, instead of a place on the line.
    pub is_bars: bool,
    /// Days across, at least 1: the width of the nested drawing.
    pub days: usize,
    /// The value axis.
    pub values: Vec<Tick>,
    /// The time axis.
    pub dates: Vec<Tick>,
    /// Where nothing was measured.
    pub holes: Vec<Hole>,
    /// Areas first, edges on top.
    pub shapes: Vec<Shape>,
    /// Names and last values.
    pub ends: Vec<End>,
    /// What a reader must know at a date, numbered from 1.
    pub flags: Vec<Flag>,
}

/// A numbered mark on the time axis; what it stands for is listed below the drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// Where, in percent.
    pub x: f64,
    /// Its number.
    pub number: usize,
    /// Which day that is.
    pub on: String,
    /// What happened, in few words.
    pub title: String,
}

impl askama::filters::HtmlSafe for Plot {}

/// From the top of the drawing to its floor, in pixels.
pub const FLOOR: f64 = 264.0;
/// Room above the highest value.
const CEILING: f64 = 24.0;
/// Baselines of two end labels are at least this far apart.
const LABEL_GAP: f64 = 18.0;

/// What a chart needs besides its series.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Unique on the page.
    pub id: &'static str,
    /// What is drawn.
    pub title: String,
    /// What is to be seen.
    pub description: String,
    /// The first day, as days since 1970.
    pub first_day: i64,
    /// Whether the last day is still running, and therefore dashed.
    pub is_last_day_open: bool,
}

/// Bands that add up, the first at the bottom.
#[must_use]
pub fn stacked(frame: Frame, series: &[Series]) -> Plot {
    let days = series.first().map_or(0, |s| s.values.len());
    let tops = running_sums(series, days);
    let highest = tops.last().into_iter().flatten().flatten().copied().max().unwrap_or(0);
    let scale = Scale::up_to(highest);
    let mut shapes = Vec::new();
    for (band, one) in series.iter().enumerate() {
        let floor: Daily = if band == 0 { vec![Some(0); days] } else { tops[band - 1].clone() };
        for run in runs(&tops[band]) {
            shapes.push(Shape { class: format!("area of-{}", one.class), d: area(&run, &tops[band], &floor, &scale) });
        }
    }
    for (band, one) in series.iter().enumerate() {
        shapes.extend(edges(one.class, &tops[band], &scale, frame.is_last_day_open));
    }
    let ends = series
        .iter()
        .enumerate()
        .filter_map(|(band, one)| {
            let value = last(&one.values)?;
            let top = last(&tops[band])?;
            (value > 0).then(|| End { y: scale.y(top - value / 2), name: one.name, value: text::number(value) })
        })
        .collect();
    plot(frame, days, scale.ticks(text::number), holes(&tops[0]), shapes, ends)
}

/// Lines of shares, in hundredths of a percent, from zero up.
#[must_use]
pub fn shares(frame: Frame, series: &[Series]) -> Plot {
    let days = series.first().map_or(0, |s| s.values.len());
    let highest = series.iter().flat_map(|s| &s.values).flatten().copied().max().unwrap_or(0);
    let scale = Scale::up_to(highest.max(100));
    let shapes = series.iter().flat_map(|s| edges(s.class, &s.values, &scale, frame.is_last_day_open)).collect();
    let ends = series
        .iter()
        .filter_map(|s| last(&s.values).map(|v| End { y: scale.y(v), name: s.name, value: percent(v) }))
        .collect();
    let measured = series.first().map(|s| s.values.clone()).unwrap_or_default();
    plot(frame, days, scale.ticks(percent), holes(&measured), shapes, ends)
}

/// Hundredths of a percent in words: `3.3 %`.
fn percent(hundredths: i64) -> String {
    text::share(hundredths, 10_000)
}

fn plot(frame: Frame, days: usize, values: Vec<Tick>, holes: Vec<Hole>, shapes: Vec<Shape>, ends: Vec<End>) -> Plot {
    let dates = dates(frame.first_day, days, frame.is_last_day_open);
    let (id, title, description) = (frame.id, frame.title, frame.description);
    Plot {
        id,
        title,
        description,
        first_day: frame.first_day,
        is_bars: false,
        days: days.saturating_sub(1).max(1),
        values,
        dates,
        holes,
        shapes,
        ends: parted(ends),
        flags: Vec::new(),
    }
}

/// Marks kept on one drawing; more would hide it.
const FLAGS: usize = 9;

impl Plot {
    /// Marks moments, given in Unix seconds with their words, on a chart of days whose first is `first_day`.
    #[must_use]
    pub fn flagged(mut self, first_day: i64, moments: &[(i64, String)]) -> Self {
        let width = self.days as f64;
        let mut within: Vec<(f64, &(i64, String))> = moments
            .iter()
            .map(|moment| ((moment.0 as f64 / 86_400.0 - first_day as f64) * 100.0 / width, moment))
            .filter(|(x, _)| (0.0..=100.0).contains(x))
            .collect();
        within.sort_by(|a, b| a.0.total_cmp(&b.0));
        let skipped = within.len().saturating_sub(FLAGS);
        let kept = within.into_iter().skip(skipped).enumerate();
        self.flags = kept
            .map(|(n, (x, (at, title)))| Flag {
                x,
                number: n + 1,
                on: text::day(at.div_euclid(86_400)),
                title: title.clone(),
            })
            .collect();
        self
    }
}

/// Bars that add up, one a day, the first series at the bottom.
#[must_use]
pub fn bars(frame: Frame, series: &[Series]) -> Plot {
    let days = series.first().map_or(0, |s| s.values.len());
    let tops = running_sums(series, days);
    let highest = tops.last().into_iter().flatten().flatten().copied().max().unwrap_or(0);
    let scale = Scale::up_to(highest);
    let mut shapes = Vec::new();
    for (band, one) in series.iter().enumerate() {
        let mut d = String::new();
        for (day, (top, value)) in tops[band].iter().zip(&one.values).enumerate() {
            let (Some(top), Some(value)) = (*top, *value) else { continue };
            if value > 0 {
                let (upper, lower) = (scale.y(top), scale.y(top - value));
                let (left, right) = (short(day as f64 + 0.14), short(day as f64 + 0.86));
                d.push_str(&format!("M{left} {}H{right}V{}H{left}Z", short(upper), short(lower)));
            }
        }
        if !d.is_empty() {
            shapes.push(Shape { class: format!("bar of-{}", one.class), d });
        }
    }
    // Beside bars stands what they add up to; the last of them is a day that has hardly begun.
    let ends = series
        .iter()
        .enumerate()
        .filter_map(|(band, one)| {
            let (value, top) = (last(&one.values)?, last(&tops[band])?);
            let sum: i64 = one.values.iter().flatten().sum();
            (sum > 0).then(|| End { y: scale.y(top - value / 2), name: one.name, value: text::number(sum) })
        })
        .collect();
    let mut dates = dates(frame.first_day, days, frame.is_last_day_open);
    for tick in dates.iter_mut().filter(|tick| tick.anchor == "middle") {
        tick.at += 50.0 / days.max(1) as f64;
    }
    Plot {
        id: frame.id,
        title: frame.title,
        description: frame.description,
        first_day: frame.first_day,
        is_bars: true,
        days: days.max(1),
        values: scale.ticks(text::number),
        dates,
        holes: Vec::new(),
        shapes,
        ends: parted(ends),
        flags: Vec::new(),
    }
}

/// The tops of the bands: each the sum of itself and all below it.
fn running_sums(series: &[Series], days: usize) -> Vec<Daily> {
    let mut sums: Vec<Daily> = Vec::with_capacity(series.len());
    for one in series {
        let below = sums.last();
        let top = (0..days).map(|day| Some(one.values[day]? + below.map_or(Some(0), |sums| sums[day])?)).collect();
        sums.push(top);
    }
    sums
}

/// Stretches of days with data.
fn runs(values: &Daily) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (day, value) in values.iter().chain([&None]).enumerate() {
        match (value, start) {
            (Some(_), None) => start = Some(day),
            (None, Some(from)) => {
                found.push(from..day);
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// A day alone has no width; it is drawn as a column of almost a day that stays within the chart. Where it is the only
/// day the column stands at the end, where its date and the names of the series are.
fn across(run: &std::ops::Range<usize>, days: usize) -> Vec<(f64, usize)> {
    let width = days.saturating_sub(1).max(1) as f64;
    match (run.len(), days) {
        (1, 1) => vec![(0.8, run.start), (1.0, run.start)],
        (1, _) => {
            let at = run.start as f64;
            vec![((at - 0.4).max(0.0), run.start), ((at + 0.4).min(width), run.start)]
        }
        _ => run.clone().map(|day| (day as f64, day)).collect(),
    }
}

fn area(run: &std::ops::Range<usize>, top: &Daily, floor: &Daily, scale: &Scale) -> String {
    let points = across(run, top.len());
    let upper = points.iter().map(|&(x, day)| (x, scale.y(top[day].unwrap_or(0))));
    let lower = points.iter().rev().map(|&(x, day)| (x, scale.y(floor[day].unwrap_or(0))));
    format!("{}Z", path(upper.chain(lower)))
}

/// The line along a series, its open last day apart.
fn edges(class: &str, values: &Daily, scale: &Scale, is_last_day_open: bool) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for run in runs(values) {
        let line =
            |points: &[(f64, usize)]| path(points.iter().map(|&(x, day)| (x, scale.y(values[day].unwrap_or(0)))));
        let points = across(&run, values.len());
        let is_open = is_last_day_open && run.end == values.len() && run.len() > 1;
        if is_open {
            let (closed, open) = (&points[..points.len() - 1], &points[points.len() - 2..]);
            if closed.len() > 1 {
                shapes.push(Shape { class: format!("edge of-{class}"), d: line(closed) });
            }
            shapes.push(Shape { class: format!("edge open of-{class}"), d: line(open) });
        } else {
            shapes.push(Shape { class: format!("edge of-{class}"), d: line(&points) });
        }
    }
    shapes
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (x, y) in points {
        d.push(if d.is_empty() { 'M' } else { 'L' });
        d.push_str(&format!("{} {}", short(x), short(y)));
    }
    d
}

/// One decimal, none where it is nought.
fn short(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded}")
}

fn holes(values: &Daily) -> Vec<Hole> {
    let days = values.len().saturating_sub(1).max(1) as f64;
    let empty: Daily = values.iter().map(|v| if v.is_some() { None } else { Some(0) }).collect();
    runs(&empty)
        .into_iter()
        .map(|run| {
            let from = (run.start as f64 - 1.0).max(0.0);
            let to = (run.end as f64).min(days);
            Hole { x: from * 100.0 / days, width: (to - from) * 100.0 / days }
        })
        .collect()
}

fn last(values: &Daily) -> Option<i64> {
    values.iter().rev().find_map(|v| *v)
}

/// Moves end labels apart where their series end close together, from the lowest up.
fn parted(mut ends: Vec<End>) -> Vec<End> {
    ends.sort_by(|a, b| b.y.total_cmp(&a.y));
    let mut below = f64::INFINITY;
    for end in &mut ends {
        end.y = end.y.min(below - LABEL_GAP);
        below = end.y;
    }
    ends
}

/// Values to pixels.
struct Scale {
    top: i64,
    step: i64,
}

impl Scale {
    /// A scale whose steps are 1, 2 or 5 times a power of ten and which ends at or above the highest value.
    fn up_to(highest: i64) -> Self {
        let highest = highest.max(1);
        let mut step = 1;
        'search: for power in 0..18 {
            for lead in [1, 2, 5] {
                step = lead * 10_i64.pow(power);
                if steps(highest, step) <= 5 {
                    break 'search;
                }
            }
        }
        Self { top: steps(highest, step) * step, step }
    }

    fn y(&self, value: i64) -> f64 {
        FLOOR - (value as f64) * (FLOOR - CEILING) / (self.top as f64)
    }

    fn ticks(&self, said: fn(i64) -> String) -> Vec<Tick> {
        (0..=self.top / self.step)
            .map(|n| n * self.step)
            .map(|value| Tick { at: self.y(value), label: said(value), anchor: "end", spare: false })
            .collect()
    }
}

/// How many steps reach a value.
fn steps(value: i64, step: i64) -> i64 {
    (value + step - 1) / step
}

/// Dates closer than this, in percent of the width, run into each other on a phone, where a chart is 168 pixels wide: one and a
/// half dates of some 40 pixels and a space.
const NARROW_GAP: f64 = 43.0;

/// At most seven dates: the first, the last, and even steps between; those that a phone has no room for are spare.
fn dates(first_day: i64, days: usize, is_last_day_open: bool) -> Vec<Tick> {
    let width = days.saturating_sub(1);
    let end = if is_last_day_open { "today".to_owned() } else { text::day(first_day + width as i64) };
    if width == 0 {
        return vec![Tick { at: 100.0, label: end, anchor: "end", spare: false }];
    }
    let step = [1, 2, 3, 5, 7, 15, 30, 61].into_iter().find(|step| width / step <= 6).unwrap_or(122);
    let mut ticks: Vec<Tick> = (0..width)
        .step_by(step)
        .filter(|day| *day == 0 || width - day >= step.div_ceil(2).max(width / 12))
        .map(|day| Tick {
            at: day as f64 * 100.0 / width as f64,
            label: text::day(first_day + day as i64),
            anchor: if day == 0 { "start" } else { "middle" },
            spare: false,
        })
        .collect();
    let mut kept = 0.0;
    for tick in ticks.iter_mut().skip(1) {
        tick.spare = tick.at - kept < NARROW_GAP || 100.0 - tick.at < NARROW_GAP;
        kept = if tick.spare { kept } else { tick.at };
    }
    ticks.push(Tick { at: 100.0, label: end, anchor: "end", spare: false });
    ticks
}

/// A value's course in passing, without axes.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "spark.html")]
pub struct Spark {
    /// Points across, at least 1.
    pub width: usize,
    /// The line.
    pub d: String,
    /// Height of the last point.
    pub end: f64,
}

impl askama::filters::HtmlSafe for Spark {}

/// A line through what was measured, between its own lowest and highest; nothing for fewer than three points.
#[must_use]
pub fn spark(values: &[i64]) -> Option<Spark> {
    if values.len() < 3 {
        return None;
    }
    let (low, high) = (*values.iter().min()?, *values.iter().max()?);
    let y = |v: i64| if high == low { 12.0 } else { 21.0 - (v - low) as f64 * 18.0 / (high - low) as f64 };
    let d = path(values.iter().enumerate().map(|(x, &v)| (x as f64, y(v))));
    Some(Spark { width: values.len() - 1, d, end: y(*values.last()?) })
}

/// The worst that was seen on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Day {
    /// Judged, no error.
    Sound,
    /// Judged, an error.
    Deviates,
    /// Judged, a client refuses it.
    Blocked,
    /// It gave no answer.
    Silent,
    /// It was there and was not judged.
    Unseen,
    /// Whatever was seen counts neither way: planned work, throttled, or our own fault.
    Apart,
    /// Not looked at.
    Blank,
}

impl Day {
    /// In words, for people who hear the strip.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Deviates => "deviates",
            Self::Blocked => "blocked",
            Self::Silent => "no answer",
            Self::Unseen => "not judged",
            Self::Apart => "counts neither way",
            Self::Blank => "not looked at",
        }
    }

    /// The outline of one cell. Height tells the states apart as colour does: full, notched, half, hollow, a foot.
    fn cell(self, x: usize, width: usize) -> String {
        let hollow = width.saturating_sub(1);
        match self {
            Self::Sound => format!("M{x} 0h{width}v24h-{width}z"),
            Self::Deviates => format!("M{x} 0h{width}v7h-{width}zM{x} 10h{width}v14h-{width}z"),
            Self::Blocked => format!("M{x} 12h{width}v12h-{width}z"),
            Self::Silent => format!("M{x}.5 1h{hollow}v22h-{hollow}z"),
            Self::Unseen => format!("M{x} 20h{width}v4h-{width}z"),
            Self::Apart => format!("M{x} 11h{width}v2h-{width}z"),
            Self::Blank => String::new(),
        }
    }
}

/// A row of days as one small drawing.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "strip.html")]
pub struct Strip {
    /// Whether it stands in a list, where cells are narrower.
    pub is_small: bool,
    /// Units across.
    pub width: usize,
    /// One shape for each state that occurs.
    pub shapes: Vec<Shape>,
    /// The same in words.
    pub words: String,
    /// The first day, as days since 1970.
    pub first_day: i64,
    /// Each stretch of days of one state, first to last: `40 sound,3 blocked`.
    pub runs: String,
}

impl askama::filters::HtmlSafe for Strip {}

/// Draws days, the first of which is `first_day`.
#[must_use]
pub fn strip(days: &[Day], first_day: i64, is_small: bool) -> Strip {
    let (cell, step) = if is_small { (2, 3) } else { (3, 4) };
    let shapes = [Day::Sound, Day::Deviates, Day::Blocked, Day::Silent, Day::Unseen, Day::Apart]
        .into_iter()
        .filter_map(|state| {
            let d: String = (0..days.len()).filter(|n| days[*n] == state).map(|n| state.cell(n * step, cell)).collect();
            (!d.is_empty()).then(|| Shape { class: format!("d-{}", state.class()), d })
        })
        .collect();
    let runs = days.chunk_by(|a, b| a == b).map(|run| format!("{} {}", run.len(), run[0].words()));
    Strip {
        is_small,
        width: (days.len() * step).saturating_sub(1),
        shapes,
        words: spoken(days, first_day),
        first_day,
        runs: runs.collect::<Vec<_>>().join(","),
    }
}

impl Day {
    fn class(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Deviates => "deviates",
            Self::Blocked => "blocked",
            Self::Silent => "silent",
            Self::Unseen => "unseen",
            Self::Apart => "apart",
            Self::Blank => "blank",
        }
    }
}

/// `deviates to 3 Nov, blocked from 4 Nov`: the newest five stretches, oldest first.
#[must_use]
pub fn spoken(days: &[Day], first_day: i64) -> String {
    let mut stretches: Vec<(Day, i64, i64)> = Vec::new();
    for (n, state) in days.iter().enumerate() {
        let day = first_day + n as i64;
        match stretches.last_mut() {
            Some((last, _, to)) if last == state => *to = day,
            _ => stretches.push((*state, day, day)),
        }
    }
    stretches.retain(|(state, ..)| *state != Day::Blank);
    let skipped = stretches.len().saturating_sub(5);
    let end = first_day + days.len() as i64 - 1;
    let words: Vec<String> = stretches[skipped..]
        .iter()
        .map(|&(state, from, to)| match (from, to) {
            _ if from == end => format!("{} today", state.words()),
            _ if to == end => format!("{} since {}", state.words(), text::day(from)),
            _ if from == to => format!("{} on {}", state.words(), text::day(from)),
            _ => format!("{} {} to {}", state.words(), text::day(from), text::day(to)),
        })
        .collect();
    if words.is_empty() { "not looked at yet".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame { id: "t", title: String::new(), description: String::new(), first_day: 20_000, is_last_day_open: true }
    }

    fn series(values: &[Option<i64>]) -> Series {
        Series { name: "Sound", class: "sound", values: values.to_vec() }
    }

    #[test]
    fn a_scale_ends_above_the_highest_value_in_few_round_steps() {
        for (highest, top, step) in [(0, 1, 1), (5, 5, 1), (7, 8, 2), (133, 150, 50), (20_114, 25_000, 5_000)] {
            let scale = Scale::up_to(highest);
            assert_eq!((scale.top, scale.step), (top, step), "up to {highest}");
        }
    }

    #[test]
    fn a_day_without_data_is_a_hole_and_no_line_crosses_it() {
        let plot = stacked(frame(), &[series(&[Some(5), Some(5), None, Some(5), Some(5)])]);
        assert_eq!(plot.holes, [Hole { x: 25.0, width: 50.0 }]);
        let areas: Vec<&str> =
            plot.shapes.iter().filter(|s| s.class.starts_with("area")).map(|s| s.d.as_str()).collect();
        assert_eq!(areas, ["M0 24L1 24L1 264L0 264Z", "M3 24L4 24L4 264L3 264Z"]);
    }

    #[test]
    fn bars_stand_on_each_other_and_flags_within_the_chart() {
        let plot = bars(frame(), &[series(&[Some(5), Some(0)]), series(&[Some(5), None])]);
        let drawn: Vec<&str> = plot.shapes.iter().map(|s| s.d.as_str()).collect();
        assert_eq!(drawn, ["M0.1 144H0.9V264H0.1Z", "M0.1 24H0.9V144H0.1Z"]);
        let ends: Vec<(&str, &str)> = plot.ends.iter().map(|end| (end.name, end.value.as_str())).collect();
        assert_eq!(ends, [("Sound", "5"), ("Sound", "5")], "the sum of the period, not the last day");
        assert!(bars(frame(), &[series(&[Some(0), Some(0)])]).ends.is_empty(), "what is 0 throughout is not named");
        let moments =
            [(20_001 * 86_400, "b".to_owned()), (19_000 * 86_400, "old".to_owned()), (20_000 * 86_400, "a".to_owned())];
        let flags = plot.flagged(20_000, &moments).flags;
        assert_eq!(
            flags.iter().map(|f| (f.number, f.on.as_str(), f.title.as_str(), f.x)).collect::<Vec<_>>(),
            [(1, "4\u{a0}Oct", "a", 0.0), (2, "5\u{a0}Oct", "b", 50.0)]
        );
    }

    #[test]
    fn a_single_day_is_a_column_and_not_nothing() {
        let plot = stacked(frame(), &[series(&[Some(5)])]);
        assert_eq!(plot.shapes[0].d, "M0.8 24L1 24L1 264L0.8 264Z");
        assert_eq!(plot.dates.len(), 1);
    }

    #[test]
    fn the_running_day_is_dashed() {
        let plot = stacked(frame(), &[series(&[Some(5), Some(5), Some(5)])]);
        let open: Vec<&str> = plot.shapes.iter().filter(|s| s.class.contains("open")).map(|s| s.d.as_str()).collect();
        assert_eq!(open, ["M1 24L2 24"]);
    }

    #[test]
    fn labels_at_one_height_are_moved_apart() {
        let ends = [100.0, 99.0, 98.0].map(|y| End { y, name: "x", value: String::new() });
        let places: Vec<f64> = parted(ends.to_vec()).iter().map(|e| e.y).collect();
        assert_eq!(places, [100.0, 82.0, 64.0]);
    }

    #[test]
    fn a_strip_says_in_words_what_it_shows() {
        let mut days = vec![Day::Sound; 90];
        days[0] = Day::Blank;
        days[88] = Day::Silent;
        days[89] = Day::Blocked;
        assert_eq!(spoken(&days, 20_000), "sound 5\u{a0}Oct to 30\u{a0}Dec, no answer on 31\u{a0}Dec, blocked today");
        assert_eq!(spoken(&[Day::Blank; 3], 20_000), "not looked at yet");
    }

    #[test]
    fn dates_on_a_phone_do_not_run_into_each_other() {
        for days in 2..=400 {
            let kept: Vec<Tick> = dates(20_000, days, true).into_iter().filter(|tick| !tick.spare).collect();
            // Where a label of 40 pixels begins and ends on a chart of 168.
            let ends = kept.iter().map(|tick| {
                let at = tick.at * 1.68;
                match tick.anchor {
                    "start" => (at, at + 40.0),
                    "middle" => (at - 20.0, at + 20.0),
                    _ => (at - 40.0, at),
                }
            });
            let ends: Vec<(f64, f64)> = ends.collect();
            assert!(ends.windows(2).all(|pair| pair[1].0 - pair[0].1 >= 8.0), "{days} days: {kept:?}");
        }
    }

    #[test]
    fn dates_never_crowd_the_end() {
        for days in 1..=400 {
            let ticks = dates(20_000, days, true);
            assert!(ticks.len() <= 8, "{days} days: {}", ticks.len());
            assert!(ticks.windows(2).all(|pair| pair[1].at - pair[0].at > 7.0), "{days} days: {ticks:?}");
        }
    }
}
