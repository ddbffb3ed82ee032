//! What a server says it can do: `capabilities` of the handshake, with the extensions among them.

use super::metadata::{Key, OFFICIAL_EXTENSIONS};
use super::{ALL, HANDSHAKES, MODERN, is_since};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &CAPABILITIES_INVALID,
    &CAPABILITY_TYPE,
    &EXTENSIONS_INVALID,
    &CAPABILITIES_MISSING,
    &CAPABILITY_UNKNOWN,
    &CAPABILITY_EXPERIMENTAL,
    &EXTENSION_ID_INVALID,
    &EXTENSION_RESERVED_PREFIX,
    &EXTENSIONS_ADVERTISED,
    &DEPRECATED_LOGGING,
    &EMPTY_SERVER,
];

/// Whether a revision defines a capability of that name.
fn is_defined(name: &str, context: &Context<'_>) -> bool {
    match name {
        "experimental" | "logging" | "prompts" | "resources" | "tools" => true,
        "completions" => is_since(context, "2025-03-26"),
        "tasks" => context.profile.has("2025-11-25"),
        "extensions" => context.profile.has("2026-07-28"),
        _ => false,
    }
}

/// The extensions that are declared, when they are an object.
fn extensions<'d>(result: Node<'d>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    result
        .get("capabilities")
        .and_then(|capabilities| capabilities.get("extensions"))
        .into_iter()
        .flat_map(Node::members)
}

