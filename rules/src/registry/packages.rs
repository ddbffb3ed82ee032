//! What can be installed: which package of which registry, in which version.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::fields::{filled, is_blank, list, member, spelled};
use super::revision::{ALL_REVISIONS, CLOSED_PACKAGE};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, is_absolute_uri, is_version_range, quote, version_core};

pub(super) const RULES: &[&Rule] = &[
    &PACKAGE_REGISTRY_TYPE_UNRECOGNISED,
    &PACKAGE_IDENTIFIER_HAS_SPACE,
    &PACKAGE_IDENTIFIER_SHAPE,
    &PACKAGE_VERSION_MISSING,
    &PACKAGE_VERSION_LATEST,
    &PACKAGE_VERSION_RANGE,
    &PACKAGE_VERSION_MISMATCH,
    &PACKAGE_BASE_URL_UNSUPPORTED,
    &PACKAGE_DUPLICATE,
    &RUNTIME_HINT_MISSING,
    &POST_INSTALL_STEP_INCOMPLETE,
];

/// A member of a package that is a filled string: its node and text.
pub(super) fn text_member<'d>(package: Node<'d>, camel: &str) -> Option<(Node<'d>, &'d str)> {
    Some((member(package, camel)?, filled(package, camel)?))
}

/// Whether a package is of that type.
pub(super) fn is_of(package: Node<'_>, registry_type: &str) -> bool {
    filled(package, "registryType") == Some(registry_type)
}

crate::rule! {
    /// A package comes from a kind of registry that clients know.
    ///
    /// The schema allows any word; the official registry refuses others when something is published.
    static PACKAGE_REGISTRY_TYPE_UNRECOGNISED = {
        id: "registry/package-registry-type-unrecognised",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/registryType",
        fix: "Use one of the supported types.",
        spec: "MCP Registry docs: package-types",
        seeds: &["gaip:MCP_PACKAGE_INCOMPLETE"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/registryType"], r#"{"packages": [{"registryType": "docker", "identifier": "tidehouse/tides"}]}"#),
            fires(&["/packages/0/registryType"], r#"{"packages": [{"registryType": "NPM"}]}"#),
            silent(r#"{"packages": [{"registryType": "cargo", "identifier": "tides"}]}"#),
        ],
        check: Check::Each(&["/packages/*"], package_registry_type_unrecognised),
    }
}

fn package_registry_type_unrecognised(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((node, text)) = text_member(package, "registryType") else { return };
    let advice = match text {
        "npm" | "pypi" | "cargo" | "oci" | "nuget" | "mcpb" => return,
        "docker" => "; images are `oci`",
        "dxt" => "; bundles are `mcpb`",
        _ => "",
    };
    out.add(node, format!("{} is no known type{advice}", quote(text)));
}

crate::rule! {
    /// An identifier is one word.
    ///
    /// With a space in it, it is a command line or a sentence, and nothing can be looked up.
    static PACKAGE_IDENTIFIER_HAS_SPACE = {
        id: "registry/package-identifier-has-space",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/identifier",
        fix: "Give the exact package name or URL.",
        spec: "official registry publish checks: package identifier",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/identifier"], r#"{"packages": [{"identifier": "npx @tidehouse/tides"}]}"#),
            silent(r#"{"packages": [{"identifier": "@tidehouse/tides-mcp"}]}"#),
        ],
        check: Check::Each(&["/packages/*"], package_identifier_has_space),
    }
}

fn package_identifier_has_space(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((node, text)) = text_member(package, "identifier")
        && text.contains(' ')
    {
        out.add(node, format!("{} has a space", quote(text)));
    }
}

static NPM: LazyLock<Regex> = LazyLock::new(|| regex(r"^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$"));
static PYPI: LazyLock<Regex> = LazyLock::new(|| regex(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a literal")
}

crate::rule! {
    /// An identifier has the form of names in its package registry.
    ///
    /// A version glued to the name, or the address of a page, is looked up as it stands and not found.
    static PACKAGE_IDENTIFIER_SHAPE = {
        id: "registry/package-identifier-shape",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/identifier",
        fix: "Give the bare package name and put the version in version.",
        spec: "MCP Registry docs: package-types",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/identifier"], r#"{"packages": [{"identifier": "@tidehouse/tides@2.3.0"}]}"#),
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "pypi", "identifier": "https://pypi.example/project/tides"}]}"#),
            silent(r#"{"packages": [{"registryType": "pypi", "identifier": "Tide_House.tides"}]}"#),
        ],
        check: Check::Each(&["/packages/*"], package_identifier_shape),
    }
}

