//! Lists of tools: names, descriptions, annotations, task support. Their schemas are [`super::tool_schema`]'s.

use std::collections::{HashMap, HashSet};

use super::handshake::longer_than;
use super::{ALL, SINCE_2025_03, SINCE_2025_06};
use super::{is_blank, is_since, listed};
use crate::canonical::canonical;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &TOOLS_ARRAY_MISSING,
    &TOOL_NOT_OBJECT,
    &TOOL_ANNOTATIONS_INVALID,
    &TOOL_ANNOTATION_TYPE,
    &TOOL_TASK_SUPPORT_INVALID,
    &TOOLS_EMPTY,
    &TOOL_NAME_MISSING,
    &TOOL_NAME_DUPLICATE,
    &TOOL_NAME_CASE_COLLISION,
    &TOOL_NAME_FORMAT,
    &TOOL_NAME_LONG_HINT,
    &TOOL_DESCRIPTION_MISSING,
    &TOOL_DESCRIPTION_LONG,
    &TOOL_TITLE_MISSING,
    &TOOL_FIELD_NOT_IN_REVISION,
    &TOOL_ANNOTATION_CONFLICT,
    &TOOL_ANNOTATIONS_MISSING,
    &TOOL_TASK_SUPPORT_UNDECLARED,
    &TOOL_COUNT_HIGH,
    &TOOLS_PAYLOAD_LARGE,
];

const ON: &[Kind] = &[Kind::McpToolsListResult];

