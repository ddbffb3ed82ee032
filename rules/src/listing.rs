//! A registry's list as a whole: its pages one by one, what only all entries of a walk together show, and what changed in
//! an entry since the last walk. Small enough to be kept while a registry with tens of thousands of entries is walked.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::judge::{Given, Origin, Settings, Subject, judge};
use crate::kind::Kind;
use crate::report::{Occurrence, Report, worst};
use crate::rule::{Impact, Rule, Severity};
use crate::session::Session;

/// Places kept of each rule; of more only the number.
const MOST_PLACES: usize = 20;

/// Bytes kept of a walk for the rules about all of it; a longer one is not judged as a whole.
const MOST_BYTES: usize = 64 << 20;

/// What the rules say of a list.
#[derive(Debug, Default)]
pub struct ListFindings {
    by_rule: BTreeMap<&'static str, ListFinding>,
}

/// What one rule says of a list.
#[derive(Debug, Clone)]
pub struct ListFinding {
    /// The rule.
    pub rule: &'static str,
    /// The gravest of its occurrences.
    pub severity: Severity,
    /// The worst of its occurrences.
    pub impact: Option<Impact>,
    /// How often it fires.
    pub occurrences: usize,
    /// The first places and what is wrong there.
    pub places: Vec<(String, String)>,
}

impl ListFindings {
    /// Adds what a report about a list says; `place` stands before each pointer.
    pub fn add(&mut self, report: &Report, place: &str) {
        let kind = report.detected.kind;
        for (rule, found) in report.fired().filter(|(rule, _)| is_about_lists(rule, kind)) {
            self.add_rule(rule, found, place);
        }
    }

    fn add_rule(&mut self, rule: &'static Rule, found: &[Occurrence], place: &str) {
        let (severity, impact) = worst(found);
        let said = self.by_rule.entry(rule.id).or_insert_with(|| ListFinding {
            rule: rule.id,
            severity,
            impact,
            occurrences: 0,
            places: Vec::new(),
        });
        said.severity = said.severity.max(severity);
        said.impact = said.impact.max(impact);
        said.occurrences += found.len();
        let room = MOST_PLACES.saturating_sub(said.places.len());
        let places = found.iter().take(room).map(|o| (format!("{place}{}", o.pointer), o.message.clone()));
        said.places.extend(places);
    }

    /// What each rule says, by its id.
    pub fn findings(&self) -> impl Iterator<Item = &ListFinding> {
        self.by_rule.values()
    }
}

/// What rules for every kind say of an entry belongs to the entry.
fn is_about_lists(rule: &Rule, kind: Kind) -> bool {
    rule.on.contains(&kind) && crate::judge::counts(rule)
}

/// Judges one page, with the conversation in which it came.
pub fn judge_page(body: &[u8], session: &Session, settings: &Settings) -> Report {
    let given = Given::default();
    let answer = session.exchanges.len().checked_sub(1);
    let subject = Subject { session: Some(session), answer, ..subject(Kind::RegistryPage, &given) };
    judge(&Document::read(body), &subject, settings)
}

/// Judges what became of an entry between two walks: both in the form of a list entry.
pub fn judge_change(before: &Value, after: &Value, settings: &Settings) -> Report {
    let history = json!({ "crawls": [before, after] });
    judge(&Document::from_text(&history.to_string()), &subject(Kind::RegistryHistory, &Given::default()), settings)
}

/// Judges what is missing: the names and versions of the walks before, and those of a complete full walk.
pub fn judge_absence(before: &[(String, String)], now: &[(String, String)], settings: &Settings) -> Report {
    let history = json!({ "walks": [
        { "complete": true, "keys": before },
        { "complete": true, "include_deleted": true, "keys": now },
    ] });
    let given = Given { limit_bytes: Some(MOST_BYTES), ..Given::default() };
    judge(&Document::from_text(&history.to_string()), &subject(Kind::RegistryHistory, &given), settings)
}

fn subject(kind: Kind, given: &Given) -> Subject<'_> {
    Subject { kind: Some(kind), version: None, origin: Origin::PublicHost, given, session: None, answer: None }
}

/// A list entry as registries serve it, from its parts.
pub fn entry(server: &str, meta: Option<&str>) -> Option<Value> {
    let server: Value = serde_json::from_str(server).ok()?;
    let meta: Value = meta.and_then(|meta| serde_json::from_str(meta).ok()).unwrap_or(Value::Null);
    Some(json!({ "server": server, "_meta": meta }))
}

/// The pages of a walk, each cut down to what rules about the whole look at.
#[derive(Debug, Default)]
pub struct WalkRecord {
    pages: Vec<Box<RawValue>>,
    bytes: usize,
    is_cut: bool,
}

/// How a walk went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// It began at the beginning, read everything and ended by itself.
    pub is_complete: bool,
    /// Deleted entries were asked for.
    pub with_deleted: bool,
    /// Pages that a list may have.
    pub max_pages: u32,
}

impl WalkRecord {
    /// Takes a page in.
    pub fn add(&mut self, body: &[u8]) {
        let slim = serde_json::from_slice::<Value>(body).ok().as_ref().map(slim_page);
        let slim = slim.and_then(|page| serde_json::value::to_raw_value(&page).ok());
        let Some(page) = slim.filter(|page| self.bytes + page.get().len() <= MOST_BYTES) else {
            self.is_cut = true;
            return;
        };
        self.bytes += page.get().len();
        self.pages.push(page);
    }

