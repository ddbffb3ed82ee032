//! MCP servers that misbehave on purpose, each a few lines over one that does not: each is found by its rule, and nothing
//! else of severity error is said of it.

mod server;

use plumbline_crawler::net::{Client, Manners, NetSettings};
use plumbline_crawler::probe::mcp::{EndpointAsk, ProbeSettings, observe};
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::rule::{Axis, Severity};
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::{Access, Standing};
use serde_json::json;
use server::{Answer, Asked, Era, Server, error, result, serving, stream};

fn client() -> Client {
    let manners = Manners { pace_ms: 0, ..Manners::default() };
    let allow_networks = serde_json::from_value(json!(["127.0.0.0/8"])).expect("it is a network");
    Client::new(NetSettings { manners, allow_networks, ..NetSettings::default() }).expect("a client")
}

/// Nothing is waited for longer than a test should take.
fn quick() -> ProbeSettings {
    ProbeSettings {
        head_ms: 400,
        step_ms: 600,
        stream_close_ms: 50,
        stream_get_ms: 50,
        listen_ms: 100,
        endpoint_event_ms: 300,
        third_list_ms: 0,
        again_ms: 0,
        run_ms: 5_000,
        ..ProbeSettings::default()
    }
}

async fn probed(server: &Server) -> Session {
    let ask = EndpointAsk { url: server.url("/mcp"), headers: Vec::new(), odd: true };
    observe(&client(), &ask, &quick()).await.expect("we did not fail").session
}

/// What is said of a session with severity error, and which rules speak at all.
fn said(session: &Session) -> (Vec<&'static str>, Vec<&'static str>) {
    let report = judge_session(session, Surface::Mcp, None, &Given::default(), &Settings::default());
    let loud = |rule: &plumbline_rules::rule::Rule, found: &[plumbline_rules::report::Occurrence]| {
        rule.axis == Axis::Conformity && found.iter().any(|o| o.severity == Severity::Error)
    };
    let errors = report.fired().filter(|(rule, found)| loud(rule, found)).map(|(rule, _)| rule.id).collect();
    (errors, report.fired().map(|(rule, _)| rule.id).collect())
}

type Bad = (&'static str, Era, &'static str, fn(&Asked) -> Option<Answer>);

