//! A conversation with an MCP endpoint, read: what each request asked, what each answer says, and what both together show
//! about the server.
//!
//! The probe that holds the conversation and the rules that judge it read it by the same functions, so that what is said
//! of a server and what was asked of it next rest on one understanding.

use std::collections::BTreeSet;

use serde_json::Value;
use url::Url;

use crate::document::{Document, Node, Type};
use crate::report::NotEvaluated;
use crate::session::{Exchange, Response, Session, Step, StreamEnd, WireError};
use crate::sse;

/// The revision without sessions.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with a handshake.
pub const NEWEST_LEGACY: &str = "2025-11-25";
/// The revision of the HTTP+SSE transport.
pub const HTTP_SSE: &str = "2024-11-05";
/// Every published revision, oldest first.
pub const REVISIONS: [&str; 5] = [HTTP_SSE, "2025-03-26", "2025-06-18", NEWEST_LEGACY, MODERN];
/// The key of `_meta` that names the revision of a modern request.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of `_meta` that holds what a modern client can do.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key of `_meta` that names a modern client.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

crate::words! {
    /// Which ways of opening a conversation a server knows.
    pub enum Era {
        /// Only revisions with a handshake.
        Legacy = "legacy",
        /// Only the revision without sessions.
        Modern = "modern",
        /// Both.
        Dual = "dual",
        /// Nothing shows.
        Unknown = "unknown",
    }
}

/// A conversation, exchange by exchange.
#[derive(Debug)]
pub struct Conversation<'s> {
    /// In the order of the session.
    pub turns: Vec<Turn<'s>>,
    /// The address that was asked for at first.
    pub endpoint: &'s str,
    /// What the server speaks.
    pub era: Era,
    /// The revision that the handshake agreed on, if there was one.
    pub negotiated: Option<&'static str>,
    /// The revision that somebody states for all of it.
    pub stated: Option<&'static str>,
    /// The capabilities a context states; they stand for what the conversation shows.
    stated_capabilities: Option<Document>,
}

/// One request and its answer.
#[derive(Debug)]
pub struct Turn<'s> {
    /// Its place in the session.
    pub number: usize,
    /// As recorded.
    pub exchange: &'s Exchange,
    /// What it was made for; where the record does not say, by what was asked.
    pub step: Option<Step>,
    /// The message that was sent, as far as it is JSON.
    pub asked: Option<Value>,
    /// The revision in which it was exchanged.
    pub revision: &'static str,
    /// The answer led on to the next exchange.
    pub is_led_on: bool,
    /// A redirect on the way made another request of it than was asked: a POST became a GET.
    pub is_astray: bool,
    /// The server has forgotten the session that it is in.
    pub is_lost: bool,
    /// What came back.
    pub answer: Answer,
}

/// What an answer holds.
#[derive(Debug, Default)]
pub struct Answer {
    /// The messages in it, in order: one for a JSON body, one for each event of a stream that has data.
    pub messages: Vec<Message>,
    /// What of a stream is not a message.
    pub stream: Option<sse::Stream>,
    /// The body is JSON under a label that says so, or under none.
    pub is_json: bool,
}

/// One message, or what stands where one should.
#[derive(Debug)]
pub struct Message {
    /// Read.
    pub document: Document,
    /// Which event of the stream carries it, counted from 0; `None` for a body that is the message.
    pub event: Option<usize>,
    /// In which exchange it stands; another than the turn's where the answer came on another stream.
    pub number: usize,
}

impl Message {
    /// Where it stands in the session.
    pub fn place(&self) -> String {
        match self.event {
            None => format!("/exchanges/{}/response/body", self.number),
            Some(event) => format!("/exchanges/{}/response/events/{event}/data", self.number),
        }
    }

    /// Its value, when it is an object.
    pub fn object(&self) -> Option<Node<'_>> {
        self.document.root().filter(|root| root.kind() == Type::Object)
    }

    /// Whether it answers a request.
    pub fn is_response(&self) -> bool {
        self.object().is_some_and(|object| object.get("result").is_some() || object.get("error").is_some())
    }

    /// The method of a message that the server sent on its own.
    pub fn method(&self) -> Option<&str> {
        self.object()?.get("method")?.text()
    }

    /// Whether it is JSON-RPC 2.0.
    pub fn is_json_rpc(&self) -> bool {
        let version = |object: Node<'_>| object.get("jsonrpc").and_then(Node::text) == Some("2.0");
        match self.document.root() {
            Some(root) if root.kind() == Type::Array => !root.is_empty() && root.items().all(version),
            Some(root) => root.kind() == Type::Object && version(root),
            None => false,
        }
    }
}

