//! What was said on the wire, as plain data: the crawler fills it, rules read it, a bug report is one of these in a file.
//!
//! The JSON form is the one of the vectors: header names in lower case, bodies as text where they are text, exchanges in
//! the order they were made, redirects hop by hop.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use url::Url;

use crate::text::MediaType;

crate::words! {
    /// What was asked for in a conversation.
    pub enum Surface {
        /// An agent card.
        AgentCard = "agent-card",
        /// An MCP server card, or the catalogue that names one.
        ServerCard = "server-card",
        /// Metadata at an OAuth or OpenID address.
        OauthMetadata = "oauth-metadata",
        /// A registry's list.
        Registry = "registry",
        /// An MCP endpoint.
        Mcp = "mcp",
        /// A document whose kind is to be found out.
        Any = "any",
    }
}

/// Headers that are secrets between the two of them.
const SECRETS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "set-cookie", "mcp-session-id"];

impl Session {
    /// The same with credentials and session ids as their length and SHA-256: what is kept and shown.
    #[must_use]
    pub fn masked(mut self) -> Session {
        let first = self.first_number();
        for exchange in &mut self.exchanges {
            let answer = exchange.response.as_mut().map(|response| &mut response.headers);
            for headers in [Some(&mut exchange.request.headers), answer].into_iter().flatten() {
                for name in SECRETS {
                    if let Some(value) = headers.get_mut(name).filter(|value| !value.starts_with("***")) {
                        *value = if name == SESSION_ID { masked_id(value, first) } else { masked(value) };
                    }
                }
            }
        }
        self
    }

    /// The first session id that is a number: how far others are from it shows whether they count up.
    fn first_number(&self) -> Option<u128> {
        let responses = self.exchanges.iter().filter_map(|exchange| exchange.response.as_ref());
        responses.filter_map(|response| response.header(SESSION_ID)?.parse().ok()).next()
    }

    /// What the conversation was about, by what was asked first.
    #[must_use]
    pub fn surface(&self) -> Surface {
        let first = self.exchanges.iter().find(|exchange| exchange.step != Some(Step::Robots));
        match first.map(|exchange| (exchange.step, exchange.request.method.as_str())) {
            Some((Some(Step::Card | Step::CardPlain | Step::CardLegacy), _)) => Surface::AgentCard,
            Some((Some(Step::RegistryPage), _)) => Surface::Registry,
            _ if self.stdio.is_some() => Surface::Mcp,
            Some((Some(Step::Discover | Step::Initialize | Step::HttpSse), _) | (None, "POST")) => Surface::Mcp,
            _ => Surface::Any,
        }
    }
}

fn masked(value: &str) -> String {
    let hash = Sha256::digest(value.as_bytes());
    let hex = crate::canonical::hex(&hash);
    format!("***({} sha256:{hex})", value.len())
}

/// The header that names a session.
const SESSION_ID: &str = "mcp-session-id";
/// How far two numbers may be apart for the record to say how far: nobody guesses the one from that who does not know the
/// other.
const NEAR: i128 = 10_000;

/// A session id as what rules say of it needs: its length, what it is made of, and of a number how far it is from the
/// first of the session. `***(19 digits +1 sha256:…)`.
fn masked_id(value: &str, first: Option<u128>) -> String {
    let hex = crate::canonical::hex(&Sha256::digest(value.as_bytes()));
    let apart = first.zip(value.parse::<u128>().ok()).and_then(|(first, number)| {
        let apart = i128::try_from(number).ok()? - i128::try_from(first).ok()?;
        (apart.abs() < NEAR).then(|| format!(" {apart:+}"))
    });
    let parts = [value.len().to_string(), id_classes(value)].join(" ");
    format!("***({parts}{} sha256:{hex})", apart.unwrap_or_default())
}

