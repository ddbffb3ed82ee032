//! Event streams as they come: read until what is waited for has come, and no longer than is waited.
//!
//! A stream may never end. What is read of it is bounded three ways: by bytes, by events, and by the time that its
//! listener sets.

use std::pin::Pin;
use std::time::Duration;

use plumbline_rules::session::{Cut, Response, Stream, StreamEnd};
use plumbline_rules::sse::{Bounds, Event, Reader};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use super::body::Body;

/// How a stream that answers an ask is listened to.
#[derive(Debug, Clone, PartialEq)]
pub struct Listen {
    /// What is waited for.
    pub until: Until,
    /// How long for it, from sending the request.
    pub wait: Duration,
    /// How long after it for the end of the stream.
    pub linger: Duration,
}

/// What a listener waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Until {
    /// The answer to the request with this id.
    Answer(serde_json::Value),
    /// An event of this name.
    Named(&'static str),
    /// Nothing: it listens as long as it waits.
    Never,
}

impl Until {
    fn is_met_by(&self, event: &Event) -> bool {
        match self {
            Until::Answer(id) => answers(&event.data, id),
            Until::Named(name) => event.name.as_deref() == Some(name),
            Until::Never => false,
        }
    }
}

/// Whether a message answers the request with that id, or says that it cannot be answered.
fn answers(data: &str, id: &serde_json::Value) -> bool {
    let Ok(message) = serde_json::from_str::<serde_json::Value>(data) else { return false };
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    is_answer && message.get("id").is_none_or(|of| of == id || of.is_null())
}

/// A stream that is being read.
pub struct Events {
    decoded: Pin<Box<dyn AsyncRead + Send>>,
    reader: Reader,
    start: Instant,
    most_bytes: usize,
    bytes: Vec<u8>,
    events: Vec<Event>,
    events_ms: Vec<u64>,
    ended: Option<StreamEnd>,
    cut: Option<Cut>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("events", &self.events.len()).field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl Events {
    pub(super) fn new(decoded: Pin<Box<dyn AsyncRead + Send>>, start: Instant, most_bytes: u64) -> Events {
        let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX);
        Events {
            decoded,
            reader: Reader::new(Bounds { event_bytes: most_bytes, ..Bounds::USUAL }),
            start,
            most_bytes,
            bytes: Vec::new(),
            events: Vec::new(),
            events_ms: Vec::new(),
            ended: None,
            cut: None,
        }
    }

    /// When its request was sent.
    #[must_use]
    pub fn opened_at(&self) -> Instant {
        self.start
    }

    /// What has been told so far.
    #[must_use]
    pub fn told(&self) -> &[Event] {
        &self.events
    }

    /// Reads on until an event after the first `from` is what is waited for; whether it came.
    pub async fn wait(&mut self, until: &Until, from: usize, deadline: Instant) -> bool {
        loop {
            if self.events[from.min(self.events.len())..].iter().any(|event| until.is_met_by(event)) {
                return true;
            }
            if self.ended.is_some() || !self.read_on(deadline).await {
                return false;
            }
        }
    }

    /// Listens as an ask wants it, to its end.
    pub(super) async fn listen(&mut self, listen: &Listen) {
        let came = self.wait(&listen.until, 0, self.start + listen.wait).await;
        let linger_until = Instant::now() + if came { listen.linger } else { Duration::ZERO };
        while came && self.ended.is_none() && self.read_on(linger_until).await {}
        let left = if came || listen.until == Until::Never { StreamEnd::Left } else { StreamEnd::Silent };
        self.ended.get_or_insert(left);
    }

    /// Reads one piece; `false` when none came in time or the stream ended.
    async fn read_on(&mut self, deadline: Instant) -> bool {
        let mut piece = [0; 8 * 1024];
        match timeout_at(deadline, self.decoded.read(&mut piece)).await {
            Err(_) => false,
            Ok(Ok(0)) => {
                self.ended = Some(StreamEnd::Closed);
                false
            }
            Ok(Err(_)) => {
                (self.ended, self.cut) = (Some(StreamEnd::Closed), Some(Cut::Truncated));
                false
            }
            Ok(Ok(length)) => self.take(&piece[..length]),
        }
    }

