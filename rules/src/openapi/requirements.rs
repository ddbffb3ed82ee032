//! Security requirements: what a caller has to show.

use std::collections::{HashMap, HashSet};

use super::parts::operations;
use super::reference::References;
use super::{OPENAPI, V3, is_3_0, object};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{is_absolute_uri, quote};

pub(super) const RULES: &[&Rule] =
    &[&SECURITY_NOT_DECLARED, &SECURITY_REQUIREMENTS_INVALID, &SECURITY_SCHEME_UNDEFINED, &SECURITY_SCOPE_UNDEFINED];

crate::rule! {
    /// The document says nothing about credentials.
    ///
    /// Callers take it for an open interface. An empty `security` at the top says so in as many words.
    static SECURITY_NOT_DECLARED = {
        id: "openapi/security-not-declared",
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/components/securitySchemes",
        spec: "OpenAPI 3.1.1 Security Scheme Object",
        fix: "Declare schemes, or security: [] for an open API.",
        seeds: &["gaip:OPENAPI_SECURITY_NOT_DECLARED"],
        examples: &[
            fires(
                &["/components/securitySchemes"],
                r#"{"security": null, "components": {"securitySchemes": null}}"#,
            ),
            silent(r#"{"security": [], "components": {"securitySchemes": null}}"#),
        ],
        check: Check::Document(security_not_declared),
    }
}

fn security_not_declared(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let components = object(root, "components");
    let schemes = components.and_then(|components| components.get("securitySchemes"));
    let says_something = |node: Node<'_>| node.get("security").is_some_and(|security| !security.is_empty());
    if schemes.is_some_and(|schemes| !schemes.is_empty())
        || root.get("security").is_some()
        || operations(root).any(|operation| says_something(operation.node))
    {
        return;
    }
    let message = "neither security schemes nor requirements are declared";
    match (components, schemes) {
        (_, Some(schemes)) => out.add(schemes, message),
        (Some(components), None) => out.add_missing(components, "securitySchemes", message),
        (None, None) => out.add_at("/components/securitySchemes", message),
    };
}

/// The requirements at the top and of the operations, as far as they are there.
fn requirements<'d>(root: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    let of_operations = operations(root).filter_map(|operation| operation.node.get("security"));
    root.get("security").into_iter().chain(of_operations)
}

/// Every scheme that is asked for: the member that names it.
fn demands<'d>(root: Node<'d>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    requirements(root).flat_map(Node::items).flat_map(Node::members)
}

