//! `/targets/{id}/session`: what was said with each surface at the last look, or in an earlier conversation in which findings
//! began or ended, exchange by exchange, and what rests on it.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::report::{self, CheckedSignature};
use plumbline_rules::rule::Rule;
use plumbline_rules::session::{self, Exchange, Peer, Session, StreamEnd, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::{Detection, Standing};
use plumbline_store::conversations::Conversation as Kept;
use plumbline_store::ids::SurfaceId;
use plumbline_store::views::{FindingRow, SurfaceRow};
use plumbline_store::words::Severity;
use serde::{Deserialize, Serialize};

use super::tabs::{Tab, Tabs};
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::words;

/// Characters of one body that are shown; the download has what is kept.
const BODY: usize = 6_000;

/// Earlier conversations of one surface that are named.
const MOST_KEPT: i64 = 50;

/// Which conversation is asked for.
#[derive(Debug, Deserialize)]
pub struct Asked {
    /// The number of a kept one; without it the newest of each surface.
    of: Option<String>,
}

impl Asked {
    fn number(&self) -> Result<Option<i64>, Error> {
        let unknown = |asked: &str| Error::NotFound { what: "recorded conversation", asked: asked.to_owned() };
        self.of.as_deref().map(|asked| asked.parse().map_err(|_| unknown(asked))).transpose()
    }
}

/// The conversations of one target.
#[derive(Template, Serialize)]
#[template(path = "session.html")]
struct SessionPage {
    #[serde(skip)]
    frame: Frame,
    #[serde(skip)]
    tabs: Tabs,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The target's number here.
    target: i64,
    /// What it is called.
    name: String,
    /// It was had earlier: in Unix seconds when; `None` for the last look.
    #[serde(skip_serializing_if = "Option::is_none")]
    had_s: Option<i64>,
    /// One for each surface that was talked to.
    conversations: Vec<Conversation>,
}

/// What was said with one surface.
#[derive(Serialize)]
struct Conversation {
    /// The surface's number here.
    surface: i64,
    /// What it is.
    kind: String,
    /// Where.
    url: String,
    /// The number of this conversation.
    id: i64,
    /// When it was had, in Unix seconds.
    at_s: i64,
    /// The others that are kept, newest first: those in which findings began or ended, and the newest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<Kept>,
    /// What it shows about an endpoint as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<Standing>,
    /// What its signatures are worth, a line each: the result, the key and the host that the key came from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signatures: Vec<String>,
    /// What is open and does not rest on this conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elsewhere: Vec<Elsewhere>,
    /// In the order they were made.
    exchanges: Vec<Shown>,
}

/// An open finding that rests on another conversation: what it is about was not asked in this one.
#[derive(Debug, PartialEq, Serialize)]
struct Elsewhere {
    /// The rule.
    rule: String,
    /// How grave.
    severity: Severity,
    /// What is wrong.
    message: String,
    /// The number of the conversation on which it rests, where that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<i64>,
}

/// One exchange as it is shown.
#[derive(Serialize)]
struct Shown {
    /// Its place in the session, from 0.
    number: usize,
    /// What it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// The request line.
    request: String,
    /// The headers that were sent, a line each.
    sent_headers: Vec<String>,
    /// What was sent, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sent: Vec<String>,
    /// The status, or why there is none.
    answer: String,
    /// The headers of the answer, a line each.
    headers: Vec<String>,
    /// The beginning of its body, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    body: Vec<String>,
    /// How long it took and how it ended, in words.
    timing: String,
    /// Who answered, in words: address, version of HTTP, certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    /// A command that asks the same, line by line.
    curl: Vec<String>,
    /// What rests on it.
    findings: Vec<Resting>,
}

/// A finding that rests on an exchange.
#[derive(Clone, Serialize)]
struct Resting {
    /// The rule.
    rule: String,
    /// How grave.
    severity: Severity,
    /// What is wrong.
    message: String,
}

impl Conversation {
    /// The protocols that were found, the surest first.
    fn detected(&self) -> Vec<(String, Vec<&'static str>)> {
        let Some(standing) = &self.standing else { return Vec::new() };
        let of = |state: Detection| {
            let named = standing.detected.iter().filter(|detected| detected.state == state);
            (state.as_str().replace('_', " "), named.map(|detected| detected.protocol.as_str()).collect::<Vec<_>>())
        };
        let states = [Detection::Confirmed, Detection::Indicated, Detection::NotDetected];
        states.into_iter().map(of).filter(|(_, named)| !named.is_empty()).collect()
    }
}

/// `GET /targets/{id}/session`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    Path(asked): Path<String>,
    Query(which): Query<Asked>,
) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "target", asked: asked.clone() };
    let which = which.number()?;
    let id: i64 = asked.parse().map_err(|_| unknown())?;
    let target = state.store.target(id).await?.ok_or_else(unknown)?;
    let findings = state.store.target_findings(id).await?;
    let mut conversations = Vec::new();
    let mut had_s = None;
    for surface in state.store.target_surfaces(id).await? {
        let mut kept = state.store.conversations(SurfaceId(surface.id), MOST_KEPT).await?;
        let place = which.map_or(Some(0), |which| kept.iter().position(|one| one.id == which));
        let Some(chosen) = place.filter(|place| *place < kept.len()).map(|place| (place, kept.remove(place))) else {
            continue;
        };
        let (is_last, chosen) = (chosen.0 == 0, chosen.1);
        let Some(session) = state.store.session(SurfaceId(surface.id), chosen.id).await? else { continue };
        had_s = had_s.or((!is_last).then_some(chosen.at_s));
        let mut resting = resting_on(&session);
        let mut elsewhere = Vec::new();
        if is_last {
            let open: Vec<&FindingRow> = findings.iter().filter(|finding| finding.surface_id == surface.id).collect();
            // What the last look shows is what is open; a rule may speak there that is not confirmed yet, or waits no more.
            resting.retain(|(_, one)| open.iter().any(|finding| finding.rule == one.rule));
            let odd = state.store.last_odd_conversation(SurfaceId(surface.id)).await?;
            let odd = odd.filter(|odd| odd.id != chosen.id);
            let said_there = match &odd {
                Some(odd) => state.store.session(SurfaceId(surface.id), odd.id).await?,
                None => None,
            };
            elsewhere = said_elsewhere(&open, &resting, odd.zip(said_there.as_deref().map(resting_on)).as_ref());
        }
        conversations.extend(conversation(&surface, &session, &chosen, kept, &resting, elsewhere));
    }
    if let Some(which) = which.filter(|_| conversations.is_empty()) {
        return Err(Error::NotFound { what: "recorded conversation", asked: which.to_string() });
    }
    let page = SessionPage {
        frame: visit.framed(Place::Targets),
        tabs: Tabs::of(target.id, Tab::Session),
        as_of_s: visit.now,
        target: id,
        name: target.name,
        had_s,
        conversations,
    };
    visit.answer(&page, Cache::Fresh)
}

