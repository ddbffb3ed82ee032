//! The parameters of operations.

use std::collections::HashSet;

use super::parts::{METHODS, operations, path_items};
use super::reference::{References, reference_of};
use super::{OPENAPI, V3, object, says};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{quote, variables};

pub(super) const RULES: &[&Rule] =
    &[&PATH_PARAMETER_UNDECLARED, &PATH_PARAMETER_NOT_REQUIRED, &PARAMETER_INVALID, &PARAMETER_DESCRIPTION_MISSING];

crate::rule! {
    /// The names in a path and the path parameters are the same.
    ///
    /// A name that no parameter declares is one that no caller fills in, and a parameter without a place in the path has
    /// nowhere to go.
    static PATH_PARAMETER_UNDECLARED = {
        id: "openapi/path-parameter-undeclared",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/parameters | /paths/*/*/parameters/* | /paths/*/parameters/*",
        spec: "Spectral path-params; Redocly path-parameters-defined",
        fix: "Declare every path parameter.",
        examples: &[
            fires(&["/paths/~1tides~1{id}/get/parameters"], r#"{"paths": {"/tides/{id}": {"get": {"parameters": []}}}}"#),
            fires(
                &["/paths/~1tides/get/parameters/0"],
                r#"{"paths": {"/tides": {"get": {"parameters": [{"name": "zone", "in": "path"}]}}}}"#,
            ),
            silent(
                r#"{"paths": {"/tides/{id}": {"get": {"parameters": null},
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}}}"#,
            ),
        ],
        check: Check::Document(path_parameter_undeclared),
    }
}

fn path_parameter_undeclared(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut references = References::of(root);
    for (path, item) in path_items(root).filter(|(_, item)| item.kind() == Type::Object) {
        let names: HashSet<&str> = variables(path).map(|variable| variable.name).collect();
        let of_item = Declared::by(item, &mut references);
        of_item.report_strangers(&names, path, out);
        let methods = item.members().filter(|(method, node)| METHODS.contains(method) && node.kind() == Type::Object);
        for (_, operation) in methods {
            let of_operation = Declared::by(operation, &mut references);
            of_operation.report_strangers(&names, path, out);
            if of_item.is_whole && of_operation.is_whole {
                report_undeclared(path, operation, &[&of_item, &of_operation], out);
            }
        }
    }
}

/// The path parameters that a path item or operation declares.
struct Declared<'d> {
    /// Each with its name.
    parameters: Vec<(Node<'d>, &'d str)>,
    /// Whether every reference among the parameters could be followed.
    is_whole: bool,
}

impl<'d> Declared<'d> {
    fn by(node: Node<'d>, references: &mut References<'d>) -> Declared<'d> {
        let mut declared = Declared { parameters: Vec::new(), is_whole: reference_of(node).is_none() };
        for listed in node.get("parameters").into_iter().flat_map(Node::items) {
            match references.followed(listed) {
                None => declared.is_whole = false,
                Some(parameter) => {
                    if parameter.get("in").and_then(Node::text) == Some("path")
                        && let Some(name) = parameter.get("name").and_then(Node::text)
                    {
                        declared.parameters.push((listed, name));
                    }
                }
            }
        }
        declared
    }

    fn report_strangers(&self, names: &HashSet<&str>, path: &str, out: &mut Occurrences) {
        for (parameter, name) in self.parameters.iter().filter(|(_, name)| !names.contains(name)) {
            out.add(*parameter, format!("{} does not hold {}", quote(path), quote(&format!("{{{name}}}"))));
        }
    }
}

fn report_undeclared(path: &str, operation: Node<'_>, declared: &[&Declared<'_>], out: &mut Occurrences) {
    let known: HashSet<&str> = declared.iter().flat_map(|d| d.parameters.iter().map(|(_, name)| *name)).collect();
    let mut names = variables(path).map(|variable| variable.name);
    let Some(name) = names.find(|name| !known.contains(name)) else { return };
    let message = format!("{} of the path is declared by no parameter", quote(&format!("{{{name}}}")));
    match operation.get("parameters") {
        Some(parameters) => out.add(parameters, message),
        None => out.add_missing(operation, "parameters", message),
    };
}

/// Every listed parameter of path items and operations.
fn parameters<'d>(root: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    lists(root).flat_map(Node::items)
}

/// The parameter lists of path items and operations.
fn lists<'d>(root: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    let of_items = path_items(root).filter_map(|(_, item)| item.get("parameters"));
    of_items.chain(operations(root).filter_map(|operation| operation.node.get("parameters")))
}

crate::rule! {
    /// A path parameter is required.
    ///
    /// A path with a hole in it is another path.
    static PATH_PARAMETER_NOT_REQUIRED = {
        id: "openapi/path-parameter-not-required",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/parameters/* | /paths/*/parameters/*",
        spec: "OpenAPI 3.1.1 Parameter Object",
        fix: "Set required to true.",
        examples: &[
            fires(
                &["/paths/~1tides~1{id}/get/parameters/0"],
                r#"{"paths": {"/tides/{id}": {"get": {"parameters": [{"required": false}]}}}}"#,
            ),
            silent("{}"),
        ],
        check: Check::Document(path_parameter_not_required),
    }
}

fn path_parameter_not_required(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for parameter in parameters(root).filter(|parameter| reference_of(*parameter).is_none()) {
        let in_path = parameter.get("in").and_then(Node::text) == Some("path");
        if in_path && parameter.get("required").and_then(Node::flag) != Some(true) {
            out.add(parameter, "the path parameter is not marked as required");
        }
    }
}

/// Where a parameter may stand.
const PLACES: &[&str] = &["query", "header", "path", "cookie"];

crate::rule! {
    /// Every parameter has a name, a place and a schema, and no two of one operation are the same.
    ///
    /// A caller has to know how to write it and where to put it.
    static PARAMETER_INVALID = {
        id: "openapi/parameter-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/parameters/* | /paths/*/parameters/*",
        spec: "OpenAPI 3.1.1 Parameter Object; Redocly operation-parameters-unique",
        fix: "Complete the parameter.",
        examples: &[
            fires(
                &["/paths/~1tides/get/parameters/0"],
                r#"{"paths": {"/tides": {"get": {"parameters": [{"in": "body"}]}}}}"#,
            ),
            fires(
                &["/paths/~1tides/get/parameters/1"],
                r#"{"paths": {"/tides": {"get": {"parameters": [{}, {"required": false}]}}}}"#,
            ),
            silent(r#"{"paths": {"/tides": {"get": {"parameters": [{}, {"in": "header"}]}}}}"#),
        ],
        check: Check::Document(parameter_invalid),
    }
}

fn parameter_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut references = References::of(root);
    for list in lists(root) {
        let mut seen = HashSet::new();
        for listed in list.items() {
            let parameter = references.followed(listed);
            if reference_of(listed).is_none()
                && let Some(what) = fault_of(listed)
            {
                out.add(listed, what);
            } else if let Some(identity) = parameter.and_then(identity_of)
                && !seen.insert(identity)
            {
                out.add(listed, format!("the {} parameter {} stands here twice", identity.1, quote(identity.0)));
            }
        }
    }
}

fn fault_of(parameter: Node<'_>) -> Option<String> {
    if parameter.kind() != Type::Object {
        return Some(format!("a parameter is {}, not an object", parameter.kind().named()));
    }
    let place = parameter.get("in").and_then(Node::text);
    if !says(parameter, "name") {
        Some("the parameter has no name".to_owned())
    } else if place.is_none() {
        Some("the parameter does not say where it stands".to_owned())
    } else if let Some(place) = place.filter(|place| !PLACES.contains(place)) {
        Some(format!("a parameter cannot stand in {}", quote(place)))
    } else if parameter.get("schema").is_none() && parameter.get("content").is_none() {
        Some("the parameter has neither schema nor content".to_owned())
    } else {
        None
    }
}

fn identity_of<'d>(parameter: Node<'d>) -> Option<(&'d str, &'d str)> {
    Some((parameter.get("name")?.text()?, parameter.get("in")?.text()?))
}

crate::rule! {
    /// The parameter says what it is for.
    ///
    /// A model fills in arguments by these texts.
    static PARAMETER_DESCRIPTION_MISSING = {
        id: "openapi/parameter-description-missing",
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/parameters/* | /paths/*/parameters/*",
        spec: "Spectral oas3-parameter-description; Redocly parameter-description",
        fix: "Describe the parameter.",
        examples: &[
            fires(
                &["/paths/~1tides/get/parameters/0"],
                r#"{"paths": {"/tides": {"get": {"parameters": [{"description": null}]}}}}"#,
            ),
            silent(
                r#"{"paths": {"/tides": {"get": {"parameters": [{"description": null,
                "schema": {"description": "Name of a place"}}]}}}}"#,
            ),
        ],
        check: Check::Document(parameter_description_missing),
    }
}

fn parameter_description_missing(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut references = References::of(root);
    for listed in parameters(root) {
        let Some(parameter) = references.followed(listed).filter(|found| found.kind() == Type::Object) else {
            continue;
        };
        let described = says(listed, "description")
            || says(parameter, "description")
            || schemas_of(parameter).any(|schema| is_described(schema, &mut references));
        if !described {
            out.add(listed, "the parameter has no description");
        }
    }
}

fn schemas_of<'d>(parameter: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    let in_content = object(parameter, "content").into_iter().flat_map(Node::members);
    parameter.get("schema").into_iter().chain(in_content.filter_map(|(_, media)| media.get("schema")))
}

fn is_described<'d>(schema: Node<'d>, references: &mut References<'d>) -> bool {
    says(schema, "description") || references.followed(schema).is_some_and(|schema| says(schema, "description"))
}
