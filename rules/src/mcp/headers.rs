//! The headers and the `_meta` of a request: that a server looks at what must be there and does not ask for more.

use super::heard::{ON, answered, heard, is_refused};
use super::{ALL, MODERN, SINCE_2025_03};
use crate::conversation::{Conversation, Era, Turn};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &HEADER_VERSION_MISMATCH_ACCEPTED,
    &HEADER_VERSION_MISSING_ACCEPTED,
    &HEADER_METHOD_MISSING_ACCEPTED,
    &HEADER_METHOD_MISMATCH_ACCEPTED,
    &HEADER_MISMATCH_CODE,
    &HEADER_NAME_CASE_SENSITIVE,
    &META_MISSING_ACCEPTED,
    &META_CAPABILITIES_MISSING_ACCEPTED,
    &META_CLIENT_INFO_REQUIRED,
    &META_UNKNOWN_KEY_REFUSED,
    &PROTOCOL_VERSION_HEADER_UNCHECKED,
    &PROTOCOL_VERSION_HEADER_REQUIRED,
    &ACCEPT_WILDCARD_REFUSED,
    &REQUEST_CONTENT_TYPE_UNCHECKED,
];

/// Fires where a request that had to be refused is served.
fn served(conversation: &Conversation<'_>, step: Step, what: &str, out: &mut Occurrences) {
    for turn in answered(conversation, &[step], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), format!("{what} is served"));
        }
    }
}

/// How a refusal looks: its status and, where there is one, its code.
fn refusal(turn: &Turn<'_>) -> String {
    let status = turn.status().unwrap_or_default();
    turn.error_code().map_or_else(|| format!("{status}"), |code| format!("{status} and {code}"))
}

crate::rule! {
    /// Header and body name one revision.
    ///
    /// Whatever routes by the header and whatever reads the body would treat the request by two sets of rules.
    static HEADER_VERSION_MISMATCH_ACCEPTED = {
        id: "mcp/header-version-mismatch-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:header-version-mismatch",
        fix: "Refuse with 400 and -32020.",
        spec: "2026-07-28 streamable-http, Server Validation",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-version-mismatch", "request": {"headers": {"mcp-protocol-version": "2025-11-25"}}, "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "header-version-mismatch", "request": {"headers": {"mcp-protocol-version": "2025-11-25"}}, "response": {"body": {"error": {"code": -32020, "message": "Mismatch"}}}}]}"#),
        ],
        check: Check::Conversation(header_version_mismatch_accepted),
    }
}

fn header_version_mismatch_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    served(
        conversation,
        Step::HeaderVersionMismatch,
        "a request with 2025-11-25 in its header and 2026-07-28 in its body",
        out,
    );
}

crate::rule! {
    /// A request names its revision in the header.
    ///
    /// Proxies and servers that speak several revisions decide by it.
    static HEADER_VERSION_MISSING_ACCEPTED = {
        id: "mcp/header-version-missing-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:header-version-missing",
        fix: "Refuse with 400 and -32020.",
        spec: "2026-07-28 streamable-http, Protocol Version Header",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-version-missing", "request": {"headers": {"mcp-protocol-version": null}}, "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "header-version-missing", "request": {"headers": {"mcp-protocol-version": null}}, "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#)
                    .given(r#"{"surface": "mcp", "era": "dual"}"#),
        ],
        check: Check::Conversation(header_version_missing_accepted),
    }
}

fn header_version_missing_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if conversation.era == Era::Dual {
        return out.not_applicable();
    }
    served(conversation, Step::HeaderVersionMissing, "a request without MCP-Protocol-Version", out);
}

crate::rule! {
    /// A request names its method in the header.
    ///
    /// What stands in front of the server routes and limits by it without reading bodies.
    static HEADER_METHOD_MISSING_ACCEPTED = {
        id: "mcp/header-method-missing-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:header-method-missing",
        fix: "Refuse with 400 and -32020.",
        spec: "2026-07-28 streamable-http, Server Validation; SEP-2243",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-method-missing", "request": {"headers": {"mcp-method": null}}, "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "header-method-missing", "request": {"headers": {"mcp-method": null}}, "response": {"body": {"error": {"code": -32020, "message": "Mismatch"}}}}]}"#),
        ],
        check: Check::Conversation(header_method_missing_accepted),
    }
}

