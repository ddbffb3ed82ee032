//! What the crawler has done since the process began, counted for whoever watches it from outside.
//!
//! There is one set for the process, as there is one log: it outlives a change of settings, and nothing ever reads it to
//! decide something.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plumbline_store::reach::OutcomeClass;
use plumbline_store::words::SurfaceKind;

/// The counters of this process.
pub static COUNTERS: Counters = Counters::new();

/// Upper ends of the classes of durations, in milliseconds.
pub const BOUNDS_MS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000];

/// Classes of HTTP answers, and requests that had none.
pub const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

const KINDS: usize = SurfaceKind::ALL.len();
const OUTCOMES: usize = OutcomeClass::ALL.len();

/// How long something took, in classes.
#[derive(Debug)]
pub struct Durations {
    classes: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_ms: AtomicU64,
}

/// Counts that only grow.
#[derive(Debug)]
pub struct Counters {
    looks: [[AtomicU64; OUTCOMES]; KINDS],
    requests: [AtomicU64; STATUS_CLASSES.len()],
    /// Judgements made.
    pub judged: AtomicU64,
    /// Answers that asked us to come back later (429).
    pub throttles: AtomicU64,
    /// How long looks took at the other end.
    pub look: Durations,
    /// How long it took to record a batch.
    pub record: Durations,
}

impl Durations {
    const fn new() -> Durations {
        Durations { classes: [const { AtomicU64::new(0) }; BOUNDS_MS.len() + 1], sum_ms: AtomicU64::new(0) }
    }

    /// Counts one more.
    pub fn add(&self, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let class = BOUNDS_MS.iter().position(|bound| ms <= *bound).unwrap_or(BOUNDS_MS.len());
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        self.sum_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// How many took at most as long as each bound, then how many there were; and milliseconds in all.
    #[must_use]
    pub fn up_to(&self) -> (Vec<u64>, u64) {
        let mut sum = 0;
        let up_to = self.classes.iter().map(|class| {
            sum += class.load(Ordering::Relaxed);
            sum
        });
        (up_to.collect(), self.sum_ms.load(Ordering::Relaxed))
    }
}

impl Counters {
    const fn new() -> Counters {
        Counters {
            looks: [const { [const { AtomicU64::new(0) }; OUTCOMES] }; KINDS],
            requests: [const { AtomicU64::new(0) }; STATUS_CLASSES.len()],
            judged: AtomicU64::new(0),
            throttles: AtomicU64::new(0),
            look: Durations::new(),
            record: Durations::new(),
        }
    }

    /// A surface was looked at; `took` is for one that was asked over the network.
    pub fn looked(&self, kind: SurfaceKind, outcome: OutcomeClass, took: Option<Duration>, is_judged: bool) {
        if let (Some(kind), Some(outcome)) = (place(SurfaceKind::ALL, &kind), place(OutcomeClass::ALL, &outcome)) {
            self.looks[kind][outcome].fetch_add(1, Ordering::Relaxed);
        }
        if let Some(took) = took {
            self.look.add(took);
        }
        self.judged.fetch_add(u64::from(is_judged), Ordering::Relaxed);
    }

    /// A request was answered with this status, or not at all.
    pub fn answered(&self, status: Option<u16>) {
        let class = status.map_or(0, |status| usize::from(status / 100)).min(STATUS_CLASSES.len() - 1);
        self.requests[class].fetch_add(1, Ordering::Relaxed);
        self.throttles.fetch_add(u64::from(status == Some(429)), Ordering::Relaxed);
    }

    /// Looks by kind and outcome, those that happened.
    #[must_use]
    pub fn looks(&self) -> Vec<(SurfaceKind, OutcomeClass, u64)> {
        let rows = SurfaceKind::ALL.iter().zip(&self.looks);
        let cells = rows.flat_map(|(kind, row)| {
            OutcomeClass::ALL.iter().zip(row).map(|(outcome, n)| (*kind, *outcome, n.load(Ordering::Relaxed)))
        });
        cells.filter(|(_, _, n)| *n > 0).collect()
    }

    /// Requests by class of their answer.
    #[must_use]
    pub fn requests(&self) -> Vec<(&'static str, u64)> {
        STATUS_CLASSES.iter().zip(&self.requests).map(|(class, n)| (*class, n.load(Ordering::Relaxed))).collect()
    }
}

fn place<T: PartialEq>(all: &[T], one: &T) -> Option<usize> {
    all.iter().position(|other| other == one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_up_to_each_bound() {
        let durations = Durations::new();
        for ms in [5, 6, 100_000] {
            durations.add(Duration::from_millis(ms));
        }
        let (up_to, sum_ms) = durations.up_to();
        assert_eq!((&up_to[..3], up_to[11], up_to[12], sum_ms), (&[1, 2, 2][..], 2, 3, 100_011));
    }

    #[test]
    fn looks_and_answers_are_told_apart() {
        let counters = Counters::new();
        counters.looked(SurfaceKind::AgentCard, OutcomeClass::Ok, Some(Duration::from_millis(7)), true);
        counters.looked(SurfaceKind::AgentCard, OutcomeClass::Ok, None, true);
        counters.looked(SurfaceKind::ServerJson, OutcomeClass::Unreachable, None, false);
        assert_eq!(
            counters.looks(),
            [(SurfaceKind::AgentCard, OutcomeClass::Ok, 2), (SurfaceKind::ServerJson, OutcomeClass::Unreachable, 1)]
        );
        assert_eq!((counters.judged.into_inner(), counters.look.up_to().0[12]), (2, 1));
        let counters = Counters::new();
        for status in [None, Some(200), Some(204), Some(429), Some(999)] {
            counters.answered(status);
        }
        assert_eq!(counters.requests(), [("none", 1), ("1xx", 0), ("2xx", 2), ("3xx", 0), ("4xx", 1), ("5xx", 1)]);
        assert_eq!(counters.throttles.into_inner(), 1);
    }
}
