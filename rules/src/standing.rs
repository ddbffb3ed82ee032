//! What a conversation shows about an endpoint as a whole: who gets in, what it speaks, and how sure that is.
//!
//! Detection and conformance are two answers: what is confirmed may have errors, and what is refused is no failure.

use serde::Serialize;
use serde_json::{Value, json};

use crate::authorization::{AsPlace, Chain, json_of, member};
use crate::conversation::{Conversation, Era, MODERN, Turn, wire_failure};
use crate::document::{Node, Type};
use crate::kind::Kind;
use crate::mcp::endpoint::leads_to_login;
use crate::report::NotEvaluated;
use crate::session::{Session, Step};

crate::words! {
    /// Who gets in.
    pub enum Access {
        /// Everybody.
        Open = "open",
        /// Whoever has a token.
        AuthRequired = "auth_required",
        /// Everybody, but not to every list.
        AuthPartial = "auth_partial",
        /// Whoever pays.
        PaymentRequired = "payment_required",
        /// Nobody speaks MCP there.
        NotMcp = "not_mcp",
        /// Nobody answers.
        Unreachable = "unreachable",
        /// The server asked to come back later.
        RateLimited = "rate_limited",
    }
}

crate::words! {
    /// A protocol of the chain that is looked for.
    pub enum Protocol {
        /// The revision without sessions.
        McpModern = "mcp-modern",
        /// Streamable HTTP with a handshake.
        McpLegacy = "mcp-legacy",
        /// HTTP with a separate event stream.
        HttpSse = "http-sse",
        /// RFC 9728.
        OauthResource = "oauth-resource",
        /// RFC 8414.
        Rfc8414 = "rfc8414",
        /// OpenID Connect Discovery.
        Openid = "openid",
        /// A server card.
        ServerCard = "server-card",
    }
}

crate::words! {
    /// How sure it is that a protocol is spoken.
    pub enum Detection {
        /// No sign of it.
        NotDetected = "not_detected",
        /// A sign, and no proof.
        Indicated = "indicated",
        /// An answer that nothing else gives.
        Confirmed = "confirmed",
    }
}

crate::words! {
    /// How a client that nobody knows gets an id.
    pub enum Registration {
        /// By a client id metadata document.
        Cimd = "cimd",
        /// By dynamic client registration.
        Dcr = "dcr",
        /// By either.
        Both = "both",
        /// By a person.
        Manual = "manual",
    }
}

/// What is known about an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// What it speaks.
    pub era: Era,
    /// The revisions it named or agreed to, oldest first.
    pub revisions: Vec<String>,
    /// Who gets in.
    pub access: Access,
    /// Every protocol that was looked for.
    pub detected: Vec<Detected>,
    /// How clients register, where an authorization server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration: Option<Registration>,
    /// The run broke off, so that it is compared with nothing.
    pub is_incomplete: bool,
}

/// How sure it is that a protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Detected {
    /// The protocol.
    pub protocol: Protocol,
    /// How sure.
    pub state: Detection,
}

impl Standing {
    /// What a session with an endpoint shows.
    #[must_use]
    pub fn of(session: &Session) -> Standing {
        let conversation = Conversation::read(session, None, None, None);
        let chain = Chain::of(&conversation);
        let state = |protocol| Detected { protocol, state: detected(protocol, &conversation, &chain) };
        Standing {
            era: conversation.era,
            revisions: revisions(&conversation),
            access: access(&conversation),
            detected: Protocol::ALL.iter().copied().map(state).collect(),
            registration: registration(&chain),
            is_incomplete: conversation.is_throttled(),
        }
    }

    /// How sure it is that a protocol is spoken.
    #[must_use]
    pub fn state(&self, protocol: Protocol) -> Detection {
        let known = self.detected.iter().find(|detected| detected.protocol == protocol);
        known.map_or(Detection::NotDetected, |detected| detected.state)
    }

    /// The newest of its revisions.
    #[must_use]
    pub fn newest(&self) -> Option<&str> {
        self.revisions.last().map(String::as_str)
    }
}