/// `GET /surfaces/{id}/session`: the recording of the last look or of a kept one, for `plumbline check`.
pub async fn download(
    visit: Visit,
    State(state): State<WebState>,
    Path(asked): Path<String>,
    Query(which): Query<Asked>,
) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "recorded conversation", asked: asked.clone() };
    let id: i64 = asked.parse().map_err(|_| unknown())?;
    let which = which.number()?;
    let session = match which {
        Some(which) => state.store.session(SurfaceId(id), which).await?,
        None => state.store.last_session(SurfaceId(id)).await?,
    };
    let mut response = session.ok_or_else(unknown)?.into_response();
    let number = which.map_or_else(String::new, |which| format!("-{which}"));
    let name = format!("attachment; filename=\"session-{id}{number}.json\"");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).expect("a number is ASCII"));
    Ok(visit.with_headers(StatusCode::OK, response, Cache::Minute))
}

fn conversation(
    surface: &SurfaceRow,
    session: &[u8],
    chosen: &Kept,
    others: Vec<Kept>,
    findings: &[(String, Resting)],
    elsewhere: Vec<Elsewhere>,
) -> Option<Conversation> {
    let session: Session = serde_json::from_slice(session).ok()?;
    let exchanges = session.exchanges.iter().enumerate();
    Some(Conversation {
        surface: surface.id,
        kind: words::surface_kind(surface.kind).to_owned(),
        url: surface.url.clone(),
        id: chosen.id,
        at_s: chosen.at_s,
        others,
        standing: (session.surface() == Surface::Mcp).then(|| Standing::of(&session)),
        signatures: signatures(&session),
        elsewhere,
        exchanges: exchanges.map(|(number, exchange)| shown(number, exchange, findings)).collect(),
    })
}

