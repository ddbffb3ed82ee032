//! The first answer of a server: which revisions it speaks, and its instructions.

use super::{ALL, HANDSHAKES, LEGACY, MODERN};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &DISCOVER_SUPPORTED_VERSIONS,
    &INITIALIZE_VERSION_MISSING,
    &DISCOVER_VERSION_NOT_LISTED,
    &VERSION_FORMAT,
    &VERSION_UNKNOWN,
    &PROTOCOL_VERSION_OLD,
    &INSTRUCTIONS_TYPE,
    &INSTRUCTIONS_LONG,
];

/// Every published revision; what else looks like a date is a typo or a private one.
const PUBLISHED: &[&str] = ALL;

/// Whether a text is a date of the form YYYY-MM-DD.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let two = |at: usize| text.get(at..at + 2).and_then(|digits| digits.parse::<u8>().ok());
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(n, b)| if n == 4 || n == 7 { *b == b'-' } else { b.is_ascii_digit() })
        && matches!(two(5), Some(1..=12))
        && matches!(two(8), Some(1..=31))
}

/// Whether a text is a revision, published or in the making: a date, and perhaps which draft or candidate of it.
fn is_revision(text: &str) -> bool {
    let (date, label) = text.split_at_checked(10).unwrap_or((text, ""));
    let is_label = label.is_empty() || label.starts_with("-RC") || label.trim_start_matches('-').starts_with("DRAFT-");
    (is_date(date) && is_label) || text.starts_with("DRAFT-")
}

/// The versions that a first answer names.
fn versions<'d>(result: Node<'d>, context: &Context<'_>) -> Vec<Node<'d>> {
    match context.kind {
        Kind::McpDiscoverResult => result.get("supportedVersions").into_iter().flat_map(Node::items).collect(),
        _ => result.get("protocolVersion").into_iter().collect(),
    }
}

