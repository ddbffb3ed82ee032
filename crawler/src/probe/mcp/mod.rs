//! An MCP endpoint: asked in each era it may speak, its lists read to their end, its sessions closed behind us.
//!
//! - [`plan`] decides what is asked next, by what was answered;
//! - [`message`] is what is said;
//! - [`active`] is what only the operator's own servers are asked;
//! - here it is sent, listened to and recorded.
//!
//! No tool is ever called on a server of somebody else. What the server says is data; `Err` means that we failed.

pub mod active;
pub mod message;
pub mod plan;

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use plumbline_rules::reach::Outcome;
use plumbline_rules::session::{Exchange, Session, Step, WireError};
use plumbline_rules::{settings, text};
use tokio::time::Instant;
use url::Url;

use self::active::Active;
use self::message::{Credentials, Message, Verb};
use self::plan::{Next, Own, Plan, Wish};
use super::{Body, Observed, apart};
use crate::net::{Ask, Asked, BodyKind, Client, Header, Listen, NetError, Opened, Patience, Until, Way, Wire, outcome};

settings! {
    /// How MCP endpoints are probed.
    pub struct ProbeSettings {
        /// Whether the endpoints that registries list are probed.
        pub endpoints: bool = true,
        /// Whether odd but harmless requests are made too, at most once a day to each endpoint.
        pub odd_requests: bool = true,
        /// For the head of an answer, milliseconds.
        pub head_ms: u64 = 10_000,
        /// For one answer as a whole, milliseconds.
        pub step_ms: u64 = 20_000,
        /// How long after its answer an event stream is watched for its end, milliseconds. Below 5000 nothing is said
        /// about streams that stay open.
        pub stream_close_ms: u64 = 5_000,
        /// How long the stream of a GET is read, milliseconds.
        pub stream_get_ms: u64 = 3_000,
        /// How long a subscription is read, milliseconds.
        pub listen_ms: u64 = 5_000,
        /// How long is waited for the first event of the transport before 2025-03-26, milliseconds.
        pub endpoint_event_ms: u64 = 10_000,
        /// How long before tools are listed a third time when two lists differ, milliseconds.
        pub third_list_ms: u64 = 5_000,
        /// How long the answers of one run may take together before it is broken off, milliseconds.
        pub run_ms: u64 = 180_000,
        /// Bytes of answers after which a run is broken off. With one answer on top and one at the end of a session it holds
        /// 16 MiB at most.
        pub run_bytes: u64 = 8 << 20,
        /// How long before a connection that failed is tried again, milliseconds. 0: it is not.
        pub again_ms: u64 = 30_000,
    }
}

/// Which endpoint to ask, and how.
#[derive(Debug, Clone)]
pub struct EndpointAsk {
    /// Its address.
    pub url: String,
    /// The operator's headers for it.
    pub headers: Vec<Header>,
    /// The odd requests too.
    pub odd: bool,
    /// It is the operator's own, and this may be done to it; `None` for everybody else's.
    pub active: Option<Active>,
}

/// Asks an endpoint all there is to ask.
///
/// # Errors
/// Only when we failed.
pub async fn observe(client: &Client, ask: &EndpointAsk, settings: &ProbeSettings) -> Result<Observed, NetError> {
    let mut run =
        Run { client, ask, settings, session: Session::default(), robots: Vec::new(), opened: None, held: Vec::new() };
    let wish = Wish {
        odd: ask.odd,
        third_after: Duration::from_millis(settings.third_list_ms),
        is_local: is_local(&ask.url),
        own: ask.active.clone().map(|active| Own {
            active,
            has_token: active::token_of(&ask.headers).is_some(),
            elsewhere: elsewhere(&ask.url, client),
        }),
    };
    let mut plan = Plan::new(&ask.url, wish);
    while let Some(next) = plan.next(&run.session) {
        let heard = run.act(next, plan.endpoint()).await?;
        plan.heard(&heard);
        if run.took_ms() > settings.run_ms {
            plan.stop();
        } else if run.held() > settings.run_bytes {
            plan.leave();
        }
    }
    run.hang_up();
    let outcome = reached(&run.session);
    Ok(Observed { session: run.session, robots: run.robots, outcome, body: Body::None })
}

