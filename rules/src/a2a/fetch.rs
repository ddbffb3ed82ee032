//! The way to a card: whether it is there, at which of its paths, for whom, and how it may be kept.
//!
//! Looks are told apart by what was sent (`A2A-Version`, `If-None-Match`, `Origin`) and by the path, not by their order. A
//! look that was refused, throttled or failed on the server's side says nothing about the card (catalogue §3).

use super::detect::{looks_like_a_card, release};
use super::interfaces::comparable;
use super::table::{EVERY, SINCE_0_2};
use crate::common::drift::same_content;
use crate::document::{Document, Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::oauth::named::answer_to;
use crate::report::NotEvaluated;
use crate::rule::{Axis, Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::{Exchange, Response, Session, Step, WireError};
use crate::session_judge::{chains, document_of, is_card_path, is_legacy_path};
use crate::text::{host_is_loopback, quote};

pub(super) const RULES: &[&Rule] = &[
    &CARD_UNREACHABLE,
    &CARD_TLS_INVALID,
    &CARD_PLAIN_HTTP,
    &CARD_HTTP_STATUS,
    &CARD_AUTH_REQUIRED,
    &LEGACY_PATH_ONLY,
    &LEGACY_PATH_DIFFERS,
    &CACHE_CONTROL_MISSING,
    &ETAG_MISSING,
    &CONDITIONAL_IGNORED,
    &VARY_MISSING,
    &VERSION_HEADER_BREAKS_CARD,
    &HSTS_MISSING,
    &CORS_MISSING,
    &LINK_DEAD,
    &OAUTH_METADATA_MISMATCH,
];

const ON: &[Kind] = &[Kind::AgentCard];

/// One request for the card, and the answer at the end of its redirects.
struct Look<'s> {
    /// As it was sent.
    asked: &'s Exchange,
    /// The last answer.
    end: &'s Exchange,
    /// Its place in the session.
    number: usize,
    /// Asked at the path before 0.3.
    is_legacy: bool,
}

impl<'s> Look<'s> {
    fn header(&self, name: &str) -> Option<&'s str> {
        self.asked.request.headers.get(name).map(String::as_str)
    }

    fn response(&self) -> Option<&'s Response> {
        self.end.response.as_ref()
    }

    fn status(&self) -> Option<u16> {
        self.response().map(|response| response.status)
    }

    fn is_versioned(&self) -> bool {
        self.header("a2a-version").is_some()
    }

    /// The document it brought, when that is a card.
    fn card(&self) -> Option<Document> {
        let response = self.response().filter(|response| response.status == 200 && response.cut.is_none())?;
        let document = document_of(response);
        document.root().is_some_and(looks_like_a_card).then_some(document)
    }

    /// Whether a card is there: one that came, or one that did not change since it came.
    fn has_card(&self) -> bool {
        self.status() == Some(304) || self.card().is_some()
    }

    /// Why nothing can be said about what is there.
    fn unsaid(&self) -> Option<NotEvaluated> {
        let Some(response) = self.response() else { return Some(NotEvaluated::NoDocument) };
        match response.status {
            401 | 403 | 407 => Some(NotEvaluated::Auth),
            402 => Some(NotEvaluated::Payment),
            429 => Some(NotEvaluated::RateLimited),
            300..=399 if response.status != 304 => Some(NotEvaluated::NoDocument),
            500.. => Some(NotEvaluated::NoDocument),
            _ => response.cut.map(|_| NotEvaluated::Cut),
        }
    }

    fn place(&self) -> String {
        format!("/exchanges/{}/response", self.number)
    }

    fn status_place(&self) -> String {
        format!("{}/status", self.place())
    }
}

/// The looks at the card, in the order they were made.
fn looks(session: &Session) -> Vec<Look<'_>> {
    let chains = chains(session);
    let first = chains.first().map(|chain| chain.asked);
    let steps = [Step::Card, Step::CardPlain, Step::CardLegacy, Step::CardAgain, Step::CardOrigin];
    chains
        .iter()
        .filter_map(|chain| {
            let asked = session.exchanges.get(chain.first)?;
            let is_meant = match asked.step {
                Some(step) => steps.contains(&step),
                None => is_card_path(chain.asked) || first == Some(chain.asked),
            };
            let is_legacy = asked.step == Some(Step::CardLegacy) || is_legacy_path(chain.asked);
            let end = session.exchanges.get(chain.last)?;
            is_meant.then_some(Look { asked, end, number: chain.last, is_legacy })
        })
        .collect()
}

