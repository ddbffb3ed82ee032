//! Judging a conversation with an MCP endpoint: every message by what it is, every list as a whole, the metadata that it
//! led to, and the conversation itself.
//!
//! Pointers of the report lead into the session: `/exchanges/N/response/body/…` for a body,
//! `/exchanges/N/response/events/K/data/…` for an event of a stream, `…/raw` for a body that cannot be addressed.

use std::cell::OnceCell;

use serde_json::{Value, json};

use crate::conversation::{Conversation, Era, META_VERSION, MODERN, Message, Turn};
use crate::document::{Document, Node, Type};
use crate::judge::{Context, Given, Settings, Subject, judge, judge_conversation, judge_without_document};
use crate::kind::{Kind, Known, Profile};
use crate::report::{Detected, NotEvaluated, Occurrence, Outcome, Report, RuleResult};
use crate::rule::Check;
use crate::session::{Cut, Session, StdioLine, StdioStream, Step};
use crate::session_judge::{document_of, origin};

/// Judges a conversation with an MCP endpoint.
pub(crate) fn judge_endpoint(session: &Session, version: Option<&str>, given: &Given, settings: &Settings) -> Report {
    let conversation = Conversation::read(session, version, given.era.as_deref(), given.capabilities.as_ref());
    let judging = Judging { session, conversation: &conversation, version, given, settings };
    let mut said = Said::default();
    let is_stdio = session.stdio.is_some();
    if !is_stdio {
        said.add(judging.way());
    }
    for turn in conversation.turns.iter().filter(|turn| turn.is_about_endpoint()) {
        judging.messages(turn, &mut said);
    }
    judging.listings(&mut said);
    judging.server_messages(&mut said);
    judging.written_messages(&mut said);
    if !is_stdio {
        judging.metadata(&mut said);
        judging.cards(&mut said);
    }
    // Most of what is said of a conversation is about HTTP: its statuses, headers and sessions.
    for result in judging.conversation().into_iter().filter(|result| !is_stdio || holds_over_stdio(result.rule.id)) {
        said.add_result(result);
    }
    let (profile, known) = profile(&conversation);
    let has_document = conversation.era != Era::Unknown;
    let detected = Detected { kind: Kind::McpEndpoint, profile, known };
    Report { detected, results: said.results, has_document, signatures: Vec::new(), more: Vec::new() }
}

/// The revision an endpoint is shown as: of one that speaks both eras that it does.
fn profile(conversation: &Conversation<'_>) -> (&'static str, Known) {
    let name = match (conversation.era, conversation.negotiated) {
        (Era::Dual, _) => "mcp-dual",
        (Era::Modern, _) => "mcp-2026-07-28",
        (Era::Legacy, Some("2024-11-05")) => "mcp-2024-11-05",
        (Era::Legacy, Some("2025-03-26")) => "mcp-2025-03-26",
        (Era::Legacy, Some("2025-06-18")) => "mcp-2025-06-18",
        (Era::Legacy, Some("2025-11-25")) => "mcp-2025-11-25",
        (Era::Legacy | Era::Unknown, _) => return ("", Known::Undetermined),
    };
    (
        name,
        if conversation.era == Era::Modern && !conversation.is_modern_confirmed() {
            Known::Inferred
        } else {
            Known::Declared
        },
    )
}

struct Judging<'j> {
    session: &'j Session,
    conversation: &'j Conversation<'j>,
    version: Option<&'j str>,
    given: &'j Given,
    settings: &'j Settings,
}

