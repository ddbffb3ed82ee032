//! What the synthetic ecosystem serves: documents and conversations of real shapes, from the templates that the rules are
//! tested with, each with the faults it has at the moment.

use plumbline_rules::kind::Kind;
use plumbline_rules::session::Session;
use plumbline_store::words::SurfaceKind;
use serde_json::{Value, json};

/// A kind of document with a form of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// An A2A card of 1.0.
    Card,
    /// An A2A card of 0.3.
    OldCard,
    /// An entry of an MCP registry.
    ServerJson,
    /// What an MCP endpoint says.
    Endpoint,
    /// A description of an HTTP API.
    Openapi,
    /// Metadata of a protected resource.
    Resource,
    /// Metadata of an authorization server.
    Issuer,
}

impl Form {
    /// The kind of surface that serves it.
    pub fn surface(self) -> SurfaceKind {
        match self {
            Form::Card | Form::OldCard => SurfaceKind::AgentCard,
            Form::ServerJson => SurfaceKind::ServerJson,
            Form::Endpoint => SurfaceKind::McpEndpoint,
            Form::Openapi => SurfaceKind::Openapi,
            Form::Resource => SurfaceKind::OauthProtectedResource,
            Form::Issuer => SurfaceKind::OauthAuthorizationServer,
        }
    }

    /// The kind its documents are judged as; `None` for a conversation.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Form::Card | Form::OldCard => Some(Kind::AgentCard),
            Form::ServerJson => Some(Kind::ServerJson),
            Form::Endpoint => None,
            Form::Openapi => Some(Kind::Openapi),
            Form::Resource => Some(Kind::OauthProtectedResource),
            Form::Issuer => Some(Kind::OauthAuthorizationServer),
        }
    }

    /// What can be wrong with it.
    pub fn faults(self) -> &'static [Fault] {
        match self {
            Form::Card | Form::OldCard => CARD_FAULTS,
            Form::ServerJson => SERVER_FAULTS,
            Form::Endpoint => ENDPOINT_FAULTS,
            Form::Openapi => OPENAPI_FAULTS,
            Form::Resource => RESOURCE_FAULTS,
            Form::Issuer => ISSUER_FAULTS,
        }
    }
}

/// Something that can be wrong, or merely a habit that no rule accuses, and how common it is.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Share of new documents that have it.
    pub at_first: f64,
    /// How much of that share is left after a year, for documents that are new then and as mending goes on.
    pub after_a_year: f64,
    /// Weight among the faults that a deploy can bring; 0 for a habit, which no rule accuses.
    pub breaks: u32,
}

const fn fault(at_first: f64, after_a_year: f64, breaks: u32) -> Fault {
    Fault { at_first, after_a_year, breaks }
}

const fn habit(at_first: f64, after_a_year: f64) -> Fault {
    Fault { at_first, after_a_year, breaks: 0 }
}

/// Of agent cards; the place is the bit.
const CARD_FAULTS: &[Fault] = &[
    fault(0.09, 0.6, 6),  // 0: a skill without tags
    fault(0.02, 1.0, 8),  // 1: two skills share an id
    fault(0.05, 0.4, 2),  // 2: an interface without TLS
    fault(0.12, 1.0, 1),  // 3: a provider without an address
    fault(0.06, 1.2, 2),  // 4: a version that is none
    fault(0.04, 0.9, 4),  // 5: an empty description of a skill
    fault(0.03, 1.0, 5),  // 6: a security requirement that names nothing
    fault(0.01, 1.0, 3),  // 7: capabilities as a list
    fault(0.03, 0.3, 1),  // 8: names in snake case
    fault(0.002, 1.0, 5), // 9: a comma too many
    habit(0.05, 1.5),     // 10: members that nobody knows
    fault(0.0, 1.0, 1),   // 11: a key in the text
    habit(0.30, 0.9),     // 12: skills without examples
    fault(0.02, 1.0, 4),  // 13: no skills
];