    fn take(&mut self, piece: &[u8]) -> bool {
        let room = self.most_bytes - self.bytes.len();
        let fits = &piece[..piece.len().min(room)];
        self.bytes.extend_from_slice(fits);
        let overran = self.reader.feed(fits, &mut self.events).is_err() || fits.len() < piece.len();
        let now_ms = self.open_ms();
        self.events_ms.resize(self.events.len(), now_ms);
        if overran {
            (self.ended, self.cut) = (Some(StreamEnd::Overrun), Some(Cut::Limit));
        }
        !overran
    }

    /// How long it has been open, in milliseconds from sending the request.
    pub(super) fn open_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// What was read so far, as if we hung up now.
    pub(super) fn so_far(&self, response: &mut Response) -> Body {
        let end = self.ended.unwrap_or(StreamEnd::Left);
        response.stream = Some(Stream { events_ms: self.events_ms.clone(), end });
        let wire_bytes = self.bytes.len() as u64;
        Body { bytes: self.bytes.clone(), wire_bytes, cut: self.cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of these bytes that then closes, or stays open.
    fn events(bytes: &'static [u8], stays_open: bool, most_bytes: u64) -> Events {
        let rest: Pin<Box<dyn AsyncRead + Send>> = if stays_open {
            let (ours, theirs) = tokio::io::duplex(64);
            // Kept open for as long as the test runs.
            std::mem::forget(theirs);
            Box::pin(bytes.chain(ours))
        } else {
            Box::pin(bytes)
        };
        Events::new(rest, Instant::now(), most_bytes)
    }

    async fn listened(mut events: Events, until: Until) -> (StreamEnd, usize, Option<Cut>) {
        let listen = Listen { until, wait: Duration::from_secs(20), linger: Duration::from_secs(5) };
        events.listen(&listen).await;
        let told = events.told().len();
        let mut response = Response::default();
        let body = events.so_far(&mut response);
        (response.stream.expect("it is noted").end, told, body.cut)
    }

    fn answer_to_7() -> Until {
        Until::Answer(7.into())
    }

    #[tokio::test(start_paused = true)]
    async fn how_a_stream_ended_is_noted() {
        let answer = b"data: {\"id\": 7, \"result\": {}}\n\n".as_slice();
        assert_eq!(listened(events(answer, false, 99), answer_to_7()).await, (StreamEnd::Closed, 1, None));
        assert_eq!(listened(events(answer, true, 99), answer_to_7()).await, (StreamEnd::Left, 1, None));
        assert_eq!(listened(events(b": hi\n\n", true, 99), answer_to_7()).await, (StreamEnd::Silent, 0, None));
        assert_eq!(listened(events(b": hi\n\n", true, 99), Until::Never).await, (StreamEnd::Left, 0, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_never_ends_costs_its_time_and_no_more() {
        let start = Instant::now();
        listened(events(b"data: 1\n\n", true, 99), answer_to_7()).await;
        assert_eq!(start.elapsed().as_secs(), 20);
        let start = Instant::now();
        listened(events(b"data: {\"id\": null, \"error\": {}}\n\n", true, 99), answer_to_7()).await;
        assert_eq!(start.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_holds_so_many_bytes_and_is_then_left() {
        let flood: &'static [u8] = Vec::leak(b"data: 12345\n\n".repeat(1000));
        let (end, told, cut) = listened(events(flood, true, 50), answer_to_7()).await;
        assert_eq!((end, cut), (StreamEnd::Overrun, Some(Cut::Limit)));
        assert!(told <= 4, "{told}");
        let one: &'static [u8] = Vec::leak(b"data: ".repeat(1000));
        assert_eq!(listened(events(one, true, 50), answer_to_7()).await, (StreamEnd::Overrun, 0, Some(Cut::Limit)));
    }
}
