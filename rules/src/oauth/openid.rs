//! What OpenID asks of a configuration beyond OAuth.

use super::{SINCE_2025_11, list, lists};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};

pub(super) const RULES: &[&Rule] = &[&OIDC_REQUIRED_MISSING, &OIDC_ALG_NONE];

crate::rule! {
    /// An OpenID configuration has the members that OpenID requires.
    ///
    /// Without keys, subject types and signing algorithms no identity token can be checked, and RS256 is the algorithm that
    /// every client may count on. MCP clients need none of them.
    static OIDC_REQUIRED_MISSING = {
        id: "oauth/oidc-required-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_11,
        on: &[Kind::OauthOpenidConfiguration],
        place: "/jwks_uri | /subject_types_supported | /id_token_signing_alg_values_supported",
        spec: "OpenID Connect Discovery 1.0 §3",
        fix: "Add the members OpenID requires, and RS256 to the algorithms.",
        seeds: &["inspector:oidc-and-rfc8414"],
        examples: &[
            fires(&["/subject_types_supported"], r#"{"subject_types_supported": null}"#),
            fires(
                &["/id_token_signing_alg_values_supported"],
                r#"{"id_token_signing_alg_values_supported": ["HS256"]}"#,
            ),
            silent("{}"),
            silent(r#"{"id_token_signing_alg_values_supported": ["ES256", "RS256"]}"#),
            silent(r#"{"jwks_uri": null}"#).over("oauth-authorization-server"),
        ],
        check: Check::Document(oidc_required_missing),
    }
}

fn oidc_required_missing(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for name in ["jwks_uri", "subject_types_supported", "id_token_signing_alg_values_supported"] {
        if metadata.get(name).is_none() {
            out.add_missing(metadata, name, format!("there is no `{name}`"));
        }
    }
    if let Some(algorithms) = list(metadata, "id_token_signing_alg_values_supported")
        && !algorithms.is_empty()
        && !lists(algorithms, "RS256")
    {
        out.add(algorithms, "RS256 is not among the algorithms, and it has to be");
    }
}

crate::rule! {
    /// Identity tokens are always signed.
    ///
    /// OpenID allows `none` where tokens come straight from the token endpoint; a client that takes it elsewhere takes
    /// anything.
    static OIDC_ALG_NONE = {
        id: "oauth/oidc-alg-none",
        security: true,
        basis: Basis::Hint,
        versions: SINCE_2025_11,
        on: &[Kind::OauthOpenidConfiguration],
        place: "/id_token_signing_alg_values_supported/*",
        spec: "OpenID Connect Discovery 1.0 §3",
        fix: "Drop none.",
        examples: &[
            fires(
                &["/id_token_signing_alg_values_supported/1"],
                r#"{"id_token_signing_alg_values_supported": ["RS256", "none"]}"#,
            ),
            silent(r#"{"id_token_signing_alg_values_supported": ["RS256"]}"#),
        ],
        check: Check::Each(&["/id_token_signing_alg_values_supported/*"], oidc_alg_none),
    }
}

fn oidc_alg_none(algorithm: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if algorithm.text() == Some("none") {
        out.add(algorithm, "identity tokens may go unsigned");
    }
}
