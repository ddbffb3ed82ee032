//! Probes of a day in eight bytes each, and a month of days in ten bytes each (the layouts stand in the migration).

use crate::reach::OutcomeClass;
use crate::words::{Headline, headline_rank};

/// Bytes of one packed probe.
pub const PROBE_BYTES: usize = 8;
/// Bytes of one packed day.
pub const DAY_BYTES: usize = 10;

/// One observation, as much of it as is kept for every single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Minute of the day, UTC.
    pub minute: u16,
    /// What came of it.
    pub outcome: OutcomeClass,
    /// The HTTP status; 0 where there was none.
    pub status: u16,
    /// How long it took; 65535 stands for that or longer.
    pub took_ms: u16,
    /// It was made to confirm a change.
    pub verification: bool,
    /// It found another document than the one before.
    pub document_changed: bool,
    /// A maintenance window was open.
    pub in_maintenance: bool,
    /// Rules could be judged.
    pub judged: bool,
}

impl Probe {
    /// Its eight bytes.
    #[must_use]
    pub fn pack(&self) -> [u8; PROBE_BYTES] {
        let flags = u8::from(self.verification)
            | u8::from(self.document_changed) << 1
            | u8::from(self.in_maintenance) << 2
            | u8::from(self.judged) << 3;
        let [m0, m1] = self.minute.to_be_bytes();
        let [s0, s1] = self.status.to_be_bytes();
        let [t0, t1] = self.took_ms.to_be_bytes();
        [m0, m1, outcome_number(self.outcome), s0, s1, t0, t1, flags]
    }

    /// Back from eight bytes; `None` for an outcome that nobody writes.
    #[must_use]
    pub fn unpack(bytes: [u8; PROBE_BYTES]) -> Option<Probe> {
        let [m0, m1, outcome, s0, s1, t0, t1, flags] = bytes;
        Some(Probe {
            minute: u16::from_be_bytes([m0, m1]),
            outcome: *OutcomeClass::ALL.get(usize::from(outcome))?,
            status: u16::from_be_bytes([s0, s1]),
            took_ms: u16::from_be_bytes([t0, t1]),
            verification: flags & 1 != 0,
            document_changed: flags & 2 != 0,
            in_maintenance: flags & 4 != 0,
            judged: flags & 8 != 0,
        })
    }
}

/// The probes of one `probe_day` row, oldest first.
pub fn probes(packed: &[u8]) -> impl Iterator<Item = Probe> + '_ {
    packed.chunks_exact(PROBE_BYTES).filter_map(|chunk| Probe::unpack(chunk.try_into().ok()?))
}

fn outcome_number(outcome: OutcomeClass) -> u8 {
    match outcome {
        OutcomeClass::Ok => 0,
        OutcomeClass::Gated => 1,
        OutcomeClass::Absent => 2,
        OutcomeClass::Unreachable => 3,
        OutcomeClass::Throttled => 4,
        OutcomeClass::Skipped => 5,
        OutcomeClass::CrawlerFault => 6,
    }
}

/// How bad an outcome is for the strip of a day: our own absence is the least of all.
fn badness(outcome: OutcomeClass) -> u8 {
    match outcome {
        OutcomeClass::Skipped => 0,
        OutcomeClass::CrawlerFault => 1,
        OutcomeClass::Ok => 2,
        OutcomeClass::Gated => 3,
        OutcomeClass::Throttled => 4,
        OutcomeClass::Absent => 5,
        OutcomeClass::Unreachable => 6,
    }
}

/// What is kept of a day for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    /// Observations that were answered, gates included, at most 255 told.
    pub answered: u8,
    /// Observations that were not.
    pub unreachable: u8,
    /// Observations that say nothing about uptime.
    pub neither: u8,
    /// Median time of the answered ones.
    pub median_ms: u16,
    /// 95th percentile of the answered ones.
    pub p95_ms: u16,
    /// The worst word of the day; `None` where it had none.
    pub headline: Option<Headline>,
    /// The worst outcome of the day.
    pub worst: OutcomeClass,
    /// We failed at some time of the day.
    pub crawler_fault: bool,
    /// It served another document at some time of the day.
    pub document_changed: bool,
    /// Work was planned on it at some time of the day; what was seen then counts for nothing.
    pub in_maintenance: bool,
}

