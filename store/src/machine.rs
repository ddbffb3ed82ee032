//! A finding's state machine: the state it is in and what one observation said give the state it is in next.
//!
//! Pure on purpose. Its table is dashboard §4.2 and its test is that table. Observations in which the rule was not judged
//! move nothing: an outage never looks like a fix, and never like a fault.
//!
//! Openings and closings may need more than one observation ([`Confirm`]). The store confirms at once for now, so that
//! `pending` and `clearing` are passed through without stopping; the machine itself knows them.

use crate::words::{Cause, Evidence, FindingState, OpenedAs, Resolution};

/// What one observation says about one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The rule fires.
    Fires,
    /// The rule was judged and does not fire, or does not apply.
    Clear,
    /// The rule was not judged.
    Unjudged,
    /// The document has been absent long enough, or nobody links to it any more.
    DocumentGone,
    /// The target left its sources.
    TargetRetired,
    /// The rule was withdrawn.
    RuleWithdrawn,
}

/// How many evaluated observations it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirm {
    /// To open.
    pub open: i64,
    /// To close.
    pub close: i64,
}

impl Confirm {
    /// Every observation is believed.
    pub const AT_ONCE: Confirm = Confirm { open: 1, close: 1 };
}

/// What a finding is before an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// Its state; `None`: the rule never fired here.
    pub state: Option<FindingState>,
    /// Observations counted so far towards opening (`pending`) or closing (`clearing`).
    pub count: i64,
    /// It has been open before.
    pub opened_before: bool,
}

/// What the observation does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Nothing.
    Stay,
    /// It fires and waits to be confirmed.
    Suspect,
    /// One more observation towards opening or closing, not yet enough.
    Count(i64),
    /// It was not confirmed and never had been open: as if nothing had been.
    Forget,
    /// It was not confirmed; it stays resolved as before.
    Refute,
    /// It is open from the first observation that fired.
    Open,
    /// It stopped firing and waits to be confirmed.
    Doubt,
    /// It fires after all and stays open.
    Reassure,
    /// It is over, since the first observation that passed.
    Resolve(Resolution),
    /// It is put away with its target or rule.
    Retire(Resolution),
}

impl Move {
    /// The state after the move, for a finding in that state before.
    #[must_use]
    pub fn leads_to(self, before: Option<FindingState>) -> Option<FindingState> {
        match self {
            Move::Stay | Move::Count(_) => before,
            Move::Suspect => Some(FindingState::Pending),
            Move::Forget => None,
            Move::Refute | Move::Resolve(_) => Some(FindingState::Resolved),
            Move::Open | Move::Reassure => Some(FindingState::Open),
            Move::Doubt => Some(FindingState::Clearing),
            Move::Retire(_) => Some(FindingState::Retired),
        }
    }
}

/// Steps the machine once. `first_look`: this is the surface's first complete evaluation, which needs no confirmation.
#[must_use]
pub fn step(before: Before, signal: Signal, confirm: Confirm, first_look: bool) -> Move {
    match signal {
        Signal::Unjudged => Move::Stay,
        Signal::Fires => fires(before, confirm, first_look),
        Signal::Clear => clear(before, confirm),
        Signal::DocumentGone => match before.state {
            Some(FindingState::Open | FindingState::Clearing) => Move::Resolve(Resolution::DocumentGone),
            Some(FindingState::Pending) => refute(before),
            None | Some(FindingState::Resolved | FindingState::Flapping | FindingState::Retired) => Move::Stay,
        },
        Signal::TargetRetired => retire(before, Resolution::TargetRetired),
        Signal::RuleWithdrawn => retire(before, Resolution::RuleChanged),
    }
}

fn fires(before: Before, confirm: Confirm, first_look: bool) -> Move {
    match before.state {
        None | Some(FindingState::Resolved | FindingState::Retired) => {
            if first_look || confirm.open <= 1 {
                Move::Open
            } else {
                Move::Suspect
            }
        }
        Some(FindingState::Pending) if before.count + 1 >= confirm.open => Move::Open,
        Some(FindingState::Pending) => Move::Count(before.count + 1),
        Some(FindingState::Clearing) => Move::Reassure,
        Some(FindingState::Open | FindingState::Flapping) => Move::Stay,
    }
}

fn clear(before: Before, confirm: Confirm) -> Move {
    match before.state {
        Some(FindingState::Open) if confirm.close <= 1 => Move::Resolve(Resolution::Fixed),
        Some(FindingState::Open) => Move::Doubt,
        Some(FindingState::Clearing) if before.count + 1 >= confirm.close => Move::Resolve(Resolution::Fixed),
        Some(FindingState::Clearing) => Move::Count(before.count + 1),
        Some(FindingState::Pending) => refute(before),
        None | Some(FindingState::Resolved | FindingState::Flapping | FindingState::Retired) => Move::Stay,
    }
}

fn refute(before: Before) -> Move {
    if before.opened_before { Move::Refute } else { Move::Forget }
}