/// The looks at the present path; where there are none it is said so.
fn current<'s>(session: &'s Session, out: &mut Occurrences) -> Vec<Look<'s>> {
    let mut looks = looks(session);
    looks.retain(|look| !look.is_legacy);
    if looks.is_empty() {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
    looks
}

/// The answer with which the card came, for rules about its headers.
fn served<'c>(context: &Context<'c>, out: &mut Occurrences) -> Option<(usize, &'c Response)> {
    let answer = context.answer().filter(|(_, response)| response.status == 200);
    if answer.is_none() {
        out.not_evaluated(NotEvaluated::NoDocument);
    }
    answer
}

fn is_of_certificate(error: WireError) -> bool {
    matches!(
        error,
        WireError::TlsCertificateExpired | WireError::TlsCertificateName | WireError::TlsCertificateUnknownIssuer
    )
}

/// Failures that are the target's or its network's, and not ours.
fn is_of_the_target(error: WireError) -> bool {
    matches!(
        error,
        WireError::Dns
            | WireError::DnsNxdomain
            | WireError::DnsTimeout
            | WireError::Refused
            | WireError::ConnectTimeout
            | WireError::Timeout
            | WireError::Reset
            | WireError::Tls
            | WireError::Protocol
    )
}

/// A directive of a header such as `Cache-Control`, by its name in lower case; empty where it has no value.
fn directive<'h>(header: &'h str, name: &str) -> Option<&'h str> {
    header.split([',', ';']).find_map(|part| {
        let (key, value) = part.trim().split_once('=').unwrap_or((part.trim(), ""));
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
    })
}

crate::rule! {
    /// Nobody answers where the card should be.
    ///
    /// The name is not found, nobody listens, or the connection breaks: no client can read the card either.
    static CARD_UNREACHABLE = {
        id: "a2a/card-unreachable",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Restore DNS, TLS and the listener so that the card URL answers.",
        spec: "A2A 1.0 §8.1, §8.2",
        examples: &[
            fires(&["/exchanges/0"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "error": "refused"}]}"#),
            silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 503}}]}"#),
        ],
        check: Check::Session(card_unreachable),
    }
}

fn card_unreachable(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    if looks.iter().any(|look| look.response().is_some()) {
        return;
    }
    let failed = looks.iter().find_map(|look| Some((look, look.end.error.filter(|error| is_of_the_target(*error))?)));
    if let Some((look, error)) = failed {
        out.add_at(format!("/exchanges/{}", look.number), format!("no answer: {}", said(error)));
    }
}

/// How an error is spelled everywhere.
fn said(error: WireError) -> String {
    serde_json::to_value(error).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

crate::rule! {
    /// The certificate of the card's host is valid.
    ///
    /// It has ended, is for another name, or leads to no known root. Clients refuse the connection.
    static CARD_TLS_INVALID = {
        id: "a2a/card-tls-invalid",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        rank: 15,
        versions: EVERY,
        evidence: Evidence::Time,
        on: ON,
        place: "fetch",
        fix: "Install a valid certificate for the card's host.",
        spec: "A2A 1.0 §7.1, §7.2",
        examples: &[
            fires(&["/exchanges/0"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "error": "tls-certificate-name"}]}"#),
            silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "error": "reset"}]}"#)
                .beside(&["a2a/card-unreachable"]),
        ],
        check: Check::Session(card_tls_invalid),
    }
}

fn card_tls_invalid(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    let failed = looks.iter().find_map(|look| Some((look, look.end.error.filter(|error| is_of_certificate(*error))?)));
    if let Some((look, error)) = failed {
        out.add_at(format!("/exchanges/{}", look.number), said(error));
    }
}

