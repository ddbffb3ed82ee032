//! From what was said on the wire to how far we came (`plumbline_rules::reach`).

use plumbline_rules::reach::{Gate, Outcome, Skip, Unreachable};
use plumbline_rules::session::{Cut, Exchange, Response, Step, WireError};
use serde::Deserialize;

use super::guard;

/// What kind of thing was asked for, which decides what an error status means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A document at an address: any 4xx says that it is not there.
    Document,
    /// An endpoint that is spoken to: only "not found" and "gone" say so, and a JSON-RPC answer is an answer whatever
    /// its status.
    Endpoint,
}

/// The outcome of one observation: the best of its steps, each step judged by its last exchange.
///
/// robots.txt is not the surface, and the legacy card path counts only where it found something: many servers answer
/// unknown paths with nonsense, and the current path has already said what is the matter.
#[must_use]
pub fn outcome(exchanges: &[Exchange], asked: Asked) -> Outcome {
    let mut main = None;
    let mut legacy = None;
    for end in ends_of_steps(exchanges) {
        let found = of_end(&end, asked);
        let side = if end.last.step == Some(Step::CardLegacy) { &mut legacy } else { &mut main };
        *side = Some(side.map_or(found, |before| better(before, found)));
    }
    match (main, legacy) {
        (Some(main), Some(legacy)) if legacy.is_up() => better(main, legacy),
        (Some(main), _) => main,
        (None, Some(legacy)) => legacy,
        (None, None) => Outcome::CrawlerFault,
    }
}

/// How a step ended.
struct End<'a> {
    last: &'a Exchange,
    /// The status of the redirect that led to the last exchange.
    redirect: Option<u16>,
}

/// The end of each step, in the order in which the steps began.
fn ends_of_steps(exchanges: &[Exchange]) -> Vec<End<'_>> {
    let mut ends: Vec<End<'_>> = Vec::new();
    for last in exchanges.iter().filter(|exchange| exchange.step != Some(Step::Robots)) {
        match ends.iter_mut().find(|end| end.last.step == last.step) {
            Some(end) => *end = End { last, redirect: redirect_status(end.last) },
            None => ends.push(End { last, redirect: None }),
        }
    }
    ends
}

fn redirect_status(exchange: &Exchange) -> Option<u16> {
    let response = exchange.response.as_ref()?;
    let leads_on = (300..400).contains(&response.status) && header(response, "location").is_some();
    leads_on.then_some(response.status)
}

/// The one of two that tells more; the first when they tell the same.
fn better(first: Outcome, second: Outcome) -> Outcome {
    let rank = |outcome: Outcome| match outcome {
        Outcome::Ok => 0,
        Outcome::Gated(_) => 1,
        Outcome::Throttled => 2,
        Outcome::Unreachable(_) => 3,
        Outcome::Absent(_) => 4,
        Outcome::CrawlerFault => 5,
        Outcome::Skipped(_) => 6,
    };
    if rank(second) < rank(first) { second } else { first }
}

fn of_end(end: &End<'_>, asked: Asked) -> Outcome {
    match (&end.last.response, end.last.error) {
        // The server answered, and where its answer leads is a finding (`common/url-not-public`).
        (_, Some(WireError::AddressGuard))
            if end.redirect.is_some() && !guard::is_public_by_text(&end.last.request.url) =>
        {
            Outcome::Ok
        }
        (_, Some(WireError::BadUrl)) if end.redirect.is_some() => Outcome::Absent(end.redirect),
        (_, Some(error)) => of_error(error),
        (Some(response), None) => of_response(response, asked),
        (None, None) => Outcome::CrawlerFault,
    }
}

fn of_error(error: WireError) -> Outcome {
    match error {
        WireError::Dns => Outcome::Unreachable(Unreachable::DnsServfail),
        WireError::DnsNxdomain => Outcome::Absent(None),
        WireError::DnsTimeout => Outcome::Unreachable(Unreachable::DnsTimeout),
        WireError::DnsUnavailable | WireError::NoRoute => Outcome::CrawlerFault,
        WireError::Refused => Outcome::Unreachable(Unreachable::Refused),
        WireError::ConnectTimeout => Outcome::Unreachable(Unreachable::ConnectTimeout),
        WireError::Timeout => Outcome::Unreachable(Unreachable::ReadTimeout),
        WireError::Reset => Outcome::Unreachable(Unreachable::Reset),
        WireError::Tls => Outcome::Unreachable(Unreachable::TlsHandshake),
        WireError::TlsCertificateExpired => Outcome::Unreachable(Unreachable::TlsExpired),
        WireError::TlsCertificateName => Outcome::Unreachable(Unreachable::TlsName),
        WireError::TlsCertificateUnknownIssuer => Outcome::Unreachable(Unreachable::TlsIssuer),
        WireError::AddressGuard => Outcome::Skipped(Skip::AddressGuard),
        WireError::BadUrl => Outcome::Skipped(Skip::BadUrl),
        WireError::Robots => Outcome::Skipped(Skip::Robots),
        WireError::OptOut => Outcome::Skipped(Skip::OptOut),
        // The server answered and the answer is a finding, as with a body that is too large.
        WireError::RedirectLimit => Outcome::Ok,
        WireError::Protocol => Outcome::Unreachable(Unreachable::NotHttp),
    }
}

