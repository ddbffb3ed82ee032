//! JSON Schemas inside documents, held against the dialect they are written in.
//!
//! The judge is the `jsonschema` crate; this module bounds what it is asked: nothing is fetched, patterns run in linear
//! time, and a schema whose references would cost too much to follow is not judged at all.

use std::borrow::Cow;
use std::collections::HashSet;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::Value;

use crate::document::Node;

/// The dialects of JSON Schema that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Draft 4.
    Draft04,
    /// Draft 6.
    Draft06,
    /// Draft 7.
    Draft07,
    /// Draft 2019-09.
    Draft2019,
    /// Draft 2020-12.
    Draft2020,
    /// The Schema Object of OpenAPI 3.0: draft 4 as far as the two agree. What stands beside a `$ref` is nothing, and
    /// `exclusiveMinimum` needs no `minimum`.
    OpenApi30,
}

impl Dialect {
    /// The dialect that a `$schema` names, with or without an empty fragment.
    pub fn named(uri: &str) -> Option<Dialect> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let path = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        Some(match path {
            "json-schema.org/draft-04/schema" => Dialect::Draft04,
            "json-schema.org/draft-06/schema" => Dialect::Draft06,
            "json-schema.org/draft-07/schema" => Dialect::Draft07,
            "json-schema.org/draft/2019-09/schema" => Dialect::Draft2019,
            "json-schema.org/draft/2020-12/schema" => Dialect::Draft2020,
            _ => return None,
        })
    }

    /// How a person calls it.
    pub fn title(self) -> &'static str {
        match self {
            Dialect::Draft04 => "draft-04",
            Dialect::Draft06 => "draft-06",
            Dialect::Draft07 => "draft-07",
            Dialect::Draft2019 => "draft 2019-09",
            Dialect::Draft2020 => "draft 2020-12",
            Dialect::OpenApi30 => "OpenAPI 3.0",
        }
    }

    fn draft(self) -> Draft {
        match self {
            Dialect::Draft04 | Dialect::OpenApi30 => Draft::Draft4,
            Dialect::Draft06 => Draft::Draft6,
            Dialect::Draft07 => Draft::Draft7,
            Dialect::Draft2019 => Draft::Draft201909,
            Dialect::Draft2020 => Draft::Draft202012,
        }
    }
}

/// A place where a value does not fit a schema, and what is wrong there.
#[derive(Debug)]
pub struct Fault<'d> {
    /// The value that does not fit.
    pub at: Node<'d>,
    /// What is wrong with it, to follow its name: `is not of type "array"`.
    pub what: String,
}

/// Faults beyond this many of one schema are not told apart: the first are enough to see what went wrong.
const MOST_FAULTS: usize = 32;

/// Where a schema breaks the meta-schema of its dialect. `format` in meta-schemas is no demand here, so an odd regular
/// expression or reference is none.
pub fn faults_of_schema(schema: Node<'_>, dialect: Dialect) -> Vec<Fault<'_>> {
    let mut value = schema.to_value();
    hide_foreign(&mut value, dialect, true);
    let validator = match dialect {
        Dialect::Draft04 | Dialect::OpenApi30 => jsonschema::draft4::meta::validator(),
        Dialect::Draft06 => jsonschema::draft6::meta::validator(),
        Dialect::Draft07 => jsonschema::draft7::meta::validator(),
        Dialect::Draft2019 => jsonschema::draft201909::meta::validator(),
        Dialect::Draft2020 => jsonschema::draft202012::meta::validator(),
    };
    if validator.is_valid(&value) {
        return Vec::new();
    }
    // The meta-schema of draft 4 demands of a bound what the Schema Object of OpenAPI does not.
    let is_demand = |error: &ValidationError<'_>| {
        dialect != Dialect::OpenApi30 || !error.schema_path().as_str().contains("/dependencies")
    };
    placed(schema, validator.iter_errors(&value).filter(is_demand))
}

