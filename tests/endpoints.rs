//! MCP servers and agents built on released SDKs, each looked at live: what they speak, who gets in, and what is said of them.
//!
//! Skipped with a printed reason where the fleet is not running (PLUMBLINE_FLEET names its fleet.json); in CI it runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The running fleet, or a reason why the test cannot run.
fn fleet() -> Option<Value> {
    let Some(path) = std::env::var_os("PLUMBLINE_FLEET") else {
        assert!(std::env::var_os("CI").is_none(), "PLUMBLINE_FLEET has to be set in CI");
        println!("skipped: PLUMBLINE_FLEET is not set");
        return None;
    };
    let text = std::fs::read_to_string(&path).expect("the fleet's list can be read");
    Some(serde_json::from_str(&text).expect("the fleet's list is JSON"))
}

/// Who gets into each server, read by eye: only one wants a token.
const ACCESS: &[(&str, &str)] = &[
    ("mcp-everything", "open"),
    ("mcp-everything-sse", "open"),
    ("mcp-fastmcp-4", "open"),
    ("mcp-py-1.12", "open"),
    ("mcp-py-1.30", "open"),
    ("mcp-py-1.30-oauth", "auth_required"),
    ("mcp-py-1.30-stateless", "open"),
    ("mcp-py-1.8", "open"),
    ("mcp-py-1.9", "open"),
    ("mcp-py-2.3", "open"),
    ("mcp-ts-2.4-dual", "open"),
    ("mcp-ts-2.4-modern", "open"),
    ("tls-mcp-good", "open"),
];

/// Every error that is said of a server, with what of its specification it breaks, read by eye.
const CONFIRMED: &[(&str, &str, &str)] = &[
    // 2025-11-25 transports, Session Management: a request in an ended session MUST be answered 404; it answers 400.
    ("mcp-everything", "mcp/session-terminated-accepted", "400 after DELETE"),
    // 2025-06-18 transports: the body of a POST MUST be a single message; it answers a list of one.
    ("mcp-everything", "mcp/batch-accepted", "answers a batch"),
    // Security Warning of every Streamable HTTP revision: servers MUST validate the Origin header; these do not look.
    ("mcp-everything", "mcp/origin-not-validated-local", "serves a foreign Origin"),
    ("mcp-fastmcp-4", "mcp/origin-not-validated-local", "serves a foreign Origin"),
    ("mcp-py-1.12", "mcp/origin-not-validated-local", "serves a foreign Origin"),
    ("mcp-py-1.9", "mcp/origin-not-validated-local", "serves a foreign Origin"),
    // The revision it answers is 2024-11-05, whose transports page has the same warning for servers over HTTP.
    ("mcp-py-1.8", "mcp/origin-not-validated-local", "serves a foreign Origin"),
    // 2025-03-26 basic, Batching: implementations MUST support receiving batches; it answers 400.
    ("mcp-py-1.9", "mcp/batch-rejected", "refuses a batch"),
];

