//! A regression from end to end: an agent's card is swapped, the crawl sees it, a second look confirms it, the page says so,
//! programs and people are told by signed webhooks; then the card is put right, and they are told that too.
//!
//! A regression is what had held at two looks a day or more apart, so the first look is made two days ago. That happens in two
//! ways. On every machine a small server of ours serves our own example of a card, and what the first look left in the database is
//! made two days older. Where there is a fleet (PLUMBLINE_FLEET names the fleet.json) the card is that of a released SDK, handed on by a
//! front of ours that swaps it, and the first look is made by a clock that is set back (libfaketime).

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plumbline_alerts::signature::{Key, is_signed_by};
use serde_json::Value;
use support::{eventually, get, ok_answer, plumbline, serve, server, settings};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// One message as it arrived.
struct Arrived {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    at_s: f64,
}

impl Arrived {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a message is JSON")
    }

    fn is_signed(&self) -> bool {
        let header = |name: &str| self.headers.get(name).map(String::as_str).unwrap_or_default();
        let at_s = header("webhook-timestamp").parse().unwrap_or(0);
        let key = Key::parse(SECRET).expect("a secret");
        is_signed_by(&key, header("webhook-id"), at_s, &self.body, header("webhook-signature"))
    }
}

type Inbox = Arc<Mutex<Vec<Arrived>>>;

/// A receiver that accepts everything and keeps it.
fn receiver() -> (SocketAddr, Inbox) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let inbox = Inbox::default();
    let kept = inbox.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let kept = kept.clone();
            std::thread::spawn(move || receive(stream, &kept));
        }
    });
    (address, inbox)
}

/// Everything that comes over one connection.
fn receive(mut stream: TcpStream, inbox: &Inbox) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_ok_and(|read| read == 0) {
            return;
        }
        let at_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_ok_and(|read| read <= 2) {
                break;
            }
            if let Some((name, value)) = line.trim_end().split_once(": ") {
                headers.insert(name.to_lowercase(), value.to_owned());
            }
        }
        let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        inbox.lock().expect("nobody panicked").push(Arrived { headers, body, at_s });
        if stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
            return;
        }
    }
}

/// What arrived, a line each.
struct Heard<'a>(&'a Inbox);

impl Drop for Heard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for one in self.0.lock().expect("nobody panicked").iter().map(Arrived::json) {
                let data = &one["data"];
                println!("{} {} {} {}", one["timestamp"], one["type"], data["rule"]["id"], data["group"]["alerts"]);
            }
        }
    }
}

/// Waits for a message of a type.
fn message(inbox: &Inbox, kind: &str, patience: Duration) -> (Value, f64) {
    eventually(kind, patience, || {
        let inbox = inbox.lock().expect("nobody panicked");
        inbox.iter().find(|one| one.json()["type"] == kind).map(|one| (one.json(), one.at_s))
    })
}

/// A card of our own.
const OWN_CARD: &str = include_str!("../rules/examples/a2a-1.0.json");

/// How much older the database is made: whole days, so that days stay days.
const OLDER_D: i64 = 2;

/// Makes everything in the database two days older: times have their unit in the name of their column, and what is no moment but
/// a length is far smaller than one.
fn make_older(folder: &Path) {
    let path = folder.join("plumbline.db");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = plumbline_store::Store::open(path.to_str().expect("a path")).await.expect("it opens");
        let columns: Vec<(String, String)> = sqlx::query_as(
            "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND (c.name LIKE '%!_s' ESCAPE '!' OR c.name LIKE '%!_ms' ESCAPE '!' OR c.name = 'day')",
        )
        .fetch_all(store.writer())
        .await
        .expect("columns");
        let mut moved = 0;
        for (table, column) in columns {
            let (by, least) = match column.as_str() {
                "day" => (OLDER_D, 10_000),
                column if column.ends_with("_ms") => (OLDER_D * 86_400_000, 1_000_000_000_000_i64),
                _ => (OLDER_D * 86_400, 1_000_000_000),
            };
            let statement = format!("UPDATE {table} SET {column} = {column} - {by} WHERE {column} > {least}");
            let done = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(store.writer()).await.expect("moved");
            moved += done.rows_affected();
        }
        assert!(moved > 10, "the first look left something");
        store.close().await;
    });
}

