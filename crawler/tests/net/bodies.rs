//! Bodies that are too long, too slow, cut or coded.

use std::time::Duration;

use plumbline_crawler::net::{NetSettings, TimeLimits};
use plumbline_rules::session::Cut;

use super::bad::{self, answer, encoded, saying};
use super::{End, end, fetch, fetch_with, settings};

/// The limit of an agent card.
const LIMIT: usize = 256 * 1024;

fn hurried() -> NetSettings {
    NetSettings { time: TimeLimits { idle_ms: 100, total_ms: 300, ..TimeLimits::default() }, ..settings() }
}

#[tokio::test]
async fn an_endless_body_is_read_to_the_limit() {
    let server = bad::endless_body().await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(end(&fetched), End::Answer(200, Some(Cut::Limit)));
    assert_eq!(fetched.body.as_deref().map(<[u8]>::len), Some(LIMIT));
}

#[tokio::test]
async fn exactly_the_limit_is_whole_and_one_byte_more_is_not() {
    for (length, cut) in [(LIMIT, None), (LIMIT + 1, Some(Cut::Limit))] {
        let server = saying(answer("200 OK", &[], &vec![b' '; length])).await;
        let fetched = fetch(&server.url("/")).await;
        assert_eq!(end(&fetched), End::Answer(200, cut), "{length}");
        assert_eq!(fetched.body.as_deref().map(<[u8]>::len), Some(LIMIT));
    }
}

#[tokio::test]
async fn a_dripping_body_ends_when_the_time_is_up() {
    let server = bad::dripping().await;
    let fetched = fetch_with(hurried(), &server.url("/")).await;
    assert_eq!(end(&fetched), End::Answer(200, Some(Cut::Timeout)));
    assert!(fetched.last().took_ms >= 300, "{}", fetched.last().took_ms);
    assert!(fetched.last().took_ms < 3_000, "{}", fetched.last().took_ms);
}

#[tokio::test]
async fn a_body_that_stops_coming_is_cut_and_what_came_is_kept() {
    let server = bad::falling_asleep().await;
    let fetched = fetch_with(hurried(), &server.url("/")).await;
    assert_eq!(end(&fetched), End::Answer(200, Some(Cut::Timeout)));
    assert_eq!(fetched.body.as_deref(), Some(&b"12345"[..]));
}

#[tokio::test]
async fn a_body_shorter_than_promised_is_truncated() {
    let server = saying(*b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"name\"").await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(end(&fetched), End::Answer(200, Some(Cut::Truncated)));
    assert_eq!(fetched.body.as_deref(), Some(&b"{\"name\""[..]));
    assert_eq!(fetched.response().unwrap().wire_bytes, 7);
}

#[tokio::test]
async fn a_body_longer_than_promised_ends_where_it_was_promised() {
    let server = saying(*b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}garbage").await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(end(&fetched), End::Answer(200, None));
    assert_eq!(fetched.body.as_deref(), Some(&b"{}"[..]));
}

#[tokio::test]
async fn chunks_that_break_off_or_make_no_sense_are_truncated() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for body in [
        "5\r\nhello\r\n5\r\nwo",
        "5\r\nhello\r\n",
        "5\r\nhello\r\nzz\r\n",
        "5\r\nhelloXX",
        "fffffffffffffffff\r\nhello",
    ] {
        let server = saying(format!("{head}{body}")).await;
        let fetched = fetch(&server.url("/")).await;
        assert_eq!(end(&fetched), End::Answer(200, Some(Cut::Truncated)), "{body:?}");
    }
}

#[tokio::test]
async fn every_coding_is_undone_and_counted_on_both_sides() {
    let card = format!("{{\"name\": \"{}\"}}", "x".repeat(50_000));
    for (coding, name) in [
        ("gzip", "gzip"),
        ("gzip", "x-gzip"),
        ("br", "BR"),
        ("zstd", "zstd"),
        ("deflate", "deflate"),
        ("raw-deflate", "deflate"),
    ] {
        let coded = encoded(coding, card.as_bytes()).await;
        let server = saying(answer("200 OK", &[("content-encoding", name)], &coded)).await;
        let fetched = fetch(&server.url("/")).await;
        assert_eq!(end(&fetched), End::Answer(200, None), "{coding}");
        assert_eq!(fetched.body.as_deref(), Some(card.as_bytes()), "{coding}");
        let response = fetched.response().unwrap();
        assert_eq!(response.raw.as_deref(), Some(card.as_str()), "{coding}");
        assert_eq!(response.wire_bytes, coded.len() as u64, "{coding}");
        assert!(response.wire_bytes < 1_000, "{coding}");
    }
}

