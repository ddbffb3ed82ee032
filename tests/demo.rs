//! `plumbline demo`: the same history for the same seed, true to itself, and never mixed with what is real.

mod support;

use std::path::Path;
use std::process::Output;

use plumbline_store::{EventId, Store};
use support::plumbline;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    plumbline(folder).args(arguments).output().expect("it runs")
}

fn demo(folder: &Path, database: &str, more: &[&str]) -> Output {
    let small = ["demo", "--targets", "60", "--days", "40", "--until", "2026-11-30T15:20:00Z", "--database", database];
    run(folder, &[&small, more].concat())
}

/// What happened, and what there is.
fn told(folder: &Path, database: &str) -> (Vec<String>, String) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let path = folder.join(database);
        let store = Store::open(path.to_str().expect("a plain path")).await.expect("it opens");
        let events = store.events_after(EventId(0), 100_000).await.expect("events");
        let days = store.cohort_days(0).await.expect("days");
        let told = events.iter().map(|event| format!("{event:?}")).collect();
        let counts = format!("{:?} {days:?}", store.counts().await.expect("counts"));
        store.close().await;
        (told, counts)
    })
}

#[test]
fn the_same_seed_tells_the_same_history_and_the_doctor_finds_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (database, seed) in [("one.db", "5"), ("again.db", "5"), ("other.db", "6")] {
        let made = demo(folder.path(), database, &["--seed", seed]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let doctor = run(folder.path(), &["doctor", "--database", database]);
        let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert_eq!((doctor.status.code(), said.lines().last()), (Some(0), Some("Nothing is wrong.")), "{said}");
    }
    let one = told(folder.path(), "one.db");
    assert_eq!(one, told(folder.path(), "again.db"));
    assert_ne!(one, told(folder.path(), "other.db"));
    for word in
        ["FindingRegressed", "FindingResolved", "TargetDown", "TargetRecovered", "DeployEvaluated", "RulesetReleased"]
    {
        assert!(one.0.iter().any(|event| event.contains(word)), "nothing tells of {word}");
    }
    let time = |event: &String| event.split("at_s: ").nth(1)?.split(',').next()?.parse().ok();
    let times: Vec<i64> = one.0.iter().filter_map(time).collect();
    assert_eq!(times.len(), one.0.len());
    // What a registry's list says is recorded before the looks of the same minutes.
    let is_late = |pair: &[i64]| pair[1] < pair[0] - 600;
    assert!(!times.windows(2).any(is_late), "events come in the order of time");
}

#[test]
fn what_holds_something_is_not_filled_unless_somebody_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(demo(folder.path(), "a.db", &[]).status.success());
    let refused = demo(folder.path(), "a.db", &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("holds something already"));
}

#[test]
fn a_demonstration_that_was_broken_off_is_called_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let path = folder.path().join("a.db");
        let store = Store::open(path.to_str().expect("a plain path")).await.expect("it opens");
        store.is_demonstration("two targets").await.expect("it begins");
        store.close().await;
    });
    let refused = demo(folder.path(), "a.db", &[]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("broken off") && said.contains("delete the file"), "{said}");
}

#[test]
fn judging_again_by_other_rules_opens_what_they_bring_and_no_regression() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(demo(folder.path(), "a.db", &[]).status.success());
    // Whoever did not answer since the last release of the rules is judged by it first.
    assert!(run(folder.path(), &["recheck", "--database", "a.db"]).status.success());
    let same = run(folder.path(), &["recheck", "--dry-run", "--database", "a.db"]);
    let said = String::from_utf8_lossy(&same.stdout).into_owned();
    assert!(said.starts_with("0 surfaces"), "{said}");
    let off = "[[rules]]\nrule = \"a2a/skill-tags-required\"\nsay = \"off\"\n";
    std::fs::write(folder.path().join("off.toml"), off).expect("it is written");
    let without = run(folder.path(), &["recheck", "--database", "a.db", "--config", "off.toml"]);
    let said = String::from_utf8_lossy(&without.stdout).into_owned() + &String::from_utf8_lossy(&without.stderr);
    assert!(without.status.success() && !said.contains(" 0 ended"), "{said}");
    let with = run(folder.path(), &["recheck", "--database", "a.db"]);
    let said = String::from_utf8_lossy(&with.stdout).into_owned();
    assert!(!said.contains(": 0 findings opened") && said.contains("0 of them regressions"), "{said}");
    let again = run(folder.path(), &["recheck", "--database", "a.db"]);
    let again = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(again.contains(": 0 findings opened, 0 ended"), "it goes on where it ended: {again}");
    let doctor = run(folder.path(), &["doctor", "--rebuild", "--database", "a.db"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(0), "{said}");
    assert!(said.lines().any(|line| line.starts_with("ok") && line.contains("days of the trends")), "{said}");
}
