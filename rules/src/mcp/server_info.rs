//! What a server says it is: `serverInfo` of an initialize result, the key of that name in `_meta` of modern results.

use super::{ALL, LEGACY, MODERN, RESULTS, SERVER_INFO, SINCE_2025_06, SINCE_2025_11};
use super::{is_blank, server_info};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &SERVER_INFO_INVALID,
    &SERVER_INFO_MISSING,
    &SERVER_INFO_META_MISSING,
    &SERVER_INFO_IN_BODY,
    &SERVER_NAME_MISSING,
    &SERVER_VERSION_MISSING,
    &SERVER_TITLE_MISSING,
    &SERVER_WEBSITE_INVALID,
];

crate::rule! {
    /// The server's description of itself is an object.
    ///
    /// A name alone, or a list, makes strict clients give up the handshake.
    static SERVER_INFO_INVALID = {
        id: "mcp/server-info-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: RESULTS,
        place: "/serverInfo | /_meta/io.modelcontextprotocol~1serverInfo",
        fix: "Make serverInfo an object.",
        spec: "schema Implementation",
        seeds: &["gaip:MCP_SERVER_INFO_INVALID", "validator:1.3.1.7"],
        examples: &[
            fires(&["/serverInfo"], r#"{"serverInfo": "harbour-tides"}"#).over("mcp-initialize-2025-11-25"),
            fires(
                &["/_meta/io.modelcontextprotocol~1serverInfo"],
                r#"{"_meta": {"io.modelcontextprotocol/serverInfo": []}}"#,
            )
            .over("mcp-discover"),
            silent(r#"{"serverInfo": {"name": "n"}}"#).over("mcp-initialize-2025-11-25"),
        ],
        stops: Stops::Value,
        check: Check::Document(server_info_invalid),
    }
}

fn server_info_invalid(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(info) = server_info(result, context)
        && info.kind() != Type::Object
    {
        out.add(info, format!("`serverInfo` is {}, not an object", info.kind().named()));
    }
}

crate::rule! {
    /// An initialize result says which server it is.
    ///
    /// Clients demand `serverInfo` and end the handshake without it.
    static SERVER_INFO_MISSING = {
        id: "mcp/server-info-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 22,
        versions: LEGACY,
        on: &[Kind::McpInitializeResult],
        place: "/serverInfo",
        fix: "Add serverInfo with name and version (in camelCase; server_info is not read).",
        spec: "2025-11-25 lifecycle, Initialization",
        seeds: &["validator:1.3.1.7", "inspector:initialize-handshake"],
        examples: &[
            fires(&["/serverInfo"], r#"{"serverInfo": null}"#),
            silent(r#"{"serverInfo": {"title": null}}"#),
        ],
        check: Check::Document(server_info_missing),
    }
}

fn server_info_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if result.get("serverInfo").is_none() {
        out.add_missing(result, "serverInfo", "`serverInfo` is missing");
    }
}

crate::rule! {
    /// A modern result carries the server's name.
    ///
    /// Without sessions every answer stands alone, and its `_meta` is the only place that says who gave it.
    static SERVER_INFO_META_MISSING = {
        id: "mcp/server-info-meta-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: RESULTS,
        place: "/_meta/io.modelcontextprotocol~1serverInfo",
        fix: "Identify the server in every result's _meta.",
        spec: "2026-07-28 basic, Per-response protocol fields",
        seeds: &["validator:1.3.1.7"],
        examples: &[
            fires(&["/_meta"], r#"{"_meta": null}"#).over("mcp-discover"),
            fires(
                &["/_meta/io.modelcontextprotocol~1serverInfo"],
                r#"{"_meta": {"io.modelcontextprotocol/serverInfo": null}}"#,
            )
            .over("mcp-tools-2026-07-28"),
            silent(r#"{"_meta": {"revision": 3}}"#).over("mcp-discover"),
        ],
        check: Check::Document(server_info_meta_missing),
    }
}

fn server_info_meta_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    const MISSING: &str = "the server's name is missing";
    match result.get("_meta") {
        None => drop(out.add_missing(result, "_meta", MISSING)),
        Some(meta) if meta.kind() == Type::Object && meta.get(SERVER_INFO).is_none() => {
            out.add_missing(meta, SERVER_INFO, MISSING);
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// The server's name stands where release candidates had it.
    ///
    /// Clients of the published revision look for it in `_meta` and do not find it.
    static SERVER_INFO_IN_BODY = {
        id: "mcp/server-info-in-body",
        basis: Basis::Hint,
        versions: MODERN,
        on: &[Kind::McpDiscoverResult],
        place: "/serverInfo",
        fix: "Move serverInfo into _meta.",
        spec: "2026-07-28 server/discover",
        examples: &[
            fires(
                &["/serverInfo"],
                r#"{"serverInfo": {"name": "harbour-tides", "version": "1.0.0"},
                    "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}"#,
            )
            .whole()
            .beside(&["mcp/server-info-meta-missing"]),
            silent(r#"{"serverInfo": {"name": "harbour-tides", "version": "1.0.0"}}"#),
        ],
        check: Check::Document(server_info_in_body),
    }
}

fn server_info_in_body(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(info) = result.get("serverInfo")
        && server_info(result, context).is_none()
    {
        out.add(info, "`serverInfo` stands beside the result's own members, not in `_meta`");
    }
}

/// Reports a name or version that is missing, no string, or blank.
fn demand_text(result: Node<'_>, member: &str, context: &Context<'_>, out: &mut Occurrences) {
    let Some(info) = server_info(result, context).filter(|info| info.kind() == Type::Object) else { return };
    match info.get(member) {
        None => drop(out.add_missing(info, member, format!("the server's `{member}` is missing"))),
        Some(value) if value.kind() != Type::String => {
            out.add(value, format!("the server's `{member}` is {}, not a string", value.kind().named()));
        }
        Some(value) if is_blank(value) => drop(out.add(value, format!("the server's `{member}` is blank"))),
        Some(_) => {}
    }
}

crate::rule! {
    /// A server has a name.
    ///
    /// Strict clients demand it as a string; a blank one leaves logs and lists with nothing to show.
    static SERVER_NAME_MISSING = {
        id: "mcp/server-name-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 22,
        versions: ALL,
        on: RESULTS,
        place: "/serverInfo/name | /_meta/io.modelcontextprotocol~1serverInfo/name",
        fix: "Name the server.",
        spec: "schema Implementation",
        seeds: &["gaip:MCP_NAME_MISSING", "validator:1.3.1.7"],
        examples: &[
            fires(&["/serverInfo/name"], r#"{"serverInfo": {"name": " "}}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"serverInfo": {"name": "x", "title": null}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(server_name_missing),
    }
}

fn server_name_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    demand_text(result, "name", context, out);
}

crate::rule! {
    /// A server has a version.
    ///
    /// Any string will do, but it must be one: strict clients refuse a number and an absent version alike.
    static SERVER_VERSION_MISSING = {
        id: "mcp/server-version-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 22,
        versions: ALL,
        on: RESULTS,
        place: "/serverInfo/version | /_meta/io.modelcontextprotocol~1serverInfo/version",
        fix: "Give the server version.",
        spec: "schema Implementation",
        seeds: &["gaip:MCP_SERVER_VERSION_MISSING", "validator:1.3.1.7"],
        examples: &[
            fires(&["/serverInfo/version"], r#"{"serverInfo": {"version": 2}}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"serverInfo": {"version": "dev"}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(server_version_missing),
    }
}

fn server_version_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    demand_text(result, "version", context, out);
}

crate::rule! {
    /// The server has no title.
    ///
    /// People then see its technical name.
    static SERVER_TITLE_MISSING = {
        id: "mcp/server-title-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        on: RESULTS,
        place: "/serverInfo/title | /_meta/io.modelcontextprotocol~1serverInfo/title",
        fix: "Add a display title.",
        spec: "schema Implementation",
        examples: &[
            fires(&["/serverInfo/title"], r#"{"serverInfo": {"title": null}}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"serverInfo": {"title": "Tides"}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(server_title_missing),
    }
}

fn server_title_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(info) = server_info(result, context).filter(|info| info.kind() == Type::Object)
        && info.get("title").is_none()
    {
        out.add_missing(info, "title", "no title");
    }
}

crate::rule! {
    /// The server's website is a web address.
    ///
    /// Clients link to it, so it is absolute and http or https.
    static SERVER_WEBSITE_INVALID = {
        id: "mcp/server-website-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_11,
        on: RESULTS,
        place: "/serverInfo/websiteUrl | /_meta/io.modelcontextprotocol~1serverInfo/websiteUrl",
        fix: "Give an absolute https URL.",
        spec: "schema Implementation",
        seeds: &["gaip:MCP_URL_FIELD_INVALID"],
        examples: &[
            fires(&["/serverInfo/websiteUrl"], r#"{"serverInfo": {"websiteUrl": "tides.example.org"}}"#)
                .over("mcp-initialize-2025-11-25"),
            silent(r#"{"serverInfo": {"websiteUrl": "https://tides.example.org"}}"#).over("mcp-initialize-2025-11-25"),
        ],
        check: Check::Document(server_website_invalid),
    }
}

fn server_website_invalid(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(website) = server_info(result, context).and_then(|info| info.given("websiteUrl")) else { return };
    match website.text() {
        Some(text) if AbsoluteUrl::http(text).is_some() => {}
        Some(text) => drop(out.add(website, format!("{} is no absolute http or https URL", quote(text)))),
        None => drop(out.add(website, format!("`websiteUrl` is {}, not a string", website.kind().named()))),
    }
}
