//! The challenge: how a server says that it wants a token, and where one can be had.

use super::{SINCE_2025_03, SINCE_2025_06, SINCE_2025_11};
use crate::authorization::Chain;
use crate::conversation::{Conversation, Turn};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Check, Impact, Rule, Severity, fires, silent};
use crate::text::challenge::{Challenge, challenges};
use crate::text::{AbsoluteUrl, host_is_loopback, quote};

pub(super) const RULES: &[&Rule] = &[
    &CHALLENGE_MISSING,
    &CHALLENGE_MALFORMED,
    &CHALLENGE_NOT_BEARER,
    &CHALLENGE_RESOURCE_METADATA_MISSING,
    &CHALLENGE_RESOURCE_METADATA_ABSENT,
    &CHALLENGE_RESOURCE_METADATA_URL,
    &CHALLENGE_SCOPE_MISSING,
    &CHALLENGE_SCOPE_INVALID,
    &CHALLENGE_OFFLINE_ACCESS,
    &CHALLENGE_ERROR_WITHOUT_TOKEN,
];

const ON: &[Kind] = &[Kind::McpEndpoint];

/// The first refusal for want of credentials, with the revision it is judged by; `None` (and said so) where there is none
/// or the rule is of another revision.
fn refusal<'c>(chain: &Chain<'c>, out: &mut Occurrences) -> Option<(&'c Turn<'c>, &'static str)> {
    let revision = chain.revision();
    let Some(turn) = chain.refusal else {
        out.not_evaluated(NotEvaluated::NotAsked);
        return None;
    };
    if !out.rule().versions.contains(&revision) {
        out.not_applicable();
        return None;
    }
    Some((turn, revision))
}

/// The challenge that asks for a token, with the place of its header.
fn token_challenge<'c>(chain: &'c Chain<'_>, out: &mut Occurrences) -> Option<(String, &'static str, &'c Challenge)> {
    let (turn, revision) = refusal(chain, out)?;
    let challenge = chain.token_challenge();
    if challenge.is_none() {
        out.not_evaluated(NotEvaluated::Parent);
    }
    Some((turn.header_place("www-authenticate"), revision, challenge?))
}

/// Whether the resource's metadata was found, or somebody says so.
fn is_metadata_found(chain: &Chain<'_>, context: &Context<'_>) -> bool {
    context.given.well_known_found.unwrap_or_else(|| chain.document().is_some())
}

