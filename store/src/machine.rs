//! A finding's state machine: what is remembered of it and what one look said give what is remembered next.
//!
//! Pure on purpose. Its table is dashboard §4.2 and its test is that table. Looks in which the rule was not judged move
//! nothing: an outage never looks like a fix, and never like a fault.
//!
//! Openings and closings need more than one look, how many says the kind of evidence ([`confirm`]). Whoever comes and goes
//! too often is called so once and then left in peace until it has calmed down (§4.4).

use crate::words::{Cause, Evidence, FindingState, OpenedAs, Resolution};

/// What one look says about one finding.
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

/// How many judged looks it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirm {
    /// Firing looks to open.
    pub open: i64,
    /// Within so many looks; as many as `open`: in a row.
    pub within: i64,
    /// Passing looks in a row to close.
    pub close: i64,
}

/// What each kind of evidence needs (dashboard §4.2).
#[must_use]
pub fn confirm(evidence: Evidence) -> Confirm {
    match evidence {
        Evidence::Document | Evidence::History => Confirm { open: 2, within: 2, close: 1 },
        Evidence::Live => Confirm { open: 3, within: 3, close: 2 },
        Evidence::Timing => Confirm { open: 3, within: 5, close: 5 },
        Evidence::Time => Confirm { open: 1, within: 1, close: 1 },
    }
}

/// Firing looks in a row after which a finding opens though the document was another at each of them, as one that carries
/// the time of day is: it is there whatever else moved.
pub(crate) const WHATEVER_MOVES: i64 = 4;

/// Flips among the last [`WINDOW`] looks from which on it flaps, and down to which it has calmed.
const FLAPPING_FROM: u32 = 5;
const CALM_AT: u32 = 1;
/// Regular looks over which flips are counted.
pub const WINDOW: u32 = 20;
/// Equal looks in a row after which it has calmed, whatever came before.
const EQUAL_IN_A_ROW: u32 = 12;
/// So many confirmed openings within a week are flapping too.
const WEEK_S: i64 = 7 * 86_400;

/// What is remembered of a finding between looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Its state; `None`: it never was open, and is not suspected.
    pub state: Option<FindingState>,
    /// `pending`: firing looks that count; `clearing`: passing looks in a row; `flapping`: regular looks since it began.
    pub count: i64,
    /// What the last looks said while `pending`, verifications included.
    pub recent: Recent,
    /// What regular looks said.
    pub raw: Flips,
    /// When it opened last and the time before, in Unix seconds, as far as that counts for flapping.
    pub openings: [Option<i64>; 2],
    /// It has been open before.
    pub has_opened: bool,
}

/// One look, as far as one finding is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// What it says.
    pub signal: Signal,
    /// When, in Unix seconds.
    pub at_s: i64,
    /// It was made to confirm a change, out of turn.
    pub is_verification: bool,
    /// The surface's first complete evaluation, which needs no confirmation.
    pub is_first: bool,
    /// It needs no second look: the document was seen before and only our rule is new, or a registry's list holds it, of
    /// which there is one copy.
    pub is_settled: bool,
    /// The document says what it said at the surface's last evaluation.
    pub is_same_document: bool,
}

/// What a look does to a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Nothing.
    Stay,
    /// It fires and waits to be confirmed.
    Suspect,
    /// One more look towards opening or closing, not yet enough.
    Count,
    /// It was not confirmed and never had been open: as if nothing had been.
    Forget,
    /// It was not confirmed; it stays resolved as before.
    Refute,
    /// It is open from the first look that fired.
    Open,
    /// It stopped firing and waits to be confirmed.
    Doubt,
    /// It fires after all and stays open.
    Reassure,
    /// It is over, since the first look that passed.
    Resolve(Resolution),
    /// It is put away with its target or rule.
    Retire(Resolution),
    /// It comes and goes; it counts as open from now on if it did not before.
    StartFlapping,
    /// It has calmed down and is open.
    StayOpen,
    /// It has calmed down and is over.
    StayAway,
}