impl Day {
    /// A day on which nobody asked and this word held all the same.
    #[must_use]
    pub fn held(headline: Headline) -> Day {
        Day {
            answered: 0,
            unreachable: 0,
            neither: 0,
            median_ms: 0,
            p95_ms: 0,
            headline: Some(headline),
            worst: OutcomeClass::Ok,
            crawler_fault: false,
            document_changed: false,
            in_maintenance: false,
        }
    }

    /// Sums up probes; `None` for none at all. `headline` is the worst word of the day.
    #[must_use]
    pub fn of(probes: impl IntoIterator<Item = Probe>, headline: Option<Headline>) -> Option<Day> {
        let all: Vec<_> = probes.into_iter().collect();
        if all.is_empty() {
            return None;
        }
        // What is seen during planned work is neither up nor down.
        let probes: Vec<_> = all.iter().filter(|probe| !probe.in_maintenance).copied().collect();
        let worst = probes.iter().map(|probe| probe.outcome).max_by_key(|outcome| badness(*outcome));
        let is_answer = |probe: &Probe| matches!(probe.outcome, OutcomeClass::Ok | OutcomeClass::Gated);
        let mut times: Vec<_> = probes.iter().filter(|probe| is_answer(probe)).map(|probe| probe.took_ms).collect();
        times.sort_unstable();
        let answered = times.len();
        let unreachable = probes.iter().filter(|probe| probe.outcome == OutcomeClass::Unreachable).count();
        Some(Day {
            answered: capped(answered),
            unreachable: capped(unreachable),
            neither: capped(all.len() - answered - unreachable),
            median_ms: quantile(&times, 50),
            p95_ms: quantile(&times, 95),
            headline,
            worst: worst.unwrap_or(OutcomeClass::Skipped),
            crawler_fault: all.iter().any(|probe| probe.outcome == OutcomeClass::CrawlerFault),
            document_changed: all.iter().any(|probe| probe.document_changed),
            in_maintenance: probes.len() < all.len(),
        })
    }

    /// Its ten bytes.
    #[must_use]
    pub fn pack(&self) -> [u8; DAY_BYTES] {
        let headline = self.headline.map_or(0, |headline| capped_rank(headline) + 1);
        let flags =
            u8::from(self.crawler_fault) | u8::from(self.document_changed) << 1 | u8::from(self.in_maintenance) << 2;
        let [m0, m1] = self.median_ms.to_be_bytes();
        let [p0, p1] = self.p95_ms.to_be_bytes();
        let worst = outcome_number(self.worst) + 1;
        [self.answered, self.unreachable, self.neither, m0, m1, p0, p1, headline, worst, flags]
    }

    /// Back from ten bytes; `None` for a day without a probe.
    #[must_use]
    pub fn unpack(bytes: [u8; DAY_BYTES]) -> Option<Day> {
        let [answered, unreachable, neither, m0, m1, p0, p1, headline, worst, flags] = bytes;
        let ranked = |rank: u8| Headline::ALL.iter().copied().find(|word| capped_rank(*word) == rank);
        Some(Day {
            answered,
            unreachable,
            neither,
            median_ms: u16::from_be_bytes([m0, m1]),
            p95_ms: u16::from_be_bytes([p0, p1]),
            headline: headline.checked_sub(1).and_then(ranked),
            worst: *OutcomeClass::ALL.get(usize::from(worst.checked_sub(1)?))?,
            crawler_fault: flags & 1 != 0,
            document_changed: flags & 2 != 0,
            in_maintenance: flags & 4 != 0,
        })
    }
}

/// Where a day stands: the month it belongs to (months since January 1970) and the day of that month, counted from 0.
#[must_use]
pub fn month_of(day: i64) -> (i64, usize) {
    use chrono::Datelike;
    let days = i32::try_from(day.clamp(-100_000, 1_000_000)).unwrap_or(0);
    let date = chrono::NaiveDate::from_epoch_days(days).unwrap_or_default();
    let month = (i64::from(date.year()) - 1970) * 12 + i64::from(date.month0());
    (month, date.day0() as usize)
}

