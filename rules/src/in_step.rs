//! Whether a listing is in step with what answers: what a registry says of a server, beside what the server, its card and
//! its packages say of themselves, line by line, each with what to do.
//!
//! Nothing here is a verdict: versions of a server and of its listing may differ on purpose. A line that could not be
//! compared says why, and is never called equal.

use serde::Serialize;
use serde_json::Value;

use crate::conversation::{Conversation, Turn, wire_failure};
use crate::document::{Node, Type};
use crate::session::{Session, Step, WireError};
use crate::standing::{Access, Detection, Protocol, Standing, self_description};

/// The most characters of one side of a line.
const MOST: usize = 300;

crate::words! {
    /// How two sides of a line stand to each other.
    pub enum Match {
        /// Both say the same.
        Same = "same",
        /// They differ.
        Differs = "differs",
        /// One side says nothing that could be compared.
        NotCompared = "not_compared",
    }
}

/// One thing that a listing says, beside what is so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What is compared, in words.
    pub subject: String,
    /// What the registry lists.
    pub listed: String,
    /// What is so; why it is not known, where it is not.
    pub live: String,
    /// How the two stand to each other.
    #[serde(rename = "match")]
    pub state: Match,
    /// What the publisher can do about a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// What was last said with an address that a listing names; `None`: nobody asked.
#[derive(Debug, Clone, Copy)]
pub struct Face<'s> {
    /// The address as it was asked.
    pub url: &'s str,
    /// The conversation.
    pub session: Option<&'s Session>,
}

/// Compares the `server.json` of a listing, and the registry's word for its status, with what was seen at its addresses.
#[must_use]
pub fn compare(listed: Node<'_>, status: Option<&str>, faces: &[Face<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    let remotes: Vec<Node<'_>> = objects(listed, "remotes").collect();
    let reached = remotes.iter().map(|remote| {
        let url = text(*remote, "url");
        faces.iter().find(|face| url.is_some_and(|url| is_same_address(url, face.url))).and_then(|face| face.session)
    });
    let reached: Vec<Option<Seen>> = reached.map(|session| session.and_then(Seen::of)).collect();
    lines.extend(status_line(status, &reached));
    for (remote, seen) in remotes.iter().zip(&reached) {
        remote_lines(*remote, seen.as_ref(), &mut lines);
    }
    let said: Vec<&Seen> = reached.iter().flatten().collect();
    version_lines(listed, &said, &mut lines);
    lines.extend(name_line(listed, &said));
    lines.iter_mut().flat_map(|line| [&mut line.subject, &mut line.listed, &mut line.live]).for_each(shorten);
    lines
}

/// A name or version of any length comes from a stranger.
fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
}

/// What a conversation shows of the things that a listing speaks about.
struct Seen {
    standing: Standing,
    /// Where the first request was sent on to.
    moved: Option<String>,
    /// What the server says of itself.
    described: Option<Value>,
    /// The server card that was found beside it.
    card: Option<Value>,
}

impl Seen {
    /// `None` where we did not ask after all.
    fn of(session: &Session) -> Option<Seen> {
        let conversation = Conversation::read(session, None, None, None);
        if wire_failure(&conversation).is_none_or(WireError::is_ours) && conversation.turns.iter().all(is_unanswered) {
            return None;
        }
        let card = conversation.of(Step::ServerCard).filter(|turn| turn.status() == Some(200)).find_map(card_of);
        Some(Seen {
            standing: Standing::of(session),
            moved: conversation.turns.iter().find(|turn| turn.is_about_endpoint()).and_then(moved),
            described: self_description(session),
            card,
        })
    }

    /// What it says of itself at a pointer, if that is text.
    fn says(&self, pointer: &str) -> Option<&str> {
        self.described.as_ref()?.pointer(pointer)?.as_str()
    }
}

fn is_unanswered(turn: &Turn<'_>) -> bool {
    turn.response().is_none()
}

