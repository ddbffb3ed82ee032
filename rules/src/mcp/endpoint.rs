//! An MCP endpoint as such: that it answers, that it is one, and how its answers are labelled.

use url::Url;

use super::heard::{ON, all};
use super::{ALL, SESSIONS, SINCE_2025_03};
use crate::conversation::{Conversation, Era, Turn, wire_failure};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Axis, Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::{Cut, Step, StreamEnd, WireError};
use crate::text::{host_is_loopback, quote};

pub(super) const RULES: &[&Rule] = &[
    &ENDPOINT_UNREACHABLE,
    &ENDPOINT_TIMEOUT,
    &ENDPOINT_RATE_LIMITED,
    &ENDPOINT_GONE,
    &ENDPOINT_SERVER_ERROR,
    &ENDPOINT_NOT_MCP,
    &ENDPOINT_NOT_HTTPS,
    &ENDPOINT_URL_INVALID,
    &REDIRECT_METHOD_CHANGE,
    &RESPONSE_SLOW,
    &RESPONSE_TRUNCATED,
    &RESPONSE_CONTENT_TYPE,
    &RESPONSE_TYPE_MISLABELLED,
    &ENDPOINT_GET_STATUS,
    &ENDPOINT_POST_REFUSED,
];

/// The handshakes that were tried, with the GET that stands for the transport before 2025-03-26.
fn handshakes<'c, 's>(conversation: &'c Conversation<'s>) -> Vec<&'c Turn<'s>> {
    conversation.handshakes().filter(|turn| !turn.is_astray).collect()
}

