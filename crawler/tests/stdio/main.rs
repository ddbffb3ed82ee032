//! Commands that speak MCP over their standard streams, each a few lines of shell: what they are asked, what they may cost,
//! and that nothing of them is left.

use std::collections::BTreeMap;

use plumbline_crawler::probe::stdio::{CommandAsk, StdioSettings, observe};
use plumbline_crawler::settings::OwnTool;
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::reach::Outcome;
use plumbline_rules::rule::{Axis, Severity};
use plumbline_rules::session::{Session, Stdio, StdioEnding, StdioStream, Step, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::{Access, Standing};
use serde_json::{Value, json};

/// A server of the revisions with a handshake, up to what it does for each line.
const LEGACY: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"notifications/'*) ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tides","title":"Tides","version":"2.3.1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"tide_table","title":"Tide table","description":"Gives the tide table of a harbour.","inputSchema":{"type":"object","properties":{}}}]}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"high at noon"}]}}\n' "$id" ;;
    *'"ping"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
    *'}') printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *) printf '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}\n' ;;
  esac
done
"#;

/// A server of the revision without sessions.
const MODERN: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  more='"resultType":"complete","ttlMs":60000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"tides","title":"Tides","version":"2.3.1"}}'
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},%s}}\n' "$id" "$more" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[],%s}}\n' "$id" "$more" ;;
    *'}') printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *) printf '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}\n' ;;
  esac
done
"#;

fn quick() -> StdioSettings {
    StdioSettings {
        discover_ms: 500,
        step_ms: 1_500,
        end_ms: 600,
        term_ms: 300,
        run_ms: 8_000,
        ..StdioSettings::default()
    }
}

fn shell(script: &str) -> CommandAsk {
    let path = std::env::var("PATH").expect("there is a PATH");
    CommandAsk {
        url: "stdio:tides".to_owned(),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        folder: None,
        odd: true,
        tools: Vec::new(),
    }
}

async fn seen(ask: &CommandAsk, settings: &StdioSettings) -> (Session, Outcome) {
    let observed = observe(ask, settings).await.expect("we did not fail");
    (observed.session, observed.outcome)
}

async fn talked_to(script: &str) -> Session {
    seen(&shell(script), &quick()).await.0
}

fn stdio(session: &Session) -> &Stdio {
    session.stdio.as_ref().expect("it was a command")
}

fn how(session: &Session) -> StdioEnding {
    stdio(session).ends.last().expect("it ended").how
}

/// What was written to it: the methods, in order.
fn asked(session: &Session) -> Vec<String> {
    let written = stdio(session).lines.iter().filter(|line| line.stream == StdioStream::Stdin);
    let method = |text: &str| serde_json::from_str::<Value>(text).ok()?.get("method")?.as_str().map(str::to_owned);
    written
        .map(|line| method(line.raw.as_deref().unwrap_or_default()).unwrap_or_else(|| "half a message".to_owned()))
        .collect()
}

fn errors(session: &Session) -> Vec<String> {
    let report = judge_session(session, Surface::Mcp, None, &Given::default(), &Settings::default());
    let loud = report.fired().filter(|(rule, found)| {
        rule.axis == Axis::Conformity && found.iter().any(|one| one.severity >= Severity::Warning)
    });
    loud.map(|(rule, found)| format!("{} {} {}", rule.id, found[0].pointer, found[0].message)).collect()
}

fn logged(session: &Session) -> String {
    let log = stdio(session).lines.iter().filter(|line| line.stream == StdioStream::Stderr);
    log.filter_map(|line| line.raw.clone()).collect::<Vec<_>>().join("\n")
}

fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_server_of_either_era_is_recognised_and_accused_of_nothing() {
    for (script, era, revision, rest) in [
        (LEGACY, "legacy", "2025-11-25", vec!["initialize", "notifications/initialized", "ping"]),
        (MODERN, "modern", "2026-07-28", vec![]),
    ] {
        let session = talked_to(script).await;
        let harmless = if era == "legacy" { "ping" } else { "server/discover" };
        let mut expected = vec!["server/discover"];
        expected.extend(rest);
        expected.extend(["tools/list", "plumbline/does-not-exist", harmless, "half a message", harmless]);
        assert_eq!(asked(&session), expected);
        let standing = Standing::of(&session);
        assert_eq!((standing.era.as_str(), standing.access), (era, Access::Open));
        assert_eq!(standing.revisions, [revision]);
        assert_eq!(how(&session), StdioEnding::Closed);
        assert_eq!(errors(&session), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_to_the_newest_question_is_an_old_server() {
    let session = talked_to(&LEGACY.replace("*'}') printf", "*discover*) ;; *'}') printf")).await;
    assert_eq!(Standing::of(&session).era.as_str(), "legacy");
    assert_eq!(errors(&session), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_of_the_newest_question_is_started_once_more() {
    let session = talked_to(&LEGACY.replace("*'}') printf", "*discover*) exit 3 ;; *'}') printf")).await;
    let ends: Vec<_> = stdio(&session).ends.iter().map(|end| (end.how, end.after)).collect();
    assert_eq!(ends, [(StdioEnding::Exited, Some(Step::Discover)), (StdioEnding::Closed, None)]);
    assert_eq!(Standing::of(&session).era.as_str(), "legacy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_is_absent_and_says_why() {
    let ask = CommandAsk { command: vec!["plumbline-no-such-program".to_owned()], ..shell("") };
    let (session, outcome) = seen(&ask, &quick()).await;
    assert_eq!((how(&session), outcome), (StdioEnding::NotStarted, Outcome::Absent(None)));
    let what = stdio(&session).ends[0].what.clone().expect("a reason");
    assert!(what.contains("plumbline-no-such-program"), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_the_environment_it_was_given_and_a_folder_of_its_own() {
    let script = format!("env >&2; pwd >&2; ls -A | wc -l >&2; {LEGACY}");
    let mut ask = shell(&script);
    ask.env.insert("HARBOUR".to_owned(), "Bergen".to_owned());
    let log = logged(&seen(&ask, &quick()).await.0);
    assert!(log.contains("HARBOUR=Bergen"), "{log}");
    let names: Vec<&str> = log.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let given = |name: &&str| ["PATH", "HARBOUR", "PWD", "SHLVL", "_", "OLDPWD"].contains(name);
    assert!(names.iter().all(given), "what the shell adds and what was given: {names:?}");
    let folder = log.lines().find(|line| line.starts_with('/')).expect("its folder");
    assert!(!std::path::Path::new(folder).exists(), "{folder} is gone with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_tools_that_the_operator_names_are_called() {
    let session = talked_to(LEGACY).await;
    assert!(!asked(&session).contains(&"tools/call".to_owned()));
    let tool = OwnTool { name: "tide_table".to_owned(), arguments: json!({"harbour": "Bergen"}) };
    let (session, _) = seen(&CommandAsk { tools: vec![tool], ..shell(LEGACY) }, &quick()).await;
    let called: Vec<_> = session.exchanges.iter().filter(|exchange| exchange.step == Some(Step::ToolsCall)).collect();
    assert_eq!(called.len(), 1);
    assert!(called[0].request.raw.as_deref().is_some_and(|raw| raw.contains("Bergen")));
    assert_eq!(errors(&session), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_is_ended_with_all_its_children() {
    let stubborn = format!("trap '' TERM; sleep 1000 & echo $! >&2; {LEGACY} while :; do sleep 1; done");
    let session = talked_to(&stubborn).await;
    assert_eq!(how(&session), StdioEnding::Killed);
    let child = logged(&session);
    assert!(!runs(&child), "{child} still runs");
    let polite = format!("{LEGACY} sleep 1000");
    assert_eq!(how(&talked_to(&polite).await), StdioEnding::Terminated);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_is_kept_with_its_kind() {
    let rows = [
        ("says-hello-first", "echo hello"),
        ("writes-no-text", r"printf '\377\376\n'"),
        ("forgets-the-newline", "printf 'half a line'; sleep 3"),
    ];
    for (name, first) in rows {
        let session = talked_to(&format!("{first}\n{LEGACY}")).await;
        let said = stdio(&session).lines.iter().find(|line| line.stream == StdioStream::Stdout).expect("a line");
        match name {
            "says-hello-first" => assert_eq!(said.raw.as_deref(), Some("hello"), "{name}"),
            "writes-no-text" => assert_eq!(said.bytes().as_ref(), [0xff, 0xfe], "{name}"),
            _ => assert!(said.is_unterminated, "{name}"),
        }
    }
}

/// Every rule about commands, with a script of a few words that it finds and that no rule about errors is beside.
#[tokio::test(flavor = "multi_thread")]
async fn every_bad_command_is_found_by_its_rule() {
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\\n' \"$id\" ;;";
    let otherwise = |printed: &str| {
        let script = LEGACY.replace(&format!("printf '{ping}"), printed);
        assert_ne!(script, LEGACY, "the answer to a ping is another");
        script
    };
    let broken = LEGACY
        .replace("*) printf '{\"jsonrpc\":\"2.0\",\"id\":null", "*) exit 1; printf '{\"jsonrpc\":\"2.0\",\"id\":null");
    assert_ne!(broken, LEGACY);
    let rows = [
        ("says-hello-first", format!("echo hello\n{LEGACY}"), "mcp/stdio-stdout-noise"),
        (
            "tears-its-messages",
            otherwise("printf '{\"jsonrpc\":\"2.0\",\\n\"id\":%s,\"result\":{}}\\n' \"$id\" ;;"),
            "mcp/stdio-split-message",
        ),
        ("writes-no-text", format!("printf '\\377\\376\\n'\n{LEGACY}"), "mcp/stdio-invalid-utf8"),
        ("dies-of-half-a-message", broken, "mcp/stdio-crash-on-bad-line"),
        ("does-not-end", format!("{LEGACY} sleep 1000"), "mcp/stdio-no-exit-on-eof"),
        (
            "asks-back",
            MODERN.replace("while IFS=", "echo '{\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"ping\"}'\nwhile IFS="),
            "mcp/stdio-request-written",
        ),
        (
            "forgets-the-newline",
            format!(
                "{LEGACY}\nprintf '{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":\"x\"}}}}'"
            ),
            "mcp/stdio-unterminated",
        ),
    ];
    for (name, script, rule) in rows {
        let session = talked_to(&script).await;
        assert!(fired(&session).contains(&rule), "{name}: {:?} {:?}", fired(&session), stdio(&session).ends);
    }
    let ask = CommandAsk { command: vec!["plumbline-no-such-program".to_owned()], ..shell("") };
    assert_eq!(fired(&seen(&ask, &quick()).await.0), ["mcp/stdio-start-failed"]);
    let patient = StdioSettings { step_ms: 10_200, run_ms: 30_000, ..quick() };
    let (silent, _) = seen(&shell("while IFS= read -r line; do :; done"), &patient).await;
    assert!(fired(&silent).contains(&"mcp/stdio-silent"), "{:?}", fired(&silent));
}

/// The rules that speak of a session.
fn fired(session: &Session) -> Vec<&'static str> {
    let report = judge_session(session, Surface::Mcp, None, &Given::default(), &Settings::default());
    report.fired().map(|(rule, _)| rule.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_costs_too_much_is_killed_and_costs_no_more_than_its_bounds() {
    let bounds = StdioSettings { output_bytes: 1 << 20, memory_mib: 64, run_ms: 3_000, ..quick() };
    let rows = [
        ("floods", "yes flood", "more than is read"),
        ("never-answers", "while :; do sleep 1; done", "longer than one run"),
        ("grows", "head -c 4000000000 /dev/zero | tail", "more memory"),
    ];
    for (name, script, why) in rows {
        let bounds =
            if name == "never-answers" { StdioSettings { run_ms: 1_000, ..bounds.clone() } } else { bounds.clone() };
        let (session, _) = seen(&shell(script), &bounds).await;
        let end = stdio(&session).ends.last().expect("it ended");
        assert_eq!(end.how, StdioEnding::Overrun, "{name}: {end:?}");
        assert!(end.what.as_deref().is_some_and(|what| what.contains(why)), "{name}: {end:?}");
        let held: usize = stdio(&session).lines.iter().map(|line| line.bytes().len()).sum();
        assert!(held <= 2 << 20, "{name}: {held} bytes");
    }
}
