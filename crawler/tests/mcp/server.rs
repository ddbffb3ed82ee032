//! An MCP server of either era that does nothing wrong, and a way to make it do one thing otherwise.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// A server that lives as long as this.
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a request asks.
pub struct Asked {
    pub number: usize,
    pub verb: String,
    pub path: String,
    pub text: String,
    pub json: Value,
    /// It is in a session that was ended.
    pub is_ended: bool,
    headers: HeaderMap,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    pub fn is(&self, method: &str) -> bool {
        self.json["method"] == method
    }

    pub fn is_initialize(&self) -> bool {
        self.is("initialize")
    }

    pub fn asks_for(&self, version: &str) -> bool {
        self.is_initialize() && self.json["params"]["protocolVersion"] == version
    }

    pub fn has_meta(&self) -> bool {
        self.json["params"]["_meta"].is_object()
    }

    pub fn has_null_id(&self) -> bool {
        self.json.get("id").is_some_and(Value::is_null) && self.json["method"].is_string()
    }

    pub fn is_broken(&self) -> bool {
        self.verb == "POST" && self.json.is_null()
    }

    pub fn is_batch(&self) -> bool {
        self.json.is_array()
    }

    pub fn is_plain_text(&self) -> bool {
        self.header("content-type") == Some("text/plain")
    }

    /// Asked as every client asks, and in no odd way.
    pub fn is_ordinary(&self) -> bool {
        let id = self.json.get("id").is_some_and(|id| !id.is_null());
        let odd = self.is_plain_text() || self.has("origin") || self.header("accept") == Some("*/*") || self.is_ended;
        let made_up = self.header("mcp-session-id").is_some_and(|session| session.starts_with("plumbline"));
        let cursor = self.json["params"]["cursor"] == "plumbline-invalid-cursor";
        id && !odd && !made_up && !cursor && if self.has("mcp-method") { self.is_modern() } else { self.is_legacy() }
    }

    fn is_modern(&self) -> bool {
        let meta = &self.json["params"]["_meta"];
        let version = meta["io.modelcontextprotocol/protocolVersion"].as_str();
        version == Some("2026-07-28")
            && self.header("mcp-protocol-version") == version
            && self.header("mcp-method") == self.json["method"].as_str()
            && meta["io.modelcontextprotocol/clientCapabilities"].is_object()
    }

    fn is_legacy(&self) -> bool {
        self.is_initialize()
            || (self.has("mcp-session-id") && self.header("mcp-protocol-version") == Some("2025-11-25"))
    }
}

/// What is answered.
pub struct Answer {
    pub status: u16,
    pub label: &'static str,
    pub body: String,
    pub headers: Vec<(String, String)>,
}

impl Answer {
    pub fn bare(status: u16) -> Answer {
        Answer { status, label: "", body: String::new(), headers: Vec::new() }
    }

    pub fn text(status: u16, body: &str) -> Answer {
        Answer { label: "text/plain", body: body.to_owned(), ..Answer::bare(status) }
    }

    pub fn json(status: u16, body: impl Into<Value>) -> Answer {
        let body: Value = body.into();
        Answer { label: "application/json", body: body.to_string(), ..Answer::bare(status) }
    }

    pub fn events(body: &str) -> Answer {
        Answer { label: "text/event-stream", ..Answer::text(200, body) }
    }

    pub fn with(mut self, name: &str, value: &str) -> Answer {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

pub fn result(asked: &Asked, result: impl Into<Value>) -> Answer {
    let result: Value = result.into();
    Answer::json(200, json!({"jsonrpc": "2.0", "id": asked.json["id"], "result": result}))
}

pub fn stream(asked: &Asked, result: impl Into<Value>) -> Answer {
    let result: Value = result.into();
    let message = json!({"jsonrpc": "2.0", "id": asked.json["id"], "result": result});
    Answer::events(&format!("data: {message}\n\n"))
}

pub fn error(asked: &Asked, status: u16, code: i64) -> Answer {
    let id = asked.json.get("id").cloned().unwrap_or_default();
    Answer::json(status, json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}))
}

