//! Odd requests and notifications: how a server answers what it does not know, what is broken, and what wants no answer.

use serde_json::Value;

use super::eras::error_code_place;
use super::heard::{ON, answered, answered_or_failed, heard};
use super::{ALL, LEGACY, MODERN, SESSIONS, SINCE_2025_06};
use crate::conversation::{self, Conversation, Message, Turn};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &UNKNOWN_METHOD_ACCEPTED,
    &UNKNOWN_METHOD_CODE,
    &UNKNOWN_METHOD_HTTP_STATUS,
    &MALFORMED_JSON_ACCEPTED,
    &PARSE_ERROR_CODE,
    &MALFORMED_JSON_SERVER_ERROR,
    &INVALID_REQUEST_CODE,
    &NULL_ID_ACCEPTED,
    &BATCH_ACCEPTED,
    &BATCH_REJECTED,
    &NOTIFICATION_STATUS,
    &NOTIFICATION_BODY,
    &NOTIFICATION_ANSWERED,
    &UNDECLARED_METHOD_CODE,
    &PING_FAILED,
    &REQUEST_BEFORE_INITIALIZE_SERVED,
    &SERVER_REQUEST_BEFORE_INITIALIZED,
];

crate::rule! {
    /// A method that nobody knows has no result.
    ///
    /// A client that asks for something newer would take the empty answer for the thing itself.
    static UNKNOWN_METHOD_ACCEPTED = {
        id: "mcp/unknown-method-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:unknown-method",
        fix: "Refuse methods you do not implement with -32601.",
        spec: "JSON-RPC 2.0 §5.1",
        seeds: &["validator:1.1.1.4"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "unknown-method", "request": {"body": {"method": "plumbline/does-not-exist"}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "unknown-method", "request": {"body": {"method": "plumbline/does-not-exist"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(unknown_method_accepted),
    }
}

fn unknown_method_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::UnknownMethod], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), "`plumbline/does-not-exist` is answered with a result");
        }
    }
}

crate::rule! {
    /// A method that nobody knows is refused with -32601.
    ///
    /// By the code clients tell what a server cannot do from what went wrong. Before 2026-07-28 it was only custom.
    static UNKNOWN_METHOD_CODE = {
        id: "mcp/unknown-method-code",
        severity: Severity::Error,
        severity_overrides: &[("2024-11-05", Severity::Info), ("2025-03-26", Severity::Info), ("2025-06-18", Severity::Info), ("2025-11-25", Severity::Info)],
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:unknown-method",
        fix: "Answer -32601 Method not found.",
        spec: "2026-07-28 streamable-http, Protocol Version Header; JSON-RPC 2.0 §5.1",
        seeds: &["validator:1.1.1.1"],
        examples: &[
                fires(&["/exchanges/1/response/body/error/code"], r#"{"exchanges": [{"step": "discover"}, {"step": "unknown-method", "request": {"headers": {"mcp-method": "plumbline/does-not-exist"}, "body": {"method": "plumbline/does-not-exist"}}, "response": {"body": {"error": {"code": -32602, "message": "Invalid params"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "unknown-method", "request": {"body": {"method": "plumbline/does-not-exist"}}, "response": {"body": {"result": null, "error": {"code": -32602, "message": "Invalid params"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(unknown_method_code),
    }
}

fn unknown_method_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::UnknownMethod], out) {
        let is_modern = turn.revision == conversation::MODERN;
        let what = match turn.error_code() {
            Some(-32601) => continue,
            Some(-32602 | -32600) if !is_modern => continue,
            Some(code) => format!("the made-up method is refused with {code}"),
            None if turn.exchange.success().is_some_and(|r| !r.body().is_empty()) && !turn.is_json_rpc() => {
                "the made-up method is answered with no message of JSON-RPC".to_owned()
            }
            None => continue,
        };
        let added = out.add_in(turn.revision, error_code_place(turn), what);
        if !is_modern {
            added.severity(Severity::Info);
        }
    }
}

