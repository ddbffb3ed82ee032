//! One ask becomes one or more exchanges: each hop guarded, paced, bounded and recorded.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Once, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::header::{self, HeaderMap, HeaderValue};
use plumbline_rules::session::{Cut, Exchange, Response, Step, WireError};
use plumbline_store::steering::OptOuts;
use tokio::time::{Instant, timeout};
use url::Url;

use super::ask::{Ask, Fetched, Way, Wire};
use super::body::{self, Body, Bounds};
use super::guard::Guard;
use super::limits::{BodyKind, MAX_HEADER_BYTES_H2, MAX_HEADERS, MAX_URL};
use super::politeness::{Politeness, Turn};
use super::redirect::{self, Hop, Next, Trail};
use super::resolver::GuardedResolver;
use super::robots::{self, Policy, Wish};
use super::stream::Events;
use super::{NetError, NetSettings, failure, record};
use crate::counters::COUNTERS;
use crate::targets::host_of;

/// The codings that are asked for; `deflate` is undone as well when a server sends it unasked.
const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("gzip, br, zstd");

/// How long a connection is kept for the next request to the same host: shorter than any common server keeps it (2 s),
/// so that a server hanging up on an idle connection never looks like a reset.
const KEEP_CONNECTION: Duration = Duration::from_millis(1_500);

/// The guarded HTTP client. Clones share connections, manners and what is known of robots.txt files.
#[derive(Clone)]
pub struct Client(Arc<Inner>, Connections);

/// Which connections usual requests go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connections {
    /// Those that are kept.
    Kept,
    /// A new one for each.
    New,
}

struct Inner {
    settings: NetSettings,
    guard: Arc<Guard>,
    http: reqwest::Client,
    titled: reqwest::Client,
    fresh: reqwest::Client,
    politeness: Politeness,
    robots: robots::Cache,
    opt_outs: RwLock<OptOuts>,
    user_agent: HeaderValue,
    /// There are certificate authorities to trust.
    trusts: bool,
}

impl Client {
    /// A client with these settings.
    ///
    /// # Errors
    /// The contact or the file of certificates is of no use, or the HTTP stack cannot be set up.
    pub fn new(settings: NetSettings) -> Result<Self, NetError> {
        let guard = Guard { allow_networks: settings.allow_networks.0.clone(), receivers: None };
        Self::behind(guard, settings)
    }