crate::rule! {
    /// A 401 says what is wanted.
    ///
    /// HTTP asks for a challenge with it. Without one a client has to guess where the authorization server is; since 2025-11-25
    /// it may look at a well-known place, so that there only a hint is missing.
    static CHALLENGE_MISSING = {
        id: "oauth/challenge-missing",
        severity: Severity::Error,
        severity_overrides: &[("2025-03-26", Severity::Warning)],
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the authorization chain ends here; not run per SDK",
        rank: 33,
        versions: SINCE_2025_03,
        on: ON,
        place: "401 response",
        fix: "Send WWW-Authenticate: Bearer with resource_metadata.",
        spec: "RFC 9110 §15.5.2; 2025-06-18 authorization, Authorization Server Location",
        seeds: &["validator:1.4.2.2", "inspector:www-authenticate"],
        examples: &[
                fires(&["/exchanges/0/response/headers"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null}, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource", "body": null}, "response": {"status": 503, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 403, "headers": {"mcp-session-id": null}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_missing),
    }
}

fn challenge_missing(conversation: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((_, revision)) = refusal(&chain, out) else { return };
    let is_bare = |turn: &&Turn<'_>| {
        let is_page = turn
            .response()
            .and_then(super::super::session::Response::media_type)
            .is_some_and(|media_type| media_type.is_html());
        turn.is_about_endpoint() && turn.status() == Some(401) && turn.challenge().is_none() && !is_page
    };
    let Some(turn) = conversation.turns.iter().find(is_bare) else { return };
    let is_found = is_metadata_found(&chain, context);
    let added = out.add_in(revision, format!("{}/headers", turn.place()), "401 without WWW-Authenticate");
    if revision >= "2025-11-25" && is_found {
        added.severity(Severity::Info).impact(Impact::Cosmetic);
    }
}

crate::rule! {
    /// A challenge can be read.
    ///
    /// Clients that read it by the grammar find nothing in a broken one.
    static CHALLENGE_MALFORMED = {
        id: "oauth/challenge-malformed",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        on: ON,
        place: "WWW-Authenticate",
        fix: "Follow the challenge grammar.",
        spec: "RFC 9110 §11.6.1",
        seeds: &["validator:1.4.2.2"],
        examples: &[
                fires(&["/exchanges/0/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer realm=\"tides"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Basic realm=\"a, b\", Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_malformed),
    }
}

fn challenge_malformed(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((turn, revision)) = refusal(&chain, out) else { return };
    if let Some(Err((what, _))) = turn.challenge().map(challenges) {
        out.add_in(revision, turn.header_place("www-authenticate"), what);
    }
}

crate::rule! {
    /// A challenge asks for a token.
    ///
    /// MCP clients know Bearer and DPoP; by Basic and others they cannot come in.
    static CHALLENGE_NOT_BEARER = {
        id: "oauth/challenge-not-bearer",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        on: ON,
        place: "WWW-Authenticate",
        fix: "Offer Bearer.",
        spec: "RFC 6750 §3",
        seeds: &["validator:1.4.2.2", "validator:1.4.3.1"],
        examples: &[
                fires(&["/exchanges/0/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Basic realm=\"tides\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_not_bearer),
    }
}

fn challenge_not_bearer(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((turn, revision)) = refusal(&chain, out) else { return };
    match turn.challenge().map(challenges) {
        Some(Ok(all)) if !all.iter().any(Challenge::wants_token) => {
            let schemes: Vec<&str> = all.iter().map(|challenge| challenge.scheme.as_str()).collect();
            out.add_in(
                revision,
                turn.header_place("www-authenticate"),
                format!("offers {}", quote(&schemes.join(", "))),
            );
        }
        Some(Err(_)) => out.not_evaluated(NotEvaluated::Parent),
        _ => {}
    }
}

crate::rule! {
    /// A challenge says where the resource's metadata is.
    ///
    /// In 2025-06-18 it is the only way to find it.
    static CHALLENGE_RESOURCE_METADATA_MISSING = {
        id: "oauth/challenge-resource-metadata-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["2025-06-18"],
        on: ON,
        place: "WWW-Authenticate",
        fix: "Add resource_metadata.",
        spec: "2025-06-18 authorization, Authorization Server Location",
        seeds: &["validator:1.4.2.2", "inspector:resource_metadata"],
        examples: &[
                fires(&["/exchanges/1/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "request": {"body": {"params": {"protocolVersion": "2025-06-18"}}}, "response": {"body": {"result": {"protocolVersion": "2025-06-18"}}}}, {"step": "tools/list", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25").given(r#"{"surface": "mcp", "requested_version": "2025-06-18"}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_resource_metadata_missing),
    }
}

fn challenge_resource_metadata_missing(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((place, revision, challenge)) = token_challenge(&chain, out) else { return };
    if challenge.parameter("resource_metadata").is_none() {
        out.add_in(revision, place, "the challenge has no resource_metadata");
    }
}

crate::rule! {
    /// A challenge could say where the resource's metadata is.
    ///
    /// It lies at a well-known place; naming it spares clients to try each.
    static CHALLENGE_RESOURCE_METADATA_ABSENT = {
        id: "oauth/challenge-resource-metadata-absent",
        versions: SINCE_2025_11,
        on: ON,
        place: "WWW-Authenticate",
        fix: "Add resource_metadata; it saves clients a guess.",
        spec: "2026-07-28 authorization discovery; SEP-985",
        seeds: &["inspector:resource_metadata"],
        examples: &[
                fires(&["/exchanges/0/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer realm=\"tides\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25").given(r#"{"surface": "mcp", "well_known_found": true}"#),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer realm=\"tides\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_resource_metadata_absent),
    }
}

fn challenge_resource_metadata_absent(conversation: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((place, _, challenge)) = token_challenge(&chain, out) else { return };
    if challenge.parameter("resource_metadata").is_none() && is_metadata_found(&chain, context) {
        out.add_at(place, "the challenge has no resource_metadata");
    }
}

crate::rule! {
    /// The metadata that a challenge names lies at an https URL.
    ///
    /// Clients refuse a relative one, and one that anybody on the way could answer.
    static CHALLENGE_RESOURCE_METADATA_URL = {
        id: "oauth/challenge-resource-metadata-url",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        on: ON,
        place: "WWW-Authenticate; resource_metadata",
        fix: "Give an absolute https URL.",
        spec: "RFC 9728 §5.1",
        seeds: &["inspector:resource_metadata"],
        examples: &[
                fires(&["/exchanges/0/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer resource_metadata=\"/.well-known/oauth-protected-resource\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer resource_metadata=\"http://127.0.0.1:9000/.well-known/oauth-protected-resource\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_resource_metadata_url),
    }
}

fn challenge_resource_metadata_url(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((place, revision, challenge)) = token_challenge(&chain, out) else { return };
    let Some(named) = challenge.parameter("resource_metadata") else { return };
    let what = match AbsoluteUrl::parse(named) {
        Some(url) if url.fragment.is_some() => "has a fragment",
        Some(url) if url.is("https") || (url.is("http") && host_is_loopback(url.host)) => return,
        _ => "is no absolute https URL",
    };
    out.add_in(revision, place, format!("resource_metadata {} {what}", quote(named)));
}

crate::rule! {
    /// A challenge could say which scopes are needed.
    ///
    /// A client asks for all that the metadata lists otherwise, which is often more than it needs.
    static CHALLENGE_SCOPE_MISSING = {
        id: "oauth/challenge-scope-missing",
        versions: SINCE_2025_11,
        on: ON,
        place: "WWW-Authenticate; scope",
        fix: "Name the scopes needed.",
        spec: "2026-07-28 authorization, Scope Selection",
        examples: &[
                fires(&["/exchanges/0/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer scope=\"tides:read\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_scope_missing),
    }
}

fn challenge_scope_missing(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((place, _, challenge)) = token_challenge(&chain, out) else { return };
    if challenge.parameter("scope").is_none() {
        out.add_at(place, "the challenge names no scope");
    }
}

crate::rule! {
    /// The scopes of a challenge are words with spaces between.
    ///
    /// Clients pass them on as they stand, and the authorization server refuses what it does not know.
    static CHALLENGE_SCOPE_INVALID = {
        id: "oauth/challenge-scope-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        on: ON,
        place: "WWW-Authenticate; scope",
        fix: "Use space-separated scope tokens.",
        spec: "RFC 6750 §3; RFC 6749 §3.3",
        examples: &[
                fires(&["/exchanges/0/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer scope=\"tides:read,tides:write\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer scope=\"https://tides.example.com/auth/read openid\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_scope_invalid),
    }
}

fn challenge_scope_invalid(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((place, revision, challenge)) = token_challenge(&chain, out) else { return };
    let Some(scope) = challenge.parameter("scope") else { return };
    // RFC 6749 §3.3: visible ASCII without quotation mark and backslash.
    let is_scope = |c: char| matches!(c, ' ' | '\x21' | '\x23'..='\x5b' | '\x5d'..='\x7e');
    let what = if scope.trim().is_empty() {
        "is empty"
    } else if !scope.chars().all(is_scope) {
        "has characters that no scope may have"
    } else if scope.contains(',') && !scope.trim().contains(' ') {
        "is separated by commas"
    } else {
        return;
    };
    out.add_in(revision, place, format!("the scope {} {what}", quote(scope)));
}

crate::rule! {
    /// A server does not ask for offline access.
    ///
    /// Whether a client wants refresh tokens is between it and the authorization server.
    static CHALLENGE_OFFLINE_ACCESS = {
        id: "oauth/challenge-offline-access",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["2026-07-28"],
        on: ON,
        place: "WWW-Authenticate; scope",
        fix: "Leave refresh tokens to the client and the authorization server.",
        spec: "2026-07-28 authorization, Refresh Tokens; SEP-2207",
        examples: &[
                fires(&["/exchanges/1/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "discover"}, {"step": "tools/list", "response": {"status": 401, "headers": {"www-authenticate": "Bearer scope=\"tides:read offline_access\""}, "body": null}}]}"#)
                    .over("conversation-2026-07-28"),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "tools/list", "response": {"status": 401, "headers": {"www-authenticate": "Bearer scope=\"tides:offline_access\""}, "body": null}}]}"#)
                    .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(challenge_offline_access),
    }
}

fn challenge_offline_access(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((place, revision, challenge)) = token_challenge(&chain, out) else { return };
    let scopes = challenge.parameter("scope").unwrap_or_default();
    if scopes.split(' ').any(|scope| scope == "offline_access") {
        out.add_in(revision, place, "the scope asks for `offline_access`");
    }
}

crate::rule! {
    /// A challenge to a request without a token names no error.
    ///
    /// Nothing was wrong with a token that was not sent; clients may take it for an expired one and throw away what they have.
    static CHALLENGE_ERROR_WITHOUT_TOKEN = {
        id: "oauth/challenge-error-without-token",
        versions: SINCE_2025_03,
        on: ON,
        place: "WWW-Authenticate; error",
        fix: "Omit error when no token was sent.",
        spec: "RFC 6750 §3.1",
        examples: &[
                fires(&["/exchanges/0/response/headers/www-authenticate"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer error=\"invalid_token\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "request": {"headers": {"authorization": "***"}}, "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer error=\"invalid_token\""}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(challenge_error_without_token),
    }
}

fn challenge_error_without_token(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some((place, _, challenge)) = token_challenge(&chain, out) else { return };
    let with_token = chain.refusal.is_some_and(|turn| turn.exchange.request.headers.contains_key("authorization"));
    if let Some(error) = challenge.parameter("error").filter(|_| !with_token) {
        out.add_at(place, format!("names the error {} though no token was sent", quote(error)));
    }
}