/// Of entries of a registry.
const SERVER_FAULTS: &[Fault] = &[
    fault(0.04, 0.7, 3),  // 0: a description that is too long
    fault(0.05, 0.6, 3),  // 1: a package at no fixed version
    fault(0.01, 0.8, 2),  // 2: a remote without TLS
    fault(0.02, 1.4, 3),  // 3: an address with a variable that nobody declares
    habit(0.35, 0.2),     // 4: an older schema
    habit(0.25, 1.0),     // 5: no repository
    fault(0.02, 1.0, 3),  // 6: a range in place of a version
    fault(0.01, 1.0, 2),  // 7: a package without an identifier
    fault(0.006, 1.0, 1), // 8: a key in a header's value
    fault(0.03, 1.0, 1),  // 9: nothing to run and nothing to call
];

/// Of MCP endpoints.
const ENDPOINT_FAULTS: &[Fault] = &[
    fault(0.03, 1.0, 5), // 0: a tool without a schema of its input
    fault(0.05, 0.8, 3), // 1: no version of the server
    fault(0.03, 1.0, 3), // 2: an answer labelled as a page
    fault(0.04, 0.9, 4), // 3: ping is not known
    fault(0.06, 0.8, 2), // 4: a page for whoever asks for a stream
    fault(0.01, 1.0, 4), // 5: two tools of one name
    fault(0.02, 1.0, 3), // 6: an id that is not the asker's
    habit(0.20, 1.0),    // 7: tools without a title
    fault(0.01, 1.0, 3), // 8: a revision that never was
];

/// Of descriptions of HTTP APIs.
const OPENAPI_FAULTS: &[Fault] = &[
    fault(0.10, 0.8, 3), // 0: two operations of one id
    fault(0.06, 1.0, 3), // 1: a reference that leads nowhere
    fault(0.08, 0.9, 2), // 2: a path whose parameter is not described
    fault(0.05, 0.7, 1), // 3: a server without TLS
];

/// Of metadata of protected resources.
const RESOURCE_FAULTS: &[Fault] = &[
    fault(0.08, 0.8, 3), // 0: no name of the resource
    fault(0.06, 0.8, 2), // 1: no authorization server
    fault(0.03, 1.0, 1), // 2: scopes as one text
];

/// Of metadata of authorization servers.
const ISSUER_FAULTS: &[Fault] = &[
    fault(0.10, 0.5, 2), // 0: no PKCE
    fault(0.05, 0.8, 2), // 1: no types of answers
    fault(0.03, 0.8, 1), // 2: an endpoint without TLS
];

/// Who serves a document, and which state it is in.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// What it is.
    pub form: Form,
    /// As people call it.
    pub name: &'a str,
    /// `namespace/name` in the registry, or the name in lower case.
    pub key: &'a str,
    /// Who stands behind it.
    pub owner: &'a str,
    /// The host it is served from.
    pub host: &'a str,
    /// Its own address.
    pub url: &'a str,
    /// The endpoint of an entry; empty for one that is only a package.
    pub endpoint: &'a str,
    /// What it calls its version.
    pub version: &'a str,
    /// Which faults it has, by bit.
    pub faults: u32,
    /// How much of it there is: skills, tools, operations.
    pub size: usize,
    /// A number that changes with every change that has no name.
    pub edition: u32,
}

impl Served<'_> {
    fn has(&self, fault: u32) -> bool {
        self.faults & (1 << fault) != 0
    }
}

/// What agents and servers do, and the words for it.
const TRADES: [(&str, &str, &str); 12] = [
    ("tides", "Look up tides", "Gives the next four tides of a harbour by its name."),
    ("berths", "Find a berth", "Tells which berth is free, and until when."),
    ("invoices", "Read invoices", "Finds the sum, the date and the payer of an invoice."),
    ("weather", "Forecast", "Forecasts wind and rain of a place for three days."),
    ("translate", "Translate", "Translates a text and keeps its layout."),
    ("search", "Search the archive", "Finds passages of the archive that answer a question."),
    ("routes", "Plan a route", "Plans a route with stops and their times."),
    ("tickets", "Open a ticket", "Opens a ticket and hands it to whoever is on duty."),
    ("stock", "Count the stock", "Tells how much of a thing is left, and where."),
    ("notes", "Keep notes", "Keeps notes and finds them again by their subject."),
    ("calendar", "Find a date", "Finds a time that suits all who are asked."),
    ("charts", "Draw a chart", "Draws a chart of the numbers that are given."),
];

