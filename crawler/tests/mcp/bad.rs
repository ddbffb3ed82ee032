//! MCP servers that misbehave on purpose, each a few lines over one that does not: each is found by its rule, and nothing
//! else of severity error is said of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use plumbline_rules::catalogue;
use plumbline_rules::rule::Severity;
use serde_json::json;

use super::server::{self, Answer, Asked, Era, error, result, serving, stream, stream_after};
use super::{EndpointAsk, ProbeSettings, client, each, observe, patient, probed, probed_with, quick, said};

/// Name, era, the rule that finds it, and what it does otherwise than a good server.
type Bad = (&'static str, Era, &'static str, fn(&Asked) -> Option<Answer>);

/// The revisions with a handshake and the one without.
const PLAIN: &[Bad] = &[
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

/// Faults of single messages, whatever the revision.
const MESSAGES: &[Bad] = &[
    ("asks-for-a-model", Era::Legacy, "mcp/undeclared-client-capability-used", |a| {
        (a.is("tools/list") && a.is_ordinary()).then(|| {
            stream_after(
                &[json!({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"})],
                server::listed(a, server::tools()),
            )
        })
    }),
    ("logs-without-saying-so", Era::Legacy, "mcp/log-undeclared", |a| {
        let log =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hi"}});
        (a.is("tools/list") && a.is_ordinary()).then(|| stream_after(&[log], server::listed(a, server::tools())))
    }),
    ("tells-of-changes-undeclared", Era::Legacy, "mcp/list-changed-undeclared", |a| {
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        (a.is("ping") && a.is_ordinary()).then(|| stream_after(&[changed], result(a, json!({}))))
    }),
    ("reports-progress-unasked", Era::Legacy, "mcp/progress-token-unknown", |a| {
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}});
        (a.is("ping") && a.is_ordinary()).then(|| stream_after(&[progress], result(a, json!({}))))
    }),
    ("cancels-what-it-never-asked", Era::Legacy, "mcp/cancel-unknown-id", |a| {
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}});
        (a.is("ping") && a.is_ordinary()).then(|| stream_after(&[cancelled], result(a, json!({}))))
    }),
    ("asks-on-a-stream-of-answers", Era::Modern, "mcp/sse-request-on-stream", |a| {
        let asks = json!({"jsonrpc": "2.0", "id": "s1", "method": "x/y", "params": {}});
        (a.is("tools/list") && a.is_ordinary()).then(|| stream_after(&[asks], server::listed(a, server::tools())))
    }),
    ("numbers-two-events-alike", Era::Legacy, "mcp/sse-event-id-duplicate", |a| {
        let log = "id: 7\ndata: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/x\"}\n\nid: 7\n";
        (a.is("ping") && a.is_ordinary()).then(|| {
            let answer = stream(a, json!({}));
            Answer { body: format!("{log}{}", answer.body), ..answer }
        })
    }),
    ("answers-to-another-id", Era::Legacy, "mcp/jsonrpc-id-mismatch", |a| {
        (a.is("ping") && a.is_ordinary())
            .then(|| Answer::json(200, json!({"jsonrpc": "2.0", "id": 4711, "result": {}})))
    }),
    ("forgets-which-json-rpc", Era::Legacy, "mcp/jsonrpc-version", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| Answer::json(200, json!({"id": a.json["id"], "result": {}})))
    }),
    ("answers-twice-in-one", Era::Legacy, "mcp/jsonrpc-result-xor-error", |a| {
        (a.is("ping") && a.is_ordinary()).then(|| {
            let error = json!({"code": -32603, "message": "no"});
            Answer::json(200, json!({"jsonrpc": "2.0", "id": a.json["id"], "result": {}, "error": error}))
        })
    }),
    ("names-two-tools-alike", Era::Legacy, "mcp/tool-name-duplicate", |a| {
        let twice = json!([server::tools()[0], server::tools()[0]]);
        (a.is("tools/list") && a.is_ordinary()).then(|| server::listed(a, twice))
    }),
    ("has-a-tool-without-schema", Era::Modern, "mcp/tool-input-schema-missing", |a| {
        let bare = json!([server::without(server::tools()[0].clone(), "inputSchema")]);
        (a.is("tools/list") && a.is_ordinary()).then(|| server::listed(a, bare))
    }),
    ("refuses-its-own-cursor", Era::Legacy, "mcp/pagination-cursor-refused", |a| {
        (a.is("tools/list") && a.is_ordinary()).then(|| match a.json["params"]["cursor"].is_string() {
            true => error(a, 200, -32602),
            false => result(a, json!({"tools": server::tools(), "nextCursor": "2"})),
        })
    }),
    ("lists-in-a-circle", Era::Legacy, "mcp/pagination-endless", |a| {
        (a.is("tools/list") && a.is_ordinary()).then(|| {
            let tool = server::with(server::tools()[0].clone(), "name", format!("t{}", a.page()));
            result(a, json!({"tools": [tool], "nextCursor": if a.page() == 2 { "2" } else { "1" }}))
        })
    }),
    ("changes-its-mind-on-revisions", Era::Legacy, "mcp/version-negotiation-unstable", |a| {
        (a.is_initialize() && a.json["id"] == "init-2").then(|| server::initialized(a, "2025-06-18"))
    }),
    ("refuses-every-handshake", Era::Legacy, "mcp/initialize-failed", |a| {
        a.is_initialize().then(|| error(a, 200, -32603))
    }),
    ("has-moved-out", Era::Legacy, "mcp/endpoint-gone", |_| Some(Answer::text(404, "Nothing here"))),
    ("is-broken", Era::Legacy, "mcp/endpoint-server-error", |_| Some(Answer::text(500, "Oops"))),
    ("calls-unknown-methods-internal", Era::Modern, "mcp/unknown-method-code", |a| {
        a.is("plumbline/does-not-exist").then(|| error(a, 404, -32603))
    }),
    ("calls-revisions-invalid", Era::Modern, "mcp/unsupported-version-code", |a| {
        (a.header("mcp-protocol-version") == Some("1900-01-01")).then(|| error(a, 400, -32600))
    }),
    ("needs-no-capabilities", Era::Modern, "mcp/meta-capabilities-missing-accepted", |a| {
        (a.is("server/discover") && a.has_meta() && !a.text.contains("clientCapabilities"))
            .then(|| server::discovered(a))
    }),
    ("believes-the-body-on-revisions", Era::Modern, "mcp/header-version-mismatch-accepted", |a| {
        (a.is("server/discover") && a.header("mcp-protocol-version") == Some("2025-11-25"))
            .then(|| server::discovered(a))
    }),
    ("needs-no-version-header", Era::Modern, "mcp/header-version-missing-accepted", |a| {
        (a.is("server/discover") && !a.has("mcp-protocol-version")).then(|| server::discovered(a))
    }),
    ("calls-headers-invalid", Era::Modern, "mcp/header-mismatch-code", |a| {
        (a.is("server/discover") && a.header("mcp-method") == Some("tools/list")).then(|| error(a, 400, -32600))
    }),
    ("does-not-say-what-it-speaks", Era::Modern, "mcp/discover-missing", |a| {
        a.is("server/discover").then(|| error(a, 404, -32601))
    }),
];

