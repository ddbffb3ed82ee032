//! What is asked of the operator's own servers alone, and only where the settings say so: tools that the operator named are
//! called, what is listed is read, and tokens are tried that should not be taken. Nothing here sends or waits.

use std::time::Duration;

use http::header;
use plumbline_rules::conversation::{Conversation, Turn};
use plumbline_rules::document::{Node, Type};
use plumbline_rules::session::Step;
use serde_json::{Value, json};
use url::Url;

use super::message::legacy::{Agreed, initialize};
use super::message::{Credentials, LISTS, Message, modern};
use super::plan::Next;
use crate::net::Header;
use crate::settings::OwnTool;

/// Resources and prompts of one list that are used.
const MOST_USED: usize = 3;
/// What no server offers.
const MADE_UP_TOOL: &str = "plumbline-no-such-tool";
/// What no server offers.
const MADE_UP_RESOURCE: &str = "plumbline://does-not-exist/7f3a2b6c8d90";
/// What a header names that the body does not.
const OTHER_NAME: &str = "plumbline-another-name";

/// What may be done to a server of the operator's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Active {
    /// The tools that may be called. No other is.
    pub tools: Vec<OwnTool>,
    /// A tool that takes some seconds: it is called and cancelled.
    pub slow_tool: Option<OwnTool>,
    /// What is posted to so that the server changes what it offers.
    pub change_hook: Option<Url>,
    /// A token that lacks a scope, as the header that carries it.
    pub low_scope: Option<Header>,
    /// A token that the same issuer gave for something else.
    pub other_audience: Option<Header>,
    /// A token of another user.
    pub other_user: Option<Header>,
}

impl Active {
    /// The headers that go with a request: those of the operator, with other credentials in them where the request says so.
    /// `None` where the operator gave none of that sort.
    pub(super) fn headers(&self, operators: &[Header], credentials: Credentials) -> Option<Vec<Header>> {
        let others = || operators.iter().filter(|header| header.name != header::AUTHORIZATION).cloned();
        let with = |token: Option<Header>| Some(others().chain([token?]).collect());
        match credentials {
            Credentials::Operators => Some(operators.to_vec()),
            Credentials::Nobodys | Credentials::InQuery => Some(others().collect()),
            Credentials::MadeUp => with(Some(made_up_token())),
            Credentials::LowScope => with(self.low_scope.clone()),
            Credentials::OtherAudience => with(self.other_audience.clone()),
            Credentials::OtherUser => with(self.other_user.clone()),
        }
    }
}

/// A token that nobody gave out.
fn made_up_token() -> Header {
    Header::secret(header::AUTHORIZATION, header::HeaderValue::from_static("Bearer plumbline-made-up-7f3a2b6c8d90"))
}

/// The token among the operator's headers, as it would stand in an address.
pub(super) fn token_of(operators: &[Header]) -> Option<&str> {
    let value = operators.iter().find(|header| header.name == header::AUTHORIZATION)?.value.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// What is known of the server when its turn comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'k> {
    /// What the handshake agreed on; `None`: the revision without sessions.
    pub(super) agreed: Option<&'k Agreed>,
    /// What it declared.
    pub(super) declared: &'k [String],
    /// What was said so far.
    pub(super) conversation: &'k Conversation<'k>,
    /// The operator gave a token for it.
    pub(super) has_token: bool,
}

/// Everything that an own server is asked in one era, in order. Ids count from `from_id`.
pub(super) fn messages(active: &Active, known: Known<'_>, from_id: i64) -> Vec<Message> {
    let mut asking = Asking { known, next_id: from_id, messages: Vec::new() };
    asking.tools(active);
    asking.resources();
    asking.prompts();
    asking.completions();
    if known.agreed.is_some() && asking.declares("logging") {
        asking.request(Step::LoggingSetLevel, "logging/setLevel", json!({ "level": "info" }));
    }
    if known.has_token {
        asking.tokens(active);
    }
    asking.messages
}

/// The same server by another address of this machine.
pub(super) fn at_another_address(url: Url) -> (Url, Message) {
    (url, initialize(Step::Bind, "init-bind", plumbline_rules::conversation::NEWEST_LEGACY))
}

/// The call that is cancelled, and its cancellation. Only of the revisions with a handshake: in the one without, to hang up is
/// to cancel.
pub(super) fn slow_call(active: &Active, known: Known<'_>) -> Option<(Message, Message)> {
    let (tool, agreed) = (active.slow_tool.as_ref()?, known.agreed?);
    let params = json!({ "name": tool.name, "arguments": tool.arguments });
    let call = agreed.request(Step::SlowCall, &SLOW_ID.into(), "tools/call", Some(params)).alone();
    let why = json!({ "requestId": SLOW_ID, "reason": "not needed any more" });
    Some((call, agreed.notice(Step::Cancel, "notifications/cancelled", &why).after(BEFORE_CANCELLING)))
}

