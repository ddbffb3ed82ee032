//! An MCP server of every era that does nothing wrong, one that wants tokens, and a way to make each do one thing otherwise.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// The revisions with a handshake.
    Legacy,
    /// The revision without sessions.
    Modern,
    /// 2024-11-05: answers come on a stream of their own.
    Older,
    /// Nothing to whoever has no token.
    Guarded,
}

/// A server that lives as long as this.
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
    /// Told of every request to those that never come to an end.
    asked: Arc<Notify>,
}

impl Server {
    /// Waits for the first request to one that never comes to an end.
    pub async fn was_asked(&self) {
        self.asked.notified().await;
    }

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
    pub query: String,
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

    /// The server's own address, followed by a path.
    pub fn here(&self, path: &str) -> String {
        format!("http://{}{path}", self.header("host").unwrap_or_default())
    }

    pub fn is_at(&self, path: &str) -> bool {
        self.path == path
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

    /// The page that it asks for, counted from 1.
    pub fn page(&self) -> usize {
        self.json["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap_or(0)) + 1
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
            || self.is_at("/message")
            || (self.has("mcp-session-id") && self.header("mcp-protocol-version") == Some("2025-11-25"))
    }
}

/// What is answered.
pub struct Answer {
    pub status: u16,
    pub label: &'static str,
    pub body: String,
    pub headers: Vec<(String, String)>,
    /// How long it takes.
    pub after: Duration,
    /// Nothing more comes, and the stream stays open.
    pub stays_open: bool,
}

impl Answer {
    pub fn bare(status: u16) -> Answer {
        Answer { status, label: "", body: String::new(), headers: Vec::new(), after: Duration::ZERO, stays_open: false }
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

/// An object with this member set to this.
pub fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    object[name] = value.into();
    object
}

/// An object without this member.
pub fn without(mut object: Value, name: &str) -> Value {
    object.as_object_mut().expect("an object").remove(name);
    object
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

/// A refusal in these words.
pub fn refused(asked: &Asked, status: u16, message: &str) -> Answer {
    let id = asked.json.get("id").cloned().unwrap_or_default();
    Answer::json(status, json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message}}))
}

/// A page.
pub fn page(status: u16) -> Answer {
    Answer { label: "text/html", ..Answer::text(status, "<!doctype html><title>Tides</title>") }
}

/// An event stream with these messages before the answer.
pub fn stream_after(before: &[Value], answer: Answer) -> Answer {
    let frames: String = before.iter().map(|message| format!("data: {message}\n\n")).collect();
    Answer { label: "text/event-stream", body: format!("{frames}data: {}\n\n", answer.body), ..answer }
}

pub fn tools() -> Value {
    json!([{"name": "tide_table", "title": "Tide table", "description": "Gives the tide table of a harbour.", "inputSchema": {"type": "object", "properties": {}}}])
}

pub fn initialized(asked: &Asked, version: &str) -> Answer {
    let server = json!({"name": "tides", "title": "Tides", "version": "2.3.1"});
    let result_of = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server});
    result(asked, result_of).with("mcp-session-id", &format!("5b1f7c9e-2a44-4c1d-9d0e-7f3a2b6c{:04}", asked.number))
}

pub fn modern(asked: &Asked, mut members: Value) -> Answer {
    let more = json!({"resultType": "complete", "ttlMs": 60000, "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}}});
    members.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    result(asked, members)
}

pub fn discovered(asked: &Asked) -> Answer {
    modern(asked, json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))
}

pub fn listed(asked: &Asked, tools: impl Into<Value>) -> Answer {
    let tools: Value = tools.into();
    match asked.has("mcp-method") {
        true => modern(asked, json!({ "tools": tools })),
        false => result(asked, json!({ "tools": tools })),
    }
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
            Some("tools/call") => called(asked),
            _ => error(asked, 200, -32601),
        }
    }
}

fn called(asked: &Asked) -> Answer {
    match asked.json["params"]["name"].as_str() {
        Some("tide_table") => result(asked, json!({"content": [{"type": "text", "text": "High at noon."}]})),
        _ => error(asked, 200, -32602),
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
            Some("tools/call") if asked.header("mcp-name") != asked.json["params"]["name"].as_str() => {
                error(asked, 400, -32020)
            }
            Some("tools/call") if asked.json["params"]["name"] == "tide_table" => {
                modern(asked, json!({"content": [{"type": "text", "text": "High at noon."}]}))
            }
            Some("tools/call") => error(asked, 400, -32602),
            _ => error(asked, 404, -32601),
        }
    }
}

