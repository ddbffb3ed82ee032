//! SIGHUP and the ping: the real process, told to read its settings again, and watched from outside.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use support::{Serving, eventually, get, ok_answer, registry, serve, server, settings, status_answer};

const PATIENCE: Duration = Duration::from_secs(60);

fn hang_up(serving: &Serving) {
    let pid = serving.process.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().expect("kill runs").success());
}

fn json(serving: &Serving, path: &str) -> serde_json::Value {
    serde_json::from_str(&get(&serving.address, path, "application/json").body).expect("it is JSON")
}

/// The number of watched targets.
fn targets(serving: &Serving) -> Option<i64> {
    json(serving, "/")["present"]["targets"].as_i64()
}

fn is_logged(serving: &Serving, words: &str) -> Option<()> {
    serving.log.lock().expect("nobody panicked").iter().any(|line| line.contains(words)).then_some(())
}

/// Adds lines to the settings.
fn add(folder: &Path, lines: &str) {
    let path = folder.join("plumbline.toml");
    let text = std::fs::read_to_string(&path).expect("they are there");
    std::fs::write(&path, format!("{lines}\n{text}")).expect("they are written");
}

#[test]
fn a_hangup_brings_new_settings_and_a_bad_file_brings_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = registry(12, |_, _| None);
    let card = include_str!("../rules/examples/a2a-1.0.json");
    let agent = server(move |_| ok_answer("application/json", card));
    settings(folder.path(), Some(&registry.base), &[]);
    let serving = serve(folder.path(), &[]);
    eventually("the registry is read", PATIENCE, || (targets(&serving) == Some(12)).then_some(()));

    settings(folder.path(), None, &[format!("http://{agent}/.well-known/agent-card.json")]);
    add(folder.path(), "[retention]\nevent_days = 7\n[crawl]\nwokers = 3");
    hang_up(&serving);
    eventually("the log says no", PATIENCE, || is_logged(&serving, "the settings stay as they were"));
    assert!(is_logged(&serving, "wokers").is_some(), "and why");
    assert_eq!(json(&serving, "/settings/about")["retention"]["event_days"], 400, "nothing of it is in force");
    assert_eq!(targets(&serving), Some(12));

    settings(folder.path(), None, &[format!("http://{agent}/.well-known/agent-card.json")]);
    add(folder.path(), "database = \"other.db\"\n[retention]\nevent_days = 7\n[web]\nname = \"Harbour fleet\"");
    hang_up(&serving);
    eventually("the log says yes", PATIENCE, || is_logged(&serving, "were read again and are in force"));
    assert!(is_logged(&serving, "database takes effect at the next start").is_some());
    assert_eq!(json(&serving, "/settings/about")["retention"]["event_days"], 7);
    assert!(get(&serving.address, "/", "text/html").body.contains("Harbour fleet"));
    assert_eq!(targets(&serving), Some(1), "the registry is no longer named, the agent is");
    eventually("the agent is looked at", PATIENCE, || {
        (json(&serving, "/targets")["targets"][0]["reach"] == "up").then_some(())
    });
    assert!(!folder.path().join("other.db").exists());

    settings(folder.path(), Some(&registry.base), &[]);
    hang_up(&serving);
    eventually("the registry is back", PATIENCE, || (targets(&serving) == Some(12)).then_some(()));
}

#[test]
fn a_good_pass_is_told_to_whoever_watches_and_a_bad_one_is_not() {
    for (is_good, said) in [(true, "12 entries"), (false, "incomplete")] {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = registry(12, move |_, _| (!is_good).then(|| status_answer(401)));
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let watcher = server(move |asked| {
            counted.fetch_add(usize::from(asked.path == "/alive"), Ordering::SeqCst);
            ok_answer("text/plain", "OK")
        });
        settings(folder.path(), Some(&registry.base), &[]);
        add(folder.path(), &format!("[watch]\nping_url = \"http://{watcher}/alive\""));
        let serving = serve(folder.path(), &[]);
        eventually("the pass is over", PATIENCE, || is_logged(&serving, said));
        if is_good {
            eventually("the watcher is called", PATIENCE, || (calls.load(Ordering::SeqCst) > 0).then_some(()));
        }
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(is_good), "once, however many passes follow at once");
    }
}
