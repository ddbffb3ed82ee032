//! An MCP server that is a command of the operator's, talked to over its standard streams.
//!
//! - [`process`]: the command in a process group of its own, bounded, and ended as a group;
//! - here: what is said to it, in which order, and what came of it.
//!
//! Only commands that the settings name are ever started. What a registry lists is never run.

pub mod process;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plumbline_rules::conversation::{Conversation, HTTP_SSE, NEWEST_LEGACY, Turn, list_step};
use plumbline_rules::document::{Node, Type};
use plumbline_rules::reach::Outcome;
use plumbline_rules::session::{Exchange, Request, Response, Session, Stdio, StdioEnd, StdioEnding, Step, WireError};
use plumbline_rules::settings;
use serde_json::{Value, json};

use self::process::{Heard, Process, Start};
use super::mcp::message::legacy::{Agreed, initialize};
use super::mcp::message::{LISTS, Message, modern};
use super::{Body, Observed};
use crate::net::{NetError, Until};
use crate::settings::OwnTool;

settings! {
    /// How commands are talked to over their standard streams, and what they may cost.
    pub struct StdioSettings {
        /// How long is waited for an answer to `server/discover`, milliseconds: older servers say nothing to it.
        pub discover_ms: u64 = 3_000,
        /// How long is waited for any other answer, milliseconds.
        pub step_ms: u64 = 10_000,
        /// How long a command may take to end after its input was closed, milliseconds.
        pub end_ms: u64 = 5_000,
        /// How long it may then take to end on SIGTERM, milliseconds; after that the whole group is killed.
        pub term_ms: u64 = 3_000,
        /// How long one run may take as a whole, milliseconds.
        pub run_ms: u64 = 60_000,
        /// Most bytes that are read of its output; a command that writes more is killed.
        pub output_bytes: u64 = 8 << 20,
        /// Most memory that it and its children may use together, MiB; beyond they are killed. Only where /proc tells.
        pub memory_mib: u64 = 1_024,
    }
}

/// Pages of one list that are followed.
const MOST_PAGES: usize = 200;

/// Which command to talk to.
#[derive(Debug, Clone, Default)]
pub struct CommandAsk {
    /// The address under which it is kept, such as `stdio:tides`.
    pub url: String,
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Where it is started; `None`: in an empty folder that is removed afterwards.
    pub folder: Option<PathBuf>,
    /// The odd lines too.
    pub odd: bool,
    /// The tools that may be called.
    pub tools: Vec<OwnTool>,
}

/// Starts the command, asks it all there is to ask, and ends it.
///
/// # Errors
/// Only when we failed.
pub async fn observe(ask: &CommandAsk, settings: &StdioSettings) -> Result<Observed, NetError> {
    let stdio = Stdio { command: ask.command.clone(), lines: Vec::new(), ends: Vec::new() };
    let session = Session { exchanges: Vec::new(), stdio: Some(stdio) };
    let mut run = Run { ask, settings, session, process: None, next_id: 1, last: None };
    run.talk().await?;
    run.end().await;
    let was_started = run.stdio().ends.iter().any(|end| end.how != StdioEnding::NotStarted);
    let outcome = if was_started { Outcome::Ok } else { Outcome::Absent(None) };
    Ok(Observed { session: run.session, robots: Vec::new(), outcome, body: Body::None })
}

/// A run at work.
struct Run<'r> {
    ask: &'r CommandAsk,
    settings: &'r StdioSettings,
    session: Session,
    process: Option<Process>,
    next_id: i64,
    /// What was written last.
    last: Option<Step>,
}

/// What was agreed on, and what the server offers.
struct Spoken {
    /// `None`: the revision without sessions.
    agreed: Option<Agreed>,
    declared: Vec<String>,
}