crate::rule! {
    /// The card is served over https.
    ///
    /// What came over http anybody on the way may have written, the endpoint and its keys included. Spoken of only where
    /// https was tried as well and brought no card.
    static CARD_PLAIN_HTTP = {
        id: "a2a/card-plain-http",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Serve the card over https.",
        spec: "A2A 1.0 §7.1, §8.2, §14.3",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "error": "refused"},
                    {"request": {"method": "GET", "url": "http://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "http://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 301, "headers": {"location": "https://tides.example.com/.well-known/agent-card.json"}}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(card_plain_http),
    }
}

fn card_plain_http(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    let is_https = |look: &&Look<'_>| look.end.request.url.starts_with("https://");
    let is_local = |look: &Look<'_>| {
        let url = url::Url::parse(&look.end.request.url).ok();
        url.as_ref().and_then(url::Url::host_str).is_some_and(host_is_loopback)
    };
    let Some(plain) = looks.iter().find(|look| !is_https(look) && !is_local(look) && look.has_card()) else { return };
    let safe: Vec<&Look<'_>> = looks.iter().filter(is_https).collect();
    if safe.is_empty() {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    if !safe.iter().any(|look| look.has_card() || look.unsaid().is_some_and(|why| why != NotEvaluated::NoDocument)) {
        out.add_at(plain.place(), format!("the card comes from {}", quote(&plain.end.request.url)));
    }
}

crate::rule! {
    /// There is no card.
    ///
    /// The well-known address answers, with and without a version in the request, that there is nothing, and so does the
    /// older one.
    static CARD_HTTP_STATUS = {
        id: "a2a/card-http-status",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Serve the card with status 200 at /.well-known/agent-card.json.",
        spec: "A2A 1.0 §8.1, §8.2",
        examples: &[
            fires(
                &["/exchanges/0/response/status"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 404}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 404}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent.json"}, "response": {"status": 404}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 404}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 503}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent.json"}, "response": {"status": 404}}]}"#,
            ),
        ],
        check: Check::Session(card_http_status),
    }
}

fn card_http_status(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = looks(session);
    if looks.iter().any(Look::has_card) {
        return;
    }
    let (legacy, current): (Vec<_>, Vec<_>) = looks.iter().partition(|look| look.is_legacy);
    let asked_both_ways = current.iter().any(|look| look.is_versioned()) && current.iter().any(|l| !l.is_versioned());
    if !asked_both_ways || legacy.is_empty() {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    if let Some(why) = looks.iter().find_map(Look::unsaid) {
        return out.not_evaluated(why);
    }
    let missing = current.iter().find(|look| look.status() != Some(200));
    if let Some((look, status)) = missing.and_then(|look| Some((look, look.status()?))) {
        out.add_at(look.status_place(), format!("answers {status} to every look"));
    }
}

crate::rule! {
    /// The card is public.
    ///
    /// Who has no credentials yet learns from the card how to get some.
    static CARD_AUTH_REQUIRED = {
        id: "a2a/card-auth-required",
        axis: Axis::Reach,
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Publish a public card and keep private details for the extended card.",
        spec: "A2A 1.0 §3.1.11; 0.3 §5.4",
        examples: &[
            fires(&["/exchanges/0/response/status"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 401}}]}"#),
            silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 402}}]}"#),
        ],
        check: Check::Session(card_auth_required),
    }
}

fn card_auth_required(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    if looks.iter().any(Look::has_card) {
        return;
    }
    let is_refused = |look: &&Look<'_>| {
        matches!(look.status(), Some(401 | 403)) && !look.asked.request.headers.contains_key("authorization")
    };
    if let Some(look) = looks.iter().find(is_refused) {
        out.add_at(look.status_place(), format!("answers {} to everybody", look.status().unwrap_or_default()));
    }
}

crate::rule! {
    /// The card is at its present path.
    ///
    /// Clients of 0.3 and later ask for `agent-card.json` alone.
    static LEGACY_PATH_ONLY = {
        id: "a2a/legacy-path-only",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Serve the card at /.well-known/agent-card.json and redirect the old path to it.",
        spec: "A2A 0.3 §5.3; 1.0 §8.2, §14.3",
        seeds: &["inspector:legacy-path"],
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 404}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 500}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(legacy_path_only),
    }
}

