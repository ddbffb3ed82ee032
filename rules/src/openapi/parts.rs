//! The grammar of an OpenAPI document: which of its objects is what, and where its operations are.
//!
//! What the specification takes as data (examples, defaults, enums, extensions) is no part and is not entered.

use crate::document::{Node, Type};

/// What an object of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Document,
    Components,
    PathItem,
    Operation,
    Parameter,
    Header,
    RequestBody,
    MediaType,
    Encoding,
    Response,
    Link,
    Callback,
    SecurityScheme,
    Schema,
    /// A schema that stands in `allOf`, `anyOf`, `not` and the like, and so tells only part of a value.
    Branch,
}

impl Part {
    /// Whether it is a schema of either sort.
    pub fn is_schema(self) -> bool {
        matches!(self, Part::Schema | Part::Branch)
    }

    /// Whether an object of its own may be replaced by a Reference Object, or has a `$ref` of its own.
    pub fn may_refer(self) -> bool {
        !matches!(self, Part::Document | Part::Components | Part::Operation | Part::MediaType | Part::Encoding)
    }
}

/// How the parts below a member are laid out.
enum Layout {
    One(Part),
    /// A list; also a single one where a list may stand.
    List(Part),
    /// By free names.
    Map(Part),
    /// By names of which those that begin with `x-` are extensions.
    Extensible(Part),
}

/// What stands below a member, by the names of the specification.
fn below(part: Part, name: &str) -> Option<Layout> {
    use Layout::{Extensible, List, Map, One};
    Some(match (part, name) {
        (Part::Document, "paths" | "webhooks") => Extensible(Part::PathItem),
        (Part::Document, "components") => One(Part::Components),
        (Part::Components, "schemas") => Map(Part::Schema),
        (Part::Components, "responses") => Map(Part::Response),
        (Part::Components, "parameters") => Map(Part::Parameter),
        (Part::Components, "requestBodies") => Map(Part::RequestBody),
        (Part::Components, "headers") => Map(Part::Header),
        (Part::Components, "securitySchemes") => Map(Part::SecurityScheme),
        (Part::Components, "links") => Map(Part::Link),
        (Part::Components, "callbacks") => Map(Part::Callback),
        (Part::Components, "pathItems") => Map(Part::PathItem),
        (Part::PathItem, method) if METHODS.contains(&method) => One(Part::Operation),
        (Part::PathItem | Part::Operation, "parameters") => List(Part::Parameter),
        (Part::Operation, "requestBody") => One(Part::RequestBody),
        (Part::Operation, "responses") => Extensible(Part::Response),
        (Part::Operation, "callbacks") => Map(Part::Callback),
        (Part::Callback, expression) if !is_extension(expression) => One(Part::PathItem),
        (Part::Parameter | Part::Header | Part::MediaType, "schema") => One(Part::Schema),
        (Part::Parameter | Part::Header | Part::RequestBody | Part::Response, "content") => Map(Part::MediaType),
        (Part::MediaType, "encoding") => Map(Part::Encoding),
        (Part::Encoding | Part::Response, "headers") => Map(Part::Header),
        (Part::Response, "links") => Map(Part::Link),
        (Part::Schema | Part::Branch, keyword) => below_schema(keyword)?,
        _ => return None,
    })
}

fn below_schema(keyword: &str) -> Option<Layout> {
    Some(match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => {
            Layout::Map(Part::Schema)
        }
        "items" | "prefixItems" => Layout::List(Part::Schema),
        "additionalProperties"
        | "additionalItems"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "contains"
        | "propertyNames"
        | "contentSchema" => Layout::One(Part::Schema),
        "allOf" | "anyOf" | "oneOf" => Layout::List(Part::Branch),
        "not" | "if" | "then" | "else" => Layout::One(Part::Branch),
        _ => return None,
    })
}

