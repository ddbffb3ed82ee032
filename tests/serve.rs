//! The dashboard over a running crawl: the real process, asked over a socket.

mod support;

use std::time::Duration;

use support::{crawl, eventually, get, plumbline, registry, serve, settings};

#[test]
fn the_sample_is_served_with_its_targets_documents_and_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let serving = serve(folder.path(), &["--sample"]);
    let page = |path: &str| get(&serving.address, path, "text/html");
    eventually("targets are judged", Duration::from_secs(60), || {
        let answer = get(&serving.address, "/targets", "application/json");
        (answer.body.contains("blocked") && answer.body.contains("sound")).then_some(())
    });
    for path in
        ["/", "/targets", "/rules", "/rules/a2a/not-a-card", "/crawls", "/crawls/1", "/targets/1", "/about/crawler"]
    {
        let answer = page(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.head.contains("content-security-policy: default-src 'none'"), "{path}: {}", answer.head);
        let scripts = answer.body.matches("<script").count();
        assert_eq!(scripts, answer.body.matches("<script src=\"/").count(), "{path}: no script stands in a page");
        let json = get(&serving.address, path, "application/json");
        assert!(serde_json::from_str::<serde_json::Value>(&json.body).is_ok(), "{path}: {}", json.body);
    }
    assert_eq!(page("/healthz").status, 200);
    assert_eq!(page("/readyz").status, 200);
    assert_eq!(page("/nowhere").status, 404);
}

#[test]
fn without_a_network_the_home_page_says_so_and_offers_the_sample() {
    let folder = tempfile::tempdir().expect("a folder");
    // A registry where nobody listens, and the loopback allowed, so that it is tried.
    settings(folder.path(), Some("http://127.0.0.1:1"), &[]);
    let serving = serve(folder.path(), &[]);
    let body = eventually("the home page knows", Duration::from_secs(100), || {
        let body = get(&serving.address, "/", "text/html").body;
        body.contains("nobody listens").then_some(body)
    });
    assert!(body.contains("127.0.0.1:1") && body.contains("--sample"), "{body}");
}

#[test]
fn a_port_in_use_is_said_with_a_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = plumbline(folder.path()).args(["serve", "--sample", "--listen", &address]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("is in use") && said.contains("--listen"), "{said}");
}

#[test]
fn a_signal_ends_the_service_within_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut serving = serve(folder.path(), &["--sample"]);
    let pid = serving.process.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let status =
        eventually("it stops", Duration::from_secs(15), || serving.process.0.try_wait().expect("it can be asked"));
    assert_eq!(status.code(), Some(0));
}

fn json_of(address: &str, path: &str) -> serde_json::Value {
    serde_json::from_str(&get(address, path, "application/json").body).expect("it is JSON")
}

#[test]
fn what_the_rules_say_of_a_registrys_list_stands_with_its_walk_and_its_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = registry(12, |_, _| None);
    settings(folder.path(), Some(&registry.base), &[]);
    crawl(folder.path(), &["--full"]);
    {
        let mut entries = registry.entries.lock().expect("nobody panicked");
        entries[3]["server"]["description"] = "Gives the price of coins".into();
        entries[4]["_meta"]["io.modelcontextprotocol.registry/official"]["updatedAt"] = "2025-01-01T08:00:00Z".into();
        entries.remove(7);
    }
    crawl(folder.path(), &["--full"]);
    let serving = serve(folder.path(), &[]);
    let crawls = json_of(&serving.address, "/crawls");
    let source = &crawls["sources"][0];
    let number = source["full_crawl"].as_i64().expect("it was walked");
    let shown = json_of(&serving.address, &format!("/crawls/{number}"));
    let said: Vec<_> = shown["list_findings"].as_array().expect("a list").iter().map(|f| f["rule"].clone()).collect();
    let expected = [
        "registry/entry-vanished",
        "registry/timestamp-order",
        "registry/updated-at-regressed",
        "registry/version-content-changed",
    ];
    assert_eq!(said, expected, "{shown}");
    assert_eq!(source["list_findings"], 4, "{source}");
    let place = &shown["list_findings"][3]["places"][0][0];
    assert_eq!(place, "io.github.test/server-00003 1.0.0 /crawls/1/server/description");
    let page = get(&serving.address, &format!("/crawls/{number}"), "text/html").body;
    assert!(
        page.contains("What the rules say of the list") && page.contains("/rules/registry/entry-vanished"),
        "{page}"
    );
}