fn header_method_missing_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    served(conversation, Step::HeaderMethodMissing, "a request without Mcp-Method", out);
}

crate::rule! {
    /// Header and body name one method.
    ///
    /// A gateway that lets `tools/list` pass would let through whatever the body asks for.
    static HEADER_METHOD_MISMATCH_ACCEPTED = {
        id: "mcp/header-method-mismatch-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:header-method-mismatch",
        fix: "Refuse with 400 and -32020.",
        spec: "2026-07-28 streamable-http, Server Validation; SEP-2243",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-method-mismatch", "request": {"headers": {"mcp-method": "tools/list"}}, "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "header-method-mismatch", "request": {"headers": {"mcp-method": "tools/list"}}, "response": {"body": {"error": {"code": -32020, "message": "Mismatch"}}}}]}"#),
        ],
        check: Check::Conversation(header_method_mismatch_accepted),
    }
}

fn header_method_mismatch_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    served(conversation, Step::HeaderMethodMismatch, "`server/discover` with `tools/list` in its header", out);
}

crate::rule! {
    /// Headers that do not fit the body are refused with 400 and -32020.
    ///
    /// The code tells a client that its headers are wrong and not its request.
    static HEADER_MISMATCH_CODE = {
        id: "mcp/header-mismatch-code",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:header-*",
        fix: "Use 400 and -32020.",
        spec: "2026-07-28 streamable-http, Server Validation",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-method-mismatch", "request": {"headers": {"mcp-method": "tools/list"}}}]}"#),
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-method-missing", "request": {"headers": {"mcp-method": null}}, "response": {"status": 200, "body": {"error": {"code": -32020, "message": "Mismatch"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "header-version-missing", "request": {"headers": {"mcp-protocol-version": null}}}]}"#)
                    .given(r#"{"surface": "mcp", "era": "dual"}"#),
        ],
        check: Check::Conversation(header_mismatch_code),
    }
}

fn header_mismatch_code(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    // A server of both eras may take a request without the header of the newer one for one of the older.
    let both: &[Step] = &[Step::HeaderMethodMissing, Step::HeaderMethodMismatch];
    let all: &[Step] = &[
        Step::HeaderVersionMismatch,
        Step::HeaderVersionMissing,
        Step::HeaderMethodMissing,
        Step::HeaderMethodMismatch,
    ];
    let steps = if conversation.era == Era::Dual { both } else { all };
    for turn in heard(conversation, steps, out) {
        let is_right = turn.status() == Some(400) && turn.error_code() == Some(-32020);
        if is_refused(turn) && !is_right {
            let step = turn.step.map(Step::as_str).unwrap_or_default();
            out.add_in(turn.revision, turn.place(), format!("{step} is refused with {}", refusal(turn)));
        }
    }
}

crate::rule! {
    /// The case of header names means nothing.
    ///
    /// HTTP/2 sends all of them in lower case, and so do most clients.
    static HEADER_NAME_CASE_SENSITIVE = {
        id: "mcp/header-name-case-sensitive",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:header-case",
        fix: "Compare header names case-insensitively.",
        spec: "2026-07-28 streamable-http, Case Sensitivity",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "header-case", "response": {"body": {"error": {"code": -32020, "message": "Missing Mcp-Method"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "header-case", "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
        ],
        check: Check::Conversation(header_name_case_sensitive),
    }
}

fn header_name_case_sensitive(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let succeeds = conversation.handshake(Step::Discover).is_some();
    for turn in heard(conversation, &[Step::HeaderCase], out) {
        if is_refused(turn) && succeeds {
            out.add_in(turn.revision, turn.place(), format!("with lower-case names: {}", refusal(turn)));
        }
    }
}

crate::rule! {
    /// A request carries `_meta`.
    ///
    /// It names the revision and what the client can do; without it the server guesses.
    static META_MISSING_ACCEPTED = {
        id: "mcp/meta-missing-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:no-meta",
        fix: "Reject with 400 and -32602.",
        spec: "2026-07-28 basic, Per-request protocol fields",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "no-meta", "request": {"body": {"params": null}}, "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "no-meta", "request": {"body": {"params": null}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "no-meta", "request": {"body": {"params": null}}, "response": {"body": {"error": {"code": -32602, "message": "No _meta"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "no-meta", "request": {"body": {"params": null}}, "response": {"body": {"error": {"code": -32020, "message": "Header without body"}}}}]}"#),
        ],
        check: Check::Conversation(meta_missing_accepted),
    }
}

fn meta_missing_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if conversation.era != Era::Modern {
        return out.not_applicable();
    }
    for turn in heard(conversation, &[Step::NoMeta], out) {
        let is_right = turn.status() == Some(400) && matches!(turn.error_code(), Some(-32602 | -32020));
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), "a request without `_meta` is served");
        } else if !is_right {
            out.add_in(
                turn.revision,
                turn.place(),
                format!("a request without `_meta` is refused with {}", refusal(turn)),
            );
        }
    }
}

