//! Lists of prompts and their arguments.

use std::collections::HashSet;

use super::listed;
use super::tools::{demand_list, demand_text, report_repeated};
use super::{ALL, SINCE_2025_06};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &PROMPTS_ARRAY_MISSING,
    &PROMPT_ARGUMENTS_INVALID,
    &PROMPT_ARGUMENT_REQUIRED_TYPE,
    &PROMPT_NAME_MISSING,
    &PROMPT_NAME_DUPLICATE,
    &PROMPT_TITLE_MISSING,
    &PROMPT_ARGUMENT_NAME_MISSING,
    &PROMPT_ARGUMENT_DUPLICATE,
];

const ON: &[Kind] = &[Kind::McpPromptsListResult];

const ARGUMENTS: &[&str] = &["/prompts/*/arguments"];

crate::rule! {
    /// A list of prompts has its list.
    ///
    /// Strict clients refuse the answer when `prompts` is absent or something else than a list.
    static PROMPTS_ARRAY_MISSING = {
        id: "mcp/prompts-array-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/prompts",
        fix: "Return prompts.",
        spec: "schema ListPromptsResult",
        seeds: &["validator:2.2.2.1"],
        examples: &[fires(&["/prompts"], r#"{"prompts": null}"#), silent(r#"{"prompts": []}"#)],
        stops: Stops::Value,
        check: Check::Document(prompts_array_missing),
    }
}

fn prompts_array_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand_list(result, "prompts", out);
}

crate::rule! {
    /// A prompt's arguments are a list of objects.
    ///
    /// Not a JSON Schema: strict clients refuse the whole list for one prompt that has one.
    static PROMPT_ARGUMENTS_INVALID = {
        id: "mcp/prompt-arguments-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/prompts/*/arguments",
        fix: "Use an array of argument objects.",
        spec: "schema Prompt",
        examples: &[
            fires(&["/prompts/0/arguments"], r#"{"prompts": [{"arguments": {"type": "object"}}]}"#),
            silent(r#"{"prompts": [{"arguments": []}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(ARGUMENTS, prompt_arguments_invalid),
    }
}

fn prompt_arguments_invalid(arguments: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if arguments.is_null() {
        return;
    }
    if arguments.kind() != Type::Array {
        out.add(arguments, format!("`arguments` is {}, not a list", arguments.kind().named()));
    } else if let Some(other) = arguments.items().find(|argument| argument.kind() != Type::Object) {
        out.add(arguments, format!("an argument is {}, not an object", other.kind().named()));
    }
}

crate::rule! {
    /// Whether an argument is required is true or false.
    ///
    /// `"yes"` makes strict clients refuse the whole list.
    static PROMPT_ARGUMENT_REQUIRED_TYPE = {
        id: "mcp/prompt-argument-required-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/prompts/*/arguments/*/required",
        fix: "Use true or false.",
        spec: "schema PromptArgument",
        examples: &[
            fires(&["/prompts/0/arguments/0/required"], r#"{"prompts": [{"arguments": [{"required": "yes"}]}]}"#),
            silent(r#"{"prompts": [{"arguments": [{"required": null}]}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/prompts/*/arguments/*/required"], prompt_argument_required_type),
    }
}

fn prompt_argument_required_type(required: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !matches!(required.kind(), Type::Bool | Type::Null) {
        out.add(required, format!("`required` is {}, not true or false", required.kind().named()));
    }
}

crate::rule! {
    /// A prompt has a name.
    ///
    /// It is what a prompt is fetched by; strict clients refuse the whole list for one without.
    static PROMPT_NAME_MISSING = {
        id: "mcp/prompt-name-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/prompts/*/name",
        fix: "Add name.",
        spec: "schema Prompt",
        seeds: &["validator:2.2.2.2"],
        examples: &[
            fires(&["/prompts/0/name"], r#"{"prompts": [{"name": null}]}"#),
            silent(r#"{"prompts": [{"name": "x"}]}"#),
        ],
        check: Check::Document(prompt_name_missing),
    }
}

fn prompt_name_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    listed(result, context).for_each(|prompt| demand_text(prompt, "name", out));
}

crate::rule! {
    /// No two prompts have the same name.
    ///
    /// A client fetches by name, so one of them can never be had.
    static PROMPT_NAME_DUPLICATE = {
        id: "mcp/prompt-name-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/prompts/*/name",
        fix: "Make names unique.",
        spec: "schema Prompt",
        examples: &[
            fires(&["/prompts/1/name"], r#"{"prompts": [{}, {}]}"#),
            silent(r#"{"prompts": [{}, {"name": "plan_trip_2"}]}"#),
        ],
        check: Check::Document(prompt_name_duplicate),
    }
}

fn prompt_name_duplicate(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    report_repeated(listed(result, context), "name", out);
}

crate::rule! {
    /// A prompt has no title.
    ///
    /// People then see its technical name.
    static PROMPT_TITLE_MISSING = {
        id: "mcp/prompt-title-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        on: ON,
        place: "/prompts/*/title",
        fix: "Add title.",
        spec: "schema Prompt",
        seeds: &["validator:2.2.2.3"],
        examples: &[
            fires(&["/prompts/0/title"], r#"{"prompts": [{"title": null}]}"#),
            silent(r#"{"prompts": [{"title": "Plan a trip"}]}"#),
        ],
        check: Check::Document(prompt_title_missing),
    }
}

fn prompt_title_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for prompt in listed(result, context).filter(|prompt| prompt.get("title").is_none()) {
        out.add_missing(prompt, "title", "no title");
    }
}

crate::rule! {
    /// An argument has a name.
    ///
    /// It is what a value is given under; strict clients refuse the whole list for one without.
    static PROMPT_ARGUMENT_NAME_MISSING = {
        id: "mcp/prompt-argument-name-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: ON,
        place: "/prompts/*/arguments/*/name",
        fix: "Name the argument.",
        spec: "schema PromptArgument",
        examples: &[
            fires(&["/prompts/0/arguments/0/name"], r#"{"prompts": [{"arguments": [{"name": null}]}]}"#),
            silent(r#"{"prompts": [{"arguments": [{"description": null}]}]}"#),
        ],
        check: Check::Each(&["/prompts/*/arguments/*"], prompt_argument_name_missing),
    }
}

fn prompt_argument_name_missing(argument: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if argument.kind() == Type::Object {
        demand_text(argument, "name", out);
    }
}

crate::rule! {
    /// No two arguments of a prompt have the same name.
    ///
    /// Only one of them can be given a value.
    static PROMPT_ARGUMENT_DUPLICATE = {
        id: "mcp/prompt-argument-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        on: ON,
        place: "/prompts/*/arguments/*/name",
        fix: "Make argument names unique.",
        spec: "schema PromptArgument",
        examples: &[
            fires(&["/prompts/0/arguments/1/name"], r#"{"prompts": [{"arguments": [{}, {}]}]}"#),
            silent(r#"{"prompts": [{}, {"name": "plan_trip_2"}]}"#),
        ],
        check: Check::Each(ARGUMENTS, prompt_argument_duplicate),
    }
}

fn prompt_argument_duplicate(arguments: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for name in arguments.items().filter_map(|argument| argument.get("name")) {
        if let Some(text) = name.text().filter(|text| !text.is_empty())
            && !seen.insert(text)
        {
            out.add(name, format!("{} stands twice among the arguments", quote(text)));
        }
    }
}
