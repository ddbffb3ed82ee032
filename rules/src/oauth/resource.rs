//! Protected-resource metadata: that it is an object, and that it speaks of the endpoint that led to it.

use std::borrow::Cow;

use super::{SINCE_2025_06, identifier_by_address, secure_url};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &PRM_NOT_OBJECT,
    &PRM_RESOURCE_MISSING,
    &PRM_RESOURCE_INVALID,
    &PRM_RESOURCE_QUERY,
    &PRM_RESOURCE_MISMATCH,
    &PRM_RESOURCE_BROADER,
    &PRM_RESOURCE_SLASH,
];

const ENDPOINT: &str = r#"{"endpoint": "https://tides.example.com/mcp", "found_at": "path-inserted"}"#;
const FOUND: &str = r#"{"url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp"}"#;
const ROOT: &str = r#"{"endpoint": "https://tides.example.com/mcp", "found_at": "root"}"#;

crate::rule! {
    /// Protected-resource metadata is a JSON object.
    ///
    /// Whoever was refused reads here where to get a token; from anything else the way to the authorization server is lost.
    static PRM_NOT_OBJECT = {
        id: "oauth/prm-not-object",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the authorization chain ends here; not run per SDK",
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "",
        spec: "RFC 9728 §3.2",
        fix: "Serve a JSON object.",
        seeds: &["validator:1.4.2.1"],
        examples: &[fires(&[""], "[]").whole(), silent("{}")],
        stops: Stops::Document,
        check: Check::Document(prm_not_object),
    }
}

fn prm_not_object(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if root.kind() != Type::Object {
        out.add(root, format!("the document is {}, not an object", root.kind().named()));
    }
}