/// What an id is made of, class by class.
fn id_classes(id: &str) -> String {
    type Class = (&'static str, fn(char) -> bool);
    const CLASSES: [Class; 6] = [
        ("digits", |c| c.is_ascii_digit()),
        ("letters", |c| c.is_ascii_alphabetic()),
        ("marks", |c| c.is_ascii_punctuation()),
        ("spaces", |c| c == ' '),
        ("controls", |c| c.is_ascii_control()),
        ("beyond-ascii", |c| !c.is_ascii()),
    ];
    let held: Vec<&str> = CLASSES.iter().filter(|(_, is_in)| id.chars().any(is_in)).map(|(name, _)| *name).collect();
    if held.is_empty() { "nothing".to_owned() } else { held.join("+") }
}

/// A session id as the record keeps it, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedId {
    /// How many bytes it has.
    pub length: usize,
    /// Whether it is visible ASCII; `None` in a record that does not say what it is made of.
    pub is_visible: Option<bool>,
    /// Of a number, how far it is from the first of the session.
    pub apart: Option<i128>,
}

impl MaskedId {
    /// Reads an id; `None` for one that is not masked.
    pub fn parse(id: &str) -> Option<MaskedId> {
        let words: Vec<&str> = id.strip_prefix("***(")?.trim_end_matches(')').split(' ').collect();
        let length = words.first()?.parse().ok()?;
        let classes = words.get(1).filter(|word| !word.starts_with("sha256:"));
        let unseen = ["spaces", "controls", "beyond-ascii", "nothing"];
        Some(MaskedId {
            length,
            is_visible: classes.map(|classes| !classes.split('+').any(|class| unseen.contains(&class))),
            apart: words.get(2).and_then(|word| word.parse().ok()),
        })
    }
}

/// Everything said to observe one surface once, redirects and second tries included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// In the order they were made.
    pub exchanges: Vec<Exchange>,
    /// What went over the standard streams of a command; `None` for whatever is asked over a network.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stdio: Option<Stdio>,
}

/// A command that was talked to over its standard streams. Its requests and their answers stand among the exchanges (method
/// `STDIO`, status 200 where an answer came); here stands every line, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stdio {
    /// The command as configured, with its arguments.
    pub command: Vec<String>,
    /// In the order they were written and read. A command that was started twice has the lines of both runs.
    pub lines: Vec<StdioLine>,
    /// How each run of it ended, in order: two where it died before it answered and was started again.
    pub ends: Vec<StdioEnd>,
}

/// One line that was written or read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StdioLine {
    /// When it was complete, in milliseconds since the (first) run began.
    pub at_ms: u64,
    /// Over which stream.
    pub stream: StdioStream,
    /// The line as text without its end; `None` when it is no UTF-8 (then `raw_base64` holds it).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<String>,
    /// The line where it is no text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw_base64: Option<String>,
    /// Why it was written; `None` for what was read, and for what this release does not know.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "known_step")]
    pub step: Option<Step>,
    /// No newline came behind it: the stream ended, or 2 s passed in which nothing followed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_unterminated: bool,
    /// It was longer than is read of one line; this is its beginning.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_cut: bool,
}