/// The handshakes when all of them were answered and each answer holds; otherwise nothing.
fn all_answer<'c, 's>(conversation: &'c Conversation<'s>, holds: impl Fn(&Turn<'s>) -> bool) -> Option<&'c Turn<'s>> {
    let handshakes = handshakes(conversation);
    let posts = handshakes.iter().copied().find(|turn| turn.exchange.request.method == "POST")?;
    handshakes.iter().all(|turn| turn.response().is_some() && holds(turn)).then_some(posts)
}

crate::rule! {
    /// The endpoint can be reached.
    ///
    /// No connection came about: the name, the port or the certificate failed before anything could be asked.
    static ENDPOINT_UNREACHABLE = {
        id: "mcp/endpoint-unreachable",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:connect",
        fix: "Bring the endpoint back or remove the listing.",
        spec: "policy: reachability",
        seeds: &["inspector:not_detected"],
        examples: &[
                fires(&["/exchanges/0"], r#"{"exchanges": [{"step": "discover", "response": null, "error": "refused"}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "response": null, "error": "robots"}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "response": null, "error": "reset"}, {"step": "initialize"}]}"#),
        ],
        check: Check::Conversation(endpoint_unreachable),
    }
}

fn endpoint_unreachable(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(error) = wire_failure(conversation) else { return };
    let what = match error {
        WireError::Dns | WireError::DnsNxdomain | WireError::DnsTimeout => "the name does not resolve",
        WireError::Refused => "nobody listens",
        WireError::ConnectTimeout => "no connection in time",
        WireError::Reset | WireError::Protocol => "the connection breaks",
        WireError::Tls => "TLS cannot be agreed",
        WireError::TlsCertificateExpired => "the certificate has ended",
        WireError::TlsCertificateName => "the certificate is for another name",
        WireError::TlsCertificateUnknownIssuer => "the certificate leads to no known authority",
        WireError::Timeout => return,
        // Ours.
        WireError::DnsUnavailable
        | WireError::NoRoute
        | WireError::AddressGuard
        | WireError::BadUrl
        | WireError::Robots
        | WireError::OptOut
        | WireError::RedirectLimit => return out.not_evaluated(NotEvaluated::NoDocument),
    };
    if let Some(turn) = handshakes(conversation).first() {
        out.add_in(turn.revision, format!("/exchanges/{}", turn.number), what);
    }
}

crate::rule! {
    /// The handshake is answered in time.
    ///
    /// Somebody accepts the connection and then says nothing, or not all of it.
    static ENDPOINT_TIMEOUT = {
        id: "mcp/endpoint-timeout",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Timing,
        on: ON,
        place: "step:discover|initialize",
        fix: "Answer handshake requests within 10 s.",
        spec: "policy: deadlines",
        examples: &[
                fires(&["/exchanges/0"], r#"{"exchanges": [{"step": "discover", "response": null, "error": "timeout"}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "response": null, "error": "timeout"}, {"step": "initialize"}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(endpoint_timeout),
    }
}

fn endpoint_timeout(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_late = |turn: &&Turn<'_>| turn.exchange.error == Some(WireError::Timeout) || turn.is_late();
    let is_over = conversation.era != Era::Unknown || conversation.is_throttled();
    if let Some(turn) = handshakes(conversation).into_iter().find(is_late).filter(|_| !is_over) {
        out.add_in(turn.revision, format!("/exchanges/{}", turn.number), "no complete answer to the handshake in time");
    }
}

crate::rule! {
    /// The endpoint asks to come back later.
    ///
    /// The run is incomplete then, and nothing is concluded from what was refused.
    static ENDPOINT_RATE_LIMITED = {
        id: "mcp/endpoint-rate-limited",
        axis: Axis::Reach,
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any",
        fix: "None needed; raise the limit for the crawler's user agent if you want complete reports.",
        spec: "RFC 9110 §10.2.3, RFC 6585 §4",
        examples: &[
                fires(&["/exchanges/0/response"], r#"{"exchanges": [{"step": "discover", "response": {"status": 429, "headers": {"retry-after": "30"}, "body": null}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "response": {"status": 503, "body": null}}, {"step": "initialize"}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(endpoint_rate_limited),
    }
}

fn endpoint_rate_limited(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(turn) = all(conversation, out).find(|turn| turn.gate() == Some(NotEvaluated::RateLimited)) {
        let status = turn.status().unwrap_or_default();
        let is_wall = turn.response().is_some_and(crate::session::Response::is_bot_wall);
        let what = if is_wall { "shows a page meant to stop machines" } else { "asks to wait" };
        out.add_in(turn.revision, turn.place(), format!("answers {status} and {what}"));
    }
}

crate::rule! {
    /// There is something at the address.
    ///
    /// Every way to open a conversation is answered with "not here".
    static ENDPOINT_GONE = {
        id: "mcp/endpoint-gone",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:discover|initialize",
        fix: "Serve MCP at the listed path or correct the listing.",
        spec: "2026-07-28 streamable-http, Backward Compatibility",
        examples: &[
                fires(
                    &["/exchanges/0/response"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 404, "headers": {"content-type": "text/plain"}, "body": null, "raw": "Not Found"}}, {"step": "initialize", "response": {"status": 410, "body": null}}]}"#,
                ),
                silent(r#"{"exchanges": [{"step": "discover", "response": {"status": 404}}, {"step": "initialize"}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(endpoint_gone),
    }
}

fn endpoint_gone(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_gone = |turn: &Turn<'_>| matches!(turn.status(), Some(404 | 410)) && !turn.is_json_rpc();
    if let Some(turn) = all_answer(conversation, is_gone) {
        let status = turn.status().unwrap_or_default();
        out.add_in(turn.revision, turn.place(), format!("every handshake is answered {status}"));
    }
}

crate::rule! {
    /// The endpoint does not fail at every handshake.
    ///
    /// Both eras were answered with a failure of the server and no message of the protocol.
    static ENDPOINT_SERVER_ERROR = {
        id: "mcp/endpoint-server-error",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:discover|initialize",
        fix: "Fix the failing deployment.",
        spec: "policy: reachability",
        examples: &[
                fires(
                    &["/exchanges/0/response"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 502, "body": null}}, {"step": "initialize", "response": {"status": 500, "body": null}}]}"#,
                ),
                silent(r#"{"exchanges": [{"step": "discover", "response": {"status": 500, "body": null}}, {"step": "initialize"}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(endpoint_server_error),
    }
}

fn endpoint_server_error(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if conversation.of(Step::HttpSse).any(|turn| turn.announced().is_some()) {
        return;
    }
    let posts: Vec<_> =
        handshakes(conversation).into_iter().filter(|turn| turn.exchange.request.method == "POST").collect();
    let fails = |turn: &&Turn<'_>| {
        turn.status().is_some_and(|status| status >= 500) && turn.gate().is_none() && !turn.is_json_rpc()
    };
    if let Some(turn) = posts.first().filter(|_| posts.iter().all(fails)) {
        let status = turn.status().unwrap_or_default();
        out.add_in(turn.revision, turn.place(), format!("every handshake is answered {status}"));
    }
}

crate::rule! {
    /// The endpoint speaks MCP.
    ///
    /// It answers every handshake, with a page or other JSON, and never with a message of the protocol. Most often the listing
    /// names the web page of the product.
    static ENDPOINT_NOT_MCP = {
        id: "mcp/endpoint-not-mcp",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 20,
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:discover|initialize",
        fix: "Point the listing at the MCP endpoint, not at a web page.",
        spec: "2025-11-25 transports, Sending Messages",
        seeds: &["inspector:indicated"],
        examples: &[
                fires(
                    &["/exchanges/0/response"],
                    r#"{"exchanges": [{"step": "discover", "response": {"headers": {"content-type": "text/html"}, "body": null, "raw": "<!doctype html><title>Tides</title>"}}]}"#,
                ),
                fires(
                    &["/exchanges/0/response"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 400, "body": {"jsonrpc": null, "id": null, "result": null, "message": "what?"}}}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 403, "headers": {"content-type": "text/html"}, "body": null, "raw": "<!doctype html><title>Blocked</title>"}}]}"#,
                ),
        ],
        check: Check::Conversation(endpoint_not_mcp),
    }
}

