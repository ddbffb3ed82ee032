//! Messages that a server sends on its own: notifications, and requests up to 2025-11-25.

use std::collections::HashMap;

use super::envelope::is_same;
use super::{ALL, LEGACY, MODERN, SINCE_2025_03};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &SERVER_MESSAGE_NO_METHOD,
    &SERVER_NOTIFICATION_HAS_ID,
    &SERVER_REQUEST_ID_INVALID,
    &UNDECLARED_CLIENT_CAPABILITY_USED,
    &LIST_CHANGED_UNDECLARED,
    &RESOURCE_UPDATED_UNDECLARED,
    &LOG_UNDECLARED,
    &LOG_LEVEL_INVALID,
    &PROGRESS_SHAPE,
    &PROGRESS_NOT_INCREASING,
    &PROGRESS_TOKEN_UNKNOWN,
    &CANCEL_UNKNOWN_ID,
    &SUBSCRIPTIONS_ID_MISSING,
];

const ON: &[Kind] = &[Kind::McpServerMessage];

/// The messages of a document: one, or several in the order they came.
pub(super) fn messages<'d>(root: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    let one = (root.kind() != Type::Array).then_some(root);
    one.into_iter().chain(root.items())
}

fn method(message: Node<'_>) -> Option<&str> {
    message.get("method").and_then(Node::text)
}

/// Every message with that method.
fn of_method<'d>(root: Node<'d>, name: &'static str) -> impl Iterator<Item = Node<'d>> {
    messages(root).filter(move |message| method(*message) == Some(name))
}

/// What stands at a parameter, with the pointer's end; missing where the outermost missing member would be.
fn param<'d>(message: Node<'d>, name: &str) -> Result<Node<'d>, (Node<'d>, String)> {
    match message.get("params") {
        None => Err((message, "params".to_owned())),
        Some(params) => params.get(name).ok_or((params, name.to_owned())),
    }
}

