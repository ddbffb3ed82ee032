//! Lists and objects that everything else stands in.

use super::fields::{filled, member};
use super::revision::ALL_REVISIONS;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};

pub(super) const RULES: &[&Rule] = &[
    &REPOSITORY_INCOMPLETE,
    &REPOSITORY_EMPTY,
    &PACKAGES_NOT_ARRAY,
    &PACKAGE_NOT_OBJECT,
    &PACKAGE_INCOMPLETE,
    &PACKAGE_TRANSPORT_MISSING,
    &REMOTES_NOT_ARRAY,
    &REMOTE_NOT_OBJECT,
    &NO_INSTALL_METHOD,
    &LOCAL_ONLY,
];

crate::rule! {
    /// A repository has both its address and the name of its host service.
    ///
    /// The schema requires both; without `source` nobody knows how to read the address.
    static REPOSITORY_INCOMPLETE = {
        id: "registry/repository-incomplete",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/repository",
        fix: "Give both url and source, or drop repository.",
        spec: "server.json 2025-12-11 schema Repository",
        seeds: &["gaip:MCP_REPOSITORY_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/repository"], r#"{"repository": {"source": null}}"#),
            fires(&["/repository"], r#"{"repository": "https://github.com/tidehouse/tides"}"#),
            silent(r#"{"repository": {"url": "", "source": ""}}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(repository_incomplete),
    }
}

fn repository_incomplete(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(repository) = document.given("repository") else { return };
    if repository.kind() != Type::Object {
        out.add(repository, format!("{} where an object belongs", repository.kind().named()));
        return;
    }
    match (filled(repository, "url"), filled(repository, "source")) {
        (Some(_), Some(_)) => {}
        (Some(_), None) => {
            out.add(repository, "`source` is missing");
        }
        (None, Some(_)) => {
            out.add(repository, "`url` is missing");
        }
        (None, None) if is_empty_repository(repository) => {}
        (None, None) => {
            out.add(repository, "`url` and `source` are no strings");
        }
    }
}

/// Neither `url` nor `source`, or both written as empty strings: how the API shows that there is none.
fn is_empty_repository(repository: Node<'_>) -> bool {
    ["url", "source"].into_iter().all(|key| repository.given(key).is_none_or(|node| node.text() == Some("")))
}

crate::rule! {
    /// The repository is written as an empty object.
    ///
    /// The registry's own encoder leaves it behind where a document names none, so it says nothing against the author.
    static REPOSITORY_EMPTY = {
        id: "registry/repository-empty",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/repository",
        fix: "Add the public source repository if there is one.",
        spec: "server.json 2025-12-11 schema Repository",
        seeds: &["gaip:MCP_REPOSITORY_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/repository"], r#"{"repository": {"url": "", "source": ""}}"#),
            fires(&["/repository"], r#"{"repository": {"url": null, "source": null}}"#),
            silent(r#"{"repository": null}"#),
        ],
        check: Check::Document(repository_empty),
    }
}

fn repository_empty(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(repository) = document.given("repository").filter(|node| node.kind() == Type::Object)
        && is_empty_repository(repository)
    {
        out.add(repository, "no repository is named");
    }
}

crate::rule! {
    /// `packages` is an array.
    ///
    /// Clients iterate over it; anything else makes typed ones refuse the entry.
    static PACKAGES_NOT_ARRAY = {
        id: "registry/packages-not-array",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/packages",
        fix: "Write packages as an array.",
        spec: "server.json 2025-12-11 schema packages",
        seeds: &["gaip:MCP_PACKAGES_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages"], r#"{"packages": {"npm": "@tidehouse/tides"}}"#),
            silent(r#"{"packages": []}"#),
            silent(r#"{"packages": null}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(packages_not_array),
    }
}

fn packages_not_array(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    not_array(document, "packages", out);
}

fn not_array(document: Node<'_>, key: &str, out: &mut Occurrences) {
    if let Some(list) = document.given(key).filter(|node| node.kind() != Type::Array) {
        out.add(list, format!("{} where an array belongs", list.kind().named()));
    }
}

crate::rule! {
    /// Every package is an object.
    ///
    /// A bare name does not say which package registry it belongs to.
    static PACKAGE_NOT_OBJECT = {
        id: "registry/package-not-object",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/packages/*",
        fix: "Write each package as an object.",
        spec: "server.json 2025-12-11 schema Package",
        seeds: &["gaip:MCP_PACKAGES_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0"], r#"{"packages": ["@tidehouse/tides"]}"#),
            silent("{}"),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/packages/*"], not_object),
    }
}

fn not_object(element: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let in_array = element.index().is_some();
    if in_array && element.kind() != Type::Object {
        out.add(element, format!("{} where an object belongs", element.kind().named()));
    }
}

crate::rule! {
    /// A package says where it comes from and what it is called.
    ///
    /// Without `registryType` and `identifier` nothing can be installed.
    static PACKAGE_INCOMPLETE = {
        id: "registry/package-incomplete",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/packages/*",
        fix: "Add the missing field.",
        spec: "server.json 2025-12-11 schema Package",
        seeds: &["gaip:MCP_PACKAGE_INCOMPLETE"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0"], r#"{"packages": [{"identifier": null}]}"#),
            fires(&["/packages/0"], r#"{"packages": [{"registryType": ""}]}"#),
            fires(&["/packages/0"], r#"{"packages": [{"registry_type": null}]}"#).over("server-json-2025-07-09"),
            silent(r#"{"packages": [{"registryBaseUrl": null}]}"#),
        ],
        check: Check::Each(&["/packages/*"], package_incomplete),
    }
}

fn package_incomplete(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if package.kind() != Type::Object {
        return;
    }
    let lacks = |key: &str| filled(package, key).is_none();
    let lacking = match (lacks("registryType"), lacks("identifier")) {
        (false, false) => return,
        (true, false) => "`registryType` is no filled string",
        (false, true) => "`identifier` is no filled string",
        (true, true) => "`registryType` and `identifier` are no filled strings",
    };
    out.add(package, lacking);
}

crate::rule! {
    /// A package says how the client talks to it.
    ///
    /// Nearly always that is `stdio`, but no client may assume so.
    static PACKAGE_TRANSPORT_MISSING = {
        id: "registry/package-transport-missing",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/packages/*/transport",
        fix: "Add transport, usually {\"type\": \"stdio\"}.",
        spec: "server.json 2025-12-11 schema LocalTransport",
        seeds: &["gaip:MCP_TRANSPORT_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/transport"], r#"{"packages": [{"transport": null}]}"#),
            fires(&["/packages/0/transport"], r#"{"packages": [{"transport": "stdio"}]}"#),
            fires(&["/packages/0/transport"], r#"{"packages": [{"transport": {"type": ""}}]}"#),
            silent(r#"{"packages": [{"transport": {"url": ""}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/packages/*"], package_transport_missing),
    }
}

fn package_transport_missing(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if package.kind() != Type::Object {
        return;
    }
    match package.given("transport") {
        // A snake_case name stands for it, and is reported as such.
        None if package.given("transport_type").is_some() => {}
        None => {
            out.add_missing(package, "transport", "no transport is named");
        }
        Some(transport) if transport.kind() != Type::Object => {
            out.add(transport, format!("{} where an object belongs", transport.kind().named()));
        }
        Some(transport) if filled(transport, "type").is_none() => {
            out.add(transport, "`type` is no filled string");
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// `remotes` is an array.
    ///
    /// Clients iterate over it; anything else makes typed ones refuse the entry.
    static REMOTES_NOT_ARRAY = {
        id: "registry/remotes-not-array",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/remotes",
        fix: "Write remotes as an array.",
        spec: "server.json 2025-12-11 schema remotes",
        seeds: &["gaip:MCP_REMOTES_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes"], r#"{"remotes": {"type": "streamable-http", "url": "https://mcp.tidehouse.dev"}}"#),
            silent(r#"{"remotes": []}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(remotes_not_array),
    }
}

fn remotes_not_array(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    not_array(document, "remotes", out);
}

crate::rule! {
    /// Every remote is an object.
    ///
    /// A bare address does not say which transport answers there.
    static REMOTE_NOT_OBJECT = {
        id: "registry/remote-not-object",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/remotes/*",
        fix: "Write each remote as an object with type and url.",
        spec: "server.json 2025-12-11 schema RemoteTransport",
        seeds: &["gaip:MCP_REMOTE_OBJECT_REQUIRED"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0"], r#"{"remotes": ["https://mcp.tidehouse.dev/mcp"]}"#),
            silent("{}"),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/remotes/*"], not_object),
    }
}

crate::rule! {
    /// A server can be installed or called.
    ///
    /// With neither a package nor a remote the entry is a name and nothing else.
    static NO_INSTALL_METHOD = {
        id: "registry/no-install-method",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        rank: 39,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "",
        fix: "Add a package or a remote.",
        spec: "MCP Registry docs: about; registry issue 1579",
        seeds: &["gaip:MCP_HTTPS_ENDPOINT_REQUIRED", "gaip:MCP_NO_REMOTE_ENDPOINT"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&[""], r#"{"packages": null, "remotes": null}"#),
            fires(&[""], r#"{"packages": [], "remotes": []}"#),
            silent(r#"{"packages": []}"#),
        ],
        check: Check::Document(no_install_method),
    }
}

fn no_install_method(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if holds_nothing(document, "packages") && holds_nothing(document, "remotes") {
        out.add(document, "neither packages nor remotes");
    }
}

/// Whether a list is absent or empty. One of another type is reported as that.
fn holds_nothing(document: Node<'_>, key: &str) -> bool {
    document.given(key).is_none_or(Node::is_empty)
}

crate::rule! {
    /// The server runs on the user's machine only.
    ///
    /// There is no remote to look at.
    static LOCAL_ONLY = {
        id: "registry/local-only",
        class: Class::Fact,
        versions: ALL_REVISIONS,
        place: "/remotes",
        fix: "Add a remotes entry if you also host the server.",
        spec: "server.json 2025-12-11 schema remotes",
        seeds: &["gaip:MCP_NO_REMOTE_ENDPOINT"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes"], r#"{"remotes": null}"#),
            fires(&["/remotes"], r#"{"remotes": []}"#),
            silent("{}"),
        ],
        check: Check::Document(local_only),
    }
}

fn local_only(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let has_packages = member(document, "packages").is_some_and(|packages| packages.items().next().is_some());
    if !has_packages || !holds_nothing(document, "remotes") {
        return;
    }
    match document.given("remotes") {
        Some(remotes) => out.add(remotes, "packages only"),
        None => out.add_missing(document, "remotes", "packages only"),
    };
}
