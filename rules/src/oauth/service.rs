//! How metadata is served: its label, who may read it, and whether it lies where it is looked for.

use super::{SERVER, SINCE_2025_03, SINCE_2025_06};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::{Response, Session};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&PRM_CONTENT_TYPE, &AS_CONTENT_TYPE, &METADATA_CORS, &METADATA_REDIRECT];

const PRM: &[Kind] = &[Kind::OauthProtectedResource];
const METADATA: &[Kind] =
    &[Kind::OauthProtectedResource, Kind::OauthAuthorizationServer, Kind::OauthOpenidConfiguration];

/// The answer that brought the document, with its place.
fn served<'c>(context: &Context<'c>, out: &mut Occurrences) -> Option<(usize, &'c Response)> {
    let answer = context.answer();
    if answer.is_none() {
        out.not_evaluated(NotEvaluated::NoDocument);
    }
    answer
}

/// Fires where metadata is not labelled as JSON.
fn label(context: &Context<'_>, out: &mut Occurrences) {
    let Some((number, response)) = served(context, out) else { return };
    let is_object = context.document.and_then(super::super::document::Document::root).is_some();
    if is_object && !response.media_type().is_some_and(|label| label.is("application", "json")) {
        let shown = response.header("content-type").map_or_else(|| "nothing".to_owned(), quote);
        out.add_at(
            format!("/exchanges/{number}/response/headers/content-type"),
            format!("the metadata is labelled {shown}"),
        );
    }
}

crate::rule! {
    /// The resource's metadata is labelled as JSON.
    ///
    /// Clients that look at the label refuse to read it otherwise.
    static PRM_CONTENT_TYPE = {
        id: "oauth/prm-content-type",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: PRM,
        place: "step:prm",
        fix: "Serve application/json.",
        spec: "RFC 9728 §3.2",
        examples: &[
                fires(&["/exchanges/0/response/headers/content-type"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp"}, "response": {"status": 200, "headers": {"content-type": "text/plain", "access-control-allow-origin": "*"}, "body": "base:oauth-protected-resource"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
                silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp"}, "response": {"status": 200, "headers": {"content-type": "application/json; charset=utf-8", "access-control-allow-origin": "*"}, "body": "base:oauth-protected-resource"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
        ],
        check: Check::Session(prm_content_type),
    }
}

fn prm_content_type(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    label(context, out);
}

crate::rule! {
    /// An authorization server's metadata is labelled as JSON.
    ///
    /// Clients that look at the label refuse to read it otherwise.
    static AS_CONTENT_TYPE = {
        id: "oauth/as-content-type",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: SERVER,
        place: "step:as",
        fix: "Serve application/json.",
        spec: "RFC 8414 §3.2",
        examples: &[
                fires(&["/exchanges/0/response/headers/content-type"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://login.tides.example.com/.well-known/oauth-authorization-server"}, "response": {"status": 200, "headers": {"content-type": "text/plain", "access-control-allow-origin": "*"}, "body": "base:oauth-authorization-server"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
                silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://login.tides.example.com/.well-known/oauth-authorization-server"}, "response": {"status": 200, "headers": {"content-type": "application/json; charset=utf-8", "access-control-allow-origin": "*"}, "body": "base:oauth-authorization-server"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
        ],
        check: Check::Session(as_content_type),
    }
}

fn as_content_type(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    label(context, out);
}

crate::rule! {
    /// Metadata could be read from pages.
    ///
    /// Clients that live in a browser cannot read it without the header.
    static METADATA_CORS = {
        id: "oauth/metadata-cors",
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: METADATA,
        place: "response header Access-Control-Allow-Origin",
        fix: "Allow any origin on metadata.",
        spec: "hint: browser clients",
        examples: &[
                fires(&["/exchanges/0/response/headers"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:oauth-protected-resource"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
                silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp"}, "response": {"status": 200, "headers": {"content-type": "application/json", "access-control-allow-origin": "*"}, "body": "base:oauth-protected-resource"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
        ],
        check: Check::Session(metadata_cors),
    }
}

fn metadata_cors(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((number, response)) = served(context, out) else { return };
    if response.header("access-control-allow-origin").is_none() {
        out.add_at(format!("/exchanges/{number}/response/headers"), "no Access-Control-Allow-Origin");
    }
}

crate::rule! {
    /// Metadata lies where it is looked for.
    ///
    /// Careful clients do not follow redirects here: whoever can redirect could lead them to another server's metadata.
    static METADATA_REDIRECT = {
        id: "oauth/metadata-redirect",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: METADATA,
        place: "step:prm|as",
        fix: "Serve it directly; many clients do not follow.",
        spec: "RFC 8414 §3.1",
        examples: &[
                fires(&["/exchanges/0/response/headers/location"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp"}, "response": {"status": 302, "headers": {"location": "https://tides.example.com/meta/oauth-protected-resource"}}}, {"request": {"method": "GET", "url": "https://tides.example.com/meta/oauth-protected-resource"}, "response": {"status": 200, "headers": {"content-type": "application/json", "access-control-allow-origin": "*"}, "body": "base:oauth-protected-resource"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
                silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp"}, "response": {"status": 200, "headers": {"content-type": "application/json", "access-control-allow-origin": "*"}, "body": "base:oauth-protected-resource"}}]}"#)
                    .given(r#"{"surface": "oauth-metadata"}"#),
        ],
        check: Check::Session(metadata_redirect),
    }
}

fn metadata_redirect(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((number, _)) = served(context, out) else { return };
    let before = number.checked_sub(1).and_then(|before| Some((before, session.exchanges.get(before)?)));
    let leads_here =
        |url: url::Url| session.exchanges.get(number).is_some_and(|exchange| exchange.request.url == url.as_str());
    if let Some((before, exchange)) = before
        && exchange.redirect().is_some_and(leads_here)
    {
        let to = exchange.response.as_ref().and_then(|response| response.header("location")).unwrap_or_default();
        out.add_at(
            format!("/exchanges/{before}/response/headers/location"),
            format!("the metadata has moved to {}", quote(to)),
        );
    }
}
