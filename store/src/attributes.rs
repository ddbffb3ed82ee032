//! An attribute's machine: what a rule of class fact says of a surface, confirmed as a finding is (dashboard §3).
//!
//! Pure like [`crate::machine`], whose counts it takes. An attribute holds a value or none. Another value, or none any more,
//! waits until as many looks agree as a finding of the same evidence would need; then it holds since the first of them. A
//! look that says what holds refutes what waits, and one that judged nothing says nothing.

use crate::machine::{Look, Recent, Signal, WHATEVER_MOVES, confirm};
use crate::words::Evidence;

/// What is remembered of an attribute between looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute<V> {
    /// What holds; `None`: it is not set.
    pub holds: Option<V>,
    /// What looks said instead and too few confirmed.
    pub waits: Option<Waits<V>>,
}

/// What waits to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits<V> {
    /// What would hold.
    pub says: Option<V>,
    /// Looks that said so and count.
    pub count: i64,
    /// What the last looks said: one bit each, set when it was this.
    pub recent: Recent,
    /// Looks in a row that said anything but what holds.
    pub others: i64,
    /// The first look that said so, in Unix seconds.
    pub since_s: i64,
}

/// What a look does to an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Stay,
    /// What waits is another, or was counted on, or was given up.
    Wait,
    /// Something else holds since that moment, in Unix seconds.
    Settle(i64),
}

impl<V> Default for Attribute<V> {
    fn default() -> Self {
        Attribute { holds: None, waits: None }
    }
}

/// Steps the machine once. `value` is what the rule says where it fires.
#[must_use]
pub fn step<V: Clone + PartialEq>(
    before: &Attribute<V>,
    look: &Look,
    value: Option<V>,
    evidence: Evidence,
) -> (Attribute<V>, Change) {
    match look.signal {
        Signal::Unjudged => (before.clone(), Change::Stay),
        Signal::Fires if value == before.holds => agrees(before, evidence),
        Signal::Fires => differs(before, look, value, evidence),
        Signal::Clear if before.holds.is_none() => agrees(before, evidence),
        Signal::Clear => differs(before, look, None, evidence),
        Signal::DocumentGone | Signal::TargetRetired | Signal::RuleWithdrawn => match before.holds {
            Some(_) => (Attribute::default(), Change::Settle(look.at_s)),
            None if before.waits.is_some() => (Attribute::default(), Change::Wait),
            None => (before.clone(), Change::Stay),
        },
    }
}

/// The look says what holds.
fn agrees<V: Clone>(before: &Attribute<V>, evidence: Evidence) -> (Attribute<V>, Change) {
    let Some(waits) = &before.waits else { return (before.clone(), Change::Stay) };
    let needed = confirm(evidence);
    let recent = waits.recent.with(false);
    let is_hopeless = recent.passes_in_a_row() > needed.within - needed.open;
    if evidence != Evidence::Timing || waits.says.is_none() || is_hopeless {
        return (Attribute { waits: None, ..before.clone() }, Change::Wait);
    }
    let waits = Waits { recent, count: recent.fired(), others: 0, ..waits.clone() };
    (Attribute { waits: Some(waits), ..before.clone() }, Change::Wait)
}

