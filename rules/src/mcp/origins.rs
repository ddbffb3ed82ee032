//! Requests that a page of another site makes: whether a server tells them from those of its clients.

use url::Url;

use super::heard::{ON, answered};
use super::{ALL, SINCE_2025_03, SINCE_2025_11};
use crate::conversation::{Conversation, Turn};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::{is_public_host, quote};

pub(super) const RULES: &[&Rule] =
    &[&ORIGIN_NOT_VALIDATED, &ORIGIN_NOT_VALIDATED_LOCAL, &ORIGIN_REFUSAL_STATUS, &CORS_CREDENTIALS];

/// Whether the endpoint lies at a public host; `None` for an address without one.
fn is_public(conversation: &Conversation<'_>) -> Option<bool> {
    Url::parse(conversation.endpoint).ok()?.host_str().map(is_public_host)
}

fn origin_of<'t>(turn: &'t Turn<'_>) -> &'t str {
    turn.exchange.request.headers.get("origin").map_or("", String::as_str)
}

crate::rule! {
    /// A request from a page of another site is refused.
    ///
    /// A server that anybody may use may allow every origin by choice; it cannot be told from one that does not look.
    static ORIGIN_NOT_VALIDATED = {
        id: "mcp/origin-not-validated",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        rank: 32,
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:origin",
        fix: "Check Origin against an allow-list and answer 403.",
        spec: "2025-11-25 transports, Security Warning",
        seeds: &["validator:1.2.2.5"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "origin", "request": {"headers": {"origin": "https://plumbline-origin-check.invalid"}, "body": {"method": "initialize"}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "origin", "request": {"headers": {"origin": "https://plumbline-origin-check.invalid"}}, "response": {"status": 403, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(origin_not_validated),
    }
}

fn origin_not_validated(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if conversation.needs_authorization() || is_public(conversation) != Some(true) {
        return out.not_applicable();
    }
    for turn in answered(conversation, &[Step::Origin], out) {
        let is_handshake = matches!(turn.method(), Some("initialize" | "server/discover"));
        if turn.is_served() && is_handshake && conversation.endpoint.starts_with("https:") {
            out.add_in(turn.revision, turn.place(), format!("accepts the foreign Origin {}", quote(origin_of(turn))));
            return;
        }
    }
}

crate::rule! {
    /// A server on this machine or network refuses pages of other sites.
    ///
    /// Any page that its user visits could otherwise reach it through the browser and use its tools (DNS rebinding).
    static ORIGIN_NOT_VALIDATED_LOCAL = {
        id: "mcp/origin-not-validated-local",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        rank: 32,
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:origin",
        fix: "Check Origin and Host; answer 403.",
        spec: "2025-11-25 transports, Security Warning",
        seeds: &["validator:1.2.2.5"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "request": {"url": "http://127.0.0.1:8000/mcp"}}, {"step": "origin", "request": {"url": "http://127.0.0.1:8000/mcp", "headers": {"origin": "https://plumbline-origin-check.invalid"}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "request": {"url": "http://127.0.0.1:8000/mcp"}}, {"step": "origin", "request": {"url": "http://127.0.0.1:8000/mcp", "headers": {"origin": "https://plumbline-origin-check.invalid"}}, "response": {"status": 403, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(origin_not_validated_local),
    }
}

fn origin_not_validated_local(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if is_public(conversation) != Some(false) {
        return out.not_applicable();
    }
    for turn in answered(conversation, &[Step::Origin], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), format!("serves a request with Origin {}", quote(origin_of(turn))));
            return;
        }
    }
}

crate::rule! {
    /// A foreign origin is refused with 403.
    ///
    /// Another status sends whoever looks for the cause elsewhere.
    static ORIGIN_REFUSAL_STATUS = {
        id: "mcp/origin-refusal-status",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_11,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:origin",
        fix: "Answer 403.",
        spec: "2025-11-25 transports, Security Warning",
        seeds: &["validator:1.2.2.5"],
        examples: &[
                fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "initialize"}, {"step": "origin", "request": {"headers": {"origin": "https://plumbline-origin-check.invalid"}}, "response": {"status": 400, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "origin", "request": {"headers": {"origin": "https://plumbline-origin-check.invalid"}}, "response": {"status": 403, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(origin_refusal_status),
    }
}

fn origin_refusal_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    // A foreign Host beside the Origin may be refused as such, with a status of its own.
    let by_origin = |turn: &&Turn<'_>| !turn.exchange.request.headers.contains_key("host");
    for turn in answered(conversation, &[Step::Origin], out).into_iter().filter(by_origin) {
        if let Some(status @ 400..=499) = turn.status().filter(|status| !matches!(status, 401..=403 | 407)) {
            out.add_in(
                turn.revision,
                format!("{}/status", turn.place()),
                format!("a foreign Origin is refused with {status}"),
            );
            return;
        }
    }
}

crate::rule! {
    /// Pages of other sites may not come with the user's credentials.
    ///
    /// The answer allows any origin to send cookies and to read what comes back.
    static CORS_CREDENTIALS = {
        id: "mcp/cors-credentials",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: SINCE_2025_03,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:origin",
        fix: "Do not combine open origins with credentials.",
        spec: "Fetch standard, CORS protocol",
        examples: &[
                fires(&["/exchanges/1/response/headers/access-control-allow-credentials"], r#"{"exchanges": [{"step": "initialize"}, {"step": "origin", "request": {"headers": {"origin": "https://plumbline-origin-check.invalid"}}, "response": {"status": 403, "headers": {"access-control-allow-origin": "https://plumbline-origin-check.invalid", "access-control-allow-credentials": "true"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "origin", "request": {"headers": {"origin": "https://plumbline-origin-check.invalid"}}, "response": {"status": 403, "headers": {"access-control-allow-origin": "*"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(cors_credentials),
    }
}

fn cors_credentials(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::Origin], out) {
        let Some(response) = turn.response() else { continue };
        let allowed = response.header("access-control-allow-origin").unwrap_or_default().trim();
        let with_credentials = response.header("access-control-allow-credentials").map(str::trim) == Some("true");
        if with_credentials && !allowed.is_empty() && (allowed == "*" || allowed == origin_of(turn)) {
            let place = turn.header_place("access-control-allow-credentials");
            out.add_in(turn.revision, place, format!("allows {} with credentials", quote(allowed)));
            return;
        }
    }
}
