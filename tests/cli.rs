//! The command line as a person meets it: the real binary, its output and its exit status.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// An agent card of A2A 1.0 without fault, on a host that is no placeholder.
fn card() -> String {
    include_str!("../rules/examples/a2a-1.0.json").replace("example.com", "tides.dev")
}

/// The same card with an error that breaks no client.
fn card_with_error() -> String {
    card().replacen("\"Tide Tables\"", "\"\"", 1)
}

fn plumbline(arguments: &[&str], input: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(env!("CARGO_BIN_EXE_plumbline"))
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("PLUMBLINE_CONFIG")
        .env_remove("PLUMBLINE_DATABASE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("it has an input").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn status(arguments: &[&str], input: &str) -> i32 {
    plumbline(arguments, input).status.code().expect("it was not killed")
}

#[test]
fn check_says_clean_faulty_or_broken_by_its_exit_status() {
    assert_eq!(status(&["check", "-", "--kind", "a2a-card"], &card()), 0);
    assert_eq!(status(&["check", "-", "--kind", "a2a-card"], &card_with_error()), 1);
    assert_eq!(status(&["check", "-", "--kind", "a2a-card", "--fail-on", "blocked"], &card_with_error()), 0);
    assert_eq!(status(&["check", "no-such-file.json"], ""), 2);
    assert_eq!(status(&["check"], ""), 2);
}

#[test]
fn check_points_at_the_place_in_the_text() {
    let output = plumbline(&["check", "-", "--kind", "a2a-card"], &card_with_error());
    let printed = text(&output.stdout);
    assert!(printed.contains("a2a/empty-required-string"), "{printed}");
    assert!(printed.contains("2 |   \"name\": \"\","), "{printed}");
    assert!(printed.contains("at /name") && printed.contains("fix: "), "{printed}");
    assert!(!printed.contains('\x1b'), "no colours in a pipe: {printed}");
}

#[test]
fn check_prints_json_for_programs() {
    let output = plumbline(&["check", "-", "--kind", "a2a-card", "--format", "json"], &card_with_error());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(report["headline"], "deviates");
    assert_eq!(report["detected"]["profile"], "a2a-1.0");
    assert_eq!(report["findings"][0]["pointer"], "/name");
    assert_eq!(report["findings"][0]["line"], 2);
}

#[test]
fn a_terminal_is_not_told_what_a_document_says() {
    let hostile = card().replacen("\"tides\"", "\"\\u001b[2Jtides\\u202e\", \"id\": 7", 1);
    let printed = text(&plumbline(&["check", "-", "--kind", "a2a-card"], &hostile).stdout);
    assert!(!printed.contains('\x1b') && !printed.contains('\u{202e}'), "{printed}");
}

/// The card of the examples, which carry their own key; signed over the form of the specification.
fn signed_card() -> String {
    let signature = r#""signatures": [{
        "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0",
        "signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw"
    }],"#;
    include_str!("../rules/examples/a2a-1.0.json").replacen('{', &format!("{{ {signature}"), 1)
}

#[test]
fn a_signature_is_checked_with_the_keys_handed_in_and_with_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.json");
    let key = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}"#;
    std::fs::write(&keys, key).expect("it is written");
    let arguments = ["check", "-", "--kind", "a2a-card", "--set", "a2a.example_domains_are_placeholders=false"];
    let with_keys = [&arguments[..], &["--jwks", keys.to_str().expect("the path is text")]].concat();

    let printed = text(&plumbline(&with_keys, &signed_card()).stdout);
    assert!(printed.contains("Signature /signatures/0: valid over form spec, key k1"), "{printed}");
    let changed = text(&plumbline(&with_keys, &signed_card().replacen("2.1.0", "2.1.1", 1)).stdout);
    assert!(changed.contains("a2a/signature-invalid"), "{changed}");
    let without_keys = text(&plumbline(&arguments, &signed_card()).stdout);
    assert!(without_keys.contains("need the public keys (--jwks FILE)"), "{without_keys}");
    assert_eq!(status(&["check", "-", "--jwks", "no-such-file.json"], &signed_card()), 2);
}

