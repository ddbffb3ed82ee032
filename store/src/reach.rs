//! Whether a surface can be reached, over several observations: the table of dashboard §5, pure.
//!
//! Reach moves on its own and never touches a finding, with one exception: a document that has been absent for three
//! days takes its findings with it, without the credit of a fix. After a month it is put away.

use plumbline_rules::reach::Outcome;
use plumbline_rules::words;

use crate::words::ReachState;

/// Unreachable in a row before a surface may be called down, and over how long, in seconds.
const DOWN_AFTER: (i64, i64) = (3, 600);
/// Answers in a row before it is up again, and over how long, in seconds.
const UP_AFTER: (i64, i64) = (2, 60);
/// Observations without a document before one that was there is called absent.
const ABSENT_AFTER: i64 = 2;
/// Throttled in a row before that is its state.
const THROTTLED_AFTER: i64 = 3;
/// An absent document is gone after this long, in seconds.
const GONE_AFTER: i64 = 72 * 3600;
/// An absent surface is retired after this long, in seconds.
const RETIRED_AFTER: i64 = 30 * 86_400;
/// So many changes between up and down within a day are flapping.
const FLAPPING_FROM: i64 = 4;
/// Flapping ends after so long without a change, in seconds.
pub const CALM_AFTER: i64 = 6 * 3600;

words! {
    /// An outcome without its reason. The order is that of the packed probe records.
    pub enum OutcomeClass {
        /// A whole answer.
        Ok = "ok",
        /// Somebody is there and wants something first.
        Gated = "gated",
        /// Nothing is there.
        Absent = "absent",
        /// No usable answer.
        Unreachable = "unreachable",
        /// Asked to come back later.
        Throttled = "throttled",
        /// Not tried.
        Skipped = "skipped",
        /// Our fault.
        CrawlerFault = "crawler_fault",
    }
}

impl From<Outcome> for OutcomeClass {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => OutcomeClass::Ok,
            Outcome::Gated(_) => OutcomeClass::Gated,
            Outcome::Absent(_) => OutcomeClass::Absent,
            Outcome::Unreachable(_) => OutcomeClass::Unreachable,
            Outcome::Throttled => OutcomeClass::Throttled,
            Outcome::Skipped(_) => OutcomeClass::Skipped,
            Outcome::CrawlerFault => OutcomeClass::CrawlerFault,
        }
    }
}

/// The part of an outcome after its colon; `None` where there is none.
#[must_use]
pub fn reason(outcome: Outcome) -> Option<String> {
    outcome.to_string().split_once(':').map(|(_, reason)| reason.to_owned())
}

/// How a surface stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// In one word.
    pub state: ReachState,
    /// Why, for states that have a reason.
    pub reason: Option<String>,
    /// When it came into this state; `None` while unknown.
    pub since_s: Option<i64>,
    /// Outcomes of the same class in a row; ok and gated count as one class.
    pub streak: i64,
    /// Their class; `None` before the first.
    pub streak_of: Option<OutcomeClass>,
    /// When the first of them was.
    pub streak_since_s: Option<i64>,
}

impl Reach {
    /// Of a surface that nobody has looked at.
    pub const NEW: Reach = Reach {
        state: ReachState::Unknown,
        reason: None,
        since_s: None,
        streak: 0,
        streak_of: None,
        streak_since_s: None,
    };
}

/// What people hear of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachNews {
    /// Confirmed down since that moment.
    Down(i64),
    /// Answers again after being down since that moment.
    Recovered(i64),
    /// Comes and goes since that moment; nothing more is told until it has calmed down.
    Flapping(i64),
    /// Asks to be left alone for a while, again and again.
    Throttled,
}