crate::rule! {
    /// A list of tools has its list.
    ///
    /// Strict clients refuse the answer when `tools` is absent or something else than a list.
    static TOOLS_ARRAY_MISSING = {
        id: "mcp/tools-array-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/tools",
        fix: "Return tools, empty if none.",
        spec: "schema ListToolsResult",
        seeds: &["gaip:MCP_TOOLS_ARRAY_REQUIRED", "validator:2.3.2.1"],
        examples: &[
            fires(&["/tools"], r#"{"tools": {"get_tide": {}}}"#),
            fires(&["/tools"], r#"{"tools": null}"#),
            silent(r#"{"tools": []}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(tools_array_missing),
    }
}

fn tools_array_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand_list(result, "tools", out);
}

/// Reports a list result without its list.
pub(super) fn demand_list(result: Node<'_>, member: &str, out: &mut Occurrences) {
    match result.get(member) {
        None => drop(out.add_missing(result, member, format!("`{member}` is missing"))),
        Some(list) if list.kind() != Type::Array => {
            out.add(list, format!("`{member}` is {}, not a list", list.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// A tool is an object.
    ///
    /// A bare name makes strict clients refuse the whole list.
    static TOOL_NOT_OBJECT = {
        id: "mcp/tool-not-object",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/tools/*",
        fix: "Use tool objects.",
        spec: "schema Tool",
        seeds: &["gaip:MCP_TOOL_OBJECT_REQUIRED"],
        examples: &[
            fires(&["/tools/1"], r#"{"tools": [{}, "list_harbours"]}"#),
            silent(r#"{"tools": [{}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/tools/*"], tool_not_object),
    }
}

fn tool_not_object(tool: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand_object(tool, "a tool", out);
}

/// Reports an item that is no object.
pub(super) fn demand_object(item: Node<'_>, what: &str, out: &mut Occurrences) {
    if item.kind() != Type::Object {
        out.add(item, format!("{what} is {}, not an object", item.kind().named()));
    }
}

crate::rule! {
    /// A tool's annotations are an object.
    ///
    /// A list of words makes strict clients refuse the whole list of tools.
    static TOOL_ANNOTATIONS_INVALID = {
        id: "mcp/tool-annotations-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: SINCE_2025_03,
        on: ON,
        place: "/tools/*/annotations",
        fix: "Use an object.",
        spec: "schema ToolAnnotations",
        seeds: &["gaip:MCP_TOOL_ANNOTATIONS_INVALID"],
        examples: &[
            fires(&["/tools/0/annotations"], r#"{"tools": [{"annotations": ["readOnly"]}]}"#),
            silent(r#"{"tools": [{"annotations": {"readOnlyHint": null, "openWorldHint": null}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/tools/*/annotations"], tool_annotations_invalid),
    }
}

fn tool_annotations_invalid(annotations: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !annotations.is_null() {
        demand_object(annotations, "`annotations`", out);
    }
}

crate::rule! {
    /// Hints about a tool are true or false, its title is a string.
    ///
    /// `"true"` in quotes makes strict clients refuse the whole list, and lenient ones take it for either.
    static TOOL_ANNOTATION_TYPE = {
        id: "mcp/tool-annotation-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "@modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: SINCE_2025_03,
        on: ON,
        place: "/tools/*/annotations/*",
        fix: "Use booleans and a string title.",
        spec: "schema ToolAnnotations",
        seeds: &["gaip:MCP_TOOL_ANNOTATION_INVALID"],
        examples: &[
            fires(&["/tools/0/annotations/readOnlyHint"], r#"{"tools": [{"annotations": {"readOnlyHint": "true"}}]}"#),
            silent(r#"{"tools": [{"annotations": {"costHint": "low"}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/tools/*/annotations"], tool_annotation_type),
    }
}

fn tool_annotation_type(annotations: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (name, value) in annotations.members().filter(|(_, value)| !value.is_null()) {
        let wanted = match name {
            "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => Type::Bool,
            "title" => Type::String,
            _ => continue,
        };
        if value.kind() != wanted {
            out.add(value, format!("`{name}` is {}, not {}", value.kind().named(), wanted.named()));
        }
    }
}

crate::rule! {
    /// Whether a tool can run as a task is one of three words.
    ///
    /// `forbidden`, `optional` or `required`. Strict clients refuse the whole list for another.
    static TOOL_TASK_SUPPORT_INVALID = {
        id: "mcp/tool-task-support-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: &["2025-11-25"],
        on: ON,
        place: "/tools/*/execution/taskSupport",
        fix: "Use an allowed value.",
        spec: "schema ToolExecution; SEP-1686",
        examples: &[
            fires(&["/tools/0/execution/taskSupport"], r#"{"tools": [{"execution": {"taskSupport": "always"}}]}"#),
            fires(&["/tools/0/execution"], r#"{"tools": [{"execution": "task"}]}"#),
            silent(r#"{"tools": [{"execution": {}}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/tools/*/execution"], tool_task_support_invalid),
    }
}

fn tool_task_support_invalid(execution: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if execution.is_null() {
        return;
    }
    demand_object(execution, "`execution`", out);
    if let Some(support) = execution.given("taskSupport")
        && !matches!(support.text(), Some("forbidden" | "optional" | "required"))
    {
        out.add(support, format!("{} is none of `forbidden`, `optional`, `required`", quote(support.raw())));
    }
}

crate::rule! {
    /// A server with tools lists at least one.
    ///
    /// It declared the capability, and then offers nothing.
    static TOOLS_EMPTY = {
        id: "mcp/tools-empty",
        basis: Basis::Policy,
        versions: ALL,
        on: ON,
        place: "/tools",
        fix: "Publish tools or drop the capability.",
        spec: "2026-07-28 server/tools",
        seeds: &["gaip:MCP_NO_TOOLS_LISTED"],
        examples: &[fires(&["/tools"], r#"{"tools": []}"#), silent(r#"{"tools": [], "nextCursor": "p2"}"#)],
        check: Check::Document(tools_empty),
    }
}

fn tools_empty(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(tools) = result.get("tools")
        && tools.kind() == Type::Array
        && tools.is_empty()
        && result.given("nextCursor").is_none()
    {
        out.add(tools, "the list is empty");
    }
}

crate::rule! {
    /// A tool has a name.
    ///
    /// It is what a tool is called by; strict clients refuse the whole list for one tool without.
    static TOOL_NAME_MISSING = {
        id: "mcp/tool-name-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/tools/*/name",
        fix: "Name the tool.",
        spec: "schema Tool",
        seeds: &["gaip:MCP_TOOL_NAME_REQUIRED", "validator:2.3.2.2"],
        examples: &[
            fires(&["/tools/0/name"], r#"{"tools": [{"name": ""}]}"#),
            fires(&["/tools/0/name"], r#"{"tools": [{"name": null}]}"#),
            silent(r#"{"tools": [{"name": "x"}]}"#),
        ],
        check: Check::Document(tool_name_missing),
    }
}

fn tool_name_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    listed(result, context).for_each(|tool| demand_text(tool, "name", out));
}

/// Reports a required text that is missing, no string, or empty.
pub(super) fn demand_text(object: Node<'_>, member: &str, out: &mut Occurrences) {
    match object.get(member) {
        None => drop(out.add_missing(object, member, format!("`{member}` is missing"))),
        Some(value) if value.kind() != Type::String => {
            out.add(value, format!("`{member}` is {}, not a string", value.kind().named()));
        }
        Some(value) if value.text() == Some("") => drop(out.add(value, format!("`{member}` is empty"))),
        Some(_) => {}
    }
}

/// Reports every value that stood before under the same member.
pub(super) fn report_repeated<'d>(items: impl Iterator<Item = Node<'d>>, member: &str, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for value in items.filter_map(|item| item.get(member)) {
        if let Some(text) = value.text()
            && !text.is_empty()
            && !seen.insert(text)
        {
            out.add(value, format!("{} stands twice in the list", quote(text)));
        }
    }
}

crate::rule! {
    /// No two tools have the same name.
    ///
    /// A client calls by name, so the second can never be called, or hides the first.
    static TOOL_NAME_DUPLICATE = {
        id: "mcp/tool-name-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        versions: ALL,
        on: ON,
        place: "/tools/*/name",
        fix: "Make names unique.",
        spec: "2025-11-25 server/tools, Tool Names",
        seeds: &["gaip:MCP_TOOL_NAME_DUPLICATE"],
        examples: &[
            fires(&["/tools/1/name"], r#"{"tools": [{"name": "tide"}, {"name": "tide"}]}"#),
            silent(r#"{"tools": [{"name": "tide"}, {"name": "tide-2"}]}"#),
        ],
        check: Check::Document(tool_name_duplicate),
    }
}

fn tool_name_duplicate(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    report_repeated(listed(result, context), "name", out);
}

crate::rule! {
    /// No two tools differ in letter case only.
    ///
    /// Models and some clients do not keep them apart.
    static TOOL_NAME_CASE_COLLISION = {
        id: "mcp/tool-name-case-collision",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/name",
        fix: "Choose names that differ by more than case.",
        spec: "hint: case-folding clients",
        examples: &[
            fires(&["/tools/1/name"], r#"{"tools": [{"name": "tide"}, {"name": "TIDE"}]}"#),
            silent(r#"{"tools": [{"name": "get_tide"}, {"name": "get-tide"}]}"#),
        ],
        check: Check::Document(tool_name_case_collision),
    }
}

fn tool_name_case_collision(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in listed(result, context).filter_map(|tool| tool.get("name")) {
        let Some(text) = name.text() else { continue };
        match seen.get(&text.to_ascii_lowercase()) {
            Some(first) if *first != text => {
                out.add(name, format!("{} and {} differ in letter case only", quote(text), quote(first)));
            }
            Some(_) => {}
            None => drop(seen.insert(text.to_ascii_lowercase(), text)),
        }
    }
}

/// The longest name that the protocol advises.
const LONGEST_NAME: usize = 128;
/// The longest name that the common model interfaces take, prefix included.
const LONGEST_NAME_FOR_MODELS: usize = 64;

fn has_name_characters(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

crate::rule! {
    /// A tool's name is made of letters, digits, `_`, `-` and `.`, and has at most 128 of them.
    ///
    /// Names with spaces, slashes or other letters are refused or changed by model interfaces on the way.
    static TOOL_NAME_FORMAT = {
        id: "mcp/tool-name-format",
        severity: Severity::Warning,
        severity_overrides: &[("2024-11-05", Severity::Info), ("2025-03-26", Severity::Info), ("2025-06-18", Severity::Info)],
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: ON,
        place: "/tools/*/name",
        fix: "Use 1-128 characters of A-Za-z0-9_-.",
        spec: "2025-11-25 server/tools, Tool Names; SEP-986",
        seeds: &["gaip:MCP_TOOL_NAME_FORMAT"],
        examples: &[
            fires(&["/tools/0/name"], r#"{"tools": [{"name": "tides/get"}]}"#),
            fires(&["/tools/0/name"], r#"{"tools": [{"name": {"$repeat": ["a", 129]}}]}"#),
            silent(r#"{"tools": [{"name": "admin.tide-get_2"}]}"#),
        ],
        check: Check::Each(&["/tools/*/name"], tool_name_format),
    }
}

fn tool_name_format(name: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(text) = name.text() else { return };
    if !has_name_characters(text) {
        out.add(name, format!("{} has other characters than A-Z a-z 0-9 _ - .", quote(text)));
    } else if text.len() > LONGEST_NAME {
        out.add(name, format!("{} has {} characters", quote(text), text.len()));
    }
}

crate::rule! {
    /// A tool's name leaves room for a prefix.
    ///
    /// Several model interfaces refuse names over 64 characters, and clients put the server's name in front.
    static TOOL_NAME_LONG_HINT = {
        id: "mcp/tool-name-long-hint",
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/name",
        fix: "Keep names under 64 characters.",
        spec: "hint: model API limits",
        examples: &[
            fires(&["/tools/0/name"], r#"{"tools": [{"name": {"$repeat": ["a", 65]}}]}"#),
            silent(r#"{"tools": [{"name": {"$repeat": ["a", 64]}}]}"#),
        ],
        check: Check::Each(&["/tools/*/name"], tool_name_long_hint),
    }
}

fn tool_name_long_hint(name: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(text) = name.text()
        && (LONGEST_NAME_FOR_MODELS + 1..=LONGEST_NAME).contains(&text.len())
        && has_name_characters(text)
    {
        out.add(name, format!("the name has {} characters", text.len()));
    }
}

crate::rule! {
    /// A tool says what it does.
    ///
    /// A model picks tools by their descriptions; without one it has the name to guess from.
    static TOOL_DESCRIPTION_MISSING = {
        id: "mcp/tool-description-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/description",
        fix: "Describe when to use the tool.",
        spec: "schema Tool",
        seeds: &["gaip:MCP_TOOL_DESCRIPTION_MISSING", "validator:2.3.2.2"],
        examples: &[
            fires(&["/tools/0/description"], r#"{"tools": [{"description": null}]}"#),
            fires(&["/tools/0/description"], r#"{"tools": [{"description": " \n"}]}"#),
            silent(r#"{"tools": [{"description": "Tides."}]}"#),
        ],
        check: Check::Document(tool_description_missing),
    }
}

fn tool_description_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for tool in listed(result, context) {
        match tool.get("description") {
            None => drop(out.add_missing(tool, "description", "the tool has no description")),
            Some(text) if is_blank(text) => drop(out.add(text, "the description is blank")),
            Some(_) => {}
        }
    }
}

/// Descriptions of all tools enter the model's prompt; beyond this one of them crowds out the rest.
const MOST_DESCRIPTION: usize = 4096;

crate::rule! {
    /// A tool's description is short enough to be read with every request.
    ///
    /// Clients put the descriptions of all tools into the model's prompt.
    static TOOL_DESCRIPTION_LONG = {
        id: "mcp/tool-description-long",
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/description",
        fix: "Shorten it.",
        spec: "hint: context budget",
        examples: &[
            fires(&["/tools/0/description"], r#"{"tools": [{"description": {"$repeat": ["d", 4097]}}]}"#),
            silent(r#"{"tools": [{"description": {"$repeat": ["d", 4096]}}]}"#),
        ],
        check: Check::Each(&["/tools/*/description"], tool_description_long),
    }
}

fn tool_description_long(description: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(length) = description.text().and_then(|text| longer_than(text, MOST_DESCRIPTION)) {
        out.add(description, format!("the description has {length} characters"));
    }
}

crate::rule! {
    /// A tool has no title.
    ///
    /// People then see its technical name. A title among the annotations counts.
    static TOOL_TITLE_MISSING = {
        id: "mcp/tool-title-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        on: ON,
        place: "/tools/*/title",
        fix: "Add a title.",
        spec: "schema Tool",
        seeds: &["validator:2.3.2.3"],
        examples: &[
            fires(&["/tools/0/title"], r#"{"tools": [{"title": null}]}"#),
            silent(r#"{"tools": [{"title": null, "annotations": {"title": "Tide"}}]}"#),
        ],
        check: Check::Document(tool_title_missing),
    }
}

fn tool_title_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for tool in listed(result, context) {
        let among_annotations = tool.get("annotations").and_then(|annotations| annotations.get("title"));
        if tool.get("title").or(among_annotations).is_none() {
            out.add_missing(tool, "title", "no title");
        }
    }
}

crate::rule! {
    /// A tool has only members that the revision knows.
    ///
    /// Clients of this revision ignore what came later, or was taken out.
    static TOOL_FIELD_NOT_IN_REVISION = {
        id: "mcp/tool-field-not-in-revision",
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools/*/*",
        fix: "Negotiate a newer revision or drop the field.",
        spec: "schema Tool",
        seeds: &["validator:2.3.2.4"],
        examples: &[
            fires(&["/tools/0/execution"], r#"{"tools": [{"execution": {"taskSupport": "optional"}}]}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"tools": [{"execution": {"taskSupport": "forbidden"}}]}"#).over("mcp-tools-2025-11-25"),
        ],
        check: Check::Document(tool_field_not_in_revision),
    }
}

fn tool_field_not_in_revision(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_known = |name: &str| match name {
        "annotations" => is_since(context, "2025-03-26"),
        "title" | "outputSchema" => is_since(context, "2025-06-18"),
        "icons" => is_since(context, "2025-11-25"),
        "execution" => context.profile.has("2025-11-25"),
        _ => true,
    };
    for (name, value) in listed(result, context).flat_map(Node::members).filter(|(name, _)| !is_known(name)) {
        out.add(value, format!("`{name}` is not in this revision"));
    }
}

crate::rule! {
    /// A tool that only reads destroys nothing.
    ///
    /// Said to be both, it is shown as harmless by one client and guarded by another.
    static TOOL_ANNOTATION_CONFLICT = {
        id: "mcp/tool-annotation-conflict",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        on: ON,
        place: "/tools/*/annotations",
        fix: "Drop destructiveHint from read-only tools.",
        spec: "schema ToolAnnotations",
        examples: &[
            fires(&["/tools/0/annotations"], r#"{"tools": [{"annotations": {"readOnlyHint": true, "destructiveHint": true}}]}"#),
            silent(r#"{"tools": [{"annotations": {"readOnlyHint": true, "destructiveHint": false}}]}"#),
        ],
        check: Check::Each(&["/tools/*/annotations"], tool_annotation_conflict),
    }
}

fn tool_annotation_conflict(annotations: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_set = |hint: &str| annotations.get(hint).and_then(Node::flag) == Some(true);
    if is_set("readOnlyHint") && is_set("destructiveHint") {
        out.add(annotations, "`readOnlyHint` and `destructiveHint` are both true");
    }
}

crate::rule! {
    /// A tool has no annotations.
    ///
    /// Clients have to assume that it can destroy things and reaches out into the world.
    static TOOL_ANNOTATIONS_MISSING = {
        id: "mcp/tool-annotations-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_03,
        on: ON,
        place: "/tools/*/annotations",
        fix: "Declare readOnlyHint and destructiveHint.",
        spec: "schema ToolAnnotations",
        examples: &[
            fires(&["/tools/0/annotations"], r#"{"tools": [{"annotations": null}]}"#),
            silent(r#"{"tools": [{"annotations": {}}]}"#),
        ],
        check: Check::Document(tool_annotations_missing),
    }
}

fn tool_annotations_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for tool in listed(result, context).filter(|tool| tool.get("annotations").is_none()) {
        out.add_missing(tool, "annotations", "no annotations");
    }
}

crate::rule! {
    /// Only a server that declares tasks offers tools as tasks.
    ///
    /// A client that sees no such capability will not ask for one, and cannot use a tool that requires it.
    static TOOL_TASK_SUPPORT_UNDECLARED = {
        id: "mcp/tool-task-support-undeclared",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["2025-11-25"],
        on: ON,
        place: "/tools/*/execution/taskSupport",
        fix: "Declare the tasks capability.",
        spec: "2025-11-25 utilities/tasks",
        examples: &[
            fires(&["/tools/0/execution/taskSupport"], r#"{"tools": [{"execution": {"taskSupport": "required"}}]}"#)
                .given(r#"{"capabilities": {"tools": {}}}"#),
            silent(r#"{"tools": [{"execution": {"taskSupport": "forbidden"}}]}"#).given(r#"{"capabilities": {"tools": {}}}"#),
        ],
        check: Check::Document(tool_task_support_undeclared),
    }
}

fn tool_task_support_undeclared(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(capabilities) = &context.given.capabilities else {
        out.not_evaluated(NotEvaluated::NoSession);
        return;
    };
    if capabilities.pointer("/tasks/requests/tools/call").is_some() {
        return;
    }
    for support in listed(result, context).filter_map(|tool| tool.get("execution")?.get("taskSupport")) {
        if let Some(word @ ("optional" | "required")) = support.text() {
            out.add(support, format!("{}, but `tasks.requests.tools.call` is not declared", quote(word)));
        }
    }
}

/// More tools than this make models choose worse, and some interfaces refuse them.
const MANY_TOOLS: usize = 64;

crate::rule! {
    /// A server offers no more tools than a model can choose from.
    ///
    /// With over 64 of them models pick worse, and some interfaces refuse the request.
    static TOOL_COUNT_HIGH = {
        id: "mcp/tool-count-high",
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools",
        fix: "Split the server or hide rarely used tools.",
        spec: "hint: model accuracy",
        examples: &[
            fires(&["/tools"], r#"{"tools": {"$repeat": [{"name": "tide-#"}, 65]}}"#),
            silent(r#"{"tools": {"$repeat": [{"name": "tide-#"}, 64]}}"#),
        ],
        check: Check::Document(tool_count_high),
    }
}

fn tool_count_high(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(tools) = result.get("tools")
        && let Some(count) = tools.len().filter(|count| *count > MANY_TOOLS)
    {
        out.add(tools, format!("{count} tools"));
    }
}

/// A list beyond this many bytes fills a large part of any model's context.
const LARGE_LIST: usize = 256 * 1024;

crate::rule! {
    /// A list of tools is small enough for a model's context.
    ///
    /// Over 256 KiB it leaves little room for the work itself.
    static TOOLS_PAYLOAD_LARGE = {
        id: "mcp/tools-payload-large",
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/tools",
        fix: "Trim descriptions and schemas.",
        spec: "hint: context budget",
        examples: &[
            fires(&["/tools"], r#"{"tools": [{"description": {"$repeat": ["d", 262144]}}]}"#),
            silent(r#"{"tools": [{"description": "Tides."}]}"#),
        ],
        check: Check::Document(tools_payload_large),
    }
}

fn tools_payload_large(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(tools) = result.get("tools").filter(|tools| tools.kind() == Type::Array) else { return };
    // What is small as written is small without its spaces.
    if tools.raw().len() > LARGE_LIST {
        let bytes = canonical(tools).len();
        if bytes > LARGE_LIST {
            out.add(tools, format!("the list has {} KiB", bytes / 1024));
        }
    }
}
