//! Listings and metadata that tools got wrong in public, each with its right verdict. The reports are told in the shared
//! corpus; the documents here are our own.

use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Report;
use plumbline_rules::rule::{Class, Severity};
use serde_json::{Value, json};

fn judged(document: &Value, kind: Kind, given: &Given) -> Report {
    let subject =
        Subject { kind: Some(kind), version: None, origin: Origin::PublicHost, given, session: None, answer: None };
    judge(&Document::from_text(&document.to_string()), &subject, &Settings::default())
}

/// Every loud occurrence as `severity rule pointer`.
fn loud(report: &Report) -> Vec<String> {
    let occurrences = report.findings().flat_map(|(rule, found)| found.iter().map(move |o| (rule, o)));
    let loud = occurrences.filter(|(_, o)| o.severity > Severity::Info);
    loud.map(|(rule, o)| format!("{} {} {}", o.severity, rule.id, o.pointer)).collect()
}

fn server(members: Value) -> Value {
    let mut server = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "dev.tidewatch/tides", "description": "Gives the times of high and low water", "version": "1.0.0",
        "remotes": [{"type": "streamable-http", "url": "https://mcp.tidewatch.dev/mcp"}]
    });
    let (Value::Object(all), Value::Object(members)) = (&mut server, members) else { panic!("both are objects") };
    all.extend(members);
    server
}

fn findings(members: Value) -> Vec<String> {
    loud(&judged(&server(members), Kind::ServerJson, &Given::default()))
}

#[test]
fn remotes_that_are_an_object_are_one_error_without_a_cascade() {
    let remotes = json!({"streamable-http": {"url": "https://mcp.tidewatch.dev/connect"}});
    let found = findings(json!({ "remotes": remotes }));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("error ") && found[0].ends_with(" /remotes"), "{found:?}");
}

#[test]
fn an_old_schema_is_a_fact_of_what_is_listed_and_a_warning_before_it_is() {
    let old = server(json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-07-09/server.schema.json"
    }));
    let listed = judged(&old, Kind::ServerJson, &Given::default());
    assert_eq!(loud(&listed), [""; 0]);
    assert!(listed.fired().any(|(rule, _)| rule.class == Class::Fact && rule.id.starts_with("registry/schema-")));
    assert_eq!(listed.detected.profile, "server-json-2025-07-09");
    let unpublished = Given { unpublished: true, ..Given::default() };
    let before = loud(&judged(&old, Kind::ServerJson, &unpublished));
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(before[0].starts_with("warning registry/schema-") && before[0].ends_with(" /$schema"), "{before:?}");
}

#[test]
fn an_address_that_is_all_template_is_none_and_one_with_a_template_is_one() {
    let remote = |url: &str, name: &str| {
        let variables = json!({ name: {"description": "Where it runs", "isRequired": true} });
        findings(json!({ "remotes": [{"type": "streamable-http", "url": url, "variables": variables}] }))
    };
    let all = remote("{coder_url}/api/mcp", "coder_url");
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].starts_with("error ") && all[0].ends_with(" /remotes/0/url"), "{all:?}");
    assert_eq!(remote("https://{host}/api/mcp", "host"), [""; 0]);
}

#[test]
fn a_description_has_at_most_a_hundred_characters_whatever_their_bytes() {
    assert_eq!(findings(json!({ "description": "a".repeat(100) })), [""; 0]);
    assert_eq!(findings(json!({ "description": "é".repeat(100) })), [""; 0]);
    for letter in ["a", "é"] {
        let found = findings(json!({ "description": letter.repeat(101) }));
        assert_eq!(found, ["error registry/description-too-long /description"]);
    }
}

#[test]
fn metadata_for_the_origin_is_wrong_at_the_path_of_an_endpoint_and_right_at_the_root() {
    let metadata = json!({
        "resource": "https://mcp.tidewatch.dev", "authorization_servers": ["https://id.tidewatch.dev"],
        "bearer_methods_supported": ["header"], "scopes_supported": ["tides.read"]
    });
    let found_at = |place: &str, url: &str| {
        let given = Given {
            url: Some(url.to_owned()),
            endpoint: Some("https://mcp.tidewatch.dev/mcp".to_owned()),
            found_at: Some(place.to_owned()),
            ..Given::default()
        };
        let report = judged(&metadata, Kind::OauthProtectedResource, &given);
        let found: Vec<_> = report.findings().filter(|(rule, _)| rule.id.starts_with("oauth/prm-resource")).collect();
        found.into_iter().map(|(rule, found)| (rule.id, found[0].severity)).collect::<Vec<_>>()
    };
    let path = found_at("path", "https://mcp.tidewatch.dev/.well-known/oauth-protected-resource/mcp");
    assert_eq!(path, [("oauth/prm-resource-broader", Severity::Error)]);
    let root = found_at("root", "https://mcp.tidewatch.dev/.well-known/oauth-protected-resource");
    assert!(root.iter().all(|(_, severity)| *severity < Severity::Error), "{root:?}");
}