crate::rule! {
    /// A server says which revisions it speaks.
    ///
    /// `supportedVersions` is what a client picks from, so it is a list of strings with at least one in it.
    static DISCOVER_SUPPORTED_VERSIONS = {
        id: "mcp/discover-supported-versions",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 31,
        versions: MODERN,
        on: &[Kind::McpDiscoverResult],
        place: "/supportedVersions | /supportedVersions/*",
        fix: "List every supported revision.",
        spec: "2026-07-28 schema DiscoverResult",
        seeds: &["gaip:MCP_PROTOCOL_VERSION_REQUIRED"],
        examples: &[
            fires(&["/supportedVersions"], r#"{"supportedVersions": []}"#),
            fires(&["/supportedVersions/1"], r#"{"supportedVersions": ["2026-07-28", 20251125]}"#),
            silent(r#"{"supportedVersions": ["2026-07-28"]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(discover_supported_versions),
    }
}

fn discover_supported_versions(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(versions) = result.get("supportedVersions") else {
        out.add_missing(result, "supportedVersions", "`supportedVersions` is missing");
        return;
    };
    if versions.kind() != Type::Array {
        out.add(versions, format!("`supportedVersions` is {}, not a list", versions.kind().named()));
    } else if versions.is_empty() {
        out.add(versions, "`supportedVersions` is empty");
    }
    for version in versions.items().filter(|version| version.kind() != Type::String) {
        out.add(version, format!("a version is {}, not a string", version.kind().named()));
    }
}

crate::rule! {
    /// An initialize result names the revision agreed on.
    ///
    /// Without `protocolVersion` a client does not know what to speak, and ends the handshake.
    static INITIALIZE_VERSION_MISSING = {
        id: "mcp/initialize-version-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: LEGACY,
        on: &[Kind::McpInitializeResult],
        place: "/protocolVersion",
        fix: "Return the negotiated version (in camelCase; protocol_version is not read).",
        spec: "2025-11-25 lifecycle, Version Negotiation",
        seeds: &["gaip:MCP_PROTOCOL_VERSION_REQUIRED", "validator:1.3.1.5", "inspector:initialize-handshake"],
        examples: &[
            fires(&["/protocolVersion"], r#"{"protocolVersion": null}"#),
            fires(&["/protocolVersion"], r#"{"protocolVersion": 20251125}"#),
            silent(r#"{"protocolVersion": "2025-11-25"}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(initialize_version_missing),
    }
}

fn initialize_version_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match result.get("protocolVersion") {
        None => drop(out.add_missing(result, "protocolVersion", "`protocolVersion` is missing")),
        Some(version) if version.kind() != Type::String => {
            out.add(version, format!("`protocolVersion` is {}, not a string", version.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// The revision in which an answer was given is among those listed.
    ///
    /// A client that asks in one revision, is served, and does not find it in the list cannot trust the list.
    static DISCOVER_VERSION_NOT_LISTED = {
        id: "mcp/discover-version-not-listed",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: &[Kind::McpDiscoverResult],
        place: "/supportedVersions",
        fix: "List the version you just served.",
        spec: "2026-07-28 versioning",
        examples: &[
            fires(&["/supportedVersions"], r#"{"supportedVersions": ["2025-11-25"]}"#)
                .given(r#"{"requested_version": "2026-07-28"}"#),
            silent(r#"{"supportedVersions": ["2025-11-25", "2026-07-28"]}"#).given(r#"{"requested_version": "2026-07-28"}"#),
        ],
        check: Check::Document(discover_version_not_listed),
    }
}

fn discover_version_not_listed(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(asked) = context.given.requested_version.as_deref() else {
        out.not_evaluated(NotEvaluated::NoSession);
        return;
    };
    if let Some(versions) = result.get("supportedVersions")
        && !versions.is_empty()
        && !versions.items().any(|version| version.text() == Some(asked))
    {
        out.add(versions, format!("{} was served but is not listed", quote(asked)));
    }
}

crate::rule! {
    /// A revision is named by its date.
    ///
    /// Revisions are compared as strings. `1.0` or a date with slashes equals none of them, so no client finds a common one.
    static VERSION_FORMAT = {
        id: "mcp/version-format",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: HANDSHAKES,
        place: "/supportedVersions/* | /protocolVersion",
        fix: "Use the revision's date string.",
        spec: "2026-07-28 versioning",
        seeds: &["gaip:MCP_PROTOCOL_VERSION_UNRECOGNISED"],
        examples: &[
            fires(&["/supportedVersions/1"], r#"{"supportedVersions": ["2026-07-28", "1.0"]}"#).over("mcp-discover"),
            fires(&["/protocolVersion"], r#"{"protocolVersion": "2025/11/25"}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"supportedVersions": ["2026-07-28", "2026-07-28-RC1"]}"#).over("mcp-discover"),
        ],
        check: Check::Document(version_format),
    }
}

fn version_format(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for version in versions(result, context) {
        if let Some(text) = version.text()
            && !is_revision(text)
        {
            out.add(version, format!("{} is no date of the form YYYY-MM-DD", quote(text)));
        }
    }
}

crate::rule! {
    /// The revision is none of the published ones.
    ///
    /// A date that nobody published is a private revision or a typo such as 2025-11-05.
    static VERSION_UNKNOWN = {
        id: "mcp/version-unknown",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: ALL,
        on: HANDSHAKES,
        place: "/supportedVersions/* | /protocolVersion",
        fix: "Check for a typo in the date.",
        spec: "2026-07-28 versioning",
        seeds: &["gaip:MCP_PROTOCOL_VERSION_UNKNOWN_REVISION"],
        examples: &[
            fires(&["/protocolVersion"], r#"{"protocolVersion": "2025-11-05"}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"protocolVersion": "2025-11-25"}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(version_unknown),
    }
}

fn version_unknown(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for version in versions(result, context) {
        if let Some(text) = version.text()
            && is_date(text)
            && !PUBLISHED.contains(&text)
        {
            out.add(version, format!("{} is no published revision", quote(text)));
        }
    }
}

crate::rule! {
    /// The server speaks an old revision only.
    ///
    /// Asked for 2025-11-25, it agrees to one from before structured results, titles and resource links.
    static PROTOCOL_VERSION_OLD = {
        id: "mcp/protocol-version-old",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: &["2024-11-05", "2025-03-26"],
        on: &[Kind::McpInitializeResult],
        place: "/protocolVersion",
        fix: "Upgrade the SDK.",
        spec: "2025-11-25 lifecycle, Version Negotiation",
        examples: &[
            fires(&["/protocolVersion"], "{}").over("mcp-initialize-2025-03-26").given(r#"{"requested_version": "2025-11-25"}"#),
            silent("{}").over("mcp-initialize-2025-03-26").given(r#"{"requested_version": "2025-03-26"}"#),
        ],
        check: Check::Document(protocol_version_old),
    }
}

fn protocol_version_old(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(asked) = context.given.requested_version.as_deref() else {
        out.not_evaluated(NotEvaluated::NoSession);
        return;
    };
    if let Some(version) = result.get("protocolVersion")
        && let Some(text) = version.text().filter(|text| asked == "2025-11-25" && *text != asked)
    {
        out.add(version, text);
    }
}

crate::rule! {
    /// Instructions are a string.
    ///
    /// A list of lines or an object makes strict clients give up the handshake.
    static INSTRUCTIONS_TYPE = {
        id: "mcp/instructions-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: HANDSHAKES,
        place: "/instructions",
        fix: "Use a string.",
        spec: "schema InitializeResult/DiscoverResult",
        examples: &[
            fires(&["/instructions"], r#"{"instructions": ["Ask by harbour."]}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"instructions": ""}"#).over("mcp-initialize-2025-11-25"),
        ],
        stops: Stops::Value,
        check: Check::Document(instructions_type),
    }
}

fn instructions_type(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(instructions) = result.given("instructions")
        && instructions.kind() != Type::String
    {
        out.add(instructions, format!("`instructions` is {}, not a string", instructions.kind().named()));
    }
}

/// Instructions and descriptions enter the model's prompt whole; beyond this they crowd out what was asked.
const MOST_INSTRUCTIONS: usize = 8192;

crate::rule! {
    /// Instructions are short enough to be read with every request.
    ///
    /// Clients put them into the model's prompt as they are; over 8192 characters they crowd out the task.
    static INSTRUCTIONS_LONG = {
        id: "mcp/instructions-long",
        basis: Basis::Hint,
        versions: ALL,
        on: HANDSHAKES,
        place: "/instructions",
        fix: "Shorten it; it is injected in prompts.",
        spec: "hint: context budget",
        examples: &[
            fires(&["/instructions"], r#"{"instructions": {"$repeat": ["x", 8193]}}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"instructions": {"$repeat": ["x", 8192]}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(instructions_long),
    }
}

fn instructions_long(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(instructions) = result.get("instructions")
        && let Some(text) = instructions.text()
        && let Some(length) = longer_than(text, MOST_INSTRUCTIONS)
    {
        out.add(instructions, format!("the instructions have {length} characters"));
    }
}

/// How many characters a text has, when more than allowed.
pub(super) fn longer_than(text: &str, most: usize) -> Option<usize> {
    // A text has at least as many bytes as characters, so most are settled without counting.
    (text.len() > most).then(|| text.chars().count()).filter(|length| *length > most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_a_date_and_perhaps_a_label() {
        for text in ["2025-11-25", "2026-07-28-RC1", "2026-07-28-DRAFT-2", "2026-07-28DRAFT-2", "DRAFT-2026-v1"] {
            assert!(is_revision(text), "{text}");
        }
        for text in ["", "1.0", "2025/11/25", "2025-13-25", "2025-11-2", "2025-11-25 ", "2025-11-25-beta", "２025-11-2"]
        {
            assert!(!is_revision(text), "{text}");
        }
    }
}
