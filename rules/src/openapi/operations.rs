//! The operations of an interface, and the names tools are made of.

use std::collections::HashMap;

use super::parts::{METHODS, all_operations, operations, path_items};
use super::{OPENAPI, V3, says};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &OPERATION_INVALID,
    &OPERATION_ID_MISSING,
    &OPERATION_ID_DUPLICATE,
    &OPERATION_ID_UNSAFE,
    &OPERATION_DESCRIPTION_MISSING,
];

crate::rule! {
    /// Every operation is an object.
    ///
    /// What a method holds is described in it.
    static OPERATION_INVALID = {
        id: "openapi/operation-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*",
        spec: "OpenAPI 3.1.1 Operation Object",
        fix: "Make it an Operation Object.",
        seeds: &["gaip:OPENAPI_OPERATION_INVALID"],
        examples: &[
            fires(&["/paths/~1tides/post"], r#"{"paths": {"/tides": {"post": "later"}}}"#),
            silent(r#"{"paths": {"/tides": {"summary": "Tides"}}}"#),
        ],
        check: Check::Document(operation_invalid),
    }
}

fn operation_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, item) in path_items(root) {
        let wrong = |(name, node): &(&str, Node<'_>)| METHODS.contains(name) && node.kind() != Type::Object;
        for (method, node) in item.members().filter(wrong) {
            out.add(node, format!("`{method}` is {}, not an object", node.kind().named()));
        }
    }
}

crate::rule! {
    /// The operation has an id.
    ///
    /// Generators name the tool after it; without one they make a name up, each its own.
    static OPERATION_ID_MISSING = {
        id: "openapi/operation-id-missing",
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/operationId",
        spec: "OpenAPI 3.1.1 Operation Object; Spectral operation-operationId",
        fix: "Add a unique operationId.",
        seeds: &["gaip:OPENAPI_OPERATION_ID_MISSING"],
        examples: &[
            fires(&["/paths/~1tides/get/operationId"], r#"{"paths": {"/tides": {"get": {"operationId": null}}}}"#),
            silent("{}"),
        ],
        check: Check::Document(operation_id_missing),
    }
}

fn operation_id_missing(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for operation in operations(root).filter(|operation| !says(operation.node, "operationId")) {
        match operation.node.get("operationId") {
            Some(id) => out.add(id, "the operation's id is blank or no string"),
            None => out.add_missing(operation.node, "operationId", "the operation has no id"),
        };
    }
}

crate::rule! {
    /// No two operations share an id.
    ///
    /// A tool that is named after it stands for one of them only, and which one differs from client to client.
    static OPERATION_ID_DUPLICATE = {
        id: "openapi/operation-id-duplicate",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/operationId",
        spec: "OpenAPI 3.1.1 Operation Object",
        fix: "Give each operation its own id.",
        seeds: &["gaip:OPENAPI_OPERATION_ID_DUPLICATE"],
        examples: &[
            fires(
                &["/paths/~1tides~1{id}/get/operationId"],
                r#"{"paths": {"/tides/{id}": {"get": {"operationId": "listTides"}}}}"#,
            ),
            silent(r#"{"paths": {"/tides/{id}": {"get": {"operationId": "listTidesById"}}}}"#),
        ],
        check: Check::Document(operation_id_duplicate),
    }
}

fn operation_id_duplicate(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for (path, id, text) in ids(root) {
        match seen.get(text) {
            Some(earlier) => {
                out.add(id, format!("the id {} is that of an operation of {} already", quote(text), quote(earlier)));
            }
            None => {
                seen.insert(text, path);
            }
        }
    }
}

/// The ids of all operations, with their paths.
fn ids<'d>(root: Node<'d>) -> impl Iterator<Item = (&'d str, Node<'d>, &'d str)> {
    all_operations(root).filter_map(|operation| {
        let id = operation.node.get("operationId")?;
        Some((operation.path, id, id.text().filter(|text| !text.trim().is_empty())?))
    })
}

/// The most characters that every kind of tool name allows.
const LONGEST_ID: usize = 64;

crate::rule! {
    /// The id can serve as the name of a tool.
    ///
    /// Models and MCP clients take letters, digits, `_`, `-` and `.`, 64 characters at most, and many fold case. Other ids
    /// are rewritten, each generator in its own way.
    static OPERATION_ID_UNSAFE = {
        id: "openapi/operation-id-unsafe",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/operationId",
        spec: "Spectral operation-operationId-valid-in-url; MCP tool names",
        fix: "Use letters, digits, _ - or . and at most 64 characters.",
        examples: &[
            fires(
                &["/paths/~1tides/get/operationId"],
                r#"{"paths": {"/tides": {"get": {"operationId": "list tides"}}}}"#,
            ),
            fires(
                &["/paths/~1tides~1{id}/get/operationId"],
                r#"{"paths": {"/tides/{id}": {"get": {"operationId": "ListTides"}}}}"#,
            ),
            silent(r#"{"paths": {"/tides": {"get": {"operationId": "tides.list_v2-beta"}}}}"#),
        ],
        check: Check::Document(operation_id_unsafe),
    }
}

fn operation_id_unsafe(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (_, id, text) in ids(root) {
        let earlier = *seen.entry(text.to_ascii_lowercase()).or_insert(text);
        if !is_safe(text) {
            out.add(id, format!("the id {} cannot be a tool's name as it stands", quote(text)));
        } else if earlier != text {
            out.add(id, format!("the ids {} and {} differ by letter case only", quote(text), quote(earlier)));
        }
    }
}

fn is_safe(id: &str) -> bool {
    id.len() <= LONGEST_ID && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

crate::rule! {
    /// The operation says what it does.
    ///
    /// A model chooses tools by these texts.
    static OPERATION_DESCRIPTION_MISSING = {
        id: "openapi/operation-description-missing",
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*",
        spec: "OpenAPI 3.1.1 Operation Object",
        fix: "Add a summary or description.",
        seeds: &["gaip:OPENAPI_OPERATION_DESCRIPTION_MISSING"],
        examples: &[
            fires(&["/paths/~1tides/get"], r#"{"paths": {"/tides": {"summary": "Tides", "get": {"summary": " "}}}}"#),
            silent(r#"{"paths": {"/tides": {"get": {"summary": null, "description": "Lists tides"}}}}"#),
        ],
        check: Check::Document(operation_description_missing),
    }
}

fn operation_description_missing(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for operation in operations(root) {
        if !says(operation.node, "summary") && !says(operation.node, "description") {
            let place = format!("{} {}", operation.method.to_ascii_uppercase(), operation.path);
            out.add(operation.node, format!("{} has neither summary nor description", quote(&place)));
        }
    }
}
