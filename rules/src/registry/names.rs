//! The server's name.

use super::fields::{filled, member};
use super::revision::ALL_REVISIONS;
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &NAME_MISSING,
    &NAME_FORMAT,
    &NAME_EDGE_CHARACTER,
    &NAME_LENGTH,
    &NAME_NAMESPACE_NOT_REVERSE_DNS,
    &NAME_PLACEHOLDER,
    &REPOSITORY_NAMESPACE_MISMATCH,
];

crate::rule! {
    /// A server has a name.
    ///
    /// The name is the key under which a registry keeps all versions.
    static NAME_MISSING = {
        id: "registry/name-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/name",
        fix: "Add a name such as io.github.your-account/your-server.",
        spec: "server.json 2025-12-11 schema name",
        seeds: &["gaip:MCP_REGISTRY_NAME_REQUIRED", "gaip:MCP_NAME_MISSING"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/name"], r#"{"name": null}"#),
            fires(&["/name"], r#"{"name": ""}"#),
            fires(&["/name"], r#"{"name": ["io.github.tidehouse/tides"]}"#),
            silent(r#"{"name": "a.b/cd"}"#),
        ],
        check: Check::Document(name_missing),
    }
}

fn name_missing(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match document.given("name") {
        None => out.add_missing(document, "name", "no name"),
        Some(name) if filled(document, "name").is_none() => {
            out.add(name, if name.text().is_some() { "the name is empty" } else { "the name is no string" })
        }
        Some(_) => return,
    };
}

/// The parts of a name that fits the schema's pattern: the namespace before the slash and the server's own name.
pub(super) fn parts(name: &str) -> Option<(&str, &str)> {
    let (namespace, server) = name.split_once('/')?;
    let fits = |part: &str, more: &[u8]| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
    };
    (fits(namespace, b".-") && fits(server, b"._-")).then_some((namespace, server))
}

/// The name, its node and its parts, when it fits the pattern.
fn well_formed(document: Node<'_>) -> Option<(Node<'_>, &str, &str)> {
    let name = document.given("name")?;
    let (namespace, server) = parts(name.text()?)?;
    Some((name, namespace, server))
}

crate::rule! {
    /// A name is a namespace, one slash, and the server's own name.
    ///
    /// The namespace proves whose server it is; registries and clients take the name apart at the slash.
    static NAME_FORMAT = {
        id: "registry/name-format",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/name",
        fix: "Use reverse-DNS namespace, one slash, then the server's short name.",
        spec: "server.json 2025-12-11 schema name",
        seeds: &["gaip:MCP_REGISTRY_NAME_FORMAT"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/name"], r#"{"name": "tides"}"#),
            fires(&["/name"], r#"{"name": "io.github.tide_house/tides"}"#),
            fires(&["/name"], r#"{"name": "io.github.tidehouse/tides/north"}"#),
            silent(r#"{"name": "io.github.tidehouse/tides_v2.beta-1"}"#),
        ],
        check: Check::Document(name_format),
    }
}

fn name_format(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(text) = filled(document, "name")
        && let Some(name) = document.given("name")
        && parts(text).is_none()
    {
        out.add(name, format!("{} is not `namespace/name` of letters, digits, dots and dashes", quote(text)));
    }
}

crate::rule! {
    /// Both parts of a name begin and end with a letter or digit.
    ///
    /// The schema does not ask for it, the official registry does.
    static NAME_EDGE_CHARACTER = {
        id: "registry/name-edge-character",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/name",
        fix: "Start and end both parts with a letter or digit and use at least two characters in each.",
        spec: "official registry publish checks: name pattern",
        seeds: &["gaip:MCP_REGISTRY_NAME_FORMAT"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/name"], r#"{"name": "io.github.tidehouse/-tides"}"#),
            fires(&["/name"], r#"{"name": "io.github.tidehouse/t"}"#),
            silent(r#"{"name": "io.github.tidehouse/t2"}"#),
        ],
        check: Check::Document(name_edge_character),
    }
}

fn name_edge_character(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((name, namespace, server)) = well_formed(document) else { return };
    let at_edge = |part: &str| part.starts_with(is_plain) && part.ends_with(is_plain);
    for part in [namespace, server] {
        if part.len() < 2 || !at_edge(part) {
            out.add(name, format!("{} is too short or begins or ends with a mark", quote(part)));
            return;
        }
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric()
}

crate::rule! {
    /// A name has 3 to 200 characters.
    ///
    /// Registries store no longer one.
    static NAME_LENGTH = {
        id: "registry/name-length",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/name",
        fix: "Shorten the name to at most 200 characters.",
        spec: "server.json 2025-12-11 schema name",
        seeds: &["gaip:MCP_REGISTRY_NAME_FORMAT"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/name"], r#"{"name": "io.github.tidehouse/ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt"}"#),
            silent(r#"{"name": "io.github.tidehouse/tides-and-currents-of-the-whole-northern-coast"}"#),
        ],
        check: Check::Document(name_length),
    }
}

fn name_length(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(text) = filled(document, "name")
        && let Some(name) = document.given("name")
    {
        let length = text.chars().count();
        if !(3..=200).contains(&length) {
            out.add(name, format!("the name has {length} characters"));
        }
    }
}

crate::rule! {
    /// The namespace is a reversed domain name.
    ///
    /// Proof of ownership, by GitHub account, DNS or HTTP, needs at least one dot to hold on to.
    static NAME_NAMESPACE_NOT_REVERSE_DNS = {
        id: "registry/name-namespace-not-reverse-dns",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/name",
        fix: "Use io.github.<account> or your domain reversed.",
        spec: "MCP Registry docs: authentication",
        seeds: &["gaip:MCP_REGISTRY_NAME_FORMAT"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/name"], r#"{"name": "tidehouse/tides"}"#),
            silent(r#"{"name": "dev.tidehouse/tides"}"#),
        ],
        check: Check::Document(name_namespace_not_reverse_dns),
    }
}

fn name_namespace_not_reverse_dns(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((name, namespace, _)) = well_formed(document)
        && !namespace.contains('.')
    {
        out.add(name, format!("the namespace {} has no dot", quote(namespace)));
    }
}

/// Namespaces of guides and templates.
const SAMPLE_NAMESPACES: &[&str] = &[
    "com.example",
    "org.example",
    "net.example",
    "io.github.example",
    "io.github.username",
    "io.github.your-username",
    "io.github.your-org",
    "io.github.your-account",
];

crate::rule! {
    /// The name is still that of a guide or template.
    ///
    /// Nobody owns the sample namespaces, so nobody can vouch for what is listed there.
    static NAME_PLACEHOLDER = {
        id: "registry/name-placeholder",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/name",
        fix: "Replace the sample namespace by your own.",
        spec: "hint",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/name"], r#"{"name": "io.github.your-username/tides"}"#),
            fires(&["/name"], r#"{"name": "com.example.tides/server"}"#),
            silent(r#"{"name": "com.examples-lab/tides"}"#),
        ],
        check: Check::Document(name_placeholder),
    }
}

fn name_placeholder(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(text) = filled(document, "name") else { return };
    let namespace = text.split('/').next().unwrap_or_default();
    let sample = SAMPLE_NAMESPACES.contains(&namespace) || namespace.starts_with("com.example.");
    if let Some(name) = document.given("name")
        && (sample || text.contains(['<', '>']))
    {
        out.add(name, format!("{} is a sample", quote(text)));
    }
}

crate::rule! {
    /// The repository belongs to another account than the name.
    ///
    /// Organisations publish for their members, so this is worth knowing and nothing more.
    static REPOSITORY_NAMESPACE_MISMATCH = {
        id: "registry/repository-namespace-mismatch",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/name",
        fix: "Publish from the account that owns the code, or name the owning account.",
        spec: "hint",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/name"], r#"{"name": "io.github.lighthouse/tides"}"#),
            silent(r#"{"name": "io.github.TideHouse/tides"}"#),
            silent(r#"{"name": "io.github.lighthouse/tides", "repository": {"url": null, "source": null}}"#),
        ],
        check: Check::Document(repository_namespace_mismatch),
    }
}

fn repository_namespace_mismatch(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(name) = document.given("name") else { return };
    let account = name.text().and_then(|text| text.strip_prefix("io.github.")?.split('/').next());
    let Some(repository) = member(document, "repository") else { return };
    if filled(repository, "source") == Some("github")
        && let Some(account) = account
        && let Some(owner) = filled(repository, "url").and_then(owner_of)
        && !owner.eq_ignore_ascii_case(account)
    {
        out.add(name, format!("the repository belongs to {}", quote(owner)));
    }
}

/// The first segment of a repository's path.
pub(super) fn owner_of(url: &str) -> Option<&str> {
    let path = AbsoluteUrl::http(url)?.path;
    path.split('/').find(|segment| !segment.is_empty())
}