impl Judging<'_> {
    /// What the redirects and refusals on the way say.
    fn way(&self) -> Report {
        let subject = self.subject(None, None, self.version, self.given);
        judge_without_document(&subject, self.settings)
    }

    fn subject<'a>(
        &'a self,
        kind: Option<Kind>,
        answer: Option<usize>,
        version: Option<&'a str>,
        given: &'a Given,
    ) -> Subject<'a> {
        let address = answer.and_then(|number| self.session.exchanges.get(number));
        let address = address.map(|exchange| exchange.request.url.as_str()).or(Some(self.conversation.endpoint));
        Subject { kind, version, origin: origin(given, address), given, session: Some(self.session), answer }
    }

    /// The envelope of every answer, and the results that any client would ask for.
    fn messages(&self, turn: &Turn<'_>, said: &mut Said) {
        let is_broken_off = turn.response().is_some_and(|r| r.cut.is_some_and(|cut| cut != Cut::Limit));
        if turn.is_led_on || !self.is_spoken(turn) || !is_content(turn) || turn.is_mislabelled() || is_broken_off {
            return;
        }
        // Nobody reads the body of what takes a notification; that there is one is a finding of its own.
        if turn.step == Some(Step::Initialized) && !turn.is_json_rpc() {
            return;
        }
        let given = self.given_at(turn);
        let version = self.version.or(Some(turn.revision));
        for message in &turn.answer.messages {
            if message.event.is_none() && message.number == turn.number {
                let is_judged = turn.exchange.request.method == "POST" && turn.answer.is_json;
                if turn.is_stdio() {
                    let subject =
                        Subject { session: None, ..self.subject(Some(Kind::JsonrpcResponse), None, version, &given) };
                    said.add_at(judge(&message.document, &subject, self.settings), &message.place(), turn.number);
                    continue;
                }
                if !is_judged || self.is_other_json(turn, message) || is_unlabelled(turn, message) {
                    continue;
                }
                let subject = self.subject(Some(Kind::JsonrpcResponse), Some(turn.number), version, &given);
                said.add_at(judge(&message.document, &subject, self.settings), &message.place(), turn.number);
            } else if message.is_response() {
                let subject =
                    Subject { session: None, ..self.subject(Some(Kind::JsonrpcResponse), None, version, &given) };
                said.add_at(judge(&message.document, &subject, self.settings), &message.place(), message.number);
            }
        }
        self.result(turn, &given, version, said);
    }

    /// JSON that claims to be no message: with an error status it may be anything, and where no message ever came that is
    /// one finding and not one for each member that is missing.
    fn is_other_json(&self, turn: &Turn<'_>, message: &Message) -> bool {
        let Some(object) = message.object() else { return false };
        let is_refusal = turn.status().is_some_and(|status| status >= 400);
        object.get("jsonrpc").is_none() && (is_refusal || !self.conversation.turns.iter().any(Turn::is_json_rpc))
    }

    fn result(&self, turn: &Turn<'_>, given: &Given, version: Option<&str>, said: &mut Said) {
        let (Some(kind), Some(message), Some(result)) = (result_kind(turn), turn.reply(), turn.result()) else {
            return;
        };
        // What answers another request is no answer to this one, and that is said of it already.
        if turn.unsaid().is_some() || turn.is_for_another() {
            return;
        }
        let document = Document::from_text(result.raw());
        let subject = Subject { session: None, ..self.subject(Some(kind), None, version, given) };
        let place = format!("{}/result", message.place());
        said.add_at(judge(&document, &subject, self.settings), &place, message.number);
    }

    /// What is known about a turn from outside its answer.
    fn given_at(&self, turn: &Turn<'_>) -> Given {
        let raw = || turn.exchange.request.raw.as_ref().map(|raw| json!({ "raw": raw }));
        let asked_version = || {
            let asked = turn.asked.as_ref()?;
            let version = asked
                .pointer("/params/protocolVersion")
                .or_else(|| asked.pointer("/params/_meta")?.get(META_VERSION))?;
            version.as_str().map(str::to_owned)
        };
        let of_transport = turn.step.is_some_and(|step| OF_TRANSPORT.contains(&step)) && turn.error().is_some();
        // What is no request has no id that an answer could carry (JSON-RPC 2.0 §5).
        let of_nothing = turn.step == Some(Step::InvalidRequest) && has_null_id(turn);
        Given {
            request: turn.asked.clone().or_else(raw).filter(|_| !of_transport && !of_nothing),
            http_status: turn.status(),
            capabilities: self.conversation.capabilities(turn).map(Node::to_value),
            client_capabilities: Some(json!({})),
            requested_version: self.given.requested_version.clone().or_else(asked_version),
            output_schema: self.output_schema(turn).or_else(|| self.given.output_schema.clone()),
            authenticated: turn.exchange.request.headers.contains_key("authorization"),
            ..self.given.clone()
        }
    }

    /// What the tool that a turn calls says about its results.
    fn output_schema(&self, turn: &Turn<'_>) -> Option<Value> {
        let name =
            turn.asked.as_ref().filter(|_| turn.step == Some(Step::ToolsCall))?.pointer("/params/name")?.as_str()?;
        let lists = self.conversation.of(Step::ToolsList).filter_map(Turn::result);
        let mut tools = lists.filter_map(|result| result.get("tools")).flat_map(Node::items);
        let tool = tools.find(|tool| tool.get("name").and_then(Node::text) == Some(name))?;
        tool.given("outputSchema").map(Node::to_value)
    }

    /// What is said of a document that we put together of several answers. Its bytes are ours, so what is said of bytes is
    /// said of nobody, and its size is no limit.
    fn composed(&self, kind: Kind, parts: &Value, version: Option<&str>, given: Given) -> Report {
        let given = Given { limit_bytes: Some(usize::MAX), ..given };
        let document = Document::from_text(&parts.to_string());
        let subject = Subject { session: None, ..self.subject(Some(kind), None, version, &given) };
        let mut report = judge(&document, &subject, self.settings);
        report.results.retain(|result| !matches!(result.rule.check, Check::Body(_)));
        report
    }

    /// Lists that came in pages, and the tools that were listed twice.
    fn listings(&self, said: &mut Said) {
        for step in [Step::ToolsList, Step::ResourcesList, Step::TemplatesList, Step::PromptsList] {
            for listing in listings(self.conversation, step) {
                if listing.len() > 1 {
                    self.pages(&listing, said);
                }
            }
        }
        for first in listings(self.conversation, Step::ToolsList) {
            let revision = first[0].revision;
            let same_era = |listing: &Vec<&Turn<'_>>| listing[0].revision == revision;
            let again = listings(self.conversation, Step::FreshConnection).into_iter().find(same_era);
            let third = listings(self.conversation, Step::ThirdList).into_iter().find(same_era);
            if let Some(second) = again {
                self.pair(&first, &second, third.as_deref(), said);
            }
        }
    }

    fn pages(&self, listing: &[&Turn<'_>], said: &mut Said) {
        let page = |turn: &&Turn<'_>| {
            let cursor = turn.asked.as_ref().and_then(|asked| asked.pointer("/params/cursor")).cloned();
            Some(json!({ "cursor": cursor, "result": turn.result()?.to_value() }))
        };
        let Some(pages) = listing.iter().map(page).collect::<Option<Vec<Value>>>() else { return };
        let pages = json!({ "method": listing[0].method(), "pages": pages });
        let version = self.version.or(Some(listing[0].revision));
        let report = self.composed(Kind::McpListPages, &pages, version, self.given_at(listing[0]));
        let places: Vec<String> = listing.iter().filter_map(|turn| turn.reply()).map(Message::place).collect();
        said.add_with(report, |pointer| {
            let (number, rest) = pointer.strip_prefix("/pages/")?.split_once('/').unwrap_or((&pointer[7..], ""));
            Some(format!("{}/{rest}", places.get(number.parse::<usize>().ok()?)?))
        });
    }

    fn pair(&self, first: &[&Turn<'_>], second: &[&Turn<'_>], third: Option<&[&Turn<'_>]>, said: &mut Said) {
        let (Some(one), Some(other)) = (whole_list(first), whole_list(second)) else { return };
        let names = |list: &Value| {
            let tools = list["tools"].as_array().into_iter().flatten();
            let mut names: Vec<_> = tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
            names.sort_unstable();
            names
        };
        let third = third.and_then(whole_list).map(|third| names(&third));
        let equals = third.and_then(|third| match third {
            third if third == names(&one) => Some("first"),
            third if third == names(&other) => Some("second"),
            _ => None,
        });
        let changed = self.conversation.turns.iter().flat_map(|turn| &turn.answer.messages);
        let given = Given {
            third_equals: equals.map(str::to_owned),
            list_changed_seen: changed.into_iter().any(|m| m.method() == Some("notifications/tools/list_changed")),
            ..self.given_at(first[0])
        };
        let pair = json!({ "first": one, "second": other });
        let version = self.version.or(Some(first[0].revision));
        let report = self.composed(Kind::McpToolsListPair, &pair, version, given);
        let is_one_page = first.len() == 1 && second.len() == 1;
        said.add_with(report, |pointer| {
            let turn = if pointer.starts_with("/first") { first[0] } else { second[0] };
            let rest = pointer.trim_start_matches("/first").trim_start_matches("/second");
            Some(format!("{}/result{}", turn.reply()?.place(), if is_one_page { rest } else { "" }))
        });
    }

    /// What the server said on its own, stream by stream.
    fn server_messages(&self, said: &mut Said) {
        for turn in self.conversation.turns.iter().filter(|turn| !turn.is_led_on && self.is_spoken(turn)) {
            let own: Vec<&Message> = turn.answer.messages.iter().filter(|message| is_own(turn, message)).collect();
            let values: Vec<Value> = own.iter().filter_map(|message| message.object()).map(Node::to_value).collect();
            if values.is_empty() {
                continue;
            }
            let listen = (turn.step == Some(Step::SubscriptionsListen)).then(|| turn.id().cloned()).flatten();
            let given = Given { listen_id: listen, request: with_token(turn), ..self.given_at(turn) };
            let version = self.version.or(Some(turn.revision));
            let report = self.composed(Kind::McpServerMessage, &Value::from(values), version, given);
            said.add_with(report, |pointer| {
                let (number, rest) = pointer.strip_prefix('/')?.split_once('/').unwrap_or((&pointer[1..], ""));
                let separator = if rest.is_empty() { "" } else { "/" };
                Some(format!("{}{separator}{rest}", own.get(number.parse::<usize>().ok()?)?.place()))
            });
        }
    }

    /// What a command wrote on its own.
    fn written_messages(&self, said: &mut Said) {
        let Some(stdio) = &self.session.stdio else { return };
        let is_own = |line: &&StdioLine| line.stream == StdioStream::Stdout && !line.is_cut;
        let message = |line: &StdioLine| {
            let value: Value = serde_json::from_str(line.raw.as_deref()?).ok()?;
            (value.get("method").is_some() && value.get("result").is_none() && value.get("error").is_none())
                .then_some(value)
        };
        let written = stdio.lines.iter().enumerate().filter(|(_, line)| is_own(line));
        let own: Vec<(usize, Value)> = written.filter_map(|(number, line)| Some((number, message(line)?))).collect();
        let Some(turn) = self.conversation.turns.first().filter(|_| !own.is_empty()) else { return };
        let values: Vec<Value> = own.iter().map(|(_, value)| value.clone()).collect();
        let newest = self.version.or_else(|| self.conversation.newest());
        let report = self.composed(Kind::McpServerMessage, &Value::from(values), newest, self.given_at(turn));
        said.add_with(report, |pointer| {
            let number = pointer.strip_prefix('/')?.split('/').next()?.parse::<usize>().ok()?;
            Some(format!("/stdio/lines/{}", own.get(number)?.0))
        });
    }

    /// Whether the server speaks the revision of a turn: what it says to a request of another era is no message of that
    /// era.
    fn is_spoken(&self, turn: &Turn<'_>) -> bool {
        match self.conversation.era {
            Era::Legacy => !turn.is_modern_request(),
            Era::Modern => turn.revision == MODERN,
            Era::Dual | Era::Unknown => true,
        }
    }

    /// Documents of the authorization chain, each by what led to it.
    fn metadata(&self, said: &mut Said) {
        let chain = crate::authorization::Chain::of(self.conversation);
        let version = self.version.unwrap_or_else(|| chain.revision());
        let addresses = self.conversation.addresses();
        for found in chain.documents() {
            // A resource may be named by the address that was asked for or by the one that it led to.
            let named = crate::authorization::member(found.turn, "resource");
            let named = named.as_ref().and_then(Value::as_str);
            let endpoint = addresses.iter().find(|address| named == Some(**address)).or(addresses.first());
            let given = Given {
                endpoint: endpoint.map(|endpoint| (*endpoint).to_owned()),
                found_at: found.found_at.map(str::to_owned),
                issuer_listed: found.issuer.clone(),
                challenge_scope: chain.scope(),
                ..self.given.clone()
            };
            let Some(response) = found.turn.response() else { continue };
            let subject = self.subject(Some(found.kind), Some(found.turn.number), Some(version), &given);
            let place = format!("/exchanges/{}/response/body", found.turn.number);
            said.add_at(judge(&document_of(response), &subject, self.settings), &place, found.turn.number);
        }
    }

    /// Server cards and the catalogue, where there are some.
    fn cards(&self, said: &mut Said) {
        let steps = [(Step::ServerCard, Kind::McpServerCard), (Step::AiCatalog, Kind::McpAiCatalog)];
        for (step, kind) in steps {
            for turn in self.conversation.of(step) {
                let Some(response) =
                    turn.response().filter(|response| response.status == 200 && response.cut.is_none())
                else {
                    continue;
                };
                let document = document_of(response);
                if document.root().is_none_or(|root| root.kind() != Type::Object || !may_be(kind, root)) {
                    continue;
                }
                let own_type = response.media_type().is_some_and(|t| t.is("application", "mcp-server-card+json"));
                let given = Given {
                    endpoint: Some(self.conversation.endpoint.to_owned()),
                    claimed: own_type.then(|| "media-type".to_owned()),
                    ..self.given.clone()
                };
                let subject = self.subject(Some(kind), Some(turn.number), None, &given);
                let report = judge(&document, &subject, self.settings);
                // What lies there and is no card is not judged: cards are optional.
                if report.detected.kind == kind && report.states().next().is_none() {
                    said.add_at(report, &format!("/exchanges/{}/response/body", turn.number), turn.number);
                }
            }
        }
    }

    fn conversation(&self) -> Vec<RuleResult> {
        let context = Context {
            missed: None,
            settings: self.settings,
            kind: Kind::McpEndpoint,
            kind_stated: true,
            profile: Profile::NONE,
            known: Known::Undetermined,
            origin: origin(self.given, Some(self.conversation.endpoint)),
            given: self.given,
            document: None,
            session: Some(self.session),
            answer: None,
            signatures: &OnceCell::new(),
            fields: &OnceCell::new(),
        };
        judge_conversation(self.conversation, &context)
    }
}

