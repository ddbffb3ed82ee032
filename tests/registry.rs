//! A registry with every fault it can have, and real listings replayed: what is kept is what it lists, and nothing is taken
//! from it that was only not heard.

mod support;

use std::process::{Command, Output};

use serde_json::Value;
use support::{crawl, fake_registry, json_answer, plumbline, registry, settings, shared, status_answer};

/// One fault, and what two full crawls of the registry that has it come to.
struct Case {
    /// How the stand-in registry is started.
    options: &'static [&'static str],
    /// Entries kept after both.
    entries: i64,
    /// Whether the first walk ends by itself.
    is_complete: bool,
    /// A part of what the first walk says of its end.
    problem: &'static str,
}

const fn whole(options: &'static [&'static str]) -> Case {
    Case { options, entries: 450, is_complete: true, problem: "" }
}

const fn cut(options: &'static [&'static str], entries: i64, problem: &'static str) -> Case {
    Case { options, entries, is_complete: false, problem }
}

/// Every knob of the stand-in registry.
const CASES: &[Case] = &[
    whole(&["--error-rate", "0.2"]),
    whole(&["--truncate-rate", "0.2"]),
    whole(&["--html-rate", "0.2"]),
    whole(&["--drop-rate", "0.2"]),
    whole(&["--slow", "300", "--slow-rate", "0.5"]),
    whole(&["--drip", "20000"]),
    whole(&["--duplicate-rate", "1.0"]),
    whole(&["--count-off", "3"]),
    whole(&["--no-official"]),
    whole(&["--etag", "--gzip"]),
    cut(&["--rate-limit", "3", "--retry-after", "1"], 300, "throttled"),
    cut(&["--rate-limit", "3", "--retry-after", "1", "--retry-after-date", "1"], 300, "throttled"),
    cut(&["--cursor-loop", "3"], 300, "cursor"),
    cut(&["--empty-page", "1"], 350, "empty"),
];

#[test]
fn every_fault_of_a_registry_is_borne_and_takes_nothing_away() {
    if shared("fleet/fake_registry.py").is_none() {
        return;
    }
    std::thread::scope(|scope| {
        for case in CASES {
            scope.spawn(move || judge(case));
        }
    });
}

fn judge(case: &Case) {
    let mut options = vec!["--synthetic", "450"];
    options.extend(case.options);
    let (_running, base) = fake_registry(&options).expect("it was there a moment ago");
    let folder = tempfile::tempdir().expect("a folder");
    settings(folder.path(), Some(&base), &[]);
    let (summary, output) = crawl(folder.path(), &["--full"]);
    let walked = &summary["registries"][0];
    assert_eq!(walked["complete"], case.is_complete, "{:?}: {summary}\n{}", case.options, log(&output));
    assert!(text(&walked["problem"]).contains(case.problem), "{:?}: {summary}", case.options);
    // The same again: nothing doubled, nothing gone.
    let (again, _) = crawl(folder.path(), &["--full"]);
    for summary in [&summary, &again] {
        let targets = summary["headlines"]["targets"].as_i64().unwrap_or(0);
        let least = if case.is_complete { case.entries - 20 } else { 90 };
        assert!((least..=450).contains(&targets), "{:?}: {targets} targets: {summary}", case.options);
    }
    assert!(
        again["headlines"]["targets"].as_i64() >= summary["headlines"]["targets"].as_i64(),
        "{:?}: nothing was taken away: {summary} {again}",
        case.options
    );
    assert_eq!(again["regressed"], 0, "{:?}", case.options);
}

