//! Fresh databases of both kinds, and short ways to say what a test is about.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

use plumbline_rules::canonical::content_hash;
use plumbline_rules::reach::Outcome;
use plumbline_store::documents::Body;
use plumbline_store::judged::{Judged, Occurrence, RuleOutcome, Said};
use plumbline_store::record::{Observation, Recorded, Served};
use plumbline_store::rulesets::RuleFacts;
use plumbline_store::surfaces::Take;
use plumbline_store::targets::{HostName, NewTarget, OwnerName};
use plumbline_store::walks::Entry;
use plumbline_store::words::{
    Axis, Basis, Class, Evidence, Headline, Impact, Known, Role, Severity, SourceKind, SurfaceKind, TargetKind,
};
use plumbline_store::{RulesetId, SourceId, Store, SurfaceId};
use sqlx::{AnyConnection, Connection, Executor};

/// Noon of a day, so that minutes and hours later are still the same day.
pub const NOON: i64 = 20_786 * 86_400 + 43_200;
pub const HOUR: i64 = 3600;
pub const DAY: i64 = 86_400;

/// Runs the body on a new SQLite file, and on a new PostgreSQL schema where `PLUMBLINE_TEST_POSTGRES` gives a server.
pub async fn for_each_database(body: impl AsyncFn(Store)) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("test.db").to_str().unwrap()).await.unwrap();
    body(store.clone()).await;
    store.close().await;
    if let Some(schema) = Schema::make().await {
        let store = Store::open(&schema.url).await.unwrap();
        body(store.clone()).await;
        store.close().await;
        schema.drop().await;
    }
}

/// A schema of its own in the PostgreSQL of the tests.
pub struct Schema {
    server: String,
    name: String,
    pub url: String,
}

impl Schema {
    /// `None`, with a printed reason, where there is no server; in CI that is a failure.
    pub async fn make() -> Option<Schema> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Ok(server) = std::env::var("PLUMBLINE_TEST_POSTGRES") else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must set PLUMBLINE_TEST_POSTGRES");
            eprintln!("not run on PostgreSQL: PLUMBLINE_TEST_POSTGRES is not set");
            return None;
        };
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let url = format!("{server}?options=-c%20search_path%3D{name}");
        let schema = Schema { server, name, url };
        schema.run(format!("CREATE SCHEMA {}", schema.name)).await;
        Some(schema)
    }

    pub async fn drop(self) {
        self.run(format!("DROP SCHEMA {} CASCADE", self.name)).await;
    }

    async fn run(&self, sql: String) {
        sqlx::any::install_default_drivers();
        let mut server = AnyConnection::connect(&self.server).await.unwrap();
        server.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
        server.close().await.unwrap();
    }
}

pub fn rule(slug: &'static str) -> RuleFacts {
    RuleFacts {
        is_off: false,
        slug: Cow::Borrowed(slug),
        version: 1,
        title: Cow::Borrowed("What it demands."),
        axis: Axis::Conformity,
        class: Class::Finding,
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: false,
        guess: false,
        basis: Basis::Spec,
        evidence: Evidence::Document,
        rank: None,
    }
}

/// `a2a/e` is an error that breaks clients, `a2a/w` a warning tagged security, `a2a/f` a fact, `common/json` an error
/// that hides the others.
pub fn rules() -> Vec<RuleFacts> {
    vec![
        RuleFacts { impact: Some(Impact::BreaksClients), ..rule("a2a/e") },
        RuleFacts { severity: Severity::Warning, security: true, ..rule("a2a/w") },
        RuleFacts { class: Class::Fact, severity: Severity::Info, impact: None, ..rule("a2a/f") },
        rule("common/json"),
    ]
}

pub async fn ruleset(store: &Store) -> RulesetId {
    store.ensure_ruleset("1", &rules(), NOON - 100 * DAY).await.unwrap()
}

pub async fn registry(store: &Store) -> SourceId {
    store.ensure_source(SourceKind::McpRegistry, "test", Some("https://registry.example"), NOON).await.unwrap()
}

pub async fn domains(store: &Store) -> SourceId {
    store.ensure_source(SourceKind::Domains, "domains", None, NOON).await.unwrap()
}

pub fn card(host: &str) -> NewTarget {
    NewTarget {
        kind: TargetKind::A2aAgent,
        key: host.into(),
        name: None,
        url: format!("https://{host}/.well-known/agent-card.json"),
        surface: SurfaceKind::AgentCard,
        role: Role::Main,
        host: Some(HostName { name: host.into(), domain: host.into() }),
        owner: Some(OwnerName { slug: "them".into(), name: "Them".into() }),
        tags: vec![("tier".into(), "1".into())],
        is_own: false,
        interval_s: None,
    }
}

