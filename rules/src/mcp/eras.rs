//! Which eras a server speaks, and how it behaves at their border: discovery, negotiation, the older transport, and what
//! the revision without sessions dropped.

use std::collections::BTreeSet;

use serde_json::Value;
use url::Url;

use super::heard::{ON, answered, heard, is_refused};
use super::{ALL, LEGACY, MODERN};
use crate::conversation::{self, Conversation, Era, REVISIONS, Turn};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Class, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &DISCOVER_MISSING,
    &INITIALIZE_FAILED,
    &DEPRECATED_HTTP_SSE,
    &LEGACY_ONLY,
    &VERSION_NEGOTIATION_UNSTABLE,
    &VERSION_ECHOES_UNKNOWN,
    &VERSION_UNKNOWN_REFUSED,
    &UNSUPPORTED_VERSION_ACCEPTED,
    &UNSUPPORTED_VERSION_CODE,
    &UNSUPPORTED_VERSION_STATUS,
    &UNSUPPORTED_VERSION_LIST_DIFFERS,
    &STATELESS_VIOLATED,
    &MODERN_SESSION_ID,
    &MODERN_SESSION_ID_REFUSED,
    &MODERN_GET_NOT_405,
    &MODERN_DELETE_NOT_405,
    &MODERN_INITIALIZE_UNHELPFUL,
    &REMOVED_METHOD_SERVED,
    &HTTP_SSE_NO_ENDPOINT,
    &HTTP_SSE_ENDPOINT_ORIGIN,
    &HTTP_SSE_POST_STATUS,
];

crate::rule! {
    /// A server of the revision without sessions answers `server/discover`.
    ///
    /// Clients ask it first; one that is told that there is no such method takes the server for an older one.
    static DISCOVER_MISSING = {
        id: "mcp/discover-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 31,
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:discover",
        fix: "Implement server/discover.",
        spec: "2026-07-28 server/discover",
        seeds: &["inspector:server-discover"],
        examples: &[
                fires(
                    &["/exchanges/0/response"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 404, "body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}, {"step": "tools/list"}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 404, "body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#,
                ),
        ],
        check: Check::Conversation(discover_missing),
    }
}

fn discover_missing(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_modern = conversation.is_modern_confirmed()
        || conversation
            .turns
            .iter()
            .any(|turn| turn.is_modern_error() && turn.supported().contains(&conversation::MODERN));
    for turn in heard(conversation, &[Step::Discover], out) {
        if is_modern && turn.error_code() == Some(-32601) {
            out.add_in(turn.revision, turn.place(), "answers other requests of 2026-07-28, but not `server/discover`");
            return;
        }
    }
}

crate::rule! {
    /// A server answers one of the handshakes.
    ///
    /// It speaks JSON-RPC, and yet neither a valid `initialize` nor `server/discover` succeeds: no client gets further.
    static INITIALIZE_FAILED = {
        id: "mcp/initialize-failed",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 21,
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialize",
        fix: "Accept a well-formed initialize.",
        spec: "2025-11-25 lifecycle, Initialization",
        seeds: &["validator:1.3.1.5", "inspector:initialize-handshake"],
        examples: &[
                fires(
                    &["/exchanges/1/response"],
                    r#"{"exchanges": [{"step": "discover"}, {"step": "initialize", "response": {"status": 200, "body": {"result": null, "error": {"code": -32603, "message": "Internal error"}}}}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "discover"}, {"step": "initialize", "response": {"status": 400, "body": {"result": null, "error": {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"}}}}}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "discover"}, {"step": "initialize", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": {"result": null, "error": {"code": -32001, "message": "no"}}}}]}"#,
                ),
        ],
        check: Check::Conversation(initialize_failed),
    }
}

fn initialize_failed(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    // Where nothing came of the one, nobody knows that both fail.
    let answered = |turn: &Turn<'_>| turn.unsaid().is_none_or(|reason| reason == NotEvaluated::Auth);
    let is_settled = conversation.era != Era::Unknown || !conversation.of(Step::Discover).any(answered);
    let discovered = conversation.of(Step::Discover).any(|turn| turn.result().is_some() || turn.is_auth_refusal());
    for turn in heard(conversation, &[Step::Initialize], out) {
        let is_excused = turn.is_auth_refusal() || !turn.supported().is_empty() || turn.error_code() == Some(-32022);
        if let Some(error) = turn.error().filter(|_| turn.is_json_rpc() && !is_settled && !discovered && !is_excused) {
            out.add_in(turn.revision, turn.place(), format!("`initialize` is answered with {}", quote(error.raw())));
            return;
        }
    }
}

crate::rule! {
    /// The endpoint speaks only the transport before 2025-03-26.
    ///
    /// HTTP with a separate event stream was replaced by Streamable HTTP; newer clients no longer try it.
    static DEPRECATED_HTTP_SSE = {
        id: "mcp/deprecated-http-sse",
        class: Class::Fact,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:http-sse",
        fix: "Offer Streamable HTTP at one endpoint.",
        spec: "2026-07-28 deprecated; SEP-2596",
        seeds: &["gaip:MCP_SSE_TRANSPORT_DEPRECATED", "inspector:deprecated-features", "inspector:http-sse-deprecated"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 404, "body": null}}, {"step": "http-sse"}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(deprecated_http_sse),
    }
}

