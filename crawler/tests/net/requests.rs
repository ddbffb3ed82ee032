//! What we send.

use plumbline_crawler::net::{Ask, BodyKind, Client, NetSettings, Way};
use plumbline_rules::session::{Step, WireError};

use super::bad::{answer, say, saying, serving};
use super::{End, client, end, fetch, settings};

#[tokio::test]
async fn a_request_says_who_asks_and_what_it_understands() {
    let server = saying(answer("200 OK", &[], b"{}")).await;
    let client = Client::new(NetSettings { contact: "https://example.org/bot".into(), ..settings() }).unwrap();
    let ask = Ask {
        step: Some(Step::Card),
        accept: Some("application/json"),
        ..Ask::get(server.url("/"), BodyKind::AgentCard)
    };
    let fetched = client.fetch(ask).await.unwrap();

    let head = &server.requests()[0];
    assert!(head.contains("user-agent: Plumbline/"), "{head}");
    assert!(head.contains("(+https://example.org/bot)"), "{head}");
    assert!(head.contains("accept-encoding: gzip, br, zstd\r\n"), "{head}");
    assert!(head.contains("accept: application/json\r\n"), "{head}");
    assert!(!head.contains("cookie"), "{head}");

    let exchange = fetched.last();
    assert_eq!(exchange.step, Some(Step::Card));
    assert_eq!(exchange.request.headers["accept"], "application/json");
    assert!(exchange.at_ms > 1_700_000_000_000);
}

#[tokio::test]
async fn no_cookie_comes_back() {
    let server = saying(answer("200 OK", &[("set-cookie", "id=1")], b"{}")).await;
    let client = client();
    for _ in 0..2 {
        client.fetch(Ask::get(server.url("/"), BodyKind::AgentCard)).await.unwrap();
    }
    assert!(server.requests().iter().all(|head| !head.contains("cookie")));
}

#[tokio::test]
async fn an_unchanged_document_is_not_sent_again() {
    let server = serving(|head, stream| {
        let bytes = if head.contains("if-none-match: \"1\"")
            && head.contains("if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT")
        {
            answer("304 Not Modified", &[("etag", "\"1\"")], b"")
        } else {
            answer("200 OK", &[("etag", "\"1\""), ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")], b"{}")
        };
        say(stream, bytes)
    })
    .await;
    let first = fetch(&server.url("/card")).await;
    assert!(!first.is_not_modified());
    let validators = first.validators();

    let again = Ask { validators: validators.clone(), ..Ask::get(server.url("/card"), BodyKind::AgentCard) };
    let second = client().fetch(again).await.unwrap();
    assert!(second.is_not_modified());
    assert_eq!(second.body.as_deref(), Some(&b""[..]));

    let elsewhere = Ask { validators, ..Ask::get(server.url("/other"), BodyKind::AgentCard) };
    let third = client().fetch(elsewhere).await.unwrap();
    assert_eq!(end(&third), End::Answer(200, None));
}

#[tokio::test]
async fn validators_that_no_header_can_carry_are_left_out() {
    let server =
        saying(*b"HTTP/1.1 200 OK\r\nconnection: close\r\netag: \"\xfc\"\r\ncontent-length: 2\r\n\r\n{}").await;
    let validators = fetch(&server.url("/")).await.validators();
    assert!(validators.is_some());
    let again = Ask { validators, ..Ask::get(server.url("/"), BodyKind::AgentCard) };
    assert_eq!(end(&client().fetch(again).await.unwrap()), End::Answer(200, None));
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = serving(|_, mut stream| async move {
        use tokio::io::AsyncWriteExt;
        loop {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
            if super::bad::head_of(&mut stream).await.is_empty() {
                return;
            }
        }
    })
    .await;
    let client = client();
    for _ in 0..3 {
        let fetched = client.fetch(Ask::get(server.url("/"), BodyKind::AgentCard)).await.unwrap();
        assert_eq!(end(&fetched), End::Answer(200, None));
    }
    assert_eq!(server.requests().len(), 1, "one connection, as only its first request is noted");
}

#[tokio::test]
async fn a_webhook_goes_to_https_only() {
    let server = saying(answer("200 OK", &[], b"")).await;
    let ask = Ask { way: Way::Webhook, ..Ask::get(server.url("/"), BodyKind::WebhookAnswer) };
    let fetched = client().fetch(ask).await.unwrap();
    assert_eq!(end(&fetched), End::Error(WireError::BadUrl));
    assert!(server.requests().is_empty());
}
