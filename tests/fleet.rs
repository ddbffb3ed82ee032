//! Agents built on released SDKs, crawled live: none of them is accused of an error, and what cannot be reached says why.
//!
//! Skipped with a printed reason where the fleet is not running (PLUMBLINE_FLEET names its fleet.json); in CI it runs.

mod support;

use serde_json::Value;
use support::crawl;

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

/// The card addresses of the fleet whose names pass.
fn cards(fleet: &Value, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let servers = fleet["servers"].as_array().expect("servers");
    let is_agent = |server: &&Value| {
        let name = server["name"].as_str().unwrap_or_default();
        (name.starts_with("a2a-") || name.starts_with("tls-")) && name != "tls-mcp-good" && wanted(name)
    };
    let base = |server: &Value| {
        let url = url::Url::parse(server["url"].as_str().expect("a url")).expect("an address");
        format!("{}/", url.origin().ascii_serialization())
    };
    servers.iter().filter(is_agent).map(base).collect()
}

fn settings(folder: &std::path::Path, fleet: &Value, cards: &[String]) {
    support::settings(folder, None, cards);
    let path = folder.join("plumbline.toml");
    let text = std::fs::read_to_string(&path).expect("the settings");
    let ca = format!("[net]\nca_file = {}\n", fleet["ca"]);
    std::fs::write(&path, text.replacen("[net]\n", &ca, 1)).expect("they are written");
}

#[test]
fn no_agent_of_a_released_sdk_is_accused_of_an_error() {
    let Some(fleet) = fleet() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let cards = cards(&fleet, |name| !["tls-expired", "tls-wronghost", "tls-selfsigned"].contains(&name));
    assert!(cards.len() >= 8, "{cards:?}");
    settings(folder.path(), &fleet, &cards);
    let (summary, _) = crawl(folder.path(), &[]);
    let headlines = &summary["headlines"];
    assert_eq!(headlines["targets"], cards.len(), "{summary}");
    assert_eq!(headlines["sound"], cards.len(), "{summary}");
}

#[test]
fn a_wrong_certificate_is_reach_and_never_a_finding() {
    let Some(fleet) = fleet() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let cards = cards(&fleet, |name| ["tls-expired", "tls-wronghost", "tls-selfsigned"].contains(&name));
    assert_eq!(cards.len(), 3);
    settings(folder.path(), &fleet, &cards);
    let (summary, _) = crawl(folder.path(), &[]);
    assert_eq!(summary["headlines"]["not_evaluated"], 3, "{summary}");
    assert_eq!(summary["opened"], 0, "{summary}");
}
