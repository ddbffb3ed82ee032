//! What is asked for, and what comes of it.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderName, HeaderValue};
use plumbline_rules::session::{Exchange, Response, Step};

use super::limits::BodyKind;
use super::record;
use super::stream::Listen;

/// What to ask for. [`Ask::get`] fills in what most asks share.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Why; written on every exchange.
    pub step: Option<Step>,
    /// `GET`, `POST`, …
    pub method: Method,
    /// The address as somebody published it; it need not be one.
    pub url: String,
    /// What is accepted.
    pub accept: Option<&'static str>,
    /// Further headers.
    pub headers: Vec<Header>,
    /// What is sent.
    pub body: Option<Bytes>,
    /// What the answer is expected to be.
    pub kind: BodyKind,
    /// What an earlier answer said about itself, to be told when nothing changed.
    pub validators: Option<Validators>,
    /// The manners and addresses that hold for it.
    pub way: Way,
    /// The gap after this request at its host; `None`: the usual one.
    pub pace: Option<Duration>,
    /// How an event stream in answer is listened to; `None`: it is a body like another.
    pub listen: Option<Listen>,
    /// How long is waited for the answer; `None`: as long as the settings say.
    pub patience: Option<Patience>,
    /// Over which connection it goes.
    pub wire: Wire,
    /// It goes out beside another request to the same host, without waiting for its turn: for servers of our own alone.
    pub is_beside: bool,
}

/// How long is waited for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From sending the request to the end of the answer's headers.
    pub head: Duration,
    /// From sending the request to the end of the body.
    pub total: Duration,
}

/// Over which connection a request goes, and how its header names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wire {
    /// One that is kept for the next request; names in lower case, as HTTP/2 has them.
    #[default]
    Usual,
    /// One that is kept; names with capitals, as specifications print them.
    Titled,
    /// A new one for this request alone; names with capitals.
    Fresh,
}

/// A header to send.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: HeaderName,
    /// Its value.
    pub value: HeaderValue,
    /// Recorded as `***`, and dropped when a redirect leaves the origin.
    pub is_secret: bool,
}

/// How an ask may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To something found by crawling: paced, redirects followed, robots.txt asked unless the place is well known.
    Crawl,
    /// To an endpoint that its owner listed: as [`Way::Crawl`], without asking robots.txt.
    Listed,
    /// To a registry: as [`Way::Listed`], but a redirect to another host is not followed; it stays the answer.
    Registry,
    /// To a robots.txt itself, which nothing else has a say about.
    Robots,
    /// To a receiver of webhooks: https to the usual ports, no redirects, at the sender's own pace.
    Webhook,
}

/// What an answer said about itself: they are sent back to the same address only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    /// The address that gave them.
    pub url: String,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
}

/// What came of an ask.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// In the order they were made: robots.txt where it was asked, then the redirects, then the answer or the error.
    pub exchanges: Vec<Exchange>,
    /// The decoded body of the last answer, up to its limit; `None` without an answer.
    pub body: Option<Bytes>,
    /// Where the last exchange went.
    pub final_url: String,
}

impl Ask {
    /// A plain GET to something found by crawling.
    #[must_use]
    pub fn get(url: impl Into<String>, kind: BodyKind) -> Self {
        Self {
            step: None,
            method: Method::GET,
            url: url.into(),
            accept: None,
            headers: Vec::new(),
            body: None,
            kind,
            validators: None,
            way: Way::Crawl,
            pace: None,
            listen: None,
            patience: None,
            wire: Wire::Usual,
            is_beside: false,
        }
    }
}

impl Header {
    /// A header whose value may be seen. Names that carry credentials by custom are secret all the same.
    #[must_use]
    pub fn new(name: HeaderName, value: HeaderValue) -> Self {
        let is_secret = CREDENTIALS.contains(&name);
        Self { name, value, is_secret }
    }

    /// A header whose value nobody may see.
    #[must_use]
    pub fn secret(name: HeaderName, value: HeaderValue) -> Self {
        Self { name, value, is_secret: true }
    }

    /// Its value as the record shows it.
    pub(super) fn recorded_value(&self) -> String {
        if self.is_secret { record::MASK.to_owned() } else { record::text(&self.value) }
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.recorded_value())
    }
}

impl Fetched {
    /// The last exchange: the answer, or the error in its place.
    #[must_use]
    pub fn last(&self) -> &Exchange {
        self.exchanges.last().expect("every way through a fetch records an exchange")
    }

    /// The last answer.
    #[must_use]
    pub fn response(&self) -> Option<&Response> {
        self.last().response.as_ref()
    }

    /// Nothing changed since the validators were given.
    #[must_use]
    pub fn is_not_modified(&self) -> bool {
        self.response().is_some_and(|response| response.status == 304)
    }

    /// What to send next time, when the answer said something about itself.
    #[must_use]
    pub fn validators(&self) -> Option<Validators> {
        let headers = &self.response()?.headers;
        let (etag, last_modified) = (headers.get("etag").cloned(), headers.get("last-modified").cloned());
        let any = etag.is_some() || last_modified.is_some();
        any.then(|| Validators { url: self.final_url.clone(), etag, last_modified })
    }
}

/// Headers that carry credentials by custom.
const CREDENTIALS: [HeaderName; 3] = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows() {
        let key = Header::secret(HeaderName::from_static("x-api-key"), HeaderValue::from_static("hunter2"));
        let bearer = Header::new(header::AUTHORIZATION, HeaderValue::from_static("Bearer hunter2"));
        let ask = Ask { headers: vec![key, bearer], ..Ask::get("https://a.dev/", BodyKind::Other) };
        let shown = format!("{ask:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("x-api-key: ***"), "{shown}");
    }
}