crate::rule! {
    /// The metadata names the resource it speaks of.
    ///
    /// A client compares `resource` with the address it called; without it nothing shows that the document belongs to the
    /// server, and the token would be asked for without an audience.
    static PRM_RESOURCE_MISSING = {
        id: "oauth/prm-resource-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the authorization chain ends here; not run per SDK",
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/resource",
        spec: "RFC 9728 §2",
        fix: "Add resource with the endpoint's address.",
        seeds: &["validator:1.4.2.1"],
        examples: &[
            fires(&["/resource"], r#"{"resource": null}"#),
            fires(&["/resource"], r#"{"resource": ["https://tides.example.com/mcp"]}"#),
            silent("{}"),
        ],
        stops: Stops::Value,
        check: Check::Document(prm_resource_missing),
    }
}

fn prm_resource_missing(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match metadata.get("resource") {
        None => {
            out.add_missing(metadata, "resource", "there is no `resource`");
        }
        Some(resource) if resource.kind() != Type::String => {
            out.add(resource, format!("`resource` is {}, not a string", resource.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// The resource is an https URL without a fragment.
    ///
    /// It becomes the audience of the token. Clients refuse an identifier that is no absolute URL, and one over plain http
    /// invites the token to be sent in the clear.
    static PRM_RESOURCE_INVALID = {
        id: "oauth/prm-resource-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/resource",
        spec: "RFC 9728 §1.2; RFC 8707 §2",
        fix: "Give the endpoint's https URL.",
        examples: &[
            fires(&["/resource"], r#"{"resource": "tides.example.com/mcp"}"#),
            fires(&["/resource"], r##"{"resource": "https://tides.example.com/mcp#top"}"##),
            fires(&["/resource"], r#"{"resource": "http://tides.example.com/mcp"}"#),
            silent(r#"{"resource": "http://127.0.0.1:8000/mcp"}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(prm_resource_invalid),
    }
}

fn prm_resource_invalid(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(resource) = metadata.get("resource") else { return };
    let Some(text) = resource.text() else { return };
    let what = match secure_url(text) {
        Some(url) if url.fragment.is_none() => return,
        Some(_) => "has a fragment",
        None if AbsoluteUrl::http(text).is_some() => "is no https URL",
        None => "is no absolute https URL",
    };
    let occurrence = out.add(resource, format!("the resource {} {what}", quote(text)));
    if relation(text, context).is_some_and(|relation| relation != Relation::Same) {
        occurrence.impact(Impact::BreaksClients);
    }
}

crate::rule! {
    /// The resource has a query only when the endpoint has one.
    ///
    /// An identifier with a query does not equal the address that clients call, and the standard advises against it.
    static PRM_RESOURCE_QUERY = {
        id: "oauth/prm-resource-query",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/resource",
        spec: "RFC 9728 §1.2",
        fix: "Drop the query.",
        examples: &[
            fires(&["/resource"], r#"{"resource": "https://tides.example.com/mcp?v=1"}"#).given(ENDPOINT),
            silent(r#"{"resource": "https://tides.example.com/mcp?v=1"}"#)
                .given(r#"{"endpoint": "https://tides.example.com/mcp?v=1"}"#),
        ],
        check: Check::Document(prm_resource_query),
    }
}

fn prm_resource_query(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((resource, text)) = resource(metadata) else { return };
    if AbsoluteUrl::parse(text).is_none_or(|url| url.query.is_none()) {
        return;
    }
    match endpoint(context) {
        Some(endpoint) if AbsoluteUrl::parse(&endpoint).is_some_and(|url| url.query.is_some()) => {}
        Some(_) => {
            out.add(resource, format!("the resource {} has a query, the endpoint has none", quote(text)));
        }
        None => out.not_evaluated(NotEvaluated::NoOrigin),
    }
}

crate::rule! {
    /// The resource is the endpoint, or a path above it.
    ///
    /// A document that speaks of another host or path may be somebody else's: a token asked for by it would be good for a
    /// server that was never meant. Clients stop here. Where no endpoint led to the document, its well-known address names
    /// the resource; a server elsewhere may still point to it, so that is a warning.
    static PRM_RESOURCE_MISMATCH = {
        id: "oauth/prm-resource-mismatch",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        security: true,
        rank: 34,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/resource",
        spec: "RFC 9728 §3.3",
        fix: "Set resource to the endpoint URL.",
        seeds: &["validator:1.4.3.3"],
        examples: &[
            fires(&["/resource"], r#"{"resource": "https://tides.example.org/mcp"}"#).given(ENDPOINT),
            fires(&["/resource"], r#"{"resource": "https://tides.example.com/mc"}"#).given(ENDPOINT),
            fires(&["/resource"], r#"{"resource": "https://tides.example.org/mcp"}"#).given(FOUND),
            silent(r#"{"resource": "https://Tides.example.com:443/mcp"}"#).given(ENDPOINT),
            silent(r#"{"resource": "https://Tides.example.com/mcp"}"#).given(FOUND),
            silent(r#"{"resource": "https://tides.example.com/mcp"}"#)
                .given(r#"{"url": "https://tides.example.com/.well-known/oauth-protected-resource"}"#),
            silent(r#"{"resource": "https://tides.example.com/other"}"#).given(ROOT),
        ],
        check: Check::Document(prm_resource_mismatch),
    }
}

fn prm_resource_mismatch(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((resource, text)) = resource(metadata) else { return };
    let is_by_address = context.given.endpoint.is_none();
    let than = if is_by_address { "this address of its metadata" } else { "the endpoint" };
    let added = match relation(text, context) {
        Some(Relation::OtherOrigin) => {
            out.add(resource, format!("the resource {} is on another origin than {than}", quote(text)))
        }
        Some(Relation::OtherPath) if !found_at_root(context) => {
            out.add(resource, format!("the resource {} is neither that of {than} nor a path above it", quote(text)))
        }
        Some(_) => return,
        None => return out.not_evaluated(NotEvaluated::NoOrigin),
    };
    if is_by_address {
        added.severity(Severity::Warning).impact(Impact::Degrades);
    }
}

crate::rule! {
    /// The resource is the endpoint itself, not a path above it.
    ///
    /// The standard wants the two identical, since a token for a whole origin is good for every server on it. The official
    /// clients put up with a path above, others refuse. A document at the root location may name its origin.
    static PRM_RESOURCE_BROADER = {
        id: "oauth/prm-resource-broader",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        rank: 34,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/resource",
        spec: "RFC 9728 §3.3",
        fix: "Set resource to the exact endpoint URL.",
        examples: &[
            fires(&["/resource"], r#"{"resource": "https://tides.example.com"}"#).given(ENDPOINT),
            silent(r#"{"resource": "https://tides.example.com"}"#).given(ROOT),
        ],
        check: Check::Document(prm_resource_broader),
    }
}

fn prm_resource_broader(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((resource, text)) = resource(metadata) else { return };
    if context.given.endpoint.is_some() && context.given.found_at.is_none() {
        return out.not_evaluated(NotEvaluated::NoOrigin);
    }
    match relation(text, context) {
        Some(Relation::Above) if !found_at_root(context) => {
            out.add(resource, format!("the resource {} is only a path above the endpoint", quote(text)));
        }
        Some(_) => {}
        None => out.not_evaluated(NotEvaluated::NoOrigin),
    }
}

crate::rule! {
    /// Resource and endpoint agree about the trailing slash.
    ///
    /// A slash that only the resource has makes a client that compares paths refuse the server; one that only the endpoint
    /// has does no harm to those tested.
    static PRM_RESOURCE_SLASH = {
        id: "oauth/prm-resource-slash",
        severity: Severity::Warning,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 34,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/resource",
        spec: "2026-07-28 authorization, Canonical Server URI",
        fix: "Use the form without trailing slash consistently.",
        examples: &[
            fires(&["/resource"], r#"{"resource": "https://tides.example.com/mcp/"}"#).given(ENDPOINT),
            silent(r#"{"resource": "https://tides.example.com/"}"#).given(r#"{"endpoint": "https://tides.example.com"}"#),
        ],
        check: Check::Document(prm_resource_slash),
    }
}

fn prm_resource_slash(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((resource, text)) = resource(metadata) else { return };
    match relation(text, context) {
        Some(Relation::SlashOnResource) => {
            let known = context.given.endpoint.is_some();
            let other = if known { "the endpoint" } else { "the address of its metadata" };
            let found = out.add(resource, format!("the resource {} ends in a slash that {other} has not", quote(text)));
            // Which endpoint it is for is not known: nobody was seen to be refused.
            if !known {
                found.impact(Impact::Degrades);
            }
        }
        Some(Relation::SlashOnEndpoint) => {
            out.add(resource, format!("the resource {} lacks the slash that the endpoint ends in", quote(text)))
                .impact(Impact::Cosmetic);
        }
        Some(_) => {}
        None => out.not_evaluated(NotEvaluated::NoOrigin),
    }
}

/// How a resource stands to the endpoint that led to its metadata. Queries and fragments are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Same,
    /// They differ by a slash at the end of the resource.
    SlashOnResource,
    /// They differ by a slash at the end of the endpoint.
    SlashOnEndpoint,
    /// Its path is, segment by segment, the beginning of the endpoint's.
    Above,
    OtherPath,
    OtherOrigin,
}

fn resource<'d>(metadata: Node<'d>) -> Option<(Node<'d>, &'d str)> {
    let resource = metadata.get("resource")?;
    Some((resource, resource.text()?))
}

/// The endpoint that led to the document, or the resource that its well-known address is made from.
fn endpoint<'c>(context: &Context<'c>) -> Option<Cow<'c, str>> {
    match context.given.endpoint.as_deref() {
        Some(endpoint) => Some(Cow::Borrowed(endpoint)),
        None => identifier_by_address(context).map(Cow::Owned),
    }
}

/// Whether the document lies at the root location, which serves every path of its origin.
fn found_at_root(context: &Context<'_>) -> bool {
    match context.given.endpoint {
        Some(_) => context.given.found_at.as_deref() == Some("root"),
        None => endpoint(context).is_some_and(|own| AbsoluteUrl::parse(&own).is_some_and(|url| url.path.is_empty())),
    }
}

/// How a resource stands to the endpoint; `None` when no endpoint is known.
fn relation(resource: &str, context: &Context<'_>) -> Option<Relation> {
    let endpoint = endpoint(context)?;
    let endpoint = AbsoluteUrl::parse(&endpoint)?;
    let Some(resource) = AbsoluteUrl::parse(resource) else { return Some(Relation::OtherOrigin) };
    let same_origin = resource.is(endpoint.scheme)
        && resource.host.eq_ignore_ascii_case(endpoint.host)
        && resource.effective_port() == endpoint.effective_port();
    if !same_origin {
        return Some(Relation::OtherOrigin);
    }
    Some(relation_of_paths(path_or_root(resource.path), path_or_root(endpoint.path)))
}

fn path_or_root(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn relation_of_paths(resource: &str, endpoint: &str) -> Relation {
    let above = resource.strip_suffix('/').unwrap_or(resource);
    match endpoint.strip_prefix(above) {
        _ if resource == endpoint => Relation::Same,
        Some("") => Relation::SlashOnResource,
        Some("/") => Relation::SlashOnEndpoint,
        Some(below) if below.starts_with('/') => Relation::Above,
        _ => Relation::OtherPath,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_to_each_other_by_segments() {
        let cases = [
            ("/mcp", "/mcp", Relation::Same),
            ("/mcp/", "/mcp", Relation::SlashOnResource),
            ("/mcp", "/mcp/", Relation::SlashOnEndpoint),
            ("/", "/mcp", Relation::Above),
            ("/a/", "/a/b", Relation::Above),
            ("/a", "/a/b/", Relation::Above),
            ("/mc", "/mcp", Relation::OtherPath),
            ("/mcp/x", "/mcp", Relation::OtherPath),
            ("/mcp//", "/mcp", Relation::OtherPath),
        ];
        for (resource, endpoint, relation) in cases {
            assert_eq!(relation_of_paths(resource, endpoint), relation, "{resource} {endpoint}");
        }
    }
}