impl<'s> Conversation<'s> {
    /// Reads a session. `version` is the revision that somebody states for all of it, `era` and `capabilities` what
    /// somebody knows of the server.
    pub fn read(
        session: &'s Session,
        version: Option<&str>,
        era: Option<&str>,
        capabilities: Option<&Value>,
    ) -> Conversation<'s> {
        let exchanges = &session.exchanges;
        let mut turns: Vec<Turn<'s>> = exchanges.iter().enumerate().map(|(n, exchange)| turn(n, exchange)).collect();
        for number in 1..turns.len() {
            turns[number - 1].is_led_on = leads_to(turns[number - 1].exchange, turns[number].exchange);
        }
        note_astray(&mut turns);
        answers_on_streams(&mut turns);
        note_lost(&mut turns);
        let negotiated = turns.iter().find_map(negotiated);
        let mut conversation = Conversation {
            endpoint: exchanges.first().map_or("", |first| first.request.url.as_str()),
            turns,
            era: Era::Unknown,
            negotiated,
            stated: version.and_then(|version| REVISIONS.into_iter().find(|known| *known == version)),
            stated_capabilities: capabilities.map(|value| Document::from_text(&value.to_string())),
        };
        conversation.era = era.map_or_else(|| conversation.shown_era(), named_era);
        for number in 0..conversation.turns.len() {
            conversation.turns[number].revision = match conversation.stated {
                Some(stated) => stated,
                None => conversation.revision_of(&conversation.turns[number]),
            };
        }
        conversation
    }

    /// The addresses of the endpoint: the one that was asked for and, where a redirect kept the request, the one that it
    /// led to.
    pub fn addresses(&self) -> Vec<&str> {
        let mut addresses = vec![self.endpoint];
        let led = self.handshakes().filter(|turn| !turn.is_astray && turn.exchange.request.method == "POST");
        for turn in led.filter(|turn| turn.number > 0 && self.turns[turn.number - 1].is_led_on) {
            let led_to = turn.exchange.request.url.as_str();
            if !addresses.contains(&led_to) {
                addresses.push(led_to);
            }
        }
        addresses
    }

    /// The era by what was answered.
    fn shown_era(&self) -> Era {
        let modern = self.is_modern_confirmed();
        let legacy = self.negotiated.is_some();
        match (modern || (!legacy && self.has_modern_error()), legacy) {
            (true, true) => Era::Dual,
            (true, false) => Era::Modern,
            (false, true) => Era::Legacy,
            (false, false) => Era::Unknown,
        }
    }

    /// An answer that only a server of the revision without sessions gives.
    pub fn is_modern_confirmed(&self) -> bool {
        self.turns.iter().any(Turn::confirms_modern)
    }

    /// A recognised error of that revision, with its status.
    pub fn has_modern_error(&self) -> bool {
        self.turns.iter().any(Turn::is_modern_error)
    }

    fn revision_of(&self, turn: &Turn<'_>) -> &'static str {
        let legacy = self.negotiated.unwrap_or(NEWEST_LEGACY);
        match turn.step {
            _ if turn.is_modern_request() => MODERN,
            Some(Step::Get | Step::Delete | Step::Origin | Step::TextPlain) if self.era == Era::Modern => MODERN,
            Some(Step::HttpSse) => HTTP_SSE,
            _ => legacy,
        }
    }

    /// The revisions in which messages were exchanged, oldest first; of a server that answered none those that were tried.
    pub fn revisions(&self) -> Vec<&'static str> {
        let spoken: BTreeSet<&'static str> =
            self.turns.iter().filter(|turn| self.speaks(turn)).map(|turn| turn.revision).collect();
        if spoken.is_empty() { self.turns.iter().map(|turn| turn.revision).collect::<BTreeSet<_>>() } else { spoken }
            .into_iter()
            .collect()
    }

    fn speaks(&self, turn: &Turn<'_>) -> bool {
        match self.era {
            Era::Unknown => true,
            Era::Dual => true,
            Era::Modern => turn.revision == MODERN,
            Era::Legacy => turn.revision != MODERN,
        }
    }

    /// The newest revision that the server showed to speak.
    pub fn newest(&self) -> Option<&'static str> {
        match self.era {
            Era::Modern | Era::Dual => Some(MODERN),
            Era::Legacy => self.negotiated,
            Era::Unknown => None,
        }
    }

    /// What the server declared in the era of a turn: the object `capabilities` of its handshake.
    pub fn capabilities(&self, turn: &Turn<'_>) -> Option<Node<'_>> {
        if let Some(stated) = &self.stated_capabilities {
            return stated.root();
        }
        let step = if turn.is_modern_request() { Step::Discover } else { Step::Initialize };
        let capabilities =
            |turn: &'_ Turn<'s>| -> bool { turn.result().is_some_and(|r| r.get("capabilities").is_some()) };
        let handshake = self.turns.iter().find(|turn| turn.step == Some(step) && capabilities(turn))?;
        handshake.result()?.get("capabilities").filter(|node| node.kind() == Type::Object)
    }

    /// The turns of a step whose answer is the last of its redirects.
    pub fn of(&self, step: Step) -> impl Iterator<Item = &Turn<'s>> {
        self.turns.iter().filter(move |turn| turn.step == Some(step) && !turn.is_led_on)
    }

    /// The handshake, as far as it succeeded.
    pub fn handshake(&self, step: Step) -> Option<&Turn<'s>> {
        self.of(step).find(|turn| turn.result().is_some())
    }

    /// Whether somebody was asked to come back later: the run is incomplete then.
    pub fn is_throttled(&self) -> bool {
        self.turns.iter().any(|turn| turn.is_about_endpoint() && turn.gate() == Some(NotEvaluated::RateLimited))
    }

    /// Whether the handshakes of every era that was tried were refused for want of credentials.
    pub fn needs_authorization(&self) -> bool {
        let mut handshakes = self.handshakes().peekable();
        handshakes.peek().is_some()
            && handshakes.clone().any(Turn::is_auth_refusal)
            && handshakes.all(|turn| turn.result().is_none())
    }

    /// The first requests of each era.
    pub fn handshakes(&self) -> impl Iterator<Item = &Turn<'s>> + Clone {
        let is_handshake = |turn: &&Turn<'s>| {
            matches!(turn.step, Some(Step::Discover | Step::Initialize | Step::HttpSse)) && !turn.is_led_on
        };
        self.turns.iter().filter(is_handshake)
    }
}