/// What a good server of 2024-11-05 answers to what is posted at `/message`.
fn older_answer(asked: &Asked) -> Answer {
    match asked.json["method"].as_str() {
        Some("initialize") => {
            let server = json!({"name": "tides", "version": "2.3.1"});
            let agreed = json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": server});
            result(asked, agreed)
        }
        Some("notifications/initialized") => Answer::bare(202),
        Some("ping") => result(asked, json!({})),
        Some("tools/list") => result(asked, json!({"tools": tools()})),
        _ => error(asked, 200, -32601),
    }
}

pub fn challenge(asked: &Asked) -> String {
    format!("Bearer resource_metadata=\"{}\"", asked.here("/.well-known/oauth-protected-resource/mcp"))
}

/// What describes the endpoint to whoever needs a token for it.
pub fn resource(asked: &Asked) -> Value {
    json!({
        "resource": asked.here("/mcp"), "authorization_servers": [asked.here("")],
        "scopes_supported": ["tides:read"], "bearer_methods_supported": ["header"], "resource_name": "Tides"
    })
}

/// What describes who gives the tokens.
pub fn issuer(asked: &Asked) -> Value {
    json!({
        "issuer": asked.here(""), "authorization_endpoint": asked.here("/authorize"), "token_endpoint": asked.here("/token"),
        "registration_endpoint": asked.here("/register"), "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"], "scopes_supported": ["tides:read"],
        "client_id_metadata_document_supported": true, "authorization_response_iss_parameter_supported": true
    })
}

/// What a good server answers that lets nobody in without a token.
pub fn guarded_answer(asked: &Asked) -> Answer {
    match asked.path.as_str() {
        "/mcp" => Answer::json(401, json!({"error": "invalid_token"})).with("www-authenticate", &challenge(asked)),
        "/.well-known/oauth-protected-resource/mcp" => Answer::json(200, resource(asked)),
        "/.well-known/oauth-authorization-server" => Answer::json(200, issuer(asked)),
        _ => Answer::bare(404),
    }
}

/// What is answered otherwise than a good server answers.
type Otherwise = Box<dyn Fn(&Asked) -> Option<Answer> + Send + Sync>;

struct Behaviour {
    era: Era,
    otherwise: Otherwise,
    ended: Mutex<HashSet<String>>,
    count: AtomicUsize,
    /// The stream that is open, in the transport of 2024-11-05.
    stream: Mutex<Option<mpsc::UnboundedSender<String>>>,
}

impl Behaviour {
    fn answer(&self, asked: &Asked) -> Answer {
        (self.otherwise)(asked).unwrap_or_else(|| match self.era {
            Era::Legacy => legacy_answer(asked, &self.ended),
            Era::Modern => modern_answer(asked),
            Era::Older => older_answer(asked),
            Era::Guarded => guarded_answer(asked),
        })
    }

    /// The same over the transport of 2024-11-05: a result goes out on the stream.
    fn answer_on_stream(&self, asked: &Asked) -> Answer {
        let answer = self.answer(asked);
        if answer.status != 200 || answer.label != "application/json" {
            return answer;
        }
        if let Some(stream) = self.stream.lock().expect("nobody panics").as_ref() {
            stream.send(format!("event: message\ndata: {}\n\n", answer.body)).unwrap_or_default();
        }
        Answer::text(202, "Accepted")
    }

    /// A stream that stays open as long as the server lives.
    fn opened(&self) -> Body {
        let (sender, receiver) = mpsc::unbounded_channel();
        sender.send("event: endpoint\ndata: /message\n\n".to_owned()).unwrap_or_default();
        *self.stream.lock().expect("nobody panics") = Some(sender);
        Body::from_stream(futures_util::stream::unfold(receiver, |mut receiver| async move {
            Some((Ok::<_, std::io::Error>(Bytes::from(receiver.recv().await?)), receiver))
        }))
    }

    fn has_ended(&self, session: Option<&axum::http::HeaderValue>) -> bool {
        let session = session.and_then(|session| session.to_str().ok());
        session.is_some_and(|session| self.ended.lock().expect("nobody panics").contains(session))
    }
}