/// Takes away what is not written in this dialect: schemas inside that name another one, and for OpenAPI 3.0 whatever
/// refers to something else. Recursion is bounded: what has a tree nests at most
/// [`crate::document::MAX_READ_DEPTH`] levels.
fn hide_foreign(value: &mut Value, dialect: Dialect, is_top: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| hide_foreign(item, dialect, false)),
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let is_other = !is_top && text("$schema").is_some_and(|uri| Dialect::named(uri) != Some(dialect));
            if is_other || (dialect == Dialect::OpenApi30 && text("$ref").is_some()) {
                members.clear();
            }
            members.values_mut().for_each(|member| hide_foreign(member, dialect, false));
        }
        _ => {}
    }
}

/// The keyword whose value is at fault: for a word of a list of words the list.
pub fn keyword_around(at: Node<'_>) -> Node<'_> {
    let lists = ["type", "required", "enum", "examples"];
    at.parent()
        .filter(|above| at.index().is_some() && above.key().is_some_and(|key| lists.contains(&key)))
        .unwrap_or(at)
}

/// Where an instance breaks a schema; `None` when the schema cannot be used: it is no schema, refers to something that
/// is not in it, or its references cost more than [`MOST_STEPS`] to follow.
pub fn faults_of_instance<'d>(instance: Node<'d>, schema: &Value, dialect: Dialect) -> Option<Vec<Fault<'d>>> {
    let value = instance.to_value();
    Steps { root: schema, left: MOST_STEPS }.take(schema, &value, 0)?;
    let validator = jsonschema::options()
        .with_draft(dialect.draft())
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(false)
        .build(schema)
        .ok()?;
    if validator.is_valid(&value) {
        return Some(Vec::new());
    }
    Some(placed(instance, validator.iter_errors(&value)))
}

fn placed<'d, 'e>(root: Node<'d>, errors: impl Iterator<Item = ValidationError<'e>>) -> Vec<Fault<'d>> {
    let base = root.pointer();
    let mut seen = HashSet::new();
    let mut faults = Vec::new();
    for error in errors {
        narrowed(&error, &mut |path, what| {
            if faults.len() < MOST_FAULTS
                && seen.insert(path.to_owned())
                && let Some(at) = root.document().pointer(&format!("{base}{path}"))
            {
                faults.push(Fault { at, what: what.into_owned() });
            }
        });
        if faults.len() == MOST_FAULTS {
            break;
        }
    }
    faults
}

/// Follows alternatives down to the one that was meant: the branch that fits the value itself and fails only inside it.
fn narrowed(error: &ValidationError<'_>, found: &mut impl FnMut(&str, Cow<'static, str>)) {
    match error.kind() {
        ValidationErrorKind::Format { .. } => {}
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let here = error.instance_path().as_str();
            let inside = |branch: &&Vec<ValidationError<'_>>| {
                !branch.is_empty() && branch.iter().all(|e| e.instance_path().as_str() != here)
            };
            match context.iter().find(inside) {
                Some(branch) => branch.iter().for_each(|error| narrowed(error, found)),
                None => found(here, Cow::Borrowed("has none of the forms that are allowed here")),
            }
        }
        _ => found(error.instance_path().as_str(), Cow::Owned(described(error))),
    }
}

fn described(error: &ValidationError<'_>) -> String {
    let message = error.masked_with("it").to_string();
    message.strip_prefix("it ").unwrap_or(&message).to_owned()
}

/// Schemas that judging one instance may visit: more than any schema that a person wrote needs, and a few milliseconds.
const MOST_STEPS: usize = 20_000;

/// Schemas that may apply on top of each other, references and steps into the instance included.
const DEEPEST: usize = 200;

/// Keywords whose schemas apply to the same value.
const SAME_VALUE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Keywords that hold schemas by name and apply to the same value.
const SAME_VALUE_BY_NAME: &[&str] = &["dependentSchemas", "dependencies"];

