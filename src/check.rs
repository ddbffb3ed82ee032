//! `plumbline check`: judges documents from files, standard input, an address or a stream of lines.

mod lines;
mod live;
mod text;

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings as Judging, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::line::ReportJson;
use plumbline_rules::report::{Headline, Report};
use plumbline_rules::rule::Severity;
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::Standing;
use plumbline_rules::text::is_public_host;

use crate::settings::{Options, Settings};

/// Bodies beyond this size are not read at all; every kind's own limit lies far below.
const MAX_BYTES: u64 = 64 << 20;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline check agent-card.json                          the kind is found out
  plumbline check server.json --kind server-json           the kind is stated
  plumbline check https://agent.example                    an agent's card, asked for as the crawler asks
  plumbline check https://tools.example/mcp --record s.json  an MCP endpoint, probed in every era
  plumbline check s.json                                   the same conversation, judged again offline
  curl -s https://agent.example/card | plumbline check - --kind a2a-card --from https://agent.example/card
  plumbline check agent-card.json --jwks keys.json         signatures are checked with these keys
  plumbline check card.json --format json | jq .headline   for programs
  plumbline check --lines documents.jsonl > reports.jsonl  one document a line in, one report a line out

Exit status: 0 clean, 1 findings at or above --fail-on, 2 something went wrong with Plumbline or its input.")]
pub struct Arguments {
    /// Files or addresses to judge; `-` is standard input.
    #[arg(required_unless_present = "lines", value_name = "FILE|URL|-")]
    files: Vec<String>,
    /// What the documents are; found out when left out.
    #[arg(long)]
    kind: Option<Kind>,
    /// The specification version to judge by; found out when left out.
    #[arg(long, value_name = "VERSION")]
    spec_version: Option<String>,
    /// The address the document was fetched from; without it rules about origin are not evaluated.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Public keys (a JWK Set) to check the signatures of agent cards with; nothing is fetched.
    #[arg(long, value_name = "FILE|-")]
    jwks: Option<String>,
    /// Ask an endpoint only what every client asks; without it odd but harmless requests are made too.
    #[arg(long)]
    plain: bool,
    /// A header to send to an MCP endpoint, and the environment variable that holds its value: `authorization=MY_TOKEN`.
    #[arg(long, value_name = "NAME=VARIABLE")]
    header_env: Vec<String>,
    /// Keep what was said with an address in this file; `check` judges it again without the network.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How to print.
    #[arg(long, default_value = "text")]
    format: Format,
    /// What makes the exit status 1.
    #[arg(long, default_value = "error", value_name = "GRADE")]
    fail_on: FailOn,
    /// JSON Lines in, JSON Lines out: {"kind", "spec_version"?, "context"?, "document"} a line; `-` is standard input.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["files", "kind", "from", "spec_version", "jwks"])]
    lines: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The least grade of a finding that counts as failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// A finding that breaks clients.
    Blocked,
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// Anything, hints included.
    Info,
}

