//! Things that lasted, drawn as bars along one stretch of time: a lane each, one axis below. Positions are in percent, so a lane
//! fits every width; words stand in the table around it.

use askama::Template;

use crate::chart::Tick;
use crate::filters;
use crate::text;

/// The stretch of time all lanes of one figure share, in Unix seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Left end.
    pub from_s: i64,
    /// Right end.
    pub to_s: i64,
    /// The moment of the page: a window that ends there ends now.
    pub now_s: i64,
}

/// Something that lasted.
#[derive(Debug, Clone, PartialEq)]
pub struct Lasted {
    /// Its colour and form, as a class.
    pub class: &'static str,
    /// Unix seconds.
    pub from_s: i64,
    /// Unix seconds; `None`: it still lasts.
    pub to_s: Option<i64>,
}

/// A bar in percent of the width.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its class.
    pub class: &'static str,
    /// Where it begins.
    pub x: f64,
    /// How wide it is.
    pub width: f64,
    /// From when to when it lasted.
    pub says: String,
}

/// One lane, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "lane.html")]
pub struct Lane {
    /// Left to right, what lies on top last.
    pub bars: Vec<Bar>,
    /// What is to be seen, for people who hear it.
    pub words: String,
}

impl askama::filters::HtmlSafe for Lane {}

/// The dates below lanes.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "axis.html")]
pub struct Axis {
    /// Where they stand, in percent.
    pub dates: Vec<Tick>,
}

impl askama::filters::HtmlSafe for Axis {}

/// A bar is at least so wide, in percent, or nobody would see what lasted a minute of a year.
const THIN: f64 = 0.4;

impl Window {
    /// The last `days` days up to `now_s`, but not from before `first_s`; at least one day.
    #[must_use]
    pub fn up_to(now_s: i64, days: i64, first_s: i64) -> Self {
        let from_s = first_s.max(now_s - days * 86_400).min(now_s - 86_400);
        Self { from_s, to_s: now_s, now_s }
    }

    /// Percent from the left, within the window.
    #[must_use]
    pub fn place(&self, at_s: i64) -> f64 {
        let length = (self.to_s - self.from_s).max(1) as f64;
        ((at_s - self.from_s) as f64 * 100.0 / length).clamp(0.0, 100.0)
    }

    /// Draws what lasted within the window.
    #[must_use]
    pub fn lane(&self, lasted: &[Lasted], words: String) -> Lane {
        let bars = lasted
            .iter()
            .filter(|one| one.to_s.is_none_or(|to| to >= self.from_s) && one.from_s <= self.to_s)
            .map(|one| {
                let (left, right) = (self.place(one.from_s), self.place(one.to_s.unwrap_or(self.to_s)));
                let width = (right - left).max(THIN);
                let end = one.to_s.map_or_else(|| "now".to_owned(), |to| text::brief(to, self.now_s));
                let says = format!("{} to {end}", text::brief(one.from_s, self.now_s));
                Bar { class: one.class, x: left.min(100.0 - width), width, says }
            })
            .collect();
        Lane { bars, words }
    }

    /// How a moment of it is written: the day, or the time where the window is short.
    fn said(&self, at_s: i64) -> String {
        match (at_s >= self.now_s, (self.to_s - self.from_s) / 86_400) {
            (true, _) => "now".to_owned(),
            (false, ..3) => text::brief(at_s, self.now_s),
            (false, _) => text::day(at_s.div_euclid(86_400)),
        }
    }

    /// `16 Nov to now`: the head of a column of lanes, and the label of one where the axis has no room.
    #[must_use]
    pub fn period(&self) -> String {
        format!("{} to {}", self.said(self.from_s), self.said(self.to_s))
    }

    /// Four dates at most, the ends among them.
    #[must_use]
    pub fn axis(&self) -> Axis {
        let parts = if (self.to_s - self.from_s) / 86_400 >= 9 { 3 } else { 1 };
        let dates = (0..=parts)
            .map(|n| {
                let at = self.from_s + (self.to_s - self.from_s) * n / parts;
                let (label, anchor) = match n {
                    0 => (self.said(at), "start"),
                    n if n == parts => (self.said(at), "end"),
                    _ => (self.said(at), "middle"),
                };
                Tick { at: n as f64 * 100.0 / parts as f64, label, anchor, spare: n == 1 && parts == 3 }
            })
            .collect();
        Axis { dates }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn lasted(from_s: i64, to_s: Option<i64>) -> Lasted {
        Lasted { class: "open", from_s, to_s }
    }

    #[test]
    fn bars_stay_within_the_window_and_can_be_seen() {
        let window = Window { from_s: 100 * DAY, to_s: 200 * DAY, now_s: 200 * DAY };
        let rows = [
            (lasted(0, Some(50 * DAY)), None),
            (lasted(50 * DAY, Some(150 * DAY)), Some((0.0, 50.0))),
            (lasted(150 * DAY, None), Some((50.0, 50.0))),
            (lasted(120 * DAY, Some(120 * DAY + 60)), Some((20.0, THIN))),
            (lasted(200 * DAY, None), Some((100.0 - THIN, THIN))),
            (lasted(201 * DAY, None), None),
        ];
        for (one, expected) in rows {
            let lane = window.lane(std::slice::from_ref(&one), String::new());
            let drawn = lane.bars.first().map(|bar| ((bar.x * 10.0).round() / 10.0, (bar.width * 10.0).round() / 10.0));
            assert_eq!(drawn, expected, "{one:?}");
        }
    }

    #[test]
    fn a_window_is_never_without_width_and_its_ends_are_named() {
        let window = Window::up_to(10 * DAY, 90, 10 * DAY - 5);
        assert_eq!(window.to_s - window.from_s, DAY);
        let axis = Window::up_to(200 * DAY, 90, 0).axis();
        assert_eq!((axis.dates.len(), axis.dates[3].label.as_str()), (4, "now"));
    }

    #[test]
    fn a_window_that_is_over_ends_with_its_time_and_says_its_day() {
        let now_s = 1_796_062_020; // 30 Nov 2026, 18:07 UTC
        let hours = |n: i64| now_s - n * 3_600;
        let over = Window { from_s: hours(50), to_s: hours(49), now_s };
        let labels: Vec<String> = over.axis().dates.into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["28\u{a0}Nov, 16:07", "28\u{a0}Nov, 17:07"]);
        assert_eq!(over.period(), "28\u{a0}Nov, 16:07 to 28\u{a0}Nov, 17:07");
        let lasted = Lasted { class: "open", from_s: hours(50), to_s: Some(hours(49)) };
        assert_eq!(over.lane(&[lasted], String::new()).bars[0].says, over.period());
        let goes_on = Window { from_s: hours(1), to_s: now_s, now_s };
        assert_eq!(goes_on.period(), "17:07 to now");
        assert_eq!(Window::up_to(now_s, 14, 0).period(), "16\u{a0}Nov to now");
    }
}
