//! How a client talks to an installed package.

use std::collections::HashSet;

use super::fields::{filled, is_blank, list};
use super::packages::text_member;
use super::revision::ALL_REVISIONS;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, quote, variables, with_samples};

pub(super) const RULES: &[&Rule] = &[
    &PACKAGE_TRANSPORT_UNRECOGNISED,
    &PACKAGE_TRANSPORT_URL_MISSING,
    &PACKAGE_TRANSPORT_URL_INVALID,
    &PACKAGE_TRANSPORT_URL_VARIABLE_UNDEFINED,
    &STDIO_TRANSPORT_HAS_URL,
];

crate::rule! {
    /// A package's transport is `stdio`, `streamable-http` or `sse`.
    ///
    /// Clients skip a package whose transport they do not know.
    static PACKAGE_TRANSPORT_UNRECOGNISED = {
        id: "registry/package-transport-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/packages/*/transport/type",
        fix: "Use stdio, streamable-http or sse.",
        spec: "server.json 2025-12-11 schema LocalTransport",
        seeds: &["gaip:MCP_TRANSPORT_TYPE_UNRECOGNISED"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/transport/type"], r#"{"packages": [{"transport": {"type": "http", "url": "http://localhost:3000/mcp"}}]}"#),
            silent(r#"{"packages": [{"transport": {"type": "sse", "url": "http://localhost:3000/sse"}}]}"#),
        ],
        check: Check::Each(&["/packages/*/transport"], package_transport_unrecognised),
    }
}

fn package_transport_unrecognised(transport: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((node, text)) = text_member(transport, "type")
        && !matches!(text, "stdio" | "streamable-http" | "sse")
    {
        out.add(node, format!("{} is no transport", quote(text)));
    }
}

crate::rule! {
    /// A package that listens says where.
    ///
    /// The client starts it and then has to connect to something.
    static PACKAGE_TRANSPORT_URL_MISSING = {
        id: "registry/package-transport-url-missing",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/packages/*/transport",
        fix: "Add the URL the package listens on.",
        spec: "server.json 2025-12-11 schema StreamableHttpTransport",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/transport"], r#"{"packages": [{"transport": {"type": "streamable-http"}}]}"#),
            silent("{}"),
        ],
        check: Check::Each(&["/packages/*/transport"], package_transport_url_missing),
    }
}

fn package_transport_url_missing(transport: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(kind @ ("streamable-http" | "sse")) = filled(transport, "type")
        && is_blank(transport, "url")
    {
        out.add(transport, format!("`{kind}` without a URL"));
    }
}

/// The URL of a package that listens. One beside `stdio` is reported as that.
fn url_of(package: Node<'_>) -> Option<(Node<'_>, &str)> {
    let transport = package.given("transport").filter(|transport| filled(*transport, "type") != Some("stdio"))?;
    text_member(transport, "url")
}

/// What a template in a package's URL may name: its environment variables and its arguments.
fn defined(package: Node<'_>) -> HashSet<&str> {
    let names = list(package, "environmentVariables").filter_map(|variable| filled(variable, "name"));
    let arguments = list(package, "runtimeArguments").chain(list(package, "packageArguments"));
    let of_arguments = arguments.flat_map(|argument| [filled(argument, "name"), filled(argument, "valueHint")]);
    names.chain(of_arguments.flatten()).collect()
}

fn undefined<'d>(package: Node<'d>, url: &'d str) -> Option<&'d str> {
    let mut names = variables(url).map(|variable| variable.name).peekable();
    names.peek()?;
    let defined = defined(package);
    names.find(|name| !defined.contains(name))
}

crate::rule! {
    /// A package's URL is an absolute http address once its variables are filled in.
    ///
    /// Loopback and plain http are as they should be: the package runs on the user's machine.
    static PACKAGE_TRANSPORT_URL_INVALID = {
        id: "registry/package-transport-url-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/transport/url",
        fix: "Write an absolute http(s) URL.",
        spec: "official registry publish checks: package transport",
        seeds: &["gaip:MCP_ENDPOINT_URL_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/transport/url"], r#"{"packages": [{"transport": {"type": "streamable-http", "url": "localhost:3000/mcp"}}]}"#),
            fires(&["/packages/0/transport/url"], r#"{"packages": [{"transport": {"type": "streamable-http", "url": "/mcp"}}]}"#),
            silent(r#"{"packages": [{"transport": {"type": "streamable-http", "url": "http://127.0.0.1:{PORT}/mcp"}, "environmentVariables": [{"name": "PORT"}]}]}"#),
        ],
        yields_to: &["common/unsafe-url-scheme"],
        check: Check::Each(&["/packages/*"], package_transport_url_invalid),
    }
}

fn package_transport_url_invalid(package: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((node, url)) = url_of(package) else { return };
    let open = context.profile.has("draft") && url.starts_with('{');
    if !open && AbsoluteUrl::http(&with_samples(url)).is_none() && undefined(package, url).is_none() {
        out.add(node, format!("{} is no absolute http URL", quote(url)));
    }
}

crate::rule! {
    /// Every variable in a package's URL is one of its arguments or environment variables.
    ///
    /// Nothing else can fill it in.
    static PACKAGE_TRANSPORT_URL_VARIABLE_UNDEFINED = {
        id: "registry/package-transport-url-variable-undefined",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/transport/url",
        fix: "Define the variable as an argument or environment variable.",
        spec: "official registry publish checks: templated URL",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/transport/url"], r#"{"packages": [{"transport": {"type": "streamable-http", "url": "http://localhost:{port}/mcp"}, "environmentVariables": [{"name": "PORT"}]}]}"#),
            silent(r#"{"packages": [{"transport": {"type": "streamable-http", "url": "http://localhost:{--port}/mcp"}, "packageArguments": [{"type": "named", "name": "--port", "default": "3000"}]}]}"#),
        ],
        check: Check::Each(&["/packages/*"], package_transport_url_variable_undefined),
    }
}

fn package_transport_url_variable_undefined(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((node, url)) = url_of(package)
        && let Some(name) = undefined(package, url)
    {
        out.add(node, format!("no argument or environment variable is called {}", quote(name)));
    }
}

crate::rule! {
    /// `stdio` has no URL.
    ///
    /// One of the two is a mistake, and the registry refuses them together.
    static STDIO_TRANSPORT_HAS_URL = {
        id: "registry/stdio-transport-has-url",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/transport/url",
        fix: "Drop url or change the type.",
        spec: "official registry publish checks: stdio url",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/transport/url"], r#"{"packages": [{"transport": {"url": "http://localhost:3000"}}]}"#),
            silent(r#"{"packages": [{"transport": {"url": ""}}]}"#),
        ],
        check: Check::Each(&["/packages/*/transport"], stdio_transport_has_url),
    }
}

fn stdio_transport_has_url(transport: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if transport.kind() == Type::Object
        && filled(transport, "type") == Some("stdio")
        && let Some((node, url)) = text_member(transport, "url")
    {
        out.add(node, format!("{} beside `stdio`", quote(url)));
    }
}