crate::words! {
    /// A standard stream.
    pub enum StdioStream {
        /// What we wrote.
        Stdin = "stdin",
        /// What the server said.
        Stdout = "stdout",
        /// What it told its operator: evidence, and never judged.
        Stderr = "stderr",
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StdioEnd {
    /// When, in milliseconds since the (first) run began.
    pub at_ms: u64,
    /// In which way.
    pub how: StdioEnding,
    /// What it exited with, or the reason why it could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub what: Option<String>,
    /// The last thing that had been written when it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "known_step")]
    pub after: Option<Step>,
}

crate::words! {
    /// In which way a command ended.
    pub enum StdioEnding {
        /// It could not be started.
        NotStarted = "not-started",
        /// By itself, while it was still spoken to.
        Exited = "exited",
        /// By itself, within 5 s after its input was closed.
        Closed = "closed",
        /// On SIGTERM, 5 s after its input was closed.
        Terminated = "terminated",
        /// On SIGKILL: SIGTERM was not enough.
        Killed = "killed",
        /// Killed for writing more than is read, or at the deadline.
        Overrun = "overrun",
    }
}

impl From<Vec<Exchange>> for Session {
    fn from(exchanges: Vec<Exchange>) -> Session {
        Session { exchanges, stdio: None }
    }
}

impl Stdio {
    /// Leaves of the lines what a record keeps of them: so many bytes of one line and of all of them, the first ones.
    pub fn shorten(&mut self, most_of_one: usize, most_of_all: usize) {
        let mut left = most_of_all;
        for line in &mut self.lines {
            line.shorten(most_of_one.min(left));
            left -= line.raw.as_ref().or(line.raw_base64.as_ref()).map_or(0, String::len);
        }
    }
}

impl StdioLine {
    fn shorten(&mut self, most: usize) {
        if let Some(raw) = self.raw.as_mut().filter(|raw| raw.len() > most) {
            raw.truncate(raw.floor_char_boundary(most));
            self.is_cut = true;
        }
        if let Some(encoded) = self.raw_base64.as_mut().filter(|encoded| encoded.len() > most) {
            encoded.truncate(most / 4 * 4);
            self.is_cut = true;
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match (&self.raw, &self.raw_base64) {
            (Some(text), _) => Cow::Borrowed(text.as_bytes()),
            (None, Some(text)) => Cow::Owned(STANDARD.decode(text).unwrap_or_default()),
            (None, None) => Cow::Borrowed(&[]),
        }
    }
}

crate::words! {
    /// What an exchange was made for. Rules ask for exchanges by step.
    pub enum Step {
        /// `/.well-known/agent-card.json` (or the card's own address) asked with `A2A-Version: 1.0`.
        Card = "card",
        /// The same address asked without the version header.
        CardPlain = "card-plain",
        /// `/.well-known/agent.json`, the path before A2A 0.3.
        CardLegacy = "card-legacy",
        /// `robots.txt` of the host.
        Robots = "robots",
        /// One page of a registry's list.
        RegistryPage = "registry-page",
        /// The card once more as [`Step::Card`] or [`Step::CardPlain`] asked for it: the two answers differ, or the ETag
        /// that was sent back was not heeded.
        CardAgain = "card-again",
        /// The card asked for from a page of another site.
        CardOrigin = "card-origin",
        /// The key set that a card's signature names.
        Jku = "jku",
        /// Metadata whose address a card names (`openIdConnectUrl`, `oauth2MetadataUrl`).
        NamedMetadata = "named-metadata",
        /// A page that a card links to.
        Link = "link",
        /// A2A probe: an interface is asked for a task that does not exist; `A2A-Version` says in which version. Nothing
        /// is sent that could start work.
        GetTask = "GetTask",
        /// A2A probe: the base address of an HTTP+JSON interface whose task path is not there.
        InterfaceBase = "interface-base",
        /// A2A probe: the extended card, without credentials.
        GetExtendedAgentCard = "GetExtendedAgentCard",
        /// Any other single document, asked for by its address.
        Document = "document",
        /// MCP: `server/discover`, the first request of the revision without sessions.
        Discover = "discover",
        /// MCP: `initialize`, the first request of the revisions with a handshake.
        Initialize = "initialize",
        /// MCP: `notifications/initialized`.
        Initialized = "initialized",
        /// MCP: `ping` in a session.
        Ping = "ping",
        /// MCP: one page of the tools, as any client asks for them.
        ToolsList = "tools/list",
        /// MCP: one page of the resources.
        ResourcesList = "resources/list",
        /// MCP: one page of the resource templates.
        TemplatesList = "resources/templates/list",
        /// MCP: one page of the prompts.
        PromptsList = "prompts/list",
        /// MCP: the tools again, from the start, on a new connection.
        FreshConnection = "fresh-connection",
        /// MCP: the tools a third time, because the first two lists differ.
        ThirdList = "third-list",
        /// MCP: GET of the endpoint, asking for a stream.
        Get = "get",
        /// MCP: the stream of the transport before 2025-03-26, and what is posted to the address it names.
        HttpSse = "http-sse",
        /// MCP: DELETE of an endpoint without sessions.
        Delete = "delete",
        /// MCP: `subscriptions/listen` with the types that were declared.
        SubscriptionsListen = "subscriptions/listen",
        /// MCP probe: `initialize` again for exactly the revision that was answered.
        NegotiateSame = "negotiate-same",
        /// MCP probe: `initialize` once more over the older transport, for the newest revision with a handshake.
        NegotiateNewest = "negotiate-newest",
        /// MCP probe: `initialize` for a revision that never was.
        NegotiateUnknown = "negotiate-unknown",
        /// MCP probe: `server/discover` for a revision that never was.
        BadVersion = "bad-version",
        /// MCP probe: header and `_meta` name two revisions.
        HeaderVersionMismatch = "header-version-mismatch",
        /// MCP probe: no `MCP-Protocol-Version`.
        HeaderVersionMissing = "header-version-missing",
        /// MCP probe: no `Mcp-Method`.
        HeaderMethodMissing = "header-method-missing",
        /// MCP probe: `Mcp-Method` names another method than the body.
        HeaderMethodMismatch = "header-method-mismatch",
        /// MCP probe: header names in lower case.
        HeaderCase = "header-case",
        /// MCP probe: no `_meta`.
        NoMeta = "no-meta",
        /// MCP probe: `_meta` without the client's capabilities.
        NoClientCapabilities = "no-client-capabilities",
        /// MCP probe: `_meta` without the client's name, which it may leave out.
        NoClientInfo = "no-client-info",
        /// MCP probe: a key in `_meta` that nobody knows.
        ExtraMeta = "extra-meta",
        /// MCP probe: a session id in a revision without sessions.
        StraySessionId = "stray-session-id",
        /// MCP probe: a request whose id is null.
        NullId = "null-id",
        /// MCP probe: a made-up method.
        UnknownMethod = "unknown-method",
        /// MCP probe: `ping` in the revision that dropped it.
        RemovedMethod = "removed-method",
        /// MCP probe: a body that breaks off.
        MalformedJson = "malformed-json",
        /// MCP probe: a message without a method.
        InvalidRequest = "invalid-request",
        /// MCP probe: several messages in one body.
        Batch = "batch",
        /// MCP probe: a handshake labelled as plain text.
        TextPlain = "text-plain",
        /// MCP probe: anything is accepted.
        AcceptAny = "accept-any",
        /// MCP probe: a handshake from a page of another site.
        Origin = "origin",
        /// MCP probe: a list from a made-up cursor.
        BadCursor = "bad-cursor",
        /// MCP probe: the second page of a list once more.
        CursorAgain = "cursor-again",
        /// MCP probe: a list that was not declared.
        Undeclared = "undeclared",
        /// MCP probe: one of three fresh sessions.
        SessionSample = "session-sample",
        /// MCP probe: `ping` without the session's id.
        SessionMissing = "session-missing",
        /// MCP probe: `ping` with a made-up session id.
        SessionUnknown = "session-unknown",
        /// MCP probe: `ping` with a revision in its header that never was.
        LegacyBadVersionHeader = "legacy-bad-version-header",
        /// MCP probe: `ping` without `MCP-Protocol-Version`.
        LegacyNoVersionHeader = "legacy-no-version-header",
        /// MCP probe: a list without any handshake.
        NoHandshake = "no-handshake",
        /// MCP: DELETE of a session that was opened.
        SessionDelete = "session-delete",
        /// MCP probe: `ping` with the id of a session that was ended.
        SessionTerminated = "session-terminated",
        /// Protected-resource metadata (RFC 9728).
        Prm = "prm",
        /// Authorization-server metadata (RFC 8414) or an OpenID configuration.
        AuthorizationServer = "as",
        /// A server card at one of its places.
        ServerCard = "server-card",
        /// The catalogue of an origin.
        AiCatalog = "ai-catalog",
        /// stdio: one request with text that is not ASCII.
        NonAscii = "non-ascii",
        /// Own targets: a request whose `Mcp-Name` differs from its body.
        HeaderNameMismatch = "header-name-mismatch",
        /// Own targets: a tool that the operator named.
        ToolsCall = "tools/call",
        /// Own targets: a tool that does not exist.
        ToolsCallUnknown = "tools/call unknown",
        /// Own targets: a resource that was listed.
        ResourcesRead = "resources/read",
        /// Own targets: a resource that does not exist.
        ResourcesReadUnknown = "resources/read unknown",
        /// Own targets: a prompt that was listed and needs no arguments.
        PromptsGet = "prompts/get",
        /// Own targets: a completion.
        Completion = "completion",
        /// Own targets: the same completion with `context.arguments`.
        CompletionContext = "completion context",
        /// Own targets: `logging/setLevel`.
        LoggingSetLevel = "logging/setLevel",
        /// Own targets: the server on another address of this machine.
        Bind = "bind",
        /// Own targets: a made-up token.
        BadToken = "bad-token",
        /// Own targets: the operator's token in the query.
        TokenInQuery = "token-in-query",
        /// Own targets: a session that was opened with a token, without it.
        SessionWithoutToken = "session-without-token",
        /// Own targets: the operator's token for another resource of the same issuer.
        OtherAudience = "other-audience",
        /// Own targets: a token of the operator's with too little scope.
        LowScope = "low-scope",
        /// Own targets: a session that was opened with one token, with that of another user.
        SessionOtherUser = "session-other-user",
        /// Own targets: one of two streams of one session, both open at the same time.
        TwoStreams = "two-streams",
        /// Own targets: the call that makes the operator's hook change what the server offers.
        ChangeHook = "change-hook",
        /// Own targets: a stream that was open while the hook was called, and for 10 s after.
        Change = "change",
        /// Own targets: a list once more, from its start, after the hook was called.
        ChangedList = "changed-list",
        /// Own targets: `resources/subscribe`.
        Subscribe = "resources/subscribe",
        /// Own targets: `resources/read` of the subscribed resource, after the hook was called.
        ChangedResource = "changed-resource",
        /// Own targets: `tools/call` of the operator's slow fixture tool.
        SlowCall = "slow-call",
        /// Own targets: `notifications/cancelled` for the slow call.
        Cancel = "cancel",
        /// The repository that a listing names.
        Repository = "repository",
        /// What a package's own registry says of it.
        Package = "package",
    }
}

impl Step {
    /// Whether it asks for something else that an agent card leads to: it says nothing about the way to the card.
    #[must_use]
    pub fn is_beside(self) -> bool {
        matches!(
            self,
            Step::Jku
                | Step::NamedMetadata
                | Step::Link
                | Step::GetTask
                | Step::InterfaceBase
                | Step::GetExtendedAgentCard
                | Step::CardOrigin
        )
    }
}

/// One request and what came back: an answer, or the error in its place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Why it was made; a step that this release does not know is read as none.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "known_step")]
    pub step: Option<Step>,
    /// What was sent.
    pub request: Request,
    /// What came back; `None` when `error` says why nothing did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Response>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<WireError>,
    /// When the request left, in milliseconds since 1970 UTC; 0 where nobody noted it.
    #[serde(default)]
    pub at_ms: i64,
    /// From the first byte sent to the last byte read, in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// From the first byte sent to the end of the answer's headers, in milliseconds; `None` where nobody noted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head_ms: Option<u64>,
    /// Who answered; `None` where nobody did or nobody noted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub peer: Option<Peer>,
}

/// Who answered a request, as far as the connection shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The address that was connected to, with its port.
    pub address: String,
    /// The version of HTTP that was spoken, such as `HTTP/1.1`.
    pub http: String,
    /// The version of TLS, such as `TLSv1.3`; `None` without TLS. The cipher is not told by the HTTP library.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<String>,
    /// The certificate it showed; `None` without TLS.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub certificate: Option<Certificate>,
}

/// The certificate of a server, as far as people ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Who issued it, such as `CN=R11, O=Let's Encrypt, C=US`.
    pub issuer: String,
    /// From when it holds, Unix seconds.
    pub not_before_s: i64,
    /// Until when it holds, Unix seconds.
    pub not_after_s: i64,
    /// SHA-256 of it, in hexadecimal digits.
    pub sha256: String,
}