#[tokio::test]
async fn codings_over_one_another_are_undone_up_to_a_bound() {
    let mut coded = encoded("br", b"{}").await;
    coded = encoded("gzip", &coded).await;
    let server = saying(answer("200 OK", &[("content-encoding", "br"), ("content-encoding", "gzip")], &coded)).await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(fetched.body.as_deref(), Some(&b"{}"[..]));

    let server = saying(answer("200 OK", &[("content-encoding", "gzip, gzip, gzip, gzip")], b"{}")).await;
    assert_eq!(end(&fetch(&server.url("/")).await), End::Answer(200, Some(Cut::BadEncoding)));
}

#[tokio::test]
async fn a_bomb_stops_at_the_limit() {
    let zeros = vec![0; 2 * 1024 * 1024];
    for coding in ["gzip", "br", "zstd", "deflate"] {
        let bomb = encoded(coding, &zeros).await;
        let server = saying(answer("200 OK", &[("content-encoding", coding)], &bomb)).await;
        let fetched = fetch(&server.url("/")).await;
        assert_eq!(end(&fetched), End::Answer(200, Some(Cut::Limit)), "{coding}");
        assert_eq!(fetched.body.as_deref().map(<[u8]>::len), Some(LIMIT), "{coding}");
    }
}

#[tokio::test]
async fn a_bomb_inside_a_bomb_stops_at_the_limit() {
    let inner = encoded("gzip", &vec![0; 4 * 1024 * 1024]).await;
    let bomb = encoded("gzip", &inner).await;
    let server = saying(answer("200 OK", &[("content-encoding", "gzip, gzip")], &bomb)).await;
    assert_eq!(end(&fetch(&server.url("/")).await), End::Answer(200, Some(Cut::Limit)));
}

#[tokio::test]
async fn padding_that_never_becomes_a_document_stops_at_the_raw_limit() {
    // A gzip member without content is 20 bytes on the wire and none decoded.
    let nothing = encoded("gzip", b"").await.repeat(40_000);
    let server = saying(answer("200 OK", &[("content-encoding", "gzip")], &nothing)).await;
    let fetched = fetch(&server.url("/")).await;
    assert_eq!(end(&fetched), End::Answer(200, Some(Cut::Limit)));
    assert_eq!(fetched.body.as_deref(), Some(&b""[..]));
}

#[tokio::test]
async fn a_zstd_body_cannot_ask_for_a_large_window() {
    // Magic number, a frame header that names a window of 128 MiB, and one empty last block.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00];
    let server = saying(answer("200 OK", &[("content-encoding", "zstd")], &frame)).await;
    assert_eq!(end(&fetch(&server.url("/")).await), End::Answer(200, Some(Cut::BadEncoding)));
}

#[tokio::test]
async fn a_coded_body_that_is_cut_is_truncated() {
    let card: Vec<u8> = (0..20_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for coding in ["gzip", "br", "zstd", "deflate"] {
        let coded = encoded(coding, &card).await;
        let half = &coded[..coded.len() / 2];
        let server = saying(answer("200 OK", &[("content-encoding", coding)], half)).await;
        assert_eq!(end(&fetch(&server.url("/")).await), End::Answer(200, Some(Cut::Truncated)), "{coding}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_in_its_coding_cannot_be_undone() {
    for coding in ["gzip", "br", "zstd", "deflate", "compress", "snappy"] {
        let server =
            saying(answer("200 OK", &[("content-encoding", coding)], b"{\"name\": \"plain text, sent as if coded\"}"))
                .await;
        assert_eq!(end(&fetch(&server.url("/")).await), End::Answer(200, Some(Cut::BadEncoding)), "{coding}");
    }
}

#[tokio::test]
async fn an_empty_body_is_whole_whatever_coding_it_claims() {
    for coding in ["gzip", "br", "zstd", "deflate", "identity", ""] {
        let server = saying(answer("200 OK", &[("content-encoding", coding)], b"")).await;
        assert_eq!(end(&fetch(&server.url("/")).await), End::Answer(200, None), "{coding}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_text_is_kept_as_bytes() {
    let server = saying(answer("200 OK", &[], b"\xff\x00\x01")).await;
    let fetched = fetch(&server.url("/")).await;
    let response = fetched.response().unwrap();
    assert_eq!((response.raw.as_deref(), response.raw_base64.as_deref()), (None, Some("/wAB")));
}

#[tokio::test]
async fn waiting_for_a_slow_body_does_not_outlast_its_limits() {
    let server = bad::falling_asleep().await;
    let in_time = tokio::time::timeout(Duration::from_secs(5), fetch_with(hurried(), &server.url("/"))).await;
    assert!(in_time.is_ok());
}