/// Keywords whose schemas apply to items or members.
const BELOW: &[&str] = &[
    "items",
    "additionalItems",
    "prefixItems",
    "contains",
    "unevaluatedItems",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
];

/// Counts the schemas that judging would visit, references followed, so that a circle or a doubling chain of them is
/// noticed before it is run.
struct Steps<'s> {
    root: &'s Value,
    left: usize,
}

impl<'s> Steps<'s> {
    /// Visits a schema for an instance. `None` when there is too much to do, or no telling.
    fn take(&mut self, schema: &'s Value, instance: &Value, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if depth > DEEPEST {
            return None;
        }
        let Some(members) = schema.as_object() else { return Some(()) };
        let is_nested_resource = members.contains_key("$id") && !std::ptr::eq(schema, self.root);
        if is_nested_resource {
            return None;
        }
        for (keyword, value) in members {
            self.follow(keyword, value, instance, depth + 1)?;
        }
        Some(())
    }

    fn follow(&mut self, keyword: &str, value: &'s Value, instance: &Value, depth: usize) -> Option<()> {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let target = self.target(value.as_str()?)?;
                self.take(target, instance, depth)
            }
            "properties" => value.as_object().into_iter().flatten().try_for_each(|(name, below)| {
                instance.get(name).map_or(Some(()), |member| self.take(below, member, depth))
            }),
            "patternProperties" => {
                value.as_object().into_iter().flatten().try_for_each(|(_, below)| self.below(below, instance, depth))
            }
            _ if SAME_VALUE.contains(&keyword) => self.each(value, instance, depth),
            _ if SAME_VALUE_BY_NAME.contains(&keyword) => {
                value.as_object().into_iter().flatten().try_for_each(|(_, same)| self.take(same, instance, depth))
            }
            _ if BELOW.contains(&keyword) => self.below(value, instance, depth),
            _ => Some(()),
        }
    }

    /// Visits one schema or each of a list.
    fn each(&mut self, schemas: &'s Value, instance: &Value, depth: usize) -> Option<()> {
        match schemas {
            Value::Array(schemas) => schemas.iter().try_for_each(|schema| self.take(schema, instance, depth)),
            schema => self.take(schema, instance, depth),
        }
    }

    fn below(&mut self, schemas: &'s Value, instance: &Value, depth: usize) -> Option<()> {
        match instance {
            Value::Array(items) => items.iter().try_for_each(|item| self.each(schemas, item, depth)),
            Value::Object(members) => members.values().try_for_each(|member| self.each(schemas, member, depth)),
            _ => Some(()),
        }
    }

    /// What a reference by JSON Pointer points at; `None` for one by name, whose cost is not known.
    fn target(&self, reference: &str) -> Option<&'s Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::Document;

    fn faults(schema: &str, dialect: Dialect) -> Vec<String> {
        let document = Document::from_text(schema);
        let root = document.root().expect("it parses");
        faults_of_schema(root, dialect).into_iter().map(|f| format!("{} {}", f.at.pointer(), f.what)).collect()
    }

    fn violations(schema: &Value, instance: &str) -> Option<Vec<String>> {
        let document = Document::from_text(instance);
        let root = document.root().expect("it parses");
        let faults = faults_of_instance(root, schema, Dialect::Draft2020)?;
        Some(faults.into_iter().map(|f| format!("{} {}", f.at.pointer(), f.what)).collect())
    }

    #[test]
    fn a_schema_is_held_against_its_own_dialect() {
        let tuple = r#"{"type": "object", "properties": {"x": {"items": [{"type": "number"}]}}}"#;
        assert_eq!(faults(tuple, Dialect::Draft07), [""; 0]);
        assert_eq!(faults(tuple, Dialect::Draft2020), ["/properties/x/items is not of types \"boolean\", \"object\""]);
        let bound = r#"{"exclusiveMinimum": true, "minimum": 1}"#;
        assert_eq!(faults(bound, Dialect::Draft04), [""; 0]);
        assert_eq!(faults(bound, Dialect::Draft06), ["/exclusiveMinimum is not of type \"number\""]);
        assert_eq!(faults(r#"{"required": true}"#, Dialect::Draft2019), ["/required is not of type \"array\""]);
        assert_eq!(faults(r#"{"pattern": "(?<", "x-odd": [1]}"#, Dialect::Draft07), [""; 0]);
    }

    #[test]
    fn the_fault_is_found_inside_alternatives() {
        let nested = r#"{"items": {"properties": {"x": {"type": "str"}}}}"#;
        for dialect in [Dialect::Draft04, Dialect::Draft06, Dialect::Draft07, Dialect::Draft2019, Dialect::Draft2020] {
            let found = faults(nested, dialect);
            assert_eq!(found, ["/items/properties/x/type has none of the forms that are allowed here"], "{dialect:?}");
        }
    }

    #[test]
    fn a_schema_with_many_faults_or_much_depth_is_judged_within_bounds() {
        let many: Vec<_> = (0..1000).map(|n| format!("\"p{n}\": {{\"type\": 1}}")).collect();
        assert_eq!(faults(&format!("{{\"properties\": {{{}}}}}", many.join(",")), Dialect::Draft07).len(), MOST_FAULTS);
        let deep = format!("{}{{}}{}", "{\"not\":".repeat(124), "}".repeat(124));
        for dialect in [Dialect::Draft04, Dialect::Draft07, Dialect::Draft2019, Dialect::Draft2020] {
            assert_eq!(faults(&deep, dialect), [""; 0]);
        }
        let deep_fault = format!("{}{{\"type\":1}}{}", "{\"items\":".repeat(124), "}".repeat(124));
        for dialect in [Dialect::Draft04, Dialect::Draft07, Dialect::Draft2019, Dialect::Draft2020] {
            assert_eq!(faults(&deep_fault, dialect).len(), 1, "{dialect:?}");
        }
    }

    #[test]
    fn an_instance_breaks_a_schema_at_its_own_place() {
        let schema =
            json!({"type": "object", "properties": {"h": {"$ref": "#/$defs/h"}}, "$defs": {"h": {"type": "number"}}});
        assert_eq!(violations(&schema, r#"{"h": 1}"#), Some(vec![]));
        let wrong = violations(&schema, r#"{"h": "1"}"#);
        assert_eq!(wrong, Some(vec!["/h is not of type \"number\"".to_owned()]));
    }

    #[test]
    fn a_schema_that_circles_doubles_or_points_outside_is_not_run() {
        assert_eq!(violations(&json!({"$ref": "#"}), "1"), None);
        assert_eq!(violations(&json!({"allOf": [{"$ref": "#/allOf/0"}]}), "1"), None);
        assert_eq!(violations(&json!({"$ref": "https://schemas.example.org/x.json"}), "1"), None);
        let mut defs = serde_json::Map::new();
        defs.insert("d0".to_owned(), json!({"type": "number"}));
        for n in 1..64 {
            let below = format!("#/$defs/d{}", n - 1);
            defs.insert(format!("d{n}"), json!({"allOf": [{"$ref": below}, {"$ref": below}]}));
        }
        assert_eq!(violations(&json!({"$ref": "#/$defs/d63", "$defs": defs}), "1"), None);
        let unused = json!({"properties": {"z": {"$ref": "#/$defs/d63"}}, "$defs": defs});
        assert_eq!(violations(&unused, "1"), Some(vec![]));
        let fork = json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "type": "number"});
        let deep = format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60));
        assert_eq!(violations(&fork, &deep), None);
    }

    #[test]
    fn a_schema_that_walks_down_with_the_instance_is_run() {
        let tree = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
        let deep = format!("{}{{\"b\":1}}{}", "{\"a\":".repeat(40), "}".repeat(40));
        assert_eq!(violations(&tree, &deep).map(|found| found.len()), Some(1));
    }
}
