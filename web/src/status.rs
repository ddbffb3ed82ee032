//! What the crawler is doing, as the pages tell it. The binary fills it, the pages read it.

use serde::Serialize;

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