fn endpoint_not_mcp(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_other = |turn: &Turn<'_>| {
        let Some(response) = turn.response().filter(|response| response.cut.is_none()) else { return false };
        let says_nothing = matches!(response.status, 300..=399 | 401..=405 | 407 | 410 | 429 | 500..);
        // What claims to be JSON and cannot be read is one finding, of `common/invalid-json` and its like.
        let is_unreadable = turn.answer.is_json && turn.answer.messages.iter().any(|m| m.document.trouble().is_some());
        !says_nothing
            && !is_unreadable
            && turn.challenge().is_none()
            && turn.gate().is_none()
            && !response.body().trim_ascii().is_empty()
            && turn.answer.stream.is_none()
            && !turn.is_json_rpc()
    };
    let login = conversation.turns.iter().any(|turn| leads_to_login(conversation, turn));
    let is_refused = |turn: &Turn<'_>| matches!(turn.status(), Some(404 | 405)) && !turn.is_json_rpc();
    let handshakes = handshakes(conversation);
    let other = handshakes.iter().find(|turn| is_other(turn));
    // One era's path may not be there at all: what the other says decides.
    if let Some(turn) = other.filter(|_| !login && handshakes.iter().all(|turn| is_other(turn) || is_refused(turn))) {
        let what = if turn.response().and_then(super::super::session::Response::media_type).is_some_and(|t| t.is_html())
        {
            "a web page".to_owned()
        } else {
            quote(turn.response().and_then(|response| response.raw.as_deref()).unwrap_or_default())
        };
        out.add_in(turn.revision, turn.place(), format!("the handshake is answered with {what}"));
    }
}

/// Whether a POST was redirected to a page that asks to log in.
pub(crate) fn leads_to_login(conversation: &Conversation<'_>, turn: &Turn<'_>) -> bool {
    if turn.exchange.request.method != "POST" || !turn.is_led_on {
        return false;
    }
    let mut end = turn;
    while let Some(next) = conversation.turns.get(end.number + 1).filter(|_| end.is_led_on) {
        end = next;
    }
    let Some(response) = end.exchange.success().filter(|_| end.exchange.request.method == "GET") else { return false };
    let body = response.raw.as_deref().unwrap_or_default();
    let words = format!("{} {}", end.exchange.request.url, &body[..body.floor_char_boundary(20_000)]).to_lowercase();
    let asks = ["login", "log in", "signin", "sign in", "sign-in", "oauth", "sso"];
    response.media_type().is_some_and(|t| t.is_html()) && asks.iter().any(|word| words.contains(word))
}

