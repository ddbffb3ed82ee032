//! A small world in a fresh database, the router over it, and short ways to ask it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use plumbline_alerts::courier::Courier;
use plumbline_alerts::desk::Desk;
use plumbline_alerts::mail::Mailer;
use plumbline_alerts::message_id::Ids;
use plumbline_alerts::payload::Source;
use plumbline_alerts::vault::Vault;
use plumbline_alerts::wire::{Answer as Answered, Post, Wire};
use plumbline_rules::catalogue;
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::reach::Outcome;
use plumbline_rules::session::Session;
use plumbline_rules::session_judge::judge_session;
use plumbline_store::documents;
use plumbline_store::judged::Judged;
use plumbline_store::record::{Observation, Served};
use plumbline_store::rulesets::RuleFacts;
use plumbline_store::sources::{CrawlEnd, Fault};
use plumbline_store::targets::{HostName, NewTarget, OwnerName};
use plumbline_store::walks::{Entry, WalkEnd};
use plumbline_store::words::{CrawlKind, CrawlState, Role, SourceKind, SurfaceKind, TargetKind};
use plumbline_store::{CrawlId, Store};
use plumbline_web::{CrawlStatus, Distribution, ProcessNumbers, SiteSettings, WebState, router};
use tokio::sync::watch;
use tower::ServiceExt;

/// 30 November 2026, 18:07 UTC: the moment of every request.
pub const NOW: i64 = 1_796_062_020;

/// Seconds between two looks at a card.
pub const EVERY_S: i64 = 7_200;

/// A card without any error.
pub const SOUND: &str = include_str!("../../../rules/examples/a2a-1.0.json");

/// Everything a stranger might put into a name to do harm.
pub const HOSTILE: &str =
    "</title><script>alert(1)</script>\u{202e}gnp.exe\u{200b}\u{1b}[2J\"'><img src=x onerror=alert(2)>";

/// A name that would run if it were not escaped, and that fits into a JSON string.
pub const HOSTILE_NAME: &str = "<script>alert(1)</script>";

/// A database, the status of the crawler, and the router over both.
pub struct World {
    pub store: Store,
    pub router: Router,
    pub status: watch::Sender<CrawlStatus>,
    _folder: tempfile::TempDir,
}

/// A desk whose messages are all accepted; addresses whose host begins with `refused` are not.
fn desk(store: &Store, folder: &std::path::Path) -> Desk {
    let answer = |_: Post| async {
        Answered::Heard { status: 202, headers: vec![("x-heard".into(), "yes".into())], body: "thanks".into() }
    };
    Desk {
        courier: Courier {
            store: store.clone(),
            wire: Wire::new(answer),
            mailer: Mailer::default(),
            vault: Vault::at(&folder.join("key")),
            clock: Arc::new(|| NOW * 1000),
            bell: Arc::default(),
            patience: std::time::Duration::from_secs(5),
        },
        source: Source("https://plumbline.example".into()),
        ids: Arc::new(Ids::after(None)),
        guard: Arc::new(|url| if url.contains("//refused") { Err("not there".into()) } else { Ok(()) }),
    }
}

/// An answer, read whole.
pub struct Answer {
    pub status: StatusCode,
    pub headers: axum::http::HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The words of the page: no markup, one line for each block, entities undone.
    pub fn words(&self) -> String {
        words(
            self.body
                .split_once("<main id=\"main\"")
                .and_then(|(_, main)| main.split_once('>'))
                .map_or(self.body.as_str(), |(_, main)| main),
        )
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

fn words(html: &str) -> String {
    let html = html.split_once("</main>").map_or(html, |(main, _)| main);
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        let (tag, next) = after.split_once('>').unwrap_or((after, ""));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        let ends_a_line =
            matches!(name, "p" | "h1" | "h2" | "h3" | "li" | "tr" | "dt" | "dd" | "div" | "summary" | "section");
        match (ends_a_line, tag.starts_with('/')) {
            (true, _) => text.push('\n'),
            (false, false) => text.push(' '),
            (false, true) => {}
        }
        rest = next;
    }
    let text = text
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#38;", "&");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

impl World {
    /// A database with a catalogue and nothing else.
    pub async fn empty() -> World {
        World::with_settings(SiteSettings { contact: "crawler@plumbline.example".into(), ..SiteSettings::default() })
            .await
    }

    pub async fn with_settings(settings: SiteSettings) -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("world.db").to_str().unwrap()).await.unwrap();
        let rules: Vec<RuleFacts> = catalogue::rules().map(RuleFacts::from).collect();
        store.ensure_ruleset("2026.11", &rules, NOW - 30 * 86_400).await.unwrap();
        let (status, receiver) = watch::channel(CrawlStatus::default());
        let (_, settings) = watch::channel(Arc::new(settings));
        let state = WebState {
            store: store.clone(),
            settings,
            status: receiver,
            checker: plumbline_web::Checker {
                ask: Some(Arc::new(|url| Box::pin(async move { asked(&url) }))),
                ..plumbline_web::Checker::default()
            },
            desk: desk(&store, folder.path()),
            now: || NOW,
            started_at: NOW - 7_200,
            numbers,
        };
        World { store, router: router(state), status, _folder: folder }
    }

