//! robots.txt and turns, seen from the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plumbline_crawler::net::{Ask, BodyKind, Client, Fetched, NetSettings, Way};
use plumbline_rules::session::{Step, WireError};
use url::Url;

use super::bad::{Server, answer, redirecting, say, serving};
use super::{End, end, settings};

fn with_robots() -> NetSettings {
    NetSettings { robots: true, ..settings() }
}

/// Answers robots.txt with this, everything else with `{}`.
async fn wishing(status: &'static str, robots: &'static str) -> Server {
    serving(move |head, stream| {
        let bytes = match head.split(' ').nth(1) {
            Some("/robots.txt") => answer(status, &[], robots.as_bytes()),
            _ => answer("200 OK", &[], b"{}"),
        };
        say(stream, bytes)
    })
    .await
}

async fn crawl(client: &Client, url: String) -> Fetched {
    client.fetch(Ask::get(url, BodyKind::OpenApi)).await.unwrap()
}

#[tokio::test]
async fn robots_txt_is_asked_once_and_kept_to() {
    let server = wishing("200 OK", "User-agent: *\nDisallow: /private\n").await;
    let client = Client::new(with_robots()).unwrap();
    let first = crawl(&client, server.url("/openapi.json")).await;
    assert_eq!(end(&first), End::Answer(200, None));
    assert_eq!(first.exchanges.iter().map(|e| e.step).collect::<Vec<_>>(), [Some(Step::Robots), None]);

    let second = crawl(&client, server.url("/private/openapi.json")).await;
    assert_eq!(end(&second), End::Error(WireError::Robots));
    assert_eq!(server.request_lines(), ["GET /robots.txt HTTP/1.1", "GET /openapi.json HTTP/1.1"]);
}

#[tokio::test]
async fn well_known_places_and_listed_endpoints_are_fetched_without_asking() {
    let server = wishing("200 OK", "User-agent: *\nDisallow: /\n").await;
    let client = Client::new(with_robots()).unwrap();
    let card = crawl(&client, server.url("/.well-known/agent-card.json")).await;
    let listed =
        client.fetch(Ask { way: Way::Listed, ..Ask::get(server.url("/mcp"), BodyKind::McpAnswer) }).await.unwrap();
    assert_eq!((end(&card), end(&listed)), (End::Answer(200, None), End::Answer(200, None)));
    assert!(server.request_lines().iter().all(|line| !line.contains("robots")));
}

#[tokio::test]
async fn a_listed_endpoint_may_move_within_its_origin() {
    let server = serving(|head, stream| {
        let bytes = match head.split(' ').nth(1) {
            Some("/robots.txt") => answer("200 OK", &[], b"User-agent: *\nDisallow: /\n"),
            Some("/mcp") => answer("307 Temporary Redirect", &[("location", "/mcp/")], b""),
            _ => answer("200 OK", &[], b"{}"),
        };
        say(stream, bytes)
    })
    .await;
    let client = Client::new(with_robots()).unwrap();
    let ask = Ask { way: Way::Listed, ..Ask::get(server.url("/mcp"), BodyKind::McpAnswer) };
    assert_eq!(end(&client.fetch(ask).await.unwrap()), End::Answer(200, None));
    assert_eq!(end(&crawl(&client, server.url("/mcp")).await), End::Error(WireError::Robots));
}

#[tokio::test]
async fn a_host_that_cannot_say_is_left_alone_and_one_without_wishes_is_not() {
    for (status, expected) in [
        ("503 Service Unavailable", End::Error(WireError::Robots)),
        ("404 Not Found", End::Answer(200, None)),
        ("403 Forbidden", End::Answer(200, None)),
    ] {
        let server = wishing(status, "User-agent: *\nDisallow: /\n").await;
        let client = Client::new(with_robots()).unwrap();
        assert_eq!(end(&crawl(&client, server.url("/openapi.json")).await), expected, "{status}");
    }
}

#[tokio::test]
async fn a_host_out_of_reach_is_out_of_reach_and_not_forbidden() {
    let server = wishing("200 OK", "").await;
    let url = server.url("/openapi.json");
    drop(server);
    tokio::task::yield_now().await;
    let client = Client::new(with_robots()).unwrap();
    assert_eq!(end(&crawl(&client, url).await), End::Error(WireError::Refused));
}

#[tokio::test]
async fn robots_txt_files_that_lead_to_each_other_end_somewhere() {
    let other = redirecting(|path| format!("http://127.0.0.1:{}/x", path.trim_start_matches('/'))).await;
    let port = other.address.port();
    let server = serving(move |head, stream| {
        let from = head.split("host: 127.0.0.1:").nth(1).and_then(|rest| rest.split('\r').next()).unwrap_or_default();
        let bytes = match head.split(' ').nth(1) {
            Some("/openapi.json") => answer("200 OK", &[], b"{}"),
            _ => answer("302 Found", &[("location", &format!("http://127.0.0.1:{port}/{from}"))], b""),
        };
        say(stream, bytes)
    })
    .await;
    let client = Client::new(with_robots()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), crawl(&client, server.url("/openapi.json"))).await;
    assert_eq!(ended.map(|fetched| end(&fetched)), Ok(End::Answer(200, None)));
}

#[tokio::test]
async fn requests_to_one_host_follow_one_another() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (open, seen) = (now.clone(), most.clone());
    let server = serving(move |_, stream| {
        let (open, seen) = (open.clone(), seen.clone());
        async move {
            seen.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            open.fetch_sub(1, Ordering::SeqCst);
            say(stream, answer("200 OK", &[], b"{}")).await;
        }
    })
    .await;
    let client = Client::new(settings()).unwrap();
    let asks = (0..8).map(|n| crawl(&client, server.url(&format!("/{n}"))));
    futures_util::future::join_all(asks).await;
    assert_eq!(server.requests().len(), 8);
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_host_that_throttles_is_left_alone() {
    let server =
        serving(|_, stream| say(stream, answer("429 Too Many Requests", &[("retry-after", "100")], b""))).await;
    let client = Client::new(settings()).unwrap();
    let url = Url::parse(&server.url("/")).unwrap();
    assert_eq!(client.politeness().wait_for(&url), Duration::ZERO);
    assert_eq!(end(&crawl(&client, server.url("/")).await), End::Answer(429, None));
    let wait = client.politeness().wait_for(&url);
    assert!(wait > Duration::from_secs(90) && wait <= Duration::from_secs(100), "{wait:?}");
}