    /// A client for receivers of webhooks, at these ports: with connections, networks and limits of its own, so that neither
    /// a slow receiver nor what is opened to receivers touches crawling.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn for_receivers(settings: NetSettings, ports: Vec<u16>) -> Result<Self, NetError> {
        let receivers = Some(super::guard::Receivers { ports });
        Self::behind(Guard { allow_networks: settings.allow_networks.0.clone(), receivers }, settings)
    }

    fn behind(guard: Guard, settings: NetSettings) -> Result<Self, NetError> {
        install_crypto();
        let user_agent = user_agent(&settings.contact)?;
        let guard = Arc::new(guard);
        let resolver = GuardedResolver::new(guard.clone(), &settings.name_servers, settings.time.dns());
        let (http, trusts) = http_client(&settings, resolver.clone(), Wire::Usual)?;
        let (titled, _) = http_client(&settings, resolver.clone(), Wire::Titled)?;
        let (fresh, _) = http_client(&settings, resolver, Wire::Fresh)?;
        let politeness = Politeness::new(settings.manners.clone());
        let robots = robots::Cache::default();
        let opt_outs = RwLock::default();
        let inner = Inner { settings, guard, http, titled, fresh, politeness, robots, opt_outs, user_agent, trusts };
        Ok(Self(Arc::new(inner), Connections::Kept))
    }

    /// The same client, every request of which goes over a connection of its own: what a second look sees must not hang on
    /// the connection of the first.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self(self.0.clone(), Connections::New)
    }

    /// The addresses that may be called.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.0.guard
    }

    /// Whose turn it is at which host.
    #[must_use]
    pub fn politeness(&self) -> &Politeness {
        &self.0.politeness
    }

    /// Whom not to call from now on, wherever an address or a redirect leads.
    pub fn set_opt_outs(&self, opt_outs: OptOuts) {
        *self.0.opt_outs.write().unwrap_or_else(PoisonError::into_inner) = opt_outs;
    }

    /// Whether whoever stands behind this address asked to be left alone.
    #[must_use]
    pub fn is_opted_out(&self, url: &Url) -> bool {
        let opt_outs = self.0.opt_outs.read().unwrap_or_else(PoisonError::into_inner);
        let host = host_of(url.as_str()).filter(|_| !opt_outs.is_empty());
        host.is_some_and(|host| opt_outs.covers_host(&host.name, &host.domain))
    }

    /// Asks, follows redirects, and records everything that was said.
    ///
    /// Dropping the future ends the exchange in flight.
    ///
    /// # Errors
    /// Only when we failed. Whatever the target did is in the exchanges.
    pub async fn fetch(&self, ask: Ask) -> Result<Fetched, NetError> {
        let mut exchanges = Vec::new();
        let body = self.walk(&ask, &mut exchanges, &mut Hold::default()).await?;
        let final_url = exchanges.last().map(|last| last.request.url.clone()).unwrap_or_default();
        Ok(Fetched { exchanges, body, final_url })
    }

    /// Asks and follows redirects as [`Client::fetch`], but leaves an event stream in answer open, so that other requests
    /// can be made while it speaks. Our turn at the host is over then.
    ///
    /// # Errors
    /// Only when we failed.
    pub async fn open(&self, ask: Ask) -> Result<Opened, NetError> {
        let mut exchanges = Vec::new();
        let mut hold = Hold { is_wanted: true, events: None };
        self.walk(&ask, &mut exchanges, &mut hold).await?;
        Ok(Opened { exchanges, events: hold.events })
    }

    /// The chain of one ask, hop by hop; the decoded body of its last answer.
    async fn walk(&self, ask: &Ask, exchanges: &mut Vec<Exchange>, hold: &mut Hold) -> Result<Option<Bytes>, NetError> {
        let mut hop = match first_hop(ask) {
            Ok(hop) => hop,
            Err(refused) => return Ok(end(exchanges, *refused)),
        };
        let mut trail = Trail::default();
        loop {
            trail.note(&hop);
            if let Err(error) = self.check(ask.way, &hop.url) {
                return Ok(end(exchanges, record::not_made(ask, &hop, error)));
            }
            let gap = match self.wish(ask.way, &hop, exchanges).await? {
                Ok(gap) => gap,
                Err(error) => return Ok(end(exchanges, record::not_made(ask, &hop, error))),
            };
            let heard = self.exchange(ask, &hop, &trail, gap, hold).await?;
            exchanges.push(heard.exchange);
            hop = match heard.next {
                Next::Stay => return Ok(heard.body),
                Next::Follow(next) => next,
                Next::TooFar(next) => {
                    return Ok(end(exchanges, record::not_made(ask, &next, WireError::RedirectLimit)));
                }
                Next::Nowhere(location) => return Ok(end(exchanges, record::bad_url(ask, &location))),
            };
        }
    }

    /// Whether a URL may be called, as far as its text tells.
    fn check(&self, way: Way, url: &Url) -> Result<(), WireError> {
        if way != Way::Webhook && self.is_opted_out(url) {
            return Err(WireError::OptOut);
        }
        let checked = match way {
            Way::Crawl | Way::Listed | Way::Registry | Way::Robots => self.0.guard.check_url(url),
            Way::Webhook => self.0.guard.check_webhook_url(url),
        };
        checked.map_err(|refusal| match refusal.is_about_place() {
            true => WireError::AddressGuard,
            false => WireError::BadUrl,
        })
    }

    /// What robots.txt says about a hop, where it has a say: the gap it asks for, or why the hop is not made.
    async fn wish(
        &self,
        way: Way,
        hop: &Hop,
        exchanges: &mut Vec<Exchange>,
    ) -> Result<Result<Option<Duration>, WireError>, NetError> {
        // A robots.txt that leads to another host must not ask that host's: two that lead to each other would wait for ever.
        let is_exempt = hop.is_exempt || way == Way::Robots;
        if !self.0.settings.robots || is_exempt || !robots::applies(&hop.url) {
            return Ok(Ok(None));
        }
        let entry = self.0.robots.entry(&hop.url);
        match entry.policy(self.ask_robots(&hop.url, exchanges)).await {
            Ok(policy) => Ok(match policy.wish(&hop.url) {
                Wish::Fetch { gap } => Ok(gap),
                Wish::Stay => Err(WireError::Robots),
            }),
            Err(RobotsFailure::Theirs(error)) => Ok(Err(error)),
            Err(RobotsFailure::Ours(error)) => Err(error),
        }
    }

    /// Fetches the robots.txt for an address and records how. Boxed, because the walk of an ask may ask it.
    fn ask_robots<'a>(
        &'a self,
        url: &Url,
        exchanges: &'a mut Vec<Exchange>,
    ) -> Pin<Box<dyn Future<Output = Result<Policy, RobotsFailure>> + Send + 'a>> {
        let ask = Ask {
            step: Some(Step::Robots),
            accept: Some("text/plain, */*;q=0.5"),
            way: Way::Robots,
            ..Ask::get(robots::address(url), BodyKind::Robots)
        };
        Box::pin(async move {
            let fetched = self.fetch(ask).await.map_err(RobotsFailure::Ours)?;
            let policy = Policy::from_answer(fetched.last(), fetched.body.as_deref().unwrap_or_default());
            exchanges.extend(fetched.exchanges);
            policy.map_err(RobotsFailure::Theirs)
        })
    }

    /// One request and its answer, when it is our turn. The body is read unless a redirect is followed.
    async fn exchange(
        &self,
        ask: &Ask,
        hop: &Hop,
        trail: &Trail,
        gap: Option<Duration>,
        hold: &mut Hold,
    ) -> Result<Heard, NetError> {
        if hop.url.scheme() == "https" && !self.0.trusts {
            return Err(NetError::NoTrust);
        }
        let turn = self.turn(ask, &hop.url, gap).await?;
        let sent = self.request(ask, hop);
        let mut exchange = record::sent(ask, hop, sent.headers(), Utc::now());
        let start = Instant::now();
        let (body, next) = match self.send(ask, sent).await? {
            Err(error) => {
                failed(turn.as_ref());
                exchange.error = Some(error);
                (None, Next::Stay)
            }
            Ok(answer) => {
                let mut response = record::head(answer.status(), answer.headers());
                exchange.head_ms = Some(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
                exchange.peer = record::peer(&answer);
                heard(turn.as_ref(), &response, Utc::now());
                let location = answer.headers().get(header::LOCATION).map(record::text);
                let next = next_hop(ask.way, hop, response.status, location.as_deref(), trail);
                let body = match next {
                    Next::Stay => self.read(ask, answer, start, &mut response, hold).await,
                    Next::Follow(_) | Next::TooFar(_) | Next::Nowhere(_) => None,
                };
                let bytes = body.map(|body| record::body(&mut response, body));
                exchange.response = Some(response);
                (bytes, next)
            }
        };
        COUNTERS.answered(exchange.response.as_ref().map(|response| response.status));
        exchange.took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        drop(turn);
        Ok(Heard { exchange, body, next })
    }

    /// Our turn at the host. Webhooks keep their own pace.
    async fn turn(&self, ask: &Ask, url: &Url, gap: Option<Duration>) -> Result<Option<Turn>, NetError> {
        match ask.way {
            Way::Webhook => Ok(None),
            _ if ask.is_beside => Ok(None),
            Way::Crawl | Way::Listed | Way::Registry | Way::Robots => {
                let pace = gap.map_or(ask.pace, |gap| Some(gap.max(ask.pace.unwrap_or(self.usual_gap()))));
                self.0.politeness.turn(url, pace).await.map(Some)
            }
        }
    }

    /// The gap between two requests to a host that asks for none of its own.
    #[must_use]
    pub fn usual_gap(&self) -> Duration {
        Duration::from_millis(self.0.settings.manners.pace_ms)
    }

    /// The request as it goes out.
    fn request(&self, ask: &Ask, hop: &Hop) -> reqwest::Request {
        let mut request = reqwest::Request::new(hop.method.clone(), hop.url.clone());
        *request.headers_mut() = self.headers(ask, hop);
        // A redirect that turned POST into GET has nothing to send.
        if let Some(body) = &ask.body
            && hop.method == ask.method
        {
            *request.body_mut() = Some(body.clone().into());
        }
        request
    }

    fn headers(&self, ask: &Ask, hop: &Hop) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, self.0.user_agent.clone());
        headers.insert(header::ACCEPT_ENCODING, ACCEPT_ENCODING);
        headers.insert(header::ACCEPT, HeaderValue::from_static(ask.accept.unwrap_or("*/*")));
        for sent in ask.headers.iter().filter(|sent| hop.with_secrets || !sent.is_secret) {
            headers.insert(sent.name.clone(), sent.value.clone());
        }
        if let Some(known) = &ask.validators
            && known.url == hop.url.as_str()
        {
            insert_text(&mut headers, header::IF_NONE_MATCH, known.etag.as_deref());
            insert_text(&mut headers, header::IF_MODIFIED_SINCE, known.last_modified.as_deref());
        }
        headers
    }

    /// Sends, and waits for the head of the answer.
    async fn send(
        &self,
        ask: &Ask,
        request: reqwest::Request,
    ) -> Result<Result<reqwest::Response, WireError>, NetError> {
        let http = match ask.wire {
            Wire::Usual if self.1 == Connections::New => &self.0.fresh,
            Wire::Usual => &self.0.http,
            Wire::Titled => &self.0.titled,
            Wire::Fresh => &self.0.fresh,
        };
        let patience = ask.patience.map_or(self.0.settings.time.head(), |patience| patience.head);
        match timeout(patience, http.execute(request)).await {
            Err(_) => Ok(Err(WireError::Timeout)),
            Ok(Ok(answer)) => Ok(Ok(answer)),
            Ok(Err(error)) => failure::wire_error(&error).map(Err),
        }
    }

    /// Reads the answer: an event stream as it is to be listened to, anything else to its end. `None` for a stream that is
    /// left open.
    async fn read(
        &self,
        ask: &Ask,
        answer: reqwest::Response,
        start: Instant,
        response: &mut Response,
        hold: &mut Hold,
    ) -> Option<Body> {
        let NetSettings { bytes, time, .. } = &self.0.settings;
        let bounds = Bounds {
            decoded: bytes.decoded(ask.kind),
            raw: bytes.raw(ask.kind),
            idle: time.idle(),
            deadline: start + ask.patience.map_or(time.total(), |patience| patience.total),
        };
        let encoding = record::joined(answer.headers(), &header::CONTENT_ENCODING);
        let is_stream = response.media_type().is_some_and(|label| label.is("text", "event-stream"));
        let Some(listen) = ask.listen.as_ref().filter(|_| is_stream) else {
            return Some(body::read(answer.bytes_stream(), encoding.as_deref(), bounds).await);
        };
        let Some(decoded) = body::open(answer.bytes_stream(), encoding.as_deref(), bounds).await else {
            return Some(Body { cut: Some(Cut::BadEncoding), ..Body::default() });
        };
        let mut events = Events::new(decoded, start, bounds.decoded);
        if hold.is_wanted {
            hold.events = Some(events);
            return None;
        }
        events.listen(listen).await;
        Some(events.so_far(response))
    }
}