fn deprecated_http_sse(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let by_post = |turn: &Turn<'_>| {
        let is_here = turn.answer.messages.iter().any(|message| message.number == turn.number);
        turn.exchange.request.method == "POST" && turn.is_served() && is_here
    };
    if conversation.handshakes().any(by_post) {
        return;
    }
    if let Some(turn) = conversation.of(Step::HttpSse).find(|turn| turn.announced().is_some()) {
        out.add_in(turn.revision, turn.place(), "speaks by HTTP and a separate event stream only");
    }
}

crate::rule! {
    /// The server does not speak 2026-07-28.
    ///
    /// Clients of that revision fall back to the handshake, which costs them a request that is refused.
    static LEGACY_ONLY = {
        id: "mcp/legacy-only",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "step:discover",
        fix: "Add per-request metadata and server/discover.",
        spec: "2026-07-28 versioning",
        seeds: &["inspector:era"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "discover"}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}]}"#),
        ],
        check: Check::Conversation(legacy_only),
    }
}

fn legacy_only(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let asked = conversation.of(Step::Discover).find(|turn| turn.response().is_some() && turn.gate().is_none());
    if let Some(turn) = asked.filter(|_| conversation.era == Era::Legacy && conversation.negotiated.is_some()) {
        out.add_at(turn.place(), format!("speaks {}", conversation.negotiated.unwrap_or_default()));
    }
}

crate::rule! {
    /// A server that answered with a revision takes that revision.
    ///
    /// Clients that know the server ask for it at once; being refused they give up.
    static VERSION_NEGOTIATION_UNSTABLE = {
        id: "mcp/version-negotiation-unstable",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 29,
        versions: LEGACY,
        mode: Mode::Probe,
        evidence: Evidence::Timing,
        on: ON,
        place: "step:negotiate-same",
        fix: "Answer a supported version with itself.",
        spec: "2025-11-25 lifecycle, Version Negotiation",
        seeds: &["validator:1.3.2.2"],
        examples: &[
                fires(
                    &["/exchanges/1/response"],
                    r#"{"exchanges": [{"step": "initialize"}, {"step": "negotiate-same", "request": {"headers": {"mcp-protocol-version": null}, "body": {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plumbline", "version": "0.1.0"}}}}, "response": {"body": {"result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "tides", "version": "1"}}}}}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "initialize"}, {"step": "negotiate-same", "request": {"headers": {"mcp-protocol-version": null}, "body": {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plumbline", "version": "0.1.0"}}}}, "response": {"body": {"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "tides", "version": "1"}}}}}]}"#,
                ),
        ],
        check: Check::Conversation(version_negotiation_unstable),
    }
}