/// Name, era, the rule that finds it, and what it does otherwise than a good server.
const BAD: &[Bad] = &[
    ("answers-unknown-methods", Era::Legacy, "mcp/unknown-method-accepted", |a| {
        a.is("plumbline/does-not-exist").then(|| result(a, json!({})))
    }),
    ("swallows-half-messages", Era::Legacy, "mcp/malformed-json-accepted", |a| {
        a.is_broken().then(|| Answer::bare(202))
    }),
    ("calls-half-messages-invalid", Era::Legacy, "mcp/parse-error-code", |a| {
        a.is_broken().then(|| error(a, 400, -32600))
    }),
    ("falls-over-half-messages", Era::Legacy, "mcp/malformed-json-server-error", |a| {
        a.is_broken().then(|| Answer::bare(500))
    }),
    ("answers-null-ids", Era::Legacy, "mcp/null-id-accepted", |a| a.has_null_id().then(|| result(a, json!({})))),
    ("answers-batches", Era::Legacy, "mcp/batch-accepted", |a| {
        a.is_batch().then(|| Answer::json(200, json!([{"jsonrpc": "2.0", "id": 74, "result": {}}])))
    }),
    ("takes-notifications-with-200", Era::Legacy, "mcp/notification-status", |a| {
        a.is("notifications/initialized").then(|| Answer::bare(200))
    }),
    ("thanks-for-notifications", Era::Legacy, "mcp/notification-body", |a| {
        a.is("notifications/initialized").then(|| Answer::text(202, "Accepted"))
    }),
    ("answers-notifications", Era::Legacy, "mcp/notification-answered", |a| {
        a.is("notifications/initialized").then(|| Answer::json(200, json!({"jsonrpc": "2.0", "id": 0, "result": {}})))
    }),
    ("echoes-any-revision", Era::Legacy, "mcp/version-echoes-unknown", |a| {
        a.asks_for("1999-01-01").then(|| server::initialized(a, "1999-01-01"))
    }),
    ("refuses-unknown-revisions", Era::Legacy, "mcp/version-unknown-refused", |a| {
        a.asks_for("1999-01-01").then(|| error(a, 400, -32602))
    }),
    ("knows-no-ping", Era::Legacy, "mcp/ping-failed", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| error(a, 200, -32601))
    }),
    ("lists-no-declared-tools", Era::Legacy, "mcp/tools-declared-not-served", |a| {
        (a.is("tools/list") && a.is_ordinary()).then(|| error(a, 200, -32603))
    }),
    ("hides-its-prompts", Era::Legacy, "mcp/prompts-served-not-declared", |a| {
        a.is("prompts/list")
            .then(|| result(a, json!({"prompts": [{"name": "p", "title": "P", "description": "A prompt."}]})))
    }),
    ("serves-foreign-origins", Era::Legacy, "mcp/origin-not-validated-local", |a| {
        a.has("origin").then(|| server::initialized(a, "2025-11-25"))
    }),
    ("refuses-origins-with-400", Era::Legacy, "mcp/origin-refusal-status", |a| {
        a.has("origin").then(|| Answer::bare(400))
    }),
    ("lets-origins-bring-credentials", Era::Legacy, "mcp/cors-credentials", |a| {
        a.has("origin").then(|| {
            Answer::bare(403).with("access-control-allow-origin", "*").with("access-control-allow-credentials", "true")
        })
    }),
    ("takes-plain-text", Era::Legacy, "mcp/request-content-type-unchecked", |a| {
        a.is_plain_text().then(|| server::initialized(a, "2025-11-25"))
    }),
    ("ignores-the-version-header", Era::Legacy, "mcp/protocol-version-header-unchecked", |a| {
        (a.header("mcp-protocol-version") == Some("1999-01-01")).then(|| result(a, json!({})))
    }),
    ("wants-the-version-header", Era::Legacy, "mcp/protocol-version-header-required", |a| {
        (a.is("ping") && a.has("mcp-session-id") && !a.has("mcp-protocol-version")).then(|| error(a, 400, -32600))
    }),
    ("gives-everybody-one-session", Era::Legacy, "mcp/session-id-reused", |a| {
        (a.is_initialize() && a.is_ordinary())
            .then(|| server::initialized(a, "2025-11-25").with("mcp-session-id", "one-session-for-all-of-them"))
    }),
    ("gives-short-session-ids", Era::Legacy, "mcp/session-id-weak", |a| {
        (a.is_initialize() && a.is_ordinary())
            .then(|| server::initialized(a, "2025-11-25").with("mcp-session-id", &format!("s{}", a.number)))
    }),
    ("gives-session-ids-with-spaces", Era::Legacy, "mcp/session-id-charset", |a| {
        (a.is_initialize() && a.is_ordinary()).then(|| {
            server::initialized(a, "2025-11-25").with("mcp-session-id", &format!("session number {}", a.number))
        })
    }),
    ("keeps-ended-sessions", Era::Legacy, "mcp/session-terminated-accepted", |a| {
        (a.is("ping") && a.is_ended).then(|| result(a, json!({})))
    }),
    ("fails-at-the-end-of-sessions", Era::Legacy, "mcp/session-delete-status", |a| {
        (a.verb == "DELETE").then(|| Answer::bare(500))
    }),
    ("shows-a-page-on-get", Era::Legacy, "mcp/endpoint-get-status", |a| {
        (a.verb == "GET" && a.path == "/mcp").then(|| Answer::text(200, "Hello"))
    }),
    ("labels-streams-as-json", Era::Legacy, "mcp/response-type-mislabelled", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| Answer { label: "application/json", ..stream(a, json!({})) })
    }),
    ("labels-messages-as-text", Era::Legacy, "mcp/response-content-type", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| Answer { label: "text/plain", ..result(a, json!({})) })
    }),
    ("closes-streams-without-answer", Era::Legacy, "mcp/sse-no-response", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| Answer::events(": nothing\n\n"))
    }),
    ("forgets-the-empty-line", Era::Legacy, "mcp/sse-bad-frame", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| {
            let s = stream(a, json!({}));
            Answer { body: s.body.trim_end().to_owned(), ..s }
        })
    }),
    ("names-events-its-own-way", Era::Legacy, "mcp/sse-event-name", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| {
            let s = stream(a, json!({}));
            Answer { body: format!("event: response\n{}", s.body), ..s }
        })
    }),
    ("serves-unknown-revisions", Era::Modern, "mcp/unsupported-version-accepted", |a| {
        (a.header("mcp-protocol-version") == Some("1900-01-01")).then(|| server::discovered(a))
    }),
    ("refuses-revisions-with-200", Era::Modern, "mcp/unsupported-version-status", |a| {
        (a.header("mcp-protocol-version") == Some("1900-01-01"))
            .then(|| Answer { status: 200, ..server::unsupported(a) })
    }),
    ("needs-no-meta", Era::Modern, "mcp/meta-missing-accepted", |a| {
        (a.is("server/discover") && !a.has_meta()).then(|| server::discovered(a))
    }),
    ("needs-no-method-header", Era::Modern, "mcp/header-method-missing-accepted", |a| {
        (a.is("server/discover") && !a.has("mcp-method")).then(|| server::discovered(a))
    }),
    ("believes-any-method-header", Era::Modern, "mcp/header-method-mismatch-accepted", |a| {
        (a.is("server/discover") && a.header("mcp-method") == Some("tools/list")).then(|| server::discovered(a))
    }),
    ("wants-to-know-who-asks", Era::Modern, "mcp/meta-client-info-required", |a| {
        (a.is("server/discover") && a.has_meta() && !a.text.contains("clientInfo")).then(|| error(a, 400, -32602))
    }),
    ("still-answers-ping", Era::Modern, "mcp/removed-method-served", |a| a.is("ping").then(|| result(a, json!({})))),
    ("names-a-session-all-the-same", Era::Modern, "mcp/modern-session-id", |a| {
        (a.is("server/discover") && a.is_ordinary())
            .then(|| server::discovered(a).with("mcp-session-id", "a-session-of-no-use-at-all"))
    }),
    ("says-404-to-get", Era::Modern, "mcp/modern-get-not-405", |a| {
        (a.verb == "GET" && a.path == "/mcp").then(|| Answer::bare(404))
    }),
    ("does-not-know-404", Era::Modern, "mcp/unknown-method-http-status", |a| {
        a.is("plumbline/does-not-exist").then(|| error(a, 200, -32601))
    }),
    ("is-a-web-page", Era::Legacy, "mcp/endpoint-not-mcp", |_| {
        Some(Answer { label: "text/html", ..Answer::text(200, "<!doctype html><title>Tides</title>") })
    }),
    ("hides-behind-401", Era::Legacy, "oauth/challenge-missing", |a| {
        (a.path == "/mcp")
            .then(|| Answer::bare(401))
            .or_else(|| (a.path == "/.well-known/oauth-protected-resource").then(|| Answer::bare(503)))
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_nothing_wrong_are_not_accused() {
    for era in [Era::Legacy, Era::Modern] {
        let server = serving(era, |_| None).await;
        let session = probed(&server).await;
        let report = judge_session(&session, Surface::Mcp, None, &Given::default(), &Settings::default());
        let loud: Vec<_> = report
            .findings()
            .filter(|(_, found)| found.iter().any(|o| o.severity > Severity::Info))
            .map(|(rule, found)| (rule.id, found[0].pointer.clone(), found[0].message.clone()))
            .collect();
        assert!(loud.is_empty(), "{era:?}: {loud:?}");
        assert_eq!(Standing::of(&session).access, Access::Open);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_server_is_found_by_its_rule_and_accused_of_nothing_else() {
    let mut wrong = Vec::new();
    for (name, era, rule, otherwise) in BAD {
        let server = serving(*era, *otherwise).await;
        let session = probed(&server).await;
        let (errors, all) = said(&session);
        let others: Vec<_> = errors.iter().filter(|id| *id != rule).collect();
        if !all.contains(rule) || !others.is_empty() {
            wrong.push(format!(
                "{name}: {rule} {}, besides {others:?}",
                if all.contains(rule) { "speaks" } else { "is silent" }
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), BAD.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_costs_time_or_memory_costs_no_more_than_its_bounds() {
    for (name, server) in [
        ("never answers", server::silent().await),
        ("drips", server::dripping().await),
        ("floods", server::flooding().await),
    ] {
        let session = probed(&server).await;
        // That it comes to an end at all shows that each wait has a bound.
        let held: usize =
            session.exchanges.iter().filter_map(|e| e.response.as_ref()?.raw.as_ref()).map(String::len).sum();
        assert!(held <= 16 << 20, "{name}: {held} bytes");
        assert!(said(&session).0.is_empty(), "{name}: {:?}", said(&session));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_list_never_ends_is_read_so_far_and_said_so() {
    let endless = |a: &Asked| {
        let page = a.json["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap_or(0)) + 1;
        let tool = json!({"name": format!("t{page}"), "title": "T", "description": "One of many.", "inputSchema": {"type": "object", "properties": {}}});
        (a.is("tools/list") && a.is_ordinary())
            .then(|| result(a, json!({"tools": [tool], "nextCursor": page.to_string()})))
    };
    let server = serving(Era::Legacy, endless).await;
    let session = probed(&server).await;
    assert!(said(&session).1.contains(&"mcp/pagination-endless"), "{:?}", said(&session));
}
