//! An agent's interfaces, asked for a task that does not exist and for the extended card: whether they are there, speak
//! what the card says, and are guarded as it says. Nothing is asked that could start work.

use super::capabilities::lacks_schemes;
use super::detect::{looks_like_a_card, release};
use super::drift::{is_empty_requirement, requirements};
use super::interfaces::{Core, Endpoint, comparable, endpoints};
use super::table::{EVERY, SINCE_0_2, SINCE_0_3};
use super::versions::has_outdated_authentication;
use crate::document::{Document, Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Axis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::{Exchange, Response, Session, Step, WireError};
use crate::session_judge::{chains, document_of};
use crate::sse;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &INTERFACE_DEAD,
    &BINDING_WRONG,
    &DECLARED_VERSION_REJECTED,
    &VERSION_NOT_REJECTED,
    &AUTH_NOT_ENFORCED,
    &AUTH_UNDECLARED,
    &AUTH_CHALLENGE_MISSING,
    &EXTENDED_CARD_OPEN,
    &EXTENDED_CARD_UNDECLARED,
    &EXTENDED_CARD_NOT_CONFIGURED,
];

const ON: &[Kind] = &[Kind::AgentCard];

/// A version that never was, in which a server is asked whether it looks at versions at all.
const NO_VERSION: &str = "99.0";

const TASK_NOT_FOUND: i64 = -32001;
const EXTENDED_CARD_NOT_CONFIGURED_CODE: i64 = -32007;
const VERSION_NOT_SUPPORTED: i64 = -32009;

/// One question to an interface of the card, and the answer at the end of its redirects.
struct Asked<'a, 'd> {
    endpoint: &'a Endpoint<'d>,
    /// As it was sent.
    exchange: &'a Exchange,
    /// The last answer.
    end: &'a Exchange,
    /// Its place in the session.
    number: usize,
}

/// What an interface answers, read by its binding.
enum Said {
    /// A result of JSON-RPC, or a success of HTTP+JSON.
    Result(Box<Document>),
    /// An error, by the code that JSON-RPC has for it; `None` where it is another.
    Error(Option<i64>),
    /// Nothing of its binding.
    Other,
    /// No body at all.
    Nothing,
}

impl Asked<'_, '_> {
    fn status(&self) -> Option<u16> {
        self.end.response.as_ref().map(|response| response.status)
    }

    fn core(&self) -> Option<Core> {
        self.endpoint.core()
    }

    fn version(&self) -> Option<&str> {
        self.exchange.request.headers.get("a2a-version").map(String::as_str)
    }

    /// Whether it was sent without anything that could be a credential.
    fn is_anonymous(&self) -> bool {
        let headers = &self.exchange.request.headers;
        let is_secret = |name: &String, value: &String| {
            matches!(name.as_str(), "authorization" | "cookie" | "proxy-authorization") || value.starts_with("***")
        };
        !headers.iter().any(|(name, value)| is_secret(name, value))
    }

    fn place(&self) -> String {
        match self.end.response {
            Some(_) => format!("/exchanges/{}/response", self.number),
            None => format!("/exchanges/{}", self.number),
        }
    }

    /// Why nothing can be said about the answer.
    fn unsaid(&self) -> Option<NotEvaluated> {
        let Some(response) = self.end.response.as_ref() else { return Some(NotEvaluated::NoDocument) };
        match response.status {
            401 | 403 | 407 => Some(NotEvaluated::Auth),
            402 => Some(NotEvaluated::Payment),
            429 => Some(NotEvaluated::RateLimited),
            300..=399 | 500.. => Some(NotEvaluated::NoDocument),
            _ => response.cut.map(|_| NotEvaluated::Cut),
        }
    }

    fn said(&self) -> Said {
        match (self.end.response.as_ref(), self.core()) {
            (None, _) => Said::Nothing,
            (Some(response), Some(Core::JsonRpc)) => said_in_json_rpc(response),
            (Some(response), _) => said_in_http(response),
        }
    }

    fn named(&self) -> String {
        quote(self.endpoint.text)
    }
}

/// The messages in an answer: its body, or the events of a stream.
fn messages(response: &Response) -> Vec<Document> {
    if response.media_type().is_some_and(|label| label.is("text", "event-stream")) {
        let stream = sse::read(&response.body());
        return stream.events.iter().map(|event| Document::from_text(&event.data)).collect();
    }
    vec![document_of(response)]
}

