//! What the crawler has counted, as the pages tell it.

use std::sync::atomic::Ordering;

use plumbline_crawler::counters::{BOUNDS_MS, COUNTERS, Durations};
use plumbline_web::{Distribution, ProcessNumbers};

/// Everything since the process began.
pub fn since_start() -> ProcessNumbers {
    let looks = COUNTERS.looks().into_iter().map(|(kind, outcome, n)| (kind.as_str(), outcome.as_str(), n));
    ProcessNumbers {
        looks: looks.collect(),
        look_seconds: distribution(&COUNTERS.look),
        judged: COUNTERS.judged.load(Ordering::Relaxed),
        requests: COUNTERS.requests(),
        throttles: COUNTERS.throttles.load(Ordering::Relaxed),
        record_seconds: distribution(&COUNTERS.record),
    }
}

/// Milliseconds in classes as seconds up to bounds.
fn distribution(durations: &Durations) -> Distribution {
    let (up_to, sum_ms) = durations.up_to();
    Distribution {
        count: up_to.last().copied().unwrap_or(0),
        up_to: BOUNDS_MS.iter().map(|ms| *ms as f64 / 1000.0).zip(up_to).collect(),
        sum: sum_ms as f64 / 1000.0,
    }
}