fn tools() -> Value {
    json!([{"name": "tide_table", "title": "Tide table", "description": "Gives the tide table of a harbour.", "inputSchema": {"type": "object", "properties": {}}}])
}

pub fn initialized(asked: &Asked, version: &str) -> Answer {
    let server = json!({"name": "tides", "title": "Tides", "version": "2.3.1"});
    let result_of = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server});
    result(asked, result_of).with("mcp-session-id", &format!("5b1f7c9e-2a44-4c1d-9d0e-7f3a2b6c{:04}", asked.number))
}

fn modern(asked: &Asked, mut members: Value) -> Answer {
    let more = json!({"resultType": "complete", "ttlMs": 60000, "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}}});
    members.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    result(asked, members)
}

pub fn discovered(asked: &Asked) -> Answer {
    modern(asked, json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))
}

pub fn unsupported(asked: &Asked) -> Answer {
    let wanted = asked.json["params"]["protocolVersion"].as_str().or_else(|| asked.header("mcp-protocol-version"));
    let data = json!({"supported": ["2026-07-28"], "requested": wanted});
    Answer::json(
        400,
        json!({"jsonrpc": "2.0", "id": asked.json["id"], "error": {"code": -32022, "message": "no", "data": data}}),
    )
}

/// What a good server of the revisions with a handshake answers.
fn legacy_answer(asked: &Asked, ended: &Mutex<HashSet<String>>) -> Answer {
    let session = asked.header("mcp-session-id").unwrap_or_default().to_owned();
    match asked.verb.as_str() {
        "GET" if asked.path == "/mcp" => return Answer::bare(405).with("allow", "POST, DELETE"),
        "GET" => return Answer::bare(404),
        "DELETE" => {
            ended.lock().expect("nobody panics").insert(session);
            return Answer::bare(204);
        }
        _ => {}
    }
    let is_refused =
        |asked: &Asked| asked.has("origin") || asked.header("host").is_some_and(|host| host.ends_with(".invalid"));
    if is_refused(asked) {
        Answer::bare(403)
    } else if asked.is_plain_text() {
        Answer::bare(415)
    } else if asked.is_broken() {
        Answer::json(400, json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}))
    } else if asked.is_batch() || asked.has_null_id() || !asked.json["method"].is_string() {
        Answer::json(400, json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}}))
    } else if asked.is_initialize() {
        initialized(asked, "2025-11-25")
    } else if asked.has("mcp-method") || session.is_empty() {
        error(asked, 400, -32600)
    } else if session.starts_with("plumbline") || asked.is_ended {
        error(asked, 404, -32001)
    } else if asked.header("mcp-protocol-version") == Some("1999-01-01") {
        error(asked, 400, -32600)
    } else if asked.json["params"]["cursor"].is_string() {
        error(asked, 200, -32602)
    } else {
        match asked.json["method"].as_str() {
            Some("notifications/initialized") => Answer::bare(202),
            Some("ping") => result(asked, json!({})),
            Some("tools/list") => result(asked, json!({"tools": tools()})),
            _ => error(asked, 200, -32601),
        }
    }
}