#[test]
fn a_description_in_yaml_is_judged_and_its_faults_stand_at_their_lines() {
    let description = "openapi: 3.1.0\ninfo:\n  title: Tides\n  version: '1'\n  description: Tells tides.\nservers:\n  - url: https://tides.dev\ncomponents:\n  schemas:\n    Tide:\n      type: object\n      properties:\n        height: {type: number, exclusiveMinimum: true}\npaths: {}\n";
    let output = plumbline(&["check", "-"], description);
    let printed = text(&output.stdout);
    assert!(printed.contains("OpenAPI document, judged as openapi-3.1"), "{printed}");
    assert!(printed.contains("13 |         height: {type: number, exclusiveMinimum: true}"), "{printed}");
    assert!(printed.contains("at /components/schemas/Tide/properties/height/exclusiveMinimum"), "{printed}");
}

#[test]
fn lines_come_out_in_order_and_a_wrong_one_is_named() {
    let card = card().replace('\n', "");
    let input = format!(
        "{{\"kind\": \"a2a-card\", \"document\": {card}}}\nnonsense\n{{\"kind\": \"any\", \"document\": {card}}}\n"
    );
    let output = plumbline(&["check", "--lines", "-"], &input);
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[0]["line"], &lines[1]["line"], &lines[2]["line"]), (&1.into(), &2.into(), &3.into()));
    assert!(lines[1]["error"].is_string());
    assert_eq!(lines[2]["detected"]["kind"], "a2a-card");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_rule_explains_itself_and_an_unknown_one_names_its_neighbours() {
    let printed = text(&plumbline(&["rules", "a2a/not-a-card"], "").stdout);
    assert!(printed.contains("Fix") && printed.contains("A2A 1.0"), "{printed}");
    let output = plumbline(&["rules", "a2a/not-a-crad"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("a2a/not-a-card"), "{}", text(&output.stderr));
    let catalogue: serde_json::Value =
        serde_json::from_slice(&plumbline(&["rules", "--format", "json"], "").stdout).expect("it prints JSON");
    assert!(catalogue["rules"].as_array().expect("a list").len() >= 120);
}

#[test]
fn rules_are_chosen_by_severity_revision_and_published_name() {
    let chosen = |arguments: &[&str]| {
        let all = [&["rules"], arguments, &["--format", "json"]].concat();
        let catalogue: serde_json::Value = serde_json::from_slice(&plumbline(&all, "").stdout).expect("it prints JSON");
        catalogue["rules"].as_array().expect("a list").clone()
    };
    let errors = chosen(&["a2a", "--severity", "error", "--spec-version", "0.3"]);
    assert!(!errors.is_empty());
    for rule in errors {
        assert_eq!((&rule["family"], &rule["severity"]), (&"a2a".into(), &"error".into()));
        let versions = rule["versions"].to_string();
        assert!(versions.contains("0.3") || versions.contains("all"), "{versions}");
    }
    let ids: Vec<_> =
        chosen(&["--seed", "gaip:A2A_SKILL_ID_DUPLICATE"]).iter().map(|rule| rule["id"].to_string()).collect();
    assert_eq!(ids, ["\"a2a/skill-id-duplicate\""]);
    assert_eq!(status(&["rules", "--seed", "nobody:"], ""), 2);
}

#[test]
fn the_catalogue_for_programs_keeps_its_members() {
    let catalogue: serde_json::Value =
        serde_json::from_slice(&plumbline(&["rules", "--format", "json"], "").stdout).expect("it prints JSON");
    assert_eq!(catalogue["format"], "plumbline-rules-1");
    assert_eq!(catalogue["revision"].as_str().map(str::len), Some(16));
    let members: std::collections::BTreeSet<_> = catalogue["rules"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|rule| rule.as_object().expect("one").keys())
        .collect();
    let known = "axis basis class clients evidence family fix guess id impact impact_evidence impact_overrides kinds mode \
                 rank security seeds severity severity_overrides spec title version versions where why";
    assert_eq!(members.into_iter().map(String::as_str).collect::<Vec<_>>().join(" "), known);
}

#[test]
fn every_published_rule_has_ours_or_a_reason() {
    let table: serde_json::Value =
        serde_json::from_slice(&plumbline(&["rules", "--coverage", "--format", "json"], "").stdout).expect("JSON");
    for row in table["rows"].as_array().expect("a list") {
        let has_rules = row["rules"].as_array().is_some_and(|rules| !rules.is_empty());
        assert!(has_rules || row["why"].as_str().is_some_and(|why| !why.is_empty()), "{row}");
    }
}

#[test]
fn settings_are_printed_as_a_file_that_can_be_read_back() {
    let printed = plumbline(&["config", "--set", "web.name=Harbour"], "").stdout;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plumbline.toml");
    std::fs::write(&path, &printed).expect("it is written");
    let path = path.display().to_string();
    let output = plumbline(&["config", "check", &path], "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let again = plumbline(&["config", "--config", &path], "").stdout;
    assert_eq!(text(&again), text(&printed));
}

#[test]
fn a_wrong_setting_ends_with_its_key_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, "[crawl]\nworkers = 4\nworkres = 5\n").expect("it is written");
    let path = path.display().to_string();
    let output = plumbline(&["config", "check", &path], "");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("wrong.toml") && said.contains("line 3") && said.contains("workres"), "{said}");
}

