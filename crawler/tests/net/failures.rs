//! Servers that do not get as far as a body.

use plumbline_crawler::net::{NetSettings, TimeLimits};
use plumbline_rules::session::WireError;
use tokio::net::TcpListener;

use super::bad::{self, saying};
use super::{End, end, fetch, fetch_with, settings};

fn hurried() -> NetSettings {
    NetSettings { time: TimeLimits { head_ms: 200, ..TimeLimits::default() }, ..settings() }
}

#[tokio::test]
async fn a_server_that_hangs_runs_out_of_time() {
    let server = bad::hanging().await;
    let fetched = fetch_with(hurried(), &server.url("/")).await;
    assert_eq!(end(&fetched), End::Error(WireError::Timeout));
    assert_eq!(fetched.body, None);
}

#[tokio::test]
async fn a_server_that_never_accepts_runs_out_of_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    assert_eq!(end(&fetch_with(hurried(), &url).await), End::Error(WireError::Timeout));
}

#[tokio::test]
async fn a_port_where_nobody_listens_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(end(&fetch(&url).await), End::Error(WireError::Refused));
}

#[tokio::test]
async fn a_broken_connection_is_a_reset() {
    let server = bad::resetting().await;
    assert_eq!(end(&fetch(&server.url("/")).await), End::Error(WireError::Reset));
}

#[tokio::test]
async fn an_end_before_the_answer_is_a_reset() {
    for said in ["", "HTTP/1.1 200 OK\r\ncontent-type: te"] {
        let server = saying(said).await;
        assert_eq!(end(&fetch(&server.url("/")).await), End::Error(WireError::Reset), "{said:?}");
    }
}

#[tokio::test]
async fn what_is_not_http_is_named_so() {
    for said in [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "220 mail.example.com ESMTP\r\n",
        "<html>hello</html>\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "\0\0\0\0\0\0\0\0",
    ] {
        let server = saying(said).await;
        assert_eq!(end(&fetch(&server.url("/")).await), End::Error(WireError::Protocol), "{said:?}");
    }
}

#[tokio::test]
async fn headers_without_end_are_not_read_without_end() {
    let server = bad::endless_headers().await;
    assert_eq!(end(&fetch(&server.url("/")).await), End::Error(WireError::Protocol));
}

#[tokio::test]
async fn long_header_values_are_cut_in_the_record() {
    let server = saying(bad::answer("200 OK", &[("x-long", &"x".repeat(100_000))], b"{}")).await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(fetched.response().unwrap().headers["x-long"].len(), 8 * 1024);
}

#[tokio::test]
async fn what_is_no_address_is_recorded_and_not_called() {
    for url in [
        "",
        "agent.example.com",
        "https://",
        "https://[::1",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://user:secret@127.0.0.1/",
        "https://{tenant}.example.com/mcp",
    ] {
        let fetched = fetch(url).await;
        assert_eq!(end(&fetched), End::Error(WireError::BadUrl), "{url}");
        assert_eq!(fetched.exchanges.len(), 1, "{url}");
        assert!(!fetched.final_url.contains("secret"), "{}", fetched.final_url);
    }
}

#[tokio::test]
async fn an_address_of_a_megabyte_is_recorded_in_part() {
    let fetched = fetch(&format!("https://example.com/{}", "x".repeat(1_000_000))).await;
    assert_eq!(end(&fetched), End::Error(WireError::BadUrl));
    assert!(fetched.final_url.len() <= 8 * 1024);
}