crate::rule! {
    /// An endpoint is called over https.
    ///
    /// Tokens and everything that tools return travel in the open otherwise. On this machine that is no matter.
    static ENDPOINT_NOT_HTTPS = {
        id: "mcp/endpoint-not-https",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "endpoint URL",
        fix: "Serve MCP over https.",
        spec: "2026-07-28 authorization security, Communication Security",
        seeds: &["gaip:MCP_HTTPS_ENDPOINT_REQUIRED"],
        examples: &[
                fires(&["/exchanges/0/request/url"], r#"{"exchanges": [{"step": "discover", "request": {"url": "http://tides.example.com/mcp"}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "request": {"url": "http://127.0.0.1:8000/mcp"}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "request": {"url": "http://tides.example.com/mcp"}}]}"#)
                    .given(r#"{"surface": "mcp", "listed": true}"#),
        ],
        check: Check::Conversation(endpoint_not_https),
    }
}

fn endpoint_not_https(conversation: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.given.listed {
        return out.not_applicable();
    }
    let Ok(url) = Url::parse(conversation.endpoint) else { return };
    if url.scheme() == "http" && !url.host_str().is_some_and(host_is_loopback) {
        out.add_at("/exchanges/0/request/url", format!("{} is not https", quote(conversation.endpoint)));
    }
}

crate::rule! {
    /// The endpoint's address is an absolute URL without a fragment.
    ///
    /// What stands behind the # never reaches the server, and clients differ in whether they drop it.
    static ENDPOINT_URL_INVALID = {
        id: "mcp/endpoint-url-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "endpoint URL",
        fix: "Remove credentials and the fragment from the URL.",
        spec: "RFC 9110 §4.2.4",
        seeds: &["gaip:MCP_ENDPOINT_URL_INVALID"],
        examples: &[
                fires(&["/exchanges/0/request/url"], r#"{"exchanges": [{"step": "discover", "request": {"url": "https://tides.example.com/mcp#main"}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "request": {"url": "https://tides.example.com/mcp?v=1"}}]}"#),
        ],
        check: Check::Conversation(endpoint_url_invalid),
    }
}

fn endpoint_url_invalid(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let what = match Url::parse(conversation.endpoint) {
        Err(_) => "is no absolute URL",
        Ok(url) if url.fragment().is_some() => "has a fragment",
        Ok(_) => return,
    };
    out.add_at("/exchanges/0/request/url", format!("{} {what}", quote(conversation.endpoint)));
}

crate::rule! {
    /// A POST is not redirected in a way that turns it into a GET.
    ///
    /// After 301, 302 and 303 common clients ask the new address with GET, and the message is lost; 307 and 308 keep it.
    static REDIRECT_METHOD_CHANGE = {
        id: "mcp/redirect-method-change",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any",
        fix: "Use 307 or 308 for POST endpoints.",
        spec: "RFC 9110 §15.4.2",
        examples: &[
                fires(
                    &["/exchanges/0/response/headers/location"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 302, "headers": {"location": "https://tides.example.com/mcp/"}, "body": null}}]}"#,
                ),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 308, "headers": {"location": "https://tides.example.com/mcp/"}, "body": null}}]}"#,
                ),
        ],
        check: Check::Conversation(redirect_method_change),
    }
}

fn redirect_method_change(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let changes = |turn: &&Turn<'_>| {
        turn.exchange.request.method == "POST"
            && matches!(turn.status(), Some(301..=303))
            && turn.response().is_some_and(|response| response.header("location").is_some())
            && !leads_to_login(conversation, turn)
    };
    if let Some(turn) = conversation.turns.iter().find(changes) {
        let status = turn.status().unwrap_or_default();
        out.add_in(turn.revision, turn.header_place("location"), format!("a POST is redirected with {status}"));
    }
}