crate::rule! {
    /// A method that nobody knows is refused with status 404.
    ///
    /// What stands between client and server sees the status alone.
    static UNKNOWN_METHOD_HTTP_STATUS = {
        id: "mcp/unknown-method-http-status",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:unknown-method",
        fix: "Use HTTP 404 together with -32601.",
        spec: "2026-07-28 streamable-http, Protocol Version Header",
        examples: &[
                fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "discover"}, {"step": "unknown-method", "request": {"headers": {"mcp-method": "plumbline/does-not-exist"}, "body": {"method": "plumbline/does-not-exist"}}, "response": {"status": 200, "body": {"error": {"code": -32601, "message": "Method not found"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "unknown-method", "request": {"headers": {"mcp-method": "plumbline/does-not-exist"}, "body": {"method": "plumbline/does-not-exist"}}, "response": {"status": 404, "body": {"error": {"code": -32601, "message": "Method not found"}}}}]}"#),
        ],
        check: Check::Conversation(unknown_method_http_status),
    }
}

fn unknown_method_http_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::UnknownMethod], out) {
        if let Some(status) = turn.status().filter(|status| turn.error_code() == Some(-32601) && *status != 404) {
            out.add_in(turn.revision, format!("{}/status", turn.place()), format!("-32601 comes with status {status}"));
        }
    }
}

crate::rule! {
    /// A body that breaks off is refused.
    ///
    /// Who takes half a message for a whole one acts on what nobody said.
    static MALFORMED_JSON_ACCEPTED = {
        id: "mcp/malformed-json-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:malformed-json",
        fix: "Reject bodies that do not parse.",
        spec: "JSON-RPC 2.0 §5.1",
        seeds: &["validator:1.1.1.1"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "malformed-json", "request": {"body": null, "raw": "{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":"}, "response": {"status": 202, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "malformed-json", "request": {"body": null, "raw": "{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":"}, "response": {"status": 400, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(malformed_json_accepted),
    }
}

fn malformed_json_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::MalformedJson], out) {
        if turn.exchange.success().is_some() && turn.error().is_none() {
            let status = turn.status().unwrap_or_default();
            out.add_in(turn.revision, turn.place(), format!("half a message is answered {status}"));
        }
    }
}

crate::rule! {
    /// A body that is no JSON is refused with -32700.
    ///
    /// Another code sends the author of a client looking in the wrong place.
    static PARSE_ERROR_CODE = {
        id: "mcp/parse-error-code",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:malformed-json",
        fix: "Use -32700 for parse errors.",
        spec: "JSON-RPC 2.0 §5.1",
        examples: &[
                fires(&["/exchanges/1/response/body/error/code"], r#"{"exchanges": [{"step": "initialize"}, {"step": "malformed-json", "request": {"body": null, "raw": "{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":"}, "response": {"status": 400, "body": {"id": null, "result": null, "error": {"code": -32600, "message": "no"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "malformed-json", "request": {"body": null, "raw": "{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":"}, "response": {"status": 400, "body": {"id": null, "result": null, "error": {"code": -32700, "message": "Parse error"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(parse_error_code),
    }
}

fn parse_error_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::MalformedJson], out) {
        let is_failure = turn.status().is_some_and(|status| status >= 500);
        if let Some(code) = turn.error_code().filter(|code| *code != -32700 && !is_failure) {
            out.add_in(turn.revision, error_code_place(turn), format!("half a message is refused with {code}"));
        }
    }
}

