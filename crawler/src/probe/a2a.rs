//! An agent's card: asked with and without `A2A-Version: 1.0`, and at the path before 0.3 only after the current one failed.

use http::header::{HeaderName, HeaderValue};
use plumbline_rules::document::Document;
use plumbline_rules::kind::Kind;
use plumbline_rules::session::{Session, Step};

use super::{Body, Observed, Served, came_to_nothing, served};
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
    let mut exchanges = versioned.exchanges.clone();
    let mut answers = vec![versioned];
    if !came_to_nothing(&exchanges) {
        let plain = fetch(client, ask, Step::CardPlain, &ask.url).await?;
        exchanges.extend(plain.exchanges.iter().cloned());
        answers.push(plain);
        let failed = answers.iter().all(|fetched| served(fetched).is_none() && !fetched.is_not_modified());
        if let Some(legacy_url) = ask.legacy_url.as_ref().filter(|_| failed && is_missing(&answers)) {
            let legacy = fetch(client, ask, Step::CardLegacy, legacy_url).await?;
            exchanges.extend(legacy.exchanges.iter().cloned());
            answers.push(legacy);
        }
    }
    let outcome = outcome(&exchanges, Asked::Document);
    Ok(Observed { session: Session { exchanges }, outcome, body: of_record(&answers) })
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

/// The document of record (decisions 10): the first answer that is a card, in the order asked; else the first document.
fn of_record(answers: &[Fetched]) -> Body {
    if answers.first().is_some_and(Fetched::is_not_modified) {
        return Body::Unchanged;
    }
    let mut documents: Vec<Served> = answers.iter().filter_map(served).collect();
    match documents.iter().position(|document| is_card(&document.bytes)) {
        Some(card) => Body::Bytes(documents.swap_remove(card)),
        None if documents.is_empty() => Body::None,
        None => Body::Bytes(documents.swap_remove(0)),
    }
}

fn is_card(bytes: &[u8]) -> bool {
    Document::read(bytes).root().is_some_and(|root| Kind::detect(root) == Kind::AgentCard)
}
