//! The paths of an interface.

use std::collections::HashMap;

use super::parts::{METHODS, path_items};
use super::reference::References;
use super::{OPENAPI, V3, is_3_0, object};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &PATHS_OBJECT_REQUIRED,
    &NO_PATHS,
    &STRUCTURE_INCOMPLETE,
    &NO_OPERATIONS,
    &PATH_KEY_INVALID,
    &PATH_ITEM_INVALID,
    &PATH_HAS_QUERY,
    &PATH_AMBIGUOUS,
    &OPERATION_COUNT_HIGH,
];

crate::rule! {
    /// The paths are an object, and 3.0 requires them.
    ///
    /// They hold every operation.
    static PATHS_OBJECT_REQUIRED = {
        id: "openapi/paths-object-required",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths",
        spec: "OpenAPI 3.1.1 Paths Object; OpenAPI 3.0.4 paths is required",
        fix: "Add paths as an object.",
        seeds: &["gaip:OPENAPI_PATHS_OBJECT_REQUIRED"],
        examples: &[
            fires(&["/paths"], r#"{"paths": []}"#),
            fires(&["/paths"], r#"{"paths": null}"#).over("openapi-3.0"),
            silent(r#"{"paths": null}"#),
        ],
        check: Check::Document(paths_object_required),
    }
}

fn paths_object_required(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    match root.get("paths") {
        None if is_3_0(context) => {
            out.add_missing(root, "paths", "there are no `paths`");
        }
        Some(paths) if paths.kind() != Type::Object => {
            out.add(paths, format!("`paths` is {}, not an object", paths.kind().named()));
        }
        _ => {}
    }
}

crate::rule! {
    /// The document describes no paths.
    ///
    /// From 3.1 on it may hold components or webhooks alone. There is nothing then for an agent to call.
    static NO_PATHS = {
        id: "openapi/no-paths",
        versions: &["3.1"],
        on: OPENAPI,
        place: "/paths",
        spec: "OpenAPI 3.1.1 OpenAPI Object",
        fix: "Add paths if agents should call operations.",
        seeds: &["gaip:OPENAPI_NO_PATHS"],
        examples: &[fires(&["/paths"], r#"{"paths": null}"#), silent("{}")],
        check: Check::Document(no_paths),
    }
}

fn no_paths(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let other = ["webhooks", "components"].iter().any(|name| root.get(name).is_some());
    if root.get("paths").is_none() && other {
        out.add_missing(root, "paths", "there are no `paths`");
    }
}

crate::rule! {
    /// The document has paths, components or webhooks.
    ///
    /// One of them is required, since without any of them it describes nothing.
    static STRUCTURE_INCOMPLETE = {
        id: "openapi/structure-incomplete",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["3.1"],
        on: OPENAPI,
        place: "",
        spec: "OpenAPI 3.1.1 OpenAPI Object",
        fix: "Add paths.",
        seeds: &["gaip:OPENAPI_NO_PATHS"],
        examples: &[
            fires(&[""], r#"{"paths": null, "components": null, "security": []}"#),
            silent(r#"{"paths": null, "components": null, "security": [], "webhooks": {}}"#),
        ],
        check: Check::Document(structure_incomplete),
    }
}

fn structure_incomplete(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if ["paths", "components", "webhooks"].iter().all(|name| root.get(name).is_none()) {
        out.add(root, "none of paths, components and webhooks is there");
    }
}

crate::rule! {
    /// There is at least one operation.
    ///
    /// An agent can call nothing else.
    static NO_OPERATIONS = {
        id: "openapi/no-operations",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/paths",
        spec: "OpenAPI 3.1.1 Paths Object",
        fix: "Add at least one operation.",
        seeds: &["gaip:OPENAPI_NO_OPERATIONS"],
        examples: &[
            fires(&["/paths"], r#"{"paths": {"/tides": null, "/tides/{id}": null}}"#),
            fires(&["/paths"], r#"{"paths": {"/tides": {"get": null, "summary": "soon"}, "/tides/{id}": null}}"#),
            silent(
                r##"{"paths": {"/tides": {"get": null, "$ref": "#/components/pathItems/tides"}, "/tides/{id}": null},
                "components": {"pathItems": {"tides": {"head": {"operationId": "headTides", "summary": "Probe"}}}}}"##,
            ),
        ],
        check: Check::Document(no_operations),
    }
}

fn no_operations(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(paths) = object(root, "paths") else { return };
    if count_operations(root, 1) == 0 {
        out.add(paths, "no path has an operation");
    }
}

/// How many operations the paths have, one reference followed for each; counting stops at `enough`.
fn count_operations(root: Node<'_>, enough: usize) -> usize {
    let mut references = References::of(root);
    let mut count = 0;
    for (_, item) in path_items(root) {
        count += methods_of(item);
        if let Some(shared) = references.followed(item).filter(|shared| *shared != item) {
            count += methods_of(shared);
        }
        if count >= enough {
            break;
        }
    }
    count
}

fn methods_of(item: Node<'_>) -> usize {
    item.members().filter(|(name, _)| METHODS.contains(name)).count()
}

crate::rule! {
    /// Every path begins with a slash.
    ///
    /// It is appended to the server's address as it stands.
    static PATH_KEY_INVALID = {
        id: "openapi/path-key-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*",
        spec: "OpenAPI 3.1.1 Paths Object",
        fix: "Prefix the path with /.",
        seeds: &["gaip:OPENAPI_PATH_KEY_INVALID"],
        examples: &[
            fires(&["/paths/tides"], r#"{"paths": {"tides": {}}}"#),
            silent(r#"{"paths": {"x-group": {"name": "a"}}}"#),
        ],
        check: Check::Document(path_key_invalid),
    }
}

fn path_key_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (key, item) in path_items(root).filter(|(key, _)| !key.starts_with('/')) {
        out.add(item, format!("the path {} does not begin with a slash", quote(key)));
    }
}

crate::rule! {
    /// Every path is an object.
    ///
    /// Its members are the operations.
    static PATH_ITEM_INVALID = {
        id: "openapi/path-item-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*",
        spec: "OpenAPI 3.1.1 Path Item Object",
        fix: "Make it an object of operations.",
        seeds: &["gaip:OPENAPI_PATH_ITEM_INVALID"],
        examples: &[
            fires(&["/paths/~1soon"], r#"{"paths": {"/soon": "later"}}"#),
            silent(r#"{"paths": {"/soon": {}}}"#),
        ],
        check: Check::Document(path_item_invalid),
    }
}

fn path_item_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let wrong = |(key, item): &(&str, Node<'_>)| key.starts_with('/') && item.kind() != Type::Object;
    for (key, item) in path_items(root).filter(wrong) {
        out.add(item, format!("the path {} is {}, not an object", quote(key), item.kind().named()));
    }
}

crate::rule! {
    /// A path has neither query nor fragment.
    ///
    /// Parameters of the query are declared, so that a caller can fill them in; in a path they are taken for a part of it.
    static PATH_HAS_QUERY = {
        id: "openapi/path-has-query",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*",
        spec: "Spectral path-not-include-query; Redocly path-not-include-query",
        fix: "Declare query parameters as parameters.",
        examples: &[
            fires(&["/paths/~1tides?place=x"], r#"{"paths": {"/tides?place=x": {}}}"#),
            silent(r#"{"paths": {"/tides:batch": {}}}"#),
        ],
        check: Check::Document(path_has_query),
    }
}

fn path_has_query(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (key, item) in path_items(root).filter(|(key, _)| key.contains(['?', '#'])) {
        out.add(item, format!("the path {} has a query or fragment", quote(key)));
    }
}

crate::rule! {
    /// No two paths differ only by the names of their parameters.
    ///
    /// A request fits both, so nobody can tell which of the two it is for.
    static PATH_AMBIGUOUS = {
        id: "openapi/path-ambiguous",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*",
        spec: "OpenAPI 3.1.1 Paths Object: templated paths; Redocly no-identical-paths",
        fix: "Merge or rename the paths.",
        examples: &[
            fires(
                &["/paths/~1tides~1{key}"],
                r#"{"paths": {"/tides/{key}": {"delete": {"operationId": "dropTide", "summary": "Drop",
                "parameters": [{"name": "key", "in": "path", "required": true, "schema": {"type": "string"}}]}}}}"#,
            ),
            silent(r#"{"paths": {"/tides/today": {}}}"#),
        ],
        check: Check::Document(path_ambiguous),
    }
}

fn path_ambiguous(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (key, item) in path_items(root).filter(|(key, _)| key.contains('{')) {
        match seen.entry(without_names(key)) {
            std::collections::hash_map::Entry::Occupied(earlier) => {
                out.add(item, format!("the path {} fits what {} fits", quote(key), quote(earlier.get())));
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(key);
            }
        }
    }
}

/// A path with every `{name}` as `{}`.
fn without_names(path: &str) -> String {
    let mut bare = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, behind)) = rest.split_once('{') {
        bare.push_str(before);
        bare.push_str("{}");
        let Some((_, after)) = behind.split_once('}') else { return bare + behind };
        rest = after;
    }
    bare.push_str(rest);
    bare
}

crate::rule! {
    /// The document has more operations than an agent can take at once.
    ///
    /// Every operation becomes a tool, and every tool a part of what the model has to read. Few take over 128.
    static OPERATION_COUNT_HIGH = {
        id: "openapi/operation-count-high",
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/paths",
        spec: "hint",
        fix: "Publish smaller documents per task.",
        examples: &[
            fires(
                &["/paths"],
                r##"{"paths": {
                "/0": {"$ref": "#/components/pathItems/all"}, "/1": {"$ref": "#/components/pathItems/all"},
                "/2": {"$ref": "#/components/pathItems/all"}, "/3": {"$ref": "#/components/pathItems/all"},
                "/4": {"$ref": "#/components/pathItems/all"}, "/5": {"$ref": "#/components/pathItems/all"},
                "/6": {"$ref": "#/components/pathItems/all"}, "/7": {"$ref": "#/components/pathItems/all"},
                "/8": {"$ref": "#/components/pathItems/all"}, "/9": {"$ref": "#/components/pathItems/all"},
                "/10": {"$ref": "#/components/pathItems/all"}, "/11": {"$ref": "#/components/pathItems/all"},
                "/12": {"$ref": "#/components/pathItems/all"}, "/13": {"$ref": "#/components/pathItems/all"},
                "/14": {"$ref": "#/components/pathItems/all"}, "/15": {"$ref": "#/components/pathItems/all"}
                }, "components": {"pathItems": {"all": {
                "get": {}, "put": {}, "post": {}, "delete": {}, "options": {}, "head": {}, "patch": {}, "trace": {}
                }}}}"##,
            ),
            silent("{}"),
        ],
        check: Check::Document(operation_count_high),
    }
}

fn operation_count_high(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    const MANY: usize = 128;
    let Some(paths) = object(root, "paths") else { return };
    let count = count_operations(root, usize::MAX);
    if count > MANY {
        out.add(paths, format!("the document has {count} operations"));
    }
}
