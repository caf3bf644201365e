//! Server-sent events, as a client reads them. Spec: WHATWG HTML, "Server-sent events".

use memchr::memchr2;

/// Reads server-sent events from a byte stream that comes in chunks of any size.
///
/// An event that exceeds the limit is reported once and skipped to its end, in bounded memory; the
/// events after it are read as usual. Comments are skipped. An event that the end of the stream
/// cuts off is dropped, as the specification says.
#[derive(Debug)]
pub struct SseReader {
    /// The line so far.
    line: Vec<u8>,
    event: SseEvent,
    /// Whether `event` has a field that was understood.
    has_field: bool,
    /// Whether `event` has a line of data.
    has_data: bool,
    limit: usize,
    /// Inside an event that was reported as too long.
    skipping: bool,
    /// The last byte was a carriage return: a line feed after it ends no line of its own.
    after_return: bool,
    /// No line was finished yet: a byte order mark may come.
    at_start: bool,
}

/// One event. It may carry only an id or a retry time: then its data is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Type of the event; `message` if absent.
    pub event: Option<String>,
    /// Data, its lines joined by `\n`.
    pub data: String,
    /// Id to resume the stream after this event.
    pub id: Option<String>,
    /// Time in milliseconds to wait before reconnecting.
    pub retry: Option<u64>,
}

/// An event was dropped because it is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("server-sent event is too long (limit {limit} bytes)")]
pub struct EventTooLong {
    /// The limit in bytes.
    pub limit: usize,
}

impl SseReader {
    /// A reader for events of at most `limit` bytes, counted over their fields.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: SseEvent::default(),
            has_field: false,
            has_data: false,
            limit,
            skipping: false,
            after_return: false,
            at_start: true,
        }
    }

    /// Takes the next bytes of the stream and gives the events that they complete.
    pub fn push(&mut self, mut chunk: &[u8]) -> Vec<Result<SseEvent, EventTooLong>> {
        let mut found = Vec::new();
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_return) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let end = memchr2(b'\r', b'\n', chunk);
            self.extend_line(&chunk[..end.unwrap_or(chunk.len())], &mut found);
            let Some(end) = end else { break };
            self.after_return = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            found.extend(self.end_line().map(Ok));
        }
        found
    }

    /// The number of buffered bytes of an incomplete event.
    pub fn buffered(&self) -> usize {
        self.line.len() + self.event.length()
    }

    fn extend_line(&mut self, bytes: &[u8], found: &mut Vec<Result<SseEvent, EventTooLong>>) {
        self.line.extend_from_slice(&bytes[..bytes.len().min(self.limit + 1)]);
        if !self.skipping && self.line.len() + self.event.length() > self.limit {
            self.skipping = true;
            self.event = SseEvent::default();
            found.push(Err(EventTooLong { limit: self.limit }));
        }
        if self.skipping {
            // Only whether a skipped line is empty matters.
            self.line.truncate(1);
        }
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        if text.is_empty() {
            let is_event = std::mem::take(&mut self.has_field) && !self.skipping;
            (self.skipping, self.has_data) = (false, false);
            let event = std::mem::take(&mut self.event);
            return is_event.then_some(event);
        }
        if !self.skipping {
            self.read_field(&String::from_utf8_lossy(text));
        }
        // Reuse the buffer for the next line.
        self.line = line;
        self.line.clear();
        None
    }

    fn read_field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.event.retry = Some(value.parse().unwrap_or(u64::MAX));
            }
            // A comment has an empty name.
            _ => return,
        }
        self.has_field = true;
    }
}

impl SseEvent {
    fn length(&self) -> usize {
        let length = |field: &Option<String>| field.as_ref().map_or(0, String::len);
        self.data.len() + length(&self.event) + length(&self.id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = Vec<Result<SseEvent, EventTooLong>>;

    fn read(limit: usize, chunks: &[&[u8]]) -> Read {
        let mut reader = SseReader::new(limit);
        chunks.iter().flat_map(|chunk| reader.push(chunk)).collect()
    }

    fn event(data: &str) -> SseEvent {
        SseEvent { data: data.into(), ..SseEvent::default() }
    }

    #[test]
    fn events_have_data_types_ids_and_retry_times() {
        let text = b"event: message\nid: 7\nretry: 250\ndata: {\"a\":\ndata:1}\n\ndata\n\n";
        let all = SseEvent {
            event: Some("message".into()),
            data: "{\"a\":\n1}".into(),
            id: Some("7".into()),
            retry: Some(250),
        };
        assert_eq!(read(99, &[text]), [Ok(all), Ok(event(""))]);
    }

    #[test]
    fn all_line_ends_are_the_same_and_a_byte_order_mark_is_skipped() {
        for text in ["\u{feff}data: a\n\ndata: b\n\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(read(99, &[text.as_bytes()]), [Ok(event("a")), Ok(event("b"))]);
        }
        let mixed = b"data: a\r\n\r\ndata: b\n\r\n\r\r\n";
        assert_eq!(read(99, &[mixed]), [Ok(event("a")), Ok(event("b"))]);
    }

    #[test]
    fn comments_unknown_fields_and_bad_values_are_skipped() {
        let text =
            b":\n\n: keep-alive\n\nnope: 1\nid: a\0b\nretry: 1s\ndata:  x\n\n:end\n\ndata: y";
        assert_eq!(read(99, &[text]), [Ok(event(" x"))]);
    }

    #[test]
    fn an_event_may_have_an_id_and_no_data() {
        let first = SseEvent { id: Some("1".into()), retry: Some(0), ..SseEvent::default() };
        assert_eq!(read(99, &[b"id: 1\nretry: 0\n\n"]), [Ok(first)]);
    }

    #[test]
    fn a_long_event_is_dropped_once_and_reading_goes_on() {
        let long = || Err(EventTooLong { limit: 10 });
        let text = b"data: 1234\n\ndata: 12345\nid: 1\n\ndata: 1234\ndata: 1\n\ndata: ok\n\n";
        assert_eq!(read(10, &[text]), [Ok(event("1234")), long(), long(), Ok(event("ok"))]);
    }

    #[test]
    fn a_long_event_costs_no_memory() {
        let mut reader = SseReader::new(100);
        let mut found = Vec::new();
        for _ in 0..1000 {
            found.extend(reader.push(&[b'x'; 1000]));
            found.extend(reader.push(b"\ndata: y\n"));
            assert!(reader.line.capacity() + reader.event.data.capacity() < 500);
        }
        found.extend(reader.push(b"\ndata: ok\n\n"));
        assert_eq!(found, [Err(EventTooLong { limit: 100 }), Ok(event("ok"))]);
    }

    proptest! {
        #[test]
        fn any_chunks_give_the_same_events(
            parts in prop::collection::vec(prop::sample::select(vec![
                "data: a", "data", "data: \u{e9}b", "event: e", "id: 1", "retry: 5", ": c", "x: y",
                "\n", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n", "\u{feff}", ":", " ",
                "data: a long line that exceeds the limit of some runs",
            ]), 0..40),
            cuts in prop::collection::vec(0usize..400, 0..12),
            limit in 1usize..60,
        ) {
            let bytes = parts.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(limit, &chunks), read(limit, &[&bytes]));
        }
    }
}
