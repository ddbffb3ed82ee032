//! What to ask an MCP endpoint next, decided by what it answered: nothing here sends or waits.
//!
//! `server/discover` comes first, then the handshake, then the transport of 2024-11-05 where both were refused as if
//! nobody were there. A server that asks to come back later is asked nothing more.

use std::collections::VecDeque;
use std::time::Duration;

use plumbline_rules::authorization::{Chain, PrmPlace, as_places};
use plumbline_rules::conversation::{Conversation, HTTP_SSE, MODERN, NEWEST_LEGACY, Turn, list_step};
use plumbline_rules::document::{Node, Type};
use plumbline_rules::report::NotEvaluated;
use plumbline_rules::session::{Exchange, Session, Step, WireError};
use url::Url;

use super::active::{self, Active, Known};
use super::message::legacy::{Agreed, initialize};
use super::message::{LISTS, Message, modern};

/// Pages of one list that are followed.
const MOST_PAGES: usize = 200;
/// Items of one list that are followed.
const MOST_ITEMS: usize = 20_000;
/// Bytes of a cursor that is followed: it goes back with the next request, and no server needs so many.
const MOST_CURSOR: usize = 64 << 10;
/// From where the ids of what own servers are asked count: no other request has them.
const OWN_IDS: i64 = 200;
/// The same for what is asked around a change.
const CHANGE_IDS: i64 = 300;
/// Authorization servers that are asked about; real resources list one or two.
const MOST_ISSUERS: usize = 5;

/// The revision since which servers survive the end of a session. The Python SDK up to 1.9 answers DELETE with 200 and
/// every later request of anybody with 500; so sessions of older servers are left to run out.
const SURVIVES_DELETE: &str = "2025-06-18";
/// The revision since which servers survive odd requests. The Python SDK 1.8, which knows only 2024-11-05, answers a
/// method that it does not know with nothing and every later request of anybody with 500.
const SURVIVES_ODD: &str = "2025-03-26";

/// What is wanted of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// The odd requests too.
    pub odd: bool,
    /// How long before tools are listed a third time.
    pub third_after: Duration,
    /// The endpoint is on this machine or network.
    pub is_local: bool,
    /// It is the operator's own, and this may be done to it.
    pub own: Option<Own>,
}

/// What is known of the operator's own server before it is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own {
    /// What may be done to it.
    pub active: Active,
    /// The operator gave a token for it.
    pub has_token: bool,
    /// Its address if it listened on another one of this machine than its loopback; `None` where it is not to be asked there.
    pub elsewhere: Option<Url>,
}

/// What is done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This is sent to the endpoint.
    Say(Message),
    /// The stream of the older transport is opened.
    OpenStream,
    /// This is posted to the address that the stream named; the answer comes on the stream.
    Post(Box<Url>, Message),
    /// The stream is closed.
    CloseStream,
    /// A stream is opened in answer to this and stays open beside what follows. Own servers only.
    Hold(Message),
    /// The operator's hook is called, which changes what an own server offers.
    Hook(Box<Url>),
    /// The streams that are held are read for so long from when they were opened, and closed.
    LetGo(Duration),
    /// A call goes out, and while it is at work its cancellation. Own servers only.
    CallAndCancel(Box<Message>, Box<Message>),
    /// A document beside the endpoint is fetched.
    Fetch(Step, String),
}

/// A run, as far as it has come.
#[derive(Debug)]
pub struct Plan {
    wish: Wish,
    endpoint: String,
    queue: VecDeque<Next>,
    stage: Stage,
    /// The modern era, where it is spoken.
    modern: Option<Vec<String>>,
    /// What the handshake agreed on.
    agreed: Option<Agreed>,
    declared: Vec<String>,
    /// The first resource that was listed.
    resource: Option<String>,
    /// Every session that was opened and has to be closed.
    sessions: Vec<String>,
    /// How the POSTs were refused, by status and whether the error was a modern one.
    refusals: Vec<(u16, bool)>,
    listing: Listing,
    has_repeated: bool,
    posted_to: Option<Url>,
    next_id: i64,
    fetched_servers: bool,
    fetched_fallbacks: bool,
    has_card: bool,
    /// Somebody answered something.
    is_answered: bool,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Discover,
    ModernLists,
    ModernOwn,
    ModernRest,
    Legacy,
    LegacyLists,
    LegacyOwn,
    LegacyRest,
    Close,
    Stream,
    Metadata,
    Cards,
    Done,
}

