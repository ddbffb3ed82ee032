//! `plumbline check` in a pipeline: folders, formats, baselines, and what makes it fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// An agent card of A2A 1.0 without fault, on a host that is no placeholder.
fn card() -> String {
    include_str!("../rules/examples/a2a-1.0.json").replace("example.com", "tides.dev")
}

/// The same card with an error at its name.
fn faulty() -> String {
    card().replacen("\"Tide Tables\"", "\"\"", 1)
}

/// A repository with a good and a faulty card, a description, a settings file and notes.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    put(&folder, "good/agent-card.json", &card());
    put(&folder, "bad/agent-card.json", &faulty());
    put(&folder, "package.json", r#"{"name": "tides", "version": "1.0.0"}"#);
    put(&folder, "compose.yaml", "services: {}\n");
    put(&folder, "notes.txt", "{");
    folder
}

fn put(folder: &tempfile::TempDir, path: &str, text: &str) -> PathBuf {
    let path = folder.path().join(path);
    std::fs::create_dir_all(path.parent().expect("it is below the folder")).expect("a folder");
    std::fs::write(&path, text).expect("it is written");
    path
}

fn check(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumbline"))
        .arg("check")
        .args(arguments)
        .current_dir(folder)
        .env_remove("PLUMBLINE_CONFIG")
        .env_remove("PLUMBLINE_DATABASE")
        .output()
        .expect("it runs")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {}", printed(output)))
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

#[test]
fn a_document_of_no_known_kind_is_not_detected_and_not_said_to_be_without_fault() {
    let folder = repository();
    let output = check(folder.path(), &["package.json"]);
    let text = printed(&output);
    assert!(text.lines().any(|line| line == "Not detected"), "{text}");
    assert!(!text.contains("Sound") && !text.contains("nothing to report"), "{text}");
}

#[test]
fn a_folder_is_searched_and_what_is_no_document_is_passed_over_and_told() {
    let folder = repository();
    let output = check(folder.path(), &[".", "--format", "json", "--offline"]);
    let reports = json(&output);
    let told: Vec<_> = reports
        .as_array()
        .expect("a folder gives a list")
        .iter()
        .map(|report| (report["file"].as_str().expect("it is named"), report["headline"].as_str().expect("a word")))
        .collect();
    assert_eq!(told, [("bad/agent-card.json", "deviates"), ("good/agent-card.json", "sound")]);
    assert_eq!(code(&output), 1);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("passed over package.json: its kind is not recognised"), "{said}");
    assert!(said.contains("passed over compose.yaml"), "{said}");
}

#[test]
fn a_name_that_promises_a_card_is_held_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    put(&folder, "agent-card.json", "{ nonsense");
    let output = check(folder.path(), &[".", "--format", "json"]);
    assert_eq!(json(&output)[0]["findings"][0]["rule"], "common/invalid-json");
    put(&folder, "agent-card.json", r#"{"openapi": "3.1.0"}"#);
    let output = check(folder.path(), &["."]);
    assert_eq!(code(&output), 1, "{}", printed(&output));
    assert_eq!(code(&check(folder.path(), &[".", "--fail-on", "never"])), 0);
}

#[test]
fn one_unreadable_input_does_not_keep_the_others_from_being_judged() {
    let folder = repository();
    let output = check(folder.path(), &["good/agent-card.json", "missing.json", "--format", "jsonl"]);
    let lines: Vec<Value> =
        printed(&output).lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!(lines[0]["headline"], "sound");
    assert!(lines[1]["error"].as_str().is_some_and(|error| error.contains("missing.json")), "{lines:?}");
    assert_eq!(code(&output), 2);
}

#[test]
fn offline_an_address_is_an_error_and_nothing_is_asked() {
    let folder = repository();
    let output = check(folder.path(), &["http://127.0.0.1:9/agent-card.json", "--offline"]);
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--offline"));
}

