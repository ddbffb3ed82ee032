//! Judging a conversation: which of its answers is the document, and what the rules say about both.

use crate::document::Document;
use crate::endpoint_judge::judge_endpoint;
use crate::judge::{Given, Origin, Settings, Subject, judge, judge_without_document};
use crate::kind::Kind;
use crate::report::{Occurrence, Outcome, Report};
use crate::rule::Check;
use crate::session::{Cut, Exchange, Response, Session, Surface};
use crate::text::{AbsoluteUrl, is_public_host};

/// Judges a conversation. The pointers of the report lead into the session: `/exchanges/N/response/body/…`, and
/// `/exchanges/N/response/raw` where a place cannot be addressed in parsed form.
pub fn judge_session(
    session: &Session,
    surface: Surface,
    version: Option<&str>,
    given: &Given,
    settings: &Settings,
) -> Report {
    if surface == Surface::Mcp {
        return judge_endpoint(session, version, given, settings);
    }
    let chains = chains(session);
    let asked_first = |answer: usize| chains.iter().find(|chain| chain.last == answer).map(|chain| chain.asked);
    let subject = |answer: Option<usize>| {
        let asked = answer.or(session.exchanges.len().checked_sub(1)).and_then(|n| session.exchanges.get(n));
        Subject {
            kind: asked
                .and_then(|exchange| kind_of(surface, answer.and_then(asked_first).unwrap_or(&exchange.request.url))),
            version,
            origin: origin(given, asked.map(|exchange| exchange.request.url.as_str())),
            given,
            session: Some(session),
            answer,
        }
    };
    let of_record = document_of_record(session, surface).and_then(|number| {
        let document = document_of(session.exchanges.get(number)?.response.as_ref()?);
        Some(led_into(judge(&document, &subject(Some(number)), settings), number))
    });
    of_record.unwrap_or_else(|| judge_without_document(&subject(None), settings))
}

/// The document that an answer brought, as judging reads it.
pub fn document_of(response: &Response) -> Document {
    let document = Document::read(&response.body());
    if response.cut == Some(Cut::Limit) { document.with_more_behind() } else { document }
}

/// Where the keys are with which the signatures of a card can be checked: to be asked for with step `jku`, in the same
/// conversation.
pub fn key_addresses(card: &Document) -> Vec<String> {
    crate::a2a::key_addresses(card)
}

/// Where a document came from, by what its context says or else by the address it was fetched from (decisions 9).
pub fn origin(given: &Given, address: Option<&str>) -> Origin {
    let address = given.served_from.as_deref().or(given.url.as_deref()).or(address);
    match address.and_then(AbsoluteUrl::parse) {
        Some(url) if !is_public_host(url.host) => Origin::PrivateHost,
        _ => Origin::PublicHost,
    }
}

/// The exchange that brought the document of a surface: of an agent card the answer to a request with `A2A-Version` if
/// it is a card, else the plain one, else the one at the path before A2A 0.3 (decisions 10); of anything else the last
/// answer to what was asked first. `None` when nothing that is a document came.
pub fn document_of_record(session: &Session, surface: Surface) -> Option<usize> {
    let chains = chains(session);
    let first = chains.first()?.asked;
    let answered = chains.iter().filter(|chain| brings_document(&session.exchanges[chain.last], surface));
    if surface != Surface::AgentCard {
        return answered
            .filter(|chain| surface == Surface::OauthMetadata || chain.asked == first)
            .map(|chain| chain.last)
            .next_back();
    }
    let candidates: Vec<_> = answered.filter(|chain| chain.asked == first || is_card_path(chain.asked)).collect();
    if candidates.len() < 2 {
        return candidates.first().map(|chain| chain.last);
    }
    candidates.into_iter().max_by_key(|chain| worth(session, chain)).map(|chain| chain.last)
}

/// Whether an answer is a document, well made or not. Some successes have no body, and a page at an OAuth address is as
/// good as nothing there.
fn brings_document(exchange: &Exchange, surface: Surface) -> bool {
    let Some(response) = exchange.success() else { return false };
    let body = response.body();
    let is_page = || {
        let is_html = response.media_type().is_some_and(|media_type| media_type.is_html());
        is_html || body.trim_ascii_start().starts_with(b"<")
    };
    match surface {
        Surface::OauthMetadata if is_page() => false,
        _ => !(body.is_empty() && matches!(response.status, 202 | 204 | 205)),
    }
}