/// What one observation makes of it. `witness_good`: others could be reached meanwhile, so a silence is theirs.
#[must_use]
pub fn step(before: &Reach, outcome: Outcome, at_s: i64, witness_good: bool) -> (Reach, Option<ReachNews>) {
    let class = OutcomeClass::from(outcome);
    if matches!(class, OutcomeClass::Skipped | OutcomeClass::CrawlerFault) {
        return (before.clone(), None);
    }
    let mut after = before.clone();
    if before.streak_of.map(answers_alike) == Some(answers_alike(class)) {
        after.streak += 1;
    } else {
        after.streak = 1;
        after.streak_since_s = Some(at_s);
    }
    after.streak_of = Some(class);
    let lasted = |least: i64| at_s - after.streak_since_s.unwrap_or(at_s) >= least;
    let answered = if class == OutcomeClass::Gated { ReachState::Gated } else { ReachState::Up };
    let was = before.state;
    let next = match class {
        OutcomeClass::Ok | OutcomeClass::Gated => match was {
            ReachState::Down if after.streak < UP_AFTER.0 || !lasted(UP_AFTER.1) => was,
            ReachState::Flapping if !lasted(CALM_AFTER) => was,
            _ => answered,
        },
        OutcomeClass::Unreachable => match was {
            ReachState::Down => was,
            ReachState::Flapping if after.streak < DOWN_AFTER.0 || !lasted(CALM_AFTER) || !witness_good => was,
            ReachState::Flapping => ReachState::Down,
            ReachState::Suspect if after.streak >= DOWN_AFTER.0 && lasted(DOWN_AFTER.1) && witness_good => {
                ReachState::Down
            }
            _ => ReachState::Suspect,
        },
        OutcomeClass::Absent => match was {
            ReachState::Unknown | ReachState::Absent => ReachState::Absent,
            ReachState::Flapping if !lasted(CALM_AFTER) => was,
            _ if after.streak >= ABSENT_AFTER => ReachState::Absent,
            _ => was,
        },
        OutcomeClass::Throttled if after.streak >= THROTTLED_AFTER => ReachState::Throttled,
        OutcomeClass::Throttled | OutcomeClass::Skipped | OutcomeClass::CrawlerFault => was,
    };
    let news = news(before, next, after.streak_since_s, at_s);
    if next != was {
        after.state = next;
        after.since_s = Some(at_s);
    }
    if next != was || was != ReachState::Down {
        after.reason = match next {
            ReachState::Up | ReachState::Unknown => None,
            _ => reason(outcome),
        };
    }
    (after, news)
}

/// Ok and gated are both answers, so they make one streak.
fn answers_alike(class: OutcomeClass) -> OutcomeClass {
    if class == OutcomeClass::Gated { OutcomeClass::Ok } else { class }
}

fn news(before: &Reach, next: ReachState, streak_since_s: Option<i64>, at_s: i64) -> Option<ReachNews> {
    match (before.state, next) {
        (ReachState::Down | ReachState::Flapping, ReachState::Down) => None,
        (was, ReachState::Throttled) if was != ReachState::Throttled => Some(ReachNews::Throttled),
        (_, ReachState::Down) => Some(ReachNews::Down(streak_since_s.unwrap_or(at_s))),
        (ReachState::Down | ReachState::Flapping, ReachState::Up | ReachState::Gated) => {
            Some(ReachNews::Recovered(before.since_s.unwrap_or(at_s)))
        }
        _ => None,
    }
}

/// Whether a step went from up to down or back.
#[must_use]
pub fn is_change(before: ReachState, after: ReachState) -> bool {
    let is_up = |state| matches!(state, ReachState::Up | ReachState::Gated);
    before == ReachState::Down && is_up(after)
        || after == ReachState::Down && !matches!(before, ReachState::Down | ReachState::Flapping)
}

/// The same step once it is known how often it changed between up and down within the last day, this time included: too
/// often is flapping.
#[must_use]
pub fn settled(after: Reach, news: Option<ReachNews>, changes: i64, at_s: i64) -> (Reach, Option<ReachNews>) {
    if changes < FLAPPING_FROM {
        return (after, news);
    }
    let reason = Some("flapping".to_owned());
    (Reach { state: ReachState::Flapping, reason, since_s: Some(at_s), ..after }, Some(ReachNews::Flapping(at_s)))
}

