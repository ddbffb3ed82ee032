//! Authorization-server metadata: that it is an object, and that its issuer is the one that was looked for.

use super::{SERVER, SINCE_2025_03, SINCE_2025_06, are_one, identifier_by_address, secure_url};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] =
    &[&AS_NOT_OBJECT, &AS_ISSUER_MISSING, &AS_ISSUER_INVALID, &AS_ISSUER_MISMATCH, &AS_ISSUER_SLASH];

const LISTED: &str = r#"{"issuer_listed": "https://login.tides.example.com/tenant"}"#;
const FOUND: &str = r#"{"url": "https://login.tides.example.com/.well-known/oauth-authorization-server/tenant"}"#;

crate::rule! {
    /// Authorization-server metadata is a JSON object.
    ///
    /// From anything else no endpoint can be read, and no token asked for.
    static AS_NOT_OBJECT = {
        id: "oauth/as-not-object",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the authorization chain ends here; not run per SDK",
        versions: SINCE_2025_03,
        on: SERVER,
        place: "",
        spec: "RFC 8414 §3.2",
        fix: "Serve an object.",
        examples: &[fires(&[""], r#""ok""#).whole(), silent("{}")],
        stops: Stops::Document,
        check: Check::Document(as_not_object),
    }
}

fn as_not_object(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if root.kind() != Type::Object {
        out.add(root, format!("the document is {}, not an object", root.kind().named()));
    }
}

crate::rule! {
    /// The metadata names its issuer.
    ///
    /// A client has to compare it with the issuer it looked for, or a server could pass off another's metadata as its own.
    static AS_ISSUER_MISSING = {
        id: "oauth/as-issuer-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the authorization chain ends here; not run per SDK",
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/issuer",
        spec: "RFC 8414 §2",
        fix: "Add the issuer, as resources list it.",
        seeds: &["validator:1.4.1.3"],
        examples: &[
            fires(&["/issuer"], r#"{"issuer": null}"#),
            fires(&["/issuer"], r#"{"issuer": ["https://login.tides.example.com"]}"#),
            silent("{}"),
        ],
        stops: Stops::Value,
        check: Check::Document(as_issuer_missing),
    }
}

fn as_issuer_missing(metadata: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match metadata.get("issuer") {
        None => {
            out.add_missing(metadata, "issuer", "there is no `issuer`");
        }
        Some(issuer) if issuer.kind() != Type::String => {
            out.add(issuer, format!("`issuer` is {}, not a string", issuer.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// The issuer is an https URL without query and fragment.
    ///
    /// The address of the metadata is made from it, and tokens carry it.
    static AS_ISSUER_INVALID = {
        id: "oauth/as-issuer-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        on: SERVER,
        place: "/issuer",
        spec: "RFC 8414 §2",
        fix: "Use an https URL.",
        examples: &[
            fires(&["/issuer"], r#"{"issuer": "https://login.tides.example.com/tenant?x=1"}"#),
            fires(&["/issuer"], r#"{"issuer": "http://login.tides.example.com"}"#),
            fires(&["/issuer"], r#"{"issuer": "login.tides.example.com"}"#),
            silent(r#"{"issuer": "http://localhost:9000"}"#).given(r#"{"served_from": "http://localhost:9000"}"#),
            silent(r#"{"issuer": "https://login.tides.example.com/{tenant}/v2"}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(as_issuer_invalid),
    }
}

fn as_issuer_invalid(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((issuer, text)) = issuer(metadata) else { return };
    let what = match secure_url(text) {
        Some(url) if url.query.is_some() => "has a query",
        Some(url) if url.fragment.is_some() => "has a fragment",
        Some(_) => return,
        None if AbsoluteUrl::http(text).is_some() => "is no https URL",
        None => "is no absolute https URL",
    };
    let occurrence = out.add(issuer, format!("the issuer {} {what}", quote(text)));
    if context.given.issuer_listed.as_deref().is_some_and(|listed| listed != text) {
        occurrence.impact(Impact::BreaksClients);
    }
}

crate::rule! {
    /// The issuer is the one that led to the document.
    ///
    /// Otherwise a server could send clients to the endpoints of another and have codes and tokens delivered to itself.
    /// Services for many tenants publish one document for all, with a part in braces where the tenant stands. Where nothing
    /// led to the document, the well-known address it came from tells which issuer was looked for.
    static AS_ISSUER_MISMATCH = {
        id: "oauth/as-issuer-mismatch",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, 2026-11",
        clients: &["mcp 1.30.0: refuses"],
        security: true,
        rank: 36,
        versions: SINCE_2025_06,
        on: SERVER,
        place: "/issuer",
        spec: "RFC 8414 §3.3; 2026-07-28 authorization discovery",
        fix: "Return the issuer the resource lists.",
        seeds: &["inspector:authorization_servers"],
        examples: &[
            fires(&["/issuer"], r#"{"issuer": "https://login.example.org"}"#).given(LISTED),
            fires(&["/issuer"], r#"{"issuer": "https://login.tides.example.com"}"#).given(LISTED),
            fires(&["/issuer"], r#"{"issuer": "https://accounts.example.org"}"#).given(FOUND),
            silent(r#"{"issuer": "https://login.tides.example.com/{tenantid}"}"#).given(LISTED),
            silent(r#"{"issuer": "https://Login.tides.example.com/tenant/"}"#).given(FOUND),
        ],
        check: Check::Document(as_issuer_mismatch),
    }
}

fn as_issuer_mismatch(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((issuer, text)) = issuer(metadata) else { return };
    let Some(listed) = context.given.issuer_listed.as_deref() else {
        return match identifier_by_address(context) {
            Some(of_address) if are_one(text, &of_address) || is_template(text) => {}
            Some(of_address) => {
                let message =
                    format!("the issuer is {}, and this is the address of {}", quote(text), quote(&of_address));
                out.add(issuer, message);
            }
            None => out.not_evaluated(NotEvaluated::NoOrigin),
        };
    };
    if text != listed && !is_template(text) && shorter_by_a_slash(text, listed).is_none() {
        out.add(issuer, format!("the issuer is {}, the one looked for {}", quote(text), quote(listed)));
    }
}

crate::rule! {
    /// Issuer and listed issuer agree about the trailing slash.
    ///
    /// The two have to be equal character by character, and a client that compares them so refuses the server. Between a
    /// bare origin with and without the slash the tested clients see no difference.
    static AS_ISSUER_SLASH = {
        id: "oauth/as-issuer-slash",
        severity: Severity::Warning,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, 2026-11",
        clients: &["mcp 1.30.0: refuses"],
        versions: SINCE_2025_06,
        on: SERVER,
        place: "/issuer",
        spec: "RFC 8414 §3.3",
        fix: "List the issuer exactly as published.",
        examples: &[
            fires(&["/issuer"], r#"{"issuer": "https://login.tides.example.com/tenant/"}"#).given(LISTED),
            silent(r#"{"issuer": "https://login.tides.example.com/tenant"}"#).given(LISTED),
        ],
        check: Check::Document(as_issuer_slash),
    }
}

fn as_issuer_slash(metadata: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((issuer, text)) = issuer(metadata) else { return };
    let Some(listed) = context.given.issuer_listed.as_deref() else {
        return out.not_evaluated(NotEvaluated::NoOrigin);
    };
    let Some(shorter) = shorter_by_a_slash(text, listed) else { return };
    let message = format!("the issuer is {}, the one looked for {}", quote(text), quote(listed));
    let occurrence = out.add(issuer, message);
    if AbsoluteUrl::parse(shorter).is_some_and(|url| url.path.is_empty()) {
        occurrence.impact(Impact::Cosmetic);
    }
}

fn issuer<'d>(metadata: Node<'d>) -> Option<(Node<'d>, &'d str)> {
    let issuer = metadata.get("issuer")?;
    Some((issuer, issuer.text()?))
}

/// Whether a part of the issuer is filled in for each tenant.
fn is_template(issuer: &str) -> bool {
    issuer.split_once('{').is_some_and(|(_, rest)| rest.contains('}'))
}

/// The shorter of two texts of which one is the other with a slash behind it.
fn shorter_by_a_slash<'t>(one: &'t str, other: &'t str) -> Option<&'t str> {
    let (shorter, longer) = if one.len() < other.len() { (one, other) } else { (other, one) };
    (longer.strip_suffix('/') == Some(shorter)).then_some(shorter)
}