/// The lists that are being read.
#[derive(Debug, Default)]
struct Listing {
    pages: usize,
    items: usize,
    cursors: Vec<String>,
    /// The tools of the first and of the second list, by name.
    first: Vec<String>,
    second: Vec<String>,
    second_page: Option<String>,
}

impl Plan {
    /// A run at its start.
    #[must_use]
    pub fn new(endpoint: &str, wish: Wish) -> Plan {
        Plan {
            wish,
            endpoint: endpoint.to_owned(),
            queue: VecDeque::from([Next::Say(modern::discover(1))]),
            stage: Stage::Discover,
            modern: None,
            agreed: None,
            declared: Vec::new(),
            resource: None,
            sessions: Vec::new(),
            refusals: Vec::new(),
            listing: Listing::default(),
            has_repeated: false,
            posted_to: None,
            next_id: 2,
            fetched_servers: false,
            fetched_fallbacks: false,
            has_card: false,
            is_answered: false,
        }
    }

    /// What is done next; `None` when the run is over. `session` is what was said so far.
    pub fn next(&mut self, session: &Session) -> Option<Next> {
        loop {
            if let Some(next) = self.queue.pop_front() {
                return Some(next);
            }
            if self.stage == Stage::Done {
                return None;
            }
            self.go_on(session);
        }
    }

    /// Nothing more is asked: the server wants to be left alone, or nobody answers.
    pub fn stop(&mut self) {
        self.queue.clear();
        self.stage = Stage::Done;
    }

    /// Nothing more is asked, but what was opened is closed; the second time not even that.
    pub fn leave(&mut self) {
        let is_leaving = self.stage == Stage::Done;
        self.stop();
        if !is_leaving {
            self.close();
        }
    }

    /// Takes note of what came of the last thing that was done.
    pub fn heard(&mut self, exchanges: &[Exchange]) {
        let session = Session::from(exchanges.to_vec());
        let conversation = Conversation::read(&session, None, None, None);
        let Some(turn) = conversation.turns.last() else { return };
        self.note_sessions(&conversation);
        self.is_answered |= turn.response().is_some();
        if turn.step == Some(Step::Discover) && turn.exchange.error.is_some_and(ends_it) {
            self.stop();
            return;
        }
        if turn.is_about_endpoint() && turn.gate() == Some(NotEvaluated::RateLimited) {
            self.stop();
            return;
        }
        match turn.step {
            Some(Step::Discover) => self.discovered(turn, exchanges),
            Some(Step::Initialize) => self.initialized(turn),
            Some(Step::HttpSse) => self.stream_opened(turn),
            Some(Step::ToolsList | Step::ResourcesList | Step::TemplatesList | Step::PromptsList) => self.listed(turn),
            Some(Step::FreshConnection | Step::ThirdList) => self.listed_again(turn),
            Some(Step::SessionDelete) => self.session_ended(turn),
            Some(Step::ServerCard | Step::AiCatalog) => self.has_card |= is_json(turn),
            _ => {}
        }
    }

    /// Fills the queue for the next stage.
    fn go_on(&mut self, session: &Session) {
        self.stage = match self.stage {
            Stage::Discover if self.modern.is_some() => {
                self.first_lists(&self.declared.clone());
                Stage::ModernLists
            }
            Stage::ModernLists => {
                self.own(session);
                Stage::ModernOwn
            }
            Stage::ModernOwn => {
                self.modern_rest();
                Stage::ModernRest
            }
            Stage::Discover | Stage::ModernRest => {
                self.queue.push_back(Next::Say(initialize(Step::Initialize, "init-1", NEWEST_LEGACY)));
                Stage::Legacy
            }
            Stage::Legacy if self.agreed.is_some() => {
                self.first_lists(&self.declared.clone());
                Stage::LegacyLists
            }
            Stage::Legacy if self.may_be_older() => {
                self.queue.push_back(Next::OpenStream);
                Stage::Stream
            }
            Stage::LegacyLists => {
                self.own(session);
                Stage::LegacyOwn
            }
            Stage::LegacyOwn => {
                self.legacy_rest();
                Stage::LegacyRest
            }
            Stage::LegacyRest => {
                self.close();
                Stage::Close
            }
            Stage::Legacy if !self.is_answered => Stage::Done,
            Stage::Legacy | Stage::Close => {
                self.prm(session);
                Stage::Metadata
            }
            Stage::Stream if self.agreed.is_some() && self.wish.odd && !self.has_repeated => {
                self.has_repeated = true;
                self.say(initialize(Step::NegotiateNewest, "init-newest", NEWEST_LEGACY));
                Stage::Stream
            }
            Stage::Stream => {
                self.queue.push_back(Next::CloseStream);
                self.prm(session);
                Stage::Metadata
            }
            Stage::Metadata if !self.fetched_servers => {
                self.fetched_servers = true;
                self.servers(session);
                Stage::Metadata
            }
            Stage::Metadata => {
                self.cards();
                Stage::Cards
            }
            Stage::Cards if !self.fetched_fallbacks && !self.has_card => {
                self.fetched_fallbacks = true;
                self.fallback_cards();
                Stage::Cards
            }
            Stage::Cards | Stage::Done => Stage::Done,
        };
    }

