//! Lists: that what is declared is served and what is served was declared, and what becomes of cursors.

use super::ALL;
use super::heard::{ON, answered, heard};
use crate::conversation::{Conversation, Turn};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &TOOLS_DECLARED_NOT_SERVED,
    &TOOLS_SERVED_NOT_DECLARED,
    &RESOURCES_DECLARED_NOT_SERVED,
    &RESOURCES_SERVED_NOT_DECLARED,
    &PROMPTS_DECLARED_NOT_SERVED,
    &PROMPTS_SERVED_NOT_DECLARED,
    &TEMPLATES_NOT_SERVED,
    &PAGINATION_CURSOR_REFUSED,
    &PAGINATION_CURSOR_UNSTABLE,
    &INVALID_CURSOR_ACCEPTED,
];

/// The cursor that a request carries.
fn cursor<'t>(turn: &'t Turn<'_>) -> Option<&'t str> {
    turn.asked.as_ref()?.pointer("/params/cursor")?.as_str()
}

/// Whether the server declared a capability; `None` where nobody knows what it declared.
fn declares(conversation: &Conversation<'_>, turn: &Turn<'_>, capability: &str) -> Option<bool> {
    Some(conversation.capabilities(turn)?.given(capability).is_some())
}

/// Fires where a declared list is refused. That one needs more of the client (-32021) is no refusal.
fn declared_not_served(conversation: &Conversation<'_>, step: Step, capability: &str, out: &mut Occurrences) {
    for turn in heard(conversation, &[step], out) {
        if cursor(turn).is_some() || declares(conversation, turn, capability) != Some(true) {
            continue;
        }
        if let Some(error) = turn.error().filter(|_| turn.error_code() != Some(-32021) && !turn.says_unauthorized()) {
            let method = turn.method().unwrap_or_default();
            out.add_in(
                turn.revision,
                turn.place(),
                format!("{capability} is declared, and `{method}` is answered with {}", quote(error.raw())),
            );
        }
    }
}

/// Fires where a list that was not declared holds something.
fn served_not_declared(conversation: &Conversation<'_>, steps: &[Step], list: &str, out: &mut Occurrences) {
    let method = format!("{list}/list");
    for turn in answered(conversation, steps, out) {
        if turn.method() != Some(&method) || declares(conversation, turn, list) != Some(false) {
            continue;
        }
        let items = turn.result().and_then(|result| result.get(list)).and_then(Node::len).unwrap_or(0);
        if items > 0 {
            out.add_in(turn.revision, turn.place(), format!("{list} is not declared, and `{method}` lists {items}"));
        }
    }
}

crate::rule! {
    /// Declared tools can be listed.
    ///
    /// Clients list them at once after the handshake, and report a broken server when it fails.
    static TOOLS_DECLARED_NOT_SERVED = {
        id: "mcp/tools-declared-not-served",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 24,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:tools/list",
        fix: "Serve tools/list or drop the capability.",
        spec: "2026-07-28 server/tools, Capabilities",
        seeds: &["validator:1.3.3.1", "validator:1.3.3.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": null}}}}}, {"step": "tools/list", "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(tools_declared_not_served),
    }
}

fn tools_declared_not_served(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    declared_not_served(conversation, Step::ToolsList, "tools", out);
}

