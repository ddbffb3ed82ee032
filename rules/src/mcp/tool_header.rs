//! `x-mcp-header`: parameters of tools that clients repeat as HTTP headers.

use std::collections::HashSet;

use super::MODERN;
use super::subschema::{Subschema, subschemas};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &TOOL_HEADER_INVALID,
    &TOOL_HEADER_UNREACHABLE,
    &TOOL_HEADER_DUPLICATE,
    &TOOL_HEADER_TYPE,
    &TOOL_HEADER_SENSITIVE,
];

const ON: &[Kind] = &[Kind::McpToolsListResult];

/// Where a tool's input schema stands.
const SCHEMA: &[&str] = &["/tools/*/inputSchema"];

const HEADER: &str = "x-mcp-header";

/// Visits every schema that names a header, with the name.
fn headers<'d>(schema: Node<'d>, mut f: impl FnMut(&Subschema<'d>, Node<'d>)) {
    // Few tools name headers, and the text tells.
    if schema.raw().contains(HEADER) {
        subschemas(schema, &mut |sub| {
            if let Some(header) = sub.schema.get(HEADER) {
                f(sub, header);
            }
        });
    }
}

crate::rule! {
    /// The name of a header is a token.
    ///
    /// Letters, digits and a few marks, no spaces, and not empty. Anything else cannot be sent.
    static TOOL_HEADER_INVALID = {
        id: "mcp/tool-header-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: MODERN,
        on: ON,
        place: "/tools/*/inputSchema/**/x-mcp-header",
        fix: "Use a token such as Region.",
        spec: "2026-07-28 server/tools, x-mcp-header; SEP-2243",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/harbour/x-mcp-header"],
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"x-mcp-header": "Harbour Code"}}}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"x-mcp-header": "Harbour-Code"}}}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(SCHEMA, tool_header_invalid),
    }
}

fn tool_header_invalid(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    headers(schema, |_, header| match header.text() {
        Some(text) if is_token(text) => {}
        Some("") => drop(out.add(header, "the header's name is empty")),
        Some(text) => drop(out.add(header, format!("{} has characters that no header's name has", quote(text)))),
        None => drop(out.add(header, format!("the header's name is {}, not a string", header.kind().named()))),
    });
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

crate::rule! {
    /// A parameter that becomes a header is reached by names alone.
    ///
    /// Clients look for it from the root through `properties`. Below items, alternatives or definitions there is no one value
    /// to send.
    static TOOL_HEADER_UNREACHABLE = {
        id: "mcp/tool-header-unreachable",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: MODERN,
        on: ON,
        place: "/tools/*/inputSchema/**/x-mcp-header",
        fix: "Move it to a statically reachable property.",
        spec: "2026-07-28 streamable-http, Schema Extension",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/list/items/x-mcp-header"],
                r#"{"tools": [{"inputSchema": {"properties": {"list": {"items": {"type": "string", "x-mcp-header": "Item"}}}}}]}"#,
            ),
            silent(
                r#"{"tools": [{"inputSchema": {"properties": {"opts": {"type": "object",
                    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"x-mcp-header": {"type": "string"}}}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(SCHEMA, tool_header_unreachable),
    }
}

fn tool_header_unreachable(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    headers(schema, |sub, header| {
        if !sub.is_by_properties {
            out.add(header, "not reached from the root through `properties` alone");
        }
    });
}

crate::rule! {
    /// Every header of a tool is named once.
    ///
    /// Letter case does not count in headers. Two parameters would overwrite one another.
    static TOOL_HEADER_DUPLICATE = {
        id: "mcp/tool-header-duplicate",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: MODERN,
        on: ON,
        place: "/tools/*/inputSchema/**/x-mcp-header",
        fix: "Make them unique.",
        spec: "2026-07-28 server/tools, x-mcp-header",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/port/x-mcp-header"],
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"x-mcp-header": "Place"},
                    "port": {"type": "string", "x-mcp-header": "place"}}}}]}"#,
            ),
            silent(
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"x-mcp-header": "Place"}}}},
                    {"name": "b", "inputSchema": {"properties": {"harbour": {"x-mcp-header": "Place"}}}}]}"#,
            ),
        ],
        check: Check::Each(SCHEMA, tool_header_duplicate),
    }
}