/// How far we came: by the handshakes alone, unless somebody asked to come back later.
#[must_use]
pub fn reached(session: &Session) -> Outcome {
    let is_handshake = |exchange: &&Exchange| {
        matches!(exchange.step, Some(Step::Discover | Step::Initialize | Step::HttpSse | Step::Robots))
    };
    let handshakes: Vec<Exchange> = session.exchanges.iter().filter(is_handshake).cloned().collect();
    let conversation = plumbline_rules::conversation::Conversation::read(session, None, None, None);
    if conversation.is_throttled() {
        return Outcome::Throttled;
    }
    outcome(&handshakes, Asked::Endpoint)
}

/// The address of a server on this machine's loopback as others in its network would write it. `None` where we may not call
/// that: what is not asked is not judged.
fn elsewhere(url: &str, client: &Client) -> Option<Url> {
    let mut url = Url::parse(url).ok().filter(|url| url.host_str().is_some_and(text::host_is_loopback))?;
    url.set_ip_host(own_address()?).ok()?;
    client.guard().check_url(&url).is_ok().then_some(url)
}

/// The address by which this machine would speak to others. Nothing is sent: a datagram socket only chooses its way.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // The block of RFC 5737 for documentation: nobody is there.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

fn is_local(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.host_str().is_some_and(|host| !text::is_public_host(host)))
}

/// A run at work.
struct Run<'r> {
    client: &'r Client,
    ask: &'r EndpointAsk,
    settings: &'r ProbeSettings,
    session: Session,
    robots: Vec<Exchange>,
    /// The open stream of the older transport, with the place of its exchange in the session.
    opened: Option<(usize, Opened)>,
    /// Streams of an own server that are held open, likewise.
    held: Vec<(usize, Opened)>,
}

