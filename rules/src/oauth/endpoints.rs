//! The endpoints of an authorization server.

use super::{SERVER, SINCE_2025_03, has_code, is_lone, list, lists};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, host_is_loopback, quote};

pub(super) const RULES: &[&Rule] =
    &[&AS_AUTHORIZATION_ENDPOINT_MISSING, &AS_TOKEN_ENDPOINT_MISSING, &AS_ENDPOINT_INVALID, &AS_ENDPOINT_NOT_HTTPS];

crate::rule! {
    /// There is an authorization endpoint, unless no flow needs one.
    ///
    /// It is where a person agrees. The tested clients refuse metadata without it.
    static AS_AUTHORIZATION_ENDPOINT_MISSING = {
        id: "oauth/as-authorization-endpoint-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11, read in the released source",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 36,
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/authorization_endpoint",
        spec: "RFC 8414 §2",
        fix: "Add authorization_endpoint.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/authorization_endpoint"], r#"{"authorization_endpoint": null}"#),
            silent(
                r#"{"authorization_endpoint": null, "response_types_supported": ["none"],
                "grant_types_supported": ["client_credentials"]}"#,
            ),
            silent(r#"{"authorization_endpoint": null}"#).given(r#"{"lone": true}"#),
        ],
        check: Check::Document(as_authorization_endpoint_missing),
    }
}

fn as_authorization_endpoint_missing(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || metadata.given("authorization_endpoint").is_some() {
        return;
    }
    let needed = match metadata.get("grant_types_supported") {
        Some(grants) => lists(grants, "authorization_code") || lists(grants, "implicit"),
        None => true,
    };
    if needed {
        missing(metadata, "authorization_endpoint", out);
    }
}

crate::rule! {
    /// There is a token endpoint, unless only the implicit flow is offered.
    ///
    /// It is where a code becomes a token. The tested clients refuse metadata without it.
    static AS_TOKEN_ENDPOINT_MISSING = {
        id: "oauth/as-token-endpoint-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11, read in the released source",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 36,
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/token_endpoint",
        spec: "RFC 8414 §2",
        fix: "Add token_endpoint.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/token_endpoint"], r#"{"token_endpoint": null}"#),
            silent(r#"{"token_endpoint": null}"#).given(r#"{"lone": true}"#),
            fires(
                &["/token_endpoint"],
                r#"{"token_endpoint": null, "response_types_supported": ["code id_token", "code"]}"#,
            ),
        ],
        check: Check::Document(as_token_endpoint_missing),
    }
}

fn as_token_endpoint_missing(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || metadata.given("token_endpoint").is_some() {
        return;
    }
    if !is_implicit_only(metadata) {
        missing(metadata, "token_endpoint", out);
    }
}

/// Whether tokens come from the authorization endpoint alone: by the grants, or where none are listed by response types
/// of which none has a code in it.
fn is_implicit_only(metadata: Node<'_>) -> bool {
    let filled = |name| list(metadata, name).filter(|list| !list.is_empty());
    match filled("grant_types_supported") {
        Some(grants) => grants.items().all(|grant| grant.text() == Some("implicit")),
        None => filled("response_types_supported").is_some_and(|types| !types.items().any(has_code)),
    }
}

fn missing(metadata: Node<'_>, name: &str, out: &mut Occurrences) {
    match metadata.get(name) {
        Some(null) => out.add(null, format!("`{name}` is null")),
        None => out.add_missing(metadata, name, format!("there is no `{name}`")),
    };
}

crate::rule! {
    /// Every endpoint is an absolute URL without a fragment.
    ///
    /// Nothing says what a relative one would be relative to, and what stands behind a hash is never sent.
    static AS_ENDPOINT_INVALID = {
        id: "oauth/as-endpoint-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/*_endpoint | /jwks_uri",
        spec: "RFC 8414 §2",
        fix: "Use absolute URLs.",
        examples: &[
            fires(&["/token_endpoint"], r#"{"token_endpoint": "/token"}"#),
            fires(&["/jwks_uri"], r#"{"jwks_uri": 7}"#),
            fires(&["/revocation_endpoint"], r##"{"revocation_endpoint": "https://login.tides.example.com/#r"}"##),
            silent(r#"{"token_endpoint": "https://login.tides.example.com/token?tenant=1"}"#),
        ],
        stops: Stops::Value,
        yields_to: &["oauth/as-authorization-endpoint-missing", "oauth/as-token-endpoint-missing"],
        check: Check::Document(as_endpoint_invalid),
    }
}

fn as_endpoint_invalid(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (name, endpoint) in endpoints(metadata) {
        match endpoint.text().map(AbsoluteUrl::parse) {
            Some(Some(url)) if url.fragment.is_none() => {}
            Some(Some(_)) => {
                out.add(endpoint, format!("{} has a fragment", quote(endpoint.text().unwrap_or_default())));
            }
            Some(None) => {
                out.add(endpoint, format!("{} is no absolute URL", quote(endpoint.text().unwrap_or_default())));
            }
            None if endpoint.kind() != Type::String => {
                out.add(endpoint, format!("{} is {}, not a string", quote(name), endpoint.kind().named()));
            }
            None => {}
        }
    }
}

crate::rule! {
    /// Every endpoint is reached over https.
    ///
    /// Codes, tokens and client secrets pass through them. A server on this machine may do without.
    static AS_ENDPOINT_NOT_HTTPS = {
        id: "oauth/as-endpoint-not-https",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/*_endpoint | /jwks_uri",
        spec: "2026-07-28 authorization security, Communication Security",
        fix: "Use https.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(
                &["/registration_endpoint"],
                r#"{"registration_endpoint": "http://login.tides.example.com/register"}"#,
            ),
            silent(r#"{"registration_endpoint": "http://localhost:9000/register"}"#).given(r#"{"served_from": "http://localhost:9000"}"#),
        ],
        check: Check::Document(as_endpoint_not_https),
    }
}

fn as_endpoint_not_https(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, endpoint) in endpoints(metadata) {
        let Some(text) = endpoint.text() else { continue };
        if AbsoluteUrl::parse(text).is_some_and(|url| url.is("http") && !host_is_loopback(url.host)) {
            out.add(endpoint, format!("{} is reached over plain http", quote(text)));
        }
    }
}

fn endpoints<'d>(metadata: Node<'d>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    metadata.members().filter(|(name, _)| name.ends_with("_endpoint") || *name == "jwks_uri")
}
