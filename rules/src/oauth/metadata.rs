//! What all metadata documents have in common.

use super::SINCE_2025_06;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Check, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&METADATA_EMPTY_ARRAY];

/// Lists whose emptiness says something, or that have a rule of their own.
const MAY_BE_EMPTY: &[&str] =
    &["authorization_servers", "code_challenge_methods_supported", "bearer_methods_supported"];

/// Lists that OpenID Connect Discovery requires; the first is required of every authorization server.
const REQUIRED_BY_OPENID: &[&str] =
    &["response_types_supported", "subject_types_supported", "id_token_signing_alg_values_supported"];

crate::rule! {
    /// A list without elements is left out.
    ///
    /// The standards say that it MUST be omitted: absent members have defaults, an empty list has none, and clients differ in
    /// what they make of it.
    static METADATA_EMPTY_ARRAY = {
        id: "oauth/metadata-empty-array",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        on: &[
            Kind::OauthProtectedResource,
            Kind::OauthAuthorizationServer,
            Kind::OauthOpenidConfiguration,
        ],
        place: "/*",
        spec: "RFC 9728 §3.2; RFC 8414 §3.2; OpenID Connect Discovery 1.0 §4.2",
        fix: "Fill the list where the member is required; leave other empty members out.",
        examples: &[
            fires(&["/scopes_supported"], r#"{"scopes_supported": []}"#),
            silent(r#"{"scopes_supported": ["tides:read"]}"#),
            silent(r#"{"bearer_methods_supported": []}"#),
        ],
        check: Check::Each(&["/*"], metadata_empty_array),
    }
}

fn metadata_empty_array(member: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let name = member.key().unwrap_or_default();
    if member.kind() != Type::Array || !member.is_empty() || MAY_BE_EMPTY.contains(&name) {
        return;
    }
    let is_required = match context.kind {
        Kind::OauthOpenidConfiguration => REQUIRED_BY_OPENID.contains(&name),
        Kind::OauthAuthorizationServer => name == REQUIRED_BY_OPENID[0],
        _ => false,
    };
    let and = if is_required { ", and the standard requires it filled" } else { "" };
    out.add(member, format!("{} is an empty list{and}", quote(name)));
}
