//! The ten card histories of the shared corpus, served one version after the other on the days they were committed: what
//! opened and closed with which version, and which deploy that was. Read by eye, then kept beside this file.
//!
//! `PLUMBLINE_BLESS=1` writes it anew. Skipped with a printed reason where the corpus is not beside the project; in CI it
//! has to be there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use plumbline_rules::canonical::semantic_hash;
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Report;
use plumbline_store::documents::Body;
use plumbline_store::judged::Judged;
use plumbline_store::record::{Observation, Served};
use plumbline_store::rulesets::RuleFacts;
use plumbline_store::{EventId, RulesetId, Store, SurfaceId, TargetId};
use sqlx::Row;

use crate::support::{DAY, HOUR, NOON, card, domains, judged, seen, surface_of};

fn histories() -> Option<PathBuf> {
    let shared = std::env::var_os("PLUMBLINE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let folder = shared.join("corpus/card-histories");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is not there", folder.display());
    println!("skipped: {} is not there", folder.display());
    None
}

/// Owner, file and day of each version, in the order of the index.
fn versions(folder: &Path) -> Vec<(String, String, i64)> {
    let index = std::fs::read_to_string(folder.join("index.tsv")).unwrap();
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let day = NaiveDate::parse_from_str(columns[5], "%Y-%m-%d").unwrap();
        let noon = day.and_hms_opt(12, 0, 0).unwrap().and_utc().timestamp();
        (columns[0].to_owned(), columns[1].to_owned(), noon)
    };
    index.lines().skip(1).map(row).collect()
}

fn report(bytes: &[u8], url: &str) -> Report {
    let given = Given { url: Some(url.to_owned()), ..Given::default() };
    let subject = Subject {
        kind: Some(Kind::AgentCard),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    judge(&Document::read(bytes), &subject, &Settings::default())
}

fn look(surface: SurfaceId, rules: RulesetId, at_s: i64, bytes: &[u8], url: &str) -> Observation {
    let document = Document::read(bytes);
    let root = document.root();
    let version = root.and_then(|root| root.get("version")?.text());
    Observation {
        served: Served::Body(Body::new(bytes.to_vec(), root.map(semantic_hash), None)),
        declared_version: version.map(str::to_owned),
        judged: Some(Judged::of(&report(bytes, url), rules, [1; 32])),
        ..seen(surface, at_s, "", judged(rules, &[]))
    }
}

/// What happened since an event, a line each.
async fn told(store: &Store, after: EventId) -> String {
    let rows = sqlx::query(
        "SELECT event.kind, rule.slug, event.note,
                COALESCE(CASE WHEN event.kind = 3 THEN span.close_confidence ELSE span.confidence END, '-'),
                COALESCE(deploy.version, '-')
         FROM event
         JOIN rule ON rule.id = event.rule_id
         JOIN finding_span span ON span.finding_id = event.subject_id
          AND span.from_s = (SELECT MAX(from_s) FROM finding_span last WHERE last.finding_id = event.subject_id)
         LEFT JOIN deploy ON deploy.id = CASE WHEN event.kind = 3 THEN span.close_deploy ELSE span.open_deploy END
         WHERE event.id > $1 AND event.kind <= 5
         ORDER BY CASE WHEN event.kind = 3 THEN 1 ELSE 0 END, rule.slug",
    )
    .bind(after.0)
    .fetch_all(store.reader())
    .await
    .unwrap();
    let mut text = String::new();
    for row in rows {
        let sign = match row.get::<i64, _>(0) {
            1 => "+ ",
            2 => "+!",
            3 => "- ",
            _ => "~ ",
        };
        let note: Option<String> = row.get(2);
        let (rule, sure, version): (String, String, String) = (row.get(1), row.get(3), row.get(4));
        let note = note.unwrap_or_default();
        if note.starts_with("baseline") {
            let _ = writeln!(text, "    = {rule}");
        } else {
            let _ = writeln!(text, "    {sign} {rule}  {note}; {sure} {version}");
        }
    }
    text
}

#[tokio::test]
async fn ten_histories_of_cards_are_told_version_by_version() {
    let Some(folder) = histories() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let store = Store::open(scratch.path().join("test.db").to_str().unwrap()).await.unwrap();
    let facts: Vec<RuleFacts> = plumbline_rules::catalogue::rules().map(RuleFacts::from).collect();
    let rules = store.ensure_ruleset("1", &facts, 0).await.unwrap();
    let source = domains(&store).await;
    let mut text = String::new();
    let versions = versions(&folder);
    let mut last = (String::new(), NOON);
    for (n, (owner, file, day)) in versions.iter().enumerate() {
        let host = format!("{}.example", owner.to_ascii_lowercase());
        if last.0 != *owner {
            store.add_targets(source, &[card(&host)], *day).await.unwrap();
            let _ = writeln!(text, "{owner}");
            last = (owner.clone(), *day - 7 * DAY);
        }
        let surface = surface_of(&store, &host).await;
        let bytes = std::fs::read(folder.join(owner).join(file)).unwrap();
        // Several commits of one day follow each other by two hours.
        let at = (*day).max(last.1 + 2 * HOUR);
        let url = card(&host).url;
        let before = store.newest_event().await.unwrap();
        let first = look(surface, rules, at, &bytes, &url);
        let again = Observation { at_s: at + 60, is_verification: true, ..first.clone() };
        store.record(&[first, again]).await.unwrap();
        store.settle_deploys(at + 120).await.unwrap();
        let target =
            TargetId(sqlx::query_scalar("SELECT MAX(id) FROM target").fetch_one(store.reader()).await.unwrap());
        let deploy = store.deploys(Some(target), None, 1).await.unwrap().into_iter().find(|deploy| deploy.at_s == at);
        let deploy = deploy.map_or_else(String::new, |deploy| {
            let signal = &deploy.signals[0];
            let versions = [&signal.from, &signal.to].map(|version| version.as_deref().unwrap_or("-").to_owned());
            let outcome = deploy.outcome.map_or("pending", |outcome| outcome.as_str());
            format!(", {} {}: {outcome}", signal.kind, versions.join(" > "))
        });
        let word = store.surface(surface).await.unwrap().headline;
        let _ = writeln!(text, "  {file} {word}{deploy}\n{}", told(&store, before).await.trim_end_matches('\n'));
        // It is looked at each day until the next version.
        let next = versions.get(n + 1).filter(|next| next.0 == *owner).map_or(at, |next| next.2);
        for later in (1..=20).map(|days| at + days * DAY).take_while(|later| *later < next) {
            store.record(&[look(surface, rules, later, &bytes, &url)]).await.unwrap();
        }
        last.1 = at;
    }
    let faults = store.examine(plumbline_store::doctor::Hand::Look, NOON, |_| true).await.unwrap();
    assert_eq!(faults.left(), 0, "{faults:?}");
    holds(&text);
}

/// Holds the text against the one that was read by eye.
fn holds(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/histories.txt");
    if std::env::var_os("PLUMBLINE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    for (n, (old, new)) in kept.lines().zip(text.lines()).enumerate() {
        assert_eq!(old, new, "line {} of histories.txt: read what changed, then run with PLUMBLINE_BLESS=1", n + 1);
    }
    assert_eq!(kept.lines().count(), text.lines().count(), "read what changed, then run with PLUMBLINE_BLESS=1");
}
