//! Holds every delivered rule against the shared vectors: fires where they say, silent where they say, nothing beside.
//!
//! Skipped with a printed reason where the vectors are not beside the project; in CI they have to be.

use std::collections::BTreeSet;
use std::path::PathBuf;

use plumbline_rules::catalogue;
use plumbline_rules::judge::Settings;
use plumbline_rules::line::judge_line;
use plumbline_rules::report::Report;
use plumbline_rules::rule::{Axis, Class, Severity, Stops};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A vector; its document stays text, since some nest deeper than a parsed value may.
#[derive(Deserialize)]
struct Vector {
    rule: String,
    kind: String,
    spec_version: String,
    expect: String,
    pointer: Option<String>,
    #[serde(default)]
    also: Vec<String>,
    note: String,
    document: Box<RawValue>,
    #[serde(skip)]
    line: String,
}

impl Vector {
    fn read(line: &str) -> Vector {
        Vector { line: line.to_owned(), ..serde_json::from_str(line).expect("a vector has its members") }
    }
}

fn vectors(family: &str) -> Option<Vec<Vector>> {
    let shared = std::env::var_os("PLUMBLINE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = shared.join("vectors").join(format!("{family}.jsonl"));
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text.lines().map(Vector::read).collect()),
        Err(error) if std::env::var_os("CI").is_none() => {
            println!("skipped: {} cannot be read ({error})", path.display());
            None
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Rules that by their own words speak beside the rule of a vector that does not name them: each with its reason. The
/// vectors are held as a whole all the same, here and on the release build.
const BESIDE: &str = include_str!("beside.tsv");

/// Which rules are named beside that of a vector.
fn named_beside(vector: &Vector) -> Vec<&'static str> {
    let rows = BESIDE.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row[0] == vector.rule && row[1] == vector.note).map(|row| row[2]).collect()
}

fn said(report: &Report) -> Vec<(&'static str, String)> {
    report.fired().flat_map(|(rule, found)| found.iter().map(|o| (rule.id, o.pointer.clone()))).collect()
}

/// Facts that a card brings by itself (catalogue §5).
fn base_facts(report: &Report, card: &RawValue) -> BTreeSet<&'static str> {
    if report.states().any(|(rule, _)| rule.axis == Axis::Detection) {
        return BTreeSet::new();
    }
    if report.fired().any(|(rule, _)| rule.stops == Stops::Document) {
        return BTreeSet::new();
    }
    // A card that nests too deep for this reader was not judged, and has none.
    let Ok(card) = serde_json::from_str::<Value>(card.get()) else { return BTreeSet::new() };
    let mut facts = BTreeSet::new();
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match report.detected.profile {
        "" | "a2a-undetermined" => {}
        profile @ ("a2a-1.0" | "a2a-hybrid") => {
            if empty(&card["signatures"]) {
                facts.insert("a2a/signature-absent");
            }
            if profile == "a2a-hybrid" {
                facts.insert("a2a/hybrid-card");
            }
        }
        _ if card["url"].is_null() => {}
        _ => {
            facts.insert("a2a/legacy-card");
            if card["url"].as_str().is_none_or(|url| !url.trim().is_empty()) {
                facts.insert("a2a/refused-by-default-clients");
            }
        }
    }
    facts
}

fn mismatch(vector: &Vector) -> Option<String> {
    let mut settings = Settings::default();
    settings.a2a.example_domains_are_placeholders = false;
    let rule = vector.rule.as_str();
    let name = format!("{rule} {} {} `{}`", vector.kind, vector.spec_version, vector.note);
    let report = match judge_line(&vector.line, &settings) {
        Ok(report) => report,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let said = said(&report);
    let hits: Vec<_> = said.iter().filter(|(id, _)| *id == rule).collect();
    let fires = vector.expect == "fires";
    let in_place = vector.pointer.as_ref().is_none_or(|place| hits.iter().any(|(_, pointer)| pointer == place));
    if fires == hits.is_empty() || (fires && !in_place) {
        return Some(format!("{name}: expects {} at {:?} | got {said:?}", vector.expect, vector.pointer));
    }
    let mut wanted: BTreeSet<&str> = vector.also.iter().map(String::as_str).collect();
    wanted.extend(fires.then_some(rule));
    wanted.extend(named_beside(vector));
    let (got, wanted): (BTreeSet<&str>, BTreeSet<&str>) = if vector.kind == "a2a-card" {
        wanted.extend(base_facts(&report, &vector.document));
        wanted.retain(|id| catalogue::find(id).is_some());
        (said.iter().map(|(id, _)| *id).collect(), wanted)
    } else {
        let loud = report.fired().filter(|(rule, found)| {
            rule.class == Class::Finding
                && rule.axis == Axis::Conformity
                && found.iter().any(|o| o.severity > Severity::Info)
                && !wanted.contains(rule.id)
        });
        (loud.map(|(rule, _)| rule.id).collect(), BTreeSet::new())
    };
    (got != wanted).then(|| {
        format!(
            "{name}: besides, unexpected {:?}, missing {:?}",
            got.difference(&wanted).collect::<Vec<_>>(),
            wanted.difference(&got).collect::<Vec<_>>()
        )
    })
}

fn holds(family: &str) {
    let Some(vectors) = vectors(family) else { return };
    let known = |v: &&Vector| catalogue::find(&v.rule).is_some();
    let judged: Vec<_> = vectors.iter().filter(known).collect();
    let wrong: Vec<_> = judged.iter().filter_map(|vector| mismatch(vector)).collect();
    println!("{family}: {} vectors judged, {} of {} wait", judged.len(), vectors.len() - judged.len(), vectors.len());
    assert!(wrong.is_empty(), "{} of {} vectors disagree\n{}", wrong.len(), judged.len(), wrong.join("\n"));
}

#[test]
fn what_stands_beside_a_vector_has_a_vector_a_rule_and_a_reason() {
    for row in BESIDE.lines().skip(1) {
        let [rule, note, beside, why] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("four columns: {row}") };
        assert!(catalogue::find(beside).is_some() && !why.is_empty(), "{row}");
        let family = rule.split('/').next().expect("a rule has a family");
        let Some(vectors) = vectors(family) else { return };
        assert!(vectors.iter().any(|vector| vector.rule == rule && vector.note == note), "no such vector: {row}");
    }
}

#[test]
fn a2a() {
    holds("a2a");
}

#[test]
fn common() {
    holds("common");
}

#[test]
fn mcp() {
    holds("mcp");
}

#[test]
fn oauth() {
    holds("oauth");
}

#[test]
fn openapi() {
    holds("openapi");
}

#[test]
fn registry() {
    holds("registry");
}