fn version_negotiation_unstable(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::NegotiateSame], out) {
        let asked = asked_version(turn).unwrap_or_default();
        let answered = turn.result().and_then(|result| result.get("protocolVersion")).and_then(Node::text);
        if answered.is_some_and(|version| version != asked) {
            let answered = answered.map(quote).unwrap_or_default();
            out.add_in(turn.revision, turn.place(), format!("answered {asked} before, now asked for it: {answered}"));
        } else if let Some(error) = turn.error() {
            out.add_in(
                turn.revision,
                turn.place(),
                format!("answered {asked} before, now asked for it: {}", quote(error.raw())),
            );
        }
    }
}

fn asked_version<'t>(turn: &'t Turn<'_>) -> Option<&'t str> {
    turn.asked.as_ref()?.pointer("/params/protocolVersion").and_then(Value::as_str)
}

crate::rule! {
    /// A server agrees only to a revision that it speaks.
    ///
    /// This one agrees to a revision that never was: it repeats whatever it is asked for, and a client of a later revision will
    /// believe it.
    static VERSION_ECHOES_UNKNOWN = {
        id: "mcp/version-echoes-unknown",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 29,
        versions: LEGACY,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:negotiate-unknown",
        fix: "Answer a version you implement.",
        spec: "2025-11-25 lifecycle, Version Negotiation",
        seeds: &["validator:1.3.2.3"],
        examples: &[
                fires(
                    &["/exchanges/1/response"],
                    r#"{"exchanges": [{"step": "initialize"}, {"step": "negotiate-unknown", "request": {"headers": {"mcp-protocol-version": null}, "body": {"method": "initialize", "params": {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "plumbline", "version": "0.1.0"}}}}, "response": {"body": {"result": {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "tides", "version": "1"}}}}}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "initialize"}, {"step": "negotiate-unknown", "request": {"headers": {"mcp-protocol-version": null}, "body": {"method": "initialize", "params": {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "plumbline", "version": "0.1.0"}}}}, "response": {"body": {"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "tides", "version": "1"}}}}}]}"#,
                ),
        ],
        check: Check::Conversation(version_echoes_unknown),
    }
}

fn version_echoes_unknown(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::NegotiateUnknown], out) {
        let answered = turn.result().and_then(|result| result.get("protocolVersion")).and_then(Node::text);
        if answered.is_some() && answered == asked_version(turn) {
            out.add_in(turn.revision, turn.place(), "agrees to 1999-01-01");
        }
    }
}

crate::rule! {
    /// A server answers an unknown revision with one that it speaks.
    ///
    /// That is how newer clients and older servers find together; an error ends it.
    static VERSION_UNKNOWN_REFUSED = {
        id: "mcp/version-unknown-refused",
        severity: Severity::Warning,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 29,
        versions: LEGACY,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:negotiate-unknown",
        fix: "Answer with a version you implement.",
        spec: "2025-11-25 lifecycle, Version Negotiation",
        seeds: &["validator:1.3.2.3"],
        examples: &[
                fires(
                    &["/exchanges/1/response"],
                    r#"{"exchanges": [{"step": "initialize"}, {"step": "negotiate-unknown", "request": {"headers": {"mcp-protocol-version": null}, "body": {"method": "initialize", "params": {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "plumbline", "version": "0.1.0"}}}}, "response": {"status": 400, "body": {"result": null, "error": {"code": -32602, "message": "Unsupported"}}}}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "initialize"}, {"step": "negotiate-unknown", "request": {"headers": {"mcp-protocol-version": null}, "body": {"method": "initialize", "params": {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "plumbline", "version": "0.1.0"}}}}, "response": {"status": 400, "body": {"result": null, "error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2025-11-25"], "requested": "1999-01-01"}}}}}]}"#,
                ),
        ],
        check: Check::Conversation(version_unknown_refused),
    }
}

fn version_unknown_refused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::NegotiateUnknown], out) {
        if let Some(error) = turn.error().filter(|_| turn.error_code() != Some(-32022) && !turn.says_unauthorized()) {
            out.add_in(turn.revision, turn.place(), format!("asked for 1999-01-01: {}", quote(error.raw())));
        }
    }
}