/// A request and the redirects it led to.
pub(crate) struct Chain<'s> {
    /// The address asked for at first.
    pub(crate) asked: &'s str,
    /// Whether the first request named a version of A2A.
    pub(crate) with_version: bool,
    /// The exchange at its beginning.
    pub(crate) first: usize,
    /// The exchange at its end.
    pub(crate) last: usize,
}

/// The requests of a conversation, each with the redirects it led to.
pub(crate) fn chains(session: &Session) -> Vec<Chain<'_>> {
    let mut chains: Vec<Chain<'_>> = Vec::new();
    for (number, exchange) in session.exchanges.iter().enumerate() {
        match chains.last_mut() {
            Some(chain) if continues(&session.exchanges[chain.last], exchange) => chain.last = number,
            _ => chains.push(Chain {
                asked: &exchange.request.url,
                with_version: exchange.request.headers.contains_key("a2a-version"),
                first: number,
                last: number,
            }),
        }
    }
    chains
}

/// Whether a request follows the redirect that the one before it was answered with.
fn continues(before: &Exchange, exchange: &Exchange) -> bool {
    before.redirect().is_some_and(|url| {
        url.as_str() == exchange.request.url || url::Url::parse(&exchange.request.url).is_ok_and(|asked| asked == url)
    })
}

pub(crate) fn is_card_path(address: &str) -> bool {
    address.ends_with("/agent-card.json") || is_legacy_path(address)
}

pub(crate) fn is_legacy_path(address: &str) -> bool {
    address.ends_with("/agent.json")
}

/// What is a card goes before what is none, the present path before the old one, the answer with the version header
/// before the plain one, a later answer before an earlier one.
fn worth(session: &Session, chain: &Chain<'_>) -> (bool, bool, bool, usize) {
    let document = session.exchanges[chain.last].success().map(document_of);
    let is_card = document.is_some_and(|document| document.root().is_some_and(crate::a2a::looks_like_a_card));
    (is_card, !is_legacy_path(chain.asked), chain.with_version, chain.last)
}

/// The kind that was asked for; `None` where the document has to show it.
fn kind_of(surface: Surface, address: &str) -> Option<Kind> {
    match surface {
        Surface::AgentCard => Some(Kind::AgentCard),
        Surface::ServerCard if address.contains("ai-catalog") => Some(Kind::McpAiCatalog),
        Surface::ServerCard => Some(Kind::McpServerCard),
        Surface::OauthMetadata if address.contains("oauth-protected-resource") => Some(Kind::OauthProtectedResource),
        Surface::OauthMetadata if address.contains("openid-configuration") => Some(Kind::OauthOpenidConfiguration),
        Surface::OauthMetadata => Some(Kind::OauthAuthorizationServer),
        Surface::Registry => Some(Kind::RegistryPage),
        Surface::Mcp => Some(Kind::McpEndpoint),
        Surface::Any => None,
    }
}

/// The same report with pointers that lead into the session.
fn led_into(mut report: Report, number: usize) -> Report {
    for result in &mut report.results {
        let is_about_bytes = matches!(result.rule.check, Check::Body(_));
        let Outcome::Fires(occurrences) = &mut result.outcome else { continue };
        for occurrence in occurrences {
            lead_into(occurrence, number, is_about_bytes);
        }
    }
    report
}

