//! TLS, with certificates that are good and bad.

use h2::Reason;
use plumbline_crawler::net::NetSettings;
use plumbline_rules::session::WireError;

use super::bad::tls::{self, Authority, Http2};
use super::bad::{answer, say, serving_connections};
use super::{End, end, fetch_with, settings};

fn trusting(authority: &Authority) -> NetSettings {
    NetSettings { ca_file: authority.file().display().to_string(), ..settings() }
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_is_good() {
    let authority = Authority::named("ours");
    let server = authority.serving("localhost", |_| {}).await;
    let url = format!("https://localhost:{}/", server.address.port());
    let fetched = fetch_with(trusting(&authority), &url).await;
    assert_eq!(end(&fetched), End::Answer(200, None));
    let peer = fetched.last().peer.clone().expect("somebody answered");
    assert!(peer.address.ends_with(&format!(":{}", server.address.port())), "{peer:?}");
    assert_eq!(peer.tls.as_deref(), Some("TLSv1.3"));
    let certificate = peer.certificate.expect("it showed one");
    assert!(
        certificate.issuer.contains("ours") && certificate.not_before_s < certificate.not_after_s,
        "{certificate:?}"
    );
}

#[tokio::test]
async fn bad_certificates_are_told_apart() {
    let authority = Authority::named("ours");
    let stranger = Authority::named("a stranger");
    let impostor = Authority::named("ours");
    let rows = [
        (authority.serving("localhost", tls::expired).await, WireError::TlsCertificateExpired),
        (authority.serving("localhost", tls::from_the_future).await, WireError::TlsCertificateExpired),
        (authority.serving("other.example", |_| {}).await, WireError::TlsCertificateName),
        (stranger.serving("localhost", |_| {}).await, WireError::TlsCertificateUnknownIssuer),
        (impostor.serving("localhost", |_| {}).await, WireError::TlsCertificateUnknownIssuer),
        (tls::self_signed("localhost", false).await, WireError::TlsCertificateUnknownIssuer),
        (tls::self_signed("localhost", true).await, WireError::TlsCertificateUnknownIssuer),
    ];
    for (nth, (server, expected)) in rows.into_iter().enumerate() {
        let url = format!("https://localhost:{}/", server.address.port());
        assert_eq!(end(&fetch_with(trusting(&authority), &url).await), End::Error(expected), "row {nth}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_fails_the_handshake() {
    let authority = Authority::named("ours");
    let plain = serving_connections(|stream| say(stream, answer("400 Bad Request", &[], b""))).await;
    let silent = serving_connections(|stream| async move { drop(stream) }).await;
    for server in [&plain, &silent] {
        let url = format!("https://localhost:{}/", server.address.port());
        let fetched = fetch_with(trusting(&authority), &url).await;
        assert!(matches!(end(&fetched), End::Error(WireError::Tls | WireError::Reset)), "{:?}", end(&fetched));
    }
}

#[tokio::test]
async fn http2_is_spoken_where_it_is_offered() {
    let authority = Authority::named("ours");
    for (does, expected) in [
        (Http2::Answers, End::Answer(200, None)),
        (Http2::Resets(Reason::REFUSED_STREAM), End::Error(WireError::Reset)),
        (Http2::Resets(Reason::INTERNAL_ERROR), End::Error(WireError::Reset)),
    ] {
        let server = authority.serving_http2(does).await;
        let url = format!("https://localhost:{}/", server.address.port());
        assert_eq!(end(&fetch_with(trusting(&authority), &url).await), expected, "{does:?}");
    }
}