/// Whether a surface fails in a way that others may share.
#[must_use]
pub fn is_failing(state: ReachState) -> bool {
    matches!(state, ReachState::Suspect | ReachState::Down | ReachState::Flapping)
}

/// Whether another look soon would settle how it stands: it fell silent, or answers again, or its document is missing.
#[must_use]
pub fn is_unconfirmed(reach: &Reach) -> bool {
    match reach.state {
        ReachState::Suspect => true,
        ReachState::Down => reach.streak_of.map(answers_alike) == Some(OutcomeClass::Ok),
        ReachState::Up | ReachState::Gated => reach.streak_of == Some(OutcomeClass::Absent),
        ReachState::Unknown
        | ReachState::Absent
        | ReachState::Throttled
        | ReachState::Flapping
        | ReachState::Retired => false,
    }
}

/// Whether an absent surface passes its third day between the observation before and this one.
#[must_use]
pub fn just_gone(after: &Reach, before_attempt_s: Option<i64>, at_s: i64) -> bool {
    let Some(since) = after.since_s.filter(|_| after.state == ReachState::Absent) else {
        return false;
    };
    let gone_at = since + GONE_AFTER;
    at_s >= gone_at && before_attempt_s.is_none_or(|attempt| attempt < gone_at)
}

/// Whether somebody answers there.
#[must_use]
pub fn is_answering(state: ReachState) -> bool {
    matches!(state, ReachState::Up | ReachState::Gated)
}

/// Whether a surface has been absent for so long that it is put away until somebody answers there again.
#[must_use]
pub fn is_forsaken(after: &Reach, at_s: i64) -> bool {
    after.state == ReachState::Absent && after.since_s.is_some_and(|since_s| at_s - since_s >= RETIRED_AFTER)
}

