//! A registry's list as a whole: its pages one by one, what only all entries of a walk together show, and what changed in
//! an entry since the last walk. Small enough to be kept while a registry with tens of thousands of entries is walked.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::conversation::{Conversation, Turn};
use crate::document::Document;
use crate::judge::{Given, Origin, Settings, Subject, judge};
use crate::kind::Kind;
use crate::report::{Occurrence, Report, worst};
use crate::rule::{Impact, Rule, Severity};
use crate::session::{Session, Step};

/// Places kept of each rule; of more only the number.
const MOST_PLACES: usize = 20;

/// Bytes kept of a walk for the rules about all of it. A longer one is judged in parts, each from one name to another: a
/// name is never torn apart, and what takes the whole list to see is seen within a part.
const PART_BYTES: usize = 2 << 20;

/// Bytes that a document about a walk may have.
const MOST_BYTES: usize = 4 * PART_BYTES;

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

/// Judges an entry against what answers: both in the forms of kind `registry-drift`.
pub fn judge_drift(entry: &Value, observations: &[Value], settings: &Settings) -> Report {
    let drift = json!({ "entry": entry, "observations": observations });
    judge(&Document::from_text(&drift.to_string()), &subject(Kind::RegistryDrift, &Given::default()), settings)
}

/// What a conversation with an endpoint shows about the listing that led to it, as observations of kind
/// `registry-drift`: the handshake that came furthest, and the stream that was asked for.
pub fn observed(session: &Session) -> Vec<Value> {
    let conversation = Conversation::read(session, None, None, None);
    let is_asked = |turn: &&Turn<'_>| turn.exchange.request.url == conversation.endpoint;
    let lists_tools = conversation.of(Step::ToolsList).any(|turn| turn.result().is_some());
    let handshakes = || {
        let steps = [Some(Step::Discover), Some(Step::Initialize)];
        conversation.turns.iter().filter(is_asked).filter(move |turn| steps.contains(&turn.step))
    };
    let post = handshakes().rfind(|turn| turn.result().is_some()).or_else(|| handshakes().next_back());
    let is_get = |turn: &&Turn<'_>| turn.exchange.request.method == "GET" && turn.is_about_endpoint();
    let get = conversation.turns.iter().filter(is_asked).rfind(is_get);
    get.into_iter().map(|turn| seen(turn, false)).chain(post.map(|turn| seen(turn, lists_tools))).collect()
}

/// The part of an exchange that says something about a listing. Of the body the beginning is enough.
fn seen(turn: &Turn<'_>, lists_tools: bool) -> Value {
    const MOST: usize = 64 << 10;
    let request = &turn.exchange.request;
    let request = json!({ "method": request.method, "url": request.url, "headers": request.headers });
    let response = turn.exchange.response.as_ref().map(|response| {
        let mut response = response.clone();
        response.shorten(MOST);
        json!({ "status": response.status, "headers": response.headers, "raw": response.raw })
    });
    json!({
        "at_ms": turn.exchange.at_ms, "request": request, "response": response, "error": turn.exchange.error,
        "tools_list": lists_tools,
    })
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
    pages: Vec<SlimPage>,
    bytes: usize,
    /// Pages in the parts that were judged before.
    judged_pages: usize,
    /// The name of the last entry.
    last: Option<String>,
    /// A name came after one that stands behind it.
    is_unsorted: bool,
    /// It was too long for one part and is in no order, so that its parts would tell nothing.
    is_cut: bool,
}

#[derive(Debug)]
struct SlimPage {
    entries: Vec<SlimEntry>,
    metadata: Value,
}

/// How a walk went, or goes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// It began at the beginning, read everything and ended by itself.
    pub is_complete: bool,
    /// Deleted entries were asked for.
    pub with_deleted: bool,
    /// Pages that a list may have.
    pub max_pages: u32,
}

