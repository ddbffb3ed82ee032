//! Redirects, hop by hop.

use http::header::{HeaderName, HeaderValue};
use http::{Method, header};
use plumbline_crawler::net::{Ask, BodyKind, Header, Way};
use plumbline_rules::session::WireError;

use super::bad::{answer, redirecting, say, saying, serving};
use super::{End, client, end, fetch};

#[tokio::test]
async fn every_hop_is_recorded() {
    let server = serving(|head, stream| {
        let bytes = match head.split(' ').nth(1) {
            Some("/a") => answer("302 Found", &[("location", "b")], b"moved"),
            Some("/b") => answer("308 Permanent Redirect", &[("location", "/c#part")], b""),
            _ => answer("200 OK", &[], b"{}"),
        };
        say(stream, bytes)
    })
    .await;
    let fetched = fetch(&server.url("/a")).await;
    let statuses: Vec<u16> = fetched.exchanges.iter().map(|e| e.response.as_ref().unwrap().status).collect();
    assert_eq!(statuses, [302, 308, 200]);
    assert_eq!(fetched.final_url, server.url("/c"));
    assert_eq!(fetched.body.as_deref(), Some(&b"{}"[..]));
}

#[tokio::test]
async fn a_circle_ends_where_it_closes() {
    let server = redirecting(|path| if path == "/1" { "/2".into() } else { "/1".into() }).await;
    let fetched = fetch(&server.url("/1")).await;
    assert_eq!(end(&fetched), End::Error(WireError::RedirectLimit));
    assert_eq!(server.request_lines(), ["GET /1 HTTP/1.1", "GET /2 HTTP/1.1"]);
    assert_eq!(fetched.final_url, server.url("/1"));
}

#[tokio::test]
async fn five_redirects_are_followed_and_no_sixth() {
    let server = redirecting(|path| format!("{path}x")).await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(end(&fetched), End::Error(WireError::RedirectLimit));
    assert_eq!(server.requests().len(), 6);
    assert_eq!(fetched.exchanges.len(), 7);
}

#[tokio::test]
async fn an_endless_body_of_a_redirect_is_not_read() {
    let target = saying(answer("200 OK", &[], b"{}")).await;
    let location = target.url("/");
    let server = serving(move |_, mut stream| {
        let head = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\n\r\n");
        async move {
            use tokio::io::AsyncWriteExt;
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&[b' '; 1024]).await.is_ok() {}
        }
    })
    .await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(end(&fetched), End::Answer(200, None));
    assert_eq!(fetched.exchanges[0].response.as_ref().unwrap().wire_bytes, 0);
}

#[tokio::test]
async fn secrets_go_to_their_origin_only() {
    let other = saying(answer("200 OK", &[], b"{}")).await;
    let location = other.url("/away");
    let server = redirecting(move |path| if path == "/start" { "/here".into() } else { location.clone() }).await;
    let ask = Ask {
        headers: vec![
            Header::secret(HeaderName::from_static("x-api-key"), HeaderValue::from_static("hunter2")),
            Header::new(header::AUTHORIZATION, HeaderValue::from_static("Bearer hunter2")),
            Header::new(HeaderName::from_static("a2a-version"), HeaderValue::from_static("1.0")),
        ],
        ..Ask::get(server.url("/start"), BodyKind::AgentCard)
    };
    let fetched = client().fetch(ask).await.unwrap();
    assert_eq!(end(&fetched), End::Answer(200, None));

    assert!(server.requests().iter().all(|head| head.matches("hunter2").count() == 2), "{:?}", server.requests());
    assert!(other.requests().iter().all(|head| !head.contains("hunter2")), "{:?}", other.requests());
    assert!(other.requests()[0].contains("a2a-version: 1.0"));

    let record = serde_json::to_string(&fetched.exchanges).unwrap();
    assert!(!record.contains("hunter2"), "{record}");
    assert_eq!(fetched.exchanges[0].request.headers["x-api-key"], "***");
    assert!(!fetched.exchanges[2].request.headers.contains_key("x-api-key"));
}

#[tokio::test]
async fn a_post_that_becomes_a_get_sends_no_body() {
    for (status, line, carries) in
        [("302 Found", "GET /2 HTTP/1.1", false), ("307 Temporary Redirect", "POST /2 HTTP/1.1", true)]
    {
        let server = serving(move |head, stream| {
            let bytes = match head.split(' ').nth(1) {
                Some("/1") => answer(status, &[("location", "/2")], b""),
                _ => answer("200 OK", &[], b"{}"),
            };
            say(stream, bytes)
        })
        .await;
        let ask =
            Ask { method: Method::POST, body: Some("{}".into()), ..Ask::get(server.url("/1"), BodyKind::McpAnswer) };
        client().fetch(ask).await.unwrap();
        assert_eq!(server.request_lines()[1], line);
        assert_eq!(server.requests()[1].contains("content-length: 2"), carries, "{status}");
    }
}

#[tokio::test]
async fn a_registry_is_followed_within_its_host_only() {
    let server = redirecting(|path| if path == "/v0.1" { "/v0.1/".into() } else { "http://localhost:1/".into() }).await;
    let ask = Ask { way: Way::Registry, ..Ask::get(server.url("/v0.1"), BodyKind::RegistryPage) };
    let fetched = client().fetch(ask).await.unwrap();
    assert_eq!(end(&fetched), End::Answer(302, None));
    assert_eq!(fetched.final_url, server.url("/v0.1/"));
}

#[tokio::test]
async fn a_location_that_is_no_address_ends_the_chain() {
    let server = redirecting(|_| "http://[".to_owned()).await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(end(&fetched), End::Error(WireError::BadUrl));
    assert_eq!(fetched.final_url, "http://[");
}

#[tokio::test]
async fn a_location_longer_than_its_record_is_not_followed_in_part() {
    let server = redirecting(|_| format!("/{}", "x".repeat(9_000))).await;
    assert_eq!(end(&fetch(&server.url("/")).await), End::Error(WireError::BadUrl));
    assert_eq!(server.requests().len(), 1);
}