/// What the signatures of a card are worth by the keys that were fetched. A key shows integrity and not who somebody is:
/// whoever signs says where the keys lie, so the host stands beside it.
fn signatures(session: &Session) -> Vec<String> {
    if session.surface() != Surface::AgentCard {
        return Vec::new();
    }
    let report = judge_session(session, Surface::AgentCard, None, &Given::default(), &Settings::default());
    report.signatures.iter().map(signature).collect()
}

fn signature(signature: &CheckedSignature) -> String {
    let form = signature.canonical_form.map_or_else(String::new, |form| format!(" over form {form}"));
    let key = signature.kid.as_ref().map_or_else(String::new, |kid| format!(", key {kid}"));
    let from = signature.key_from.as_ref().map_or_else(String::new, |host| format!(" from {host}"));
    format!("{}{form}{key}{from}", signature.result)
}

fn shown(number: usize, exchange: &Exchange, findings: &[(String, Resting)]) -> Shown {
    let request = &exchange.request;
    let response = exchange.response.as_ref();
    let lines = |headers: &std::collections::BTreeMap<String, String>| {
        headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
    };
    let answer = match (response, exchange.error) {
        (Some(response), _) => format!("HTTP {}", response.status),
        (None, Some(error)) => {
            serde_json::to_value(error).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
        }
        (None, None) => "no answer".to_owned(),
    };
    let body = response.map(|response| String::from_utf8_lossy(&response.body()).into_owned());
    Shown {
        number,
        step: exchange.step.map(|step| step.to_string()),
        request: format!("{} {}", request.method, request.url),
        sent_headers: lines(&request.headers),
        sent: request.raw.as_deref().map(beginning).unwrap_or_default(),
        answer,
        headers: response.map(|response| lines(&response.headers)).unwrap_or_default(),
        body: body.map(|body| beginning(&body)).unwrap_or_default(),
        timing: timing(exchange),
        peer: exchange.peer.as_ref().map(peer),
        curl: lines_of(&curl(request)),
        findings: at(number, findings),
    }
}

fn beginning(text: &str) -> Vec<String> {
    let end = text.floor_char_boundary(BODY.min(text.len()));
    let mut lines = lines_of(&text[..end]);
    if end < text.len() {
        lines.push(format!("… {end} of {} bytes", text.len()));
    }
    lines
}