fn said_in_json_rpc(response: &Response) -> Said {
    if response.body().trim_ascii().is_empty() {
        return Said::Nothing;
    }
    for message in messages(response) {
        let Some(object) = message.root().filter(|root| root.kind() == Type::Object) else { continue };
        if object.get("jsonrpc").and_then(Node::text) != Some("2.0") {
            continue;
        }
        if let Some(error) = object.given("error") {
            return Said::Error(error.get("code").and_then(Node::integer));
        }
        if let Some(result) = object.get("result") {
            return Said::Result(Box::new(Document::from_text(result.raw())));
        }
    }
    Said::Other
}

/// The reasons that an error of HTTP+JSON gives (A2A 1.0 §11.6), by the code that JSON-RPC has for them.
const REASONS: [(&str, i64); 3] = [
    ("TASK_NOT_FOUND", TASK_NOT_FOUND),
    ("EXTENDED_AGENT_CARD_NOT_CONFIGURED", EXTENDED_CARD_NOT_CONFIGURED_CODE),
    ("VERSION_NOT_SUPPORTED", VERSION_NOT_SUPPORTED),
];

fn said_in_http(response: &Response) -> Said {
    if response.body().trim_ascii().is_empty() {
        return Said::Nothing;
    }
    let document = document_of(response);
    let Some(object) = document.root().filter(|root| root.kind() == Type::Object) else { return Said::Other };
    if response.status < 400 {
        return Said::Result(Box::new(Document::from_text(object.raw())));
    }
    // An error of the binding has `error` with details (AIP-193), or the members of RFC 9457.
    let error = object.given("error").filter(|error| error.kind() == Type::Object);
    let is_problem = ["type", "title", "detail"].iter().any(|member| object.get(member).is_some());
    if error.is_none() && !is_problem && object.get("code").is_none() {
        return Said::Other;
    }
    let holder = error.unwrap_or(object);
    let details = holder.get("details").into_iter().flat_map(Node::items);
    let reason = details.filter_map(|detail| detail.get("reason")?.text()).next();
    Said::Error(reason.and_then(|reason| REASONS.iter().find(|(word, _)| *word == reason)).map(|(_, code)| *code))
}

/// Looks at every question of a step to an interface of the card; where there is none it is said why.
fn each(
    step: Step,
    session: &Session,
    context: &Context<'_>,
    out: &mut Occurrences,
    mut look: impl FnMut(Node<'_>, &Asked<'_, '_>, &mut Occurrences),
) {
    let Some(card) = context.document.and_then(Document::root) else {
        return out.not_evaluated(NotEvaluated::NoDocument);
    };
    let endpoints: Vec<Endpoint<'_>> = endpoints(card, context).collect();
    let mut has_asked = false;
    for chain in chains(session) {
        let (Some(exchange), Some(end)) = (session.exchanges.get(chain.first), session.exchanges.get(chain.last))
        else {
            continue;
        };
        if exchange.step != Some(step) {
            continue;
        }
        let Some(endpoint) = endpoint_of(&endpoints, &exchange.request.url) else { continue };
        has_asked = true;
        look(card, &Asked { endpoint, exchange, end, number: chain.last }, out);
    }
    if !has_asked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}

/// The interface that an address belongs to: its own, or for HTTP+JSON the longest one above it.
fn endpoint_of<'a, 'd>(endpoints: &'a [Endpoint<'d>], url: &str) -> Option<&'a Endpoint<'d>> {
    let asked = comparable(url);
    let is_own =
        |endpoint: &&Endpoint<'_>| comparable(endpoint.text).trim_end_matches('/') == asked.trim_end_matches('/');
    let is_above = |endpoint: &&Endpoint<'_>| {
        let base = comparable(endpoint.text);
        endpoint.core() == Some(Core::HttpJson)
            && asked.strip_prefix(base.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
    };
    let own = endpoints.iter().find(is_own);
    own.or_else(|| endpoints.iter().filter(is_above).max_by_key(|endpoint| endpoint.text.len()))
}

crate::rule! {
    /// An interface of the card is not there.
    ///
    /// Nobody answers at its address, or the answer is that there is nothing. Whoever reads the card calls it in vain.
    static INTERFACE_DEAD = {
        id: "a2a/interface-dead",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        rank: 4,
        versions: EVERY,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Correct the url or restore the endpoint.",
        spec: "A2A 1.0 §8.3.1",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 404, "raw": "<p>Nothing here</p>"}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "supportedInterfaces": [{"protocolBinding": "HTTP+JSON"}]}}},
                    {"step": "GetTask", "request": {"method": "GET", "url": "https://tides.example.com/a2a/tasks/0", "headers": {"a2a-version": "1.0"}}, "response": {"status": 404, "raw": "404 page not found"}},
                    {"step": "interface-base", "request": {"method": "GET", "url": "https://tides.example.com/a2a"}, "response": {"status": 405}}]}"#,
            ),
        ],
        check: Check::Session(interface_dead),
    }
}