/// What an endpoint says of itself, in one document whose order does not depend on the server's: how it is called, what it
/// can do and what it lists. `None` where nothing was said.
#[must_use]
pub fn self_description(session: &Session) -> Option<Value> {
    let conversation = Conversation::read(session, None, None, None);
    if conversation.era == Era::Unknown {
        return None;
    }
    let handshake = |step| conversation.handshake(step).and_then(Turn::result);
    let (modern, legacy) = (handshake(Step::Discover), handshake(Step::Initialize));
    let either = |name: &str| modern.and_then(|r| r.get(name)).or_else(|| legacy.and_then(|r| r.get(name)));
    let server = modern.and_then(|result| result.get("_meta")?.get("io.modelcontextprotocol/serverInfo"));
    let server = server.or_else(|| legacy.and_then(|result| result.get("serverInfo")));
    let mut description = json!({ "era": conversation.era, "revisions": revisions(&conversation) });
    let members =
        [("serverInfo", server), ("capabilities", either("capabilities")), ("instructions", either("instructions"))];
    for (name, value) in members {
        if let Some(value) = value {
            description[name] = value.to_value();
        }
    }
    for list in &LISTS {
        if let Some(items) = whole_list(&conversation, list) {
            description[list.name] = items.into();
        }
    }
    Some(description)
}

/// A list that an endpoint may offer.
struct List {
    step: Step,
    /// The member that holds it, in an answer and in a description.
    name: &'static str,
    /// What its items are known by.
    key: &'static str,
    /// The capability that declares it.
    capability: &'static str,
}

const LISTS: [List; 4] = [
    List { step: Step::ToolsList, name: "tools", key: "name", capability: "tools" },
    List { step: Step::ResourcesList, name: "resources", key: "uri", capability: "resources" },
    List { step: Step::TemplatesList, name: "resourceTemplates", key: "uriTemplate", capability: "resources" },
    List { step: Step::PromptsList, name: "prompts", key: "name", capability: "prompts" },
];

/// The lists, by their names in a [`self_description`], that were declared and neither read to their end nor refused: an
/// answer did not come or came broken, or the run ended before. Nothing is known about them.
#[must_use]
pub fn unread_lists(session: &Session) -> Vec<&'static str> {
    let conversation = Conversation::read(session, None, None, None);
    let handshakes = [Step::Discover, Step::Initialize].into_iter().filter_map(|step| conversation.handshake(step));
    let declared: Vec<Node<'_>> = handshakes.filter_map(|turn| turn.result()?.get("capabilities")).collect();
    let is_unread = |list: &&List| {
        let last = conversation.of(list.step).last();
        let is_refused = last.is_some_and(|turn| turn.error().is_some() || turn.is_auth_refusal());
        let is_declared = declared.iter().any(|held| held.given(list.capability).is_some());
        is_declared && !is_refused && whole_list(&conversation, list).is_none()
    };
    LISTS.iter().filter(is_unread).map(|list| list.name).collect()
}

/// What is listed, in one era, sorted by its key; `None` for a list that was not read to its end.
fn whole_list(conversation: &Conversation<'_>, list: &List) -> Option<Vec<Value>> {
    let revision = conversation.of(list.step).find(|turn| turn.result().is_some())?.revision;
    let turns = conversation.of(list.step).filter(|turn| turn.revision == revision);
    let pages: Vec<Node<'_>> = turns.map(Turn::result).collect::<Option<_>>()?;
    if pages.last()?.get("nextCursor").and_then(Node::text).is_some() {
        return None;
    }
    let items = pages.iter().filter_map(|page| page.get(list.name)).flat_map(Node::items).map(Node::to_value);
    let mut items: Vec<Value> = items.collect();
    items.sort_by(|one, other| one[list.key].as_str().cmp(&other[list.key].as_str()));
    Some(items)
}

fn revisions(conversation: &Conversation<'_>) -> Vec<String> {
    let listed = conversation.of(Step::Discover).filter_map(Turn::result).filter_map(|r| r.get("supportedVersions"));
    let mut revisions: Vec<String> = listed.flat_map(Node::items).filter_map(Node::text).map(str::to_owned).collect();
    if revisions.is_empty() && conversation.is_modern_confirmed() {
        revisions.push(MODERN.to_owned());
    }
    let handshakes = conversation.of(Step::Initialize).chain(conversation.of(Step::NegotiateNewest));
    revisions.extend(
        handshakes.filter_map(Turn::result).filter_map(|r| r.get("protocolVersion")?.text()).map(str::to_owned),
    );
    let refused = conversation.turns.iter().filter(|turn| turn.is_modern_error());
    revisions.extend(refused.flat_map(|turn| turn.supported()).map(str::to_owned));
    revisions.sort_unstable();
    revisions.dedup();
    revisions
}