crate::rule! {
    /// Requirements are a list of objects, with a list of scopes for every scheme.
    ///
    /// In any other form a reader finds no requirement, or an open interface.
    static SECURITY_REQUIREMENTS_INVALID = {
        id: "openapi/security-requirements-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/security | /security/* | /security/*/* | /paths/*/*/security/**",
        spec: "OpenAPI 3.1.1 Security Requirement Object",
        fix: "Write [{\"scheme\": []}].",
        seeds: &["gaip:OPENAPI_SECURITY_REQUIREMENTS_INVALID"],
        examples: &[
            fires(&["/security"], r#"{"security": {"key": []}}"#),
            fires(&["/security/0"], r#"{"security": ["key"]}"#),
            fires(&["/paths/~1tides/get/security/0/key"], r#"{"paths": {"/tides": {"get": {"security": [{"key": ""}]}}}}"#),
            fires(&["/security/0/key/0"], r#"{"security": [{"key": [1]}]}"#),
            silent(r#"{"security": [{"key": []}, {}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(security_requirements_invalid),
    }
}

fn security_requirements_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for security in requirements(root) {
        expect(security, Type::Array, "`security`", out);
        for alternative in security.items() {
            expect(alternative, Type::Object, "a requirement", out);
            for (_, scopes) in alternative.members() {
                expect(scopes, Type::Array, "the list of scopes", out);
                scopes.items().for_each(|scope| expect(scope, Type::String, "a scope", out));
            }
        }
    }
}

fn expect(node: Node<'_>, kind: Type, what: &str, out: &mut Occurrences) {
    if node.kind() != kind {
        out.add(node, format!("{what} is {}, not {}", node.kind().named(), kind.named()));
    }
}

crate::rule! {
    /// Every scheme that is asked for is defined.
    ///
    /// A caller is told to show something and not what.
    static SECURITY_SCHEME_UNDEFINED = {
        id: "openapi/security-scheme-undefined",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V3,
        on: OPENAPI,
        place: "/security/*/* | /paths/*/*/security/*/*",
        spec: "OpenAPI 3.1.1 Security Requirement Object",
        fix: "Define the scheme.",
        seeds: &["gaip:OPENAPI_SECURITY_SCHEME_UNDEFINED"],
        examples: &[
            fires(&["/security/0/oauth"], r#"{"security": [{"key": null, "oauth": ["read"]}]}"#),
            fires(
                &["/paths/~1tides/get/security/0/Key"],
                r#"{"paths": {"/tides": {"get": {"security": [{"Key": []}]}}}}"#,
            ),
            silent(r#"{"paths": {"/tides": {"get": {"security": []}}}}"#),
        ],
        check: Check::Document(security_scheme_undefined),
    }
}

fn security_scheme_undefined(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let defined: HashSet<&str> = schemes(root).map(|(name, _)| name).collect();
    for (name, demand) in demands(root) {
        let is_address = !is_3_0(context) && is_absolute_uri(name);
        if !defined.contains(name) && !is_address {
            out.add(demand, format!("the scheme {} is not defined", quote(name)));
        }
    }
}

fn schemes<'d>(root: Node<'d>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    let components = object(root, "components").and_then(|components| object(components, "securitySchemes"));
    components.into_iter().flat_map(Node::members)
}

crate::rule! {
    /// Every scope that is asked for is one of the scheme's flows.
    ///
    /// The authorization server may not know it, and a caller that asks for it gets no token at all.
    static SECURITY_SCOPE_UNDEFINED = {
        id: "openapi/security-scope-undefined",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/security/*/*/* | /paths/*/*/security/*/*/*",
        spec: "Redocly security-scopes-defined",
        fix: "Declare the scope in a flow.",
        examples: &[
            fires(
                &["/security/0/login/0"],
                r#"{"security": [{"key": null, "login": ["write"]}],
                "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"clientCredentials":
                {"tokenUrl": "https://id.tides.plumbtest.dev/token", "scopes": {"read": "Read"}}}}}}}"#,
            ),
            silent(
                r#"{"security": [{"key": null, "login": ["read"]}],
                "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"clientCredentials":
                {"tokenUrl": "https://id.tides.plumbtest.dev/token", "scopes": {"read": "Read"}}}}}}}"#,
            ),
            silent(
                r#"{"security": [{"key": null, "login": ["anything"]}],
                "components": {"securitySchemes": {"login": {"type": "openIdConnect",
                "openIdConnectUrl": "https://id.tides.plumbtest.dev/.well-known/openid-configuration"}}}}"#,
            ),
        ],
        check: Check::Document(security_scope_undefined),
    }
}

fn security_scope_undefined(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut references = References::of(root);
    let known: HashMap<&str, HashSet<&str>> =
        schemes(root).filter_map(|(name, scheme)| Some((name, scopes_of(references.followed(scheme)?)?))).collect();
    if known.is_empty() {
        return;
    }
    for (name, demand) in demands(root) {
        let Some(scopes) = known.get(name) else { continue };
        for scope in demand.items() {
            if let Some(text) = scope.text().filter(|text| !scopes.contains(text)) {
                out.add(scope, format!("no flow of {} lists the scope {}", quote(name), quote(text)));
            }
        }
    }
}

/// The scopes that the flows of an OAuth scheme list; `None` for other schemes, and where no flow lists any.
fn scopes_of<'d>(scheme: Node<'d>) -> Option<HashSet<&'d str>> {
    if scheme.get("type")?.text() != Some("oauth2") {
        return None;
    }
    let lists: Vec<_> = object(scheme, "flows")?.members().filter_map(|(_, flow)| object(flow, "scopes")).collect();
    (!lists.is_empty()).then(|| lists.into_iter().flat_map(Node::members).map(|(scope, _)| scope).collect())
}
