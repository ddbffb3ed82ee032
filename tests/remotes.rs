//! A registry lists servers, their endpoints are probed, and what they speak and who gets in can be seen and asked for. When
//! the network goes away in between, nothing moves and the crawl says so.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use support::{crawl, get, serve};

/// Two MCP servers and their registry on one port, and a plug that can be pulled.
struct World {
    address: SocketAddr,
    is_pulled: Arc<AtomicBool>,
    /// The open server fails at whatever it is asked.
    is_failing: Arc<AtomicBool>,
}

impl World {
    fn started() -> World {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let is_pulled = Arc::new(AtomicBool::new(false));
        let pulled = is_pulled.clone();
        let is_failing = Arc::new(AtomicBool::new(false));
        let failing = is_failing.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if !pulled.load(Ordering::SeqCst) {
                    let failing = failing.clone();
                    std::thread::spawn(move || answer(stream, address, failing.load(Ordering::SeqCst)));
                }
            }
        });
        World { address, is_pulled, is_failing }
    }

    fn settings(&self, folder: &Path) {
        let address = self.address;
        let text = format!(
            "[crawl]\ncanaries = [\"http://{address}/canary\"]\nendpoint_interval_s = 1\n\
             [probe]\nstream_close_ms = 50\nstream_get_ms = 50\nagain_ms = 0\nhead_ms = 2000\n\
             [net]\nallow_networks = [\"127.0.0.0/8\"]\n[net.manners]\npace_ms = 0\n\
             [[registries]]\nname = \"test\"\nbase = \"http://{address}\"\npace_ms = 0\ninterval_s = 1\n"
        );
        std::fs::write(folder.join("plumbline.toml"), text).expect("the settings are written");
    }
}

/// One request, one answer.
fn answer(mut stream: TcpStream, address: SocketAddr, is_failing: bool) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or("/");
    let (status, headers, body) = match path.split('?').next().unwrap_or(path) {
        "/canary" => (200, "", json!({})),
        "/v0.1/servers" => (200, "", listing(address)),
        "/open/mcp" if is_failing => (502, "", Value::Null),
        "/open/mcp" => open(&first, &asked),
        "/closed/mcp" => (401, "WWW-Authenticate: Bearer\r\n", json!({"error": "unauthorized"})),
        _ => (404, "", json!({})),
    };
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
}

/// A server of the revisions with a handshake that believes every page it is called from.
fn open(first: &str, asked: &Value) -> (u16, &'static str, Value) {
    let result = |result: Value| (200, "", json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    let error = |status: u16, code: i64, id: &Value| {
        (status, "", json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}))
    };
    if !first.starts_with("POST") {
        return (405, "Allow: POST\r\n", Value::Null);
    }
    match asked["method"].as_str() {
        Some("initialize") => result(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "tides", "title": "Tides", "version": "1.0.0"}
        })),
        Some("notifications/initialized") => (202, "", Value::Null),
        Some("ping") => result(json!({})),
        Some("tools/list") => result(json!({"tools": []})),
        Some("server/discover") => error(400, -32600, &asked["id"]),
        Some(_) => error(200, -32601, &asked["id"]),
        None => error(400, -32700, &Value::Null),
    }
}

fn listing(address: SocketAddr) -> Value {
    let entry = |name: &str| {
        let mut entry = support::entry(0);
        entry["server"]["name"] = json!(format!("io.github.test/{name}"));
        entry["server"]["remotes"][0]["url"] = json!(format!("http://{address}/{name}/mcp"));
        // What answers calls itself 1.0.0.
        entry["server"]["version"] = json!("0.9.0");
        entry
    };
    json!({ "servers": [entry("open"), entry("closed")], "metadata": { "count": 2 } })
}

/// The targets that a query finds, by key.
fn found(address: &str, query: &str) -> Vec<(i64, String)> {
    let page = get(address, &format!("/targets?q={query}"), "application/json");
    assert_eq!(page.status, 200, "{query}: {}", page.body);
    let page: Value = serde_json::from_str(&page.body).expect("JSON");
    let targets = page["targets"].as_array().expect("targets");
    targets.iter().map(|t| (t["id"].as_i64().expect("an id"), t["key"].as_str().expect("a key").to_owned())).collect()
}

