//! What has changed since the documents before: the rules about history, asked of what a store keeps.
//!
//! A first look has nothing before it, and nothing is said then. The same two documents give the same answer at every
//! look, so that what changed stays said until it changes again.

use serde_json::{Value, json};

use crate::document::{Document, Type};
use crate::judge::{Given, Origin, Settings, Subject, judge};
use crate::kind::Kind;
use crate::report::{Outcome, Report, RuleResult};
use crate::rule::Mode;
use crate::session::{Session, Step};
use crate::session_judge::document_of;

/// Documents before the present one that are looked at: whether a name is settled takes two.
pub const MOST_BEFORE: usize = 3;

/// Judges a document against those that were accepted at its place before, oldest first, each another than the next.
/// `kind` is what all of them are; of the conversation the keys of signatures are taken. The pointers of the results lead
/// into the present document.
pub fn judge_past(
    before: &[Document],
    now: &Document,
    kind: Kind,
    session: Option<&Session>,
    settings: &Settings,
) -> Vec<RuleResult> {
    let is_accepted = |document: &&Document| {
        let root = document.root().filter(|root| root.kind() == Type::Object);
        root.is_some_and(|root| kind != Kind::AgentCard || crate::a2a::looks_like_a_card(root))
    };
    let accepted: Vec<&Document> = before.iter().filter(is_accepted).collect();
    let Some(present) = Some(now).filter(is_accepted) else { return Vec::new() };
    if accepted.is_empty() {
        return Vec::new();
    }
    // OpenAPI may be YAML; of cards the text itself counts, for their signatures.
    let text = |document: &Document| match (document.root(), kind) {
        (Some(root), Kind::Openapi) => root.to_value().to_string(),
        (Some(root), _) => root.raw().to_owned(),
        (None, _) => "null".to_owned(),
    };
    let crawls: Vec<String> = accepted.iter().copied().chain([present]).map(text).collect();
    let keys = session.and_then(keys).map(|keys| format!(", \"jwks\": {keys}")).unwrap_or_default();
    let history = format!("{{\"crawls\": [{}]{keys}}}", crawls.join(","));
    let report = judged(&history, Kind::History, settings);
    leading(report, &format!("/crawls/{}", accepted.len()))
}

/// Judges a complete run against an endpoint by the one before: what it said of itself then and says now, each with the
/// access class (`access`). The pointers of the results lead into the present one.
pub fn judge_runs(before: &Value, now: &Value, settings: &Settings) -> Vec<RuleResult> {
    let history = json!({ "runs": [before, now] }).to_string();
    leading(judged(&history, Kind::McpHistory, settings), "/runs/1")
}

fn judged(history: &str, kind: Kind, settings: &Settings) -> Report {
    let given = Given::default();
    let subject = Subject {
        kind: Some(kind),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    judge(&Document::from_text(history), &subject, settings)
}

/// The first key set that was fetched with a card.
fn keys(session: &Session) -> Option<String> {
    let fetched = session.exchanges.iter().filter(|exchange| exchange.step == Some(Step::Jku));
    let answers = fetched.filter_map(|exchange| exchange.success()).filter(|response| response.cut.is_none());
    answers.map(document_of).find_map(|document| {
        let root = document.root().filter(|root| root.kind() == Type::Object)?;
        Some(root.raw().to_owned())
    })
}

/// What the rules about history say, with pointers into the present document.
fn leading(report: Report, place: &str) -> Vec<RuleResult> {
    let mut results = report.results;
    results.retain(|result| result.rule.mode == Mode::History);
    for result in &mut results {
        let Outcome::Fires(occurrences) = &mut result.outcome else { continue };
        for occurrence in occurrences {
            if let Some(rest) = occurrence.pointer.strip_prefix(place) {
                occurrence.pointer = rest.to_owned();
            }
            (occurrence.line, occurrence.column) = (None, None);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = include_str!("../examples/a2a-1.0.json");

    fn fired(before: &[&str], now: &str) -> Vec<String> {
        let before: Vec<Document> = before.iter().map(|text| Document::from_text(text)).collect();
        let results = judge_past(&before, &Document::from_text(now), Kind::AgentCard, None, &Settings::default());
        let mut fired = Vec::new();
        for result in results {
            if let Outcome::Fires(found) = result.outcome {
                fired.extend(found.iter().map(|o| format!("{} {}", result.rule.id, o.pointer)));
            }
        }
        fired
    }

    #[test]
    fn a_first_look_and_the_same_card_again_are_no_change() {
        assert!(fired(&[], CARD).is_empty());
        assert!(fired(&[CARD], &CARD.replace("  ", " ")).is_empty());
    }

    #[test]
    fn a_changed_card_is_told_at_the_place_in_the_card() {
        let moved = CARD.replace("https://tides.example.com/a2a", "https://coins.example.net/a2a");
        assert!(fired(&[CARD], &moved).contains(&"common/endpoint-drift /supportedInterfaces/0/url".to_owned()));
        let open = CARD.replace(r#"[{ "schemes": { "key": { "list": [] } } }]"#, "[]");
        assert!(fired(&[CARD], &open).iter().any(|said| said.starts_with("a2a/security-weakened")));
    }

    #[test]
    fn a_page_that_was_served_for_a_while_is_no_card_to_compare_with() {
        assert!(fired(&["<p>Down for repair</p>", r#"{"error": "down"}"#], CARD).is_empty());
    }

    #[test]
    fn runs_are_compared_by_what_was_said_in_both() {
        let before = json!({ "era": "legacy", "access": "open", "tools": [{ "name": "a" }, { "name": "b" }] });
        let now = json!({ "era": "dual", "access": "auth_required" });
        let results = judge_runs(&before, &now, &Settings::default());
        let fired: Vec<&str> = results
            .iter()
            .filter(|result| matches!(result.outcome, Outcome::Fires(_)))
            .map(|result| result.rule.id)
            .collect();
        assert_eq!(fired, ["mcp/era-changed", "mcp/auth-state-changed"]);
    }
}