/// The card of a released SDK, or a reason why the test cannot run.
fn card() -> Option<String> {
    let Some(path) = std::env::var_os("PLUMBLINE_FLEET") else {
        assert!(std::env::var_os("CI").is_none(), "PLUMBLINE_FLEET has to be set in CI");
        println!("skipped: PLUMBLINE_FLEET is not set");
        return None;
    };
    let text = std::fs::read_to_string(&path).expect("the fleet's list can be read");
    let fleet: Value = serde_json::from_str(&text).expect("the fleet's list is JSON");
    let servers = fleet["servers"].as_array().expect("servers");
    let agent = servers.iter().find(|server| server["name"] == "a2a-py-1.3").expect("an agent of the Python SDK");
    let url = url::Url::parse(agent["url"].as_str().expect("a url")).expect("an address");
    let address = format!("{}:{}", url.host_str().expect("a host"), url.port().expect("a port"));
    let answer = get(&address, "/.well-known/agent-card.json", "application/json");
    assert_eq!(answer.status, 200, "{}", answer.body);
    Some(answer.body)
}

/// The library that sets a clock back, or a reason why the test cannot run.
fn clock_setter() -> Option<PathBuf> {
    let found = std::fs::read_dir("/usr/lib").ok().into_iter().flatten().flatten();
    let found = found.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "libfaketime has to be there in CI");
        println!("skipped: libfaketime is not there");
    }
    found
}

/// Takes a member of every interface away, without which no client of A2A 1.0 opens the card.
fn broken(card: &str) -> String {
    let mut card: Value = serde_json::from_str(card).expect("a card is JSON");
    for interface in card["supportedInterfaces"].as_array_mut().expect("interfaces") {
        interface.as_object_mut().expect("an object").remove("protocolBinding");
    }
    card.to_string()
}

/// A form without fields, as the person at this machine sends it.
fn press(address: &str, path: &str) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 303"), "{path}: {answer}");
}

fn told_of(folder: &Path, receiver: SocketAddr) {
    let path = folder.join("plumbline.toml");
    std::fs::write(folder.join("secret"), SECRET).expect("written");
    let text = std::fs::read_to_string(&path).expect("settings")
        + &format!(
            "[alerts]\nallow_networks = [\"127.0.0.0/8\"]\n\
             [[webhooks]]\nname = \"machine\"\nurl = \"http://{receiver}/machine\"\nsecret_file = \"secret\"\ntypes = [\"finding.*\"]\n\
             [[webhooks]]\nname = \"team\"\nurl = \"http://{receiver}/team\"\nsecret_file = \"secret\"\nmode = \"groups\"\n\
             [[routes]]\nname = \"all\"\nmatch = \"family:a2a\"\nwebhooks = [\"team\"]\nwait_s = 0\ninterval_s = 60\n"
        );
    std::fs::write(&path, text).expect("written");
}

#[test]
fn a_swapped_card_of_ours_is_told_to_programs_and_people_and_so_is_its_recovery() {
    // What was never filled in is a finding of its own.
    story(OWN_CARD.replace(".example.com", ".tides.dev"), |folder| {
        let first_look = plumbline(folder).arg("crawl").output().expect("it runs");
        assert!(first_look.status.success(), "{}", String::from_utf8_lossy(&first_look.stderr));
        make_older(folder);
    });
}

#[test]
fn a_swapped_card_of_a_released_agent_is_told_to_programs_and_people_and_so_is_its_recovery() {
    let (Some(clock_setter), Some(good)) = (clock_setter(), card()) else { return };
    story(good, |folder| {
        let mut crawl = plumbline(folder);
        crawl.arg("crawl").env("LD_PRELOAD", &clock_setter).env("FAKETIME", "-49h");
        let first_look = crawl.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").output().expect("it runs");
        assert!(first_look.status.success(), "{}", String::from_utf8_lossy(&first_look.stderr));
    });
}