/// A request as sent, credentials masked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "RequestJson")]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// The absolute address.
    pub url: String,
    /// Lower-case names; a value that was a secret reads `***`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body as text; `None` when there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<String>,
}

/// An answer as received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "ResponseJson")]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Lower-case names; several fields of one name are joined by `, `.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The decoded body as text; `None` when it is no UTF-8 (then `raw_base64` holds it).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<String>,
    /// The decoded body where it is no text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw_base64: Option<String>,
    /// Bytes that crossed the wire, before content decoding.
    #[serde(default)]
    pub wire_bytes: u64,
    /// Why the body is not whole, when it is not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cut: Option<Cut>,
    /// When an event stream spoke and how it ended; `None` for other bodies, and where nobody noted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stream: Option<Stream>,
}

/// An event stream over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// When each event was complete, in milliseconds from sending the request.
    #[serde(default)]
    pub events_ms: Vec<u64>,
    /// How it ended.
    pub end: StreamEnd,
}

/// How an event stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamEnd {
    /// The server closed it.
    Closed,
    /// We did, having heard what we asked for and waited for the end as long as we wait.
    Left,
    /// We did: what we asked for did not come in time.
    Silent,
    /// We did: it held more than it may.
    Overrun,
}

impl Exchange {
    /// The answer, when its status says that the thing asked for is inside (2xx).
    pub fn success(&self) -> Option<&Response> {
        self.response.as_ref().filter(|response| (200..300).contains(&response.status))
    }