/// The id of the call that is cancelled.
const SLOW_ID: i64 = 190;
/// How long a call is at work before it is cancelled.
const BEFORE_CANCELLING: Duration = Duration::from_millis(500);
/// How long after the hook was called what changed is asked for.
const AFTER_CHANGING: Duration = Duration::from_millis(500);
/// How long two streams of one session are compared.
const BOTH_OPEN: Duration = Duration::from_secs(2);
/// How long a notice of a change may take, and a little more.
const NOTICE: Duration = Duration::from_millis(10_500);

/// What is done around a change that the operator's hook makes: a stream is open meanwhile, the lists are asked for again, and
/// what was subscribed to is read again. Then the hook is called once more with two streams open. `wanted` are the notices
/// that the revision without sessions has to be asked for.
pub(super) fn change(active: &Active, known: Known<'_>, wanted: &[&str], from_id: i64) -> Vec<Next> {
    let Some(hook) = &active.change_hook else { return Vec::new() };
    let mut asking = Asking { known, next_id: from_id, messages: Vec::new() };
    let resource =
        asking.listed(Step::ResourcesList, "resources").first().and_then(|one| one["uri"].as_str().map(str::to_owned));
    let subscribes = known.agreed.is_some() && asking.declares("resources.subscribe");
    let mut done = Vec::new();
    if let Some(uri) = resource.as_ref().filter(|_| subscribes) {
        done.push(Next::Say(asking.made(Step::Subscribe, "resources/subscribe", json!({ "uri": uri }))));
    }
    let stream = |step: Step, id: i64| match known.agreed {
        Some(agreed) => Message { step, ..agreed.get() },
        None => Message { step, ..modern::listen(id, wanted, None) },
    };
    done.push(Next::Hold(stream(Step::Change, from_id - 1)));
    done.push(Next::Hook(Box::new(hook.clone())));
    let declared = LISTS.iter().filter(|(capability, _)| known.declared.iter().any(|one| one == capability));
    for (_, method) in declared {
        done.push(Next::Say(asking.made(Step::ChangedList, method, json!({})).after(AFTER_CHANGING)));
    }
    if let Some(uri) = resource.filter(|_| subscribes) {
        done.push(Next::Say(asking.made(Step::ChangedResource, "resources/read", json!({ "uri": uri }))));
    }
    done.push(Next::LetGo(NOTICE));
    if known.agreed.is_some_and(|agreed| agreed.session.is_some()) {
        done.extend([Step::TwoStreams, Step::TwoStreams].map(|step| Next::Hold(stream(step, 0))));
        done.push(Next::Hook(Box::new(hook.clone())));
        done.push(Next::LetGo(BOTH_OPEN));
    }
    done
}

/// The messages to one server as they are made.
struct Asking<'k> {
    known: Known<'k>,
    next_id: i64,
    messages: Vec<Message>,
}

