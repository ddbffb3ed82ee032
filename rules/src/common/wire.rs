//! The way to a document and how it was served: redirects, refusals for want of payment, its label.

use url::Url;

use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Axis, Basis, Check, Evidence, Impact, Rule, Severity, Stops, fires, silent};
use crate::session::{Exchange, Session, WireError};
use crate::text::suffix::is_of_platform;
use crate::text::{MediaType, quote, registrable_domain, same_site};

pub(super) const RULES: &[&Rule] = &[
    &PAYMENT_REQUIRED,
    &REDIRECT_LIMIT,
    &REDIRECT_DOWNGRADE,
    &REDIRECT_CROSS_SITE,
    &DANGLING_HOST,
    &CONTENT_TYPE_MISMATCH,
];

/// Redirects that are followed for one request.
const MAX_REDIRECTS: usize = 5;

fn location_of(number: usize) -> String {
    format!("/exchanges/{number}/response/headers/location")
}

crate::rule! {
    /// The address asks for payment.
    ///
    /// Somebody is there and answers, so this is no fault and no outage: the surface is shown as gated, with what was
    /// asked for.
    static PAYMENT_REQUIRED = {
        id: "common/payment-required",
        axis: Axis::Reach,
        basis: Basis::Policy,
        evidence: Evidence::Live,
        place: "/",
        fix: "None needed.",
        spec: "RFC 9110 §15.5.3",
        examples: &[
            fires(
                &["/exchanges/0/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 402}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 401}}]}"#,
            )
            .beside(&["a2a/card-auth-required"]),
        ],
        check: Check::Way(payment_required),
    }
}

fn payment_required(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    for (number, exchange) in session.exchanges.iter().enumerate() {
        if exchange.response.as_ref().is_some_and(|response| response.status == 402) {
            out.add_at(format!("/exchanges/{number}/response"), "answers 402 Payment Required");
        }
    }
}

crate::rule! {
    /// The redirects come to no end.
    ///
    /// They lead in a circle, or there are more than the five that are followed.
    static REDIRECT_LIMIT = {
        id: "common/redirect-limit",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can read it",
        basis: Basis::Policy,
        evidence: Evidence::Live,
        place: "/",
        fix: "Serve the document at its well-known place.",
        spec: "crawler policy",
        examples: &[
            fires(
                &["/exchanges/1/response/headers/location"],
                r#"{"exchanges": [
                    {"request": {"method": "GET", "url": "https://a.example/1"}, "response": {"status": 302, "headers": {"location": "/2"}}},
                    {"request": {"method": "GET", "url": "https://a.example/2"}, "response": {"status": 302, "headers": {"location": "/1#top"}}}]}"#,
            ),
            fires(
                &["/exchanges/0"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://a.example/7"}, "error": "redirect-limit"}]}"#,
            ),
            silent(
                r#"{"exchanges": [
                    {"request": {"method": "GET", "url": "https://a.example/1"}, "response": {"status": 302, "headers": {"location": "/2"}}},
                    {"request": {"method": "GET", "url": "https://a.example/2"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        stops: Stops::Document,
        check: Check::Way(redirect_limit),
    }
}

fn redirect_limit(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen: Vec<Url> = Vec::new();
    for (number, exchange) in session.exchanges.iter().enumerate() {
        if exchange.error == Some(WireError::RedirectLimit) {
            out.add_at(format!("/exchanges/{number}"), "more redirects than are followed");
        }
        let Some(target) = exchange.redirect().map(without_fragment) else {
            seen.clear();
            continue;
        };
        let asked = Url::parse(&exchange.request.url).ok().map(without_fragment);
        if asked.as_ref().is_none_or(|asked| !seen.contains(asked)) {
            seen.clear();
            seen.extend(asked);
        }
        if seen.contains(&target) {
            out.add_at(location_of(number), format!("leads back to {}", quote(target.as_str())));
        } else if seen.len() > MAX_REDIRECTS {
            out.add_at(location_of(number), format!("the {}th redirect of one request", seen.len()));
        }
        seen.push(target);
    }
}

fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}

crate::rule! {
    /// A redirect leads from https to http.
    ///
    /// Whoever sits on the way can then answer in the target's place, also when a later redirect returns to https.
    static REDIRECT_DOWNGRADE = {
        id: "common/redirect-downgrade",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        evidence: Evidence::Live,
        place: "/",
        fix: "Redirect to https only.",
        spec: "RFC 9110 15.4; crawler policy",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/location"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://a.example/1"}, "response": {"status": 302, "headers": {"location": "http://a.example/2"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "http://a.example/1"}, "response": {"status": 302, "headers": {"location": "https://a.example/2"}}}]}"#,
            ),
        ],
        check: Check::Way(redirect_downgrade),
    }
}

fn redirect_downgrade(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    for (number, target) in redirects(session) {
        if session.exchanges[number].request.url.starts_with("https:") && target.scheme() == "http" {
            out.add_at(location_of(number), format!("leads from https to {}", quote(target.as_str())));
        }
    }
}

fn redirects(session: &Session) -> impl Iterator<Item = (usize, Url)> {
    session.exchanges.iter().enumerate().filter_map(|(number, exchange)| Some((number, exchange.redirect()?)))
}

crate::rule! {
    /// A redirect leads to another site.
    ///
    /// The document is then vouched for by somebody other than the address that was published.
    static REDIRECT_CROSS_SITE = {
        id: "common/redirect-cross-site",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        evidence: Evidence::Live,
        place: "/",
        fix: "Serve the document or endpoint on the address that is published.",
        spec: "crawler policy",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/location"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://alice.github.io/1"}, "response": {"status": 302, "headers": {"location": "https://bob.github.io/2"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/1"}, "response": {"status": 301, "headers": {"location": "https://www.example.com/2"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://harbour.com/1"}, "response": {"status": 301, "headers": {"location": "https://www.harbour.co.uk/2"}}}]}"#,
            ),
        ],
        yields_to: &["common/redirect-limit", "common/redirect-downgrade", "common/url-not-public"],
        check: Check::Way(redirect_cross_site),
    }
}

