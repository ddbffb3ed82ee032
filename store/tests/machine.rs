//! The state machine against a second one, written from the text of dashboard §4 alone: it keeps all that was ever said and
//! counts everything again at every look. Random sequences must come out the same in both.
//!
//! 100,000 sequences by default; `PLUMBLINE_SEQUENCES` sets another number.

use plumbline_store::attributes::{self, Attribute, Change};
use plumbline_store::machine::{self, Look, Memory, Move, Signal, confirm};
use plumbline_store::words::{Evidence, FindingState, Resolution};

/// A look as the generator makes it.
#[derive(Debug, Clone, Copy)]
struct Said {
    at_s: i64,
    signal: Signal,
    is_verification: bool,
    is_same_document: bool,
    is_settled: bool,
}

/// The finding as its whole past.
#[derive(Debug, Default)]
struct Model {
    /// Judged looks that count for the raw history, since it began anew: what each said, and whether a verification
    /// refuted it.
    regular: Vec<(bool, bool)>,
    /// Judged looks since it is suspected: fired, same document as the look before.
    suspicion: Vec<(bool, bool)>,
    /// Passing looks in a row while open.
    passes: i64,
    /// Regular looks since it flaps.
    flapping_looks: usize,
    openings: Vec<i64>,
    is_open: bool,
    is_flapping: bool,
    is_retired: bool,
    ever_open: bool,
}

impl Model {
    fn state(&self) -> Option<FindingState> {
        if self.is_retired {
            Some(FindingState::Retired)
        } else if self.is_flapping {
            Some(FindingState::Flapping)
        } else if self.is_open {
            Some(if self.passes > 0 { FindingState::Clearing } else { FindingState::Open })
        } else if !self.suspicion.is_empty() {
            Some(FindingState::Pending)
        } else {
            self.ever_open.then_some(FindingState::Resolved)
        }
    }

    /// Changes between neighbours among the last twenty, and two for each refuted one.
    fn flips(&self) -> usize {
        let last = &self.regular[self.regular.len().saturating_sub(20)..];
        let changes = last.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        changes + 2 * last.iter().filter(|look| look.1).count()
    }

    fn take(&mut self, said: Said, evidence: Evidence) {
        match said.signal {
            Signal::Unjudged => {}
            Signal::Fires => self.judge(said, evidence, true),
            Signal::Clear => self.judge(said, evidence, false),
            Signal::DocumentGone => {
                if self.is_open || self.is_flapping || !self.suspicion.is_empty() {
                    *self = Model { ever_open: self.ever_open, ..Model::default() };
                }
            }
            Signal::TargetRetired | Signal::RuleWithdrawn => {
                if self.state().is_some() && !self.is_retired {
                    *self = Model { ever_open: self.ever_open, is_retired: true, ..Model::default() };
                }
            }
        }
    }

    fn judge(&mut self, said: Said, evidence: Evidence, fires: bool) {
        if self.is_flapping {
            if !said.is_verification {
                self.regular.push((fires, false));
                self.flapping_looks += 1;
                self.calm(fires);
            }
            return;
        }
        if !said.is_verification {
            let flipped = self.regular.last().is_some_and(|(before, _)| *before != fires);
            self.regular.push((fires, false));
            self.advance(said, evidence, fires);
            self.flap(flipped);
        } else if self.advance(said, evidence, fires) {
            match self.regular.last_mut() {
                Some(last) => *last = (fires, true),
                None => self.regular.push((fires, true)),
            }
            self.flap(true);
        } else {
            self.flap(false);
        }
    }

    /// Opening and closing. Tells whether something unconfirmed was refuted.
    fn advance(&mut self, said: Said, evidence: Evidence, fires: bool) -> bool {
        let needed = confirm(evidence);
        if self.is_open {
            let was_doubted = self.passes > 0;
            self.passes = if fires { 0 } else { self.passes + 1 };
            if self.passes >= needed.close {
                (self.is_open, self.passes) = (false, 0);
            }
            return fires && was_doubted;
        }
        if self.suspicion.is_empty() && !fires {
            return false;
        }
        let is_new = self.suspicion.is_empty();
        self.is_retired = false;
        self.suspicion.push((fires, said.is_same_document || is_new));
        let newest: Vec<_> = self.suspicion.iter().rev().collect();
        let is_there = match evidence {
            Evidence::Timing => newest.iter().take(5).filter(|look| look.0).count() >= 3,
            Evidence::Document => {
                // Looks at the newest document: all from the last that was another one.
                let same = 1 + newest.iter().take_while(|look| look.1).count().min(newest.len() - 1);
                let same = same.min(newest.len()) as i64;
                fires && (same >= needed.open || newest.len() >= 4)
            }
            Evidence::Live | Evidence::History | Evidence::Time => fires && newest.len() as i64 >= needed.open,
        };
        if fires && (said.is_settled || is_there) {
            self.suspicion.clear();
            (self.is_open, self.ever_open) = (true, true);
            self.openings.push(said.at_s);
            return false;
        }
        let refuted = match evidence {
            Evidence::Timing => newest.len() >= 3 && newest[..3].iter().all(|look| !look.0),
            _ => !fires,
        };
        if refuted {
            self.suspicion.clear();
        }
        refuted
    }