/// Steps the machine once. `before` must be brought up to this look: [`Memory::after_equal_looks`].
#[must_use]
pub fn step(before: &Memory, look: &Look, evidence: Evidence) -> (Memory, Move) {
    match look.signal {
        Signal::Unjudged => (*before, Move::Stay),
        Signal::Fires => judged(before, look, evidence, true),
        Signal::Clear => judged(before, look, evidence, false),
        Signal::DocumentGone => ended(before, gone(before)),
        Signal::TargetRetired => ended(before, retired(before, Resolution::TargetRetired)),
        Signal::RuleWithdrawn => ended(before, retired(before, Resolution::RuleChanged)),
    }
}

fn judged(before: &Memory, look: &Look, evidence: Evidence, fires: bool) -> (Memory, Move) {
    if before.state == Some(FindingState::Flapping) {
        return flapping(before, look, fires);
    }
    let (mut after, moved) =
        if fires { firing(before, look, evidence) } else { passing(before, confirm(evidence), evidence) };
    let is_refuted = matches!(moved, Move::Forget | Move::Refute | Move::Reassure);
    let flipped = match look.is_verification {
        false => after.raw.note(fires),
        true if is_refuted => after.raw.correct(fires),
        true => false,
    };
    if moved == Move::Open {
        after.openings = [Some(look.at_s), before.openings[0]];
        after.has_opened = true;
    }
    let is_third = moved == Move::Open && before.openings[1].is_some_and(|at_s| look.at_s - at_s <= WEEK_S);
    if is_third || (flipped && after.raw.flips() >= FLAPPING_FROM) {
        after.state = Some(FindingState::Flapping);
        (after.count, after.recent, after.has_opened) = (0, Recent::default(), true);
        return (after, Move::StartFlapping);
    }
    (after, moved)
}

fn firing(before: &Memory, look: &Look, evidence: Evidence) -> (Memory, Move) {
    let needed = confirm(evidence);
    let mut after = *before;
    match before.state {
        None | Some(FindingState::Resolved | FindingState::Retired) => {
            if look.is_first || look.is_settled || needed.open <= 1 {
                return settled(after, FindingState::Open, Move::Open);
            }
            after.state = Some(FindingState::Pending);
            (after.count, after.recent) = (1, Recent::default().with(true));
            (after, Move::Suspect)
        }
        Some(FindingState::Pending) => {
            after.recent = before.recent.with(true);
            after.count = match evidence {
                // Two back ends may serve different builds: each has to be seen twice.
                Evidence::Document if !look.is_same_document => 1,
                Evidence::Timing => after.recent.fired(),
                Evidence::Document | Evidence::Live | Evidence::Time | Evidence::History => before.count + 1,
            };
            let is_there = look.is_settled
                || after.count >= needed.open
                || evidence == Evidence::Document && after.recent.fired() >= WHATEVER_MOVES;
            if is_there { settled(after, FindingState::Open, Move::Open) } else { (after, Move::Count) }
        }
        Some(FindingState::Clearing) => settled(after, FindingState::Open, Move::Reassure),
        Some(FindingState::Open | FindingState::Flapping) => (after, Move::Stay),
    }
}

fn passing(before: &Memory, needed: Confirm, evidence: Evidence) -> (Memory, Move) {
    let mut after = *before;
    let is_over = |count: i64| count >= needed.close;
    match before.state {
        Some(FindingState::Open) if is_over(1) => fixed(after),
        Some(FindingState::Open) => {
            (after.state, after.count) = (Some(FindingState::Clearing), 1);
            (after, Move::Doubt)
        }
        Some(FindingState::Clearing) if is_over(before.count + 1) => fixed(after),
        Some(FindingState::Clearing) => {
            after.count += 1;
            (after, Move::Count)
        }
        Some(FindingState::Pending) => {
            after.recent = before.recent.with(false);
            // With so many passes in a row no look before them can be one of those that open it.
            let is_hopeless = after.recent.passes_in_a_row() > needed.within - needed.open;
            if evidence != Evidence::Timing || is_hopeless {
                return refuted(after);
            }
            after.count = after.recent.fired();
            (after, Move::Count)
        }
        None | Some(FindingState::Resolved | FindingState::Flapping | FindingState::Retired) => (after, Move::Stay),
    }
}