fn redirect_cross_site(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    for (number, target) in redirects(session) {
        let asked = Url::parse(&session.exchanges[number].request.url).ok();
        let (Some(asked), Some(host)) = (asked.as_ref().and_then(Url::host_str), target.host_str()) else { continue };
        if !same_site(asked, host) && !are_of_one_owner(asked, host) {
            out.add_at(location_of(number), format!("leads from {} to {}", quote(asked), quote(host)));
        }
    }
}

/// Country and delivery-network variants: the same name under another suffix, one of which is a country's or belongs to
/// a hosting platform.
fn are_of_one_owner(one: &str, other: &str) -> bool {
    let name = |host: &str| registrable_domain(host).and_then(|domain| domain.split('.').next().map(str::to_owned));
    let is_variant = |host: &str| {
        let ending = host.rsplit('.').next().unwrap_or_default();
        ending.len() == 2 || is_of_platform(host)
    };
    name(one).is_some_and(|one| name(other).as_ref() == Some(&one)) && (is_variant(one) || is_variant(other))
}

crate::rule! {
    /// Nobody holds the name on its hosting platform.
    ///
    /// The platform's own page answers for it. Whoever registers the name next speaks for the target.
    static DANGLING_HOST = {
        id: "common/dangling-host",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no app behind the name",
        security: true,
        basis: Basis::Policy,
        evidence: Evidence::Live,
        place: "/",
        fix: "Remove the address from the document, or claim the name again.",
        spec: "crawler policy",
        examples: &[
            fires(
                &["/exchanges/0/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.herokuapp.com/card"}, "response": {"status": 404, "raw": "<h1>No such app</h1>"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.herokuapp.com/card"}, "response": {"status": 404, "raw": "{\"error\": \"Not Found\"}"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/card"}, "response": {"status": 404, "raw": "No such app"}}]}"#,
            ),
        ],
        check: Check::Way(dangling_host),
    }
}

/// What hosting platforms say about a name that nobody holds: suffix of the name, status, words on the page. Every row
/// was seen.
const UNCLAIMED: &[(&str, u16, &str)] = &[
    ("herokuapp.com", 404, "No such app"),
    ("github.io", 404, "There isn't a GitHub Pages site here."),
    ("vercel.app", 404, "DEPLOYMENT_NOT_FOUND"),
    ("up.railway.app", 404, "Application not found"),
    ("netlify.app", 404, "Not Found - Request ID"),
];

/// How much of a page is searched for those words.
const PAGE_BEGINNING: usize = 4096;

fn dangling_host(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    for (number, exchange) in session.exchanges.iter().enumerate() {
        if let Some(platform) = unclaimed_on(exchange) {
            out.add_at(
                format!("/exchanges/{number}/response"),
                format!("{platform} answers that nobody holds this name"),
            );
        }
    }
}

fn unclaimed_on(exchange: &Exchange) -> Option<&'static str> {
    let response = exchange.response.as_ref()?;
    let url = Url::parse(&exchange.request.url).ok()?;
    let host = url.host_str()?;
    let body = response.body();
    let page = String::from_utf8_lossy(&body[..body.len().min(PAGE_BEGINNING)]);
    let says = |(suffix, status, words): &&(&str, u16, &str)| {
        let is_under = host.strip_suffix(*suffix).is_some_and(|name| name.ends_with('.'));
        is_under && response.status == *status && page.contains(*words)
    };
    UNCLAIMED.iter().find(says).map(|(suffix, ..)| *suffix)
}

crate::rule! {
    /// The document is JSON and served as something else.
    ///
    /// It is judged all the same; strict clients look at the label first.
    static CONTENT_TYPE_MISMATCH = {
        id: "common/content-type-mismatch",
        evidence: Evidence::Live,
        place: "response header Content-Type",
        fix: "Serve it as application/json.",
        spec: "RFC 9110 8.3",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/content-type"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://a.example/card"}, "response": {"status": 200, "headers": {"content-type": "text/plain", "cache-control": "max-age=60", "etag": "\"1\""}, "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://a.example/card"}, "response": {"status": 200, "headers": {"content-type": "Application/A2A+JSON; charset=utf-8", "cache-control": "max-age=60", "etag": "\"1\""}, "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(content_type_mismatch),
    }
}

fn content_type_mismatch(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let (Some((number, response)), Some(document)) = (context.answer(), context.document) else {
        out.not_evaluated(NotEvaluated::NoDocument);
        return;
    };
    let is_labelled = response.media_type().is_some_and(|label| label.is_json() || is_yaml_for(context.kind, &label));
    if document.trouble().is_some() || is_labelled || has_rule_of_its_own(context.kind) {
        return;
    }
    let place = format!("/exchanges/{number}/response/headers/content-type");
    match response.header("content-type") {
        Some(label) => out.add_at(place, format!("served as {}", quote(label))),
        None => out.add_at(place, "served without a Content-Type"),
    };
}

fn is_yaml_for(kind: Kind, label: &MediaType<'_>) -> bool {
    kind == Kind::Openapi && label.subtype.to_ascii_lowercase().contains("yaml")
}

/// What OAuth metadata and MCP answers are served as is said by rules of their own families.
fn has_rule_of_its_own(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::JsonrpcResponse
            | Kind::OauthProtectedResource
            | Kind::OauthAuthorizationServer
            | Kind::OauthOpenidConfiguration
    )
}