/// Whether an event stream is to be left open, and the one that was.
#[derive(Default)]
struct Hold {
    is_wanted: bool,
    events: Option<Events>,
}

/// What came of an ask whose stream stays open.
#[derive(Debug)]
pub struct Opened {
    /// In the order they were made; the body of the last one is not in it while the stream is open.
    exchanges: Vec<Exchange>,
    /// The stream, when one was opened.
    events: Option<Events>,
}

impl Opened {
    /// The exchanges so far.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// The stream, when one was opened.
    pub fn events(&mut self) -> Option<&mut Events> {
        self.events.as_mut()
    }

    /// The exchanges with what the stream has said so far.
    #[must_use]
    pub fn so_far(&self) -> Vec<Exchange> {
        let mut exchanges = self.exchanges.clone();
        let last = exchanges.last_mut();
        if let (Some(events), Some(last)) = (&self.events, last)
            && let Some(response) = &mut last.response
        {
            last.took_ms = events.open_ms();
            let body = events.so_far(response);
            record::body(response, body);
        }
        exchanges
    }

    /// Hangs up, and gives the exchanges with all that the stream said.
    #[must_use]
    pub fn close(self) -> Vec<Exchange> {
        self.so_far()
    }
}

/// What one hop brought.
struct Heard {
    exchange: Exchange,
    body: Option<Bytes>,
    next: Next,
}