crate::rule! {
    /// A request in a revision that the server does not speak is refused.
    ///
    /// Otherwise both sides go on under different rules.
    static UNSUPPORTED_VERSION_ACCEPTED = {
        id: "mcp/unsupported-version-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:bad-version",
        fix: "Refuse with -32022.",
        spec: "2026-07-28 versioning, Protocol Version Negotiation",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"body": {"error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "1900-01-01"}}}}}]}"#),
        ],
        check: Check::Conversation(unsupported_version_accepted),
    }
}

fn unsupported_version_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::BadVersion], out) {
        if turn.is_served() && speaks_modern(conversation) {
            out.add_in(turn.revision, turn.place(), "a request in revision 1900-01-01 is served");
        }
    }
}

fn speaks_modern(conversation: &Conversation<'_>) -> bool {
    matches!(conversation.era, Era::Modern | Era::Dual)
}

crate::rule! {
    /// An unknown revision is refused with code -32022.
    ///
    /// The code is how a client knows to try again with one of the revisions that come with it.
    static UNSUPPORTED_VERSION_CODE = {
        id: "mcp/unsupported-version-code",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:bad-version",
        fix: "Use -32022.",
        spec: "2026-07-28 versioning, Protocol Version Negotiation",
        examples: &[
                fires(&["/exchanges/1/response/body/error/code"], r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"body": {"error": {"code": -32602, "message": "Unsupported"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"body": {"error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "1900-01-01"}}}}}]}"#),
        ],
        check: Check::Conversation(unsupported_version_code),
    }
}

fn unsupported_version_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::BadVersion], out) {
        if let Some(code) = turn.error_code().filter(|code| *code != -32022 && speaks_modern(conversation)) {
            out.add_in(turn.revision, error_code_place(turn), format!("revision 1900-01-01 is refused with {code}"));
        }
    }
}

/// Where the code of an error stands.
pub(super) fn error_code_place(turn: &Turn<'_>) -> String {
    turn.reply().map_or_else(|| turn.place(), |message| format!("{}/error/code", message.place()))
}

crate::rule! {
    /// An unknown revision is refused with status 400.
    ///
    /// Proxies and clients that look at the status alone take it for something else otherwise.
    static UNSUPPORTED_VERSION_STATUS = {
        id: "mcp/unsupported-version-status",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:bad-version",
        fix: "Use HTTP 400.",
        spec: "2026-07-28 streamable-http, Protocol Version Header",
        examples: &[
                fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"status": 200, "body": {"error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "1900-01-01"}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"body": {"error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "1900-01-01"}}}}}]}"#),
        ],
        check: Check::Conversation(unsupported_version_status),
    }
}

fn unsupported_version_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::BadVersion], out) {
        if let Some(status) = turn.status().filter(|status| turn.error_code() == Some(-32022) && *status != 400) {
            out.add_in(turn.revision, format!("{}/status", turn.place()), format!("-32022 comes with status {status}"));
        }
    }
}

crate::rule! {
    /// The refusal of a revision lists what discovery lists.
    ///
    /// A client that tries again by the one list may be refused by the other.
    static UNSUPPORTED_VERSION_LIST_DIFFERS = {
        id: "mcp/unsupported-version-list-differs",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "/error/data/supported",
        fix: "Advertise one list.",
        spec: "2026-07-28 versioning",
        examples: &[
                fires(&["/exchanges/1/response/body/error/data/supported"], r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"body": {"error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2025-11-25"], "requested": "1900-01-01"}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "bad-version", "response": {"body": {"error": {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "1900-01-01"}}}}}]}"#),
        ],
        check: Check::Conversation(unsupported_version_list_differs),
    }
}

fn unsupported_version_list_differs(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let listed = conversation.handshake(Step::Discover).and_then(Turn::result);
    let listed = listed.and_then(|result| result.get("supportedVersions"));
    let turns = heard(conversation, &[Step::BadVersion], out);
    let Some(listed) = listed else { return out.not_evaluated(NotEvaluated::NotAsked) };
    let listed: BTreeSet<&str> = listed.items().filter_map(Node::text).collect();
    for turn in turns {
        let supported: BTreeSet<&str> = turn.supported().into_iter().collect();
        if turn.error_code() == Some(-32022) && !supported.is_empty() && supported != listed {
            let place = turn
                .reply()
                .map_or_else(|| turn.place(), |message| format!("{}/error/data/supported", message.place()));
            out.add_in(turn.revision, place, format!("lists {}, discovery {}", joined(&supported), joined(&listed)));
        }
    }
}

