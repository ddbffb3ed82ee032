//! The body as it arrived: its size, its bytes, its JSON, and whether anybody can tell what it is.
//!
//! The first of these that fires ends the work on the document, except the byte order mark and duplicate keys.

use crate::catalogue;
use crate::document::{Document, MAX_VALUES, Node, Trouble, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Axis, Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &TOO_LARGE,
    &HTML_BODY,
    &NOT_UTF8,
    &INVALID_JSON,
    &TOO_DEEP,
    &BYTE_ORDER_MARK,
    &OBJECT_REQUIRED,
    &DUPLICATE_KEY,
    &KIND_UNRECOGNISED,
];

crate::rule! {
    /// The document is larger than its kind may be.
    ///
    /// Reading stops at the limit, whatever the length that was announced, so what stands behind it is never seen and
    /// what stands before it is not judged either. Real documents are far below: the largest agent card known to us has
    /// 23 kB.
    static TOO_LARGE = {
        id: "common/too-large",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        place: "/",
        fix: "Serve the document only, without embedded assets.",
        spec: "crawler policy",
        seeds: &["gaip:METADATA_TOO_LARGE"],
        examples: &[
            fires(&[""], r#"{"name": "Tide Tables"}"#).given(r#"{"limit_bytes": 22}"#),
            silent(r#"{"name": "Tide Tables"}"#).given(r#"{"limit_bytes": 23}"#),
        ],
        stops: Stops::Document,
        check: Check::Body(too_large),
    }
}

fn too_large(document: &Document, context: &Context<'_>, out: &mut Occurrences) {
    let limit = context.given.limit_bytes.unwrap_or_else(|| match context.settings.limits.bytes {
        0 => context.kind.limit_bytes(),
        bytes => bytes,
    });
    let length = document.length();
    let kind = context.kind.named();
    if length > limit {
        out.add_at("", format!("{length} bytes; a {kind} may have {limit}"));
    } else if document.has_more_behind() {
        out.add_at("", format!("more than the {limit} bytes that a {kind} may have"));
    } else if document.trouble() == Some(&Trouble::TooMany) {
        out.add_at("", format!("more than {MAX_VALUES} values"));
    }
}

crate::rule! {
    /// A page came in place of the document.
    ///
    /// Sites that answer every path with their front page do this: the address looks alive, and no client can read what
    /// is there.
    static HTML_BODY = {
        id: "common/html-body",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can read it",
        rank: 1,
        basis: Basis::Policy,
        place: "/",
        fix: "Serve the document itself, or 404 where there is none.",
        spec: "crawler policy",
        examples: &[
            fires(&[""], "\n<!doctype html><title>Tide Tables</title>"),
            silent(r#"{"name": "<b>Tide Tables</b>"}"#),
        ],
        stops: Stops::Document,
        check: Check::Body(html_body),
    }
}

fn html_body(document: &Document, context: &Context<'_>, out: &mut Occurrences) {
    if context.kind == Kind::JsonrpcResponse {
        return;
    }
    if is_markup(document) {
        out.add_at("", "the body begins with `<`: a page, not JSON");
    } else if document.trouble().is_some() && !document.text().trim().is_empty() && is_served_as_page(context) {
        out.add_at("", "the body is served as HTML and is no JSON");
    }
}

fn is_markup(document: &Document) -> bool {
    document.text().trim_start().starts_with('<')
}

fn is_served_as_page(context: &Context<'_>) -> bool {
    let media_type = context.answer().and_then(|(_, response)| response.media_type());
    media_type.is_some_and(|media_type| media_type.is_html())
}

crate::rule! {
    /// The document is not UTF-8.
    ///
    /// JSON that travels between systems is UTF-8 and nothing else. Wrong bytes are not guessed at or replaced, since
    /// two readers would guess differently.
    static NOT_UTF8 = {
        id: "common/not-utf8",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can read it",
        place: "/",
        fix: "Encode as UTF-8.",
        spec: "RFC 8259 8.1",
        seeds: &["validator:1.1.1.1"],
        examples: &[fires(&[""], "base64:eyJuYW1lIjoiQ2Fm6SJ9"), silent(r#"{"name": "Café"}"#)],
        stops: Stops::Document,
        check: Check::Body(not_utf8),
    }
}

fn not_utf8(document: &Document, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(Trouble::NotUtf8 { at }) = document.trouble() {
        out.add_at("", format!("after {at} bytes comes one that UTF-8 does not allow there"));
    }
}

crate::rule! {
    /// The document is not valid JSON.
    ///
    /// A trailing comma, a comment, `NaN`, single quotes or text behind the value: some lenient reader takes each of
    /// them, and the clients of a public document do not.
    static INVALID_JSON = {
        id: "common/invalid-json",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can read it",
        rank: 1,
        place: "/",
        fix: "Serve valid JSON.",
        spec: "RFC 8259",
        seeds: &["gaip:METADATA_OBJECT_REQUIRED", "validator:1.1.1.1"],
        examples: &[
            fires(&[""], r#"{"name": "Tide Tables",}"#),
            fires(&[""], ""),
            fires(&[""], r#"{"name": "\ud83c"}"#),
            silent(" \r\n{\"name\": \"Tide Tables\"}\n"),
        ],
        stops: Stops::Document,
        check: Check::Body(invalid_json),
    }
}

fn invalid_json(document: &Document, context: &Context<'_>, out: &mut Occurrences) {
    // What begins with `<` is a page, which other rules call by its name.
    let Some(Trouble::Invalid { what, .. }) = document.trouble().filter(|_| !is_markup(document)) else { return };
    if context.kind == Kind::Openapi && !document.text().trim_start().starts_with(['{', '[']) {
        // OpenAPI documents may be YAML, which is not read here.
        out.not_evaluated(crate::report::NotEvaluated::Parent);
    } else if document.text().trim().is_empty() {
        out.add_at("", "the body is empty");
    } else {
        out.add_at("", *what);
    }
}

crate::rule! {
    /// The document nests deeper than is judged.
    ///
    /// No specification asks for more than a handful of levels, and readers that descend without a bound can be made to
    /// fall over.
    static TOO_DEEP = {
        id: "common/too-deep",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        place: "/",
        fix: "Flatten the document.",
        spec: "crawler policy",
        examples: &[
            fires(
                &[""],
                "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
            ),
            silent(r#"{"deep": [[[[[[[[[[0]]]]]]]]]]}"#),
        ],
        stops: Stops::Document,
        check: Check::Body(too_deep),
    }
}

fn too_deep(document: &Document, context: &Context<'_>, out: &mut Occurrences) {
    let limit = context.kind.limit_depth();
    if document.trouble() == Some(&Trouble::TooDeep) || document.depth() > limit {
        out.add_at("", format!("more than {limit} levels of arrays and objects"));
    }
}

crate::rule! {
    /// The document begins with a byte order mark.
    ///
    /// JSON forbids the mark to those who write, and leaves it to those who read whether they skip it.
    static BYTE_ORDER_MARK = {
        id: "common/byte-order-mark",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        place: "/",
        fix: "Write the file without a byte order mark.",
        spec: "RFC 8259 8.1",
        examples: &[fires(&[""], "\u{feff}{\"name\": \"Tide Tables\"}"), silent("{\"name\": \"\u{feff}\"}")],
        check: Check::Body(byte_order_mark),
    }
}

fn byte_order_mark(document: &Document, _: &Context<'_>, out: &mut Occurrences) {
    if document.has_byte_order_mark() {
        out.add_at("", "the first three bytes are a byte order mark");
    }
}

crate::rule! {
    /// The document is not one object.
    ///
    /// Whatever a list, a string or a number says, it is none of the documents that clients look for.
    static OBJECT_REQUIRED = {
        id: "common/object-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can read it",
        place: "/",
        fix: "Serve a single JSON object.",
        spec: "A2A 1.0 4.4.1; server.json schema",
        seeds: &["gaip:METADATA_OBJECT_REQUIRED", "reader:Must be a JSON object"],
        examples: &[fires(&[""], r#"[{"name": "Tide Tables"}]"#), silent(r#"{"cards": [{"name": "Tide Tables"}]}"#)],
        stops: Stops::Document,
        check: Check::Body(object_required),
    }
}

fn object_required(document: &Document, context: &Context<'_>, out: &mut Occurrences) {
    let Some(root) = document.root().filter(|root| root.kind() != Type::Object) else { return };
    match context.kind {
        // Rules of their own families say this about them.
        Kind::JsonrpcResponse
        | Kind::McpServerMessage
        | Kind::OauthProtectedResource
        | Kind::OauthAuthorizationServer
        | Kind::OauthOpenidConfiguration => {}
        _ => {
            out.add(root, format!("the top value is {}", root.kind().named()));
        }
    }
}

crate::rule! {
    /// A key stands twice in one object.
    ///
    /// Readers disagree on which of the two counts: most take the last, some the first, a few refuse the document. The
    /// other rules judge the last.
    static DUPLICATE_KEY = {
        id: "common/duplicate-key",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        place: "/**",
        fix: "Remove one of them.",
        spec: "RFC 8259 4",
        examples: &[
            fires(&["/url"], r#"{"url": "https://a.example", "u\u0072l": "https://b.example"}"#),
            silent(r#"{"a": {"url": "https://a.example"}, "b": {"url": "https://b.example"}, "URL": 1, "url": 2}"#),
        ],
        check: Check::Body(duplicate_key),
    }
}

fn duplicate_key(document: &Document, _: &Context<'_>, out: &mut Occurrences) {
    for member in document.duplicate_members() {
        let key = quote(member.key().unwrap_or_default());
        out.add(member, format!("{key} stands more than once in its object"));
    }
}

crate::rule! {
    /// Nothing tells what kind of document this is.
    ///
    /// It has no schema that is known, no marks of OpenAPI or OAuth, no list of servers, and too few members of an agent
    /// card. Nobody claimed that it is one of them, so nothing is held against it.
    static KIND_UNRECOGNISED = {
        id: catalogue::KIND_UNRECOGNISED,
        axis: Axis::Detection,
        basis: Basis::Policy,
        place: "/",
        fix: "State the kind in the watch list.",
        spec: "crawler policy",
        seeds: &["gaip:SUPPORTED_PROTOCOL_REQUIRED", "reader:Not an agent card"],
        examples: &[
            fires(&[""], r#"{"hello": "world", "name": "Tide Tables"}"#).whole(),
            silent(r#"{"name": "Tide Tables"}"#),
        ],
        stops: Stops::Document,
        check: Check::Document(kind_unrecognised),
    }
}

fn kind_unrecognised(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.kind == Kind::Unknown {
        let message = match context.missed {
            Some(kind) => format!("no {}: nothing that tells of one is in it", kind.named()),
            None => "no sign of any kind of document that is judged".to_owned(),
        };
        out.add(root, message);
    }
}