/// One card target with its surface.
pub async fn one_card(store: &Store) -> SurfaceId {
    let source = domains(store).await;
    store.add_targets(source, &[card("a.example")], NOON).await.unwrap();
    surface_of(store, "a.example").await
}

pub async fn surface_of(store: &Store, host: &str) -> SurfaceId {
    let url = card(host).url;
    store.surface_at(SurfaceKind::AgentCard, &url).await.unwrap().unwrap()
}

/// So many surfaces, of one host as many as there are.
pub fn take(limit: u32, until_s: i64) -> Take {
    Take { limit, per_host: 1000, until_s }
}

pub fn body(text: &str) -> Body {
    Body::new(text.as_bytes().to_vec(), Some(content_hash(text.as_bytes())), Some("application/json".into()))
}

/// What a rule says: `F` fires once, `2` twice, `P` passes, `N` does not apply, `U` was not judged.
pub fn said(letter: char) -> Said {
    let place = |n: usize| Occurrence {
        pointer: format!("/skills/{n}"),
        message: "wrong".into(),
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        line: Some(3),
        column: None,
    };
    match letter {
        'F' => Said::Fires(vec![place(0)]),
        '2' => Said::Fires(vec![place(0), place(1)]),
        'P' => Said::Passes,
        'N' => Said::NotApplicable,
        _ => Said::NotEvaluated("parent".into()),
    }
}

/// A complete judgement: each rule and its letter.
pub fn judged(ruleset: RulesetId, outcomes: &[(&'static str, char)]) -> Judged {
    let fires = outcomes.iter().any(|(rule, letter)| *rule != "a2a/f" && matches!(letter, 'F' | '2'));
    Judged {
        ruleset,
        context_hash: [7; 32],
        profile: Some("a2a-1.0".into()),
        known: Some(Known::Declared),
        headline: if fires { Headline::Blocked } else { Headline::Sound },
        is_complete: true,
        outcomes: outcomes
            .iter()
            .map(|(rule, letter)| RuleOutcome { rule: Cow::Borrowed(rule), said: said(*letter) })
            .collect(),
    }
}

/// A whole answer with this document.
pub fn seen(surface: SurfaceId, at_s: i64, document: &str, judged: Judged) -> Observation {
    Observation {
        surface,
        crawl: None,
        at_s,
        outcome: Outcome::Ok,
        status: Some(200),
        took_ms: 84,
        is_verification: false,
        witness_good: true,
        served: Served::Body(body(document)),
        declared_version: Some("1.0".into()),
        name: None,
        summary: None,
        validators: None,
        judged: Some(judged),
        fires_on_old: None,
        place: None,
        links: None,
        session: None,
        standing: None,
        next_due_s: Some(at_s + HOUR),
        every_s: Some(HOUR),
    }
}

/// Records a look, and then the same again out of turn, twenty and forty seconds later: whatever its evidence, what is new
/// is confirmed.
pub async fn record_confirmed(store: &Store, look: Observation) -> Recorded {
    let again = |later_s| Observation { at_s: look.at_s + later_s, is_verification: true, ..look.clone() };
    store.record(&[look.clone(), again(20), again(40)]).await.unwrap()
}

/// No answer, so nothing judged.
pub fn unseen(surface: SurfaceId, at_s: i64, outcome: &str) -> Observation {
    Observation {
        surface,
        crawl: None,
        at_s,
        outcome: outcome.parse().unwrap(),
        status: None,
        took_ms: 0,
        is_verification: false,
        witness_good: true,
        served: Served::Nothing,
        declared_version: None,
        name: None,
        summary: None,
        validators: None,
        judged: None,
        fires_on_old: None,
        place: None,
        links: None,
        session: None,
        standing: None,
        next_due_s: Some(at_s + HOUR),
        every_s: Some(HOUR),
    }
}

/// An active entry, flagged latest.
pub fn entry(name: &str, version: &str) -> Entry {
    Entry {
        name: name.into(),
        version: version.into(),
        status: Some("active".into()),
        status_message: None,
        published_ms: Some(1_000),
        updated_ms: Some(1_000),
        is_latest: Some(true),
        server: format!(r#"{{"name":"{name}","version":"{version}"}}"#).into_bytes(),
        semantic_hash: None,
        meta: None,
        title: None,
        description: Some("Does things.".into()),
    }
}

/// One number from the database.
pub async fn number(store: &Store, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(store.reader()).await.unwrap()
}

/// The events so far, as words.
pub async fn events(store: &Store) -> Vec<String> {
    let events = store.events_after(plumbline_store::EventId(0), 10_000).await.unwrap();
    events.iter().map(|event| event.kind.to_string()).collect()
}