/// The look says something else than what holds.
fn differs<V: Clone + PartialEq>(
    before: &Attribute<V>,
    look: &Look,
    says: Option<V>,
    evidence: Evidence,
) -> (Attribute<V>, Change) {
    let needed = confirm(evidence);
    let others = before.waits.as_ref().map_or(0, |waits| waits.others) + 1;
    let waits = match &before.waits {
        Some(waits) if waits.says == says => {
            let recent = waits.recent.with(true);
            let count = match evidence {
                _ if says.is_none() => waits.count + 1,
                // Two back ends may serve different builds: each has to be seen twice.
                Evidence::Document if !look.is_same_document => 1,
                Evidence::Timing => recent.fired(),
                Evidence::Document | Evidence::Live | Evidence::Time | Evidence::History => waits.count + 1,
            };
            Waits { count, recent, others, ..waits.clone() }
        }
        _ => Waits { says, count: 1, recent: Recent::default().with(true), others, since_s: look.at_s },
    };
    let enough = if waits.says.is_some() { needed.open } else { needed.close };
    // What is another at every look holds as the newest of them says.
    let whatever = WHATEVER_MOVES.max(needed.within).max(needed.close);
    if look.is_first || look.is_settled || waits.count >= enough || others >= whatever {
        return (Attribute { holds: waits.says, waits: None }, Change::Settle(waits.since_s));
    }
    (Attribute { holds: before.holds.clone(), waits: Some(waits) }, Change::Wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays looks a minute apart and tells after each what holds, `-` for nothing, with `?` while something waits. A letter
    /// is the value the rule fires with, a small one with another document than before; `.` passes, `u` is not judged.
    fn play(looks: &str, evidence: Evidence) -> String {
        let mut attribute = Attribute::default();
        let mut said = String::new();
        for (at_s, letter) in (0..).step_by(60).zip(looks.chars()) {
            let (signal, value) = match letter {
                '.' => (Signal::Clear, None),
                'u' => (Signal::Unjudged, None),
                value => (Signal::Fires, Some(value.to_ascii_uppercase())),
            };
            let look = Look {
                signal,
                at_s,
                is_verification: false,
                is_first: false,
                is_settled: false,
                is_same_document: !letter.is_ascii_lowercase(),
            };
            attribute = step(&attribute, &look, value, evidence).0;
            said.push(attribute.holds.unwrap_or('-'));
            said.extend(attribute.waits.as_ref().map(|_| '?'));
        }
        said
    }

    #[test]
    fn a_value_holds_when_as_many_looks_agree_as_a_finding_needs() {
        for (evidence, looks, said) in [
            (Evidence::Document, "AA", "-?A"),
            (Evidence::Document, "A.", "-?-"),
            (Evidence::Document, "AuA", "-?-?A"),
            (Evidence::Document, "AA.", "-?A-"),
            (Evidence::Document, "AABB", "-?AA?B"),
            (Evidence::Document, "AABAB", "-?AA?AA?"),
            (Evidence::Document, "AaA", "-?-?A"),
            (Evidence::Document, "Aaaa", "-?-?-?A"),
            (Evidence::History, "Aa", "-?A"),
            (Evidence::Live, "AAA", "-?-?A"),
            (Evidence::Live, "AAA.A..", "-?-?AA?AA?-"),
            (Evidence::Live, "AAABBABBB", "-?-?AA?A?AA?A?B"),
            (Evidence::Time, "A.B", "A-B"),
            (Evidence::Timing, "A.A.A", "-?-?-?-?A"),
            (Evidence::Timing, "A...", "-?-?-?-"),
            (Evidence::Timing, "AAA.....", "-?-?AA?A?A?A?-"),
        ] {
            assert_eq!(play(looks, evidence), said, "{looks} {evidence}");
        }
    }

    #[test]
    fn a_value_that_is_another_at_every_look_holds_as_last_seen() {
        assert_eq!(play("AABCDE", Evidence::Document), "-?AA?A?A?E");
        assert_eq!(play("AAABCDE", Evidence::Live), "-?-?AA?A?A?E");
    }

    #[test]
    fn it_holds_since_the_first_look_that_said_so() {
        let look = |at_s, signal| Look {
            signal,
            at_s,
            is_verification: false,
            is_first: false,
            is_settled: false,
            is_same_document: true,
        };
        let (first, change) = step(&Attribute::default(), &look(10, Signal::Fires), Some(1), Evidence::Document);
        assert_eq!(change, Change::Wait);
        let (set, change) = step(&first, &look(70, Signal::Fires), Some(1), Evidence::Document);
        assert_eq!((set.holds, change), (Some(1), Change::Settle(10)));
        for signal in [Signal::DocumentGone, Signal::TargetRetired, Signal::RuleWithdrawn] {
            assert_eq!(step(&set, &look(99, signal), None, Evidence::Live), (Attribute::default(), Change::Settle(99)));
            assert_eq!(step(&first, &look(99, signal), None, Evidence::Live).0, Attribute::default());
        }
        for quick in [
            Look { is_first: true, ..look(5, Signal::Fires) },
            Look { is_settled: true, is_same_document: false, ..look(5, Signal::Fires) },
        ] {
            assert_eq!(step(&Attribute::default(), &quick, Some(1), Evidence::Live).1, Change::Settle(5));
        }
    }
}