impl Asking<'_> {
    fn declares(&self, capability: &str) -> bool {
        self.known.declared.iter().any(|known| known == capability)
    }

    fn made(&mut self, step: Step, method: &str, params: Value) -> Message {
        self.next_id += 1;
        let name = ["name", "uri"].iter().find_map(|member| params[*member].as_str()).map(str::to_owned);
        match self.known.agreed {
            Some(agreed) => agreed.request(step, &self.next_id.into(), method, Some(params)),
            None => match name {
                Some(name) => modern::request(step, self.next_id, method, params).naming(&name),
                None => modern::request(step, self.next_id, method, params),
            },
        }
    }

    fn request(&mut self, step: Step, method: &str, params: Value) {
        let message = self.made(step, method, params);
        self.messages.push(message);
    }

    /// The tools that the operator named, one that nobody has, and one under the name of another.
    fn tools(&mut self, active: &Active) {
        for tool in &active.tools {
            self.request(Step::ToolsCall, "tools/call", json!({ "name": tool.name, "arguments": tool.arguments }));
        }
        if self.declares("tools") {
            self.request(Step::ToolsCallUnknown, "tools/call", json!({ "name": MADE_UP_TOOL, "arguments": {} }));
        }
        if let Some(tool) = active.tools.first().filter(|_| self.known.agreed.is_none()) {
            let params = json!({ "name": tool.name, "arguments": tool.arguments });
            let message = self.made(Step::HeaderNameMismatch, "tools/call", params).naming(OTHER_NAME);
            self.messages.push(message);
        }
    }

    /// What was listed in this era under that name.
    fn listed(&self, step: Step, list: &str) -> Vec<Value> {
        let is_modern = self.known.agreed.is_none();
        let pages = self.known.conversation.of(step).filter(|turn| turn.is_modern_request() == is_modern);
        let items = pages.filter_map(Turn::result).filter_map(|result| result.get(list)).flat_map(Node::items);
        items.filter(|item| item.kind() == Type::Object).map(Node::to_value).collect()
    }

    fn resources(&mut self) {
        if !self.declares("resources") {
            return;
        }
        for resource in self.listed(Step::ResourcesList, "resources").iter().take(MOST_USED) {
            if let Some(uri) = resource["uri"].as_str() {
                self.request(Step::ResourcesRead, "resources/read", json!({ "uri": uri }));
            }
        }
        self.request(Step::ResourcesReadUnknown, "resources/read", json!({ "uri": MADE_UP_RESOURCE }));
    }

    /// Prompts that need no arguments.
    fn prompts(&mut self) {
        let needs_some = |prompt: &Value| {
            prompt["arguments"].as_array().is_some_and(|arguments| arguments.iter().any(|one| one["required"] == true))
        };
        let prompts = self.listed(Step::PromptsList, "prompts");
        for prompt in prompts.iter().filter(|prompt| !needs_some(prompt)).take(MOST_USED) {
            if let Some(name) = prompt["name"].as_str() {
                self.request(Step::PromptsGet, "prompts/get", json!({ "name": name, "arguments": {} }));
            }
        }
    }

    /// A completion of the first argument of a prompt or else of a template, and the same with what was filled in before.
    fn completions(&mut self) {
        let Some((of, argument)) = self.completable() else { return };
        let params = json!({ "ref": of, "argument": { "name": argument, "value": "" } });
        self.request(Step::Completion, "completion/complete", params.clone());
        if self.known.agreed.is_none_or(|agreed| agreed.version.as_str() >= "2025-06-18") {
            let mut params = params;
            params["context"] = json!({ "arguments": {} });
            self.request(Step::CompletionContext, "completion/complete", params);
        }
    }

    fn completable(&self) -> Option<(Value, String)> {
        let of_prompt = |prompt: &Value| {
            let argument = prompt["arguments"].get(0)?["name"].as_str()?.to_owned();
            Some((json!({ "type": "ref/prompt", "name": prompt["name"].as_str()? }), argument))
        };
        let of_template = |template: &Value| {
            let uri = template["uriTemplate"].as_str()?;
            let (_, rest) = uri.split_once('{')?;
            let argument = rest.split('}').next()?.trim_start_matches(['+', '#', '/', '?', '&', '.', ';']);
            let argument = argument.split([',', ':', '*']).next()?.to_owned();
            Some((json!({ "type": "ref/resource", "uri": uri }), argument))
        };
        let prompts = self.listed(Step::PromptsList, "prompts");
        let templates = || self.listed(Step::TemplatesList, "resourceTemplates");
        prompts.iter().find_map(of_prompt).or_else(|| templates().iter().find_map(of_template))
    }

    /// Tokens that should not be taken.
    fn tokens(&mut self, active: &Active) {
        self.handshake(Step::TokenInQuery, Credentials::InQuery);
        self.handshake(Step::BadToken, Credentials::MadeUp);
        if active.other_audience.is_some() {
            self.handshake(Step::OtherAudience, Credentials::OtherAudience);
        }
        if let Some(agreed) = self.known.agreed.filter(|agreed| agreed.session.is_some()) {
            self.messages.push(agreed.ping(Step::SessionWithoutToken, 110).by(Credentials::Nobodys));
            if active.other_user.is_some() {
                self.messages.push(agreed.ping(Step::SessionOtherUser, 111).by(Credentials::OtherUser));
            }
        }
        if active.low_scope.is_some() {
            let message = match active.tools.first() {
                Some(tool) => {
                    let params = json!({ "name": tool.name, "arguments": tool.arguments });
                    self.made(Step::LowScope, "tools/call", params)
                }
                None => self.made(Step::LowScope, "tools/list", json!({})),
            };
            self.messages.push(message.by(Credentials::LowScope));
        }
    }

    /// The first request of the era with other credentials.
    fn handshake(&mut self, step: Step, credentials: Credentials) {
        let message = match self.known.agreed {
            Some(agreed) => initialize(step, &format!("init-{step}"), &agreed.version),
            None => {
                self.next_id += 1;
                Message { step, ..modern::discover(self.next_id) }
            }
        };
        self.messages.push(message.by(credentials));
    }
}