fn of_response(response: &Response, asked: Asked) -> Outcome {
    if response.is_bot_wall() {
        return Outcome::Throttled;
    }
    match response.status {
        429 => Outcome::Throttled,
        503 if header(response, "retry-after").is_some() => Outcome::Throttled,
        500.. => Outcome::Unreachable(Unreachable::Http5xx),
        _ if asked == Asked::Endpoint && response.cut.is_none() && is_json_rpc(response) => Outcome::Ok,
        401 => Outcome::Gated(Gate::Auth),
        402 => Outcome::Gated(Gate::Payment),
        403 if has_challenge(response) => Outcome::Gated(Gate::Auth),
        404 | 410 => Outcome::Absent(None),
        status @ 400.. if asked == Asked::Document => Outcome::Absent(Some(status)),
        // A redirect that was not followed is a finding about an answer; one that leads nowhere is no document.
        status @ 300..=399 if status != 304 && header(response, "location").is_none() => Outcome::Absent(Some(status)),
        _ => whole(response.cut),
    }
}

fn whole(cut: Option<Cut>) -> Outcome {
    match cut {
        None | Some(Cut::Limit | Cut::Record) => Outcome::Ok,
        Some(Cut::Truncated) => Outcome::Unreachable(Unreachable::Truncated),
        Some(Cut::Timeout) => Outcome::Unreachable(Unreachable::ReadTimeout),
        Some(Cut::BadEncoding) => Outcome::Unreachable(Unreachable::BadEncoding),
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers.get(name).map(String::as_str)
}

/// `WWW-Authenticate` begins with the name of a scheme.
fn has_challenge(response: &Response) -> bool {
    let Some(value) = header(response, "www-authenticate") else { return false };
    let scheme = value.trim_start().split([' ', ',']).next().unwrap_or_default();
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !scheme.is_empty() && scheme.chars().all(is_token)
}

fn is_json_rpc(response: &Response) -> bool {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        jsonrpc: &'a str,
    }
    let Some(raw) = &response.raw else { return false };
    serde_json::from_str::<Envelope>(raw).is_ok_and(|envelope| envelope.jsonrpc == "2.0")
}

#[cfg(test)]
mod tests {

    use plumbline_rules::session::Request;

    use super::*;

    fn exchange(step: Step, response: Option<Response>, error: Option<WireError>) -> Exchange {
        let request = Request { method: "GET".into(), url: "https://a.dev/card".into(), ..Request::default() };
        Exchange { step: Some(step), request, response, error, ..Exchange::default() }
    }

    fn answer(step: Step, status: u16, headers: &[(&str, &str)]) -> Exchange {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        exchange(step, Some(Response { status, headers, ..Response::default() }), None)
    }

    fn failure(step: Step, error: WireError) -> Exchange {
        exchange(step, None, Some(error))
    }

    fn text_of(exchanges: &[Exchange], asked: Asked) -> String {
        outcome(exchanges, asked).to_string()
    }

    #[test]
    fn a_status_on_a_document_means() {
        type Row = (u16, &'static [(&'static str, &'static str)], &'static str);
        const CHALLENGE: &[(&str, &str)] = &[("www-authenticate", "Bearer realm=\"x\"")];
        const ROWS: &[Row] = &[
            (200, &[], "ok"),
            (204, &[], "ok"),
            (304, &[], "ok"),
            (302, &[("location", "http://a.dev/")], "ok"),
            (302, &[], "absent:302"),
            (300, &[], "absent:300"),
            (400, &[], "absent:400"),
            (401, &[], "gated:auth"),
            (401, CHALLENGE, "gated:auth"),
            (402, &[], "gated:payment"),
            (403, &[], "absent:403"),
            (403, CHALLENGE, "gated:auth"),
            (403, &[("www-authenticate", "=?")], "absent:403"),
            (403, &[("cf-mitigated", "challenge")], "throttled"),
            (404, &[], "absent"),
            (405, &[], "absent:405"),
            (410, &[], "absent"),
            (429, &[], "throttled"),
            (500, &[], "unreachable:http_5xx"),
            (503, &[], "unreachable:http_5xx"),
            (503, &[("retry-after", "5")], "throttled"),
            (999, &[], "unreachable:http_5xx"),
        ];
        for (status, headers, expected) in ROWS {
            assert_eq!(text_of(&[answer(Step::Document, *status, headers)], Asked::Document), *expected, "{status}");
        }
    }