fn interface_dead(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetTask, session, context, out, |_, asked, out| {
        let what = match (asked.status(), asked.end.error) {
            (Some(status @ (404 | 410)), _) if !matches!(asked.said(), Said::Error(_) | Said::Result(_)) => {
                if asked.core() == Some(Core::HttpJson) && !is_base_gone(session, asked) {
                    return;
                }
                format!("answers {status}")
            }
            (None, Some(error)) if is_dead(error) => "nobody answers".to_owned(),
            _ => return,
        };
        out.add_at(asked.place(), format!("{}: {what}", asked.named()));
    });
}

fn is_dead(error: WireError) -> bool {
    matches!(
        error,
        WireError::DnsNxdomain
            | WireError::Refused
            | WireError::Tls
            | WireError::TlsCertificateExpired
            | WireError::TlsCertificateName
            | WireError::TlsCertificateUnknownIssuer
    )
}

/// Whether the address of the interface itself was asked for, and is not there.
fn is_base_gone(session: &Session, asked: &Asked<'_, '_>) -> bool {
    let base = comparable(asked.endpoint.text);
    let is_base = |exchange: &&Exchange| {
        exchange.step == Some(Step::InterfaceBase)
            && comparable(&exchange.request.url).trim_end_matches('/') == base.trim_end_matches('/')
    };
    let status = |exchange: &Exchange| exchange.response.as_ref().map(|response| response.status);
    session.exchanges.iter().find(is_base).and_then(status).is_some_and(|status| matches!(status, 404 | 410))
}

crate::rule! {
    /// An interface speaks the binding that the card says.
    ///
    /// A request of JSON-RPC is answered with something that is none of it. A client of that binding cannot read it.
    static BINDING_WRONG = {
        id: "a2a/binding-wrong",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client of the declared binding can read the answer",
        rank: 5,
        versions: EVERY,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Declare the binding that the URL speaks.",
        spec: "A2A 1.0 §8.3.1, §9.1",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"message": "Hello"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 503, "raw": "<p>Later</p>"}}]}"#,
            ),
        ],
        check: Check::Session(binding_wrong),
    }
}

fn binding_wrong(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetTask, session, context, out, |_, asked, out| {
        if asked.core() != Some(Core::JsonRpc) {
            return;
        }
        if let Some(why) = asked.unsaid() {
            return out.not_evaluated(why);
        }
        // Where nothing is, nothing speaks the wrong language.
        let is_gone = matches!(asked.status(), Some(404 | 410));
        if matches!(asked.said(), Said::Other) && !is_gone {
            out.add_at(asked.place(), format!("{} answers JSON-RPC with something else", asked.named()));
        }
    });
}

crate::rule! {
    /// An interface serves the version that it declares.
    ///
    /// A client that takes the card at its word is refused.
    static DECLARED_VERSION_REJECTED = {
        id: "a2a/declared-version-rejected",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the handshake cannot finish",
        versions: &["1.0"],
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Support the version or correct the card.",
        spec: "A2A 1.0 §3.6.2, §8.3.1",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32009, "message": "no"}}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "99.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32009, "message": "no"}}}}]}"#,
            ),
        ],
        check: Check::Session(declared_version_rejected),
    }
}

fn declared_version_rejected(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetTask, session, context, out, |card, asked, out| {
        let Some(version) = asked.version() else { return };
        if let Some(why) = asked.unsaid() {
            return out.not_evaluated(why);
        }
        let interfaces = card.get("supportedInterfaces").into_iter().flat_map(Node::items);
        let text = |interface: Node<'_>, member: &str| interface.get(member).and_then(Node::text).map(str::to_owned);
        let declares = interfaces.into_iter().any(|interface| {
            let is_it = text(interface, "url").is_some_and(|url| comparable(&url) == comparable(asked.endpoint.text));
            let declared = text(interface, "protocolVersion").and_then(|declared| release(declared.trim()));
            is_it && declared.is_some() && declared == release(version.trim())
        });
        if declares && matches!(asked.said(), Said::Error(Some(VERSION_NOT_SUPPORTED))) {
            out.add_at(asked.place(), format!("{} refuses the version {version} that it declares", asked.named()));
        }
    });
}