crate::rule! {
    /// Capabilities are an object.
    ///
    /// A list of names makes strict clients give up the handshake, and says nothing that they could read.
    static CAPABILITIES_INVALID = {
        id: "mcp/capabilities-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: HANDSHAKES,
        place: "/capabilities",
        fix: "Make capabilities an object.",
        spec: "schema ServerCapabilities",
        seeds: &["gaip:MCP_CAPABILITIES_INVALID", "validator:1.3.1.6"],
        examples: &[
            fires(&["/capabilities"], r#"{"capabilities": ["tools"]}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"capabilities": {"tools": {}}}"#).over("mcp-initialize-2025-11-25"),
        ],
        stops: Stops::Value,
        check: Check::Document(capabilities_invalid),
    }
}

fn capabilities_invalid(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(capabilities) = result.get("capabilities")
        && capabilities.kind() != Type::Object
    {
        out.add(capabilities, format!("`capabilities` is {}, not an object", capabilities.kind().named()));
    }
}

crate::rule! {
    /// A capability is an object, and its switches are true or false.
    ///
    /// `"tools": true` or `"listChanged": "yes"` makes strict clients give up the handshake. An empty object is enough to
    /// declare a capability.
    static CAPABILITY_TYPE = {
        id: "mcp/capability-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 23,
        versions: ALL,
        on: HANDSHAKES,
        place: "/capabilities/* | /capabilities/*/listChanged | /capabilities/resources/subscribe | /capabilities/experimental/*",
        fix: "Use objects with boolean flags.",
        spec: "schema ServerCapabilities",
        seeds: &["validator:2.1.1.2", "validator:2.1.1.3", "validator:2.2.1.2", "validator:2.3.1.2"],
        examples: &[
            fires(&["/capabilities/tools"], r#"{"capabilities": {"tools": true}}"#).over("mcp-initialize-2025-11-25"),
            fires(&["/capabilities/resources/subscribe"], r#"{"capabilities": {"resources": {"subscribe": "yes"}}}"#)
                .over("mcp-initialize-2025-11-25"),
            fires(&["/capabilities/experimental/tides"], r#"{"capabilities": {"experimental": {"tides": true}}}"#)
                .over("mcp-initialize-2025-11-25"),
            silent(r#"{"capabilities": {"tools": {}, "tide": true}}"#).over("mcp-initialize-2025-11-25"),
        ],
        stops: Stops::Value,
        check: Check::Document(capability_type),
    }
}

fn capability_type(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(capabilities) = result.get("capabilities") else { return };
    for (name, capability) in capabilities.members() {
        if capability.is_null() || name == "extensions" || !is_defined(name, context) {
            continue;
        }
        demand_object(name, capability, out);
        if name == "experimental" {
            capability.members().for_each(|(name, entry)| demand_object(name, entry, out));
        }
        let switches = ["listChanged", "subscribe"].into_iter().take(if name == "resources" { 2 } else { 1 });
        for switch in switches.filter(|_| matches!(name, "prompts" | "resources" | "tools")) {
            if let Some(value) = capability.given(switch)
                && value.kind() != Type::Bool
            {
                out.add(value, format!("`{switch}` is {}, not true or false", value.kind().named()));
            }
        }
    }
}

fn demand_object(name: &str, node: Node<'_>, out: &mut Occurrences) {
    if node.kind() != Type::Object {
        out.add(node, format!("the capability {} is {}, not an object", quote(name), node.kind().named()));
    }
}

crate::rule! {
    /// Extensions are an object of objects.
    ///
    /// The key names the extension, the value holds its settings; an empty object means none.
    static EXTENSIONS_INVALID = {
        id: "mcp/extensions-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: &[Kind::McpDiscoverResult, Kind::McpInitializeResult],
        place: "/capabilities/extensions | /capabilities/extensions/*",
        fix: "Map extension ids to settings objects.",
        spec: "2026-07-28 versioning, Extension Negotiation",
        seeds: &["inspector:extensions"],
        examples: &[
            fires(&["/capabilities/extensions"], r#"{"capabilities": {"extensions": ["org.example/x"]}}"#),
            fires(&["/capabilities/extensions/org.example~1x"], r#"{"capabilities": {"extensions": {"org.example/x": true}}}"#),
            silent(r#"{"capabilities": {"extensions": {"org.example/x": {}}}}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(extensions_invalid),
    }
}

fn extensions_invalid(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(extensions) = result.get("capabilities").and_then(|capabilities| capabilities.given("extensions"))
        && extensions.kind() != Type::Object
    {
        out.add(extensions, format!("`extensions` is {}, not an object", extensions.kind().named()));
    }
    for (_, settings) in extensions(result).filter(|(_, settings)| settings.kind() != Type::Object) {
        out.add(settings, format!("the extension's settings are {}, not an object", settings.kind().named()));
    }
}

crate::rule! {
    /// The first answer declares capabilities.
    ///
    /// Clients demand the member even when it is empty: what is not declared is not used.
    static CAPABILITIES_MISSING = {
        id: "mcp/capabilities-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 23,
        versions: ALL,
        on: HANDSHAKES,
        place: "/capabilities",
        fix: "Return a capabilities object, empty if none.",
        spec: "2025-11-25 lifecycle; 2026-07-28 schema DiscoverResult",
        seeds: &["validator:1.3.1.6", "validator:1.3.3.1"],
        examples: &[
            fires(&["/capabilities"], r#"{"capabilities": null}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"capabilities": {"tools": null}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(capabilities_missing),
    }
}

fn capabilities_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if result.get("capabilities").is_none() {
        out.add_missing(result, "capabilities", "`capabilities` is missing");
    }
}

crate::rule! {
    /// A capability is one that the revision defines.
    ///
    /// Clients ignore others. A new kind belongs under `experimental` or `extensions`.
    static CAPABILITY_UNKNOWN = {
        id: "mcp/capability-unknown",
        basis: Basis::Hint,
        versions: ALL,
        on: HANDSHAKES,
        place: "/capabilities/*",
        fix: "Correct the key or move it under experimental or extensions.",
        spec: "schema ServerCapabilities",
        examples: &[
            fires(&["/capabilities/tool"], r#"{"capabilities": {"tool": {}}}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"capabilities": {"tasks": {}, "experimental": {"tool": {}}}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(capability_unknown),
    }
}

fn capability_unknown(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(capabilities) = result.get("capabilities") else { return };
    for (name, capability) in capabilities.members().filter(|(name, _)| !is_defined(name, context)) {
        out.add(capability, format!("{} is no capability of this revision", quote(name)));
    }
}

crate::rule! {
    /// The server offers experimental capabilities.
    ///
    /// They mean what the server and its own clients agreed on.
    static CAPABILITY_EXPERIMENTAL = {
        id: "mcp/capability-experimental",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: ALL,
        on: HANDSHAKES,
        place: "/capabilities/experimental",
        fix: "None needed.",
        spec: "schema ServerCapabilities",
        examples: &[
            fires(&["/capabilities/experimental"], r#"{"capabilities": {"experimental": {"alerts": {}}}}"#)
                .over("mcp-initialize-2025-11-25"),
            silent(r#"{"capabilities": {"experimental": {}}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(capability_experimental),
    }
}

fn capability_experimental(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(experimental) = result.get("capabilities").and_then(|capabilities| capabilities.get("experimental"))
        && experimental.members().next().is_some()
    {
        out.add(experimental, names(experimental.members().map(|(name, _)| name)));
    }
}

/// Names as a fact shows them.
fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 20;
    names.take(MOST).map(quote).collect::<Vec<_>>().join(", ")
}

crate::rule! {
    /// An extension's name has a prefix and keeps to the form of `_meta` keys.
    ///
    /// The prefix is a reversed domain, as in `com.example/alerts`, so that two authors never mean different things by one
    /// name.
    static EXTENSION_ID_INVALID = {
        id: "mcp/extension-id-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: HANDSHAKES,
        place: "/capabilities/extensions/*",
        fix: "Use reverse-DNS/name.",
        spec: "2026-07-28 versioning, Extension Negotiation; basic, _meta",
        seeds: &["inspector:extensions"],
        examples: &[
            fires(&["/capabilities/extensions/tides"], r#"{"capabilities": {"extensions": {"tides": {}}}}"#),
            fires(&["/capabilities/extensions/9x.example~1t"], r#"{"capabilities": {"extensions": {"9x.example/t": {}}}}"#),
            silent(r#"{"capabilities": {"extensions": {"org.ex-4mple/tide.alerts_v2": {}}}}"#),
        ],
        check: Check::Document(extension_id_invalid),
    }
}

fn extension_id_invalid(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (id, settings) in extensions(result) {
        match Key::parse(id) {
            Some(Key { prefix: Some(_), .. }) => {}
            Some(_) => drop(out.add(settings, format!("the extension {} has no prefix", quote(id)))),
            None => drop(out.add(settings, format!("{} has not the form of an extension's name", quote(id)))),
        }
    }
}

crate::rule! {
    /// Extensions of others leave the protocol's own prefixes alone.
    ///
    /// A prefix whose second label is `modelcontextprotocol` or `mcp` is kept for official extensions.
    static EXTENSION_RESERVED_PREFIX = {
        id: "mcp/extension-reserved-prefix",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: HANDSHAKES,
        place: "/capabilities/extensions/*",
        fix: "Use your own domain as prefix.",
        spec: "2026-07-28 basic, _meta",
        seeds: &["validator:5.1.1.2"],
        examples: &[
            fires(&["/capabilities/extensions/dev.mcp~1tides"], r#"{"capabilities": {"extensions": {"dev.mcp/tides": {}}}}"#),
            silent(r#"{"capabilities": {"extensions": {"com.example.mcp/tides": {}, "io.modelcontextprotocol/ui": {}}}}"#),
        ],
        check: Check::Document(extension_reserved_prefix),
    }
}

fn extension_reserved_prefix(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (id, settings) in extensions(result) {
        if Key::parse(id).is_some_and(|key| key.is_reserved(context)) && !OFFICIAL_EXTENSIONS.contains(&id) {
            out.add(settings, format!("{} is no official extension", quote(id)));
        }
    }
}

crate::rule! {
    /// The server speaks extensions.
    ///
    /// A client that knows them can do more than the protocol itself offers.
    static EXTENSIONS_ADVERTISED = {
        id: "mcp/extensions-advertised",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: MODERN,
        on: HANDSHAKES,
        place: "/capabilities/extensions",
        fix: "None needed.",
        spec: "2026-07-28 versioning",
        seeds: &["inspector:extensions"],
        examples: &[
            fires(&["/capabilities/extensions"], r#"{"capabilities": {"extensions": {"io.modelcontextprotocol/ui": {}}}}"#),
            silent(r#"{"capabilities": {"extensions": {}}}"#),
        ],
        check: Check::Document(extensions_advertised),
    }
}

fn extensions_advertised(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let valid = extensions(result).filter(|(id, _)| Key::parse(id).is_some_and(|key| key.prefix.is_some()));
    let mut valid = valid.peekable();
    if let Some((_, settings)) = valid.peek()
        && let Some(extensions) = settings.parent()
    {
        out.add(extensions, names(valid.map(|(id, _)| id)));
    }
}

crate::rule! {
    /// The logging capability is on its way out.
    ///
    /// It is deprecated from 2026-07-28 and may be removed a year later.
    static DEPRECATED_LOGGING = {
        id: "mcp/deprecated-logging",
        versions: MODERN,
        on: HANDSHAKES,
        place: "/capabilities/logging",
        fix: "Use stderr or OpenTelemetry.",
        spec: "2026-07-28 deprecated; SEP-2577",
        seeds: &["inspector:deprecated-features"],
        examples: &[
            fires(&["/capabilities/logging"], r#"{"capabilities": {"logging": {}}}"#),
            silent(r#"{"capabilities": {"experimental": {"logging": {}}}}"#),
        ],
        check: Check::Document(deprecated_logging),
    }
}

fn deprecated_logging(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(logging) = result.get("capabilities").and_then(|capabilities| capabilities.given("logging")) {
        out.add(logging, "`logging` is deprecated");
    }
}

crate::rule! {
    /// A server offers something.
    ///
    /// One that declares neither tools, resources, prompts nor completions, and no extension, has nothing to connect for.
    static EMPTY_SERVER = {
        id: "mcp/empty-server",
        basis: Basis::Policy,
        versions: ALL,
        on: HANDSHAKES,
        place: "/capabilities",
        fix: "Declare what the server offers.",
        spec: "2026-07-28 server",
        examples: &[
            fires(&["/capabilities"], r#"{"capabilities": {"tools": null, "logging": {}}}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"capabilities": {"tools": null, "completions": {}}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(empty_server),
    }
}

fn empty_server(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(capabilities) = result.get("capabilities").filter(|c| c.kind() == Type::Object) else { return };
    let offers = ["tools", "resources", "prompts", "completions"];
    if offers.iter().all(|name| capabilities.get(name).is_none()) && extensions(result).next().is_none() {
        out.add(capabilities, "nothing is declared that a client could use");
    }
}
