//! JSON-RPC around a result: the answer to one request, and the errors in it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::server_message::messages;
use super::{ALL, LEGACY, MODERN, SINCE_2025_03};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Mode, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &JSONRPC_ARRAY_RESPONSE,
    &JSONRPC_VERSION,
    &JSONRPC_RESULT_XOR_ERROR,
    &JSONRPC_RESULT_NOT_OBJECT,
    &JSONRPC_ERROR_SHAPE,
    &JSONRPC_ID_MISMATCH,
    &JSONRPC_ERROR_ID,
    &PING_RESULT_NOT_EMPTY,
    &ERROR_CODE_RESERVED,
    &ERROR_CODE_LEGACY_RANGE,
    &UNSUPPORTED_VERSION_DATA,
    &ERROR_LEAKS_INTERNALS,
];

const ON: &[Kind] = &[Kind::JsonrpcResponse];

/// The request that was answered, when it was one request with an identifier.
fn request<'c>(context: &Context<'c>) -> Option<&'c Value> {
    context.given.request.as_ref().filter(|request| request.is_object())
}

pub(super) use crate::conversation::is_same;

crate::rule! {
    /// One request is answered with one message.
    ///
    /// Clients that wait for an object do not look into a list.
    static JSONRPC_ARRAY_RESPONSE = {
        id: "mcp/jsonrpc-array-response",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "by analogy, not run",
        versions: SINCE_2025_03,
        on: ON,
        place: "/",
        fix: "Answer one request with one object.",
        spec: "2025-11-25 transports, Sending Messages §5",
        examples: &[
            fires(&[""], r#"[{"jsonrpc": "2.0", "id": 7, "result": {}}]"#).over("jsonrpc-2025-11-25").whole(),
            silent(r#"{"jsonrpc": "2.0", "id": 7, "result": {}}"#).over("jsonrpc-2025-11-25"),
        ],
        stops: Stops::Document,
        check: Check::Document(jsonrpc_array_response),
    }
}

fn jsonrpc_array_response(answer: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_batch = context.given.request.as_ref().is_some_and(Value::is_array);
    if answer.kind() == Type::Array && !is_batch {
        out.add(answer, "the answer is an array");
    }
}

crate::rule! {
    /// A message says that it is JSON-RPC 2.0.
    ///
    /// With the string "2.0". Clients drop a message that does not, and wait for the answer until their time is up.
    static JSONRPC_VERSION = {
        id: "mcp/jsonrpc-version",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: &[Kind::JsonrpcResponse, Kind::McpServerMessage],
        place: "/jsonrpc",
        fix: "Set jsonrpc to \"2.0\".",
        spec: "JSON-RPC 2.0 §5",
        seeds: &["validator:1.1.1.1"],
        examples: &[
            fires(&["/jsonrpc"], r#"{"jsonrpc": null}"#).over("jsonrpc-2025-11-25"),
            fires(&["/jsonrpc"], r#"{"jsonrpc": 2.0}"#).over("jsonrpc-2025-11-25"),
            silent(r#"{"jsonrpc": "2.0"}"#).over("jsonrpc-2025-11-25"),
        ],
        check: Check::Document(jsonrpc_version),
    }
}

fn jsonrpc_version(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for message in messages(root).filter(|message| message.kind() == Type::Object) {
        match message.get("jsonrpc") {
            None => drop(out.add_missing(message, "jsonrpc", "`jsonrpc` is missing")),
            Some(version) if version.text() != Some("2.0") => {
                out.add(version, format!("`jsonrpc` is {}, not \"2.0\"", quote(version.raw())));
            }
            Some(_) => {}
        }
    }
}

crate::rule! {
    /// An answer has a result or an error, not both and not neither.
    ///
    /// Also null counts: an answer with `"error": null` beside its result is refused by strict clients.
    static JSONRPC_RESULT_XOR_ERROR = {
        id: "mcp/jsonrpc-result-xor-error",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/ | /result | /error",
        fix: "Send exactly one of result and error.",
        spec: "JSON-RPC 2.0 §5",
        seeds: &["validator:1.1.2.2"],
        examples: &[
            fires(&[""], r#"{"error": {"code": -32603, "message": "x"}}"#).over("jsonrpc-2025-11-25"),
            fires(&[""], r#"{"result": null}"#).over("jsonrpc-2025-11-25"),
            fires(&["/error"], r#"{"jsonrpc": "2.0", "id": 7, "result": {}, "error": null}"#).over("jsonrpc-2025-11-25").whole(),
            silent(r#"{"extra": 1}"#).over("jsonrpc-2025-11-25"),
        ],
        check: Check::Document(jsonrpc_result_xor_error),
    }
}

fn jsonrpc_result_xor_error(answer: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if answer.kind() != Type::Object {
        return;
    }
    match (answer.get("result"), answer.get("error")) {
        (None, None) => drop(out.add(answer, "neither a result nor an error")),
        (Some(result), Some(error)) => {
            let null = [error, result].into_iter().find(|member| member.is_null());
            out.add(null.unwrap_or(answer), "a result and an error");
        }
        _ => {}
    }
}

crate::rule! {
    /// A result is an object.
    ///
    /// MCP knows no other; strict clients refuse the answer.
    static JSONRPC_RESULT_NOT_OBJECT = {
        id: "mcp/jsonrpc-result-not-object",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/result",
        fix: "Return an object.",
        spec: "2026-07-28 basic, Result Responses",
        seeds: &["validator:1.1.1.1"],
        examples: &[
            fires(&["/result"], r#"{"result": []}"#).over("jsonrpc-2025-11-25"),
            silent(r#"{"result": {}}"#).over("jsonrpc-2025-11-25"),
        ],
        check: Check::Document(jsonrpc_result_not_object),
    }
}

fn jsonrpc_result_not_object(answer: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    // Null beside an error is jsonrpc-result-xor-error's.
    if let Some(result) = answer.get("result")
        && result.kind() != Type::Object
        && !(result.is_null() && answer.get("error").is_some())
    {
        out.add(result, format!("the result is {}, not an object", result.kind().named()));
    }
}

crate::rule! {
    /// An error has a whole number for its code and a text for its message.
    ///
    /// Clients show the message and decide by the code; strict ones drop an error without them.
    static JSONRPC_ERROR_SHAPE = {
        id: "mcp/jsonrpc-error-shape",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        on: ON,
        place: "/error | /error/code | /error/message",
        fix: "Send an integer code and a string message.",
        spec: "2026-07-28 basic, Error Responses",
        seeds: &["validator:1.1.2.3"],
        examples: &[
            fires(&["/error/code"], r#"{"error": {"code": "-32601"}}"#).over("jsonrpc-2026-07-28"),
            fires(&["/error"], r#"{"error": "Method not found"}"#).over("jsonrpc-2026-07-28"),
            fires(&["/error/message"], r#"{"error": {"message": null}}"#).over("jsonrpc-2026-07-28"),
            silent(r#"{"error": {"message": ""}}"#).over("jsonrpc-2026-07-28"),
        ],
        check: Check::Document(jsonrpc_error_shape),
    }
}

fn jsonrpc_error_shape(answer: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    // Null beside a result is jsonrpc-result-xor-error's.
    let Some(error) = answer.get("error").filter(|e| !(e.is_null() && answer.get("result").is_some())) else { return };
    if error.kind() != Type::Object {
        out.add(error, format!("the error is {}, not an object", error.kind().named()));
        return;
    }
    match error.get("code") {
        None => drop(out.add_missing(error, "code", "`code` is missing")),
        Some(code) if code.number().is_none_or(|number| number.fract() != 0.0) => {
            out.add(code, format!("{} is no whole number", quote(code.raw())));
        }
        Some(_) => {}
    }
    match error.get("message") {
        None => drop(out.add_missing(error, "message", "`message` is missing")),
        Some(message) if message.kind() != Type::String => {
            out.add(message, format!("`message` is {}, not a string", message.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// An answer carries the identifier of its request, unchanged.
    ///
    /// In value and type: a client that asked with 7 does not take "7" for the answer, and waits until its time is up.
    static JSONRPC_ID_MISMATCH = {
        id: "mcp/jsonrpc-id-mismatch",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "by analogy, not run",
        versions: ALL,
        on: ON,
        place: "/id",
        fix: "Echo the request id verbatim.",
        spec: "2026-07-28 basic, Responses",
        seeds: &["validator:1.1.2.1"],
        examples: &[
            fires(&["/id"], r#"{"id": "7"}"#).over("jsonrpc-2025-11-25").given(r#"{"request": {"id": 7, "method": "ping"}}"#),
            fires(&["/id"], r#"{"id": null}"#).over("jsonrpc-2025-11-25").given(r#"{"request": {"id": 7, "method": "ping"}}"#),
            silent(r#"{"id": 7.0}"#).over("jsonrpc-2025-11-25").given(r#"{"request": {"id": 7, "method": "ping"}}"#),
        ],
        check: Check::Document(jsonrpc_id_mismatch),
    }
}

fn jsonrpc_id_mismatch(answer: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if answer.get("result").is_some() {
        check_id(answer, context, out);
    }
}

fn check_id(answer: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    // Which of two identifiers counts is the reader's choice (common/duplicate-key).
    if answer.document().duplicate_members().any(|member| member.pointer() == "/id") {
        return;
    }
    let asked = request(context).and_then(|request| request.get("id"));
    match (answer.get("id"), asked) {
        (None, _) => drop(out.add_missing(answer, "id", "`id` is missing")),
        (Some(id), Some(asked)) if !is_same(id, asked) => {
            out.add(id, format!("`id` is {}, asked was {asked}", quote(id.raw())));
        }
        (Some(_), _) => {}
    }
}

crate::rule! {
    /// An error carries the identifier of its request too.
    ///
    /// Where the request could be read. Otherwise clients cannot tell which of their requests failed.
    static JSONRPC_ERROR_ID = {
        id: "mcp/jsonrpc-error-id",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: ON,
        place: "/id",
        fix: "Echo the request id in errors too.",
        spec: "2026-07-28 basic, Error Responses",
        seeds: &["validator:1.1.2.1"],
        examples: &[
            fires(&["/id"], r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "Method not found"}}"#)
                .over("jsonrpc-2026-07-28")
                .whole()
                .given(r#"{"request": {"id": 7, "method": "tools/list"}, "http_status": 404}"#),
            silent(r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}"#)
                .over("jsonrpc-2026-07-28")
                .whole()
                .given(r#"{"request": {"raw": "{"}, "http_status": 400}"#),
            silent(r#"{"id": null}"#)
                .over("jsonrpc-2026-07-28")
                .given(r#"{"request": {"id": 7, "method": "tools/list"}, "http_status": 401}"#),
        ],
        check: Check::Document(jsonrpc_error_id),
    }
}

fn jsonrpc_error_id(answer: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_readable = request(context).is_some_and(|request| request.get("id").is_some_and(|id| !id.is_null()));
    let is_refusal = matches!(context.given.http_status, Some(401 | 402 | 403 | 407));
    let code = answer.get("error").and_then(|error| error.get("code")).and_then(Node::integer);
    let is_parse_error = code == Some(-32700);
    if answer.given("error").is_some() && is_readable && !is_refusal && !is_parse_error {
        check_id(answer, context, out);
    }
}

crate::rule! {
    /// A ping is answered with nothing.
    ///
    /// The result is an empty object; what else it holds nobody reads.
    static PING_RESULT_NOT_EMPTY = {
        id: "mcp/ping-result-not-empty",
        versions: LEGACY,
        on: ON,
        place: "/result",
        fix: "Return an empty object.",
        spec: "2025-11-25 utilities/ping",
        seeds: &["validator:4.1.1.1"],
        examples: &[
            fires(&["/result"], r#"{"result": {"pong": true}}"#)
                .over("jsonrpc-2025-11-25")
                .given(r#"{"request": {"id": 7, "method": "ping"}}"#),
            silent(r#"{"result": {"_meta": {}}}"#)
                .over("jsonrpc-2025-11-25")
                .given(r#"{"request": {"id": 7, "method": "ping"}}"#),
        ],
        check: Check::Document(ping_result_not_empty),
    }
}

fn ping_result_not_empty(answer: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let method = request(context).and_then(|request| request.get("method")).and_then(Value::as_str);
    if let Some(result) = answer.get("result")
        && method == Some("ping")
        && let Some((name, _)) = result.members().find(|(name, _)| *name != "_meta")
    {
        out.add(result, format!("the result has the member {}", quote(name)));
    }
}

/// The code of an error.
fn code(answer: Node<'_>) -> Option<(Node<'_>, i64)> {
    let code = answer.get("error")?.get("code")?;
    Some((code, code.integer()?))
}

crate::rule! {
    /// An error of one's own has a code of one's own.
    ///
    /// -32099 to -32020 is kept for the protocol, and -32002 and -32042 had a meaning in earlier revisions.
    static ERROR_CODE_RESERVED = {
        id: "mcp/error-code-reserved",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: ON,
        place: "/error/code",
        fix: "Use a code outside the reserved ranges.",
        spec: "2026-07-28 basic, Error Codes",
        examples: &[
            fires(&["/error/code"], r#"{"error": {"code": -32050}}"#),
            fires(&["/error/code"], r#"{"error": {"code": -32002}}"#),
            silent(r#"{"error": {"code": -32021}}"#),
        ],
        check: Check::Document(error_code_reserved),
    }
}

fn error_code_reserved(answer: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((at, number)) = code(answer)
        && ((-32099..=-32020).contains(&number) || number == -32002)
        && !(-32022..=-32020).contains(&number)
    {
        out.add(at, format!("{number} is kept for the protocol"));
    }
}

crate::rule! {
    /// A new error has a code outside the range of JSON-RPC.
    ///
    /// -32019 to -32000 is left to what is there already.
    static ERROR_CODE_LEGACY_RANGE = {
        id: "mcp/error-code-legacy-range",
        versions: MODERN,
        on: ON,
        place: "/error/code",
        fix: "Allocate codes outside -32768..-32000.",
        spec: "2026-07-28 basic, Error Codes",
        examples: &[fires(&["/error/code"], r#"{"error": {"code": -32001}}"#), silent(r#"{"error": {"code": 4001}}"#)],
        check: Check::Document(error_code_legacy_range),
    }
}

fn error_code_legacy_range(answer: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((at, number)) = code(answer)
        && (-32019..=-32000).contains(&number)
        && number != -32002
    {
        out.add(at, format!("{number} is of the old range"));
    }
}

crate::rule! {
    /// A server that does not speak a revision says which it speaks.
    ///
    /// The error -32022 carries `supported`, from which the client picks, and `requested`, which it asked for.
    static UNSUPPORTED_VERSION_DATA = {
        id: "mcp/unsupported-version-data",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        on: ON,
        place: "/error/data | /error/data/supported | /error/data/requested",
        fix: "Fill data.supported and data.requested.",
        spec: "2026-07-28 schema UnsupportedProtocolVersionError",
        examples: &[
            fires(&["/error/data/supported"], r#"{"error": {"code": -32022, "data": {"requested": "1900-01-01"}}}"#)
                .given(r#"{"request": {"id": 7, "version": "1900-01-01"}, "http_status": 400}"#),
            fires(
                &["/error/data/requested"],
                r#"{"error": {"code": -32022, "data": {"requested": "2026-07-28", "supported": ["2026-07-28"]}}}"#,
            )
            .given(r#"{"request": {"id": 7, "version": "1900-01-01"}, "http_status": 400}"#),
            silent(r#"{"error": {"code": -32022, "data": {"requested": "1900-01-01", "supported": ["2026-07-28"]}}}"#)
                .given(r#"{"request": {"id": 7, "version": "1900-01-01"}, "http_status": 400}"#),
        ],
        check: Check::Document(unsupported_version_data),
    }
}

fn unsupported_version_data(answer: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(error) = answer.get("error").filter(|_| code(answer).is_some_and(|(_, number)| number == -32022)) else {
        return;
    };
    let Some(data) = error.get("data") else {
        out.add_missing(error, "data", "`data` is missing");
        return;
    };
    if data.kind() != Type::Object {
        out.add(data, format!("`data` is {}, not an object", data.kind().named()));
        return;
    }
    match data.get("supported") {
        None => drop(out.add_missing(data, "supported", "`supported` is missing")),
        Some(supported)
            if supported.items().next().is_none() || supported.items().any(|v| v.kind() != Type::String) =>
        {
            out.add(supported, "`supported` is no list of revisions");
        }
        Some(_) => {}
    }
    match (data.get("requested"), asked_version(context)) {
        (None, _) => drop(out.add_missing(data, "requested", "`requested` is missing")),
        (Some(requested), Some(asked)) if requested.text() != Some(asked) => {
            out.add(requested, format!("{} is not the revision asked for, {}", quote(requested.raw()), quote(asked)));
        }
        (Some(requested), None) if requested.kind() != Type::String => {
            out.add(requested, "`requested` is no string");
        }
        (Some(_), _) => {}
    }
}

/// The revision that the request named.
fn asked_version<'c>(context: &Context<'c>) -> Option<&'c str> {
    let request = request(context)?;
    let in_meta = request.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion");
    let known = context.given.requested_version.as_deref();
    known.or_else(|| request.get("version").or(in_meta).and_then(Value::as_str))
}

crate::rule! {
    /// Errors do not show the inside of the server.
    ///
    /// Stack traces, paths of source files and addresses of private networks help whoever looks for a way in, and nobody else.
    static ERROR_LEAKS_INTERNALS = {
        id: "mcp/error-leaks-internals",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: ALL,
        on: ON,
        place: "/error/message | /error/data",
        fix: "Return short messages without internals.",
        spec: "policy: information disclosure",
        examples: &[
            fires(
                &["/error/message"],
                r#"{"error": {"message": "Error: boom\n    at handle (/srv/tides/server.js:41:13)\n    at run (/srv/tides/rpc.js:9:5)"}}"#,
            )
            .over("jsonrpc-2026-07-28"),
            fires(&["/error/data"], r#"{"error": {"data": {"detail": "connect ECONNREFUSED 10.12.0.7:5432"}}}"#)
                .over("jsonrpc-2026-07-28"),
            silent(r#"{"error": {"message": "host 192.0.2.10 refused, client 10.12.0 required"}}"#).over("jsonrpc-2026-07-28"),
        ],
        check: Check::Document(error_leaks_internals),
    }
}

fn error_leaks_internals(answer: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(error) = answer.get("error") else { return };
    for member in ["message", "data"].into_iter().filter_map(|name| error.get(name)) {
        let texts = || member.walk().filter_map(Node::text);
        if texts().flat_map(str::lines).filter(|line| is_frame(line)).nth(1).is_some() {
            out.add(member, "holds a stack trace");
        } else if let Some(path) = texts().find_map(source_path) {
            out.add(member, format!("names the source file {}", quote(path)));
        } else if let Some(address) = texts().find_map(private_address) {
            out.add(member, format!("names the private address {}", quote(address)));
        }
    }
}

/// Whether a line is one frame of a stack trace, in the manner of one of the common languages.
fn is_frame(line: &str) -> bool {
    static FRAME: LazyLock<Regex> = LazyLock::new(|| {
        let frames = [
            r"at .+:\d+:\d+\)?\s*$",               // JavaScript, Rust
            r"at [\w$.<>/]+\(.*\)(?: in .+)?\s*$", // Java, C#
            r#"File "[^"]+", line \d+"#,           // Python
            r"\S+\.go:\d+(?: \+0x[0-9a-f]+)?\s*$", // Go
            r"#\d+ .+\(\d+\): ",                   // PHP
            r"(?:from )?\S+\.rb:\d+:in ",          // Ruby
        ];
        Regex::new(&format!(r"^\s*(?:{})", frames.join("|"))).expect("the pattern is a literal")
    });
    // No frame is without a line number or an argument list.
    line.contains([':', '(', '"']) && FRAME.is_match(line)
}

/// The path of a source file, absolute, below a folder that systems have.
fn source_path(text: &str) -> Option<&str> {
    static PATH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r#"(?:^|[\s"'(\[=:<`])((?:/(?:home|Users|root|srv|app|var|opt|usr|tmp|mnt|workspace|build|code)|[A-Za-z]:\\)"#,
            r#"[^\s"'():<>`]*\.(?:py|js|ts|mjs|cjs|tsx|jsx|go|rs|rb|java|kt|cs|cpp|exs?|pl|lua|swift))\b"#
        ))
        .expect("the pattern is a literal")
    });
    PATH.captures(text)?.get(1).map(|path| path.as_str())
}

/// An address of a private network.
fn private_address(text: &str) -> Option<&str> {
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:(?:10|172|192|169)\.\d{1,3}\.\d{1,3}\.\d{1,3}|f[cde][0-9a-f]{2}:[0-9a-f:]+)")
            .expect("the pattern is a literal")
    });
    ADDRESS.find_iter(text).map(|found| (found.start(), found.end())).find_map(|(start, end)| {
        let address = &text[start..end];
        let before = text[..start].trim_end();
        let word = before.len().checked_sub("version".len()).and_then(|from| before.get(from..));
        let is_number = before.len() < start && word.is_some_and(|word| word.eq_ignore_ascii_case("version"));
        let is_inside = text[..start].ends_with(['.', '-']);
        let goes_on = text[end..].strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        (!is_number && !is_inside && !goes_on && is_private(address.parse().ok()?)).then_some(address)
    })
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

/// Unique-local or link-local.
fn is_private_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_many_languages_are_known() {
        let frames = [
            "    at Server.handle (/srv/app/src/server.js:41:13)",
            "\tat org.example.Main.run(Main.java:12)",
            "   at Tides.Program.Main(String[] args) in C:\\src\\Program.cs:line 3",
            "  File \"/app/main.py\", line 3, in <module>",
            "\t/usr/local/go/src/net/http/server.go:2136 +0x1d",
            "#0 /var/www/index.php(12): run()",
            "app/tides.rb:3:in `run'",
            "             at ./src/main.rs:3:5",
        ];
        for frame in frames {
            assert!(is_frame(frame), "{frame}");
        }
        for text in
            ["at least one of (a, b)", "  For further information visit https://errors.example/2.11/v/x", "at 12:30"]
        {
            assert!(!is_frame(text), "{text}");
        }
    }

    #[test]
    fn paths_of_sources_are_told_from_other_paths() {
        for text in ["cannot open /srv/app/main.py", "(C:\\src\\tides\\main.cs)", "in /home/me/x.ts:3"] {
            assert!(source_path(text).is_some(), "{text}");
        }
        for text in ["GET /docs/index.js", "https://x.example/app/main.js", "/var/log", "main.py", "/srv/data.json"] {
            assert_eq!(source_path(text), None, "{text}");
        }
    }

    #[test]
    fn private_addresses_are_told_from_other_numbers() {
        for text in ["10.12.0.7:5432", "at 192.168.1.1", "[fd00::1]:80", "fe80::1%eth0", "172.16.0.1,"] {
            assert!(private_address(text).is_some(), "{text}");
        }
        let others = [
            "10.12.0",
            "192.0.2.10",
            "version 10.1.2.3",
            "1.10.1.2.3",
            "10.1.2.3.4",
            "172.32.0.1",
            "face:b00c",
            "10.1.2.300",
        ];
        for text in others {
            assert_eq!(private_address(text), None, "{text}");
        }
    }
}
