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

/// Kinds whose documents are conversations or stored pairs: judged once their rules are delivered.
const LATER: &[&str] = &["a2a-live", "registry-drift"];

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

/// Besides cards a vector need not name all that its document brings: its rule, its note, and what speaks there too.
const BESIDE: &[(&str, &str, &str)] = &[
    ("oauth/as-endpoint-not-https", "loopback", "common/url-not-public"),
    ("mcp/card-remote-not-https", "loopback", "common/url-not-public"),
    ("mcp/origin-not-validated-local", "public endpoint has the milder rule", "mcp/origin-not-validated"),
    ("mcp/icon-scheme", "javascript", "common/unsafe-url-scheme"),
    // Their signature says of itself that it is not a real one, and the key beside it is.
    ("a2a/jwks-unreachable", "200", "a2a/signature-invalid"),
    ("a2a/jwks-key-missing", "present", "a2a/signature-invalid"),
    ("a2a/jwks-kid-duplicate", "twice", "a2a/signature-invalid"),
    ("a2a/jwks-kid-duplicate", "same kid, other kty", "a2a/signature-invalid"),
    ("a2a/jwks-private-key", "member d", "a2a/signature-invalid"),
    ("a2a/jwks-private-key", "public only", "a2a/signature-invalid"),
    ("a2a/jwks-key-mismatch", "no use, no alg", "a2a/signature-invalid"),
    ("a2a/jwks-weak-key", "2048 bits", "a2a/signature-invalid"),
    // What the rule's own text puts beside it, or its note.
    ("common/added-while-auth-loosened", "a new skill, and no requirement any more", "a2a/security-weakened"),
    ("a2a/signature-lost", "signed by another key of the set", "a2a/signing-key-changed"),
    ("a2a/jwks-invalid", "empty set is well formed (jwks-key-missing)", "a2a/jwks-key-missing"),
    ("a2a/signature-invalid", SDK_FORM, "a2a/signature-noncanonical"),
    ("a2a/signature-invalid", SDK_FORM, "a2a/empty-required-string"),
    ("a2a/signature-uncovered-members", "hybrid members not signed", "a2a/hybrid-mismatch"),
    // Their schemes are written for 1.0 alone: 0.3 requires `type` (§5.5.3), and its Python reader takes such a scheme
    // for mutual TLS.
    ("a2a/removed-field", "hybrid card keeps the 0.3 half on purpose", WRAPPERS_ALONE),
    ("a2a/legacy-security-ignored", "both shapes in a hybrid card", WRAPPERS_ALONE),
    ("a2a/hybrid-card", "both", WRAPPERS_ALONE),
    ("a2a/hybrid-mismatch", "another host", WRAPPERS_ALONE),
    ("a2a/hybrid-mismatch", "equal after normalisation", WRAPPERS_ALONE),
    ("a2a/version-shape-conflict", "a hybrid card", WRAPPERS_ALONE),
    ("a2a/signature-uncovered-members", "hybrid members not signed", WRAPPERS_ALONE),
];

const WRAPPERS_ALONE: &str = "a2a/scheme-type-unrecognised";

const SDK_FORM: &str = "verifies over the sdk form only: signature-noncanonical";

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
    wanted.extend(BESIDE.iter().filter(|(of, note, _)| *of == rule && *note == vector.note).map(|(_, _, also)| *also));
    let (got, wanted): (BTreeSet<&str>, BTreeSet<&str>) = if vector.kind == "a2a-card" {
        wanted.extend(base_facts(&report, &vector.document));
        wanted.retain(|id| catalogue::find(id).is_some());
        (said.iter().map(|(id, _)| *id).collect(), wanted)
    } else {
        let loud = report.fired().filter(|(rule, found)| {
            rule.class == Class::Finding
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
    let now = |v: &&Vector| !LATER.contains(&v.kind.as_str());
    let judged: Vec<_> = vectors.iter().filter(known).filter(now).collect();
    let wrong: Vec<_> = judged.iter().filter_map(|vector| mismatch(vector)).collect();
    println!("{family}: {} vectors judged, {} of {} wait", judged.len(), vectors.len() - judged.len(), vectors.len());
    assert!(wrong.is_empty(), "{} of {} vectors disagree\n{}", wrong.len(), judged.len(), wrong.join("\n"));
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
