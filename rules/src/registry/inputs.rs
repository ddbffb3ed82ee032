//! What users fill in: headers, environment variables, arguments, and the variables inside them.

use std::collections::HashSet;

use super::fields::{filled, is_blank, list, member, spelled};
use super::presentation::shown;
use super::remotes::keys;
use super::revision::ALL_REVISIONS;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{is_placeholder, quote, variables};

pub(super) const RULES: &[&Rule] = &[
    &INPUT_NAME_MISSING,
    &INPUT_DUPLICATE_NAME,
    &HEADER_NAME_INVALID,
    &INPUT_FORMAT_UNRECOGNISED,
    &INPUT_DEFAULT_NOT_IN_CHOICES,
    &INPUT_VALUE_FORMAT_MISMATCH,
    &INPUT_TEMPLATE_VARIABLE_UNDEFINED,
    &INPUT_VARIABLE_UNUSED,
    &INPUT_VALUE_NOT_CONFIGURABLE,
    &INPUT_SECRET_STATIC,
    &INPUT_SECRET_UNMARKED,
];

/// Which list an input stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Environment,
    Header,
    Argument,
    /// A value of a `variables` map.
    Variable,
}

/// One input, and the remote it belongs to if it is a header of one.
#[derive(Clone, Copy)]
struct Input<'d> {
    node: Node<'d>,
    role: Role,
    remote: Option<Node<'d>>,
}

/// Every list of inputs, whatever its elements are.
fn each_list<'d>(document: Node<'d>, mut f: impl FnMut(Node<'d>, Role, Option<Node<'d>>)) {
    let mut visit = |owner: Node<'d>, key: &str, role: Role, remote: Option<Node<'d>>| {
        if let Some(list) = member(owner, key).filter(|list| list.kind() == Type::Array) {
            f(list, role, remote);
        }
    };
    for package in list(document, "packages") {
        visit(package, "environmentVariables", Role::Environment, None);
        visit(package, "runtimeArguments", Role::Argument, None);
        visit(package, "packageArguments", Role::Argument, None);
        if let Some(transport) = package.given("transport") {
            visit(transport, "headers", Role::Header, None);
        }
    }
    for remote in list(document, "remotes") {
        visit(remote, "headers", Role::Header, Some(remote));
    }
}

/// Every input that is an object, variables included.
fn each_input<'d>(document: Node<'d>, mut f: impl FnMut(Input<'d>)) {
    each_list(document, |list, role, remote| {
        for node in list.items().filter(|node| node.kind() == Type::Object) {
            f(Input { node, role, remote });
            each_variable(node, &mut f);
        }
    });
    for remote in list(document, "remotes") {
        each_variable(remote, &mut f);
    }
}

fn each_variable<'d>(owner: Node<'d>, f: &mut impl FnMut(Input<'d>)) {
    let defined = owner.given("variables").into_iter().flat_map(Node::members);
    for (_, node) in defined.filter(|(_, node)| node.kind() == Type::Object) {
        f(Input { node, role: Role::Variable, remote: None });
    }
}

crate::rule! {
    /// Headers and environment variables have a name.
    ///
    /// A value without a name cannot be sent or set.
    static INPUT_NAME_MISSING = {
        id: "registry/input-name-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/**/environmentVariables/*, /**/headers/*",
        fix: "Add the variable's or header's name.",
        spec: "server.json 2025-12-11 schema KeyValueInput",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/0"], r#"{"packages": [{"environmentVariables": [{"description": "Where to look"}]}]}"#),
            fires(&["/remotes/0/headers/0"], r#"{"remotes": [{"headers": ["X-Region"]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "REGION"}]}]}"#),
        ],
        check: Check::Document(input_name_missing),
    }
}

fn input_name_missing(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_list(document, |list, role, _| {
        if role == Role::Argument {
            return;
        }
        for input in list.items() {
            if input.kind() != Type::Object {
                out.add(input, format!("{} where an object belongs", input.kind().named()));
            } else if filled(input, "name").is_none() {
                out.add(input, "no name");
            }
        }
    });
}

