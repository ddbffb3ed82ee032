//! How a server card is served, where it lies, and whether it says what the server does.

use super::V1;
use super::heard::ON as ENDPOINT;
use crate::authorization::json_of;
use crate::conversation::{Conversation, Turn};
use crate::document::{Document, Node};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::{Response, Session, Step};
use crate::text::quote;

pub(super) const RULES: &[&Rule] =
    &[&CARD_CONTENT_TYPE, &CARD_CORS, &CARD_CACHING, &CARD_LOCATION, &CARD_RUNTIME_CONFLICT];

const ON: &[Kind] = &[Kind::McpServerCard];

/// A card as it was served, when it was.
fn served<'c>(context: &Context<'c>) -> Option<(String, &'c Response)> {
    let (number, response) = context.answer()?;
    Some((format!("/exchanges/{number}/response/headers"), response))
}

crate::rule! {
    /// A card is labelled as a server card.
    ///
    /// By the label a client knows what it fetched without guessing from the content.
    static CARD_CONTENT_TYPE = {
        id: "mcp/card-content-type",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        evidence: Evidence::Live,
        on: ON,
        place: "response header Content-Type",
        fix: "Serve application/mcp-server-card+json.",
        spec: "SEP-2127 discovery, Hosted Location",
        examples: &[
                fires(&["/exchanges/0/response/headers/content-type"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/mcp/server-card"}, "response": {"status": 200, "headers": {"content-type": "text/plain", "access-control-allow-origin": "*", "etag": "\"1\""}, "body": "base:server-card-v1"}}]}"#)
                    .given(r#"{"surface": "server-card"}"#),
                silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/mcp/server-card"}, "response": {"status": 200, "headers": {"content-type": "application/mcp-server-card+json; charset=utf-8", "access-control-allow-origin": "*", "etag": "\"1\""}, "body": "base:server-card-v1"}}]}"#)
                    .given(r#"{"surface": "server-card"}"#),
        ],
        check: Check::Session(card_content_type),
    }
}

fn card_content_type(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((place, response)) = served(context) else { return out.not_evaluated(NotEvaluated::NoDocument) };
    let label = response.media_type();
    if label.as_ref().is_some_and(|label| label.is("application", "mcp-server-card+json")) {
        return;
    }
    let shown = response.header("content-type").map_or_else(|| "nothing".to_owned(), quote);
    let added = out.add_at(format!("{place}/content-type"), format!("the card is labelled {shown}"));
    if label.is_some_and(|label| label.is("application", "json")) {
        added.severity(Severity::Info);
    }
}

crate::rule! {
    /// A card may be read from every page.
    ///
    /// Clients that live in a browser cannot read it otherwise.
    static CARD_CORS = {
        id: "mcp/card-cors",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        evidence: Evidence::Live,
        on: ON,
        place: "response header Access-Control-Allow-Origin",
        fix: "Add the CORS headers.",
        spec: "SEP-2127 discovery, CORS Requirements",
        examples: &[
                fires(&["/exchanges/0/response/headers"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/mcp/server-card"}, "response": {"status": 200, "headers": {"content-type": "application/mcp-server-card+json", "etag": "\"1\""}, "body": "base:server-card-v1"}}]}"#)
                    .given(r#"{"surface": "server-card"}"#),
                silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "http://localhost:9000/mcp/server-card"}, "response": {"status": 200, "headers": {"content-type": "application/mcp-server-card+json", "etag": "\"1\""}, "body": "base:server-card-v1"}}]}"#)
                    .given(r#"{"surface": "server-card"}"#),
        ],
        check: Check::Session(card_cors),
    }
}

fn card_cors(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((place, response)) = served(context) else { return out.not_evaluated(NotEvaluated::NoDocument) };
    let is_secure = context.address().is_some_and(|address| address.starts_with("https:"));
    if is_secure && response.header("access-control-allow-origin").map(str::trim) != Some("*") {
        out.add_at(place, "no `Access-Control-Allow-Origin: *`");
    }
}

crate::rule! {
    /// A card says how long it holds.
    ///
    /// Clients fetch it anew each time otherwise.
    static CARD_CACHING = {
        id: "mcp/card-caching",
        versions: V1,
        evidence: Evidence::Live,
        on: ON,
        place: "response headers Cache-Control, ETag",
        fix: "Add both.",
        spec: "SEP-2127 discovery, Caching",
        examples: &[
                fires(&["/exchanges/0/response/headers"], r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/mcp/server-card"}, "response": {"status": 200, "headers": {"content-type": "application/mcp-server-card+json", "access-control-allow-origin": "*"}, "body": "base:server-card-v1"}}]}"#)
                    .given(r#"{"surface": "server-card"}"#),
                silent(r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/mcp/server-card"}, "response": {"status": 200, "headers": {"content-type": "application/mcp-server-card+json", "access-control-allow-origin": "*", "etag": "\"1\""}, "body": "base:server-card-v1"}}]}"#)
                    .given(r#"{"surface": "server-card"}"#),
        ],
        check: Check::Session(card_caching),
    }
}

