//! `plumbline check`: judges documents from files, standard input, an address or a stream of lines.

mod baseline;
mod cores;
mod github;
mod inputs;
mod json;
mod junit;
mod lines;
pub mod live;
mod markdown;
mod sarif;
mod selection;
mod text;

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings as Judging, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::{Headline, Occurrence, Report};
use plumbline_rules::rule::{Impact, Rule, Severity};
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::Standing;
use plumbline_rules::text::is_public_host;

use self::baseline::{Baseline, Mark};
use self::cores::on_all_cores;
use self::inputs::{Input, Place, inputs};
use self::selection::Selection;
pub use self::text::shown;
use crate::settings::{Options, Settings};

/// Bodies beyond this size are not read at all; every kind's own limit lies far below.
const MAX_BYTES: u64 = 64 << 20;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline check agent-card.json                          the kind is found out
  plumbline check server.json --kind server-json           the kind is stated
  plumbline check . --offline                              every document below this folder
  plumbline check . --format sarif > plumbline.sarif       for code scanning; junit, github and markdown likewise
  plumbline check . --write-baseline known.json            what is found now is known
  plumbline check . --baseline known.json                  only what is new fails
  plumbline check . --rule 'a2a/*' --ignore '*/skill-*'    some rules only
  plumbline check https://agent.example                    an agent's card, asked for as the crawler asks
  plumbline check https://tools.example/mcp --record s.json  an MCP endpoint, probed in every era
  plumbline check --stdio -- npx -y @example/tides         a command that speaks MCP over its standard streams
  plumbline check s.json                                   the same conversation, judged again offline
  curl -s https://agent.example/card | plumbline check - --kind a2a-card --from https://agent.example/card
  plumbline check agent-card.json --jwks keys.json         signatures are checked with these keys
  plumbline check card.json --format json | jq .headline   for programs
  plumbline check --lines documents.jsonl > reports.jsonl  one document a line in, one report a line out

Exit status: 0 clean, 1 findings at or above --fail-on or a thing is not what it was taken for, 2 something went wrong
with Plumbline or its input.")]
pub struct Arguments {
    /// Files, folders or addresses to judge; `-` is standard input. Of a folder everything below it that is a document.
    #[arg(required_unless_present = "lines", value_name = "FILE|FOLDER|URL|-")]
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
    /// What is named is a command that speaks MCP over its standard streams, with its arguments: it is started, talked to
    /// and ended. It gets PATH and the variables of --env, and nothing else of the environment.
    #[arg(long, conflicts_with_all = ["offline", "kind", "from", "jwks", "header_env"])]
    stdio: bool,
    /// A variable that a command of --stdio gets; may be given several times.
    #[arg(long, value_name = "VARIABLE", requires = "stdio")]
    env: Vec<String>,
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
    /// Only these rules; `*` stands for anything, as in `a2a/*`. May be given several times.
    #[arg(long, value_name = "RULE")]
    rule: Vec<String>,
    /// Not these rules; may be given several times.
    #[arg(long, value_name = "RULE")]
    ignore: Vec<String>,
    /// Findings in this file are known: only others fail.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write what is found now as known, and succeed.
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Never use the network; an address is then an error.
    #[arg(long)]
    offline: bool,
    /// JSON Lines in, JSON Lines out: {"kind", "spec_version"?, "context"?, "document"} a line; `-` is standard input.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["files", "kind", "from", "spec_version", "jwks", "rule", "ignore", "baseline", "write_baseline"])]
    lines: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One object; an array for several things.
    Json,
    /// One object a line.
    Jsonl,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML, for test reports.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
    /// For a comment or a job summary.
    Markdown,
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
    /// Nothing.
    Never,
}

impl FailOn {
    /// Whether one of a report's findings counts.
    fn holds(self, report: &Report) -> bool {
        report.findings().any(|(rule, found)| found.iter().any(|occurrence| self.counts(report, rule, occurrence)))
    }

