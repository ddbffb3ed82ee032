//! What a server does with tokens: made-up ones, those of others, in the wrong place. Only on targets that the operator
//! marked as own, with tokens that the operator gave.

use super::{SINCE_2025_03, SINCE_2025_06, SINCE_2025_11};
use crate::conversation::{Conversation, Turn};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::challenge::challenges;

pub(super) const RULES: &[&Rule] = &[
    &TOKEN_QUERY_ACCEPTED,
    &TOKEN_INVALID_ACCEPTED,
    &TOKEN_INVALID_STATUS,
    &TOKEN_AUDIENCE_UNCHECKED,
    &SESSION_BYPASSES_AUTH,
    &INSUFFICIENT_SCOPE_SHAPE,
];

const ON: &[Kind] = &[Kind::McpEndpoint];
/// The revisions with sessions.
const SESSIONS: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25"];

/// What the refusals in the examples bring by themselves: they name no metadata.
const PASSIVE: &[&str] = &[
    "oauth/challenge-resource-metadata-missing",
    "oauth/prm-not-found",
    "oauth/status-403-unauthenticated",
    "oauth/challenge-missing",
];

fn has_token(turn: &Turn<'_>) -> bool {
    turn.exchange.request.headers.contains_key("authorization")
}

/// The turns of a step that were served; where it was never taken it is said so.
fn taken<'c, 's>(conversation: &'c Conversation<'s>, step: Step, out: &mut Occurrences) -> Vec<&'c Turn<'s>> {
    let versions = out.rule().versions;
    let asked: Vec<&Turn<'s>> = conversation.of(step).filter(|turn| versions.contains(&turn.revision)).collect();
    if asked.is_empty() {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
    asked.into_iter().filter(|turn| turn.is_served()).collect()
}

crate::rule! {
    /// A token in the address is not a token.
    ///
    /// Addresses end in logs and histories, and whoever reads them could go on with it.
    static TOKEN_QUERY_ACCEPTED = {
        id: "oauth/token-query-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_03,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:token-in-query",
        fix: "Ignore tokens in the query.",
        spec: "2026-07-28 authorization, Token Requirements",
        seeds: &["validator:1.4.3.2"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "token-in-query", "request": {"headers": {"authorization": "***"}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "token-in-query", "request": {"headers": {"authorization": "***"}}, "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(token_query_accepted),
    }
}

fn token_query_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in taken(conversation, Step::TokenInQuery, out) {
        out.add_in(turn.revision, turn.place(), "a token in the query is taken");
    }
}

crate::rule! {
    /// A made-up token is refused.
    ///
    /// The server asks for a token and does not look at it.
    static TOKEN_INVALID_ACCEPTED = {
        id: "oauth/token-invalid-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_03,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:bad-token",
        fix: "Validate tokens.",
        spec: "2026-07-28 authorization, Token Handling",
        seeds: &["validator:1.5.3.3", "validator:1.4.3.3"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}, {"step": "bad-token", "request": {"headers": {"authorization": "***"}}}]}"#).over("conversation-2025-11-25").beside(PASSIVE),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}, {"step": "bad-token", "request": {"headers": {"authorization": "***"}}, "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#).over("conversation-2025-11-25").beside(PASSIVE),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "bad-token", "request": {"headers": {"authorization": "***"}}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(token_invalid_accepted),
    }
}

fn token_invalid_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_refused = |turn: &Turn<'_>| turn.is_auth_refusal() && !has_token(turn);
    if !conversation.turns.iter().any(is_refused) {
        return out.not_applicable();
    }
    for turn in taken(conversation, Step::BadToken, out) {
        out.add_in(turn.revision, turn.place(), "a made-up token is taken, and none is refused");
    }
}

crate::rule! {
    /// A made-up token is refused with 401.
    ///
    /// By 401 a client knows that it needs another token, and asks for one.
    static TOKEN_INVALID_STATUS = {
        id: "oauth/token-invalid-status",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:bad-token",
        fix: "Answer 401 with error=\"invalid_token\".",
        spec: "2026-07-28 authorization, Token Handling",
        examples: &[
            fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}, {"step": "bad-token", "request": {"headers": {"authorization": "***"}}, "response": {"status": 403, "headers": {"content-type": null}, "body": null}}]}"#).over("conversation-2025-11-25").beside(PASSIVE),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}, {"step": "bad-token", "request": {"headers": {"authorization": "***"}}, "response": {"status": 429, "headers": {"content-type": null}, "body": null}}]}"#).over("conversation-2025-11-25").beside(PASSIVE),
        ],
        check: Check::Conversation(token_invalid_status),
    }
}