/// Why a robots.txt could not be asked for.
enum RobotsFailure {
    Theirs(WireError),
    Ours(NetError),
}

/// Where an answer leads, as far as the way allows to follow.
fn next_hop(way: Way, hop: &Hop, status: u16, location: Option<&str>, trail: &Trail) -> Next {
    let next = redirect::next(hop, status, location, trail);
    match (way, &next) {
        (Way::Webhook, _) => Next::Stay,
        (Way::Registry, Next::Follow(to) | Next::TooFar(to)) if to.url.host() != hop.url.host() => Next::Stay,
        (Way::Crawl | Way::Listed | Way::Registry | Way::Robots, _) => next,
    }
}

fn heard(turn: Option<&Turn>, response: &Response, now: DateTime<Utc>) {
    if let Some(turn) = turn {
        turn.heard(response.status, response.headers.get("retry-after").map(String::as_str), now);
    }
}

/// Nobody answered.
fn failed(turn: Option<&Turn>) {
    if let Some(turn) = turn {
        turn.failed();
    }
}

/// The first hop of an ask, or the record of why there is none.
fn first_hop(ask: &Ask) -> Result<Hop, Box<Exchange>> {
    if ask.url.len() > MAX_URL {
        return Err(Box::new(record::bad_url(ask, &ask.url)));
    }
    let Ok(mut url) = Url::parse(&ask.url) else { return Err(Box::new(record::bad_url(ask, &ask.url))) };
    url.set_fragment(None);
    let with_secrets = ask.headers.iter().any(|header| header.is_secret);
    let is_exempt = match ask.way {
        Way::Crawl => !robots::applies(&url),
        Way::Listed | Way::Registry | Way::Robots | Way::Webhook => true,
    };
    Ok(Hop { method: ask.method.clone(), url, with_secrets, is_exempt })
}