fn lines_of(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn peer(peer: &Peer) -> String {
    let tls = peer.tls.as_ref().map_or_else(String::new, |version| format!(" over {version}"));
    let seen = format!("{}, {}{tls}", peer.address, peer.http);
    let Some(certificate) = &peer.certificate else { return seen };
    let ends = chrono::DateTime::from_timestamp(certificate.not_after_s, 0);
    let ends = ends.map_or_else(String::new, |ends| format!(", holds until {}", ends.format("%Y-%m-%d %H:%M UTC")));
    format!("{seen}, certificate issued by {}{ends}", certificate.issuer)
}

fn timing(exchange: &Exchange) -> String {
    let mut timing = format!("{} ms", exchange.took_ms);
    if let Some(head_ms) = exchange.head_ms.filter(|head_ms| *head_ms < exchange.took_ms) {
        timing.push_str(&format!(", {head_ms} ms to the first byte"));
    }
    if let Some(stream) = exchange.response.as_ref().and_then(|response| response.stream.as_ref()) {
        let end = match stream.end {
            StreamEnd::Closed => "closed by the server",
            StreamEnd::Left => "left open by the server, we hung up",
            StreamEnd::Silent => "no answer on it in time, we hung up",
            StreamEnd::Overrun => "more than is read of a stream, we hung up",
        };
        timing.push_str(&format!("; event stream with {} events, {end}", stream.events_ms.len()));
    }
    timing
}

/// What is open about exchanges and does not rest on the conversation that is shown. `odd` is the newest other one in which
/// odd requests were made, with what rests on it.
fn said_elsewhere(
    open: &[&FindingRow],
    resting: &[(String, Resting)],
    odd: Option<&(Kept, Vec<(String, Resting)>)>,
) -> Vec<Elsewhere> {
    let is_shown = |finding: &&&FindingRow| resting.iter().any(|(_, one)| one.rule == finding.rule);
    let there = open.iter().filter(|finding| !is_shown(finding)).filter_map(|finding| {
        let place = finding.places.iter().find(|place| place.pointer.starts_with("/exchanges/"))?;
        let rests = |(_, on): &&(Kept, Vec<(String, Resting)>)| on.iter().any(|(_, one)| one.rule == finding.rule);
        Some(Elsewhere {
            rule: finding.rule.clone(),
            severity: place.severity,
            message: place.message.clone(),
            of: odd.filter(rests).map(|(odd, _)| odd.id),
        })
    });
    there.collect()
}

/// What the rules of today say of a conversation, place by place.
fn resting_on(session: &[u8]) -> Vec<(String, Resting)> {
    let Ok(session) = serde_json::from_slice::<Session>(session) else { return Vec::new() };
    let report = judge_session(&session, session.surface(), None, &Given::default(), &Settings::default());
    let places = report.findings().flat_map(|(rule, found)| found.iter().map(move |place| (rule, place)));
    let one = |(rule, place): (&Rule, &report::Occurrence)| {
        let resting = Resting { rule: rule.id.to_owned(), severity: place.severity, message: place.message.clone() };
        (place.pointer.clone(), resting)
    };
    places.map(one).collect()
}

/// Those at places in one exchange.
fn at(number: usize, findings: &[(String, Resting)]) -> Vec<Resting> {
    let here = format!("/exchanges/{number}");
    let is_here =
        |pointer: &str| pointer.strip_prefix(&here).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    findings.iter().filter(|(pointer, _)| is_here(pointer)).map(|(_, resting)| resting.clone()).collect()
}

/// A command that asks the same. Secrets are not in the record; whoever runs it puts in their own.
fn curl(request: &session::Request) -> String {
    let mut curl = format!("curl -i -X {} {}", request.method, quoted(&request.url));
    for (name, value) in
        request.headers.iter().filter(|(name, _)| !matches!(name.as_str(), "user-agent" | "accept-encoding"))
    {
        curl.push_str(&format!(" \\\n  -H {}", quoted(&format!("{name}: {value}"))));
    }
    if let Some(body) = &request.raw {
        curl.push_str(&format!(" \\\n  --data-raw {}", quoted(body)));
    }
    curl
}

/// One word for a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_one_word_whatever_is_in_it() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's; rm -rf ~"), r"'it'\''s; rm -rf ~'");
    }

    #[test]
    fn a_request_becomes_a_command() {
        let request = session::Request {
            method: "POST".to_owned(),
            url: "https://t.example/mcp".to_owned(),
            headers: [("accept".to_owned(), "*/*".to_owned()), ("user-agent".to_owned(), "x".to_owned())].into(),
            raw: Some("{}".to_owned()),
        };
        assert_eq!(
            curl(&request),
            "curl -i -X POST 'https://t.example/mcp' \\\n  -H 'accept: */*' \\\n  --data-raw '{}'"
        );
    }
}
