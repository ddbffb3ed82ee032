//! What the crawler is doing, as the pages tell it. The binary fills it, the pages read it.

use serde::Serialize;

use crate::openmetrics::Distribution;

/// The state of the crawler in this process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CrawlStatus {
    /// The pass that is running now.
    pub running: Option<RunningPass>,
    /// When the next pass starts, in Unix seconds; `None` when none is planned (a process that only shows).
    pub next_pass_at: Option<i64>,
    /// Looks left in this hour; `None`: there is no budget.
    pub budget_left: Option<i64>,
    /// Sources that could not be reached in the last pass or in the running one.
    pub unreached: Vec<Unreached>,
}

/// What this process has counted since it began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessNumbers {
    /// Looks at surfaces: kind, outcome, how many.
    pub looks: Vec<(&'static str, &'static str, u64)>,
    /// How long looks took at the other end.
    pub look_seconds: Distribution,
    /// Judgements made.
    pub judged: u64,
    /// Requests of the crawler by class of the answer.
    pub requests: Vec<(&'static str, u64)>,
    /// Answers that asked us to come back later.
    pub throttles: u64,
    /// How long it took to record a batch.
    pub record_seconds: Distribution,
}

/// A pass that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningPass {
    /// In Unix seconds.
    pub started_at: i64,
    /// What it is doing, as a phrase after "is": `walking the registry "official"`.
    pub activity: String,
    /// Registry entries read so far.
    pub listed: i64,
    /// Surfaces that are due in this pass, as far as known.
    pub planned: i64,
    /// Surfaces looked at so far.
    pub done: i64,
}

/// A source or host that gave us nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unreached {
    /// Whom we asked: a registry's name, a host.
    pub what: String,
    /// The address we asked.
    pub url: String,
    /// Why there was no answer, in words: `the name could not be resolved`.
    pub why: String,
    /// When it is asked again, in Unix seconds, if that is known.
    pub retry_at: Option<i64>,
}
