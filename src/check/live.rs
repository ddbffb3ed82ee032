//! `check URL`: asks once, as the crawler asks, and judges what came with the conversation that brought it.

use anyhow::{Context, Result, bail};
use http::{HeaderName, HeaderValue};
use plumbline_crawler::net::{Client, Header};
use plumbline_crawler::probe::a2a::CardAsk;
use plumbline_crawler::probe::a2a::keys::KeySets;
use plumbline_crawler::probe::mcp::{EndpointAsk, ProbeSettings};
use plumbline_crawler::probe::stdio::CommandAsk;
use plumbline_crawler::probe::{self, Body, Observed};
use plumbline_crawler::sources::domains::card_address;
use plumbline_crawler::targets::command_url;
use plumbline_crawler::words;
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Report;
use plumbline_rules::session::Surface;
use plumbline_rules::session_judge::{document_of, judge_session, origin};
use plumbline_rules::standing::Standing;

use super::{Arguments, Checked};
use crate::settings::Settings;
use crate::wiring;

/// Asks and judges. An address without a path, or of a card, is an agent's; one whose path names MCP, or that is asked
/// for as such, is an endpoint and is probed; anything else is a document.
pub fn judge_url(url: &str, arguments: &Arguments, settings: &Settings) -> Result<Checked> {
    let address = card_address(url).map_err(anyhow::Error::msg)?;
    let names_a_card = address.legacy_url.is_some() || url.ends_with("agent.json") || url.ends_with("agent-card.json");
    let named = if names_a_card { Some(Kind::AgentCard) } else { names_an_endpoint(url).then_some(Kind::McpEndpoint) };
    let kind = arguments.kind.or(named);
    let headers = arguments.header_env.iter().map(|pair| header_of(pair)).collect::<Result<Vec<_>>>()?;
    let observed = wiring::runtime()?.block_on(async {
        let client = Client::new(settings.net.clone())?;
        match kind {
            Some(Kind::AgentCard) => {
                let ask = CardAsk {
                    url: address.url,
                    legacy_url: address.legacy_url,
                    headers: headers.clone(),
                    surroundings: true,
                    interfaces: !arguments.plain,
                    ..CardAsk::default()
                };
                probe::a2a::observe(&client, &ask, &KeySets::default()).await
            }
            Some(Kind::McpEndpoint) => {
                let ask =
                    EndpointAsk { url: url.to_owned(), headers: headers.clone(), odd: !arguments.plain, active: None };
                // Who waits for an answer now can ask again.
                let probing = ProbeSettings { again_ms: 0, ..settings.probe.clone() };
                probe::mcp::observe(&client, &ask, &probing).await
            }
            _ => probe::document::observe(&client, url, kind.unwrap_or(Kind::Unknown), &[], None).await,
        }
    })?;
    record(&observed, arguments)?;
    match kind {
        Some(Kind::McpEndpoint) => Ok(judged_endpoint(&observed, arguments, settings)),
        _ => judged_document(url, kind, &observed, arguments, settings),
    }
}

/// Asks one address and judges what came, without a terminal: what the page `/check` does.
///
/// # Errors
/// When there is nothing to judge, or we failed.
pub async fn look(url: &str, client: &Client, settings: &Settings) -> Result<(Document, Report)> {
    let address = card_address(url).map_err(anyhow::Error::msg)?;
    let names_a_card = address.legacy_url.is_some() || url.ends_with("agent.json") || url.ends_with("agent-card.json");
    let judging = settings.judging();
    if !names_a_card && names_an_endpoint(url) {
        let ask = EndpointAsk { url: url.to_owned(), headers: Vec::new(), odd: false, active: None };
        let probing = ProbeSettings { again_ms: 0, ..settings.probe.clone() };
        let observed = probe::mcp::observe(client, &ask, &probing).await?;
        let report = judge_session(&observed.session, Surface::Mcp, None, &Given::default(), &judging);
        return Ok((Document::read(b""), report));
    }
    let kind = names_a_card.then_some(Kind::AgentCard);
    let observed = if names_a_card {
        let ask = CardAsk { url: address.url, legacy_url: address.legacy_url, ..CardAsk::default() };
        probe::a2a::observe(client, &ask, &KeySets::default()).await?
    } else {
        probe::document::observe(client, url, Kind::Unknown, &[], None).await?
    };
    let Body::Answer(answer) = observed.body else { bail!("{}", what_came(&observed)) };
    let exchange = &observed.session.exchanges[answer];
    let Some(response) = &exchange.response else { bail!("{}", what_came(&observed)) };
    let given = Given { url: Some(exchange.request.url.clone()), ..Given::default() };
    let subject = Subject {
        kind,
        version: None,
        origin: origin(&given, None),
        given: &given,
        session: Some(&observed.session),
        answer: Some(answer),
    };
    let document = document_of(response);
    let report = judge(&document, &subject, &judging);
    Ok((document, report))
}