/// Flapping takes in what regular looks say and ends when they agree for long enough.
fn flapping(before: &Memory, look: &Look, fires: bool) -> (Memory, Move) {
    let mut after = *before;
    if look.is_verification {
        return (after, Move::Stay);
    }
    after.raw.note(fires);
    after.count += 1;
    let since = u32::try_from(after.count).unwrap_or(u32::MAX);
    let is_calm = since >= EQUAL_IN_A_ROW && after.raw.equal_in_a_row() >= EQUAL_IN_A_ROW
        || since >= WINDOW && after.raw.flips() <= CALM_AT;
    if !is_calm {
        return (after, Move::Stay);
    }
    // What it did before it calmed down is paid for.
    (after.raw, after.openings) = (Flips::default(), [None, None]);
    after.raw.note(fires);
    let (state, moved) =
        if fires { (FindingState::Open, Move::StayOpen) } else { (FindingState::Resolved, Move::StayAway) };
    settled(after, state, moved)
}

fn settled(mut after: Memory, state: FindingState, moved: Move) -> (Memory, Move) {
    after.state = Some(state);
    (after.count, after.recent) = (0, Recent::default());
    (after, moved)
}

fn fixed(after: Memory) -> (Memory, Move) {
    settled(after, FindingState::Resolved, Move::Resolve(Resolution::Fixed))
}

fn refuted(after: Memory) -> (Memory, Move) {
    if after.has_opened {
        return settled(after, FindingState::Resolved, Move::Refute);
    }
    let (mut after, moved) = settled(after, FindingState::Resolved, Move::Forget);
    after.state = None;
    (after, moved)
}

fn gone(before: &Memory) -> Move {
    match before.state {
        Some(FindingState::Open | FindingState::Clearing | FindingState::Flapping) => {
            Move::Resolve(Resolution::DocumentGone)
        }
        Some(FindingState::Pending) if before.has_opened => Move::Refute,
        Some(FindingState::Pending) => Move::Forget,
        None | Some(FindingState::Resolved | FindingState::Retired) => Move::Stay,
    }
}

fn retired(before: &Memory, resolution: Resolution) -> Move {
    match before.state {
        None | Some(FindingState::Retired) => Move::Stay,
        Some(_) => Move::Retire(resolution),
    }
}

/// The end that is no judgement. What looks said before it counts for nothing afterwards.
fn ended(before: &Memory, moved: Move) -> (Memory, Move) {
    let state = match moved {
        Move::Resolve(_) | Move::Refute => Some(FindingState::Resolved),
        Move::Retire(_) => Some(FindingState::Retired),
        Move::Forget => None,
        _ => return (*before, Move::Stay),
    };
    (Memory { state, has_opened: before.has_opened, ..Memory::default() }, moved)
}

impl Memory {
    /// Of a rule that has no finding yet. `passed`: it was judged when the surface was last looked at.
    #[must_use]
    pub fn new(passed: bool) -> Memory {
        let mut memory = Memory::default();
        if passed {
            memory.raw.note(false);
        }
        memory
    }

    /// The same after so many more regular looks that all said what the last one said.
    #[must_use]
    pub fn after_equal_looks(mut self, times: i64) -> Memory {
        if times <= 0 || self.raw.observed == 0 {
            return self;
        }
        if self.state == Some(FindingState::Flapping) {
            self.count += times;
        }
        let says = self.raw.last();
        (0..times.min(32)).for_each(|_| _ = self.raw.note(says));
        self
    }

    /// Counts as failing.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state.is_some_and(FindingState::is_open)
    }

    /// A look more would settle something.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        matches!(self.state, Some(FindingState::Pending | FindingState::Clearing))
    }
}

/// What the last looks said, five at most, newest in bit 0, above them a bit that marks where they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recent(pub u8);

impl Default for Recent {
    fn default() -> Self {
        Recent(1)
    }
}