    fn discovered(&mut self, turn: &Turn<'_>, exchanges: &[Exchange]) {
        // What a redirect that keeps the method leads to is asked from now on.
        if let Some(last) = exchanges.last().filter(|last| exchanges.len() > 1 && last.request.method == "POST") {
            self.endpoint.clone_from(&last.request.url);
        }
        self.note_refusal(turn);
        if turn.confirms_modern() {
            self.modern = Some(turn.result().map(declared).unwrap_or_default());
            self.declared = self.modern.clone().unwrap_or_default();
            return;
        }
        let newer = turn.supported().into_iter().filter(|version| *version > MODERN).max();
        if let Some(newer) = newer.filter(|_| turn.error_code() == Some(-32022) && !self.has_repeated) {
            self.has_repeated = true;
            let id = self.id();
            self.queue.push_back(Next::Say(modern::discover_in(id, newer)));
        } else if turn.is_modern_error() || (turn.status() == Some(404) && turn.error_code() == Some(-32601)) {
            let is_named = turn.supported().is_empty() || turn.supported().contains(&MODERN);
            if is_named {
                let id = self.id();
                self.queue.push_back(Next::Say(modern::list(Step::ToolsList, id, "tools/list", None)));
            }
        }
    }

    fn initialized(&mut self, turn: &Turn<'_>) {
        self.note_refusal(turn);
        let Some(result) = turn.result() else { return };
        let Some(version) = result.get("protocolVersion").and_then(Node::text) else { return };
        let session = turn.response().and_then(|response| response.header("mcp-session-id")).map(str::to_owned);
        let agreed = Agreed { version: version.to_owned(), session: session.filter(|_| self.posted_to.is_none()) };
        self.declared = declared(result);
        self.say(agreed.initialized());
        let id = self.id();
        self.say(agreed.ping(Step::Ping, id));
        self.agreed = Some(agreed);
        self.listing = Listing::default();
        if self.posted_to.is_some() {
            self.first_lists(&self.declared.clone());
        }
    }

