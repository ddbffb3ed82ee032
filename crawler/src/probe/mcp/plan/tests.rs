use plumbline_rules::session::{Request, Response};
use serde_json::{Value, json};

use super::*;
use crate::probe::mcp::message::Verb;

/// What a server answers: status, session id, body.
type Answer = (u16, Option<&'static str>, Value);

const WISH: Wish = Wish { odd: true, third_after: Duration::ZERO, is_local: false, own: None };

/// Runs a plan against a server that answers by step and message; gives the steps that were taken.
fn steps(wish: Wish, server: impl Fn(Step, &Value) -> Answer) -> Vec<String> {
    let mut plan = Plan::new("https://tides.example/mcp", wish);
    let mut session = Session::default();
    let mut steps = Vec::new();
    while let Some(next) = plan.next(&session) {
        assert!(steps.len() < 500, "the plan comes to an end");
        let heard = match next {
            Next::Say(message) => {
                steps.push(message.step.to_string());
                vec![said(&message, &server)]
            }
            Next::Post(_, message) => {
                steps.push(format!("posted {}", message.step));
                let stream = session.exchanges.iter().find(|e| e.step == Some(Step::HttpSse)).cloned();
                stream.into_iter().chain([said(&message, &server)]).collect()
            }
            Next::OpenStream => {
                steps.push("stream".to_owned());
                vec![stream()]
            }
            Next::Hold(_) | Next::Hook(_) | Next::LetGo(_) | Next::CallAndCancel(..) => panic!("only own servers"),
            Next::CloseStream => {
                steps.push("hang up".to_owned());
                Vec::new()
            }
            Next::Fetch(step, url) => {
                steps.push(format!("{step} {}", url.strip_prefix("https://tides.example").unwrap_or(&url)));
                vec![fetched(step, &url, server(step, &json!({})))]
            }
        };
        session.exchanges.extend(heard.last().cloned());
        plan.heard(&heard);
    }
    steps
}

fn answer(answer: Answer) -> Response {
    let (status, session, body) = answer;
    let headers = session.map(|id| ("mcp-session-id".to_owned(), id.to_owned()));
    Response {
        status,
        headers: headers.into_iter().collect(),
        raw: (!body.is_null()).then(|| body.to_string()),
        ..Response::default()
    }
}

fn said(message: &Message, server: &impl Fn(Step, &Value) -> Answer) -> Exchange {
    let asked: Value = message.body.as_deref().and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    let (status, session, mut body) = server(message.step, &asked);
    if let (Some(id), Some(body)) = (asked.get("id"), body.as_object_mut()) {
        body.insert("jsonrpc".to_owned(), "2.0".into());
        body.insert("id".to_owned(), id.clone());
    }
    let method = match message.verb {
        Verb::Post => "POST",
        Verb::Get => "GET",
        Verb::Delete => "DELETE",
    };
    let headers = message.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let url = "https://tides.example/mcp".to_owned();
    exchange(
        message.step,
        Request { method: method.to_owned(), url, headers, raw: message.body.clone() },
        answer((status, session, body)),
    )
}

fn fetched(step: Step, url: &str, found: Answer) -> Exchange {
    let request = Request { method: "GET".to_owned(), url: url.to_owned(), ..Request::default() };
    exchange(step, request, answer(found))
}

fn stream() -> Exchange {
    let request = Request { method: "GET".into(), url: "https://tides.example/mcp".into(), ..Request::default() };
    let response = Response {
        status: 200,
        headers: [("content-type".to_owned(), "text/event-stream".to_owned())].into(),
        raw: Some("event: endpoint\ndata: /messages\n\n".to_owned()),
        ..Response::default()
    };
    exchange(Step::HttpSse, request, response)
}

fn exchange(step: Step, request: Request, response: Response) -> Exchange {
    Exchange { step: Some(step), request, response: Some(response), ..Exchange::default() }
}

fn refused(code: i64, status: u16) -> Answer {
    (status, None, json!({ "error": { "code": code, "message": "no" } }))
}

const NOTHING: fn() -> Answer = || (404, None, Value::Null);

/// A server of the revision without sessions, with tools.
fn modern(step: Step, asked: &Value) -> Answer {
    match (step, asked["method"].as_str()) {
        (Step::Initialize, _) => refused(-32022, 400),
        (_, Some("server/discover")) => (
            200,
            None,
            json!({ "result": { "supportedVersions": ["2026-07-28"], "capabilities": { "tools": { "listChanged": true } } } }),
        ),
        (_, Some("tools/list")) => {
            (200, None, json!({ "result": { "tools": [{ "name": "a" }], "resultType": "complete" } }))
        }
        _ => NOTHING(),
    }
}

/// A server with a handshake, sessions and tools.
fn legacy(version: &'static str) -> impl Fn(Step, &Value) -> Answer {
    move |step, asked| match (step, asked["method"].as_str()) {
        (_, Some("initialize")) => {
            (200, Some("s-1"), json!({ "result": { "protocolVersion": version, "capabilities": { "tools": {} } } }))
        }
        (Step::Initialized, _) => (202, None, Value::Null),
        (Step::SessionDelete, _) => (204, None, Value::Null),
        (_, Some("tools/list")) => (200, None, json!({ "result": { "tools": [{ "name": "a" }] } })),
        (_, Some("ping")) => (200, None, json!({ "result": {} })),
        (Step::Discover, _) => refused(-32600, 400),
        _ => NOTHING(),
    }
}

fn position(steps: &[String], step: &str) -> Option<usize> {
    steps.iter().position(|taken| taken == step)
}

#[test]
fn the_modern_era_comes_first_and_the_handshake_is_tried_all_the_same() {
    let steps = steps(WISH, modern);
    assert_eq!(&steps[..4], ["discover", "tools/list", "fresh-connection", "get"]);
    for odd in ["bad-version", "header-case", "null-id", "origin", "undeclared", "delete", "subscriptions/listen"] {
        assert!(position(&steps, odd) < position(&steps, "initialize"), "{odd} in {steps:?}");
    }
    for absent in ["initialized", "ping", "stream", "session-delete"] {
        assert_eq!(position(&steps, absent), None, "{absent}");
    }
}

#[test]
fn who_lets_resources_be_watched_is_listened_to_as_well() {
    let watching = |step: Step, asked: &Value| match asked["method"].as_str() {
        Some("server/discover") => (
            200,
            None,
            json!({ "result": { "supportedVersions": ["2026-07-28"], "capabilities": { "resources": { "subscribe": true } } } }),
        ),
        Some("resources/list") => {
            (200, None, json!({ "result": { "resources": [{ "uri": "tides://a" }], "resultType": "complete" } }))
        }
        Some("subscriptions/listen") => {
            assert_eq!(asked["params"]["notifications"], json!({ "resourceSubscriptions": ["tides://a"] }));
            NOTHING()
        }
        _ => modern(step, asked),
    };
    assert!(position(&steps(WISH, watching), "subscriptions/listen").is_some());
}

#[test]
fn metadata_is_looked_for_at_both_addresses_of_an_endpoint_that_led_on() {
    let guarded = |url: &str, status: u16, headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request =
            Request { method: "POST".into(), url: url.into(), raw: Some("{}".to_owned()), ..Request::default() };
        exchange(Step::Discover, request, Response { status, headers, ..Response::default() })
    };
    let session = Session::from(vec![
        guarded("https://tides.example/mcp", 307, &[("location", "/mcp/")]),
        guarded("https://tides.example/mcp/", 401, &[("www-authenticate", "Bearer")]),
    ]);
    let mut plan = Plan::new("https://tides.example/mcp", WISH);
    plan.queue.clear();
    plan.prm(&session);
    let asked: Vec<&str> = plan
        .queue
        .iter()
        .filter_map(|next| match next {
            Next::Fetch(Step::Prm, url) => url.strip_prefix("https://tides.example"),
            _ => None,
        })
        .collect();
    let expected = [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
        "/mcp/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp/",
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_run_without_odd_requests_asks_what_every_client_asks() {
    let steps = steps(Wish { odd: false, ..WISH }, legacy("2025-11-25"));
    let wanted =
        ["discover", "initialize", "initialized", "ping", "tools/list", "fresh-connection", "get", "session-delete"];
    assert_eq!(&steps[..wanted.len()], wanted);
    assert!(steps[wanted.len()..].iter().all(|step| step.starts_with("prm") || step.contains("ca")), "{steps:?}");
}

#[test]
fn a_server_of_both_eras_is_asked_odd_things_in_the_newer_one_only() {
    let dual = |step: Step, asked: &Value| match asked["params"]["_meta"].is_object() {
        true => modern(step, asked),
        false => legacy("2025-11-25")(step, asked),
    };
    let steps = steps(WISH, dual);
    assert!(position(&steps, "bad-version").is_some() && position(&steps, "ping").is_some());
    for absent in ["negotiate-unknown", "session-sample", "session-terminated"] {
        assert_eq!(position(&steps, absent), None, "{absent}");
    }
}

#[test]
fn every_session_is_ended_where_the_server_survives_it() {
    let ended = |version| steps(WISH, legacy(version)).iter().filter(|step| *step == "session-delete").count();
    assert_eq!((ended("2025-11-25"), ended("2025-06-18")), (1, 1));
    assert_eq!((ended("2025-03-26"), ended("2024-11-05")), (0, 0));
    let steps = steps(WISH, legacy("2025-11-25"));
    assert_eq!(position(&steps, "session-terminated"), position(&steps, "session-delete").map(|at| at + 1));
}

#[test]
fn a_server_that_knows_only_2024_11_05_is_asked_nothing_odd_but_who_may_call_it() {
    let steps = steps(WISH, legacy("2024-11-05"));
    assert!(steps.iter().any(|step| step == "origin"), "{steps:?}");
    for odd in ["unknown-method", "malformed-json", "batch"] {
        assert_eq!(position(&steps, odd), None, "{odd}");
    }
}

#[test]
fn only_who_refuses_both_posts_as_an_older_server_is_asked_for_a_stream() {
    let with = |status: u16| steps(WISH, move |_, _| (status, None, Value::Null));
    for status in [400, 404, 405] {
        let steps = with(status);
        let at = position(&steps, "stream").unwrap_or_else(|| panic!("{status}: {steps:?}"));
        assert_eq!(steps[at + 1], "posted initialize", "{status}");
        assert!(position(&steps, "hang up").is_some());
    }
    for status in [200, 401, 403, 500] {
        assert_eq!(position(&with(status), "stream"), None, "{status}");
    }
}

#[test]
fn who_asks_to_come_back_later_is_asked_nothing_more() {
    let server = |step: Step, asked: &Value| match step {
        Step::ToolsList => (429, None, Value::Null),
        _ => legacy("2025-11-25")(step, asked),
    };
    assert_eq!(steps(WISH, server).last().map(String::as_str), Some("tools/list"));
}

#[test]
fn a_list_is_followed_to_its_end_and_not_in_circles() {
    let pages = |most: usize| {
        move |step: Step, asked: &Value| match asked["method"].as_str() {
            Some("tools/list") => {
                let page = asked["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap_or(0)) + 1;
                let mut result = json!({ "tools": [{ "name": format!("t{page}") }] });
                if page < most {
                    result["nextCursor"] = page.to_string().into();
                }
                (200, None, json!({ "result": result }))
            }
            _ => legacy("2025-11-25")(step, asked),
        }
    };
    let lists = |steps: Vec<String>| steps.iter().filter(|step| *step == "tools/list").count();
    assert_eq!(lists(steps(Wish { odd: false, ..WISH }, pages(3))), 3);
    assert_eq!(lists(steps(Wish { odd: false, ..WISH }, pages(usize::MAX))), MOST_PAGES);
    let circle = |step: Step, asked: &Value| match asked["method"].as_str() {
        Some("tools/list") => (200, None, json!({ "result": { "tools": [], "nextCursor": "again" } })),
        _ => legacy("2025-11-25")(step, asked),
    };
    assert_eq!(lists(steps(Wish { odd: false, ..WISH }, circle)), 2);
}

#[test]
fn a_third_list_is_asked_for_when_two_differ() {
    let server = |step: Step, asked: &Value| match step {
        Step::FreshConnection => (200, None, json!({ "result": { "tools": [{ "name": "b" }] } })),
        _ => legacy("2025-11-25")(step, asked),
    };
    assert!(position(&steps(WISH, server), "third-list").is_some());
    assert_eq!(position(&steps(WISH, legacy("2025-11-25")), "third-list"), None);
}

#[test]
fn every_issuer_is_asked_at_each_of_its_places() {
    let server = |step: Step, asked: &Value| match step {
        Step::Discover | Step::Initialize => (401, None, Value::Null),
        Step::Prm => (
            200,
            None,
            json!({ "resource": "https://tides.example/mcp", "authorization_servers": ["https://a.example/t", "https://b.example"] }),
        ),
        _ => legacy("2025-11-25")(step, asked),
    };
    let steps = steps(WISH, server);
    let asked: Vec<_> = steps.iter().filter_map(|step| step.strip_prefix("as https://")).collect();
    assert_eq!(
        asked,
        [
            "a.example/.well-known/oauth-authorization-server/t",
            "a.example/.well-known/openid-configuration/t",
            "a.example/t/.well-known/openid-configuration",
            "a.example/t/.well-known/oauth-authorization-server",
            "b.example/.well-known/oauth-authorization-server",
            "b.example/.well-known/openid-configuration",
        ]
    );
    assert!(position(&steps, "prm /mcp/.well-known/oauth-protected-resource").is_some());
}

#[test]
fn after_a_connection_that_fails_nothing_is_asked() {
    let mut plan = Plan::new("https://tides.example/mcp", WISH);
    let session = Session::default();
    let Some(Next::Say(message)) = plan.next(&session) else { panic!("it begins") };
    let mut failed = said(&message, &|_, _| NOTHING());
    (failed.response, failed.error) = (None, Some(WireError::Refused));
    plan.heard(&[failed]);
    assert_eq!(plan.next(&session), None);
}
