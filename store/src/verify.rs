//! Verification: after news, a surface is looked at again out of turn, so that what is true is told within minutes and
//! what was a hiccup is never told.
//!
//! Three looks at most, one, five and fifteen minutes after the news (dashboard §3); when they settled nothing, the next
//! regular look goes on counting. What is planned is pure; the crawler keeps the budget.

/// How long after the news the looks come, in seconds.
const AFTER_S: [i64; 3] = [60, 300, 900];
/// How much earlier or later, as a share.
const SPREAD: f64 = 0.2;
/// The least pause between two looks, in seconds, when the first came late.
const PAUSE_S: i64 = 30;
/// A look later than this after the news is a regular one, whatever it was planned as: the program stood still meanwhile.
const LATEST_S: i64 = 1800;

/// News that is being confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Episode {
    /// Which look out of turn is due: 1, 2 or 3.
    pub(crate) n: i64,
    /// The look that brought the news, in Unix seconds.
    pub(crate) from_s: i64,
}

impl Episode {
    /// As it is kept: number 0 is none.
    pub(crate) fn of(n: i64, from_s: Option<i64>) -> Option<Episode> {
        from_s.filter(|_| n > 0).map(|from_s| Episode { n, from_s })
    }

    /// Whether a look now is one out of turn.
    pub(crate) fn is_out_of_turn(self, now_s: i64) -> bool {
        (0..=LATEST_S).contains(&(now_s - self.from_s))
    }
}

/// When a surface is looked at next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// `None` takes it off the schedule.
    pub(crate) next_due_s: Option<i64>,
    /// The look is out of turn.
    pub(crate) episode: Option<Episode>,
}

/// Plans the next look. `wants`: something is unconfirmed and another look may be afforded.
pub(crate) fn plan(before: Option<Episode>, wants: bool, surface: i64, at_s: i64, regular_s: Option<i64>) -> Plan {
    let regular = Plan { next_due_s: regular_s, episode: None };
    let (true, Some(regular_s)) = (wants, regular_s) else { return regular };
    let before = before.filter(|episode| episode.is_out_of_turn(at_s));
    let from_s = before.map_or(at_s, |episode| episode.from_s);
    let n = before.map_or(0, |episode| episode.n);
    let Some(after_s) = usize::try_from(n).ok().and_then(|n| AFTER_S.get(n)) else { return regular };
    let due_s = from_s.saturating_add(spread(*after_s, surface, from_s)).max(at_s.saturating_add(PAUSE_S));
    if due_s >= regular_s {
        return regular;
    }
    Plan { next_due_s: Some(due_s), episode: Some(Episode { n: n + 1, from_s }) }
}

/// A fifth earlier or later, by surface and moment, so that what failed together is not asked together.
fn spread(seconds: i64, surface: i64, from_s: i64) -> i64 {
    // The golden ratio's multiples fill the circle evenly.
    let luck = ((surface.wrapping_mul(31).wrapping_add(from_s)) as f64 * 0.618_033_988_749_894_9).fract().abs();
    (seconds as f64 * (1.0 - SPREAD + 2.0 * SPREAD * luck)).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    #[test]
    fn three_looks_come_within_a_quarter_of_an_hour_and_then_the_regular_one() {
        for surface in 1..200 {
            let (mut episode, mut at, mut looks) = (None, 1_000_000, Vec::new());
            loop {
                let plan = plan(episode, true, surface, at, Some(1_000_000 + HOUR));
                at = plan.next_due_s.unwrap();
                episode = plan.episode;
                if episode.is_none() {
                    break;
                }
                looks.push(at - 1_000_000);
            }
            let [first, second, third] = looks[..] else { panic!("{looks:?}") };
            assert!((48..=72).contains(&first) && (240..=360).contains(&second), "{looks:?}");
            assert!((720..=1080).contains(&third) && at == 1_000_000 + HOUR, "{looks:?}");
        }
    }

    #[test]
    fn nothing_is_planned_without_need_or_for_what_is_not_scheduled() {
        let regular = Plan { next_due_s: Some(99), episode: None };
        assert_eq!(plan(None, false, 1, 0, Some(99)), regular);
        assert_eq!(plan(None, true, 1, 0, None), Plan { next_due_s: None, episode: None });
        assert_eq!(plan(None, true, 1, 60, Some(99)), regular, "the regular look comes first");
    }

    #[test]
    fn a_look_long_after_the_news_is_a_regular_one() {
        let episode = Episode { n: 1, from_s: 0 };
        assert!(episode.is_out_of_turn(70) && !episode.is_out_of_turn(2 * HOUR) && !episode.is_out_of_turn(-5));
        let late = plan(Some(episode), true, 1, 2 * HOUR, Some(9 * HOUR)).episode.unwrap();
        assert_eq!((late.n, late.from_s), (1, 2 * HOUR), "what is still unconfirmed then is news again");
    }
}