    /// To the endpoint, or where the stream of the older transport says.
    fn say(&mut self, message: Message) {
        let next = match &self.posted_to {
            Some(url) => Next::Post(Box::new(url.clone()), message),
            None => Next::Say(message),
        };
        self.queue.push_back(next);
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// The first page of each list that was declared.
    fn first_lists(&mut self, declared: &[String]) {
        self.listing = Listing::default();
        for (capability, method) in LISTS {
            if declared.iter().any(|known| known == capability) {
                self.list(method, None);
            }
        }
    }

    fn is_modern_now(&self) -> bool {
        self.agreed.is_none()
    }

    fn list(&mut self, method: &str, cursor: Option<&str>) {
        let step = list_step(method).expect("the method is one of the lists");
        let message = self.page(step, method, cursor);
        self.say(message);
    }

    fn page(&mut self, step: Step, method: &str, cursor: Option<&str>) -> Message {
        let id = self.id();
        match &self.agreed {
            Some(agreed) => agreed.list(step, &format!("list-{id}"), method, cursor),
            None => modern::list(step, id, method, cursor),
        }
    }

    /// Follows a list to its end, page by page, before anything else is asked.
    fn listed(&mut self, turn: &Turn<'_>) {
        let Some(method) = turn.method().map(str::to_owned) else { return };
        if self.modern.is_none() && self.agreed.is_none() && turn.confirms_modern() {
            self.modern = Some(vec!["tools".to_owned()]);
            self.declared = vec!["tools".to_owned()];
            return;
        }
        let asked = cursor_of(turn);
        if asked.is_none() {
            (self.listing.pages, self.listing.items) = (0, 0);
            self.listing.cursors.clear();
        }
        let Some(result) = turn.result() else { return };
        if method == "tools/list" {
            self.listing.first.extend(names(result));
            if asked.is_some() && self.listing.second_page.is_none() {
                self.listing.second_page.clone_from(&asked);
            }
        }
        if method == "resources/list" && self.resource.is_none() {
            let first = result.get("resources").into_iter().flat_map(Node::items).next();
            self.resource = first.and_then(|first| first.get("uri")?.text()).map(str::to_owned);
        }
        if let Some(next) = self.follow(result) {
            let step = list_step(&method).expect("the method is one of the lists");
            let message = self.page(step, &method, Some(&next));
            self.first(message);
        }
    }

    /// The cursor of the next page, as long as the list is not endless.
    fn follow(&mut self, result: Node<'_>) -> Option<String> {
        self.listing.pages += 1;
        self.listing.items += items(result);
        let next = result.get("nextCursor").and_then(Node::text)?.to_owned();
        let is_known = self.listing.cursors.contains(&next);
        self.listing.cursors.push(next.clone());
        let goes_on = self.listing.pages < MOST_PAGES
            && self.listing.items < MOST_ITEMS
            && next.len() <= MOST_CURSOR
            && !is_known;
        goes_on.then_some(next)
    }

    /// Before whatever else is in the queue.
    fn first(&mut self, message: Message) {
        self.say(message);
        if let Some(last) = self.queue.pop_back() {
            self.queue.push_front(last);
        }
    }

    /// The tools again, and a third time where the two lists differ.
    fn listed_again(&mut self, turn: &Turn<'_>) {
        let Some(step) = turn.step else { return };
        if cursor_of(turn).is_none() {
            (self.listing.pages, self.listing.items) = (0, 0);
            self.listing.cursors.clear();
        }
        let Some(result) = turn.result() else { return };
        if step == Step::FreshConnection {
            self.listing.second.extend(names(result));
        }
        if let Some(next) = self.follow(result) {
            let message = self.page(step, "tools/list", Some(&next)).alone();
            self.first(message);
        } else if step == Step::FreshConnection {
            let sorted = |names: &[String]| {
                let mut names = names.to_vec();
                names.sort_unstable();
                names
            };
            if sorted(&self.listing.first) != sorted(&self.listing.second) {
                let third = self.page(Step::ThirdList, "tools/list", None).alone().after(self.wish.third_after);
                self.first(third);
            }
        }
    }

    fn again(&mut self) {
        if self.declared.iter().any(|known| known == "tools") {
            let message = self.page(Step::FreshConnection, "tools/list", None).alone();
            self.say(message);
        }
        if let Some(cursor) = self.listing.second_page.clone().filter(|_| self.wish.odd) {
            let message = self.page(Step::CursorAgain, "tools/list", Some(&cursor));
            self.say(message);
        }
    }

    /// What only the operator's own servers are asked.
    fn own(&mut self, session: &Session) {
        let Some(own) = &self.wish.own else { return };
        let conversation = Conversation::read(session, None, None, None);
        let known = Known {
            agreed: self.agreed.as_ref(),
            declared: &self.declared,
            conversation: &conversation,
            has_token: own.has_token,
        };
        let messages = active::messages(&own.active, known, OWN_IDS);
        let slow = active::slow_call(&own.active, known);
        let changes = active::change(&own.active, known, &self.subscriptions(), CHANGE_IDS);
        let elsewhere = own.elsewhere.clone().filter(|_| self.agreed.is_some() || self.modern.is_some());
        messages.into_iter().for_each(|message| self.say(message));
        self.queue.extend(slow.map(|(call, cancel)| Next::CallAndCancel(Box::new(call), Box::new(cancel))));
        self.queue.extend(changes);
        if let Some((url, message)) = elsewhere.map(active::at_another_address) {
            self.queue.push_back(Next::Post(Box::new(url), message));
        }
    }

    fn undeclared(&self) -> Vec<&'static str> {
        let is_declared = |capability: &str| self.declared.iter().any(|known| known == capability);
        LISTS.iter().filter(|(capability, _)| !is_declared(capability)).map(|(_, method)| *method).collect()
    }

