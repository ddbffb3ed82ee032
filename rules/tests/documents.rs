//! Listings and metadata that tools got wrong in public, each with its right verdict. The reports are told in the shared
//! corpus; the documents here are our own.

use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::{Headline, Report};
use plumbline_rules::rule::{Class, Severity};
use plumbline_rules::rule_settings::RuleSetting;
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
fn an_endpoint_beside_the_same_address_in_its_place_is_no_accusation() {
    let card = |endpoint: &str| {
        json!({
            "name": "Tides", "description": "Tide tables", "version": "1.0.0", "protocolVersion": "0.3.0",
            "url": "https://tides.plumbtest.dev/a2a", "endpoint": endpoint, "skills": []
        })
    };
    let said = |endpoint: &str| {
        let found = loud(&judged(&card(endpoint), Kind::AgentCard, &Given::default()));
        found.iter().any(|line| line.contains("a2a/endpoint-field-nonstandard"))
    };
    assert!(!said("https://tides.plumbtest.dev/a2a"));
    assert!(said("https://tides.plumbtest.dev/rpc"));
}

fn issuer(members: Value) -> Value {
    let mut issuer = json!({
        "issuer": "https://login.tidewatch.dev", "jwks_uri": "https://login.tidewatch.dev/jwks",
        "authorization_endpoint": "https://login.tidewatch.dev/authorize",
        "token_endpoint": "https://login.tidewatch.dev/token"
    });
    let (Value::Object(all), Value::Object(members)) = (&mut issuer, members) else { panic!("both are objects") };
    all.extend(members);
    issuer.as_object_mut().expect("it is one").retain(|_, value| !value.is_null());
    issuer
}

#[test]
fn a_server_that_gives_out_no_codes_is_one_warning() {
    let of = |members| loud(&judged(&issuer(members), Kind::OauthAuthorizationServer, &Given::default()));
    let payment = of(json!({"grant_types_supported": ["urn:x402:exact"], "response_types_supported": ["none"]}));
    assert_eq!(payment, ["warning oauth/as-grant-types-no-code /grant_types_supported"]);
    let tokens = of(json!({"response_types_supported": ["id_token"], "token_endpoint": null}));
    assert_eq!(tokens, ["warning oauth/as-response-types-no-code /response_types_supported"]);
    let torn = of(json!({"grant_types_supported": ["authorization_code"], "response_types_supported": ["id_token"],
            "code_challenge_methods_supported": ["S256"], "client_id_metadata_document_supported": true}));
    assert_eq!(torn, ["error oauth/as-response-types-no-code /response_types_supported"]);
}

#[test]
fn an_empty_list_that_is_required_is_to_be_filled() {
    let document = issuer(json!({"response_types_supported": [], "scopes_supported": []}));
    let report = judged(&document, Kind::OauthAuthorizationServer, &Given::default());
    let (_, found) = report.findings().find(|(rule, _)| rule.id == "oauth/metadata-empty-array").expect("it fires");
    let filled: Vec<_> = found.iter().map(|o| (o.pointer.as_str(), o.message.contains("filled"))).collect();
    assert_eq!(filled, [("/response_types_supported", true), ("/scopes_supported", false)]);
}

#[test]
fn a_card_of_the_older_form_is_judged_by_it_unless_it_follows_a_schema_of_its_own() {
    let of = |schema: &str, info: Value| {
        let card = json!({
            "$schema": schema, "description": "Tide tables", "protocolVersion": "2025-06-18", "serverInfo": info,
            "capabilities": {"tools": {}}, "transport": {"type": "streamable-http", "endpoint": "/mcp"}
        });
        judged(&card, Kind::McpServerCard, &Given::default())
    };
    let info = json!({"name": "tides", "version": "1.0.0"});
    let proposed = of("https://static.modelcontextprotocol.io/schemas/mcp-server-card/v1.json", info.clone());
    assert_eq!((proposed.detected.profile, loud(&proposed)), ("server-card-sep-1649", vec![]));
    let own = of("https://tides.plumbtest.dev/schema/server-card.json", info);
    assert_eq!((own.headline(), loud(&own)), (Headline::NotDetected, vec![]));
    let (_, found) = own.states().next().expect("it says what it is not");
    assert!(found[0].message.starts_with("no MCP server card"), "{}", found[0].message);
}

#[test]
fn what_only_a_proposal_asks_for_is_no_error() {
    let card = json!({"serverInfo": {}, "transport": "stdio", "tools": 3});
    let report = judged(&card, Kind::McpServerCard, &Given::default());
    assert_eq!(report.detected.profile, "server-card-sep-1649");
    assert!(
        loud(&report).len() >= 4 && loud(&report).iter().all(|line| line.starts_with("warning")),
        "{:?}",
        loud(&report)
    );
}

#[test]
fn a_transport_without_a_server_is_a_format_of_its_own() {
    let card =
        json!({"name": "tides", "version": "1.0.0", "transport": "streamable-http", "serverUrl": "https://t.dev"});
    let report = judged(&card, Kind::McpServerCard, &Given::default());
    assert_eq!(report.headline(), Headline::NotDetected);
}

#[test]
fn an_openid_document_is_known_by_its_address_and_held_against_it() {
    let document = json!({"issuer": "https://accounts.tidewatch.dev", "jwks_uri": "https://accounts.tidewatch.dev/keys",
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"]});
    let of = |address: &str| {
        let given = Given { url: Some(address.to_owned()), ..Given::default() };
        let subject = Subject {
            kind: None,
            version: None,
            origin: Origin::PublicHost,
            given: &given,
            session: None,
            answer: None,
        };
        let report = judge(&Document::from_text(&document.to_string()), &subject, &Settings::default());
        (report.detected.kind, loud(&report))
    };
    let own = of("https://accounts.tidewatch.dev/.well-known/openid-configuration");
    assert_eq!(own, (Kind::OauthOpenidConfiguration, vec![]));
    let another = of("https://login.tidewatch.dev/.well-known/openid-configuration");
    assert_eq!(another.1, ["error oauth/as-issuer-mismatch /issuer"]);
}

#[test]
fn a_name_that_an_older_card_lacks_is_named_with_its_parent() {
    let card = json!({
        "protocolVersion": "2025-06-18", "description": "Tide tables", "serverInfo": {"version": "1.0.0"},
        "transport": {"type": "stdio"}
    });
    let report = judged(&card, Kind::McpServerCard, &Given::default());
    let (rule, found) = report.findings().find(|(rule, _)| rule.id == "mcp/card-name-missing").expect("it fires");
    assert!(found[0].message.contains("serverInfo.name") && rule.fix.contains("serverInfo"), "{}", found[0].message);
}

#[test]
fn a_document_of_no_known_kind_is_not_detected_even_with_that_rule_off() {
    let given = Given::default();
    let subject =
        Subject { kind: None, version: None, origin: Origin::PublicHost, given: &given, session: None, answer: None };
    let mut settings = Settings::default();
    settings.rules.push(RuleSetting { rule: "common/kind-unrecognised".to_owned(), ..RuleSetting::default() });
    let report = judge(&Document::from_text(r#"{"hello": "world"}"#), &subject, &settings);
    assert_eq!(report.headline(), Headline::NotDetected);
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
