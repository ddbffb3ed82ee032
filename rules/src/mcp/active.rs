//! What a server does when it is used: calls, completions, changes and second users. Only on targets that the operator
//! marked as own, with fixtures that the operator named.

use super::eras::error_code_place;
use super::heard::{ON, answered, heard, is_refused};
use super::{ALL, LEGACY, MODERN, SESSIONS, SINCE_2025_03, SINCE_2025_06, SINCE_2025_11};
use crate::conversation::{self, Conversation, Turn, list_step};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::{host_is_loopback, quote};

pub(super) const RULES: &[&Rule] = &[
    &HEADER_NAME_MISMATCH_ACCEPTED,
    &BIND_ALL_INTERFACES,
    &SESSION_USER_BINDING,
    &SSE_BROADCAST,
    &LIST_CHANGED_NOT_SENT,
    &RESOURCE_UPDATED_NOT_SENT,
    &TOOL_UNKNOWN_CODE,
    &RESOURCE_NOT_FOUND_CODE,
    &RESOURCE_NOT_FOUND_EMPTY,
    &COMPLETION_CONTEXT_REFUSED,
    &COMPLETIONS_UNDECLARED,
    &LOGGING_NOT_SERVED,
    &CANCELLED_STILL_ANSWERED,
];

crate::rule! {
    /// `Mcp-Name` names what the body names.
    ///
    /// What stands between client and server goes by the header; the server did something else than was let through.
    static HEADER_NAME_MISMATCH_ACCEPTED = {
        id: "mcp/header-name-mismatch-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:header-name-mismatch",
        fix: "Refuse with 400 and -32020.",
        spec: "2026-07-28 streamable-http, Server Validation",
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-name-mismatch", "request": {"headers": {"mcp-method": "tools/call", "mcp-name": "others"}, "body": {"method": "tools/call", "params": {"name": "tide_table"}}}, "response": {"status": 200, "body": {"error": null, "result": {"resultType": "complete", "content": []}}}}]}"#),
            silent(r#"{"exchanges": [{"step": "discover"}, {"step": "header-name-mismatch", "request": {"headers": {"mcp-method": "tools/call", "mcp-name": "others"}, "body": {"method": "tools/call", "params": {"name": "tide_table"}}}, "response": {"status": 400, "body": {"error": {"code": -32020, "message": "Mismatch"}}}}]}"#),
        ],
        check: Check::Conversation(header_name_mismatch_accepted),
    }
}

fn header_name_mismatch_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::HeaderNameMismatch], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), "served, though `Mcp-Name` names another thing than the body");
        }
    }
}

crate::rule! {
    /// A server on this machine listens on this machine alone.
    ///
    /// Anybody in the same network reaches it, and so do pages in a browser there.
    static BIND_ALL_INTERFACES = {
        id: "mcp/bind-all-interfaces",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: ALL,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:bind",
        fix: "Bind to 127.0.0.1.",
        spec: "2025-11-25 transports, Security Warning",
        seeds: &["validator:1.2.2.6"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "request": {"url": "http://127.0.0.1:8080/mcp"}}, {"step": "bind", "request": {"url": "http://192.168.1.7:8080/mcp"}, "response": {"status": 403, "body": null}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"url": "http://127.0.0.1:8080/mcp"}}, {"step": "bind", "request": {"url": "http://192.168.1.7:8080/mcp"}, "response": null, "error": "refused"}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(bind_all_interfaces),
    }
}

fn bind_all_interfaces(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let host = |url: &str| url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let is_here = |url: &str| host(url).is_some_and(|host| host_is_loopback(&host));
    let mut has_asked = false;
    for turn in conversation.of(Step::Bind) {
        has_asked = true;
        let url = &turn.exchange.request.url;
        if turn.response().is_some() && is_here(conversation.endpoint) && !is_here(url) {
            out.add_in(turn.revision, turn.place(), format!("it also answers at {}", quote(url)));
        }
    }
    if !has_asked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}