crate::rule! {
    /// No name stands twice in one list.
    ///
    /// Of two environment variables or headers with one name, which letter case does not tell apart in headers, one is lost.
    static INPUT_DUPLICATE_NAME = {
        id: "registry/input-duplicate-name",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/**/environmentVariables/*, /**/headers/*",
        fix: "Keep one of them.",
        spec: "hint",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/1"], r#"{"packages": [{"environmentVariables": [{"name": "REGION"}, {"name": "REGION"}]}]}"#),
            fires(&["/remotes/0/headers/1"], r#"{"remotes": [{"headers": [{"name": "X-Region"}, {"name": "x-region"}]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "REGION"}, {"name": "region"}]}]}"#),
        ],
        check: Check::Document(input_duplicate_name),
    }
}

fn input_duplicate_name(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_list(document, |list, role, _| {
        if role == Role::Argument {
            return;
        }
        let mut seen = HashSet::new();
        for input in list.items() {
            let Some(name) = filled(input, "name") else { continue };
            let key = if role == Role::Header { name.to_lowercase() } else { name.to_owned() };
            if !seen.insert(key) {
                out.add(input, format!("{} stands here again", quote(name)));
            }
        }
    });
}

/// Headers that a client has to set by itself.
const OWN_HEADERS: &[&str] = &["host", "content-length", "transfer-encoding", "connection", "mcp-session-id"];

crate::rule! {
    /// A header's name is a name of HTTP, and one that users may set.
    ///
    /// `Authorization: Bearer` is a name with half a value in it; `Content-Length` is the client's to say.
    static HEADER_NAME_INVALID = {
        id: "registry/header-name-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/**/headers/*/name",
        fix: "Give the header's bare name.",
        spec: "RFC 9110 5.1; server.json 2025-12-11 schema",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/headers/0/name"], r#"{"remotes": [{"headers": [{"name": "Authorization: Bearer", "isSecret": true}]}]}"#),
            fires(&["/remotes/0/headers/0/name"], r#"{"remotes": [{"headers": [{"name": "Content-Length"}]}]}"#),
            silent(r#"{"remotes": [{"headers": [{"name": "X-Tide.House_1"}]}]}"#),
        ],
        check: Check::Document(header_name_invalid),
    }
}

fn header_name_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_list(document, |list, role, _| {
        if role != Role::Header {
            return;
        }
        for header in list.items() {
            let Some(text) = filled(header, "name") else { continue };
            let Some(name) = header.given("name") else { continue };
            if !text.bytes().all(is_token) {
                out.add(name, format!("{} is no header name", quote(text)));
            } else if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(text)) {
                out.add(name, format!("clients set {} themselves", quote(text)));
            }
        }
    });
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

crate::rule! {
    /// An input's format is one of four.
    ///
    /// Clients build their form by it: `string`, `number`, `boolean` or `filepath`.
    static INPUT_FORMAT_UNRECOGNISED = {
        id: "registry/input-format-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/**/format",
        fix: "Use one of the four formats.",
        spec: "server.json 2025-12-11 schema Input",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/0/format"], r#"{"packages": [{"environmentVariables": [{"name": "PORT", "format": "integer"}]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "DIR", "format": "filepath"}]}]}"#),
        ],
        check: Check::Document(input_format_unrecognised),
    }
}

fn input_format_unrecognised(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        if let Some(format) = input.node.given("format")
            && !matches!(format.text(), Some("string" | "number" | "boolean" | "filepath"))
        {
            out.add(format, format!("{} is no format", shown(format)));
        }
    });
}

crate::rule! {
    /// A default is one of the choices, and no choice stands twice.
    ///
    /// A form that offers the choices cannot show another default.
    static INPUT_DEFAULT_NOT_IN_CHOICES = {
        id: "registry/input-default-not-in-choices",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/**/default, /**/choices",
        fix: "Add the default to choices.",
        spec: "server.json 2025-12-11 schema Input.choices",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/0/default"], r#"{"packages": [{"environmentVariables": [{"name": "REGION", "choices": ["north", "south"], "default": "North"}]}]}"#),
            fires(&["/packages/0/environmentVariables/0/choices"], r#"{"packages": [{"environmentVariables": [{"name": "REGION", "choices": ["north", "north"]}]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "REGION", "choices": ["north", "south"], "default": "north"}]}]}"#),
        ],
        check: Check::Document(input_default_not_in_choices),
    }
}

fn input_default_not_in_choices(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        let Some(choices) = input.node.given("choices").filter(|choices| choices.items().next().is_some()) else {
            return;
        };
        let mut seen = HashSet::new();
        let again = choices.items().filter_map(Node::text).find(|choice| !seen.insert(*choice));
        if let Some(choice) = again {
            out.add(choices, format!("{} stands twice", quote(choice)));
        }
        if let Some(default) = input.node.given("default")
            && let Some(text) = default.text()
            && !choices.items().any(|choice| choice.text() == Some(text))
        {
            out.add(default, format!("{} is none of the choices", quote(text)));
        }
    });
}

/// Whether a text leaves something to be filled in.
fn has_template(text: &str) -> bool {
    variables(text).any(|variable| variable.is_identifier())
}