crate::rule! {
    /// A body that is no JSON is the client's fault, not the server's.
    ///
    /// A status of 500 says that the server failed, wakes whoever watches it and invites clients to try again.
    static MALFORMED_JSON_SERVER_ERROR = {
        id: "mcp/malformed-json-server-error",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:malformed-json",
        fix: "Treat bad input as a client error (400).",
        spec: "RFC 9110 §15.6",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "malformed-json", "request": {"body": null, "raw": "{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":"}, "response": {"status": 500, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "malformed-json", "request": {"body": null, "raw": "{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":"}, "response": {"status": 415, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(malformed_json_server_error),
    }
}

fn malformed_json_server_error(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered_or_failed(conversation, &[Step::MalformedJson], out) {
        if let Some(status) = turn.status().filter(|status| *status >= 500) {
            out.add_in(turn.revision, turn.place(), format!("half a message is answered {status}"));
        }
    }
}

crate::rule! {
    /// A message without a method is refused with -32600.
    ///
    /// It is JSON, and no request.
    static INVALID_REQUEST_CODE = {
        id: "mcp/invalid-request-code",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:invalid-request",
        fix: "Use -32600 for invalid requests.",
        spec: "JSON-RPC 2.0 §5.1",
        seeds: &["validator:1.1.1.4"],
        examples: &[
                fires(&["/exchanges/1/response/body/error/code"], r#"{"exchanges": [{"step": "initialize"}, {"step": "invalid-request", "request": {"body": {"method": null}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "invalid-request", "request": {"body": {"method": null}}, "response": {"status": 400, "body": {"result": null, "error": {"code": -32600, "message": "Invalid request"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(invalid_request_code),
    }
}

fn invalid_request_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::InvalidRequest], out) {
        let (place, what) = match turn.error_code() {
            Some(-32600 | -32700 | -32602) => continue,
            Some(code) => (error_code_place(turn), format!("a message without a method is refused with {code}")),
            None if turn.is_served() => (turn.place(), "a message without a method has a result".to_owned()),
            None => continue,
        };
        out.add_in(turn.revision, place, what);
    }
}

crate::rule! {
    /// A request whose id is null is refused.
    ///
    /// MCP forbids it: the answer could belong to anything.
    static NULL_ID_ACCEPTED = {
        id: "mcp/null-id-accepted",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:null-id",
        fix: "Reject null ids.",
        spec: "2026-07-28 basic, Requests",
        seeds: &["validator:1.1.1.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "null-id", "request": {"body": null, "raw": "{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"ping\"}"}, "response": {"body": null, "raw": "{\"jsonrpc\": \"2.0\", \"id\": null, \"result\": {}}"}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "null-id", "request": {"body": null, "raw": "{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"ping\"}"}, "response": {"status": 400, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(null_id_accepted),
    }
}

fn null_id_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::NullId], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), "a request with a null id has a result");
        }
    }
}

crate::rule! {
    /// Several messages in one body are refused.
    ///
    /// Batches were dropped with 2025-06-18; a server that swallows one leaves its sender waiting.
    static BATCH_ACCEPTED = {
        id: "mcp/batch-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:batch",
        fix: "Refuse arrays with 400 and -32600.",
        spec: "2025-06-18 changelog (batching removed), 2025-11-25 transports §3",
        seeds: &["validator:1.1.1.5"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "batch", "request": {"body": null, "raw": "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]"}, "response": {"body": null, "raw": "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}]"}}]}"#)
                    .over("conversation-2025-11-25"),
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "batch", "request": {"body": null, "raw": "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]"}, "response": {"status": 202, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "batch", "request": {"body": null, "raw": "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]"}, "response": {"status": 400, "body": {"id": null, "result": null, "error": {"code": -32600, "message": "no"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(batch_accepted),
    }
}

fn batch_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::Batch], out) {
        let Some(response) = turn.exchange.success() else { continue };
        let is_array = turn.answer.messages.iter().any(is_array);
        if is_array || turn.is_served() {
            out.add_in(turn.revision, turn.place(), "a batch is answered");
        } else if response.status == 202 && response.body().is_empty() {
            out.add_in(turn.revision, turn.place(), "a batch with a request in it is taken without an answer");
        }
    }
}

fn is_array(message: &Message) -> bool {
    message.document.root().is_some_and(|root| root.kind() == Type::Array)
}