fn card_of(turn: &Turn<'_>) -> Option<Value> {
    let card = crate::authorization::json_of(turn)?.root()?.to_value();
    let is_card = card.get("serverInfo").is_some() || card.get("version").is_some_and(Value::is_string);
    is_card.then_some(card)
}

/// Where a request was sent on to for good.
fn moved(turn: &Turn<'_>) -> Option<String> {
    let response = turn.response().filter(|response| matches!(response.status, 301 | 308))?;
    response.header("location").map(str::to_owned)
}

fn status_line(status: Option<&str>, reached: &[Option<Seen>]) -> Option<Line> {
    let status = status?;
    let answers = reached.iter().flatten().filter(|seen| seen.standing.access != Access::Unreachable).count();
    let asked = reached.iter().flatten().count();
    let live = match (asked, answers) {
        (0, _) => "no address was asked".to_owned(),
        (asked, answers) => format!("{answers} of {asked} addresses answer"),
    };
    let (state, advice) = match status {
        _ if asked == 0 => (Match::NotCompared, None),
        "active" if answers == 0 => {
            (Match::Differs, Some("Bring the server back, or mark the listing deprecated or deleted."))
        }
        "deleted" if answers > 0 => (
            Match::Differs,
            Some("The listing is deleted and the server still answers: switch it off, or list it again."),
        ),
        _ => (Match::Same, None),
    };
    Some(Line { subject: "status".into(), listed: status.into(), live, state, advice: advice.map(str::to_owned) })
}

fn remote_lines(remote: Node<'_>, seen: Option<&Seen>, lines: &mut Vec<Line>) {
    let url = text(remote, "url").unwrap_or("(no address)");
    let Some(seen) = seen else {
        let why = if url.contains('{') { "its address has variables" } else { "it was not asked from here" };
        lines.push(not_compared(format!("remote {url}"), text(remote, "type").unwrap_or("(no type)"), why));
        return;
    };
    lines.push(address_line(url, seen));
    lines.push(transport_line(url, text(remote, "type"), &seen.standing));
    lines.push(access_line(url, remote, &seen.standing));
}

fn address_line(url: &str, seen: &Seen) -> Line {
    let subject = format!("address of {url}");
    let (live, state, advice) = match (&seen.moved, seen.standing.access) {
        (Some(to), _) => (
            format!("moved for good to {to}"),
            Match::Differs,
            Some(format!("List {to}: clients may refuse to send a POST on, and lose credentials when they do.")),
        ),
        (None, Access::Unreachable) => (
            "nobody answers".to_owned(),
            Match::Differs,
            Some("Bring the server back at this address, or publish a version that lists the new one.".to_owned()),
        ),
        (None, Access::NotMcp) => (
            "something answers that does not speak MCP".to_owned(),
            Match::Differs,
            Some("List the address of the MCP endpoint itself, with its path.".to_owned()),
        ),
        (None, Access::RateLimited) => ("asked to come back later".to_owned(), Match::NotCompared, None),
        (None, Access::Open | Access::AuthPartial | Access::AuthRequired | Access::PaymentRequired) => {
            ("answers".to_owned(), Match::Same, None)
        }
    };
    Line { subject, listed: url.to_owned(), live, state, advice }
}

fn transport_line(url: &str, declared: Option<&str>, standing: &Standing) -> Line {
    let subject = format!("transport of {url}");
    let listed = declared.unwrap_or("(no type)");
    let is_confirmed = |protocol| standing.state(protocol) == Detection::Confirmed;
    let streams = is_confirmed(Protocol::McpModern) || is_confirmed(Protocol::McpLegacy);
    let sse = is_confirmed(Protocol::HttpSse);
    let live = match (streams, sse) {
        (true, true) => "streamable-http and sse",
        (true, false) => "streamable-http",
        (false, true) => "sse",
        (false, false) => return not_compared(subject, listed, without_handshake(standing.access)),
    };
    let is_spoken = match declared {
        Some("streamable-http") => streams,
        Some("sse") => sse,
        Some(_) | None => false,
    };
    if is_spoken {
        return same(subject, listed, live);
    }
    let speaks = if streams { "streamable-http" } else { "sse" };
    differs(subject, listed, live, format!("Publish a version whose remote says \"type\": \"{speaks}\"."))
}