/// Puts one day into a month's bytes, which may be empty.
pub(crate) fn put_day(days: &mut Vec<u8>, day_of_month: usize, day: &Day) {
    days.resize(31 * DAY_BYTES, 0);
    days[day_of_month * DAY_BYTES..][..DAY_BYTES].copy_from_slice(&day.pack());
}

/// The days of one `surface_month` row: 31 of them, `None` where nothing was probed.
pub fn days(packed: &[u8]) -> impl Iterator<Item = Option<Day>> + '_ {
    packed.chunks_exact(DAY_BYTES).map(|chunk| Day::unpack(chunk.try_into().ok()?))
}

fn capped(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

fn capped_rank(headline: Headline) -> u8 {
    u8::try_from(headline_rank(headline)).unwrap_or(u8::MAX - 1)
}

/// The value that this share of sorted values does not exceed (nearest rank); 0 for none.
fn quantile(sorted: &[u16], percent: usize) -> u16 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(outcome: OutcomeClass, took_ms: u16) -> Probe {
        Probe {
            minute: 1439,
            outcome,
            status: 503,
            took_ms,
            verification: true,
            document_changed: false,
            in_maintenance: false,
            judged: true,
        }
    }

    #[test]
    fn a_probe_comes_back_from_eight_bytes() {
        for outcome in OutcomeClass::ALL {
            let probe = probe(*outcome, 65_535);
            assert_eq!(Probe::unpack(probe.pack()), Some(probe));
        }
        assert_eq!(Probe::unpack([0, 0, 7, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_day_comes_back_from_ten_bytes() {
        let times = (1..=20).map(|n| probe(OutcomeClass::Ok, n * 10));
        let others = [probe(OutcomeClass::Unreachable, 1), probe(OutcomeClass::CrawlerFault, 1)];
        for headline in Headline::ALL.iter().copied().map(Some).chain([None]) {
            let day = Day::of(times.clone().chain(others), headline).unwrap();
            assert_eq!((day.answered, day.unreachable, day.neither), (20, 1, 1));
            assert_eq!((day.median_ms, day.p95_ms), (100, 190));
            assert_eq!(day.worst, OutcomeClass::Unreachable);
            assert!(day.crawler_fault);
            assert_eq!(Day::unpack(day.pack()), Some(day));
        }
        assert_eq!(Day::of([], None), None);
        assert_eq!(Day::unpack([0; DAY_BYTES]), None);
    }

    #[test]
    fn what_is_seen_during_planned_work_is_neither_up_nor_down() {
        let planned = |outcome| Probe { in_maintenance: true, ..probe(outcome, 900) };
        let both = [probe(OutcomeClass::Ok, 10), planned(OutcomeClass::Unreachable), planned(OutcomeClass::Ok)];
        let day = Day::of(both, None).unwrap();
        assert_eq!((day.answered, day.unreachable, day.neither, day.p95_ms), (1, 0, 2, 10));
        assert!(day.in_maintenance && day.worst == OutcomeClass::Ok);
        assert_eq!(Day::unpack(day.pack()), Some(day));
        let only = Day::of([planned(OutcomeClass::Unreachable)], None).unwrap();
        assert_eq!((only.answered, only.unreachable, only.neither, only.worst), (0, 0, 1, OutcomeClass::Skipped));
        assert_eq!(Day::unpack(only.pack()), Some(only), "a day of nothing else is a day all the same");
    }

    #[test]
    fn days_find_their_month() {
        assert_eq!(month_of(0), (0, 0));
        assert_eq!(month_of(31), (1, 0));
        assert_eq!(month_of(20_786), (682, 28)); // 29 November 2026
    }

    #[test]
    fn a_month_keeps_each_day_in_its_place() {
        let day = Day::of([probe(OutcomeClass::Ok, 5)], None).unwrap();
        let mut month = Vec::new();
        put_day(&mut month, 30, &day);
        assert_eq!(days(&month).collect::<Vec<_>>().iter().position(Option::is_some), Some(30));
        assert_eq!(days(&month).count(), 31);
    }
}
