//! Whether a document is a server.json at all.

use super::revision::ALL_REVISIONS;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Axis, Basis, Check, Rule, Stops, fires, silent};

pub(super) const RULES: &[&Rule] = &[&NOT_A_SERVER_JSON];

crate::rule! {
    /// The document is not a server.json of the MCP registry.
    ///
    /// Other tools keep files of that name too. Nobody claimed that this one describes an MCP server, so nothing is held
    /// against it.
    static NOT_A_SERVER_JSON = {
        id: "registry/not-a-server-json",
        axis: Axis::Detection,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "",
        fix: "Point the crawler at a real server.json, not at another tool's server.json file.",
        spec: "MCP Registry docs: about",
        seeds: &["gaip:SUPPORTED_PROTOCOL_REQUIRED"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&[""], r#"{"posts": [{"id": 1}], "name": "typicode"}"#).whole(),
            silent(r#"{"packages": null, "remotes": [{"url": "https://mcp.tidehouse.dev/v2"}]}"#),
        ],
        stops: Stops::Document,
        check: Check::Document(not_a_server_json),
    }
}

fn not_a_server_json(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if document.kind() != Type::Object {
        return;
    }
    let is = |key: &str, kind: Type| document.get(key).is_some_and(|node| node.kind() == kind);
    let schema = document.get("$schema").and_then(Node::text).is_some_and(|text| text.contains("server.schema.json"));
    let signs = [
        is("name", Type::String),
        is("version", Type::String),
        is("description", Type::String),
        is("packages", Type::Array),
        is("remotes", Type::Array),
        schema,
    ];
    if signs.iter().filter(|sign| **sign).count() < 2 {
        out.add(document, "fewer than two of the members that tell a server.json");
    }
}