crate::rule! {
    /// An interface refuses versions that it does not know.
    ///
    /// A client of a version to come would take answers in the old form for answers in its own.
    static VERSION_NOT_REJECTED = {
        id: "a2a/version-not-rejected",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["1.0"],
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Check A2A-Version and return VersionNotSupportedError.",
        spec: "A2A 1.0 §3.6.2",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "99.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "no"}}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "99.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32602, "message": "no"}}}}]}"#,
            ),
        ],
        check: Check::Session(version_not_rejected),
    }
}

fn version_not_rejected(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let mut has_asked = false;
    each(Step::GetTask, session, context, out, |_, asked, out| {
        if asked.version() != Some(NO_VERSION) {
            return;
        }
        has_asked = true;
        if let Some(why) = asked.unsaid() {
            return out.not_evaluated(why);
        }
        if is_served(asked) {
            out.add_at(asked.place(), format!("{} answers in a version that never was", asked.named()));
        }
    });
    if !has_asked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}

/// Whether the question was looked at: a task was looked for, or something came.
fn is_served(asked: &Asked<'_, '_>) -> bool {
    matches!(asked.said(), Said::Error(Some(TASK_NOT_FOUND)) | Said::Result(_))
}

crate::rule! {
    /// An interface asks for the credentials that the card demands.
    ///
    /// It looked for a task for somebody whom nobody knows.
    static AUTH_NOT_ENFORCED = {
        id: "a2a/auth-not-enforced",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        rank: 18,
        versions: SINCE_0_2,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Check credentials before looking at the request.",
        spec: "A2A 1.0 §7.4, §3.3.2",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "no"}}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0", "authorization": "***"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "no"}}}}]}"#,
            ),
        ],
        check: Check::Session(auth_not_enforced),
    }
}

fn auth_not_enforced(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetTask, session, context, out, |card, asked, out| {
        let requirements = requirements(card, context.profile);
        if requirements.is_empty() || requirements.iter().any(is_empty_requirement) {
            return out.not_applicable();
        }
        if !asked.is_anonymous() || asked.version() == Some(NO_VERSION) {
            return;
        }
        match asked.unsaid() {
            Some(NotEvaluated::Auth | NotEvaluated::Payment) => {}
            Some(why) => out.not_evaluated(why),
            None if is_served(asked) => {
                out.add_at(asked.place(), format!("{} looks for a task for anybody", asked.named()));
            }
            None => {}
        }
    });
}

crate::rule! {
    /// Who asks for credentials says in the card which.
    ///
    /// The card declares no scheme, so a client cannot know what to send.
    static AUTH_UNDECLARED = {
        id: "a2a/auth-undeclared",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: SINCE_0_2,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Declare the scheme in the card.",
        spec: "A2A 1.0 §7.3",
        seeds: &["inspector:security-scheme-declared"],
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "securitySchemes": null, "securityRequirements": null}}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "securitySchemes": null, "securityRequirements": null}}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 407}}]}"#,
            ),
        ],
        check: Check::Session(auth_undeclared),
    }
}

fn auth_undeclared(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetTask, session, context, out, |card, asked, out| {
        let is_undeclared = lacks_schemes(card) && !has_outdated_authentication(card, context);
        if let Some(status @ (401 | 403)) = asked.status()
            && is_undeclared
            && asked.is_anonymous()
        {
            out.add_at(asked.place(), format!("{} answers {status} and the card declares no scheme", asked.named()));
        }
    });
}

crate::rule! {
    /// A refusal does not say what it asks for.
    ///
    /// 401 comes without `WWW-Authenticate`.
    static AUTH_CHALLENGE_MISSING = {
        id: "a2a/auth-challenge-missing",
        versions: SINCE_0_2,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Send WWW-Authenticate.",
        spec: "A2A 1.0 §7.4; RFC 9110 §11.6.1",
        examples: &[
            fires(
                &["/exchanges/1/response/headers/www-authenticate"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 401}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetTask", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 403}}]}"#,
            ),
        ],
        check: Check::Session(auth_challenge_missing),
    }
}

fn auth_challenge_missing(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetTask, session, context, out, |_, asked, out| {
        let Some(response) = asked.end.response.as_ref() else { return };
        if response.status == 401 && response.header("www-authenticate").is_none() {
            let place = format!("{}/headers/www-authenticate", asked.place());
            out.add_at(place, format!("{} answers 401 without a challenge", asked.named()));
        }
    });
}