impl Turn<'_> {
    /// The answer as recorded.
    pub fn response(&self) -> Option<&Response> {
        self.exchange.response.as_ref()
    }

    /// The status of the answer.
    pub fn status(&self) -> Option<u16> {
        self.response().map(|response| response.status)
    }

    /// The answer as a whole in the session.
    pub fn place(&self) -> String {
        format!("/exchanges/{}/response", self.number)
    }

    /// A header of the answer in the session.
    pub fn header_place(&self, name: &str) -> String {
        format!("/exchanges/{}/response/headers/{name}", self.number)
    }

    /// The method that was asked for.
    pub fn method(&self) -> Option<&str> {
        self.asked.as_ref()?.get("method")?.as_str()
    }

    /// The id of the request.
    pub fn id(&self) -> Option<&Value> {
        self.asked.as_ref()?.get("id")
    }

    /// Whether it was sent as a message of the revision without sessions.
    pub fn is_modern_request(&self) -> bool {
        let headers = &self.exchange.request.headers;
        let meta = || self.asked.as_ref()?.pointer("/params/_meta")?.get(META_VERSION);
        headers.contains_key("mcp-method")
            || headers.get("mcp-protocol-version").is_some_and(|version| version == MODERN)
            || meta().is_some()
    }

    /// Whether it went to the endpoint and not to metadata or cards beside it, or to the operator's own hook.
    pub fn is_about_endpoint(&self) -> bool {
        let beside =
            [Step::Prm, Step::AuthorizationServer, Step::ServerCard, Step::AiCatalog, Step::Robots, Step::ChangeHook];
        !self.step.is_some_and(|step| beside.contains(&step))
    }

    /// The message that answers the request: the one with its id, else the first that answers anything.
    pub fn reply(&self) -> Option<&Message> {
        let answers = || self.answer.messages.iter().filter(|message| message.is_response());
        let is_same = |message: &&Message| {
            let id = message.object().and_then(|object| object.get("id"));
            id.zip(self.id()).is_some_and(|(id, asked)| is_same(id, asked))
        };
        answers().find(is_same).or_else(|| answers().next())
    }

    /// The result, when the answer has one that is an object.
    pub fn result(&self) -> Option<Node<'_>> {
        let object = self.reply()?.object()?;
        if object.get("error").is_some_and(|error| !error.is_null()) {
            return None;
        }
        object.get("result").filter(|result| result.kind() == Type::Object)
    }

    /// The result, when it also carries the id of the request.
    fn own_result(&self) -> Option<Node<'_>> {
        let id = self.reply()?.object()?.get("id")?;
        self.result().filter(|_| self.id().is_some_and(|asked| is_same(id, asked)))
    }

    /// Whether the request was served: a result, well made or not. Of an answer that is both, nobody knows.
    pub fn is_served(&self) -> bool {
        let object = self.reply().and_then(Message::object);
        object.is_some_and(|object| object.given("result").is_some() && object.given("error").is_none())
    }

    /// The error, when the answer is one and not a result as well.
    pub fn error(&self) -> Option<Node<'_>> {
        let object = self.reply()?.object()?;
        object.given("error").filter(|_| object.given("result").is_none())
    }

    /// Whether the answer carries the id of another request.
    pub fn is_for_another(&self) -> bool {
        let id = self.reply().and_then(Message::object).and_then(|object| object.given("id"));
        id.zip(self.id()).is_some_and(|(id, asked)| !is_same(id, asked))
    }

    /// The code of the error.
    pub fn error_code(&self) -> Option<i64> {
        self.error()?.get("code")?.integer()
    }

    /// Why nothing can be said about the content of the answer: it was refused before anybody looked at the request.
    pub fn gate(&self) -> Option<NotEvaluated> {
        let response = self.response()?;
        if response.is_bot_wall() {
            return Some(NotEvaluated::RateLimited);
        }
        match response.status {
            401 | 403 | 407 => Some(NotEvaluated::Auth),
            402 => Some(NotEvaluated::Payment),
            429 => Some(NotEvaluated::RateLimited),
            503 if response.header("retry-after").is_some() => Some(NotEvaluated::RateLimited),
            _ if self.says_unauthorized() => Some(NotEvaluated::Auth),
            _ => None,
        }
    }

    /// Whether the server failed: what it says then is about itself and not about what was asked.
    pub fn has_failed(&self) -> bool {
        self.status().is_some_and(|status| status >= 500)
    }

    /// Why nothing can be said about the answer at all: it was refused, did not come, or did not come whole.
    pub fn unsaid(&self) -> Option<NotEvaluated> {
        match self.response() {
            None => Some(NotEvaluated::NoDocument),
            Some(response) if response.cut.is_some() => Some(NotEvaluated::Cut),
            Some(_) if self.is_late() || self.is_astray => Some(NotEvaluated::NoDocument),
            Some(_) => self.gate().or((self.has_failed() || self.is_lost).then_some(NotEvaluated::NoDocument)),
        }
    }

    /// The stream was left before the answer came.
    pub fn is_late(&self) -> bool {
        let end = self.response().and_then(|response| response.stream.as_ref()).map(|stream| stream.end);
        matches!(end, Some(StreamEnd::Silent | StreamEnd::Overrun)) && self.reply().is_none()
    }

    /// Whether it was refused for want of credentials: 401, 403 with a challenge, or an error that says so.
    pub fn is_auth_refusal(&self) -> bool {
        self.is_challenged() || self.says_unauthorized()
    }

    /// Whether it was refused as HTTP has it: 401, or 403 with a challenge that asks for a token.
    pub fn is_challenged(&self) -> bool {
        match self.status() {
            Some(401) => true,
            Some(403) => self.challenge().is_some_and(names_token_scheme),
            _ => false,
        }
    }

    /// Whether the error says in words that credentials are needed: that of JSON-RPC, or that of whoever stands in front
    /// and answers with JSON of another kind.
    pub fn says_unauthorized(&self) -> bool {
        let error = self.error();
        let message = error.and_then(|error| error.get("message").and_then(Node::text).or_else(|| error.text()));
        if message.is_some_and(asks_for_credentials) {
            return true;
        }
        let Some(object) = self.answer.messages.first().filter(|_| !self.has_failed()).and_then(Message::object) else {
            return false;
        };
        let is_other = !["jsonrpc", "result", "method"].iter().any(|name| object.get(name).is_some());
        let said = ["error", "message", "detail", "error_description", "title"].iter();
        is_other && said.filter_map(|name| object.get(name)?.text()).any(asks_for_credentials)
    }

    /// Whether the answer can only come from a server of the revision without sessions.
    pub fn confirms_modern(&self) -> bool {
        if !self.is_modern_request() || self.step == Some(Step::BadVersion) {
            return false;
        }
        let Some(result) = self.own_result() else { return false };
        match self.method() {
            Some("server/discover") => {
                let supported = result.get("supportedVersions").filter(|list| list.kind() == Type::Array);
                let capabilities = result.get("capabilities").is_some_and(|node| node.kind() == Type::Object);
                capabilities
                    && supported.is_some_and(|list| {
                        list.items().all(|item| item.text().is_some())
                            && list.items().any(|item| item.text() == Some(MODERN))
                    })
            }
            Some("tools/list" | "resources/list" | "prompts/list" | "resources/templates/list") => {
                result.get("resultType").is_some()
            }
            _ => false,
        }
    }

    /// A recognised error of the revision without sessions, with the status it goes with.
    pub fn is_modern_error(&self) -> bool {
        (self.status() == Some(400) || self.is_stdio()) && matches!(self.error_code(), Some(-32022..=-32020))
    }

    /// Whether it went over the standard streams of a command, where there is neither a status nor a header.
    pub fn is_stdio(&self) -> bool {
        self.exchange.request.method == "STDIO"
    }

    /// The revisions that an error says are supported.
    pub fn supported(&self) -> Vec<&str> {
        let data = self.error().and_then(|error| error.get("data")).and_then(|data| data.get("supported"));
        data.into_iter().flat_map(Node::items).filter_map(Node::text).collect()
    }

    /// Whether the body is not what its label says: an event stream under a label for JSON, or the other way round.
    pub fn is_mislabelled(&self) -> bool {
        let Some(response) = self.response() else { return false };
        let body = response.body();
        let body = body.trim_ascii_start();
        let is_stream = || {
            let begins = [b"event:".as_slice(), b"data:", b"id:", b"retry:", b":"];
            begins.iter().any(|field| body.starts_with(field)) && !sse::read(body).events.is_empty()
        };
        let is_json = || matches!(body.first(), Some(b'{' | b'[')) && serde_json::from_slice::<Value>(body).is_ok();
        match response.media_type() {
            Some(label) if label.is_json() => is_stream(),
            Some(label) if label.is("text", "event-stream") => is_json(),
            _ => false,
        }
    }

    /// Whether the body shows that MCP, or at least JSON-RPC, is spoken here.
    pub fn is_json_rpc(&self) -> bool {
        self.answer.messages.iter().any(Message::is_json_rpc)
    }

    /// The address that the stream of the transport before 2025-03-26 names first.
    pub fn announced(&self) -> Option<&str> {
        let first = self.answer.stream.as_ref()?.events.first()?;
        (first.name.as_deref() == Some("endpoint")).then_some(first.data.as_str())
    }

    /// The challenges of the answer as they were sent.
    pub fn challenge(&self) -> Option<&str> {
        self.response()?.header("www-authenticate")
    }
}