    /// Whether one occurrence of a finding counts.
    fn counts(self, report: &Report, rule: &Rule, occurrence: &Occurrence) -> bool {
        match self {
            FailOn::Blocked => {
                let breaks = occurrence.impact == Some(Impact::BreaksClients) && !rule.guess;
                breaks && report.headline() == Headline::Blocked
            }
            FailOn::Error => occurrence.severity >= Severity::Error,
            FailOn::Warning => occurrence.severity >= Severity::Warning,
            FailOn::Info => true,
            FailOn::Never => false,
        }
    }
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    if let Some(path) = &arguments.lines {
        return lines::run(path, &settings.judging(), arguments.fail_on);
    }
    let selection = Selection::new(&arguments.rule, &arguments.ignore)?;
    let mut baseline = arguments.baseline.as_deref().map(Baseline::read).transpose()?;
    let mut checked = if arguments.stdio {
        vec![check_command(arguments, &settings)]
    } else {
        check_all(&inputs(&arguments.files, arguments.offline)?, arguments, &settings)?
    };
    tell_passed_over(&checked);
    checked.retain(|one| !matches!(one.outcome, Outcome::PassedOver(_)));
    for one in &mut checked {
        one.select(&selection);
        one.compare(baseline.as_mut());
    }
    if let Some(path) = &arguments.write_baseline {
        baseline::write(path, checked.iter().flat_map(|one| &one.marks))?;
    }
    print(&checked, arguments, baseline.as_ref())?;
    Ok(exit_code(&checked, arguments))
}

fn exit_code(checked: &[One], arguments: &Arguments) -> ExitCode {
    if checked.iter().any(|one| matches!(one.outcome, Outcome::Failed(_))) {
        ExitCode::from(2)
    } else if arguments.write_baseline.is_some() && arguments.baseline.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(u8::from(checked.iter().any(|one| one.fails(arguments.fail_on))))
    }
}

/// Files first, on all cores; addresses then, one after the other, in the order given.
fn check_all(inputs: &[Input], arguments: &Arguments, settings: &Settings) -> Result<Vec<One>> {
    let jwks = arguments.jwks.as_deref().map(read_keys).transpose()?;
    let judging = FileJudging {
        arguments,
        origin: origin(arguments.from.as_deref())?,
        given: Given { url: arguments.from.clone(), jwks, ..Given::default() },
        settings: settings.judging(),
    };
    let outcomes = on_all_cores(inputs, 1, |input| match &input.place {
        Place::Standard => Some(judging.file(Path::new("-")).into()),
        Place::File(path) => Some(judging.file(path).into()),
        Place::Found(path, promised) => Some(judging.found(path, *promised)),
        Place::Address => None,
    });
    let asked = |input: &Input| live::judge_url(&input.name, arguments, settings).into();
    let named = |(input, outcome): (&Input, Option<Outcome>)| One {
        name: input.name.clone(),
        is_named: !matches!(input.place, Place::Found(..)),
        has_origin: match input.place {
            Place::Address => true,
            Place::Found(..) => false,
            Place::Standard | Place::File(_) => arguments.from.is_some(),
        },
        outcome: outcome.unwrap_or_else(|| asked(input)),
        marks: Vec::new(),
        known: Vec::new(),
    };
    Ok(inputs.iter().zip(outcomes).map(named).collect())
}

/// A command, started and talked to.
fn check_command(arguments: &Arguments, settings: &Settings) -> One {
    let outcome = live::judge_command(&arguments.files, arguments, settings).into();
    One {
        name: arguments.files.join(" "),
        is_named: true,
        has_origin: true,
        outcome,
        marks: Vec::new(),
        known: Vec::new(),
    }
}

/// One input and what came of it.
pub struct One {
    /// As it is called in what is printed.
    pub name: String,
    /// Whether it was named on the command line, and not found in a folder.
    pub is_named: bool,
    /// Whether it is known where it came from.
    pub has_origin: bool,
    /// What came of it.
    pub outcome: Outcome,
    /// For every occurrence of a finding, in order, how it is known again.
    pub marks: Vec<Mark>,
    /// For every occurrence of a finding, in order, whether the baseline has it.
    pub known: Vec<bool>,
}

