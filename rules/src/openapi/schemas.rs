//! Schemas: what they say about values, and whether they can mean it.

use std::borrow::Cow;
use std::collections::HashSet;

use super::parts::{Part, visit, visit_schemas};
use super::reference::reference_of;
use super::{OPENAPI, V3, is_3_0, object};
use crate::document::{Node, Type};
use crate::json_schema::{Dialect, Fault, faults_of_schema, keyword_around};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] =
    &[&SCHEMA_ARRAY_ITEMS_MISSING, &SCHEMA_ENUM_MISMATCH, &SCHEMA_REQUIRED_UNDEFINED, &SCHEMA_INVALID];

/// Visits every schema that says something by itself: up to 3.0, nothing beside a reference counts.
fn each_schema<'d>(root: Node<'d>, context: &Context<'_>, mut visitor: impl FnMut(Node<'d>, Part)) {
    let references_stand_alone = is_3_0(context);
    visit_schemas(root, |schema, part| {
        if !references_stand_alone || reference_of(schema).is_none() {
            visitor(schema, part);
        }
    });
}

crate::rule! {
    /// An array says what its items are.
    ///
    /// 3.0 requires it; generators make a list of anything, or stop.
    static SCHEMA_ARRAY_ITEMS_MISSING = {
        id: "openapi/schema-array-items-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["3.0"],
        on: OPENAPI,
        place: "/**/items",
        spec: "Spectral array-items; OpenAPI 3.0.4 Schema Object",
        fix: "Add items.",
        examples: &[
            fires(
                &["/components/schemas/TideList/items"],
                r#"{"components": {"schemas": {"TideList": {"items": null}}}}"#,
            ),
            silent(r#"{"components": {"schemas": {"TideList": {"items": null}}}}"#).over("openapi-3.1"),
        ],
        check: Check::Document(schema_array_items_missing),
    }
}

fn schema_array_items_missing(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_schema(root, context, |schema, _| {
        let is_array = schema.get("type").and_then(Node::text) == Some("array");
        if is_array && schema.get("items").is_none() {
            out.add_missing(schema, "items", "the array has no `items`");
        }
    });
}

crate::rule! {
    /// The values of an enumeration are of the schema's type, and each stands there once.
    ///
    /// A value of another type can never be given; a model that is shown it will try.
    static SCHEMA_ENUM_MISMATCH = {
        id: "openapi/schema-enum-mismatch",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/**/enum",
        spec: "Spectral typed-enum, duplicated-entry-in-enum; Redocly no-enum-type-mismatch",
        fix: "Correct the enum.",
        examples: &[
            fires(
                &["/components/schemas/Tide/properties/kind/enum"],
                r#"{"components": {"schemas": {"Tide": {"properties": {"kind": {"type": "integer", "enum": ["1"]}}}}}}"#,
            ),
            fires(
                &["/components/schemas/Tide/properties/kind/enum"],
                r#"{"components": {"schemas": {"Tide": {"properties": {"kind": {"enum": ["a", "b", "a"]}}}}}}"#,
            ),
            silent(
                r#"{"components": {"schemas": {"Tide": {"properties": {
                "kind": {"type": ["string", "null"], "enum": ["a", null]},
                "step": {"type": "integer", "enum": [1.0, 2]}}}}}}"#,
            ),
            silent(
                r#"{"components": {"schemas": {"Tide": {"properties": {
                "kind": {"type": "string", "nullable": true, "enum": ["a", null]}}}}}}"#,
            )
            .over("openapi-3.0"),
        ],
        check: Check::Document(schema_enum_mismatch),
    }
}

fn schema_enum_mismatch(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_schema(root, context, |schema, _| {
        let Some(values) = schema.get("enum").filter(|values| values.kind() == Type::Array) else { return };
        if let Some(what) = fault_of_enum(schema, values, is_3_0(context)) {
            out.add(values, what);
        }
    });
}

