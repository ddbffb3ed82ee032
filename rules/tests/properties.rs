//! What holds of judging whatever the document: it always gives the same, the order of members says nothing, and a member
//! nobody knows takes no finding away except where a rule says so.
//!
//! The documents are our base documents with a few faults put in at random.

use std::collections::BTreeSet;

use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Report;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

macro_rules! base {
    ($($name:literal: $kind:expr),+ $(,)?) => {
        &[$(($kind, include_str!(concat!("../examples/", $name, ".json")))),+]
    };
}

const BASES: &[(Kind, &str)] = base! {
    "a2a-1.0": Kind::AgentCard,
    "a2a-0.3": Kind::AgentCard,
    "a2a-hybrid": Kind::AgentCard,
    "server-json-2025-12-11": Kind::ServerJson,
    "registry-entry": Kind::RegistryEntry,
    "registry-page": Kind::RegistryPage,
    "mcp-server-card-v1": Kind::McpServerCard,
    "mcp-tools-2025-11-25": Kind::McpToolsListResult,
    "mcp-initialize-2025-11-25": Kind::McpInitializeResult,
    "oauth-protected-resource": Kind::OauthProtectedResource,
    "oauth-authorization-server": Kind::OauthAuthorizationServer,
    "openapi-3.1": Kind::Openapi,
    "openapi-3.0": Kind::Openapi,
};

/// Rules that fall silent by their own words: in a requirement or in `securitySchemes` every member is an entry, so that
/// with one more nothing is empty any more.
const BY_THEIR_OWN_WORDS: &[&str] = &["a2a/requirement-empty", "a2a/scheme-unused", "a2a/security-not-declared"];

fn judged(document: &Value, kind: Kind) -> Report {
    let given = Given::default();
    let subject = Subject {
        kind: Some(kind),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    judge(&Document::from_text(&document.to_string()), &subject, &Settings::default())
}

/// Rule and pointer of everything that fires.
fn fired(report: &Report) -> BTreeSet<(&'static str, String)> {
    report.fired().flat_map(|(rule, found)| found.iter().map(|o| (rule.id, o.pointer.clone()))).collect()
}

/// Every object or list in a document, by pointer.
fn containers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(at.to_owned());
            for (name, member) in members {
                containers(member, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                containers(item, &format!("{at}/{n}"), found);
            }
        }
        _ => {}
    }
}

/// Values of the wrong type or form.
fn wrong(n: usize) -> Value {
    let values = [json!(null), json!(""), json!(7), json!([]), json!({}), json!(" http://x "), json!(true), json!([1])];
    values[n % values.len()].clone()
}

/// Puts one fault in: a member of some object is gone, or something else.
fn spoiled(document: &mut Value, place: usize, member: usize, how: usize) {
    let mut places = Vec::new();
    containers(document, "", &mut places);
    let Some(place) = places.get(place % places.len().max(1)) else { return };
    let Some(members) = document.pointer_mut(place).and_then(Value::as_object_mut) else { return };
    let Some(name) = members.keys().nth(member % members.len().max(1)).cloned() else { return };
    if how.is_multiple_of(3) {
        members.remove(&name);
    } else {
        members.insert(name, wrong(how));
    }
}

/// The same document with the members of every object in another order: `serde_json` sorts by name, so the text is
/// written by hand.
fn reordered(value: &Value, seed: usize, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let by = |name: &str| name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            members.sort_by_key(|(name, _)| by(name));
            out.push('{');
            for (n, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                out.push_str(&json!(name).to_string());
                out.push(':');
                reordered(member, seed, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                reordered(item, seed, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

prop_compose! {
    fn spoiled_document()(
        base in 0..BASES.len(),
        faults in proptest::collection::vec((0usize..60, 0usize..12, 0usize..24), 0..5),
    ) -> (Kind, Value) {
        let (kind, text) = BASES[base];
        let mut document = serde_json::from_str(text).expect("a base document is JSON");
        for (place, member, how) in faults {
            spoiled(&mut document, place, member, how);
        }
        (kind, document)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn judging_twice_gives_the_same((kind, document) in spoiled_document()) {
        let (one, other) = (judged(&document, kind), judged(&document, kind));
        let outcomes = |report: &Report| report.results.iter().map(|r| (r.rule.id, r.outcome.clone())).collect::<Vec<_>>();
        prop_assert_eq!(outcomes(&one), outcomes(&other));
    }

    #[test]
    fn the_order_of_members_says_nothing((kind, document) in spoiled_document(), seed in 1usize..1_000_000) {
        let mut text = String::new();
        reordered(&document, seed, &mut text);
        let given = Given::default();
        let subject = Subject {
            kind: Some(kind), version: None, origin: Origin::PublicHost, given: &given, session: None, answer: None,
        };
        let other = judge(&Document::from_text(&text), &subject, &Settings::default());
        prop_assert_eq!(fired(&judged(&document, kind)), fired(&other), "{}", text);
    }

    #[test]
    fn a_member_nobody_knows_takes_no_finding_away((kind, document) in spoiled_document(), place in 0usize..60) {
        let mut with = document.clone();
        let mut places = Vec::new();
        containers(&with, "", &mut places);
        let place = places[place % places.len()].clone();
        let mut unknown = Map::new();
        unknown.insert("plumbUnknown".to_owned(), json!("x"));
        let members = with.pointer_mut(&place).and_then(Value::as_object_mut).expect("it is an object");
        members.extend(unknown);
        let (before, after) = (fired(&judged(&document, kind)), fired(&judged(&with, kind)));
        let lost: Vec<_> = before.difference(&after).filter(|(rule, _)| !BY_THEIR_OWN_WORDS.contains(rule)).collect();
        prop_assert!(lost.is_empty(), "{lost:?} lost by a member in {place}: {document}");
    }
}
