//! An agent's card: asked with and without `A2A-Version: 1.0`, at the path before 0.3, and then what the card leads to.
//!
//! - [`card`](observe): the card itself, and once more where two answers have to be told from a chance;
//! - [`keys`]: the key sets that its signatures name;
//! - [`interfaces`]: what its interfaces are asked. Only questions: a task that does not exist, and the extended card.
//!   Nothing is ever sent that could start work.

pub mod interfaces;
pub mod keys;

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderName, HeaderValue};
use plumbline_rules::canonical::semantic_hash;
use plumbline_rules::document::{Document, Node, Type};
use plumbline_rules::session::{Exchange, Response, Session, Step, Surface};
use plumbline_rules::session_judge::{document_of, document_of_record};

use self::interfaces::Question;
use self::keys::{KeySets, Wanted};
use super::mcp::message::FOREIGN_ORIGIN;
use super::{Body, Observed, apart, came_to_nothing, served};
use crate::net::{Ask, Asked, BodyKind, Client, Fetched, Header, NetError, Patience, Validators, Way, outcome};

/// What is accepted as a card.
const ACCEPT: &str = "application/json, application/a2a+json;q=0.9, */*;q=0.1";
/// Addresses of one sort that are asked because of one card: more than any real card names.
const MOST_NAMED: usize = 5;
/// How long is waited for what a card leads to.
const PATIENCE: Patience = Patience { head: Duration::from_secs(10), total: Duration::from_secs(10) };

/// Which card to ask for.
#[derive(Debug, Clone, Default)]
pub struct CardAsk {
    /// The card's address.
    pub url: String,
    /// Where it would be before A2A 0.3.
    pub legacy_url: Option<String>,
    /// The operator's headers for this target.
    pub headers: Vec<Header>,
    /// What the last answer said about itself.
    pub validators: Option<Validators>,
    /// The card that came with them, for the case that nothing has changed.
    pub kept: Option<Vec<u8>>,
    /// What it leads to is looked at too: links, metadata, the old path.
    pub surroundings: bool,
    /// Its interfaces are asked what they answer to questions that do nothing.
    pub interfaces: bool,
}

/// Asks for the card and for what it leads to.
///
/// # Errors
/// Only when we failed.
pub async fn observe(client: &Client, ask: &CardAsk, key_sets: &KeySets) -> Result<Observed, NetError> {
    let mut run = Run { client, ask, session: Session::default(), robots: Vec::new() };
    let (outcome, body) = run.card().await?;
    let leads = match &body {
        Body::Answer(number) => run.answer(*number).map(|response| Leads::of(&document_of(response))),
        Body::Unchanged => ask.kept.as_deref().map(|kept| Leads::of(&Document::read(kept))),
        Body::None | Body::File(_) => None,
    };
    if let Some(leads) = leads {
        for wanted in leads.keys {
            let exchanges = key_sets.at(client, &wanted).await?;
            run.keep(exchanges);
        }
        if ask.surroundings {
            run.surroundings(leads.metadata, leads.links).await?;
        }
        if ask.interfaces {
            run.interfaces(leads.questions).await?;
        }
    }
    Ok(Observed { session: run.session, robots: run.robots, outcome, body })
}

/// What a card leads to.
struct Leads {
    /// The key sets that its signatures name.
    keys: Vec<Wanted>,
    /// The metadata of authorization servers that it names.
    metadata: Vec<String>,
    /// The pages that it links to.
    links: Vec<String>,
    /// What its interfaces are asked.
    questions: Vec<Question>,
}

impl Leads {
    fn of(card: &Document) -> Leads {
        let named = |places: &[&'static str]| card.root().map(|root| named(root, places)).unwrap_or_default();
        Leads {
            keys: keys::wanted(card),
            metadata: named(&["/securitySchemes/**/openIdConnectUrl", "/securitySchemes/**/oauth2MetadataUrl"]),
            links: named(&["/documentationUrl", "/iconUrl", "/provider/url"]),
            questions: card.root().map(interfaces::questions).unwrap_or_default(),
        }
    }
}

/// A look at work.
struct Run<'r> {
    client: &'r Client,
    ask: &'r CardAsk,
    session: Session,
    robots: Vec<Exchange>,
}

