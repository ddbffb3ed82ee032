//! How a server refuses whoever has no credentials, and what it serves all the same.

use super::SINCE_2025_03;
use crate::authorization::Chain;
use crate::conversation::{Conversation, Turn};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::mcp::endpoint::leads_to_login;
use crate::rule::{Basis, Check, Class, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::{is_public_host, quote};

pub(super) const RULES: &[&Rule] =
    &[&STATUS_403_UNAUTHENTICATED, &AUTH_ERROR_IN_200, &AUTH_REDIRECT, &AUTH_PARTIAL, &OPEN_SERVER];

const ON: &[Kind] = &[Kind::McpEndpoint];

crate::rule! {
    /// Who sends no token is refused with 401.
    ///
    /// 403 says that a token would not help, so that clients do not ask for one.
    static STATUS_403_UNAUTHENTICATED = {
        id: "oauth/status-403-unauthenticated",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialize|discover",
        fix: "Use 401 when no token was sent.",
        spec: "2025-11-25 authorization, Error Handling",
        examples: &[
                fires(&["/exchanges/0/response/status"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 403, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 403, "headers": {"mcp-session-id": null, "content-type": "text/html"}, "body": null, "raw": "<html>blocked</html>"}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(status_403_unauthenticated),
    }
}

fn status_403_unauthenticated(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let has_metadata = Chain::of(conversation).document().is_some();
    let is_refused = |turn: &&Turn<'_>| {
        matches!(turn.step, Some(Step::Initialize | Step::Discover))
            && turn.status() == Some(403)
            && !turn.exchange.request.headers.contains_key("authorization")
            && (turn.is_challenged() || has_metadata)
    };
    if let Some(turn) = conversation.turns.iter().find(is_refused) {
        out.add_in(turn.revision, format!("{}/status", turn.place()), "a request without token is refused with 403");
    }
}

crate::rule! {
    /// That credentials are missing is said with status 401.
    ///
    /// In an answer with 200 only a person can read it; clients show an error and do not ask for a token.
    static AUTH_ERROR_IN_200 = {
        id: "oauth/auth-error-in-200",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialize|discover|tools/list",
        fix: "Answer HTTP 401 with a challenge.",
        spec: "2025-11-25 authorization, Error Handling",
        examples: &[
                fires(&["/exchanges/0/response"], r#"{"exchanges": [{"step": "initialize", "response": {"headers": {"mcp-session-id": null}, "body": {"result": null, "error": {"code": -32001, "message": "Unauthorized: missing API key"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"headers": {"mcp-session-id": null}, "body": {"result": null, "error": {"code": -32602, "message": "Invalid params: unknown token '}' at position 4"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(auth_error_in_200),
    }
}

fn auth_error_in_200(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_meant = |turn: &&Turn<'_>| {
        matches!(turn.step, Some(Step::Initialize | Step::Discover | Step::ToolsList))
            && turn.exchange.success().is_some()
            && turn.is_json_rpc()
            && turn.says_unauthorized()
    };
    if let Some(turn) = conversation.turns.iter().find(is_meant) {
        let error = turn.error().map(|error| quote(error.raw())).unwrap_or_default();
        out.add_in(turn.revision, turn.place(), format!("200 with {error}"));
    }
}

crate::rule! {
    /// That credentials are missing is said with status 401, not by sending to a login page.
    ///
    /// A client cannot log in there, and follows the redirect to a page that it does not understand.
    static AUTH_REDIRECT = {
        id: "oauth/auth-redirect",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialize|discover",
        fix: "Answer 401 with a challenge.",
        spec: "2025-11-25 authorization, Error Handling",
        examples: &[
                fires(
                    &["/exchanges/0/response/headers/location"],
                    r#"{"exchanges": [{"step": "initialize", "response": {"status": 302, "headers": {"mcp-session-id": null, "location": "https://tides.example.com/signin"}, "body": null}}, {"step": "initialize", "request": {"method": "GET", "url": "https://tides.example.com/signin", "body": null}, "response": {"headers": {"mcp-session-id": null, "content-type": "text/html"}, "body": null, "raw": "<!doctype html><title>Sign in</title>"}}]}"#,
                )
                .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(auth_redirect),
    }
}

fn auth_redirect(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(turn) = conversation.turns.iter().find(|turn| leads_to_login(conversation, turn)) {
        let to = turn.response().and_then(|response| response.header("location")).unwrap_or_default();
        out.add_in(turn.revision, turn.header_place("location"), format!("sends to the login page {}", quote(to)));
    }
}

crate::rule! {
    /// The handshake is open, a list is not.
    ///
    /// What is refused is not evaluated; the rest is.
    static AUTH_PARTIAL = {
        id: "oauth/auth-partial",
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:*",
        fix: "None needed.",
        spec: "2026-07-28 authorization",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(auth_partial),
    }
}

fn auth_partial(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_open = conversation.handshakes().any(|turn| turn.result().is_some());
    let lists = [Step::ToolsList, Step::ResourcesList, Step::TemplatesList, Step::PromptsList];
    let is_list = |turn: &&Turn<'_>| turn.step.is_some_and(|step| lists.contains(&step));
    let refused: Vec<_> = conversation.turns.iter().filter(is_list).filter(|turn| turn.is_auth_refusal()).collect();
    if let Some(first) = refused.first().filter(|_| is_open) {
        let mut methods: Vec<&str> = refused.iter().filter_map(|turn| turn.method()).collect();
        methods.dedup();
        out.add_at(first.place(), format!("wants credentials for {}", methods.join(", ")));
    }
}

crate::rule! {
    /// A public server lists its tools to anybody.
    ///
    /// That may be meant so.
    static OPEN_SERVER = {
        id: "oauth/open-server",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:tools/list",
        fix: "None needed if intended.",
        spec: "2025-11-25 transports, Security Warning",
        seeds: &["validator:1.5.3.3", "gaip:MCP_AUTH_NOT_DECLARED"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list"}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(open_server),
    }
}

fn open_server(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let url = url::Url::parse(conversation.endpoint).ok();
    let is_public = url.as_ref().and_then(url::Url::host_str).is_some_and(is_public_host);
    let is_open =
        |turn: &&Turn<'_>| turn.result().is_some() && !turn.exchange.request.headers.contains_key("authorization");
    if let Some(turn) = conversation.of(Step::ToolsList).find(is_open).filter(|_| is_public) {
        out.add_at(turn.place(), "lists its tools without credentials");
    }
}