crate::rule! {
    /// A request says what the client can do.
    ///
    /// There is no handshake any more in which it could have said so before.
    static META_CAPABILITIES_MISSING_ACCEPTED = {
        id: "mcp/meta-capabilities-missing-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:no-client-capabilities",
        fix: "Reject with 400 and -32602.",
        spec: "2026-07-28 basic, Per-request protocol fields",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "no-client-capabilities", "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "no-client-capabilities", "response": {"body": {"error": {"code": -32602, "message": "No clientCapabilities"}}}}]}"#),
        ],
        check: Check::Conversation(meta_capabilities_missing_accepted),
    }
}

fn meta_capabilities_missing_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::NoClientCapabilities], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), "a request without clientCapabilities is served");
        } else if turn.error_code().is_some_and(|code| code != -32602) {
            out.add_in(
                turn.revision,
                turn.place(),
                format!("a request without clientCapabilities is refused with {}", refusal(turn)),
            );
        }
    }
}

crate::rule! {
    /// A client need not name itself.
    ///
    /// `clientInfo` is optional; clients that leave it out are shut out here.
    static META_CLIENT_INFO_REQUIRED = {
        id: "mcp/meta-client-info-required",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:no-client-info",
        fix: "Treat clientInfo as optional.",
        spec: "2026-07-28 basic, Per-request protocol fields",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "no-client-info", "response": {"body": {"error": {"code": -32602, "message": "No clientInfo"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "no-client-info", "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
        ],
        check: Check::Conversation(meta_client_info_required),
    }
}

fn meta_client_info_required(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::NoClientInfo], out) {
        if is_refused(turn) {
            out.add_in(
                turn.revision,
                turn.place(),
                format!("a request without clientInfo is refused with {}", refusal(turn)),
            );
        }
    }
}

crate::rule! {
    /// Unknown keys of `_meta` are ignored.
    ///
    /// Anybody may add one under a prefix of their own.
    static META_UNKNOWN_KEY_REFUSED = {
        id: "mcp/meta-unknown-key-refused",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:extra-meta",
        fix: "Ignore unknown _meta keys.",
        spec: "2026-07-28 basic, _meta",
        seeds: &["validator:5.1.1.1"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "discover"}, {"step": "extra-meta", "response": {"body": {"error": {"code": -32602, "message": "Unknown key"}}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}, {"step": "extra-meta", "response": {"status": 200, "body": {"error": null, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}}]}"#),
        ],
        check: Check::Conversation(meta_unknown_key_refused),
    }
}

fn meta_unknown_key_refused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let succeeds = conversation.handshake(Step::Discover).is_some();
    for turn in heard(conversation, &[Step::ExtraMeta], out) {
        if succeeds && matches!(turn.error_code(), Some(-32600 | -32602)) {
            out.add_in(turn.revision, turn.place(), format!("with a key of our own: {}", refusal(turn)));
        }
    }
}