crate::rule! {
    /// Values fit the format that the input states.
    ///
    /// A client that checks what users enter refuses the server's own default.
    static INPUT_VALUE_FORMAT_MISMATCH = {
        id: "registry/input-value-format-mismatch",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/**/default, /**/value, /**/choices/*",
        fix: "Write the value in the declared format.",
        spec: "server.json 2025-12-11 schema Input.format",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/0/default"], r#"{"packages": [{"environmentVariables": [{"name": "PORT", "format": "number", "default": "three"}]}]}"#),
            fires(&["/packages/0/environmentVariables/0/choices/1"], r#"{"packages": [{"environmentVariables": [{"name": "DEBUG", "format": "boolean", "choices": ["true", "1"]}]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "PORT", "format": "number", "placeholder": "e.g. 3000", "default": "-1.5e3"}]}]}"#),
        ],
        check: Check::Document(input_value_format_mismatch),
    }
}

fn input_value_format_mismatch(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        let (what, fits): (_, fn(&str) -> bool) = match filled(input.node, "format") {
            Some("number") => ("number", is_decimal),
            Some("boolean") => ("boolean", is_boolean),
            _ => return,
        };
        let values = [input.node.given("default"), input.node.given("value")].into_iter().flatten();
        for value in values.chain(list(input.node, "choices")) {
            if let Some(text) = value.text().filter(|text| !text.is_empty())
                && !fits(text)
                && !has_template(text)
            {
                out.add(value, format!("{} is no {what}", quote(text)));
            }
        }
    });
}

fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// A decimal number: sign, fraction and exponent as one likes.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = unsigned(mantissa).split_once('.').unwrap_or((unsigned(mantissa), ""));
    is_digits(whole)
        && is_digits(fraction)
        && whole.len() + fraction.len() > 0
        && exponent.is_none_or(|exponent| !unsigned(exponent).is_empty() && is_digits(unsigned(exponent)))
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

crate::rule! {
    /// Every variable in a value is defined.
    ///
    /// A client leaves `{name}` as it stands when nothing describes it, and sends the braces to the server. No released client
    /// was seen to refuse such a listing, and every fourth or fifth one has it: it degrades, and does not block.
    static INPUT_TEMPLATE_VARIABLE_UNDEFINED = {
        id: "registry/input-template-variable-undefined",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "by the schema: a client sends the braces as they stand; not run",
        rank: 38,
        versions: ALL_REVISIONS,
        place: "/**/value",
        fix: "Add the variable under variables.",
        spec: "server.json 2025-12-11 schema InputWithVariables",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/headers/0/value"], r#"{"remotes": [{"headers": [{"name": "Authorization", "value": "Bearer {key}", "isSecret": true}]}]}"#),
            silent(r#"{"remotes": [{"headers": [{"name": "Authorization", "value": "Bearer {key}", "variables": {"key": {"isSecret": true}}}]}]}"#),
            silent(r#"{"remotes": [{"headers": [{"name": "Authorization", "value": "Bearer {key}"}], "variables": {"key": {"isSecret": true}}}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "OPTIONS", "value": "{\"a\":1} ${HOME}"}]}]}"#),
        ],
        check: Check::Document(input_template_variable_undefined),
    }
}

fn input_template_variable_undefined(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        let Some(value) = input.node.given("value") else { return };
        let Some(text) = value.text().filter(|text| text.contains('{')) else { return };
        let own = keys(input.node.given("variables"));
        let of_remote = keys(input.remote.and_then(|remote| remote.given("variables")));
        let undefined = variables(text)
            .filter(|variable| variable.is_identifier() && !variable.is_of_a_shell())
            .find(|variable| !own.contains(variable.name) && !of_remote.contains(variable.name));
        if let Some(variable) = undefined {
            out.add(value, format!("nothing says what {} is", quote(variable.name)));
        }
    });
}

crate::rule! {
    /// An input defines a variable that its value does not use.
    ///
    /// Users are asked for a value that goes nowhere.
    static INPUT_VARIABLE_UNUSED = {
        id: "registry/input-variable-unused",
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/**/variables/*",
        fix: "Remove the variable or use it in value.",
        spec: "server.json 2025-12-11 schema InputWithVariables",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/headers/0/variables/key"], r#"{"remotes": [{"headers": [{"name": "X-Key", "value": "static", "variables": {"key": {}}}]}]}"#),
            silent(r#"{"remotes": [{"headers": [{"name": "X-Key", "value": "{key}", "variables": {"key": {"isSecret": true}}}]}]}"#),
        ],
        check: Check::Document(input_variable_unused),
    }
}

fn input_variable_unused(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        if input.role == Role::Variable {
            return;
        }
        let Some(defined) = input.node.given("variables") else { return };
        let value = filled(input.node, "value").unwrap_or_default();
        let used: HashSet<&str> = variables(value).map(|variable| variable.name).collect();
        for (key, variable) in defined.members().filter(|(key, _)| !used.contains(key)) {
            out.add(variable, format!("{} does not occur in the value", quote(key)));
        }
    });
}

crate::rule! {
    /// A fixed value makes default, choices and `isRequired` void.
    ///
    /// What has a value is not asked for.
    static INPUT_VALUE_NOT_CONFIGURABLE = {
        id: "registry/input-value-not-configurable",
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/**/value",
        fix: "Use default in place of value if users may change it.",
        spec: "server.json 2025-12-11 schema Input.value",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/0/value"], r#"{"packages": [{"environmentVariables": [{"name": "REGION", "value": "north", "choices": ["north", "south"]}]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "REGION", "value": "north"}]}]}"#),
        ],
        check: Check::Document(input_value_not_configurable),
    }
}