#[test]
fn a_listing_says_where_it_is_out_of_step_by_its_exit_status() {
    let listed = |package: &str| {
        format!(
            r#"{{"name": "io.example/tides", "version": "2.0.0", "packages": [{{"registryType": "oci", "identifier": "tides", "version": "{package}"}}]}}"#
        )
    };
    let same = plumbline(&["listing", "--file", "-"], &listed("2.0.0"));
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    assert!(text(&same.stdout).contains("In step, as far as it could be compared"), "{}", text(&same.stdout));
    let behind = plumbline(&["listing", "--file", "-"], &listed(r"1.9.\u001b[0m"));
    assert_eq!(behind.status.code(), Some(1), "{}", text(&behind.stderr));
    let said = text(&behind.stdout);
    assert!(said.contains("≠ version of oci tides") && said.contains("    do      "), "{said}");
    assert!(!said.contains('\u{1b}'), "a terminal is not told what a listing says");
    let json = plumbline(&["listing", "--file", "-", "--format", "json"], &listed("1.9.0"));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["in_step"], &json["lines"][0]["match"]), (&false.into(), &"differs".into()));
    assert_eq!(status(&["listing", "--file", "-"], "{}"), 2);
    assert_eq!(status(&["listing"], ""), 2);
}

#[test]
fn every_help_has_examples() {
    for command in ["serve", "crawl", "check", "rules", "config"] {
        let printed = text(&plumbline(&[command, "--help"], "").stdout);
        assert!(printed.contains("Examples:"), "{command}: {printed}");
    }
    assert!(text(&plumbline(&["--version"], "").stdout).starts_with("plumbline "));
}

/// The binary in a folder that keeps its database between calls.
fn in_folder(folder: &std::path::Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumbline"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("PLUMBLINE_CONFIG")
        .env_remove("PLUMBLINE_DATABASE")
        .env("USER", "ada")
        .output()
        .expect("it runs")
}