impl Run<'_> {
    fn took_ms(&self) -> u64 {
        self.session.exchanges.iter().map(|exchange| exchange.took_ms).sum()
    }

    /// Bytes of the answers so far.
    fn held(&self) -> u64 {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len) as u64;
        let responses = self.session.exchanges.iter().filter_map(|exchange| exchange.response.as_ref());
        responses.map(|response| length(&response.raw) + length(&response.raw_base64)).sum()
    }

    /// Does the next thing, records it, and gives what the plan is to hear of it.
    async fn act(&mut self, next: Next, endpoint: &str) -> Result<Vec<Exchange>, NetError> {
        match next {
            Next::Say(message) => {
                let ask = self.endpoint_ask(&message, endpoint);
                tokio::time::sleep(message.pause).await;
                self.say(ask).await
            }
            Next::Fetch(step, url) => {
                let fetched = self.client.fetch(self.document_ask(step, url)).await?;
                Ok(self.keep(fetched.exchanges))
            }
            Next::OpenStream => self.open_stream(endpoint).await,
            Next::Post(url, message) => self.post(&url, &message).await,
            Next::CloseStream => {
                self.hang_up();
                Ok(Vec::new())
            }
            Next::Hold(message) => self.hold(&message, endpoint).await,
            Next::Hook(url) => {
                let ask = Ask {
                    step: Some(Step::ChangeHook),
                    method: Method::POST,
                    way: Way::Listed,
                    patience: Some(self.patience()),
                    ..Ask::get(url.as_str(), BodyKind::Page)
                };
                let fetched = self.client.fetch(ask).await?;
                Ok(self.keep(fetched.exchanges))
            }
            Next::LetGo(open) => {
                self.let_go(open).await;
                Ok(Vec::new())
            }
            Next::CallAndCancel(call, cancel) => self.call_and_cancel(&call, &cancel, endpoint).await,
        }
    }

    /// Sends; a first connection that fails is tried once more.
    async fn say(&mut self, ask: Ask) -> Result<Vec<Exchange>, NetError> {
        let is_first = self.session.exchanges.is_empty();
        let mut fetched = self.client.fetch(ask.clone()).await?;
        self.mask(&mut fetched.exchanges);
        let failed = fetched.last().error.is_some_and(may_pass);
        if is_first && failed && self.settings.again_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.settings.again_ms)).await;
            let again = self.client.fetch(ask).await?;
            return Ok(self.keep(again.exchanges));
        }
        Ok(self.keep(fetched.exchanges))
    }

    /// Keeps exchanges in the session, robots.txt apart.
    fn keep(&mut self, exchanges: Vec<Exchange>) -> Vec<Exchange> {
        let (session, robots) = apart(exchanges);
        self.robots.extend(robots);
        self.session.exchanges.extend(session.exchanges.iter().cloned());
        session.exchanges
    }

    /// Hides the operator's token where it was sent in an address, or came back from there.
    fn mask(&self, exchanges: &mut [Exchange]) {
        let Some(token) = active::token_of(&self.ask.headers).filter(|_| self.ask.active.is_some()) else { return };
        for exchange in exchanges.iter_mut().filter(|exchange| exchange.step == Some(Step::TokenInQuery)) {
            exchange.request.url = exchange.request.url.replace(token, MASK);
            let Some(response) = &mut exchange.response else { continue };
            response.raw = response.raw.take().map(|raw| raw.replace(token, MASK));
            response.headers.values_mut().for_each(|value| *value = value.replace(token, MASK));
        }
    }

    /// The operator's headers, with the credentials that a message goes out with.
    fn operators_headers(&self, message: &Message) -> Vec<Header> {
        let headers = self.ask.active.as_ref().map(|active| active.headers(&self.ask.headers, message.credentials));
        headers.flatten().unwrap_or_else(|| self.ask.headers.clone())
    }

    fn endpoint_ask(&self, message: &Message, url: &str) -> Ask {
        let settings = self.settings;
        let token = active::token_of(&self.ask.headers).filter(|_| message.credentials == Credentials::InQuery);
        let url = token.and_then(|token| with_token(url, token)).unwrap_or_else(|| url.to_owned());
        let wait = match message.step {
            Step::Get => settings.stream_get_ms,
            Step::SubscriptionsListen => settings.listen_ms,
            _ => settings.step_ms,
        };
        let mut headers: Vec<Header> =
            message.sent_headers().into_iter().map(|(name, value)| Header::new(name, value)).collect();
        headers.extend(self.operators_headers(message));
        Ask {
            step: Some(message.step),
            method: method(message.verb),
            headers,
            body: message.body.clone().map(Bytes::from),
            way: Way::Listed,
            listen: Some(Listen {
                until: message.until.clone(),
                wait: Duration::from_millis(wait),
                linger: Duration::from_millis(settings.stream_close_ms),
            }),
            patience: Some(self.patience()),
            wire: message.wire,
            ..Ask::get(url, BodyKind::McpAnswer)
        }
    }

    fn patience(&self) -> Patience {
        Patience {
            head: Duration::from_millis(self.settings.head_ms),
            total: Duration::from_millis(self.settings.step_ms),
        }
    }

    fn document_ask(&self, step: Step, url: String) -> Ask {
        let (kind, accept) = match step {
            Step::ServerCard => (BodyKind::ServerCard, "application/mcp-server-card+json, application/json;q=0.9"),
            Step::AiCatalog => (BodyKind::ServerCard, "application/json"),
            _ => (BodyKind::OauthMetadata, "application/json"),
        };
        let patience = Some(self.patience());
        Ask { step: Some(step), accept: Some(accept), way: Way::Listed, patience, ..Ask::get(url, kind) }
    }

    async fn open_stream(&mut self, endpoint: &str) -> Result<Vec<Exchange>, NetError> {
        let wait = Duration::from_millis(self.settings.endpoint_event_ms);
        let ask = Ask {
            step: Some(Step::HttpSse),
            accept: Some("text/event-stream"),
            headers: self.ask.headers.clone(),
            way: Way::Listed,
            listen: Some(Listen { until: Until::Named("endpoint"), wait, linger: Duration::ZERO }),
            patience: Some(self.patience()),
            wire: Wire::Titled,
            ..Ask::get(endpoint, BodyKind::McpAnswer)
        };
        let mut opened = self.client.open(ask).await?;
        if let Some(events) = opened.events() {
            events.wait(&Until::Named("endpoint"), 0, Instant::now() + wait).await;
        }
        let heard = self.keep(opened.so_far());
        self.opened = self.session.exchanges.len().checked_sub(1).map(|place| (place, opened));
        Ok(heard)
    }

    /// Posts to the address that the stream named, and waits for the answer on the stream.
    async fn post(&mut self, url: &Url, message: &Message) -> Result<Vec<Exchange>, NetError> {
        let told = self.opened.as_mut().and_then(|(_, opened)| opened.events()).map_or(0, |events| events.told().len());
        let ask = self.endpoint_ask(message, url.as_str());
        let posted = self.client.fetch(ask).await?;
        let is_taken = posted.response().is_some_and(|response| (200..300).contains(&response.status));
        let waits = is_taken && message.until != Until::Never;
        if let Some((place, opened)) = &mut self.opened {
            if let Some(events) = opened.events().filter(|_| waits) {
                let deadline = Instant::now() + Duration::from_millis(self.settings.step_ms);
                events.wait(&message.until, told, deadline).await;
            }
            if let (Some(now), Some(kept)) = (opened.so_far().pop(), self.session.exchanges.get_mut(*place)) {
                *kept = now;
            }
        }
        let stream = self.opened.as_ref().and_then(|(place, _)| self.session.exchanges.get(*place)).cloned();
        let posted = self.keep(posted.exchanges);
        Ok(stream.into_iter().chain(posted).collect())
    }

    /// Opens a stream that stays open beside what follows.
    async fn hold(&mut self, message: &Message, endpoint: &str) -> Result<Vec<Exchange>, NetError> {
        let opened = self.client.open(self.endpoint_ask(message, endpoint)).await?;
        let heard = self.keep(opened.so_far());
        if let Some(place) = self.session.exchanges.len().checked_sub(1) {
            self.held.push((place, opened));
        }
        Ok(heard)
    }

    /// Reads what is held until each was open for so long, and closes it.
    async fn let_go(&mut self, open: Duration) {
        for (place, mut held) in std::mem::take(&mut self.held) {
            if let Some(events) = held.events() {
                let deadline = events.opened_at() + open;
                events.wait(&Until::Never, 0, deadline).await;
            }
            if let (Some(last), Some(kept)) = (held.close().pop(), self.session.exchanges.get_mut(place)) {
                *kept = last;
            }
        }
    }

    /// A call on a connection of its own, and its cancellation while it is at work.
    async fn call_and_cancel(
        &mut self,
        call: &Message,
        cancel: &Message,
        endpoint: &str,
    ) -> Result<Vec<Exchange>, NetError> {
        let call = Ask { is_beside: true, ..self.endpoint_ask(call, endpoint) };
        let (pause, cancel) = (cancel.pause, self.endpoint_ask(cancel, endpoint));
        let cancelled = async {
            tokio::time::sleep(pause).await;
            self.client.fetch(cancel).await
        };
        let (called, cancelled) = tokio::join!(self.client.fetch(call), cancelled);
        let heard = self.keep(called?.exchanges);
        self.keep(cancelled?.exchanges);
        Ok(heard)
    }

    /// Closes the stream of the older transport, if one is open.
    fn hang_up(&mut self) {
        if let Some((place, opened)) = self.opened.take()
            && let (Some(last), Some(kept)) = (opened.close().pop(), self.session.exchanges.get_mut(place))
        {
            *kept = last;
        }
    }
}

/// What stands for a token in the record.
const MASK: &str = "***";

/// An address with a token in its query, where it has no business.
fn with_token(url: &str, token: &str) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    url.query_pairs_mut().append_pair("access_token", token);
    Some(url.into())
}

/// A failure to connect that may be over in a moment.
fn may_pass(error: WireError) -> bool {
    matches!(error, WireError::Refused | WireError::ConnectTimeout | WireError::Reset)
}

fn method(verb: Verb) -> Method {
    match verb {
        Verb::Post => Method::POST,
        Verb::Get => Method::GET,
        Verb::Delete => Method::DELETE,
    }
}