fn retire(before: Before, resolution: Resolution) -> Move {
    match before.state {
        None | Some(FindingState::Retired) => Move::Stay,
        Some(_) => Move::Retire(resolution),
    }
}

/// What is known about an opening, to say what it is (dashboard §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The surface's first complete evaluation.
    pub first_look: bool,
    /// The rule is new since the surface's last evaluation, or its condition changed.
    pub rule_moved: bool,
    /// The document is another than at the last evaluation.
    pub document_moved: bool,
    /// Whether the rule as it is now fires on the document as it was; `None`: nobody judged that.
    pub fired_on_old: Option<bool>,
    /// What can prove the finding.
    pub evidence: Evidence,
    /// It was resolved as fixed before.
    pub was_fixed: bool,
    /// The surface passed this very version of the rule at two moments a day or more apart.
    pub track_record: bool,
}

/// As what a finding opens, and why.
#[must_use]
pub fn classify(opening: &Opening) -> (OpenedAs, Cause) {
    if opening.first_look {
        return (OpenedAs::Baseline, Cause::Baseline);
    }
    let by_record = if opening.was_fixed {
        OpenedAs::Again
    } else if opening.track_record {
        OpenedAs::Broke
    } else {
        OpenedAs::First
    };
    if opening.rule_moved {
        return match (opening.document_moved, opening.fired_on_old) {
            // The old document was never judged by this rule, and is the present one: only the rule moved.
            (false, _) | (true, Some(true)) => (OpenedAs::Rule, Cause::Rule),
            (true, Some(false)) => (by_record, Cause::Document),
            (true, None) => (by_record, Cause::Unknown),
        };
    }
    let cause = match opening.evidence {
        _ if opening.document_moved => Cause::Document,
        Evidence::Time => Cause::Clock,
        Evidence::Live | Evidence::Timing | Evidence::History => Cause::Behaviour,
        // The bytes are the same and so are the rules: what the rule was told besides has changed.
        Evidence::Document => Cause::Unknown,
    };
    (by_record, cause)
}

/// Whether an opening is a regression: it worked before, and neither we nor the clock did it.
#[must_use]
pub fn is_regression(opened_as: OpenedAs, cause: Cause) -> bool {
    let worked_before = matches!(opened_as, OpenedAs::Broke | OpenedAs::Again);
    let was_theirs = matches!(cause, Cause::Document | Cause::Behaviour);
    worked_before && was_theirs
}

/// The raw results of the last evaluated observations, newest in bit 0, 32 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flips {
    /// One bit each: 1 fired.
    pub bits: u32,
    /// How many bits are real.
    pub observed: u32,
}