/// Which of a target's surfaces speaks for it: the one in the gravest state.
#[must_use]
pub fn gravity(state: ReachState) -> u8 {
    match state {
        ReachState::Retired => 0,
        ReachState::Unknown => 1,
        ReachState::Up => 2,
        ReachState::Gated => 3,
        ReachState::Throttled => 4,
        ReachState::Suspect => 5,
        ReachState::Flapping => 6,
        ReachState::Absent => 7,
        ReachState::Down => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumbline_rules::reach::{Gate, Skip, Unreachable};

    /// Plays outcomes a number of seconds apart and tells the states they lead through.
    fn play(outcomes: &[(i64, &str)]) -> (Vec<ReachState>, Vec<ReachNews>) {
        let (mut reach, mut at, mut states, mut all) = (Reach::NEW, 0, Vec::new(), Vec::new());
        for (gap, outcome) in outcomes {
            at += gap;
            let (next, news) = step(&reach, outcome.parse().unwrap(), at, true);
            reach = next;
            states.push(reach.state);
            all.extend(news);
        }
        (states, all)
    }

    const DEAD: &str = "unreachable:refused";

    #[test]
    fn a_dead_host_is_suspect_before_it_is_down() {
        use ReachState::{Down, Suspect, Up};
        let (states, news) = play(&[(0, "ok"), (60, DEAD), (60, DEAD), (300, DEAD), (900, DEAD)]);
        assert_eq!(states, [Up, Suspect, Suspect, Suspect, Down]);
        assert_eq!(news, [ReachNews::Down(60)]);
    }

    #[test]
    fn one_answer_does_not_make_it_up_again() {
        use ReachState::{Down, Suspect, Up};
        let (states, news) = play(&[(0, DEAD), (300, DEAD), (400, DEAD), (60, "ok"), (30, "ok"), (40, "ok")]);
        assert_eq!(states, [Suspect, Suspect, Down, Down, Down, Up]);
        assert_eq!(news, [ReachNews::Down(0), ReachNews::Recovered(700)]);
    }

    #[test]
    fn nobody_is_down_while_our_witnesses_are_silent() {
        let mut reach = Reach::NEW;
        for at in [0, 500, 1000, 1500] {
            reach = step(&reach, Outcome::Unreachable(Unreachable::Refused), at, false).0;
        }
        assert_eq!(reach.state, ReachState::Suspect);
    }

    #[test]
    fn our_own_failures_move_nothing() {
        let up = step(&Reach::NEW, Outcome::Ok, 5, true).0;
        for outcome in [Outcome::CrawlerFault, Outcome::Skipped(Skip::Robots)] {
            assert_eq!(step(&up, outcome, 10, true), (up.clone(), None));
        }
    }

    #[test]
    fn a_gate_is_an_answer() {
        let gated = step(&Reach::NEW, Outcome::Gated(Gate::Auth), 5, true).0;
        assert_eq!((gated.state, gated.reason.as_deref()), (ReachState::Gated, Some("auth")));
        let up = step(&gated, Outcome::Ok, 6, true).0;
        assert_eq!((up.state, up.reason, up.streak), (ReachState::Up, None, 2));
    }

    #[test]
    fn what_was_there_is_absent_only_at_the_second_look() {
        use ReachState::{Absent, Suspect, Throttled, Up};
        assert_eq!(play(&[(0, "absent")]).0, [Absent]);
        assert_eq!(play(&[(0, "ok"), (9, "absent:405"), (9, "absent")]).0, [Up, Up, Absent]);
        assert_eq!(play(&[(0, "absent"), (9, DEAD), (9, "ok")]).0, [Absent, Suspect, Up]);
        assert_eq!(play(&[(0, "ok"), (9, "throttled"), (9, "throttled"), (9, "throttled")]).0, [Up, Up, Up, Throttled]);
    }

    #[test]
    fn four_changes_in_a_day_are_flapping_and_six_quiet_hours_end_it() {
        let (up, _) = step(&Reach::NEW, Outcome::Ok, 0, true);
        assert!(is_change(ReachState::Up, ReachState::Down) && is_change(ReachState::Suspect, ReachState::Down));
        assert!(is_change(ReachState::Down, ReachState::Gated) && !is_change(ReachState::Suspect, ReachState::Up));
        let news = Some(ReachNews::Down(0));
        assert_eq!(settled(up.clone(), news.clone(), 3, 9), (up.clone(), news.clone()));
        let (mut reach, news) = settled(up, news, 4, 1000);
        assert_eq!((reach.state, news), (ReachState::Flapping, Some(ReachNews::Flapping(1000))));
        let mut told = Vec::new();
        for (at_s, outcome) in [(2000, DEAD), (5000, "ok"), (6000, DEAD), (9000, "ok"), (26_000, "ok"), (31_000, "ok")]
        {
            let (next, news) = step(&reach, outcome.parse().unwrap(), at_s, true);
            reach = next;
            told.extend(news);
        }
        assert_eq!(reach.state, ReachState::Up, "since 9000 it answers, which is six hours");
        assert_eq!(told, [ReachNews::Recovered(1000)]);
    }

    #[test]
    fn what_flaps_and_then_stays_silent_is_down_without_another_word() {
        let mut reach = Reach { state: ReachState::Flapping, since_s: Some(0), ..Reach::NEW };
        for at_s in [0, 10_000, 22_000] {
            let (next, news) = step(&reach, DEAD.parse().unwrap(), at_s, true);
            assert_eq!(news, None);
            reach = next;
        }
        assert_eq!(reach.state, ReachState::Down);
    }

    #[test]
    fn a_document_is_gone_once_after_three_days() {
        let absent = step(&Reach::NEW, Outcome::Absent(None), 0, true).0;
        let day = 86_400;
        let gone: Vec<_> = (1..6).map(|n| just_gone(&absent, Some((n - 1) * day), n * day)).collect();
        assert_eq!(gone, [false, false, true, false, false]);
    }
}
