//! Event streams: that they carry the answer, close behind it, and carry nothing that does not belong there.

use std::collections::HashSet;

use super::heard::{ON, all};
use super::{MODERN, SESSIONS, SINCE_2025_03};
use crate::conversation::{self, Conversation, Turn};
use crate::judge::{Context, Occurrences};
use crate::rule::{Axis, Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::{Step, StreamEnd};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &SSE_NO_RESPONSE,
    &SSE_SILENT,
    &SSE_NOT_CLOSED,
    &SSE_BAD_FRAME,
    &SSE_EVENT_NAME,
    &SSE_RESPONSE_ON_GET,
    &SSE_EVENT_ID_DUPLICATE,
    &SSE_EVENT_ID_MODERN,
    &SSE_REQUEST_ON_STREAM,
    &SSE_UNRELATED_NOTIFICATION,
    &SSE_LOG_UNREQUESTED,
    &SSE_BUFFERING_HEADER,
];

/// How the stream ended. One of which nobody noted it was recorded whole.
fn end(turn: &Turn<'_>) -> StreamEnd {
    let noted = turn.response().and_then(|response| response.stream.as_ref());
    noted.map_or(StreamEnd::Closed, |stream| stream.end)
}

/// The streams that answer a request, but for those that are meant to stay open.
fn answering<'c, 's>(conversation: &'c Conversation<'s>, out: &Occurrences) -> Vec<&'c Turn<'s>> {
    let stays_open = |turn: &Turn<'_>| matches!(turn.step, Some(Step::SubscriptionsListen | Step::Get | Step::HttpSse));
    all(conversation, out)
        .filter(|turn| {
            turn.answer.stream.is_some() && turn.method().is_some() && turn.id().is_some_and(|id| !id.is_null())
        })
        .filter(|turn| !stays_open(turn) && turn.exchange.success().is_some() && !turn.is_mislabelled())
        .collect()
}

/// The first event that is none of messages though it is one by its name. What an event of another name holds is
/// nobody's business: servers keep a connection open by them.
fn broken_event(turn: &Turn<'_>) -> Option<usize> {
    let events = &turn.answer.stream.as_ref()?.events;
    let broken = turn.answer.messages.iter().filter(|message| message.document.trouble().is_some());
    let is_message = |event: &usize| {
        events.get(*event).is_some_and(|event| matches!(event.name.as_deref(), None | Some("" | "message")))
    };
    broken.filter_map(|message| message.event).find(is_message)
}

/// Whether an event of the stream cannot be read.
fn is_broken(turn: &Turn<'_>) -> bool {
    let unfinished = turn.answer.stream.as_ref().is_some_and(|stream| stream.is_unfinished);
    unfinished || broken_event(turn).is_some()
}

crate::rule! {
    /// A stream that answers a request carries the answer.
    ///
    /// It ended without one, and left nothing to resume from: the client waits in vain.
    static SSE_NO_RESPONSE = {
        id: "mcp/sse-no-response",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 28,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Send the response before closing.",
        spec: "2025-11-25 transports, Sending Messages §6",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": ": nothing\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "id: s1-0\ndata:\n\nretry: 1000\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(sse_no_response),
    }
}

fn sse_no_response(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answering(conversation, out) {
        let Some(stream) = &turn.answer.stream else { continue };
        let can_resume = turn.revision != conversation::MODERN
            && stream.events.iter().any(|event| event.id.as_ref().is_some_and(|id| !id.is_empty()));
        let is_whole = turn.response().is_some_and(|response| response.cut.is_none());
        if end(turn) == StreamEnd::Closed && is_whole && turn.reply().is_none() && !can_resume && !is_broken(turn) {
            out.add_in(
                turn.revision,
                turn.place(),
                format!("the stream ends without an answer to `{}`", turn.method().unwrap_or_default()),
            );
        }
    }
}

crate::rule! {
    /// An answer comes in time.
    ///
    /// The stream stayed open without one until the time for the step was over.
    static SSE_SILENT = {
        id: "mcp/sse-silent",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        rank: 28,
        basis: Basis::Policy,
        versions: SINCE_2025_03,
        evidence: Evidence::Timing,
        on: ON,
        place: "step:any SSE",
        fix: "Send the response.",
        spec: "2025-11-25 transports, Sending Messages §6",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": ": wait\n\n", "stream": {"events_ms": [], "end": "silent"}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "ping"}]}"#).over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(sse_silent),
    }
}

fn sse_silent(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answering(conversation, out) {
        if end(turn) == StreamEnd::Silent && turn.reply().is_none() {
            out.add_in(
                turn.revision,
                turn.place(),
                format!("no answer to `{}` in time, and the stream stays open", turn.method().unwrap_or_default()),
            );
        }
    }
}

/// How long after the answer a stream may stay open, in milliseconds.
const CLOSES_WITHIN_MS: u64 = 5_000;

