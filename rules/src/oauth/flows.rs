//! The response types and grants of an authorization server, and the types of its lists.

use super::{SERVER, SINCE_2025_03, came_alone, is_lone, list, lists};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &AS_RESPONSE_TYPES_MISSING,
    &AS_RESPONSE_TYPES_NO_CODE,
    &AS_ARRAY_TYPE,
    &AS_GRANT_TYPES_NO_CODE,
    &AS_GRANT_DEPRECATED,
];

crate::rule! {
    /// The metadata lists its response types.
    ///
    /// The standard requires the list of whoever publishes such a document, and a tested client that was led to one without
    /// it refuses it.
    static AS_RESPONSE_TYPES_MISSING = {
        id: "oauth/as-response-types-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "@modelcontextprotocol/sdk 1.32.2, 2026-11, read in the released source",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/response_types_supported",
        spec: "RFC 8414 §2",
        fix: "List code.",
        examples: &[
            fires(&["/response_types_supported"], r#"{"response_types_supported": null}"#),
            fires(&["/response_types_supported"], r#"{"response_types_supported": "code"}"#),
            fires(&["/response_types_supported"], r#"{"response_types_supported": null}"#).given(r#"{"lone": true}"#),
            silent("{}"),
        ],
        stops: Stops::Value,
        check: Check::Document(as_response_types_missing),
    }
}

fn as_response_types_missing(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let added = match metadata.get("response_types_supported") {
        None => out.add_missing(metadata, "response_types_supported", "there is no `response_types_supported`"),
        Some(types) if types.kind() != Type::Array => {
            out.add(types, format!("`response_types_supported` is {}, not an array", types.kind().named()))
        }
        Some(_) => return,
    };
    if came_alone(context) {
        added.impact(Impact::Cosmetic);
    }
}

crate::rule! {
    /// The response type `code` is supported.
    ///
    /// The authorization code flow is the only one that MCP clients run with a person, and it asks for `code`. A document
    /// whose grants promise that flow contradicts itself; one that promises nothing is a server for others.
    static AS_RESPONSE_TYPES_NO_CODE = {
        id: "oauth/as-response-types-no-code",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/response_types_supported",
        spec: "OAuth 2.1 §4.1",
        fix: "Support code.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/response_types_supported"], r#"{"response_types_supported": ["code id_token"]}"#),
            silent(r#"{"response_types_supported": ["code", "code id_token"]}"#),
            silent(
                r#"{"response_types_supported": ["none"], "grant_types_supported": ["client_credentials"],
                "authorization_endpoint": null}"#,
            ),
        ],
        check: Check::Document(as_response_types_no_code),
    }
}

fn as_response_types_no_code(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) || metadata.given("authorization_endpoint").is_none() {
        return;
    }
    let Some(types) = list(metadata, "response_types_supported") else { return };
    let grants = list(metadata, "grant_types_supported").filter(|grants| !grants.is_empty());
    // Where the grants lack the code, that is said of them.
    let is_said = grants.is_some_and(|grants| !lists(grants, "authorization_code"));
    if types.is_empty() || lists(types, "code") || is_said {
        return;
    }
    match grants {
        Some(_) => drop(out.add(types, "`code` is not among the response types, though the grants promise it")),
        None => {
            let message = "no MCP client can sign in here: `code` is not among the response types";
            out.add(types, message).severity(Severity::Warning);
        }
    }
}

/// The ends of names that hold a list. Other members that end in `_supported` are flags.
const LIST_NAMES: &[&str] = &[
    "scopes_supported",
    "claims_supported",
    "_types_supported",
    "_modes_supported",
    "_methods_supported",
    "_values_supported",
    "_locales_supported",
];

crate::rule! {
    /// What the metadata lists are arrays of strings.
    ///
    /// Typed clients refuse a string where a list was due; others look for a letter sequence in it.
    static AS_ARRAY_TYPE = {
        id: "oauth/as-array-type",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/*_supported | /*_supported/*",
        spec: "RFC 8414 §2",
        fix: "Use arrays of strings.",
        examples: &[
            fires(&["/scopes_supported"], r#"{"scopes_supported": "tides:read"}"#),
            fires(&["/grant_types_supported/1"], r#"{"grant_types_supported": ["authorization_code", null]}"#),
            silent(r#"{"request_parameter_supported": false}"#),
        ],
        stops: Stops::Value,
        yields_to: &["oauth/as-response-types-missing"],
        check: Check::Document(as_array_type),
    }
}

fn as_array_type(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (name, list) in metadata.members().filter(|(name, _)| LIST_NAMES.iter().any(|end| name.ends_with(end))) {
        if list.kind() != Type::Array {
            out.add(list, format!("{} is {}, not an array", quote(name), list.kind().named()));
        }
        for item in list.items().filter(|item| item.kind() != Type::String) {
            out.add(item, format!("an item of {} is {}, not a string", quote(name), item.kind().named()));
        }
    }
}

crate::rule! {
    /// The grant `authorization_code` is supported.
    ///
    /// It is the one that MCP clients use for a person. A server for machines alone, without an authorization endpoint, does
    /// without.
    static AS_GRANT_TYPES_NO_CODE = {
        id: "oauth/as-grant-types-no-code",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/grant_types_supported",
        spec: "OAuth 2.1 §4.1",
        fix: "Support authorization_code.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/grant_types_supported"], r#"{"grant_types_supported": ["client_credentials"]}"#),
            silent(r#"{"grant_types_supported": null}"#),
            silent(r#"{"grant_types_supported": ["client_credentials"], "authorization_endpoint": null}"#),
        ],
        check: Check::Document(as_grant_types_no_code),
    }
}

fn as_grant_types_no_code(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_lone(context, out) {
        return;
    }
    let Some(grants) = list(metadata, "grant_types_supported") else { return };
    let for_machines = metadata.given("authorization_endpoint").is_none()
        && grants.items().all(|grant| grant.text() == Some("client_credentials"));
    if grants.items().next().is_some() && !for_machines && !lists(grants, "authorization_code") {
        out.add(grants, "no MCP client can sign in here: `authorization_code` is not among the grants");
    }
}

crate::rule! {
    /// The flows that OAuth 2.1 took out are not offered.
    ///
    /// The implicit flow puts tokens into addresses, the password grant hands a person's password to the client.
    static AS_GRANT_DEPRECATED = {
        id: "oauth/as-grant-deprecated",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/grant_types_supported | /response_types_supported",
        spec: "RFC 9700 §2.4, §2.1.2; OAuth 2.1 §10",
        fix: "Drop the password grant and the implicit flow.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/grant_types_supported"], r#"{"grant_types_supported": ["authorization_code", "password"]}"#),
            fires(&["/response_types_supported"], r#"{"response_types_supported": ["code", "token"]}"#),
            silent(r#"{"grant_types_supported": null}"#),
            silent(r#"{"response_types_supported": ["code", "code token"]}"#),
        ],
        check: Check::Document(as_grant_deprecated),
    }
}

fn as_grant_deprecated(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(grants) = list(metadata, "grant_types_supported")
        && let Some(grant) = ["implicit", "password"].into_iter().find(|grant| lists(grants, grant))
    {
        out.add(grants, format!("the grant `{grant}` is offered"));
    }
    if let Some(types) = list(metadata, "response_types_supported")
        && lists(types, "token")
    {
        out.add(types, "the response type `token` is offered");
    }
}