fn access(conversation: &Conversation<'_>) -> Access {
    let handshakes: Vec<&Turn<'_>> = conversation.handshakes().collect();
    let is_open = conversation.era != Era::Unknown;
    let lists = [Step::ToolsList, Step::ResourcesList, Step::TemplatesList, Step::PromptsList];
    let list_refused = || lists.iter().any(|step| conversation.of(*step).any(Turn::is_auth_refusal));
    let has = |reason: NotEvaluated| handshakes.iter().any(|turn| turn.gate() == Some(reason));
    if is_open {
        return if list_refused() { Access::AuthPartial } else { Access::Open };
    }
    if conversation.is_throttled() {
        Access::RateLimited
    } else if has(NotEvaluated::Payment) {
        Access::PaymentRequired
    } else if conversation.needs_authorization()
        || has(NotEvaluated::Auth)
        || conversation.turns.iter().any(|turn| leads_to_login(conversation, turn))
    {
        Access::AuthRequired
    } else if wire_failure(conversation).is_some() || handshakes.iter().all(|turn| is_nothing(turn)) {
        Access::Unreachable
    } else if handshakes.iter().any(|turn| turn.is_json_rpc() && !turn.has_failed()) {
        // Whoever answers in the protocol lets in whoever asks, and refuses for another reason.
        Access::Open
    } else {
        Access::NotMcp
    }
}

/// Whether a handshake found nobody: no answer, a failure of the server, or nothing at the address.
fn is_nothing(turn: &Turn<'_>) -> bool {
    turn.has_failed() || (!turn.is_json_rpc() && turn.status().is_none_or(|status| matches!(status, 404 | 410)))
}

fn detected(protocol: Protocol, conversation: &Conversation<'_>, chain: &Chain<'_>) -> Detection {
    match protocol {
        Protocol::McpModern => modern(conversation, chain),
        Protocol::McpLegacy => legacy(conversation),
        Protocol::HttpSse => http_sse(conversation),
        Protocol::OauthResource => resource(chain),
        Protocol::Rfc8414 => server(chain, Kind::OauthAuthorizationServer),
        Protocol::Openid => server(chain, Kind::OauthOpenidConfiguration),
        Protocol::ServerCard => card(conversation),
    }
}

fn modern(conversation: &Conversation<'_>, chain: &Chain<'_>) -> Detection {
    let refused = conversation.of(Step::Discover).any(Turn::is_auth_refusal);
    let card = conversation.of(Step::ServerCard).filter_map(json_of).any(|card| card.text().contains(MODERN));
    if conversation.is_modern_confirmed() {
        Detection::Confirmed
    } else if conversation.has_modern_error() || (refused && chain.document().is_some()) || card {
        Detection::Indicated
    } else {
        Detection::NotDetected
    }
}

fn legacy(conversation: &Conversation<'_>) -> Detection {
    let by_post = |turn: &&Turn<'_>| {
        turn.result().is_some_and(|result| {
            result.get("protocolVersion").and_then(Node::text).is_some()
                && result.get("capabilities").is_some_and(|node| node.kind() == Type::Object)
        }) && turn.reply().is_some_and(|message| message.number == turn.number)
    };
    let here = |turn: &Turn<'_>| turn.answer.messages.iter().any(|m| m.number == turn.number && m.is_json_rpc());
    let says = |turn: &Turn<'_>| here(turn) || turn.is_auth_refusal();
    let refuses_get = |turn: &Turn<'_>| {
        turn.status() == Some(405)
            && turn
                .response()
                .and_then(|r| r.header("allow"))
                .is_some_and(|allow| allow.to_uppercase().contains("POST"))
    };
    if conversation.of(Step::Initialize).any(|turn| by_post(&turn)) {
        Detection::Confirmed
    } else if conversation.of(Step::Initialize).any(says) || conversation.of(Step::Get).any(refuses_get) {
        Detection::Indicated
    } else {
        Detection::NotDetected
    }
}

fn http_sse(conversation: &Conversation<'_>) -> Detection {
    let Some(stream) = conversation.of(Step::HttpSse).find(|turn| turn.answer.stream.is_some()) else {
        return Detection::NotDetected;
    };
    let on_stream = |turn: &Turn<'_>| turn.reply().is_some_and(|message| message.number == stream.number);
    let answered = conversation.of(Step::Initialize).any(|turn| turn.result().is_some() && on_stream(turn));
    if stream.announced().is_some() && answered { Detection::Confirmed } else { Detection::Indicated }
}