impl Flips {
    /// After `times` more observations that all said the same.
    #[must_use]
    pub fn with(self, fired: bool, times: i64) -> Flips {
        let times = u32::try_from(times.clamp(0, 32)).unwrap_or(0);
        let fill = if fired && times > 0 { u32::MAX >> (32 - times) } else { 0 };
        let bits = self.bits.checked_shl(times).unwrap_or(0) | fill;
        Flips { bits, observed: (self.observed + times).min(32) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FindingState as S;

    const TWICE: Confirm = Confirm { open: 2, close: 2 };

    #[test]
    fn every_state_meets_every_signal_as_the_table_says() {
        use Move::{Count, Doubt, Forget, Open, Reassure, Refute, Resolve, Retire, Stay, Suspect};
        use Resolution::{DocumentGone, Fixed, RuleChanged, TargetRetired};
        let columns = [
            Signal::Fires,
            Signal::Clear,
            Signal::Unjudged,
            Signal::DocumentGone,
            Signal::TargetRetired,
            Signal::RuleWithdrawn,
        ];
        let (gone, withdrawn) = (Retire(TargetRetired), Retire(RuleChanged));
        type Line = (Option<S>, i64, bool, Confirm, [Move; 6]);
        #[rustfmt::skip]
        let table: &[Line] = &[
            //  state, counted, opened before, needed              fires      clear           unjudged gone                  retired withdrawn
            (None,               0, false, Confirm::AT_ONCE, [Open,      Stay,           Stay, Stay,                  Stay, Stay]),
            (None,               0, false, TWICE,            [Suspect,   Stay,           Stay, Stay,                  Stay, Stay]),
            (Some(S::Pending),   1, false, TWICE,            [Open,      Forget,         Stay, Forget,                gone, withdrawn]),
            (Some(S::Pending),   1, true,  TWICE,            [Open,      Refute,         Stay, Refute,                gone, withdrawn]),
            (Some(S::Pending),   1, false, Confirm { open: 3, close: 2 }, [Count(2), Forget, Stay, Forget,            gone, withdrawn]),
            (Some(S::Open),      0, true,  Confirm::AT_ONCE, [Stay,      Resolve(Fixed), Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Open),      0, true,  TWICE,            [Stay,      Doubt,          Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Clearing),  1, true,  TWICE,            [Reassure,  Resolve(Fixed), Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Clearing),  1, true,  Confirm { open: 2, close: 3 }, [Reassure, Count(2), Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Resolved),  0, true,  Confirm::AT_ONCE, [Open,      Stay,           Stay, Stay,                  gone, withdrawn]),
            (Some(S::Resolved),  0, true,  TWICE,            [Suspect,   Stay,           Stay, Stay,                  gone, withdrawn]),
            (Some(S::Flapping),  0, true,  TWICE,            [Stay,      Stay,           Stay, Stay,                  gone, withdrawn]),
            (Some(S::Retired),   0, true,  Confirm::AT_ONCE, [Open,      Stay,           Stay, Stay,                  Stay, Stay]),
        ];
        for (state, count, opened_before, confirm, moves) in table {
            let before = Before { state: *state, count: *count, opened_before: *opened_before };
            for (signal, expected) in columns.iter().zip(moves) {
                assert_eq!(step(before, *signal, *confirm, false), *expected, "{before:?} {signal:?} {confirm:?}");
            }
        }
        for state in S::ALL {
            assert!(table.iter().any(|row| row.0 == Some(*state)), "{state} has no row");
        }
    }

    #[test]
    fn a_first_look_needs_no_confirmation() {
        let never = Before { state: None, count: 0, opened_before: false };
        assert_eq!(step(never, Signal::Fires, TWICE, true), Move::Open);
    }

    /// Plays observations (`F` fires, `P` passes, `U` unjudged) and tells the state after each.
    fn play(observations: &str, confirm: Confirm) -> String {
        let mut before = Before { state: None, count: 0, opened_before: false };
        let letter = |state: Option<S>| match state {
            None => '-',
            Some(S::Pending) => 'p',
            Some(S::Open) => 'o',
            Some(S::Clearing) => 'c',
            Some(S::Resolved) => 'r',
            Some(S::Flapping) => 'f',
            Some(S::Retired) => 'x',
        };
        let mut seen = String::new();
        for observation in observations.chars() {
            let signal = match observation {
                'F' => Signal::Fires,
                'P' => Signal::Clear,
                _ => Signal::Unjudged,
            };
            let moved = step(before, signal, confirm, false);
            let state = moved.leads_to(before.state);
            let count = match moved {
                Move::Count(n) => n,
                Move::Suspect | Move::Doubt => 1,
                Move::Stay => before.count,
                _ => 0,
            };
            let opened_before = before.opened_before || state == Some(S::Open);
            before = Before { state, count, opened_before };
            seen.push(letter(state));
        }
        seen
    }

    #[test]
    fn the_worked_traces_come_out_as_written() {
        let document = Confirm { open: 2, close: 1 };
        for (observations, states) in [
            ("FF", "po"),         // confirmed by its verification
            ("FP", "p-"),         // refuted: nothing opened
            ("FUF", "ppo"),       // an outage neither confirms nor clears
            ("FFUUUP", "poooor"), // one finding, one span, resolved only when it passes
            ("FFPFF", "porpo"),   // fixed, then again
        ] {
            assert_eq!(play(observations, document), states, "{observations}");
        }
        assert_eq!(play("FPFUP", Confirm::AT_ONCE), "oroor");
    }

    #[test]
    fn openings_are_classified_by_what_moved() {
        use Cause as C;
        use OpenedAs as O;
        let base = Opening {
            first_look: false,
            rule_moved: false,
            document_moved: true,
            fired_on_old: None,
            evidence: Evidence::Document,
            was_fixed: false,
            track_record: true,
        };
        let same = Opening { document_moved: false, ..base };
        let ruled = Opening { rule_moved: true, ..base };
        for (opening, expected, regression) in [
            (Opening { first_look: true, ..base }, (O::Baseline, C::Baseline), false),
            (base, (O::Broke, C::Document), true),
            (Opening { was_fixed: true, ..base }, (O::Again, C::Document), true),
            (Opening { track_record: false, ..base }, (O::First, C::Document), false),
            (Opening { evidence: Evidence::Live, ..same }, (O::Broke, C::Behaviour), true),
            (Opening { evidence: Evidence::Time, ..same }, (O::Broke, C::Clock), false),
            (Opening { rule_moved: true, ..same }, (O::Rule, C::Rule), false),
            (Opening { fired_on_old: Some(true), ..ruled }, (O::Rule, C::Rule), false),
            (Opening { fired_on_old: Some(false), ..ruled }, (O::Broke, C::Document), true),
            (ruled, (O::Broke, C::Unknown), false),
        ] {
            let found = classify(&opening);
            assert_eq!(found, expected, "{opening:?}");
            assert_eq!(is_regression(found.0, found.1), regression, "{opening:?}");
        }
    }

    #[test]
    fn flips_remember_the_last_thirty_two() {
        let flips = Flips::default().with(true, 1).with(false, 2).with(true, 1);
        assert_eq!(flips, Flips { bits: 0b1001, observed: 4 });
        assert_eq!(flips.with(false, 100), Flips { bits: 0, observed: 32 });
        assert_eq!(flips.with(true, 32), Flips { bits: u32::MAX, observed: 32 });
        assert_eq!(flips.with(true, 0), flips);
    }
}