crate::rule! {
    /// A session belongs to the user who opened it.
    ///
    /// Whoever learns its id would go on in the other's name.
    static SESSION_USER_BINDING = {
        id: "mcp/session-user-binding",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SESSIONS,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-other-user",
        fix: "Bind sessions to the user.",
        spec: "2025-11-25 security best practices, Session Hijacking",
        seeds: &["validator:1.5.3.2"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "session-other-user", "request": {"body": {"method": "ping", "params": {}}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-other-user", "request": {"body": {"method": "ping", "params": {}}}, "response": {"status": 404, "body": null}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(session_user_binding),
    }
}

fn session_user_binding(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::SessionOtherUser], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), "the session of one user is served to another");
        }
    }
}

crate::rule! {
    /// A message goes out on one stream.
    ///
    /// A client with two streams open does twice what it is told once.
    static SSE_BROADCAST = {
        id: "mcp/sse-broadcast",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:two-streams",
        fix: "Send each message on one stream.",
        spec: "2025-11-25 transports, Multiple Connections",
        examples: &[
            fires(&["/exchanges/2/response/events/0/data"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "two-streams", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}\n\n"}}, {"step": "two-streams", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}\n\n"}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "two-streams", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}\n\n"}}, {"step": "two-streams", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/resources/list_changed\"}\n\n"}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(sse_broadcast),
    }
}

fn sse_broadcast(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let streams = heard(conversation, &[Step::TwoStreams], out);
    let [first, second, ..] = streams.as_slice() else { return out.not_evaluated(NotEvaluated::NotAsked) };
    let told: Vec<&str> = first.answer.messages.iter().map(|message| message.document.text()).collect();
    let twice = second
        .answer
        .messages
        .iter()
        .find(|message| message.method().is_some() && told.contains(&message.document.text()));
    if let Some(message) = twice {
        let method = message.method().unwrap_or_default();
        out.add_in(second.revision, message.place(), format!("{} came on both streams", quote(method)));
    }
}

