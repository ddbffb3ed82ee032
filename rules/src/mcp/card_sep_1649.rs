//! Server cards of the older form, SEP-1649: `serverInfo`, one transport, and tools in the card itself.
//!
//! The proposal was never adopted and SEP-2127 replaced it, so nothing here is more than a warning.

use super::SEP_1649;
use super::card::ON;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &CARD_TRANSPORT_INVALID,
    &CARD_TOOLS_INVALID,
    &CARD_LEGACY_FORMAT,
    &CARD_PROTOCOL_VERSION_MISSING,
    &CARD_TRANSPORT_TYPE,
    &CARD_ENDPOINT_RELATIVE,
    &CARD_ENDPOINT_MISSING,
    &CARD_TOOLS_DYNAMIC,
    &CARD_TOOLS_NOT_LISTED,
    &CARD_AUTH_NOT_DECLARED,
];

crate::rule! {
    /// A card's transport is an object.
    ///
    /// Its type alone does not say where to connect.
    static CARD_TRANSPORT_INVALID = {
        id: "mcp/card-transport-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SEP_1649,
        on: ON,
        place: "/transport",
        fix: "Use an object with type and endpoint.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_TRANSPORT_INVALID"],
        examples: &[
            fires(&["/transport"], r#"{"transport": "streamable-http"}"#),
            silent(r#"{"transport": {"type": "streamable-http"}}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(card_transport_invalid),
    }
}

fn card_transport_invalid(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(transport) = card.given("transport")
        && transport.kind() != Type::Object
    {
        out.add(transport, format!("`transport` is {}, not an object", transport.kind().named()));
    }
}

crate::rule! {
    /// A card's tools are a list, or said to be dynamic.
    ///
    /// Readers find nothing in anything else.
    static CARD_TOOLS_INVALID = {
        id: "mcp/card-tools-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SEP_1649,
        on: ON,
        place: "/tools",
        fix: "Use an array or \"dynamic\".",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_TOOLS_ARRAY_REQUIRED"],
        examples: &[fires(&["/tools"], r#"{"tools": 3}"#), silent(r#"{"tools": "dynamic"}"#)],
        stops: Stops::Value,
        check: Check::Document(card_tools_invalid),
    }
}

fn card_tools_invalid(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(tools) = card.given("tools")
        && tools.kind() != Type::Array
        && tools.text() != Some("dynamic")
    {
        out.add(tools, format!("`tools` is {}, neither a list nor \"dynamic\"", tools.kind().named()));
    }
}

crate::rule! {
    /// The card is of the older form.
    ///
    /// The published form replaces it; newer readers look for `remotes` and find none.
    static CARD_LEGACY_FORMAT = {
        id: "mcp/card-legacy-format",
        basis: Basis::Hint,
        versions: SEP_1649,
        on: ON,
        place: "/",
        fix: "Publish the SEP-2127 form.",
        spec: "SEP-2127",
        examples: &[fires(&[""], "{}"), silent("{}").over("server-card-v1")],
        check: Check::Document(card_legacy_format),
    }
}

fn card_legacy_format(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    out.add(card, "a card of the form of SEP-1649");
}

crate::rule! {
    /// A card of the older form says which revision the server speaks.
    ///
    /// As a string; readers compare it with those they speak.
    static CARD_PROTOCOL_VERSION_MISSING = {
        id: "mcp/card-protocol-version-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SEP_1649,
        on: ON,
        place: "/protocolVersion",
        fix: "Add protocolVersion.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_PROTOCOL_VERSION_REQUIRED"],
        examples: &[
            fires(&["/protocolVersion"], r#"{"protocolVersion": null}"#),
            silent(r#"{"protocolVersion": "2025-06-18"}"#),
        ],
        check: Check::Document(card_protocol_version_missing),
    }
}

fn card_protocol_version_missing(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match card.get("protocolVersion") {
        None => drop(out.add_missing(card, "protocolVersion", "`protocolVersion` is missing")),
        Some(version) if version.kind() != Type::String => {
            out.add(version, format!("`protocolVersion` is {}, not a string", version.kind().named()));
        }
        Some(_) => {}
    }
}

/// What a card says of its transport's type.
fn transport_type<'d>(card: Node<'d>) -> Option<Node<'d>> {
    card.get("transport")?.get("type")
}

crate::rule! {
    /// A card's transport is none of those that the protocol defines.
    ///
    /// Beside `streamable-http`, `sse` and `stdio` a server may have one of its own, which only clients made for it speak. A
    /// hint and no more: SEP-1649 gives the three as examples ("e.g."), and MCP allows transports of one's own (2025-11-25
    /// transports, Custom Transports).
    static CARD_TRANSPORT_TYPE = {
        id: "mcp/card-transport-type",
        basis: Basis::Hint,
        versions: SEP_1649,
        on: ON,
        place: "/transport/type",
        fix: "None needed for a transport of your own; otherwise use streamable-http.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_TRANSPORT_TYPE_UNRECOGNISED"],
        examples: &[
            fires(&["/transport/type"], r#"{"transport": {"type": "websocket"}}"#),
            silent(r#"{"transport": {"type": "stdio"}}"#),
        ],
        check: Check::Document(card_transport_type),
    }
}

fn card_transport_type(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(kind) = transport_type(card)
        && !matches!(kind.text(), Some("streamable-http" | "sse" | "stdio"))
    {
        out.add(
            kind,
            format!(
                "{} is not among the transports that the protocol defines",
                quote(kind.text().unwrap_or(kind.raw()))
            ),
        );
    }
}

crate::rule! {
    /// The card gives its endpoint as a path.
    ///
    /// Whoever has the card from elsewhere cannot resolve it. A hint and no more: SEP-1649 itself asks for a path
    /// ("Transport endpoint path (e.g., \"/mcp\")"), to be read from the place of the card.
    static CARD_ENDPOINT_RELATIVE = {
        id: "mcp/card-endpoint-relative",
        basis: Basis::Hint,
        versions: SEP_1649,
        on: ON,
        place: "/transport/endpoint",
        fix: "None needed; an absolute https URL works wherever the card is read.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_ENDPOINT_RELATIVE"],
        examples: &[
            fires(&["/transport/endpoint"], r#"{"transport": {"endpoint": "/mcp"}}"#),
            silent(r#"{"transport": {"endpoint": "https://tides.example.org/mcp"}}"#),
        ],
        check: Check::Each(&["/transport/endpoint"], card_endpoint_relative),
    }
}

fn card_endpoint_relative(endpoint: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(text) = endpoint.text()
        && !text.is_empty()
        && AbsoluteUrl::parse(text).is_none()
        && !text.contains("://")
    {
        out.add(endpoint, format!("{} is a path, read from the place of the card", quote(text)));
    }
}

crate::rule! {
    /// A card says where to connect.
    ///
    /// In `transport.endpoint`, in `url` or in a remote, where the transport runs over HTTP.
    static CARD_ENDPOINT_MISSING = {
        id: "mcp/card-endpoint-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: SEP_1649,
        on: ON,
        place: "/transport/endpoint",
        fix: "Give the endpoint.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_HTTPS_ENDPOINT_REQUIRED"],
        examples: &[
            fires(&["/transport/endpoint"], r#"{"transport": {"endpoint": null}}"#),
            silent(r#"{"transport": {"type": "stdio", "endpoint": null}}"#),
            silent(r#"{"transport": {"type": "in-process", "endpoint": null}}"#),
            silent(r#"{"transport": {"type": null, "endpoint": null}}"#),
        ],
        check: Check::Document(card_endpoint_missing),
    }
}

fn card_endpoint_missing(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(transport) = card.get("transport") else { return };
    let says = |object: Node<'_>, member: &str| object.get(member).is_some_and(|url| url.text() != Some(""));
    let in_transport = says(transport, "endpoint") || says(transport, "url");
    let in_remote = card.get("remotes").into_iter().flat_map(Node::items).any(|remote| says(remote, "url"));
    let kind = transport.get("type").and_then(Node::text).unwrap_or_default();
    let is_http = kind == "sse" || kind.contains("http");
    if is_http && !in_transport && !in_remote && !says(card, "url") {
        out.add_missing(transport, "endpoint", "no address to connect to");
    }
}

crate::rule! {
    /// The card leaves its tools open.
    ///
    /// They depend on who asks, so only the server itself can list them.
    static CARD_TOOLS_DYNAMIC = {
        id: "mcp/card-tools-dynamic",
        basis: Basis::Hint,
        versions: SEP_1649,
        on: ON,
        place: "/tools",
        fix: "None needed.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_TOOLS_DYNAMIC"],
        examples: &[
            fires(&["/tools"], r#"{"tools": "dynamic"}"#),
            fires(&["/tools"], r#"{"tools": ["dynamic"]}"#),
            silent(r#"{"tools": []}"#),
        ],
        check: Check::Document(card_tools_dynamic),
    }
}

fn card_tools_dynamic(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(tools) = card.get("tools") {
        let mut items = tools.items();
        let is_listed = items.next().and_then(Node::text) == Some("dynamic") && items.next().is_none();
        if is_listed || tools.text() == Some("dynamic") {
            out.add(tools, "dynamic");
        }
    }
}

crate::rule! {
    /// The card does not speak of tools.
    ///
    /// What the server can do is seen only by connecting to it.
    static CARD_TOOLS_NOT_LISTED = {
        id: "mcp/card-tools-not-listed",
        basis: Basis::Hint,
        versions: SEP_1649,
        on: ON,
        place: "/tools",
        fix: "None needed; clients call tools/list.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_TOOLS_NOT_LISTED"],
        examples: &[fires(&["/tools"], r#"{"tools": null}"#), silent(r#"{"tools": []}"#)],
        check: Check::Document(card_tools_not_listed),
    }
}

fn card_tools_not_listed(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if card.get("tools").is_none() {
        out.add_missing(card, "tools", "no tools");
    }
}

crate::rule! {
    /// The card does not say whether to sign in.
    ///
    /// Whether a client needs a token is then seen only by asking without one.
    static CARD_AUTH_NOT_DECLARED = {
        id: "mcp/card-auth-not-declared",
        basis: Basis::Hint,
        versions: SEP_1649,
        on: ON,
        place: "/authentication",
        fix: "Say whether authorization is needed.",
        spec: "SEP-1649",
        seeds: &["gaip:MCP_AUTH_NOT_DECLARED"],
        examples: &[
            fires(&["/authentication"], r#"{"authentication": null}"#),
            silent(r#"{"authentication": {"required": false}}"#),
        ],
        check: Check::Document(card_auth_not_declared),
    }
}

fn card_auth_not_declared(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if card.get("authentication").is_none() {
        out.add_missing(card, "authentication", "nothing is said about signing in");
    }
}
