//! What a registry says about an entry, beside the document.

use super::metadata::{OFFICIAL, is_status};
use super::presentation::shown;
use super::revision::API;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::text::{Instant, quote};

pub(super) const RULES: &[&Rule] =
    &[&OFFICIAL_META_MISSING, &STATUS_UNRECOGNISED, &ENTRY_DEPRECATED, &TIMESTAMP_INVALID, &TIMESTAMP_ORDER];

/// The registry's own block of an entry.
pub(super) fn official(entry: Node<'_>) -> Option<Node<'_>> {
    entry.given("_meta")?.given(OFFICIAL).filter(|block| block.kind() == Type::Object)
}

/// An instant that the registry's block states.
pub(super) fn stamp<'d>(entry: Node<'d>, key: &str) -> Option<(Node<'d>, Instant)> {
    let node = official(entry)?.given(key)?;
    Some((node, Instant::parse(node.text()?)?))
}

/// Whether an entry was withdrawn.
pub(super) fn is_deleted(entry: Node<'_>) -> bool {
    status(entry) == Some("deleted")
}

fn status(entry: Node<'_>) -> Option<&str> {
    official(entry)?.given("status")?.text()
}

/// Whether an entry is flagged as its name's latest.
pub(super) fn is_latest(entry: Node<'_>) -> bool {
    official(entry).and_then(|block| block.given("isLatest")?.flag()) == Some(true)
}

crate::rule! {
    /// The official registry's block is not there.
    ///
    /// Subregistries are free to leave it out. The entry then counts as active, and versions are told apart by number only.
    static OFFICIAL_META_MISSING = {
        id: "registry/official-meta-missing",
        basis: Basis::Policy,
        versions: API,
        place: "/servers/*/_meta",
        fix: "None needed; a subregistry may pass the official block through.",
        spec: "Registry API v0.1 ServerResponse._meta",
        on: &[Kind::RegistryEntry],
        examples: &[
            fires(&["/_meta"], r#"{"_meta": {"dev.tidehouse/scores": {"stars": 4}, "io.modelcontextprotocol.registry/official": null}}"#),
            fires(&["/_meta"], r#"{"_meta": null}"#),
            silent("{}"),
        ],
        check: Check::Document(official_meta_missing),
    }
}

fn official_meta_missing(entry: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if entry.kind() != Type::Object || official(entry).is_some() {
        return;
    }
    match entry.get("_meta") {
        Some(meta) => out.add(meta, "no block of the official registry"),
        None => out.add_missing(entry, "_meta", "no block of the official registry"),
    };
}

crate::rule! {
    /// A registry's status is `active`, `deprecated` or `deleted`.
    ///
    /// Readers hide what is deleted and warn of what is deprecated; another word does neither.
    static STATUS_UNRECOGNISED = {
        id: "registry/status-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: API,
        place: "/_meta/io.modelcontextprotocol.registry~1official/status",
        fix: "Use a known status.",
        spec: "Registry API CHANGELOG: status values",
        on: &[Kind::RegistryEntry],
        examples: &[
            fires(
                &["/_meta/io.modelcontextprotocol.registry~1official/status"],
                r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"status": "archived"}}}"#,
            ),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deprecated", "statusMessage": "Use tides2"}}}"#),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"status": null}}}"#),
        ],
        check: Check::Document(status_unrecognised),
    }
}

fn status_unrecognised(entry: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let status = official(entry).and_then(|block| block.given("status"));
    if let Some(status) = status.filter(|status| !is_status(*status)) {
        out.add(status, format!("{} is no status", shown(status)));
    }
}

crate::rule! {
    /// The latest version is deprecated.
    ///
    /// Whoever uses the server should move on; without a message nobody knows where to.
    static ENTRY_DEPRECATED = {
        id: "registry/entry-deprecated",
        versions: API,
        place: "/_meta/io.modelcontextprotocol.registry~1official/status",
        fix: "Move to the successor the message names.",
        spec: "Registry API status",
        on: &[Kind::RegistryEntry],
        examples: &[
            fires(
                &["/_meta/io.modelcontextprotocol.registry~1official/status"],
                r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deprecated", "statusMessage": "Use tides2"}}}"#,
            ),
            fires(
                &["/_meta/io.modelcontextprotocol.registry~1official/status"],
                r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deprecated"}}}"#,
            ),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deprecated", "isLatest": false}}}"#),
        ],
        check: Check::Document(entry_deprecated),
    }
}