crate::rule! {
    /// In 2025-03-26 several messages may come in one body.
    ///
    /// A server has to take them and to answer each request.
    static BATCH_REJECTED = {
        id: "mcp/batch-rejected",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["2025-03-26"],
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:batch",
        fix: "Accept batches in this revision, or negotiate 2025-06-18 or later.",
        spec: "2025-03-26 basic, Batching",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "request": {"body": {"params": {"protocolVersion": "2025-03-26"}}}, "response": {"body": {"result": {"protocolVersion": "2025-03-26", "serverInfo": {"title": null}}}}}, {"step": "batch", "request": {"body": null, "raw": "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}, {\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"ping\"}]"}, "response": {"status": 400, "body": {"id": null, "result": null, "error": {"code": -32600, "message": "no"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "request": {"body": {"params": {"protocolVersion": "2025-03-26"}}}, "response": {"body": {"result": {"protocolVersion": "2025-03-26", "serverInfo": {"title": null}}}}}, {"step": "batch", "request": {"body": null, "raw": "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}, {\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"ping\"}]"}, "response": {"body": null, "raw": "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}, {\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {}}]"}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(batch_rejected),
    }
}

fn batch_rejected(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::Batch], out) {
        let asked = turn.asked.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
        let answers = |message: &Message| {
            let root = message.document.root();
            let one = root.filter(|root| root.kind() == Type::Object && root.get("result").is_some());
            one.map_or(0, |_| 1)
                + root.into_iter().flat_map(Node::items).filter(|item| item.get("result").is_some()).count()
        };
        let answered: usize = turn.answer.messages.iter().map(answers).sum();
        if answered < asked {
            let status = turn.status().unwrap_or_default();
            out.add_in(
                turn.revision,
                turn.place(),
                format!("of {asked} requests in one body {answered} are answered, with status {status}"),
            );
        }
    }
}

crate::rule! {
    /// A notification is taken with 202.
    ///
    /// It is how a client knows that nothing more will come.
    static NOTIFICATION_STATUS = {
        id: "mcp/notification-status",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialized",
        fix: "Answer accepted notifications with 202.",
        spec: "2025-11-25 transports, Sending Messages §4",
        seeds: &["validator:1.1.3.1"],
        examples: &[
                fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized", "response": {"status": 200}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized"}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized", "response": {"status": 404}}]}"#),
        ],
        check: Check::Conversation(notification_status),
    }
}

fn notification_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::Initialized], out) {
        let Some(status) = turn.status() else { continue };
        // A refusal in words of the protocol is one; an answer to it is notification-answered's.
        let speaks = turn.answer.messages.iter().any(Message::is_response);
        if !matches!(status, 202 | 404) && !speaks {
            out.add_in(
                turn.revision,
                format!("{}/status", turn.place()),
                format!("`notifications/initialized` is answered {status}"),
            );
        }
    }
}

crate::rule! {
    /// What takes a notification says nothing.
    ///
    /// There is no request that a body could belong to.
    static NOTIFICATION_BODY = {
        id: "mcp/notification-body",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialized",
        fix: "Send no body with 202.",
        spec: "2025-11-25 transports, Sending Messages §4",
        examples: &[
                fires(&["/exchanges/1/response/raw"], r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized", "response": {"headers": {"content-type": "text/plain"}, "raw": "Accepted"}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized", "response": {"raw": ""}}]}"#),
        ],
        check: Check::Conversation(notification_body),
    }
}

fn notification_body(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::Initialized], out) {
        let Some(response) = turn.response().filter(|response| response.status == 202) else { continue };
        let body = response.body();
        if !body.is_empty() && !turn.is_json_rpc() && turn.answer.stream.is_none() {
            let place = format!("/exchanges/{}/response/raw", turn.number);
            out.add_in(turn.revision, place, format!("202 comes with {}", quote(&String::from_utf8_lossy(&body))));
        }
    }
}

crate::rule! {
    /// A notification has no answer.
    ///
    /// A client finds no request for it; strict ones take it for a fault of the connection.
    static NOTIFICATION_ANSWERED = {
        id: "mcp/notification-answered",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialized",
        fix: "Never answer notifications.",
        spec: "JSON-RPC 2.0 §4.1",
        seeds: &["validator:1.1.3.1"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized", "response": {"status": 200, "headers": {"content-type": "application/json"}, "raw": "{\"jsonrpc\": \"2.0\", \"id\": 0, \"result\": {}}"}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized", "response": {"status": 400, "headers": {"content-type": "application/json"}, "body": {"jsonrpc": "2.0", "error": {"code": -32600, "message": "No session"}}}}]}"#),
        ],
        check: Check::Conversation(notification_answered),
    }
}

fn notification_answered(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::Initialized], out) {
        if turn.exchange.success().is_some() && turn.answer.messages.iter().any(Message::is_response) {
            out.add_in(turn.revision, turn.place(), "`notifications/initialized` is answered with a message");
        }
    }
}