/// What came of one input.
pub enum Outcome {
    /// It was judged.
    Judged(Box<Checked>),
    /// It could not be read, or asked.
    Failed(String),
    /// It was found in a folder and is no document that is judged here; why.
    PassedOver(&'static str),
}

impl From<Result<Checked>> for Outcome {
    fn from(result: Result<Checked>) -> Outcome {
        match result {
            Ok(checked) => Outcome::Judged(Box::new(checked)),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }
}

/// One occurrence of a finding, with what the command line adds.
pub struct Finding<'c> {
    /// The rule that fires.
    pub rule: &'static Rule,
    /// Where, and what is wrong there.
    pub occurrence: &'c Occurrence,
    /// How it is known again.
    pub mark: &'c Mark,
    /// Whether the baseline has it.
    pub is_known: bool,
}

impl One {
    fn select(&mut self, selection: &Selection) {
        if let Outcome::Judged(checked) = &mut self.outcome {
            selection.apply(&mut checked.report);
        }
    }

    fn compare(&mut self, baseline: Option<&mut Baseline>) {
        let Outcome::Judged(checked) = &self.outcome else { return };
        self.marks = baseline::marks(&self.name, &checked.document, &checked.report);
        self.known = match baseline {
            Some(baseline) => self.marks.iter().map(|mark| baseline.takes(mark)).collect(),
            None => vec![false; self.marks.len()],
        };
    }

    /// What was judged, when it was.
    pub fn checked(&self) -> Option<&Checked> {
        match &self.outcome {
            Outcome::Judged(checked) => Some(checked),
            Outcome::Failed(_) | Outcome::PassedOver(_) => None,
        }
    }

    /// Every occurrence of every finding.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        let all = self.checked().into_iter().flat_map(|checked| checked.report.findings());
        let all = all.flat_map(|(rule, found)| found.iter().map(move |occurrence| (rule, occurrence)));
        all.zip(self.marks.iter().zip(&self.known)).map(|((rule, occurrence), (mark, known))| Finding {
            rule,
            occurrence,
            mark,
            is_known: *known,
        })
    }

    /// Whether an occurrence counts as failure.
    pub fn counts(&self, finding: &Finding<'_>, fail_on: FailOn) -> bool {
        let report = self.checked().map(|checked| &checked.report);
        !finding.is_known && report.is_some_and(|report| fail_on.counts(report, finding.rule, finding.occurrence))
    }

    /// Whether it is something else than it was taken for, by a person or by its name.
    pub fn is_mistaken(&self) -> bool {
        self.checked().is_some_and(|checked| checked.report.headline() == Headline::NotDetected)
    }

    fn fails(&self, fail_on: FailOn) -> bool {
        (self.is_mistaken() && fail_on != FailOn::Never) || self.findings().any(|found| self.counts(&found, fail_on))
    }
}

/// Files of a folder that were passed over and are named; of more only the number is told.
const NAMED: usize = 5;

fn tell_passed_over(checked: &[One]) {
    let passed: Vec<_> = checked
        .iter()
        .filter_map(|one| match one.outcome {
            Outcome::PassedOver(why) => Some((&one.name, why)),
            Outcome::Judged(_) | Outcome::Failed(_) => None,
        })
        .collect();
    for (name, why) in passed.iter().take(NAMED) {
        eprintln!("plumbline: passed over {name}: {why}");
    }
    if passed.len() > NAMED {
        eprintln!("plumbline: passed over {} more files", passed.len() - NAMED);
    }
}

