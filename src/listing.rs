//! `plumbline listing NAME`: is what a registry lists in step with what answers?

use std::io::{Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plumbline_crawler::net::Client;
use plumbline_crawler::probe::mcp::{EndpointAsk, ProbeSettings};
use plumbline_crawler::probe::{self, Body};
use plumbline_crawler::settings::OFFICIAL_REGISTRY;
use plumbline_crawler::words;
use plumbline_rules::document::{Document, Node};
use plumbline_rules::in_step::{Face, Line, Match, compare};
use plumbline_rules::kind::Kind;
use plumbline_rules::session::Session;
use serde::Serialize;
use url::Url;

use crate::check::shown;
use crate::settings::{Options, Settings};
use crate::wiring;

/// Remotes of one listing that are asked; more would be a burden, and no listing has them.
const MAX_REMOTES: usize = 16;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline listing io.github.acme/weather                        what the official registry lists, beside what answers
  plumbline listing io.github.acme/weather --registry https://registry.acme.example
  plumbline listing --file server.json                            before publishing: the file, beside what answers
  plumbline listing io.github.acme/weather --format json | jq '.lines[] | select(.match == \"differs\")'

Exit status: 0 in step, 1 something differs, 2 something went wrong with Plumbline or its input.")]
pub struct Arguments {
    /// The server's name in the registry, such as io.github.acme/weather.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,
    /// The registry's address; without it the first of the settings, else the official one.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// The version; without it the latest.
    #[arg(long = "listed-version", value_name = "VERSION", default_value = "latest")]
    listed_version: String,
    /// A `server.json` that is not published yet, in place of a name; `-` is standard input.
    #[arg(long, value_name = "FILE|-")]
    file: Option<std::path::PathBuf>,
    /// How to print.
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One object.
    Json,
}

/// What is listed: the document and the registry's word for its status.
struct Listed {
    document: Document,
    status: Option<String>,
}

#[derive(Serialize)]
struct Compared<'a> {
    name: &'a str,
    version: &'a str,
    in_step: bool,
    lines: &'a [Line],
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    let (listed, lines) = wiring::runtime()?.block_on(async {
        let client = Client::new(settings.net.clone())?;
        let listed = match &arguments.file {
            Some(path) => from_file(path)?,
            None => from_registry(&client, &settings, arguments).await?,
        };
        let lines = beside_what_answers(&client, &settings, &listed).await?;
        anyhow::Ok((listed, lines))
    })?;
    let said = |name: &str| listed.root()?.get(name)?.text();
    let in_step = lines.iter().all(|line| line.state != Match::Differs);
    let compared = Compared {
        name: said("name").unwrap_or("(no name)"),
        version: said("version").unwrap_or("(no version)"),
        in_step,
        lines: &lines,
    };
    let mut out = std::io::stdout().lock();
    match arguments.format {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&compared)?)?,
        Format::Text => print(&mut out, &compared)?,
    }
    Ok(if in_step { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

impl Listed {
    /// The `server.json`, be it wrapped as in a registry's answer or not.
    fn root(&self) -> Option<Node<'_>> {
        let root = self.document.root()?;
        Some(root.get("server").unwrap_or(root))
    }
}

fn from_file(path: &std::path::Path) -> Result<Listed> {
    let is_input = path.as_os_str() == "-";
    let read = if is_input { read_input() } else { std::fs::read(path) };
    let bytes = read.with_context(|| format!("cannot read {}", path.display()))?;
    listed(&bytes).with_context(|| path.display().to_string())
}

fn read_input() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(Kind::RegistryEntry.limit_bytes() as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn from_registry(client: &Client, settings: &Settings, arguments: &Arguments) -> Result<Listed> {
    let name = arguments.name.as_deref().unwrap_or_default();
    let configured = settings.registries.first().map(|registry| registry.base.as_str());
    let base = arguments.registry.as_deref().or(configured).unwrap_or(OFFICIAL_REGISTRY);
    let url = address(base, name, &arguments.listed_version)?;
    let observed = probe::document::observe(client, &url, Kind::RegistryEntry, &[], None).await?;
    let answer = match observed.body {
        Body::Answer(number) => observed.session.exchanges[number].response.as_ref(),
        Body::None | Body::Unchanged | Body::File(_) => None,
    };
    match (answer, observed.status()) {
        (Some(response), _) if response.status == 200 => {
            listed(&response.body()).with_context(|| format!("the answer of {url}"))
        }
        (_, Some(404)) => bail!(
            "{base} lists no server `{name}` in version `{}`; names are case-sensitive, and `--listed-version` takes another",
            arguments.listed_version
        ),
        (_, Some(status)) => bail!("{url} answers with status {status}"),
        (_, None) => bail!("{url} cannot be reached: {}", observed.outcome),
    }
}

/// Where a registry describes one version of one server (registry API v0.1).
fn address(base: &str, name: &str, version: &str) -> Result<String> {
    let mut url = Url::parse(base).with_context(|| format!("--registry {base}"))?;
    url.path_segments_mut()
        .map_err(|()| anyhow::anyhow!("--registry {base}: not an address of a server"))?
        .pop_if_empty()
        .extend(["v0.1", "servers", name, "versions", version]);
    Ok(url.into())
}

fn listed(bytes: &[u8]) -> Result<Listed> {
    let document = Document::read(bytes);
    let Some(root) = document.root() else { bail!("this is no JSON; `plumbline check` tells where it breaks") };
    if root.get("server").unwrap_or(root).get("name").is_none() {
        bail!("this is no server.json: it has no `name`");
    }
    let meta = root.get("_meta").and_then(|meta| meta.get(plumbline_crawler::sources::mcp_registry::OFFICIAL_META));
    let status = meta.and_then(|meta| meta.get("status")?.text().map(str::to_owned));
    Ok(Listed { document, status })
}

async fn beside_what_answers(client: &Client, settings: &Settings, listed: &Listed) -> Result<Vec<Line>> {
    let Some(root) = listed.root() else { return Ok(Vec::new()) };
    let probing = ProbeSettings { again_ms: 0, ..settings.probe.clone() };
    let mut sessions: Vec<(String, Session)> = Vec::new();
    for link in plumbline_crawler::endpoint::links(root).into_iter().take(MAX_REMOTES) {
        eprintln!("asking {} ...", link.url);
        let ask = EndpointAsk { url: link.url.clone(), headers: Vec::new(), odd: false, active: None };
        let observed = probe::mcp::observe(client, &ask, &probing).await?;
        if let Some(error) = observed.session.exchanges.last().and_then(|last| last.error) {
            eprintln!("{}: {}", link.url, words::wire_error(error));
        }
        sessions.push((link.url, observed.session));
    }
    let faces: Vec<Face<'_>> = sessions.iter().map(|(url, session)| Face { url, session: Some(session) }).collect();
    Ok(compare(root, listed.status.as_deref(), &faces))
}

fn print(out: &mut impl Write, compared: &Compared<'_>) -> Result<()> {
    writeln!(out, "{} {}", shown(compared.name), shown(compared.version))?;
    for line in compared.lines {
        let mark = match line.state {
            Match::Same => "=",
            Match::Differs => "≠",
            Match::NotCompared => "·",
        };
        let [subject, listed, live] = [&line.subject, &line.listed, &line.live].map(|text| shown(text));
        writeln!(out, "\n{mark} {subject}\n    listed  {listed}\n    live    {live}")?;
        if let Some(advice) = &line.advice {
            writeln!(out, "    do      {}", shown(advice))?;
        }
    }
    let differ = compared.lines.iter().filter(|line| line.state == Match::Differs).count();
    let unknown = compared.lines.iter().filter(|line| line.state == Match::NotCompared).count();
    let verdict = match (differ, unknown) {
        (0, 0) => "In step.".to_owned(),
        (0, unknown) => format!("In step, as far as it could be compared; {unknown} could not."),
        (differ, unknown) => {
            format!("{differ} of {} lines differ, {unknown} could not be compared.", compared.lines.len())
        }
    };
    writeln!(out, "\n{verdict}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_of_the_address() {
        let at = |base| address(base, "io.github.a/b c", "latest").expect("an address");
        assert_eq!(at("https://r.example"), "https://r.example/v0.1/servers/io.github.a%2Fb%20c/versions/latest");
        assert_eq!(
            at("https://r.example/sub/"),
            "https://r.example/sub/v0.1/servers/io.github.a%2Fb%20c/versions/latest"
        );
        assert!(address("mailto:a@b.example", "a/b", "1").is_err());
    }

    #[test]
    fn an_entry_and_a_bare_document_are_both_listings() {
        let wrapped = listed(br#"{"server": {"name": "a/b"}, "_meta": {"io.modelcontextprotocol.registry/official": {"status": "active"}}}"#).expect("a listing");
        assert_eq!(wrapped.status.as_deref(), Some("active"));
        let bare = listed(br#"{"name": "a/b"}"#).expect("a listing");
        assert_eq!(bare.root().and_then(|root| root.get("name")?.text()), Some("a/b"));
        assert!(listed(b"{}").is_err() && listed(b"{").is_err());
    }
}