    #[test]
    fn an_endpoint_may_answer_with_an_error_status() {
        let json = |status, raw: &str| {
            let response = Response { status, raw: Some(raw.into()), ..Response::default() };
            exchange(Step::Document, Some(response), None)
        };
        let error = r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no"}}"#;
        for (status, raw, expected) in [
            (400, error, "ok"),
            (401, error, "ok"),
            (404, error, "ok"),
            (404, "{}", "absent"),
            (404, "not found", "absent"),
            (405, "", "ok"),
            (401, "", "gated:auth"),
            (500, error, "unreachable:http_5xx"),
        ] {
            assert_eq!(text_of(&[json(status, raw)], Asked::Endpoint), expected, "{status} {raw}");
        }
    }

    #[test]
    fn a_failure_on_the_wire_means() {
        for (error, expected) in [
            (WireError::Dns, "unreachable:dns_servfail"),
            (WireError::DnsNxdomain, "absent"),
            (WireError::DnsTimeout, "unreachable:dns_timeout"),
            (WireError::DnsUnavailable, "crawler_fault"),
            (WireError::NoRoute, "crawler_fault"),
            (WireError::Refused, "unreachable:refused"),
            (WireError::ConnectTimeout, "unreachable:connect_timeout"),
            (WireError::Timeout, "unreachable:read_timeout"),
            (WireError::Reset, "unreachable:reset"),
            (WireError::Tls, "unreachable:tls_handshake"),
            (WireError::TlsCertificateExpired, "unreachable:tls_expired"),
            (WireError::TlsCertificateName, "unreachable:tls_name"),
            (WireError::TlsCertificateUnknownIssuer, "unreachable:tls_issuer"),
            (WireError::AddressGuard, "skipped:address_guard"),
            (WireError::BadUrl, "skipped:bad_url"),
            (WireError::Robots, "skipped:robots"),
            (WireError::RedirectLimit, "ok"),
            (WireError::Protocol, "unreachable:not_http"),
        ] {
            assert_eq!(text_of(&[failure(Step::Document, error)], Asked::Document), expected);
        }
    }

    #[test]
    fn a_cut_body_means() {
        for (cut, expected) in [
            (Cut::Limit, "ok"),
            (Cut::Truncated, "unreachable:truncated"),
            (Cut::Timeout, "unreachable:read_timeout"),
            (Cut::BadEncoding, "unreachable:bad_encoding"),
        ] {
            let response = Response { status: 200, cut: Some(cut), ..Response::default() };
            assert_eq!(text_of(&[exchange(Step::Card, Some(response), None)], Asked::Document), expected);
        }
    }

    #[test]
    fn the_best_step_counts_and_of_each_step_the_last_exchange() {
        let refused = failure(Step::Card, WireError::Refused);
        let plain = answer(Step::CardPlain, 200, &[]);
        assert_eq!(text_of(&[refused.clone(), plain.clone()], Asked::Document), "ok");
        let second_try = answer(Step::Card, 404, &[]);
        assert_eq!(text_of(&[refused.clone(), second_try], Asked::Document), "absent");
        assert_eq!(text_of(&[plain, refused], Asked::Document), "ok");
    }

    #[test]
    fn the_legacy_path_counts_only_when_it_found_something() {
        let absent = answer(Step::Card, 404, &[]);
        let on_legacy = |status| answer(Step::CardLegacy, status, &[]);
        assert_eq!(text_of(&[absent.clone(), on_legacy(200)], Asked::Document), "ok");
        assert_eq!(text_of(&[absent.clone(), on_legacy(401)], Asked::Document), "gated:auth");
        assert_eq!(text_of(&[absent.clone(), on_legacy(500)], Asked::Document), "absent");
        assert_eq!(text_of(&[absent, failure(Step::CardLegacy, WireError::Timeout)], Asked::Document), "absent");
    }

    #[test]
    fn robots_txt_is_not_the_surface() {
        let robots = failure(Step::Robots, WireError::Timeout);
        assert_eq!(text_of(&[robots.clone(), answer(Step::Document, 200, &[])], Asked::Document), "ok");
        assert_eq!(text_of(&[robots], Asked::Document), "crawler_fault");
    }

    #[test]
    fn a_redirect_into_a_private_network_is_an_answer() {
        let redirect = answer(Step::Document, 302, &[("location", "http://10.0.0.1/")]);
        let mut refused = failure(Step::Document, WireError::AddressGuard);
        refused.request.url = "http://10.0.0.1/".into();
        assert_eq!(text_of(&[redirect.clone(), refused.clone()], Asked::Document), "ok");
        assert_eq!(text_of(&[refused.clone()], Asked::Document), "skipped:address_guard");
        refused.request.url = "http://looks-public.dev/".into();
        assert_eq!(text_of(&[redirect.clone(), refused], Asked::Document), "skipped:address_guard");
        assert_eq!(text_of(&[redirect, failure(Step::Document, WireError::BadUrl)], Asked::Document), "absent:302");
    }
}