crate::rule! {
    /// A header that names an unknown revision is refused.
    ///
    /// The header is there so that neither side works by rules that the other does not mean.
    static PROTOCOL_VERSION_HEADER_UNCHECKED = {
        id: "mcp/protocol-version-header-unchecked",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        rank: 30,
        versions: &["2025-06-18", "2025-11-25"],
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:legacy-bad-version-header",
        fix: "Answer 400 to unsupported versions.",
        spec: "2025-11-25 transports, Protocol Version Header",
        seeds: &["validator:1.2.2.4"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "legacy-bad-version-header", "request": {"headers": {"mcp-protocol-version": "1999-01-01"}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "legacy-bad-version-header", "request": {"headers": {"mcp-protocol-version": "1999-01-01"}}, "response": {"status": 400, "body": {"result": null, "error": {"code": -32600, "message": "Unsupported"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(protocol_version_header_unchecked),
    }
}

fn protocol_version_header_unchecked(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::LegacyBadVersionHeader], out) {
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), "`ping` with MCP-Protocol-Version: 1999-01-01 is served");
        }
    }
}

crate::rule! {
    /// A request without MCP-Protocol-Version is served in its session.
    ///
    /// Older clients do not send it, and the session knows what was agreed on.
    static PROTOCOL_VERSION_HEADER_REQUIRED = {
        id: "mcp/protocol-version-header-required",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: &["2025-06-18", "2025-11-25"],
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:legacy-no-version-header",
        fix: "Assume 2025-03-26 or the negotiated version.",
        spec: "2025-11-25 transports, Protocol Version Header",
        seeds: &["validator:1.2.2.4"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "legacy-no-version-header", "request": {"headers": {"mcp-protocol-version": null}}, "response": {"status": 400, "body": {"result": null, "error": {"code": -32600, "message": "Missing header"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "legacy-no-version-header", "request": {"headers": {"mcp-protocol-version": null}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(protocol_version_header_required),
    }
}

fn protocol_version_header_required(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::LegacyNoVersionHeader], out) {
        if is_refused(turn) {
            out.add_in(
                turn.revision,
                turn.place(),
                format!("`ping` without the header is refused with {}", refusal(turn)),
            );
        }
    }
}

crate::rule! {
    /// `Accept: */*` is enough.
    ///
    /// By HTTP it stands for every type, the two that MCP asks for included; simple clients send nothing else.
    static ACCEPT_WILDCARD_REFUSED = {
        id: "mcp/accept-wildcard-refused",
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:accept-any",
        fix: "Let */* stand for both media types.",
        spec: "RFC 9110 §12.5.1",
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "accept-any", "request": {"headers": {"accept": "*/*"}}, "response": {"status": 406, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "accept-any", "request": {"headers": {"accept": "*/*"}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(accept_wildcard_refused),
    }
}

fn accept_wildcard_refused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::AcceptAny], out) {
        if turn.status() == Some(406) {
            out.add_at(turn.place(), "`Accept: */*` is refused with 406");
        }
    }
}

crate::rule! {
    /// A message under another label than JSON is refused.
    ///
    /// A web page may send plain text anywhere without asking first; a server that takes it as a message can be used by every
    /// page its user visits.
    static REQUEST_CONTENT_TYPE_UNCHECKED = {
        id: "mcp/request-content-type-unchecked",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: SINCE_2025_03,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:text-plain",
        fix: "Refuse other types with 415.",
        spec: "policy: cross-site POST",
        examples: &[
                fires(&["/exchanges/0/response"], r#"{"exchanges": [{"step": "text-plain", "request": {"headers": {"content-type": "text/plain"}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "text-plain", "request": {"headers": {"content-type": "text/plain"}}, "response": {"status": 415, "body": null}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(request_content_type_unchecked),
    }
}

fn request_content_type_unchecked(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if conversation.needs_authorization() {
        return out.not_applicable();
    }
    for turn in heard(conversation, &[Step::TextPlain], out) {
        let label = turn.exchange.request.headers.get("content-type").map(|label| quote(label)).unwrap_or_default();
        if turn.is_served() {
            out.add_in(turn.revision, turn.place(), format!("a handshake labelled {label} is served"));
        }
    }
}
