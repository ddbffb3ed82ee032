//! Runs the examples of every rule: what is shown on a rule's page is what is tested here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::catalogue;
use crate::document::Document;
use crate::judge::{Given, Settings, Subject, judge};
use crate::kind::Kind;
use crate::report::{Outcome, Report};
use crate::rule::{Axis, Check, Class, Example, Rule, Severity};
use crate::session::{Session, Surface};
use crate::session_judge::{judge_session, origin};

/// The base documents, newest version first within a kind.
const BASES: &[(&str, Kind, &str, &str)] = &[
    ("a2a-1.0", Kind::AgentCard, "1.0", include_str!("../examples/a2a-1.0.json")),
    ("a2a-hybrid", Kind::AgentCard, "hybrid", include_str!("../examples/a2a-hybrid.json")),
    ("a2a-0.3", Kind::AgentCard, "0.3", include_str!("../examples/a2a-0.3.json")),
    ("a2a-0.2", Kind::AgentCard, "0.2", include_str!("../examples/a2a-0.2.json")),
    ("a2a-0.1", Kind::AgentCard, "0.1", include_str!("../examples/a2a-0.1.json")),
    ("history-1.0", Kind::History, "1.0", include_str!("../examples/history.json")),
    ("server-json-2025-12-11", Kind::ServerJson, "2025-12-11", include_str!("../examples/server-json-2025-12-11.json")),
    ("server-json-draft", Kind::ServerJson, "draft", include_str!("../examples/server-json-draft.json")),
    ("server-json-2025-09-29", Kind::ServerJson, "2025-09-29", include_str!("../examples/server-json-2025-09-29.json")),
    ("server-json-2025-09-16", Kind::ServerJson, "2025-09-16", include_str!("../examples/server-json-2025-09-16.json")),
    ("server-json-2025-07-09", Kind::ServerJson, "2025-07-09", include_str!("../examples/server-json-2025-07-09.json")),
    ("registry-entry", Kind::RegistryEntry, "v0.1", include_str!("../examples/registry-entry.json")),
    ("registry-page", Kind::RegistryPage, "v0.1", include_str!("../examples/registry-page.json")),
    ("registry-walk", Kind::RegistryWalk, "v0.1", include_str!("../examples/registry-walk.json")),
    ("registry-drift", Kind::RegistryDrift, "v0.1", include_str!("../examples/registry-drift.json")),
    ("registry-history", Kind::RegistryHistory, "v0.1", include_str!("../examples/registry-history.json")),
    ("mcp-discover", Kind::McpDiscoverResult, "2026-07-28", include_str!("../examples/mcp-discover.json")),
    (
        "mcp-initialize-2025-11-25",
        Kind::McpInitializeResult,
        "2025-11-25",
        include_str!("../examples/mcp-initialize-2025-11-25.json"),
    ),
    (
        "mcp-initialize-2025-03-26",
        Kind::McpInitializeResult,
        "2025-03-26",
        include_str!("../examples/mcp-initialize-2025-03-26.json"),
    ),
    (
        "mcp-tools-2026-07-28",
        Kind::McpToolsListResult,
        "2026-07-28",
        include_str!("../examples/mcp-tools-2026-07-28.json"),
    ),
    (
        "mcp-tools-2025-11-25",
        Kind::McpToolsListResult,
        "2025-11-25",
        include_str!("../examples/mcp-tools-2025-11-25.json"),
    ),
    ("mcp-resources", Kind::McpResourcesListResult, "2026-07-28", include_str!("../examples/mcp-resources.json")),
    (
        "mcp-templates",
        Kind::McpResourceTemplatesListResult,
        "2026-07-28",
        include_str!("../examples/mcp-templates.json"),
    ),
    ("mcp-prompts", Kind::McpPromptsListResult, "2026-07-28", include_str!("../examples/mcp-prompts.json")),
    ("mcp-call", Kind::McpCallToolResult, "2026-07-28", include_str!("../examples/mcp-call.json")),
    ("mcp-read", Kind::McpReadResourceResult, "2026-07-28", include_str!("../examples/mcp-read.json")),
    ("mcp-prompt", Kind::McpGetPromptResult, "2026-07-28", include_str!("../examples/mcp-prompt.json")),
    ("mcp-complete", Kind::McpCompleteResult, "2026-07-28", include_str!("../examples/mcp-complete.json")),
    (
        "mcp-input-required",
        Kind::McpInputRequiredResult,
        "2026-07-28",
        include_str!("../examples/mcp-input-required.json"),
    ),
    ("mcp-elicitation", Kind::McpElicitationRequest, "2026-07-28", include_str!("../examples/mcp-elicitation.json")),
    (
        "mcp-message-2026-07-28",
        Kind::McpServerMessage,
        "2026-07-28",
        include_str!("../examples/mcp-message-2026-07-28.json"),
    ),
    (
        "mcp-message-2025-11-25",
        Kind::McpServerMessage,
        "2025-11-25",
        include_str!("../examples/mcp-message-2025-11-25.json"),
    ),
    ("mcp-history", Kind::McpHistory, "2026-07-28", include_str!("../examples/mcp-history.json")),
    ("mcp-pages", Kind::McpListPages, "2026-07-28", include_str!("../examples/mcp-pages.json")),
    ("mcp-tools-pair", Kind::McpToolsListPair, "2026-07-28", include_str!("../examples/mcp-tools-pair.json")),
    (
        "jsonrpc-2026-07-28",
        Kind::JsonrpcResponse,
        "2026-07-28",
        include_str!("../examples/mcp-jsonrpc-2026-07-28.json"),
    ),
    (
        "jsonrpc-2025-11-25",
        Kind::JsonrpcResponse,
        "2025-11-25",
        include_str!("../examples/mcp-jsonrpc-2025-11-25.json"),
    ),
    ("server-card-v1", Kind::McpServerCard, "v1", include_str!("../examples/mcp-server-card-v1.json")),
    (
        "server-card-sep-1649",
        Kind::McpServerCard,
        "sep-1649",
        include_str!("../examples/mcp-server-card-sep-1649.json"),
    ),
    ("ai-catalog", Kind::McpAiCatalog, "v1", include_str!("../examples/mcp-ai-catalog.json")),
    (
        "oauth-protected-resource",
        Kind::OauthProtectedResource,
        "2026-07-28",
        include_str!("../examples/oauth-protected-resource.json"),
    ),
    (
        "oauth-authorization-server",
        Kind::OauthAuthorizationServer,
        "2026-07-28",
        include_str!("../examples/oauth-authorization-server.json"),
    ),
    (
        "oauth-openid-configuration",
        Kind::OauthOpenidConfiguration,
        "2026-07-28",
        include_str!("../examples/oauth-openid-configuration.json"),
    ),
    (
        "oauth-client-metadata",
        Kind::OauthClientMetadata,
        "2026-07-28",
        include_str!("../examples/oauth-client-metadata.json"),
    ),
    (
        "oauth-token-response",
        Kind::OauthTokenResponse,
        "2026-07-28",
        include_str!("../examples/oauth-token-response.json"),
    ),
    (
        "oauth-authorization-server-2025",
        Kind::OauthAuthorizationServer,
        "2025-11-25",
        include_str!("../examples/oauth-authorization-server.json"),
    ),
    (
        "conversation-2026-07-28",
        Kind::McpEndpoint,
        "2026-07-28",
        include_str!("../examples/mcp-conversation-2026-07-28.json"),
    ),
    (
        "conversation-2025-11-25",
        Kind::McpEndpoint,
        "2025-11-25",
        include_str!("../examples/mcp-conversation-2025-11-25.json"),
    ),
    ("openapi-3.1", Kind::Openapi, "3.1", include_str!("../examples/openapi-3.1.json")),
    ("openapi-3.0", Kind::Openapi, "3.0", include_str!("../examples/openapi-3.0.json")),
];

