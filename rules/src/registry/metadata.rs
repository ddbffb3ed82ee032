//! What the registry says about a document, and what the document may not say itself.

use super::revision::{ALL_REVISIONS, SINCE_2025_09_29, WITH_STATUS};
use crate::canonical::canonical;
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

use super::presentation::shown;

pub(super) const RULES: &[&Rule] = &[
    &STATUS_IN_DOCUMENT,
    &DOCUMENT_STATUS_UNRECOGNISED,
    &OFFICIAL_META_IN_DOCUMENT,
    &META_KEY_NOT_PRESERVED,
    &META_KEY_FORMAT,
    &PUBLISHER_META_TOO_LARGE,
];

/// The key under which the registry writes.
pub(crate) const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
/// The key under which publishers may write.
const PUBLISHER: &str = "io.modelcontextprotocol.registry/publisher-provided";

crate::rule! {
    /// A document does not state its own status.
    ///
    /// Since 2025-09-29 the status is the registry's, and stands beside the document.
    static STATUS_IN_DOCUMENT = {
        id: "registry/status-in-document",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_09_29,
        place: "/status",
        fix: "Remove status.",
        spec: "server-json CHANGELOG 2025-09-29",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/status"], r#"{"status": "active"}"#),
            silent(r#"{"status": "deprecated"}"#).over("server-json-2025-09-16"),
        ],
        check: Check::Document(status_in_document),
    }
}

fn status_in_document(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(status) = document.given("status") {
        out.add(status, format!("the document says {} of itself", shown(status)));
    }
}

crate::rule! {
    /// A status is `active`, `deprecated` or `deleted`.
    ///
    /// Readers hide what is deleted and warn of what is deprecated; another word does neither.
    static DOCUMENT_STATUS_UNRECOGNISED = {
        id: "registry/document-status-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: WITH_STATUS,
        place: "/status",
        fix: "Use one of the three.",
        spec: "server.json 2025-09-16 schema status",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/status"], r#"{"status": "beta"}"#),
            silent(r#"{"status": "deleted"}"#),
        ],
        check: Check::Document(document_status_unrecognised),
    }
}

fn document_status_unrecognised(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(status) = document.given("status").filter(|status| !is_status(*status)) {
        out.add(status, format!("{} is no status", shown(status)));
    }
}

/// Whether a value is one of the three words.
pub(super) fn is_status(status: Node<'_>) -> bool {
    matches!(status.text(), Some("active" | "deprecated" | "deleted"))
}

crate::rule! {
    /// A document does not carry the registry's own block.
    ///
    /// Whoever reads the file would take the author's word for the registry's.
    static OFFICIAL_META_IN_DOCUMENT = {
        id: "registry/official-meta-in-document",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_09_29,
        place: "/_meta/io.modelcontextprotocol.registry~1official",
        fix: "Remove it; the registry writes it beside the document.",
        spec: "server-json CHANGELOG 2025-09-29",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/_meta/io.modelcontextprotocol.registry~1official"], r#"{"_meta": {"io.modelcontextprotocol.registry/official": {"status": "active"}}}"#),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"status": "active"}}}"#),
        ],
        check: Check::Document(official_meta_in_document),
    }
}

fn official_meta_in_document(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(official) = document.given("_meta").and_then(|meta| meta.given(OFFICIAL)) {
        out.add(official, "the registry's block inside the document");
    }
}

crate::rule! {
    /// Metadata of one's own is kept under `publisher-provided` only.
    ///
    /// The official registry drops every other key when the document is published.
    static META_KEY_NOT_PRESERVED = {
        id: "registry/meta-key-not-preserved",
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/_meta/*",
        fix: "Put custom data under publisher-provided.",
        spec: "official registry requirements: _meta",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/_meta/dev.tidehouse~1build"], r#"{"_meta": {"dev.tidehouse/build": {"commit": "abc"}}}"#),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"build": {"commit": "abc"}}}}"#),
        ],
        yields_to: &["registry/meta-key-format"],
        check: Check::Document(meta_key_not_preserved),
    }
}

fn meta_key_not_preserved(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (key, node) in document.given("_meta").into_iter().flat_map(Node::members) {
        if key != PUBLISHER && key != OFFICIAL {
            out.add(node, format!("{} is not kept", quote(key)));
        }
    }
}

crate::rule! {
    /// A metadata key begins with a reversed domain name.
    ///
    /// Bare words of two authors cannot be told apart.
    static META_KEY_FORMAT = {
        id: "registry/meta-key-format",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/_meta/*",
        fix: "Name the key after a domain you own.",
        spec: "server.json 2025-12-11 schema _meta",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/_meta/build"], r#"{"_meta": {"build": {"commit": "abc"}}}"#),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"build": 1}}}"#),
        ],
        check: Check::Document(meta_key_format),
    }
}

fn meta_key_format(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let wrapper = document.parent().filter(|_| document.key() == Some("server"));
    for holder in [Some(document), wrapper].into_iter().flatten() {
        for (key, node) in holder.given("_meta").into_iter().flat_map(Node::members) {
            if !is_meta_key(key) {
                out.add(node, format!("{} has no reversed domain before a slash", quote(key)));
            }
        }
    }
}

fn is_meta_key(key: &str) -> bool {
    let Some((prefix, name)) = key.split_once('/') else { return false };
    let is_label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphanumeric())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    prefix.contains('.')
        && prefix.split('.').all(is_label)
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// The most bytes of compact JSON that a publisher may add.
const MOST_BYTES: usize = 4096;

crate::rule! {
    /// A publisher's own metadata has at most 4096 bytes.
    ///
    /// The registry refuses more.
    static PUBLISHER_META_TOO_LARGE = {
        id: "registry/publisher-meta-too-large",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/_meta/io.modelcontextprotocol.registry~1publisher-provided",
        fix: "Shrink the publisher metadata.",
        spec: "official registry requirements: _meta size",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/_meta/io.modelcontextprotocol.registry~1publisher-provided"], include_str!("../../examples/over-server-json-large-meta.json")),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"build": 1}}}"#),
        ],
        check: Check::Document(publisher_meta_too_large),
    }
}

fn publisher_meta_too_large(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(own) = document.given("_meta").and_then(|meta| meta.given(PUBLISHER)) else { return };
    // Compact JSON is never longer than what was written, a number with an exponent apart.
    if own.raw().len() > MOST_BYTES
        && let length @ 4097.. = canonical(own).len()
    {
        out.add(own, format!("{length} bytes"));
    }
}