fn tool_header_duplicate(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    headers(schema, |_, header| {
        if let Some(text) = header.text()
            && !seen.insert(text.to_ascii_lowercase())
        {
            out.add(header, format!("the header {} is named twice", quote(text)));
        }
    });
}

crate::rule! {
    /// A parameter that becomes a header is a string, an integer or a boolean.
    ///
    /// Numbers, lists, objects and values of several types have no one spelling that both sides agree on.
    static TOOL_HEADER_TYPE = {
        id: "mcp/tool-header-type",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: MODERN,
        on: ON,
        place: "/tools/*/inputSchema/**/x-mcp-header",
        fix: "Annotate only string, integer or boolean parameters.",
        spec: "2026-07-28 server/tools, x-mcp-header",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/depth/x-mcp-header"],
                r#"{"tools": [{"inputSchema": {"properties": {"depth": {"type": "number", "x-mcp-header": "Depth"}}}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"depth": {"type": "integer", "x-mcp-header": "Depth"}}}}]}"#),
        ],
        check: Check::Each(SCHEMA, tool_header_type),
    }
}

fn tool_header_type(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    headers(schema, |sub, header| {
        let kind = sub.schema.get("type");
        if matches!(kind.and_then(Node::text), Some("string" | "integer" | "boolean")) {
            return;
        }
        match kind {
            None => drop(out.add(header, "the parameter has no type")),
            Some(kind) if kind.kind() == Type::String => {
                out.add(header, format!("the parameter is of type {}", quote(kind.text().unwrap_or_default())));
            }
            Some(_) => drop(out.add(header, "the parameter is not of one type")),
        }
    });
}

crate::rule! {
    /// Secrets are not repeated in headers.
    ///
    /// Proxies and logs read headers, also where they do not read bodies.
    static TOOL_HEADER_SENSITIVE = {
        id: "mcp/tool-header-sensitive",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: MODERN,
        on: ON,
        place: "/tools/*/inputSchema/**/x-mcp-header",
        fix: "Keep secrets out of headers.",
        spec: "2026-07-28 server/tools, x-mcp-header",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/apiToken/x-mcp-header"],
                r#"{"tools": [{"inputSchema": {"properties": {"apiToken": {"type": "string", "x-mcp-header": "Api-Token"}}}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"max_tokens": {"type": "integer", "x-mcp-header": "Max"}}}}]}"#),
        ],
        check: Check::Each(SCHEMA, tool_header_sensitive),
    }
}

fn tool_header_sensitive(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    headers(schema, |sub, header| {
        if let Some(name) = sub.schema.key().filter(|name| names_a_secret(name)) {
            out.add(header, format!("the parameter {} is sent as a header", quote(name)));
        }
    });
}

fn names_a_secret(name: &str) -> bool {
    let words = words(name);
    let secret = ["password", "passwd", "secret", "token", "apikey", "credential", "ssn"];
    words.iter().any(|word| secret.contains(&word.as_str())) || words.windows(2).any(|pair| pair == ["api", "key"])
}

/// The words of a name in snake_case, kebab-case or camelCase, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let characters: Vec<char> = name.chars().collect();
    for (n, &c) in characters.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| characters[n]);
        let is_next_small = characters.get(n + 1).is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase() && before.is_some_and(|b| !b.is_uppercase() || is_next_small);
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_falls_into_words() {
        assert_eq!(words("max_tokens-of.HTTPServer2Go"), ["max", "tokens", "of", "http", "server2", "go"]);
        for name in ["apiToken", "API_KEY", "APIKey", "user-password", "apikey", "SSN"] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in ["max_tokens", "tokenizer", "keyApi", "api", "key", "secretary", ""] {
            assert!(!names_a_secret(name), "{name}");
        }
    }
}