fn resource(chain: &Chain<'_>) -> Detection {
    let is_whole = |turn: &Turn<'_>| {
        json_of(turn).and_then(|document| {
            let root = document.root()?;
            root.get("resource")?.text()?;
            let issuers = root.get("authorization_servers")?;
            let is_issuer = |node: Node<'_>| node.text().is_some_and(|text| url::Url::parse(text).is_ok());
            Some(issuers.items().any(is_issuer))
        }) == Some(true)
    };
    match chain.document() {
        Some((_, turn)) if is_whole(turn) => Detection::Confirmed,
        Some(_) => Detection::Indicated,
        None if chain.token_challenge().is_some() => Detection::Indicated,
        None => Detection::NotDetected,
    }
}

fn server(chain: &Chain<'_>, kind: Kind) -> Detection {
    let states = chain.servers.iter().map(|server| {
        let found = match kind {
            Kind::OauthAuthorizationServer => server.found(AsPlace::Rfc8414),
            _ => server.openid(),
        };
        let Some(turn) = found else { return Detection::NotDetected };
        let text = |name: &str| member(turn, name).and_then(|value| value.as_str().map(str::to_owned));
        let issuer = text("issuer").unwrap_or_default();
        let matches = issuer.trim_end_matches('/') == server.issuer.trim_end_matches('/');
        let is_complete = text("authorization_endpoint").is_some() && text("token_endpoint").is_some();
        if matches && is_complete { Detection::Confirmed } else { Detection::Indicated }
    });
    states.max().unwrap_or(Detection::NotDetected)
}

fn card(conversation: &Conversation<'_>) -> Detection {
    let is_card = |turn: &Turn<'_>| {
        json_of(turn).is_some_and(|document| {
            document.root().is_some_and(|root| {
                root.get("serverInfo").is_some()
                    || root.get("$schema").and_then(Node::text).is_some_and(|schema| schema.contains("server-card"))
            })
        })
    };
    if conversation.of(Step::ServerCard).any(is_card) { Detection::Confirmed } else { Detection::NotDetected }
}

