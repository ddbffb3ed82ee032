//! Agent cards that tools got wrong in public, each with its right verdict. The reports are told in the shared corpus;
//! the cards here are our own.

use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::{Headline, Report};
use plumbline_rules::rule::Severity;
use serde_json::{Value, json};

fn card_of_1_0() -> Value {
    json!({
        "name": "A", "description": "Answers.", "version": "1.0.0", "capabilities": {},
        "supportedInterfaces":
            [{"url": "https://a.tidewatch.dev/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "Answers in a sentence.", "tags": ["t"]}]
    })
}

fn card_of_0_3() -> Value {
    json!({
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC", "url": "https://a.tidewatch.dev/rpc",
        "name": "A", "description": "Answers.", "version": "1.0.0", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "Answers in a sentence.", "tags": ["t"]}]
    })
}

fn with(mut card: Value, members: Value) -> Value {
    let (Value::Object(card_members), Value::Object(members)) = (&mut card, members) else {
        panic!("both are objects")
    };
    card_members.extend(members);
    card
}

fn judged(card: &Value) -> Report {
    let given = Given::default();
    let subject = Subject {
        kind: Some(Kind::AgentCard),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    judge(&Document::from_text(&card.to_string()), &subject, &Settings::default())
}

/// Every occurrence of a finding as `severity rule pointer`, in order of the rules; hints only where asked for.
fn findings(card: &Value, least: Severity) -> Vec<String> {
    let report = judged(card);
    let occurrences = report.findings().flat_map(|(rule, found)| found.iter().map(move |o| (rule, o)));
    let loud = occurrences.filter(|(_, o)| o.severity >= least);
    loud.map(|(rule, o)| format!("{} {} {}", o.severity, rule.id, o.pointer)).collect()
}

#[test]
fn a_card_of_1_0_needs_no_top_level_url() {
    let card = card_of_1_0();
    assert_eq!(findings(&card, Severity::Info), [""; 0]);
    assert_eq!(judged(&card).detected.profile, "a2a-1.0");
}

#[test]
fn a_version_at_the_top_does_not_replace_that_of_the_interface() {
    let interface = json!([{"url": "https://a.tidewatch.dev/rpc", "protocolBinding": "JSONRPC"}]);
    let card = with(card_of_1_0(), json!({"protocolVersion": "1.0", "supportedInterfaces": interface}));
    let expected = [
        "info a2a/removed-field /protocolVersion",
        "error a2a/interface-version-required /supportedInterfaces/0/protocolVersion",
    ];
    assert_eq!(findings(&card, Severity::Info), expected);
}

#[test]
fn an_empty_object_is_no_card_and_is_not_accused() {
    let report = judged(&json!({}));
    assert_eq!(report.headline(), Headline::NotDetected);
    assert_eq!(report.findings().count(), 0);
}

#[test]
fn nobody_has_to_have_the_authentication_of_old() {
    let old = json!({"name": "A", "url": "https://a.tidewatch.dev", "version": "1", "capabilities": {},
        "skills": [{"id": "s", "name": "S"}], "description": "Answers.", "protocolVersion": "0.2.5",
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]});
    let tagged = json!({"skills": [{"id": "s", "name": "S", "description": "Answers shortly.", "tags": []}]});
    let without = with(old, tagged);
    assert_eq!(findings(&without, Severity::Error), [""; 0]);
    let authentication = json!({"authentication": {"schemes": ["bearer"]}});
    for card in [card_of_0_3(), card_of_1_0()] {
        assert_eq!(findings(&card, Severity::Warning), [""; 0]);
        let with_it = with(card, authentication.clone());
        assert_eq!(findings(&with_it, Severity::Warning), ["warning a2a/authentication-outdated /authentication"]);
    }
}

#[test]
fn http_authentication_names_its_scheme() {
    let scheme =
        |scheme: Value| with(card_of_0_3(), json!({"securitySchemes": {"b": scheme}, "security": [{"b": []}]}));
    let expected = ["error a2a/scheme-member-required /securitySchemes/b/scheme"];
    assert_eq!(findings(&scheme(json!({"type": "http"})), Severity::Warning), expected);
    assert_eq!(findings(&scheme(json!({"type": "http", "scheme": "bearer"})), Severity::Info), [""; 0]);
}

#[test]
fn a_wrapper_of_1_0_is_recognised_and_missed() {
    let scheme = |scheme: Value| {
        let requirement = json!([{"schemes": {"id": {"list": []}}}]);
        with(card_of_1_0(), json!({"securitySchemes": {"id": scheme}, "securityRequirements": requirement}))
    };
    let bearer = json!({"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}});
    assert_eq!(findings(&scheme(bearer), Severity::Info), [""; 0]);
    let open_id = json!({"openIdConnectUrl": "https://id.tidewatch.dev/.well-known/openid-configuration"});
    assert_eq!(findings(&scheme(json!({"openIdConnectSecurityScheme": open_id})), Severity::Info), [""; 0]);
    let naked = with(open_id, json!({"description": null}));
    assert_eq!(findings(&scheme(naked), Severity::Error), ["error a2a/scheme-not-exactly-one /securitySchemes/id"]);
}

#[test]
fn the_old_requirement_in_a_new_card_is_a_warning() {
    let url = "https://id.tidewatch.dev/.well-known/openid-configuration";
    let schemes = json!({"google": {"openIdConnectSecurityScheme": {"openIdConnectUrl": url}}});
    let card = with(card_of_1_0(), json!({"securitySchemes": schemes}));
    let old = with(card.clone(), json!({"security": [{"google": ["openid"]}]}));
    assert_eq!(findings(&old, Severity::Info), ["warning a2a/legacy-security-ignored /security"]);
    let new = with(card, json!({"securityRequirements": [{"schemes": {"google": {"list": ["openid"]}}}]}));
    assert_eq!(findings(&new, Severity::Info), [""; 0]);
}

#[test]
fn a_provider_of_0_1_needs_no_address() {
    let card: Value = serde_json::from_str(include_str!("../examples/a2a-0.1.json")).unwrap();
    let mentions =
        |report: &Report| report.findings().filter(|(rule, _)| rule.id == "a2a/provider-member-required").count();
    let without = with(card, json!({ "provider": { "organization": "Harbour Office" } }));
    assert_eq!(mentions(&judged(&without)), 0);
    let newer = with(card_of_0_3(), json!({ "provider": { "organization": "Harbour Office" } }));
    assert_eq!(mentions(&judged(&newer)), 1);
}
