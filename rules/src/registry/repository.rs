//! Where the source code lies.

use std::sync::LazyLock;

use regex::Regex;

use super::fields::filled;
use super::revision::ALL_REVISIONS;
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] =
    &[&REPOSITORY_URL_INVALID, &REPOSITORY_SOURCE_UNSUPPORTED, &REPOSITORY_SUBFOLDER_INVALID];

static GITHUB: LazyLock<Regex> = LazyLock::new(|| regex(r"^https?://(www\.)?github\.com/[\w.-]+/[\w.-]+/?$"));
static GITLAB: LazyLock<Regex> = LazyLock::new(|| regex(r"^https?://(www\.)?gitlab\.com/[\w.-]+(/[\w.-]+)+/?$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(&format!("(?-u){pattern}")).expect("the pattern is a literal")
}

crate::rule! {
    /// A repository's address is that of the repository itself.
    ///
    /// Deep links, ssh forms and other hosts than `source` says are refused at publishing.
    static REPOSITORY_URL_INVALID = {
        id: "registry/repository-url-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/repository/url",
        fix: "Give the repository's own page; put the sub-directory in subfolder.",
        spec: "official registry publish checks: repository",
        seeds: &["gaip:MCP_REPOSITORY_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/repository/url"], r#"{"repository": {"url": "https://github.com/tidehouse/tides/tree/main/mcp"}}"#),
            fires(&["/repository/url"], r#"{"repository": {"url": "git@github.com:tidehouse/tides.git"}}"#),
            fires(&["/repository/url"], r#"{"repository": {"url": "https://gitlab.com/tidehouse/tides"}}"#),
            silent(r#"{"repository": {"url": "https://github.com/tidehouse/tides.git"}}"#),
            silent(r#"{"repository": {"url": "https://gitlab.com/tidehouse/coast/tides", "source": "gitlab"}}"#),
        ],
        yields_to: &["common/unsafe-url-scheme"],
        check: Check::Document(repository_url_invalid),
    }
}

fn repository_url_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(repository) = document.given("repository") else { return };
    let Some(url) = filled(repository, "url") else { return };
    let (service, pattern) = match filled(repository, "source") {
        Some("github") => ("GitHub", &GITHUB),
        Some("gitlab") => ("GitLab", &GITLAB),
        _ => return,
    };
    if let Some(node) = repository.given("url")
        && !pattern.is_match(url)
    {
        out.add(node, format!("{} is no repository at {service}", quote(url)));
    }
}

crate::rule! {
    /// The official registry takes repositories at GitHub and GitLab.
    ///
    /// The schema allows any host service; elsewhere ownership cannot be checked.
    static REPOSITORY_SOURCE_UNSUPPORTED = {
        id: "registry/repository-source-unsupported",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/repository/source",
        fix: "Use github or gitlab, or drop repository.",
        spec: "official registry publish checks: repository",
        seeds: &["gaip:MCP_REPOSITORY_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/repository/source"], r#"{"repository": {"url": "https://codeberg.org/tidehouse/tides", "source": "codeberg"}}"#),
            fires(&["/repository/source"], r#"{"repository": {"source": "GitHub"}}"#),
            silent(r#"{"repository": {"url": "https://gitlab.com/tidehouse/tides", "source": "gitlab"}}"#),
        ],
        check: Check::Document(repository_source_unsupported),
    }
}

fn repository_source_unsupported(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(repository) = document.given("repository") else { return };
    if filled(repository, "url").is_some()
        && let Some(source) = filled(repository, "source")
        && !matches!(source, "github" | "gitlab")
        && let Some(node) = repository.given("source")
    {
        out.add(node, format!("{} is neither `github` nor `gitlab`", quote(source)));
    }
}

crate::rule! {
    /// A subfolder is a clean relative path.
    ///
    /// Tools join it to the repository's address, so it may not lead out of it.
    static REPOSITORY_SUBFOLDER_INVALID = {
        id: "registry/repository-subfolder-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/repository/subfolder",
        fix: "Give a clean relative path such as src/server.",
        spec: "official registry publish checks: repository subfolder",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/repository/subfolder"], r#"{"repository": {"subfolder": "../secrets"}}"#),
            fires(&["/repository/subfolder"], r#"{"repository": {"subfolder": "/src"}}"#),
            fires(&["/repository/subfolder"], r#"{"repository": {"subfolder": "src/my server"}}"#),
            silent(r#"{"repository": {"subfolder": "src/.mcp/server_v1"}}"#),
        ],
        check: Check::Document(repository_subfolder_invalid),
    }
}

fn repository_subfolder_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(repository) = document.given("repository") else { return };
    if let Some(subfolder) = filled(repository, "subfolder")
        && let Some(node) = repository.given("subfolder")
        && !is_clean_path(subfolder)
    {
        out.add(node, format!("{} is no clean relative path", quote(subfolder)));
    }
}

fn is_clean_path(path: &str) -> bool {
    let is_clean = |segment: &str| {
        !matches!(segment, "" | "." | "..")
            && segment.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    path.split('/').all(is_clean)
}