impl Run<'_> {
    async fn talk(&mut self) -> Result<(), NetError> {
        if !self.start().await? {
            return Ok(());
        }
        let Some(spoken) = self.open().await? else { return Ok(()) };
        self.lists(&spoken).await;
        for tool in &self.ask.tools {
            let id = self.id();
            let params = json!({ "name": tool.name, "arguments": tool.arguments });
            self.say(&spoken.request(Step::ToolsCall, id, "tools/call", params)).await;
        }
        if self.ask.odd {
            self.odd(&spoken).await;
        }
        Ok(())
    }

    /// Starts the command; `false` where it cannot be.
    async fn start(&mut self) -> Result<bool, NetError> {
        let since = self.process.as_ref().map(Process::began);
        let start = Start {
            command: &self.ask.command,
            env: &self.ask.env,
            folder: self.ask.folder.as_deref(),
            since,
            output_bytes: self.settings.output_bytes,
            memory_bytes: self.settings.memory_mib << 20,
            deadline: Duration::from_millis(self.settings.run_ms),
        };
        match Process::start(&start)? {
            Ok(process) => {
                self.process = Some(process);
                Ok(true)
            }
            Err(why) => {
                let end = StdioEnd { at_ms: 0, how: StdioEnding::NotStarted, what: Some(why), after: None };
                self.stdio().ends.push(end);
                Ok(false)
            }
        }
    }

    /// The revision without sessions first, then the handshake; on a process of its own where the first question was the
    /// end of the first.
    async fn open(&mut self) -> Result<Option<Spoken>, NetError> {
        let id = self.id();
        let patience = Duration::from_millis(self.settings.discover_ms);
        let discovered = self.said(&modern::discover(id), patience).await;
        if let Some(spoken) = read(discovered, modern_spoken) {
            return Ok(Some(spoken));
        }
        if self.has_died() {
            self.end().await;
            if !self.start().await? {
                return Ok(None);
            }
        }
        let shaken = self.say(&initialize(Step::Initialize, "init-1", NEWEST_LEGACY)).await;
        let Some(spoken) = read(shaken, legacy_spoken) else { return Ok(None) };
        if let Some(agreed) = &spoken.agreed {
            self.say(&agreed.initialized()).await;
            let id = self.id();
            self.say(&agreed.ping(Step::Ping, id)).await;
        }
        Ok(Some(spoken))
    }

    async fn lists(&mut self, spoken: &Spoken) {
        for (capability, method) in LISTS {
            if !spoken.declared.iter().any(|known| known == capability) {
                continue;
            }
            let step = list_step(method).expect("the method is one of the lists");
            let mut cursor: Option<String> = None;
            for _ in 0..MOST_PAGES {
                let id = self.id();
                let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
                let page = self.say(&spoken.request(step, id, method, params)).await;
                let next = read(page, |turn| turn.result()?.get("nextCursor")?.text().map(str::to_owned));
                if next.is_none() || next == cursor {
                    break;
                }
                cursor = next;
            }
        }
    }

    /// A method that nobody knows, text that is not ASCII, and a line that breaks off; then whether it still answers.
    async fn odd(&mut self, spoken: &Spoken) {
        let id = self.id();
        self.say(&spoken.request(Step::UnknownMethod, id, "plumbline/does-not-exist", json!({}))).await;
        let (id, note) = (self.id(), json!({ "_meta": { "dev.plumbline/note": "Grüße aus dem Hafen, 港から" } }));
        self.say(&spoken.request(Step::NonAscii, id, spoken.harmless(), note)).await;
        let broken = Message { until: Until::Never, ..spoken.request(Step::MalformedJson, 91, "ping", json!({})) };
        self.say(&broken.broken_off()).await;
        let id = self.id();
        let heard = self.say(&spoken.request(Step::Ping, id, spoken.harmless(), json!({}))).await;
        // That one was answered before: what nobody is left to answer it for is the line between.
        if heard.error == Some(WireError::Reset) {
            self.last = Some(Step::MalformedJson);
        }
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    async fn say(&mut self, message: &Message) -> Exchange {
        self.said(message, Duration::from_millis(self.settings.step_ms)).await
    }

    /// Writes a line, waits for its answer, and keeps both.
    async fn said(&mut self, message: &Message, patience: Duration) -> Exchange {
        let body = message.body.clone().unwrap_or_default();
        let request = Request {
            method: STDIO.to_owned(),
            url: self.ask.url.clone(),
            raw: Some(body.clone()),
            ..Request::default()
        };
        let at_ms = chrono::Utc::now().timestamp_millis();
        let began = std::time::Instant::now();
        self.last = Some(message.step);
        let heard = match &mut self.process {
            Some(process) => process.ask(message.step, &body, &message.until, patience).await,
            None => Heard::Gone,
        };
        let (response, error) = match heard {
            Heard::Answer(text) => (Some(Response { status: 200, raw: Some(text), ..Response::default() }), None),
            Heard::Nothing => (None, None),
            Heard::Silence => (None, Some(WireError::Timeout)),
            Heard::Gone => (None, Some(WireError::Reset)),
        };
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let exchange =
            Exchange { step: Some(message.step), request, response, error, at_ms, took_ms, ..Exchange::default() };
        self.session.exchanges.push(exchange.clone());
        exchange
    }

    fn has_died(&mut self) -> bool {
        self.process.as_mut().is_none_or(Process::has_ended)
    }

    /// Ends the process and keeps what it said and how it ended.
    async fn end(&mut self) {
        let Some(process) = self.process.take() else { return };
        let (end_ms, term_ms) = (self.settings.end_ms, self.settings.term_ms);
        let (lines, mut end) = process.end(Duration::from_millis(end_ms), Duration::from_millis(term_ms)).await;
        if matches!(end.how, StdioEnding::Exited | StdioEnding::Overrun) {
            end.after = self.last;
        }
        let stdio = self.stdio();
        stdio.lines.extend(lines);
        stdio.ends.push(end);
    }

    fn stdio(&mut self) -> &mut Stdio {
        self.session.stdio.get_or_insert_with(|| Stdio { command: Vec::new(), lines: Vec::new(), ends: Vec::new() })
    }
}