/// The revision of a successful handshake.
fn negotiated(turn: &Turn<'_>) -> Option<&'static str> {
    if turn.step != Some(Step::Initialize) || turn.method() != Some("initialize") {
        return None;
    }
    let result = turn.own_result()?;
    result.get("capabilities").filter(|node| node.kind() == Type::Object)?;
    let version = result.get("protocolVersion")?.text()?;
    let legacy = &REVISIONS[..4];
    let not_later = legacy.iter().rev().find(|known| **known <= version);
    Some(not_later.copied().unwrap_or(HTTP_SSE))
}

fn named_era(era: &str) -> Era {
    match era {
        "modern" | "modern-only" => Era::Modern,
        "dual" => Era::Dual,
        "legacy" | "http-sse" => Era::Legacy,
        _ => Era::Unknown,
    }
}

fn turn(number: usize, exchange: &Exchange) -> Turn<'_> {
    let asked = exchange.request.raw.as_deref().and_then(|raw| serde_json::from_str(raw).ok());
    let step = exchange.step.or_else(|| step_of(exchange, asked.as_ref()));
    let answer = exchange.response.as_ref().map(|response| answer(number, response)).unwrap_or_default();
    let (is_led_on, is_astray, is_lost) = (false, false, false);
    Turn { number, exchange, step, asked, revision: NEWEST_LEGACY, is_led_on, is_astray, is_lost, answer }
}