    fn flap(&mut self, flipped: bool) {
        let opened_now = self.is_open && self.passes == 0 && self.openings.last().is_some_and(|at| *at == self.now());
        let lately = self.openings.iter().filter(|at| self.now() - **at <= 7 * 86_400).count();
        if (opened_now && lately >= 3) || (flipped && self.flips() >= 5) {
            self.suspicion.clear();
            (self.passes, self.flapping_looks) = (0, 0);
            (self.is_flapping, self.is_open, self.ever_open) = (true, false, true);
        }
    }

    /// The openings are the only thing that is dated, and the question is only asked at one.
    fn now(&self) -> i64 {
        self.openings.last().copied().unwrap_or(0)
    }

    fn calm(&mut self, fires: bool) {
        let last = |n: usize| &self.regular[self.regular.len().saturating_sub(n)..];
        let twelve = last(12);
        let is_quiet = self.flapping_looks >= 12 && twelve.iter().all(|look| look.0 == fires);
        // A refuted look among the twelve came and went.
        let is_quiet = is_quiet && twelve[1..].iter().all(|look| !look.1);
        if is_quiet || (self.flapping_looks >= 20 && self.flips() <= 1) {
            let ever_open = self.ever_open;
            *self = Model { regular: vec![(fires, false)], is_open: fires, ever_open, ..Model::default() };
        }
    }
}

/// A small generator of numbers, the same everywhere (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

/// One sequence: calm and restless stretches, verifications after news, silence, and now and then an end.
fn sequence(dice: &mut Dice) -> Vec<Said> {
    let mut at_s = 0;
    let mut fires = dice.one_in(2);
    let restless = 1 + dice.roll(12);
    let length = 5 + dice.roll(90);
    (0..length)
        .map(|_| {
            let is_verification = dice.one_in(3);
            at_s += if is_verification { 60 } else { 3600 * (1 + 30 * i64::from(dice.one_in(20))) };
            if dice.one_in(restless) {
                fires = !fires;
            }
            let signal = match dice.roll(200) {
                0 => Signal::DocumentGone,
                1 => Signal::TargetRetired,
                2 => Signal::RuleWithdrawn,
                3..=30 => Signal::Unjudged,
                _ if fires => Signal::Fires,
                _ => Signal::Clear,
            };
            Said { at_s, signal, is_verification, is_same_document: !dice.one_in(4), is_settled: dice.one_in(30) }
        })
        .collect()
}

/// Bookkeeping that must hold whatever happens: a beginning is followed by exactly one end before the next beginning.
fn balance(open: bool, moved: Move) -> bool {
    match moved {
        Move::Open => {
            assert!(!open, "opened twice");
            true
        }
        Move::StartFlapping => true,
        Move::Resolve(_) | Move::StayAway => {
            assert!(open, "ended what was not open");
            false
        }
        Move::Retire(Resolution::TargetRetired | Resolution::RuleChanged) => false,
        Move::Retire(_) => panic!("retired for a reason that is none"),
        Move::StayOpen | Move::Reassure | Move::Doubt => {
            assert!(open);
            true
        }
        Move::Stay | Move::Suspect | Move::Count | Move::Forget | Move::Refute => open,
    }
}

#[test]
fn random_sequences_come_out_as_the_text_says() {
    let sequences = std::env::var("PLUMBLINE_SEQUENCES").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let mut states = std::collections::BTreeMap::new();
    for seed in 0..sequences {
        let mut dice = Dice(seed);
        let evidence = Evidence::ALL[dice.roll(Evidence::ALL.len() as u64) as usize];
        let looks = sequence(&mut dice);
        let (mut model, mut memory, mut open) = (Model::default(), Memory::default(), false);
        for (n, said) in looks.iter().enumerate() {
            let look = Look {
                signal: said.signal,
                at_s: said.at_s,
                is_verification: said.is_verification,
                is_first: false,
                is_settled: said.is_settled,
                is_same_document: said.is_same_document,
            };
            let (after, moved) = machine::step(&memory, &look, evidence);
            model.take(*said, evidence);
            assert_eq!(
                after.state,
                model.state(),
                "seed {seed} {evidence}, look {n}: {:#?}\n{memory:?}\n{model:?}",
                &looks[..=n]
            );
            open = balance(open, moved);
            assert_eq!(open, after.is_open(), "seed {seed}, look {n}");
            memory = after;
            *states.entry(after.state.map_or("none", FindingState::as_str)).or_insert(0_u64) += 1;
        }
    }
    assert_eq!(states.len(), 7, "every state is reached: {states:?}");
}