    /// Judges the walk as a whole. One that was too long to keep counts as incomplete.
    pub fn judge(&self, course: Course, settings: &Settings) -> Report {
        let walk = json!({
            "pages": self.pages,
            "complete": course.is_complete && !self.is_cut,
            "include_deleted": course.with_deleted,
            "policy": { "max_pages": course.max_pages },
        });
        let given = Given { limit_bytes: Some(2 * MOST_BYTES), ..Given::default() };
        judge(&Document::from_text(&walk.to_string()), &subject(Kind::RegistryWalk, &given), settings)
    }
}

fn slim_page(page: &Value) -> Value {
    let servers = page.get("servers").and_then(Value::as_array);
    let servers: Vec<Value> = servers.into_iter().flatten().map(slim_entry).collect();
    json!({ "servers": servers, "metadata": page.get("metadata") })
}

/// Name, version, addresses, repository, and what the registry says itself.
fn slim_entry(entry: &Value) -> Value {
    let server = entry.get("server").unwrap_or(entry);
    let mut slim = picked(server, &["name", "version"]);
    if let Some(remotes) = server.get("remotes").and_then(Value::as_array) {
        let remotes: Vec<Value> = remotes.iter().map(|remote| Value::Object(picked(remote, &["url"]))).collect();
        slim.insert("remotes".to_owned(), Value::Array(remotes));
    }
    if let Some(repository) = server.get("repository") {
        slim.insert("repository".to_owned(), Value::Object(picked(repository, &["url"])));
    }
    let meta = entry.get("_meta").map(|meta| Value::Object(picked(meta, &[crate::registry::OFFICIAL])));
    json!({ "server": slim, "_meta": meta })
}

fn picked(value: &Value, members: &[&str]) -> Map<String, Value> {
    let member = |name: &&str| value.get(*name).map(|member| ((*name).to_owned(), member.clone()));
    members.iter().filter_map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(entries: &[Value], next: Option<&str>) -> Vec<u8> {
        json!({ "servers": entries, "metadata": { "count": entries.len(), "nextCursor": next } })
            .to_string()
            .into_bytes()
    }

    fn listed(name: &str, version: &str, is_latest: bool) -> Value {
        let stamp = "2026-05-02T10:00:00Z";
        let block = json!({ "status": "active", "publishedAt": stamp, "updatedAt": stamp, "isLatest": is_latest });
        let server = json!({ "name": name, "description": "Tides.", "version": version, "packages": [{ "x": 1 }] });
        json!({ "server": server, "_meta": { "io.modelcontextprotocol.registry/official": block } })
    }

    fn said(findings: &ListFindings) -> Vec<(&'static str, usize, String)> {
        findings.findings().map(|f| (f.rule, f.occurrences, f.places[0].0.clone())).collect()
    }

    #[test]
    fn a_walk_is_judged_from_what_was_kept_of_its_pages() {
        let mut record = WalkRecord::default();
        record.add(&page(&[listed("a.b/tides", "1.0.0", true), listed("a.b/tides", "1.1.0", true)], Some("c")));
        record.add(&page(&[listed("a.b/winds", "1.0.0", true)], Some("c")));
        assert!(!record.pages[0].get().contains("packages"), "{}", record.pages[0]);
        let course = Course { is_complete: true, with_deleted: true, max_pages: 100 };
        let mut findings = ListFindings::default();
        findings.add(&record.judge(course, &Settings::default()), "");
        let rules: Vec<_> = said(&findings).into_iter().map(|(rule, ..)| rule).collect();
        assert_eq!(rules, ["registry/cursor-repeated", "registry/latest-flag-count"]);
        let mut cut = ListFindings::default();
        cut.add(&record.judge(Course { is_complete: false, ..course }, &Settings::default()), "");
        assert_eq!(said(&cut).len(), 1, "what is not complete says nothing about the whole");
    }

    #[test]
    fn an_entry_that_was_edited_in_place_is_told() {
        let (before, mut after) = (listed("a.b/tides", "1.0.0", true), listed("a.b/tides", "1.0.0", true));
        after["server"]["description"] = "Tides and coins.".into();
        let mut findings = ListFindings::default();
        findings.add(&judge_change(&before, &after, &Settings::default()), "a.b/tides 1.0.0: ");
        let place = "a.b/tides 1.0.0: /crawls/1/server/description".to_owned();
        assert_eq!(said(&findings), [("registry/version-content-changed", 1, place)]);
    }

    #[test]
    fn entries_that_are_gone_are_told_unless_the_walk_is_to_be_doubted() {
        let keys = |n: usize| -> Vec<_> { (0..n).map(|n| (format!("a.b/c{n}"), "1".to_owned())).collect() };
        let gone = |now: usize| {
            let mut findings = ListFindings::default();
            findings.add(&judge_absence(&keys(10), &keys(now), &Settings::default()), "");
            said(&findings).len()
        };
        assert_eq!((gone(10), gone(9), gone(3)), (0, 1, 0));
    }

    #[test]
    fn a_page_is_judged_with_its_answer() {
        let body = json!({ "servers": [], "metadata": { "count": 3, "next_cursor": "c" } }).to_string();
        let mut findings = ListFindings::default();
        findings.add(&judge_page(body.as_bytes(), &Session::default(), &Settings::default()), "page 1 ");
        assert!(said(&findings).iter().any(|(rule, ..)| *rule == "registry/page-count-mismatch"), "{findings:?}");
    }
}