crate::rule! {
    /// A stream closes behind its answer.
    ///
    /// An open one holds a connection at both ends, of which browsers allow six.
    static SSE_NOT_CLOSED = {
        id: "mcp/sse-not-closed",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_03,
        evidence: Evidence::Timing,
        on: ON,
        place: "step:any SSE",
        fix: "Close the stream after the response.",
        spec: "2025-11-25 transports, Sending Messages §6",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "took_ms": 5100, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n", "stream": {"events_ms": [20], "end": "left"}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "took_ms": 1100, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n", "stream": {"events_ms": [20], "end": "left"}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(sse_not_closed),
    }
}

fn sse_not_closed(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answering(conversation, out) {
        let Some(stream) = turn.response().and_then(|response| response.stream.as_ref()) else { continue };
        let Some(event) = turn.reply().and_then(|message| message.event) else { continue };
        let Some(answered_ms) = stream.events_ms.get(event) else { continue };
        let open_ms = turn.exchange.took_ms.saturating_sub(*answered_ms);
        if stream.end == StreamEnd::Left && open_ms >= CLOSES_WITHIN_MS {
            out.add_in(turn.revision, turn.place(), format!("still open {open_ms} ms after the answer"));
            return;
        }
    }
}

crate::rule! {
    /// Every event carries one message, and ends.
    ///
    /// An event is told only when an empty line follows; what is no JSON is dropped.
    static SSE_BAD_FRAME = {
        id: "mcp/sse-bad-frame",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2024-11-05"],
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Frame each message as data lines and a blank line.",
        spec: "HTML Living Standard §9.2",
        examples: &[
                fires(&["/exchanges/1/response/events/0"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 7,\n\ndata: \"result\": {}}\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
                fires(&["/exchanges/1/response/raw"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}"}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": ": hi\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\r\ndata: \"result\":{}}\r\n\r\n"}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(sse_bad_frame),
    }
}

fn sse_bad_frame(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in all(conversation, out).filter(|turn| !turn.is_mislabelled()) {
        let Some(stream) = turn.answer.stream.as_ref().filter(|_| turn.exchange.success().is_some()) else { continue };
        // Bytes that are no text are one finding, of `common/not-utf8`.
        if turn.response().is_some_and(|response| std::str::from_utf8(&response.body()).is_err()) {
            continue;
        }
        let is_cut = turn.response().is_some_and(|response| response.cut.is_some());
        if let Some(event) = broken_event(turn) {
            let data = &stream.events[event].data;
            out.add_in(
                turn.revision,
                format!("{}/events/{event}", turn.place()),
                format!("the event carries {} and no JSON value", quote(data)),
            );
        } else if stream.is_unfinished && end(turn) == StreamEnd::Closed && !is_cut {
            out.add_in(
                turn.revision,
                format!("/exchanges/{}/response/raw", turn.number),
                "the stream ends inside an event, without an empty line",
            );
        }
    }
}

crate::rule! {
    /// A message comes under the name `message`.
    ///
    /// Or under none, which means the same. Browsers hand events of other names to nobody.
    static SSE_EVENT_NAME = {
        id: "mcp/sse-event-name",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2024-11-05"],
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Use the message event or no name.",
        spec: "2024-11-05 transports, HTTP with SSE",
        examples: &[
                fires(&["/exchanges/1/response/events/0"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "event: response\ndata: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "event: message\ndata: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n"}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(sse_event_name),
    }
}

fn sse_event_name(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in all(conversation, out) {
        let Some(stream) = &turn.answer.stream else { continue };
        for message in turn.answer.messages.iter().filter(|message| message.number == turn.number) {
            let Some((event, name)) = message.event.and_then(|n| Some((n, stream.events.get(n)?.name.as_deref()?)))
            else {
                continue;
            };
            if name != "message" && message.is_json_rpc() {
                out.add_in(
                    turn.revision,
                    format!("{}/events/{event}", turn.place()),
                    format!("the event is named {}", quote(name)),
                );
                return;
            }
        }
    }
}

crate::rule! {
    /// Answers come on the stream of their request.
    ///
    /// The stream of a GET is for what the server says on its own; clients do not look there for answers.
    static SSE_RESPONSE_ON_GET = {
        id: "mcp/sse-response-on-get",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        evidence: Evidence::Live,
        on: ON,
        place: "step:get",
        fix: "Send responses on the request's stream.",
        spec: "2025-11-25 transports, Listening §4",
        examples: &[
                fires(&["/exchanges/1/response/events/0/data"], r#"{"exchanges": [{"step": "initialize"}, {"step": "get", "response": {"status": 200, "headers": {"content-type": "text/event-stream"}, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "get", "response": {"status": 200, "headers": {"content-type": "text/event-stream"}, "raw": ": hi\n\n"}}]}"#),
        ],
        check: Check::Conversation(sse_response_on_get),
    }
}

fn sse_response_on_get(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in super::heard::heard(conversation, &[Step::Get], out) {
        if let Some(message) =
            turn.answer.messages.iter().find(|message| message.event.is_some() && message.is_response())
        {
            out.add_in(turn.revision, message.place(), "an answer comes on the stream of a GET");
        }
    }
}

crate::rule! {
    /// Every event of a session has an id of its own.
    ///
    /// A client that resumes after one of two events with the same id loses what lay between.
    static SSE_EVENT_ID_DUPLICATE = {
        id: "mcp/sse-event-id-duplicate",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Make event ids unique in the session.",
        spec: "2025-11-25 transports, Resumability §1",
        examples: &[
                fires(&["/exchanges/1/response/events/1"], r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "id: e1\ndata:\n\nid: e1\ndata: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "id: e1\ndata:\n\nid: e2\ndata: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n"}}]}"#),
        ],
        check: Check::Conversation(sse_event_id_duplicate),
    }
}

fn sse_event_id_duplicate(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen: HashSet<(Option<&str>, &str)> = HashSet::new();
    for turn in all(conversation, out) {
        let Some(stream) = &turn.answer.stream else { continue };
        let session = turn.exchange.request.headers.get("mcp-session-id").map(String::as_str);
        for (event, id) in stream.events.iter().enumerate().filter_map(|(n, event)| Some((n, event.id.as_deref()?))) {
            // Without a session every stream is one of its own.
            let is_known = match session {
                Some(_) => !seen.insert((session, id)),
                None => stream.events[..event].iter().any(|before| before.id.as_deref() == Some(id)),
            };
            if is_known && !id.is_empty() {
                out.add_in(
                    turn.revision,
                    format!("{}/events/{event}", turn.place()),
                    format!("the id {} was used before", quote(id)),
                );
                return;
            }
        }
    }
}

crate::rule! {
    /// Events need no ids any more.
    ///
    /// Streams of this revision cannot be resumed.
    static SSE_EVENT_ID_MODERN = {
        id: "mcp/sse-event-id-modern",
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Drop event ids.",
        spec: "2026-07-28 streamable-http, Receiving Messages",
        examples: &[
                fires(&["/exchanges/0/response/events/0"], r#"{"exchanges": [{"step": "tools/list", "response": {"headers": {"content-type": "text/event-stream", "x-accel-buffering": "no"}, "body": null, "raw": "id: 1\ndata: {\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {\"tools\": [], \"resultType\": \"complete\", \"ttlMs\": 1, \"cacheScope\": \"public\", \"_meta\": {\"io.modelcontextprotocol/serverInfo\": {\"name\": \"t\", \"title\": \"T\", \"version\": \"1.0.0\"}}}}\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "tools/list"}]}"#),
        ],
        check: Check::Conversation(sse_event_id_modern),
    }
}

fn sse_event_id_modern(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in all(conversation, out).filter(|turn| turn.is_modern_request()) {
        let events = turn.answer.stream.iter().flat_map(|stream| &stream.events).enumerate();
        if let Some((event, _)) = events.into_iter().find(|(_, event)| event.id.is_some()) {
            out.add_at(format!("{}/events/{event}", turn.place()), "the event has an id");
            return;
        }
    }
}

crate::rule! {
    /// A server asks nothing on a stream of answers.
    ///
    /// Requests of servers are gone with this revision; what a server needs it says in a result.
    static SSE_REQUEST_ON_STREAM = {
        id: "mcp/sse-request-on-stream",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Use input_required results.",
        spec: "2026-07-28 streamable-http, Receiving Messages",
        examples: &[
                fires(&["/exchanges/0/response/events/0/data"], r#"{"exchanges": [{"step": "tools/list", "response": {"headers": {"content-type": "text/event-stream", "x-accel-buffering": "no"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\n\ndata: {\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {\"tools\": [], \"resultType\": \"complete\", \"ttlMs\": 1, \"cacheScope\": \"public\", \"_meta\": {\"io.modelcontextprotocol/serverInfo\": {\"name\": \"t\", \"title\": \"T\", \"version\": \"1.0.0\"}}}}\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "tools/list"}]}"#),
        ],
        check: Check::Conversation(sse_request_on_stream),
    }
}

fn sse_request_on_stream(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in all(conversation, out).filter(|turn| turn.is_modern_request()) {
        for message in turn.answer.messages.iter().filter(|message| message.event.is_some()) {
            let is_request = message.object().is_some_and(|object| object.get("id").is_some());
            if let Some(method) = message.method().filter(|_| is_request) {
                out.add_in(turn.revision, message.place(), format!("the stream carries the request {}", quote(method)));
            }
        }
    }
}

crate::rule! {
    /// A stream of answers carries what belongs to the request.
    ///
    /// That a list changed is told to those who subscribed to it, on their stream.
    static SSE_UNRELATED_NOTIFICATION = {
        id: "mcp/sse-unrelated-notification",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Send change notices on subscriptions/listen only.",
        spec: "2026-07-28 streamable-http, Receiving Messages",
        examples: &[
                fires(&["/exchanges/1/response/events/0/data"], r#"{"exchanges": [{"step": "discover", "response": {"body": {"result": {"capabilities": {"tools": {"listChanged": true}}}}}}, {"step": "tools/list", "response": {"headers": {"content-type": "text/event-stream", "x-accel-buffering": "no"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}\n\ndata: {\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {\"tools\": [], \"resultType\": \"complete\", \"ttlMs\": 1, \"cacheScope\": \"public\", \"_meta\": {\"io.modelcontextprotocol/serverInfo\": {\"name\": \"t\", \"title\": \"T\", \"version\": \"1.0.0\"}}}}\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "tools/list"}]}"#),
        ],
        check: Check::Conversation(sse_unrelated_notification),
    }
}

fn sse_unrelated_notification(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    on_answers(conversation, out, |method| {
        method.ends_with("/list_changed") || method == "notifications/resources/updated"
    });
}

/// Fires at every message of such a method on a modern stream of answers.
fn on_answers(conversation: &Conversation<'_>, out: &mut Occurrences, is_odd: impl Fn(&str) -> bool) {
    let turns: Vec<_> = all(conversation, out)
        .filter(|turn| turn.is_modern_request() && turn.step != Some(Step::SubscriptionsListen))
        .collect();
    for turn in turns {
        for message in turn.answer.messages.iter().filter(|message| message.event.is_some()) {
            if let Some(method) = message.method().filter(|method| is_odd(method)) {
                out.add_in(turn.revision, message.place(), format!("the stream carries {}", quote(method)));
            }
        }
    }
}

crate::rule! {
    /// A server logs to a client only when asked.
    ///
    /// A request asks by naming a level; ours did not.
    static SSE_LOG_UNREQUESTED = {
        id: "mcp/sse-log-unrequested",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any SSE",
        fix: "Log only when asked.",
        spec: "2026-07-28 changelog §5; logging",
        seeds: &["validator:4.4.2.1"],
        examples: &[
                fires(&["/exchanges/1/response/events/0/data"], r#"{"exchanges": [{"step": "discover", "response": {"body": {"result": {"capabilities": {"logging": {}}}}}}, {"step": "tools/list", "response": {"headers": {"content-type": "text/event-stream", "x-accel-buffering": "no"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/message\", \"params\": {\"level\": \"info\", \"data\": \"x\"}}\n\ndata: {\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {\"tools\": [], \"resultType\": \"complete\", \"ttlMs\": 1, \"cacheScope\": \"public\", \"_meta\": {\"io.modelcontextprotocol/serverInfo\": {\"name\": \"t\", \"title\": \"T\", \"version\": \"1.0.0\"}}}}\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "tools/list"}]}"#),
        ],
        check: Check::Conversation(sse_log_unrequested),
    }
}

fn sse_log_unrequested(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    on_answers(conversation, out, |method| method == "notifications/message");
}

crate::rule! {
    /// A stream tells proxies not to hold it back.
    ///
    /// Common proxies collect a stream until it is large enough, unless X-Accel-Buffering says no.
    static SSE_BUFFERING_HEADER = {
        id: "mcp/sse-buffering-header",
        versions: MODERN,
        evidence: Evidence::Live,
        on: ON,
        place: "response header X-Accel-Buffering",
        fix: "Add the header.",
        spec: "2026-07-28 streamable-http, Receiving Messages",
        examples: &[
                fires(&["/exchanges/0/response/headers"], r#"{"exchanges": [{"step": "tools/list", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {\"tools\": [], \"resultType\": \"complete\", \"ttlMs\": 1, \"cacheScope\": \"public\", \"_meta\": {\"io.modelcontextprotocol/serverInfo\": {\"name\": \"t\", \"title\": \"T\", \"version\": \"1.0.0\"}}}}\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "tools/list"}]}"#),
        ],
        check: Check::Conversation(sse_buffering_header),
    }
}

fn sse_buffering_header(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let streams = |turn: &&Turn<'_>| turn.is_modern_request() && turn.answer.stream.is_some();
    for turn in all(conversation, out).filter(streams) {
        let header = turn.exchange.success().map(|response| response.header("x-accel-buffering"));
        if header.is_some_and(|value| !value.is_some_and(|value| value.trim().eq_ignore_ascii_case("no"))) {
            out.add_at(format!("{}/headers", turn.place()), "the stream has no `X-Accel-Buffering: no`");
            return;
        }
    }
}