/// What stands for the method of a request that went over standard input.
const STDIO: &str = "STDIO";

/// Reads an exchange as the rules do.
fn read<T>(exchange: Exchange, reading: impl Fn(&Turn<'_>) -> Option<T>) -> Option<T> {
    let session = Session::from(vec![exchange]);
    let conversation = Conversation::read(&session, None, None, None);
    conversation.turns.first().and_then(reading)
}

fn modern_spoken(turn: &Turn<'_>) -> Option<Spoken> {
    let is_modern = turn.confirms_modern() || turn.is_modern_error();
    is_modern.then(|| Spoken { agreed: None, declared: turn.result().map(declared).unwrap_or_default() })
}

fn legacy_spoken(turn: &Turn<'_>) -> Option<Spoken> {
    let result = turn.result()?;
    let version = result.get("protocolVersion").and_then(Node::text).unwrap_or(HTTP_SSE).to_owned();
    Some(Spoken { agreed: Some(Agreed { version, session: None }), declared: declared(result) })
}

/// The names of the declared capabilities.
fn declared(result: Node<'_>) -> Vec<String> {
    let capabilities = result.get("capabilities").filter(|node| node.kind() == Type::Object);
    let set = capabilities.into_iter().flat_map(Node::members).filter(|(_, value)| !value.is_null());
    set.map(|(name, _)| name.to_owned()).collect()
}

impl Spoken {
    fn request(&self, step: Step, id: i64, method: &str, params: Value) -> Message {
        match &self.agreed {
            Some(agreed) => agreed.request(step, &id.into(), method, Some(params)),
            None => modern::request(step, id, method, params),
        }
    }

    /// A method that every server of the era answers and that does nothing.
    fn harmless(&self) -> &'static str {
        if self.agreed.is_some() { "ping" } else { "server/discover" }
    }
}