    fn lists_tools(&self) -> bool {
        self.declared.iter().any(|known| known == "tools")
    }

    fn modern_rest(&mut self) {
        debug_assert!(self.is_modern_now(), "the handshake comes later");
        self.again();
        self.say(modern::get());
        if self.wish.odd {
            let odd = modern::odd(&self.undeclared(), self.lists_tools());
            odd.into_iter().for_each(|message| self.say(message));
            let wanted = self.subscriptions();
            let is_watched = self.declared.iter().any(|known| known == "resources.subscribe");
            let watched = is_watched.then(|| self.resource.clone().into_iter().collect::<Vec<_>>());
            if !wanted.is_empty() || watched.is_some() {
                let id = self.id();
                self.say(modern::listen(id, &wanted, watched.as_deref()));
            }
        }
    }

    /// The notifications that were declared.
    fn subscriptions(&self) -> Vec<&'static str> {
        let wanted = [
            ("tools.listChanged", "toolsListChanged"),
            ("prompts.listChanged", "promptsListChanged"),
            ("resources.listChanged", "resourcesListChanged"),
        ];
        wanted
            .iter()
            .filter(|(flag, _)| self.declared.iter().any(|known| known == flag))
            .map(|(_, name)| *name)
            .collect()
    }

    fn legacy_rest(&mut self) {
        self.again();
        let Some(agreed) = self.agreed.clone() else { return };
        // What is odd was asked of a server of both eras already, in the newer one.
        if self.modern.is_some() {
            return;
        }
        self.say(agreed.get());
        if self.wish.odd {
            let odd = agreed.odd(&self.undeclared(), self.lists_tools(), self.wish.is_local);
            // A handshake from a page of another site is a handshake like any other to a server that does not look.
            let survives = |message: &Message| agreed.version.as_str() >= SURVIVES_ODD || message.step == Step::Origin;
            odd.into_iter().filter(survives).for_each(|message| self.say(message));
        }
    }

    /// Every session that was opened, by whatever request.
    fn note_sessions(&mut self, conversation: &Conversation<'_>) {
        let opened = conversation.turns.iter().filter(|turn| turn.method() == Some("initialize"));
        for id in opened.filter_map(|turn| turn.response()?.header("mcp-session-id")) {
            if !id.is_empty() && !self.sessions.iter().any(|known| known == id) {
                self.sessions.push(id.to_owned());
            }
        }
    }

    /// Ends every session that was opened, where that does no harm.
    fn close(&mut self) {
        let Some(agreed) = self.agreed.clone().filter(|agreed| agreed.version.as_str() >= SURVIVES_DELETE) else {
            return;
        };
        for session in std::mem::take(&mut self.sessions) {
            self.say(agreed.delete(&session));
        }
    }

    /// After the first session was ended, `ping` in it.
    fn session_ended(&mut self, turn: &Turn<'_>) {
        let Some(agreed) = self.agreed.clone() else { return };
        let ended = turn.exchange.request.headers.get("mcp-session-id");
        let is_first = ended.is_some() && ended == agreed.session.as_ref();
        if is_first && turn.exchange.success().is_some() && self.wish.odd && self.modern.is_none() {
            let id = self.id();
            self.first(agreed.ping(Step::SessionTerminated, id));
        }
    }

    fn note_refusal(&mut self, turn: &Turn<'_>) {
        if let Some(status) = turn.status().filter(|_| turn.result().is_none()) {
            self.refusals.push((status, turn.is_modern_error()));
        }
    }

    /// Whether both POSTs were refused as a server of 2024-11-05 refuses them.
    fn may_be_older(&self) -> bool {
        let as_older = |(status, is_modern): &(u16, bool)| matches!(status, 400 | 404 | 405) && !is_modern;
        self.modern.is_none() && self.refusals.len() >= 2 && self.refusals.iter().all(as_older)
    }

    fn stream_opened(&mut self, turn: &Turn<'_>) {
        let named = turn.announced().and_then(|named| Url::parse(&turn.exchange.request.url).ok()?.join(named).ok());
        let home = Url::parse(&turn.exchange.request.url).ok();
        // What leads away from the stream's origin is a finding and is not followed.
        if let Some(url) = named.filter(|url| home.is_some_and(|home| home.origin() == url.origin())) {
            self.posted_to = Some(url);
            self.say(initialize(Step::Initialize, "init-sse", HTTP_SSE));
        }
    }

    /// The places of the resource's metadata.
    fn prm(&mut self, session: &Session) {
        self.posted_to = None;
        let conversation = Conversation::read(session, None, None, None);
        let chain = Chain::of(&conversation);
        for (place, url) in chain.places() {
            // Where no client looks is worth a request only where tokens are wanted.
            if place != PrmPlace::Appended || chain.refusal.is_some() {
                self.queue.push_back(Next::Fetch(Step::Prm, url.into()));
            }
        }
    }

    /// The places of each authorization server's metadata.
    fn servers(&mut self, session: &Session) {
        let conversation = Conversation::read(session, None, None, None);
        let chain = Chain::of(&conversation);
        let mut issuers = chain.issuers();
        if issuers.is_empty() && chain.refusal.is_some() && chain.revision() == "2025-03-26" {
            issuers.extend(chain.origins());
        }
        for issuer in issuers.iter().take(MOST_ISSUERS) {
            let Ok(url) = Url::parse(issuer) else { continue };
            for (_, place) in as_places(&url) {
                self.queue.push_back(Next::Fetch(Step::AuthorizationServer, place.into()));
            }
        }
    }

    /// The places of server cards.
    fn cards(&mut self) {
        let Ok(endpoint) = Url::parse(&self.endpoint) else { return };
        let mut beside = endpoint.clone();
        beside.set_query(None);
        beside.set_path(&format!("{}/server-card", endpoint.path().trim_end_matches('/')));
        self.queue.push_back(Next::Fetch(Step::ServerCard, beside.into()));
        self.fetch_at_root(Step::AiCatalog, "/.well-known/ai-catalog.json");
    }

    /// The places where server cards were before there was one.
    fn fallback_cards(&mut self) {
        for path in ["/.well-known/mcp/server-card.json", "/.well-known/mcp-server-card", "/.well-known/mcp.json"] {
            self.fetch_at_root(Step::ServerCard, path);
        }
    }

    fn fetch_at_root(&mut self, step: Step, path: &str) {
        let Ok(mut url) = Url::parse(&self.endpoint) else { return };
        url.set_query(None);
        url.set_path(path);
        self.queue.push_back(Next::Fetch(step, url.into()));
    }

    /// Where the endpoint is now.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

