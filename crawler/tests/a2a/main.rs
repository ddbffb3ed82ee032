//! Agents as a look at their card finds them: what they are asked, and that nothing asked of them could start work.

mod bad;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plumbline_crawler::net::{Client, Manners, NetSettings};
use plumbline_crawler::probe::a2a::keys::KeySets;
use plumbline_crawler::probe::a2a::{CardAsk, observe};
use plumbline_rules::reach::Outcome;
use plumbline_rules::session::{Session, Step};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What an agent is asked: verb and path, and the method of a call.
type Asked = Arc<Mutex<Vec<String>>>;
/// What it answers to a call or path, where not as a good agent does.
type Otherwise = fn(&str) -> Option<(u16, Value)>;

/// A signed agent with two interfaces that lives as long as this.
struct Agent {
    address: SocketAddr,
    asked: Asked,
    kid: Arc<Mutex<&'static str>>,
    task: JoinHandle<()>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Agent {
    async fn serving(otherwise: Otherwise) -> Agent {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, kid) = (Asked::default(), Arc::new(Mutex::new("k1")));
        let state = (address, asked.clone(), kid.clone(), otherwise);
        let router = Router::new().fallback(answer).with_state(state);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Agent { address, asked, kid, task }
    }

    fn ask(&self) -> CardAsk {
        let base = format!("http://{}", self.address);
        CardAsk {
            url: format!("{base}/.well-known/agent-card.json"),
            legacy_url: Some(format!("{base}/.well-known/agent.json")),
            surroundings: true,
            interfaces: true,
            ..CardAsk::default()
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody panics").drain(..).collect()
    }
}

fn card(address: SocketAddr, kid: &str) -> Value {
    let base = format!("http://{address}");
    let header = json!({"alg": "ES256", "kid": kid, "jku": format!("{base}/keys")}).to_string();
    json!({
        "name": "Tides", "description": "Gives the times of high water.", "version": "1.0.0", "capabilities": {},
        "supportedInterfaces": [
            {"url": format!("{base}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": format!("{base}/rest"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}],
        "provider": {"organization": "Harbour", "url": format!("{base}/about")},
        "documentationUrl": format!("{base}/docs"),
        "securitySchemes": {"oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": format!("{base}/id")}}},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "t", "name": "Tides", "description": "Tells.", "tags": ["tides"]}],
        "signatures": [{"protected": URL_SAFE_NO_PAD.encode(header), "signature": "AA"}]
    })
}

type Shared = (SocketAddr, Asked, Arc<Mutex<&'static str>>, Otherwise);

async fn answer(State((address, asked, kid, otherwise)): State<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let call: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = head.uri.path().to_owned();
    let what = call["method"].as_str().map_or(path, str::to_owned);
    let version = head.headers.get("a2a-version").and_then(|value| value.to_str().ok());
    let origin = if head.headers.contains_key("origin") { " from elsewhere" } else { "" };
    asked.lock().expect("nobody panics").push(format!("{} {what} {}{origin}", head.method, version.unwrap_or("-")));
    let (kid, error) = (
        *kid.lock().expect("nobody panics"),
        |code: i64| json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": "no"}}),
    );
    let (status, body) = otherwise(&what).unwrap_or_else(|| match what.as_str() {
        "/.well-known/agent-card.json" => (200, card(address, kid)),
        "/keys" => (200, json!({"keys": [{"kty": "EC", "kid": kid}]})),
        "/id" => (200, json!({"issuer": format!("http://{address}"), "authorization_endpoint": "http://x/"})),
        "/about" | "/docs" => (200, json!({})),
        "GetTask" if version == Some("99.0") => (200, error(-32009)),
        "GetTask" => (200, error(-32001)),
        "GetExtendedAgentCard" => (200, error(-32004)),
        _ => (404, Value::Null),
    });
    let response = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    response.header("content-type", "application/json").body(Body::from(body.to_string())).expect("a response")
}

fn client() -> Client {
    let manners = Manners { pace_ms: 0, ..Manners::default() };
    let allow_networks = serde_json::from_value(json!(["127.0.0.0/8"])).expect("it is a network");
    Client::new(NetSettings { manners, allow_networks, ..NetSettings::default() }).expect("a client")
}

async fn seen(ask: &CardAsk, sets: &KeySets) -> Session {
    let observed = observe(&client(), ask, sets).await.expect("we did not fail");
    assert_eq!(observed.outcome, Outcome::Ok);
    assert_eq!(observed.status(), Some(200), "what is missing elsewhere counts for nothing");
    observed.session
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_asked_for_all_that_its_card_leads_to_and_for_no_work() {
    let agent = Agent::serving(|_| None).await;
    let session = seen(&agent.ask(), &KeySets::default()).await;
    assert_eq!(
        agent.asked(),
        [
            "GET /.well-known/agent-card.json 1.0",
            "GET /.well-known/agent-card.json -",
            "GET /.well-known/agent.json -",
            "GET /robots.txt -",
            "GET /keys -",
            "GET /.well-known/agent-card.json - from elsewhere",
            "GET /id -",
            "GET /docs -",
            "GET /about -",
            "POST GetTask 1.0",
            "GET /rest/tasks/plumbline-7f3a2b6c8d90 1.0",
            "GET /rest 1.0",
            "POST GetTask 99.0",
            "POST GetExtendedAgentCard 1.0",
        ]
    );
    let steps: Vec<Step> = session.exchanges.iter().filter_map(|exchange| exchange.step).collect();
    assert!(steps.contains(&Step::NamedMetadata) && steps.contains(&Step::InterfaceBase), "{steps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hourly_look_asks_for_the_card_alone() {
    let agent = Agent::serving(|_| None).await;
    let ask = CardAsk { surroundings: false, interfaces: false, ..agent.ask() };
    observe(&client(), &ask, &KeySets::default()).await.expect("we did not fail");
    let asked = agent.asked();
    assert_eq!(asked.iter().filter(|asked| asked.contains("agent-card.json")).count(), 2, "{asked:?}");
    assert_eq!(asked.len(), 4, "and for the keys: {asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_set_is_asked_for_again_only_when_a_key_is_missing() {
    let agent = Agent::serving(|_| None).await;
    let sets = KeySets::default();
    let for_keys = |asked: Vec<String>| asked.iter().filter(|asked| asked.starts_with("GET /keys")).count();
    let first = seen(&agent.ask(), &sets).await;
    assert_eq!(for_keys(agent.asked()), 1);
    let second = seen(&agent.ask(), &sets).await;
    assert_eq!(for_keys(agent.asked()), 0, "it holds for five minutes at least");
    let keys = |session: &Session| session.exchanges.iter().find(|e| e.step == Some(Step::Jku)).cloned();
    assert_eq!(keys(&first), keys(&second), "and stands in the conversation all the same");
    *agent.kid.lock().expect("nobody panics") = "k2";
    seen(&agent.ask(), &sets).await;
    assert_eq!(for_keys(agent.asked()), 1, "the card names a key that the kept set has not");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_wants_rest_is_asked_nothing_more() {
    let agent = Agent::serving(|what| (what == "GetTask").then(|| (429, json!({})))).await;
    seen(&agent.ask(), &KeySets::default()).await;
    let asked = agent.asked();
    assert_eq!(asked.last().map(String::as_str), Some("POST GetTask 1.0"), "{asked:?}");
}