crate::rule! {
    /// Who promises to tell when a list changes tells it.
    ///
    /// Clients that rely on the promise go on with the old list.
    static LIST_CHANGED_NOT_SENT = {
        id: "mcp/list-changed-not-sent",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:change",
        fix: "Send the notification.",
        spec: "2025-11-25 server/tools, List Changed",
        seeds: &["validator:2.1.6.1", "validator:2.2.4.1", "validator:2.3.4.1"],
        examples: &[
            fires(&["/exchanges/4/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "tools/list"}, {"step": "change-hook", "request": {"url": "http://127.0.0.1:9/change", "body": null}, "response": {"status": 204, "headers": {"content-type": null}, "body": null}}, {"step": "changed-list", "request": {"body": {"method": "tools/list", "id": "list-2"}}, "response": {"body": {"id": "list-2", "result": {"tools": [{"name": "winds", "title": "Winds", "description": "Gives the winds.", "inputSchema": {"type": "object", "properties": {}}}]}}}}, {"step": "change", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": ": quiet\n\n"}, "took_ms": 11000}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "tools/list"}, {"step": "change-hook", "request": {"url": "http://127.0.0.1:9/change", "body": null}, "response": {"status": 204, "headers": {"content-type": null}, "body": null}}, {"step": "changed-list", "request": {"body": {"method": "tools/list", "id": "list-2"}}, "response": {"body": {"id": "list-2", "result": {"tools": [{"name": "winds", "title": "Winds", "description": "Gives the winds.", "inputSchema": {"type": "object", "properties": {}}}]}}}}, {"step": "change", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}\n\n"}, "took_ms": 11000}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "tools/list"}, {"step": "change-hook", "request": {"url": "http://127.0.0.1:9/change", "body": null}, "response": {"status": 204, "headers": {"content-type": null}, "body": null}}, {"step": "change", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": ": quiet\n\n"}, "took_ms": 11000}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(list_changed_not_sent),
    }
}

/// How long a notification may take.
const NOTICE_MS: u64 = 10_000;

/// The stream that was open while the hook was called and long enough after.
fn while_changing<'c, 's>(conversation: &'c Conversation<'s>, out: &mut Occurrences) -> Option<&'c Turn<'s>> {
    let has_changed = conversation.of(Step::ChangeHook).any(|turn| turn.exchange.success().is_some());
    let open = heard(conversation, &[Step::Change], out);
    let stream = open.into_iter().find(|turn| turn.exchange.took_ms >= NOTICE_MS).filter(|_| has_changed);
    if stream.is_none() {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
    stream
}

fn list_changed_not_sent(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(stream) = while_changing(conversation, out) else { return };
    for after in conversation.of(Step::ChangedList) {
        let Some(list) = after.method().and_then(|method| method.split('/').next()) else { continue };
        let before = after.method().and_then(list_step).and_then(|step| conversation.of(step).next());
        let items = |turn: &Turn<'_>| turn.result().and_then(|result| result.get(list)).map(Node::to_value);
        let (Some(before), Some(now)) = (before.and_then(items), items(after)) else { continue };
        let capability = conversation.capabilities(after).and_then(|held| held.get(list)?.get("listChanged"));
        let notice = format!("notifications/{list}/list_changed");
        let is_told = stream.answer.messages.iter().any(|message| message.method() == Some(notice.as_str()));
        if before != now && capability.and_then(Node::flag) == Some(true) && !is_told {
            out.add_in(stream.revision, stream.place(), format!("{list} changed and nobody said so within 10 s"));
        }
    }
}

crate::rule! {
    /// A subscribed resource's change is told.
    ///
    /// Who subscribed goes on with what it read before.
    static RESOURCE_UPDATED_NOT_SENT = {
        id: "mcp/resource-updated-not-sent",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:change",
        fix: "Send notifications/resources/updated.",
        spec: "2025-11-25 server/resources, Subscriptions",
        seeds: &["validator:2.1.5.1"],
        examples: &[
            fires(&["/exchanges/5/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "resources/read", "request": {"body": {"method": "resources/read", "params": {"uri": "tides://a"}}}, "response": {"body": {"result": {"contents": [{"uri": "tides://a", "mimeType": "text/plain", "text": "low"}]}}}}, {"step": "resources/subscribe", "request": {"body": {"method": "resources/subscribe", "params": {"uri": "tides://a"}}}}, {"step": "change-hook", "request": {"url": "http://127.0.0.1:9/change", "body": null}, "response": {"status": 204, "headers": {"content-type": null}, "body": null}}, {"step": "changed-resource", "request": {"body": {"method": "resources/read", "params": {"uri": "tides://a"}}}, "response": {"body": {"result": {"contents": [{"uri": "tides://a", "mimeType": "text/plain", "text": "high"}]}}}}, {"step": "change", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": ": quiet\n\n"}, "took_ms": 11000}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "resources/read", "request": {"body": {"method": "resources/read", "params": {"uri": "tides://a"}}}, "response": {"body": {"result": {"contents": [{"uri": "tides://a", "mimeType": "text/plain", "text": "low"}]}}}}, {"step": "resources/subscribe", "request": {"body": {"method": "resources/subscribe", "params": {"uri": "tides://a"}}}}, {"step": "change-hook", "request": {"url": "http://127.0.0.1:9/change", "body": null}, "response": {"status": 204, "headers": {"content-type": null}, "body": null}}, {"step": "changed-resource", "request": {"body": {"method": "resources/read", "params": {"uri": "tides://a"}}}, "response": {"body": {"result": {"contents": [{"uri": "tides://a", "mimeType": "text/plain", "text": "high"}]}}}}, {"step": "change", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/resources/updated\", \"params\": {\"uri\": \"tides://a\"}}\n\n"}, "took_ms": 11000}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}}}}}}, {"step": "resources/read", "request": {"body": {"method": "resources/read", "params": {"uri": "tides://a"}}}, "response": {"body": {"result": {"contents": [{"uri": "tides://a", "mimeType": "text/plain", "text": "low"}]}}}}, {"step": "resources/subscribe", "request": {"body": {"method": "resources/subscribe", "params": {"uri": "tides://a"}}}}, {"step": "change-hook", "request": {"url": "http://127.0.0.1:9/change", "body": null}, "response": {"status": 204, "headers": {"content-type": null}, "body": null}}, {"step": "changed-resource", "request": {"body": {"method": "resources/read", "params": {"uri": "tides://a"}}}, "response": {"body": {"result": {"contents": [{"uri": "tides://a", "mimeType": "text/plain", "text": "low"}]}}}}, {"step": "change", "request": {"method": "GET", "headers": {"accept": "text/event-stream"}, "body": null}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": ": quiet\n\n"}, "took_ms": 11000}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(resource_updated_not_sent),
    }
}

fn resource_updated_not_sent(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(stream) = while_changing(conversation, out) else { return };
    let uri = |turn: &Turn<'_>| turn.asked.as_ref()?.pointer("/params/uri")?.as_str().map(str::to_owned);
    let contents = |turn: &Turn<'_>| turn.result().and_then(|result| result.get("contents")).map(Node::to_value);
    for after in conversation.of(Step::ChangedResource) {
        let Some(uri_of_after) = uri(after) else { continue };
        let is_same = |turn: &&Turn<'_>| uri(turn).as_deref() == Some(uri_of_after.as_str());
        let is_subscribed = conversation.of(Step::Subscribe).filter(is_same).any(Turn::is_served);
        let before = conversation.of(Step::ResourcesRead).find(is_same).and_then(contents);
        let (Some(before), Some(now)) = (before, contents(after)) else { continue };
        let is_told = stream.answer.messages.iter().any(|message| {
            let named = message.object().and_then(|object| object.get("params")?.get("uri")?.text());
            message.method() == Some("notifications/resources/updated") && named == Some(uri_of_after.as_str())
        });
        if before != now && is_subscribed && !is_told {
            let what = format!("{} changed and nobody said so within 10 s", quote(&uri_of_after));
            out.add_in(stream.revision, stream.place(), what);
        }
    }
}

crate::rule! {
    /// A call of a tool that does not exist is an error.
    ///
    /// With anything else a model takes the answer for that of a tool.
    static TOOL_UNKNOWN_CODE = {
        id: "mcp/tool-unknown-code",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:tools/call unknown",
        fix: "Answer -32602.",
        spec: "2026-07-28 server/tools, Error Handling",
        seeds: &["validator:2.3.3.1"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/call unknown", "request": {"body": {"method": "tools/call", "params": {"name": "x"}}}, "response": {"body": {"result": {"content": []}}}}]}"#).over("conversation-2025-11-25"),
            fires(&["/exchanges/1/response/body/error/code"], r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/call unknown", "request": {"body": {"method": "tools/call", "params": {"name": "x"}}}, "response": {"body": {"result": null, "error": {"code": -32603, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/call unknown", "request": {"body": {"method": "tools/call", "params": {"name": "x"}}}, "response": {"body": {"result": {"content": [], "isError": true}}}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(tool_unknown_code),
    }
}

fn tool_unknown_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::ToolsCallUnknown], out) {
        let is_tolerated = |code: i64| code == -32602 || (code == -32601 && !SINCE_2025_11.contains(&turn.revision));
        if let Some(code) = turn.error_code().filter(|code| !is_tolerated(*code)) {
            out.add_in(turn.revision, error_code_place(turn), format!("the made-up tool is refused with {code}"));
        } else if let Some(result) = turn.result()
            && result.get("isError").and_then(Node::flag) != Some(true)
        {
            out.add_in(turn.revision, turn.place(), "the made-up tool is answered as if it had been called");
        }
    }
}

crate::rule! {
    /// A resource that does not exist is refused with the code of the revision.
    ///
    /// By the code clients tell what is gone from what went wrong. Before 2026-07-28 it was only advised.
    static RESOURCE_NOT_FOUND_CODE = {
        id: "mcp/resource-not-found-code",
        severity: Severity::Error,
        severity_overrides: &[("2024-11-05", Severity::Warning), ("2025-03-26", Severity::Warning), ("2025-06-18", Severity::Warning), ("2025-11-25", Severity::Warning)],
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:resources/read unknown",
        fix: "Use the revision's code.",
        spec: "2026-07-28 server/resources, Error Handling; SEP-2164",
        examples: &[
            fires(&["/exchanges/1/response/body/error/code"], r#"{"exchanges": [{"step": "initialize"}, {"step": "resources/read unknown", "request": {"body": {"method": "resources/read", "params": {"uri": "x://y"}}}, "response": {"body": {"result": null, "error": {"code": -32603, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "resources/read unknown", "request": {"body": {"method": "resources/read", "params": {"uri": "x://y"}}}, "response": {"body": {"result": null, "error": {"code": -32002, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(resource_not_found_code),
    }
}

fn resource_not_found_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered(conversation, &[Step::ResourcesReadUnknown], out) {
        let is_modern = turn.revision == conversation::MODERN;
        let is_right = |code: i64| code == -32602 || (code == -32002 && !is_modern);
        if let Some(code) = turn.error_code().filter(|code| !is_right(*code)) {
            out.add_in(turn.revision, error_code_place(turn), format!("the made-up resource is refused with {code}"));
        }
    }
}

crate::rule! {
    /// A resource that does not exist is not an empty one.
    ///
    /// A client would go on with nothing, and never learn that the address is wrong.
    static RESOURCE_NOT_FOUND_EMPTY = {
        id: "mcp/resource-not-found-empty",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:resources/read unknown",
        fix: "Answer an error.",
        spec: "2026-07-28 server/resources, Error Handling",
        examples: &[
            fires(&["/exchanges/1/response/body/result/contents"], r#"{"exchanges": [{"step": "initialize"}, {"step": "resources/read unknown", "request": {"body": {"method": "resources/read", "params": {"uri": "x://y"}}}, "response": {"body": {"result": {"contents": []}}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "resources/read unknown", "request": {"body": {"method": "resources/read", "params": {"uri": "x://y"}}}, "response": {"body": {"result": null, "error": {"code": -32002, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(resource_not_found_empty),
    }
}

fn resource_not_found_empty(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::ResourcesReadUnknown], out) {
        let contents = turn.result().and_then(|result| result.get("contents"));
        if contents.is_some_and(|contents| contents.kind() == Type::Array && contents.is_empty()) {
            let place = turn.reply().map_or_else(|| turn.place(), |reply| format!("{}/result/contents", reply.place()));
            out.add_in(turn.revision, place, "the made-up resource is there and empty");
        }
    }
}

crate::rule! {
    /// A completion takes what was filled in before.
    ///
    /// Clients send along the other arguments; the same request without them is served.
    static COMPLETION_CONTEXT_REFUSED = {
        id: "mcp/completion-context-refused",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:completion context",
        fix: "Accept context.",
        spec: "2026-07-28 utilities/completion",
        seeds: &["validator:4.5.1.3"],
        examples: &[
            fires(&["/exchanges/2/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"completions": {}}}}}}, {"step": "completion", "request": {"body": {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}}}, "response": {"body": {"result": {"completion": {"values": []}}}}}, {"step": "completion context", "request": {"body": {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}}}, "response": {"body": {"result": null, "error": {"code": -32602, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"completions": {}}}}}}, {"step": "completion", "request": {"body": {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}}}, "response": {"body": {"result": null, "error": {"code": -32602, "message": "No"}}}}, {"step": "completion context", "request": {"body": {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}}}, "response": {"body": {"result": null, "error": {"code": -32602, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(completion_context_refused),
    }
}

fn completion_context_refused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let without: Vec<&str> =
        conversation.of(Step::Completion).filter(|turn| turn.is_served()).map(|turn| turn.revision).collect();
    for turn in heard(conversation, &[Step::CompletionContext], out) {
        if is_refused(turn) && without.contains(&turn.revision) {
            out.add_in(turn.revision, turn.place(), "a completion with context is refused, without it is served");
        }
    }
}

crate::rule! {
    /// Who completes arguments declares it.
    ///
    /// Clients ask only where it is declared, so nobody uses it.
    static COMPLETIONS_UNDECLARED = {
        id: "mcp/completions-undeclared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:completion",
        fix: "Declare completions.",
        spec: "2026-07-28 utilities/completion",
        seeds: &["validator:4.5.1.1"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "completion", "request": {"body": {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}}}, "response": {"body": {"result": {"completion": {"values": []}}}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"completions": {}}}}}}, {"step": "completion", "request": {"body": {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}}}, "response": {"body": {"result": {"completion": {"values": []}}}}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(completions_undeclared),
    }
}

fn completions_undeclared(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::Completion], out) {
        let Some(capabilities) = conversation.capabilities(turn) else { continue };
        if turn.is_served() && capabilities.given("completions").is_none() {
            out.add_in(turn.revision, turn.place(), "completions are served and not declared");
        }
    }
}

crate::rule! {
    /// Who declares logging lets its level be set.
    ///
    /// Clients that ask for fewer messages get an error in place of them.
    static LOGGING_NOT_SERVED = {
        id: "mcp/logging-not-served",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: LEGACY,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:logging/setLevel",
        fix: "Serve logging/setLevel.",
        spec: "2025-11-25 utilities/logging",
        seeds: &["validator:4.4.1.1"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"logging": {}}}}}}, {"step": "logging/setLevel", "request": {"body": {"method": "logging/setLevel", "params": {"level": "info"}}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "logging/setLevel", "request": {"body": {"method": "logging/setLevel", "params": {"level": "info"}}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "No"}}}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(logging_not_served),
    }
}