fn trade(served: &Served<'_>, n: usize) -> (&'static str, &'static str, &'static str) {
    let first: usize = served.key.bytes().map(usize::from).sum();
    TRADES[(first + n) % TRADES.len()]
}

/// The bytes of a document as it is served.
pub fn bytes(served: &Served<'_>) -> Vec<u8> {
    let document = match served.form {
        Form::Card => card(served),
        Form::OldCard => old_card(served),
        Form::ServerJson => server_json(served),
        Form::Openapi => openapi(served),
        Form::Resource => resource(served),
        Form::Issuer => issuer(served),
        Form::Endpoint => Value::Null,
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    if served.has(9) && matches!(served.form, Form::Card | Form::OldCard) {
        text = text.replacen("\n}", ",\n}", 1).replace("\n  ],\n", "\n  ],,\n");
    }
    text.into_bytes()
}

fn skills(served: &Served<'_>) -> Value {
    if served.has(13) {
        return json!([]);
    }
    let count = served.size.clamp(2, 8);
    let skill = |n: usize| {
        let (id, name, description) = trade(served, n);
        let mut skill = json!({
            "id": id, "name": name, "description": description, "tags": [id, "work"],
            "examples": [format!("{name}, please, for {}.", served.owner)]
        });
        if served.has(0) && n == count - 1 {
            skill["tags"] = Value::Null;
        }
        if served.has(1) && n == 1 {
            skill["id"] = json!(trade(served, 0).0);
        }
        if served.has(5) && n == 0 {
            skill["description"] = json!("");
        }
        if let Some(members) = skill.as_object_mut() {
            members.retain(|name, value| !(value.is_null() || served.has(12) && name == "examples"));
        }
        skill
    };
    (0..count).map(skill).collect()
}

fn about(served: &Served<'_>) -> String {
    let edition = if served.edition == 0 { String::new() } else { format!(" Revised {} times.", served.edition) };
    let secret = if served.has(11) { " Call it with api_key=sk-proj-4f9a1c7e2b8d6350a1f4c9e7b2d8." } else { "" };
    format!("{} of {}, for whoever asks.{edition}{secret}", served.name, served.owner)
}

/// What cards of all revisions have in common.
fn dress(card: &mut Value, served: &Served<'_>) {
    card["name"] = json!(served.name);
    card["description"] = json!(about(served));
    card["version"] = json!(if served.has(4) { "" } else { served.version });
    card["skills"] = skills(served);
    card["provider"] = json!({ "organization": served.owner, "url": format!("https://www.{}.demo", served.owner) });
    if served.has(3)
        && let Some(provider) = card["provider"].as_object_mut()
    {
        provider.remove("url");
    }
    if served.has(7) {
        card["capabilities"] = json!(["streaming"]);
    }
    if served.has(8) {
        card["default_input_modes"] = card["defaultInputModes"].take();
        if let Some(members) = card.as_object_mut() {
            members.remove("defaultInputModes");
        }
    }
    if served.has(10) {
        card["x_internal"] = json!({ "shard": 3 });
        card["contactEmail"] = json!(format!("hello@{}.demo", served.owner));
    }
}

fn endpoint_of(served: &Served<'_>) -> String {
    format!("{}://{}/a2a", if served.has(2) { "http" } else { "https" }, served.host)
}

fn card(served: &Served<'_>) -> Value {
    let mut card = template(include_str!("../../rules/examples/a2a-1.0.json"));
    card["supportedInterfaces"][0]["url"] = json!(endpoint_of(served));
    if served.has(6) {
        card["securityRequirements"] = json!([{ "schemes": { "oauth": { "list": [] } } }]);
    }
    dress(&mut card, served);
    card
}

fn old_card(served: &Served<'_>) -> Value {
    let mut card = template(include_str!("../../rules/examples/a2a-0.3.json"));
    card["url"] = json!(endpoint_of(served));
    if served.has(6) {
        card["security"] = json!([{ "oauth": [] }]);
    }
    dress(&mut card, served);
    card
}

/// A template of ours is JSON; a test reads them all.
fn template(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn server_json(served: &Served<'_>) -> Value {
    let schema = if served.has(4) { "2025-09-29" } else { "2025-12-11" };
    let (_, title, does) = trade(served, 0);
    let mut description = does.to_owned();
    if served.has(0) {
        description = format!("{description} {}", about(served)).repeat(2);
    }
    let package_version = match () {
        () if served.has(1) => "latest",
        () if served.has(6) => "^1.2.0",
        () => served.version,
    };
    let mut server = json!({
        "$schema": format!("https://static.modelcontextprotocol.io/schemas/{schema}/server.schema.json"),
        "name": served.key,
        "description": description,
        "version": served.version,
        "repository": { "url": format!("https://github.com/{}-demo/{}", served.owner, name_of(served.key)), "source": "github" },
    });
    if !served.has(4) {
        server["title"] = json!(format!("{title} ({})", served.name));
    }
    if served.has(5)
        && let Some(members) = server.as_object_mut()
    {
        members.remove("repository");
    }
    if served.has(9) {
        return server;
    }
    if served.endpoint.is_empty() || served.has(7) || served.has(1) || served.has(6) {
        let mut package = json!({
            "registryType": "npm", "identifier": format!("@{}/{}", served.owner, name_of(served.key)),
            "version": package_version, "transport": { "type": "stdio" }
        });
        if served.has(7)
            && let Some(members) = package.as_object_mut()
        {
            members.remove("identifier");
        }
        server["packages"] = json!([package]);
    }
    if !served.endpoint.is_empty() {
        let url = match () {
            () if served.has(2) => served.endpoint.replacen("https:", "http:", 1),
            () if served.has(3) => format!("https://{{tenant}}.{}/mcp", served.host),
            () => served.endpoint.to_owned(),
        };
        server["remotes"] = json!([{ "type": "streamable-http", "url": url }]);
        if served.has(8) {
            server["remotes"][0]["headers"] =
                json!([{ "name": "Authorization", "value": "Bearer sk-proj-4f9a1c7e2b8d6350a1f4c9e7b2d8" }]);
        }
    }
    server
}

fn name_of(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

fn openapi(served: &Served<'_>) -> Value {
    let mut api = template(include_str!("../../rules/examples/openapi-3.1.json"));
    api["info"]["title"] = json!(served.name);
    api["info"]["description"] = json!(about(served));
    api["info"]["version"] = json!(served.version);
    let scheme = if served.has(3) { "http" } else { "https" };
    api["servers"][0]["url"] = json!(format!("{scheme}://{}/v1", served.host));
    for n in 0..served.size.min(8) {
        let (id, name, _) = trade(served, n);
        let mut operation = api["paths"]["/tides"]["get"].clone();
        operation["operationId"] = json!(format!("list{}{n}", id.to_uppercase()));
        operation["summary"] = json!(name);
        api["paths"][format!("/{id}-{n}")] = json!({ "get": operation });
    }
    if served.has(0) {
        api["paths"]["/tides/{id}"]["get"]["operationId"] = json!("listTides");
    }
    if served.has(1) {
        let schema = &mut api["paths"]["/tides"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        *schema = json!({ "$ref": "#/components/schemas/Nothing" });
    }
    if served.has(2) {
        api["paths"]["/tides/{id}"]["get"]["parameters"] = json!([]);
    }
    api
}

fn resource(served: &Served<'_>) -> Value {
    let mut resource = template(include_str!("../../rules/examples/oauth-protected-resource.json"));
    resource["resource"] = json!(served.endpoint);
    if served.has(0)
        && let Some(members) = resource.as_object_mut()
    {
        members.remove("resource");
    }
    resource["resource_name"] = json!(served.name);
    resource["authorization_servers"] = json!([format!("https://login.{}.demo", served.owner)]);
    resource["scopes_supported"] =
        json!([format!("{}:read", trade(served, 0).0), format!("edition:{}", served.edition)]);
    if served.has(1)
        && let Some(members) = resource.as_object_mut()
    {
        members.remove("authorization_servers");
    }
    if served.has(2) {
        resource["scopes_supported"] = json!("read write");
    }
    resource
}

fn issuer(served: &Served<'_>) -> Value {
    let text = include_str!("../../rules/examples/oauth-authorization-server.json");
    let mut issuer = template(&text.replace("login.tides.example.com/tenant", served.host));
    issuer["scopes_supported"] =
        json!(["offline_access", format!("{}:read", served.owner), format!("edition:{}", served.edition)]);
    if served.has(0)
        && let Some(members) = issuer.as_object_mut()
    {
        members.remove("code_challenge_methods_supported");
    }
    if served.has(1)
        && let Some(members) = issuer.as_object_mut()
    {
        members.remove("response_types_supported");
    }
    if served.has(2) {
        issuer["token_endpoint"] = json!(format!("http://{}/token", served.host));
    }
    issuer
}

/// The exchanges of a conversation with an endpoint, in their order.
const STEPS: [&str; 7] = ["discover", "initialize", "initialized", "ping", "tools/list", "get", "session-delete"];

/// A whole conversation with an MCP endpoint.
pub fn conversation(served: &Served<'_>) -> Session {
    let text = include_str!("../../rules/examples/mcp-conversation-2025-11-25.json");
    let parts = template(&text.replace("https://tides.example.com/mcp", served.url));
    let mut exchanges: Vec<Value> = STEPS.iter().map(|step| parts[*step].clone()).collect();
    for exchange in exchanges.iter_mut().skip(2) {
        exchange["request"]["headers"]["mcp-session-id"] =
            parts["ping"]["request"]["headers"]["mcp-session-id"].clone();
    }
    let info = json!({ "name": name_of(served.key), "title": served.name, "version": served.version });
    exchanges[1]["response"]["body"]["result"]["serverInfo"] = info;
    exchanges[1]["response"]["body"]["result"]["instructions"] = json!(about(served));
    exchanges[4]["response"]["body"]["result"]["tools"] = tools(served);
    spoil(&mut exchanges, served);
    serde_json::from_value(json!({ "exchanges": exchanges })).unwrap_or_default()
}

fn tools(served: &Served<'_>) -> Value {
    let tool = |n: usize| {
        let (id, name, description) = trade(served, n);
        let mut tool = json!({
            "name": format!("{id}_{n}"), "title": name, "description": description,
            "inputSchema": { "type": "object", "properties": { "subject": { "type": "string" } }, "required": ["subject"] }
        });
        if let Some(members) = tool.as_object_mut() {
            members.retain(|name, _| {
                !(served.has(0) && n == 0 && name == "inputSchema" || served.has(7) && name == "title")
            });
        }
        if served.has(5) && n == 1 {
            tool["name"] = json!(format!("{}_0", trade(served, 0).0));
        }
        tool
    };
    (0..served.size.clamp(2, 12)).map(tool).collect()
}

fn spoil(exchanges: &mut [Value], served: &Served<'_>) {
    let result = &mut exchanges[1]["response"]["body"]["result"];
    if served.has(1)
        && let Some(info) = result["serverInfo"].as_object_mut()
    {
        info.remove("version");
    }
    if served.has(8) {
        result["protocolVersion"] = json!("2025-13-01");
    }
    if served.has(2) {
        exchanges[4]["response"]["headers"]["content-type"] = json!("text/html");
    }
    if served.has(3) {
        exchanges[3]["response"]["body"] =
            json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": -32601, "message": "Method not found" } });
    }
    if served.has(4) {
        exchanges[5]["response"] = json!({ "status": 200, "headers": { "content-type": "text/html" }, "raw": "<!doctype html><title>Hello</title>" });
    }
    if served.has(6) {
        exchanges[4]["response"]["body"]["id"] = json!(1);
    }
}

/// A conversation with an endpoint that wants a token first.
pub fn refusal(served: &Served<'_>) -> Session {
    let text = include_str!("../../rules/examples/mcp-conversation-2025-11-25.json");
    let parts = template(&text.replace("https://tides.example.com/mcp", served.url));
    let mut exchanges: Vec<Value> = ["discover", "initialize"].iter().map(|step| parts[*step].clone()).collect();
    let metadata = format!("https://{}/.well-known/oauth-protected-resource/mcp", served.host);
    let challenge = if served.has(3) { String::new() } else { format!("Bearer resource_metadata=\"{metadata}\"") };
    for exchange in &mut exchanges {
        let mut headers = json!({ "content-type": "application/json" });
        if !challenge.is_empty() {
            headers["www-authenticate"] = json!(challenge);
        }
        exchange["response"] = json!({ "status": 401, "headers": headers, "body": { "error": "unauthorized" } });
    }
    serde_json::from_value(json!({ "exchanges": exchanges })).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use plumbline_rules::document::Document;
    use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
    use plumbline_rules::report::{Outcome, Report};
    use plumbline_rules::session::Surface;
    use plumbline_rules::session_judge::judge_session;

    const FORMS: [Form; 7] =
        [Form::Card, Form::OldCard, Form::ServerJson, Form::Endpoint, Form::Openapi, Form::Resource, Form::Issuer];

    fn served(form: Form, faults: u32) -> Served<'static> {
        Served {
            form,
            name: "Tide house",
            key: "demo.tidehouse/tides",
            owner: "tidehouse",
            host: "mcp.tidehouse.demo",
            url: match form {
                Form::Resource => "https://mcp.tidehouse.demo/.well-known/oauth-protected-resource/mcp",
                Form::Issuer => "https://mcp.tidehouse.demo/.well-known/oauth-authorization-server",
                Form::Endpoint => "https://mcp.tidehouse.demo/mcp",
                _ => "https://mcp.tidehouse.demo/.well-known/agent-card.json",
            },
            endpoint: "https://mcp.tidehouse.demo/mcp",
            version: "1.4.0",
            faults,
            size: 3,
            edition: 0,
        }
    }

    fn report(served: &Served<'_>) -> Report {
        let settings = Settings::default();
        let Some(kind) = served.form.kind() else {
            return judge_session(&conversation(served), Surface::Mcp, None, &Given::default(), &settings);
        };
        let given = Given { url: Some(served.url.to_owned()), ..Given::default() };
        let subject = Subject {
            kind: Some(kind),
            version: None,
            origin: Origin::PublicHost,
            given: &given,
            session: None,
            answer: None,
        };
        judge(&Document::read(&bytes(served)), &subject, &settings)
    }

    fn fires(served: &Served<'_>) -> Vec<String> {
        let fired = report(served).results;
        let mut fired: Vec<String> = fired
            .iter()
            .filter(|result| plumbline_rules::judge::counts(result.rule))
            .filter_map(|result| match &result.outcome {
                Outcome::Fires(found) => {
                    Some(format!("{} {} {}: {}", result.rule.id, found[0].severity, found[0].pointer, found[0].message))
                }
                _ => None,
            })
            .collect();
        fired.sort();
        fired
    }

    #[test]
    fn every_fault_is_found_and_nothing_is_wrong_without_one() {
        let mut unseen = Vec::new();
        for form in FORMS {
            let clean = fires(&served(form, 0));
            assert_eq!(clean, [""; 0], "{form:?}");
            for bit in 0..form.faults().len() {
                let spoilt = fires(&served(form, 1 << bit));
                let new: Vec<_> = spoilt.iter().filter(|says| !clean.contains(says)).collect();
                if new.is_empty() != (form.faults()[bit].breaks == 0) {
                    unseen.push((form, bit));
                }
            }
        }
        assert_eq!(unseen, [], "these are faults that no rule finds, or habits that one does");
    }
}