fn legacy_path_only(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let current = current(session, out);
    let looks = looks(session);
    let leads_on = |look: &Look<'_>| is_card_path(&look.end.request.url) && !is_legacy_path(&look.end.request.url);
    let Some(legacy) = looks.iter().find(|look| look.is_legacy && !leads_on(look) && look.card().is_some()) else {
        return;
    };
    if current.is_empty() || current.iter().any(Look::has_card) {
        return;
    }
    match current.iter().find_map(Look::unsaid) {
        Some(why) => out.not_evaluated(why),
        None => {
            out.add_at(legacy.place(), "the card is at agent.json alone");
        }
    }
}

crate::rule! {
    /// Both paths serve one card.
    ///
    /// Otherwise it depends on the age of a client what it learns about the agent.
    static LEGACY_PATH_DIFFERS = {
        id: "a2a/legacy-path-differs",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Serve one document from both paths, or redirect.",
        spec: "A2A 1.0 §8.2",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "version": "1.9.0"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-0.3"}}]}"#,
            ),
        ],
        check: Check::Session(legacy_path_differs),
    }
}

fn legacy_path_differs(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = looks(session);
    let cards: Vec<(&Look<'_>, Document)> = looks.iter().filter_map(|look| Some((look, look.card()?))).collect();
    let (old, new): (Vec<_>, Vec<_>) = cards.iter().partition(|(look, _)| look.is_legacy);
    for (look, card) in old {
        // Asked for in another version it may be the answer to that.
        let asked_alike = new.iter().any(|(other, _)| other.is_versioned() == look.is_versioned());
        let is_served_too = new.iter().any(|(_, other)| says_the_same(card, other));
        if asked_alike && !is_served_too {
            out.add_at(look.place(), "the card here is another than that at agent-card.json");
        }
    }
}

fn says_the_same(one: &Document, other: &Document) -> bool {
    one.root().zip(other.root()).is_some_and(|(one, other)| same_content(one, other))
}

crate::rule! {
    /// The card says how long it may be kept.
    ///
    /// Without `max-age` every client guesses, and some ask at every call.
    static CACHE_CONTROL_MISSING = {
        id: "a2a/cache-control-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["1.0"],
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Send Cache-Control with a max-age.",
        spec: "A2A 1.0 §8.6.1",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/cache-control"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json", "etag": "\"1\"", "cache-control": "s-maxage=60"}, "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json", "etag": "\"1\"", "cache-control": "private, Max-Age=60"}, "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(cache_control_missing),
    }
}

fn cache_control_missing(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((number, response)) = served(context, out) else { return };
    let header = response.header("cache-control");
    if header.and_then(|header| directive(header, "max-age")).is_none_or(str::is_empty) {
        let what =
            header.map_or_else(|| "no Cache-Control".to_owned(), |header| format!("{} has no max-age", quote(header)));
        out.add_at(format!("/exchanges/{number}/response/headers/cache-control"), what);
    }
}

crate::rule! {
    /// The card has an ETag.
    ///
    /// With one a client asks whether the card changed, and need not read it again.
    static ETAG_MISSING = {
        id: "a2a/etag-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["1.0"],
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Send an ETag derived from the card version or content.",
        spec: "A2A 1.0 §8.6.1",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/etag"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json", "cache-control": "max-age=60"}, "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json", "cache-control": "max-age=60", "etag": "W/\"1\""}, "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(etag_missing),
    }
}

fn etag_missing(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((number, response)) = served(context, out) else { return };
    if response.header("etag").is_none_or(|tag| tag.trim().is_empty()) {
        out.add_at(format!("/exchanges/{number}/response/headers/etag"), "no ETag");
    }
}

