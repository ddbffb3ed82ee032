//! Event streams (`text/event-stream`, WHATWG HTML §9.2.6), read piece by piece as they come or whole from a record.
//!
//! The reader holds at most one unfinished event and gives each up once: how much it may hold is its caller's bound, so
//! a stream without end costs no more than that.

/// One event that was dispatched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; `None` where it was absent or empty, which means `message`.
    pub name: Option<String>,
    /// The `id` field of this event; `None` where it had none.
    pub id: Option<String>,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

/// Why a stream is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overrun {
    /// One event, or one line, has more bytes than allowed.
    EventTooLarge,
    /// There are more events than allowed.
    TooManyEvents,
}

/// What a stream may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes of one event with all its lines.
    pub event_bytes: usize,
    /// Most events.
    pub events: usize,
}

impl Bounds {
    /// Four MiB an event, as much as one answer may have, and more events than any handshake or list needs.
    pub const USUAL: Bounds = Bounds { event_bytes: 4 << 20, events: 10_000 };
}

/// Reads a stream from its pieces, wherever they are cut.
#[derive(Debug)]
pub struct Reader {
    bounds: Bounds,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The last piece ended in a carriage return, so a line feed at the start of the next belongs to it.
    after_return: bool,
    /// A byte order mark may still come.
    at_start: bool,
    event: Event,
    has_data: bool,
    /// Bytes that the unfinished event has taken.
    taken: usize,
    dispatched: usize,
}

impl Reader {
    /// A reader at the start of a stream.
    #[must_use]
    pub fn new(bounds: Bounds) -> Reader {
        Reader {
            bounds,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            event: Event::default(),
            has_data: false,
            taken: 0,
            dispatched: 0,
        }
    }

    /// Takes the next piece and adds the events that it ends to `events`.
    ///
    /// # Errors
    /// When the stream holds more than it may; events before that are in `events`.
    pub fn feed(&mut self, piece: &[u8], events: &mut Vec<Event>) -> Result<(), Overrun> {
        let mut rest = piece;
        while let Some((&first, behind)) = rest.split_first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = behind;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                return self.hold(rest);
            };
            self.hold(&rest[..end])?;
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            events.extend(self.end_line());
            if self.dispatched > self.bounds.events {
                return Err(Overrun::TooManyEvents);
            }
        }
        Ok(())
    }

    /// Whether the stream broke off inside an event that has data: nobody was ever told of it.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        let line = self.line.strip_prefix(b"data:").unwrap_or_default();
        !self.event.data.trim().is_empty() || !line.trim_ascii().is_empty()
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), Overrun> {
        self.taken += bytes.len();
        if self.taken > self.bounds.event_bytes {
            return Err(Overrun::EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends the line that is held; gives the event that an empty line dispatches.
    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        self.field(&String::from_utf8_lossy(line));
        None
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.name = Some(value.to_owned()).filter(|name| !name.is_empty()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            // A comment, `retry`, or what nobody knows.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.taken = 0;
        let event = std::mem::take(&mut self.event);
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        self.dispatched += 1;
        Some(event)
    }
}

/// A whole stream as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stream {
    /// What was dispatched, in order.
    pub events: Vec<Event>,
    /// It ends inside an event that has data.
    pub is_unfinished: bool,
}

/// Reads a recorded stream; of one that holds more than it may, what comes before that.
#[must_use]
pub fn read(text: &[u8]) -> Stream {
    let mut reader = Reader::new(Bounds::USUAL);
    let mut events = Vec::new();
    let overran = reader.feed(text, &mut events).is_err();
    Stream { events, is_unfinished: !overran && reader.is_unfinished() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(text: &str) -> Vec<(Option<String>, Option<String>, String)> {
        read(text.as_bytes()).events.into_iter().map(|event| (event.name, event.id, event.data)).collect()
    }

    fn data(text: &str) -> Vec<String> {
        read(text.as_bytes()).events.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn lines_end_in_each_of_three_ways() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("data: a{end}data:b{end}{end}data: c{end}{end}");
            assert_eq!(data(&text), ["a\nb", "c"], "{end:?}");
        }
    }

    #[test]
    fn fields_are_those_of_the_standard() {
        let text = "\u{feff}: hi\nevent: endpoint\nid: 7\nretry: 10\ndata:  two spaces\nother: x\n\n";
        assert_eq!(events(text), [(Some("endpoint".into()), Some("7".into()), " two spaces".into())]);
        assert_eq!(events("event:\nid: a\0b\ndata\n\n"), [(None, None, String::new())]);
    }

    #[test]
    fn without_data_nothing_is_dispatched_and_the_name_is_forgotten() {
        assert_eq!(events("event: ping\n\ndata: x\n\n"), [(None, None, "x".into())]);
        assert_eq!(data("id: 1\ndata:\n\nretry: 5\n\n"), [""]);
    }

    #[test]
    fn what_no_empty_line_ends_is_unfinished() {
        for (text, unfinished) in [
            ("data: x", true),
            ("data: x\n", true),
            ("data: x\n\n", false),
            (": comment", false),
            ("id: 1\ndata:", false),
            ("retry: 1000", false),
            ("data: x\n\n: bye", false),
        ] {
            assert_eq!(read(text.as_bytes()).is_unfinished, unfinished, "{text:?}");
        }
    }

    #[test]
    fn a_stream_may_hold_so_much_and_no_more() {
        let bounds = Bounds { event_bytes: 10, events: 2 };
        let fed = |pieces: &[&[u8]]| {
            let mut reader = Reader::new(bounds);
            let mut events = Vec::new();
            let end = pieces.iter().try_for_each(|piece| reader.feed(piece, &mut events));
            (events.len(), end)
        };
        assert_eq!(fed(&[b"data:12345\n\n"]), (1, Ok(())));
        assert_eq!(fed(&[b"data:12", b"3456\n\n"]), (0, Err(Overrun::EventTooLarge)));
        assert_eq!(fed(&[b"data:1\nda", b"ta:2\n\n"]), (0, Err(Overrun::EventTooLarge)));
        assert_eq!(fed(&[b"data:1\n\n", b"data:2\n\ndata:3\n\n"]), (3, Err(Overrun::TooManyEvents)));
        assert_eq!(fed(&[&b":1234\n\n".repeat(1000)]), (0, Ok(())));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_pieces_are_cut(
            text in "(data: ?[a-c]{0,3}|event: x|id: 1|:|\r|\n|\r\n){0,12}",
            cuts in proptest::collection::vec(0usize..80, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut reader = Reader::new(Bounds::USUAL);
            let mut events = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                reader.feed(&bytes[from..cut], &mut events).unwrap();
                from = cut;
            }
            let whole = read(bytes);
            prop_assert_eq!(whole.events, events);
            prop_assert_eq!(whole.is_unfinished, reader.is_unfinished());
        }

        #[test]
        fn no_bytes_bring_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
