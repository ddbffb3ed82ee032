//! Judging a conversation: which of its answers is the document, and what the rules say about both.

use crate::document::Document;
use crate::judge::{Given, Origin, Settings, Subject, judge, judge_without_document};
use crate::kind::Kind;
use crate::report::{Occurrence, Outcome, Report, RuleResult};
use crate::rule::Check;
use crate::session::{Cut, Exchange, Response, Session, Surface};
use crate::text::{AbsoluteUrl, is_public_host};

/// Judges a conversation. The pointers of the report lead into the session: `/exchanges/N/response/body/…`, and
/// `/exchanges/N/response/raw` where a place cannot be addressed in parsed form.
pub fn judge_session(
    session: &Session,
    surface: Surface,
    version: Option<&str>,
    given: &Given,
    settings: &Settings,
) -> Report {
    let of_record = match surface {
        Surface::Mcp => answers_in_json(session),
        _ => document_of_record(session, surface).into_iter().collect(),
    };
    let subject = |answer: Option<usize>| {
        let asked = answer.or(session.exchanges.len().checked_sub(1)).and_then(|n| session.exchanges.get(n));
        Subject {
            kind: asked.and_then(|exchange| kind_of(surface, &exchange.request.url)),
            version,
            origin: origin(given, asked.map(|exchange| exchange.request.url.as_str())),
            given,
            session: Some(session),
            answer,
        }
    };
    let reports = of_record.into_iter().filter_map(|number| {
        let document = document_of(session.exchanges.get(number)?.response.as_ref()?);
        Some(led_into(judge(&document, &subject(Some(number)), settings), number))
    });
    reports.reduce(merged).unwrap_or_else(|| judge_without_document(&subject(None), settings))
}

/// The document that an answer brought, as judging reads it.
pub fn document_of(response: &Response) -> Document {
    let document = Document::read(&response.body());
    if response.cut == Some(Cut::Limit) { document.with_more_behind() } else { document }
}

/// Where a document came from, by what its context says or else by the address it was fetched from (decisions 9).
pub fn origin(given: &Given, address: Option<&str>) -> Origin {
    let address = given.served_from.as_deref().or(given.url.as_deref()).or(address);
    match address.and_then(AbsoluteUrl::parse) {
        Some(url) if !is_public_host(url.host) => Origin::PrivateHost,
        _ => Origin::PublicHost,
    }
}

/// The exchange that brought the document of a surface: of an agent card the answer to a request with `A2A-Version` if
/// it is a card, else the plain one, else the one at the path before A2A 0.3 (decisions 10); of anything else the last
/// answer to what was asked first. `None` when nothing that is a document came.
pub fn document_of_record(session: &Session, surface: Surface) -> Option<usize> {
    let chains = chains(session);
    let first = chains.first()?.asked;
    let answered = chains.iter().filter(|chain| session.exchanges[chain.last].success().is_some());
    if surface != Surface::AgentCard {
        return answered
            .filter(|chain| surface == Surface::OauthMetadata || chain.asked == first)
            .map(|chain| chain.last)
            .next_back();
    }
    let candidates: Vec<_> = answered.filter(|chain| chain.asked == first || is_card_path(chain.asked)).collect();
    if candidates.len() < 2 {
        return candidates.first().map(|chain| chain.last);
    }
    candidates.into_iter().max_by_key(|chain| worth(session, chain)).map(|chain| chain.last)
}

/// A request and the redirects it led to.
struct Chain<'s> {
    /// The address asked for at first.
    asked: &'s str,
    /// Whether the first request named a version of A2A.
    with_version: bool,
    /// The exchange at its end.
    last: usize,
}

fn chains(session: &Session) -> Vec<Chain<'_>> {
    let mut chains: Vec<Chain<'_>> = Vec::new();
    for (number, exchange) in session.exchanges.iter().enumerate() {
        match chains.last_mut() {
            Some(chain) if continues(&session.exchanges[chain.last], exchange) => chain.last = number,
            _ => chains.push(Chain {
                asked: &exchange.request.url,
                with_version: exchange.request.headers.contains_key("a2a-version"),
                last: number,
            }),
        }
    }
    chains
}

/// Whether a request follows the redirect that the one before it was answered with.
fn continues(before: &Exchange, exchange: &Exchange) -> bool {
    before.redirect().is_some_and(|url| {
        url.as_str() == exchange.request.url || url::Url::parse(&exchange.request.url).is_ok_and(|asked| asked == url)
    })
}