    /// Where the answer leads, as an absolute URL, when it is a redirect.
    pub fn redirect(&self) -> Option<Url> {
        let response = self.response.as_ref()?;
        let leads_on = matches!(response.status, 301 | 302 | 303 | 307 | 308);
        let location = response.header("location").filter(|_| leads_on)?;
        Url::parse(&self.request.url).ok()?.join(location).ok()
    }
}

impl Response {
    /// A header's value; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Whether it carries the mark that delivery networks put on a page meant to stop machines: what lies behind it was
    /// not asked.
    pub fn is_bot_wall(&self) -> bool {
        const WALLS: [(&str, &[&str]); 3] = [
            ("cf-mitigated", &["challenge"]),
            ("x-vercel-mitigated", &["challenge", "deny"]),
            ("x-amzn-waf-action", &["challenge", "captcha"]),
        ];
        WALLS.iter().any(|(name, values)| self.header(name).is_some_and(|value| values.contains(&value.trim())))
    }

    /// The media type it claims.
    pub fn media_type(&self) -> Option<MediaType<'_>> {
        self.header("content-type").and_then(MediaType::parse)
    }

    /// Leaves of the body what a record keeps of it, and says so when that is not all.
    pub fn shorten(&mut self, most: usize) {
        if let Some(raw) = self.raw.as_mut().filter(|raw| raw.len() > most) {
            raw.truncate(raw.floor_char_boundary(most));
            self.cut = Some(Cut::Record);
        }
        if let Some(encoded) = self.raw_base64.as_mut().filter(|encoded| encoded.len() > most) {
            // Whole groups of four letters, so that what is left can be read.
            encoded.truncate(most / 4 * 4);
            self.cut = Some(Cut::Record);
        }
    }

    /// The decoded body.
    pub fn body(&self) -> Cow<'_, [u8]> {
        match (&self.raw, &self.raw_base64) {
            (Some(text), _) => Cow::Borrowed(text.as_bytes()),
            (None, Some(text)) => Cow::Owned(STANDARD.decode(text).unwrap_or_default()),
            (None, None) => Cow::Borrowed(&[]),
        }
    }
}

