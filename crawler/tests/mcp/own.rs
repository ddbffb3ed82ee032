//! The operator's own servers: what is done to them that is done to nobody else, and what is said of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderValue};
use plumbline_crawler::net::{Client, Header, NetSettings};
use plumbline_crawler::probe::mcp::active::Active;
use plumbline_crawler::probe::mcp::{EndpointAsk, observe};
use plumbline_crawler::settings::OwnTool;
use plumbline_rules::session::{Session, Step};
use serde_json::json;
use url::Url;

use super::server::{self, Answer, Asked, Era, Server, error, result, serving};
use super::{client, each, manners, patient, said};

fn token(value: &'static str) -> Header {
    Header::secret(AUTHORIZATION, HeaderValue::from_static(value))
}

/// All that an operator can allow.
fn everything() -> Active {
    Active {
        tools: vec![OwnTool { name: "tide_table".to_owned(), arguments: json!({}) }],
        slow_tool: None,
        change_hook: None,
        low_scope: Some(token("Bearer low")),
        other_audience: Some(token("Bearer elsewhere")),
        other_user: Some(token("Bearer another")),
    }
}

async fn probed(server: &Server, active: Option<Active>) -> Session {
    let headers = vec![token("Bearer good")];
    let ask = EndpointAsk { url: server.url("/mcp"), headers, odd: true, active };
    observe(&client(), &ask, &patient()).await.expect("we did not fail").session
}

/// Lets in whoever has the good token, and says the right thing to all others.
fn guarded(asked: &Asked) -> Option<Answer> {
    if !asked.is_at("/mcp") {
        return Some(server::guarded_answer(asked));
    }
    match asked.header("authorization") {
        Some("Bearer good") => None,
        Some("Bearer low") if asked.verb == "POST" => {
            let challenge = format!("{}, error=\"insufficient_scope\", scope=\"tides:read\"", server::challenge(asked));
            Some(Answer::bare(403).with("www-authenticate", &challenge))
        }
        _ => Some(server::guarded_answer(asked)),
    }
}

/// Lets in whoever comes with this in place of the good token.
fn also(asked: &Asked, authorization: &str) -> Option<Answer> {
    if asked.header("authorization") == Some(authorization) { None } else { guarded(asked) }
}

/// Name, era, the rule that finds it, and what it does otherwise than a good server.
type Bad = (&'static str, Era, &'static str, fn(&Asked) -> Option<Answer>);