crate::rule! {
    /// The ETag that a client sends back is not heeded.
    ///
    /// The card is sent again though it did not change, and that twice: one machine of many may be behind for a moment.
    static CONDITIONAL_IGNORED = {
        id: "a2a/conditional-ignored",
        basis: Basis::Hint,
        versions: &["1.0"],
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Answer 304 when the tag matches.",
        spec: "A2A 1.0 §8.6.2; RFC 9110 §13.1.2",
        examples: &[
            fires(
                &["/exchanges/0/response/status"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"if-none-match": "\"1\""}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"if-none-match": "\"1\""}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"if-none-match": "\"1\""}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(conditional_ignored),
    }
}

fn conditional_ignored(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    let asked: Vec<&Look<'_>> = looks.iter().filter(|look| look.header("if-none-match").is_some()).collect();
    if asked.is_empty() {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    let is_ignored = |look: &&Look<'_>| {
        look.response().is_some_and(|response| {
            response.status == 200
                && response.header("etag").is_some()
                && response.header("etag") == look.header("if-none-match")
        })
    };
    if asked.iter().filter(|look| is_ignored(look)).count() > 1 && asked.iter().all(is_ignored) {
        let look = asked[0];
        out.add_at(look.status_place(), "the card comes again with the ETag that was sent along");
    }
}

crate::rule! {
    /// A card that depends on `A2A-Version` says so to caches.
    ///
    /// A cache in between would hand the card of one version to clients of the other.
    static VARY_MISSING = {
        id: "a2a/vary-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Add Vary: A2A-Version, so that caches keep the two cards apart.",
        spec: "RFC 9110 §12.5.5; A2A 1.0 §3.6",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/vary"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:a2a-0.3"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:a2a-0.3"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:a2a-0.3"}}]}"#,
            ),
        ],
        check: Check::Session(vary_missing),
    }
}

