//! An agent's card: asked with and without `A2A-Version: 1.0`, at the path before 0.3 only after the current one failed, and
//! then the key sets that its signatures name.

use http::header::{HeaderName, HeaderValue};
use plumbline_rules::session::{Exchange, Session, Step, Surface};
use plumbline_rules::session_judge::{document_of, document_of_record, key_addresses};

use super::{Body, Observed, apart, came_to_nothing, served};
use crate::net::{Ask, Asked, BodyKind, Client, Fetched, Header, NetError, Validators, outcome};

/// What is accepted as a card.
const ACCEPT: &str = "application/json, application/a2a+json;q=0.9, */*;q=0.1";

/// Which card to ask for.
#[derive(Debug, Clone)]
pub struct CardAsk {
    /// The card's address.
    pub url: String,
    /// Where it would be before A2A 0.3.
    pub legacy_url: Option<String>,
    /// The operator's headers for this target.
    pub headers: Vec<Header>,
    /// What the last answer said about itself.
    pub validators: Option<Validators>,
}

/// Asks for the card.
///
/// # Errors
/// Only when we failed.
pub async fn observe(client: &Client, ask: &CardAsk) -> Result<Observed, NetError> {
    let versioned = fetch(client, ask, Step::Card, &ask.url).await?;
    let unchanged = versioned.is_not_modified();
    let mut answers = vec![versioned];
    if !came_to_nothing(&answers[0].exchanges) {
        answers.push(fetch(client, ask, Step::CardPlain, &ask.url).await?);
        if let Some(legacy_url) = ask.legacy_url.as_ref().filter(|_| is_missing(&answers)) {
            answers.push(fetch(client, ask, Step::CardLegacy, legacy_url).await?);
        }
    }
    let exchanges: Vec<Exchange> = answers.iter().flat_map(|fetched| fetched.exchanges.iter().cloned()).collect();
    let outcome = outcome(&exchanges, Asked::Document);
    let (mut session, mut robots) = apart(exchanges);
    let body =
        if unchanged { Body::Unchanged } else { served(&session, document_of_record(&session, Surface::AgentCard)) };
    if let Body::Answer(number) = body {
        for address in keys_of(&session, number) {
            let keys =
                client.fetch(Ask { step: Some(Step::Jku), ..Ask::get(address, BodyKind::OauthMetadata) }).await?;
            let (keys, about_robots) = apart(keys.exchanges);
            session.exchanges.extend(keys.exchanges);
            robots.extend(about_robots);
        }
    }
    Ok(Observed { session, robots, outcome, body })
}

/// Where the keys of the card's signatures are; none for a card that is not signed.
fn keys_of(session: &Session, number: usize) -> Vec<String> {
    let response = session.exchanges.get(number).and_then(|exchange| exchange.response.as_ref());
    response.map(|response| key_addresses(&document_of(response))).unwrap_or_default()
}

async fn fetch(client: &Client, ask: &CardAsk, step: Step, url: &str) -> Result<Fetched, NetError> {
    let mut headers = ask.headers.clone();
    if step == Step::Card {
        headers.push(Header::new(HeaderName::from_static("a2a-version"), HeaderValue::from_static("1.0")));
    }
    let validators = ask.validators.clone().filter(|_| step == Step::Card);
    let ask = Ask { step: Some(step), accept: Some(ACCEPT), headers, validators, ..Ask::get(url, BodyKind::AgentCard) };
    client.fetch(ask).await
}

/// Whether the current path is answered with "not here", so that the older one is worth a question.
fn is_missing(answers: &[Fetched]) -> bool {
    answers.iter().all(|fetched| {
        fetched.response().is_some_and(|r| (400..500).contains(&r.status) && !matches!(r.status, 401..=403 | 407 | 429))
    })
}
