//! Whether an authorization server proves that who redeems a code also asked for it.

use super::{SERVER, SINCE_2025_06, is_lone, is_without_code, list, lists};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Check, Impact, Rule, Severity, fires, silent};

pub(super) const RULES: &[&Rule] = &[&AS_PKCE_MISSING, &AS_PKCE_NO_S256, &AS_PKCE_PLAIN];

const METHODS: &str = "code_challenge_methods_supported";

crate::rule! {
    /// The metadata says that PKCE is supported.
    ///
    /// A client cannot see it otherwise, and without PKCE a stolen code is as good as a token; MCP clients have to refuse.
    /// A server that gives out no codes has nothing to protect.
    static AS_PKCE_MISSING = {
        id: "oauth/as-pkce-missing",
        severity: Severity::Error,
        severity_overrides: &[("2025-06-18", Severity::Warning)],
        impact: Some(Impact::Cosmetic),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11, read in the released source",
        security: true,
        versions: SINCE_2025_06,
        on: SERVER,
        place: "/code_challenge_methods_supported",
        spec: "2026-07-28 authorization security, Authorization Code Protection",
        fix: "Advertise S256.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/code_challenge_methods_supported"], r#"{"code_challenge_methods_supported": null}"#),
            fires(&["/code_challenge_methods_supported"], r#"{"code_challenge_methods_supported": []}"#),
            silent("{}"),
            silent(r#"{"code_challenge_methods_supported": null}"#).given(r#"{"lone": true}"#),
            silent(
                r#"{"code_challenge_methods_supported": null, "authorization_endpoint": null,
                "grant_types_supported": ["client_credentials"]}"#,
            ),
        ],
        check: Check::Document(as_pkce_missing),
    }
}

fn as_pkce_missing(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || is_without_code(metadata) {
        return;
    }
    match metadata.get(METHODS) {
        None => {
            out.add_missing(metadata, METHODS, "no code challenge method is advertised");
        }
        Some(methods) if methods.kind() == Type::Array && methods.is_empty() => {
            out.add(methods, "the list of code challenge methods is empty");
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// The code challenge method `S256` is supported.
    ///
    /// It is the one that MCP asks for; a tested client refuses a server that lists others only. Letter case counts.
    static AS_PKCE_NO_S256 = {
        id: "oauth/as-pkce-no-s256",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "@modelcontextprotocol/sdk 1.32.2, 2026-11, read in the released source",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        security: true,
        rank: 36,
        versions: SINCE_2025_06,
        on: SERVER,
        place: "/code_challenge_methods_supported",
        spec: "2026-07-28 authorization security, Authorization Code Protection",
        fix: "Advertise S256.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/code_challenge_methods_supported"], r#"{"code_challenge_methods_supported": ["s256"]}"#),
            silent(r#"{"code_challenge_methods_supported": ["S256", "S512"]}"#),
        ],
        check: Check::Document(as_pkce_no_s256),
    }
}

fn as_pkce_no_s256(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) {
        return;
    }
    let Some(methods) = list(metadata, METHODS) else { return };
    if methods.items().next().is_some() && !lists(methods, "S256") {
        out.add(methods, "`S256` is not among the code challenge methods");
    }
}

crate::rule! {
    /// The code challenge method `plain` is not offered beside `S256`.
    ///
    /// With it the challenge is the secret itself, so whoever reads the request can redeem the code: RFC 7636 §7.2 keeps it
    /// only for what was deployed before.
    static AS_PKCE_PLAIN = {
        id: "oauth/as-pkce-plain",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_06,
        on: SERVER,
        place: "/code_challenge_methods_supported",
        spec: "OAuth 2.1 §7.5.2",
        fix: "Drop plain.",
        examples: &[
            fires(&["/code_challenge_methods_supported"], r#"{"code_challenge_methods_supported": ["plain", "S256"]}"#),
            silent(r#"{"code_challenge_methods_supported": ["S256"]}"#),
        ],
        check: Check::Document(as_pkce_plain),
    }
}

fn as_pkce_plain(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) {
        return;
    }
    let Some(methods) = list(metadata, METHODS) else { return };
    if lists(methods, "plain") && lists(methods, "S256") {
        out.add(methods, "`plain` is offered beside `S256`");
    }
}