/// What is kept of an entry.
#[derive(Debug)]
struct SlimEntry {
    name: String,
    text: Box<RawValue>,
}

impl WalkRecord {
    /// Takes a page in. Gives what the rules say of the part that is full with it, and where that part began.
    pub fn add(&mut self, body: &[u8], so_far: Course, settings: &Settings) -> Option<(String, Report)> {
        let page = serde_json::from_slice::<Value>(body).ok().filter(|_| !self.is_cut)?;
        let page = slim_page(&page);
        self.look_at_order(&page);
        self.bytes += page.bytes();
        self.pages.push(page);
        if self.bytes <= PART_BYTES {
            return None;
        }
        if self.is_unsorted {
            *self = WalkRecord { is_cut: true, ..WalkRecord::default() };
            return None;
        }
        let begun = self.take_name_begun();
        let place = self.place();
        let report = self.judge_part(so_far, settings);
        self.judged_pages += self.pages.len();
        let begun = SlimPage { entries: begun, metadata: Value::Null };
        self.bytes = begun.bytes();
        self.pages = vec![begun];
        Some((place, report))
    }

    /// Judges the walk as a whole, or its last part, and says where that begins.
    pub fn judge(&self, course: Course, settings: &Settings) -> (String, Report) {
        let course = Course { is_complete: course.is_complete && !self.is_cut, ..course };
        (self.place(), self.judge_part(course, settings))
    }

    fn place(&self) -> String {
        if self.judged_pages == 0 { String::new() } else { format!("from page {} ", self.judged_pages) }
    }

    fn look_at_order(&mut self, page: &SlimPage) {
        for entry in &page.entries {
            self.is_unsorted |= self.last.as_ref().is_some_and(|last| *last > entry.name);
            self.last = Some(entry.name.clone());
        }
    }

    /// The entries of the last name, of which more may come, out of the pages.
    fn take_name_begun(&mut self) -> Vec<SlimEntry> {
        let Some(last) = self.last.clone() else { return Vec::new() };
        let mut begun = Vec::new();
        for page in self.pages.iter_mut().rev() {
            let from = page.entries.iter().rposition(|entry| entry.name != last).map_or(0, |at| at + 1);
            begun.splice(0..0, page.entries.drain(from..));
            if from > 0 {
                break;
            }
        }
        begun
    }

    fn judge_part(&self, course: Course, settings: &Settings) -> Report {
        let pages: Vec<Value> = self.pages.iter().map(SlimPage::read).collect();
        let walk = json!({
            "pages": pages,
            "complete": course.is_complete,
            "include_deleted": course.with_deleted,
            "policy": { "max_pages": course.max_pages },
        });
        drop(pages);
        let given = Given { limit_bytes: Some(MOST_BYTES), ..Given::default() };
        judge(&Document::from_text(&walk.to_string()), &subject(Kind::RegistryWalk, &given), settings)
    }
}

impl SlimPage {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.text.get().len()).sum()
    }

    fn read(&self) -> Value {
        let entries = self.entries.iter().filter_map(|entry| serde_json::from_str::<Value>(entry.text.get()).ok());
        json!({ "servers": entries.collect::<Vec<_>>(), "metadata": self.metadata })
    }
}

