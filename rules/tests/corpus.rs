//! What every real document of the shared corpus is told, as a net: rule ids and pointers only, one block a document.
//!
//! A change of a rule shows here document by document, to be read by eye before it is blessed with `PLUMBLINE_BLESS=1`.
//! Skipped with a printed reason where the corpus is not beside the project; in CI it has to be there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::{Headline, Report};

/// Pointers written out for one rule and document; of more only the number.
const MOST_POINTERS: usize = 6;

fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("PLUMBLINE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let folder = shared.join("corpus");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is not there", folder.display());
    println!("skipped: {} is not there", folder.display());
    None
}

fn judged(body: &[u8], kind: Option<Kind>) -> Report {
    let given = Given::default();
    let subject =
        Subject { kind, version: None, origin: Origin::PublicHost, given: &given, session: None, answer: None };
    judge(&Document::read(body), &subject, &Settings::default())
}

fn described(name: &str, report: &Report) -> String {
    let mut text = format!("{name}: {} {}\n", report.headline(), report.detected.profile);
    let mut rules: Vec<_> = report.fired().collect();
    rules.sort_by_key(|(rule, _)| rule.id);
    for (rule, found) in rules {
        let shown: Vec<_> = found.iter().take(MOST_POINTERS).map(|o| format!("`{}`", o.pointer)).collect();
        let more = found.len().saturating_sub(MOST_POINTERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "  {} {}{more}", rule.id, shown.join(" "));
    }
    text
}

/// The rows of an index: one vector of cells a line.
fn index(folder: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("index.tsv")).expect("a folder of the corpus has its index");
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn body(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Holds a text against the one that was read by eye.
fn holds(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("PLUMBLINE_BLESS").is_some() {
        std::fs::write(&path, text).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(text.lines()).enumerate().find(|(_, (old, new))| old != new);
    if let Some((line, (old, new))) = differs {
        panic!("{name} line {}:\n- {old}\n+ {new}\nread what changed, then run once with PLUMBLINE_BLESS=1", line + 1);
    }
    assert_eq!(
        kept.lines().count(),
        text.lines().count(),
        "{name}: read what changed, then run with PLUMBLINE_BLESS=1"
    );
}

#[test]
fn agent_cards() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("agent-cards");
    let cards = index(&folder);
    assert_eq!(cards.len(), 150);
    let told = cards.iter().map(|row| described(&row[0], &judged(&body(&folder.join(&row[0])), Some(Kind::AgentCard))));
    holds("agent-cards.txt", &told.collect::<String>());
}

/// What a document is taken for that nobody named.
fn taken_for(path: &Path) -> Option<Kind> {
    Document::read(&body(path)).root().map(Kind::detect)
}

#[test]
fn what_is_judged_as_an_agent_card_where_one_is_due_is_taken_for_one_anywhere() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("agent-cards");
    let mut cards = 0;
    for row in index(&folder) {
        let path = folder.join(&row[0]);
        let report = judged(&body(&path), Some(Kind::AgentCard));
        if let Some(kind) = taken_for(&path).filter(|_| report.headline() != Headline::NotDetected) {
            assert_eq!(kind, Kind::AgentCard, "{}", row[0]);
            cards += 1;
        }
    }
    // The rest is no JSON, or another thing that lay at the place of a card.
    assert_eq!(cards, 124);
}

#[test]
fn documents_of_other_protocols_are_not_taken_for_agent_cards() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("other-docs");
    for row in index(&folder) {
        let kind = taken_for(&folder.join(&row[0]));
        assert_ne!(kind, Some(Kind::AgentCard), "{}", row[0]);
        if row[1] != "openapi" {
            assert_ne!(kind, Some(Kind::Openapi), "{}", row[0]);
        }
    }
}

#[test]
fn card_histories() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("card-histories");
    let versions = index(&folder);
    let told = versions.iter().map(|row| {
        let name = format!("{}/{}", row[0], row[1]);
        described(&name, &judged(&body(&folder.join(&row[0]).join(&row[1])), Some(Kind::AgentCard)))
    });
    assert_eq!(versions.len(), 79);
    holds("card-histories.txt", &told.collect::<String>());
}

/// What changed from each version of a card to the next.
#[test]
fn changes_of_cards() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("card-histories");
    let versions = index(&folder);
    let mut told = String::new();
    for pair in versions.windows(2).filter(|pair| pair[0][0] == pair[1][0]) {
        let text = |row: &[String]| body(&folder.join(&row[0]).join(&row[1]));
        let looks: Vec<_> = pair.iter().filter_map(|row| String::from_utf8(text(row)).ok()).collect();
        let history = format!("{{\"crawls\": [{}]}}", looks.join(","));
        let name = format!("{}/{} -> {}", pair[0][0], pair[0][1], pair[1][1]);
        told.push_str(&described(&name, &judged(history.as_bytes(), Some(Kind::History))));
    }
    holds("changes-of-cards.txt", &told);
}

#[test]
fn other_documents() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("other-docs");
    let documents = index(&folder);
    assert_eq!(documents.len(), 45);
    let told = documents.iter().map(|row| {
        let kind = match row[1].as_str() {
            "mcp-server-card" => Some(Kind::McpServerCard),
            "oauth-protected-resource" => Some(Kind::OauthProtectedResource),
            "oauth-authorization-server" => Some(Kind::OauthAuthorizationServer),
            "openid-configuration" => Some(Kind::OauthOpenidConfiguration),
            "openapi" => Some(Kind::Openapi),
            "server-json" => Some(Kind::ServerJson),
            _ => None,
        };
        described(&row[0], &judged(&body(&folder.join(&row[0])), kind))
    });
    holds("other-docs.txt", &told.collect::<String>());
}

#[test]
fn registry_entries() {
    let Some(corpus) = corpus() else { return };
    let servers = body(&corpus.join("registry-pages/servers.json"));
    let document = Document::read(&servers);
    let entries: Vec<_> = document.root().expect("it is a list").items().collect();
    assert_eq!(entries.len(), 159);
    let told = entries.iter().map(|entry| {
        let name = entry.get("server").and_then(|server| server.get("name")?.text()).unwrap_or("?");
        let version = entry.get("server").and_then(|server| server.get("version")?.text()).unwrap_or("?");
        described(&format!("{name} {version}"), &judged(entry.raw().as_bytes(), Some(Kind::RegistryEntry)))
    });
    holds("registry-entries.txt", &told.collect::<String>());
}
