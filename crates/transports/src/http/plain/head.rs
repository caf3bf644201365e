//! The head of a plain request.

use std::mem::MaybeUninit;
use std::ops::Range;

use http::Version;

use crate::http::headers::{self, Headers};
use crate::http::state::ServerState;
use crate::http::{exchange, route};

/// The most headers of a plain request.
const MOST_LINES: usize = 32;

/// The headers that differ from message to message.
const VARIED: &[&str] = &["content-length", "mcp-method", "mcp-name"];

/// The head of a request that was plain and in order.
///
/// A client says nearly the same before each of its messages. What it says again is not looked at
/// again: only the headers that vary are read, where they stood before.
#[derive(Default)]
pub(super) struct Head {
    /// As it was when all of it was read.
    text: Vec<u8>,
    /// The headers that are asked for with every message.
    lines: Vec<Line>,
    /// What headers say by now that said something else then, one behind the other.
    changes: Vec<u8>,
}

/// A header.
struct Line {
    /// In lower case, as it is looked for.
    name: String,
    /// Where its value stands in the text.
    value: Range<usize>,
    varies: bool,
    /// Where its value stands among the changes, if it has changed.
    changed: Option<Range<usize>>,
}

/// How long a request is.
pub(super) struct Size {
    pub(super) head: usize,
    pub(super) body: usize,
}

impl Head {
    /// Reads the head of a request. `None` if it is not all there, not plain, or not in order.
    pub(super) fn read(&mut self, bytes: &[u8], shared: &ServerState) -> Option<Size> {
        if !self.text.is_empty()
            && let Some(head) = self.read_again(bytes)
        {
            let is_short = head <= shared.settings.limits.head;
            return self.size(head).filter(|_| is_short && !shared.is_stopping());
        }
        let head = self.parse(bytes, shared);
        let is_in_order = head.is_some()
            && shared.guard.check_origin(None, Version::HTTP_11, self).is_ok()
            && route::admit(shared, self).is_ok()
            && exchange::check(self).is_ok();
        if !is_in_order {
            // It is not to be taken for one that was.
            self.text.clear();
            return None;
        }
        let size = self.size(head?);
        // The others were in order, and say the same in every head that is taken for this one.
        self.lines.retain(|line| line.varies || line.name.starts_with("mcp-"));
        size
    }

    /// Reads what varies; how long the head is, if all else is as it was.
    fn read_again(&mut self, bytes: &[u8]) -> Option<usize> {
        let (mut rest, mut at) = (bytes, 0);
        self.changes.clear();
        for line in self.lines.iter_mut().filter(|line| line.varies) {
            rest = rest.strip_prefix(&self.text[at..line.value.start])?;
            at = line.value.end;
            line.changed = None;
            // With what stands behind it: otherwise it could be longer than it was.
            if rest.starts_with(&self.text[line.value.start..=line.value.end]) {
                rest = &rest[line.value.len()..];
                continue;
            }
            let value;
            (value, rest) = rest.split_at(memchr::memchr(b'\r', rest)?);
            // Space around it is no part of it, and whatever is not seen is read with care.
            if value.trim_ascii() != value || headers::text(value).is_none() {
                return None;
            }
            let begin = self.changes.len();
            self.changes.extend_from_slice(value);
            line.changed = Some(begin..self.changes.len());
        }
        let rest = rest.strip_prefix(&self.text[at..])?;
        Some(bytes.len() - rest.len())
    }

    /// Reads all of it; how long it is.
    fn parse(&mut self, bytes: &[u8], shared: &ServerState) -> Option<usize> {
        let mut lines = [const { MaybeUninit::uninit() }; MOST_LINES];
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(bytes, &mut lines);
        let Ok(httparse::Status::Complete(head)) = parsed else { return None };
        let is_for_us = request.method == Some("POST")
            && request.version == Some(1)
            && request.path == Some(&shared.settings.endpoint)
            && head <= shared.settings.limits.head;
        if !is_for_us || !is_plain(request.headers) {
            return None;
        }
        self.text.clear();
        self.text.extend_from_slice(&bytes[..head]);
        self.lines.clear();
        // Where a part of the message stands in it.
        let place = |part: &[u8]| {
            let begin = part.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
            Some(begin..begin + part.len()).filter(|place| place.end <= head)
        };
        for line in &*request.headers {
            let (name, value) = (line.name.to_ascii_lowercase(), place(line.value)?);
            let varies = VARIED.contains(&&*name);
            self.lines.push(Line { name, value, varies, changed: None });
        }
        Some(head)
    }

    fn size(&self, head: usize) -> Option<Size> {
        let digits = self.first("content-length")?;
        let is_number = digits.iter().all(u8::is_ascii_digit);
        let body = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
        Some(Size { head, body })
    }
}

/// There are few, so that to look at each of them is less work than to file them.
impl Headers for Head {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.lines.iter().filter(move |line| line.name == name).map(|line| match &line.changed {
            Some(changed) => &self.changes[changed.clone()],
            None => &self.text[line.value.clone()],
        })
    }
}

/// Whether nothing is told about the body but its length, once, and nothing about the connection.
fn is_plain(lines: &[httparse::Header<'_>]) -> bool {
    /// What hyper has to see to. A page in a browser is among it, as it may have to be allowed to
    /// read the answer.
    const UNUSUAL: &[&str] = &["transfer-encoding", "expect", "upgrade", "origin"];
    let mut lengths = 0;
    lines.iter().all(|line| {
        let is = |name: &str| line.name.eq_ignore_ascii_case(name);
        lengths += usize::from(is("content-length"));
        let keeps_alive = !is("connection") || line.value.eq_ignore_ascii_case(b"keep-alive");
        lengths < 2 && keeps_alive && !UNUSUAL.iter().any(|name| is(name))
    })
}