fn fault_of_enum(schema: Node<'_>, values: Node<'_>, has_nullable: bool) -> Option<String> {
    if values.is_empty() {
        return Some("the `enum` is empty".to_owned());
    }
    let kind = schema.get("type");
    let nullable = has_nullable && schema.get("nullable").and_then(Node::flag) == Some(true);
    let fits = |value: &Node<'_>| (nullable && value.is_null()) || kind.is_none_or(|kind| is_of(*value, kind));
    if let Some(other) = values.items().find(|value| !fits(value)) {
        return Some(format!("{} in the `enum` is not of the schema's type", quote(other.raw())));
    }
    let mut seen = HashSet::new();
    let twice = values.items().find(|value| !seen.insert(identity(*value)))?;
    Some(format!("{} stands in the `enum` twice", quote(twice.raw())))
}

/// Whether a value is of a type, or of one of several. A type that is none is not held against the value.
fn is_of(value: Node<'_>, kind: Node<'_>) -> bool {
    match kind.text() {
        Some("integer") => value.kind() == Type::Number && value.number().is_some_and(|number| number.fract() == 0.0),
        Some("number") => value.kind() == Type::Number,
        Some("string") => value.kind() == Type::String,
        Some("boolean") => value.kind() == Type::Bool,
        Some("null") => value.is_null(),
        Some("array") => value.kind() == Type::Array,
        Some("object") => value.kind() == Type::Object,
        Some(_) => true,
        None => kind.kind() != Type::Array || kind.items().any(|kind| is_of(value, kind)),
    }
}

/// What a value is, so that equal values are told. Numbers are compared by value, composed ones as written.
fn identity<'d>(value: Node<'d>) -> (Type, Cow<'d, str>) {
    let raw = value.raw();
    let text = match value.kind() {
        Type::String => value.text().unwrap_or(raw).into(),
        Type::Number if raw.contains(['.', 'e', 'E']) => match value.number() {
            Some(number) if number.fract() == 0.0 && number.abs() < 9e15 => (number as i64).to_string().into(),
            _ => raw.into(),
        },
        _ => raw.into(),
    };
    (value.kind(), text)
}

/// Keywords that can define or allow further properties. The parts of a combinator share theirs.
const OPENS: &[&str] = &[
    "allOf",
    "anyOf",
    "oneOf",
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "$ref",
    "$dynamicRef",
    "if",
    "dependentSchemas",
];