fn logging_not_served(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::LoggingSetLevel], out) {
        let declared = conversation.capabilities(turn).and_then(|held| held.given("logging"));
        if let Some(code) = turn.error_code().filter(|_| declared.is_some()) {
            out.add_in(turn.revision, turn.place(), format!("logging is declared and its level refused with {code}"));
        }
    }
}

crate::rule! {
    /// What was cancelled is not answered any more.
    ///
    /// The work went on for nothing, and the client has to sort out an answer that it gave up.
    static CANCELLED_STILL_ANSWERED = {
        id: "mcp/cancelled-still-answered",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        evidence: Evidence::Live,
        on: ON,
        place: "step:cancel",
        fix: "Stop and stay silent after cancellation.",
        spec: "2025-11-25 utilities/cancellation",
        seeds: &["validator:4.2.1.4"],
        examples: &[
            fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "slow-call", "at_ms": 1000, "took_ms": 5000, "request": {"body": {"method": "tools/call", "params": {"name": "slow"}}}, "response": {"body": {"result": {"content": []}}}}, {"step": "cancel", "at_ms": 2000, "request": {"body": {"id": null, "method": "notifications/cancelled", "params": {"requestId": 9}}}, "response": {"status": 202, "headers": {"content-type": null}, "body": null}}]}"#).over("conversation-2025-11-25"),
            silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "slow-call", "at_ms": 1000, "took_ms": 1500, "request": {"body": {"method": "tools/call", "params": {"name": "slow"}}}, "response": {"body": {"result": {"content": []}}}}, {"step": "cancel", "at_ms": 2000, "request": {"body": {"id": null, "method": "notifications/cancelled", "params": {"requestId": 9}}}, "response": {"status": 202, "headers": {"content-type": null}, "body": null}}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(cancelled_still_answered),
    }
}

/// How long an answer may still be under way, milliseconds.
const UNDER_WAY_MS: i64 = 1000;

fn cancelled_still_answered(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let cancelled = conversation.of(Step::Cancel).find(|turn| turn.exchange.at_ms > 0);
    for turn in heard(conversation, &[Step::SlowCall], out) {
        let Some(cancelled) = cancelled else { return out.not_evaluated(NotEvaluated::NotAsked) };
        let Some(reply) = turn.reply() else { continue };
        let stream = turn.response().and_then(|response| response.stream.as_ref());
        let offset = reply.event.and_then(|event| stream?.events_ms.get(event)).copied();
        let offset = offset.unwrap_or(turn.exchange.took_ms);
        let came = turn.exchange.at_ms.saturating_add(i64::try_from(offset).unwrap_or(i64::MAX));
        let late = came - cancelled.exchange.at_ms;
        if turn.exchange.at_ms > 0 && late > UNDER_WAY_MS {
            out.add_in(turn.revision, turn.place(), format!("the answer came {late} ms after it was cancelled"));
        }
    }
}
