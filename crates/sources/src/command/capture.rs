//! Reads the output of a program up to a limit, and reports its lines to an observer.

use std::collections::VecDeque;
use std::io;

use sabir_budget::{Hold, Memory, MemoryFull};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// One of the two streams that a program writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Called with every line while the program runs, without its line end. It must not block.
pub type Observer<'a> = dyn FnMut(Stream, &[u8]) + Send + 'a;

/// The longest line that is reported at once. A longer one is reported in pieces.
pub(super) const MAX_LINE: usize = 8 << 10;

/// The number of bytes that are kept of the end of standard error.
pub(super) const ERROR_TAIL: usize = 8 << 10;

const CHUNK: usize = 16 << 10;

/// A stream that is being read.
pub(super) struct Capture {
    stream: Stream,
    pipe: Option<pipe::Receiver>,
    chunk: Vec<u8>,
    kept: VecDeque<u8>,
    /// The memory of the kept output, counted in the budget of the process.
    hold: Hold,
    /// There was no memory for more.
    full: Option<MemoryFull>,
    max_bytes: usize,
    seen: u64,
    line: Vec<u8>,
}

impl Capture {
    pub(super) fn new(
        stream: Stream,
        pipe: Option<pipe::Receiver>,
        max_bytes: usize,
        memory: &'static Memory,
    ) -> Self {
        let (chunk, kept, line) = (vec![0; CHUNK], VecDeque::new(), Vec::new());
        let hold = memory.take_anyway(0);
        Self { stream, pipe, chunk, kept, hold, full: None, max_bytes, seen: 0, line }
    }

    /// Whether the stream has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Whether the limit was exceeded.
    pub(super) fn is_over(&self) -> bool {
        self.seen > self.max_bytes as u64
    }

    /// The number of bytes that were read but not kept.
    pub(super) fn cut(&self) -> u64 {
        self.seen - self.kept.len() as u64
    }

    /// Set if there was no memory for all that should have been kept.
    pub(super) fn full(&self) -> Option<MemoryFull> {
        self.full
    }

    /// The bytes that were kept: the first of standard output, the last of standard error. And the
    /// memory that they hold.
    pub(super) fn into_kept(mut self) -> (Vec<u8>, Hold) {
        self.hold.shrink_to(self.kept.len());
        (self.kept.into(), self.hold)
    }

    /// Waits for data. Cancel safe.
    pub(super) async fn read(&mut self) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.chunk).await,
            None => std::future::pending().await,
        }
    }

    /// Handles the result of [`Capture::read`]. An error counts as the end of the stream.
    pub(super) fn take(&mut self, read: io::Result<usize>, observer: Option<&mut Observer<'_>>) {
        let read = read.unwrap_or(0);
        let was_over = self.is_over();
        let bytes = &self.chunk[..read];
        self.seen += read as u64;
        match self.stream {
            Stream::Output => {
                let room = self.max_bytes - self.kept.len();
                let bytes = &bytes[..read.min(room)];
                if self.full.is_none() {
                    // Twice: as its buffer grows it is copied.
                    self.full = self.hold.grow(2 * bytes.len()).err();
                }
                if self.full.is_none() {
                    self.kept.extend(bytes);
                }
            }
            Stream::Error => {
                self.kept.extend(bytes);
                let excess = self.kept.len().saturating_sub(ERROR_TAIL);
                self.kept.drain(..excess);
            }
        }
        if let Some(observer) = observer
            && !was_over
        {
            report_lines(self.stream, &mut self.line, bytes, observer);
            if read == 0 && !self.line.is_empty() {
                observer(self.stream, &self.line);
            }
        }
        if read == 0 {
            self.pipe = None;
        }
    }
}