fn slim_page(page: &Value) -> SlimPage {
    let servers = page.get("servers").and_then(Value::as_array);
    let slim = |entry: &Value| {
        let name = entry.get("server").unwrap_or(entry).get("name").and_then(Value::as_str).unwrap_or_default();
        let text = serde_json::value::to_raw_value(&slim_entry(entry)).ok()?;
        Some(SlimEntry { name: name.to_owned(), text })
    };
    SlimPage {
        entries: servers.into_iter().flatten().filter_map(slim).collect(),
        metadata: page.get("metadata").cloned().unwrap_or(Value::Null),
    }
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
        let course = Course { is_complete: true, with_deleted: true, max_pages: 100 };
        let first = page(&[listed("a.b/tides", "1.0.0", true), listed("a.b/tides", "1.1.0", true)], Some("c"));
        assert!(record.add(&first, course, &Settings::default()).is_none());
        record.add(&page(&[listed("a.b/winds", "1.0.0", true)], Some("c")), course, &Settings::default());
        assert!(!record.pages[0].entries[0].text.get().contains("packages"), "{:?}", record.pages[0]);
        let mut findings = ListFindings::default();
        findings.add(&record.judge(course, &Settings::default()).1, "");
        let rules: Vec<_> = said(&findings).into_iter().map(|(rule, ..)| rule).collect();
        assert_eq!(rules, ["registry/cursor-repeated", "registry/latest-flag-count"]);
        let mut cut = ListFindings::default();
        cut.add(&record.judge(Course { is_complete: false, ..course }, &Settings::default()).1, "");
        assert_eq!(said(&cut).len(), 1, "what is not complete says nothing about the whole");
    }

    /// Every name has two versions, the second flagged; the pages are so cut that names run over their edges.
    fn long_walk(names: impl Iterator<Item = usize>) -> (WalkRecord, ListFindings, usize) {
        let course = Course { is_complete: true, with_deleted: true, max_pages: 9000 };
        let entries: Vec<Value> =
            names.flat_map(|n| ["1.0.0", "2.0.0"].map(|v| listed(&format!("a.b/c{n:06}"), v, v == "2.0.0"))).collect();
        let (mut record, mut findings, mut parts) = (WalkRecord::default(), ListFindings::default(), 0);
        for entries in entries.chunks(99) {
            if let Some((place, report)) = record.add(&page(entries, None), course, &Settings::default()) {
                findings.add(&report, &place);
                parts += 1;
            }
        }
        let (place, report) = record.judge(course, &Settings::default());
        findings.add(&report, &place);
        (record, findings, parts)
    }

    #[test]
    fn a_long_walk_is_judged_in_parts_that_tear_no_name_apart() {
        let (record, findings, parts) = long_walk(0..12_000);
        assert!(parts >= 2 && record.bytes <= PART_BYTES, "{parts} parts, {} bytes left", record.bytes);
        assert_eq!(said(&findings), []);
    }

    #[test]
    fn a_long_walk_in_no_order_is_not_judged_as_a_whole() {
        let (record, findings, parts) = long_walk((0..12_000).rev());
        assert!(record.is_cut && parts == 0 && record.pages.is_empty());
        assert_eq!(said(&findings), []);
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

    #[test]
    fn a_conversation_shows_whether_the_listing_is_right() {
        let exchange = |text: &str| -> crate::session::Exchange { serde_json::from_str(text).expect("it is one") };
        let answered = exchange(
            r#"{"step": "initialize", "request": {"method": "POST", "url": "https://tides.dev/mcp", "body": {"jsonrpc": "2.0", "id": 1, "method": "initialize"}},
                "response": {"status": 200, "headers": {"content-type": "text/event-stream"}, "raw": "data: {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"serverInfo\": {\"name\": \"winds\", \"version\": \"2.0.0\"}}}\n\n"}}"#,
        );
        let refused = exchange(
            r#"{"step": "get", "request": {"method": "GET", "url": "https://tides.dev/mcp"}, "response": {"status": 405}}"#,
        );
        let observations = observed(&Session::from(vec![answered, refused]));
        let mut entry = listed("a.b/tides", "1.0.0", true);
        entry["server"]["remotes"] = json!([{ "type": "sse", "url": "https://tides.dev/mcp" }]);
        let report = judge_drift(&entry, &observations, &Settings::default());
        let rules: Vec<&str> = report.fired().map(|(rule, _)| rule.id).collect();
        let expected = [
            "registry/remote-transport-mismatch",
            "registry/live-name-differs",
            "registry/live-version-differs",
            "registry/listing-out-of-step",
        ];
        assert_eq!(rules, expected);
    }
}
