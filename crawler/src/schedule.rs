//! When a surface is looked at next. Pure: time, luck and what happened come in.

use std::time::Duration;

use plumbline_rules::reach::Outcome;

/// How far from its interval a look may fall, so that what came together does not stay together.
const SPREAD: f64 = 0.1;

/// When to look next, in Unix seconds.
///
/// What answers is asked at its interval. What fails is asked twice as late with every failure in a row, up to the
/// ceiling. `luck` lies between 0 and 1.
pub fn next_look(now_s: i64, outcome: Outcome, failures: u32, interval: Duration, ceiling: Duration, luck: f64) -> i64 {
    let waits = match outcome {
        Outcome::Ok | Outcome::Gated(_) | Outcome::Skipped(_) => interval,
        // Our own fault says nothing about the target: it is asked again as if nothing had been tried.
        Outcome::CrawlerFault => interval.min(Duration::from_secs(300)),
        Outcome::Absent(_) | Outcome::Unreachable(_) | Outcome::Throttled => {
            let doublings = failures.saturating_sub(1).min(16);
            interval.saturating_mul(1 << doublings).min(ceiling.max(interval))
        }
    };
    let spread = 1.0 - SPREAD + 2.0 * SPREAD * luck.clamp(0.0, 1.0);
    now_s.saturating_add((waits.as_secs_f64() * spread).round() as i64).max(now_s + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumbline_rules::reach::Unreachable;

    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(86_400);

    fn wait(outcome: Outcome, failures: u32) -> i64 {
        next_look(1_000_000, outcome, failures, HOUR, DAY, 0.5) - 1_000_000
    }

    #[test]
    fn what_answers_is_asked_at_its_interval() {
        assert_eq!(wait(Outcome::Ok, 0), 3600);
        assert_eq!(next_look(0, Outcome::Ok, 0, HOUR, DAY, 0.0), 3240);
        assert_eq!(next_look(0, Outcome::Ok, 0, HOUR, DAY, 1.0), 3960);
    }

    #[test]
    fn what_fails_is_asked_ever_later_up_to_the_ceiling() {
        let down = Outcome::Unreachable(Unreachable::Refused);
        let waits: Vec<i64> = (1..=7).map(|failures| wait(down, failures)).collect();
        assert_eq!(waits, [3600, 7200, 14_400, 28_800, 57_600, 86_400, 86_400]);
        assert_eq!(wait(down, u32::MAX), 86_400);
    }

    #[test]
    fn our_own_fault_is_no_reason_to_wait() {
        assert_eq!(wait(Outcome::CrawlerFault, 9), 300);
    }

    #[test]
    fn an_interval_above_the_ceiling_is_kept() {
        let down = Outcome::Unreachable(Unreachable::Refused);
        assert_eq!(next_look(0, down, 3, DAY * 7, DAY, 0.5), 7 * 86_400);
    }
}
