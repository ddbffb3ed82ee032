//! The JSON Schemas of tools: what a tool takes and gives back, as schemas of their dialect and as clients use them.

use std::collections::{HashMap, HashSet};

use super::subschema::{Subschema, subschemas};
use super::{ALL, LEGACY, SINCE_2025_06, SINCE_2025_11};
use super::{is_modern, is_since, listed};
use crate::document::{Node, Type};
use crate::json_schema::{Dialect, Fault, faults_of_schema, keyword_around};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &TOOL_INPUT_SCHEMA_TYPE,
    &TOOL_OUTPUT_SCHEMA_TYPE,
    &TOOL_INPUT_SCHEMA_INVALID,
    &TOOL_OUTPUT_SCHEMA_INVALID,
    &TOOL_SCHEMA_UNTYPED_PROPERTY,
    &TOOL_INPUT_SCHEMA_MISSING,
    &TOOL_INPUT_SCHEMA_ROOT_COMBINATOR,
    &TOOL_SCHEMA_DIALECT_UNKNOWN,
    &TOOL_SCHEMA_DIALECT_OLD,
    &TOOL_SCHEMA_REQUIRED_UNDEFINED,
    &TOOL_SCHEMA_REF_UNRESOLVED,
    &TOOL_SCHEMA_REF_REMOTE,
    &TOOL_SCHEMA_COMPLEX,
    &TOOL_PARAM_DESCRIPTION_MISSING,
];

const ON: &[Kind] = &[Kind::McpToolsListResult];

const INPUT: &[&str] = &["/tools/*/inputSchema"];
const OUTPUT: &[&str] = &["/tools/*/outputSchema"];
const BOTH: &[&str] = &["/tools/*/inputSchema", "/tools/*/outputSchema"];

/// Whether the revision gives tools a schema of what they return.
fn is_defined(schema: Node<'_>, context: &Context<'_>) -> bool {
    schema.key() != Some("outputSchema") || is_since(context, "2025-06-18")
}

/// The dialect that a schema names, when it is one that we know.
fn declared(schema: Node<'_>) -> Option<Dialect> {
    schema.get("$schema").and_then(Node::text).and_then(Dialect::named)
}