crate::rule! {
    /// Tools that can be listed are declared.
    ///
    /// Clients ask only for what is declared: these tools nobody sees.
    static TOOLS_SERVED_NOT_DECLARED = {
        id: "mcp/tools-served-not-declared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:tools/list",
        fix: "Declare the tools capability.",
        spec: "2026-07-28 server/tools, Capabilities",
        seeds: &["validator:2.3.1.1", "validator:1.3.3.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": null}}}}}, {"step": "undeclared", "request": {"body": {"method": "tools/list"}}, "response": {"body": {"result": {"tools": [{"name": "tide_table"}]}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"tools": null}}}}}, {"step": "undeclared", "request": {"body": {"method": "tools/list"}}, "response": {"body": {"result": {"tools": []}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(tools_served_not_declared),
    }
}

fn tools_served_not_declared(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    served_not_declared(conversation, &[Step::Undeclared, Step::ToolsList], "tools", out);
}

crate::rule! {
    /// Declared resources can be listed.
    ///
    /// Clients list them when they are declared, and report a broken server when it fails.
    static RESOURCES_DECLARED_NOT_SERVED = {
        id: "mcp/resources-declared-not-served",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:resources/list",
        fix: "Serve resources/list or drop the capability.",
        spec: "2026-07-28 server/resources, Capabilities",
        seeds: &["validator:1.3.3.1", "validator:1.3.3.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"resources": {}}}}}}, {"step": "resources/list", "request": {"body": {"method": "resources/list"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "resources/list", "request": {"body": {"method": "resources/list"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(resources_declared_not_served),
    }
}

fn resources_declared_not_served(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    declared_not_served(conversation, Step::ResourcesList, "resources", out);
}

crate::rule! {
    /// Resources that can be listed are declared.
    ///
    /// Clients ask only for what is declared: these resources nobody sees.
    static RESOURCES_SERVED_NOT_DECLARED = {
        id: "mcp/resources-served-not-declared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:resources/list",
        fix: "Declare the resources capability.",
        spec: "2026-07-28 server/resources, Capabilities",
        seeds: &["validator:2.1.1.1", "validator:1.3.3.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "undeclared", "request": {"body": {"method": "resources/list"}}, "response": {"body": {"result": {"resources": [{"uri": "tides://x", "name": "x"}]}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "undeclared", "request": {"body": {"method": "resources/list"}}, "response": {"body": {"result": {"resources": []}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(resources_served_not_declared),
    }
}

fn resources_served_not_declared(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    served_not_declared(conversation, &[Step::Undeclared, Step::ResourcesList], "resources", out);
}

crate::rule! {
    /// Declared prompts can be listed.
    ///
    /// Clients list them when they are declared, and report a broken server when it fails.
    static PROMPTS_DECLARED_NOT_SERVED = {
        id: "mcp/prompts-declared-not-served",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:prompts/list",
        fix: "Serve prompts/list or drop the capability.",
        spec: "2026-07-28 server/prompts, Capabilities",
        seeds: &["validator:1.3.3.1", "validator:1.3.3.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"prompts": {}}}}}}, {"step": "prompts/list", "request": {"body": {"method": "prompts/list"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "prompts/list", "request": {"body": {"method": "prompts/list"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(prompts_declared_not_served),
    }
}

fn prompts_declared_not_served(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    declared_not_served(conversation, Step::PromptsList, "prompts", out);
}

crate::rule! {
    /// Prompts that can be listed are declared.
    ///
    /// Clients ask only for what is declared: these prompts nobody sees.
    static PROMPTS_SERVED_NOT_DECLARED = {
        id: "mcp/prompts-served-not-declared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:prompts/list",
        fix: "Declare the prompts capability.",
        spec: "2026-07-28 server/prompts, Capabilities",
        seeds: &["validator:2.2.1.1", "validator:1.3.3.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "undeclared", "request": {"body": {"method": "prompts/list"}}, "response": {"body": {"result": {"prompts": [{"name": "p"}]}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "undeclared", "request": {"body": {"method": "prompts/list"}}, "response": {"body": {"result": {"prompts": []}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(prompts_served_not_declared),
    }
}

fn prompts_served_not_declared(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    served_not_declared(conversation, &[Step::Undeclared, Step::PromptsList], "prompts", out);
}

crate::rule! {
    /// Resource templates can be listed.
    ///
    /// A server without any answers with an empty list; some clients stop at the error.
    static TEMPLATES_NOT_SERVED = {
        id: "mcp/templates-not-served",
        basis: Basis::Hint,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:resources/templates/list",
        fix: "Return an empty resourceTemplates list.",
        spec: "2025-11-25 server/resources, Resource Templates",
        seeds: &["validator:2.1.4.1"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize", "response": {"body": {"result": {"capabilities": {"resources": {}}}}}}, {"step": "resources/templates/list", "request": {"body": {"method": "resources/templates/list"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "resources/templates/list", "request": {"body": {"method": "resources/templates/list"}}, "response": {"body": {"result": null, "error": {"code": -32601, "message": "Method not found"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(templates_not_served),
    }
}

fn templates_not_served(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::TemplatesList], out) {
        if turn.error_code() == Some(-32601) && declares(conversation, turn, "resources") == Some(true) {
            out.add_at(turn.place(), "resources are declared, and `resources/templates/list` is answered -32601");
        }
    }
}

crate::rule! {
    /// A cursor that was just given is taken.
    ///
    /// What lies behind it nobody gets to see otherwise.
    static PAGINATION_CURSOR_REFUSED = {
        id: "mcp/pagination-cursor-refused",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:list",
        fix: "Keep cursors valid.",
        spec: "2026-07-28 utilities/pagination",
        seeds: &["validator:4.6.1.2"],
        examples: &[
                fires(&["/exchanges/2/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "response": {"body": {"result": {"nextCursor": "p2"}}}}, {"step": "tools/list", "request": {"body": {"params": {"cursor": "p2"}}}, "response": {"body": {"result": null, "error": {"code": -32602, "message": "Invalid cursor"}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "request": {"body": {"params": {"cursor": "made-up"}}}, "response": {"body": {"result": null, "error": {"code": -32602, "message": "Invalid cursor"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(pagination_cursor_refused),
    }
}

fn pagination_cursor_refused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let steps = [Step::ToolsList, Step::ResourcesList, Step::TemplatesList, Step::PromptsList];
    let turns = heard(conversation, &steps, out);
    for pair in turns.windows(2) {
        let given = pair[0].result().and_then(|result| result.get("nextCursor")).and_then(Node::text);
        let is_next = given.is_some() && given == cursor(pair[1]) && pair[0].method() == pair[1].method();
        if let Some(error) = pair[1].error().filter(|_| is_next) {
            let cursor = quote(given.unwrap_or_default());
            out.add_in(
                pair[1].revision,
                pair[1].place(),
                format!("the cursor {cursor}, just given, is answered with {}", quote(error.raw())),
            );
        }
    }
}

crate::rule! {
    /// A cursor leads to one page.
    ///
    /// Asked for twice it leads to two, so that a client which tries again loses or repeats items.
    static PAGINATION_CURSOR_UNSTABLE = {
        id: "mcp/pagination-cursor-unstable",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Timing,
        on: ON,
        place: "step:list",
        fix: "Provide stable cursors.",
        spec: "2026-07-28 utilities/pagination",
        seeds: &["validator:4.6.1.2"],
        examples: &[
                fires(&["/exchanges/3/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "response": {"body": {"result": {"nextCursor": "p2"}}}}, {"step": "tools/list", "request": {"body": {"params": {"cursor": "p2"}}}, "response": {"body": {"result": {"tools": [{"name": "ebb_table", "description": "Gives the time of the next ebb."}]}}}}, {"step": "cursor-again", "request": {"body": {"method": "tools/list", "params": {"cursor": "p2"}}}, "response": {"body": {"result": {"tools": [{"name": "flood_table"}]}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "tools/list", "response": {"body": {"result": {"nextCursor": "p2"}}}}, {"step": "tools/list", "request": {"body": {"params": {"cursor": "p2"}}}, "response": {"body": {"result": {"tools": [{"name": "ebb_table", "description": "Gives the time of the next ebb."}]}}}}, {"step": "cursor-again", "request": {"body": {"method": "tools/list", "params": {"cursor": "p2"}}}, "response": {"body": {"result": {"tools": [{"name": "ebb_table"}]}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(pagination_cursor_unstable),
    }
}

fn pagination_cursor_unstable(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for again in heard(conversation, &[Step::CursorAgain], out) {
        let is_first = |turn: &&Turn<'_>| {
            turn.number < again.number
                && turn.method() == again.method()
                && cursor(turn).is_some()
                && cursor(turn) == cursor(again)
        };
        let Some(first) = conversation.turns.iter().find(is_first) else { continue };
        let (Some(one), Some(other)) = (names(first), names(again)) else { continue };
        if one != other {
            out.add_in(
                again.revision,
                again.place(),
                format!("the cursor {} leads to other items", quote(cursor(again).unwrap_or_default())),
            );
        }
    }
}

/// What a page lists, by name or address.
fn names<'t>(turn: &'t Turn<'_>) -> Option<Vec<&'t str>> {
    let result = turn.result()?;
    let list = result.members().find(|(_, value)| value.kind() == Type::Array)?.1;
    Some(list.items().filter_map(|item| item.get("name").or_else(|| item.get("uri"))?.text()).collect())
}

crate::rule! {
    /// A cursor that was never given is refused with -32602.
    ///
    /// A server that begins again from the start sends a client whose cursor has run out in circles.
    static INVALID_CURSOR_ACCEPTED = {
        id: "mcp/invalid-cursor-accepted",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:bad-cursor",
        fix: "Answer -32602.",
        spec: "2026-07-28 utilities/pagination, Error Handling",
        seeds: &["validator:4.6.1.2"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "bad-cursor", "request": {"body": {"method": "tools/list", "params": {"cursor": "plumbline-invalid-cursor"}}}, "response": {"body": {"result": {"tools": [{"name": "tide_table"}]}}}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "bad-cursor", "request": {"body": {"method": "tools/list", "params": {"cursor": "plumbline-invalid-cursor"}}}, "response": {"body": {"result": null, "error": {"code": -32602, "message": "Invalid cursor"}}}}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(invalid_cursor_accepted),
    }
}

fn invalid_cursor_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::BadCursor], out) {
        let is_same = |other: &&Turn<'_>| other.method() == turn.method() && other.revision == turn.revision;
        let pages = conversation
            .turns
            .iter()
            .filter(is_same)
            .any(|other| other.result().is_some_and(|result| result.given("nextCursor").is_some()));
        if names(turn).is_some_and(|names| !names.is_empty()) {
            let added = out.add_in(turn.revision, turn.place(), "a made-up cursor is answered with items");
            if !pages {
                added.severity(Severity::Info);
            }
        } else if let Some(code) = turn.error_code().filter(|code| *code != -32602) {
            out.add_in(turn.revision, turn.place(), format!("a made-up cursor is refused with {code}"));
        }
    }
    if conversation.of(Step::BadCursor).next().is_none() {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}