/// What a good server of the revision without sessions answers.
fn modern_answer(asked: &Asked) -> Answer {
    match asked.verb.as_str() {
        "GET" if asked.path == "/mcp" => return Answer::bare(405).with("allow", "POST"),
        "GET" => return Answer::bare(404),
        "DELETE" => return Answer::bare(405).with("allow", "POST"),
        _ => {}
    }
    let meta = &asked.json["params"]["_meta"];
    let named = meta["io.modelcontextprotocol/protocolVersion"].as_str();
    let header = asked.header("mcp-protocol-version");
    if asked.has("origin") {
        Answer::bare(403)
    } else if asked.is_plain_text() {
        Answer::bare(415)
    } else if asked.is_broken() {
        Answer::json(400, json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}))
    } else if asked.is_batch() || asked.has_null_id() || !asked.json["method"].is_string() {
        Answer::json(400, json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}}))
    } else if asked.is_initialize() {
        unsupported(asked)
    } else if !asked.has_meta() || !meta["io.modelcontextprotocol/clientCapabilities"].is_object() {
        error(asked, 400, -32602)
    } else if header != named || asked.header("mcp-method") != asked.json["method"].as_str() {
        error(asked, 400, -32020)
    } else if named != Some("2026-07-28") {
        unsupported(asked)
    } else if asked.json["params"]["cursor"].is_string() {
        error(asked, 400, -32602)
    } else {
        match asked.json["method"].as_str() {
            Some("server/discover") => discovered(asked),
            Some("tools/list") => modern(asked, json!({"tools": tools()})),
            _ => error(asked, 404, -32601),
        }
    }
}

/// What is answered otherwise than a good server answers.
type Otherwise = Box<dyn Fn(&Asked) -> Option<Answer> + Send + Sync>;

struct Behaviour {
    era: Era,
    otherwise: Otherwise,
    ended: Mutex<HashSet<String>>,
    count: AtomicUsize,
}

impl Behaviour {
    fn has_ended(&self, session: Option<&axum::http::HeaderValue>) -> bool {
        let session = session.and_then(|session| session.to_str().ok());
        session.is_some_and(|session| self.ended.lock().expect("nobody panics").contains(session))
    }
}

/// A good server of that era, but for what `otherwise` answers.
pub async fn serving(era: Era, otherwise: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Server {
    let behaviour =
        Behaviour { era, otherwise: Box::new(otherwise), ended: Mutex::default(), count: AtomicUsize::new(0) };
    started(Router::new().fallback(answer).with_state(Arc::new(behaviour))).await
}

async fn answer(State(behaviour): State<Arc<Behaviour>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let asked = Asked {
        number: behaviour.count.fetch_add(1, Ordering::Relaxed),
        verb: head.method.to_string(),
        path: head.uri.path().to_owned(),
        text: String::from_utf8_lossy(&body).into_owned(),
        json: serde_json::from_slice(&body).unwrap_or_default(),
        is_ended: behaviour.has_ended(head.headers.get("mcp-session-id")),
        headers: head.headers,
    };
    let answer = (behaviour.otherwise)(&asked).unwrap_or_else(|| match behaviour.era {
        Era::Legacy => legacy_answer(&asked, &behaviour.ended),
        Era::Modern => modern_answer(&asked),
    });
    let mut response = Response::builder().status(StatusCode::from_u16(answer.status).expect("a status"));
    if !answer.label.is_empty() {
        response = response.header("content-type", answer.label);
    }
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.body)).expect("a response")
}

async fn started(router: Router) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
    Server { address, task }
}

/// Takes connections and never answers.
pub async fn silent() -> Server {
    started(Router::new().fallback(std::future::pending::<()>)).await
}

/// Answers with one byte now and then.
pub async fn dripping() -> Server {
    streaming("application/json", || async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Bytes::from_static(b" ")
    })
    .await
}

/// Answers with events without end.
pub async fn flooding() -> Server {
    streaming("text/event-stream", || async { Bytes::from_static(&[b'x'; 16 * 1024]) }).await
}

async fn streaming<F, P>(label: &'static str, piece: F) -> Server
where
    F: Fn() -> P + Clone + Send + Sync + 'static,
    P: Future<Output = Bytes> + Send + 'static,
{
    let endless = move || {
        let piece = piece.clone();
        let pieces = futures_util::stream::unfold((), move |()| {
            let next = piece();
            async move { Some((Ok::<_, std::io::Error>(next.await), ())) }
        });
        async move { Response::builder().header("content-type", label).body(Body::from_stream(pieces)).expect("a response") }
    };
    started(Router::new().fallback(endless)).await
}
