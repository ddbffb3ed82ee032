//! Requests and answers as a session keeps them: secrets masked, sizes bounded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use plumbline_rules::session::{Exchange, Peer, Request, Response, WireError};
use reqwest::tls::Version;
use url::Url;

use super::ask::Ask;
use super::body::Body;
use super::certificate;
use super::limits::{MAX_RECORDED_VALUE, MAX_URL};
use super::redirect::Hop;

/// What stands in the record for a secret.
pub(super) const MASK: &str = "***";

/// An exchange whose request is about to go out.
pub(super) fn sent(ask: &Ask, hop: &Hop, headers: &HeaderMap, now: DateTime<Utc>) -> Exchange {
    let mut shown = all_headers(headers);
    for secret in ask.headers.iter().filter(|header| header.is_secret) {
        if let Some(value) = shown.get_mut(secret.name.as_str()) {
            *value = secret.recorded_value();
        }
    }
    // A redirect that turned POST into GET has nothing to send.
    let body = ask.body.as_ref().filter(|_| hop.method == ask.method);
    let raw = body.map(|body| String::from_utf8_lossy(body).into_owned());
    let request = Request { method: hop.method.to_string(), url: url(&hop.url), headers: shown, raw };
    Exchange { step: ask.step, request, at_ms: now.timestamp_millis(), ..Exchange::default() }
}

/// An exchange that did not take place.
pub(super) fn not_made(ask: &Ask, hop: &Hop, error: WireError) -> Exchange {
    let request = Request { method: hop.method.to_string(), url: url(&hop.url), ..Request::default() };
    refused(ask, request, error)
}

/// An exchange that cannot take place, because what is given as its address is none.
pub(super) fn bad_url(ask: &Ask, text: &str) -> Exchange {
    let request = Request { method: ask.method.to_string(), url: shortened(text, MAX_URL), ..Request::default() };
    refused(ask, request, WireError::BadUrl)
}

fn refused(ask: &Ask, request: Request, error: WireError) -> Exchange {
    let at_ms = Utc::now().timestamp_millis();
    Exchange { step: ask.step, request, error: Some(error), at_ms, ..Exchange::default() }
}

/// Who gave an answer.
pub(super) fn peer(answer: &reqwest::Response) -> Option<Peer> {
    let tls = answer.extensions().get::<reqwest::tls::TlsInfo>();
    let certificate = tls.and_then(|tls| tls.peer_certificate()).and_then(certificate::read);
    Some(Peer {
        address: answer.remote_addr()?.to_string(),
        http: format!("{:?}", answer.version()),
        tls: tls.and_then(reqwest::tls::TlsInfo::version).map(tls_version),
        certificate,
    })
}

fn tls_version(version: Version) -> String {
    match version {
        Version::TLS_1_3 => "TLSv1.3".to_owned(),
        Version::TLS_1_2 => "TLSv1.2".to_owned(),
        // Older ones are not spoken here.
        other => format!("{other:?}"),
    }
}

/// The head of an answer; its body comes later.
pub(super) fn head(status: StatusCode, headers: &HeaderMap) -> Response {
    Response { status: status.as_u16(), headers: all_headers(headers), ..Response::default() }
}

/// Puts a body into the record of its answer, and returns its bytes.
pub(super) fn body(response: &mut Response, body: Body) -> Bytes {
    response.wire_bytes = body.wire_bytes;
    response.cut = body.cut;
    let bytes = Bytes::from(body.bytes);
    match text_of(&bytes, body.cut.is_some()) {
        Some("") => {}
        Some(text) => response.raw = Some(text.to_owned()),
        None => response.raw_base64 = Some(BASE64.encode(&bytes)),
    }
    bytes
}

/// The bytes as text. A body that was cut may end inside a character, which does not make it binary.
fn text_of(bytes: &[u8], was_cut: bool) -> Option<&str> {
    match str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if was_cut && error.error_len().is_none() => str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
        Err(_) => None,
    }
}

/// All values of a header as one, in the order they came.
pub(super) fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<String> = headers.get_all(name).iter().map(text).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

fn all_headers(headers: &HeaderMap) -> std::collections::BTreeMap<String, String> {
    let shown =
        |name: &HeaderName| Some((name.as_str().to_owned(), shortened(&joined(headers, name)?, MAX_RECORDED_VALUE)));
    headers.keys().filter_map(shown).collect()
}

/// A header value as text; bytes that are no UTF-8 become the replacement character.
pub(super) fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// An address without the credentials that somebody wrote into it.
fn url(url: &Url) -> String {
    let mut shown = url.clone();
    let has_user = !shown.username().is_empty() || shown.password().is_some();
    if has_user && (shown.set_username(MASK).is_err() || shown.set_password(None).is_err()) {
        return MASK.to_owned();
    }
    shortened(shown.as_str(), MAX_URL)
}

/// At most `most` bytes, ending at the end of a character.
fn shortened(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use plumbline_rules::session::Cut;

    use super::*;

    fn recorded(bytes: &[u8], cut: Option<Cut>) -> Response {
        let mut response = Response::default();
        let returned = body(&mut response, Body { bytes: bytes.to_vec(), wire_bytes: 7, cut });
        assert_eq!(returned, bytes);
        assert_eq!((response.wire_bytes, response.cut), (7, cut));
        response
    }

    #[test]
    fn a_body_is_text_where_it_is_text() {
        assert_eq!(recorded("{}é".as_bytes(), None).raw.as_deref(), Some("{}é"));
        let binary = recorded(b"\xff\xfe", None);
        assert_eq!((binary.raw, binary.raw_base64.as_deref()), (None, Some("//4=")));
        let empty = recorded(b"", None);
        assert_eq!((empty.raw, empty.raw_base64), (None, None));
    }

    #[test]
    fn a_character_cut_in_two_does_not_make_text_binary() {
        let halved = &"{}é".as_bytes()[..3];
        assert_eq!(recorded(halved, Some(Cut::Limit)).raw.as_deref(), Some("{}"));
        assert!(recorded(halved, None).raw.is_none());
    }

    #[test]
    fn header_fields_of_one_name_are_joined_and_long_ones_cut() {
        let mut headers = HeaderMap::new();
        headers.append("vary", HeaderValue::from_static("Accept"));
        headers.append("vary", HeaderValue::from_static("A2A-Version"));
        headers.append("x-odd", HeaderValue::from_bytes(b"a\xff").unwrap());
        headers.append("x-long", HeaderValue::from_str(&"é".repeat(MAX_RECORDED_VALUE)).unwrap());
        let response = head(StatusCode::OK, &headers);
        assert_eq!(response.headers["vary"], "Accept, A2A-Version");
        assert_eq!(response.headers["x-odd"], "a\u{fffd}");
        assert_eq!(response.headers["x-long"].len(), MAX_RECORDED_VALUE);
    }

    #[test]
    fn credentials_in_an_address_are_masked() {
        for credentials in ["me:secret", "token", ":secret"] {
            let address = Url::parse(&format!("https://{credentials}@a.dev/x")).unwrap();
            assert_eq!(url(&address), "https://***@a.dev/x");
        }
    }
}