/// Whether the answer is an agent card.
fn is_a_card(asked: &Asked<'_, '_>) -> bool {
    match asked.said() {
        Said::Result(document) => document.root().is_some_and(looks_like_a_card),
        Said::Error(_) | Said::Other | Said::Nothing => false,
    }
}

/// Whether the card announces an extended card, in the way of the release it is judged by.
fn announces(card: Node<'_>, context: &Context<'_>) -> bool {
    let new = card.get("capabilities").and_then(|held| held.get("extendedAgentCard")).and_then(Node::flag);
    let old = card.get("supportsAuthenticatedExtendedCard").and_then(Node::flag);
    (context.profile.has("1.0") && new == Some(true)) || (context.profile.has("0.3") && old == Some(true))
}

crate::rule! {
    /// The extended card is for those who have credentials.
    ///
    /// It was handed to somebody without.
    static EXTENDED_CARD_OPEN = {
        id: "a2a/extended-card-open",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        rank: 18,
        versions: SINCE_0_3,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Demand authentication.",
        spec: "A2A 1.0 §13.3, §3.1.11",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "capabilities": {"extendedAgentCard": true}}}},
                    {"step": "GetExtendedAgentCard", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "result": "base:a2a-1.0"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "capabilities": {"extendedAgentCard": true}}}},
                    {"step": "GetExtendedAgentCard", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0", "authorization": "***"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "result": "base:a2a-1.0"}}}]}"#,
            ),
        ],
        check: Check::Session(extended_card_open),
    }
}

fn extended_card_open(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetExtendedAgentCard, session, context, out, |card, asked, out| {
        if announces(card, context) && asked.is_anonymous() && is_a_card(asked) {
            out.add_at(asked.place(), format!("{} hands the extended card to anybody", asked.named()));
        }
    });
}

crate::rule! {
    /// Who has an extended card announces it.
    ///
    /// Clients ask for one only where the card says that there is one.
    static EXTENDED_CARD_UNDECLARED = {
        id: "a2a/extended-card-undeclared",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["1.0"],
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Set extendedAgentCard to true or return UnsupportedOperationError.",
        spec: "A2A 1.0 §3.3.4",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetExtendedAgentCard", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "result": "base:a2a-1.0"}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetExtendedAgentCard", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32004, "message": "no"}}}}]}"#,
            ),
        ],
        check: Check::Session(extended_card_undeclared),
    }
}

fn extended_card_undeclared(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetExtendedAgentCard, session, context, out, |card, asked, out| {
        let flag = card.get("capabilities").and_then(|held| held.get("extendedAgentCard"));
        if flag.and_then(Node::flag) != Some(true) && is_a_card(asked) {
            out.add_at(asked.place(), format!("{} serves an extended card that is not announced", asked.named()));
        }
    });
}

crate::rule! {
    /// Who announces an extended card has one.
    ///
    /// Clients that ask for it are told that it was never set up.
    static EXTENDED_CARD_NOT_CONFIGURED = {
        id: "a2a/extended-card-not-configured",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["1.0"],
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "live",
        fix: "Configure the extended card or drop the flag.",
        spec: "A2A 1.0 §3.1.11",
        examples: &[
            fires(
                &["/exchanges/1/response"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"$base": "a2a-1.0", "capabilities": {"extendedAgentCard": true}}}},
                    {"step": "GetExtendedAgentCard", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32007, "message": "no"}}}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": "base:a2a-1.0"}},
                    {"step": "GetExtendedAgentCard", "request": {"method": "POST", "url": "https://tides.example.com/a2a", "headers": {"a2a-version": "1.0"}}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "1", "error": {"code": -32007, "message": "no"}}}}]}"#,
            ),
        ],
        check: Check::Session(extended_card_not_configured),
    }
}

fn extended_card_not_configured(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    each(Step::GetExtendedAgentCard, session, context, out, |card, asked, out| {
        let flag = card.get("capabilities").and_then(|held| held.get("extendedAgentCard"));
        let is_not_configured = matches!(asked.said(), Said::Error(Some(EXTENDED_CARD_NOT_CONFIGURED_CODE)));
        if flag.and_then(Node::flag) == Some(true) && is_not_configured {
            out.add_at(asked.place(), format!("{} has no extended card, though the card announces one", asked.named()));
        }
    });
}