#[test]
fn a_registry_that_ignores_updated_since_is_walked_completely_from_then_on() {
    let Some((_running, base)) = fake_registry(&["--synthetic", "1200", "--ignore-updated-since", "1"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    settings(folder.path(), Some(&base), &[]);
    crawl(folder.path(), &["--full"]);
    // The second pass asks for what moved, gets everything, and reads everything.
    for pass in ["second", "third"] {
        let (summary, _) = crawl(folder.path(), &[]);
        let walked = &summary["registries"][0];
        assert_eq!((&walked["full"], &walked["complete"]), (&true.into(), &true.into()), "{pass}: {summary}");
        assert_eq!(walked["entries"], 1200, "{pass}: {summary}");
    }
}

#[test]
fn a_registry_that_knows_only_the_older_path_is_read_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = registry(120, |_, asked| asked.path.starts_with("/v0.1/").then(|| status_answer(404)));
    settings(folder.path(), Some(&old.base), &[]);
    let (summary, _) = crawl(folder.path(), &["--full"]);
    assert_eq!((&summary["registries"][0]["complete"], &summary["headlines"]["targets"]), (&true.into(), &120.into()));
}

#[test]
fn a_registry_that_was_reset_keeps_its_entries_until_a_person_accepts_the_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let reset = registry(120, |_, _| None);
    settings(folder.path(), Some(&reset.base), &[]);
    crawl(folder.path(), &["--full"]);
    reset.entries.lock().expect("nobody panicked").truncate(60);
    for _ in 0..3 {
        let (summary, _) = crawl(folder.path(), &["--full"]);
        assert_eq!(summary["headlines"]["targets"], 120, "{summary}");
    }
    let wrong = plumbline(folder.path()).args(["crawl", "--accept-loss", "nobody"]).output().expect("it runs");
    assert!(log(&wrong).contains("there are: test"), "{}", log(&wrong));
    let (summary, _) = crawl(folder.path(), &["--accept-loss", "test"]);
    assert_eq!(summary["headlines"]["targets"], 60, "{summary}");
}

#[test]
fn a_walk_that_begins_anew_is_not_held_to_the_holes_of_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let hole = serde_json::json!({ "servers": [], "metadata": { "nextCursor": "200" } });
    let moody = registry(300, move |n, _| match n {
        1 => Some(json_answer(&hole)),
        2 => Some(status_answer(422)),
        _ => None,
    });
    settings(folder.path(), Some(&moody.base), &[]);
    let (summary, _) = crawl(folder.path(), &["--full"]);
    assert_eq!(
        (&summary["registries"][0]["complete"], &summary["headlines"]["targets"]),
        (&true.into(), &300.into()),
        "{summary}"
    );
}

#[test]
fn one_name_in_two_registries_is_one_target() {
    let Some((_first, first)) = fake_registry(&["--synthetic", "150"]) else { return };
    let Some((_second, second)) = fake_registry(&["--synthetic", "150", "--no-official"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = settings(folder.path(), Some(&first), &[]);
    let mut text = std::fs::read_to_string(&path).expect("just written");
    text.push_str(&format!("[[registries]]\nname = \"sub\"\nbase = \"{second}\"\npace_ms = 0\n"));
    std::fs::write(&path, text).expect("written");
    let (summary, _) = crawl(folder.path(), &["--full"]);
    assert_eq!(summary["registries"].as_array().map(Vec::len), Some(2), "{summary}");
    // The official one hides the withdrawn entries of its names, the other does not say that they are.
    assert_eq!(summary["headlines"]["targets"], 150, "{summary}");
}

#[test]
fn sixteen_recorded_listings_are_kept_as_they_were() {
    told_by_the_script("replay");
}

#[test]
fn changes_of_every_kind_reach_the_store() {
    told_by_the_script("churn");
}

/// The script reads files, registry and database by itself.
fn told_by_the_script(part: &str) {
    let Some(registry) = shared("fleet/fake_registry.py") else { return };
    let shared = registry.ancestors().nth(2).expect("two folders up");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/registry_truth.py");
    let output = Command::new("python3")
        .args([script, part, env!("CARGO_BIN_EXE_plumbline")])
        .arg(shared)
        .output()
        .expect("python3 is there");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", log(&output));
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn log(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