fn input_value_not_configurable(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        let Some(value) = input.node.given("value") else { return };
        let Some(text) = value.text().filter(|text| !text.is_empty()) else { return };
        let dead = if input.node.given("default").is_some() {
            "default"
        } else if input.node.given("choices").is_some() {
            "choices"
        } else if member(input.node, "isRequired").and_then(Node::flag) == Some(true) {
            "isRequired"
        } else {
            return;
        };
        if !has_template(text) {
            out.add(value, format!("{} is fixed, so `{dead}` has no effect", quote(text)));
        }
    });
}

crate::rule! {
    /// A secret is not published with its value.
    ///
    /// Everybody can read the registry.
    static INPUT_SECRET_STATIC = {
        id: "registry/input-secret-static",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/**/value, /**/default",
        fix: "Remove the value; let the user supply it.",
        spec: "server.json 2025-12-11 schema Input.isSecret",
        seeds: &["inspector:embedded-secrets", "gaip:SECRET_BEARING_FIELD_BLOCKED"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/0/default"], r#"{"packages": [{"environmentVariables": [{"name": "TIDE_PASS", "isSecret": true, "default": "hunter2hunter2"}]}]}"#),
            fires(
                &["/remotes/0/headers/0/value"],
                r#"{"remotes": [{"headers": [{"name": "Authorization", "isSecret": true, "value": "Bearer q7Zk29LmXv81TtRw03PbNc55"}]}]}"#,
            ),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "TIDE_PASS", "isSecret": true, "default": "<your password>"}]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "TIDE_PASS", "isSecret": true, "default": ""}]}]}"#),
        ],
        check: Check::Document(input_secret_static),
    }
}

fn input_secret_static(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        if member(input.node, "isSecret").and_then(Node::flag) != Some(true) {
            return;
        }
        for value in [input.node.given("value"), input.node.given("default")].into_iter().flatten() {
            if let Some(text) = value.text().filter(|text| !text.is_empty())
                && !has_template(text)
                && !is_placeholder(text)
            {
                // The value itself is never repeated.
                out.add(value, format!("a secret of {} characters", text.chars().count()));
            }
        }
    });
}

/// Endings of names that secrets have.
const SECRET_ENDINGS: &[&str] = &[
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "SECRET",
    "SECRET_KEY",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PRIVATE_KEY",
    "CREDENTIALS",
];

crate::rule! {
    /// What is named like a secret is marked as one.
    ///
    /// Clients hide what is typed, and keep it apart, only where `isSecret` says so.
    static INPUT_SECRET_UNMARKED = {
        id: "registry/input-secret-unmarked",
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/**/isSecret",
        fix: "Set isSecret to true.",
        spec: "hint; server.json 2025-12-11 schema Input.isSecret",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/environmentVariables/0/isSecret"], r#"{"packages": [{"environmentVariables": [{"name": "TIDE_API_KEY"}]}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "MAX_TOKENS", "format": "number"}]}]}"#),
            silent(r#"{"remotes": [{"headers": [{"name": "Authorization", "value": "Bearer {k}", "variables": {"k": {"isSecret": true}}}]}]}"#),
        ],
        check: Check::Document(input_secret_unmarked),
    }
}

fn input_secret_unmarked(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_input(document, |input| {
        let asked = is_blank(input.node, "value") || filled(input.node, "value").is_some_and(has_template);
        if !matches!(input.role, Role::Environment | Role::Header) || !asked || is_marked(input.node) {
            return;
        }
        let Some(name) = filled(input.node, "name").filter(|name| is_named_like_a_secret(name)) else { return };
        let message = format!("{} is not marked as secret", quote(name));
        match member(input.node, "isSecret") {
            Some(flag) => out.add(flag, message),
            None => out.add_missing(input.node, spelled("isSecret", context.profile.versions), message),
        };
    });
}

/// Whether an input, or a variable of its value, is marked as secret.
fn is_marked(input: Node<'_>) -> bool {
    let marked = |node: Node<'_>| member(node, "isSecret").and_then(Node::flag) == Some(true);
    marked(input) || input.given("variables").is_some_and(|map| map.members().any(|(_, node)| marked(node)))
}

fn is_named_like_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    name == "AUTHORIZATION" || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}