/// Starts a command, talks to it over its standard streams, and judges what it said.
pub fn judge_command(command: &[String], arguments: &Arguments, settings: &Settings) -> Result<Checked> {
    let names = ["PATH"].into_iter().chain(arguments.env.iter().map(String::as_str));
    let env = names.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect();
    let ask = CommandAsk {
        url: command_url(command.first().map_or("", String::as_str)),
        command: command.to_vec(),
        env,
        folder: Some(std::env::current_dir().context("there is no working folder")?),
        odd: !arguments.plain,
        tools: Vec::new(),
    };
    let observed = wiring::runtime()?.block_on(probe::stdio::observe(&ask, &settings.stdio))?;
    record(&observed, arguments)?;
    Ok(judged_endpoint(&observed, arguments, settings))
}

/// Keeps what was said, where that is asked for.
fn record(observed: &Observed, arguments: &Arguments) -> Result<()> {
    if let Some(path) = &arguments.record {
        let session = serde_json::to_vec_pretty(&observed.session.clone().masked())?;
        std::fs::write(path, session).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A header whose value is in the environment, so that it stands in no history of commands.
fn header_of(pair: &str) -> Result<Header> {
    let (name, variable) = pair.split_once('=').with_context(|| format!("--header-env {pair}: NAME=VARIABLE"))?;
    let value = std::env::var(variable).with_context(|| format!("--header-env {pair}: {variable} is not set"))?;
    let name = HeaderName::try_from(name).with_context(|| format!("--header-env {pair}"))?;
    let value = HeaderValue::try_from(value).with_context(|| format!("--header-env {pair}: no header can carry it"))?;
    Ok(Header::secret(name, value))
}

/// Whether the path of an address says that an MCP endpoint is behind it.
fn names_an_endpoint(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else { return false };
    url.path_segments().is_some_and(|mut segments| segments.any(|segment| matches!(segment, "mcp" | "sse")))
        || url.host_str().is_some_and(|host| host.starts_with("mcp.") && url.path() != "/")
}

fn judged_endpoint(observed: &Observed, arguments: &Arguments, settings: &Settings) -> Checked {
    let session = &observed.session;
    let version = arguments.spec_version.as_deref();
    let report = judge_session(session, Surface::Mcp, version, &Given::default(), &settings.judging());
    Checked { document: Document::read(b""), report, standing: Some(Standing::of(session)) }
}

fn judged_document(
    url: &str,
    kind: Option<Kind>,
    observed: &Observed,
    arguments: &Arguments,
    settings: &Settings,
) -> Result<Checked> {
    let Body::Answer(answer) = observed.body else { bail!("{url}: nothing to judge: {}", what_came(observed)) };
    let exchange = &observed.session.exchanges[answer];
    let Some(response) = &exchange.response else { bail!("{url}: nothing to judge: {}", what_came(observed)) };
    let given = Given { url: Some(exchange.request.url.clone()), ..Given::default() };
    let subject = Subject {
        kind,
        version: arguments.spec_version.as_deref(),
        origin: origin(&given, None),
        given: &given,
        session: Some(&observed.session),
        answer: Some(answer),
    };
    let document = document_of(response);
    let report = judge(&document, &subject, &settings.judging());
    Ok(Checked { document, report, standing: None })
}

/// What came in place of a document, in words.
fn what_came(observed: &Observed) -> String {
    match observed.session.exchanges.last() {
        Some(last) => match (&last.response, last.error) {
            (_, Some(error)) => words::wire_error(error).to_owned(),
            (Some(response), None) => format!("status {}", response.status),
            (None, None) => observed.outcome.to_string(),
        },
        None => observed.outcome.to_string(),
    }
}