crate::rule! {
    /// A message is a request, a notification or an answer.
    ///
    /// Without a method, a result or an error nobody knows what it is for.
    static SERVER_MESSAGE_NO_METHOD = {
        id: "mcp/server-message-no-method",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: ON,
        place: "/",
        fix: "Send well-formed messages.",
        spec: "JSON-RPC 2.0 §4",
        seeds: &["validator:1.1.1.4", "validator:1.1.3.2"],
        examples: &[
            fires(&[""], r#"{"method": null}"#).over("mcp-message-2025-11-25"),
            silent(r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#).over("mcp-message-2025-11-25").whole(),
        ],
        check: Check::Document(server_message_no_method),
    }
}

fn server_message_no_method(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for message in messages(root) {
        if ["method", "result", "error"].iter().all(|member| message.get(member).is_none()) {
            out.add(message, "neither a method nor a result nor an error");
        }
    }
}

crate::rule! {
    /// A notification has no identifier.
    ///
    /// With one it is a request, and strict clients answer it.
    static SERVER_NOTIFICATION_HAS_ID = {
        id: "mcp/server-notification-has-id",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: ON,
        place: "/id",
        fix: "Drop the id.",
        spec: "2026-07-28 basic, Notifications",
        seeds: &["validator:1.1.3.1"],
        examples: &[
            fires(&["/id"], r#"{"id": 3}"#).over("mcp-message-2025-11-25"),
            silent(r#"{"params": {}}"#).over("mcp-message-2025-11-25"),
        ],
        check: Check::Document(server_notification_has_id),
    }
}

fn server_notification_has_id(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for message in messages(root).filter(|m| method(*m).is_some_and(|name| name.starts_with("notifications/"))) {
        if let Some(id) = message.get("id") {
            out.add(id, format!("a notification with the identifier {}", quote(id.raw())));
        }
    }
}

crate::rule! {
    /// A request of the server has an identifier of its own.
    ///
    /// A string or a whole number that it did not use before, so that the answer finds its way back.
    static SERVER_REQUEST_ID_INVALID = {
        id: "mcp/server-request-id-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Use unique string or integer ids.",
        spec: "2025-11-25 basic, Requests",
        seeds: &["validator:1.1.1.2", "validator:1.1.1.3"],
        examples: &[
            fires(&["/id"], r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#).over("mcp-message-2025-11-25").whole(),
            fires(
                &["/1/id"],
                r#"[{"jsonrpc": "2.0", "id": 5, "method": "ping"}, {"jsonrpc": "2.0", "id": 5, "method": "ping"}]"#,
            )
            .over("mcp-message-2025-11-25")
            .whole(),
            silent(r#"[{"jsonrpc": "2.0", "id": 5, "method": "ping"}, {"jsonrpc": "2.0", "id": "5", "method": "ping"}]"#)
                .over("mcp-message-2025-11-25")
                .whole(),
        ],
        check: Check::Document(server_request_id_invalid),
    }
}

fn server_request_id_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut used = std::collections::HashSet::new();
    for message in messages(root).filter(|m| method(*m).is_some_and(|name| !name.starts_with("notifications/"))) {
        let Some(id) = message.get("id") else { continue };
        let is_whole = id.kind() == Type::String || id.number().is_some_and(|number| number.fract() == 0.0);
        if !is_whole {
            out.add(id, format!("{} is neither a string nor a whole number", quote(id.raw())));
        } else if !used.insert(id.raw()) {
            out.add(id, format!("{} was used before", quote(id.raw())));
        }
    }
}

crate::rule! {
    /// A server asks only for what the client declared.
    ///
    /// A client that said nothing of sampling, roots or elicitation refuses such a request, and the tool waits for nothing.
    static UNDECLARED_CLIENT_CAPABILITY_USED = {
        id: "mcp/undeclared-client-capability-used",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Ask only for declared capabilities.",
        spec: "2025-11-25 lifecycle, Operation",
        seeds: &["validator:1.3.3.2", "validator:3.1.1.1", "validator:3.2.1.1", "validator:3.3.1.1"],
        examples: &[
            fires(&["/method"], r#"{"jsonrpc": "2.0", "id": 5, "method": "roots/list"}"#)
                .over("mcp-message-2025-11-25")
                .whole()
                .given(r#"{"client_capabilities": {}}"#),
            silent(r#"{"jsonrpc": "2.0", "id": 5, "method": "roots/list"}"#)
                .over("mcp-message-2025-11-25")
                .whole()
                .given(r#"{"client_capabilities": {"roots": {}}}"#),
        ],
        check: Check::Document(undeclared_client_capability_used),
    }
}

fn undeclared_client_capability_used(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(declared) = &context.given.client_capabilities else {
        out.not_evaluated(NotEvaluated::NoSession);
        return;
    };
    for name in messages(root).filter_map(|message| message.get("method")) {
        let capability = match name.text() {
            Some("sampling/createMessage") => "sampling",
            Some("roots/list") => "roots",
            Some("elicitation/create") => "elicitation",
            _ => continue,
        };
        if declared.get(capability).is_none() {
            out.add(name, format!("the client did not declare `{capability}`"));
        }
    }
}

/// Whether the server declared that, as a pointer into its capabilities; `None` when they are not known.
fn declares(context: &Context<'_>, pointer: &str) -> Option<bool> {
    let capabilities = context.given.capabilities.as_ref()?;
    Some(capabilities.pointer(pointer).is_some_and(|declared| declared.is_object() || declared.as_bool() == Some(true)))
}

/// Reports messages of a method whose capability is not declared.
fn demand_declared(root: Node<'_>, name: &'static str, pointer: &str, context: &Context<'_>, out: &mut Occurrences) {
    match declares(context, pointer) {
        None => out.not_evaluated(NotEvaluated::NoSession),
        Some(true) => {}
        Some(false) => {
            let capability = pointer.trim_start_matches('/').replace('/', ".");
            for at in of_method(root, name).filter_map(|message| message.get("method")) {
                out.add(at, format!("`{capability}` is not declared"));
            }
        }
    }
}

crate::rule! {
    /// Only a server that declared it says that a list changed.
    ///
    /// Clients that saw no `listChanged` do not listen for it, and go on with the old list.
    static LIST_CHANGED_UNDECLARED = {
        id: "mcp/list-changed-undeclared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Declare listChanged.",
        spec: "2025-11-25 server/tools, Capabilities",
        seeds: &["validator:2.1.6.2", "validator:2.2.4.2", "validator:2.3.4.2"],
        examples: &[
            fires(&["/method"], "{}").over("mcp-message-2025-11-25").given(r#"{"capabilities": {"tools": {}}}"#),
            silent("{}").over("mcp-message-2025-11-25").given(r#"{"capabilities": {"tools": {"listChanged": true}}}"#),
        ],
        check: Check::Document(list_changed_undeclared),
    }
}

fn list_changed_undeclared(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    demand_declared(root, "notifications/tools/list_changed", "/tools/listChanged", context, out);
    demand_declared(root, "notifications/resources/list_changed", "/resources/listChanged", context, out);
    demand_declared(root, "notifications/prompts/list_changed", "/prompts/listChanged", context, out);
}

crate::rule! {
    /// Only a server that declared subscriptions says that a resource changed.
    ///
    /// Nobody can have subscribed, so nobody expects the message.
    static RESOURCE_UPDATED_UNDECLARED = {
        id: "mcp/resource-updated-undeclared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Declare subscribe.",
        spec: "2025-11-25 server/resources, Capabilities",
        seeds: &["validator:2.1.5.2"],
        examples: &[
            fires(
                &["/method"],
                r#"{"method": "notifications/resources/updated", "params": {"uri": "tides://harbour/HEL"}}"#,
            )
            .over("mcp-message-2025-11-25")
            .given(r#"{"capabilities": {"resources": {}}}"#),
            silent(r#"{"method": "notifications/resources/updated", "params": {"uri": "tides://harbour/HEL"}}"#)
                .over("mcp-message-2025-11-25")
                .given(r#"{"capabilities": {"resources": {"subscribe": true}}}"#),
        ],
        check: Check::Document(resource_updated_undeclared),
    }
}

fn resource_updated_undeclared(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    demand_declared(root, "notifications/resources/updated", "/resources/subscribe", context, out);
}

crate::rule! {
    /// Only a server that declared logging sends log messages.
    ///
    /// Clients that saw no such capability set no level and expect none.
    static LOG_UNDECLARED = {
        id: "mcp/log-undeclared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Declare logging.",
        spec: "2025-11-25 utilities/logging",
        seeds: &["validator:4.4.1.1"],
        examples: &[
            fires(&["/method"], r#"{"method": "notifications/message", "params": {"level": "info", "data": "x"}}"#)
                .over("mcp-message-2025-11-25")
                .given(r#"{"capabilities": {"tools": {}}}"#),
            silent(r#"{"method": "notifications/message", "params": {"level": "info", "data": "x"}}"#)
                .over("mcp-message-2025-11-25")
                .given(r#"{"capabilities": {"logging": {}}}"#),
        ],
        check: Check::Document(log_undeclared),
    }
}

fn log_undeclared(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    demand_declared(root, "notifications/message", "/logging", context, out);
}

crate::rule! {
    /// A log message has one of the eight levels of syslog.
    ///
    /// `warn` is none of them; clients that filter by level drop it or stop at it.
    static LOG_LEVEL_INVALID = {
        id: "mcp/log-level-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: ON,
        place: "/params/level",
        fix: "Use an RFC 5424 level.",
        spec: "2025-11-25 utilities/logging",
        seeds: &["validator:4.4.2.1"],
        examples: &[
            fires(&["/params/level"], r#"{"method": "notifications/message", "params": {"level": "warn", "data": "x"}}"#)
                .over("mcp-message-2025-11-25"),
            silent(r#"{"method": "notifications/message", "params": {"level": "warning", "data": "x"}}"#)
                .over("mcp-message-2025-11-25"),
        ],
        check: Check::Document(log_level_invalid),
    }
}

fn log_level_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    for message in of_method(root, "notifications/message") {
        match param(message, "level") {
            Err((object, member)) => drop(out.add_missing(object, &member, "the level is missing")),
            Ok(level) if !level.text().is_some_and(|text| levels.contains(&text)) => {
                out.add(level, format!("{} is no level", quote(level.raw())));
            }
            Ok(_) => {}
        }
    }
}

crate::rule! {
    /// A progress message names what it is about and how far it is.
    ///
    /// The token of the request, and a number.
    static PROGRESS_SHAPE = {
        id: "mcp/progress-shape",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: ON,
        place: "/params/progressToken | /params/progress",
        fix: "Send both.",
        spec: "2025-11-25 utilities/progress",
        seeds: &["validator:4.3.2.1"],
        examples: &[
            fires(
                &["/params/progress"],
                r#"{"method": "notifications/progress", "params": {"progressToken": "t1", "progress": "50%"}}"#,
            )
            .over("mcp-message-2025-11-25")
            .given(r#"{"request": {"id": 7, "params": {"_meta": {"progressToken": "t1"}}}}"#),
            silent(r#"{"method": "notifications/progress", "params": {"progressToken": "t1", "progress": 0.5}}"#)
                .over("mcp-message-2025-11-25")
                .given(r#"{"request": {"id": 7, "params": {"_meta": {"progressToken": "t1"}}}}"#),
        ],
        check: Check::Document(progress_shape),
    }
}

fn progress_shape(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for message in of_method(root, "notifications/progress") {
        match param(message, "progressToken") {
            Err((object, member)) => drop(out.add_missing(object, &member, "the token is missing")),
            Ok(token) if !matches!(token.kind(), Type::String | Type::Number) => {
                out.add(token, format!("the token is {}, neither a string nor a number", token.kind().named()));
            }
            Ok(_) => {}
        }
        match param(message, "progress") {
            // Without parameters the token above says it all.
            Err((object, _)) if object == message => {}
            Err((object, member)) => drop(out.add_missing(object, &member, "the progress is missing")),
            Ok(progress) if progress.kind() != Type::Number => {
                out.add(progress, format!("the progress is {}, not a number", progress.kind().named()));
            }
            Ok(_) => {}
        }
    }
}

crate::rule! {
    /// Progress goes up.
    ///
    /// Every message about one token has a greater number than the one before.
    static PROGRESS_NOT_INCREASING = {
        id: "mcp/progress-not-increasing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_03,
        mode: Mode::Active,
        on: ON,
        place: "/params/progress",
        fix: "Increase progress each time.",
        spec: "2025-11-25 utilities/progress",
        seeds: &["validator:4.3.2.2"],
        examples: &[
            fires(
                &["/1/params/progress"],
                r#"[{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t1", "progress": 2}},
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t1", "progress": 2}}]"#,
            )
            .over("mcp-message-2025-11-25")
            .whole()
            .given(r#"{"request": {"id": 7, "params": {"_meta": {"progressToken": "t1"}}}}"#),
            silent(
                r#"[{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t1", "progress": 2}},
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t1", "progress": 2.5}}]"#,
            )
            .over("mcp-message-2025-11-25")
            .whole()
            .given(r#"{"request": {"id": 7, "params": {"_meta": {"progressToken": "t1"}}}}"#),
        ],
        check: Check::Document(progress_not_increasing),
    }
}

fn progress_not_increasing(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut latest: HashMap<&str, f64> = HashMap::new();
    for message in of_method(root, "notifications/progress") {
        let (Ok(token), Ok(progress)) = (param(message, "progressToken"), param(message, "progress")) else { continue };
        let Some(now) = progress.number() else { continue };
        if let Some(before) = latest.insert(token.raw(), now)
            && now <= before
        {
            out.add(progress, format!("{now} after {before}"));
        }
    }
}

crate::rule! {
    /// Progress is told about a request that asked for it.
    ///
    /// The token comes from the request. Clients drop a message with another, or stop at it.
    static PROGRESS_TOKEN_UNKNOWN = {
        id: "mcp/progress-token-unknown",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Only report on active requests.",
        spec: "2025-11-25 utilities/progress",
        seeds: &["validator:4.3.2.3"],
        examples: &[
            fires(
                &["/params/progressToken"],
                r#"{"method": "notifications/progress", "params": {"progressToken": "p9", "progress": 1}}"#,
            )
            .over("mcp-message-2025-11-25"),
            silent(r#"{"method": "notifications/progress", "params": {"progressToken": "p9", "progress": 1}}"#)
                .over("mcp-message-2025-11-25")
                .given(r#"{"request": {"id": 7, "params": {"_meta": {"progressToken": "p9"}}}}"#),
        ],
        check: Check::Document(progress_token_unknown),
    }
}

fn progress_token_unknown(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let request = context.given.request.as_ref();
    let given = request.and_then(|request| request.pointer("/params/_meta/progressToken"));
    for message in of_method(root, "notifications/progress") {
        if let Ok(token) = param(message, "progressToken")
            && !given.is_some_and(|given| is_same(token, given))
        {
            out.add(token, format!("no request gave the token {}", quote(token.raw())));
        }
    }
}

crate::rule! {
    /// A server cancels its own requests only.
    ///
    /// And says which. Clients cannot act on anything else.
    static CANCEL_UNKNOWN_ID = {
        id: "mcp/cancel-unknown-id",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: LEGACY,
        evidence: Evidence::Live,
        on: ON,
        place: "SSE or stdio messages",
        fix: "Cancel only your own requests.",
        spec: "2025-11-25 utilities/cancellation",
        seeds: &["validator:4.2.1.1", "validator:4.2.1.2"],
        examples: &[
            fires(&["/params/requestId"], r#"{"method": "notifications/cancelled", "params": {"reason": "x"}}"#)
                .over("mcp-message-2025-11-25"),
            silent(
                r#"[{"jsonrpc": "2.0", "id": 5, "method": "ping"},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}]"#,
            )
            .over("mcp-message-2025-11-25")
            .whole(),
        ],
        check: Check::Document(cancel_unknown_id),
    }
}

fn cancel_unknown_id(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut issued = std::collections::HashSet::new();
    for message in messages(root) {
        if method(message) == Some("notifications/cancelled") {
            match param(message, "requestId") {
                Err((object, member)) => drop(out.add_missing(object, &member, "the request is not named")),
                // One message alone does not show what the server asked before.
                Ok(id) if root.kind() == Type::Array && !issued.contains(id.raw()) => {
                    out.add(id, format!("the server issued no request {}", quote(id.raw())));
                }
                Ok(_) => {}
            }
        } else if let Some(id) = message.get("id").filter(|_| method(message).is_some()) {
            issued.insert(id.raw());
        }
    }
}

/// Where a message on a stream says which request opened it.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

crate::rule! {
    /// A message on a stream says which subscription it belongs to.
    ///
    /// A client with several streams over one connection cannot tell them apart otherwise.
    static SUBSCRIPTIONS_ID_MISSING = {
        id: "mcp/subscriptions-id-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        on: ON,
        place: "/params/_meta/io.modelcontextprotocol~1subscriptionId",
        fix: "Tag every message.",
        spec: "2026-07-28 patterns/subscriptions",
        examples: &[
            fires(&["/params/_meta"], r#"{"params": {"_meta": null}}"#).given(r#"{"listen_id": 31}"#),
            fires(
                &["/params/_meta/io.modelcontextprotocol~1subscriptionId"],
                r#"{"params": {"_meta": {"io.modelcontextprotocol/subscriptionId": "31"}}}"#,
            )
            .given(r#"{"listen_id": 31}"#),
            silent("{}").given(r#"{"listen_id": 31}"#),
        ],
        check: Check::Document(subscriptions_id_missing),
    }
}

fn subscriptions_id_missing(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(listen) = &context.given.listen_id else {
        out.not_evaluated(NotEvaluated::NoSession);
        return;
    };
    for message in messages(root).filter(|message| method(*message).is_some()) {
        let id = param(message, "_meta").and_then(|meta| meta.get(SUBSCRIPTION).ok_or((meta, SUBSCRIPTION.to_owned())));
        match id {
            Err((object, member)) => drop(out.add_missing(object, &member, "the subscription is not named")),
            Ok(id) if !is_same(id, listen) => drop(out.add(id, format!("{} is not {listen}", quote(id.raw())))),
            Ok(_) => {}
        }
    }
}