#[test]
fn only_rules_asked_for_speak_and_the_others_are_not_passed() {
    let folder = repository();
    let file = "bad/agent-card.json";
    let ignored = check(folder.path(), &[file, "--ignore", "a2a/empty-*", "--format", "json"]);
    assert_eq!(json(&ignored)["headline"], "sound");
    let unsaid = json(&ignored)["not_evaluated"].to_string();
    assert!(unsaid.contains(r#"{"reason":"off","rule":"a2a/empty-required-string"}"#), "{unsaid}");
    let only = |pattern: &str| code(&check(folder.path(), &[file, "--rule", pattern]));
    assert_eq!((only("*/empty-required-string"), only("a2a/skill-*"), only("a2a/no-such-*")), (1, 0, 2));
}

#[test]
fn with_a_baseline_only_the_new_fault_fails() {
    let folder = repository();
    assert_eq!(code(&check(folder.path(), &[".", "--write-baseline", "known.json.txt"])), 0);
    let again = |more: &[&str]| {
        let mut arguments = vec![".", "--baseline", "known.json.txt"];
        arguments.extend(more);
        check(folder.path(), &arguments)
    };
    assert_eq!(code(&again(&[])), 0, "{}", printed(&again(&[])));

    // A second skill before the first, and its tags missing: the known fault stays known, this one is new.
    let more = faulty().replacen(
        "\"skills\": [",
        "\"skills\": [{\"id\": \"ebb\", \"name\": \"Ebb\", \"description\": \"Tells when the ebb begins.\"}, ",
        1,
    );
    put(&folder, "bad/agent-card.json", &more);
    let output = again(&["--format", "json"]);
    assert_eq!(code(&output), 1);
    let reports = json(&output);
    let findings = reports[0]["findings"].as_array().expect("a list");
    let new: Vec<_> =
        findings.iter().filter(|finding| finding["known"] == false).map(|finding| finding["rule"].as_str()).collect();
    assert_eq!(new, [Some("a2a/skill-tags-required")]);
    let text = printed(&again(&[]));
    assert!(text.contains("a2a/skill-tags-required") && !text.contains("a2a/empty-required-string"), "{text}");
    assert!(text.contains("Known by the baseline: 1 finding"), "{text}");
}

#[test]
fn a_known_finding_stays_known_when_the_list_around_it_is_reordered() {
    let skill = |id: &str, tags: &str| {
        format!(r#"{{"id": "{id}", "name": "{id}", "description": "Tells what {id} does at sea.", "tags": {tags}}}"#)
    };
    let (good, bad) = (skill("ebb", r#"["sea"]"#), skill("flood", r#"["sea", 7]"#));
    let with = |first: &str, second: &str| {
        let mut card: Value = serde_json::from_str(&card()).expect("it is JSON");
        card["skills"] = serde_json::from_str(&format!("[{first}, {second}]")).expect("it is JSON");
        card.to_string()
    };
    let folder = tempfile::tempdir().expect("a folder");
    put(&folder, "agent-card.json", &with(&good, &bad));
    assert_eq!(code(&check(folder.path(), &["agent-card.json", "--fail-on", "warning"])), 1);
    check(folder.path(), &["agent-card.json", "--write-baseline", "known"]);
    put(&folder, "agent-card.json", &with(&bad, &good));
    let output = check(folder.path(), &["agent-card.json", "--baseline", "known", "--fail-on", "info"]);
    assert_eq!(code(&output), 0, "{}", printed(&output));
}

#[test]
fn annotations_stand_at_file_line_and_column() {
    let folder = repository();
    let output = check(folder.path(), &["bad/agent-card.json", "--format", "github"]);
    let line = printed(&output);
    assert!(
        line.starts_with("::error file=bad/agent-card.json,line=2,col=11,title=a2a/empty-required-string::"),
        "{line}"
    );
}

#[test]
fn markdown_has_a_row_for_each_finding_and_none_for_what_is_sound() {
    let folder = repository();
    let printed = printed(&check(folder.path(), &[".", "--format", "markdown"]));
    assert!(printed.contains("2 documents: 1 deviates, 1 sound."), "{printed}");
    assert!(printed.contains("| error | `a2a/empty-required-string` |"), "{printed}");
    assert!(!printed.contains("### good"), "{printed}");
}

#[test]
fn junit_has_a_failing_case_and_skips_what_could_not_be_looked_at() {
    let folder = repository();
    let printed = printed(&check(folder.path(), &[".", "--format", "junit"]));
    let bad = printed.find("<testsuite name=\"bad/agent-card.json\"").expect("a suite");
    let good = printed.find("<testsuite name=\"good/agent-card.json\"").expect("a suite");
    let failing = printed.find("name=\"a2a/empty-required-string\"><failure type=\"error\"").expect("a failing case");
    assert!(bad < failing && failing < good);
    assert!(printed.contains("<skipped message=\"need to know where the document came from (--from URL)\"/>"));
    assert!(printed.contains("failures=\"1\" errors=\"0\""), "{}", &printed[..200]);
}

#[test]
fn sarif_names_rules_places_and_fingerprints() {
    let folder = repository();
    let report = json(&check(folder.path(), &[".", "--format", "sarif"]));
    let run = &report["runs"][0];
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "a2a/empty-required-string");
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "a2a/empty-required-string");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "bad/agent-card.json");
    assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&2.into(), &11.into()));
    assert!(result["partialFingerprints"]["plumblinePlace/v1"].is_string());
    assert!(result.get("baselineState").is_none());

    check(folder.path(), &[".", "--write-baseline", "known"]);
    let report = json(&check(folder.path(), &[".", "--format", "sarif", "--baseline", "known"]));
    assert_eq!(report["runs"][0]["results"][0]["baselineState"], "unchanged");
}

/// The schema that the standard publishes, as the gate installs it.
#[test]
fn sarif_is_what_the_schema_of_the_standard_asks_for() {
    let Some(path) = std::env::var_os("PLUMBLINE_SARIF_SCHEMA") else {
        assert!(std::env::var_os("CI").is_none(), "PLUMBLINE_SARIF_SCHEMA is not set");
        eprintln!("skipped: PLUMBLINE_SARIF_SCHEMA names no schema");
        return;
    };
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("it is readable")).expect("it is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema can be used");
    let folder = repository();
    put(&folder, "worse/a2a card.json", r#"{"supportedInterfaces": [{"url": 1}], "skills": [{}], "\u001b": "\u0000"}"#);
    check(folder.path(), &["bad", "--write-baseline", "known"]);
    for arguments in [
        &["."][..],
        &["good"],
        &[".", "--baseline", "known"],
        &["missing.json", "worse/a2a card.json"],
        &["package.json", "--kind", "a2a-card"],
    ] {
        let report = json(&check(folder.path(), &[arguments, &["--format", "sarif"]].concat()));
        let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{arguments:?}: {errors:#?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({ "version": "2.1.0" })), "the schema tells right from wrong");
}