fn package_identifier_shape(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((node, text)) = text_member(package, "identifier") else { return };
    let fault = match filled(package, "registryType") {
        Some("npm" | "pypi" | "nuget" | "cargo") if is_web_address(text) => "is an address, not a name",
        Some("npm") if text.len() > 214 || !NPM.is_match(text) => "is no npm name in lower case, without version",
        Some("pypi") if !PYPI.is_match(text) => "is no name at PyPI",
        Some("nuget" | "cargo") if text.contains('/') => "has a slash",
        _ => return,
    };
    if !text.contains(' ') {
        out.add(node, format!("{} {fault}", quote(text)));
    }
}

fn is_web_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(s, _)| s.eq_ignore_ascii_case("http") || s.eq_ignore_ascii_case("https"))
}

crate::rule! {
    /// A package has a version.
    ///
    /// Without one a client installs whatever is newest, which is not what was listed. Up to 2025-09-29 the schema wanted
    /// one in every package, and since then images and bundles carry it in their identifier alone. Of those that already do
    /// it is only said: the registry refuses the member on an image, and what is listed cannot be changed.
    static PACKAGE_VERSION_MISSING = {
        id: "registry/package-version-missing",
        severity: Severity::Warning,
        severity_overrides: &[("2025-07-09", Severity::Error), ("2025-09-16", Severity::Error), ("2025-09-29", Severity::Error)],
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/packages/*/version",
        fix: "Pin the package version; of an image or a bundle, which has it in its identifier, name the schema 2025-10-17 \
            or later.",
        spec: "server-json CHANGELOG 2025-10-11",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/version"], r#"{"packages": [{"version": null}]}"#),
            fires(&["/packages/0/version"], r#"{"packages": [{"registryType": "oci", "identifier": "docker.io/tidehouse/tides:2.3.0", "version": ""}]}"#).over("server-json-2025-09-29"),
            fires(&["/packages/0/version"], r#"{"packages": [{"registryType": "oci", "identifier": "docker.io/tidehouse/tides", "version": ""}]}"#).over("server-json-2025-09-29"),
            silent(r#"{"packages": [{"registryType": "oci", "identifier": "docker.io/tidehouse/tides:2.3.0", "version": null}]}"#),
        ],
        check: Check::Each(&["/packages/*"], package_version_missing),
    }
}

fn package_version_missing(package: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let always = context.profile.versions.iter().any(|version| CLOSED_PACKAGE.contains(version));
    let needs_one = always || matches!(filled(package, "registryType"), Some("npm" | "pypi" | "nuget" | "cargo"));
    if package.kind() != Type::Object || !needs_one || !is_blank(package, "version") {
        return;
    }
    let stands_elsewhere = has_version_in_identifier(package);
    let beside = if stands_elsewhere { "; it stands in the identifier, where later schemas have it" } else { "" };
    let added = match package.given("version") {
        Some(version) => out.add(version, format!("the version is empty{beside}")),
        None => out.add_missing(package, "version", format!("no version{beside}")),
    };
    if stands_elsewhere {
        added.severity(Severity::Info);
    }
}

/// Whether an image is named with a tag or digest, or a bundle by its address.
fn has_version_in_identifier(package: Node<'_>) -> bool {
    let Some(identifier) = filled(package, "identifier") else { return false };
    let last = identifier.rsplit('/').next().unwrap_or_default();
    match filled(package, "registryType") {
        Some("oci") => last.contains([':', '@']),
        Some("mcpb") => identifier.contains("://"),
        _ => false,
    }
}

crate::rule! {
    /// A package's version is pinned, not `latest`.
    ///
    /// What was listed and what gets installed drift apart with the next release.
    static PACKAGE_VERSION_LATEST = {
        id: "registry/package-version-latest",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        rank: 39,
        versions: ALL_REVISIONS,
        place: "/packages/*/version",
        fix: "Pin a concrete version.",
        spec: "server.json 2025-12-11 schema Package.version",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/version"], r#"{"packages": [{"version": "latest"}]}"#),
            silent("{}"),
        ],
        check: Check::Each(&["/packages/*"], package_version_latest),
    }
}