/// An attribute as its whole past: what holds, and every judged look since the first that said something else.
#[derive(Debug, Default)]
struct Attributed {
    holds: Option<u64>,
    /// What each look said, the same document as the look before, and when.
    looks: Vec<(Option<u64>, bool, i64)>,
}

impl Attributed {
    /// Takes one look. Tells since when something else holds, if it does.
    fn take(&mut self, said: Said, value: Option<u64>, evidence: Evidence) -> Option<i64> {
        let says = match said.signal {
            Signal::Unjudged => return None,
            Signal::Fires => value,
            Signal::Clear => None,
            Signal::DocumentGone | Signal::TargetRetired | Signal::RuleWithdrawn => {
                self.looks.clear();
                return self.holds.take().map(|_| said.at_s);
            }
        };
        if self.looks.is_empty() && says == self.holds {
            return None;
        }
        self.looks.push((says, said.is_same_document, said.at_s));
        let wanted = self.looks.iter().rev().map(|look| look.0).find(|says| *says != self.holds).unwrap_or_default();
        // Looks after the last that said a third thing are about what is wanted.
        let is_third = |look: &(Option<u64>, bool, i64)| look.0 != wanted && look.0 != self.holds;
        let begins = self.looks.iter().rposition(is_third).map_or(0, |n| n + 1);
        let about = &self.looks[begins..];
        let last = |n: usize| &about[about.len().saturating_sub(n)..];
        if says == self.holds {
            let lives_on = evidence == Evidence::Timing
                && wanted.is_some()
                && !(about.len() >= 3 && last(3).iter().all(|look| look.0 == self.holds));
            if !lives_on {
                self.looks.clear();
            }
            return None;
        }
        let needed = confirm(evidence);
        let is_there = match (wanted, evidence) {
            (None, _) => about.iter().rev().take_while(|look| look.0.is_none()).count() as i64 >= needed.close,
            (_, Evidence::Timing) => last(5).iter().filter(|look| look.0 == wanted).count() >= 3,
            (_, Evidence::Document) => {
                let same = about[1..].iter().rev().take_while(|look| look.1).count() as i64;
                same + 1 >= needed.open
            }
            _ => about.len() as i64 >= needed.open,
        };
        let others = self.looks.iter().rev().take_while(|look| look.0 != self.holds).count();
        let whatever = if evidence == Evidence::Timing { 5 } else { 4 };
        if !is_there && !said.is_settled && others < whatever {
            return None;
        }
        let since_s = about.iter().find(|look| look.0 == wanted).map(|look| look.2);
        self.holds = wanted;
        self.looks.clear();
        since_s
    }
}

#[test]
fn random_attributes_come_out_as_the_text_says() {
    let sequences = std::env::var("PLUMBLINE_SEQUENCES").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let (mut settled, mut waited) = (0_u64, 0_u64);
    for seed in 0..sequences {
        let mut dice = Dice(seed ^ 0xfac7);
        let evidence = Evidence::ALL[dice.roll(Evidence::ALL.len() as u64) as usize];
        let looks = sequence(&mut dice);
        let values = 1 + dice.roll(3);
        let (mut model, mut attribute) = (Attributed::default(), Attribute::default());
        let mut until_s = i64::MIN;
        for (n, said) in looks.iter().enumerate() {
            let value = (said.signal == Signal::Fires).then(|| dice.roll(values));
            let look = Look {
                signal: said.signal,
                at_s: said.at_s,
                is_verification: said.is_verification,
                is_first: false,
                is_settled: said.is_settled,
                is_same_document: said.is_same_document,
            };
            let (after, change) = attributes::step(&attribute, &look, value, evidence);
            let since_s = model.take(*said, value, evidence);
            let context = || format!("seed {seed} {evidence}, look {n}: {:#?}\n{attribute:?}\n{model:?}", &looks[..=n]);
            assert_eq!(after.holds, model.holds, "{}", context());
            assert_eq!(after.waits.is_some(), !model.looks.is_empty(), "{}", context());
            if let Change::Settle(at_s) = change {
                assert_eq!(Some(at_s), since_s, "{}", context());
                assert!(at_s >= until_s, "spans overlap: {}", context());
                until_s = at_s;
                settled += 1;
            } else {
                assert_eq!(since_s, None, "{}", context());
            }
            waited += u64::from(change == Change::Wait);
            attribute = after;
        }
    }
    assert!(settled > sequences && waited > sequences, "{settled} settled, {waited} waited");
}
