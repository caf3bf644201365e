//! The head of a plain request.

use std::mem::MaybeUninit;
use std::ops::Range;

use http::Version;

use crate::http::headers::Headers;
use crate::http::shared::Shared;
use crate::http::{exchange, route};

/// The most headers of a plain request.
const MOST_LINES: usize = 32;

/// The head of a request that was plain and in order.
///
/// A client says nearly the same before each of its messages. What it says again is not looked at
/// again: only the length of the body is read, where it stood before.
#[derive(Default)]
pub(super) struct Head {
    text: Vec<u8>,
    /// Where the length of the body stands.
    length: Range<usize>,
    /// Where the names and the values of headers stand.
    lines: Vec<(Range<usize>, Range<usize>)>,
}

/// How long a request is.
pub(super) struct Size {
    pub(super) head: usize,
    pub(super) body: usize,
}

impl Head {
    /// Reads the head of a request. `None` if it is not all there, not plain, or not in order.
    pub(super) fn read(&mut self, bytes: &[u8], shared: &Shared) -> Option<Size> {
        if let Some(size) = self.read_again(bytes) {
            let is_short = size.head <= shared.settings.limits.head;
            return (is_short && !shared.is_stopping()).then_some(size);
        }
        self.text.clear();
        self.lines.clear();
        let size = self.parse(bytes, shared)?;
        let is_in_order = shared.guard.check_origin(None, Version::HTTP_11, self).is_ok()
            && route::admit(shared, self).is_ok()
            && exchange::check(self).is_ok();
        // What is refused once is looked at again.
        if !is_in_order {
            self.text.clear();
        }
        is_in_order.then_some(size)
    }

    /// The same head as before, but for the length of the body.
    fn read_again(&self, bytes: &[u8]) -> Option<Size> {
        if self.text.is_empty() {
            return None;
        }
        let rest = bytes.strip_prefix(&self.text[..self.length.start])?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at(digits);
        let rest = rest.strip_prefix(&self.text[self.length.end..])?;
        Some(Size { head: bytes.len() - rest.len(), body: number(digits)? })
    }

    fn parse(&mut self, bytes: &[u8], shared: &Shared) -> Option<Size> {
        let mut lines = [const { MaybeUninit::uninit() }; MOST_LINES];
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(bytes, &mut lines);
        let Ok(httparse::Status::Complete(head)) = parsed else { return None };
        let is_ours = request.method == Some("POST")
            && request.version == Some(1)
            && request.path == Some(&shared.settings.endpoint)
            && head <= shared.settings.limits.head;
        if !is_ours {
            return None;
        }
        // Where a part of the message stands in it.
        let place = |part: &[u8]| {
            let begin = part.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
            Some(begin..begin + part.len())
        };
        let length = body_length(request.headers)?;
        self.length = place(length)?;
        for line in &*request.headers {
            self.lines.push((place(line.name.as_bytes())?, place(line.value)?));
        }
        self.text.extend_from_slice(&bytes[..head]);
        Some(Size { head, body: number(length)? })
    }

    fn part(&self, place: &Range<usize>) -> &[u8] {
        self.text.get(place.clone()).unwrap_or_default()
    }
}

/// There are few, so that to look at each of them is less work than to file them.
impl Headers for Head {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let is_meant = |line: &&(Range<usize>, Range<usize>)| {
            self.part(&line.0).eq_ignore_ascii_case(name.as_bytes())
        };
        self.lines.iter().filter(is_meant).map(|(_, value)| self.part(value))
    }
}

/// The length of the body, if it is told once and nothing else is told about it or about the
/// connection.
fn body_length<'a>(lines: &[httparse::Header<'a>]) -> Option<&'a [u8]> {
    /// What hyper has to see to. A page in a browser is among it, as it may have to be allowed to
    /// read the answer.
    const UNUSUAL: &[&str] = &["transfer-encoding", "expect", "upgrade", "origin"];
    let mut length = None;
    for line in lines {
        let is = |name: &str| line.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            if length.replace(line.value).is_some() {
                return None;
            }
        } else if is("connection") {
            if !line.value.eq_ignore_ascii_case(b"keep-alive") {
                return None;
            }
        } else if UNUSUAL.iter().any(|name| is(name)) {
            return None;
        }
    }
    length
}

/// A number that is nothing but digits.
fn number(digits: &[u8]) -> Option<usize> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}