fn joined(versions: &BTreeSet<&str>) -> String {
    quote(&versions.iter().copied().collect::<Vec<_>>().join(", "))
}

crate::rule! {
    /// A request needs no earlier one.
    ///
    /// In this revision each request stands alone; a server that answers only after `server/discover` on the same connection
    /// fails behind every load balancer.
    static STATELESS_VIOLATED = {
        id: "mcp/stateless-violated",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:fresh-connection",
        fix: "Serve each request on its own.",
        spec: "2026-07-28 basic, Statelessness",
        examples: &[
                fires(&["/exchanges/2/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "tools/list"}, {"step": "fresh-connection", "request": {"headers": {"mcp-method": "tools/list"}, "body": {"method": "tools/list"}}, "response": {"body": {"error": {"code": -32600, "message": "Discover first"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "tools/list"}, {"step": "fresh-connection", "request": {"headers": {"mcp-method": "tools/list"}, "body": {"method": "tools/list"}}, "response": {"status": 200, "body": {"error": null, "result": {"tools": [{"name": "tide_table", "title": "Tide table", "description": "Gives the tide table of a harbour.", "inputSchema": {"type": "object", "properties": {}}}], "resultType": "complete"}}}}]}"#),
        ],
        check: Check::Conversation(stateless_violated),
    }
}

fn stateless_violated(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let served = conversation.of(Step::ToolsList).any(|turn| turn.revision == conversation::MODERN && turn.is_served());
    for turn in heard(conversation, &[Step::FreshConnection], out) {
        if let Some(error) = turn.error().filter(|_| served) {
            out.add_in(turn.revision, turn.place(), format!("on a new connection: {}", quote(error.raw())));
            return;
        }
    }
}

crate::rule! {
    /// An answer of the revision without sessions names no session.
    ///
    /// Clients of it drop the header, and what keeps sessions behind it keeps them for nobody.
    static MODERN_SESSION_ID = {
        id: "mcp/modern-session-id",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "response header Mcp-Session-Id",
        fix: "Do not mint session ids for modern requests.",
        spec: "2026-07-28 streamable-http, Earlier Revisions; SEP-2567",
        examples: &[
                fires(&["/exchanges/0/response/headers/mcp-session-id"], r#"{"exchanges": [{"step": "discover", "response": {"headers": {"mcp-session-id": "5b1f7c9e-2a44-4c1d-9d0e-7f3a2b6c8d90"}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}]}"#),
        ],
        check: Check::Conversation(modern_session_id),
    }
}

fn modern_session_id(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let names_session = |turn: &&Turn<'_>| {
        turn.is_modern_request()
            && turn.step != Some(Step::StraySessionId)
            && turn.exchange.success().is_some_and(|response| response.header("mcp-session-id").is_some())
    };
    if let Some(turn) = super::heard::all(conversation, out).find(names_session).filter(|_| speaks_modern(conversation))
    {
        out.add_in(turn.revision, turn.header_place("mcp-session-id"), "the answer names a session");
    }
}

crate::rule! {
    /// A session id that a client sends is ignored.
    ///
    /// Sessions are gone with this revision; clients that serve both may still send what an older server gave them.
    static MODERN_SESSION_ID_REFUSED = {
        id: "mcp/modern-session-id-refused",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:stray-session-id",
        fix: "Ignore the header.",
        spec: "2026-07-28 streamable-http, Earlier Revisions",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "tools/list"}, {"step": "stray-session-id", "response": {"status": 404, "body": {"error": {"code": -32001, "message": "Session not found"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "tools/list"}, {"step": "stray-session-id", "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
        ],
        check: Check::Conversation(modern_session_id_refused),
    }
}

fn modern_session_id_refused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::StraySessionId], out) {
        if conversation.era == Era::Modern && is_refused(turn) {
            let status = turn.status().unwrap_or_default();
            out.add_in(turn.revision, turn.place(), format!("a request with a session id is refused with {status}"));
        }
    }
}

crate::rule! {
    /// A server without sessions answers GET with 405.
    ///
    /// There is no stream to open any more.
    static MODERN_GET_NOT_405 = {
        id: "mcp/modern-get-not-405",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:get",
        fix: "Answer 405.",
        spec: "2026-07-28 streamable-http, Earlier Revisions",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "get", "response": {"status": 404}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "get"}]}"#),
        ],
        check: Check::Conversation(modern_get_not_405),
    }
}