/// Rules that no shared example shows, each with a server of its own.
const MORE: &[Bad] = &[
    ("lists-other-revisions-than-it-discovers", Era::Modern, "mcp/unsupported-version-list-differs", |a| {
        let data = json!({"supported": ["2025-11-25"], "requested": "1900-01-01"});
        let error = json!({"code": -32022, "message": "no", "data": data});
        (a.header("mcp-protocol-version") == Some("1900-01-01"))
            .then(|| Answer::json(400, json!({"jsonrpc": "2.0", "id": a.json["id"], "error": error})))
    }),
    ("refuses-keys-it-does-not-know", Era::Modern, "mcp/meta-unknown-key-refused", |a| {
        a.text.contains("dev.plumbline/probe").then(|| error(a, 400, -32602))
    }),
    // The library reads every name in lower case, so the request that has them so is known by its number.
    ("wants-its-headers-in-capitals", Era::Modern, "mcp/header-name-case-sensitive", |a| {
        (a.is("server/discover") && a.json["id"] == 45).then(|| error(a, 400, -32020))
    }),
    ("lists-to-whoever-asks", Era::Legacy, "mcp/request-before-initialize-served", |a| {
        let is_bare = !a.has("mcp-session-id") && !a.has("mcp-method");
        (a.is("tools/list") && is_bare).then(|| server::listed(a, server::tools()))
    }),
    ("leafs-to-another-page-in-the-end", Era::Legacy, "mcp/pagination-cursor-unstable", |a| {
        // The list, the same on a new connection, and the cursor once more.
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let tool = |name: &str| json!([server::with(server::tools()[0].clone(), "name", name)]);
        (a.is("tools/list") && a.is_ordinary()).then(|| match a.json["params"]["cursor"].is_string() {
            false => result(a, json!({"tools": server::tools(), "nextCursor": "2"})),
            true if ASKED.fetch_add(1, Ordering::SeqCst) < 2 => server::listed(a, tool("b")),
            true => server::listed(a, tool("z")),
        })
    }),
    ("wants-to-be-discovered-first", Era::Modern, "mcp/stateless-violated", |a| {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let is_again = a.is("tools/list") && a.is_ordinary() && ASKED.fetch_add(1, Ordering::SeqCst) == 1;
        is_again.then(|| error(a, 400, -32600))
    }),
    ("begins-to-tell-at-once", Era::Modern, "mcp/subscriptions-ack-missing", |a| {
        listening(
            a,
            |of| json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": of}}),
        )
    }),
    ("tells-what-nobody-asked", Era::Modern, "mcp/subscriptions-unrequested", |a| {
        listening(a, |of| {
            let all = json!({"toolsListChanged": true, "promptsListChanged": true});
            let params = json!({"_meta": of, "notifications": all});
            json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        })
    }),
    ("answers-on-the-wrong-stream", Era::Legacy, "mcp/sse-response-on-get", |a| {
        (a.verb == "GET" && a.path == "/mcp")
            .then(|| Answer::events("data: {\"jsonrpc\": \"2.0\", \"id\": 3, \"result\": {}}\n\n"))
    }),
    ("takes-no-post-anywhere", Era::Legacy, "mcp/endpoint-post-refused", |a| {
        Some(Answer::bare(if a.verb == "POST" { 405 } else { 404 }))
    }),
    ("has-its-card-where-cards-were", Era::Modern, "mcp/card-location", |a| {
        a.is_at("/.well-known/mcp/server-card.json").then(|| card(a, "2.3.1"))
    }),
    ("has-the-card-of-another-release", Era::Modern, "mcp/card-runtime-conflict", |a| {
        a.is_at("/mcp/server-card").then(|| card(a, "2.2.0"))
    }),
    ("speaks-as-in-2024", Era::Older, "mcp/deprecated-http-sse", |_| None),
    ("speaks-as-in-2025", Era::Legacy, "mcp/legacy-only", |_| None),
    ("has-a-silent-issuer", Era::Guarded, "oauth/as-unreachable", |a| {
        let is_issuer = a.path.contains("oauth-authorization-server") || a.path.contains("openid-configuration");
        is_issuer.then(|| Answer::bare(503))
    }),
];