/// After which failure of the first request every other would fail alike.
fn ends_it(error: WireError) -> bool {
    match error {
        WireError::Timeout | WireError::Reset | WireError::Protocol | WireError::RedirectLimit => false,
        WireError::Dns
        | WireError::DnsNxdomain
        | WireError::DnsTimeout
        | WireError::DnsUnavailable
        | WireError::Refused
        | WireError::NoRoute
        | WireError::ConnectTimeout
        | WireError::Tls
        | WireError::TlsCertificateExpired
        | WireError::TlsCertificateName
        | WireError::TlsCertificateUnknownIssuer
        | WireError::AddressGuard
        | WireError::BadUrl
        | WireError::Robots
        | WireError::OptOut => true,
    }
}

fn is_json(turn: &Turn<'_>) -> bool {
    plumbline_rules::authorization::json_of(turn).is_some()
}

/// What a handshake declares, with the flags that are set as `name.flag`.
fn declared(result: Node<'_>) -> Vec<String> {
    let Some(capabilities) = result.get("capabilities") else { return Vec::new() };
    let mut declared = Vec::new();
    for (name, value) in capabilities.members().filter(|(_, value)| !value.is_null()) {
        declared.push(name.to_owned());
        let set = value.members().filter(|(_, flag)| flag.flag() == Some(true));
        declared.extend(set.map(|(flag, _)| format!("{name}.{flag}")));
    }
    declared
}

fn cursor_of(turn: &Turn<'_>) -> Option<String> {
    turn.asked.as_ref()?.pointer("/params/cursor")?.as_str().map(str::to_owned)
}

fn items(result: Node<'_>) -> usize {
    let lists = result.members().filter(|(_, value)| value.kind() == Type::Array);
    lists.filter_map(|(_, list)| list.len()).max().unwrap_or(0)
}

fn names(result: Node<'_>) -> Vec<String> {
    let tools = result.get("tools");
    tools.into_iter().flat_map(Node::items).filter_map(|tool| tool.get("name")?.text()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
