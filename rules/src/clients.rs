//! Which released clients refuse which fault: documents of ours with one fault each, opened with pinned SDKs.
//!
//! The table is made by `tests/clients/run.py` and never by hand; tests hold it against what rules say about their impact.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

crate::words! {
    /// What a client does with a document.
    pub enum Does {
        /// It takes it, or finishes the handshake and the list. Whether something is lost is not said.
        Opens = "opens",
        /// It ends with an error, and takes the same document without the fault.
        Refuses = "refuses",
        /// It refuses the sound document of that revision as well, which says nothing about the fault.
        Unaware = "unaware",
    }
}

/// The whole table.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Table {
    /// The SDKs, each with its version.
    pub clients: Vec<String>,
    /// The faults.
    pub rows: Vec<Row>,
}

/// One fault, and what clients do with it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Row {
    /// The rule that it breaks.
    pub rule: String,
    /// The sound document it was made in (a file in `rules/examples` without its ending).
    pub over: String,
    /// The fault in words.
    pub change: String,
    /// Members that were set, by JSON Pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Value>,
    /// Members that were taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// The whole body, where the fault is in the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// What each client does that was run on documents of this kind.
    pub clients: BTreeMap<String, Outcome>,
}

/// What one client does with one fault.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Outcome {
    /// The word.
    pub outcome: Does,
    /// Of a refusal the beginning of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

impl Row {
    /// What a client does; `None` where it was not run on documents of this kind.
    pub fn does(&self, client: &str) -> Option<Does> {
        self.clients.get(client).map(|outcome| outcome.outcome)
    }
}

/// The table as it was kept.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        serde_json::from_str(include_str!("clients.json")).expect("the table is kept in its own form, a test reads it")
    });
    &TABLE
}

/// The rows about a rule.
pub fn rows_of(rule: &str) -> impl Iterator<Item = &'static Row> {
    table().rows.iter().filter(move |row| row.rule == rule)
}
