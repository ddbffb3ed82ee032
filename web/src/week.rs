//! Weeks as ISO 8601 counts them, Monday to Sunday, written `2026-w48`.

use chrono::{Datelike, NaiveDate, Weekday};

use crate::text;

/// One week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Week {
    year: i32,
    number: u32,
    /// Its Monday, as days since 1970-01-01.
    pub first_day: i64,
}

impl Week {
    /// The week that a day (days since 1970-01-01) lies in.
    #[must_use]
    pub fn of_day(day: i64) -> Self {
        let date = NaiveDate::from_epoch_days(i32::try_from(day).unwrap_or(0)).unwrap_or_default();
        let week = date.iso_week();
        let first_day = day - i64::from(date.weekday().num_days_from_monday());
        Self { year: week.year(), number: week.week(), first_day }
    }

    /// The week of that name; `None`: there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (year, number) = name.split_once("-w")?;
        let (year, number) = (year.parse::<i32>().ok()?, number.parse::<u32>().ok()?);
        if !(1970..=2200).contains(&year) {
            return None;
        }
        let monday = NaiveDate::from_isoywd_opt(year, number, Weekday::Mon)?;
        Some(Self { year, number, first_day: i64::from(monday.to_epoch_days()) })
    }

    /// As addresses name it.
    #[must_use]
    pub fn slug(&self) -> String {
        format!("{}-w{:02}", self.year, self.number)
    }

    /// As people name it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("Week {} of {}", self.number, self.year)
    }

    /// From when to when.
    #[must_use]
    pub fn span(&self) -> String {
        format!("{} to {}", text::date(self.first_day * 86_400), text::date((self.first_day + 6) * 86_400))
    }

    /// The week so many weeks later.
    #[must_use]
    pub fn later(&self, weeks: i64) -> Self {
        Self::of_day(self.first_day + weeks * 7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_monday_and_know_their_year() {
        let week = Week::of_day(20_787); // Monday, 30 November 2026
        assert_eq!((week.slug().as_str(), week.first_day), ("2026-w49", 20_787));
        assert_eq!(Week::named("2026-w49"), Some(week));
        assert_eq!(Week::of_day(20_793), week);
        assert_eq!(week.later(-1).slug(), "2026-w48");
        assert_eq!(Week::named("2026-w53").map(|week| week.later(1).slug()).as_deref(), Some("2027-w01"));
        for none in ["2026-w54", "2026", "x-w1", "2026-w0", "99999-w1"] {
            assert_eq!(Week::named(none), None, "{none}");
        }
    }
}
