//! What integration tests share: a running Plumbline, a registry and agents that misbehave on purpose.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The binary under test, in a folder of its own, with the loopback allowed and no gap between requests.
pub fn plumbline(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumbline"));
    command
        .current_dir(folder)
        .env_remove("PLUMBLINE_CONFIG")
        .env_remove("PLUMBLINE_DATABASE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Writes settings that watch these places.
pub fn settings(folder: &Path, registry: Option<&str>, cards: &[String]) -> PathBuf {
    // The endpoints that listings name are looked at by tests of their own.
    let mut text = "[probe]\nendpoints = false\n".to_owned();
    text.push_str("[net]\nallow_networks = [\"127.0.0.0/8\"]\n[net.manners]\npace_ms = 0\n");
    if let Some(base) = registry {
        text.push_str(&format!("[[registries]]\nname = \"test\"\nbase = \"{base}\"\npace_ms = 0\n"));
    }
    if !cards.is_empty() {
        text.push_str(&format!("[[domains]]\nlist = {}\n", json!(cards)));
    }
    let path = folder.join("plumbline.toml");
    std::fs::write(&path, text).expect("the settings are written");
    path
}

/// Runs one crawl and reads its summary.
pub fn crawl(folder: &Path, more: &[&str]) -> (Value, Output) {
    let output = plumbline(folder).args(["crawl", "--format", "json"]).args(more).output().expect("it runs");
    let summary = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "no summary ({error}): {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (summary, output)
}

/// A process that is ended with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A serving Plumbline and the address of its dashboard.
pub struct Serving {
    pub process: Running,
    pub address: String,
    /// What it has logged so far, a line each.
    pub log: Arc<Mutex<Vec<String>>>,
}

/// Starts `serve` on a free port and waits until the dashboard answers.
pub fn serve(folder: &Path, more: &[&str]) -> Serving {
    let mut child = plumbline(folder)
        .args(["serve", "--listen", "127.0.0.1:0", "--set", "log.format=json"])
        .args(more)
        .spawn()
        .expect("it starts");
    let log = BufReader::new(child.stderr.take().expect("it has a log"));
    let process = Running(child);
    let mut lines = log.lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| {
            line.split("http://")
                .nth(1)
                .map(|rest| rest.trim_matches(['"', '}']).split('"').next().unwrap_or("").to_owned())
        })
        .expect("it says where the dashboard is");
    // The pipe is read to its end, or the process would wait for somebody to read its log.
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = log.clone();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            told.lock().expect("nobody panicked").push(line);
        }
    });
    Serving { process, address, log }
}

/// An HTTP answer, head and body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// A plain GET, without any library between.
pub fn get(address: &str, path: &str, accept: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it answers");
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// Asks until the answer is as wanted.
pub fn eventually<T>(what: &str, patience: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(started.elapsed() < patience, "{what}: not within {patience:?}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

/// The material beside the project, or a reason why the test cannot run.
pub fn shared(part: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let path = std::env::var_os("PLUMBLINE_SHARED").map_or(beside, PathBuf::from).join(part);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{} has to be there in CI", path.display());
    println!("skipped: {} is not there", path.display());
    None
}

/// Starts the stand-in registry, over the real entries unless the options say otherwise.
pub fn fake_registry(options: &[&str]) -> Option<(Running, String)> {
    let script = shared("fleet/fake_registry.py")?;
    let mut child = Command::new("python3")
        .arg(script)
        .args(["--port", "0"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 is there");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("it has an output"))
        .read_line(&mut first)
        .expect("it says where it listens");
    let address = first.split(' ').nth(1).expect("listening ADDRESS").to_owned();
    Some((Running(child), format!("http://{address}")))
}

/// A request as a bad server sees it.
pub struct Asked {
    pub path: String,
    pub query: BTreeMap<String, String>,
}

/// A server of a few lines: a function from request to raw answer bytes. It lives as long as the test process.
pub fn server(answer: impl Fn(Asked) -> Vec<u8> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || serve_one(stream, &*answer));
        }
    });
    address
}

fn serve_one(mut stream: TcpStream, answer: &dyn Fn(Asked) -> Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        line.clear();
    }
    let target = first.split(' ').nth(1).unwrap_or("/");
    let url = url::Url::parse(&format!("http://x{target}")).expect("a path");
    let query = url.query_pairs().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    let _ = stream.write_all(&answer(Asked { path: url.path().to_owned(), query }));
}

/// An answer with a JSON body.
pub fn json_answer(body: &Value) -> Vec<u8> {
    ok_answer("application/json", &body.to_string())
}

/// An answer with any body.
pub fn ok_answer(media_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// An answer with a status and no body.
pub fn status_answer(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

/// A registry of `n` names with one version each, and a hook that may answer a page in its own way.
pub struct Registry {
    pub base: String,
    pub pages_served: Arc<AtomicUsize>,
    pub entries: Arc<Mutex<Vec<Value>>>,
}

/// Starts a registry; `fault` sees the number of the request (from 0) and may give an answer of its own.
pub fn registry(n: usize, fault: impl Fn(usize, &Asked) -> Option<Vec<u8>> + Send + Sync + 'static) -> Registry {
    let entries = Arc::new(Mutex::new((0..n).map(entry).collect::<Vec<_>>()));
    let pages_served = Arc::new(AtomicUsize::new(0));
    let (served, listed) = (pages_served.clone(), entries.clone());
    let address = server(move |asked| {
        let number = served.fetch_add(1, Ordering::SeqCst);
        if let Some(answer) = fault(number, &asked) {
            return answer;
        }
        page(&listed.lock().expect("nobody panicked"), &asked)
    });
    Registry { base: format!("http://{address}"), pages_served, entries }
}

fn page(entries: &[Value], asked: &Asked) -> Vec<u8> {
    let from: usize = asked.query.get("cursor").map_or(0, |cursor| cursor.parse().expect("our own cursor"));
    let to = (from + 100).min(entries.len());
    let mut metadata = json!({ "count": to - from });
    if to < entries.len() {
        metadata["nextCursor"] = json!(to.to_string());
    }
    json_answer(&json!({ "servers": &entries[from.min(to)..to], "metadata": metadata }))
}

/// A sound entry.
pub fn entry(n: usize) -> Value {
    let stamp = "2026-10-01T08:00:00Z";
    json!({
        "server": {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": format!("io.github.test/server-{n:05}"),
            "description": "Gives the times of high and low water",
            "version": "1.0.0",
            "remotes": [{ "type": "streamable-http", "url": format!("https://server-{n}.tides.dev/mcp") }]
        },
        "_meta": { "io.modelcontextprotocol.registry/official": {
            "status": "active", "publishedAt": stamp, "updatedAt": stamp, "isLatest": true
        } }
    })
}
