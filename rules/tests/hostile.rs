//! Documents made to be a burden: what is said of them is bounded, and counted where it is not written out. How long they
//! take is measured by the bench `judge`.

use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::line::ReportJson;
use plumbline_rules::report::Report;

fn judged(text: &str, kind: Option<Kind>, occurrences: usize) -> Report {
    let given = Given::default();
    let subject =
        Subject { kind, version: None, origin: Origin::PublicHost, given: &given, session: None, answer: None };
    let mut settings = Settings::default();
    settings.limits.bytes = 64 << 20;
    settings.limits.occurrences = occurrences;
    judge(&Document::from_text(text), &subject, &settings)
}

fn card_with_skills(n: usize) -> String {
    let skill = r#"{"id":"s","name":"S","description":"Answers.","tags":["t"],"odd":1}"#;
    let card = include_str!("../examples/a2a-1.0.json");
    let (before, _) = card.split_once("\"skills\"").expect("the card has skills");
    format!("{before}\"skills\": [{}]}}", vec![skill; n].join(","))
}

#[test]
fn what_is_said_of_very_many_skills_is_capped_and_counted() {
    let report = judged(&card_with_skills(20_000), Some(Kind::AgentCard), 1000);
    let twice = report.findings().find(|(rule, _)| rule.id == "a2a/skill-id-duplicate").map(|(_, found)| found.len());
    assert_eq!(twice, Some(1000));
    let more = report.more.iter().find(|(rule, _)| *rule == "a2a/skill-id-duplicate").map(|(_, more)| *more);
    assert_eq!(more, Some(19_999 - 1000));
    let json = serde_json::to_string(&ReportJson::from(&report)).expect("a report has a JSON form");
    assert!(json.contains(r#""more":{"#) && json.len() < 4 << 20, "{} bytes", json.len());
    let few = judged(&card_with_skills(30), Some(Kind::AgentCard), 10);
    assert!(few.fired().all(|(_, found)| found.len() <= 10) && !few.more.is_empty());
    assert!(judged(&card_with_skills(30), Some(Kind::AgentCard), 1000).more.is_empty());
}

#[test]
fn a_mebibyte_of_nested_arrays_is_one_finding() {
    let nested = format!("{}{}", "[".repeat(1 << 19), "]".repeat(1 << 19));
    for kind in [None, Some(Kind::AgentCard), Some(Kind::Openapi)] {
        let report = judged(&nested, kind, 1000);
        let said: Vec<_> = report.fired().map(|(rule, found)| (rule.id, found.len())).collect();
        assert_eq!(said, [("common/too-deep", 1)], "{kind:?}");
    }
    let flat = format!("[{}0]", "[],".repeat(300_000));
    assert!(judged(&flat, Some(Kind::AgentCard), 1000).fired().all(|(_, found)| found.len() <= 1000));
}
