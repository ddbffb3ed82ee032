//! `check URL`: asks once, as the crawler asks, and judges what came with the conversation that brought it.

use anyhow::{Result, bail};
use plumbline_crawler::net::Client;
use plumbline_crawler::probe::a2a::CardAsk;
use plumbline_crawler::probe::{self, Body, Observed};
use plumbline_crawler::sources::domains::card_address;
use plumbline_crawler::words;
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Report;
use plumbline_rules::session_judge::{document_of, origin};

use crate::settings::Settings;
use crate::wiring;

/// Asks for a document and judges it. An address without a path, or of a card, is an agent's.
pub fn judge_url(
    url: &str,
    kind: Option<Kind>,
    version: Option<&str>,
    settings: &Settings,
) -> Result<(Document, Report)> {
    let address = card_address(url).map_err(anyhow::Error::msg)?;
    let names_a_card = address.legacy_url.is_some() || url.ends_with("agent.json") || url.ends_with("agent-card.json");
    let kind = kind.or_else(|| names_a_card.then_some(Kind::AgentCard));
    let observed = wiring::runtime()?.block_on(async {
        let client = Client::new(settings.net.clone())?;
        match kind {
            Some(Kind::AgentCard) => {
                let ask =
                    CardAsk { url: address.url, legacy_url: address.legacy_url, headers: Vec::new(), validators: None };
                probe::a2a::observe(&client, &ask).await
            }
            _ => probe::document::observe(&client, url, kind.unwrap_or(Kind::Unknown), &[], None).await,
        }
    })?;
    let Body::Answer(answer) = observed.body else { bail!("{url}: nothing to judge: {}", what_came(&observed)) };
    let exchange = &observed.session.exchanges[answer];
    let Some(response) = &exchange.response else { bail!("{url}: nothing to judge: {}", what_came(&observed)) };
    let given = Given { url: Some(exchange.request.url.clone()), ..Given::default() };
    let subject = Subject {
        kind,
        version,
        origin: origin(&given, None),
        given: &given,
        session: Some(&observed.session),
        answer: Some(answer),
    };
    let document = document_of(response);
    let report = judge(&document, &subject, &settings.judging());
    Ok((document, report))
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
