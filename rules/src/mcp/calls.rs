//! What comes back from using what is offered: tool results, contents of resources, prompts, completions; and what a server
//! asks a person for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{ALL, SINCE_2025_06};
use super::{is_complete, is_modern, is_since};
use crate::document::{Node, Type};
use crate::json_schema::{Dialect, Fault, faults_of_instance};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Impact, Mode, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &TOOL_RESULT_CONTENT,
    &TOOL_RESULT_IS_ERROR_TYPE,
    &TOOL_RESULT_CONTENT_TYPE,
    &TOOL_RESULT_STRUCTURED,
    &RESOURCE_READ_CONTENTS,
    &RESOURCE_READ_MIME_MISSING,
    &RESOURCE_READ_BLOB,
    &PROMPT_GET_MESSAGES,
    &PROMPT_GET_CONTENT_TYPE,
    &COMPLETION_VALUES,
    &COMPLETION_OVER_100,
    &COMPLETION_TOTAL_WRONG,
    &ELICITATION_SCHEMA,
];

const CALL: &[Kind] = &[Kind::McpCallToolResult];
const READ: &[Kind] = &[Kind::McpReadResourceResult];
const PROMPT: &[Kind] = &[Kind::McpGetPromptResult];
const COMPLETE: &[Kind] = &[Kind::McpCompleteResult];

/// What is wrong with a content block: a type that the revision lacks, or members that its type needs.
fn fault_of_block(block: Node<'_>, context: &Context<'_>) -> Option<String> {
    let kind = block.get("type").and_then(Node::text).unwrap_or_default();
    let needed: &[&str] = match kind {
        "text" => &["text"],
        "image" => &["data", "mimeType"],
        "audio" if is_since(context, "2025-03-26") => &["data", "mimeType"],
        "resource_link" if is_since(context, "2025-06-18") => &["uri", "name"],
        "resource" => return fault_of_embedded(block),
        _ => return Some(format!("{} is no type of content in this revision", quote(kind))),
    };
    let lacking = needed.iter().find(|member| !block.get(member).is_some_and(|value| value.kind() == Type::String));
    lacking.map(|member| format!("content of type {} without a string `{member}`", quote(kind)))
}

fn fault_of_embedded(block: Node<'_>) -> Option<String> {
    let is_text = |value: Option<Node<'_>>| value.is_some_and(|value| value.kind() == Type::String);
    let resource = block.get("resource").filter(|resource| resource.kind() == Type::Object);
    match resource {
        None => Some("content of type `resource` without a `resource`".to_owned()),
        Some(resource) if !is_text(resource.get("uri")) => Some("an embedded resource without `uri`".to_owned()),
        Some(resource) if !is_text(resource.get("text")) && !is_text(resource.get("blob")) => {
            Some("an embedded resource without `text` and `blob`".to_owned())
        }
        Some(_) => None,
    }
}

