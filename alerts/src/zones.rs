//! Times as people plan them: maintenance windows, quiet hours and summaries, each in a zone of its own. Pure.
//!
//! A window that recurs is a cron line and a length; its beginning is computed in its own zone, so it stays at the same
//! hour on the wall over both changes of summer time.

use chrono::{DateTime, Datelike, Duration, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use plumbline_store::alerting::Maintenance;
use serde::{Deserialize, Serialize};

/// Beginnings that are looked at to find the window before a moment; two in a row may be far apart.
const LOOK_BACK_DAYS: i64 = 366;

/// Why a plan cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    /// The zone is none.
    #[error("`{0}` is no zone such as Europe/Berlin")]
    Zone(String),
    /// The cron line is none.
    #[error("`{0}` is no cron line of five fields such as `0 3 * * 0`")]
    Cron(String),
    /// The time is none.
    #[error("`{0}` is no time such as 22:30")]
    Time(String),
    /// Neither a beginning nor a cron line, or both.
    #[error("a window begins once or by a cron line")]
    Beginning,
    /// It lasts no time, or longer than a week.
    #[error("a window lasts between a minute and a week")]
    Length,
}

/// The zone of that name.
///
/// # Errors
/// [`BadPlan::Zone`].
pub fn zone(name: &str) -> Result<Tz, BadPlan> {
    name.parse().map_err(|_| BadPlan::Zone(name.to_owned()))
}

fn cron(line: &str) -> Result<Cron, BadPlan> {
    if line.split_whitespace().count() != 5 {
        return Err(BadPlan::Cron(line.to_owned()));
    }
    line.parse().map_err(|_| BadPlan::Cron(line.to_owned()))
}

/// Whether a window can be planned like this.
///
/// # Errors
/// What is wrong with it.
pub fn check(window: &Maintenance) -> Result<(), BadPlan> {
    zone(&window.zone)?;
    match (window.starts_s, &window.cron) {
        (Some(_), None) => {}
        (None, Some(line)) => {
            cron(line)?;
        }
        _ => return Err(BadPlan::Beginning),
    }
    if !(60..=7 * 86_400).contains(&window.duration_s) {
        return Err(BadPlan::Length);
    }
    Ok(())
}

/// The last window that began at or before a moment, as beginning and end in Unix seconds.
#[must_use]
pub fn last_window(window: &Maintenance, now_s: i64) -> Option<(i64, i64)> {
    let began = match (window.starts_s, &window.cron) {
        (Some(starts_s), _) => Some(starts_s).filter(|starts_s| *starts_s <= now_s),
        (None, Some(line)) => {
            let zone = zone(&window.zone).ok()?;
            let now = at(now_s)?.with_timezone(&zone);
            let found = cron(line).ok()?.find_previous_occurrence(&now, true).ok()?;
            Some(found.timestamp()).filter(|began| *began >= now_s - LOOK_BACK_DAYS * 86_400)
        }
        (None, None) => None,
    }?;
    // A window that was planned afterwards does not reach back.
    (began + window.duration_s > window.created_s).then_some((began, began + window.duration_s))
}

/// Whether a window holds at a moment.
#[must_use]
pub fn holds(window: &Maintenance, now_s: i64) -> bool {
    window.ended_s.is_none() && last_window(window, now_s).is_some_and(|(_, end)| now_s < end)
}

/// The next windows after a moment, as beginning and end in Unix seconds.
#[must_use]
pub fn next_windows(window: &Maintenance, now_s: i64, many: usize) -> Vec<(i64, i64)> {
    let ends = |began: i64| (began, began + window.duration_s);
    match (window.starts_s, &window.cron) {
        (Some(starts_s), _) => Some(starts_s).filter(|starts_s| *starts_s > now_s).map(ends).into_iter().collect(),
        (None, Some(line)) => {
            let (Ok(cron), Ok(zone), Some(now)) = (cron(line), zone(&window.zone), at(now_s)) else {
                return Vec::new();
            };
            cron.iter_after(now.with_timezone(&zone)).take(many).map(|began| ends(began.timestamp())).collect()
        }
        (None, None) => Vec::new(),
    }
}