impl Run<'_> {
    /// The card: how far we came, and the document of record.
    async fn card(&mut self) -> Result<(plumbline_rules::reach::Outcome, Body), NetError> {
        let versioned = self.fetch(Step::Card, &self.ask.url, Sent::Versioned).await?;
        let mut answers = vec![versioned];
        if !came_to_nothing(&answers[0].exchanges) {
            answers.push(self.fetch(Step::CardPlain, &self.ask.url, Sent::Plain).await?);
            let is_missing = is_missing(&answers);
            if let Some(legacy_url) = self.ask.legacy_url.as_ref().filter(|_| is_missing || self.ask.surroundings) {
                answers.push(self.fetch(Step::CardLegacy, legacy_url, Sent::Plain).await?);
            }
        }
        let unchanged = answers[0].is_not_modified();
        let exchanges: Vec<Exchange> = answers.iter().flat_map(|fetched| fetched.exchanges.iter().cloned()).collect();
        let outcome = outcome(&exchanges, Asked::Document);
        self.keep(exchanges);
        let of_record = document_of_record(&self.session, Surface::AgentCard);
        let body = if unchanged { Body::Unchanged } else { served(&self.session, of_record) };
        if answers.len() > 1 {
            self.once_more(&answers[0], &answers[1]).await?;
        }
        Ok((outcome, body))
    }

    /// Asks again where one answer may be a chance: the ETag was not heeded, or the two ways gave two cards.
    async fn once_more(&mut self, versioned: &Fetched, plain: &Fetched) -> Result<(), NetError> {
        let tag =
            |fetched: &Fetched| fetched.response().and_then(|response| response.header("etag")).map(str::to_owned);
        let sent = self.ask.validators.as_ref().and_then(|known| known.etag.clone());
        let is_card = |fetched: &Fetched| fetched.response().is_some_and(|response| response.status == 200);
        let is_unheeded = is_card(versioned) && sent.is_some() && tag(versioned) == sent;
        let differ = is_card(versioned) && is_card(plain) && meaning(versioned) != meaning(plain);
        if is_unheeded || differ {
            let again = self.fetch(Step::CardAgain, &self.ask.url, Sent::Versioned).await?;
            self.keep(again.exchanges);
        }
        if differ {
            let again = self.fetch(Step::CardAgain, &self.ask.url, Sent::Plain).await?;
            self.keep(again.exchanges);
        }
        Ok(())
    }

    async fn fetch(&self, step: Step, url: &str, sent: Sent) -> Result<Fetched, NetError> {
        let mut headers = self.ask.headers.clone();
        match sent {
            Sent::Versioned => headers.push(version_header("1.0")),
            Sent::FromElsewhere => headers.push(Header::new(header::ORIGIN, HeaderValue::from_static(FOREIGN_ORIGIN))),
            Sent::Plain => {}
        }
        let validators = self.ask.validators.clone().filter(|_| sent == Sent::Versioned);
        let ask =
            Ask { step: Some(step), accept: Some(ACCEPT), headers, validators, ..Ask::get(url, BodyKind::AgentCard) };
        self.client.fetch(ask).await
    }

    /// The card as a page of another site gets it, the metadata it names, and the pages it links to.
    async fn surroundings(&mut self, metadata: Vec<String>, links: Vec<String>) -> Result<(), NetError> {
        let elsewhere = self.fetch(Step::CardOrigin, &self.ask.url, Sent::FromElsewhere).await?;
        self.keep(elsewhere.exchanges);
        for address in metadata {
            let ask = Ask {
                step: Some(Step::NamedMetadata),
                accept: Some("application/json"),
                way: Way::Listed,
                patience: Some(PATIENCE),
                ..Ask::get(address, BodyKind::OauthMetadata)
            };
            self.say(ask).await?;
        }
        for address in links {
            let ask = Ask { step: Some(Step::Link), patience: Some(PATIENCE), ..Ask::get(address, BodyKind::Page) };
            self.say(ask).await?;
        }
        Ok(())
    }

    /// Asks the interfaces.
    async fn interfaces(&mut self, questions: Vec<Question>) -> Result<(), NetError> {
        for question in questions {
            let asked = self.say(question_ask(&question)).await?;
            if asked.as_ref().is_some_and(wants_rest) {
                return Ok(());
            }
            if let Some(base) = question.at_base().filter(|_| asked.as_ref().is_some_and(is_bare_404)) {
                self.say(question_ask(&base)).await?;
            }
        }
        Ok(())
    }

    /// Asks, keeps what was said, and gives the last of it.
    async fn say(&mut self, ask: Ask) -> Result<Option<Exchange>, NetError> {
        let fetched = self.client.fetch(ask).await?;
        let last = fetched.exchanges.last().cloned();
        self.keep(fetched.exchanges);
        Ok(last)
    }

    fn keep(&mut self, exchanges: Vec<Exchange>) {
        let (session, robots) = apart(exchanges);
        self.session.exchanges.extend(session.exchanges);
        self.robots.extend(robots);
    }

    fn answer(&self, number: usize) -> Option<&Response> {
        self.session.exchanges.get(number)?.response.as_ref()
    }
}