/// The members of a Path Item Object that are operations.
pub(super) const METHODS: &[&str] = &["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Whether a name is one of an extension.
pub(super) fn is_extension(name: &str) -> bool {
    name.starts_with("x-")
}

/// Visits the objects of a document in the order written, each before what is in it. Where the visitor says no, the
/// object is not entered.
pub(super) fn visit<'d>(root: Node<'d>, visitor: &mut impl FnMut(Node<'d>, Part) -> bool) {
    enter(root, Part::Document, visitor);
}

/// Depth is bounded by that of a document.
fn enter<'d>(node: Node<'d>, part: Part, visitor: &mut impl FnMut(Node<'d>, Part) -> bool) {
    if node.kind() != Type::Object || !visitor(node, part) {
        return;
    }
    for (name, member) in node.members() {
        match below(part, name) {
            None => {}
            Some(Layout::One(part)) => enter(member, part, visitor),
            Some(Layout::List(part)) if member.kind() == Type::Array => {
                member.items().for_each(|item| enter(item, part, visitor));
            }
            Some(Layout::List(part)) => enter(member, part, visitor),
            Some(Layout::Map(part)) => member.members().for_each(|(_, named)| enter(named, part, visitor)),
            Some(Layout::Extensible(part)) => member
                .members()
                .filter(|(name, _)| !is_extension(name))
                .for_each(|(_, named)| enter(named, part, visitor)),
        }
    }
}

/// Visits every schema, and says which stand in a combinator.
pub(super) fn visit_schemas<'d>(root: Node<'d>, mut visitor: impl FnMut(Node<'d>, Part)) {
    visit(root, &mut |node, part| {
        if part.is_schema() {
            visitor(node, part);
        }
        true
    });
}

/// The path items that stand under `paths`, with their keys.
pub(super) fn path_items<'d>(root: Node<'d>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    items_under(root, "paths")
}

fn items_under<'d>(root: Node<'d>, name: &str) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    root.get(name).into_iter().flat_map(Node::members).filter(|(key, _)| !is_extension(key))
}

/// One operation and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Operation<'d> {
    pub path: &'d str,
    pub method: &'d str,
    /// The Operation Object.
    pub node: Node<'d>,
}

/// The operations under `paths`, in the order written; what is no object is none.
pub(super) fn operations<'d>(root: Node<'d>) -> impl Iterator<Item = Operation<'d>> {
    path_items(root).flat_map(|(path, item)| operations_of(path, item))
}

/// The operations under `paths` and `webhooks`, in the order written.
pub(super) fn all_operations<'d>(root: Node<'d>) -> impl Iterator<Item = Operation<'d>> {
    let members = root.members().filter(|(name, _)| matches!(*name, "paths" | "webhooks"));
    members
        .flat_map(|(_, member)| member.members())
        .filter(|(key, _)| !is_extension(key))
        .flat_map(|(path, item)| operations_of(path, item))
}

fn operations_of<'d>(path: &'d str, item: Node<'d>) -> impl Iterator<Item = Operation<'d>> {
    item.members()
        .filter(|(method, node)| METHODS.contains(method) && node.kind() == Type::Object)
        .map(move |(method, node)| Operation { path, method, node })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn parts_are_told_apart_and_data_is_not_entered() {
        let text = r#"{
            "paths": {
                "x-note": {"get": {}},
                "/a": {"get": {"parameters": [{"schema": {"items": {}, "default": {"items": {}}}}], "x-b": {}}}
            },
            "components": {"schemas": {"x-s": {"properties": {"enum": {"allOf": [{}]}}, "enum": [{}]}}}
        }"#;
        let document = Document::from_text(text);
        let mut seen = Vec::new();
        visit(document.root().expect("it parses"), &mut |node, part| {
            seen.push(format!("{} {part:?}", node.pointer()));
            true
        });
        let expected = [
            " Document",
            "/paths/~1a PathItem",
            "/paths/~1a/get Operation",
            "/paths/~1a/get/parameters/0 Parameter",
            "/paths/~1a/get/parameters/0/schema Schema",
            "/paths/~1a/get/parameters/0/schema/items Schema",
            "/components Components",
            "/components/schemas/x-s Schema",
            "/components/schemas/x-s/properties/enum Schema",
            "/components/schemas/x-s/properties/enum/allOf/0 Branch",
        ];
        assert_eq!(seen, expected);
    }
}
