//! Servers that are out to cost time or memory, to hold up others, or to make us say something false.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_compression::tokio::write::GzipEncoder;
use plumbline_crawler::probe::mcp::{EndpointAsk, ProbeSettings, observe};
use plumbline_rules::session::{Cut, Session, WireError};
use plumbline_rules::standing::{Access, Standing};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::server::{self, Answer, Asked, Era, Server, result, serving};
use super::{client, each, patient, probed, probed_with, quick, said};

/// Bytes of answers that a run holds on to.
fn held(session: &Session) -> usize {
    let responses = session.exchanges.iter().filter_map(|exchange| exchange.response.as_ref());
    responses.map(|r| r.raw.as_ref().map_or(0, String::len) + r.raw_base64.as_ref().map_or(0, String::len)).sum()
}

/// Many zeros in few bytes.
async fn bomb() -> Vec<u8> {
    let mut encoder = GzipEncoder::new(Vec::new());
    for _ in 0..256 {
        encoder.write_all(&[b' '; 256 << 10]).await.expect("a vector takes everything");
    }
    encoder.shutdown().await.expect("a vector takes everything");
    encoder.into_inner()
}

async fn bombing(label: &'static str) -> Server {
    let bomb = Arc::new(bomb().await);
    server::raw(move |_, _| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {label}\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            bomb.len()
        );
        [head.as_bytes(), &bomb].concat()
    })
    .await
}

fn leading_round(asked: &Asked) -> Option<Answer> {
    let next = if asked.is_at("/mcp") { "/mcp/again" } else { "/mcp" };
    Some(Answer::bare(307).with("location", next))
}

/// Pages as large as one answer may be, each with another cursor.
fn leafing(asked: &Asked) -> Option<Answer> {
    (asked.is("tools/list") && asked.is_ordinary()).then(|| {
        let tool = server::with(server::tools()[0].clone(), "name", format!("t{}", asked.page()));
        let tool = server::with(tool, "description", "Gives the tides. ".repeat(200_000));
        result(asked, json!({"tools": [tool], "nextCursor": asked.page().to_string()}))
    })
}