fn access_line(url: &str, remote: Node<'_>, standing: &Standing) -> Line {
    let subject = format!("access to {url}");
    let headers = objects(remote, "headers");
    let needed: Vec<&str> =
        headers.filter(|header| is_true(*header, "isRequired")).filter_map(|h| text(h, "name")).collect();
    let listed =
        if needed.is_empty() { "no header is required".to_owned() } else { format!("requires {}", needed.join(", ")) };
    let live = standing.access.as_str().replace('_', " ");
    match standing.access {
        Access::Open if !needed.is_empty() => differs(
            subject,
            listed,
            "open to everybody",
            "The server answers without the header: mark it optional, or close the server.".to_owned(),
        ),
        Access::Open | Access::AuthPartial => same(subject, listed, live),
        Access::AuthRequired if !needed.is_empty() => same(subject, listed, live),
        // A challenge by OAuth needs no header in the listing: the client finds the way by itself.
        Access::AuthRequired if standing.state(Protocol::OauthResource) == Detection::Confirmed => {
            same(subject, listed, "auth required, and its metadata says where a token comes from")
        }
        Access::AuthRequired => differs(
            subject,
            listed,
            live,
            "Say in the remote's `headers` which header is required, or serve protected-resource metadata so that clients can find the way."
                .to_owned(),
        ),
        Access::PaymentRequired | Access::NotMcp | Access::Unreachable | Access::RateLimited => {
            not_compared(subject, listed, live)
        }
    }
}

fn version_lines(listed: Node<'_>, said: &[&Seen], lines: &mut Vec<Line>) {
    let Some(version) = text(listed, "version") else { return };
    for package in objects(listed, "packages") {
        let named = format!(
            "{} {}",
            text(package, "registryType").unwrap_or("package"),
            text(package, "identifier").unwrap_or("(no identifier)")
        );
        let subject = format!("version of {named}");
        lines.push(match text(package, "version") {
            Some(own) => beside(
                subject,
                version,
                own,
                "Raise the listing and its package together, so that a reader of one knows the other.",
            ),
            None => not_compared(subject, version, "the package names no version"),
        });
    }
    let advice = "Publish the version that runs, or roll the server to the one listed.";
    let own: Vec<&str> = said.iter().filter_map(|seen| seen.says("/serverInfo/version")).collect();
    lines.push(side("version the server says", version, &own, advice, "no server said its version"));
    let cards = said.iter().filter_map(|seen| seen.card.as_ref());
    let of_card = |card: &Value| {
        let version = card.get("version").or_else(|| card.pointer("/serverInfo/version"))?;
        version.as_str().map(str::to_owned)
    };
    let on_card: Vec<String> = cards.filter_map(of_card).collect();
    let on_card: Vec<&str> = on_card.iter().map(String::as_str).collect();
    lines.push(side(
        "version on the server card",
        version,
        &on_card,
        advice,
        "no server card with a version was found",
    ));
}

fn name_line(listed: Node<'_>, said: &[&Seen]) -> Option<Line> {
    let title = text(listed, "title")?;
    let own: Vec<&str> = said.iter().filter_map(|seen| seen.says("/serverInfo/title")).collect();
    let advice = "Use one title, so that people find in their client what they chose in the registry.";
    Some(side("title the server says", title, &own, advice, "no server said its title"))
}

/// A line whose live side may be said by nobody, by one or by several.
fn side(subject: &str, listed: &str, said: &[&str], advice: &str, silence: &str) -> Line {
    let Some(first) = said.first() else { return not_compared(subject.to_owned(), listed, silence) };
    let other = said.iter().find(|own| **own != listed);
    beside(subject.to_owned(), listed, other.unwrap_or(first), advice)
}

