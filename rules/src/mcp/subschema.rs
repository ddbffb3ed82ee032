//! The schemas inside a JSON Schema, found by the keywords that hold them: what `default`, `enum`, `const`, `examples`
//! or an unknown keyword holds is no schema, and a property may be called like a keyword.

use crate::document::{Node, Type};

/// A schema and how it was reached.
#[derive(Clone, Copy)]
pub(super) struct Subschema<'d> {
    /// An object, or `true` or `false`.
    pub schema: Node<'d>,
    /// How many schemas it stands in, itself included.
    pub level: usize,
    /// Only `properties` led here from the root.
    pub is_by_properties: bool,
    /// A keyword that combines schemas for one value led here: it need not be whole by itself.
    pub is_in_combinator: bool,
    /// A definition led here: who refers to it decides what it is for.
    pub is_in_definition: bool,
    /// The nearest schema around it with an identifier of its own, which local references start from; else the root.
    pub resource: Node<'d>,
}

#[derive(Clone, Copy)]
enum By {
    Property,
    Combinator,
    Definition,
    Other,
}

/// Visits a schema and every schema in it, from the outside in. Recursion is bounded by the depth of the document.
pub(super) fn subschemas<'d>(schema: Node<'d>, f: &mut impl FnMut(&Subschema<'d>)) {
    let root = Subschema {
        schema,
        level: 1,
        is_by_properties: true,
        is_in_combinator: false,
        is_in_definition: false,
        resource: schema,
    };
    descend(root, f);
}

fn descend<'d>(sub: Subschema<'d>, f: &mut impl FnMut(&Subschema<'d>)) {
    f(&sub);
    for (keyword, value) in sub.schema.members() {
        let by = match keyword {
            "properties" => By::Property,
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => {
                By::Combinator
            }
            "$defs" | "definitions" => By::Definition,
            "patternProperties"
            | "items"
            | "additionalItems"
            | "prefixItems"
            | "contains"
            | "unevaluatedItems"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "contentSchema" => By::Other,
            _ => continue,
        };
        let is_by_name = matches!(
            keyword,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies"
        );
        match value.kind() {
            Type::Object if is_by_name => value.members().for_each(|(_, below)| enter(sub, below, by, f)),
            Type::Array if !is_by_name => value.items().for_each(|below| enter(sub, below, by, f)),
            _ if !is_by_name => enter(sub, value, by, f),
            _ => {}
        }
    }
}

fn enter<'d>(above: Subschema<'d>, schema: Node<'d>, by: By, f: &mut impl FnMut(&Subschema<'d>)) {
    if !matches!(schema.kind(), Type::Object | Type::Bool) {
        return;
    }
    let has_id = schema.get("$id").and_then(Node::text).is_some_and(|id| !id.starts_with('#'));
    descend(
        Subschema {
            schema,
            level: above.level + 1,
            is_by_properties: above.is_by_properties && matches!(by, By::Property),
            is_in_combinator: above.is_in_combinator || matches!(by, By::Combinator),
            is_in_definition: above.is_in_definition || matches!(by, By::Definition),
            resource: if has_id { schema } else { above.resource },
        },
        f,
    );
}
