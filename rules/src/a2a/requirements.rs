//! Security requirements: which schemes a caller needs, and with which scopes.

use std::collections::{HashMap, HashSet};

use super::names::{has_in_snake_case, is_near};
use super::required::skills;
use super::schemes::offered_scopes;
use super::table::SINCE_0_2;
use super::versions::ignored_security;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &SECURITY_REQUIREMENT_MISSING,
    &REQUIREMENT_UNDEFINED_SCHEME,
    &REQUIREMENT_SHAPE,
    &REQUIREMENT_SCOPES_ARRAY,
    &REQUIREMENT_EMPTY,
    &REQUIREMENT_SCOPE_UNDECLARED,
    &SCHEME_UNUSED,
];

/// The declared security schemes by name.
pub(super) fn declared(card: Node<'_>) -> HashMap<&str, Node<'_>> {
    card.get("securitySchemes").into_iter().flat_map(Node::members).collect()
}

/// The requirement lists that the judged releases read, of the card and of its skills.
fn lists<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, Shape)> {
    let shapes = shapes(context);
    std::iter::once(card).chain(skills(card)).flat_map(move |place| {
        shapes.into_iter().flatten().filter_map(move |shape| Some((place.given(shape.member())?, shape)))
    })
}

/// The two shapes of a requirement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Since 1.0: `{"schemes": {"name": {"list": ["scope"]}}}`.
    Wrapped,
    /// Before: `{"name": ["scope"]}`.
    Flat,
}

impl Shape {
    fn member(self) -> &'static str {
        match self {
            Shape::Wrapped => "securityRequirements",
            Shape::Flat => "security",
        }
    }
}

fn shapes(context: &Context<'_>) -> [Option<Shape>; 2] {
    let before = context.profile.has("0.2") || context.profile.has("0.3");
    [context.profile.has("1.0").then_some(Shape::Wrapped), before.then_some(Shape::Flat)]
}

/// The requirements that are objects.
fn requirements<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, Shape)> {
    lists(card, context)
        .flat_map(|(list, shape)| list.items().map(move |item| (item, shape)))
        .filter(|(item, _)| item.kind() == Type::Object)
}

/// The schemes that a requirement names, with their scopes as written.
fn named(requirement: Node<'_>, shape: Shape) -> impl Iterator<Item = (&str, Node<'_>)> {
    let schemes = match shape {
        Shape::Wrapped => requirement.get("schemes"),
        Shape::Flat => Some(requirement),
    };
    schemes.into_iter().flat_map(Node::members)
}

/// The scopes under a scheme's name: the items of `list` since 1.0, of the array itself before. A bare array in 1.0 is
/// read as that list.
fn scopes(value: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let list = if value.kind() == Type::Object { value.get("list") } else { Some(value) };
    list.into_iter().flat_map(Node::items)
}