fn print(checked: &[One], arguments: &Arguments, baseline: Option<&Baseline>) -> Result<()> {
    for one in checked {
        if let Outcome::Failed(error) = &one.outcome {
            let name = if error.contains(&one.name) { String::new() } else { format!("{}: ", one.name) };
            eprintln!("plumbline: {name}{error}");
        }
    }
    let stdout = std::io::stdout();
    let is_terminal = stdout.is_terminal();
    let mut out = std::io::BufWriter::new(stdout.lock());
    match arguments.format {
        Format::Text => text::write_all(&mut out, checked, is_terminal)?,
        Format::Json => {
            let is_one = arguments.files.len() == 1 && checked.len() == 1 && checked[0].is_named;
            json::write(&mut out, checked, is_one, baseline.is_some())?;
        }
        Format::Jsonl => json::write_lines(&mut out, checked, baseline.is_some())?,
        Format::Sarif => sarif::write(&mut out, checked, baseline.is_some())?,
        Format::Junit => junit::write(&mut out, checked, arguments.fail_on)?,
        Format::Github => github::write(&mut out, checked)?,
        Format::Markdown => markdown::write(&mut out, checked)?,
    }
    out.flush()?;
    if let Some(left) = baseline.map(Baseline::left).filter(|left| *left > 0) {
        eprintln!("plumbline: {left} known findings were not found again; --write-baseline forgets them");
    }
    Ok(())
}

/// What all files of one run are judged with.
struct FileJudging<'a> {
    arguments: &'a Arguments,
    origin: Origin,
    given: Given,
    settings: Judging,
}

impl FileJudging<'_> {
    /// A file that somebody named; `-` is standard input.
    fn file(&self, path: &Path) -> Result<Checked> {
        Ok(self.bytes(&read(path)?, self.arguments.kind, self.origin))
    }

    /// A file of a folder: judged when it is asked for as a kind, its name promises one, or it shows one.
    fn found(&self, path: &Path, promised: Option<Kind>) -> Outcome {
        let bytes = match read(path) {
            Ok(bytes) => bytes,
            Err(error) => return Outcome::Failed(format!("{error:#}")),
        };
        let kind = self.arguments.kind.or(promised);
        if kind.is_none() && !may_be_json(&bytes) && !mentions_openapi(&bytes) {
            return Outcome::PassedOver("it is not JSON");
        }
        let checked = self.bytes(&bytes, kind, Origin::Nowhere);
        if checked.report.detected.kind != Kind::Unknown {
            return Outcome::Judged(Box::new(checked));
        }
        let is_json = checked.document.root().is_some();
        Outcome::PassedOver(if is_json { "its kind is not recognised (--kind states one)" } else { "it is not JSON" })
    }

    fn bytes(&self, bytes: &[u8], kind: Option<Kind>, origin: Origin) -> Checked {
        let version = self.arguments.spec_version.as_deref();
        let given = &self.given;
        if let Some(session) = kind.is_none().then(|| session_in(bytes)).flatten() {
            let report = judge_session(&session, session.surface(), version, given, &self.settings);
            let standing = (session.surface() == Surface::Mcp).then(|| Standing::of(&session));
            return Checked { document: Document::read(bytes), report, standing };
        }
        let document = Document::read(bytes);
        let subject = Subject { kind, version, origin, given, session: None, answer: None };
        let report = judge(&document, &subject, &self.settings);
        Checked { document, report, standing: None }
    }
}

fn may_be_json(bytes: &[u8]) -> bool {
    let begin = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    matches!(begin.first(), Some(b'{' | b'['))
}

/// The only documents in YAML that are judged.
fn mentions_openapi(bytes: &[u8]) -> bool {
    [&b"openapi"[..], b"swagger"].iter().any(|word| bytes.windows(word.len()).any(|window| window == *word))
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
    serde_json::from_slice(&read(Path::new(path))?).with_context(|| format!("--jwks {path}"))
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

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut body).context("cannot read standard input")?;
    } else {
        let named = || format!("cannot read {}", path.display());
        let file = std::fs::File::open(path).with_context(named)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut body).with_context(named)?;
    }
    if body.len() as u64 > MAX_BYTES {
        bail!("{}: more than {} MiB; no document we judge is that large", path.display(), MAX_BYTES >> 20);
    }
    Ok(body)
}