crate::rule! {
    /// What a tool takes is an object, and its schema says so.
    ///
    /// The schema is an object whose `type` is `"object"`, also for a tool without parameters. Strict clients refuse the whole
    /// list of tools for one that is not.
    static TOOL_INPUT_SCHEMA_TYPE = {
        id: "mcp/tool-input-schema-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 25,
        versions: ALL,
        on: ON,
        place: "/tools/*/inputSchema | /tools/*/inputSchema/type",
        fix: "Set type to \"object\".",
        spec: "schema Tool",
        seeds: &["gaip:MCP_TOOL_INPUT_SCHEMA_INVALID"],
        examples: &[
            fires(&["/tools/0/inputSchema/type"], r#"{"tools": [{"inputSchema": {"type": null}}]}"#),
            fires(&["/tools/0/inputSchema/type"], r#"{"tools": [{"inputSchema": {"type": ["object"]}}]}"#),
            fires(&["/tools/0/inputSchema"], r#"{"tools": [{"inputSchema": true}]}"#),
            silent(r#"{"tools": [{"inputSchema": {"oneOf": [{"required": ["harbour"]}]}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(INPUT, tool_input_schema_type),
    }
}

fn tool_input_schema_type(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand_object(schema, out);
}

fn demand_object(schema: Node<'_>, out: &mut Occurrences) {
    if schema.kind() != Type::Object {
        let name = schema.key().unwrap_or_default();
        out.add(schema, format!("`{name}` is {}, not an object", schema.kind().named()));
        return;
    }
    match schema.get("type") {
        None => drop(out.add_missing(schema, "type", "`type` is missing")),
        Some(kind) if kind.text() != Some("object") => {
            out.add(kind, format!("`type` is {}, not \"object\"", quote(kind.raw())));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// What a tool gives back is described by a schema.
    ///
    /// An object, and up to 2025-11-25 one of type `"object"`. Strict clients refuse the whole list of tools for one that is
    /// not.
    static TOOL_OUTPUT_SCHEMA_TYPE = {
        id: "mcp/tool-output-schema-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "@modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: SINCE_2025_06,
        on: ON,
        place: "/tools/*/outputSchema | /tools/*/outputSchema/type",
        fix: "Give a JSON Schema object.",
        spec: "schema Tool; SEP-2106",
        seeds: &["gaip:MCP_TOOL_OUTPUT_SCHEMA_INVALID", "validator:2.3.2.4"],
        examples: &[
            fires(&["/tools/0/outputSchema"], r#"{"tools": [{"outputSchema": "object"}]}"#),
            fires(&["/tools/0/outputSchema/type"], r#"{"tools": [{"outputSchema": {"type": "array"}}]}"#)
                .over("mcp-tools-2025-11-25"),
            silent(r#"{"tools": [{"outputSchema": {"type": "array", "items": {"type": "string"}}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(OUTPUT, tool_output_schema_type),
    }
}

fn tool_output_schema_type(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_enough = schema.is_null() || is_modern(context) && schema.kind() == Type::Object;
    if !is_enough {
        demand_object(schema, out);
    }
}

/// Reports where a schema breaks its dialect. Before 2025-11-25 no dialect was the default, so one that names none breaks
/// something only if it breaks draft-07 and 2020-12 alike.
fn report_faults(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let (dialect, faults) = match declared(schema) {
        Some(dialect) => (dialect, faults_of_schema(schema, dialect)),
        None => {
            let newest = faults_of_schema(schema, Dialect::Draft2020);
            if newest.is_empty() || is_since(context, "2025-11-25") {
                (Dialect::Draft2020, newest)
            } else {
                let older = faults_of_schema(schema, Dialect::Draft07);
                if older.len() <= newest.len() { (Dialect::Draft07, older) } else { (Dialect::Draft2020, newest) }
            }
        }
    };
    let mut reported = HashSet::new();
    for Fault { at, what } in faults {
        let keyword = keyword_around(at);
        if reported.insert(keyword.entry_number()) {
            let name = keyword.key().map_or_else(|| "an alternative".to_owned(), quote);
            out.add(keyword, format!("{name} {what} ({})", dialect.title()));
        }
    }
}

crate::rule! {
    /// What a tool takes is described in valid JSON Schema.
    ///
    /// Clients compile the schema before they call. A broken one makes them drop the tool, or the whole list.
    static TOOL_INPUT_SCHEMA_INVALID = {
        id: "mcp/tool-input-schema-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 25,
        versions: ALL,
        on: ON,
        place: "/tools/*/inputSchema/**",
        fix: "Correct the JSON Schema; an empty properties written as [] (PHP) must be {}.",
        spec: "2025-11-25 basic, JSON Schema Usage; SEP-1613",
        seeds: &["gaip:MCP_TOOL_INPUT_SCHEMA_INVALID"],
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/harbour/type"],
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"type": "str"}}}}]}"#,
            ),
            fires(
                &["/tools/0/inputSchema/properties/harbour/required"],
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"required": true}}}}]}"#,
            ),
            silent(
                r#"{"tools": [{"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#",
                    "properties": {"harbour": {"items": [{"type": "number"}], "x-widget": "map"}}}}]}"#,
            ),
        ],
        stops: Stops::Value,
        check: Check::Each(INPUT, tool_input_schema_invalid),
    }
}

fn tool_input_schema_invalid(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if schema.get("type").and_then(Node::text) == Some("object") {
        report_faults(schema, context, out);
    }
}

