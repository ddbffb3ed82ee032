//! What every modern result says of itself (its type, how long it may be kept and by whom) and cursors.

use super::is_complete;
use super::{ALL, CACHEABLE, LISTS, MODERN, RESULTS};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Mode, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &CURSOR_TYPE,
    &RESULT_TYPE_MISSING,
    &RESULT_TYPE_UNKNOWN,
    &RESULT_INPUT_REQUIRED_ON_LIST,
    &CACHE_TTL_MISSING,
    &CACHE_TTL_INVALID,
    &CACHE_SCOPE_MISSING,
    &CACHE_SCOPE_INVALID,
    &CACHE_PUBLIC_WITH_AUTH,
    &DEPRECATED_CLIENT_FEATURE_USED,
];

crate::rule! {
    /// A cursor is a string.
    ///
    /// Clients send it back unchanged; strict ones refuse the whole page for a number. An empty string is a cursor.
    static CURSOR_TYPE = {
        id: "mcp/cursor-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "@modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 26,
        versions: ALL,
        on: LISTS,
        place: "/nextCursor",
        fix: "Omit nextCursor on the last page.",
        spec: "2026-07-28 utilities/pagination",
        seeds: &["validator:4.6.1.3"],
        examples: &[
            fires(&["/nextCursor"], r#"{"nextCursor": 2}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"nextCursor": ""}"#).over("mcp-tools-2026-07-28"),
        ],
        stops: Stops::Value,
        check: Check::Document(cursor_type),
    }
}

fn cursor_type(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(cursor) = result.given("nextCursor")
        && cursor.kind() != Type::String
    {
        out.add(cursor, format!("`nextCursor` is {}, not a string", cursor.kind().named()));
    }
}

crate::rule! {
    /// A modern result says of what type it is.
    ///
    /// `complete` or `input_required` tells a client whether it has the answer or is being asked something.
    static RESULT_TYPE_MISSING = {
        id: "mcp/result-type-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: RESULTS,
        place: "/resultType",
        fix: "Add resultType: \"complete\".",
        spec: "2026-07-28 basic, ResultType",
        examples: &[
            fires(&["/resultType"], r#"{"resultType": null}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"resultType": "complete"}"#).over("mcp-tools-2026-07-28"),
        ],
        stops: Stops::Value,
        check: Check::Document(result_type_missing),
    }
}

fn result_type_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match result.get("resultType") {
        None => drop(out.add_missing(result, "resultType", "`resultType` is missing")),
        Some(kind) if kind.kind() != Type::String => {
            out.add(kind, format!("`resultType` is {}, not a string", kind.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// A result's type is one that the protocol or a declared extension knows.
    ///
    /// A client has to treat an unknown type as an error.
    static RESULT_TYPE_UNKNOWN = {
        id: "mcp/result-type-unknown",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: RESULTS,
        place: "/resultType",
        fix: "Use a core value or declare the extension.",
        spec: "2026-07-28 basic, ResultType",
        examples: &[
            fires(&["/resultType"], r#"{"resultType": "done"}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"resultType": "task"}"#)
                .over("mcp-call")
                .given(r#"{"capabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}"#),
        ],
        check: Check::Document(result_type_unknown),
    }
}

fn result_type_unknown(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let declared = context.given.capabilities.as_ref().and_then(|capabilities| capabilities.get("extensions"));
    if declared.and_then(serde_json::Value::as_object).is_some_and(|extensions| !extensions.is_empty()) {
        return;
    }
    if let Some(kind) = result.get("resultType")
        && let Some(text) = kind.text()
        && !matches!(text, "complete" | "input_required")
    {
        out.add(kind, format!("{} is no type of result", quote(text)));
    }
}

crate::rule! {
    /// Lists are answered without asking anything back.
    ///
    /// A client that declared nothing it could be asked for cannot go on from such an answer.
    static RESULT_INPUT_REQUIRED_ON_LIST = {
        id: "mcp/result-input-required-on-list",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: CACHEABLE,
        place: "/resultType",
        fix: "Answer lists without asking for input.",
        spec: "2026-07-28 patterns/mrtr",
        examples: &[
            fires(&["/resultType"], r#"{"resultType": "input_required"}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"resultType": "input_required"}"#)
                .over("mcp-tools-2026-07-28")
                .given(r#"{"client_capabilities": {"elicitation": {}}}"#),
        ],
        check: Check::Document(result_input_required_on_list),
    }
}

fn result_input_required_on_list(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let declared = context.given.client_capabilities.as_ref().and_then(serde_json::Value::as_object);
    if let Some(kind) = result.get("resultType")
        && kind.text() == Some("input_required")
        && declared.is_none_or(serde_json::Map::is_empty)
    {
        out.add(kind, "asks for input, though the client declared nothing it could give");
    }
}

crate::rule! {
    /// A modern list says how long it may be kept.
    ///
    /// Without `ttlMs` a client has to fetch the list before every use, or guess.
    static CACHE_TTL_MISSING = {
        id: "mcp/cache-ttl-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: CACHEABLE,
        place: "/ttlMs",
        fix: "Add ttlMs, 0 if unsure.",
        spec: "2026-07-28 utilities/caching; SEP-2549",
        seeds: &["inspector:cache-metadata"],
        examples: &[
            fires(&["/ttlMs"], r#"{"ttlMs": null}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"ttlMs": 0}"#).over("mcp-tools-2026-07-28"),
        ],
        check: Check::Document(cache_ttl_missing),
    }
}

fn cache_ttl_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if is_complete(result) && result.get("ttlMs").is_none() {
        out.add_missing(result, "ttlMs", "`ttlMs` is missing");
    }
}

crate::rule! {
    /// The time to keep a list is a whole number of milliseconds.
    ///
    /// 0 means not at all; a negative number or a fraction means nothing.
    static CACHE_TTL_INVALID = {
        id: "mcp/cache-ttl-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: CACHEABLE,
        place: "/ttlMs",
        fix: "Use a non-negative integer.",
        spec: "2026-07-28 utilities/caching",
        seeds: &["inspector:cache-metadata"],
        examples: &[
            fires(&["/ttlMs"], r#"{"ttlMs": -1}"#).over("mcp-tools-2026-07-28"),
            fires(&["/ttlMs"], r#"{"ttlMs": "300000"}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"ttlMs": 3600000.0}"#).over("mcp-tools-2026-07-28"),
        ],
        check: Check::Document(cache_ttl_invalid),
    }
}

fn cache_ttl_invalid(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(ttl) = result.get("ttlMs") else { return };
    match ttl.number() {
        None => drop(out.add(ttl, format!("`ttlMs` is {}, not a number", ttl.kind().named()))),
        Some(number) if number < 0.0 || number.fract() != 0.0 => {
            out.add(ttl, format!("{} is no whole number from 0", quote(ttl.raw())));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// A modern list says for whom it may be kept.
    ///
    /// Without `cacheScope` a shared cache cannot know whether another user may see the list.
    static CACHE_SCOPE_MISSING = {
        id: "mcp/cache-scope-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: CACHEABLE,
        place: "/cacheScope",
        fix: "Add public or private.",
        spec: "2026-07-28 utilities/caching",
        seeds: &["inspector:cache-metadata"],
        examples: &[
            fires(&["/cacheScope"], r#"{"cacheScope": null}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"cacheScope": "private"}"#).over("mcp-tools-2026-07-28"),
        ],
        check: Check::Document(cache_scope_missing),
    }
}

fn cache_scope_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if is_complete(result) && result.get("cacheScope").is_none() {
        out.add_missing(result, "cacheScope", "`cacheScope` is missing");
    }
}

crate::rule! {
    /// The scope of a cache is `public` or `private`.
    ///
    /// Exactly so written. A client that reads neither word may share what is private.
    static CACHE_SCOPE_INVALID = {
        id: "mcp/cache-scope-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: CACHEABLE,
        place: "/cacheScope",
        fix: "Use public or private.",
        spec: "2026-07-28 utilities/caching",
        seeds: &["inspector:cache-metadata"],
        examples: &[
            fires(&["/cacheScope"], r#"{"cacheScope": "Public"}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"cacheScope": "private"}"#).over("mcp-tools-2026-07-28"),
        ],
        check: Check::Document(cache_scope_invalid),
    }
}

fn cache_scope_invalid(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(scope) = result.get("cacheScope") else { return };
    match scope.text() {
        Some("public" | "private") => {}
        Some(other) => drop(out.add(scope, format!("{} is neither `public` nor `private`", quote(other)))),
        None => drop(out.add(scope, format!("`cacheScope` is {}, not a string", scope.kind().named()))),
    }
}

crate::rule! {
    /// A list that needed a token calls itself public.
    ///
    /// A shared cache may then give it to users who could not have asked for it.
    static CACHE_PUBLIC_WITH_AUTH = {
        id: "mcp/cache-public-with-auth",
        security: true,
        basis: Basis::Hint,
        versions: MODERN,
        mode: Mode::Active,
        on: CACHEABLE,
        place: "/cacheScope",
        fix: "Check that the list is the same for everyone.",
        spec: "2026-07-28 utilities/caching, Security",
        examples: &[
            fires(&["/cacheScope"], r#"{"cacheScope": "public"}"#).over("mcp-tools-2026-07-28").given(r#"{"authenticated": true}"#),
            silent(r#"{"cacheScope": "public"}"#).over("mcp-tools-2026-07-28").given(r#"{"authenticated": false}"#),
        ],
        check: Check::Document(cache_public_with_auth),
    }
}

fn cache_public_with_auth(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(scope) = result.get("cacheScope")
        && context.given.authenticated
        && scope.text() == Some("public")
    {
        out.add(scope, "fetched with a token, yet public");
    }
}

crate::rule! {
    /// The server asks for something that is on its way out.
    ///
    /// Sampling and roots are deprecated from 2026-07-28; newer clients will not offer them.
    static DEPRECATED_CLIENT_FEATURE_USED = {
        id: "mcp/deprecated-client-feature-used",
        versions: MODERN,
        mode: Mode::Active,
        on: &[Kind::McpInputRequiredResult],
        place: "/inputRequests/*/method",
        fix: "Use tool parameters or a model provider directly.",
        spec: "2026-07-28 deprecated; SEP-2577",
        seeds: &["inspector:deprecated-features"],
        examples: &[
            fires(&["/inputRequests/who/method"], r#"{"inputRequests": {"who": {"method": "sampling/createMessage"}}}"#),
            silent(r#"{"inputRequests": {"who": {"method": "elicitation/create"}}}"#),
        ],
        check: Check::Each(&["/inputRequests/*/method"], deprecated_client_feature_used),
    }
}

fn deprecated_client_feature_used(method: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(name @ ("sampling/createMessage" | "roots/list")) = method.text() {
        out.add(method, format!("{} is deprecated", quote(name)));
    }
}