/// Declares to tell of changes, and says this to whoever listens; it is given the mark of the subscription.
fn listening(a: &Asked, says: fn(serde_json::Value) -> serde_json::Value) -> Option<Answer> {
    if a.is("server/discover") && a.is_ordinary() {
        let declared = json!({"tools": {"listChanged": true}});
        return Some(server::modern(a, json!({"supportedVersions": ["2026-07-28"], "capabilities": declared})));
    }
    let of = json!({"io.modelcontextprotocol/subscriptionId": a.json["id"]});
    a.is("subscriptions/listen").then(|| Answer::events(&format!("data: {}\n\n", says(of))))
}

/// A card of this release.
fn card(a: &Asked, version: &str) -> Answer {
    let remote = json!({"type": "streamable-http", "url": a.here("/mcp"), "supportedProtocolVersions": ["2026-07-28"]});
    let card = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "org.example.tides/harbor", "version": version, "description": "Tide tables for European harbors.",
        "title": "Harbor Tides", "websiteUrl": "https://tides.example.org/", "remotes": [remote]
    });
    Answer { label: "application/mcp-server-card+json", ..Answer::json(200, card) }
}

/// HTTP with a stream of its own, 2024-11-05.
const OLDER: &[Bad] = &[
    ("names-no-place-to-post", Era::Older, "mcp/http-sse-no-endpoint", |a| {
        (a.verb == "GET").then(|| Answer::events("event: hello\ndata: {}\n\n"))
    }),
    ("sends-clients-elsewhere", Era::Older, "mcp/http-sse-endpoint-origin", |a| {
        (a.verb == "GET").then(|| Answer::events("event: endpoint\ndata: http://elsewhere.invalid/message\n\n"))
    }),
    ("takes-no-post", Era::Older, "mcp/http-sse-post-status", |a| a.is_at("/message").then(|| Answer::bare(500))),
    ("knows-no-ping-on-its-stream", Era::Older, "mcp/ping-failed", |a| a.is("ping").then(|| error(a, 200, -32601))),
    ("lists-nothing-on-its-stream", Era::Older, "mcp/tools-declared-not-served", |a| {
        a.is("tools/list").then(|| error(a, 200, -32603))
    }),
];

