//! The catalogue of a site, `/.well-known/ai-catalog.json`, as far as it lists MCP servers.

use super::V1;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{MediaType, quote};

pub(super) const RULES: &[&Rule] = &[&CATALOG_INVALID, &CATALOG_ENTRY_INVALID, &CATALOG_IDENTIFIER];

const ON: &[Kind] = &[Kind::McpAiCatalog];

crate::rule! {
    /// A catalogue is an object with a list of entries.
    ///
    /// Anything else under its address is no catalogue.
    static CATALOG_INVALID = {
        id: "mcp/catalog-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/ | /entries",
        fix: "Follow the AI Catalog form.",
        spec: "SEP-2127 discovery, AI Catalog",
        examples: &[fires(&["/entries"], r#"{"entries": null}"#), silent(r#"{"entries": []}"#)],
        stops: Stops::Document,
        check: Check::Document(catalog_invalid),
    }
}

fn catalog_invalid(catalog: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if catalog.kind() != Type::Object {
        out.add(catalog, format!("the catalogue is {}, not an object", catalog.kind().named()));
        return;
    }
    match catalog.get("entries") {
        None => drop(out.add_missing(catalog, "entries", "`entries` is missing")),
        Some(entries) if entries.kind() != Type::Array => {
            out.add(entries, format!("`entries` is {}, not a list", entries.kind().named()));
        }
        Some(_) => {}
    }
}

/// Whether an entry is about an MCP server.
fn is_server(entry: Node<'_>) -> bool {
    let media_type = entry.get("type").and_then(Node::text).and_then(MediaType::parse);
    media_type.is_some_and(|media_type| media_type.is("application", "mcp-server-card+json"))
}

crate::rule! {
    /// An entry names a server and holds its card or the address of it.
    ///
    /// `identifier`, and one of `url` and `data`. With both nobody knows which counts.
    static CATALOG_ENTRY_INVALID = {
        id: "mcp/catalog-entry-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/entries/*",
        fix: "Give identifier and exactly one of url and data.",
        spec: "SEP-2127 discovery, Server Card Entries",
        examples: &[
            fires(&["/entries/0"], r#"{"entries": [{"data": {}}]}"#),
            fires(&["/entries/0"], r#"{"entries": [{"identifier": null}]}"#),
            silent(r#"{"entries": [{"type": "application/a2a-agent-card+json", "identifier": null, "data": {}}]}"#),
        ],
        check: Check::Each(&["/entries/*"], catalog_entry_invalid),
    }
}

fn catalog_entry_invalid(entry: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !is_server(entry) {
        return;
    }
    let has = |member: &str| entry.given(member).is_some();
    let fault = match (has("identifier"), has("url"), has("data")) {
        (false, ..) => "`identifier` is missing",
        (_, true, true) => "`url` and `data` at once",
        (_, false, false) => "neither `url` nor `data`",
        _ => return,
    };
    out.add(entry, fault);
}

crate::rule! {
    /// An entry's identifier is a URN of the form `urn:air:publisher:namespace:name`.
    ///
    /// Catalogues of different sites are joined by it.
    static CATALOG_IDENTIFIER = {
        id: "mcp/catalog-identifier",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/entries/*/identifier",
        fix: "Use the domain-anchored form.",
        spec: "SEP-2127 discovery, Server Card Entries",
        examples: &[
            fires(&["/entries/0/identifier"], r#"{"entries": [{"identifier": "urn:mcp:server:org.example/harbour"}]}"#),
            silent(r#"{"entries": [{"identifier": "urn:air:example.org:mcp:harbour"}]}"#),
        ],
        check: Check::Each(&["/entries/*"], catalog_identifier),
    }
}

fn catalog_identifier(entry: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(identifier) = entry.given("identifier").filter(|_| is_server(entry)) else { return };
    let is_urn = |text: &str| {
        let parts: Vec<_> = text.split(':').collect();
        let is_air = parts.len() >= 5 && parts[0].eq_ignore_ascii_case("urn") && parts[1].eq_ignore_ascii_case("air");
        is_air && parts.iter().all(|part| !part.is_empty() && !part.contains(char::is_whitespace))
    };
    if !identifier.text().is_some_and(is_urn) {
        let said = quote(identifier.text().unwrap_or(identifier.raw()));
        out.add(identifier, format!("{said} is no urn:air:publisher:namespace:name"));
    }
}