/// A request as JSON writes it: its body may stand there as a value.
#[derive(Deserialize)]
struct RequestJson {
    method: String,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    raw: Option<String>,
    body: Option<Box<RawValue>>,
}

impl From<RequestJson> for Request {
    fn from(json: RequestJson) -> Request {
        let RequestJson { method, url, headers, raw, body } = json;
        Request { method, url, headers, raw: raw.or_else(|| body.map(|body| body.get().to_owned())) }
    }
}

/// An answer as JSON writes it: its body may stand there as a value.
#[derive(Deserialize)]
struct ResponseJson {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    raw: Option<String>,
    raw_base64: Option<String>,
    body: Option<Box<RawValue>>,
    #[serde(default)]
    wire_bytes: u64,
    cut: Option<Cut>,
    stream: Option<Stream>,
}

impl From<ResponseJson> for Response {
    fn from(json: ResponseJson) -> Response {
        let ResponseJson { status, headers, raw, raw_base64, body, wire_bytes, cut, stream } = json;
        let raw = raw.or_else(|| body.map(|body| body.get().to_owned()));
        Response { status, headers, raw, raw_base64, wire_bytes, cut, stream }
    }
}

/// Recordings of other releases may name steps of their own.
fn known_step<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Step>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    Ok(word.and_then(|word| Step::deserialize(IntoDeserializer::<D::Error>::into_deserializer(word.as_str())).ok()))
}