/// What a recorded request asks for where its step was not noted.
fn step_of(exchange: &Exchange, asked: Option<&Value>) -> Option<Step> {
    let request = &exchange.request;
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    match request.method.as_str() {
        "GET" if request.url.contains("/.well-known/oauth-protected-resource") => return Some(Step::Prm),
        "GET" if request.url.contains("/.well-known/oauth-authorization-server") => {
            return Some(Step::AuthorizationServer);
        }
        "GET" if request.url.contains("/.well-known/openid-configuration") => return Some(Step::AuthorizationServer),
        "GET" if header("mcp-protocol-version").is_some() => return Some(Step::Get),
        "DELETE" => return Some(Step::Delete),
        "POST" => {}
        _ => return None,
    }
    let Some(asked) = asked else { return request.raw.as_ref().map(|_| Step::MalformedJson) };
    if asked.is_array() {
        return Some(Step::Batch);
    }
    if header("origin").is_some() {
        return Some(Step::Origin);
    }
    let meta = asked.pointer("/params/_meta");
    let has = |key: &str| meta.is_some_and(|meta| meta.get(key).is_some());
    match asked.get("method").and_then(Value::as_str) {
        None => Some(Step::InvalidRequest),
        Some("server/discover") => Some(match (header("mcp-protocol-version"), header("mcp-method")) {
            (Some("1900-01-01"), _) => Step::BadVersion,
            (None, _) => Step::HeaderVersionMissing,
            (Some(version), _) if version != MODERN => Step::HeaderVersionMismatch,
            (_, None) => Step::HeaderMethodMissing,
            (_, Some(method)) if method != "server/discover" => Step::HeaderMethodMismatch,
            _ if meta.is_none() => Step::NoMeta,
            _ if !has(META_CAPABILITIES) => Step::NoClientCapabilities,
            _ if !has(META_CLIENT) => Step::NoClientInfo,
            _ => Step::Discover,
        }),
        Some("initialize") if asked.pointer("/params/protocolVersion") == Some(&"1999-01-01".into()) => {
            Some(Step::NegotiateUnknown)
        }
        Some("initialize") => Some(Step::Initialize),
        Some("notifications/initialized") => Some(Step::Initialized),
        Some("ping") => Some(Step::Ping),
        Some("plumbline/does-not-exist") => Some(Step::UnknownMethod),
        Some(_) if asked.pointer("/params/cursor") == Some(&"plumbline-invalid-cursor".into()) => Some(Step::BadCursor),
        Some(method) => list_step(method),
    }
}