/// Whether an object that was found may be of that kind. Servers that answer everything with some JSON have no catalogue.
fn may_be(kind: Kind, root: Node<'_>) -> bool {
    kind != Kind::McpAiCatalog || root.get("entries").is_some() || root.get("specVersion").is_some()
}

/// Whether a rule about conversations is one about commands as well.
fn holds_over_stdio(id: &str) -> bool {
    const OF_MESSAGES: [&str; 14] = [
        "mcp/tools-declared-not-served",
        "mcp/resources-declared-not-served",
        "mcp/prompts-declared-not-served",
        "mcp/unknown-method-accepted",
        "mcp/unknown-method-code",
        "mcp/ping-failed",
        "mcp/tool-unknown-code",
        "mcp/resource-not-found-code",
        "mcp/resource-not-found-empty",
        "mcp/completion-context-refused",
        "mcp/completions-undeclared",
        "mcp/logging-not-served",
        "mcp/list-changed-not-sent",
        "mcp/resource-updated-not-sent",
    ];
    id.starts_with("mcp/stdio-") || OF_MESSAGES.contains(&id)
}

/// Words without a label: they claim to be nothing.
fn is_unlabelled(turn: &Turn<'_>, message: &Message) -> bool {
    let is_labelled = turn.response().is_some_and(|response| response.header("content-type").is_some());
    !is_labelled && message.document.trouble().is_some()
}