/// Hours in which a route says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// Their zone.
    pub zone: String,
    /// `22:30`.
    pub from: String,
    /// `07:00`; before `from` it is the next morning's.
    pub to: String,
}

impl QuietHours {
    /// Whether they can be read.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self) -> Result<(), BadPlan> {
        zone(&self.zone)?;
        time(&self.from)?;
        time(&self.to)?;
        Ok(())
    }

    /// Whether they hold at a moment.
    #[must_use]
    pub fn hold(&self, now_s: i64) -> bool {
        let (Ok(zone), Ok(from), Ok(to), Some(now)) = (zone(&self.zone), time(&self.from), time(&self.to), at(now_s))
        else {
            return false;
        };
        let now = now.with_timezone(&zone).time();
        if from <= to { from <= now && now < to } else { now >= from || now < to }
    }
}

fn time(text: &str) -> Result<NaiveTime, BadPlan> {
    NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| BadPlan::Time(text.to_owned()))
}

/// When summaries come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    /// `daily` or `weekly` (on Mondays).
    pub every: Every,
    /// The reader's zone.
    pub zone: String,
    /// The hour there, 0 to 23.
    pub hour: u32,
}

plumbline_rules::words! {
    /// How often.
    pub enum Every {
        /// Every day.
        Daily = "daily",
        /// Every Monday.
        Weekly = "weekly",
    }
}

impl Digest {
    /// The first summary after a moment, in Unix seconds.
    #[must_use]
    pub fn next(&self, now_s: i64) -> Option<i64> {
        let zone = zone(&self.zone).ok()?;
        let now = at(now_s)?.with_timezone(&zone);
        (0..9)
            .map(|ahead| now.date_naive() + Duration::days(ahead))
            .filter(|day| self.every == Every::Daily || day.weekday() == chrono::Weekday::Mon)
            .filter_map(|day| {
                let hour = day.and_time(NaiveTime::from_hms_opt(self.hour.min(23), 0, 0)?);
                // An hour that the clock skips is the next moment that there is, on the next day too.
                (0..=4).find_map(|halves| zone.from_local_datetime(&(hour + Duration::minutes(30 * halves))).earliest())
            })
            .map(|local| local.timestamp())
            .find(|at_s| *at_s > now_s)
    }
}

fn at(at_s: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(at_s, 0)
}

#[cfg(test)]
mod tests {
    use plumbline_store::hooks::Origin;

    use super::*;

    fn window(cron: Option<&str>, starts_s: Option<i64>, zone: &str, duration_s: i64) -> Maintenance {
        Maintenance {
            id: 1,
            title: "work".to_owned(),
            matcher: String::new(),
            author: "me".to_owned(),
            origin: Origin::Ui,
            zone: zone.to_owned(),
            starts_s,
            cron: cron.map(ToOwned::to_owned),
            duration_s,
            created_s: 0,
            ended_s: None,
        }
    }

    fn s(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp()
    }

    #[test]
    fn a_window_stays_at_its_hour_over_both_changes_of_summer_time() {
        let nightly = window(Some("0 3 * * *"), None, "Europe/Berlin", 3_600);
        for (text, holds_then) in [
            ("2026-03-28T02:30:00Z", true),  // 03:30 in winter
            ("2026-03-29T01:30:00Z", true),  // 03:30 in summer, the night the clock was put forward
            ("2026-03-29T02:30:00Z", false), // 04:30
            ("2026-07-01T01:30:00Z", true),
            ("2026-10-24T01:30:00Z", true),
            ("2026-10-25T02:30:00Z", true),  // 03:30 in winter again
            ("2026-10-25T01:30:00Z", false), // 02:30, the second one
        ] {
            assert_eq!(holds(&nightly, s(text)), holds_then, "{text}");
        }
        let next: Vec<i64> = next_windows(&nightly, s("2026-03-28T12:00:00Z"), 2).iter().map(|w| w.0).collect();
        assert_eq!(next, [s("2026-03-29T01:00:00Z"), s("2026-03-30T01:00:00Z")]);
    }