fn base_of(rule: &Rule, example: &Example) -> Option<(Kind, &'static str, &'static str)> {
    let fits = |kind: Kind, version: &str| {
        (rule.on.is_empty() || rule.on.contains(&kind))
            && (rule.versions.contains(&version) || rule.versions.contains(&"all"))
    };
    BASES
        .iter()
        .find(
            |(name, kind, version, _)| {
                if example.base.is_empty() { fits(*kind, version) } else { *name == example.base }
            },
        )
        .map(|(_, kind, version, text)| (*kind, *version, *text))
}

/// Lays one value over another: objects merge, `null` removes, array elements lie over the base's first element.
fn lay_over(base: &Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            let mut merged = base.clone();
            for (key, value) in over {
                if value.is_null() {
                    merged.remove(key);
                } else {
                    let laid = lay_over(base.get(key).unwrap_or(&Value::Null), value);
                    merged.insert(key.clone(), laid);
                }
            }
            Value::Object(merged)
        }
        (Value::Array(base), Value::Array(over)) => {
            let first = base.first().cloned().unwrap_or(Value::Null);
            Value::Array(over.iter().map(|item| lay_over(&first, item)).collect())
        }
        (_, Value::Object(over)) => lay_over(&Value::Object(Map::new()), &Value::Object(over.clone())),
        (_, over) => over.clone(),
    }
}