/// How the card is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// With `A2A-Version: 1.0`.
    Versioned,
    /// With nothing.
    Plain,
    /// With the origin of a page elsewhere.
    FromElsewhere,
}

fn version_header(version: &str) -> Header {
    let value = HeaderValue::from_str(version).unwrap_or(HeaderValue::from_static("1.0"));
    Header::new(HeaderName::from_static("a2a-version"), value)
}

fn question_ask(question: &Question) -> Ask {
    let mut headers = vec![version_header(&question.version)];
    if question.body.is_some() {
        headers.push(Header::new(header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
    }
    Ask {
        step: Some(question.step),
        method: if question.body.is_some() { Method::POST } else { Method::GET },
        accept: Some("application/json"),
        headers,
        body: question.body.clone().map(Bytes::from),
        way: Way::Listed,
        patience: Some(PATIENCE),
        ..Ask::get(question.url.clone(), BodyKind::AgentCard)
    }
}

/// What an answer means, whatever the order of its members.
fn meaning(fetched: &Fetched) -> Option<plumbline_rules::canonical::Hash> {
    document_of(fetched.response()?).root().map(semantic_hash)
}

/// The addresses that stand at these places, each once.
fn named(card: Node<'_>, places: &[&'static str]) -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    let texts = places.iter().flat_map(|place| card.select(place)).filter_map(Node::text);
    for text in texts.filter(|text| text.starts_with("http://") || text.starts_with("https://")) {
        if addresses.len() < MOST_NAMED && !addresses.iter().any(|known| known == text) {
            addresses.push(text.to_owned());
        }
    }
    addresses
}

/// Whether the current path is answered with "not here", so that the older one is worth a question.
fn is_missing(answers: &[Fetched]) -> bool {
    answers.iter().all(|fetched| {
        fetched.response().is_some_and(|r| (400..500).contains(&r.status) && !matches!(r.status, 401..=403 | 407 | 429))
    })
}

/// Whether somebody asks to come back later.
fn wants_rest(exchange: &Exchange) -> bool {
    let response = exchange.response.as_ref();
    response.is_some_and(|r| r.status == 429 || (r.status == 503 && r.header("retry-after").is_some()))
}

/// Whether nothing is there, said by somebody who does not speak the binding. The JS SDK of 0.3 says that there is no such
/// task in an object without `error`.
fn is_bare_404(exchange: &Exchange) -> bool {
    let response = exchange.response.as_ref().filter(|response| matches!(response.status, 404 | 410));
    response.is_some_and(|response| document_of(response).root().is_none_or(|root| root.kind() != Type::Object))
}