#[test]
fn what_a_registry_lists_is_probed_and_shown_and_a_lost_network_moves_nothing() {
    let world = World::started();
    let folder = tempfile::tempdir().expect("a folder");
    world.settings(folder.path());
    let (first, _) = crawl(folder.path(), &[]);
    assert_eq!(first["headlines"]["targets"], 2, "{first}");
    // What was seen once is told when it is seen again.
    come_due();
    crawl(folder.path(), &[]);

    let stay = ["--set", "crawl.endpoint_interval_s=86400", "--set", "crawl.registry_interval_s=86400"];
    {
        let serving = serve(folder.path(), &stay);
        let open = found(&serving.address, "era:legacy+access:open");
        assert_eq!(open.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), ["io.github.test/open"]);
        let closed = found(&serving.address, "access:auth_required");
        assert_eq!(closed.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), ["io.github.test/closed"]);
        assert!(found(&serving.address, "-access:open").iter().all(|(_, key)| key != "io.github.test/open"));
        let page = get(&serving.address, &format!("/targets/{}", open[0].0), "text/html").body;
        assert!(page.contains("revisions with a handshake"), "the target's page says what it speaks");
        assert!(page.contains("mcp/origin-not-validated-local"), "and what is wrong with it");
        assert!(page.contains("registry/live-version-differs"), "and that its listing says something else: {page}");
        let closed_page = get(&serving.address, &format!("/targets/{}", closed[0].0), "application/json").body;
        let closed_page: Value = serde_json::from_str(&closed_page).expect("JSON");
        let surfaces = closed_page["surfaces"].as_array().expect("surfaces");
        let endpoint = surfaces.iter().find(|surface| surface["kind"] == "mcp-endpoint").expect("its endpoint");
        assert_eq!(endpoint["access"], "auth_required", "{endpoint}");
        assert_eq!(endpoint["reach"], "gated", "a server that wants a token is there");
    }
    let before = state(folder.path());

    world.is_pulled.store(true, Ordering::SeqCst);
    come_due();
    let (second, output) = crawl(folder.path(), &[]);
    let said = format!("{second} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&second["opened"], &second["resolved"]), (&json!(0), &json!(0)), "{said}");
    assert!(second["registries"][0]["problem"].is_string(), "the crawl says that it heard nothing: {said}");
    assert_eq!(state(folder.path()), before, "and nothing has moved");
}

/// A day whose first look found a server that failed has its odd requests at the next look, and no other has them again. What
/// they showed can be read for as long as nothing newer did.
#[test]
fn odd_requests_wait_for_the_first_look_of_a_day_that_is_answered() {
    let world = World::started();
    let folder = tempfile::tempdir().expect("a folder");
    world.settings(folder.path());
    world.is_failing.store(true, Ordering::SeqCst);
    crawl(folder.path(), &[]);
    assert_eq!(odd_steps(folder.path()), [0], "nobody is asked anything odd who fails at the handshake");
    world.is_failing.store(false, Ordering::SeqCst);
    come_due();
    crawl(folder.path(), &[]);
    let asked = |kept: &[usize]| kept.iter().filter(|odd| **odd > 0).count();
    let second = odd_steps(folder.path());
    assert_eq!(asked(&second), 1, "{second:?}");
    come_due();
    crawl(folder.path(), &[]);
    let kept = odd_steps(folder.path());
    assert_eq!((kept[0], asked(&kept)), (0, 1), "the last look, and an earlier one with odd requests: {kept:?}");
}

/// How many odd requests there are in each conversation that is kept of the open server, newest first.
fn odd_steps(folder: &Path) -> Vec<usize> {
    let stay = ["--set", "crawl.endpoint_interval_s=86400", "--set", "crawl.registry_interval_s=86400"];
    let serving = serve(folder, &stay);
    let target = found(&serving.address, "open")[0].0;
    let read = |path: &str| -> Value {
        serde_json::from_str(&get(&serving.address, path, "application/json").body).expect("JSON")
    };
    let spoken = |page: &Value| {
        let conversations = page["conversations"].as_array().expect("conversations");
        conversations.iter().find(|one| one["url"].to_string().contains("/open/mcp")).expect("of the endpoint").clone()
    };
    let last = spoken(&read(&format!("/targets/{target}/session")));
    let others = last["others"].as_array().cloned().unwrap_or_default();
    let others = others.iter().map(|other| spoken(&read(&format!("/targets/{target}/session?of={}", other["id"]))));
    let count = |one: &Value| {
        let exchanges = one["exchanges"].as_array().expect("exchanges").iter();
        exchanges.filter(|exchange| exchange["step"] == "origin" || exchange["step"] == "unknown-method").count()
    };
    std::iter::once(last.clone()).chain(others).map(|one| count(&one)).collect()
}

/// Everything is looked at every second: waits until that has passed.
fn come_due() {
    let due = std::time::Instant::now() + std::time::Duration::from_millis(1_500);
    while std::time::Instant::now() < due {
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
}

/// What is said of every target, whatever was looked at when.
fn state(folder: &Path) -> Value {
    let stay = ["--set", "crawl.endpoint_interval_s=86400", "--set", "crawl.registry_interval_s=86400"];
    let serving = serve(folder, &stay);
    let page = get(&serving.address, "/targets", "application/json").body;
    let page: Value = serde_json::from_str(&page).expect("JSON");
    let kept = |target: &Value| {
        json!([
            target["key"],
            target["headline"],
            target["reach"],
            target["n_error"],
            target["n_warn"],
            target["profile"]
        ])
    };
    page["targets"].as_array().expect("targets").iter().map(kept).collect()
}
