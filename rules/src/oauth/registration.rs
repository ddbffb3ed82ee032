//! How an unknown client becomes a known one, and what an authorization server says about itself besides.

use super::{SERVER, SINCE_2025_03, SINCE_2025_06, SINCE_2025_11, is_lone, is_set, is_without_code, list, lists};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &AS_FLAG_TYPE,
    &AS_DCR_ONLY,
    &AS_CIMD_MISSING,
    &AS_NO_REGISTRATION,
    &AS_CIMD_NO_PUBLIC_CLIENT,
    &AS_ISS_PARAMETER,
    &AS_AUTH_SIGNING_ALG,
    &AS_SCOPES_MISSING,
];

const CIMD: &str = "client_id_metadata_document_supported";
const ISS: &str = "authorization_response_iss_parameter_supported";

crate::rule! {
    /// The flags are true or false.
    ///
    /// The text `"true"` is no flag: some clients take it for yes, some for no, typed ones refuse the document.
    static AS_FLAG_TYPE = {
        id: "oauth/as-flag-type",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/client_id_metadata_document_supported | /authorization_response_iss_parameter_supported",
        spec: "CIMD draft §5; RFC 9207 §3",
        fix: "Use true or false.",
        examples: &[
            fires(
                &["/client_id_metadata_document_supported"],
                r#"{"client_id_metadata_document_supported": "true",
                "registration_endpoint": "https://login.tides.example.com/register"}"#,
            ),
            silent(r#"{"authorization_response_iss_parameter_supported": false}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(
            &["/client_id_metadata_document_supported", "/authorization_response_iss_parameter_supported"],
            as_flag_type,
        ),
    }
}

fn as_flag_type(flag: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if flag.kind() != Type::Bool {
        let name = flag.key().unwrap_or_default();
        out.add(flag, format!("{} is {}, not true or false", quote(name), flag.kind().named()));
    }
}

crate::rule! {
    /// Unknown clients register by Dynamic Client Registration only.
    ///
    /// MCP deprecates it from 2026-07-28 on, in favour of metadata documents that the client publishes itself.
    static AS_DCR_ONLY = {
        id: "oauth/as-dcr-only",
        class: Class::Fact,
        versions: &["2026-07-28"],
        on: SERVER,
        place: "/registration_endpoint",
        spec: "2026-07-28 client-registration; deprecated",
        fix: "Support Client ID Metadata Documents.",
        seeds: &["validator:1.4.1.4", "inspector:cimd-vs-dcr"],
        examples: &[
            fires(
                &["/registration_endpoint"],
                r#"{"client_id_metadata_document_supported": null,
                "registration_endpoint": "https://login.tides.example.com/register"}"#,
            ),
            silent(r#"{"registration_endpoint": "https://login.tides.example.com/register"}"#),
        ],
        check: Check::Document(as_dcr_only),
    }
}

fn as_dcr_only(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) {
        return;
    }
    if let Some(endpoint) = metadata.given("registration_endpoint")
        && !is_set(metadata, CIMD)
    {
        out.add(endpoint, "registration without client metadata documents");
    }
}

crate::rule! {
    /// Client metadata documents are not supported.
    ///
    /// A client that publishes one cannot use it here and has to register, or be registered.
    static AS_CIMD_MISSING = {
        id: "oauth/as-cimd-missing",
        class: Class::Fact,
        versions: &["2025-11-25"],
        on: SERVER,
        place: "/client_id_metadata_document_supported",
        spec: "2025-11-25 authorization, Client Registration; SEP-991",
        fix: "Support Client ID Metadata Documents.",
        seeds: &["inspector:cimd-vs-dcr"],
        examples: &[
            fires(
                &["/client_id_metadata_document_supported"],
                r#"{"client_id_metadata_document_supported": null,
                "registration_endpoint": "https://login.tides.example.com/register"}"#,
            ),
            silent("{}"),
        ],
        check: Check::Document(as_cimd_missing),
    }
}

fn as_cimd_missing(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || is_set(metadata, CIMD) {
        return;
    }
    unset(metadata, CIMD, "client metadata documents are not supported", out);
}

/// Sets a fact at a flag that is false or not there.
fn unset(metadata: Node<'_>, flag: &str, message: &str, out: &mut Occurrences) {
    match metadata.get(flag) {
        Some(flag) => out.add(flag, message),
        None => out.add_missing(metadata, flag, message),
    };
}

