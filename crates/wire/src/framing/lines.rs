//! Bytes to lines of bounded length.
//!
//! A message is one line. A line over the limit is reported once and skipped to its end, in bounded
//! memory; the lines after it are read as usual.

use bytes::{Bytes, BytesMut};

/// Splits a byte stream into lines.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: BytesMut,
    /// Length of the beginning of `buffer` that has no newline.
    scanned: usize,
    limit: usize,
    /// Inside a line that was reported as too long.
    skipping: bool,
}

/// A line that [`LineSplitter`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// One message, without its newline.
    Message(Bytes),
    /// A line longer than the limit. It was dropped.
    TooLong,
}

impl LineSplitter {
    /// A splitter for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit, skipping: false }
    }

    /// Makes room for the next read, if little is left.
    pub fn make_room(&mut self, chunk: usize) {
        // Reuse freed memory: it is still in the CPU cache.
        let is_there = self.buffer.try_reclaim(chunk);
        if !is_there && self.buffer.capacity() - self.buffer.len() < chunk / 4 {
            self.buffer.reserve(chunk);
        }
    }

    /// The buffer to append the next bytes to.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next line, if one is complete. Blank lines are skipped.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                return self.no_newline();
            };
            let line = self.buffer.split_to(self.scanned + at + 1);
            self.scanned = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let length = line.len() - 1;
            if let Some(line) = self.finish_line(line.freeze().slice(..length)) {
                return Some(line);
            }
        }
    }

    /// The last line of a stream that ended without a newline.
    pub fn finish(&mut self) -> Option<Line> {
        self.scanned = 0;
        let rest = self.buffer.split().freeze();
        if std::mem::take(&mut self.skipping) { None } else { self.finish_line(rest) }
    }

    fn no_newline(&mut self) -> Option<Line> {
        self.scanned = self.buffer.len();
        if self.skipping {
            self.buffer.clear();
            self.scanned = 0;
            return None;
        }
        // One byte of grace for the carriage return of a line that just fits.
        if self.buffer.len() > self.limit + 1 {
            self.buffer.clear();
            self.scanned = 0;
            self.skipping = true;
            return Some(Line::TooLong);
        }
        None
    }

    fn finish_line(&self, line: Bytes) -> Option<Line> {
        let line = match line.last() {
            Some(b'\r') => line.slice(..line.len() - 1),
            _ => line,
        };
        if line.len() > self.limit {
            Some(Line::TooLong)
        } else if line.iter().all(u8::is_ascii_whitespace) {
            None
        } else {
            Some(Line::Message(line))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut splitter = LineSplitter::new(limit);
        let mut found = Vec::new();
        for chunk in chunks {
            splitter.buffer().extend_from_slice(chunk);
            found.extend(std::iter::from_fn(|| splitter.next_line()));
        }
        found.extend(splitter.finish());
        found
    }

    fn message(text: &'static str) -> Line {
        Line::Message(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_end_with_either_newline_and_blank_ones_are_skipped() {
        assert_eq!(lines(9, &[b"a\n\r\n \nb\r\nc"]), [message("a"), message("b"), message("c")]);
    }

    #[test]
    fn a_line_may_come_in_pieces() {
        assert_eq!(lines(9, &[b"ab", b"c", b"\nd"]), [message("abc"), message("d")]);
    }

    #[test]
    fn the_limit_is_met_exactly() {
        assert_eq!(lines(3, &[b"abc\r\n"]), [message("abc")]);
        assert_eq!(lines(3, &[b"abcd\n"]), [Line::TooLong]);
        assert_eq!(lines(3, &[b"abc"]), [message("abc")]);
        assert_eq!(lines(3, &[b"abcd"]), [Line::TooLong]);
    }

    #[test]
    fn a_long_line_is_dropped_once_and_costs_no_memory() {
        let mut splitter = LineSplitter::new(8);
        let mut found = Vec::new();
        for _ in 0..1000 {
            splitter.buffer().extend_from_slice(&[b'x'; 64]);
            found.extend(splitter.next_line());
            assert!(splitter.buffer().len() <= 9);
        }
        splitter.buffer().extend_from_slice(b"\nok\n");
        found.extend(std::iter::from_fn(|| splitter.next_line()));
        assert_eq!(found, [Line::TooLong, message("ok")]);
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_does_not_matter(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..8),
            limit in 1usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(lines(limit, &pieces), lines(limit, &[&bytes]));
        }
    }
}