/// A cursor twice as long with every page.
fn growing(asked: &Asked) -> Option<Answer> {
    (asked.is("tools/list") && asked.is_ordinary()).then(|| {
        let cursor = asked.json["params"]["cursor"].as_str().unwrap_or("c").repeat(2);
        result(asked, json!({"tools": [], "nextCursor": cursor}))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_costs_time_or_memory_costs_no_more_than_its_bounds() {
    let answers = |text: String| server::raw(move |_, _| text.clone().into_bytes());
    let servers: Vec<(&str, Server, &[&str])> = vec![
        ("never answers", server::silent().await, &[]),
        ("drips", server::dripping().await, &[]),
        ("floods", server::flooding().await, &[]),
        ("comments on its stream for ever", server::commenting().await, &["mcp/sse-silent"]),
        ("answers with a bomb", bombing("application/json").await, &["common/too-large"]),
        ("streams a bomb", bombing("text/event-stream").await, &[]),
        ("leads round in a circle", serving(Era::Legacy, leading_round).await, &["common/redirect-limit"]),
        ("leafs through large pages", serving(Era::Legacy, leafing).await, &[]),
        ("lets its cursor grow", serving(Era::Legacy, growing).await, &[]),
        ("promises an answer for ever", answers("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100_000)).await, &[]),
        ("sends headers for ever", answers(format!("HTTP/1.1 200 OK\r\n{}", "X-A: b\r\n".repeat(500_000))).await, &[]),
        ("sends one endless header", answers(format!("HTTP/1.1 200 OK\r\nX-A: {}", "b".repeat(4 << 20))).await, &[]),
    ];
    // That all of them come to an end at all shows that each wait has a bound.
    let sessions = each(&servers, |(_, server, _)| async { probed_with(server, &quick()).await }).await;
    for ((name, _, allowed), session) in servers.iter().zip(sessions) {
        assert!(held(&session) <= 16 << 20, "{name}: {} bytes", held(&session));
        let (errors, _) = said(&session);
        assert!(errors.iter().all(|id| allowed.contains(id)), "{name}: {errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stopped_at_its_limit_says_so() {
    let session = probed(&bombing("application/json").await).await;
    let cuts: Vec<_> = session.exchanges.iter().filter_map(|e| e.response.as_ref()?.cut).collect();
    assert!(!cuts.is_empty() && cuts.iter().all(|cut| *cut == Cut::Limit), "{cuts:?}");
    let session = probed(&serving(Era::Legacy, leading_round).await).await;
    assert!(session.exchanges.iter().any(|e| e.error == Some(WireError::RedirectLimit)));
}

/// What we put together of several answers has no size that anybody could be accused of.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_as_large_as_it_likes_when_each_of_its_pages_is_not() {
    let pages = |asked: &Asked| {
        (asked.is("tools/list") && asked.is_ordinary()).then(|| {
            let tool = server::with(server::tools()[0].clone(), "name", format!("t{}", asked.page()));
            let tool = server::with(tool, "description", "Gives the tides. ".repeat(60_000));
            let page = json!({"tools": [tool]});
            result(
                asked,
                if asked.page() < 5 { server::with(page, "nextCursor", asked.page().to_string()) } else { page },
            )
        })
    };
    let settings = ProbeSettings { run_bytes: 32 << 20, ..patient() };
    let session = probed_with(&serving(Era::Legacy, pages).await, &settings).await;
    assert!(plumbline_rules::standing::unread_lists(&session).is_empty(), "both pages were read");
    assert_eq!(said(&session).0, Vec::<&str>::new());
}

/// Of a run that was broken off for its bytes, what was opened is closed, and of its lists nothing is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_broken_off_leaves_no_session_behind_and_no_half_list() {
    let closed = Arc::new(AtomicBool::new(false));
    let seen = closed.clone();
    let server = serving(Era::Legacy, move |asked| {
        seen.fetch_or(asked.verb == "DELETE", Ordering::SeqCst);
        leafing(asked)
    })
    .await;
    let session = probed(&server).await;
    assert!(closed.load(Ordering::SeqCst), "its session is closed");
    let described = plumbline_rules::standing::self_description(&session).expect("it said something");
    assert!(described.get("tools").is_none(), "half a list is no list");
    assert_eq!(plumbline_rules::standing::unread_lists(&session), ["tools"]);
}

/// However long we are ready to wait for one server, another is looked at meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_holds_us_up_holds_up_nobody_else() {
    const HOUR_MS: u64 = 3_600_000;
    let waiting = ProbeSettings {
        head_ms: HOUR_MS,
        step_ms: HOUR_MS,
        stream_get_ms: HOUR_MS,
        run_ms: HOUR_MS,
        ..ProbeSettings::default()
    };
    for (name, hostile) in [
        ("never answers", server::silent().await),
        ("drips", server::dripping().await),
        ("comments on its stream for ever", server::commenting().await),
    ] {
        let client = client();
        let (ours, url, settings) = (client.clone(), hostile.url("/mcp"), waiting.clone());
        let held_up = tokio::spawn(async move {
            let ask = EndpointAsk { url, headers: Vec::new(), odd: true, active: None };
            observe(&ours, &ask, &settings).await.map(drop)
        });
        hostile.was_asked().await;
        let good = serving(Era::Legacy, |_| None).await;
        let ask = EndpointAsk { url: good.url("/mcp"), headers: Vec::new(), odd: true, active: None };
        let session = observe(&client, &ask, &patient()).await.expect("we did not fail").session;
        assert_eq!(Standing::of(&session).access, Access::Open, "beside one that {name}");
        assert!(!held_up.is_finished(), "{name}: it still waits");
        held_up.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_list_never_ends_is_read_so_far_and_said_so() {
    let endless = |a: &Asked| {
        let tool = server::with(server::tools()[0].clone(), "name", format!("t{}", a.page()));
        (a.is("tools/list") && a.is_ordinary())
            .then(|| result(a, json!({"tools": [tool], "nextCursor": a.page().to_string()})))
    };
    let server = serving(Era::Legacy, endless).await;
    let session = probed(&server).await;
    assert!(said(&session).1.contains(&"mcp/pagination-endless"), "{:?}", said(&session));
}

/// A request's id, as it stands in its body.
fn id_of(body: &str) -> String {
    let asked: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    asked["id"].to_string()
}

fn json_answer(body: &str) -> Vec<u8> {
    labelled("application/json", body.as_bytes())
}

fn labelled(label: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {label}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn head(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 {lines}\r\n\r\n").into_bytes()
}

/// A handshake with this beside it; anything else is refused.
fn initialized(body: &str, more: &str) -> Vec<u8> {
    if body.contains("\"ping\"") {
        return json_answer(&format!(r#"{{"jsonrpc": "2.0", "id": {}, "result": {{}}}}"#, id_of(body)));
    }
    if !body.contains("\"initialize\"") {
        return json_answer(&format!(
            r#"{{"jsonrpc": "2.0", "id": {}, "error": {{"code": -32601, "message": "no"}}}}"#,
            id_of(body)
        ));
    }
    json_answer(&format!(
        r#"{{"jsonrpc": "2.0", "id": {}, "result": {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "t", "version": "1"}}{more}}}}}"#,
        id_of(body)
    ))
}

/// What an odd server does, and the errors that may be said of it because they are true.
type Odd = (&'static str, fn(&str, &str) -> Vec<u8>, &'static [&'static str]);

const ODD: &[Odd] = &[
    (
        "speaks HTTP/2 alone",
        |_, _| b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\x04\0\x10\0\0\0\x06\0\0\x40\0".to_vec(),
        &[],
    ),
    ("speaks another protocol", |_, _| b"220 mail.example ESMTP\r\n".to_vec(), &[]),
    ("hangs up", |_, _| Vec::new(), &[]),
    (
        "breaks its chunks",
        |_, _| {
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"
                .to_vec()
        },
        &["mcp/response-truncated"],
    ),
    (
        "stops in a chunk",
        |_, _| {
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"jsonrpc\""
                .to_vec()
        },
        &["mcp/response-truncated"],
    ),
    (
        "promises more than it has",
        |_, _| head("200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999"),
        &["mcp/response-truncated"],
    ),
    ("counts to less than nothing", |_, _| head("200 OK\r\nContent-Length: -1"), &[]),
    ("counts twice", |_, _| head("200 OK\r\nContent-Length: 2\r\nContent-Length: 5"), &[]),
    ("switches protocols unasked", |_, _| head("101 Switching Protocols\r\nUpgrade: chat\r\nConnection: Upgrade"), &[]),
    ("answers with a status of its own", |_, _| head("799 Tides\r\nContent-Length: 0"), &["mcp/endpoint-not-mcp"]),
    ("says it is unchanged", |_, _| head("304 Not Modified"), &["mcp/endpoint-not-mcp"]),
    ("has nothing to say", |_, _| head("204 No Content"), &["mcp/endpoint-not-mcp"]),
    (
        "leads to files",
        |_, _| head("308 X\r\nLocation: file:///etc/passwd\r\nContent-Length: 0"),
        &["common/unsafe-url-scheme", "mcp/endpoint-not-mcp"],
    ),
    (
        "leads to another protocol",
        |_, _| head("308 X\r\nLocation: gopher://127.0.0.1:70/1\r\nContent-Length: 0"),
        &["common/unsafe-url-scheme", "mcp/endpoint-not-mcp"],
    ),
    (
        "leads inwards",
        |_, _| head("307 X\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0"),
        &["common/url-not-public"],
    ),
    (
        "leads to TLS that is not there",
        |_, _| head("308 X\r\nLocation: https://127.0.0.1:1/mcp\r\nContent-Length: 0"),
        &[],
    ),
    (
        "leads to no address",
        |_, _| head("307 X\r\nLocation: http://[::1\r\nContent-Length: 0"),
        &["mcp/endpoint-not-mcp"],
    ),
    (
        "claims a coding it does not use",
        |_, _| {
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}"
                .to_vec()
        },
        &[],
    ),
    (
        "claims a coding nobody knows",
        |_, _| {
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: tides\r\nContent-Length: 2\r\n\r\n{}".to_vec()
        },
        &[],
    ),
    (
        "nests without end",
        |_, _| json_answer(&"[".repeat(100_000)),
        &["common/invalid-json", "common/too-deep", "mcp/endpoint-not-mcp"],
    ),
    (
        "nests deeply",
        |_, body| {
            json_answer(&format!(
                "{{\"jsonrpc\": \"2.0\", \"id\": {}, \"result\": {}{}}}",
                id_of(body),
                "[".repeat(5_000),
                "]".repeat(5_000)
            ))
        },
        &["common/too-deep"],
    ),
    (
        "writes numbers that no machine holds",
        |_, body| initialized(body, ", \"x\": 1e999999, \"y\": -0.0e-999999"),
        &[],
    ),
    (
        "writes half a character",
        |_, body| initialized(body, ", \"instructions\": \"\\ud800\""),
        &["common/invalid-json"],
    ),
    (
        "streams what is no text",
        |_, _| labelled("text/event-stream", b"data: \xff\xfe\xc0\x80\n\n"),
        &["common/not-utf8", "mcp/sse-no-response"],
    ),
    (
        "streams a flood of notices",
        |_, body| {
            let notice = "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/x\"}\n\n".repeat(20_000);
            let answer = format!(
                "data: {{\"jsonrpc\": \"2.0\", \"id\": {}, \"error\": {{\"code\": -32601, \"message\": \"no\"}}}}\n\n",
                id_of(body)
            );
            labelled("text/event-stream", (notice + &answer).as_bytes())
        },
        &["mcp/initialize-failed"],
    ),
    (
        "streams answers to others",
        |_, _| labelled("text/event-stream", b"data: {\"jsonrpc\": \"2.0\", \"id\": 4711, \"result\": {}}\n\n"),
        &["mcp/sse-no-response", "mcp/jsonrpc-id-mismatch", "mcp/initialize-failed"],
    ),
    (
        "says its id twice",
        |_, body| {
            json_answer(&format!(
                "{{\"jsonrpc\": \"2.0\", \"id\": {0}, \"id\": {0}, \"error\": {{\"code\": -32601, \"message\": \"no\"}}}}",
                id_of(body)
            ))
        },
        &["mcp/initialize-failed"],
    ),
    (
        "has a revision of its own",
        |_, body| {
            String::from_utf8(initialized(body, "")).expect("text").replace("2025-11-25", "2099-01-01").into_bytes()
        },
        &[],
    ),
    (
        "has a revision that is no word",
        |_, body| {
            let text = format!(
                "{{\"jsonrpc\": \"2.0\", \"id\": {}, \"result\": {{\"protocolVersion\": \"2025\\r\\nx: y\", \"capabilities\": {{}}, \"serverInfo\": {{\"name\": \"t\", \"version\": \"1\"}}}}}}",
                id_of(body)
            );
            json_answer(&text)
        },
        &["mcp/initialize-version-format"],
    ),
    (
        "gives an endless session",
        |_, body| {
            let text = String::from_utf8(initialized(body, "")).expect("text");
            text.replacen("\r\n", &format!("\r\nMcp-Session-Id: {}\r\n", "s".repeat(60_000)), 1).into_bytes()
        },
        &["mcp/session-id-reused"],
    ),
    (
        "gives a session in bytes",
        |_, body| {
            let text = initialized(body, "");
            let end = text.windows(2).position(|pair| pair == b"\r\n").expect("a line");
            [&text[..end], b"\r\nMcp-Session-Id: a\xff\x80b", &text[end..]].concat()
        },
        &["mcp/session-id-charset", "mcp/session-id-reused"],
    ),
    (
        "asks for credentials in a thousand ways",
        |_, _| {
            head(&format!("401 X\r\nWWW-Authenticate: {}\r\nContent-Length: 0", "Bearer realm=\"x\", ".repeat(1_000)))
        },
        &["oauth/prm-not-found", "oauth/challenge-resource-metadata-missing"],
    ),
    (
        "keeps its metadata inside",
        |_, _| {
            head(
                "401 X\r\nWWW-Authenticate: Bearer resource_metadata=\"http://169.254.169.254/latest\"\r\nContent-Length: 0",
            )
        },
        &["oauth/prm-not-found", "oauth/challenge-resource-metadata-url", "common/url-not-public"],
    ),
    (
        "keeps its metadata in a file",
        |_, _| head("401 X\r\nWWW-Authenticate: Bearer resource_metadata=\"file:///etc/passwd\"\r\nContent-Length: 0"),
        &["oauth/prm-not-found", "oauth/challenge-resource-metadata-url"],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn of_odd_servers_nothing_is_said_that_is_not_true() {
    let heard = each(ODD, |(_, answer, _)| async move {
        let server = server::raw(move |first, body| match first {
            get if get.starts_with("GET /mcp ") || get.starts_with("DELETE") => head("405 X\r\nContent-Length: 0"),
            get if get.starts_with("GET") => head("404 X\r\nContent-Length: 0"),
            // Notices and bodies that are none are not what is tested here.
            _ if body.contains("notifications/") => head("202 X\r\nContent-Length: 0"),
            _ if serde_json::from_str::<serde_json::Value>(body).map_or(true, |body| body.is_array()) => {
                head("400 X\r\nContent-Length: 0")
            }
            post => answer(post, body),
        })
        .await;
        said(&probed(&server).await).0
    });
    let mut wrong = Vec::new();
    for ((name, _, allowed), errors) in ODD.iter().zip(heard.await) {
        // None of them looks where a handshake comes from.
        let is_just = |id: &&str| allowed.contains(id) || *id == "mcp/origin-not-validated-local";
        let unjust: Vec<_> = errors.iter().filter(|id| !is_just(id)).collect();
        if !unjust.is_empty() {
            wrong.push(format!("{name}: {unjust:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
