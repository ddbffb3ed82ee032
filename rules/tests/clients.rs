//! The table of clients against the rules: each document has the fault it is named for, and impact is what was seen.

use std::collections::BTreeMap;

use plumbline_rules::catalogue;
use plumbline_rules::clients::{Does, Row, table};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Report;
use plumbline_rules::rule::{Impact, Rule};
use serde_json::Value;

/// Members of a younger revision than the one the documents are served in.
const YOUNGER: &[&str] = &["resultType", "ttlMs", "cacheScope", "_meta"];

/// The revision that the MCP documents are served in.
const REVISION: &str = "2025-11-25";

/// Rules whose own documents may show another breaking rule as well: the one cannot be without the other.
const BESIDE: &[(&str, &str)] = &[
    // A card without a way in that any client knows has the misspelling or the missing member as its cause.
    ("a2a/binding-misspelled", "a2a/no-common-transport"),
    ("a2a/interface-binding-required", "a2a/no-common-transport"),
    // A cursor that is null is both.
    ("mcp/null-for-optional", "mcp/cursor-type"),
];

/// Clients that refuse some faults of a rule and take others, which `clients` of a rule cannot say.
const SOMETIMES: &[(&str, &str)] = &[
    // It reads `jsonrpc` as JSONRPC, and not `json-rpc`.
    ("a2a/binding-misspelled", "@a2a-js/sdk 1.3.0"),
    // It refuses `capabilities` that are a text, and reads every other wrong type past.
    ("a2a/wrong-type", "@a2a-js/sdk 1.3.0"),
    // It takes a scheme without a type for mutual TLS, and refuses one of an unknown type.
    ("a2a/scheme-type-unrecognised", "a2a-sdk 0.3.26"),
    // It takes a cursor that is null for none, and no other that is not text.
    ("mcp/cursor-type", "mcp 1.30.0"),
];

/// Rules that break clients by a run, whose run needs more than a served document; why it is not in the table.
const OTHERWISE: &[(&str, &str)] =
    &[("oauth/", "an authorization server has to play along; read in the released source")];

fn base(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.json"));
    let text = std::fs::read_to_string(path).expect("the sound document is in the examples");
    let mut document: Value = serde_json::from_str(&text).expect("it is JSON");
    let is_list =
        ["mcp-tools", "mcp-resources", "mcp-templates", "mcp-prompts"].iter().any(|list| name.starts_with(list));
    if let (true, Some(members)) = (is_list, document.as_object_mut()) {
        YOUNGER.iter().for_each(|member| drop(members.remove(*member)));
    }
    document
}