/// The chain from a refusal to whoever gives tokens.
const CHAIN: &[Bad] = &[
    ("cannot-quote", Era::Guarded, "oauth/challenge-malformed", |a| {
        a.is_at("/mcp").then(|| Answer::bare(401).with("www-authenticate", "Bearer realm=\"tides"))
    }),
    ("leads-by-half-an-address", Era::Guarded, "oauth/challenge-resource-metadata-url", |a| {
        let half = "Bearer resource_metadata=\"/.well-known/oauth-protected-resource/mcp\"";
        a.is_at("/mcp").then(|| Answer::bare(401).with("www-authenticate", half))
    }),
    ("parts-scopes-by-commas", Era::Guarded, "oauth/challenge-scope-invalid", |a| {
        let asked = format!("{}, scope=\"tides:read,tides:write\"", server::challenge(a));
        a.is_at("/mcp").then(|| Answer::bare(401).with("www-authenticate", &asked))
    }),
    ("leads-nowhere", Era::Guarded, "oauth/prm-url-dead", |a| {
        let nowhere = format!("Bearer resource_metadata=\"{}\"", a.here("/nowhere"));
        a.is_at("/mcp").then(|| Answer::bare(401).with("www-authenticate", &nowhere))
    }),
    ("describes-nothing", Era::Guarded, "oauth/prm-not-found", |a| {
        a.path.starts_with("/.well-known/oauth-protected-resource").then(|| Answer::bare(404))
    }),
    ("labels-metadata-as-text", Era::Guarded, "oauth/prm-content-type", |a| {
        is_resource(a).then(|| Answer::text(200, &server::resource(a).to_string()))
    }),
    ("describes-itself-as-a-list", Era::Guarded, "oauth/prm-not-object", |a| {
        is_resource(a).then(|| Answer::json(200, json!([])))
    }),
    ("forgets-what-it-protects", Era::Guarded, "oauth/prm-resource-missing", |a| {
        is_resource(a).then(|| Answer::json(200, server::without(server::resource(a), "resource")))
    }),
    ("protects-a-word", Era::Guarded, "oauth/prm-resource-invalid", |a| {
        is_resource(a).then(|| Answer::json(200, server::with(server::resource(a), "resource", "tides")))
    }),
    ("protects-somebody-else", Era::Guarded, "oauth/prm-resource-mismatch", |a| {
        is_resource(a)
            .then(|| Answer::json(200, server::with(server::resource(a), "resource", "https://tides.example.com/mcp")))
    }),
    ("protects-the-whole-host", Era::Guarded, "oauth/prm-resource-broader", |a| {
        is_resource(a).then(|| Answer::json(200, server::with(server::resource(a), "resource", a.here(""))))
    }),
    ("names-nobody-who-gives-tokens", Era::Guarded, "oauth/prm-authorization-servers-missing", |a| {
        is_resource(a).then(|| Answer::json(200, server::without(server::resource(a), "authorization_servers")))
    }),
    ("names-documents-as-issuers", Era::Guarded, "oauth/prm-authorization-server-invalid", |a| {
        let place = a.here("/.well-known/oauth-authorization-server");
        is_resource(a)
            .then(|| Answer::json(200, server::with(server::resource(a), "authorization_servers", vec![place])))
    }),
    ("takes-tokens-in-addresses", Era::Guarded, "oauth/prm-bearer-query", |a| {
        let ways = vec!["header", "query"];
        is_resource(a).then(|| Answer::json(200, server::with(server::resource(a), "bearer_methods_supported", ways)))
    }),
    ("has-no-way-to-a-token", Era::Guarded, "oauth/as-metadata-not-found", |a| is_issuer(a).then(|| Answer::bare(404))),
    ("labels-its-issuer-as-text", Era::Guarded, "oauth/as-content-type", |a| {
        is_issuer(a).then(|| Answer::text(200, &server::issuer(a).to_string()))
    }),
    ("is-issued-by-a-list", Era::Guarded, "oauth/as-not-object", |a| {
        is_issuer(a).then(|| Answer::json(200, json!([])))
    }),
    ("has-an-issuer-without-name", Era::Guarded, "oauth/as-issuer-missing", |a| {
        is_issuer(a).then(|| Answer::json(200, server::without(server::issuer(a), "issuer")))
    }),
    ("is-issued-by-somebody-else", Era::Guarded, "oauth/as-issuer-mismatch", |a| {
        is_issuer(a).then(|| Answer::json(200, server::with(server::issuer(a), "issuer", "https://coins.example.com")))
    }),
    ("says-not-where-to-sign-in", Era::Guarded, "oauth/as-authorization-endpoint-missing", |a| {
        is_issuer(a).then(|| Answer::json(200, server::without(server::issuer(a), "authorization_endpoint")))
    }),
    ("says-not-where-tokens-are", Era::Guarded, "oauth/as-token-endpoint-missing", |a| {
        is_issuer(a).then(|| Answer::json(200, server::without(server::issuer(a), "token_endpoint")))
    }),
    ("answers-in-no-way", Era::Guarded, "oauth/as-response-types-missing", |a| {
        is_issuer(a).then(|| Answer::json(200, server::without(server::issuer(a), "response_types_supported")))
    }),
    ("proves-no-keys", Era::Guarded, "oauth/as-pkce-missing", |a| {
        is_issuer(a).then(|| Answer::json(200, server::without(server::issuer(a), "code_challenge_methods_supported")))
    }),
    ("proves-keys-in-plain", Era::Guarded, "oauth/as-pkce-no-s256", |a| {
        let plain = vec!["plain"];
        is_issuer(a)
            .then(|| Answer::json(200, server::with(server::issuer(a), "code_challenge_methods_supported", plain)))
    }),
    ("says-yes-in-quotes", Era::Guarded, "oauth/as-flag-type", |a| {
        let flag = "client_id_metadata_document_supported";
        is_issuer(a).then(|| Answer::json(200, server::with(server::issuer(a), flag, "true")))
    }),
];