fn beside(subject: String, listed: &str, live: &str, advice: &str) -> Line {
    if listed == live { same(subject, listed, live) } else { differs(subject, listed, live, advice.to_owned()) }
}

fn without_handshake(access: Access) -> &'static str {
    match access {
        Access::AuthRequired => "only whoever has a token is told",
        Access::PaymentRequired => "only whoever pays is told",
        Access::RateLimited => "asked to come back later",
        Access::Unreachable => "nobody answers",
        Access::NotMcp | Access::Open | Access::AuthPartial => "no handshake succeeded",
    }
}

fn same(subject: String, listed: impl Into<String>, live: impl Into<String>) -> Line {
    Line { subject, listed: listed.into(), live: live.into(), state: Match::Same, advice: None }
}

fn differs(subject: String, listed: impl Into<String>, live: impl Into<String>, advice: String) -> Line {
    Line { subject, listed: listed.into(), live: live.into(), state: Match::Differs, advice: Some(advice) }
}

fn not_compared(subject: String, listed: impl Into<String>, why: impl Into<String>) -> Line {
    Line { subject, listed: listed.into(), live: why.into(), state: Match::NotCompared, advice: None }
}

/// Whether two spellings name one address: scheme, host and port as a URL parser reads them, without fragment.
fn is_same_address(one: &str, other: &str) -> bool {
    let read = |text: &str| {
        let mut url = url::Url::parse(text.trim()).ok()?;
        url.set_fragment(None);
        Some(url)
    };
    one == other || read(one).is_some_and(|url| Some(url) == read(other))
}

fn objects<'d>(node: Node<'d>, name: &str) -> impl Iterator<Item = Node<'d>> + use<'d> {
    let list = node.get(name).filter(|list| list.kind() == Type::Array);
    list.into_iter().flat_map(Node::items).filter(|item| item.kind() == Type::Object)
}

fn text<'d>(node: Node<'d>, name: &str) -> Option<&'d str> {
    node.get(name)?.text()
}