/// Whether a message is one that the server sent on its own.
fn is_own(turn: &Turn<'_>, message: &Message) -> bool {
    let named = message.event.and_then(|n| turn.answer.stream.as_ref()?.events.get(n)?.name.as_deref());
    let is_message = matches!(named, None | Some("message")) || message.is_json_rpc();
    let is_here = message.event.is_some() && message.number == turn.number;
    is_here && is_message && !message.is_response() && message.object().is_some()
}

/// The request as if it had given its id for a token of progress: common clients do, and servers take it for one.
fn with_token(turn: &Turn<'_>) -> Option<Value> {
    let mut asked = turn.asked.clone()?;
    let id = asked.get("id")?.clone();
    let params = asked.as_object_mut()?.entry("params").or_insert_with(|| json!({}));
    let meta = params.as_object_mut()?.entry("_meta").or_insert_with(|| json!({}));
    meta.as_object_mut()?.entry("progressToken").or_insert(id);
    Some(asked)
}

fn has_null_id(turn: &Turn<'_>) -> bool {
    turn.reply().and_then(Message::object).is_some_and(|object| object.given("id").is_none())
}

/// Steps whose answers come from the transport, before anybody has read the message: their errors may lack its id.
const OF_TRANSPORT: &[Step] = &[
    Step::SessionMissing,
    Step::SessionUnknown,
    Step::SessionTerminated,
    Step::LegacyBadVersionHeader,
    Step::LegacyNoVersionHeader,
    Step::Origin,
    Step::AcceptAny,
    Step::TextPlain,
    Step::NoHandshake,
    Step::HeaderVersionMismatch,
    Step::HeaderVersionMissing,
    Step::HeaderMethodMissing,
    Step::HeaderMethodMismatch,
];

