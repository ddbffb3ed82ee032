//! `/api/v1/events`: what happened, for programs. As a page of JSON after a number, or as server-sent events for as long as
//! somebody listens.
//!
//! One task asks the database for its newest event while anybody listens, and wakes all readers; each then reads what it
//! asked for along an index, a page at a time, and only as fast as its connection takes it. So two hundred readers cost two
//! hundred small buffers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use plumbline_store::events::{Event, EventFilter};
use plumbline_store::words::EventKind;
use plumbline_store::{EventId, Store, TargetId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;

/// Events on a page unless asked otherwise, and at most.
const PAGE: u32 = 100;
const MOST: u32 = 1000;
/// Events that a listening reader holds at a time.
const BUFFER: u32 = 50;
/// Who may listen at the same time.
const MOST_READERS: usize = 200;
/// Between two looks at the newest event, while anybody listens.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A line is sent this often when nothing happens, so that nobody on the way takes the connection for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What moves the first page.
pub const OVERVIEW: [EventKind; 9] = [
    EventKind::FindingOpened,
    EventKind::FindingRegressed,
    EventKind::FindingResolved,
    EventKind::TargetAdded,
    EventKind::TargetDown,
    EventKind::TargetRecovered,
    EventKind::DeployRecorded,
    EventKind::CrawlCompleted,
    EventKind::CrawlDegraded,
];
/// What moves the page of one crawl.
pub const CRAWL: [EventKind; 6] = [
    EventKind::FindingOpened,
    EventKind::FindingRegressed,
    EventKind::FindingResolved,
    EventKind::TargetAdded,
    EventKind::CrawlCompleted,
    EventKind::CrawlDegraded,
];
/// What moves the list of alerts.
pub const ALERTS: [EventKind; 3] =
    [EventKind::AlertGroupOpened, EventKind::AlertGroupUpdated, EventKind::AlertGroupResolved];

/// The kinds that a page listens to, as its script reads them.
pub fn live(kinds: &[EventKind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}

/// Everybody who listens.
#[derive(Debug)]
pub struct Readers {
    store: Store,
    count: AtomicUsize,
    newest: watch::Sender<i64>,
}

impl Readers {
    /// Nobody listens yet.
    pub fn over(store: Store) -> Arc<Readers> {
        Arc::new(Readers { store, count: AtomicUsize::new(0), newest: watch::channel(0).0 })
    }

    /// One more, unless there are too many.
    fn join(self: &Arc<Self>) -> Option<Seat> {
        let before = self.count.fetch_add(1, Ordering::AcqRel);
        let seat = Seat(self.clone());
        if before >= MOST_READERS {
            return None;
        }
        if before == 0 {
            tokio::spawn(self.clone().look());
        }
        Some(seat)
    }

    /// Tells of the newest event for as long as anybody listens.
    async fn look(self: Arc<Self>) {
        while self.count.load(Ordering::Acquire) > 0 {
            match self.store.newest_event().await {
                Ok(newest) => {
                    self.newest.send_if_modified(|known| std::mem::replace(known, newest.0) != newest.0);
                }
                Err(error) => tracing::warn!("the newest event cannot be read: {error}"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// The place of one reader; it is free again when dropped.
#[derive(Debug)]
struct Seat(Arc<Readers>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What is asked for.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    /// Events after this number.
    after: Option<i64>,
    /// Kinds, with commas between; `finding.*` stands for all that begin so.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Of this target only.
    target: Option<i64>,
    /// How many, at most 1000.
    limit: Option<u32>,
}

/// One event as programs get it.
#[derive(Debug, Serialize, JsonSchema)]
struct EventJson {
    /// Its number; later events have greater ones.
    id: i64,
    /// Such as `finding.regressed`.
    r#type: EventKind,
    /// When it happened, RFC 3339.
    at: String,
    /// The target concerned, or one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<i64>,
    /// The surface concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<i64>,
    /// The rule concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The finding, crawl, deploy, … concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<i64>,
    /// Before, where the kind has such a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<i64>,
    /// After, where the kind has such a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<i64>,
    /// More, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A page of them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventPage {
    /// Oldest first.
    events: Vec<EventJson>,
    /// What to ask for `after` next: the last of them, or what was asked for when there are none.
    next: i64,
    /// The newest event there is, whatever was asked for.
    newest: i64,
}

impl From<Event> for EventJson {
    fn from(event: Event) -> Self {
        let at = chrono::DateTime::from_timestamp(event.at_s, 0).map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        EventJson {
            id: event.id.0,
            r#type: event.kind,
            at: at.unwrap_or_default(),
            target: event.target.map(|target| target.0),
            surface: event.surface.map(|surface| surface.0),
            rule: event.rule,
            subject: event.subject,
            a: event.a,
            b: event.b,
            note: event.note,
        }
    }
}

/// `GET /api/v1/events`
pub async fn list(
    State(state): State<WebState>,
    Extension(readers): Extension<Arc<Readers>>,
    headers: HeaderMap,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let filter = EventFilter { kinds: kinds(asked.kind.as_deref())?, target: asked.target.map(TargetId) };
    if listens(&headers) {
        return listen(&state.store, &readers, filter, &headers, asked.after).await;
    }
    let after = asked.after.unwrap_or(0).max(0);
    let limit = asked.limit.unwrap_or(PAGE).clamp(1, MOST);
    let newest = state.store.newest_event().await?.0;
    let events = state.store.events_where(&filter, EventId(after), limit).await?;
    let next = events.last().map_or(after, |event| event.id.0);
    let page = EventPage { events: events.into_iter().map(EventJson::from).collect(), next, newest };
    Ok(([(header::CACHE_CONTROL, Cache::Fresh.header())], Json(page)).into_response())
}

fn listens(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|range| range.trim().starts_with("text/event-stream"))
}

/// The kinds that a list of words names.
fn kinds(text: Option<&str>) -> Result<Vec<EventKind>, Error> {
    let mut kinds = Vec::new();
    for word in text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let named = |kind: &&EventKind| match word.strip_suffix('*') {
            Some(prefix) => kind.as_str().starts_with(prefix),
            None => kind.as_str() == word,
        };
        let before = kinds.len();
        kinds.extend(EventKind::ALL.iter().filter(named));
        if kinds.len() == before {
            return Err(Error::BadQuery { field: "type", reason: format!("names no kind of event: `{word}`") });
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

/// The last event that a reader has; where it was cut off it says so itself.
fn last_event(headers: &HeaderMap) -> Option<i64> {
    headers.get(HeaderName::from_static("last-event-id"))?.to_str().ok()?.trim().parse().ok()
}

/// Events as they happen, from the one after the last that the reader has; from now on for one that has none.
async fn listen(
    store: &Store,
    readers: &Arc<Readers>,
    filter: EventFilter,
    headers: &HeaderMap,
    after: Option<i64>,
) -> Result<Response, Error> {
    let Some(seat) = readers.join() else {
        let problem = serde_json::json!({
            "status": 429, "title": "too many listen already", "detail": format!("{MOST_READERS} may listen at a time")
        });
        let headers = [
            (header::RETRY_AFTER, HeaderValue::from_static("30")),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
        ];
        let busy = (StatusCode::TOO_MANY_REQUESTS, headers, problem.to_string());
        return Ok(busy.into_response());
    };
    let after = match last_event(headers).or(after) {
        Some(after) => after,
        None => store.newest_event().await?.0,
    };
    let reader = Reader {
        store: store.clone(),
        filter,
        after,
        newest: readers.newest.subscribe(),
        waiting: VecDeque::new(),
        _seat: seat,
    };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    let alive = KeepAlive::new().interval(HEARTBEAT).text("still here");
    let mut response = Sse::new(events).keep_alive(alive).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, Cache::Never.header());
    // Proxies that gather an answer before they pass it on would hold events back.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// One who listens.
struct Reader {
    store: Store,
    filter: EventFilter,
    /// The last event that was looked at.
    after: i64,
    newest: watch::Receiver<i64>,
    waiting: VecDeque<Event>,
    _seat: Seat,
}

impl Reader {
    /// The next event, when there is one. `None` ends the stream: the database failed, and the reader will come again.
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                let (id, kind) = (event.id.0, event.kind);
                let data = serde_json::to_string(&EventJson::from(event)).ok()?;
                return Some(sse::Event::default().id(id.to_string()).event(kind.as_str()).data(data));
            }
            let newest = *self.newest.borrow_and_update();
            let read = self.store.events_where(&self.filter, EventId(self.after), BUFFER).await;
            let events = read.inspect_err(|error| tracing::warn!("events cannot be read: {error}")).ok()?;
            match events.last() {
                Some(last) => {
                    self.after = self.after.max(last.id.0);
                    self.waiting = events.into();
                }
                None => {
                    // Whatever came up to then is not what was asked for, and need not be looked at again.
                    self.after = self.after.max(newest);
                    self.newest.changed().await.ok()?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_by_words_and_beginnings() {
        assert_eq!(kinds(None).unwrap(), []);
        assert_eq!(
            kinds(Some("target.down, target.recovered")).unwrap(),
            [EventKind::TargetDown, EventKind::TargetRecovered]
        );
        let findings = kinds(Some("finding.*")).unwrap();
        assert!(findings.len() >= 5 && findings.iter().all(|kind| kind.as_str().starts_with("finding.")));
        assert!(matches!(kinds(Some("finding.lost")), Err(Error::BadQuery { field: "type", .. })));
    }

    #[test]
    fn who_accepts_a_stream_listens_and_says_what_it_has() {
        let mut headers = HeaderMap::new();
        assert!(!listens(&headers) && last_event(&headers).is_none());
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        assert!(!listens(&headers));
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/html, text/event-stream;q=0.9"));
        headers.insert("last-event-id", HeaderValue::from_static("17"));
        assert!(listens(&headers));
        assert_eq!(last_event(&headers), Some(17));
    }
}
