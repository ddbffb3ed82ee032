//! What stands behind a listing: a repository that is gone and a package that names another server are found, confirmed, and
//! over when they are mended.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use plumbline_store::Store;
use plumbline_store::ids::TargetId;
use serde_json::{Value, json};
use support::{crawl, json_answer, registry, server, settings, status_answer};

/// Has the entry looked at again, as a week later.
fn again(folder: &Path) -> Value {
    let database = folder.join("plumbline.db");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = Store::open(database.to_str().expect("a plain path")).await.expect("it opens");
        store.recheck(TargetId(1), chrono::Utc::now().timestamp()).await.expect("the target is there");
    });
    crawl(folder, &[]).0
}

#[test]
fn what_is_gone_behind_a_listing_is_found_confirmed_and_over_when_it_is_back() {
    let (repository, asked) = (Arc::new(AtomicU16::new(404)), Arc::new(AtomicUsize::new(0)));
    let (status, count) = (repository.clone(), asked.clone());
    let upstream = server(move |asked| {
        if asked.path == "/robots.txt" {
            return status_answer(404);
        }
        count.fetch_add(1, Ordering::SeqCst);
        match asked.path.as_str() {
            "/git/tides" => status_answer(status.load(Ordering::SeqCst)),
            "/npm/@tidehouse%2Ftides/1.0.0" => json_answer(&json!({ "mcpName": "io.github.somebody/else" })),
            _ => status_answer(500),
        }
    });
    let listed = registry(1, |_, _| None);
    {
        let mut entries = listed.entries.lock().expect("nobody panicked");
        let server = &mut entries[0]["server"];
        server["repository"] = json!({ "url": format!("http://{upstream}/git/tides"), "source": "github" });
        server["packages"] = json!([{
            "registryType": "npm", "identifier": "@tidehouse/tides", "version": "1.0.0", "transport": { "type": "stdio" },
        }]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = settings(folder.path(), Some(&listed.base), &[]);
    let without = std::fs::read_to_string(&path).expect("the settings are there");

    // Nobody asked for it: nothing is looked at.
    crawl(folder.path(), &[]);
    again(folder.path());
    assert_eq!(asked.load(Ordering::SeqCst), 0);

    let with = format!("{without}[upstream]\nrepositories = true\nnpm = \"http://{upstream}/npm\"\n");
    std::fs::write(&path, with).expect("the settings are written");
    let opened: Vec<i64> = (0..3).map(|_| again(folder.path())["opened"].as_i64().expect("a number")).collect();
    assert_eq!(opened, [0, 0, 2], "three looks confirm the two of them");
    assert_eq!(asked.load(Ordering::SeqCst), 6);

    repository.store(200, Ordering::SeqCst);
    let resolved: Vec<i64> = (0..2).map(|_| again(folder.path())["resolved"].as_i64().expect("a number")).collect();
    assert_eq!(resolved, [0, 1], "two looks confirm that the repository is back; the package is as it was");
}