impl Recent {
    /// The most that are kept.
    const MOST: u32 = 5;

    /// After one more.
    #[must_use]
    pub(crate) fn with(self, fired: bool) -> Recent {
        let known = self.known();
        let bits = (u32::from(self.0) & ((1 << known) - 1)) << 1 | u32::from(fired);
        let known = (known + 1).min(Self::MOST);
        // Five bits and a mark are six, which a byte holds.
        Recent(u8::try_from(bits & ((1 << known) - 1) | 1 << known).unwrap_or(u8::MAX))
    }

    fn known(self) -> u32 {
        self.0.checked_ilog2().unwrap_or(0).min(Self::MOST)
    }

    pub(crate) fn fired(self) -> i64 {
        let looks = u32::from(self.0) & ((1 << self.known()) - 1);
        i64::from(looks.count_ones())
    }

    pub(crate) fn passes_in_a_row(self) -> i64 {
        i64::from(u32::from(self.0).trailing_zeros().min(self.known()))
    }
}

/// What the last regular looks said, newest in bit 0, 32 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flips {
    /// One bit each: 1 fired.
    pub bits: u32,
    /// One bit each: 1, a verification said otherwise, and the bit above tells what that said.
    pub refuted: u32,
    /// How many bits are real.
    pub observed: u32,
}

impl Flips {
    /// Takes in one regular look. Tells whether it says something else than the one before.
    pub fn note(&mut self, fired: bool) -> bool {
        let flipped = self.observed > 0 && self.last() != fired;
        self.bits = self.bits << 1 | u32::from(fired);
        self.refuted <<= 1;
        self.observed = (self.observed + 1).min(32);
        flipped
    }

    /// A verification refutes the newest look: there and back are two flips. Always tells that it flipped.
    pub fn correct(&mut self, fired: bool) -> bool {
        if self.observed == 0 {
            self.note(fired);
        }
        self.bits = self.bits & !1 | u32::from(fired);
        self.refuted |= 1;
        true
    }

    /// What the newest look said.
    #[must_use]
    pub fn last(self) -> bool {
        self.bits & 1 == 1
    }

    /// Flips among the last [`WINDOW`] looks, twice for each that was refuted.
    #[must_use]
    pub fn flips(self) -> u32 {
        let looks = self.observed.min(WINDOW);
        let within = |n: u32| (1_u32 << n) - 1;
        let changes = (self.bits ^ self.bits >> 1) & within(looks.saturating_sub(1));
        changes.count_ones() + 2 * (self.refuted & within(looks)).count_ones()
    }

    /// How many looks in a row said what the newest said and were not refuted.
    #[must_use]
    pub fn equal_in_a_row(self) -> u32 {
        if self.observed == 0 {
            return 0;
        }
        let changes = self.bits ^ self.bits >> 1;
        let unbroken = changes.trailing_zeros() + 1;
        // A refuted look flipped to its value and so begins the row.
        let unrefuted = self.refuted.trailing_zeros() + 1;
        unbroken.min(unrefuted).min(self.observed)
    }

    /// The last [`WINDOW`] looks, oldest first: whether each fired.
    #[must_use]
    pub fn strip(self) -> Vec<bool> {
        (0..self.observed.min(WINDOW)).rev().map(|n| self.bits >> n & 1 == 1).collect()
    }
}

/// What is known about an opening, to say what it is (dashboard §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The surface's first complete evaluation.
    pub first_look: bool,
    /// How the rule is to what it was at the surface's last evaluation.
    pub rule: RuleMove,
    /// The document is another than at the last evaluation.
    pub document_moved: bool,
    /// Whether the rule as it is now fires on the document as it was; `None`: nobody judged that.
    pub fired_on_old: Option<bool>,
    /// Whether the rule as it was fires on the document as it is now; `None`: nobody judged that.
    pub old_rule_fires: Option<bool>,
    /// What can prove the finding.
    pub evidence: Evidence,
    /// It was resolved as fixed before.
    pub was_fixed: bool,
    /// The surface passed this very version of the rule at two moments a day or more apart.
    pub track_record: bool,
}

