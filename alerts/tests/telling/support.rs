//! A store with events made to order, a courier and a teller over it, and receivers that answer as they are told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plumbline_alerts::courier::{Clock, Courier};
use plumbline_alerts::mail::Mailer;
use plumbline_alerts::payload::Source;
use plumbline_alerts::signature::Key;
use plumbline_alerts::sync::put;
use plumbline_alerts::teller::Teller;
use plumbline_alerts::vault::Vault;
use plumbline_alerts::wire::{Answer, Wire};
use plumbline_crawler::net::{Client, NetSettings, Networks, TimeLimits, Told};
use plumbline_store::alerting::{Grade, NewRoute};
use plumbline_store::hooks::{Mode, NewEndpoint, Origin, SecretRole};
use plumbline_store::words::EventKind;
use plumbline_store::{EndpointId, RouteId, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// 1 December 2026, 00:00 UTC.
pub const NOW: i64 = 1_796_083_200;

pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub struct World {
    pub store: Store,
    pub teller: Teller,
    pub courier: Courier,
    pub now_ms: Arc<AtomicI64>,
    pub path: String,
    _folder: tempfile::TempDir,
}

impl World {
    pub async fn new() -> World {
        World::with(NetSettings::default()).await
    }

    /// With a network of its own; loopback is opened.
    pub async fn with(net: NetSettings) -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.db").to_str().unwrap().to_owned();
        let now_ms = Arc::new(AtomicI64::new(NOW * 1000));
        let clock: Clock = {
            let now_ms = now_ms.clone();
            Arc::new(move || now_ms.load(Ordering::SeqCst))
        };
        let (store, teller, courier) = parts(&path, folder.path(), net, clock).await;
        teller.events().await.unwrap();
        World { store, teller, courier, now_ms, path, _folder: folder }
    }

    pub fn now_s(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst) / 1000
    }

    pub fn later(&self, seconds: i64) {
        self.now_ms.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    pub async fn endpoint(&self, slug: &str, url: &str, mode: Mode) -> EndpointId {
        let new = NewEndpoint {
            slug: slug.to_owned(),
            title: slug.to_owned(),
            url: url.to_owned(),
            format: "generic".to_owned(),
            mode,
            types: Vec::new(),
            matcher: String::new(),
            include_baseline: false,
            per_minute: 6_000,
            options: "{}".to_owned(),
            digest: None,
        };
        let id = self.store.put_endpoint(&new, Origin::Ui, NOW).await.unwrap();
        let key = Key::parse(SECRET).unwrap();
        put(&self.store, &self.courier.vault, id, SecretRole::Current, "v1", key.bytes(), NOW).await.unwrap();
        id
    }

    pub async fn route(&self, slug: &str, to: &[EndpointId]) -> RouteId {
        let new = NewRoute {
            slug: slug.to_owned(),
            title: slug.to_owned(),
            matcher: String::new(),
            min_severity: Grade::Warning,
            include_baseline: false,
            include_rule_changes: false,
            wait_s: 60,
            interval_s: 900,
            repeat_s: 86_400,
            quiet_hours: None,
        };
        self.store.put_route(&new, to, Origin::Ui, NOW).await.unwrap()
    }

    /// Appends an event as the first transaction of the pipeline would.
    pub async fn event(&self, kind: EventKind, target: Option<i64>, subject: i64, note: Option<&str>) {
        append(&self.store, kind, target, subject, note, self.now_s()).await;
    }

    /// Every message body of a type, in the order of their ids.
    pub async fn messages(&self, kind: &str) -> Vec<serde_json::Value> {
        let rows: Vec<Vec<u8>> = sqlx::query_scalar("SELECT body FROM wh_message WHERE type = $1 ORDER BY id")
            .bind(kind)
            .fetch_all(self.store.reader())
            .await
            .unwrap();
        rows.iter().map(|body| serde_json::from_slice(body).unwrap()).collect()
    }
}

pub async fn parts(path: &str, folder: &std::path::Path, net: NetSettings, clock: Clock) -> (Store, Teller, Courier) {
    let store = Store::open(path).await.unwrap();
    let bell = Arc::new(Notify::new());
    let teller = Teller {
        store: store.clone(),
        source: Source("https://plumbline.example".to_owned()),
        clock: clock.clone(),
        bell: bell.clone(),
        ids: Teller::ids(&store).await.unwrap(),
    };
    let courier = Courier {
        store: store.clone(),
        wire: wire(net),
        mailer: Mailer::default(),
        vault: Vault::at(&folder.join("key")),
        clock,
        bell,
        patience: Duration::from_secs(3),
    };
    (store, teller, courier)
}