/// Only what stands in the document has a line; other pointers lead into the session already.
fn lead_into(occurrence: &mut Occurrence, number: usize, is_about_bytes: bool) {
    if is_about_bytes {
        occurrence.pointer = format!("/exchanges/{number}/response/raw");
    } else if occurrence.line.is_some() {
        occurrence.pointer = format!("/exchanges/{number}/response/body{}", occurrence.pointer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which rules of family common fire, and where.
    fn said(surface: Surface, exchanges: &str) -> Vec<String> {
        let session: Session =
            serde_json::from_str(&format!("{{\"exchanges\": [{exchanges}]}}")).expect("it is a session");
        let report = judge_session(&session, surface, None, &Given::default(), &Settings::default());
        let fired = report.fired().filter(|(rule, _)| rule.family() == "common");
        fired.flat_map(|(rule, found)| found.iter().map(|o| format!("{} {}", rule.id, o.pointer))).collect()
    }

    fn got(url: &str, response: &str) -> String {
        format!("{{\"request\": {{\"method\": \"GET\", \"url\": \"{url}\"}}, \"response\": {response}}}")
    }

    fn posted(response: &str) -> String {
        format!(
            "{{\"request\": {{\"method\": \"POST\", \"url\": \"https://a.example.com/mcp\"}}, \"response\": {response}}}"
        )
    }

    const CARD: &str = "https://a.example.com/.well-known/agent-card.json";

    #[test]
    fn a_page_is_told_from_json_by_its_bytes_and_then_by_its_label() {
        let html = r#""headers": {"content-type": "text/html"}"#;
        let rows = [
            (
                format!(r#"{{"status": 200, {html}, "raw": "<p>Tides"}}"#),
                vec!["common/html-body /exchanges/0/response/raw"],
            ),
            (
                format!(r#"{{"status": 200, {html}, "raw": "Tides"}}"#),
                vec!["common/html-body /exchanges/0/response/raw"],
            ),
            (format!(r#"{{"status": 200, {html}, "body": {{}}}}"#), vec![]),
            (format!(r#"{{"status": 200, {html}}}"#), vec!["common/invalid-json /exchanges/0/response/raw"]),
            (r#"{"status": 200, "raw": "Tides"}"#.to_owned(), vec!["common/invalid-json /exchanges/0/response/raw"]),
        ];
        for (response, expected) in rows {
            let mut said = said(Surface::AgentCard, &got(CARD, &response));
            said.retain(|what| !what.starts_with("common/content-type-mismatch"));
            assert_eq!(said, expected, "{response}");
        }
    }

    #[test]
    fn a_page_at_an_oauth_address_is_nothing() {
        let url = "https://a.example.com/.well-known/oauth-protected-resource";
        assert!(said(Surface::OauthMetadata, &got(url, r#"{"status": 200, "raw": " <html>"}"#)).is_empty());
    }

    #[test]
    fn answers_without_a_body_are_no_invalid_json() {
        for status in [202, 204, 301, 304, 401, 403, 404, 405, 429, 500, 503] {
            assert!(said(Surface::AgentCard, &got(CARD, &format!(r#"{{"status": {status}}}"#))).is_empty(), "{status}");
            let json = r#""headers": {"content-type": "application/json"}"#;
            assert!(said(Surface::Mcp, &posted(&format!(r#"{{"status": {status}, {json}}}"#))).is_empty(), "{status}");
        }
        let json = r#"{"status": 200, "headers": {"content-type": "application/json"}}"#;
        assert_eq!(said(Surface::Mcp, &posted(json)), ["common/invalid-json /exchanges/0/response/raw"]);
    }

    #[test]
    fn what_is_wrong_with_several_answers_is_one_finding() {
        let broken = posted(r#"{"status": 200, "headers": {"content-type": "application/json"}, "raw": "{]"}"#);
        let streamed =
            posted(r#"{"status": 200, "headers": {"content-type": "text/event-stream"}, "raw": "\ufeffdata: {]"}"#);
        assert_eq!(
            said(Surface::Mcp, &[broken.clone(), streamed, broken].join(",")),
            ["common/invalid-json /exchanges/0/response/raw", "common/invalid-json /exchanges/2/response/raw"]
        );
    }

    #[test]
    fn a_body_cut_at_its_limit_is_too_large() {
        let cut = r#"{"status": 200, "raw": "{\"name\": ", "cut": "limit"}"#;
        assert_eq!(said(Surface::AgentCard, &got(CARD, cut))[0], "common/too-large /exchanges/0/response/raw");
    }

    #[test]
    fn the_way_is_judged_also_when_no_document_came() {
        let inwards = got(CARD, r#"{"status": 302, "headers": {"location": "http://10.0.0.1/card"}}"#);
        let place = "/exchanges/0/response/headers/location";
        assert_eq!(
            said(Surface::AgentCard, &inwards),
            [format!("common/redirect-downgrade {place}"), format!("common/url-not-public {place}")]
        );
    }

    #[test]
    fn an_entry_from_the_future_is_told_by_the_date_of_the_answer() {
        let page = |date: &str| {
            let block =
                r#"{"status": "active", "publishedAt": "2026-05-02T10:00:00Z", "updatedAt": "2026-05-02T10:04:00Z"}"#;
            let entry = format!(
                r#"{{"server": {{"name": "a/b"}}, "_meta": {{"io.modelcontextprotocol.registry/official": {block}}}}}"#
            );
            let answer =
                format!(r#"{{"status": 200, "headers": {{"date": "{date}"}}, "body": {{"servers": [{entry}]}}}}"#);
            let session: Session = serde_json::from_str(&format!(
                r#"{{"exchanges": [{}]}}"#,
                got("https://r.example.com/v0.1/servers", &answer)
            ))
            .expect("it is a session");
            let report = judge_session(&session, Surface::Registry, None, &Given::default(), &Settings::default());
            report
                .fired()
                .filter(|(rule, _)| rule.id == "registry/timestamp-order")
                .map(|(_, found)| found.len())
                .sum::<usize>()
        };
        assert_eq!(page("Sat, 02 May 2026 10:00:00 GMT"), 0);
        assert_eq!(page("Sat, 02 May 2026 09:58:00 GMT"), 1);
    }

    #[test]
    fn six_redirects_are_too_many() {
        let hop = |n: usize| {
            let response = format!(r#"{{"status": 302, "headers": {{"location": "/{}"}}}}"#, n + 1);
            got(&format!("https://a.example.com/{n}"), &response)
        };
        let hops = |n: usize| said(Surface::Any, &(0..n).map(hop).collect::<Vec<_>>().join(","));
        assert!(hops(5).is_empty());
        assert_eq!(hops(6), ["common/redirect-limit /exchanges/5/response/headers/location"]);
    }

    #[test]
    fn the_card_of_record_is_the_one_for_the_version_asked() {
        let asked = |url: &str, headers: &str, response: &str| {
            let text = format!(
                r#"{{"request": {{"method": "GET", "url": "{url}", "headers": {{{headers}}}}}, "response": {response}}}"#
            );
            serde_json::from_str::<Exchange>(&text).expect("it is an exchange")
        };
        let card = r#"{"status": 200, "body": {"name": "x", "url": "https://x.example", "skills": []}}"#;
        let other = r#"{"status": 200, "body": {"error": "x"}}"#;
        let header = r#""a2a-version": "1.0""#;
        let old = "https://a.example.com/.well-known/agent.json";
        let rows: [(&[Exchange], Option<usize>); 7] = [
            (&[asked(CARD, header, card), asked(CARD, "", card)], Some(0)),
            (&[asked(CARD, header, other), asked(CARD, "", card)], Some(1)),
            (&[asked(CARD, header, other), asked(old, header, card)], Some(1)),
            (&[asked(CARD, header, card), asked(old, header, card)], Some(0)),
            (&[asked(CARD, header, other), asked(CARD, "", other)], Some(0)),
            (&[asked(CARD, header, card), asked("https://docs.example.com/tides", "", other)], Some(0)),
            (&[asked(CARD, header, r#"{"status": 404}"#), asked("https://docs.example.com/tides", "", other)], None),
        ];
        for (number, (exchanges, expected)) in rows.into_iter().enumerate() {
            let session = Session::from(exchanges.to_vec());
            assert_eq!(document_of_record(&session, Surface::AgentCard), expected, "row {number}");
        }
    }

    #[test]
    fn a_document_comes_from_where_its_context_says() {
        let given = |served_from: Option<&str>, url: Option<&str>| Given {
            served_from: served_from.map(str::to_owned),
            url: url.map(str::to_owned),
            ..Given::default()
        };
        assert_eq!(origin(&given(None, None), None), Origin::PublicHost);
        assert_eq!(origin(&given(None, None), Some("http://localhost/card")), Origin::PrivateHost);
        assert_eq!(origin(&given(None, Some("http://[::1]:80/")), Some("https://a.example.com")), Origin::PrivateHost);
        assert_eq!(origin(&given(Some("https://a.example.com"), Some("http://[::1]/")), None), Origin::PublicHost);
    }
}