fn is_true(node: Node<'_>, name: &str) -> bool {
    node.get(name).is_some_and(|value| value.to_value() == Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    const ENDPOINT: &str = "https://t.example/mcp";

    /// A server of the handshake that calls itself `version`.
    fn speaking(version: &str) -> Session {
        answering(&format!(
            r#"{{"status": 200, "body": {{"jsonrpc": "2.0", "id": 1, "result": {{"protocolVersion": "2025-06-18", "capabilities": {{}}, "serverInfo": {{"name": "t", "title": "Tides", "version": "{version}"}}}}}}}}"#
        ))
    }

    fn answering(response: &str) -> Session {
        let session = format!(
            r#"{{"exchanges": [{{"step": "initialize", "request": {{"method": "POST", "url": "{ENDPOINT}", "body": {{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {{"protocolVersion": "2025-06-18"}}}}}}, "response": {response}}}]}}"#
        );
        serde_json::from_str(&session).expect("it is a session")
    }

    fn compared(server_json: &str, status: Option<&str>, session: Option<&Session>) -> Vec<Line> {
        let document = Document::from_text(server_json);
        compare(document.root().expect("JSON"), status, &[Face { url: ENDPOINT, session }])
    }

    /// The subjects that stand so, without the address.
    fn subjects(lines: &[Line], state: Match) -> Vec<String> {
        let of = lines.iter().filter(|line| line.state == state);
        of.map(|line| line.subject.replace(&format!(" {ENDPOINT}"), "")).collect()
    }

    const LISTED: &str = r#"{"name": "a.b/t", "title": "Tides", "version": "1.2.0", "remotes": [{"type": "streamable-http", "url": "https://T.example:443/mcp"}], "packages": [{"registryType": "npm", "identifier": "t", "version": "1.2.0"}]}"#;

    #[test]
    fn a_listing_that_says_what_is_so_differs_in_nothing() {
        let session = speaking("1.2.0");
        let lines = compared(LISTED, Some("active"), Some(&session));
        assert_eq!(subjects(&lines, Match::Differs), Vec::<String>::new());
        assert_eq!(subjects(&lines, Match::NotCompared), ["version on the server card"]);
        assert_eq!(lines.len(), 8);
    }

    #[test]
    fn each_difference_has_its_line_and_its_advice() {
        let open = speaking("1.3.0");
        let gone = answering(r#"{"status": 404}"#);
        let gated = answering(r#"{"status": 401, "headers": {"www-authenticate": "Bearer"}}"#);
        let moved = answering(r#"{"status": 308, "headers": {"location": "https://u.example/mcp"}}"#);
        let with_header =
            LISTED.replace("/mcp\"}", "/mcp\", \"headers\": [{\"name\": \"X-Key\", \"isRequired\": true}]}");
        let rows: [(&str, &str, &Session, &[&str]); 8] = [
            (LISTED, "active", &open, &["version the server says"]),
            (&LISTED.replace("streamable-http", "sse"), "active", &open, &["transport of", "version the server says"]),
            (&LISTED.replace("Tides", "Ebbs"), "active", &open, &["version the server says", "title the server says"]),
            (
                &LISTED.replace("t\", \"version\": \"1.2.0", "t\", \"version\": \"1.1.0"),
                "active",
                &open,
                &["version of npm t", "version the server says"],
            ),
            (&with_header, "active", &open, &["access to", "version the server says"]),
            (LISTED, "active", &gone, &["status", "address of"]),
            (LISTED, "active", &gated, &["access to"]),
            (LISTED, "deleted", &open, &["status", "version the server says"]),
        ];
        for (listed, status, session, expected) in rows {
            let listed = listed.replace("https://T.example:443/mcp", ENDPOINT);
            let lines = compared(&listed, Some(status), Some(session));
            assert_eq!(subjects(&lines, Match::Differs), expected, "{listed} {status}");
            assert!(lines.iter().all(|line| line.advice.is_some() == (line.state == Match::Differs)), "{lines:?}");
        }
        let lines = compared(LISTED, None, Some(&moved));
        assert!(subjects(&lines, Match::Differs)[0].starts_with("address of"), "{lines:?}");
    }

    #[test]
    fn what_nobody_asked_is_not_compared() {
        let lines = compared(LISTED, Some("active"), None);
        assert_eq!(subjects(&lines, Match::Differs), Vec::<String>::new());
        assert_eq!(subjects(&lines, Match::Same), ["version of npm t"]);
        assert_eq!(lines.iter().find(|line| line.subject == "status").map(|line| line.state), Some(Match::NotCompared));
    }

    #[test]
    fn an_address_that_we_may_not_call_is_nobodys_fault() {
        let refused = r#"{"exchanges": [{"step": "initialize", "request": {"method": "POST", "url": "https://t.example/mcp"}, "error": "address-guard"}]}"#;
        let session: Session = serde_json::from_str(refused).expect("it is a session");
        let listed = LISTED.replace("https://T.example:443/mcp", ENDPOINT);
        let lines = compared(&listed, Some("active"), Some(&session));
        assert_eq!(subjects(&lines, Match::Differs), Vec::<String>::new());
        let silent: Session = serde_json::from_str(&refused.replace("address-guard", "refused")).expect("a session");
        assert_eq!(
            subjects(&compared(&listed, Some("active"), Some(&silent)), Match::Differs),
            ["status", "address of"]
        );
    }

    #[test]
    fn a_listing_of_any_shape_is_compared_without_harm() {
        for text in
            ["[]", "7", r#"{"remotes": 7, "packages": [7, {}], "version": 1}"#, r#"{"remotes": [{}], "version": ""}"#]
        {
            compared(text, None, None);
        }
    }
}