#[test]
fn alerts_are_kept_quiet_from_the_command_line_with_a_look_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| in_folder(folder.path(), arguments);
    assert!(text(&run(&["alerts", "list"]).stdout).contains("No alert is open."));
    let silence = ["alerts", "silence", "owner:harbour", "--hours", "2", "--reason", "moving the pier"];
    let dry = run(&[&silence[..], &["--dry-run"]].concat());
    assert_eq!(text(&dry.stdout).trim(), "It covers 0 of 0 open alerts now.");
    assert!(text(&run(&["alerts", "quiet"]).stdout).is_empty(), "nothing was kept");
    assert!(text(&run(&silence).stdout).contains("Silence 1 holds until "));
    let window =
        ["alerts", "maintenance", "owner:harbour", "--title", "Backups", "--cron", "0 3 * * 0", "--minutes", "60"];
    let planned = text(&run(&window).stdout);
    assert!(planned.contains("T03:00:00Z to ") && planned.contains("Maintenance 1 is planned."), "{planned}");
    let waived = run(&["alerts", "waive", "a2a/*", "--on", "owner:harbour", "--days", "30", "--reason", "known"]);
    assert!(text(&waived.stdout).contains("Waiver 1 holds until "), "{}", text(&waived.stderr));
    let quiet = text(&run(&["alerts", "quiet"]).stdout);
    for said in ["silence 1", "by ada: moving the pier", "maintenance 1", "waiver 1", "a2a/* on owner:harbour"] {
        assert!(quiet.contains(said), "{said}: {quiet}");
    }
    for wrong in [
        &["alerts", "silence", "", "--hours", "2", "--reason", "x"][..],
        &["alerts", "silence", "owner:x", "--hours", "9999", "--reason", "x"],
        &["alerts", "waive", "a2a/no-such", "--on", "owner:x", "--days", "30", "--reason", "x"],
        &["alerts", "maintenance", "owner:x", "--title", "x", "--cron", "0 3 * *", "--minutes", "60"],
        &["alerts", "ack", "7", "--note", "x"],
    ] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    assert!(text(&run(&["alerts", "end", "silence", "1"]).stdout).contains("is over"));
    assert_eq!(run(&["alerts", "end", "silence", "1"]).status.code(), Some(2));
}

#[test]
fn what_keeps_quiet_stands_in_the_settings_too_and_is_ended_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let until = (chrono::Utc::now() + chrono::Duration::days(30)).to_rfc3339();
    let filed = format!(
        "[[silences]]\nname = \"move\"\nmatch = \"owner:harbour\"\nreason = \"moving\"\nauthor = \"Ada\"\nuntil = \"{until}\"\n\
         [[waivers]]\nname = \"old\"\nrule = \"a2a/*\"\nmatch = \"owner:harbour\"\nreason = \"old\"\nauthor = \"Ada\"\nuntil = \"{until}\"\n\
         [[maintenance]]\nname = \"backups\"\nmatch = \"owner:harbour\"\nauthor = \"Ada\"\ncron = \"0 3 * * 0\"\nminutes = 60\n"
    );
    let file = folder.path().join("plumbline.toml");
    std::fs::write(&file, &filed).expect("it is written");
    // A command that applies the settings; that there is no such receiver does not matter.
    let apply = || in_folder(folder.path(), &["webhooks", "ping", "none"]);
    let quiet = || text(&in_folder(folder.path(), &["alerts", "quiet"]).stdout);
    apply();
    apply();
    assert_eq!(quiet().lines().count(), 3, "twice read, once kept: {}", quiet());
    let end = in_folder(folder.path(), &["alerts", "end", "waiver", "1"]);
    assert!(text(&end.stderr).contains("settings file"), "{}", text(&end.stderr));
    std::fs::write(&file, filed.replace("reason = \"moving\"", "reason = \"still moving\"")).expect("it is written");
    apply();
    assert!(quiet().contains("still moving") && quiet().lines().count() == 3, "{}", quiet());
    std::fs::write(&file, "").expect("it is written");
    apply();
    assert_eq!(quiet(), "", "what is no longer named is over");
    std::fs::write(&file, filed.replace("a2a/*", "no/such")).expect("it is written");
    let wrong = in_folder(folder.path(), &["config", "--check"]);
    assert_ne!(wrong.status.code(), Some(0));
}