crate::rule! {
    /// A tool's result has content.
    ///
    /// A list, which may be empty: strict clients refuse a result without, also one with structured content.
    static TOOL_RESULT_CONTENT = {
        id: "mcp/tool-result-content",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        mode: Mode::Active,
        on: CALL,
        place: "/content",
        fix: "Return content.",
        spec: "schema CallToolResult",
        seeds: &["validator:2.3.3.1"],
        examples: &[fires(&["/content"], r#"{"content": null}"#), silent(r#"{"content": []}"#)],
        stops: Stops::Value,
        check: Check::Document(tool_result_content),
    }
}

fn tool_result_content(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    // A result that names a task has its content later.
    if is_complete(result) && result.get("task").is_none() {
        super::tools::demand_list(result, "content", out);
    }
}

crate::rule! {
    /// Whether a tool failed is true or false.
    ///
    /// `"false"` in quotes is true to some clients.
    static TOOL_RESULT_IS_ERROR_TYPE = {
        id: "mcp/tool-result-is-error-type",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: CALL,
        place: "/isError",
        fix: "Use a boolean.",
        spec: "schema CallToolResult",
        seeds: &["validator:2.3.3.1"],
        examples: &[fires(&["/isError"], r#"{"isError": "false"}"#), silent(r#"{"isError": null}"#)],
        stops: Stops::Value,
        check: Check::Document(tool_result_is_error_type),
    }
}

fn tool_result_is_error_type(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(is_error) = result.get("isError")
        && is_error.kind() != Type::Bool
    {
        out.add(is_error, format!("`isError` is {}, not true or false", is_error.kind().named()));
    }
}

crate::rule! {
    /// Content is of a type that the revision knows, and whole.
    ///
    /// Text has text, images and audio have data and a media type, links and embedded resources have an address.
    static TOOL_RESULT_CONTENT_TYPE = {
        id: "mcp/tool-result-content-type",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        mode: Mode::Active,
        on: CALL,
        place: "/content/*",
        fix: "Use a defined content type.",
        spec: "schema ContentBlock",
        seeds: &["validator:2.3.3.2"],
        examples: &[
            fires(&["/content/0"], r#"{"content": [{"type": "image", "text": null, "data": "AAAA"}]}"#),
            silent(r#"{"content": [{"type": "resource_link", "text": null, "uri": "tides://x", "name": "x"}]}"#),
        ],
        check: Check::Each(&["/content/*"], tool_result_content_type),
    }
}

fn tool_result_content_type(block: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(fault) = fault_of_block(block, context) {
        out.add(block, fault);
    }
}

crate::rule! {
    /// A tool that says what it gives back gives back that.
    ///
    /// Clients check structured content by the tool's output schema and drop a result that breaks it. A failed call needs none.
    static TOOL_RESULT_STRUCTURED = {
        id: "mcp/tool-result-structured",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        mode: Mode::Active,
        on: CALL,
        place: "/structuredContent/**",
        fix: "Return data that fits outputSchema.",
        spec: "2026-07-28 server/tools, Output Schema",
        seeds: &["validator:2.3.3.3", "validator:2.3.3.4"],
        examples: &[
            fires(&["/structuredContent/height"], r#"{"structuredContent": {"height": "1.2"}}"#)
                .given(r#"{"outputSchema": {"type": "object", "properties": {"height": {"type": "number"}}}}"#),
            fires(&["/structuredContent"], r#"{"structuredContent": null}"#).given(r#"{"outputSchema": {"type": "object"}}"#),
            silent(r#"{"structuredContent": null, "isError": true}"#).given(r#"{"outputSchema": {"type": "object"}}"#),
        ],
        check: Check::Document(tool_result_structured),
    }
}

fn tool_result_structured(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let failed = result.get("isError").and_then(Node::flag) == Some(true);
    if failed || !is_complete(result) || result.get("task").is_some() {
        return;
    }
    let schema = context.given.output_schema.as_ref();
    let Some(structured) = result.get("structuredContent") else {
        if schema.is_some() {
            out.add_missing(
                result,
                "structuredContent",
                "the tool has an output schema, and the result no such content",
            );
        }
        return;
    };
    if !is_modern(context) && structured.kind() != Type::Object {
        out.add(structured, format!("`structuredContent` is {}, not an object", structured.kind().named()));
        return;
    }
    let Some(schema) = schema else { return };
    match faults_by_its_dialect(structured, schema, context) {
        None => out.not_evaluated(NotEvaluated::Parent),
        Some(faults) => {
            for Fault { at, what } in faults {
                out.add(at, format!("{} {what}", named(at)));
            }
        }
    }
}

/// How a message calls a value of structured content.
fn named(at: Node<'_>) -> String {
    at.key().map_or_else(|| "an item".to_owned(), quote)
}

/// What breaks the schema. Before 2025-11-25 no dialect was the default, so what fits one of two fits.
fn faults_by_its_dialect<'d>(
    value: Node<'d>,
    schema: &serde_json::Value,
    context: &Context<'_>,
) -> Option<Vec<Fault<'d>>> {
    let declared = schema.get("$schema").and_then(serde_json::Value::as_str).and_then(Dialect::named);
    let newest = faults_of_instance(value, schema, declared.unwrap_or(Dialect::Draft2020));
    if declared.is_some() || is_since(context, "2025-11-25") || newest.as_ref().is_some_and(Vec::is_empty) {
        return newest;
    }
    let older = faults_of_instance(value, schema, Dialect::Draft07);
    if older.as_ref().is_some_and(Vec::is_empty) { older } else { newest }
}

crate::rule! {
    /// A resource that was read has content.
    ///
    /// A list of parts, each with the address it is of, and either text or a blob.
    static RESOURCE_READ_CONTENTS = {
        id: "mcp/resource-read-contents",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: READ,
        place: "/contents | /contents/* | /contents/*/uri",
        fix: "Return uri with text or blob.",
        spec: "schema ReadResourceResult",
        seeds: &["validator:2.1.3.1", "validator:2.1.3.2"],
        examples: &[
            fires(&["/contents/0"], r#"{"contents": [{"text": null}]}"#),
            fires(&["/contents/0/uri"], r#"{"contents": [{"uri": null}]}"#),
            fires(&["/contents"], r#"{"contents": null}"#),
            silent(r#"{"contents": [{"text": ""}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(resource_read_contents),
    }
}

fn resource_read_contents(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !is_complete(result) {
        return;
    }
    super::tools::demand_list(result, "contents", out);
    for part in result.get("contents").into_iter().flat_map(Node::items) {
        if part.kind() != Type::Object {
            out.add(part, format!("a part is {}, not an object", part.kind().named()));
            continue;
        }
        super::tools::demand_text(part, "uri", out);
        match (part.given("text"), part.given("blob")) {
            (None, None) => drop(out.add(part, "neither `text` nor `blob`")),
            (Some(_), Some(_)) => drop(out.add(part, "`text` and `blob` at once")),
            _ => {}
        }
    }
}

crate::rule! {
    /// Content says of what type it is.
    ///
    /// Clients choose by it how to show the content.
    static RESOURCE_READ_MIME_MISSING = {
        id: "mcp/resource-read-mime-missing",
        basis: Basis::Hint,
        versions: ALL,
        mode: Mode::Active,
        on: READ,
        place: "/contents/*/mimeType",
        fix: "Add mimeType.",
        spec: "schema ResourceContents",
        seeds: &["validator:2.1.3.3"],
        examples: &[
            fires(&["/contents/0/mimeType"], r#"{"contents": [{"mimeType": null}]}"#),
            silent(r#"{"contents": [{"mimeType": "text/plain"}]}"#),
        ],
        check: Check::Each(&["/contents/*"], resource_read_mime_missing),
    }
}

fn resource_read_mime_missing(part: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if part.kind() == Type::Object && part.given("mimeType").is_none() {
        out.add_missing(part, "mimeType", "`mimeType` is missing");
    }
}

crate::rule! {
    /// A blob is base64.
    ///
    /// Of the standard alphabet with padding; the one for URLs is another.
    static RESOURCE_READ_BLOB = {
        id: "mcp/resource-read-blob",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: READ,
        place: "/contents/*/blob",
        fix: "Encode as base64.",
        spec: "schema BlobResourceContents",
        seeds: &["validator:2.1.3.2"],
        examples: &[
            fires(&["/contents/0/blob"], r#"{"contents": [{"text": null, "blob": "_-_-"}]}"#),
            silent(r#"{"contents": [{"text": null, "blob": "AAA="}]}"#),
        ],
        check: Check::Each(&["/contents/*/blob"], resource_read_blob),
    }
}

fn resource_read_blob(blob: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match blob.text() {
        Some(text) if STANDARD.decode(text).is_err() => drop(out.add(blob, "the blob is no standard base64")),
        None if !blob.is_null() => drop(out.add(blob, format!("the blob is {}, not a string", blob.kind().named()))),
        _ => {}
    }
}

crate::rule! {
    /// A prompt is a list of messages of the user and the assistant.
    ///
    /// Each has a role and content; there is no `system` among the roles.
    static PROMPT_GET_MESSAGES = {
        id: "mcp/prompt-get-messages",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: PROMPT,
        place: "/messages | /messages/* | /messages/*/role | /messages/*/content",
        fix: "Return messages.",
        spec: "schema GetPromptResult",
        seeds: &["validator:2.2.3.1", "validator:2.2.3.2"],
        examples: &[
            fires(&["/messages/0/role"], r#"{"messages": [{"role": "system"}]}"#),
            fires(&["/messages"], r#"{"messages": null}"#),
            silent(r#"{"messages": [{"role": "assistant"}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(prompt_get_messages),
    }
}

fn prompt_get_messages(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !is_complete(result) {
        return;
    }
    super::tools::demand_list(result, "messages", out);
    for message in result.get("messages").into_iter().flat_map(Node::items) {
        if message.kind() != Type::Object {
            out.add(message, format!("a message is {}, not an object", message.kind().named()));
            continue;
        }
        match message.get("role") {
            None => drop(out.add_missing(message, "role", "`role` is missing")),
            Some(role) if !matches!(role.text(), Some("user" | "assistant")) => {
                out.add(role, format!("{} is neither `user` nor `assistant`", quote(role.raw())));
            }
            Some(_) => {}
        }
        if message.get("content").is_none() {
            out.add_missing(message, "content", "`content` is missing");
        }
    }
}

crate::rule! {
    /// A message's content is of a type that the revision knows, and whole.
    ///
    /// One block of text, an image, audio, a link or an embedded resource, with what that needs.
    static PROMPT_GET_CONTENT_TYPE = {
        id: "mcp/prompt-get-content-type",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: PROMPT,
        place: "/messages/*/content",
        fix: "Use a defined content type.",
        spec: "schema ContentBlock",
        seeds: &["validator:2.2.3.3"],
        examples: &[
            fires(&["/messages/0/content"], r#"{"messages": [{"content": {"text": null}}]}"#),
            silent(
                r#"{"messages": [{"content": {"type": "audio", "text": null, "data": "AAAA", "mimeType": "audio/wav"}}]}"#,
            ),
        ],
        check: Check::Each(&["/messages/*/content"], prompt_get_content_type),
    }
}

fn prompt_get_content_type(content: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if content.kind() != Type::Object {
        out.add(content, format!("the content is {}, not an object", content.kind().named()));
    } else if let Some(fault) = fault_of_block(content, context) {
        out.add(content, fault);
    }
}

crate::rule! {
    /// A completion is a list of strings.
    ///
    /// Clients offer them as they are.
    static COMPLETION_VALUES = {
        id: "mcp/completion-values",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: COMPLETE,
        place: "/completion/values",
        fix: "Return completion.values.",
        spec: "schema CompleteResult",
        seeds: &["validator:4.5.1.1"],
        examples: &[
            fires(&["/completion/values"], r#"{"completion": {"values": [{"value": "HEL"}]}}"#),
            silent(r#"{"completion": {"values": [], "total": null}}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(completion_values),
    }
}

fn completion_values(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !is_complete(result) {
        return;
    }
    let Some(completion) = result.get("completion") else {
        out.add_missing(result, "completion", "`completion` is missing");
        return;
    };
    match completion.get("values") {
        None => drop(out.add_missing(completion, "values", "`values` is missing")),
        Some(values) if values.kind() != Type::Array || values.items().any(|v| v.kind() != Type::String) => {
            out.add(values, "the values are no list of strings");
        }
        Some(_) => {}
    }
}

/// The most values that one completion may have.
const MOST_VALUES: usize = 100;

crate::rule! {
    /// A completion has at most 100 values.
    ///
    /// What is over says `hasMore`.
    static COMPLETION_OVER_100 = {
        id: "mcp/completion-over-100",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Active,
        on: COMPLETE,
        place: "/completion/values",
        fix: "Cap at 100 and set hasMore.",
        spec: "2026-07-28 utilities/completion",
        seeds: &["validator:4.5.1.2"],
        examples: &[
            fires(&["/completion/values"], r##"{"completion": {"values": {"$repeat": [["HEL-#"], 101]}, "total": null}}"##),
            silent(r#"{"completion": {"values": ["HEL"], "total": 101, "hasMore": true}}"#),
        ],
        check: Check::Each(&["/completion/values"], completion_over_100),
    }
}

fn completion_over_100(values: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(count) = values.len().filter(|count| values.kind() == Type::Array && *count > MOST_VALUES) {
        out.add(values, format!("{count} values"));
    }
}

crate::rule! {
    /// The total of a completion fits what it gives.
    ///
    /// No less than the values, and no more when it says that there are no more.
    static COMPLETION_TOTAL_WRONG = {
        id: "mcp/completion-total-wrong",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        mode: Mode::Active,
        on: COMPLETE,
        place: "/completion/total",
        fix: "Make total and hasMore consistent.",
        spec: "schema CompleteResult",
        seeds: &["validator:4.5.1.2"],
        examples: &[
            fires(&["/completion/total"], r#"{"completion": {"total": 1}}"#),
            fires(&["/completion/total"], r#"{"completion": {"total": 9}}"#),
            silent(r#"{"completion": {"total": 9, "hasMore": true}}"#),
        ],
        check: Check::Each(&["/completion"], completion_total_wrong),
    }
}

fn completion_total_wrong(completion: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(total) = completion.get("total") else { return };
    let (Some(number), Some(count)) = (total.number(), completion.get("values").and_then(Node::len)) else { return };
    let count = count as f64;
    if number < count {
        out.add(total, format!("a total of {number} with {count} values"));
    } else if number > count && completion.get("hasMore").and_then(Node::flag) == Some(false) {
        out.add(total, format!("a total of {number} with {count} values and no more"));
    }
}

crate::rule! {
    /// What a server asks a person for is a flat form.
    ///
    /// An object of strings, numbers, booleans and choices, and from 2025-11-25 several choices at once. Clients draw a field
    /// for each and cannot draw more.
    static ELICITATION_SCHEMA = {
        id: "mcp/elicitation-schema",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        mode: Mode::Active,
        on: &[Kind::McpElicitationRequest],
        place: "/requestedSchema | /requestedSchema/properties/*",
        fix: "Keep the schema flat.",
        spec: "2025-11-25 client/elicitation",
        seeds: &["validator:3.3.2.3"],
        examples: &[
            fires(
                &["/requestedSchema/properties/place"],
                r#"{"requestedSchema": {"properties": {"place": {"type": "object", "properties": {}}}}}"#,
            ),
            silent(
                r#"{"requestedSchema": {"properties": {"days": {"type": "array",
                    "items": {"type": "string", "enum": ["mo", "tu"]}}}}}"#,
            ),
            silent(r#"{"mode": "url", "requestedSchema": null, "url": "https://tides.example.org/pay", "elicitationId": "1"}"#),
        ],
        check: Check::Document(elicitation_schema),
    }
}

fn elicitation_schema(request: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if request.get("mode").and_then(Node::text) == Some("url") {
        return;
    }
    let Some(schema) = request.get("requestedSchema") else {
        out.add_missing(request, "requestedSchema", "`requestedSchema` is missing");
        return;
    };
    let properties = schema.get("properties");
    let is_form = schema.get("type").and_then(Node::text) == Some("object")
        && properties.is_some_and(|properties| properties.kind() == Type::Object);
    if !is_form {
        out.add(schema, "the schema is no object with properties");
        return;
    }
    for (name, property) in properties.into_iter().flat_map(Node::members) {
        if !is_field(property, context) {
            out.add(property, format!("{} is no simple field", quote(name)));
        }
    }
}

/// Whether a property is one that a form has a field for.
fn is_field(property: Node<'_>, context: &Context<'_>) -> bool {
    match property.get("type").and_then(Node::text) {
        Some("string" | "number" | "integer" | "boolean") => property.get("properties").is_none(),
        Some("array") => is_since(context, "2025-11-25") && property.get("items").is_some_and(is_choice),
        Some(_) => false,
        None => property.kind() == Type::Object && property.get("type").is_none() && is_choice(property),
    }
}

/// Whether a schema lists strings to choose from, bare or with titles.
fn is_choice(schema: Node<'_>) -> bool {
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|keyword| schema.get(keyword));
    let is_list = |list: Node<'_>| list.kind() == Type::Array;
    schema.get("enum").is_some_and(is_list)
        || titled.is_some_and(|list| is_list(list) && list.items().all(|choice| choice.get("const").is_some()))
}