fn text_of(row: &Row) -> String {
    if let Some(raw) = &row.raw {
        return raw.clone();
    }
    let mut document = base(&row.over);
    for pointer in &row.remove {
        let (holder, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let holder = document.pointer_mut(holder).expect("the holder is there");
        assert!(holder.as_object_mut().expect("an object").remove(key).is_some(), "{pointer} is not in {}", row.over);
    }
    for (pointer, value) in &row.set {
        let (holder, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        match document.pointer_mut(holder).expect("the holder is there") {
            Value::Array(items) => items[key.parse::<usize>().expect("a position")] = value.clone(),
            Value::Object(members) => drop(members.insert(key.to_owned(), value.clone())),
            other => panic!("{holder} is {other}"),
        }
    }
    document.to_string()
}

fn kind_of(over: &str) -> Kind {
    let kinds = [
        ("a2a-", Kind::AgentCard),
        ("mcp-initialize", Kind::McpInitializeResult),
        ("mcp-tools", Kind::McpToolsListResult),
        ("mcp-resources", Kind::McpResourcesListResult),
        ("mcp-templates", Kind::McpResourceTemplatesListResult),
        ("mcp-prompts", Kind::McpPromptsListResult),
        ("mcp-jsonrpc", Kind::JsonrpcResponse),
    ];
    kinds.into_iter().find(|(start, _)| over.starts_with(start)).expect("a kind").1
}

fn judged(over: &str, text: &str) -> Report {
    let mut settings = Settings::default();
    settings.a2a.example_domains_are_placeholders = false;
    let version = over.starts_with("mcp").then_some(REVISION);
    let given = Given::default();
    let subject = Subject {
        kind: Some(kind_of(over)),
        version,
        origin: Origin::Nowhere,
        given: &given,
        session: None,
        answer: None,
    };
    judge(&Document::from_text(text), &subject, &settings)
}

/// The halves of a profile, as `clients` of rules name them.
fn half(row: &Row) -> String {
    let report = judged(&row.over, &text_of(row));
    match report.detected.profile.strip_prefix("a2a-") {
        Some(version) if row.raw.is_none() => version.to_owned(),
        _ => row.over.split_once('-').map_or_else(String::new, |(_, version)| version.to_owned()),
    }
}

fn breaking(report: &Report) -> Vec<&'static str> {
    let breaks = |found: &[plumbline_rules::report::Occurrence]| {
        found.iter().any(|occurrence| occurrence.impact == Some(Impact::BreaksClients))
    };
    report.findings().filter(|(_, found)| breaks(found)).map(|(rule, _)| rule.id).collect()
}

/// Whether `clients` of a rule say that this client refuses this half.
fn says_refuses(rule: &Rule, client: &str, half: &str) -> bool {
    rule.clients.iter().any(|line| {
        let (named, said) = line.split_once(": ").expect("NAME: EFFECT");
        let (said, scope) = said.split_once(" (").unwrap_or((said, ""));
        named == client
            && said == "refuses"
            && (scope.is_empty() || scope.trim_end_matches(')').split(", ").any(|h| h == half))
    })
}

#[test]
fn each_document_has_the_fault_it_is_named_for_and_no_other_that_breaks_clients() {
    for row in &table().rows {
        let report = judged(&row.over, &text_of(row));
        let fired: Vec<_> = report.fired().map(|(rule, _)| rule.id).collect();
        assert!(fired.contains(&row.rule.as_str()), "{} in {} ({}): {fired:?}", row.rule, row.over, row.change);
        for rule in breaking(&report).into_iter().filter(|rule| *rule != row.rule) {
            let is_known = BESIDE.contains(&(row.rule.as_str(), rule));
            assert!(is_known, "{} in {} ({}) also breaks {rule}", row.rule, row.over, row.change);
        }
    }
}

#[test]
fn the_sound_documents_break_nothing() {
    for row in &table().rows {
        assert_eq!(breaking(&judged(&row.over, &base(&row.over).to_string())), Vec::<&str>::new(), "{}", row.over);
    }
}

#[test]
fn impact_is_what_was_seen() {
    let mut seen: BTreeMap<(&str, String, &str), bool> = BTreeMap::new();
    for row in &table().rows {
        let half = half(row);
        for client in row.clients.keys().filter(|client| row.does(client) != Some(Does::Unaware)) {
            *seen.entry((&row.rule, half.clone(), client)).or_default() |= row.does(client) == Some(Does::Refuses);
        }
        if row.clients.values().any(|outcome| outcome.outcome == Does::Refuses) {
            let rule = catalogue::find(&row.rule).expect("the rule exists");
            let versions = if row.over.starts_with("mcp") { [REVISION] } else { [half.as_str()] };
            let impact = rule.impact_in(&versions);
            assert_eq!(impact, Some(Impact::BreaksClients), "{} is refused in {}", row.rule, row.over);
        }
    }
    for ((rule, half, client), refuses) in seen {
        let rule = catalogue::find(rule).expect("the rule exists");
        // Of a rule for which no client is named, none can read the document.
        let is_told =
            says_refuses(rule, client, &half) || (rule.clients.is_empty() && !rule.impact_evidence.is_empty());
        let is_told = is_told || SOMETIMES.contains(&(rule.id, client));
        assert!(is_told || !refuses, "{}: {client} refuses {half}, and the rule does not say so", rule.id);
        let is_claimed = says_refuses(rule, client, &half);
        assert!(refuses || !is_claimed, "{}: {client} opens {half}, and the rule says that it refuses", rule.id);
    }
}

#[test]
fn what_breaks_clients_has_a_row_in_which_one_refuses_or_a_stated_reason() {
    for rule in catalogue::rules().filter(|rule| rule.axis == plumbline_rules::rule::Axis::Conformity) {
        let breaks = rule.impact == Some(Impact::BreaksClients)
            || rule.impact_overrides.iter().any(|(_, impact)| *impact == Impact::BreaksClients);
        if !breaks {
            continue;
        }
        let mut rows = table().rows.iter().filter(|row| row.rule == rule.id);
        let is_refused = rows.any(|row| row.clients.values().any(|outcome| outcome.outcome == Does::Refuses));
        let says_why = rule.clients.is_empty() && !rule.impact_evidence.is_empty();
        let is_otherwise = OTHERWISE.iter().any(|(start, _)| rule.id.starts_with(start));
        assert!(is_refused || says_why || is_otherwise, "{} has neither a row nor a reason", rule.id);
    }
}