    /// Two names with three entries; a sound card, a blocked one, a hostile one, a silent one; one crawl.
    pub async fn full() -> World {
        let world = World::empty().await;
        let crawl = world.walk_registry().await;
        world.add_card("sound.example", None).await;
        world.add_card("blocked.example", None).await;
        world.add_card("hostile.example", Some(format!("{HOSTILE}{}", "A".repeat(10_000)))).await;
        world.add_card("silent.example", None).await;
        let blocked =
            SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "").replace("\"tides\",\n", "\"\u{202e}<b>\",\n");
        let hostile = SOUND.replace("Tide Tables", serde_json::to_string(HOSTILE).unwrap().trim_matches('"'));
        world.see(crawl, "sound.example", SOUND, NOW - 3_600).await;
        world.see(crawl, "blocked.example", &blocked, NOW - 3_500).await;
        world.see(crawl, "hostile.example", &hostile, NOW - 3_400).await;
        world.miss(crawl, "silent.example", NOW - 3_300).await;
        let fault = Fault { code: "cursor-repeated".into(), subject: Some(HOSTILE.into()), note: None };
        world.store.crawl_fault(crawl, &fault, NOW - 3_200).await.unwrap();
        let end = CrawlEnd { state: CrawlState::Complete, note: None };
        world.store.finish_crawl(crawl, &end, NOW - 3_000).await.unwrap();
        world
    }

    pub async fn walk_registry(&self) -> CrawlId {
        let entries = [
            entry("io.example/weather", "1.0.0"),
            entry("io.example/weather", "1.1.0"),
            entry("io.example/tides", "2.0.0"),
        ];
        self.walk_registry_of(&entries).await
    }

    /// A complete walk over these entries.
    pub async fn walk_registry_of(&self, entries: &[Entry]) -> CrawlId {
        let store = &self.store;
        let base = Some("https://registry.example");
        let source = store.ensure_source(SourceKind::McpRegistry, "official", base, NOW - 4_000).await.unwrap();
        let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "test", NOW - 4_000).await.unwrap();
        let walk = store.begin_walk(source, crawl, None, NOW - 4_000).await.unwrap();
        store.store_page(walk.id, entries, None, NOW - 4_000).await.unwrap();
        store.finish_walk(walk.id, &WalkEnd::Complete, NOW - 4_000).await.unwrap();
        crawl
    }

    pub async fn add_card(&self, host: &str, name: Option<String>) {
        self.add_card_on(host, host, name).await;
    }

    /// A card whose address stands on a host of another name, as tenants of one host do.
    pub async fn add_card_on(&self, on: &str, host: &str, name: Option<String>) {
        let source = self.store.ensure_source(SourceKind::Domains, "domains", None, NOW - 4_000).await.unwrap();
        let card = NewTarget {
            kind: TargetKind::A2aAgent,
            key: host.into(),
            name,
            url: card_url(host),
            surface: SurfaceKind::AgentCard,
            role: Role::Main,
            host: Some(HostName { name: on.into(), domain: on.into() }),
            owner: Some(OwnerName { slug: "harbour".into(), name: "Harbour Office".into() }),
            tags: Vec::new(),
            is_own: false,
            interval_s: None,
        };
        self.store.add_targets(source, &[card], NOW - 4_000).await.unwrap();
    }

    /// A whole answer with this document, judged by the rules as they are.
    pub async fn see(&self, crawl: CrawlId, host: &str, document: &str, at_s: i64) {
        let rules: Vec<RuleFacts> = catalogue::rules().map(RuleFacts::from).collect();
        let ruleset = self.store.ensure_ruleset("2026.11", &rules, at_s).await.unwrap();
        let read = Document::from_text(document);
        let given = Given::default();
        let subject = Subject {
            kind: Some(Kind::AgentCard),
            version: None,
            origin: Origin::PublicHost,
            given: &given,
            session: None,
            answer: None,
        };
        let mut settings = Settings::default();
        settings.set("a2a.example_domains_are_placeholders", false.into()).unwrap();
        let report = judge(&read, &subject, &settings);
        let judged = Judged::of(&report, ruleset, [7; 32]);
        let body = documents::Body::new(document.as_bytes().to_vec(), None, Some("application/json".into()));
        self.observe(crawl, host, at_s, Outcome::Ok, Served::Body(body), Some(judged)).await;
    }

    /// A look at what was said, recorded as it was, with what the rules say of it.
    pub async fn talk(&self, crawl: CrawlId, host: &str, session: &str, at_s: i64) {
        let rules: Vec<RuleFacts> = catalogue::rules().map(RuleFacts::from).collect();
        let ruleset = self.store.ensure_ruleset("2026.11", &rules, at_s).await.unwrap();
        let read: Session = serde_json::from_str(session).unwrap();
        let report = judge_session(&read, read.surface(), None, &Given::default(), &Settings::default());
        let judged = Judged::of(&report, ruleset, [8; 32]);
        self.keep(crawl, host, at_s, Outcome::Ok, Served::Nothing, Some(judged), Some(session.as_bytes().to_vec()))
            .await;
    }

    /// A look that found nobody.
    pub async fn miss(&self, crawl: CrawlId, host: &str, at_s: i64) {
        self.observe(crawl, host, at_s, "unreachable:connect_timeout".parse().unwrap(), Served::Nothing, None).await;
    }

    async fn observe(
        &self,
        crawl: CrawlId,
        host: &str,
        at_s: i64,
        outcome: Outcome,
        served: Served,
        judged: Option<Judged>,
    ) {
        let session = match &served {
            Served::Body(body) => Some(conversation(host, &String::from_utf8_lossy(&body.bytes))),
            _ => None,
        };
        self.keep(crawl, host, at_s, outcome, served, judged, session).await;
    }

    #[expect(clippy::too_many_arguments, reason = "each is another member of one observation")]
    async fn keep(
        &self,
        crawl: CrawlId,
        host: &str,
        at_s: i64,
        outcome: Outcome,
        served: Served,
        judged: Option<Judged>,
        session: Option<Vec<u8>>,
    ) {
        let surface = self.store.surface_at(SurfaceKind::AgentCard, &card_url(host)).await.unwrap().unwrap();
        let observation = Observation {
            surface,
            crawl: Some(crawl),
            at_s,
            outcome,
            status: judged.is_some().then_some(200),
            took_ms: 84,
            is_verification: false,
            witness_good: true,
            served,
            declared_version: None,
            name: None,
            summary: None,
            validators: None,
            judged,
            fires_on_old: None,
            place: None,
            links: None,
            session,
            standing: None,
            next_due_s: Some(at_s + EVERY_S),
            every_s: Some(EVERY_S),
        };
        self.store.record(&[observation]).await.unwrap();
    }

    /// Changes a row that no request can.
    pub async fn write(&self, statement: &'static str) {
        sqlx::query(statement).execute(self.store.writer()).await.unwrap();
    }

    /// Asks for a page.
    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).header(header::ACCEPT, "text/html").body(Body::empty()).unwrap()).await
    }

    /// Asks for a page as JSON.
    pub async fn get_json(&self, path: &str) -> Answer {
        self.ask(Request::get(path).header(header::ACCEPT, "application/json").body(Body::empty()).unwrap()).await
    }

    pub async fn ask(&self, request: Request<Body>) -> Answer {
        let response: Response<Body> = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Answer { status: parts.status, headers: parts.headers, body: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// The address of a target by the beginning of a word of its key.
    pub async fn target(&self, word: &str) -> String {
        let found = self.get_json(&format!("/targets?q={word}")).await.json();
        format!("/targets/{}", found["targets"][0]["id"])
    }

    /// Every page there is, one of each kind.
    pub async fn pages(&self) -> Vec<String> {
        let target = self.target("hostile").await;
        let hash = self.get_json(&target).await.json()["surfaces"][0]["document"].as_str().unwrap().to_owned();
        let mut pages: Vec<String> =
            ["/", "/targets", "/targets?q=hostile", "/rules", "/rules/a2a/interface-binding-required"]
                .map(str::to_owned)
                .to_vec();
        for page in ["timeline", "findings", "documents", "diff", "checks", "session"] {
            pages.push(format!("{target}/{page}"));
        }
        pages.push("/findings/1".into());
        pages.extend([target, self.target("blocked").await, self.target("silent").await, self.target("weather").await]);
        pages.extend([
            format!("/documents/{hash}"),
            "/crawls".into(),
            "/crawls/1".into(),
            format!("{}/listing", self.target("weather").await),
            "/about/crawler".into(),
            "/settings/about".into(),
        ]);
        pages.extend(
            [
                "/regressions",
                "/regressions/2026-w49",
                "/prevalence",
                "/cohorts",
                "/cohorts/a2a-agent",
                "/owners/harbour",
                "/hosts/hostile.example",
                "/search?q=hostile",
                "/deploys",
                "/incidents",
                "/compare",
                "/changes",
                "/methodology",
                "/check",
                "/almanac/2026-11",
                "/status",
                "/snapshots",
                "/onboarding",
                "/api",
            ]
            .map(str::to_owned),
        );
        pages
    }
}

/// What was said to get at a card.
fn conversation(host: &str, card: &str) -> Vec<u8> {
    let request =
        serde_json::json!({ "method": "GET", "url": card_url(host), "headers": { "accept": "application/json" } });
    let peer = serde_json::json!({ "address": "203.0.113.7:443", "http": "HTTP/1.1", "tls": "TLSv1.3" });
    let response = serde_json::json!({ "status": 200, "headers": { "content-type": "application/json" }, "raw": card });
    let exchange = serde_json::json!({ "step": "card", "request": request, "response": response, "peer": peer });
    serde_json::json!({ "exchanges": [exchange] }).to_string().into_bytes()
}

/// What the binary would have found at an address.
fn asked(url: &str) -> Result<plumbline_web::CheckedUrl, String> {
    if url != "sound.example" {
        return Err("its name could not be resolved".to_owned());
    }
    let given = Given::default();
    let subject = Subject {
        kind: Some(Kind::AgentCard),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    let report = judge(&Document::from_text(SOUND), &subject, &Settings::default());
    Ok(plumbline_web::CheckedUrl { text: SOUND.to_owned(), report })
}

/// What a process might have counted.
fn numbers() -> ProcessNumbers {
    ProcessNumbers {
        looks: vec![("a2a-card", "ok", 5), ("a2a-card", "unreachable", 2)],
        look_seconds: Distribution { up_to: vec![(0.1, 4), (1.0, 6)], count: 7, sum: 3.5 },
        judged: 5,
        requests: vec![("none", 2), ("2xx", 5)],
        throttles: 1,
        record_seconds: Distribution::default(),
    }
}

fn card_url(host: &str) -> String {
    format!("https://{host}/.well-known/agent-card.json")
}

/// An entry of this `server.json`.
pub fn entry_of(server: &serde_json::Value, is_latest: bool) -> Entry {
    let text = |member: &str| server[member].as_str().unwrap();
    Entry {
        is_latest: Some(is_latest),
        server: server.to_string().into_bytes(),
        ..entry(text("name"), text("version"))
    }
}

fn entry(name: &str, version: &str) -> Entry {
    Entry {
        name: name.into(),
        version: version.into(),
        status: Some("active".into()),
        status_message: None,
        published_ms: Some((NOW - 86_400) * 1_000),
        updated_ms: Some((NOW - 86_400) * 1_000),
        is_latest: Some(version != "1.0.0"),
        server: format!(r#"{{"name":"{name}","version":"{version}"}}"#).into_bytes(),
        semantic_hash: None,
        meta: None,
        title: None,
        description: Some("Does things.".into()),
    }
}