fn is_resource(asked: &Asked) -> bool {
    asked.is_at("/.well-known/oauth-protected-resource/mcp")
}

fn is_issuer(asked: &Asked) -> bool {
    asked.is_at("/.well-known/oauth-authorization-server")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_server_is_found_by_its_rule_and_accused_of_nothing_else() {
    let all: Vec<&Bad> = [PLAIN, MORE, MESSAGES, OLDER, CHAIN].into_iter().flatten().collect();
    let (mut wrong, mut errors_expected) = (Vec::new(), 0);
    let heard = each(&all, |(_, era, _, otherwise)| async move {
        let server = serving(*era, *otherwise).await;
        said(&probed(&server).await)
    });
    for ((name, _, rule, _), (errors, spoke)) in all.iter().zip(heard.await) {
        let is_error = catalogue::find(rule).is_some_and(|rule| rule.severity == Severity::Error);
        errors_expected += usize::from(errors == [*rule]);
        // What is no more than a warning there speaks, and nothing speaks of an error.
        if !spoke.contains(rule) || errors.iter().any(|id| id != rule) {
            wrong.push(format!("{name}: {rule} (error: {is_error}), said {errors:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), all.len(), wrong.join("\n"));
    assert!(errors_expected >= 40, "{errors_expected} of {} are errors", all.len());
    let names: std::collections::BTreeSet<_> = all.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), all.len(), "each has a name of its own");
}

/// Whoever asks before we are ready asks also for what we did not declare: the one is found beside the other.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_before_we_are_ready_is_found() {
    let asking = |a: &Asked| {
        let asks = json!({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"});
        (a.is_initialize() && a.json["id"] == "init-1").then(|| {
            let answer = server::initialized(a, "2025-11-25");
            let session = answer.headers.clone();
            Answer { headers: session, ..stream_after(&[asks], answer) }
        })
    };
    let (_, spoke) = said(&probed(&serving(Era::Legacy, asking).await).await);
    assert!(spoke.contains(&"mcp/server-request-before-initialized"), "{spoke:?}");
}

/// What keeps us from hearing a server is named, and nothing is said against it.
#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_us_from_hearing_a_server_has_a_name() {
    let cut_short = |_: &str, _: &str| {
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"".to_vec()
    };
    let rows = [
        ("mcp/endpoint-timeout", server::silent().await),
        ("mcp/response-slow", server::dripping().await),
        ("mcp/sse-silent", server::commenting().await),
        ("mcp/response-truncated", server::raw(cut_short).await),
    ];
    for (rule, server) in rows {
        let (errors, spoke) = said(&probed_with(&server, &quick()).await);
        assert!(spoke.contains(&rule), "{rule}: {spoke:?}");
        assert_eq!(errors, Vec::<&str>::new(), "{rule}");
    }
    let open = serving(Era::Legacy, |a| {
        (a.is("ping") && a.is_ordinary()).then(|| Answer { stays_open: true, ..stream(a, json!({})) })
    });
    let waiting = ProbeSettings { stream_close_ms: 5_200, ..patient() };
    let (errors, spoke) = said(&probed_with(&open.await, &waiting).await);
    assert!(spoke.contains(&"mcp/sse-not-closed") && errors.is_empty(), "{spoke:?}");
    let gone = serving(Era::Legacy, |_| None).await;
    let url = gone.url("/mcp");
    drop(gone);
    let ask = EndpointAsk { url, headers: Vec::new(), odd: true, active: None };
    let session = observe(&client(), &ask, &quick()).await.expect("we did not fail").session;
    assert_eq!(said(&session), (Vec::new(), vec!["mcp/endpoint-unreachable"]));
}