fn vary_missing(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    let plain = |look: &&Look<'_>| look.header("origin").is_none() && look.header("if-none-match").is_none();
    let cards: Vec<(&Look<'_>, Document)> =
        looks.iter().filter(plain).filter_map(|look| Some((look, look.card()?))).collect();
    let (with, without): (Vec<_>, Vec<_>) = cards.iter().partition(|(look, _)| look.is_versioned());
    let (Some((_, one)), Some((_, other))) = (with.first(), without.first()) else {
        return out.not_evaluated(NotEvaluated::NotAsked);
    };
    if says_the_same(one, other) {
        return;
    }
    let is_steady = |cards: &[&(&Look<'_>, Document)]| {
        cards.len() > 1 && cards.iter().all(|(_, card)| says_the_same(card, &cards[0].1))
    };
    if !is_steady(&with) || !is_steady(&without) {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    let lacks = |look: &&Look<'_>| {
        let vary = look.response().and_then(|response| response.header("vary")).unwrap_or_default();
        !vary.split(',').any(|name| matches!(name.trim().to_ascii_lowercase().as_str(), "a2a-version" | "*"))
    };
    if let Some(look) = cards.iter().map(|(look, _)| *look).find(lacks) {
        out.add_at(
            format!("{}/headers/vary", look.place()),
            "the card depends on A2A-Version and Vary does not say so",
        );
    }
}

crate::rule! {
    /// Asking for 1.0 brings the card of an agent that speaks 1.0.
    ///
    /// Clients of 1.0 send `A2A-Version` with every request; this agent has an interface for them that they never see.
    static VERSION_HEADER_BREAKS_CARD = {
        id: "a2a/version-header-breaks-card",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: &["1.0"],
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Serve the card whatever the value of A2A-Version.",
        spec: "A2A 1.0 §3.6.1",
        examples: &[
            fires(
                &["/exchanges/0/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 400, "raw": "{}"}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"a2a-version": "1.0"}}, "response": {"status": 503}},
                    {"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(version_header_breaks_card),
    }
}

fn version_header_breaks_card(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    let asks = |look: &&Look<'_>| look.header("a2a-version").and_then(release) == Some((1, 0));
    let with: Vec<&Look<'_>> = looks.iter().filter(asks).collect();
    let Some(first) = with.first() else { return out.not_evaluated(NotEvaluated::NotAsked) };
    if with.iter().any(|look| look.has_card()) {
        return;
    }
    if let Some(why) = with.iter().find_map(|look| look.unsaid()) {
        return out.not_evaluated(why);
    }
    let speaks = |look: &&Look<'_>| look.card().is_some_and(|card| card.root().is_some_and(declares_1_0));
    if looks.iter().filter(|look| !asks(look)).any(|look| speaks(&look)) {
        let what = match first.status() {
            Some(200) => "with A2A-Version: 1.0 something else comes than the card".to_owned(),
            status => format!("A2A-Version: 1.0 is answered {}", status.unwrap_or_default()),
        };
        out.add_at(first.place(), what);
    }
}

/// Whether a card has an interface of 1.0.
fn declares_1_0(card: Node<'_>) -> bool {
    let version = |interface: Node<'_>| interface.get("protocolVersion").and_then(Node::text).and_then(release);
    let interfaces = card.get("supportedInterfaces").into_iter().flat_map(Node::items);
    interfaces.filter_map(version).any(|(major, _)| major == 1)
}

crate::rule! {
    /// The host does not say that it is to be asked over https alone.
    ///
    /// A first request over http can then be led elsewhere.
    static HSTS_MISSING = {
        id: "a2a/hsts-missing",
        versions: &["1.0"],
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Send Strict-Transport-Security.",
        spec: "A2A 1.0 §13.4",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/strict-transport-security"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": {"content-type": "application/json", "etag": "\"1\"", "cache-control": "max-age=60", "strict-transport-security": "max-age=0"}, "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(hsts_missing),
    }
}

fn hsts_missing(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((number, response)) = served(context, out) else { return };
    if !context.address().is_some_and(|address| address.starts_with("https://")) {
        return out.not_applicable();
    }
    let age = response.header("strict-transport-security").and_then(|header| directive(header, "max-age"));
    if age.and_then(|age| age.parse::<u64>().ok()).is_none_or(|age| age == 0) {
        let place = format!("/exchanges/{number}/response/headers/strict-transport-security");
        out.add_at(place, "no Strict-Transport-Security that lasts");
    }
}

crate::rule! {
    /// Pages of other sites cannot read the card.
    ///
    /// Clients that run in a browser need the permission; no specification asks for it.
    static CORS_MISSING = {
        id: "a2a/cors-missing",
        basis: Basis::Hint,
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "fetch",
        fix: "Send Access-Control-Allow-Origin: * so that browser clients can read the card.",
        spec: "Fetch standard; not in A2A",
        examples: &[
            fires(
                &["/exchanges/0/response/headers/access-control-allow-origin"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json", "headers": {"origin": "https://app.example.org"}}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}}]}"#,
            ),
        ],
        check: Check::Session(cors_missing),
    }
}

fn cors_missing(session: &Session, _: &Context<'_>, out: &mut Occurrences) {
    let looks = current(session, out);
    let asked: Vec<&Look<'_>> = looks.iter().filter(|look| look.header("origin").is_some()).collect();
    if asked.is_empty() {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    for look in asked {
        let Some(response) = look.response().filter(|response| response.status == 200) else { continue };
        if response.header("access-control-allow-origin").is_none() {
            let place = format!("{}/headers/access-control-allow-origin", look.place());
            out.add_at(place, "no Access-Control-Allow-Origin for another site");
            return;
        }
    }
}

crate::rule! {
    /// The links of a card lead somewhere.
    ///
    /// People who want to know more before they trust the agent find nothing.
    static LINK_DEAD = {
        id: "a2a/link-dead",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: EVERY,
        evidence: Evidence::Live,
        on: ON,
        place: "/documentationUrl, /iconUrl, /provider/url",
        fix: "Repair or remove the link.",
        spec: "not in A2A",
        examples: &[
            fires(
                &["/exchanges/0/response/body/provider/url"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "link", "request": {"method": "GET", "url": "https://www.example.com"}, "response": {"status": 410}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "link", "request": {"method": "GET", "url": "https://www.example.com"}, "response": {"status": 405}}]}"#,
            ),
        ],
        check: Check::Session(link_dead),
    }
}

fn link_dead(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some(card) = context.document.and_then(Document::root) else {
        return out.not_evaluated(NotEvaluated::NoDocument);
    };
    let links = [
        card.get("documentationUrl"),
        card.get("iconUrl"),
        card.get("provider").and_then(|provider| provider.get("url")),
    ];
    let mut has_looked = false;
    for link in links.into_iter().flatten() {
        let Some(exchange) = link.text().and_then(|text| answer_to(session, text)) else { continue };
        if exchange.request.method != "GET" {
            continue;
        }
        has_looked = true;
        let what = match (exchange.response.as_ref().map(|response| response.status), exchange.error) {
            (Some(status @ (404 | 410)), _) => format!("answers {status}"),
            (None, Some(WireError::DnsNxdomain)) => "its host does not exist".to_owned(),
            _ => continue,
        };
        out.add(link, what);
    }
    if !has_looked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}

crate::rule! {
    /// The card's OAuth endpoints are those of the metadata it names.
    ///
    /// Clients that read the card and clients that read the metadata would ask two places for a token.
    static OAUTH_METADATA_MISMATCH = {
        id: "a2a/oauth-metadata-mismatch",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: SINCE_0_2,
        evidence: Evidence::Live,
        on: ON,
        place: "/securitySchemes/*/**/flows/*",
        fix: "Copy the endpoints from the metadata.",
        spec: "RFC 8414 §2",
        examples: &[
            fires(
                &["/exchanges/0/response/body/securitySchemes/oauth/oauth2SecurityScheme/flows/clientCredentials/tokenUrl"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "securitySchemes": {"oauth": {"oauth2SecurityScheme": {"oauth2MetadataUrl": "https://id.example.com/.well-known/oauth-authorization-server", "flows": {"clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {"tides": "Read"}}}}}}}}},
                    {"step": "named-metadata", "request": {"method": "GET", "url": "https://id.example.com/.well-known/oauth-authorization-server"}, "response": {"status": 200, "body": {"issuer": "https://id.example.com", "token_endpoint": "https://id.example.com/oauth2/token"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "securitySchemes": {"oauth": {"oauth2SecurityScheme": {"oauth2MetadataUrl": "https://id.example.com/.well-known/oauth-authorization-server", "flows": {"clientCredentials": {"tokenUrl": "https://ID.example.com:443/token", "scopes": {"tides": "Read"}}}}}}}}},
                    {"step": "named-metadata", "request": {"method": "GET", "url": "https://id.example.com/.well-known/oauth-authorization-server"}, "response": {"status": 200, "body": {"issuer": "https://id.example.com", "token_endpoint": "https://id.example.com/token"}}}]}"#,
            ),
        ],
        check: Check::Session(oauth_metadata_mismatch),
    }
}

/// The members of a flow, and those of the metadata that say the same.
const ENDPOINTS: [(&str, &str); 3] = [
    ("tokenUrl", "token_endpoint"),
    ("authorizationUrl", "authorization_endpoint"),
    ("deviceAuthorizationUrl", "device_authorization_endpoint"),
];

fn oauth_metadata_mismatch(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some(card) = context.document.and_then(Document::root) else {
        return out.not_evaluated(NotEvaluated::NoDocument);
    };
    let mut has_looked = false;
    for named in card.select("/securitySchemes/**/oauth2MetadataUrl") {
        let Some(exchange) = named.text().and_then(|text| answer_to(session, text)) else { continue };
        let Some(response) = exchange.success().filter(|response| response.cut.is_none()) else { continue };
        let metadata = document_of(response);
        let Some(metadata) = metadata.root().filter(|root| root.kind() == Type::Object) else { continue };
        has_looked = true;
        let flows = named.parent().and_then(|scheme| scheme.get("flows")).into_iter().flat_map(Node::members);
        for (_, flow) in flows {
            for (ours, theirs) in ENDPOINTS {
                let (Some(declared), Some(real)) = (flow.get(ours), metadata.get(theirs).and_then(Node::text)) else {
                    continue;
                };
                if declared.text().is_some_and(|text| comparable(text) != comparable(real)) {
                    out.add(declared, format!("the metadata says {}", quote(real)));
                }
            }
        }
    }
    if !has_looked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}