#[cfg(test)]
mod tests {
    use plumbline_rules::session::{Exchange, Request, Response, Session};

    use super::*;

    fn said(step: Step, method: &str, result: &Value) -> Exchange {
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": method }).to_string();
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
        Exchange {
            step: Some(step),
            request: Request { method: "POST".to_owned(), raw: Some(asked), ..Request::default() },
            response: Some(Response { status: 200, raw: Some(answer), ..Response::default() }),
            ..Exchange::default()
        }
    }

    /// The steps and bodies of all messages to a server that offers a bit of everything.
    fn asked(active: &Active, agreed: Option<&Agreed>, has_token: bool) -> Vec<(Step, Value)> {
        let mut session = Session::from(vec![
            said(Step::ResourcesList, "resources/list", &json!({"resources": [{"uri": "tides://1"}]})),
            said(
                Step::PromptsList,
                "prompts/list",
                &json!({"prompts": [{"name": "plain"}, {"name": "needy", "arguments": [{"name": "harbour", "required": true}]}]}),
            ),
        ]);
        if agreed.is_none() {
            for exchange in &mut session.exchanges {
                exchange.request.headers.insert("mcp-method".to_owned(), "x".to_owned());
            }
        }
        let conversation = Conversation::read(&session, None, None, None);
        let declared = ["tools", "resources", "prompts", "logging"].map(str::to_owned);
        let known = Known { agreed, declared: &declared, conversation: &conversation, has_token };
        let body = |message: &Message| serde_json::from_str(message.body.as_deref().expect("a body")).expect("JSON");
        messages(active, known, 100).iter().map(|message| (message.step, body(message))).collect()
    }

    fn agreed() -> Agreed {
        Agreed { version: "2025-11-25".to_owned(), session: Some("s".to_owned()) }
    }

    #[test]
    fn only_tools_that_the_operator_named_are_called() {
        let tool = OwnTool { name: "tide_table".to_owned(), arguments: json!({}) };
        let active = Active { tools: vec![tool], ..Active::default() };
        for agreed in [Some(agreed()), None] {
            let asked = asked(&active, agreed.as_ref(), true);
            let called = asked.iter().filter(|(_, body)| body["method"] == "tools/call");
            for (step, body) in called {
                let name = body["params"]["name"].as_str().expect("a name");
                assert!(name == "tide_table" || (name == MADE_UP_TOOL && *step == Step::ToolsCallUnknown), "{name}");
            }
        }
    }

    #[test]
    fn what_is_listed_is_used_and_what_needs_arguments_is_not() {
        let asked = asked(&Active::default(), Some(&agreed()), false);
        let steps: Vec<Step> = asked.iter().map(|(step, _)| *step).collect();
        assert_eq!(
            steps,
            [
                Step::ToolsCallUnknown,
                Step::ResourcesRead,
                Step::ResourcesReadUnknown,
                Step::PromptsGet,
                Step::Completion,
                Step::CompletionContext,
                Step::LoggingSetLevel,
            ]
        );
        assert_eq!(asked[3].1["params"]["name"], "plain");
        assert_eq!(asked[4].1["params"]["ref"]["name"], "needy");
    }

    #[test]
    fn tokens_are_tried_only_where_there_is_one() {
        let tries = |has_token| {
            let asked = asked(&Active::default(), Some(&agreed()), has_token);
            asked
                .iter()
                .any(|(step, _)| matches!(step, Step::BadToken | Step::TokenInQuery | Step::SessionWithoutToken))
        };
        assert!(tries(true) && !tries(false));
    }

    #[test]
    fn other_credentials_take_the_place_of_the_operators() {
        let key = Header::secret(header::HeaderName::from_static("x-key"), header::HeaderValue::from_static("k"));
        let token = Header::secret(header::AUTHORIZATION, header::HeaderValue::from_static("Bearer mine"));
        let operators = [key.clone(), token.clone()];
        let active = Active::default();
        assert_eq!(active.headers(&operators, Credentials::Nobodys), Some(vec![key.clone()]));
        assert_eq!(active.headers(&operators, Credentials::MadeUp), Some(vec![key, made_up_token()]));
        assert_eq!(active.headers(&operators, Credentials::OtherUser), None);
        assert_eq!(token_of(&operators), Some("mine"));
    }
}
