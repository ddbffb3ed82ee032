//! What stands around every answer of the API: a tag by which it is asked for again, and how much more may be asked.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::Error;

/// Bodies up to this size get a tag; longer ones are downloads that stream.
const TAGGED: usize = 4 << 20;

/// Requests of one address in one window, and its length in seconds.
const QUOTA: u32 = 6_000;
const WINDOW_S: u64 = 60;

/// Addresses remembered; beyond this the window begins anew for all.
const ADDRESSES: usize = 10_000;

/// Gives an answer its tag, and leaves its body out where the client has it already.
pub async fn tagged(request: Request, next: Next) -> Response {
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let response = next.run(request).await;
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if response.status() != StatusCode::OK || !is_json {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, TAGGED).await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let tag = tag(&bytes);
    let is_known = known.and_then(|known| known.to_str().ok().map(|known| holds(known, &tag))).unwrap_or(false);
    parts.headers.insert(header::ETAG, HeaderValue::from_str(&tag).expect("a tag is hex"));
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if is_known {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

fn tag(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("\"{hash:016x}-{:x}\"", bytes.len())
}

/// Whether `If-None-Match` names this tag, weakly compared (RFC 9110 §13.1.2).
fn holds(header: &str, tag: &str) -> bool {
    header.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == tag || one == "*")
}

/// What one address asked in the present window.
type Counts = HashMap<IpAddr, u32>;

static ASKED: LazyLock<Mutex<(Instant, Counts)>> = LazyLock::new(|| Mutex::new((Instant::now(), Counts::new())));

/// Says how much more may be asked, and refuses what is too much.
pub async fn limited(request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let (left, reset) = count(address, Instant::now());
    let mut response = match left {
        Some(_) => next.run(request).await,
        None => Error::TooMany.into_response(),
    };
    let headers = response.headers_mut();
    let says = |text: String| HeaderValue::from_str(&text).expect("numbers and words");
    headers.insert("ratelimit-policy", says(format!("\"default\";q={QUOTA};w={WINDOW_S}")));
    headers.insert("ratelimit", says(format!("\"default\";r={};t={reset}", left.unwrap_or(0))));
    if left.is_none() {
        headers.insert(header::RETRY_AFTER, says(reset.to_string()));
    }
    response
}

/// Requests left, `None` where there are none, and seconds to the next window.
fn count(address: Option<IpAddr>, now: Instant) -> (Option<u32>, u64) {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let (began, counts) = &mut *asked;
    if now.saturating_duration_since(*began).as_secs() >= WINDOW_S || counts.len() > ADDRESSES {
        *began = now;
        counts.clear();
    }
    let reset = WINDOW_S.saturating_sub(now.saturating_duration_since(*began).as_secs()).max(1);
    let Some(address) = address else { return (Some(QUOTA), reset) };
    let used = counts.entry(address).or_default();
    *used = used.saturating_add(1);
    (QUOTA.checked_sub(*used), reset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_in_every_form_of_the_header() {
        let one = tag(b"x");
        assert!(holds(&one, &one) && holds(&format!("\"a\", W/{one}"), &one) && holds("*", &one));
        assert!(!holds("\"a\"", &one) && tag(b"x") != tag(b"y"));
    }

    #[test]
    fn an_address_that_asks_too_much_is_refused_and_others_are_not() {
        let (one, other) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let now = Instant::now();
        let left: Vec<_> = (0..QUOTA).map(|_| count(one, now).0).collect();
        assert_eq!(left.last(), Some(&Some(0)));
        assert_eq!(count(one, now).0, None);
        assert!(count(other, now).0 > Some(0));
        assert_eq!(count(None, now).0, Some(QUOTA));
    }
}