/// Reports the lines that `bytes` complete, and keeps the rest in `line`.
fn report_lines(stream: Stream, line: &mut Vec<u8>, bytes: &[u8], observer: &mut Observer<'_>) {
    for part in bytes.split_inclusive(|byte| *byte == b'\n') {
        let ended = part.ends_with(b"\n");
        let mut text = part.strip_suffix(b"\n").unwrap_or(part);
        while line.len() + text.len() > MAX_LINE {
            let (fits, rest) = text.split_at(MAX_LINE - line.len());
            line.extend_from_slice(fits);
            observer(stream, line);
            line.clear();
            text = rest;
        }
        line.extend_from_slice(text);
        if ended {
            observer(stream, line.strip_suffix(b"\r").unwrap_or(line));
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(stream: Stream, max_bytes: usize) -> Capture {
        Capture::new(stream, None, max_bytes, sabir_budget::memory())
    }

    fn reported(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut capture = capture(Stream::Output, 1 << 20);
        let mut lines = Vec::new();
        let mut observer = |_, line: &[u8]| lines.push(line.to_vec());
        for chunk in chunks.iter().chain([&&b""[..]]) {
            capture.chunk[..chunk.len()].copy_from_slice(chunk);
            capture.take(Ok(chunk.len()), Some(&mut observer));
        }
        lines
    }

    #[test]
    fn lines_are_reported_whole_however_they_arrive() {
        let whole = [&b"one"[..], b"", b"two", b"rest"];
        assert_eq!(reported(&[b"one\n\ntwo\r\nrest"]), whole);
        assert_eq!(reported(&[b"o", b"ne", b"\n\nt", b"wo\r", b"\n", b"rest"]), whole);
        assert_eq!(reported(&[b"one\n"]), [b"one"]);
        assert_eq!(reported(&[]), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_line_beyond_the_limit_is_reported_in_pieces() {
        let line = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
        let lengths = |chunks: &[&[u8]]| reported(chunks).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[&line(MAX_LINE)]), [MAX_LINE]);
        assert_eq!(lengths(&[&line(MAX_LINE + 1)]), [MAX_LINE, 1]);
        let half = vec![b'x'; MAX_LINE / 2 + 1];
        assert_eq!(lengths(&[&half, &half, b"\n"]), [MAX_LINE, 2]);
    }

    #[test]
    fn the_start_of_the_output_and_the_end_of_the_errors_are_kept() {
        let mut output = capture(Stream::Output, 4);
        let mut errors = capture(Stream::Error, ERROR_TAIL);
        for capture in [&mut output, &mut errors] {
            for _ in 0..ERROR_TAIL / 4 {
                capture.chunk[..4].copy_from_slice(b"abcd");
                capture.take(Ok(4), None);
            }
        }
        assert_eq!((output.is_over(), output.cut()), (true, ERROR_TAIL as u64 - 4));
        assert_eq!(output.into_kept().0, b"abcd");
        assert_eq!((errors.is_over(), errors.cut()), (false, 0));
        errors.chunk[..1].copy_from_slice(b"!");
        errors.take(Ok(1), None);
        assert_eq!((errors.is_over(), errors.cut()), (true, 1));
        assert!(errors.into_kept().0.ends_with(b"abcd!"));
    }

    #[test]
    fn output_of_exactly_the_limit_is_not_over_it() {
        let mut output = capture(Stream::Output, 4);
        output.chunk[..4].copy_from_slice(b"abcd");
        output.take(Ok(4), None);
        assert!(!output.is_over());
        output.take(Ok(1), None);
        assert!(output.is_over());
    }

    #[test]
    fn output_takes_from_the_memory_of_the_process() {
        let memory: &'static Memory = Box::leak(Box::new(Memory::new(20)));
        let mut output = Capture::new(Stream::Output, None, 100, memory);
        output.take(Ok(10), None);
        assert_eq!((output.full(), memory.used()), (None, 20));
        output.take(Ok(1), None);
        assert_eq!((output.full(), memory.used()), (Some(MemoryFull::Whole(20)), 20));
        let (kept, hold) = output.into_kept();
        assert_eq!((kept.len(), memory.used()), (10, 10));
        drop(hold);
        assert_eq!(memory.used(), 0);
        // The end of standard error is short.
        let mut errors = Capture::new(Stream::Error, None, 100, memory);
        errors.take(Ok(50), None);
        assert_eq!((errors.full(), memory.used()), (None, 0));
    }
}