/// A good server of that era, but for what `otherwise` answers.
pub async fn serving(era: Era, otherwise: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Server {
    started(behaving(era, otherwise), Ipv4Addr::LOCALHOST).await
}

/// A good server of that era that hears every address of the machine. Its own address is that of loopback.
pub async fn serving_everywhere(era: Era) -> Server {
    let mut server = started(behaving(era, |_| None), Ipv4Addr::UNSPECIFIED).await;
    server.address.set_ip(Ipv4Addr::LOCALHOST.into());
    server
}

fn behaving(era: Era, otherwise: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Router {
    let behaviour = Behaviour {
        era,
        otherwise: Box::new(otherwise),
        ended: Mutex::default(),
        count: AtomicUsize::new(0),
        stream: Mutex::default(),
    };
    Router::new().fallback(answer).with_state(Arc::new(behaviour))
}

async fn answer(State(behaviour): State<Arc<Behaviour>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let asked = Asked {
        number: behaviour.count.fetch_add(1, Ordering::Relaxed),
        verb: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        text: String::from_utf8_lossy(&body).into_owned(),
        json: serde_json::from_slice(&body).unwrap_or_default(),
        is_ended: behaviour.has_ended(head.headers.get("mcp-session-id")),
        headers: head.headers,
    };
    let answer = match (behaviour.era, asked.verb.as_str(), asked.path.as_str()) {
        (Era::Older, "POST", "/message") => behaviour.answer_on_stream(&asked),
        (Era::Older, "GET", "/mcp") => match (behaviour.otherwise)(&asked) {
            Some(answer) => answer,
            None => {
                let stream = Response::builder().header("content-type", "text/event-stream");
                return stream.body(behaviour.opened()).expect("a response");
            }
        },
        (Era::Older, _, "/mcp") => Answer::bare(405).with("allow", "GET"),
        (Era::Older, ..) => Answer::bare(404),
        (Era::Legacy | Era::Modern | Era::Guarded, ..) => behaviour.answer(&asked),
    };
    tokio::time::sleep(answer.after).await;
    let mut response = Response::builder().status(StatusCode::from_u16(answer.status).expect("a status"));
    if !answer.label.is_empty() {
        response = response.header("content-type", answer.label);
    }
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let body = match answer.stays_open {
        true => {
            let said = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from(answer.body))]);
            Body::from_stream(said.chain(futures_util::stream::pending()))
        }
        false => Body::from(answer.body),
    };
    response.body(body).expect("a response")
}

async fn started(router: Router, on: Ipv4Addr) -> Server {
    let listener = TcpListener::bind((on, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(Notify::new());
    let told = asked.clone();
    let router = router.layer(axum::middleware::map_request(move |request: Request| {
        told.notify_one();
        async { request }
    }));
    let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
    Server { address, task, asked }
}

/// Answers each request with these bytes and hangs up. They are told the first line of the request and its body.
pub async fn raw(answer: impl Fn(&str, &str) -> Vec<u8> + Clone + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(raw_answer(stream, answer.clone()));
        }
    });
    Server { address, task, asked: Arc::default() }
}

async fn raw_answer(mut stream: TcpStream, answer: impl Fn(&str, &str) -> Vec<u8>) -> std::io::Result<()> {
    let mut reader = BufReader::new(&mut stream);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).await?;
    while reader.read_line(&mut line).await? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    stream.write_all(&answer(&first, &String::from_utf8_lossy(&body))).await?;
    stream.shutdown().await
}

/// Takes connections and never answers.
pub async fn silent() -> Server {
    started(Router::new().fallback(std::future::pending::<()>), Ipv4Addr::LOCALHOST).await
}

/// Answers with one byte now and then.
pub async fn dripping() -> Server {
    streaming("application/json", || now_and_then(b" ")).await
}

/// Answers with events without end.
pub async fn flooding() -> Server {
    streaming("text/event-stream", || async { Bytes::from_static(&[b'x'; 16 * 1024]) }).await
}

/// Answers with a stream that stays alive and says nothing.
pub async fn commenting() -> Server {
    streaming("text/event-stream", || now_and_then(b": still here\n\n")).await
}

async fn now_and_then(piece: &'static [u8]) -> Bytes {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Bytes::from_static(piece)
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
    started(Router::new().fallback(endless), Ipv4Addr::LOCALHOST).await
}