/// A good card is looked at two days ago and again, swapped, and put right.
fn story(good: String, look_two_days_ago: impl FnOnce(&Path)) {
    let served = Arc::new(Mutex::new(good.clone()));
    let front = {
        let served = served.clone();
        server(move |_| ok_answer("application/json", &served.lock().expect("nobody panicked")))
    };
    let (address, inbox) = receiver();
    let _heard = Heard(&inbox);
    let folder = tempfile::tempdir().expect("a folder");
    settings(folder.path(), None, &[format!("http://{front}/")]);
    look_two_days_ago(folder.path());
    told_of(folder.path(), address);
    let serving = serve(folder.path(), &[]);
    let target = || get(&serving.address, "/targets/1", "application/json").body;
    eventually("it is looked at again", Duration::from_secs(90), || {
        let target: Value = serde_json::from_str(&target()).expect("JSON");
        let looked_s = target["surfaces"][0]["last_evaluated_s"].as_i64().unwrap_or(0);
        (looked_s > chrono::Utc::now().timestamp() - 3_600).then_some(())
    });
    assert!(!target().contains("\"headline\":\"blocked\""), "{}", target());
    let told: Vec<Value> = inbox.lock().expect("nobody panicked").iter().map(Arrived::json).collect();
    assert!(told.is_empty(), "a first look tells nobody: {told:#?}");

    *served.lock().expect("nobody panicked") = broken(&good);
    press(&serving.address, "/targets/1/recheck");
    let (regressed, at_s) = message(&inbox, "finding.regressed", Duration::from_secs(180));
    let data = &regressed["data"];
    assert_eq!(data["finding"]["opened_as"], "broke", "{regressed}");
    assert_eq!(data["cause"]["kind"], "document", "{regressed}");
    assert!(data["cause"]["diff_url"].as_str().is_some_and(|url| url.contains("/targets/1/diff?from=")), "{regressed}");
    assert!(!data["surface"]["clients"]["refused_by"].as_array().expect("clients").is_empty(), "{regressed}");
    let happened_s = chrono::DateTime::parse_from_rfc3339(regressed["timestamp"].as_str().expect("a time"));
    println!(
        "from the look that confirmed to the first byte: {:.2} s",
        at_s - happened_s.expect("RFC 3339").timestamp() as f64
    );

    // What the message points at says the same.
    let finding = data["finding"]["url"].as_str().expect("a url");
    let path = url::Url::parse(finding).expect("an address").path().to_owned();
    let page = get(&serving.address, &path, "text/html");
    assert!(page.status == 200 && page.body.contains("regression"), "{path}: {}", page.body);
    let diff = url::Url::parse(data["cause"]["diff_url"].as_str().expect("a url")).expect("an address");
    let page = get(&serving.address, &format!("{}?{}", diff.path(), diff.query().expect("a query")), "text/html");
    assert!(page.status == 200 && page.body.contains("protocolBinding"), "{}", page.body);
    assert!(target().contains("\"headline\":\"blocked\""), "{}", target());
    let (group, _) = message(&inbox, "alert_group.opened", Duration::from_secs(30));
    let group_path = url::Url::parse(group["data"]["group"]["url"].as_str().expect("a url")).expect("an address");
    assert_eq!(get(&serving.address, group_path.path(), "text/html").status, 200);
    let alerts = get(&serving.address, "/api/v1/alerts?open=yes", "application/json").body;
    assert!(alerts.contains("Told in group"), "{alerts}");

    // And put right again: two looks have to agree.
    *served.lock().expect("nobody panicked") = good;
    press(&serving.address, "/targets/1/recheck");
    let (resolved, _) = message(&inbox, "finding.resolved", Duration::from_secs(240));
    assert_eq!(resolved["data"]["finding"]["resolution"], "fixed", "{resolved}");
    message(&inbox, "alert_group.resolved", Duration::from_secs(300));
    assert!(!target().contains("\"headline\":\"blocked\""), "{}", target());

    let count = |kinds: &[&str]| {
        let inbox = inbox.lock().expect("nobody panicked");
        let told = inbox.iter().map(Arrived::json).filter(|one| kinds.iter().any(|kind| one["type"] == *kind));
        // Both changes were made under one version: that still holds, and has no ending to tell.
        told.filter(|one| one["data"]["rule"]["id"] != "common/changed-without-version").count()
    };
    eventually("every opening has its ending", Duration::from_secs(60), || {
        (count(&["finding.opened", "finding.regressed"]) == count(&["finding.resolved"])).then_some(())
    });
    assert_eq!((count(&["alert_group.opened"]), count(&["alert_group.resolved"])), (1, 1));
    let inbox = inbox.lock().expect("nobody panicked");
    assert!(inbox.iter().all(Arrived::is_signed), "every message is signed");
    let ids: std::collections::BTreeSet<&String> = inbox.iter().map(|one| &one.headers["webhook-id"]).collect();
    assert_eq!(ids.len(), inbox.len(), "no message came twice");
}