crate::rule! {
    /// An unknown client can make itself known.
    ///
    /// Without a registration endpoint and without client metadata documents, every client has to be entered by hand before
    /// it can ask for a token.
    static AS_NO_REGISTRATION = {
        id: "oauth/as-no-registration",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        on: SERVER,
        place: "/registration_endpoint",
        spec: "2026-07-28 client-registration",
        fix: "Support Client ID Metadata Documents.",
        seeds: &["validator:1.4.1.4", "inspector:cimd-vs-dcr"],
        examples: &[
            fires(&["/registration_endpoint"], r#"{"client_id_metadata_document_supported": null}"#),
            silent("{}"),
            silent(r#"{"client_id_metadata_document_supported": null}"#).given(r#"{"lone": true}"#),
            silent(
                r#"{"client_id_metadata_document_supported": null, "authorization_endpoint": null,
                "grant_types_supported": ["client_credentials"]}"#,
            ),
        ],
        check: Check::Document(as_no_registration),
    }
}

fn as_no_registration(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || metadata.given("registration_endpoint").is_some() || is_set(metadata, CIMD) {
        return;
    }
    // Where nobody can sign in, nobody has to make himself known.
    if is_without_code(metadata) {
        return;
    }
    unset(metadata, "registration_endpoint", "neither registration nor client metadata documents are supported", out);
}

crate::rule! {
    /// A client that publishes its metadata can authenticate.
    ///
    /// It holds no shared secret, so it needs `none` or `private_key_jwt`; with secrets alone the support is on paper.
    static AS_CIMD_NO_PUBLIC_CLIENT = {
        id: "oauth/as-cimd-no-public-client",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: SINCE_2025_11,
        on: SERVER,
        place: "/token_endpoint_auth_methods_supported",
        spec: "CIMD draft §4; RFC 8414 §2",
        fix: "Allow none or private_key_jwt.",
        seeds: &["inspector:cimd-vs-dcr"],
        examples: &[
            fires(
                &["/token_endpoint_auth_methods_supported"],
                r#"{"token_endpoint_auth_methods_supported": ["client_secret_basic"]}"#,
            ),
            silent(r#"{"token_endpoint_auth_methods_supported": null}"#),
            silent(r#"{"token_endpoint_auth_methods_supported": ["client_secret_basic", "none"]}"#),
        ],
        check: Check::Document(as_cimd_no_public_client),
    }
}

fn as_cimd_no_public_client(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || !is_set(metadata, CIMD) {
        return;
    }
    let Some(methods) = list(metadata, "token_endpoint_auth_methods_supported") else { return };
    if methods.items().next().is_some() && !lists(methods, "none") && !lists(methods, "private_key_jwt") {
        out.add(methods, "neither `none` nor `private_key_jwt` is among the methods");
    }
}

crate::rule! {
    /// The server does not say that it names itself in its responses.
    ///
    /// A client that talks to several servers tells by the `iss` parameter whose response it got.
    static AS_ISS_PARAMETER = {
        id: "oauth/as-iss-parameter",
        class: Class::Fact,
        versions: &["2026-07-28"],
        on: SERVER,
        place: "/authorization_response_iss_parameter_supported",
        spec: "2026-07-28 authorization, Response Validation; SEP-2468",
        fix: "Send iss and advertise it.",
        examples: &[
            fires(
                &["/authorization_response_iss_parameter_supported"],
                r#"{"authorization_response_iss_parameter_supported": null}"#,
            ),
            silent("{}"),
        ],
        check: Check::Document(as_iss_parameter),
    }
}

fn as_iss_parameter(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || is_set(metadata, ISS) {
        return;
    }
    unset(metadata, ISS, "the `iss` parameter is not advertised", out);
}

crate::rule! {
    /// Where clients sign, the server says with which algorithms.
    ///
    /// A client cannot guess them, and `none` would make the signature worthless.
    static AS_AUTH_SIGNING_ALG = {
        id: "oauth/as-auth-signing-alg",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/token_endpoint_auth_signing_alg_values_supported",
        spec: "RFC 8414 §2",
        fix: "List the algorithms.",
        examples: &[
            fires(
                &["/token_endpoint_auth_signing_alg_values_supported"],
                r#"{"token_endpoint_auth_signing_alg_values_supported": null}"#,
            ),
            fires(
                &["/token_endpoint_auth_signing_alg_values_supported"],
                r#"{"token_endpoint_auth_signing_alg_values_supported": ["ES256", "none"]}"#,
            ),
            silent(
                r#"{"token_endpoint_auth_methods_supported": ["none"],
                "token_endpoint_auth_signing_alg_values_supported": null}"#,
            ),
        ],
        check: Check::Document(as_auth_signing_alg),
    }
}

fn as_auth_signing_alg(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    const ALGORITHMS: &str = "token_endpoint_auth_signing_alg_values_supported";
    match metadata.get(ALGORITHMS) {
        Some(algorithms) if lists(algorithms, "none") => {
            out.add(algorithms, "`none` is among the signing algorithms");
        }
        Some(_) => {}
        None => {
            let Some(methods) = list(metadata, "token_endpoint_auth_methods_supported") else { return };
            let signed = ["private_key_jwt", "client_secret_jwt"].into_iter().find(|method| lists(methods, method));
            if let Some(method) = signed {
                out.add_missing(metadata, ALGORITHMS, format!("`{method}` is listed, but no signing algorithm"));
            }
        }
    }
}

crate::rule! {
    /// The server does not list its scopes.
    ///
    /// Clients take them from the resource or the challenge then.
    static AS_SCOPES_MISSING = {
        id: "oauth/as-scopes-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/scopes_supported",
        spec: "RFC 8414 §2",
        fix: "List scopes.",
        examples: &[
            fires(&["/scopes_supported"], r#"{"scopes_supported": null}"#),
            silent("{}"),
        ],
        check: Check::Document(as_scopes_missing),
    }
}

fn as_scopes_missing(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if metadata.given("scopes_supported").is_none() {
        unset(metadata, "scopes_supported", "no scopes are listed", out);
    }
}