fn modern_get_not_405(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    not_405(conversation, Step::Get, "GET", out);
}

fn not_405(conversation: &Conversation<'_>, step: Step, method: &str, out: &mut Occurrences) {
    if conversation.era != Era::Modern {
        return out.not_applicable();
    }
    for turn in heard(conversation, &[step], out) {
        if let Some(status) = turn.status().filter(|status| *status != 405) {
            out.add_in(turn.revision, turn.place(), format!("{method} is answered {status}"));
        }
    }
}

crate::rule! {
    /// A server without sessions answers DELETE with 405.
    ///
    /// There is no session to end any more.
    static MODERN_DELETE_NOT_405 = {
        id: "mcp/modern-delete-not-405",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:delete",
        fix: "Answer 405.",
        spec: "2026-07-28 streamable-http, Earlier Revisions",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "delete", "response": {"status": 200}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "delete"}]}"#),
        ],
        check: Check::Conversation(modern_delete_not_405),
    }
}

fn modern_delete_not_405(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    not_405(conversation, Step::Delete, "DELETE", out);
}

crate::rule! {
    /// A server without the handshake says in its refusal what it speaks.
    ///
    /// An older client, and whoever reads its log, then knows what to change.
    static MODERN_INITIALIZE_UNHELPFUL = {
        id: "mcp/modern-initialize-unhelpful",
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialize",
        fix: "List supported versions in that error.",
        spec: "2026-07-28 versioning, Backward Compatibility",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "initialize", "response": {"body": {"error": {"code": -32600, "message": "Bad Request", "data": null}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "initialize"}]}"#),
        ],
        check: Check::Conversation(modern_initialize_unhelpful),
    }
}

fn modern_initialize_unhelpful(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if conversation.era != Era::Modern {
        return out.not_applicable();
    }
    for turn in conversation.of(Step::Initialize).filter(|turn| turn.gate().is_none()) {
        let Some(error) = turn.error() else { continue };
        let names_one = REVISIONS
            .iter()
            .any(|revision| error.raw().contains(revision) && *revision != asked_version(turn).unwrap_or_default());
        if !names_one {
            out.add_at(turn.place(), "the refusal of `initialize` names no revision that is spoken");
        }
    }
}

crate::rule! {
    /// `ping` is gone with this revision.
    ///
    /// Serving it keeps clients from noticing that they speak the wrong one.
    static REMOVED_METHOD_SERVED = {
        id: "mcp/removed-method-served",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:removed-method",
        fix: "Answer removed methods with -32601.",
        spec: "2026-07-28 changelog §5",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "removed-method", "request": {"headers": {"mcp-method": "ping"}, "body": {"method": "ping"}}, "response": {"status": 200, "body": {"error": null, "result": {}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "removed-method", "request": {"headers": {"mcp-method": "ping"}, "body": {"method": "ping"}}, "response": {"status": 404, "body": {"error": {"code": -32601, "message": "Method not found"}}}}]}"#),
        ],
        check: Check::Conversation(removed_method_served),
    }
}

fn removed_method_served(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::RemovedMethod], out) {
        if turn.is_served() && turn.is_modern_request() {
            out.add_in(turn.revision, turn.place(), "`ping` is answered with a result");
        }
    }
}