crate::rule! {
    /// What a tool gives back is described in valid JSON Schema.
    ///
    /// Clients check results by it; a broken one leaves them without the structured half of the result.
    static TOOL_OUTPUT_SCHEMA_INVALID = {
        id: "mcp/tool-output-schema-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        on: ON,
        place: "/tools/*/outputSchema/**",
        fix: "Correct the JSON Schema.",
        spec: "2025-11-25 basic, JSON Schema Usage",
        seeds: &["gaip:MCP_TOOL_OUTPUT_SCHEMA_INVALID", "validator:2.3.2.4"],
        examples: &[
            fires(
                &["/tools/0/outputSchema/properties/h/minimum"],
                r#"{"tools": [{"outputSchema": {"type": "object", "properties": {"h": {"minimum": "0"}}}}]}"#,
            ),
            silent(r#"{"tools": [{"outputSchema": {"type": "object", "properties": {"h": {"minimum": 0}}}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(OUTPUT, tool_output_schema_invalid),
    }
}

fn tool_output_schema_invalid(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_object = schema.get("type").and_then(Node::text) == Some("object");
    if schema.kind() == Type::Object && (is_object || is_modern(context)) {
        report_faults(schema, context, out);
    }
}

crate::rule! {
    /// A parameter is described by an object.
    ///
    /// JSON Schema allows `true` and `false` for a schema; the protocol up to 2025-11-25 does not, and one such property makes
    /// strict clients refuse the whole list of tools.
    static TOOL_SCHEMA_UNTYPED_PROPERTY = {
        id: "mcp/tool-schema-untyped-property",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "@modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: LEGACY,
        on: ON,
        place: "/tools/*/inputSchema/properties/* | /tools/*/outputSchema/properties/*",
        fix: "Write {} or give the property a type.",
        spec: "schema Tool",
        examples: &[
            fires(&["/tools/0/inputSchema/properties/day"], r#"{"tools": [{"inputSchema": {"properties": {"day": true}}}]}"#),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"day": {"enum": ["today"]}}}}]}"#),
        ],
        check: Check::Each(
            &["/tools/*/inputSchema/properties/*", "/tools/*/outputSchema/properties/*"],
            tool_schema_untyped_property,
        ),
    }
}

fn tool_schema_untyped_property(property: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let schema = property.parent().and_then(Node::parent);
    if property.kind() == Type::Bool && schema.is_some_and(|schema| is_defined(schema, context)) {
        out.add(property, format!("the schema of the property is `{}`", property.raw()));
    }
}

crate::rule! {
    /// A tool says what it takes.
    ///
    /// Strict clients refuse the whole list for one tool without `inputSchema`; a tool without parameters says
    /// `{"type": "object"}`.
    static TOOL_INPUT_SCHEMA_MISSING = {
        id: "mcp/tool-input-schema-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 25,
        versions: ALL,
        on: ON,
        place: "/tools/*/inputSchema",
        fix: "Add inputSchema; {\"type\":\"object\",\"additionalProperties\":false} when there are no parameters.",
        spec: "schema Tool",
        seeds: &["gaip:MCP_TOOL_INPUT_SCHEMA_MISSING", "validator:2.3.2.2"],
        examples: &[
            fires(&["/tools/0/inputSchema"], r#"{"tools": [{"inputSchema": null}]}"#),
            silent(r#"{"tools": [{"inputSchema": {"properties": null, "required": null}}]}"#),
        ],
        check: Check::Document(tool_input_schema_missing),
    }
}

fn tool_input_schema_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for tool in listed(result, context).filter(|tool| tool.get("inputSchema").is_none()) {
        out.add_missing(tool, "inputSchema", "`inputSchema` is missing");
    }
}

crate::rule! {
    /// What a tool takes is described without alternatives at the top.
    ///
    /// Several model interfaces refuse `oneOf`, `anyOf` or `allOf` at the root of a tool's schema.
    static TOOL_INPUT_SCHEMA_ROOT_COMBINATOR = {
        id: "mcp/tool-input-schema-root-combinator",
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/inputSchema",
        fix: "Write one object schema and move the alternatives into properties.",
        spec: "hint: model APIs",
        examples: &[
            fires(&["/tools/0/inputSchema"], r#"{"tools": [{"inputSchema": {"anyOf": [{"required": ["harbour"]}]}}]}"#),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"anyOf": [{"type": "string"}]}}}}]}"#),
        ],
        check: Check::Each(INPUT, tool_input_schema_root_combinator),
    }
}

fn tool_input_schema_root_combinator(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(name) = ["oneOf", "anyOf", "allOf"].into_iter().find(|name| schema.get(name).is_some()) {
        out.add(schema, format!("`{name}` at the root"));
    }
}

crate::rule! {
    /// A schema's dialect is one that clients know.
    ///
    /// Drafts 4, 6 and 7, 2019-09 and 2020-12. A validator refuses a schema in another, or reads it as something else.
    static TOOL_SCHEMA_DIALECT_UNKNOWN = {
        id: "mcp/tool-schema-dialect-unknown",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: ON,
        place: "/tools/*/inputSchema/$schema | /tools/*/outputSchema/$schema",
        fix: "Use 2020-12.",
        spec: "2025-11-25 basic, Schema Dialect",
        examples: &[
            fires(
                &["/tools/0/inputSchema/$schema"],
                r#"{"tools": [{"inputSchema": {"$schema": "https://example.org/my-dialect"}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema#"}}]}"#),
        ],
        check: Check::Each(BOTH, tool_schema_dialect_unknown),
    }
}

fn tool_schema_dialect_unknown(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(dialect) = schema.get("$schema").filter(|_| is_defined(schema, context)) else { return };
    match dialect.text() {
        Some(text) if Dialect::named(text).is_some() => {}
        Some(text) => drop(out.add(dialect, format!("{} is no known dialect", quote(text)))),
        None => drop(out.add(dialect, format!("`$schema` is {}, not a string", dialect.kind().named()))),
    }
}

crate::rule! {
    /// What a tool takes is described in an older dialect.
    ///
    /// From 2025-11-25 schemas are 2020-12 unless they say otherwise. Saying so is allowed, but not every client reads it.
    static TOOL_SCHEMA_DIALECT_OLD = {
        id: "mcp/tool-schema-dialect-old",
        basis: Basis::Hint,
        versions: SINCE_2025_11,
        on: ON,
        place: "/tools/*/inputSchema/$schema",
        fix: "Prefer 2020-12.",
        spec: "2025-11-25 basic, Schema Dialect",
        examples: &[
            fires(
                &["/tools/0/inputSchema/$schema"],
                r#"{"tools": [{"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}]}"#),
        ],
        check: Check::Each(INPUT, tool_schema_dialect_old),
    }
}

fn tool_schema_dialect_old(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(dialect) = declared(schema).filter(|dialect| *dialect != Dialect::Draft2020)
        && let Some(at) = schema.get("$schema")
    {
        out.add(at, dialect.title());
    }
}

crate::rule! {
    /// What is required is also described.
    ///
    /// A name in `required` that `properties` does not have is usually a typo, and a model is then asked for something it
    /// knows nothing of. Schemas that other keywords may complete are left alone.
    static TOOL_SCHEMA_REQUIRED_UNDEFINED = {
        id: "mcp/tool-schema-required-undefined",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/inputSchema/**/required/*",
        fix: "Define the property or drop it from required.",
        spec: "hint: schema quality",
        examples: &[
            fires(&["/tools/0/inputSchema/required/1"], r#"{"tools": [{"inputSchema": {"required": ["harbour", "dya"]}}]}"#),
            silent(
                r#"{"tools": [{"inputSchema": {"required": ["harbour", "zone"],
                    "allOf": [{"properties": {"zone": {"type": "string"}}}]}}]}"#,
            ),
        ],
        check: Check::Each(INPUT, tool_schema_required_undefined),
    }
}

fn tool_schema_required_undefined(schema: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut undefined = Vec::new();
    let mut is_combined_by_reference = false;
    subschemas(schema, &mut |sub| {
        is_combined_by_reference |= sub.is_in_combinator && sub.schema.get("$ref").is_some();
        if !sub.is_in_combinator && is_whole(sub.schema) {
            undefined.extend(undefined_in(sub.schema).map(|name| (sub.is_in_definition, name)));
        }
    });
    for (is_in_definition, name) in undefined {
        // A definition may be one half of a schema that a combinator puts together.
        if !(is_in_definition && is_combined_by_reference) {
            let text = name.text().unwrap_or_default();
            out.add(name, format!("{} is required but not among the properties", quote(text)));
        }
    }
}

/// Whether `properties` is all that a schema says about names.
fn is_whole(schema: Node<'_>) -> bool {
    let completing = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "$recursiveRef"];
    schema.get("properties").is_some_and(|properties| properties.kind() == Type::Object)
        && completing.iter().all(|keyword| schema.get(keyword).is_none())
}

fn undefined_in<'d>(schema: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    let defined: HashSet<&str> =
        schema.get("properties").into_iter().flat_map(Node::members).map(|(name, _)| name).collect();
    let required = schema.get("required").into_iter().flat_map(Node::items);
    required.filter(move |name| name.text().is_some_and(|name| !defined.contains(name)))
}

/// References beyond this many in one schema are not followed: more than any that a person wrote has.
const MOST_REFERENCES: usize = 1000;

/// Every reference of a schema, with the schema it stands in.
fn references<'d>(schema: Node<'d>) -> Vec<(Subschema<'d>, Node<'d>)> {
    let mut references = Vec::new();
    if schema.raw().contains("$ref") {
        subschemas(schema, &mut |sub| {
            if let Some(reference) = sub.schema.get("$ref").filter(|_| references.len() < MOST_REFERENCES) {
                references.push((*sub, reference));
            }
        });
    }
    references
}

/// Names that a schema gives to its parts.
#[derive(Default)]
struct Names<'d> {
    anchors: HashSet<&'d str>,
    ids: HashSet<String>,
}

fn names_in<'d>(schema: Node<'d>) -> Names<'d> {
    let mut names = Names::default();
    subschemas(schema, &mut |sub| {
        let text = |keyword: &str| sub.schema.get(keyword).and_then(Node::text);
        names.anchors.extend(text("$anchor").into_iter().chain(text("$dynamicAnchor")));
        for id in [text("$id"), text("id")].into_iter().flatten() {
            match id.strip_prefix('#') {
                Some(anchor) => drop(names.anchors.insert(anchor)),
                None => drop(names.ids.insert(without_fragment(&absolute(sub.resource, schema, id)).to_owned())),
            }
        }
    });
    names
}

fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

/// A reference as seen from the identifiers around it.
fn absolute(resource: Node<'_>, root: Node<'_>, reference: &str) -> String {
    let id = |schema: Node<'_>| schema.get("$id").and_then(Node::text).and_then(|id| url::Url::parse(id).ok());
    let base = id(root);
    let base = match resource.get("$id").and_then(Node::text) {
        Some(own) if resource != root => base.map_or_else(|| url::Url::parse(own), |base| base.join(own)).ok(),
        _ => base,
    };
    base.and_then(|base| base.join(reference).ok()).map_or_else(|| reference.to_owned(), Into::into)
}

crate::rule! {
    /// A reference inside a schema leads somewhere.
    ///
    /// Clients cannot compile a schema whose `$ref` points at nothing, and drop the tool.
    static TOOL_SCHEMA_REF_UNRESOLVED = {
        id: "mcp/tool-schema-ref-unresolved",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        on: ON,
        place: "/tools/*/*Schema/**/$ref",
        fix: "Add the definition or fix the pointer.",
        spec: "2026-07-28 basic, $ref Resolution",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/harbour/$ref"],
                r##"{"tools": [{"inputSchema": {"properties": {"harbour": {"$ref": "#/$defs/Harbour"}}}}]}"##,
            ),
            silent(
                r##"{"tools": [{"inputSchema": {"properties": {"harbour": {"$ref": "#hb"}, "at": {"$ref": "#/$defs/a~1b"}},
                    "$defs": {"H": {"$anchor": "hb"}, "a/b": {}}}}]}"##,
            ),
        ],
        check: Check::Each(BOTH, tool_schema_ref_unresolved),
    }
}

fn tool_schema_ref_unresolved(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if !is_defined(schema, context) {
        return;
    }
    let references = references(schema);
    if references.is_empty() {
        return;
    }
    let names = names_in(schema);
    let mut leads = HashMap::new();
    for (sub, reference) in references {
        let Some(text) = reference.text() else { continue };
        let Some(fragment) = text.strip_prefix('#') else { continue };
        let is_found = *leads
            .entry((fragment, sub.resource.entry_number()))
            .or_insert_with(|| leads_somewhere(fragment, sub.resource, schema, &names));
        if !is_found {
            out.add(reference, format!("{} points at nothing in the schema", quote(text)));
        }
    }
}

fn leads_somewhere(fragment: &str, resource: Node<'_>, root: Node<'_>, names: &Names<'_>) -> bool {
    let fragment = decoded(fragment);
    if fragment.is_empty() || names.anchors.contains(fragment.as_str()) {
        return true;
    }
    let at = |from: Node<'_>| from.document().pointer(&format!("{}{fragment}", from.pointer())).is_some();
    fragment.starts_with('/') && (at(resource) || at(root))
}

/// A fragment with its percent escapes undone.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|hex| *first == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        match escaped.and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

crate::rule! {
    /// A schema is whole by itself.
    ///
    /// A `$ref` to the network makes a client fetch what a stranger names, or fail where it may not.
    static TOOL_SCHEMA_REF_REMOTE = {
        id: "mcp/tool-schema-ref-remote",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: ON,
        place: "/tools/*/*Schema/**/$ref",
        fix: "Inline the schema; clients must not fetch it.",
        spec: "2026-07-28 basic, $ref Resolution",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/harbour/$ref"],
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"$ref": "https://schemas.example.org/h.json"}}}}]}"#,
            ),
            silent(
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"$ref": "https://schemas.example.org/h.json"}},
                    "$defs": {"H": {"$id": "https://schemas.example.org/h.json", "type": "string"}}}}]}"#,
            ),
        ],
        check: Check::Each(BOTH, tool_schema_ref_remote),
    }
}

