//! The server's version.

use super::fields::filled;
use super::revision::ALL_REVISIONS;
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{is_semver, is_version_range, quote};

pub(super) const RULES: &[&Rule] =
    &[&VERSION_MISSING, &VERSION_LATEST, &VERSION_RANGE, &VERSION_LENGTH, &VERSION_NOT_SEMVER];

crate::rule! {
    /// A server has a version.
    ///
    /// Name and version together are the key of an entry.
    static VERSION_MISSING = {
        id: "registry/version-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/version",
        fix: "Add a version such as 1.0.0.",
        spec: "server.json 2025-12-11 schema version",
        seeds: &["gaip:MCP_VERSION_MISSING"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/version"], r#"{"version": null}"#),
            fires(&["/version"], r#"{"version": ""}"#),
            silent(r#"{"version": "0"}"#),
        ],
        check: Check::Document(version_missing),
    }
}

fn version_missing(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match document.given("version") {
        None => {
            out.add_missing(document, "version", "no version");
        }
        Some(version) if version.text() == Some("") => {
            out.add(version, "the version is empty");
        }
        Some(_) => {}
    }
}

/// The version, when it is a string with something in it.
fn version_of(document: Node<'_>) -> Option<(Node<'_>, &str)> {
    Some((document.given("version")?, filled(document, "version")?))
}

crate::rule! {
    /// `latest` is no version.
    ///
    /// The registry's API reserves the word for whichever version is newest.
    static VERSION_LATEST = {
        id: "registry/version-latest",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/version",
        fix: "Publish a concrete version.",
        spec: "official registry publish checks: reserved version",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/version"], r#"{"version": "latest"}"#),
            silent(r#"{"version": "latest-2026.1"}"#),
        ],
        check: Check::Document(version_latest),
    }
}

fn version_latest(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((version, "latest")) = version_of(document) {
        out.add(version, "`latest` is reserved");
    }
}

crate::rule! {
    /// A version is one version, not a range.
    ///
    /// An entry describes what was published, and a range was not.
    static VERSION_RANGE = {
        id: "registry/version-range",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/version",
        fix: "Publish one concrete version.",
        spec: "official registry publish checks: version ranges; MCP Registry docs: versioning",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/version"], r#"{"version": "^1.2.3"}"#),
            fires(&["/version"], r#"{"version": "1.x"}"#),
            fires(&["/version"], r#"{"version": "1.2.3 - 2.0.0"}"#),
            silent(r#"{"version": "1.2.3-x1"}"#),
            silent(r#"{"version": "2025-06-18"}"#),
        ],
        check: Check::Document(version_range),
    }
}

fn version_range(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((version, text)) = version_of(document)
        && is_version_range(text)
    {
        out.add(version, format!("{} is a range", quote(text)));
    }
}

crate::rule! {
    /// A version has at most 255 characters.
    ///
    /// Registries store no longer one.
    static VERSION_LENGTH = {
        id: "registry/version-length",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/version",
        fix: "Shorten it.",
        spec: "server.json 2025-12-11 schema version",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/version"], r#"{"version": "1.0.0-tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt"}"#),
            silent(r#"{"version": "1.0.0-tide.table.of.the.whole.northern.coast+built.on.a.slow.machine"}"#),
        ],
        check: Check::Document(version_length),
    }
}

fn version_length(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((version, text)) = version_of(document)
        && let length @ 256.. = text.chars().count()
    {
        out.add(version, format!("the version has {length} characters"));
    }
}

crate::rule! {
    /// The version is no semantic version.
    ///
    /// A registry cannot order such versions, so each one is the latest when it is published.
    static VERSION_NOT_SEMVER = {
        id: "registry/version-not-semver",
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/version",
        fix: "Use MAJOR.MINOR.PATCH.",
        spec: "MCP Registry docs: versioning",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/version"], r#"{"version": "v1.4.2"}"#),
            fires(&["/version"], r#"{"version": "2025.06.18"}"#),
            silent(r#"{"version": "2025.11.25"}"#),
            silent(r#"{"version": "1.4.2-rc.1+build.7"}"#),
        ],
        check: Check::Document(version_not_semver),
    }
}

fn version_not_semver(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((version, text)) = version_of(document)
        && text != "latest"
        && !is_semver(text)
        && !is_version_range(text)
    {
        out.add(version, format!("{} is not MAJOR.MINOR.PATCH", quote(text)));
    }
}