impl FailOn {
    fn holds(self, report: &Report) -> bool {
        let least = match self {
            FailOn::Blocked => return report.headline() == Headline::Blocked,
            FailOn::Error => Severity::Error,
            FailOn::Warning => Severity::Warning,
            FailOn::Info => Severity::Info,
        };
        report.findings().any(|(_, found)| found.iter().any(|occurrence| occurrence.severity >= least))
    }
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    let judging = settings.judging();
    if let Some(path) = &arguments.lines {
        return lines::run(path, &judging, arguments.fail_on);
    }
    let jwks = arguments.jwks.as_deref().map(read_keys).transpose()?;
    let given = Given { url: arguments.from.clone(), jwks, ..Given::default() };
    let origin = origin(arguments.from.as_deref())?;
    let mut out = std::io::stdout().lock();
    let mut failed = false;
    let mut reports = Vec::new();
    for path in &arguments.files {
        let checked = if is_address(path) {
            live::judge_url(path, arguments, &settings)?
        } else {
            judge_file(path, arguments, origin, &given, &judging)?
        };
        failed |= arguments.fail_on.holds(&checked.report);
        match arguments.format {
            Format::Text => text::write(&mut out, path, &checked, std::io::stdout().is_terminal())?,
            Format::Json => reports.push((path, checked)),
        }
    }
    if let Format::Json = arguments.format {
        write_json(&mut out, &reports)?;
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn is_address(path: &str) -> bool {
    path.starts_with("http://") || path.starts_with("https://")
}

fn judge_file(path: &str, arguments: &Arguments, origin: Origin, given: &Given, judging: &Judging) -> Result<Checked> {
    let bytes = read(path)?;
    let version = arguments.spec_version.as_deref();
    if let Some(session) = arguments.kind.is_none().then(|| session_in(&bytes)).flatten() {
        let report = judge_session(&session, session.surface(), version, given, judging);
        let standing = (session.surface() == Surface::Mcp).then(|| Standing::of(&session));
        return Ok(Checked { document: Document::read(&bytes), report, standing });
    }
    let document = Document::read(&bytes);
    let subject = Subject { kind: arguments.kind, version, origin, given, session: None, answer: None };
    let report = judge(&document, &subject, judging);
    Ok(Checked { document, report, standing: None })
}

/// A recorded session, when that is what the file holds.
fn session_in(bytes: &[u8]) -> Option<Session> {
    let session: Session = serde_json::from_slice(bytes).ok()?;
    (!session.exchanges.is_empty()).then_some(session)
}

/// What came of checking one thing.
pub struct Checked {
    /// The document that was judged; of a conversation the recording.
    pub document: Document,
    /// What the rules say.
    pub report: Report,
    /// What a conversation shows about the endpoint as a whole.
    pub standing: Option<Standing>,
}

/// A key set has to be JSON; whether it is a key set is for the rules to say.
fn read_keys(path: &str) -> Result<serde_json::Value> {
    serde_json::from_slice(&read(path)?).with_context(|| format!("--jwks {path}"))
}

fn origin(from: Option<&str>) -> Result<Origin> {
    let Some(from) = from else { return Ok(Origin::Nowhere) };
    let url = url::Url::parse(from).with_context(|| format!("--from {from}"))?;
    match url.host_str() {
        Some(host) if is_public_host(host) => Ok(Origin::PublicHost),
        Some(_) => Ok(Origin::PrivateHost),
        None => bail!("--from {from}: an address with a host was expected"),
    }
}

fn read(path: &str) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    if path == "-" {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut body).context("cannot read standard input")?;
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {path}"))?;
        file.take(MAX_BYTES + 1).read_to_end(&mut body).with_context(|| format!("cannot read {path}"))?;
    }
    if body.len() as u64 > MAX_BYTES {
        bail!("{path}: more than {} MiB; no document we judge is that large", MAX_BYTES >> 20);
    }
    Ok(body)
}

/// One report is printed as an object, several as an array; each names its file.
fn write_json(out: &mut impl Write, reports: &[(&String, Checked)]) -> Result<()> {
    #[derive(serde::Serialize)]
    struct Named<'r> {
        file: &'r str,
        #[serde(skip_serializing_if = "Option::is_none")]
        endpoint: Option<&'r Standing>,
        #[serde(flatten)]
        report: ReportJson<'r>,
    }
    let named: Vec<_> = reports
        .iter()
        .map(|(file, checked)| Named {
            file: file.as_str(),
            endpoint: checked.standing.as_ref(),
            report: ReportJson::from(&checked.report),
        })
        .collect();
    match named.as_slice() {
        [one] => serde_json::to_writer_pretty(&mut *out, one)?,
        all => serde_json::to_writer_pretty(&mut *out, all)?,
    }
    writeln!(out)?;
    Ok(())
}
