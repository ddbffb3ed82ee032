//! Arguments on a package's command line.

use super::fields::{filled, list, member};
use super::revision::ALL_REVISIONS;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

use super::presentation::shown;

pub(super) const RULES: &[&Rule] = &[
    &ARGUMENT_TYPE_UNRECOGNISED,
    &ARGUMENT_POSITIONAL_EMPTY,
    &ARGUMENT_NAME_MISSING,
    &ARGUMENT_NAME_INVALID,
    &ARGUMENT_VALUE_STARTS_WITH_NAME,
    &ARGUMENT_NAME_NO_DASH,
];

fn arguments(document: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    list(document, "packages")
        .flat_map(|package| list(package, "runtimeArguments").chain(list(package, "packageArguments")))
}

/// Named arguments that have a name.
fn named(document: Node<'_>) -> impl Iterator<Item = (Node<'_>, Node<'_>, &str)> {
    arguments(document).filter(|argument| filled(*argument, "type") == Some("named")).filter_map(|argument| {
        let name = argument.given("name")?;
        Some((argument, name, name.text().filter(|text| !text.is_empty())?))
    })
}

crate::rule! {
    /// An argument is `positional` or `named`.
    ///
    /// Without its type nobody knows whether a flag precedes the value.
    static ARGUMENT_TYPE_UNRECOGNISED = {
        id: "registry/argument-type-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/packages/*/packageArguments/*/type, /packages/*/runtimeArguments/*/type, /packages/*/packageArguments/*, /packages/*/runtimeArguments/*",
        fix: "Set type to positional or named.",
        spec: "server.json 2025-12-11 schema Argument",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/packageArguments/0/type"], r#"{"packages": [{"packageArguments": [{"type": "flag", "name": "--verbose"}]}]}"#),
            fires(&["/packages/0/packageArguments/0/type"], r#"{"packages": [{"packageArguments": [{"name": "--verbose"}]}]}"#),
            fires(&["/packages/0/packageArguments/0"], r#"{"packages": [{"packageArguments": ["--verbose"]}]}"#),
            silent(r#"{"packages": [{"packageArguments": [{"type": "named", "name": "--verbose"}]}]}"#),
        ],
        check: Check::Document(argument_type_unrecognised),
    }
}

fn argument_type_unrecognised(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for argument in arguments(document) {
        if argument.kind() != Type::Object {
            out.add(argument, format!("{} where an object belongs", argument.kind().named()));
            continue;
        }
        match argument.given("type") {
            None => {
                out.add_missing(argument, "type", "no type");
            }
            Some(node) if !matches!(node.text(), Some("positional" | "named")) => {
                out.add(node, format!("{} is neither `positional` nor `named`", shown(node)));
            }
            Some(_) => {}
        }
    }
}

crate::rule! {
    /// A positional argument has a value or says what is asked for.
    ///
    /// With neither `value` nor `valueHint` there is nothing to put on the command line and nothing to ask.
    static ARGUMENT_POSITIONAL_EMPTY = {
        id: "registry/argument-positional-empty",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/packages/*/packageArguments/*, /packages/*/runtimeArguments/*",
        fix: "Give value or valueHint.",
        spec: "server.json 2025-12-11 schema PositionalArgument",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/packageArguments/0"], r#"{"packages": [{"packageArguments": [{"type": "positional", "description": "directory"}]}]}"#),
            silent(r#"{"packages": [{"packageArguments": [{"type": "positional", "value": ""}]}]}"#),
            silent(r#"{"packages": [{"package_arguments": [{"type": "positional", "value_hint": "directory"}]}]}"#).over("server-json-2025-07-09"),
        ],
        check: Check::Document(argument_positional_empty),
    }
}

fn argument_positional_empty(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for argument in arguments(document) {
        if filled(argument, "type") == Some("positional")
            && argument.given("value").is_none()
            && member(argument, "valueHint").is_none()
        {
            out.add(argument, "neither `value` nor `valueHint`");
        }
    }
}

crate::rule! {
    /// A named argument has a name.
    ///
    /// The name is the flag that stands before the value.
    static ARGUMENT_NAME_MISSING = {
        id: "registry/argument-name-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/packages/*/packageArguments/*, /packages/*/runtimeArguments/*",
        fix: "Give the flag's name with its dashes.",
        spec: "server.json 2025-12-11 schema NamedArgument; official registry publish checks",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/packageArguments/0"], r#"{"packages": [{"packageArguments": [{"type": "named", "value": "8080"}]}]}"#),
            silent(r#"{"packages": [{"packageArguments": [{"type": "positional", "value": "8080"}]}]}"#),
        ],
        check: Check::Document(argument_name_missing),
    }
}

fn argument_name_missing(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for argument in arguments(document) {
        if filled(argument, "type") == Some("named") && filled(argument, "name").is_none() {
            out.add(argument, "no name");
        }
    }
}

/// Whether a name is more than a flag.
fn is_more_than_a_flag(name: &str) -> bool {
    name.contains(['<', '>', '$', ' '])
}

crate::rule! {
    /// A named argument's name is the flag and nothing else.
    ///
    /// Values and placeholders in it end up on the command line.
    static ARGUMENT_NAME_INVALID = {
        id: "registry/argument-name-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/packageArguments/*/name, /packages/*/runtimeArguments/*/name",
        fix: "Keep only the flag in name; put the value in value or default.",
        spec: "official registry publish checks: named argument names",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/packageArguments/0/name"], r#"{"packages": [{"packageArguments": [{"type": "named", "name": "--dir <path>"}]}]}"#),
            silent(r#"{"packages": [{"packageArguments": [{"type": "named", "name": "--dir=x"}]}]}"#),
        ],
        check: Check::Document(argument_name_invalid),
    }
}

fn argument_name_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, node, name) in named(document) {
        if is_more_than_a_flag(name) {
            out.add(node, format!("{} is more than a flag", quote(name)));
        }
    }
}