/// Why a body ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The limit for decoded bytes of this kind was reached (`common/too-large`).
    Limit,
    /// The connection ended early, or `Content-Length` promised more.
    Truncated,
    /// The time for the whole answer ran out.
    Timeout,
    /// The content coding could not be undone.
    BadEncoding,
    /// It was whole when it came; the record keeps only its beginning.
    Record,
}

/// Why there was no answer. The spelling is that of the vectors; dashboard.md §3 maps them to reach reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireError {
    /// The resolver failed (SERVFAIL, no answer).
    Dns,
    /// The name does not exist.
    DnsNxdomain,
    /// The resolver did not answer in time.
    DnsTimeout,
    /// No name server of ours could be asked: our fault, not the target's.
    DnsUnavailable,
    /// Nobody listens.
    #[serde(alias = "connect-refused")]
    Refused,
    /// This machine has no way to that network (IPv6 without IPv6, cable unplugged): our fault, not the target's.
    NoRoute,
    /// No connection in time.
    ConnectTimeout,
    /// Connected, but no answer in time.
    Timeout,
    /// The connection broke.
    Reset,
    /// TLS could not be agreed.
    Tls,
    /// The certificate has ended.
    TlsCertificateExpired,
    /// The certificate is for another name.
    TlsCertificateName,
    /// The certificate leads to no known root.
    TlsCertificateUnknownIssuer,
    /// Not called: the address is not one we may reach.
    AddressGuard,
    /// Not called: the address itself cannot be used (no host, another scheme).
    BadUrl,
    /// Not called: robots.txt asks us not to.
    Robots,
    /// Not called: whoever stands behind it asked to be left alone.
    OptOut,
    /// More redirects than allowed.
    RedirectLimit,
    /// Not HTTP, or broken HTTP.
    Protocol,
}