/// Writes out `{"$repeat": [value, times]}`: a long string, or a list in which `#` is the number of the item.
fn repeated(value: &Value) -> Value {
    match value {
        Value::Object(members) => match members.get("$repeat").and_then(Value::as_array).map(Vec::as_slice) {
            Some([Value::String(unit), times]) => unit.repeat(count(times)).into(),
            Some([Value::Array(items), times]) => {
                (0..count(times)).flat_map(|n| items.iter().map(move |item| numbered(item, n))).collect()
            }
            Some([item, times]) => (0..count(times)).map(|n| numbered(item, n)).collect(),
            _ => members.iter().map(|(key, value)| (key.clone(), repeated(value))).collect::<Map<_, _>>().into(),
        },
        Value::Array(items) => items.iter().map(repeated).collect(),
        other => other.clone(),
    }
}

fn count(times: &Value) -> usize {
    times.as_u64().and_then(|times| times.try_into().ok()).expect("the example says how often")
}

fn numbered(item: &Value, n: usize) -> Value {
    serde_json::from_str(&item.to_string().replace('#', &n.to_string())).expect("a number breaks no JSON")
}

/// Whether an example of the rule lies over nothing: it is a body, or a conversation.
fn is_text_itself(rule: &Rule) -> bool {
    matches!(rule.check, Check::Body(_) | Check::Way(_) | Check::Session(_) | Check::Conversation(_))
}

/// The conversation of an example: each exchange lies over that of its step in the base, where there is one for it, else
/// over an odd request of that era.
fn conversation_text(rule: &Rule, base: &str, text: &str) -> String {
    let parsed =
        |text: &str| -> Value { serde_json::from_str(text).unwrap_or_else(|e| panic!("{}: {e}: {text}", rule.id)) };
    let (steps, mut example) = (parsed(base), parsed(text));
    for exchange in example["exchanges"].as_array_mut().expect("the example has exchanges") {
        let step = exchange["step"].as_str().unwrap_or_default();
        let base = steps.get(step).unwrap_or(&steps["probe"]);
        *exchange = lay_over(base, exchange);
    }
    example.to_string()
}

fn report_of(rule: &Rule, example: &Example) -> Report {
    let given: Given = match example.context {
        "" => Given::default(),
        context => serde_json::from_str(context).expect("the example's context is a vector's context"),
    };
    let base = base_of(rule, example);
    let kind = base.map_or_else(|| rule.on.first().copied().unwrap_or(Kind::Unknown), |(kind, ..)| kind);
    let text = match base {
        Some((.., base)) if !example.whole && !is_text_itself(rule) => {
            let base: Value = serde_json::from_str(base).expect("the base is JSON");
            let over: Value =
                serde_json::from_str(example.text).unwrap_or_else(|e| panic!("{}: {e}: {}", rule.id, example.text));
            lay_over(&base, &repeated(&over)).to_string()
        }
        _ => example.text.to_owned(),
    };
    let text = match (rule.check, base) {
        (Check::Conversation(_), Some((.., base))) if !example.whole => conversation_text(rule, base, &text),
        _ => text,
    };
    let mut settings = Settings::default();
    settings.a2a.example_domains_are_placeholders = false;
    for (key, value) in &given.settings {
        settings.set(key, value.clone()).expect("the example's setting exists");
    }
    if matches!(rule.check, Check::Way(_) | Check::Session(_) | Check::Conversation(_)) {
        let surface = if kind == Kind::McpEndpoint { Surface::Mcp } else { Surface::AgentCard };
        return session_report(&text, surface, &given, &settings);
    }
    let stated = (rule.id != catalogue::KIND_UNRECOGNISED).then_some(kind);
    // Neither an MCP message nor metadata shows the revision it was exchanged in.
    let hides_it = crate::mcp::is_message(kind) || crate::oauth::is_metadata(kind);
    let version = base.filter(|_| hides_it).map(|(_, version, _)| version);
    let subject =
        Subject { kind: stated, version, origin: origin(&given, None), given: &given, session: None, answer: None };
    judge(&body(&text), &subject, &settings)
}

/// The headers of a card that is served as it should be: `"headers:card"` stands for them.
const CARD_HEADERS: &str = r#"{"content-type": "application/json", "cache-control": "max-age=3600", "etag": "\"1\"",
    "strict-transport-security": "max-age=31536000"}"#;