/// Whether an answer has content that may be judged: redirects, refusals for want of credentials, throttling and failures
/// of the server are none, and some statuses come without a body. An event stream that was left early may be judged by
/// what it brought.
fn is_content(turn: &Turn<'_>) -> bool {
    let Some(response) = turn.response() else { return false };
    let refused = matches!(response.status, 300..=399 | 401 | 402 | 403 | 407 | 429 | 500..=u16::MAX);
    let bare = response.body().is_empty() && !matches!(response.status, 200 | 201 | 203);
    !refused && !bare
}

/// The kind of the result that a turn asked for, where any client would ask so.
fn result_kind(turn: &Turn<'_>) -> Option<Kind> {
    match turn.step? {
        Step::Discover => Some(Kind::McpDiscoverResult),
        Step::Initialize => Some(Kind::McpInitializeResult),
        Step::ToolsList => Some(Kind::McpToolsListResult),
        Step::ResourcesList => Some(Kind::McpResourcesListResult),
        Step::TemplatesList => Some(Kind::McpResourceTemplatesListResult),
        Step::PromptsList => Some(Kind::McpPromptsListResult),
        Step::ToolsCall => Some(Kind::McpCallToolResult),
        Step::ResourcesRead => Some(Kind::McpReadResourceResult),
        Step::PromptsGet => Some(Kind::McpGetPromptResult),
        Step::Completion => Some(Kind::McpCompleteResult),
        _ => None,
    }
}