pub async fn append(store: &Store, kind: EventKind, target: Option<i64>, subject: i64, note: Option<&str>, at_s: i64) {
    sqlx::query(
        "INSERT INTO event (id, at_s, kind, target_id, surface_id, subject_id, note)
         SELECT COALESCE(MAX(id), 0) + 1, $1, $2, $3, $4, $5, $6 FROM event",
    )
    .bind(at_s)
    .bind(kind.number())
    .bind(target)
    .bind(target)
    .bind(subject)
    .bind(note)
    .execute(store.writer())
    .await
    .unwrap();
}

/// The real guarded client, with loopback opened as an operator would.
fn wire(net: NetSettings) -> Wire {
    let net = NetSettings {
        allow_networks: Networks(vec!["127.0.0.1/32".parse().unwrap()]),
        robots: false,
        time: TimeLimits { connect_ms: 2_000, dns_ms: 1_000, ..TimeLimits::default() },
        ..net
    };
    let client = Client::for_receivers(net, vec![443, 8443]).unwrap();
    Wire::new(move |post| {
        let client = client.clone();
        async move {
            match client.tell(&post.url, &post.headers, post.body, Duration::from_secs(2)).await {
                Ok(Told::Answer { status, headers, body }) => {
                    Answer::Heard { status, headers: headers.into_iter().collect(), body }
                }
                Ok(Told::Silence { is_timeout, why }) => Answer::Silent { is_timeout, error: why.to_owned() },
                Ok(Told::Ours(why)) => Answer::Ours(why.to_owned()),
                Err(error) => Answer::Ours(error.to_string()),
            }
        }
    })
}

/// How a receiver behaves.
#[derive(Clone)]
pub enum Behaviour {
    /// Answers so.
    Says(String),
    /// Says nothing until it is rung.
    Hangs(Arc<Notify>),
    /// Sends a status and then a byte now and then.
    Drips,
    /// Sends ten megabytes.
    Floods,
    /// Hangs up at once.
    Resets,
}

pub fn says(status: &str) -> Behaviour {
    Behaviour::Says(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"))
}

pub fn says_with(status: &str, headers: &str, body: &str) -> Behaviour {
    Behaviour::Says(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// A receiver on loopback.
#[derive(Clone)]
pub struct Receiver {
    pub address: SocketAddr,
    pub requests: Arc<Mutex<Vec<Request>>>,
    /// What it does next; the last one stays.
    pub behaviours: Arc<Mutex<VecDeque<Behaviour>>>,
}

impl Receiver {
    pub async fn new(behaviours: Vec<Behaviour>) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
            behaviours: Arc::new(Mutex::new(behaviours.into())),
        };
        let served = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let served = served.clone();
                tokio::spawn(async move { served.serve(stream).await });
            }
        });
        receiver
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn ids(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|request| request.header("webhook-id").to_owned()).collect()
    }

    async fn serve(&self, mut stream: TcpStream) {
        while let Some(request) = read(&mut stream).await {
            self.requests.lock().unwrap().push(request);
            let behaviour = {
                let mut behaviours = self.behaviours.lock().unwrap();
                if behaviours.len() > 1 { behaviours.pop_front().unwrap() } else { behaviours[0].clone() }
            };
            match behaviour {
                Behaviour::Says(answer) => {
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
                Behaviour::Hangs(bell) => {
                    bell.notified().await;
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                }
                Behaviour::Drips => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n").await;
                    loop {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        if stream.write_all(b"x").await.is_err() {
                            return;
                        }
                    }
                }
                Behaviour::Floods => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n").await;
                    let piece = vec![b'x'; 64 * 1024];
                    for _ in 0..160 {
                        if stream.write_all(&piece).await.is_err() {
                            return;
                        }
                    }
                }
                Behaviour::Resets => return,
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break end;
        }
        let mut piece = [0; 4096];
        let n = stream.read(&mut piece).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&piece[..n]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let headers: Vec<(String, String)> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok()).unwrap_or(0);
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        let mut piece = [0; 4096];
        let n = stream.read(&mut piece).await.ok().filter(|n| *n > 0)?;
        body.extend_from_slice(&piece[..n]);
    }
    Some(Request { headers, body })
}