/// Lays every object that names its base (`"$base"`) over it.
fn on_bases(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let laid: Map<String, Value> = members.iter().map(|(key, value)| (key.clone(), on_bases(value))).collect();
            let Some(name) = laid.get("$base").and_then(Value::as_str) else { return laid.into() };
            let (.., base) = BASES.iter().find(|(base, ..)| *base == name).expect("the base exists");
            let mut over = laid.clone();
            over.remove("$base");
            lay_over(&serde_json::from_str(base).expect("the base is JSON"), &over.into())
        }
        Value::Array(items) => items.iter().map(on_bases).collect(),
        other => other.clone(),
    }
}

/// A conversation; `"base:NAME"` in place of a body stands for that base document, `{"$base": "NAME", …}` for one with
/// something laid over it.
fn session_report(text: &str, surface: Surface, given: &Given, settings: &Settings) -> Report {
    let filled =
        BASES.iter().fold(text.to_owned(), |text, (name, _, _, base)| text.replace(&format!("\"base:{name}\""), base));
    let filled = filled.replace("\"headers:card\"", CARD_HEADERS);
    let filled: Value = serde_json::from_str(&filled).unwrap_or_else(|e| panic!("{e}: {filled}"));
    let session: Session = serde_json::from_value(on_bases(&filled)).expect("the example is a session");
    let surface = given.surface.as_deref().map_or(Ok(surface), str::parse).expect("the surface exists");
    judge_session(&session, surface, None, given, settings)
}

/// The body of an example; `base64:` stands before one that is no text.
fn body(text: &str) -> Document {
    match text.strip_prefix("base64:") {
        Some(encoded) => Document::read(&STANDARD.decode(encoded).expect("the example is base64")),
        None => Document::from_text(text),
    }
}

/// Pointers at which a rule fired.
fn pointers(report: &Report, rule: &Rule) -> Vec<String> {
    let of_rule = report.results.iter().find(|result| result.rule.id == rule.id);
    match of_rule.map(|result| &result.outcome) {
        Some(Outcome::Fires(occurrences)) => occurrences.iter().map(|o| o.pointer.clone()).collect(),
        _ => Vec::new(),
    }
}

/// Whatever else was said, facts and hints left out.
fn others(report: &Report, rule: &Rule, example: &Example) -> Vec<String> {
    report
        .fired()
        .filter(|(other, _)| other.id != rule.id && !example.beside.contains(&other.id))
        .filter(|(other, _)| other.class == Class::Finding && other.severity > Severity::Info)
        .flat_map(|(other, found)| found.iter().map(move |o| format!("{} {}: {}", other.id, o.pointer, o.message)))
        .collect()
}

#[test]
fn every_rule_fires_where_its_examples_say_and_nowhere_else() {
    let mut wrong = Vec::new();
    for rule in catalogue::rules() {
        for example in rule.examples {
            let report = report_of(rule, example);
            let at = pointers(&report, rule);
            if at != example.fires {
                wrong.push(format!(
                    "{}: fires at {at:?}, its example says {:?}: {}",
                    rule.id, example.fires, example.text
                ));
            }
            let others = others(&report, rule, example);
            if !others.is_empty() && !matches!(rule.check, Check::Body(_)) {
                wrong.push(format!("{}: beside it {others:?}: {}", rule.id, example.text));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_rule_says_what_it_demands() {
    let mut wrong = Vec::new();
    let mut ids = std::collections::HashSet::new();
    for rule in catalogue::rules() {
        let graded = rule.impact.is_some() || rule.severity == Severity::Info || rule.axis != Axis::Conformity;
        let checks = [
            (ids.insert(rule.id), "its id stands twice"),
            (rule.title().len() > 10, "it has no title"),
            (!rule.fix.is_empty() && !rule.spec.is_empty(), "it names no fix or specification"),
            (graded, "an error or warning needs an impact"),
            (rule.class == Class::Finding || rule.severity == Severity::Info, "a fact has no severity"),
            (
                rule.examples.iter().any(|e| !e.fires.is_empty()) || matches!(rule.check, Check::Session(_)),
                "no example fires",
            ),
            (rule.yields_to.iter().all(|id| catalogue::find(id).is_some()), "it yields to an unknown rule"),
        ];
        wrong.extend(checks.iter().filter(|(holds, _)| !holds).map(|(_, what)| format!("{}: {what}", rule.id)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
