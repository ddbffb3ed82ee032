//! A `POST` with an `Idempotency-Key` is done once: the same request again gets the first answer again, for a day.
//!
//! A key is its asker's, and stands for one address and one body. Only what was done is kept: whoever was refused, or met a
//! failure of ours, may mend the request and send it with the same key. What is begun is ended, also when the client goes away
//! meanwhile: a retry then finds the answer, not half a change.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use plumbline_rules::canonical::content_hash;
use plumbline_store::repeats::Repeat;
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::error::Error;
use crate::operator::Actor;

/// Characters of a key, at most.
const LONGEST_KEY: usize = 255;

/// Bytes of a request that is read whole, and of an answer that is kept.
const LONGEST_REQUEST: usize = 2 << 20;
const LONGEST_ANSWER: usize = 256 << 10;

/// How soon to ask again while the first request is being answered, in seconds.
const AGAIN_S: &str = "1";

static KEY: HeaderName = HeaderName::from_static("idempotency-key");
static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// An answer as it is kept.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    status: u16,
    headers: Vec<(String, String)>,
    /// `None`: it was too long.
    body: Option<String>,
}

/// The layer. Every write runs to its end, with its note in the audit, whether or not somebody still waits for the answer.
pub async fn once(State(state): State<WebState>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    let may_repeat = request.method() == Method::POST && request.uri().path().starts_with("/api/v1/");
    let answer = if may_repeat && request.headers().contains_key(&KEY) {
        answered(state, request, next).await
    } else {
        to_its_end(async move { Ok(next.run(request).await) }).await
    };
    answer.unwrap_or_else(IntoResponse::into_response)
}

/// Does it as a task of its own, which nobody who hangs up can break off.
async fn to_its_end(work: impl Future<Output = Result<Response, Error>> + Send + 'static) -> Result<Response, Error> {
    tokio::spawn(work).await.map_err(|error| Error::Ours(format!("a request ended: {error}")))?
}

async fn answered(state: WebState, request: Request, next: Next) -> Result<Response, Error> {
    let key = key(request.headers())?;
    let (parts, body) = request.into_parts();
    // Whoever may not write is refused by the address itself, in its own words.
    let Ok(actor) = Actor::of(&parts, None, &state).await else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let long = |_| Error::BadForm("The body is longer than 2 MiB.".to_owned());
    let body = to_bytes(body, LONGEST_REQUEST).await.map_err(long)?;
    let address = parts.uri.path_and_query().map_or(parts.uri.path(), |whole| whole.as_str());
    let asked = content_hash(&[address.as_bytes(), b"\n", &body].concat());
    let who = actor.key();
    match state.store.begin_answer(&who, key, asked, (state.now)()).await? {
        Repeat::Other => Err(Error::OtherRequest),
        Repeat::Running => {
            let mut response = Error::Repeated("The same request is being answered.").into_response();
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(AGAIN_S));
            Ok(response)
        }
        Repeat::Unknown => Err(Error::Repeated("It was begun, and nobody knows whether it was done.")),
        Repeat::Answered(sealed) => again(&state, &sealed),
        Repeat::First => {
            let request = Request::from_parts(parts, Body::from(body));
            to_its_end(first(state, who, key, request, next)).await
        }
    }
}

/// Does it, and keeps the answer.
async fn first(state: WebState, who: String, key: [u8; 32], request: Request, next: Next) -> Result<Response, Error> {
    let response = next.run(request).await;
    if response.status().is_client_error() {
        // It was refused: nothing was done, and the key is free again.
        state.store.keep_answer(&who, key, None).await?;
    }
    if !response.status().is_success() {
        // After a failure of ours it may be done all the same.
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.map_err(|error| Error::Ours(error.to_string()))?;
    let kept = serde_json::to_vec(&kept(parts.status, &parts.headers, &bytes))?;
    let sealed = state.desk.courier.vault.seal(&kept).map_err(|error| Error::Ours(error.to_string()))?;
    state.store.keep_answer(&who, key, Some(&sealed)).await?;
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

fn kept(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Kept {
    let text = |name: &HeaderName| Some((name.to_string(), headers.get(name)?.to_str().ok()?.to_owned()));
    Kept {
        status: status.as_u16(),
        headers: [header::CONTENT_TYPE, header::LOCATION, header::CACHE_CONTROL].iter().filter_map(text).collect(),
        body: Some(body).filter(|body| body.len() <= LONGEST_ANSWER).map(|body| String::from_utf8_lossy(body).into()),
    }
}

/// The first answer again.
fn again(state: &WebState, sealed: &[u8]) -> Result<Response, Error> {
    let opened = state.desk.courier.vault.unseal(sealed).map_err(|error| Error::Ours(error.to_string()))?;
    let kept: Kept = serde_json::from_slice(&opened)?;
    let Some(body) = kept.body else {
        return Err(Error::Repeated("It was done; its answer was too long to be kept."));
    };
    let status = StatusCode::from_u16(kept.status).map_err(|error| Error::Ours(error.to_string()))?;
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for (name, value) in &kept.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPLAYED.clone(), HeaderValue::from_static("true"));
    Ok(response)
}

/// The key, as a hash of its characters.
fn key(headers: &HeaderMap) -> Result<[u8; 32], Error> {
    let mut sent = headers.get_all(&KEY).iter();
    let only = sent.next().filter(|_| sent.next().is_none()).and_then(|value| value.to_str().ok()).map(str::trim);
    let is_key = |text: &&str| (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    let bad = || Error::BadForm(format!("An Idempotency-Key is 1 to {LONGEST_KEY} visible characters, given once."));
    only.filter(is_key).map(|text| content_hash(text.as_bytes())).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_and_of_some_length() {
        let read = |values: &[&str]| {
            let pairs = values.iter().map(|value| (KEY.clone(), HeaderValue::from_str(value).unwrap()));
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value);
            }
            key(&headers)
        };
        assert_eq!(read(&["a"]).unwrap(), read(&[" a "]).unwrap());
        assert_ne!(read(&["a"]).unwrap(), read(&["b"]).unwrap());
        for bad in [&["" as &str][..], &["a b"], &["a", "a"], &["x".repeat(256).as_str()]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_answer_that_is_too_long_is_known_to_have_been_given() {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let short = kept(StatusCode::CREATED, &headers, b"{}");
        assert_eq!((short.status, short.headers.len(), short.body.as_deref()), (201, 1, Some("{}")));
        assert_eq!(kept(StatusCode::OK, &headers, &vec![b'x'; LONGEST_ANSWER + 1]).body, None);
    }
}