fn package_version_latest(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((version, "latest")) = text_member(package, "version") {
        out.add(version, "`latest` is no version");
    }
}

crate::rule! {
    /// A package's version is one version, not a range.
    ///
    /// The registry refuses ranges, and clients pass them on as if they were versions.
    static PACKAGE_VERSION_RANGE = {
        id: "registry/package-version-range",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/version",
        fix: "Pin one version.",
        spec: "official registry publish checks: version ranges",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/version"], r#"{"packages": [{"version": "~1.4.0"}]}"#),
            fires(&["/packages/0/version"], r#"{"packages": [{"version": ">=1.4.2"}]}"#),
            silent(r#"{"packages": [{"version": "2.3.0-1"}]}"#),
        ],
        check: Check::Each(&["/packages/*"], package_version_range),
    }
}

fn package_version_range(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((version, text)) = text_member(package, "version")
        && is_version_range(text)
    {
        out.add(version, format!("{} is a range", quote(text)));
    }
}

crate::rule! {
    /// The only package has another version than the entry.
    ///
    /// Either the entry was not renewed with the package, or both count on their own.
    static PACKAGE_VERSION_MISMATCH = {
        id: "registry/package-version-mismatch",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/version",
        fix: "Publish the registry entry with the package's version.",
        spec: "MCP Registry docs: versioning",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/version"], r#"{"packages": [{"version": "1.3.0"}]}"#),
            silent(r#"{"version": "2.3.0-1", "packages": [{"version": "v2.3.0"}]}"#),
            silent(r#"{"packages": [{}, {"registryType": "pypi", "identifier": "tides", "version": "0.9.0"}]}"#),
        ],
        check: Check::Document(package_version_mismatch),
    }
}

fn package_version_mismatch(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut packages = list(document, "packages");
    let (Some(package), None) = (packages.next(), packages.next()) else { return };
    let Some(listed) = filled(document, "version") else { return };
    if let Some((node, version)) = text_member(package, "version")
        && version_core(version) != version_core(listed)
    {
        out.add(node, format!("{} in an entry of version {}", quote(version), quote(listed)));
    }
}

crate::rule! {
    /// A package comes from a public registry.
    ///
    /// From a private one nobody else can install it. Which ones are public is the operator's setting.
    static PACKAGE_BASE_URL_UNSUPPORTED = {
        id: "registry/package-base-url-unsupported",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/registryBaseUrl",
        fix: "Drop registryBaseUrl or name a public registry.",
        spec: "official registry requirements: registry base URLs",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/registryBaseUrl"], r#"{"packages": [{"registryBaseUrl": "https://npm.tidehouse.dev"}]}"#)
                .given(r#"{"settings": {"registry.public_package_bases": ["https://registry.npm.example"]}}"#),
            silent(r#"{"packages": [{"registryBaseUrl": "https://Registry.npm.example/"}]}"#)
                .given(r#"{"settings": {"registry.public_package_bases": ["https://registry.npm.example"]}}"#),
            silent(r#"{"packages": [{"registryBaseUrl": "https://npm.tidehouse.dev"}]}"#),
        ],
        check: Check::Document(package_base_url_unsupported),
    }
}

fn package_base_url_unsupported(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let public = &context.settings.registry.public_package_bases;
    if public.is_empty() {
        out.not_evaluated(NotEvaluated::Off);
        return;
    }
    for package in list(document, "packages").filter(|package| !is_of(*package, "oci")) {
        if let Some((node, base)) = text_member(package, "registryBaseUrl")
            && !public.iter().any(|known| is_same_base(known, base))
        {
            out.add(node, format!("{} is not among the public registries", quote(base)));
        }
    }
}

/// Two addresses that differ in the case of scheme and host, or in one final slash, are one.
fn is_same_base(one: &str, other: &str) -> bool {
    fn parts(text: &str) -> Option<(AbsoluteUrl<'_>, &str)> {
        let url = AbsoluteUrl::parse(text)?;
        Some((url, url.path.strip_suffix('/').unwrap_or(url.path)))
    }
    match (parts(one), parts(other)) {
        (Some((a, path)), Some((b, other_path))) => {
            a.is(b.scheme)
                && a.host.eq_ignore_ascii_case(b.host)
                && (a.effective_port(), path, a.query) == (b.effective_port(), other_path, b.query)
        }
        _ => one == other,
    }
}

crate::rule! {
    /// No package stands twice.
    ///
    /// The same package with another transport is another choice; with the same one it breaks importers that key by it.
    static PACKAGE_DUPLICATE = {
        id: "registry/package-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*",
        fix: "Remove the repeated package.",
        spec: "hint; known to break aggregators' imports",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/1"], r#"{"packages": [{}, {}]}"#),
            silent(r#"{"packages": [{}, {"transport": {"type": "streamable-http", "url": "http://localhost:8080/mcp"}}]}"#),
        ],
        check: Check::Document(package_duplicate),
    }
}

fn package_duplicate(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for package in list(document, "packages") {
        let Some(identifier) = filled(package, "identifier") else { continue };
        let transport = package.given("transport");
        let of_transport = |key: &str| transport.and_then(|transport| filled(transport, key));
        let key = (
            filled(package, "registryType"),
            identifier,
            filled(package, "version"),
            of_transport("type"),
            of_transport("url"),
        );
        if !seen.insert(key) {
            out.add(package, format!("{} stands here again", quote(identifier)));
        }
    }
}

crate::rule! {
    /// Arguments for a runtime come with the runtime's name.
    ///
    /// Otherwise the client has to guess whom to hand them to.
    static RUNTIME_HINT_MISSING = {
        id: "registry/runtime-hint-missing",
        versions: ALL_REVISIONS,
        place: "/packages/*/runtimeHint",
        fix: "Name the runtime (npx, uvx, docker, dnx).",
        spec: "server.json 2025-12-11 schema runtimeHint",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/runtimeHint"], r#"{"packages": [{"runtimeArguments": [{"type": "named", "name": "-y"}]}]}"#),
            silent(r#"{"packages": [{"runtimeHint": "npx", "runtimeArguments": [{"type": "named", "name": "-y"}]}]}"#),
        ],
        check: Check::Each(&["/packages/*"], runtime_hint_missing),
    }
}

fn runtime_hint_missing(package: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if list(package, "runtimeArguments").next().is_none() || !is_blank(package, "runtimeHint") {
        return;
    }
    match member(package, "runtimeHint") {
        Some(hint) => out.add(hint, "the runtime's name is empty"),
        None => out.add_missing(package, spelled("runtimeHint", context.profile.versions), "no runtime is named"),
    };
}

crate::rule! {
    /// A step after installation says what to do.
    ///
    /// The draft shows such steps to the user; one without a description cannot be followed.
    static POST_INSTALL_STEP_INCOMPLETE = {
        id: "registry/post-install-step-incomplete",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["draft"],
        place: "/packages/*/postInstallInstructions/*",
        fix: "Describe the step.",
        spec: "server-json draft",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/postInstallInstructions/0"], r#"{"packages": [{"postInstallInstructions": [{"command": "tides init"}]}]}"#),
            fires(&["/packages/0/postInstallInstructions/0"], r#"{"packages": [{"postInstallInstructions": [{"description": "Register", "documentation": "docs/register"}]}]}"#),
            silent(r#"{"packages": [{"postInstallInstructions": [{"description": "Register", "documentation": "https://tidehouse.dev/register"}]}]}"#),
        ],
        check: Check::Each(&["/packages/*/postInstallInstructions/*"], post_install_step_incomplete),
    }
}

fn post_install_step_incomplete(step: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if step.index().is_none() {
        return;
    }
    if filled(step, "description").is_none() {
        out.add(step, "the step has no description");
        return;
    }
    let documentation = step.given("documentation");
    if documentation.is_some_and(|node| !node.text().is_some_and(is_absolute_uri)) {
        out.add(step, "its documentation is no absolute URI");
    }
}