/// The pages of each listing of a step, in order: a new listing begins where no cursor was sent.
fn listings<'c>(conversation: &'c Conversation<'_>, step: Step) -> Vec<Vec<&'c Turn<'c>>> {
    let mut listings: Vec<Vec<&Turn<'_>>> = Vec::new();
    for turn in conversation.of(step) {
        let cursor = turn.asked.as_ref().and_then(|asked| asked.pointer("/params/cursor"));
        match listings.last_mut() {
            Some(listing) if cursor.is_some() => listing.push(turn),
            _ if cursor.is_some() => {}
            _ => listings.push(vec![turn]),
        }
    }
    listings
}

/// The tools of all pages, when every page came and the last names no further one.
fn whole_list(pages: &[&Turn<'_>]) -> Option<Value> {
    let mut tools = Vec::new();
    for page in pages {
        let result = page.result().filter(|_| page.unsaid().is_none())?;
        tools.extend(result.get("tools")?.items().map(Node::to_value));
    }
    let more = pages.last()?.result()?.given("nextCursor").is_some();
    (!more).then(|| json!({ "tools": tools }))
}

/// What all the judgements of one conversation say together.
#[derive(Default)]
struct Said {
    results: Vec<RuleResult>,
}

impl Said {
    fn add(&mut self, report: Report) {
        report.results.into_iter().for_each(|result| self.add_result(result));
    }

    /// Adds what was said of a document that stands at `place` of the session, in exchange `number`.
    fn add_at(&mut self, mut report: Report, place: &str, number: usize) {
        for result in &mut report.results {
            let is_about_bytes = matches!(result.rule.check, Check::Body(_));
            let Outcome::Fires(occurrences) = &mut result.outcome else { continue };
            for occurrence in occurrences {
                if is_about_bytes {
                    occurrence.pointer = format!("/exchanges/{number}/response/raw");
                } else if !occurrence.pointer.starts_with("/exchanges/") {
                    occurrence.pointer = format!("{place}{}", occurrence.pointer);
                }
                (occurrence.line, occurrence.column) = (None, None);
            }
        }
        self.add(report);
    }

    /// Adds what was said of a document made of several parts; `place` leads each pointer into the session.
    fn add_with(&mut self, mut report: Report, place: impl Fn(&str) -> Option<String>) {
        for result in &mut report.results {
            let Outcome::Fires(occurrences) = &mut result.outcome else { continue };
            for occurrence in occurrences {
                if let Some(pointer) = place(&occurrence.pointer) {
                    occurrence.pointer = pointer;
                }
                (occurrence.line, occurrence.column) = (None, None);
            }
        }
        self.add(report);
    }

    fn add_result(&mut self, result: RuleResult) {
        match self.results.iter_mut().find(|mine| mine.rule.id == result.rule.id) {
            Some(mine) => merge(mine, result),
            None => self.results.push(result),
        }
    }
}

/// What is said about documents adds up, what is said about the way is said once. A rule that looked somewhere has
/// looked; one that could look nowhere says why.
fn merge(mine: &mut RuleResult, other: RuleResult) {
    let about_way = matches!(mine.rule.check, Check::Way(_));
    match (&mut mine.outcome, other.outcome) {
        (Outcome::Fires(occurrences), Outcome::Fires(more)) if !about_way => {
            let new =
                |o: &Occurrence| !occurrences.iter().any(|old| old.pointer == o.pointer && old.message == o.message);
            let more: Vec<_> = more.into_iter().filter(new).collect();
            occurrences.extend(more);
        }
        (Outcome::Fires(_), _) => {}
        (outcome, other) if rank(&other) > rank(outcome) => *outcome = other,
        _ => {}
    }
}

fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Fires(_) => 5,
        Outcome::Passes => 4,
        Outcome::NotEvaluated(NotEvaluated::NoSession | NotEvaluated::NoDocument) => 1,
        Outcome::NotEvaluated(_) => 3,
        Outcome::NotApplicable => 2,
    }
}
