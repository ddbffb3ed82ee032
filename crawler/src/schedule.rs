//! When a surface is looked at next. Pure: time, luck and what happened come in.

use std::time::Duration;

use plumbline_rules::reach::Outcome;

/// How far from its wait a look at something that fails may fall, so that what came together does not stay together.
const SPREAD: f64 = 0.1;

/// What our own fault lets a surface wait, at most.
const AFTER_OUR_FAULT: Duration = Duration::from_secs(300);

/// When to look next, in Unix seconds.
///
/// What answers is asked once an interval, each surface at its own place in it: `place` in 0..1 is fixed for a surface, so
/// that looks are spread over the interval however they began. What fails is asked twice as late with every failure in a
/// row, up to the ceiling, a tenth earlier or later by `luck` in 0..1.
pub fn next_look(now_s: i64, outcome: Outcome, failures: u32, wait: Wait, place: f64, luck: f64) -> i64 {
    match outcome {
        Outcome::Ok | Outcome::Gated(_) | Outcome::Skipped(_) => next_place(now_s, wait.interval, place),
        // Our own fault says nothing about the target: it is asked again as if nothing had been tried.
        Outcome::CrawlerFault => later(now_s, wait.interval.min(AFTER_OUR_FAULT), luck),
        Outcome::Absent(_) | Outcome::Unreachable(_) | Outcome::Throttled => {
            let doublings = failures.saturating_sub(1).min(16);
            let longest = wait.ceiling.max(wait.interval);
            later(now_s, wait.interval.saturating_mul(1 << doublings).min(longest), luck)
        }
    }
}

/// How many regular looks have failed after failing for so long: the first at once, the second an interval later, the
/// third two intervals after that, and so on.
pub fn failures(failing_s: i64, interval: Duration) -> u32 {
    let intervals = u64::try_from(failing_s).unwrap_or(0) / interval.as_secs().max(1);
    1 + (intervals + 1).ilog2()
}

/// How long is waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Between two looks at what answers.
    pub interval: Duration,
    /// At most, for what fails.
    pub ceiling: Duration,
}

/// The place of a surface in its interval, the same for ever: numbers that follow each other land far apart.
pub fn place_of(surface: i64) -> f64 {
    // The golden ratio's multiples fill the circle evenly.
    (surface as f64 * 0.618_033_988_749_894_9).fract().abs()
}

/// The first moment at the surface's place that is at least half an interval away.
fn next_place(now_s: i64, interval: Duration, place: f64) -> i64 {
    let interval_s = i64::try_from(interval.as_secs()).unwrap_or(i64::MAX / 4).max(1);
    let place_s = (interval_s as f64 * place.clamp(0.0, 1.0)) as i64;
    let earliest = now_s.saturating_add((interval_s / 2).max(1));
    earliest.saturating_add((place_s - earliest).rem_euclid(interval_s))
}

fn later(now_s: i64, wait: Duration, luck: f64) -> i64 {
    let spread = 1.0 - SPREAD + 2.0 * SPREAD * luck.clamp(0.0, 1.0);
    now_s.saturating_add((wait.as_secs_f64() * spread).round() as i64).max(now_s.saturating_add(1))
}

/// Whether a pass that was planned for `next_s` is due. One planned further ahead than twice its interval was planned by a
/// clock that ran ahead.
pub fn is_due(next_s: Option<i64>, now_s: i64, interval_s: u64) -> bool {
    let interval_s = i64::try_from(interval_s).unwrap_or(i64::MAX / 4);
    next_s.is_none_or(|next| next <= now_s || next - now_s > interval_s.saturating_mul(2))
}

/// How many surfaces of one host are taken on at a time: enough to keep it asked at its pace until the next are taken.
pub fn per_host(pace: Duration) -> u32 {
    let in_hand = Duration::from_millis(2_500).as_millis() / pace.as_millis().max(1);
    u32::try_from(in_hand).unwrap_or(u32::MAX).clamp(4, 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumbline_rules::reach::Unreachable;

    const HOUR: u64 = 3600;
    const DAY: u64 = 86_400;
    const DOWN: Outcome = Outcome::Unreachable(Unreachable::Refused);

    fn wait(interval_s: u64) -> Wait {
        Wait { interval: Duration::from_secs(interval_s), ceiling: Duration::from_secs(DAY) }
    }

    fn after(outcome: Outcome, failures: u32) -> i64 {
        next_look(1_000_000, outcome, failures, wait(HOUR), 0.5, 0.5) - 1_000_000
    }

    #[test]
    fn what_answers_is_asked_once_an_interval_at_its_own_place() {
        let mut at = 1_000_000;
        let mut gaps = Vec::new();
        for _ in 0..4 {
            let next = next_look(at, Outcome::Ok, 0, wait(HOUR), 0.25, 0.0);
            gaps.push(next - at);
            assert_eq!(next.rem_euclid(3600), 900);
            // The look itself is a little late.
            at = next + 7;
        }
        assert!((1800..5400).contains(&gaps[0]), "{gaps:?}");
        assert!(gaps[1..].iter().all(|gap| (3590..=3600).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn surfaces_that_were_seen_together_are_spread_over_the_interval() {
        let mut quarters = [0; 4];
        for surface in 1..=10_000 {
            let next = next_look(0, Outcome::Ok, 0, wait(HOUR), place_of(surface), 0.0);
            quarters[(next.rem_euclid(3600) / 900) as usize] += 1;
        }
        assert!(quarters.iter().all(|n| (2400..2600).contains(n)), "{quarters:?}");
    }

    #[test]
    fn what_fails_is_asked_ever_later_up_to_the_ceiling() {
        let waits: Vec<i64> = (1..=7).map(|failures| after(DOWN, failures)).collect();
        assert_eq!(waits, [3600, 7200, 14_400, 28_800, 57_600, 86_400, 86_400]);
        assert_eq!(after(DOWN, u32::MAX), 86_400);
        assert_eq!(next_look(0, DOWN, 1, wait(HOUR), 0.5, 0.0), 3240);
        assert_eq!(next_look(0, DOWN, 1, wait(HOUR), 0.5, 1.0), 3960);
    }

    #[test]
    fn failures_are_counted_by_the_time_they_last() {
        let hours: Vec<u32> = [0, 1, 2, 3, 6, 7, 15].map(|n| failures(n * 3600, Duration::from_secs(HOUR))).to_vec();
        assert_eq!(hours, [1, 2, 2, 3, 3, 4, 5]);
        assert_eq!(failures(900, Duration::from_secs(HOUR)), 1, "four looks in a quarter of an hour are one failure");
        assert_eq!(failures(-5, Duration::from_secs(0)), 1);
    }

    #[test]
    fn our_own_fault_is_no_reason_to_wait() {
        assert_eq!(after(Outcome::CrawlerFault, 9), 300);
    }

    #[test]
    fn an_interval_above_the_ceiling_is_kept() {
        assert_eq!(next_look(0, DOWN, 3, wait(DAY * 7), 0.5, 0.5), 7 * 86_400);
    }

    #[test]
    fn a_plan_in_a_future_that_cannot_be_is_due() {
        assert!(is_due(None, 0, HOUR) && is_due(Some(5), 5, HOUR));
        assert!(!is_due(Some(3600), 0, HOUR));
        assert!(is_due(Some(86_400), 0, HOUR), "planned before the clock was set back");
    }

    #[test]
    fn a_host_has_enough_in_hand_for_its_pace_and_no_more() {
        let of = |ms| per_host(Duration::from_millis(ms));
        assert_eq!((of(600), of(100), of(0), of(60_000)), (4, 25, 64, 4));
    }
}