/// The step of a list by its method.
pub fn list_step(method: &str) -> Option<Step> {
    match method {
        "tools/list" => Some(Step::ToolsList),
        "resources/list" => Some(Step::ResourcesList),
        "resources/templates/list" => Some(Step::TemplatesList),
        "prompts/list" => Some(Step::PromptsList),
        _ => None,
    }
}

fn answer(number: usize, response: &Response) -> Answer {
    let body = response.body();
    let label = response.media_type();
    if label.as_ref().is_some_and(|label| label.is("text", "event-stream")) {
        let stream = sse::read(&body);
        let messages = stream.events.iter().enumerate();
        let messages = messages
            .filter(|(_, event)| !event.data.trim().is_empty() && event.name.as_deref() != Some("endpoint"))
            .map(|(n, event)| Message { document: Document::from_text(&event.data), event: Some(n), number })
            .collect();
        return Answer { messages, stream: Some(stream), is_json: false };
    }
    let is_json = label.as_ref().is_none_or(crate::text::MediaType::is_json);
    let is_bare = body.trim_ascii().is_empty();
    if is_bare && (label.is_none() || !is_json) {
        return Answer::default();
    }
    let starts = matches!(body.trim_ascii_start().first(), Some(b'{' | b'[' | 0xef));
    let messages = if is_json || starts {
        vec![Message { document: crate::session_judge::document_of(response), event: None, number }]
    } else {
        Vec::new()
    };
    Answer { messages, stream: None, is_json }
}