crate::rule! {
    /// A list that was not declared is refused with -32601.
    ///
    /// By the code clients tell what a server does not have from what went wrong.
    static UNDECLARED_METHOD_CODE = {
        id: "mcp/undeclared-method-code",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:undeclared",
        fix: "Answer -32601.",
        spec: "2026-07-28 server/completion, Error Handling; JSON-RPC 2.0 §5.1",
        examples: &[
                fires(&["/exchanges/1/response/body/error/code"], r#"{"exchanges": [{"step": "initialize"}, {"step": "undeclared", "request": {"body": {"method": "prompts/list"}}, "response": {"body": {"result": null, "error": {"code": -32603, "message": "no"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "undeclared", "request": {"body": {"method": "prompts/list"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(undeclared_method_code),
    }
}

fn undeclared_method_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::Undeclared], out) {
        if let Some(code) = turn.error_code().filter(|code| *code != -32601) {
            let method = turn.method().unwrap_or_default();
            out.add_in(
                turn.revision,
                error_code_place(turn),
                format!("`{method}`, not declared, is refused with {code}"),
            );
            return;
        }
    }
}

crate::rule! {
    /// `ping` is answered.
    ///
    /// Clients use it to tell a quiet connection from a dead one, and drop the session when it fails.
    static PING_FAILED = {
        id: "mcp/ping-failed",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "step:ping",
        fix: "Answer ping with an empty result.",
        spec: "2025-11-25 utilities/ping",
        seeds: &["validator:4.1.1.1"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "ping"}]}"#),
        ],
        check: Check::Conversation(ping_failed),
    }
}

fn ping_failed(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::Ping], out) {
        if let Some(error) = turn.error() {
            out.add_in(turn.revision, turn.place(), format!("`ping` is answered with {}", quote(error.raw())));
        }
    }
}

crate::rule! {
    /// The server answers without a handshake.
    ///
    /// It keeps no sessions, by choice or by oversight.
    static REQUEST_BEFORE_INITIALIZE_SERVED = {
        id: "mcp/request-before-initialize-served",
        basis: Basis::Hint,
        versions: LEGACY,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:fresh-connection",
        fix: "None needed unless you rely on sessions.",
        spec: "2025-11-25 lifecycle, Initialization",
        seeds: &["validator:1.3.1.1"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "no-handshake", "request": {"body": {"method": "tools/list"}}, "response": {"body": {"result": {"tools": []}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "no-handshake", "request": {"body": {"method": "tools/list"}}, "response": {"status": 400, "body": {"result": null, "error": {"code": -32600, "message": "No session"}}}}]}"#),
        ],
        check: Check::Conversation(request_before_initialize_served),
    }
}

fn request_before_initialize_served(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::NoHandshake], out) {
        if turn.is_served() {
            out.add_at(turn.place(), format!("`{}` is served without `initialize`", turn.method().unwrap_or_default()));
        }
    }
}

crate::rule! {
    /// A server asks nothing before the client is ready.
    ///
    /// Except for `ping`. Clients that are still setting up drop the request, and the server waits.
    static SERVER_REQUEST_BEFORE_INITIALIZED = {
        id: "mcp/server-request-before-initialized",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Wait for initialized.",
        spec: "2025-11-25 lifecycle, Initialization",
        seeds: &["validator:1.3.1.8"],
        examples: &[
                fires(
                    &["/exchanges/0/response/events/0/data"],
                    r#"{"exchanges": [{"step": "initialize", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"roots/list\"}\n\ndata: {\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"result\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"serverInfo\": {\"name\": \"t\", \"title\": \"T\", \"version\": \"1.0.0\"}}}\n\n"}}]}"#,
                )
                .beside(&["mcp/undeclared-client-capability-used"]),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "initialized"}]}"#),
        ],
        check: Check::Conversation(server_request_before_initialized),
    }
}

fn server_request_before_initialized(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let ready = conversation.of(Step::Initialized).next().map_or(usize::MAX, |turn| turn.number);
    let is_early = |turn: &&Turn<'_>| {
        turn.number < ready && !turn.is_modern_request() && out.rule().versions.contains(&turn.revision)
    };
    let early: Vec<_> = conversation.turns.iter().filter(is_early).collect();
    for turn in early {
        for message in &turn.answer.messages {
            let is_request = message.object().is_some_and(|object| object.get("id").is_some());
            if let Some(method) = message.method().filter(|method| is_request && *method != "ping") {
                out.add_in(
                    turn.revision,
                    message.place(),
                    format!("asks for {} before it was told that we are ready", quote(method)),
                );
            }
        }
    }
}