crate::rule! {
    /// Schemes are declared and none is demanded.
    ///
    /// A client cannot tell whether it has to authenticate.
    static SECURITY_REQUIREMENT_MISSING = {
        id: "a2a/security-requirement-missing",
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securityRequirements, /security",
        fix: "Add `securityRequirements` (1.0) or `security` (0.3).",
        spec: "A2A 1.0 §4.4.1",
        seeds: &["gaip:A2A_SECURITY_REQUIREMENT_MISSING"],
        examples: &[
            fires(&["/securityRequirements"], r#"{"securityRequirements": null}"#),
            fires(&["/security"], r#"{"security": []}"#).over("a2a-0.3"),
            silent(
                r#"{"securityRequirements": null, "skills": [{"securityRequirements": [{"schemes": {"key": {}}}]}]}"#,
            ),
        ],
        check: Check::Document(security_requirement_missing),
    }
}

fn security_requirement_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let schemes = card.given("securitySchemes").is_some_and(|schemes| schemes.len().is_some_and(|len| len > 0));
    let demanded = lists(card, context).any(|(list, _)| !list.is_empty());
    let ignored =
        context.profile.has("1.0") && std::iter::once(card).chain(skills(card)).any(|p| ignored_security(p).is_some());
    let in_snake_case = has_in_snake_case(card, "securityRequirements");
    if schemes && !demanded && !ignored && !in_snake_case {
        let member = shapes(context).into_iter().flatten().next().map_or("security", Shape::member);
        out.add_missing(card, member, "no requirement names a declared scheme");
    }
}

crate::rule! {
    /// A requirement names declared schemes.
    ///
    /// A name that stands nowhere asks for something a client cannot know, so it is passed over or the call fails.
    static REQUIREMENT_UNDEFINED_SCHEME = {
        id: "a2a/requirement-undefined-scheme",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        security: true,
        rank: 17,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securityRequirements/*/schemes/*, /security/*/*, /skills/*/securityRequirements/*/schemes/*, \
            /skills/*/security/*/*",
        fix: "Define the scheme or correct the name.",
        spec: "A2A 1.0 §4.5.1",
        seeds: &["reader:Requirement names an undefined scheme", "gaip:A2A_SECURITY_SCHEME_UNDEFINED"],
        examples: &[
            fires(
                &["/securityRequirements/1/schemes/Key"],
                r#"{"securityRequirements": [{"schemes": {"key": {}}}, {"schemes": {"key": null, "Key": {}}}]}"#,
            ),
            fires(&["/skills/0/security/0/badge"], r#"{"skills": [{"security": [{"badge": []}]}]}"#).over("a2a-0.3"),
            silent(r#"{"skills": [{"security": [{"key": []}]}]}"#).over("a2a-0.3"),
        ],
        check: Check::Document(requirement_undefined_scheme),
    }
}

fn requirement_undefined_scheme(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let mut requirements = requirements(card, context).peekable();
    let unreadable = card.given("securitySchemes").is_some_and(|schemes| schemes.len().is_none());
    if requirements.peek().is_none() || unreadable || has_in_snake_case(card, "securitySchemes") {
        return;
    }
    let declared = declared(card);
    for (name, value) in requirements.flat_map(|(requirement, shape)| named(requirement, shape)) {
        if !declared.contains_key(name) {
            out.add(value, format!("no scheme {} is declared", quote(name)));
        }
    }
}

crate::rule! {
    /// A requirement of 1.0 has the shape of 1.0.
    ///
    /// In the older shape SDKs of 1.0 read an empty requirement, which means that nobody has to authenticate.
    static REQUIREMENT_SHAPE = {
        id: "a2a/requirement-shape",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: limits (1.0)", "@a2a-js/sdk 1.3.0: limits (1.0)"],
        security: true,
        rank: 17,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/securityRequirements/*, /securityRequirements/*/schemes/*, /securityRequirements/*/schemes/*/list, \
            /skills/*/securityRequirements/*, /skills/*/securityRequirements/*/schemes/*, \
            /skills/*/securityRequirements/*/schemes/*/list",
        fix: "Write {\"schemes\": {\"name\": {\"list\": []}}}.",
        spec: "A2A 1.0 §4.4.1, §4.5; proto SecurityRequirement, StringList",
        seeds: &["gaip:A2A_SECURITY_REQUIREMENTS_INVALID"],
        examples: &[
            fires(&["/securityRequirements/0"], r#"{"securityRequirements": [{"schemes": null, "key": []}]}"#),
            fires(
                &["/securityRequirements/0/schemes/key/list"],
                r#"{"securityRequirements": [{"schemes": {"key": {"list": "read"}}}]}"#,
            ),
            fires(&["/securityRequirements/0/schemes/key"], r#"{"securityRequirements": [{"schemes": {"key": "read"}}]}"#),
            silent(r#"{"securityRequirements": [{"schemes": {"key": {"list": ["read"]}}}]}"#),
            silent(r#"{"securityRequirements": [{"schemes": {"key": {"list": null}}}]}"#),
        ],
        check: Check::Document(requirement_shape),
    }
}

fn requirement_shape(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let mut requirements = requirements(card, context).filter(|(_, shape)| *shape == Shape::Wrapped).peekable();
    if requirements.peek().is_none() {
        return;
    }
    let declared = declared(card);
    for (requirement, shape) in requirements {
        if let Some((name, _)) = requirement.members().find(|(key, _)| is_flat_member(requirement, key, &declared)) {
            out.add(requirement, format!("{} stands where `schemes` was due", quote(name)));
        }
        for (name, value) in named(requirement, shape) {
            report_misshapen(name, value, out);
        }
    }
}

/// Whether a member of a 1.0 requirement is a scheme's name in the older shape.
pub(super) fn is_flat_member(requirement: Node<'_>, key: &str, declared: &HashMap<&str, Node<'_>>) -> bool {
    if key == "schemes" {
        return false;
    }
    declared.contains_key(key) || (requirement.get("schemes").is_none() && !is_near(key, "schemes"))
}

fn report_misshapen(name: &str, value: Node<'_>, out: &mut Occurrences) {
    match value.kind() {
        Type::Array => {}
        Type::Object => {
            if let Some(list) = value.given("list")
                && !(list.kind() == Type::Array && list.items().all(|scope| scope.kind() == Type::String))
            {
                out.add(list, format!("the scopes of {} are no array of strings", quote(name)));
            }
        }
        Type::Null | Type::Bool | Type::Number | Type::String => {
            out.add(value, format!("the scopes of {} are {}", quote(name), value.kind().named()));
        }
    }
}

crate::rule! {
    /// Scopes of 1.0 stand in a `list`.
    ///
    /// A bare array is what the Go SDK writes; the Python and JavaScript SDKs lose the scopes.
    static REQUIREMENT_SCOPES_ARRAY = {
        id: "a2a/requirement-scopes-array",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: limits (1.0)", "@a2a-js/sdk 1.3.0: limits (1.0)"],
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/securityRequirements/*/schemes/*, /skills/*/securityRequirements/*/schemes/*",
        fix: "Write {\"list\": [\"scope\"]}.",
        spec: "A2A 1.0 §5.5, ADR-001; proto StringList",
        seeds: &["gaip:A2A_SECURITY_REQUIREMENTS_INVALID"],
        examples: &[
            fires(&["/securityRequirements/0/schemes/key"], r#"{"securityRequirements": [{"schemes": {"key": ["read"]}}]}"#),
            silent(r#"{"securityRequirements": [{"schemes": {"key": {"list": []}}}]}"#),
        ],
        check: Check::Document(requirement_scopes_array),
    }
}

fn requirement_scopes_array(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (requirement, shape) in requirements(card, context).filter(|(_, shape)| *shape == Shape::Wrapped) {
        for (name, value) in named(requirement, shape).filter(|(_, value)| value.kind() == Type::Array) {
            out.add(value, format!("the scopes of {} are a bare array", quote(name)));
        }
    }
}

crate::rule! {
    /// A requirement names no scheme.
    ///
    /// By the meaning it has in OpenAPI that lets anonymous callers in.
    static REQUIREMENT_EMPTY = {
        id: "a2a/requirement-empty",
        security: true,
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securityRequirements/*, /security/*",
        fix: "Remove it if authentication is mandatory.",
        spec: "A2A 1.0 §4.5; OpenAPI 3.2 Security Requirement Object",
        examples: &[
            fires(
                &["/securityRequirements/1"],
                r#"{"securityRequirements": [{"schemes": {"key": {}}}, {"schemes": {"key": null}}]}"#,
            ),
            fires(&["/security/1"], r#"{"security": [{"key": []}, {"key": null}]}"#).over("a2a-0.3"),
            silent(r#"{"securityRequirements": [{"schemes": {"key": {}}}]}"#),
        ],
        check: Check::Document(requirement_empty),
    }
}

fn requirement_empty(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for shape in shapes(context).into_iter().flatten() {
        let list = card.given(shape.member());
        for requirement in list.into_iter().flat_map(Node::items).filter(|item| item.kind() == Type::Object) {
            let only_empty_schemes = || {
                shape == Shape::Wrapped
                    && requirement
                        .members()
                        .all(|(key, value)| key == "schemes" && (value.is_null() || value.is_empty()))
            };
            if requirement.is_empty() || (requirement.len().is_some() && only_empty_schemes()) {
                out.add(requirement, "names no scheme, which lets anonymous callers in");
            }
        }
    }
}

crate::rule! {
    /// A requirement asks for declared scopes.
    ///
    /// A scope that no flow of the scheme offers cannot be asked for.
    static REQUIREMENT_SCOPE_UNDECLARED = {
        id: "a2a/requirement-scope-undeclared",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securityRequirements/*/schemes/*/list/*, /security/*/*/*",
        fix: "Declare the scope in the flow or correct its name.",
        spec: "OpenAPI 3.2 Security Requirement Object",
        examples: &[
            fires(
                &["/securityRequirements/0/schemes/key/list/1"],
                r#"{"securityRequirements": [{"schemes": {"key": {"list": ["read", "write"]}}}],
                    "securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows":
                        {"clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {"read": ""}}}}}}}"#,
            ),
            silent(
                r#"{"securityRequirements": [{"schemes": {"key": {"list": ["write"]}}}],
                    "securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows":
                        {"clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
        ],
        check: Check::Document(requirement_scope_undeclared),
    }
}

fn requirement_scope_undeclared(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let declared = declared(card);
    let mut offered = HashMap::new();
    for shape in shapes(context).into_iter().flatten() {
        let list = card.given(shape.member()).into_iter().flat_map(Node::items);
        for (name, value) in list.flat_map(|requirement| named(requirement, shape)) {
            for (scope, text) in scopes(value).filter_map(|scope| Some((scope, scope.text()?))) {
                let offered = offered
                    .entry(name)
                    .or_insert_with(|| declared.get(name).map(|scheme| offered_scopes(*scheme)).unwrap_or_default());
                if !offered.is_empty() && !offered.contains(text) {
                    out.add(scope, format!("no flow of {} has the scope {}", quote(name), quote(text)));
                }
            }
        }
    }
}

crate::rule! {
    /// A declared scheme is not demanded anywhere.
    ///
    /// Others are, so a reader wonders whether this one is a left-over.
    static SCHEME_UNUSED = {
        id: "a2a/scheme-unused",
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*",
        fix: "Reference the scheme or remove it.",
        spec: "not in A2A",
        examples: &[
            fires(
                &["/securitySchemes/spare"],
                r#"{"securitySchemes": {"spare": {"httpAuthSecurityScheme": {"scheme": "Basic"}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"spare": {"httpAuthSecurityScheme": {"scheme": "Basic"}}},
                    "skills": [{"securityRequirements": [{"schemes": {"spare": {}}}]}]}"#,
            ),
        ],
        check: Check::Document(scheme_unused),
    }
}

fn scheme_unused(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let all: Vec<_> = requirements(card, context).collect();
    let declared = declared(card);
    let misshapen = |(requirement, shape): &(Node<'_>, Shape)| {
        *shape == Shape::Wrapped && requirement.members().any(|(key, _)| is_flat_member(*requirement, key, &declared))
    };
    if all.is_empty() || all.iter().any(misshapen) {
        return;
    }
    let used: HashSet<_> =
        all.iter().flat_map(|(requirement, shape)| named(*requirement, *shape)).map(|(name, _)| name).collect();
    for (name, scheme) in card.get("securitySchemes").into_iter().flat_map(Node::members) {
        if !used.contains(name) {
            out.add(scheme, format!("no requirement names {}", quote(name)));
        }
    }
}
