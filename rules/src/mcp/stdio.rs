//! Servers that are started as a command: what they write, and how they end. Only commands that the operator configured.

use super::heard::ON;
use super::{ALL, MODERN};
use crate::conversation::{self, Conversation, Era};
use crate::document::{Document, Node, Type};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Axis, Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::{Stdio, StdioEnd, StdioEnding, StdioLine, StdioStream, Step};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &STDIO_START_FAILED,
    &STDIO_STDOUT_NOISE,
    &STDIO_SPLIT_MESSAGE,
    &STDIO_UNTERMINATED,
    &STDIO_INVALID_UTF8,
    &STDIO_SILENT,
    &STDIO_CRASH_ON_BAD_LINE,
    &STDIO_NO_EXIT_ON_EOF,
    &STDIO_REQUEST_WRITTEN,
];

/// Lines that one message may be torn into.
const MOST_PARTS: usize = 64;

/// What went over the standard streams; a server that is called over HTTP has none.
fn stdio_of<'c>(context: &Context<'c>, out: &mut Occurrences) -> Option<&'c Stdio> {
    let stdio = context.session.and_then(|session| session.stdio.as_ref());
    if stdio.is_none() {
        out.not_applicable();
    }
    stdio
}

/// What the server wrote, each line with its place in the record.
fn said(stdio: &Stdio) -> Vec<(usize, &StdioLine)> {
    stdio.lines.iter().enumerate().filter(|(_, line)| line.stream == StdioStream::Stdout).collect()
}

fn place(number: usize) -> String {
    format!("/stdio/lines/{number}")
}

fn has_shaken_hands(conversation: &Conversation<'_>) -> bool {
    conversation.era != Era::Unknown
}

/// Whether a line is a message of JSON-RPC, or a batch of them.
fn is_message(line: &str) -> bool {
    let document = Document::from_text(line);
    let is_one = |node: Node<'_>| {
        node.kind() == Type::Object
            && ["jsonrpc", "method", "result", "error"].iter().any(|key| node.get(key).is_some())
    };
    document.root().is_some_and(|root| is_one(root) || (!root.is_empty() && root.items().all(is_one)))
}

/// Lines next to each other that are no message alone and one together. Linear but for the bound on parts.
fn split_messages(said: &[(usize, &StdioLine)]) -> Vec<Vec<usize>> {
    let text = |at: usize| said[at].1.raw.as_deref().filter(|_| !said[at].1.is_cut);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < said.len() {
        let opens = text(at).is_some_and(|raw| raw.trim_start().starts_with(['{', '[']) && !is_message(raw));
        let end = opens.then(|| end_of_message(said, at)).flatten();
        match end {
            Some(end) => {
                found.push(said[at..=end].iter().map(|(number, _)| *number).collect());
                at = end + 1;
            }
            None => at += 1,
        }
    }
    found
}

/// The line with which a message that begins at a line ends.
fn end_of_message(said: &[(usize, &StdioLine)], from: usize) -> Option<usize> {
    let mut joined = said[from].1.raw.clone()?;
    for (offset, (_, line)) in said[from + 1..].iter().take(MOST_PARTS).enumerate() {
        let raw = line.raw.as_deref().filter(|raw| !line.is_cut && !is_message(raw))?;
        joined.push('\n');
        joined.push_str(raw);
        if raw.trim_end().ends_with(['}', ']']) && is_message(&joined) {
            return Some(from + 1 + offset);
        }
    }
    None
}