fn entry_deprecated(entry: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(block) = official(entry).filter(|_| is_latest(entry) && status(entry) == Some("deprecated")) else {
        return;
    };
    let Some(status) = block.given("status") else { return };
    let message = block.given("statusMessage").and_then(Node::text).map(str::trim).filter(|text| !text.is_empty());
    match message {
        Some(message) => {
            out.add(status, quote(message));
        }
        None => {
            out.add(status, "and no message says why").severity(Severity::Warning).impact(Impact::Cosmetic);
        }
    }
}

crate::rule! {
    /// A registry's timestamps are RFC 3339 with an offset.
    ///
    /// Incremental readers compare them; without an offset they name no instant.
    static TIMESTAMP_INVALID = {
        id: "registry/timestamp-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: API,
        place: "/_meta/io.modelcontextprotocol.registry~1official/updatedAt",
        fix: "Write RFC 3339 in UTC.",
        spec: "Registry API RegistryExtensions",
        on: &[Kind::RegistryEntry],
        examples: &[
            fires(
                &["/_meta/io.modelcontextprotocol.registry~1official/updatedAt"],
                r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"updatedAt": "2026-05-02 10:00:00"}}}"#,
            ),
            fires(
                &["/_meta/io.modelcontextprotocol.registry~1official/publishedAt"],
                r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"publishedAt": 1777716000}}}"#,
            ),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"publishedAt": "2026-05-02t10:00:00.123456789+02:00"}}}"#),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"statusChangedAt": null}}}"#),
        ],
        check: Check::Document(timestamp_invalid),
    }
}

fn timestamp_invalid(entry: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(block) = official(entry) else { return };
    for key in ["publishedAt", "updatedAt", "statusChangedAt"] {
        if let Some(node) = block.given(key)
            && node.text().and_then(Instant::parse).is_none()
        {
            out.add(node, format!("{} is no date and time with an offset", shown(node)));
        }
    }
}

crate::rule! {
    /// An entry was published before it was updated, and both lie in the past.
    ///
    /// Readers that ask for what changed since their last visit rely on the registry's clock.
    static TIMESTAMP_ORDER = {
        id: "registry/timestamp-order",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Time,
        place: "/_meta/io.modelcontextprotocol.registry~1official/updatedAt",
        fix: "Check the registry's clock.",
        spec: "crawler policy",
        on: &[Kind::RegistryEntry, Kind::RegistryPage],
        examples: &[
            fires(
                &["/_meta/io.modelcontextprotocol.registry~1official/updatedAt"],
                r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"updatedAt": "2020-01-01T10:00:00Z"}}}"#,
            ),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"publishedAt": "2026-05-01T10:00:00Z", "updatedAt": "2026-05-01T12:00:00+02:00"}}}"#),
        ],
        check: Check::Document(timestamp_order),
    }
}

/// How far the clocks of registry and server may differ, in seconds.
const CLOCK_SKEW_S: i64 = 5 * 60;

fn timestamp_order(listed: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let date = context.answer().and_then(|(_, response)| Instant::parse_http(response.header("date")?));
    let is_page = context.kind == Kind::RegistryPage;
    let entries: Vec<_> = if is_page { super::page::entries(listed).collect() } else { vec![listed] };
    for entry in entries {
        let published = stamp(entry, "publishedAt");
        for key in ["publishedAt", "updatedAt", "statusChangedAt"] {
            let Some((node, at)) = stamp(entry, key) else { continue };
            if published.is_some_and(|(_, published)| at < published) {
                out.add(node, format!("{} is before the entry was published", shown(node)));
            } else if date.is_some_and(|date| at.seconds - date.seconds > CLOCK_SKEW_S) {
                out.add(node, format!("{} lies after the answer that says so", shown(node)));
            }
        }
    }
}
