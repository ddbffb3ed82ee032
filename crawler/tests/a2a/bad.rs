//! Agents that misbehave on purpose, each a few lines over one that does not: each is found by its rule, and nothing else of
//! severity error is said of it.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use plumbline_crawler::probe::a2a::keys::KeySets;
use plumbline_crawler::probe::a2a::{CardAsk, observe};
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::report::Occurrence;
use plumbline_rules::rule::Severity;
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::client;

/// What an agent is asked.
struct Asked {
    address: SocketAddr,
    path: String,
    call: Value,
    headers: HeaderMap,
}

impl Asked {
    fn is_at(&self, path: &str) -> bool {
        self.path == path
    }

    fn is_for_card(&self) -> bool {
        self.is_at("/.well-known/agent-card.json")
    }

    fn is(&self, method: &str) -> bool {
        self.call["method"] == method
    }

    fn version(&self) -> Option<&str> {
        self.headers.get("a2a-version")?.to_str().ok()
    }

    fn here(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Status, media type and body.
type Answer = (u16, &'static str, Vec<u8>);

fn json_answer(status: u16, body: &Value) -> Answer {
    (status, "application/json", body.to_string().into_bytes())
}

fn called(asked: &Asked, member: &str, value: &Value) -> Answer {
    json_answer(200, &json!({"jsonrpc": "2.0", "id": asked.call["id"], member: value}))
}

fn error(asked: &Asked, code: i64) -> Answer {
    called(asked, "error", &json!({"code": code, "message": "no"}))
}

/// A card with nothing wrong in it.
fn card(asked: &Asked) -> Value {
    json!({
        "name": "Tides", "description": "Gives the times of high water.", "version": "1.0.0",
        "capabilities": {"streaming": false},
        "supportedInterfaces": [
            {"url": asked.here("/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "provider": {"organization": "Harbour", "url": asked.here("/about")},
        "documentationUrl": asked.here("/docs"),
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "t", "name": "Tides", "description": "Tells.", "tags": ["tides"]}]
    })
}

/// The card with this beside it.
fn card_with(asked: &Asked, name: &str, value: Value) -> Option<Answer> {
    asked.is_for_card().then(|| {
        let mut card = card(asked);
        card[name] = value;
        json_answer(200, &card)
    })
}

/// The card with a signature that names the keys at `/keys`.
fn signed(asked: &Asked) -> Option<Answer> {
    let header = json!({"alg": "ES256", "kid": "k1", "jku": asked.here("/keys")}).to_string();
    let signature = URL_SAFE_NO_PAD.encode([1; 64]);
    card_with(asked, "signatures", json!([{"protected": URL_SAFE_NO_PAD.encode(header), "signature": signature}]))
}

/// A key that is on its curve: the generator of P-256.
const KEY: &str = r#"{"kty": "EC", "crv": "P-256", "kid": "k1", "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY", "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}"#;

/// A requirement that nobody without a key meets.
fn guarded(asked: &Asked) -> Option<Answer> {
    asked.is_for_card().then(|| {
        let mut card = card(asked);
        card["securitySchemes"] = json!({"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}});
        card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
        json_answer(200, &card)
    })
}

fn good(asked: &Asked) -> Answer {
    match asked.path.as_str() {
        "/.well-known/agent-card.json" => json_answer(200, &card(asked)),
        "/about" | "/docs" => (200, "text/html", b"<!doctype html><title>Tides</title>".to_vec()),
        "/rpc" if asked.version() == Some("99.0") => error(asked, -32009),
        "/rpc" if asked.is("GetTask") => error(asked, -32001),
        "/rpc" if asked.is("GetExtendedAgentCard") => error(asked, -32007),
        "/rpc" => error(asked, -32601),
        _ => (404, "text/plain", Vec::new()),
    }
}

type Otherwise = fn(&Asked) -> Option<Answer>;

/// Name, the rule that finds it, and what it does otherwise than a good agent.
const BAD: &[(&str, &str, Otherwise)] = &[
    ("has-no-card", "a2a/card-http-status", |a| a.is_for_card().then(|| (404, "text/plain", Vec::new()))),
    ("shows-a-page-for-a-card", "common/html-body", |a| {
        a.is_for_card().then(|| (200, "text/html", b"<!doctype html><title>Tides</title>".to_vec()))
    }),
    ("ends-with-a-comma", "common/invalid-json", |a| {
        a.is_for_card().then(|| (200, "application/json", b"{\"name\": \"Tides\",}".to_vec()))
    }),
    ("is-a-list", "common/object-required", |a| a.is_for_card().then(|| json_answer(200, &json!([])))),
    ("has-a-card-without-end", "common/too-large", |a| {
        card_with(a, "description", "Gives the tides. ".repeat(20_000).into())
    }),
    ("writes-in-latin-1", "common/not-utf8", |a| {
        a.is_for_card().then(|| (200, "application/json", b"{\"name\": \"Gr\xf6\xdfe\"}".to_vec()))
    }),
    ("cannot-bear-a-version", "a2a/version-header-breaks-card", |a| {
        (a.is_for_card() && a.version().is_some()).then(|| (400, "text/plain", Vec::new()))
    }),
    ("has-a-dead-interface", "a2a/interface-dead", |a| a.is_at("/rpc").then(|| (404, "text/plain", Vec::new()))),
    ("answers-calls-with-a-page", "a2a/binding-wrong", |a| {
        a.is_at("/rpc").then(|| (200, "text/html", b"<!doctype html><title>Tides</title>".to_vec()))
    }),
    ("refuses-its-own-version", "a2a/declared-version-rejected", |a| a.is_at("/rpc").then(|| error(a, -32009))),
    ("wants-a-key-and-does-not-look", "a2a/auth-not-enforced", guarded),
    ("shows-its-extended-card", "a2a/extended-card-undeclared", |a| {
        a.is("GetExtendedAgentCard").then(|| called(a, "result", &card(a)))
    }),
    ("shows-its-announced-extended-card", "a2a/extended-card-open", |a| {
        let mut announcing = card(a);
        announcing["capabilities"] = json!({"streaming": false, "extendedAgentCard": true});
        announcing["securitySchemes"] =
            json!({"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}});
        let served = || a.is("GetExtendedAgentCard").then(|| called(a, "result", &announcing));
        a.is_for_card().then(|| json_answer(200, &announcing)).or_else(served)
    }),
    ("lists-keys-as-a-map", "a2a/jwks-invalid", |a| {
        a.is_at("/keys").then(|| json_answer(200, &json!({"k1": "-----BEGIN PUBLIC KEY-----"}))).or_else(|| signed(a))
    }),
    ("signs-with-another-key", "a2a/signature-invalid", |a| {
        let keys = || format!("{{\"keys\": [{KEY}]}}").into_bytes();
        a.is_at("/keys").then(|| (200, "application/json", keys())).or_else(|| signed(a))
    }),
    ("signs-with-a-key-of-another-kind", "a2a/jwks-key-mismatch", |a| {
        let keys = || format!("{{\"keys\": [{}]}}", KEY.replace("P-256", "P-384")).into_bytes();
        a.is_at("/keys").then(|| (200, "application/json", keys())).or_else(|| signed(a))
    }),
];

async fn answer(State((address, otherwise)): State<(SocketAddr, Otherwise)>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let call = serde_json::from_slice(&body).unwrap_or_default();
    let asked = Asked { address, path: head.uri.path().to_owned(), call, headers: head.headers };
    let (status, label, body) = otherwise(&asked).unwrap_or_else(|| good(&asked));
    let response = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    response.header("content-type", label).body(Body::from(body)).expect("a response")
}

async fn serving(otherwise: Otherwise) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(answer).with_state((address, otherwise));
    let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
    (format!("http://{address}"), task)
}

async fn looked_at(base: &str) -> Session {
    let ask = CardAsk {
        url: format!("{base}/.well-known/agent-card.json"),
        legacy_url: Some(format!("{base}/.well-known/agent.json")),
        surroundings: true,
        interfaces: true,
        ..CardAsk::default()
    };
    observe(&client(), &ask, &KeySets::default()).await.expect("we did not fail").session
}

/// What is said with severity error, be it of the agent or of the way to it.
fn errors(session: &Session) -> Vec<&'static str> {
    let report = judge_session(session, Surface::AgentCard, None, &Given::default(), &Settings::default());
    let is_loud = |found: &[Occurrence]| found.iter().any(|occurrence| occurrence.severity == Severity::Error);
    report.fired().filter(|(_, found)| is_loud(found)).map(|(rule, _)| rule.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_agent_is_found_by_its_rule_and_accused_of_nothing_else() {
    let heard = join_all(BAD.iter().map(|(_, _, otherwise)| async {
        let (base, task) = serving(*otherwise).await;
        let said = errors(&looked_at(&base).await);
        task.abort();
        said
    }));
    let heard = heard.await;
    let wrong: Vec<String> = BAD
        .iter()
        .zip(&heard)
        .filter(|((_, rule, _), said)| said.as_slice() != [*rule])
        .map(|((name, rule, _), said)| format!("{name}: {rule}, said {said:?}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), BAD.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_nothing_wrong_is_accused_of_nothing() {
    let (base, task) = serving(|_| None).await;
    assert!(errors(&looked_at(&base).await).is_empty(), "{:?}", errors(&looked_at(&base).await));
    task.abort();
}

/// What an agent sends without end costs no more than its bounds: of the card, and of whatever it leads to.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_floods_costs_no_more_than_its_bounds() {
    let flooding: &[(&str, Otherwise)] = &[
        ("in its card", |a| a.is_for_card().then(|| (200, "application/json", vec![b' '; 8 << 20]))),
        ("in its pages", |a| a.is_at("/docs").then(|| (200, "text/html", vec![b'x'; 8 << 20]))),
        ("at its interface", |a| a.is_at("/rpc").then(|| (200, "application/json", vec![b' '; 8 << 20]))),
        ("in its keys", |a| {
            a.is_at("/keys").then(|| (200, "application/json", vec![b' '; 8 << 20])).or_else(|| signed(a))
        }),
    ];
    for (name, otherwise) in flooding {
        let (base, task) = serving(*otherwise).await;
        let session = looked_at(&base).await;
        let responses = session.exchanges.iter().filter_map(|exchange| exchange.response.as_ref());
        let held: usize = responses.map(|response| response.raw.as_ref().map_or(0, String::len)).sum();
        assert!(held <= 2 << 20, "{name}: {held} bytes");
        task.abort();
    }
}

/// An agent that never answers holds up nobody who is asked meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_says_nothing_holds_up_no_other() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/.well-known/agent-card.json", silent.local_addr().expect("an address"));
    let client = client();
    let ours = client.clone();
    let held_up = tokio::spawn(async move {
        let ask = CardAsk { url, ..CardAsk::default() };
        observe(&ours, &ask, &KeySets::default()).await.map(drop)
    });
    let (_connection, _) = silent.accept().await.expect("it is asked");
    let (base, task) = serving(|_| None).await;
    let ask = CardAsk { url: format!("{base}/.well-known/agent-card.json"), ..CardAsk::default() };
    let seen = observe(&client, &ask, &KeySets::default()).await.expect("we did not fail");
    assert_eq!(seen.status(), Some(200));
    assert!(!held_up.is_finished(), "it still waits");
    held_up.abort();
    task.abort();
}