    #[test]
    fn a_window_in_the_hour_that_is_skipped_or_comes_twice_is_held_once() {
        let skipped = window(Some("30 2 * * *"), None, "Europe/Berlin", 1_800);
        let spring = next_windows(&skipped, s("2026-03-28T12:00:00Z"), 1);
        assert!(spring[0].0 >= s("2026-03-29T01:00:00Z") && spring[0].0 <= s("2026-03-30T00:30:00Z"), "{spring:?}");
        let autumn: Vec<i64> = next_windows(&skipped, s("2026-10-24T12:00:00Z"), 3).iter().map(|w| w.0).collect();
        let on_the_25th = autumn.iter().filter(|began| **began < s("2026-10-25T23:00:00Z")).count();
        assert_eq!(on_the_25th, 1, "{autumn:?}");
    }

    #[test]
    fn the_zone_of_the_viewer_moves_nothing_and_a_restart_inside_a_window_finds_it() {
        let once = window(None, Some(s("2026-12-01T10:00:00Z")), "Asia/Tokyo", 7_200);
        assert!(!holds(&once, s("2026-12-01T09:59:59Z")));
        assert!(holds(&once, s("2026-12-01T11:00:00Z")));
        assert!(!holds(&once, s("2026-12-01T12:00:00Z")));
        assert_eq!(
            last_window(&once, s("2026-12-02T00:00:00Z")),
            Some((s("2026-12-01T10:00:00Z"), s("2026-12-01T12:00:00Z")))
        );
    }

    #[test]
    fn what_cannot_be_planned_is_named() {
        assert_eq!(check(&window(Some("0 3 * * *"), None, "Berlin", 60)), Err(BadPlan::Zone("Berlin".to_owned())));
        assert!(matches!(check(&window(Some("0 0 3 * * *"), None, "UTC", 60)), Err(BadPlan::Cron(_))));
        assert!(matches!(check(&window(Some("99 3 * * *"), None, "UTC", 60)), Err(BadPlan::Cron(_))));
        assert_eq!(check(&window(None, None, "UTC", 60)), Err(BadPlan::Beginning));
        assert_eq!(check(&window(None, Some(1), "UTC", 5)), Err(BadPlan::Length));
        assert_eq!(check(&window(None, Some(1), "America/New_York", 60)), Ok(()));
    }

    #[test]
    fn quiet_hours_pass_midnight() {
        let night = QuietHours { zone: "Europe/Berlin".into(), from: "22:00".into(), to: "07:00".into() };
        assert!(night.hold(s("2026-12-01T22:30:00Z")) && night.hold(s("2026-12-01T05:30:00Z")));
        assert!(!night.hold(s("2026-12-01T06:30:00Z")) && !night.hold(s("2026-12-01T12:00:00Z")));
        assert!(QuietHours { from: "25:00".into(), ..night }.check().is_err());
    }

    #[test]
    fn a_summary_comes_at_the_readers_hour() {
        let daily = Digest { every: Every::Daily, zone: "Europe/Berlin".into(), hour: 8 };
        assert_eq!(daily.next(s("2026-03-28T08:00:00Z")), Some(s("2026-03-29T06:00:00Z")));
        assert_eq!(daily.next(s("2026-10-24T08:00:00Z")), Some(s("2026-10-25T07:00:00Z")));
        let weekly = Digest { every: Every::Weekly, zone: "America/New_York".into(), hour: 7 };
        assert_eq!(weekly.next(s("2026-12-01T00:00:00Z")), Some(s("2026-12-07T12:00:00Z")));
        let skipped = Digest { every: Every::Daily, zone: "Europe/Berlin".into(), hour: 2 };
        assert_eq!(skipped.next(s("2026-03-28T12:00:00Z")), Some(s("2026-03-29T01:00:00Z")));
        // There the last hour of a day is skipped.
        let last = Digest { every: Every::Daily, zone: "America/Nuuk".into(), hour: 23 };
        assert_eq!(last.next(s("2026-03-28T12:00:00Z")), Some(s("2026-03-29T01:00:00Z")));
        assert_eq!(last.next(s("2026-03-29T12:00:00Z")), Some(s("2026-03-30T00:00:00Z")));
    }
}