crate::rule! {
    /// An answer that has begun comes to its end.
    ///
    /// It trickled until the time for the whole step was over.
    static RESPONSE_SLOW = {
        id: "mcp/response-slow",
        axis: Axis::Reach,
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: ALL,
        evidence: Evidence::Timing,
        on: ON,
        place: "step:any",
        fix: "Send the whole message promptly.",
        spec: "policy: deadlines",
        examples: &[
                fires(&["/exchanges/0/response"], r#"{"exchanges": [{"step": "discover", "response": {"body": null, "raw": "{\"json", "cut": "timeout"}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}]}"#),
        ],
        check: Check::Conversation(response_slow),
    }
}

fn response_slow(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_slow = |turn: &&Turn<'_>| turn.response().is_some_and(|response| response.cut == Some(Cut::Timeout));
    for turn in all(conversation, out).filter(is_slow) {
        out.add_in(turn.revision, turn.place(), "the answer was not complete when its time was over");
    }
}

crate::rule! {
    /// An answer has all its bytes.
    ///
    /// The connection ended before the length that was promised, or before the last piece.
    static RESPONSE_TRUNCATED = {
        id: "mcp/response-truncated",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        versions: ALL,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any",
        fix: "Send complete bodies.",
        spec: "RFC 9112 §8",
        examples: &[
                fires(&["/exchanges/0/response"], r#"{"exchanges": [{"step": "discover", "response": {"body": null, "raw": "{\"json", "cut": "truncated"}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover"}]}"#),
        ],
        check: Check::Conversation(response_truncated),
    }
}

fn response_truncated(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_short = |turn: &&Turn<'_>| turn.response().is_some_and(|response| response.cut == Some(Cut::Truncated));
    for turn in all(conversation, out).filter(is_short) {
        out.add_in(turn.revision, turn.place(), "the body breaks off before its end");
    }
}

crate::rule! {
    /// An answer to a request is labelled as JSON or as an event stream.
    ///
    /// Clients choose by the label how to read it, and refuse any other.
    static RESPONSE_CONTENT_TYPE = {
        id: "mcp/response-content-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 27,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any 2xx answer to a request",
        fix: "Send application/json or text/event-stream.",
        spec: "2025-11-25 transports, Sending Messages §5",
        seeds: &["validator:1.2.2.3"],
        examples: &[
                fires(&["/exchanges/0/response/headers/content-type"], r#"{"exchanges": [{"step": "discover", "response": {"headers": {"content-type": "text/plain"}}}]}"#),
                silent(r#"{"exchanges": [{"step": "discover", "response": {"headers": {"content-type": "application/json; charset=utf-8"}}}]}"#),
        ],
        check: Check::Conversation(response_content_type),
    }
}

fn response_content_type(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in all(conversation, out) {
        let (Some(response), Some(_), Some(_)) = (turn.exchange.success(), turn.method(), turn.id()) else { continue };
        let label = response.media_type();
        let is_right = label.as_ref().is_some_and(|t| t.is("application", "json") || t.is("text", "event-stream"));
        if !is_right && turn.is_json_rpc() && turn.answer.messages.iter().all(|m| m.number == turn.number) {
            let label = response.header("content-type").map_or_else(|| "nothing".to_owned(), quote);
            out.add_in(turn.revision, turn.header_place("content-type"), format!("a message is labelled {label}"));
            return;
        }
    }
}

crate::rule! {
    /// An answer is what its label says.
    ///
    /// Clients parse by the label: an event stream under a label for JSON is invalid JSON to them, and JSON under a label for
    /// streams holds no event.
    static RESPONSE_TYPE_MISLABELLED = {
        id: "mcp/response-type-mislabelled",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        rank: 27,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:any",
        fix: "Label the body as what it is.",
        spec: "2025-11-25 transports, Sending Messages §5",
        examples: &[
                fires(
                    &["/exchanges/0/response/raw"],
                    r#"{"exchanges": [{"step": "ping", "response": {"body": null, "raw": "event: message\ndata: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n"}}]}"#,
                )
                .over("conversation-2025-11-25"),
                fires(
                    &["/exchanges/0/response/raw"],
                    r#"{"exchanges": [{"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}}}]}"#,
                )
                .over("conversation-2025-11-25"),
                silent(
                    r#"{"exchanges": [{"step": "ping", "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n\n"}}]}"#,
                )
                .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(response_type_mislabelled),
    }
}

fn response_type_mislabelled(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(turn) = all(conversation, out).find(|turn| turn.is_mislabelled()) {
        let label = turn.response().and_then(|response| response.header("content-type")).unwrap_or_default();
        out.add_in(
            turn.revision,
            format!("/exchanges/{}/response/raw", turn.number),
            format!("the body is no {}", quote(label)),
        );
    }
}

crate::rule! {
    /// GET opens an event stream or is refused with 405.
    ///
    /// Clients ask for a stream at once after the handshake, and take any other answer for a fault.
    static ENDPOINT_GET_STATUS = {
        id: "mcp/endpoint-get-status",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        evidence: Evidence::Live,
        on: ON,
        place: "step:get",
        fix: "Answer 405 or open a stream.",
        spec: "2025-11-25 transports, Listening §3",
        seeds: &["validator:1.2.2.1"],
        examples: &[
                fires(&["/exchanges/1/response"], r#"{"exchanges": [{"step": "initialize"}, {"step": "get", "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": {"ok": true}}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "get", "response": {"status": 400}}]}"#),
        ],
        check: Check::Conversation(endpoint_get_status),
    }
}

fn endpoint_get_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !matches!(conversation.era, Era::Legacy | Era::Dual) {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    for turn in super::heard::heard(conversation, &[Step::Get], out) {
        let Some(response) = turn.response() else { continue };
        let is_stream = response.media_type().is_some_and(|t| t.is("text", "event-stream"));
        let is_right = (is_stream && response.status < 300) || matches!(response.status, 400 | 404 | 405 | 406);
        if !is_right {
            out.add_in(turn.revision, turn.place(), format!("GET is answered {} and no event stream", response.status));
        }
    }
}

crate::rule! {
    /// The endpoint takes messages by POST.
    ///
    /// It refuses the method, and GET opens no stream of the older transport either: no client can talk to it.
    static ENDPOINT_POST_REFUSED = {
        id: "mcp/endpoint-post-refused",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake or the list cannot be finished; not run per SDK",
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:initialize",
        fix: "Accept POST on the MCP endpoint.",
        spec: "2025-11-25 transports, Streamable HTTP",
        seeds: &["validator:1.2.2.1", "validator:1.2.2.2"],
        examples: &[
                fires(&["/exchanges/0/response"], r#"{"exchanges": [{"step": "initialize", "response": {"status": 405, "body": null}}, {"step": "http-sse", "response": {"status": 404, "headers": {"content-type": null}, "raw": null}}]}"#)
                    .over("conversation-2025-11-25"),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"status": 405, "body": null}}, {"step": "http-sse"}]}"#)
                    .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(endpoint_post_refused),
    }
}

fn endpoint_post_refused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let refused = |turn: &&Turn<'_>| turn.status() == Some(405) && !turn.is_json_rpc() && !turn.is_astray;
    let is_open = |turn: &Turn<'_>| {
        turn.answer.stream.is_some()
            && turn.response().and_then(|r| r.stream.as_ref()).is_none_or(|stream| stream.end != StreamEnd::Overrun)
    };
    let asked_for_stream = conversation.of(Step::HttpSse).next().is_some();
    let has_stream = conversation.of(Step::HttpSse).any(is_open);
    if let Some(turn) = conversation.of(Step::Initialize).find(refused)
        && asked_for_stream
        && !has_stream
    {
        out.add_in(turn.revision, turn.place(), "POST is answered 405, and GET opens no event stream");
    }
}