crate::rule! {
    /// The older transport's stream begins with its `endpoint`.
    ///
    /// Clients wait for it: without it there is nowhere to post to.
    static HTTP_SSE_NO_ENDPOINT = {
        id: "mcp/http-sse-no-endpoint",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "by analogy, not run",
        versions: &["2024-11-05"],
        evidence: Evidence::Live,
        on: ON,
        place: "step:http-sse",
        fix: "Send endpoint first.",
        spec: "2024-11-05 transports, HTTP with SSE",
        examples: &[
                fires(&["/exchanges/0/response/events/0"], r#"{"exchanges": [{"step": "http-sse", "response": {"raw": "event: hello\ndata: {}\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "http-sse"}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(http_sse_no_endpoint),
    }
}

fn http_sse_no_endpoint(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let by_post = conversation.handshakes().any(|turn| turn.exchange.request.method == "POST" && turn.is_served());
    for turn in heard(conversation, &[Step::HttpSse], out) {
        let first = turn.answer.stream.as_ref().and_then(|stream| stream.events.first());
        if let Some(first) = first.filter(|first| !by_post && first.name.as_deref() != Some("endpoint")) {
            let name = first.name.as_deref().unwrap_or("message");
            out.add_in(
                turn.revision,
                format!("{}/events/0", turn.place()),
                format!("the first event is {}", quote(name)),
            );
        }
    }
}

crate::rule! {
    /// The older transport stays at its origin.
    ///
    /// The address to post to is taken from the stream; one of another host would receive what is meant for this one, and
    /// clients refuse it.
    static HTTP_SSE_ENDPOINT_ORIGIN = {
        id: "mcp/http-sse-endpoint-origin",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: &["2024-11-05"],
        evidence: Evidence::Live,
        on: ON,
        place: "step:http-sse",
        fix: "Keep both endpoints on one origin.",
        spec: "2024-11-05 transports, HTTP with SSE",
        examples: &[
                fires(&["/exchanges/0/response/events/0/data"], r#"{"exchanges": [{"step": "http-sse", "response": {"raw": "event: endpoint\ndata: https://other.example.net/messages\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "http-sse", "response": {"raw": "event: endpoint\ndata: https://tides.example.com:443/messages\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(http_sse_endpoint_origin),
    }
}

fn http_sse_endpoint_origin(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::HttpSse], out) {
        let (Some(named), Ok(stream)) = (turn.announced(), Url::parse(&turn.exchange.request.url)) else { continue };
        if let Some(leads_to) = stream.join(named).ok().filter(|url| url.origin() != stream.origin()) {
            let place = format!("{}/events/0/data", turn.place());
            out.add_in(turn.revision, place, format!("leads to {}", quote(leads_to.as_str())));
        }
    }
}

crate::rule! {
    /// The address that the stream names takes messages.
    ///
    /// A valid message is refused there, so nothing can be asked.
    static HTTP_SSE_POST_STATUS = {
        id: "mcp/http-sse-post-status",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "by analogy, not run",
        versions: &["2024-11-05"],
        evidence: Evidence::Live,
        on: ON,
        place: "step:http-sse",
        fix: "Accept messages at the announced URI.",
        spec: "2024-11-05 transports, HTTP with SSE",
        examples: &[
                fires(
                    &["/exchanges/1/response/status"],
                    r#"{"exchanges": [{"step": "http-sse"}, {"step": "initialize", "request": {"url": "https://tides.example.com/messages?s=1"}, "response": {"status": 500, "body": null}}]}"#,
                )
                .over("conversation-2025-11-25"),
                silent(
                    r#"{"exchanges": [{"step": "http-sse"}, {"step": "initialize", "request": {"url": "https://tides.example.com/messages?s=1"}, "response": {"status": 202, "headers": {"content-type": "text/plain"}, "body": null, "raw": "Accepted"}}]}"#,
                )
                .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(http_sse_post_status),
    }
}

fn http_sse_post_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(stream) = conversation.of(Step::HttpSse).find(|turn| turn.announced().is_some()) else {
        return out.not_evaluated(NotEvaluated::NotAsked);
    };
    let posted = |turn: &&Turn<'_>| {
        turn.number > stream.number
            && turn.exchange.request.method == "POST"
            && turn.gate().is_none()
            && !turn.is_led_on
    };
    for turn in conversation.turns.iter().filter(posted) {
        if let Some(status) = turn.status().filter(|status| !(200..300).contains(status)) {
            out.add_in("2024-11-05", format!("{}/status", turn.place()), format!("a message is answered {status}"));
            return;
        }
    }
}