/// What became of a rule between two evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleMove {
    /// Nothing.
    Same,
    /// Its condition changed.
    Changed,
    /// It did not exist before.
    New,
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
    if opening.rule != RuleMove::Same {
        return by_both(opening, by_record);
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

/// The rule moved: old and new document under old and new rules.
fn by_both(opening: &Opening, by_record: OpenedAs) -> (OpenedAs, Cause) {
    // What an endpoint did cannot be judged again by other rules, and a document that did not move was passed by the old.
    if opening.evidence != Evidence::Document || !opening.document_moved {
        return (OpenedAs::Rule, Cause::Rule);
    }
    match (opening.fired_on_old, opening.rule, opening.old_rule_fires) {
        (Some(true), _, _) => (OpenedAs::Rule, Cause::Rule),
        (Some(false), RuleMove::New, _) | (Some(false), _, Some(true)) => (by_record, Cause::Document),
        (Some(false), _, Some(false)) => (OpenedAs::Rule, Cause::Joint),
        (Some(false), _, None) | (None, _, _) => (by_record, Cause::Unknown),
    }
}

/// Whether an opening is a regression: it worked before, and neither we nor the clock did it.
#[must_use]
pub fn is_regression(opened_as: OpenedAs, cause: Cause) -> bool {
    let worked_before = matches!(opened_as, OpenedAs::Broke | OpenedAs::Again);
    let was_theirs = matches!(cause, Cause::Document | Cause::Behaviour);
    worked_before && was_theirs
}

#[cfg(test)]
mod tests {
    use super::*;
    use FindingState as S;

    fn look(signal: Signal) -> Look {
        Look { signal, at_s: 0, is_verification: false, is_first: false, is_settled: false, is_same_document: true }
    }

    fn memory(state: Option<S>, count: i64, has_opened: bool) -> Memory {
        let recent = (0..count).fold(Recent::default(), |recent, _| recent.with(true));
        Memory { state, count, recent, has_opened, ..Memory::default() }
    }

    #[test]
    fn every_state_meets_every_signal_as_the_table_says() {
        use Evidence::{Document, Live, Time};
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
        type Line = (Option<S>, i64, bool, Evidence, [Move; 6]);
        #[rustfmt::skip]
        let table: &[Line] = &[
            // state, counted, opened before, evidence  fires     clear           unjudged gone               retired withdrawn
            (None,               0, false, Time,     [Open,     Stay,           Stay, Stay,                  Stay, Stay]),
            (None,               0, false, Document, [Suspect,  Stay,           Stay, Stay,                  Stay, Stay]),
            (Some(S::Pending),   1, false, Document, [Open,     Forget,         Stay, Forget,                gone, withdrawn]),
            (Some(S::Pending),   1, true,  Document, [Open,     Refute,         Stay, Refute,                gone, withdrawn]),
            (Some(S::Pending),   1, false, Live,     [Count,    Forget,         Stay, Forget,                gone, withdrawn]),
            (Some(S::Pending),   2, false, Live,     [Open,     Forget,         Stay, Forget,                gone, withdrawn]),
            (Some(S::Open),      0, true,  Document, [Stay,     Resolve(Fixed), Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Open),      0, true,  Live,     [Stay,     Doubt,          Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Clearing),  1, true,  Live,     [Reassure, Resolve(Fixed), Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Clearing),  1, true,  Evidence::Timing, [Reassure, Count,  Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Resolved),  0, true,  Time,     [Open,     Stay,           Stay, Stay,                  gone, withdrawn]),
            (Some(S::Resolved),  0, true,  Document, [Suspect,  Stay,           Stay, Stay,                  gone, withdrawn]),
            (Some(S::Flapping),  0, true,  Document, [Stay,     Stay,           Stay, Resolve(DocumentGone), gone, withdrawn]),
            (Some(S::Retired),   0, true,  Document, [Suspect,  Stay,           Stay, Stay,                  Stay, Stay]),
        ];
        for (state, count, has_opened, evidence, moves) in table {
            let before = memory(*state, *count, *has_opened);
            for (signal, expected) in columns.iter().zip(moves) {
                let (_, found) = step(&before, &look(*signal), *evidence);
                assert_eq!(found, *expected, "{before:?} {signal:?} {evidence:?}");
            }
        }
        for state in S::ALL {
            assert!(table.iter().any(|row| row.0 == Some(*state)), "{state} has no row");
        }
    }

    #[test]
    fn each_kind_of_evidence_has_its_counts() {
        let counts = |evidence| {
            let Confirm { open, within, close } = confirm(evidence);
            (open, within, close)
        };
        assert_eq!(counts(Evidence::Document), (2, 2, 1));
        assert_eq!(counts(Evidence::History), (2, 2, 1));
        assert_eq!(counts(Evidence::Live), (3, 3, 2));
        assert_eq!(counts(Evidence::Timing), (3, 5, 5));
        assert_eq!(counts(Evidence::Time), (1, 1, 1));
    }

    #[test]
    fn a_first_look_and_a_settled_one_need_no_confirmation() {
        for evidence in Evidence::ALL {
            for quick in [
                Look { is_first: true, ..look(Signal::Fires) },
                Look { is_settled: true, is_same_document: false, ..look(Signal::Fires) },
            ] {
                let (after, moved) = step(&Memory::default(), &quick, *evidence);
                assert_eq!((after.state, moved), (Some(S::Open), Move::Open));
            }
        }
    }

    /// Plays looks a minute apart and tells the state after each. `F` fires, `P` passes, `U` is not judged; a small letter
    /// is a verification, `G` fires with another document than the look before.
    fn play(looks: &str, evidence: Evidence) -> (String, Memory) {
        let letter = |state: Option<S>| match state {
            None => '-',
            Some(S::Pending) => 'p',
            Some(S::Open) => 'o',
            Some(S::Clearing) => 'c',
            Some(S::Resolved) => 'r',
            Some(S::Flapping) => 'f',
            Some(S::Retired) => 'x',
        };
        let mut memory = Memory::new(true);
        let mut states = String::new();
        for (at_s, said) in (0..).step_by(60).zip(looks.chars()) {
            let signal = match said.to_ascii_uppercase() {
                'F' | 'G' => Signal::Fires,
                'P' => Signal::Clear,
                _ => Signal::Unjudged,
            };
            let is_verification = said.is_ascii_lowercase();
            let is_same_document = !said.eq_ignore_ascii_case(&'G');
            let look = Look { at_s, is_verification, is_same_document, ..look(signal) };
            memory = step(&memory, &look, evidence).0;
            states.push(letter(memory.state));
        }
        (states, memory)
    }

    fn check(evidence: Evidence, traces: &[(&str, &str)]) {
        for (looks, states) in traces {
            assert_eq!(play(looks, evidence).0, *states, "{looks}");
        }
    }

    #[test]
    fn the_worked_traces_come_out_as_written() {
        let document = [
            ("Ff", "po"),         // confirmed by its verification
            ("Fp", "p-"),         // refuted: nothing opened
            ("FuF", "ppo"),       // an outage neither confirms nor clears
            ("FfUUUP", "poooor"), // one finding, one span, resolved only when it passes
            ("FfPFf", "porpo"),   // fixed, then again
            ("UUUU", "----"),     // a document that does not parse says nothing of other rules
            ("FfUUU", "poooo"),   // and what was open stays open
        ];
        check(Evidence::Document, &document);
        assert_eq!(play("Fp", Evidence::Document).1.raw.flips(), 2, "there and back, counted once");
    }

    #[test]
    fn two_builds_behind_one_address_have_to_be_seen_twice_each() {
        let traces = [
            ("FG", "pp"),   // another document: it counts for itself
            ("FGf", "ppo"), // and is confirmed by the same again
            ("FGP", "pp-"),
            ("FGGG", "pppo"), // another document each time, and it fires in all of them
        ];
        check(Evidence::Document, &traces);
        check(Evidence::History, &[("FG", "po")]);
        check(Evidence::Live, &[("FGG", "ppo")]);
    }

    #[test]
    fn behaviour_is_seen_three_times_to_open_and_twice_to_close() {
        check(Evidence::Live, &[("FFF", "ppo"), ("FFP", "pp-"), ("Fffpp", "ppocr"), ("FFFPFPP", "ppococr")]);
    }

    #[test]
    fn timing_opens_with_three_of_five_and_closes_with_five() {
        let traces = [
            ("FFF", "ppo"),
            ("FpfpF", "ppppo"),
            ("FPPFF", "ppppo"),
            ("FPPP", "ppp-"),         // nothing before can be one of three of five any more
            ("FppfppfF", "pppppppo"), // the first has left the five, and three of the last five fire
            ("FFFPPPPP", "ppoccccr"),
            ("FFFPPPPF", "ppocccco"),
        ];
        check(Evidence::Timing, &traces);
    }

    #[test]
    fn the_clock_needs_nobody_to_confirm_it() {
        check(Evidence::Time, &[("F", "o"), ("FUP", "oor")]);
    }

    #[test]
    fn two_back_ends_in_turn_flap() {
        // Five flips: three openings would have been too many as well.
        check(Evidence::Document, &[("FfPFfPF", "porporf")]);
        // Every look is refuted: twice there and back, and once more there.
        let (states, memory) = play("FpFpF", Evidence::Document);
        assert_eq!((states.as_str(), memory.raw.flips()), ("p-p-f", 5));
        // Without verifications.
        check(Evidence::Document, &[("FPFPF", "p-p-f")]);
    }

    #[test]
    fn flapping_ends_when_it_has_been_quiet_for_long() {
        let (states, _) = play("FPFPFPFPFP", Evidence::Document);
        assert_eq!(&states[4..], "ffffff");
        let quiet = |last: &str, n: usize| play(&format!("FPFPF{}", last.repeat(n)), Evidence::Document).0;
        assert!(quiet("P", 11).ends_with('f') && quiet("P", 12).ends_with('r'));
        assert!(quiet("F", 11).ends_with('f') && quiet("F", 12).ends_with('o'));
        assert!(quiet("pf", 50).ends_with('f'), "verifications are no regular looks");
        assert!(quiet("U", 50).ends_with('f'), "nor is silence");
    }

    #[test]
    fn one_flip_in_twenty_looks_is_calm_too() {
        let (states, _) = play(&format!("FPFPF{}{}", "F".repeat(9), "P".repeat(11)), Evidence::Document);
        assert_eq!(states.chars().position(|state| state == 'r'), Some(24), "{states}");
    }

    #[test]
    fn what_has_calmed_down_begins_with_a_clean_slate() {
        let calm = format!("FPFPF{}", "P".repeat(12));
        check(Evidence::Document, &[(&format!("{calm}Ff"), &format!("p-p-{}rpo", "f".repeat(12)))]);
    }

    #[test]
    fn three_openings_in_more_than_a_week_are_no_flapping() {
        let day = 86_400;
        let mut memory = Memory::new(true);
        let mut say = |signal, at_s| {
            let (after, moved) = step(&memory, &Look { at_s, ..look(signal) }, Evidence::Time);
            memory = after.after_equal_looks(30);
            moved
        };
        for (at_s, expected) in [(0, Move::Open), (3 * day, Move::Open), (7 * day + 1, Move::Open)] {
            assert_eq!(say(Signal::Fires, at_s), expected);
            assert_eq!(say(Signal::Clear, at_s + 60), Move::Resolve(Resolution::Fixed));
        }
        assert_eq!(say(Signal::Fires, 8 * day), Move::StartFlapping);
    }

    #[test]
    fn equal_looks_that_were_not_written_down_are_made_up_for() {
        let one_by_one = play("Ff", Evidence::Document).1;
        let mut by_hand = one_by_one;
        for _ in 0..7 {
            by_hand = step(&by_hand, &look(Signal::Fires), Evidence::Document).0;
        }
        assert_eq!(by_hand, one_by_one.after_equal_looks(7));
        assert_eq!(Memory::default().after_equal_looks(9), Memory::default());
    }

    #[test]
    fn raw_looks_are_remembered_and_their_flips_counted() {
        let flips = |said: &str| {
            let mut raw = Flips::default();
            said.chars().for_each(|said| _ = raw.note(said == 'F'));
            raw
        };
        assert_eq!(flips("FPPF"), Flips { bits: 0b1001, refuted: 0, observed: 4 });
        assert_eq!((flips("FPPF").flips(), flips("PPPP").flips(), Flips::default().flips()), (2, 0, 0));
        assert_eq!(flips(&"FP".repeat(40)).flips(), WINDOW - 1);
        assert_eq!(flips(&"FP".repeat(40)).observed, 32);
        let mut raw = flips("PPF");
        assert!(raw.correct(false));
        assert_eq!((raw.flips(), raw.last(), raw.equal_in_a_row()), (2, false, 1));
        raw.note(false);
        assert_eq!((raw.flips(), raw.equal_in_a_row()), (2, 2));
        assert_eq!(flips("FPP").strip(), [true, false, false]);
    }

    #[test]
    fn openings_are_classified_by_what_moved() {
        use Cause as C;
        use OpenedAs as O;
        let base = Opening {
            first_look: false,
            rule: RuleMove::Same,
            document_moved: true,
            fired_on_old: None,
            old_rule_fires: None,
            evidence: Evidence::Document,
            was_fixed: false,
            track_record: true,
        };
        let same = Opening { document_moved: false, ..base };
        let changed = Opening { rule: RuleMove::Changed, ..base };
        let new = Opening { rule: RuleMove::New, ..base };
        let passed = Some(false);
        let fired = Some(true);
        for (opening, expected, regression) in [
            (Opening { first_look: true, ..base }, (O::Baseline, C::Baseline), false),
            (base, (O::Broke, C::Document), true),
            (Opening { was_fixed: true, ..base }, (O::Again, C::Document), true),
            (Opening { track_record: false, ..base }, (O::First, C::Document), false),
            (Opening { evidence: Evidence::Live, ..same }, (O::Broke, C::Behaviour), true),
            (Opening { evidence: Evidence::Time, ..same }, (O::Broke, C::Clock), false),
            // Only the rule moved.
            (Opening { rule: RuleMove::Changed, ..same }, (O::Rule, C::Rule), false),
            (Opening { rule: RuleMove::New, ..same }, (O::Rule, C::Rule), false),
            // Both moved: the old document fails the new rules.
            (Opening { fired_on_old: fired, ..changed }, (O::Rule, C::Rule), false),
            (Opening { fired_on_old: fired, ..new }, (O::Rule, C::Rule), false),
            (Opening { fired_on_old: fired, old_rule_fires: fired, ..changed }, (O::Rule, C::Rule), false),
            // It passes them, and the new document fails the old rules, or there were none.
            (Opening { fired_on_old: passed, old_rule_fires: fired, ..changed }, (O::Broke, C::Document), true),
            (Opening { fired_on_old: passed, ..new }, (O::Broke, C::Document), true),
            (Opening { fired_on_old: passed, was_fixed: true, ..new }, (O::Again, C::Document), true),
            // It takes both.
            (Opening { fired_on_old: passed, old_rule_fires: passed, ..changed }, (O::Rule, C::Joint), false),
            // Nobody can tell.
            (Opening { fired_on_old: passed, ..changed }, (O::Broke, C::Unknown), false),
            (changed, (O::Broke, C::Unknown), false),
            (new, (O::Broke, C::Unknown), false),
            // Behaviour cannot be judged again.
            (Opening { evidence: Evidence::Live, fired_on_old: passed, ..changed }, (O::Rule, C::Rule), false),
            (Opening { evidence: Evidence::Timing, ..new }, (O::Rule, C::Rule), false),
        ] {
            let found = classify(&opening);
            assert_eq!(found, expected, "{opening:?}");
            assert_eq!(is_regression(found.0, found.1), regression, "{opening:?}");
        }
    }
}