/// How clients register with the first server that says so.
fn registration(chain: &Chain<'_>) -> Option<Registration> {
    let turn = chain.servers.iter().find_map(|server| server.found(AsPlace::Rfc8414).or_else(|| server.openid()))?;
    let cimd = member(turn, "client_id_metadata_document_supported") == Some(true.into());
    let dcr = member(turn, "registration_endpoint").is_some_and(|value| value.is_string());
    Some(match (cimd, dcr) {
        (true, true) => Registration::Both,
        (true, false) => Registration::Cimd,
        (false, true) => Registration::Dcr,
        (false, false) => Registration::Manual,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(exchanges: &str) -> Standing {
        let session = format!("{{\"exchanges\": [{exchanges}]}}");
        Standing::of(&serde_json::from_str(&session).expect("it is a session"))
    }

    fn posted(step: &str, body: &str, response: &str) -> String {
        format!(
            "{{\"step\": \"{step}\", \"request\": {{\"method\": \"POST\", \"url\": \"https://t.example/mcp\", \"body\": {body}}}, \"response\": {response}}}"
        )
    }

    const INITIALIZE: &str =
        r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}"#;
    const DISCOVER: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}"#;
    const INITIALIZED: &str = r#"{"status": 200, "body": {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}}"#;
    const DISCOVERED: &str = r#"{"status": 200, "body": {"jsonrpc": "2.0", "id": 1, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}}"#;
    const REFUSED: &str =
        r#"{"status": 400, "body": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no"}}}"#;
    const UNSUPPORTED: &str = r#"{"status": 400, "body": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}}}"#;
    const UNAUTHORIZED: &str = r#"{"status": 401, "headers": {"www-authenticate": "Bearer"}}"#;
    const WALL: &str =
        r#"{"status": 200, "headers": {"content-type": "text/html", "cf-mitigated": "challenge"}, "raw": "<p>"}"#;
    const FORBIDDEN: &str = r#"{"status": 403, "headers": {"content-type": "text/html"}, "raw": "<p>"}"#;
    const WANTS_KEY: &str = r#"{"status": 400, "body": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Missing API key"}}}"#;
    const PLAIN_KEY: &str =
        r#"{"status": 400, "headers": {"content-type": "application/json"}, "body": {"error": "Missing API key"}}"#;
    const OWN_WORDS: &str = r#"{"status": 200, "headers": {"content-type": "application/json"}, "body": {"error": "E_KEY", "message": "API key required"}}"#;
    const FAILED: &str = r#"{"status": 500, "body": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}}}"#;
    const PAGE: &str = r#"{"status": 200, "headers": {"content-type": "text/html"}, "raw": "<p>"}"#;

    #[test]
    fn the_two_handshakes_decide_era_and_access() {
        use Detection::{Confirmed, Indicated, NotDetected};
        let rows = [
            (DISCOVERED, INITIALIZED, Era::Dual, Access::Open, Confirmed, Confirmed),
            (DISCOVERED, UNSUPPORTED, Era::Modern, Access::Open, Confirmed, Indicated),
            (REFUSED, INITIALIZED, Era::Legacy, Access::Open, NotDetected, Confirmed),
            (UNSUPPORTED, REFUSED, Era::Modern, Access::Open, Indicated, Indicated),
            (UNAUTHORIZED, UNAUTHORIZED, Era::Unknown, Access::AuthRequired, NotDetected, Indicated),
            (
                r#"{"status": 402}"#,
                r#"{"status": 402}"#,
                Era::Unknown,
                Access::PaymentRequired,
                NotDetected,
                NotDetected,
            ),
            (r#"{"status": 429}"#, r#"{"status": 429}"#, Era::Unknown, Access::RateLimited, NotDetected, NotDetected),
            (r#"{"status": 404}"#, r#"{"status": 502}"#, Era::Unknown, Access::Unreachable, NotDetected, NotDetected),
            (PAGE, PAGE, Era::Unknown, Access::NotMcp, NotDetected, NotDetected),
            (WALL, WALL, Era::Unknown, Access::RateLimited, NotDetected, NotDetected),
            (FORBIDDEN, FORBIDDEN, Era::Unknown, Access::AuthRequired, NotDetected, NotDetected),
            (REFUSED, REFUSED, Era::Unknown, Access::Open, NotDetected, Indicated),
            (WANTS_KEY, WANTS_KEY, Era::Unknown, Access::AuthRequired, NotDetected, Indicated),
            (OWN_WORDS, OWN_WORDS, Era::Unknown, Access::AuthRequired, NotDetected, Indicated),
            (PLAIN_KEY, PLAIN_KEY, Era::Unknown, Access::AuthRequired, NotDetected, Indicated),
            (FAILED, FAILED, Era::Unknown, Access::Unreachable, NotDetected, Indicated),
        ];
        for (discover, initialize, era, access, modern, legacy) in rows {
            let exchanges = [posted("discover", DISCOVER, discover), posted("initialize", INITIALIZE, initialize)];
            let standing = standing(&exchanges.join(","));
            let seen = (
                standing.era,
                standing.access,
                standing.state(Protocol::McpModern),
                standing.state(Protocol::McpLegacy),
            );
            assert_eq!(seen, (era, access, modern, legacy), "{discover} {initialize}");
        }
    }

    #[test]
    fn revisions_are_those_named_and_agreed_to() {
        let exchanges = [posted("discover", DISCOVER, DISCOVERED), posted("initialize", INITIALIZE, INITIALIZED)];
        let standing = standing(&exchanges.join(","));
        assert_eq!(standing.revisions, ["2025-06-18", "2026-07-28"]);
        assert_eq!(standing.newest(), Some("2026-07-28"));
    }

    #[test]
    fn an_answer_on_the_stream_confirms_the_older_transport() {
        let stream = r#"{"step": "http-sse", "request": {"method": "GET", "url": "https://t.example/sse"}, "response": {"status": 200, "headers": {"content-type": "text/event-stream"}, "raw": "event: endpoint\ndata: /m\n\ndata: {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {\"protocolVersion\": \"2024-11-05\", \"capabilities\": {}}}\n\n"}}"#;
        let refused = posted("initialize", &INITIALIZE.replace(": 1", ": 9"), r#"{"status": 404}"#);
        let exchanges =
            [refused, stream.to_owned(), posted("initialize", INITIALIZE, r#"{"status": 202, "raw": "Accepted"}"#)];
        let standing = standing(&exchanges.join(","));
        assert_eq!(standing.state(Protocol::HttpSse), Detection::Confirmed);
        assert_eq!(standing.state(Protocol::McpLegacy), Detection::NotDetected);
        assert_eq!((standing.era, standing.access), (Era::Legacy, Access::Open));
        assert_eq!(standing.revisions, ["2024-11-05"]);
    }
}
