//! `plumbline doctor` over what a crawl wrote, over what a dead process left, and over what is no database.

mod support;

use std::path::Path;
use std::process::Output;

use plumbline_store::Store;
use plumbline_store::words::CrawlKind;
use support::{crawl, plumbline};

fn doctor(folder: &Path, more: &[&str]) -> Output {
    let database = folder.join("plumbline-sample.db");
    plumbline(folder).args(["doctor", "--database"]).arg(database).args(more).output().expect("it runs")
}

/// A crawl of a process of this host that does not run.
fn leave_behind(folder: &Path) {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("this host has a name");
    let holder = format!("{}/0.0", host.trim());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let database = folder.join("plumbline-sample.db");
        let store = Store::open(database.to_str().expect("a plain path")).await.expect("it opens");
        store.start_crawl(CrawlKind::Round, None, None, &holder, 1_796_000_000).await.expect("it is written");
        store.close().await;
    });
}

#[test]
fn a_crawled_database_is_sound_and_what_the_dead_left_is_mended() {
    let folder = tempfile::tempdir().expect("a folder");
    crawl(folder.path(), &["--sample"]);
    let fine = doctor(folder.path(), &[]);
    let said = String::from_utf8_lossy(&fine.stdout).into_owned();
    assert_eq!((fine.status.code(), said.lines().last()), (Some(0), Some("Nothing is wrong.")), "{said}");

    leave_behind(folder.path());
    let wrong = doctor(folder.path(), &[]);
    let said = String::from_utf8_lossy(&wrong.stdout).into_owned();
    assert_eq!(wrong.status.code(), Some(1), "{said}");
    assert!(said.contains("is running, but") && said.contains("`--repair` mends"), "{said}");

    let mended = doctor(folder.path(), &["--repair", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&mended.stdout).expect("JSON");
    let last = told["checks"].as_array().expect("checks").last().expect("one at least").clone();
    assert_eq!((&last["wrong"], &last["mended"]), (&1.into(), &1.into()), "{told}");
    assert_eq!(mended.status.code(), Some(0));
    assert_eq!(doctor(folder.path(), &[]).status.code(), Some(0), "nothing is left");
}

#[test]
fn what_is_no_database_cannot_be_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plumbline-sample.db"), "a diary, and a long one ".repeat(60))
        .expect("it is written");
    let output = doctor(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a database"));
}