crate::rule! {
    /// The command starts and answers.
    ///
    /// It could not be started, or ended before it said who it is. No client gets further.
    static STDIO_START_FAILED = {
        id: "mcp/stdio-start-failed",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Live,
        on: ON,
        place: "stdio",
        fix: "Check the command and its environment.",
        spec: "policy: stdio",
        seeds: &["validator:1.2.1.1"],
        examples: &[
            fires(&["/stdio/ends/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "error": "timeout"}], "stdio": {"command": ["tides"], "lines": [], "ends": [{"at_ms": 5, "how": "not-started", "what": "No such file"}]}}"#).whole(),
            fires(&["/stdio/ends/1"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "error": "timeout"}], "stdio": {"command": ["tides"], "lines": [], "ends": [{"at_ms": 5, "how": "exited", "what": "1", "after": "discover"}, {"at_ms": 9, "how": "exited", "what": "1", "after": "initialize"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [], "ends": [{"at_ms": 5, "how": "exited", "what": "1", "after": "discover"}, {"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_start_failed),
    }
}

fn stdio_start_failed(conversation: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    if has_shaken_hands(conversation) {
        return;
    }
    let Some((number, end)) = stdio.ends.iter().enumerate().next_back() else { return };
    let what = match (end.how, end.after) {
        (StdioEnding::NotStarted, _) => "it cannot be started",
        (StdioEnding::Exited, None | Some(Step::Discover | Step::Initialize)) => "it ended before it answered",
        _ => return,
    };
    let why = end.what.as_deref().map(|what| format!(" ({})", quote(what))).unwrap_or_default();
    out.add_at(format!("/stdio/ends/{number}"), format!("{what}{why}"));
}

crate::rule! {
    /// Standard output carries messages and nothing else.
    ///
    /// A client reads every line as a message; a banner or a log line ends the conversation with many.
    static STDIO_STDOUT_NOISE = {
        id: "mcp/stdio-stdout-noise",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Live,
        on: ON,
        place: "stdio",
        fix: "Log to stderr.",
        spec: "2025-11-25 transports, stdio",
        seeds: &["validator:1.2.1.2", "validator:1.2.1.3", "validator:1.2.1.4", "validator:1.2.1.5"],
        examples: &[
            fires(&["/stdio/lines/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "Listening on stdio"}, {"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
            fires(&["/stdio/lines/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": ""}, {"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}"}, {"at_ms": 100, "stream": "stdout", "raw": " "}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}"}, {"at_ms": 1, "stream": "stderr", "raw": "Listening on stdio"}, {"at_ms": 1, "stream": "stdin", "raw": "{]"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_stdout_noise),
    }
}

fn stdio_stdout_noise(_: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    let said = said(stdio);
    let split: Vec<usize> = split_messages(&said).into_iter().flatten().collect();
    let mut has_blank = false;
    for (number, line) in &said {
        let Some(raw) = line.raw.as_deref().filter(|_| !line.is_cut) else { continue };
        if raw.trim().is_empty() {
            if !has_blank && !line.is_unterminated {
                has_blank = true;
                out.add_at(place(*number), "a blank line");
            }
        } else if !is_message(raw) && !split.contains(number) {
            out.add_at(place(*number), format!("{} is no message", quote(raw)));
        }
    }
}

crate::rule! {
    /// A message stands on one line.
    ///
    /// A client reads line by line, and gets the parts of something that it cannot read.
    static STDIO_SPLIT_MESSAGE = {
        id: "mcp/stdio-split-message",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Live,
        on: ON,
        place: "stdio",
        fix: "Write each message on one line.",
        spec: "2025-11-25 transports, stdio",
        seeds: &["validator:1.2.1.4"],
        examples: &[
            fires(&["/stdio/lines/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\","}, {"at_ms": 100, "stream": "stdout", "raw": "\"method\": \"notifications/tools/list_changed\"}"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}"}, {"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_split_message),
    }
}

fn stdio_split_message(_: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    for lines in split_messages(&said(stdio)) {
        if let Some(first) = lines.first() {
            out.add_at(place(*first), format!("one message on {} lines", lines.len()));
        }
    }
}

crate::rule! {
    /// A message ends with a newline.
    ///
    /// A client waits for the end of the line, and does not see the message until the next one comes.
    static STDIO_UNTERMINATED = {
        id: "mcp/stdio-unterminated",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Live,
        on: ON,
        place: "stdio",
        fix: "End each message with a newline and flush.",
        spec: "2025-11-25 transports, stdio",
        seeds: &["validator:1.2.1.3"],
        examples: &[
            fires(&["/stdio/lines/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}", "is_unterminated": true}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_unterminated),
    }
}

fn stdio_unterminated(_: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    for (number, line) in said(stdio) {
        if line.is_unterminated && line.raw.as_deref().is_some_and(is_message) {
            out.add_at(place(number), "a message without the end of its line");
        }
    }
}

crate::rule! {
    /// Standard output is UTF-8.
    ///
    /// A client cannot read the line, and many end the conversation.
    static STDIO_INVALID_UTF8 = {
        id: "mcp/stdio-invalid-utf8",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Live,
        on: ON,
        place: "stdio",
        fix: "Write UTF-8.",
        spec: "2025-11-25 transports",
        seeds: &["validator:1.2.1.5"],
        examples: &[
            fires(&["/stdio/lines/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw_base64": "eyL/Ijo="}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stderr", "raw_base64": "eyL/Ijo="}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_invalid_utf8),
    }
}

fn stdio_invalid_utf8(_: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    for (number, line) in said(stdio) {
        if line.raw.is_none() && line.raw_base64.is_some() {
            out.add_at(place(number), "a line that is no UTF-8");
        }
    }
}

crate::rule! {
    /// A running server answers the handshake.
    ///
    /// It runs, and says nothing for ten seconds. Clients wait, and then give up.
    static STDIO_SILENT = {
        id: "mcp/stdio-silent",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Timing,
        on: ON,
        place: "stdio",
        fix: "Answer every request.",
        spec: "2025-11-25 transports, stdio",
        seeds: &["validator:1.2.1.2"],
        examples: &[
            fires(&["/stdio/lines/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "error": "timeout"}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 3000, "stream": "stdin", "raw": "{}", "step": "initialize"}], "ends": [{"at_ms": 18500, "how": "terminated"}]}}"#).whole().beside(&["mcp/stdio-no-exit-on-eof"]),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "error": "timeout"}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 3000, "stream": "stdin", "raw": "{}", "step": "initialize"}], "ends": [{"at_ms": 4000, "how": "overrun"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 0, "stream": "stdin", "raw": "{}", "step": "discover"}, {"at_ms": 3000, "stream": "stdin", "raw": "{}", "step": "initialize"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_silent),
    }
}

/// How long a server may think about the handshake, milliseconds.
const HANDSHAKE_MS: u64 = 10_000;

fn stdio_silent(conversation: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    if has_shaken_hands(conversation) || conversation.of(Step::Initialize).any(|turn| turn.response().is_some()) {
        return;
    }
    let asked = stdio.lines.iter().enumerate().rfind(|(_, line)| line.step == Some(Step::Initialize));
    let Some((number, line)) = asked else { return out.not_evaluated(NotEvaluated::NotAsked) };
    let is_running = |end: &&StdioEnd| !matches!(end.how, StdioEnding::NotStarted | StdioEnding::Exited);
    let last = stdio.ends.last().filter(is_running);
    if last.is_some_and(|end| end.at_ms >= line.at_ms + HANDSHAKE_MS) {
        out.add_at(place(number), "initialize is not answered within 10 s");
    }
}

crate::rule! {
    /// One broken line does not end a server.
    ///
    /// A client that errs once loses everything it had under way.
    static STDIO_CRASH_ON_BAD_LINE = {
        id: "mcp/stdio-crash-on-bad-line",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Live,
        on: ON,
        place: "stdio",
        fix: "Ignore or answer -32700 and go on.",
        spec: "JSON-RPC 2.0 §5.1",
        seeds: &["validator:1.2.1.5"],
        examples: &[
            fires(&["/stdio/ends/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [], "ends": [{"at_ms": 900, "how": "exited", "what": "1", "after": "malformed-json"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_crash_on_bad_line),
    }
}

fn stdio_crash_on_bad_line(_: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    let was_asked = stdio.lines.iter().any(|line| line.step == Some(Step::MalformedJson));
    let crashed = |end: &StdioEnd| end.how == StdioEnding::Exited && end.after == Some(Step::MalformedJson);
    match stdio.ends.iter().position(crashed) {
        Some(number) => {
            out.add_at(format!("/stdio/ends/{number}"), "it ended after one malformed line");
        }
        None if !was_asked => out.not_evaluated(NotEvaluated::NotAsked),
        None => {}
    }
}

crate::rule! {
    /// A server ends when its input ends.
    ///
    /// Clients close the input when they are done; what does not end then runs on, and with every start one more.
    static STDIO_NO_EXIT_ON_EOF = {
        id: "mcp/stdio-no-exit-on-eof",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        mode: Mode::Stdio,
        evidence: Evidence::Timing,
        on: ON,
        place: "stdio",
        fix: "Exit on end of input.",
        spec: "2026-07-28 stdio, Shutdown",
        seeds: &["validator:1.3.4.1"],
        examples: &[
            fires(&["/stdio/ends/0"], r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [], "ends": [{"at_ms": 9000, "how": "killed"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "initialize", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": \"init-1\", \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"plumbline\", \"version\": \"0.1.0\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": "init-1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}, "instructions": "Ask for tide tables."}}}}], "stdio": {"command": ["tides"], "lines": [], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_no_exit_on_eof),
    }
}

fn stdio_no_exit_on_eof(_: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    let runs_on = |end: &StdioEnd| matches!(end.how, StdioEnding::Terminated | StdioEnding::Killed);
    if let Some(number) = stdio.ends.iter().position(runs_on) {
        out.add_at(format!("/stdio/ends/{number}"), "it still ran 5 s after its input was closed");
    }
}

crate::rule! {
    /// A server of 2026-07-28 sends no requests.
    ///
    /// It asks for input in its results. Clients of that revision have no answer for a request.
    static STDIO_REQUEST_WRITTEN = {
        id: "mcp/stdio-request-written",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Stdio,
        evidence: Evidence::Live,
        on: ON,
        place: "stdio",
        fix: "Use input_required results.",
        spec: "2026-07-28 stdio, Receiving Messages",
        examples: &[
            fires(&["/stdio/lines/0"], r#"{"exchanges": [{"step": "discover", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"server/discover\", \"params\": {\"_meta\": {\"io.modelcontextprotocol/protocolVersion\": \"2026-07-28\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}, "instructions": "Ask for tide tables.", "ttlMs": 60000, "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}}}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"ping\"}"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
            silent(r#"{"exchanges": [{"step": "discover", "request": {"method": "STDIO", "url": "stdio:tides", "raw": "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"server/discover\", \"params\": {\"_meta\": {\"io.modelcontextprotocol/protocolVersion\": \"2026-07-28\"}}}"}, "response": {"status": 200, "body": {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}, "instructions": "Ask for tide tables.", "ttlMs": 60000, "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "tides", "title": "Tides", "version": "2.3.1"}}}}}}], "stdio": {"command": ["tides"], "lines": [{"at_ms": 100, "stream": "stdout", "raw": "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}"}], "ends": [{"at_ms": 900, "how": "closed", "what": "0"}]}}"#).whole(),
        ],
        check: Check::Conversation(stdio_request_written),
    }
}

fn stdio_request_written(conversation: &Conversation<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(stdio) = stdio_of(context, out) else { return };
    if conversation.era != Era::Modern {
        return out.not_applicable();
    }
    for (number, line) in said(stdio) {
        let message = line.raw.as_deref().map(Document::from_text);
        let method = message.as_ref().and_then(Document::root).filter(|root| root.given("id").is_some());
        if let Some(method) = method.and_then(|root| root.get("method")?.text()) {
            out.add_in(conversation::MODERN, place(number), format!("asks for {}", quote(method)));
        }
    }
}
