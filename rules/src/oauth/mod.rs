//! OAuth and OpenID documents of the MCP authorization chain, and those that an agent card names.
//!
//! Their revisions are those of MCP: what the specification asks of a metadata document grew with each.

use crate::kind::{Known, Profile};
use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[];

const REVISIONS: &[Profile] = &[
    revision("mcp-2026-07-28", &["2026-07-28"]),
    revision("mcp-2025-11-25", &["2025-11-25"]),
    revision("mcp-2025-06-18", &["2025-06-18"]),
    revision("mcp-2025-03-26", &["2025-03-26"]),
];

const fn revision(name: &'static str, versions: &'static [&'static str]) -> Profile {
    Profile { name, versions, needs_all: false }
}

/// The revision a metadata document is judged as: that of the request that led to it, else the newest.
pub(crate) fn profile(stated: Option<&str>) -> (Profile, Known) {
    let named = stated.and_then(|version| REVISIONS.iter().find(|profile| profile.has(version)));
    named.map_or((REVISIONS[0], Known::Assumed), |profile| (*profile, Known::Declared))
}
