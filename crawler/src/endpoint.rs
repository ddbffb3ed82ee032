//! An MCP endpoint in a round: probed, judged by the whole conversation, and kept as what it says of itself.

use plumbline_rules::canonical::{content_hash, semantic_hash};
use plumbline_rules::document::{Document, Node, Type};
use plumbline_rules::judge::Given;
use plumbline_rules::listing::judge_drift;
use plumbline_rules::past::judge_runs;
use plumbline_rules::reach::Outcome;
use plumbline_rules::report::{Report, RuleResult};
use plumbline_rules::session::{Exchange, Session, Step, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::{Access, Standing, self_description, unread_lists};
use plumbline_store::documents::Body;
use plumbline_store::ids::CrawlId;
use plumbline_store::judged::Judged;
use plumbline_store::record::{LONGEST_SESSION, Observation, Served};
use plumbline_store::surfaces::DueSurface;
use plumbline_store::targets::Link;
use plumbline_store::words::{Role, SurfaceKind};
use serde_json::{Value, json};
use url::Url;

use crate::probe::mcp::{self, EndpointAsk};
use crate::probe::stdio::{self, CommandAsk};
use crate::round::{client_for, every_s, next_due, place_of, said, weighed};
use crate::targets::host_of;
use crate::{CrawlError, Crawler};

/// Seconds of a day: odd requests are made at the first look of each.
const DAY_S: i64 = 86_400;
/// Entries of one name among which the present one is looked for.
const MOST_LISTINGS: i64 = 20;
/// Characters taken over from what a server says about itself.
const MAX_OWN_WORDS: usize = 400;

/// The endpoints that a `server.json` lists: every remote whose address can be called as it stands.
#[must_use]
pub fn links(server_json: Node<'_>) -> Vec<Link> {
    let remotes = server_json.get("remotes").filter(|remotes| remotes.kind() == Type::Array);
    let urls = remotes.into_iter().flat_map(Node::items).filter_map(|remote| remote.get("url")?.text());
    let mut links: Vec<Link> = Vec::new();
    for url in urls.filter_map(callable) {
        if !links.iter().any(|link| link.url == url) {
            let host = host_of(&url);
            links.push(Link { kind: SurfaceKind::McpEndpoint, url, role: Role::Endpoint, host });
        }
    }
    links
}

/// An address as all who list it share it; `None` for one with variables or of another scheme.
fn callable(url: &str) -> Option<String> {
    if url.contains(['{', '}']) {
        return None;
    }
    let mut parsed = Url::parse(url.trim()).ok()?;
    parsed.set_fragment(None);
    matches!(parsed.scheme(), "http" | "https").then(|| parsed.to_string())
}

/// Probes an endpoint and judges what it said.
///
/// # Errors
/// Only when we failed.
pub(crate) async fn observe(
    crawler: &Crawler,
    crawl: CrawlId,
    surface: &DueSurface,
) -> Result<Observation, CrawlError> {
    let is_first = match crawler.probing.odd_requests {
        true => !has_been_odd_today(crawler, surface).await?,
        false => is_first_today(crawler, surface).await?,
    };
    let odd = crawler.probing.odd_requests && is_first;
    let command = crawler.commands.get(&surface.url);
    let mut observed = match command {
        Some(command) => stdio::observe(&CommandAsk { odd, ..command.clone() }, &crawler.stdio).await?,
        None => {
            let headers = crawler.headers.get(&surface.url).cloned().unwrap_or_default();
            let active = crawler.active.get(&surface.url).filter(|_| is_first).cloned();
            let ask = EndpointAsk { url: surface.url.clone(), headers, odd, active };
            mcp::observe(&client_for(crawler, surface), &ask, &crawler.probing).await?
        }
    };
    let now_s = crawler.now_s();
    if command.is_none() {
        observed.outcome = weighed(crawler, surface, &observed, now_s).await;
    }
    let traits = crawler.traits_of(surface).await?;
    let ruleset = crawler.ruleset_of(&traits).await?;
    // The address of a listing is judged there.
    let listed = !crawler.store.is_named_itself(surface.id).await?;
    let given = Given { listed, ..traits };
    let mut report = judge_session(&observed.session, Surface::Mcp, None, &given, &crawler.judging);
    let standing = Standing::of(&observed.session);
    let described = described(crawler, surface, &observed.session).await?;
    report.results.extend(since_the_run_before(crawler, surface, described.as_ref(), &standing).await?);
    if listed && !standing.is_incomplete {
        report.results.extend(against_listing(crawler, surface, &observed.session).await?);
    }
    let may_move = matches!(observed.outcome, Outcome::Ok | Outcome::Gated(_) | Outcome::Absent(_));
    let judged = (may_move && !standing.is_incomplete).then(|| {
        let context = content_hash(context(crawler, &given, &report).as_bytes());
        Judged { is_complete: report.has_document, ..Judged::of(&report, ruleset, context) }
    });
    let has_shown = judged.is_some();
    let described = described.filter(|_| judged.is_some());
    crawler.reporter.note(|progress| {
        progress.looked_at += 1;
        progress.answered += u64::from(observed.outcome.is_up());
    });
    let says = |pointer: &str| described.as_ref()?.pointer(pointer)?.as_str().map(shortened);
    Ok(Observation {
        surface: surface.id,
        crawl: Some(crawl),
        at_s: now_s,
        outcome: observed.outcome,
        status: observed.status(),
        took_ms: u32::try_from(observed.took_ms()).unwrap_or(u32::MAX),
        is_verification: surface.is_verification,
        witness_good: true,
        declared_version: says("/serverInfo/version"),
        name: says("/serverInfo/title").or_else(|| says("/serverInfo/name")),
        summary: says("/instructions"),
        served: served(described.as_ref()),
        validators: None,
        judged,
        fires_on_old: None,
        place: place_of(&observed.session),
        session: kept(&observed.recorded(), None),
        standing: has_shown.then_some(standing),
        links: None,
        next_due_s: next_due(crawler, surface, observed.outcome, now_s).await?,
        every_s: every_s(crawler, surface),
    })
}

/// What an endpoint says of itself. A list that this time could not be read to its end is as it was the last time: that an
/// answer was lost on the way is no change of the list.
async fn described(crawler: &Crawler, surface: &DueSurface, session: &Session) -> Result<Option<Value>, CrawlError> {
    let Some(described) = self_description(session) else { return Ok(None) };
    let unread = unread_lists(session);
    if unread.is_empty() || surface.document.is_none() {
        return Ok(Some(described));
    }
    let before = runs_before(crawler, surface, 1).await?.pop();
    Ok(Some(with_lists_of(described, before.as_ref(), &unread)))
}

/// A description with these lists as they were before, where they were known.
fn with_lists_of(mut described: Value, before: Option<&Value>, lists: &[&str]) -> Value {
    for list in lists {
        if let Some(known) = before.and_then(|before| before.get(list)).filter(|known| known.is_array()) {
            described[*list] = known.clone();
        }
    }
    described
}

/// What it said of itself in the last runs, newest first.
async fn runs_before(crawler: &Crawler, surface: &DueSurface, most: u32) -> Result<Vec<Value>, CrawlError> {
    let served = crawler.store.documents_of(surface.id, most).await?;
    let runs = served.into_iter().filter(|kept| !kept.is_cut).filter_map(|kept| kept.bytes);
    Ok(runs.filter_map(|bytes| serde_json::from_slice::<Value>(&bytes).ok()).filter(Value::is_object).collect())
}

/// What has changed since the complete run before. Of a run that broke off, and of a first one, nothing is said.
async fn since_the_run_before(
    crawler: &Crawler,
    surface: &DueSurface,
    described: Option<&Value>,
    standing: &Standing,
) -> Result<Vec<RuleResult>, CrawlError> {
    if standing.is_incomplete || surface.document.is_none() {
        return Ok(Vec::new());
    }
    let is_other = |run: &Value| described != Some(run);
    let before = runs_before(crawler, surface, 2).await?.into_iter().find(is_other);
    let Some(mut before) = before else { return Ok(Vec::new()) };
    // Only an endpoint that let us in says something of itself.
    before["access"] = Access::Open.as_str().into();
    let mut now = described.cloned().unwrap_or_else(|| json!({}));
    now["access"] = standing.access.as_str().into();
    Ok(judge_runs(&before, &now, &crawler.judging))
}

/// What the registry lists of the endpoint, held against what the endpoint says. Of an address that several list, the first
/// of them counts. The pointers lead into the listing, as `/entry/server/remotes/0/type`.
async fn against_listing(
    crawler: &Crawler,
    surface: &DueSurface,
    session: &Session,
) -> Result<Vec<RuleResult>, CrawlError> {
    let Some(target) = surface.target else { return Ok(Vec::new()) };
    let (listings, _) = crawler.store.target_listings(target.0, MOST_LISTINGS).await?;
    let Some(listing) = listings.into_iter().find(|listing| listing.is_current && listing.gone_s.is_none()) else {
        return Ok(Vec::new());
    };
    let Some(document) = crawler.store.document_of_hash(&listing.document).await? else { return Ok(Vec::new()) };
    let bytes = crawler.store.document_bytes(&document).await?.unwrap_or_default();
    let Ok(server) = serde_json::from_slice::<Value>(&bytes) else { return Ok(Vec::new()) };
    let official = json!({ "status": listing.status, "isLatest": listing.is_latest });
    let entry = json!({ "server": server, "_meta": { "io.modelcontextprotocol.registry/official": official } });
    let report = judge_drift(&entry, &looks(&server, session), &crawler.judging);
    // What it says of the endpoint itself the conversation says better.
    Ok(report.results.into_iter().filter(|result| result.rule.family() == "registry").collect())
}

/// The handshakes as looks at a remote, under the address as the listing writes it.
fn looks(server: &Value, session: &Session) -> Vec<Value> {
    let remotes = server["remotes"].as_array().into_iter().flatten().filter_map(|remote| remote["url"].as_str());
    let written: Vec<(String, &str)> = remotes.filter_map(|url| Some((callable(url)?, url))).collect();
    let is_handshake =
        |exchange: &&Exchange| matches!(exchange.step, Some(Step::Discover | Step::Initialize | Step::HttpSse));
    let look = |exchange: &Exchange| {
        let mut look = serde_json::to_value(exchange).ok()?;
        let asked = written.iter().find(|(url, _)| *url == exchange.request.url).map(|(_, written)| *written);
        look["request"]["url"] = asked.unwrap_or(&exchange.request.url).into();
        look["at"] = chrono::DateTime::from_timestamp_millis(exchange.at_ms)?.to_rfc3339().into();
        Some(look)
    };
    session.exchanges.iter().filter(is_handshake).filter_map(look).collect()
}

/// Whether nobody looked at it yet since midnight UTC.
pub(crate) async fn is_first_today(crawler: &Crawler, surface: &DueSurface) -> Result<bool, CrawlError> {
    let last_s = crawler.store.surface(surface.id).await?.last_attempt_s;
    let today = crawler.now_s().div_euclid(DAY_S);
    Ok(last_s.is_none_or(|last_s| last_s.div_euclid(DAY_S) != today))
}

/// Whether odd requests were made of it since midnight UTC. A look at which nobody answered made none.
async fn has_been_odd_today(crawler: &Crawler, surface: &DueSurface) -> Result<bool, CrawlError> {
    let last = crawler.store.last_odd_conversation(surface.id).await?;
    let today = crawler.now_s().div_euclid(DAY_S);
    Ok(last.is_some_and(|last| last.at_s.div_euclid(DAY_S) == today))
}

/// Everything that the judgement depends on besides what the endpoint says of itself.
fn context(crawler: &Crawler, given: &Given, report: &Report) -> String {
    let results: Vec<_> = report.results.iter().map(|result| (result.rule.id, said(&result.outcome))).collect();
    serde_json::json!({ "settings": crawler.judging, "given": given, "live": results }).to_string()
}

fn served(described: Option<&serde_json::Value>) -> Served {
    let Some(described) = described else { return Served::Nothing };
    let text = described.to_string();
    let semantic = Document::from_text(&text).root().map(semantic_hash);
    Served::Body(Body::new(text.into_bytes(), semantic, Some("application/json".to_owned())))
}

/// Bytes of one body that are kept with the conversation.
const KEPT_BODY: usize = 64 << 10;
/// Bytes of each body below which nothing is won by keeping less.
const LEAST_BODY: usize = 256;
/// Bytes of all lines of a command that are kept with the conversation.
const KEPT_LINES: usize = 1 << 20;

/// The conversation for the record: secrets as length and hash, of long bodies the beginning, and of those of a long
/// conversation less. A document of record stays whole as long as it fits.
pub(crate) fn kept(session: &Session, of_record: Option<usize>) -> Option<Vec<u8>> {
    let mut session = session.clone().masked();
    let (mut body, mut lines, mut whole) = (KEPT_BODY, KEPT_LINES, of_record);
    loop {
        let exchanges = session.exchanges.iter_mut().enumerate().filter(|(number, _)| Some(*number) != whole);
        for response in exchanges.filter_map(|(_, exchange)| exchange.response.as_mut()) {
            response.shorten(body);
        }
        if let Some(stdio) = &mut session.stdio {
            stdio.shorten(body, lines);
        }
        let kept = serde_json::to_vec(&session).ok()?;
        if kept.len() <= LONGEST_SESSION || body < LEAST_BODY {
            return Some(kept);
        }
        whole = whole.filter(|_| body > LEAST_BODY);
        (body, lines) = (body / 2, lines / 2);
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_OWN_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_remote_that_can_be_called_is_an_endpoint_once() {
        let text = r#"{"remotes": [{"url": "https://A.example/mcp"}, {"url": "https://a.example:443/mcp#x"}, {"url": "https://{tenant}.example/mcp"}, {"url": "ws://a.example/"}, {"url": 7}, {"url": "http://b.example/sse", "type": "sse"}]}"#;
        let document = Document::from_text(text);
        let urls: Vec<String> = links(document.root().expect("JSON")).into_iter().map(|link| link.url).collect();
        assert_eq!(urls, ["https://a.example/mcp", "http://b.example/sse"]);
        assert!(links(Document::from_text(r#"{"remotes": {}}"#).root().expect("JSON")).is_empty());
    }

    #[test]
    fn a_list_that_was_not_read_is_as_it_was() {
        let before = json!({ "tools": [{ "name": "a" }], "prompts": "none", "instructions": "then" });
        let now = json!({ "instructions": "now" });
        let described = with_lists_of(now.clone(), Some(&before), &["tools", "prompts"]);
        assert_eq!(described, json!({ "instructions": "now", "tools": [{ "name": "a" }] }));
        assert_eq!(with_lists_of(now.clone(), None, &["tools"]), now);
    }

    #[test]
    fn of_a_long_conversation_less_of_each_body_is_kept_and_none_is_dropped() {
        let exchange = |raw: String| Exchange {
            response: Some(plumbline_rules::session::Response { status: 200, raw: Some(raw), ..Default::default() }),
            ..Exchange::default()
        };
        let long = || exchange("\"x\"".repeat(40_000));
        let few = kept(&Session::from(vec![long(), long()]), Some(0)).expect("it is kept");
        let few: Session = serde_json::from_slice(&few).expect("it is a session");
        let lengths: Vec<_> =
            few.exchanges.iter().map(|e| e.response.as_ref().expect("answered").body().len()).collect();
        assert_eq!(lengths, [120_000, KEPT_BODY], "the document of record is whole");
        let many = kept(&Session::from((0..200).map(|_| long()).collect::<Vec<_>>()), Some(0)).expect("it is kept");
        assert!(many.len() <= LONGEST_SESSION, "{} bytes", many.len());
        let many: Session = serde_json::from_slice(&many).expect("it is a session");
        assert_eq!(many.exchanges.len(), 200);
        assert_eq!(many.exchanges[0].response.as_ref().expect("answered").body().len(), 120_000);
        let huge = kept(&Session::from(vec![exchange("\u{1}".repeat(LONGEST_SESSION))]), Some(0)).expect("it is kept");
        assert!(huge.len() <= LONGEST_SESSION, "{} bytes", huge.len());
    }

    #[test]
    fn a_look_stands_under_the_address_that_the_listing_writes() {
        let server = json!({ "remotes": [{ "type": "sse", "url": "https://Tides.example:443/mcp" }] });
        let exchange = |step: Step, url: &str| Exchange {
            step: Some(step),
            request: plumbline_rules::session::Request {
                method: "POST".to_owned(),
                url: url.to_owned(),
                ..Default::default()
            },
            ..Exchange::default()
        };
        let session = Session::from(vec![
            exchange(Step::Discover, "https://tides.example/mcp"),
            exchange(Step::Initialize, "https://elsewhere.example/mcp"),
            exchange(Step::Ping, "https://tides.example/mcp"),
        ]);
        let looks = looks(&server, &session);
        let urls: Vec<_> = looks.iter().map(|look| look["request"]["url"].as_str().expect("an address")).collect();
        assert_eq!(urls, ["https://Tides.example:443/mcp", "https://elsewhere.example/mcp"]);
        assert!(looks[0]["at"].as_str().is_some_and(|at| at.starts_with("1970-01-01T")));
    }
}