const BAD: &[Bad] = &[
    ("knows-every-tool", Era::Legacy, "mcp/tool-unknown-code", |a| {
        a.is("tools/call")
            .then(|| result(a, json!({"content": []})))
            .filter(|_| guarded(a).is_none())
            .or_else(|| guarded(a))
    }),
    ("gives-no-content", Era::Legacy, "mcp/tool-result-content", |a| {
        let is_known = a.json["params"]["name"] == "tide_table";
        guarded(a).or_else(|| (a.is("tools/call") && is_known).then(|| result(a, json!({"text": "High at noon."}))))
    }),
    ("fails-in-quotes", Era::Modern, "mcp/tool-result-is-error-type", |a| {
        let is_known = a.json["params"]["name"] == "tide_table" && a.header("mcp-name") == Some("tide_table");
        let answer = || server::modern(a, json!({"content": [], "isError": "false"}));
        guarded(a).or_else(|| (a.is("tools/call") && is_known).then(answer))
    }),
    ("goes-by-the-body-alone", Era::Modern, "mcp/header-name-mismatch-accepted", |a| {
        let answer = || server::modern(a, json!({"content": []}));
        guarded(a).or_else(|| {
            (a.is("tools/call") && a.has("mcp-name") && a.json["params"]["name"] == "tide_table").then(answer)
        })
    }),
    ("logs-and-lets-nobody-say-how-much", Era::Legacy, "mcp/logging-not-served", |a| {
        guarded(a).or_else(|| declaring(a, json!({"tools": {}, "logging": {}})))
    }),
    ("has-every-resource", Era::Legacy, "mcp/resource-not-found-empty", |a| {
        let lists = || match a.json["method"].as_str() {
            Some("resources/list") => Some(result(a, json!({"resources": []}))),
            Some("resources/templates/list") => Some(result(a, json!({"resourceTemplates": []}))),
            Some("resources/read") => Some(result(a, json!({"contents": []}))),
            _ => None,
        };
        guarded(a).or_else(|| declaring(a, json!({"tools": {}, "resources": {}}))).or_else(lists)
    }),
    ("calls-made-up-resources-internal", Era::Modern, "mcp/resource-not-found-code", |a| {
        guarded(a).or_else(|| match a.json["method"].as_str().filter(|_| a.has_meta()) {
            Some("server/discover") if a.is_ordinary() => {
                let declared = json!({"tools": {}, "resources": {}});
                Some(server::modern(a, json!({"supportedVersions": ["2026-07-28"], "capabilities": declared})))
            }
            Some("resources/list") => Some(server::modern(a, json!({"resources": []}))),
            Some("resources/templates/list") => Some(server::modern(a, json!({"resourceTemplates": []}))),
            Some("resources/read") => Some(error(a, 400, -32603)),
            _ => None,
        })
    }),
    ("completes-without-context", Era::Legacy, "mcp/completion-context-refused", |a| {
        guarded(a)
            .or_else(|| declaring(a, json!({"tools": {}, "prompts": {}, "completions": {}})))
            .or_else(|| completing(a, true))
    }),
    ("completes-in-secret", Era::Legacy, "mcp/completions-undeclared", |a| {
        guarded(a).or_else(|| declaring(a, json!({"tools": {}, "prompts": {}}))).or_else(|| completing(a, false))
    }),
    ("takes-tokens-in-the-address", Era::Legacy, "oauth/token-query-accepted", |a| {
        if a.query.contains("access_token=good") { None } else { guarded(a) }
    }),
    ("takes-any-token", Era::Legacy, "oauth/token-invalid-accepted", |a| {
        if a.header("authorization").is_some_and(|value| value.contains("made-up")) { None } else { guarded(a) }
    }),
    ("forbids-bad-tokens", Era::Modern, "oauth/token-invalid-status", |a| {
        let is_made_up = a.header("authorization").is_some_and(|value| value.contains("made-up"));
        is_made_up.then(|| Answer::bare(403).with("www-authenticate", &server::challenge(a))).or_else(|| guarded(a))
    }),
    ("takes-tokens-for-others", Era::Legacy, "oauth/token-audience-unchecked", |a| also(a, "Bearer elsewhere")),
    ("trusts-its-session-ids", Era::Legacy, "oauth/session-bypasses-auth", |a| {
        if !a.has("authorization") && a.has("mcp-session-id") { None } else { guarded(a) }
    }),
    ("mixes-up-its-users", Era::Legacy, "mcp/session-user-binding", |a| {
        if a.has("mcp-session-id") { also(a, "Bearer another") } else { guarded(a) }
    }),
    ("keeps-the-scope-to-itself", Era::Legacy, "oauth/insufficient-scope-shape", |a| {
        let is_low = a.header("authorization") == Some("Bearer low");
        is_low.then(|| Answer::bare(403).with("www-authenticate", &server::challenge(a))).or_else(|| guarded(a))
    }),
];

/// A prompt with an argument that is completed, also with what was filled in before unless that is `refused`.
fn completing(a: &Asked, refused: bool) -> Option<Answer> {
    let argument = json!({"name": "harbour", "description": "Which.", "required": false});
    let prompt = json!({"name": "tides", "title": "Tides", "description": "Asks for tides.", "arguments": [argument]});
    let said = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "When is high water?"}}]});
    match a.json["method"].as_str().filter(|_| a.is_ordinary()) {
        Some("prompts/list") => Some(result(a, json!({"prompts": [prompt]}))),
        Some("prompts/get") if a.json["params"]["name"] == "tides" => Some(result(a, said)),
        Some("prompts/get") => Some(error(a, 200, -32602)),
        Some("completion/complete") if refused && a.json["params"]["context"].is_object() => {
            Some(error(a, 200, -32602))
        }
        Some("completion/complete") => Some(result(a, json!({"completion": {"values": ["Bergen"]}}))),
        _ => None,
    }
}