fn card_caching(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((place, response)) = served(context) else { return out.not_evaluated(NotEvaluated::NoDocument) };
    if response.header("cache-control").is_none() && response.header("etag").is_none() {
        out.add_at(place, "neither Cache-Control nor ETag");
    }
}

/// The turns that brought a card of form v1, its own place first.
fn cards<'c, 's>(conversation: &'c Conversation<'s>) -> Vec<(&'c Turn<'s>, Document)> {
    let with_card = |turn: &'c Turn<'s>| {
        let document = json_of(turn)?;
        let is_card = document.root().is_some_and(|root| {
            root.get("$schema").and_then(Node::text).is_some_and(|schema| schema.contains("server-card"))
        });
        is_card.then_some((turn, document))
    };
    conversation.of(Step::ServerCard).filter_map(with_card).collect()
}

fn is_fallback(turn: &Turn<'_>) -> bool {
    turn.exchange.request.url.contains("/.well-known/")
}

crate::rule! {
    /// A card lies beside its endpoint.
    ///
    /// At `<endpoint>/server-card`, or where a catalogue says. At the older places only some clients look.
    static CARD_LOCATION = {
        id: "mcp/card-location",
        basis: Basis::Hint,
        versions: V1,
        evidence: Evidence::Live,
        on: ENDPOINT,
        place: "card URL",
        fix: "Serve it at <endpoint>/server-card.",
        spec: "SEP-2127 discovery, Hosted Location",
        examples: &[
                fires(&["/exchanges/1/request/url"], r#"{"exchanges": [{"step": "server-card", "response": {"status": 404, "headers": {"content-type": null}, "body": null}}, {"step": "server-card", "request": {"url": "https://tides.example.com/.well-known/mcp/server-card.json"}}]}"#)
                    .over("conversation-2026-07-28"),
                silent(r#"{"exchanges": [{"step": "server-card"}, {"step": "server-card", "request": {"url": "https://tides.example.com/.well-known/mcp/server-card.json"}}]}"#)
                    .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(card_location),
    }
}

fn card_location(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let cards = cards(conversation);
    let Some((turn, _)) = cards.first() else { return out.not_evaluated(NotEvaluated::NoDocument) };
    let in_catalogue = conversation.of(Step::AiCatalog).any(|turn| json_of(turn).is_some());
    if cards.iter().all(|(turn, _)| is_fallback(turn)) && !in_catalogue {
        let url = &turn.exchange.request.url;
        out.add_at(
            format!("/exchanges/{}/request/url", turn.number),
            format!("the card is found only at {}", quote(url)),
        );
    }
}

crate::rule! {
    /// A card says what the server says.
    ///
    /// Clients decide by the card whether to connect at all, and then meet another server.
    static CARD_RUNTIME_CONFLICT = {
        id: "mcp/card-runtime-conflict",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: V1,
        evidence: Evidence::Live,
        on: ENDPOINT,
        place: "/name /version /remotes",
        fix: "Keep the card in step with the server.",
        spec: "SEP-2127 discovery, Consistency with Runtime Behavior",
        examples: &[
                fires(&["/exchanges/1/response/body/version"], r#"{"exchanges": [{"step": "discover"}, {"step": "server-card", "response": {"body": {"version": "2.2.0"}}}]}"#)
                    .over("conversation-2026-07-28"),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "server-card"}]}"#).over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(card_runtime_conflict),
    }
}

fn card_runtime_conflict(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let cards = cards(conversation);
    let Some((turn, card)) = cards.first() else { return out.not_evaluated(NotEvaluated::NoDocument) };
    let Some(root) = card.root() else { return };
    let named = root.get("version").and_then(Node::text);
    if let (Some(named), Some(live)) = (named, live_version(conversation))
        && named != live
    {
        let place = format!("/exchanges/{}/response/body/version", turn.number);
        out.add_at(place, format!("the card says {}, the server {}", quote(named), quote(live)));
    }
}

/// What the server calls its version.
fn live_version<'c>(conversation: &'c Conversation<'_>) -> Option<&'c str> {
    let modern = conversation.handshake(Step::Discover).and_then(Turn::result);
    let modern = modern.and_then(|result| result.get("_meta")?.get(super::SERVER_INFO));
    let legacy = || conversation.handshake(Step::Initialize)?.result()?.get("serverInfo");
    modern.or_else(legacy)?.get("version")?.text()
}