fn tool_schema_ref_remote(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if !is_defined(schema, context) {
        return;
    }
    let is_local = |reference: Node<'_>| reference.text().is_none_or(|text| text.starts_with('#'));
    let mut references = references(schema);
    references.retain(|(_, reference)| !is_local(*reference));
    if references.is_empty() {
        return;
    }
    let names = names_in(schema);
    for (sub, reference) in references {
        let uri = absolute(sub.resource, schema, reference.text().unwrap_or_default());
        let is_remote = uri.starts_with("https://") || uri.starts_with("http://");
        if is_remote && !names.ids.contains(without_fragment(&uri)) {
            out.add(reference, format!("{} is outside the schema", quote(&uri)));
        }
    }
}

/// Schemas in schemas beyond this many: compilers with a limit have theirs about here.
const DEEPEST: usize = 32;
/// Schemas beyond this many in one.
const MOST_SUBSCHEMAS: usize = 2000;
/// Bytes beyond this many in one.
const LARGEST: usize = 128 * 1024;

crate::rule! {
    /// A schema is small enough to compile.
    ///
    /// Over 32 levels, 2000 schemas or 128 KiB it costs clients more than the tool is worth, and some refuse it.
    static TOOL_SCHEMA_COMPLEX = {
        id: "mcp/tool-schema-complex",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/*Schema",
        fix: "Simplify the schema.",
        spec: "2026-07-28 basic, Composition-Keyword Resource Use",
        examples: &[
            fires(
                &["/tools/0/inputSchema"],
                r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"prefixItems": {"$repeat": [{}, 2001]}}}}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"harbour": {"prefixItems": {"$repeat": [{}, 1990]}}}}}]}"#),
        ],
        check: Check::Each(BOTH, tool_schema_complex),
    }
}

fn tool_schema_complex(schema: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if !is_defined(schema, context) {
        return;
    }
    let (mut count, mut deepest) = (0, 0);
    subschemas(schema, &mut |sub| {
        count += 1;
        deepest = deepest.max(sub.level);
    });
    let bytes = schema.raw().len();
    if deepest > DEEPEST {
        out.add(schema, format!("{deepest} levels of schemas"));
    } else if count > MOST_SUBSCHEMAS {
        out.add(schema, format!("{count} schemas in one"));
    } else if bytes > LARGEST {
        out.add(schema, format!("{} KiB", bytes / 1024));
    }
}

crate::rule! {
    /// A parameter is not described.
    ///
    /// A model then has its name to guess from. A title counts, and so does a reference to a description elsewhere.
    static TOOL_PARAM_DESCRIPTION_MISSING = {
        id: "mcp/tool-param-description-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/inputSchema/properties/*",
        fix: "Describe the parameter.",
        spec: "hint: model usability",
        examples: &[
            fires(
                &["/tools/0/inputSchema/properties/day"],
                r#"{"tools": [{"inputSchema": {"properties": {"day": {"type": "string"}}}}]}"#,
            ),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"day": {"type": "string", "title": "Day"}}}}]}"#),
        ],
        check: Check::Each(&["/tools/*/inputSchema/properties/*"], tool_param_description_missing),
    }
}

fn tool_param_description_missing(property: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let describing = ["description", "title", "$ref"];
    if property.kind() == Type::Object && describing.iter().all(|keyword| property.get(keyword).is_none()) {
        out.add(property, "no description");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_decoded_as_far_as_it_can_be() {
        assert_eq!(decoded("/$defs/a%20b%2"), "/$defs/a b%2");
        assert_eq!(decoded("%ff"), "%ff");
        assert_eq!(decoded("%+1%zz"), "%+1%zz");
    }
}
