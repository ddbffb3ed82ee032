//! URLs, hosts, challenges, media types, instants, templates, versions.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::session::{Exchange, Response, Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::text;

fuzz_target!(|line: &str| {
    if let Some(url) = text::AbsoluteUrl::parse(line) {
        text::is_public_host(url.host);
        text::registrable_domain(url.host);
    }
    text::is_absolute_uri(line);
    text::MediaType::parse(line);
    text::Instant::parse(line);
    text::Instant::parse_http(line);
    text::variables(line).for_each(drop);
    text::with_samples(line);
    text::is_semver(line);
    text::is_version_range(line);
    let _ = text::challenge::challenges(line);
    text::is_placeholder(line);
    text::percent_decoded(line);
    challenged(line);
});

/// A refusal with this line as its challenge, as a conversation has it.
fn challenged(line: &str) {
    let text = r#"{"request": {"method": "POST", "url": "https://mcp.example.com/mcp"}, "response": {"status": 401}}"#;
    let mut exchange: Exchange = serde_json::from_str(text).expect("it is an exchange");
    let headers = [("www-authenticate".to_owned(), line.to_owned()), ("location".to_owned(), line.to_owned())];
    exchange.response = Some(Response { status: 401, headers: headers.into(), ..Response::default() });
    let session = Session::from(vec![exchange]);
    judge_session(&session, Surface::Mcp, None, &Given::default(), &Settings::default());
}