/// Ends a chain with a hop that was not made.
fn end(exchanges: &mut Vec<Exchange>, refused: Exchange) -> Option<Bytes> {
    exchanges.push(refused);
    None
}

/// Inserts what a server once said; what cannot be said back to it is left out.
fn insert_text(headers: &mut HeaderMap, name: header::HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

fn user_agent(contact: &str) -> Result<HeaderValue, NetError> {
    let is_plain = !contact.is_empty() && contact.chars().all(|c| c.is_ascii_graphic() && !"()\\".contains(c));
    if !is_plain {
        return Err(NetError::Contact(contact.to_owned()));
    }
    let text = format!("Plumbline/{} (+{contact})", env!("CARGO_PKG_VERSION"));
    HeaderValue::from_str(&text).map_err(|_| NetError::Contact(contact.to_owned()))
}

/// One crypto library for the whole process; whoever came first decided it.
fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            tracing::debug!("a crypto provider is installed already");
        }
    });
}

/// The HTTP stack, and whether it has certificate authorities to trust.
fn http_client(
    settings: &NetSettings,
    resolver: GuardedResolver,
    wire: Wire,
) -> Result<(reqwest::Client, bool), NetError> {
    let own = own_authorities(settings)?;
    let with_system = builder(settings, resolver.clone(), wire).tls_certs_merge(own.clone()).build();
    match with_system {
        Ok(client) => Ok((client, true)),
        Err(error) => {
            tracing::warn!("the certificates of this machine are of no use: {error:?}");
            let trusts = !own.is_empty();
            let alone = builder(settings, resolver, wire).tls_certs_only(own).build();
            alone.map(|client| (client, trusts)).map_err(NetError::Setup)
        }
    }
}

fn builder(settings: &NetSettings, resolver: GuardedResolver, wire: Wire) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .dns_resolver(resolver)
        .tls_info(true)
        // A proxy would connect to addresses that the guard never saw.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(settings.time.connect())
        .pool_max_idle_per_host(usize::from(wire != Wire::Fresh))
        .pool_idle_timeout(KEEP_CONNECTION)
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HEADER_BYTES_H2);
    match wire {
        Wire::Usual => builder,
        Wire::Titled | Wire::Fresh => builder.http1_title_case_headers(),
    }
}

fn own_authorities(settings: &NetSettings) -> Result<Vec<reqwest::Certificate>, NetError> {
    if settings.ca_file.is_empty() {
        return Ok(Vec::new());
    }
    let path = PathBuf::from(&settings.ca_file);
    let pem = std::fs::read(&path).map_err(|source| NetError::CaFile { path: path.clone(), source })?;
    let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(NetError::Setup)?;
    if certificates.is_empty() {
        return Err(NetError::NoCertificate(path));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_names_product_version_and_contact() {
        let agent = user_agent("https://example.org/bot").unwrap();
        let expected = format!("Plumbline/{} (+https://example.org/bot)", env!("CARGO_PKG_VERSION"));
        assert_eq!(agent.to_str().unwrap(), expected);
        for contact in ["", "two words", "a\nb", "a)b", "ü@example.org"] {
            assert!(matches!(user_agent(contact), Err(NetError::Contact(_))), "{contact}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let settings =
            |path: &std::path::Path| NetSettings { ca_file: path.display().to_string(), ..NetSettings::default() };
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(Client::new(settings(file.path())), Err(NetError::NoCertificate(_))));
        assert!(matches!(Client::new(settings("/no/such/file".as_ref())), Err(NetError::CaFile { .. })));
    }
}