fn is_card_path(address: &str) -> bool {
    address.ends_with("/agent-card.json") || is_legacy_path(address)
}

fn is_legacy_path(address: &str) -> bool {
    address.ends_with("/agent.json")
}

/// What is a card goes before what is none, the present path before the old one, the answer with the version header
/// before the plain one, a later answer before an earlier one.
fn worth(session: &Session, chain: &Chain<'_>) -> (bool, bool, bool, usize) {
    let document = session.exchanges[chain.last].success().map(document_of);
    let is_card = document.is_some_and(|document| document.root().is_some_and(crate::a2a::looks_like_a_card));
    (is_card, !is_legacy_path(chain.asked), chain.with_version, chain.last)
}

/// Answers of an MCP endpoint that claim to be JSON and that may be judged: refusals for want of credentials, throttling
/// and failures of the server are no content, and some statuses come without a body.
fn answers_in_json(session: &Session) -> Vec<usize> {
    let judged = |response: &Response| {
        let empty = response.raw.as_deref().unwrap_or_default().is_empty() && response.raw_base64.is_none();
        let refused = matches!(response.status, 401 | 402 | 403 | 407 | 429 | 500..);
        let bare = empty && matches!(response.status, 202 | 204 | 304 | 404 | 405);
        !refused && !bare && response.media_type().is_some_and(|media_type| media_type.is_json())
    };
    let answers = session.exchanges.iter().enumerate();
    answers.filter(|(_, exchange)| exchange.response.as_ref().is_some_and(judged)).map(|(number, _)| number).collect()
}

/// The kind that was asked for; `None` where the document has to show it.
fn kind_of(surface: Surface, address: &str) -> Option<Kind> {
    match surface {
        Surface::AgentCard => Some(Kind::AgentCard),
        Surface::ServerCard if address.contains("ai-catalog") => Some(Kind::McpAiCatalog),
        Surface::ServerCard => Some(Kind::McpServerCard),
        Surface::OauthMetadata if address.contains("oauth-protected-resource") => Some(Kind::OauthProtectedResource),
        Surface::OauthMetadata if address.contains("openid-configuration") => Some(Kind::OauthOpenidConfiguration),
        Surface::OauthMetadata => Some(Kind::OauthAuthorizationServer),
        Surface::Registry => Some(Kind::RegistryPage),
        Surface::Mcp => Some(Kind::JsonrpcResponse),
        Surface::Any => None,
    }
}

/// The same report with pointers that lead into the session.
fn led_into(mut report: Report, number: usize) -> Report {
    for result in &mut report.results {
        let is_about_bytes = matches!(result.rule.check, Check::Body(_));
        let Outcome::Fires(occurrences) = &mut result.outcome else { continue };
        for occurrence in occurrences {
            lead_into(occurrence, number, is_about_bytes);
        }
    }
    report
}

/// Only what stands in the document has a line; other pointers lead into the session already.
fn lead_into(occurrence: &mut Occurrence, number: usize, is_about_bytes: bool) {
    if is_about_bytes {
        occurrence.pointer = format!("/exchanges/{number}/response/raw");
    } else if occurrence.line.is_some() {
        occurrence.pointer = format!("/exchanges/{number}/response/body{}", occurrence.pointer);
    }
}

/// Two reports about one conversation as one: what is said about its documents adds up, what is said about the
/// conversation is said once.
fn merged(mut one: Report, other: Report) -> Report {
    for result in other.results {
        match one.results.iter_mut().find(|mine| mine.rule.id == result.rule.id) {
            Some(mine) => merge(mine, result),
            None => one.results.push(result),
        }
    }
    one
}

fn merge(mine: &mut RuleResult, other: RuleResult) {
    let about_conversation = matches!(mine.rule.check, Check::Way(_) | Check::Session(_));
    match (&mut mine.outcome, other.outcome) {
        _ if about_conversation => {}
        (Outcome::Fires(occurrences), Outcome::Fires(more)) => {
            for occurrence in more {
                if !occurrences.contains(&occurrence) {
                    occurrences.push(occurrence);
                }
            }
        }
        (Outcome::Fires(_), Outcome::Passes | Outcome::NotEvaluated(_)) => {}
        (Outcome::Passes, Outcome::NotEvaluated(_)) => {}
        (outcome, other) => *outcome = other,
    }
}