impl WireError {
    /// Whether we did not ask, or could not: it says nothing about whoever was to be asked.
    #[must_use]
    pub fn is_ours(self) -> bool {
        match self {
            WireError::AddressGuard
            | WireError::BadUrl
            | WireError::Robots
            | WireError::OptOut
            | WireError::NoRoute
            | WireError::DnsUnavailable => true,
            WireError::Dns
            | WireError::DnsNxdomain
            | WireError::DnsTimeout
            | WireError::Refused
            | WireError::ConnectTimeout
            | WireError::Timeout
            | WireError::Reset
            | WireError::Tls
            | WireError::TlsCertificateExpired
            | WireError::TlsCertificateName
            | WireError::TlsCertificateUnknownIssuer
            | WireError::RedirectLimit
            | WireError::Protocol => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(text: &str) -> Exchange {
        serde_json::from_str(text).expect("it is an exchange")
    }

    #[test]
    fn a_body_may_stand_as_a_value_as_text_or_as_bytes() {
        let body = |response: &str| {
            let text = format!(r#"{{"request": {{"method": "GET", "url": "u"}}, "response": {response}}}"#);
            exchange(&text).response.expect("it answered").body().into_owned()
        };
        assert_eq!(body(r#"{"status": 200, "body": {"a": [1.50]}}"#), br#"{"a": [1.50]}"#);
        assert_eq!(body(r#"{"status": 200, "raw": "<p>"}"#), b"<p>");
        assert_eq!(body(r#"{"status": 200, "raw_base64": "//4="}"#), b"\xff\xfe");
        assert_eq!(body(r#"{"status": 204}"#), b"");
    }

    #[test]
    fn secrets_are_kept_as_their_length_and_hash() {
        let text = r#"{"request": {"method": "POST", "url": "u", "headers": {"mcp-session-id": "abc", "authorization": "***"}}, "response": {"status": 200, "headers": {"mcp-session-id": "abc", "etag": "1"}}}"#;
        let masked = Session::from(vec![exchange(text)]).masked();
        let (request, response) =
            (&masked.exchanges[0].request, masked.exchanges[0].response.as_ref().expect("answered"));
        let id = "***(3 letters sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad)";
        assert_eq!(
            (request.headers["mcp-session-id"].as_str(), request.headers["authorization"].as_str()),
            (id, "***")
        );
        assert_eq!((response.headers["mcp-session-id"].as_str(), response.headers["etag"].as_str()), (id, "1"));
        assert_eq!(masked.clone().masked(), masked);
    }

    #[test]
    fn a_session_is_written_as_it_is_read() {
        let text = r#"{"step": "card", "request": {"method": "POST", "url": "https://x.example", "body": {"id": 1}}, "error": "connect-refused"}"#;
        let read = exchange(text);
        assert_eq!((read.step, read.error), (Some(Step::Card), Some(WireError::Refused)));
        assert_eq!(exchange(&serde_json::to_string(&read).expect("it is plain data")), read);
        let later = r#"{"step": "a-later-step", "request": {"method": "GET", "url": "u"}, "error": "reset"}"#;
        assert_eq!(exchange(later).step, None);
    }

    #[test]
    fn a_command_and_a_certificate_are_kept_with_what_was_said() {
        let text = r#"{"exchanges": [{"request": {"method": "STDIO", "url": "stdio:tides"}, "at_ms": 0, "took_ms": 3, "head_ms": 2, "peer": {"address": "192.0.2.7:443", "http": "HTTP/2.0", "certificate": {"issuer": "CN=R11", "not_before_s": 1, "not_after_s": 2, "sha256": "00"}}}], "stdio": {"command": ["tides", "--stdio"], "lines": [{"at_ms": 1, "stream": "stdin", "raw": "{}", "step": "initialize"}, {"at_ms": 2, "stream": "stdout", "raw_base64": "//4=", "is_unterminated": true}], "ends": [{"at_ms": 9, "how": "exited", "what": "exit status 1", "after": "initialize"}]}}"#;
        let session: Session = serde_json::from_str(text).expect("it is a session");
        let stdio = session.stdio.as_ref().expect("it is there");
        assert_eq!(stdio.lines[1].bytes().as_ref(), [0xff, 0xfe]);
        assert_eq!(stdio.ends[0].after, Some(Step::Initialize));
        let written = serde_json::to_string(&session).expect("it is plain data");
        assert_eq!(serde_json::from_str::<Session>(&written).expect("it is a session"), session);
    }

    #[test]
    fn a_redirect_leads_to_an_absolute_address() {
        let leads = |status: u16, location: &str| {
            let text = format!(
                r#"{{"request": {{"method": "GET", "url": "https://x.example/a/b"}}, "response": {{"status": {status}, "headers": {{"location": "{location}"}}}}}}"#
            );
            exchange(&text).redirect().map(|url| url.to_string())
        };
        assert_eq!(leads(302, "../c").as_deref(), Some("https://x.example/c"));
        assert_eq!(leads(308, "//y.example").as_deref(), Some("https://y.example/"));
        assert_eq!(leads(200, "/c"), None);
        assert_eq!(leads(302, "http://["), None);
    }
}
