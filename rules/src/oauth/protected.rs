//! Protected-resource metadata: the issuers, token methods, scopes and keys it lists.

use super::{SINCE_2025_06, list, lists, secure_url};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &PRM_AUTHORIZATION_SERVERS_MISSING,
    &PRM_AUTHORIZATION_SERVER_INVALID,
    &PRM_AUTHORIZATION_SERVERS_MANY,
    &PRM_BEARER_QUERY,
    &PRM_BEARER_NO_HEADER,
    &PRM_SCOPES_TYPE,
    &PRM_SCOPES_MISSING,
    &PRM_OFFLINE_ACCESS,
    &PRM_JWKS_URI,
];

crate::rule! {
    /// The metadata lists at least one authorization server.
    ///
    /// It is what the document is for: a client that finds none has nowhere to ask for a token.
    static PRM_AUTHORIZATION_SERVERS_MISSING = {
        id: "oauth/prm-authorization-servers-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, 2026-11",
        clients: &["mcp 1.30.0: refuses"],
        rank: 35,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/authorization_servers",
        spec: "2026-07-28 authorization discovery",
        fix: "List at least one issuer.",
        seeds: &["validator:1.4.2.1", "inspector:authorization_servers"],
        examples: &[
            fires(&["/authorization_servers"], r#"{"authorization_servers": null}"#),
            fires(&["/authorization_servers"], r#"{"authorization_servers": []}"#),
            fires(&["/authorization_servers"], r#"{"authorization_servers": "https://login.tides.example.com"}"#),
            silent("{}"),
        ],
        stops: Stops::Value,
        check: Check::Document(prm_authorization_servers_missing),
    }
}

fn prm_authorization_servers_missing(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match metadata.get("authorization_servers") {
        None => {
            out.add_missing(metadata, "authorization_servers", "no authorization server is listed");
        }
        Some(servers) if servers.kind() != Type::Array => {
            out.add(servers, format!("`authorization_servers` is {}, not an array", servers.kind().named()));
        }
        Some(servers) if servers.is_empty() => {
            out.add(servers, "the list of authorization servers is empty");
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// Every authorization server is named by its issuer, an https URL without query and fragment.
    ///
    /// The client builds the address of the server's metadata from it, by putting the well-known part in; from a metadata
    /// address it would build a wrong one.
    static PRM_AUTHORIZATION_SERVER_INVALID = {
        id: "oauth/prm-authorization-server-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/authorization_servers/*",
        spec: "RFC 9728 §2; RFC 8414 §2",
        fix: "List issuer identifiers.",
        seeds: &["inspector:authorization_servers"],
        examples: &[
            fires(&["/authorization_servers/0"], r#"{"authorization_servers": ["http://login.tides.example.com"]}"#),
            fires(
                &["/authorization_servers/0"],
                r#"{"authorization_servers": ["https://tides.example.com/.well-known/openid-configuration"]}"#,
            ),
            fires(&["/authorization_servers/1"], r#"{"authorization_servers": ["https://a.example.com", 7]}"#),
            silent(r#"{"authorization_servers": ["https://login.tides.example.com:8443/t/1"]}"#),
            silent(r#"{"authorization_servers": ["http://localhost:9000"]}"#).given(r#"{"served_from": "http://localhost:9000"}"#),
        ],
        check: Check::Each(&["/authorization_servers/*"], prm_authorization_server_invalid),
    }
}

fn prm_authorization_server_invalid(server: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if server.kind() != Type::String {
        out.add(server, format!("an authorization server is {}, not a string", server.kind().named()));
        return;
    }
    let Some(text) = server.text() else { return };
    if let Some(what) = fault_of_issuer(text) {
        out.add(server, format!("{} {what}", quote(text)));
    }
}

/// Why a text cannot be the identifier of an authorization server.
pub(super) fn fault_of_issuer(text: &str) -> Option<&'static str> {
    match secure_url(text) {
        None => Some("is no absolute https URL"),
        Some(url) if url.query.is_some() => Some("has a query"),
        Some(url) if url.fragment.is_some() => Some("has a fragment"),
        Some(url) if url.path.contains("/.well-known/") => Some("is the address of metadata, not an issuer"),
        Some(_) => None,
    }
}

crate::rule! {
    /// The metadata lists more than one authorization server.
    ///
    /// Each is looked at. Which one a client takes is left to it.
    static PRM_AUTHORIZATION_SERVERS_MANY = {
        id: "oauth/prm-authorization-servers-many",
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/authorization_servers",
        spec: "2026-07-28 authorization discovery",
        fix: "None needed.",
        seeds: &["inspector:authorization_servers"],
        examples: &[
            fires(
                &["/authorization_servers"],
                r#"{"authorization_servers": ["https://login.tides.example.com", "https://login.example.org"]}"#,
            ),
            silent("{}"),
        ],
        check: Check::Document(prm_authorization_servers_many),
    }
}

fn prm_authorization_servers_many(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(servers) = list(metadata, "authorization_servers") else { return };
    if let Some(count @ 2..) = servers.len() {
        out.add(servers, format!("{count} authorization servers are listed"));
    }
}

crate::rule! {
    /// Tokens are not taken in the query.
    ///
    /// Addresses end in logs, histories and referrers, and the token in them with it; MCP forbids it.
    static PRM_BEARER_QUERY = {
        id: "oauth/prm-bearer-query",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/bearer_methods_supported/*",
        spec: "2026-07-28 authorization, Token Requirements",
        fix: "Remove query.",
        seeds: &["validator:1.4.3.2"],
        examples: &[
            fires(&["/bearer_methods_supported/1"], r#"{"bearer_methods_supported": ["header", "query"]}"#),
            silent(r#"{"bearer_methods_supported": ["header", "body"]}"#),
        ],
        check: Check::Each(&["/bearer_methods_supported/*"], prm_bearer_query),
    }
}

fn prm_bearer_query(method: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if method.text() == Some("query") {
        out.add(method, "tokens are taken in the query");
    }
}

crate::rule! {
    /// Tokens are taken in the header.
    ///
    /// MCP clients send the token in the `Authorization` header and nowhere else.
    static PRM_BEARER_NO_HEADER = {
        id: "oauth/prm-bearer-no-header",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/bearer_methods_supported",
        spec: "RFC 9728 §2; 2026-07-28 authorization, Token Requirements",
        fix: "Add header.",
        seeds: &["validator:1.4.3.1"],
        examples: &[
            fires(&["/bearer_methods_supported"], r#"{"bearer_methods_supported": ["body"]}"#),
            silent(r#"{"bearer_methods_supported": null}"#),
            silent(r#"{"bearer_methods_supported": []}"#),
        ],
        check: Check::Document(prm_bearer_no_header),
    }
}

fn prm_bearer_no_header(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(methods) = list(metadata, "bearer_methods_supported") else { return };
    if !methods.is_empty() && !lists(methods, "header") {
        out.add(methods, "`header` is not among the ways a token can be sent");
    }
}

crate::rule! {
    /// The scopes are a list of scope tokens.
    ///
    /// A client joins them by spaces into its request; a single string, or a token with a space in it, becomes another
    /// request than was meant.
    static PRM_SCOPES_TYPE = {
        id: "oauth/prm-scopes-type",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/scopes_supported | /scopes_supported/*",
        spec: "RFC 9728 §2",
        fix: "Use an array of strings.",
        examples: &[
            fires(&["/scopes_supported"], r#"{"scopes_supported": "tides:read"}"#),
            fires(&["/scopes_supported/0"], r#"{"scopes_supported": ["tides read"]}"#),
            silent(r#"{"scopes_supported": null}"#),
            silent(r#"{"scopes_supported": ["https://tides.example.com/read", "a/b+c"]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(prm_scopes_type),
    }
}

fn prm_scopes_type(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(scopes) = metadata.get("scopes_supported") else { return };
    if scopes.kind() != Type::Array {
        out.add(scopes, format!("`scopes_supported` is {}, not an array", scopes.kind().named()));
    }
    for scope in scopes.items() {
        match scope.text() {
            Some(text) if is_scope_token(text) => {}
            Some(text) => {
                out.add(scope, format!("{} is no scope token", quote(text)));
            }
            None => {
                out.add(scope, format!("a scope is {}, not a string", scope.kind().named()));
            }
        }
    }
}

/// One or more printable characters but space, `"` and `\` (RFC 6749 §3.3).
fn is_scope_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

crate::rule! {
    /// Nobody says which scopes there are.
    ///
    /// Neither the metadata nor the challenge lists any, so a client asks without and gets what the server thinks fit.
    static PRM_SCOPES_MISSING = {
        id: "oauth/prm-scopes-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/scopes_supported",
        spec: "RFC 9728 §2",
        fix: "List the minimal scopes.",
        examples: &[
            fires(&["/scopes_supported"], r#"{"scopes_supported": null}"#),
            silent(r#"{"scopes_supported": null}"#).given(r#"{"challenge_scope": "tides:read"}"#),
        ],
        check: Check::Document(prm_scopes_missing),
    }
}

fn prm_scopes_missing(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if metadata.given("scopes_supported").is_none() && context.given.challenge_scope.is_none() {
        out.add_missing(metadata, "scopes_supported", "neither metadata nor challenge names scopes");
    }
}

crate::rule! {
    /// The resource does not ask for offline access.
    ///
    /// Whether a client wants refresh tokens is between it and the authorization server; a resource that lists
    /// `offline_access` makes every client ask for them.
    static PRM_OFFLINE_ACCESS = {
        id: "oauth/prm-offline-access",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["2026-07-28"],
        on: &[Kind::OauthProtectedResource],
        place: "/scopes_supported/*",
        spec: "2026-07-28 authorization, Refresh Tokens; SEP-2207",
        fix: "Drop it.",
        examples: &[
            fires(&["/scopes_supported/1"], r#"{"scopes_supported": ["tides:read", "offline_access"]}"#),
            silent(r#"{"scopes_supported": ["tides:offline_access"]}"#),
        ],
        check: Check::Each(&["/scopes_supported/*"], prm_offline_access),
    }
}

fn prm_offline_access(scope: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if scope.text() == Some("offline_access") {
        out.add(scope, "`offline_access` is no scope of the resource");
    }
}

crate::rule! {
    /// The keys of the resource are behind an https URL.
    ///
    /// Keys read over plain http can be exchanged on the way, and what they sign with them.
    static PRM_JWKS_URI = {
        id: "oauth/prm-jwks-uri",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_06,
        on: &[Kind::OauthProtectedResource],
        place: "/jwks_uri",
        spec: "RFC 9728 §2",
        fix: "Use https.",
        examples: &[
            fires(&["/jwks_uri"], r#"{"jwks_uri": "http://tides.example.com/jwks"}"#),
            fires(&["/jwks_uri"], r#"{"jwks_uri": "/jwks"}"#),
            silent(r#"{"jwks_uri": "https://tides.example.com/jwks"}"#),
        ],
        check: Check::Each(&["/jwks_uri"], prm_jwks_uri),
    }
}

fn prm_jwks_uri(uri: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match uri.text() {
        Some(text) if AbsoluteUrl::parse(text).is_some_and(|url| url.is("https")) => {}
        Some(text) => {
            out.add(uri, format!("{} is no absolute https URL", quote(text)));
        }
        None => {
            out.add(uri, format!("`jwks_uri` is {}, not a string", uri.kind().named()));
        }
    }
}