crate::rule! {
    /// Every required property is defined, and the list of them is one of names.
    ///
    /// A caller has to send what nobody describes; mostly it is a typing error in one of the two places. The flag `required`
    /// at a property is of older drafts and means nothing here.
    static SCHEMA_REQUIRED_UNDEFINED = {
        id: "openapi/schema-required-undefined",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/**/required | /**/required/*",
        spec: "Redocly no-required-schema-properties-undefined",
        fix: "Define the property or drop it from required.",
        examples: &[
            fires(
                &["/components/schemas/Tide/required/1"],
                r#"{"components": {"schemas": {"Tide": {"required": ["id", "title"]}}}}"#,
            ),
            fires(
                &["/components/schemas/Tide/properties/id/required"],
                r#"{"components": {"schemas": {"Tide": {"properties": {"id": {"required": true}}}}}}"#,
            ),
            silent(
                r#"{"components": {"schemas": {"Tide": {"required": ["id", "title"],
                "allOf": [{"properties": {"title": {"type": "string"}}, "required": ["id"]}]}}}}"#,
            ),
        ],
        check: Check::Document(schema_required_undefined),
    }
}

fn schema_required_undefined(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_schema(root, context, |schema, part| {
        let Some(required) = schema.get("required") else { return };
        if required.kind() != Type::Array {
            out.add(required, format!("`required` is {}, not a list of names", required.kind().named()));
        }
        let defined = defined_by(schema, part);
        for name in required.items() {
            match (name.text(), &defined) {
                (None, _) => {
                    out.add(name, format!("a required name is {}, not a string", name.kind().named()));
                }
                (Some(text), Some(defined)) if !defined.contains(text) => {
                    out.add(name, format!("the required {} is not among the properties", quote(text)));
                }
                (Some(_), _) => {}
            }
        }
    });
}

/// The properties that a schema defines, when it defines all there are.
fn defined_by<'d>(schema: Node<'d>, part: Part) -> Option<HashSet<&'d str>> {
    let properties = object(schema, "properties")?;
    let closed = part == Part::Schema && !schema.members().any(|(keyword, _)| OPENS.contains(&keyword));
    closed.then(|| properties.members().map(|(name, _)| name).collect())
}

crate::rule! {
    /// A schema is valid in the dialect it is written in.
    ///
    /// Since 3.1 that is JSON Schema: draft 2020-12, or what `jsonSchemaDialect` and `$schema` name. A keyword of the wrong type
    /// is ignored by some readers and stops others, so that callers send what nobody checks. Most are keywords of 3.0 in a
    /// document of 3.1, such as `exclusiveMinimum: true`.
    static SCHEMA_INVALID = {
        id: "openapi/schema-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        impact_evidence: "by analogy, not run",
        versions: V3,
        on: OPENAPI,
        place: "/**/schema | /components/schemas/*",
        spec: "OpenAPI 3.1.1 Schema Object; OpenAPI 3.0.4 Schema Object; JSON Schema 2020-12",
        fix: "Write the keyword as its dialect has it.",
        examples: &[
            fires(
                &["/components/schemas/Tide/properties/height/exclusiveMinimum"],
                r#"{"components": {"schemas": {"Tide": {"properties": {"height": {"type": "number", "exclusiveMinimum": true}}}}}}"#,
            ),
            fires(
                &["/components/schemas/Tide/properties/kind/type"],
                r#"{"components": {"schemas": {"Tide": {"properties": {"kind": {"type": "text"}}}}}}"#,
            ),
            silent(
                r#"{"jsonSchemaDialect": "http://json-schema.org/draft-04/schema#", "components": {"schemas": {"Tide": {"properties":
                {"height": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}}}}}"#,
            ),
            silent(
                r##"{"components": {"schemas": {"Tide": {"properties": {"height": {"type": "number", "exclusiveMinimum": true},
                "next": {"$ref": "#/components/schemas/Tide"}}}}}}"##,
            )
            .over("openapi-3.0"),
        ],
        yields_to: &["openapi/schema-required-undefined", "openapi/schema-enum-mismatch", "openapi/schema-array-items-missing"],
        check: Check::Document(schema_invalid),
    }
}

fn schema_invalid(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let general = if is_3_0(context) { Some(Dialect::OpenApi30) } else { dialect_of(root, "jsonSchemaDialect") };
    visit(root, &mut |schema, part| {
        if !part.is_schema() {
            return true;
        }
        let dialect =
            if is_3_0(context) || schema.get("$schema").is_none() { general } else { dialect_of(schema, "$schema") };
        if let Some(dialect) = dialect {
            report_faults(schema, dialect, out);
        }
        // The meta-schema has looked at everything below.
        false
    });
}

/// The dialect that a member names; that of OpenAPI 3.1 when it names none. `None` for one that is not known here.
fn dialect_of(holder: Node<'_>, member: &str) -> Option<Dialect> {
    let Some(uri) = holder.get(member) else { return Some(Dialect::Draft2020) };
    let uri = uri.text()?;
    if uri.starts_with("https://spec.openapis.org/oas/3.") { Some(Dialect::Draft2020) } else { Dialect::named(uri) }
}

fn report_faults(schema: Node<'_>, dialect: Dialect, out: &mut Occurrences) {
    let mut reported = HashSet::new();
    for Fault { at, what } in faults_of_schema(schema, dialect) {
        let keyword = keyword_around(at);
        if reported.insert(keyword.entry_number()) {
            let name = keyword.key().map_or_else(|| "an alternative".to_owned(), quote);
            out.add(keyword, format!("{name} {what} ({})", dialect.title()));
        }
    }
}