/// Marks what a redirect made another request of.
fn note_astray(turns: &mut [Turn<'_>]) {
    for number in 1..turns.len() {
        let (before, turn) = (&turns[number - 1], &turns[number]);
        let is_changed = before.exchange.request.method != turn.exchange.request.method;
        turns[number].is_astray = before.is_led_on && (before.is_astray || is_changed);
    }
}

/// Marks what was refused because the server has forgotten the session, as one does that was started again in between:
/// 404 in a session that was not ended, and that is dead from then on or is named in the refusal.
fn note_lost(turns: &mut [Turn<'_>]) {
    // To these a session that is not known is the question.
    const ABOUT_SESSIONS: [Step; 4] =
        [Step::SessionUnknown, Step::SessionTerminated, Step::SessionOtherUser, Step::StraySessionId];
    let mut alive: Vec<String> = Vec::new();
    for turn in turns.iter_mut().rev() {
        let Some(session) = turn.exchange.request.headers.get("mcp-session-id") else { continue };
        if turn.step.is_some_and(|step| ABOUT_SESSIONS.contains(&step)) {
            continue;
        }
        let is_named = || {
            let message = turn.error().and_then(|error| error.get("message")).and_then(Node::text);
            message.is_some_and(|message| message.to_lowercase().contains("session"))
        };
        if turn.exchange.success().is_some() && turn.error().is_none() {
            alive.push(session.clone());
        } else if turn.status() == Some(404) && turn.error_code() != Some(-32601) {
            turn.is_lost = is_named() || !alive.contains(session);
        }
    }
}

/// Over HTTP+SSE the answers come on the stream that was opened first.
fn answers_on_streams(turns: &mut [Turn<'_>]) {
    let is_stream = |turn: &Turn<'_>| turn.step == Some(Step::HttpSse) && turn.answer.stream.is_some();
    let Some(stream) = turns.iter().position(is_stream) else { return };
    let number = turns[stream].number;
    let found: Vec<(usize, usize, String)> = turns
        .iter()
        .enumerate()
        .skip(stream + 1)
        .filter(|(_, turn)| turn.exchange.request.method == "POST" && !turn.is_json_rpc())
        .filter_map(|(n, turn)| {
            let id = turn.id()?;
            let message = turns[stream].answer.messages.iter().find(|message| {
                message.is_response()
                    && message.object().and_then(|object| object.get("id")).is_some_and(|other| is_same(other, id))
            })?;
            Some((n, message.event?, message.document.text().to_owned()))
        })
        .collect();
    for (n, event, text) in found {
        turns[n].answer.messages = vec![Message { document: Document::from_text(&text), event: Some(event), number }];
    }
}

/// Whether the second exchange follows the redirect that the first was answered with.
fn leads_to(before: &Exchange, exchange: &Exchange) -> bool {
    before.redirect().is_some_and(|url| Url::parse(&exchange.request.url).is_ok_and(|asked| asked == url))
}

/// Whether a value is the same in type and value. 7.0 is 7, "7" is not.
pub fn is_same(node: Node<'_>, value: &Value) -> bool {
    match value {
        Value::String(text) => node.text() == Some(text),
        Value::Number(number) => match (node.integer(), number.as_i64()) {
            (Some(one), Some(other)) => one == other,
            _ => node.number().is_some() && node.number() == number.as_f64(),
        },
        Value::Null => node.is_null(),
        _ => false,
    }
}

/// Whether a challenge asks for a token: its scheme is Bearer or DPoP.
fn names_token_scheme(challenge: &str) -> bool {
    let lower = challenge.to_ascii_lowercase();
    lower.split([',', ' ']).any(|word| matches!(word.trim(), "bearer" | "dpop"))
}

/// Whether a message says that credentials are missing, and does not only use one of the words in another sense.
pub fn asks_for_credentials(message: &str) -> bool {
    // Said whole, each says it.
    const SURE: [&str; 37] = [
        "unauthorized",
        "unauthorised",
        "unauthenticated",
        "not authorized",
        "not authorised",
        "not authenticated",
        "not logged in",
        "not signed in",
        "authentication required",
        "authentication is required",
        "authentication needed",
        "authentication is needed",
        "authentication failed",
        "authentication missing",
        "missing authentication",
        "no authentication",
        "invalid authentication",
        "requires authentication",
        "authorization required",
        "authorization is required",
        "authorization failed",
        "missing authorization",
        "no authorization",
        "requires authorization",
        "must authenticate",
        "must be authenticated",
        "please authenticate",
        "must be logged in",
        "must log in",
        "please log in",
        "please login",
        "login required",
        "login is required",
        "must sign in",
        "please sign in",
        "sign in required",
        "sign in to continue",
    ];
    // Wanted and lacking together say it.
    const WANTED: [&str; 16] = [
        "api key",
        "apikey",
        "access token",
        "bearer token",
        "bearer",
        "auth token",
        "authentication token",
        "authorization token",
        "oauth token",
        "authorization header",
        "jwt",
        "credentials",
        "credential",
        "password",
        "subscription key",
        "api token",
    ];
    const LACKING: [&str; 14] = [
        "missing",
        "required",
        "requires",
        "require",
        "invalid",
        "provide",
        "provided",
        "no",
        "not found",
        "absent",
        "needed",
        "need",
        "must",
        "expected",
    ];
    // A token is many things; only alone it is one to get in with.
    const TOKEN: [&str; 8] = [
        "token required",
        "token is required",
        "token missing",
        "token is missing",
        "missing token",
        "requires a token",
        "no token provided",
        "token not provided",
    ];
    const OTHER_TOKENS: [&str; 12] = [
        "session",
        "cursor",
        "progress",
        "csrf",
        "xsrf",
        "page",
        "continuation",
        "position",
        "parse",
        "syntax",
        "json",
        "unexpected",
    ];
    const BARE: [&str; 5] = [" forbidden ", " access denied ", " permission denied ", " 401 ", " 403 forbidden "];
    let words = message.to_lowercase();
    let words: Vec<&str> = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let said = format!(" {} ", words.join(" "));
    let says = |phrase: &&str| said.contains(&format!(" {phrase} "));
    // From where and as whom one asks are two questions.
    if says(&"origin") || says(&"host") {
        return false;
    }
    SURE.iter().any(&says)
        || BARE.contains(&said.as_str())
        || (WANTED.iter().any(&says) && LACKING.iter().any(&says))
        || (TOKEN.iter().any(&says) && !OTHER_TOKENS.iter().any(says))
}

/// Whether a session shows that nobody could be reached: every handshake failed on the wire.
pub fn wire_failure(conversation: &Conversation<'_>) -> Option<WireError> {
    let mut handshakes = conversation.handshakes().peekable();
    let first = handshakes.peek()?.exchange.error?;
    handshakes.all(|turn| turn.response().is_none()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_credentials_says_so_in_many_words() {
        for message in [
            "Missing Authorization header",
            "Authorization header is required",
            "Missing X-API-Key header",
            "Missing API key",
            "API_KEY is required",
            "apiKey required",
            "Please provide an API key",
            "No API key provided",
            "Invalid API key",
            "Authentication is required",
            "Authentication required",
            "Authentication failed",
            "Login required",
            "Please sign in",
            "Please sign-in to continue.",
            "You must log in first",
            "You must authenticate first",
            "Not logged in",
            "Token required",
            "Missing token",
            "No token provided",
            "Missing bearer token",
            "Unauthorized",
            "unauthorized",
            "Unauthorized: missing API key",
            "Forbidden: API key required",
            "401 Unauthorized",
            "Not authorized",
            "Invalid credentials",
            "Missing or invalid JWT",
            "Forbidden",
            "Access denied",
        ] {
            assert!(asks_for_credentials(message), "{message}");
        }
    }

    #[test]
    fn who_uses_the_words_in_another_sense_does_not() {
        for message in [
            "",
            "no",
            "Bad Request",
            "Invalid params: unknown token '}' at position 4",
            "Unexpected token < in JSON at position 0",
            "Missing token ')' in expression, parse error",
            "Missing session token",
            "Invalid cursor token",
            "Progress token required",
            "Missing session id",
            "Session required",
            "Session not found",
            "Missing required query parameter: tenant",
            "Missing header",
            "Unauthorized origin",
            "Invalid Host header: unauthorized host",
            "Access denied: file is outside of the root",
            "Method forbidden in this state",
            "The casino is closed",
            "Author is required",
            "Authority missing",
            "Tokenizer missing",
            "Method not found",
            "Internal error",
            "Server already initialized",
        ] {
            assert!(!asks_for_credentials(message), "{message}");
        }
    }

    fn conversation_of(exchanges: &str, look: impl Fn(&Conversation<'_>)) {
        let session = serde_json::from_str(&format!("{{\"exchanges\": [{exchanges}]}}")).expect("it is a session");
        look(&Conversation::read(&session, None, None, None));
    }

    #[test]
    fn a_post_that_became_a_get_is_astray_and_one_that_stayed_is_not() {
        let hop = |method: &str, url: &str, response: &str| {
            format!(
                r#"{{"step": "initialize", "request": {{"method": "{method}", "url": "https://t.example{url}", "body": {{"jsonrpc": "2.0", "id": 1, "method": "initialize"}}}}, "response": {response}}}"#
            )
        };
        let to = |status: u16| format!(r#"{{"status": {status}, "headers": {{"location": "/mcp/"}}}}"#);
        let page = r#"{"status": 200, "headers": {"content-type": "text/html"}, "raw": "<p>"}"#;
        conversation_of(&[hop("POST", "/mcp", &to(301)), hop("GET", "/mcp/", page)].join(","), |astray| {
            assert_eq!(astray.turns[1].unsaid(), Some(NotEvaluated::NoDocument));
            assert_eq!(astray.addresses(), ["https://t.example/mcp"]);
        });
        conversation_of(&[hop("POST", "/mcp", &to(307)), hop("POST", "/mcp/", page)].join(","), |led| {
            assert_eq!(led.turns[1].unsaid(), None);
            assert_eq!(led.addresses(), ["https://t.example/mcp", "https://t.example/mcp/"]);
        });
    }

    #[test]
    fn a_session_that_was_forgotten_is_lost_and_a_method_that_is_not_there_is_not() {
        let asked = |step: &str, response: &str| {
            format!(
                r#"{{"step": "{step}", "request": {{"method": "POST", "url": "https://t.example/mcp", "headers": {{"mcp-session-id": "s"}}, "body": {{"jsonrpc": "2.0", "id": 1, "method": "ping"}}}}, "response": {response}}}"#
            )
        };
        let error = |code: i64, message: &str| {
            format!(
                r#"{{"status": 404, "body": {{"jsonrpc": "2.0", "id": 1, "error": {{"code": {code}, "message": "{message}"}}}}}}"#
            )
        };
        let served = r#"{"status": 200, "body": {"jsonrpc": "2.0", "id": 1, "result": {}}}"#;
        let lost = |first: String, then: &str| {
            let mut is_lost = false;
            let session = format!("{{\"exchanges\": [{first}, {}]}}", asked("tools/list", then));
            let session = serde_json::from_str(&session).expect("it is a session");
            is_lost |= Conversation::read(&session, None, None, None).turns[0].is_lost;
            is_lost
        };
        assert!(lost(asked("ping", &error(-32001, "Session not found")), served), "it says so");
        assert!(lost(asked("ping", &error(-32000, "no")), r#"{"status": 404}"#), "nothing works any more");
        assert!(!lost(asked("ping", &error(-32000, "no")), served), "the rest works");
        assert!(!lost(asked("ping", &error(-32601, "no")), r#"{"status": 404}"#), "there is no such method");
        for step in ["session-unknown", "stray-session-id", "session-terminated"] {
            assert!(!lost(asked(step, &error(-32001, "Session not found")), served), "{step}: it was asked for");
        }
    }
}