fn token_invalid_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut has_asked = false;
    for turn in conversation.of(Step::BadToken) {
        has_asked = true;
        let Some(status) = turn.status() else { continue };
        let says_nothing = matches!(status, 300..=399 | 401 | 402 | 407 | 429 | 500..);
        let is_refused = status >= 400 || turn.says_unauthorized();
        if is_refused && !says_nothing && !turn.is_served() {
            out.add_in(
                turn.revision,
                format!("{}/status", turn.place()),
                format!("a made-up token is refused with {status}"),
            );
        }
    }
    if !has_asked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}

crate::rule! {
    /// A token for another resource is refused.
    ///
    /// Whoever was given a token by a user for something else could use it here.
    static TOKEN_AUDIENCE_UNCHECKED = {
        id: "oauth/token-audience-unchecked",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_06,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:other-audience",
        fix: "Check the audience.",
        spec: "2026-07-28 authorization security, Audience",
        seeds: &["validator:1.4.3.3", "validator:1.4.3.4", "validator:1.5.2.1"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "other-audience", "request": {"headers": {"authorization": "***"}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "other-audience", "request": {"headers": {"authorization": "***"}}, "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(token_audience_unchecked),
    }
}

fn token_audience_unchecked(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in taken(conversation, Step::OtherAudience, out) {
        out.add_in(turn.revision, turn.place(), "a token that was issued for another resource is taken");
    }
}

crate::rule! {
    /// A session does not stand for a token.
    ///
    /// Its id is no credential; whoever learns it would need nothing else.
    static SESSION_BYPASSES_AUTH = {
        id: "oauth/session-bypasses-auth",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SESSIONS,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-without-token",
        fix: "Check the token on every request.",
        spec: "2025-11-25 security best practices",
        seeds: &["validator:1.5.3.3"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "session-without-token", "request": {"headers": {"authorization": "***"}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-without-token", "request": {"headers": {"authorization": "***"}}, "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(session_bypasses_auth),
    }
}

fn session_bypasses_auth(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in taken(conversation, Step::SessionWithoutToken, out) {
        out.add_in(turn.revision, turn.place(), "the id of the session is taken in place of a token");
    }
}

crate::rule! {
    /// Who lacks a scope is told which.
    ///
    /// With error, scope and resource_metadata in the challenge a client can ask for more; without them it gives up.
    static INSUFFICIENT_SCOPE_SHAPE = {
        id: "oauth/insufficient-scope-shape",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_11,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "403 response",
        fix: "Send the full challenge.",
        spec: "2026-07-28 authorization, Scope Challenge Handling",
        examples: &[
            fires(&["/exchanges/1/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize"}, {"step": "low-scope", "request": {"headers": {"authorization": "***"}}, "response": {"status": 403, "headers": {"content-type": null, "www-authenticate": "Bearer error=\"insufficient_scope\""}, "body": null}}]}"#).over("conversation-2025-11-25").beside(PASSIVE),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "low-scope", "request": {"headers": {"authorization": "***"}}, "response": {"status": 403, "headers": {"content-type": null, "www-authenticate": "Bearer error=\"insufficient_scope\", scope=\"tides:read\", resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}]}"#).over("conversation-2025-11-25").beside(PASSIVE),
        ],
        check: Check::Conversation(insufficient_scope_shape),
    }
}

fn insufficient_scope_shape(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut has_asked = false;
    for turn in conversation.of(Step::LowScope).filter(|turn| turn.status() == Some(403) && has_token(turn)) {
        has_asked = true;
        let read = turn.challenge().map(challenges).and_then(Result::ok).unwrap_or_default();
        let bearer = read.iter().find(|challenge| challenge.wants_token());
        let has = |name: &str| {
            bearer.is_some_and(|challenge| challenge.parameter(name).is_some_and(|value| !value.is_empty()))
        };
        let is_named = bearer.is_some_and(|challenge| challenge.parameter("error") == Some("insufficient_scope"));
        let mut lacking: Vec<&str> = ["scope", "resource_metadata"].into_iter().filter(|name| !has(name)).collect();
        if !is_named {
            lacking.insert(0, "error=\"insufficient_scope\"");
        }
        if !lacking.is_empty() {
            let what = format!("the challenge lacks {}", lacking.join(", "));
            out.add_in(turn.revision, turn.header_place("www-authenticate"), what);
        }
    }
    if !has_asked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}