/// What `check` says of an address.
fn check(folder: &Path, url: &str, more: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_plumbline"))
        .current_dir(folder)
        .env_remove("PLUMBLINE_CONFIG")
        .env("FLEET_TOKEN", "Bearer fleet-test-token")
        .args(["check", url, "--format", "json"])
        .args(more)
        .output()
        .expect("it runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{url}: {error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn folder(fleet: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "[net]\nallow_networks = [\"127.0.0.0/8\", \"::1/128\"]\nca_file = {}\n[net.manners]\npace_ms = 0\n",
        fleet["ca"]
    );
    std::fs::write(folder.path().join("plumbline.toml"), text).expect("the settings are written");
    folder
}

/// The MCP servers of the fleet, each probed beside the others.
fn probed(fleet: &Value) -> BTreeMap<String, (Value, Value)> {
    looked_at(fleet, |server| server["kind"] == "mcp")
}

/// The servers of the fleet that are wanted, each looked at beside the others.
fn looked_at(fleet: &Value, is_wanted: impl Fn(&Value) -> bool) -> BTreeMap<String, (Value, Value)> {
    let folder = folder(fleet);
    let servers = fleet["servers"].as_array().expect("servers");
    let endpoints: Vec<&Value> = servers.iter().filter(|server| is_wanted(server)).collect();
    std::thread::scope(|scope| {
        let probes: Vec<_> = endpoints
            .iter()
            .map(|server| {
                let path = folder.path();
                scope.spawn(move || {
                    let name = server["name"].as_str().expect("a name").to_owned();
                    let report = check(path, server["url"].as_str().expect("a url"), &[]);
                    (name, ((*server).clone(), report))
                })
            })
            .collect();
        probes.into_iter().map(|probe| probe.join().expect("it was probed")).collect()
    })
}

/// How a server is expected to be seen: the fleet calls the revisions with a handshake by it.
fn era(expected: &Value) -> &str {
    match expected["era"].as_str().expect("an era") {
        "handshake" => "legacy",
        other => other,
    }
}

#[test]
fn every_server_of_a_released_sdk_is_seen_as_what_it_is() {
    let Some(fleet) = fleet() else { return };
    let probed = probed(&fleet);
    let mut wrong = Vec::new();
    for (name, (server, report)) in &probed {
        let access = ACCESS.iter().find(|(known, _)| known == name).map(|(_, access)| *access);
        let seen = &report["endpoint"];
        let newest = seen["revisions"].as_array().and_then(|revisions| revisions.last()).and_then(Value::as_str);
        let is_closed = access == Some("auth_required");
        let expected = match is_closed {
            // Nothing shows before somebody is let in.
            true => ("unknown", None),
            false => (era(&server["expected"]), server["expected"]["newest"].as_str()),
        };
        if (seen["era"].as_str(), newest) != (Some(expected.0), expected.1) || seen["access"].as_str() != access {
            wrong.push(format!("{name}: expected {expected:?} {access:?}, seen {seen}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(probed.len(), ACCESS.len(), "every server of the fleet is in the table");

    let errors: Vec<(&str, &str)> = probed
        .iter()
        .flat_map(|(name, (_, report))| {
            let findings = report["findings"].as_array().expect("findings");
            let errors = findings.iter().filter(|finding| finding["severity"] == "error");
            errors.map(move |finding| (name.as_str(), finding["rule"].as_str().expect("a rule")))
        })
        .collect();
    let unconfirmed: Vec<_> =
        errors.iter().filter(|error| !CONFIRMED.iter().any(|(name, rule, _)| (*name, *rule) == **error)).collect();
    assert!(unconfirmed.is_empty(), "errors that nobody has read against the specification: {unconfirmed:?}");
    for (name, rule, what) in CONFIRMED {
        assert!(errors.contains(&(*name, *rule)), "{name} {what}, and {rule} is silent");
    }

    let said: String = probed.iter().map(|(name, (_, report))| summary(name, report)).collect();
    insta::assert_snapshot!("what_is_said_of_each_server", said);
}

/// Agents whose certificates are good. Their findings were read by eye against what they serve: the Python SDK sends no
/// `Cache-Control` and knows no CORS, the JS SDK writes empty strings where nothing is meant, the hybrid card of the Python SDK
/// leaves its main interface out of `additionalInterfaces`, and the fleet's TLS front sends no HSTS.
#[test]
fn every_agent_of_a_released_sdk_is_seen_as_what_it_is() {
    let Some(fleet) = fleet() else { return };
    let is_agent = |server: &Value| {
        let name = server["name"].as_str().unwrap_or_default();
        name.starts_with("a2a-") || name == "tls-a2a-good"
    };
    let looked_at = looked_at(&fleet, is_agent);
    assert_eq!(looked_at.len(), 8, "every agent of the fleet is looked at");
    let mut said = String::new();
    for (name, (_, report)) in &looked_at {
        assert_eq!(report["headline"], "sound", "{name}");
        let profile = report["detected"]["profile"].as_str().unwrap_or_default();
        said.push_str(&format!("{name}: {}; {profile}\n", report["headline"].as_str().unwrap_or_default()));
        said.push_str(&findings(report));
    }
    insta::assert_snapshot!("what_is_said_of_each_agent", said);
}

/// What is said of a server, rule by rule, with what stands beside it in the table of protocols.
fn summary(name: &str, report: &Value) -> String {
    let detected = report["endpoint"]["detected"].as_array().expect("protocols").iter();
    let detected: Vec<String> = detected
        .filter(|detected| detected["state"] != "not_detected")
        .map(|detected| format!("{} {}", detected["protocol"], detected["state"]).replace('"', ""))
        .collect();
    let text = format!("{name}: {}; {}\n", report["headline"].as_str().unwrap_or_default(), detected.join(", "));
    text + &findings(report)
}

/// The findings of a report, rule by rule.
fn findings(report: &Value) -> String {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for finding in report["findings"].as_array().expect("findings") {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        *counts.entry((text("severity"), text("rule"))).or_default() += 1;
    }
    let mut text = String::new();
    for ((severity, rule), count) in counts {
        text.push_str(&format!("  {severity} {rule} x{count}\n"));
    }
    text
}

#[test]
fn with_the_operators_token_a_closed_server_is_seen_too() {
    let Some(fleet) = fleet() else { return };
    let servers = fleet["servers"].as_array().expect("servers");
    let closed = servers.iter().find(|server| server["name"] == "mcp-py-1.30-oauth").expect("it is in the fleet");
    let folder = folder(&fleet);
    let recorded = folder.path().join("session.json");
    let record = ["--record", recorded.to_str().expect("a path"), "--header-env", "authorization=FLEET_TOKEN"];
    let report = check(folder.path(), closed["url"].as_str().expect("a url"), &record);
    assert_eq!(report["endpoint"]["era"], "legacy", "{report}");
    assert_eq!(report["endpoint"]["access"], "open");
    assert_eq!(report["endpoint"]["revisions"], serde_json::json!(["2025-11-25"]));
    let session = std::fs::read_to_string(&recorded).expect("the session was recorded");
    assert!(!session.contains("fleet-test-token"), "the token stands in no record");
}

#[test]
fn a_recorded_conversation_is_judged_alike_offline() {
    let Some(fleet) = fleet() else { return };
    let servers = fleet["servers"].as_array().expect("servers");
    let server = servers.iter().find(|server| server["name"] == "mcp-everything").expect("it is in the fleet");
    let folder = folder(&fleet);
    let recorded = folder.path().join("session.json");
    let path = recorded.to_str().expect("a path");
    let live = check(folder.path(), server["url"].as_str().expect("a url"), &["--record", path]);
    let offline = check(folder.path(), path, &[]);
    for part in ["headline", "endpoint", "detected", "findings", "facts"] {
        assert_eq!(live[part], offline[part], "{part}");
    }
}

#[test]
fn a_wrong_certificate_makes_an_endpoint_unreachable_and_nothing_else() {
    let Some(fleet) = fleet() else { return };
    let folder = folder(&fleet);
    let outcomes = [
        ("tls-expired", "the certificate has ended"),
        ("tls-wronghost", "the certificate is for another name"),
        ("tls-selfsigned", "the certificate leads to no known authority"),
    ];
    for (name, why) in outcomes {
        let servers = fleet["servers"].as_array().expect("servers");
        let server = servers.iter().find(|server| server["name"] == name).expect("it is in the fleet");
        let url = server["url"].as_str().expect("a url").replace("/.well-known/agent-card.json", "/mcp");
        let report = check(folder.path(), &url, &[]);
        assert_eq!(report["endpoint"]["access"], "unreachable", "{name}");
        assert_eq!(report["findings"], serde_json::json!([]), "{name}");
        let states = report["states"].as_array().expect("states");
        assert!(states.iter().any(|state| state["message"] == why), "{name}: {states:?}");
    }
}
