//! Signed agent cards: every one of the shared set has the verdict that its index names, in the form named, and every
//! algorithm verifies what another implementation signed.

use std::path::PathBuf;

use plumbline_rules::document::Document;
use plumbline_rules::jose::{Algorithm, key_set};
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::{PayloadForm, Report, SignatureVerdict, signature_verdict};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Index {
    vectors: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    file: String,
    jwks: String,
    expect: String,
    per_signature: Vec<Expected>,
    rules: Vec<String>,
}

#[derive(Deserialize)]
struct Expected {
    result: String,
    canonical_form: Option<String>,
}

fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("PLUMBLINE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let folder = shared.join("vectors/signatures");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is not there", folder.display());
    println!("skipped: {} is not there", folder.display());
    None
}

fn judged(card: &str, jwks: Value) -> Report {
    let given = Given { url: Some("https://tides.example.com/card".to_owned()), jwks: Some(jwks), ..Given::default() };
    let subject = Subject {
        kind: Some(Kind::AgentCard),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    let mut settings = Settings::default();
    settings.a2a.example_domains_are_placeholders = false;
    judge(&Document::from_text(card), &subject, &settings)
}

fn disagreement(case: &Case, report: &Report) -> Option<String> {
    let verdict = signature_verdict(&report.signatures).map(SignatureVerdict::as_str);
    let got: Vec<_> =
        report.signatures.iter().map(|s| (s.result.as_str(), s.canonical_form.map(PayloadForm::as_str))).collect();
    let wanted: Vec<_> = case.per_signature.iter().map(|s| (s.result.as_str(), s.canonical_form.as_deref())).collect();
    let fired: Vec<_> = report.fired().map(|(rule, _)| rule.id).collect();
    let unsaid: Vec<_> = case.rules.iter().filter(|rule| !fired.contains(&rule.as_str())).collect();
    let agrees = verdict == Some(case.expect.as_str()) && got == wanted && unsaid.is_empty();
    (!agrees)
        .then(|| format!("{}: {verdict:?} {got:?}, expected {} {wanted:?}; unsaid {unsaid:?}", case.file, case.expect))
}

#[test]
fn every_signed_card_has_the_verdict_of_the_index() {
    let Some(folder) = folder() else { return };
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the index names files that are there");
    let index: Index = serde_json::from_str(&read("index.json")).expect("the index has its members");
    let wrong: Vec<_> = index
        .vectors
        .iter()
        .filter_map(|case| {
            let jwks = serde_json::from_str(&read(&case.jwks)).expect("a key set is JSON");
            disagreement(case, &judged(&read(&case.file), jwks))
        })
        .collect();
    println!("{} signed cards", index.vectors.len());
    assert!(!index.vectors.is_empty() && wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[derive(Deserialize)]
struct Sample {
    alg: Algorithm,
    key: Value,
    input: String,
    signature: String,
}

/// Signed by OpenSSL (through Python's `cryptography`), one sample for each algorithm.
#[test]
fn every_algorithm_verifies_what_another_implementation_signed_and_nothing_else() {
    let samples: Vec<Sample> = serde_json::from_str(include_str!("jose.json")).expect("the samples are well formed");
    assert_eq!(samples.len(), Algorithm::ALL.len());
    for sample in samples {
        let set = Document::from_text(&serde_json::json!({ "keys": [sample.key] }).to_string());
        let keys = set.root().and_then(key_set).expect("it is a key set");
        let signature = plumbline_rules::jose::base64url(&sample.signature).expect("it is base64url");
        let (alg, key) = (sample.alg, &keys[0]);
        assert!(key.fits(alg) && key.verifies(alg, &sample.input, &signature), "{alg}");
        assert!(!key.verifies(alg, &format!("{}.", sample.input), &signature), "{alg}: another input");
        let mut other = signature.clone();
        other[7] ^= 1;
        assert!(!key.verifies(alg, &sample.input, &other), "{alg}: another signature");
        assert!(!key.verifies(alg, &sample.input, &signature[1..]), "{alg}: a shorter signature");
        let strangers = Algorithm::ALL.iter().filter(|other| key.fits(**other)).count();
        let expected = match alg {
            Algorithm::EdDsa | Algorithm::Ed25519 => 2,
            Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512 => 1,
            _ => 6,
        };
        assert_eq!(strangers, expected, "{alg}");
    }
}

#[test]
fn a_thumbprint_is_that_of_rfc_7638() {
    // RFC 7638 §3.1.
    let set = Document::from_text(
        r#"{"keys": [{"kty": "RSA", "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29"}]}"#,
    );
    let keys = set.root().and_then(key_set).expect("it is a key set");
    let thumbprint = keys[0].thumbprint().expect("the key has its parts");
    let expected = plumbline_rules::jose::base64url("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    assert_eq!(Some(thumbprint.to_vec()), expected);
}