/// A handshake that declares this.
fn declaring(asked: &Asked, capabilities: serde_json::Value) -> Option<Answer> {
    (asked.is_initialize() && asked.is_ordinary()).then(|| {
        let answer = server::initialized(asked, "2025-11-25");
        let mut body: serde_json::Value = serde_json::from_str(&answer.body).expect("it is JSON");
        body["result"]["capabilities"] = capabilities;
        Answer { body: body.to_string(), ..answer }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_own_servers_is_found_and_nothing_else_is_said() {
    let heard = each(BAD, |(_, era, _, otherwise)| async move {
        let server = serving(*era, *otherwise).await;
        said(&probed(&server, Some(everything())).await)
    });
    let mut wrong = Vec::new();
    for ((name, _, rule, _), (errors, spoke)) in BAD.iter().zip(heard.await) {
        if !spoke.contains(rule) || errors.iter().any(|id| id != rule) {
            wrong.push(format!("{name}: {rule}, said {errors:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), BAD.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn own_servers_that_do_nothing_wrong_are_not_accused() {
    for era in [Era::Legacy, Era::Modern] {
        let server = serving(era, guarded).await;
        let session = probed(&server, Some(everything())).await;
        assert!(said(&session).0.is_empty(), "{era:?}: {:?}", said(&session).0);
        let steps: Vec<Step> = session.exchanges.iter().filter_map(|exchange| exchange.step).collect();
        for step in [Step::ToolsCall, Step::ToolsCallUnknown, Step::BadToken, Step::TokenInQuery, Step::LowScope] {
            assert!(steps.contains(&step), "{era:?} was asked {step}: {steps:?}");
        }
    }
}

/// Whatever a server offers: who is not marked as own is asked none of it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_to_servers_of_others() {
    for era in [Era::Legacy, Era::Modern] {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = asked.clone();
        let server = serving(era, move |a| {
            let method = a.json["method"].as_str().unwrap_or_default().to_owned();
            let token = a.header("authorization").unwrap_or_default();
            seen.lock().expect("nobody panics").push(format!("{method} {} {token}", a.query));
            (a.is_initialize() && a.is_ordinary())
                .then(|| {
                    declaring(a, json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}))
                })
                .flatten()
        })
        .await;
        probed(&server, None).await;
        let asked = asked.lock().expect("nobody panics");
        let doing = ["tools/call", "resources/read", "prompts/get", "completion/", "logging/", "resources/subscribe"];
        let done: Vec<_> = asked.iter().filter(|what| doing.iter().any(|method| what.starts_with(method))).collect();
        assert!(done.is_empty(), "{era:?}: {done:?}");
        assert!(asked.iter().all(|what| !what.contains("access_token") && !what.contains("made-up")), "{asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_cancelled_and_is_answered_all_the_same_is_found() {
    let slow = OwnTool { name: "yearly_table".to_owned(), arguments: json!({}) };
    let active = Active { slow_tool: Some(slow), ..Active::default() };
    for (after_ms, is_found) in [(5_000, true), (100, false)] {
        let server = serving(Era::Legacy, move |a| {
            let is_slow = a.is("tools/call") && a.json["params"]["name"] == "yearly_table";
            let after = Duration::from_millis(after_ms);
            is_slow.then(|| Answer { after, ..result(a, json!({"content": []})) })
        })
        .await;
        let ask =
            EndpointAsk { url: server.url("/mcp"), headers: Vec::new(), odd: false, active: Some(active.clone()) };
        let session = observe(&client(), &ask, &patient()).await.expect("we did not fail").session;
        let (_, spoke) = said(&session);
        assert_eq!(spoke.contains(&"mcp/cancelled-still-answered"), is_found, "after {after_ms} ms: {spoke:?}");
    }
}

/// What is said of a server that says this on each of its streams and whose hook is called: `otherwise` is told how often it
/// was.
async fn hooked(
    said_on_streams: &'static str,
    otherwise: impl Fn(&Asked, usize) -> Option<Answer> + Send + Sync + 'static,
) -> Vec<&'static str> {
    let changes = AtomicUsize::new(0);
    let server = serving(Era::Legacy, move |a| match (a.verb.as_str(), a.path.as_str()) {
        ("POST", "/change") => {
            changes.fetch_add(1, Ordering::SeqCst);
            Some(Answer::bare(204))
        }
        ("GET", "/mcp") => Some(Answer { stays_open: true, ..Answer::events(said_on_streams) }),
        _ => otherwise(a, changes.load(Ordering::SeqCst)),
    })
    .await;
    let hook = Url::parse(&server.url("/change")).expect("an address");
    said(&probed(&server, Some(Active { change_hook: Some(hook), ..Active::default() })).await).1
}

/// A server that declares to tell of changes, and changes its tools when its hook is called.
async fn changing(said_on_streams: &'static str) -> Vec<&'static str> {
    hooked(said_on_streams, |a, changes| {
        if a.is("tools/list") && a.is_ordinary() {
            let tool = server::with(server::tools()[0].clone(), "name", format!("tide_table_{changes}"));
            return Some(server::listed(a, json!([tool])));
        }
        declaring(a, json!({"tools": {"listChanged": true}}))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_changes_and_says_nothing_or_says_it_twice_is_found() {
    let notice = "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}\n\n";
    let (silent, telling) = tokio::join!(changing(": hello\n\n"), changing(notice));
    assert!(silent.contains(&"mcp/list-changed-not-sent"), "{silent:?}");
    assert!(!silent.contains(&"mcp/sse-broadcast"), "{silent:?}");
    assert!(!telling.contains(&"mcp/list-changed-not-sent"), "{telling:?}");
    assert!(telling.contains(&"mcp/sse-broadcast"), "it says the same on both streams: {telling:?}");
}

/// A server whose resource changes when its hook is called.
async fn rewriting(said_on_streams: &'static str) -> Vec<&'static str> {
    hooked(said_on_streams, |a, changes| match a.json["method"].as_str().filter(|_| a.is_ordinary()) {
        Some("resources/list") => Some(result(a, json!({"resources": [{"uri": "tides://a", "name": "a"}]}))),
        Some("resources/templates/list") => Some(result(a, json!({"resourceTemplates": []}))),
        Some("resources/subscribe") => Some(result(a, json!({}))),
        Some("resources/read") if a.json["params"]["uri"] == "tides://a" => {
            let text = format!("high at {changes}");
            Some(result(a, json!({"contents": [{"uri": "tides://a", "text": text}]})))
        }
        _ => declaring(a, json!({"tools": {}, "resources": {"subscribe": true}})),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_changes_what_was_subscribed_to_and_says_nothing_is_found() {
    let notice = "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/resources/updated\", \
                  \"params\": {\"uri\": \"tides://a\"}}\n\n";
    let (silent, telling) = tokio::join!(rewriting(": hello\n\n"), rewriting(notice));
    assert!(silent.contains(&"mcp/resource-updated-not-sent"), "{silent:?}");
    assert!(!telling.contains(&"mcp/resource-updated-not-sent"), "{telling:?}");
}

/// A server that is asked on loopback and hears the whole network is found, one that hears loopback alone is not.
#[tokio::test(flavor = "multi_thread")]
async fn who_listens_to_the_whole_network_is_found() {
    // Nothing is sent: a datagram socket only chooses its way to the addresses that RFC 5737 keeps for documentation.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let way = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    if !way.is_ok_and(|from| !from.ip().is_loopback()) {
        println!("skipped: this machine has no address but loopback");
        return;
    }
    let allow_networks = serde_json::from_value(json!(["0.0.0.0/0"])).expect("it is a network");
    let client = Client::new(NetSettings { manners: manners(), allow_networks, ..NetSettings::default() });
    let client = client.expect("a client");
    for (server, is_found) in
        [(server::serving_everywhere(Era::Legacy).await, true), (serving(Era::Legacy, |_| None).await, false)]
    {
        let ask =
            EndpointAsk { url: server.url("/mcp"), headers: Vec::new(), odd: false, active: Some(Active::default()) };
        let session = observe(&client, &ask, &patient()).await.expect("we did not fail").session;
        assert!(
            session.exchanges.iter().any(|exchange| exchange.step == Some(Step::Bind)),
            "the other address is asked"
        );
        let (_, spoke) = said(&session);
        assert_eq!(spoke.contains(&"mcp/bind-all-interfaces"), is_found, "{spoke:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_stands_in_the_record() {
    let echo = |a: &Asked| a.query.contains("access_token").then(|| error(a, 400, -32600).with("x-asked", &a.query));
    let server = serving(Era::Legacy, move |a| echo(a).or_else(|| guarded(a))).await;
    let session = probed(&server, Some(everything())).await;
    assert!(session.exchanges.iter().any(|exchange| exchange.step == Some(Step::TokenInQuery)));
    let record = serde_json::to_string(&session.masked()).expect("it is data");
    for token in ["access_token=good", "Bearer good", "Bearer low", "Bearer another", "Bearer elsewhere"] {
        assert!(!record.contains(token), "{token}");
    }
}