crate::rule! {
    /// A named argument's value does not repeat the flag.
    ///
    /// Clients write the flag themselves, so it would stand there twice.
    static ARGUMENT_VALUE_STARTS_WITH_NAME = {
        id: "registry/argument-value-starts-with-name",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/packageArguments/*/value, /packages/*/packageArguments/*/default, /packages/*/runtimeArguments/*/value, /packages/*/runtimeArguments/*/default",
        fix: "Put only the value there; clients add the flag.",
        spec: "official registry publish checks: argument values",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/packageArguments/0/value"], r#"{"packages": [{"packageArguments": [{"type": "named", "name": "--port", "value": "--port=8080"}]}]}"#),
            silent(r#"{"packages": [{"packageArguments": [{"type": "named", "name": "-p", "value": "8080-p"}]}]}"#),
        ],
        check: Check::Document(argument_value_starts_with_name),
    }
}

fn argument_value_starts_with_name(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (argument, _, name) in named(document) {
        for value in [argument.given("value"), argument.given("default")].into_iter().flatten() {
            if let Some(text) = value.text().filter(|text| text.starts_with(name)) {
                out.add(value, format!("{} begins with {}", quote(text), quote(name)));
            }
        }
    }
}

crate::rule! {
    /// A named argument's name has no dash.
    ///
    /// Clients put it on the command line as it stands.
    static ARGUMENT_NAME_NO_DASH = {
        id: "registry/argument-name-no-dash",
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/packages/*/packageArguments/*/name, /packages/*/runtimeArguments/*/name",
        fix: "Write the flag with its dashes.",
        spec: "server.json 2025-12-11 schema NamedArgument.name",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/packageArguments/0/name"], r#"{"packages": [{"packageArguments": [{"type": "named", "name": "port", "default": "8080"}]}]}"#),
            silent(r#"{"packages": [{"packageArguments": [{"type": "named", "name": "-p", "default": "8080"}]}]}"#),
        ],
        check: Check::Document(argument_name_no_dash),
    }
}

fn argument_name_no_dash(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, node, name) in named(document) {
        if !name.starts_with('-') && !is_more_than_a_flag(name) {
            out.add(node, format!("{} has no dash", quote(name)));
        }
    }
}
