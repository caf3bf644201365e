//! The head of a plain request.

use std::mem::MaybeUninit;

use crate::http::headers::Headers;

/// The maximum number of headers of a plain request.
pub(crate) const MAX_HEADERS: usize = 64;

/// Room for the headers of one request.
pub(crate) type Room<'b> = [MaybeUninit<httparse::Header<'b>>; MAX_HEADERS];

/// The head of a plain request, parsed in place.
pub(crate) struct Head<'h, 'b> {
    headers: &'h [httparse::Header<'b>],
    /// The length of the head in bytes.
    pub(crate) length: usize,
    /// The length of the body in bytes.
    pub(crate) body: usize,
}

impl<'h, 'b> Head<'h, 'b> {
    /// Parses the head of a POST to `endpoint`. `None` if it is not complete or not plain: then
    /// hyper reads it.
    pub(crate) fn read(bytes: &'b [u8], endpoint: &str, room: &'h mut Room<'b>) -> Option<Self> {
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(bytes, room);
        let Ok(httparse::Status::Complete(length)) = parsed else { return None };
        let is_for_us = request.method == Some("POST")
            && request.version == Some(1)
            && request.path == Some(endpoint);
        if !is_for_us {
            return None;
        }
        let headers: &'h [httparse::Header<'b>] = request.headers;
        let body = body_length(headers)?;
        Some(Self { headers, length, body })
    }
}

/// A linear search: there are few headers, so hashing them would cost more.
impl Headers for Head<'_, '_> {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let headers = self.headers.iter();
        headers.filter(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    }

    fn each(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.headers.iter().map(|header| (header.name, header.value))
    }
}

/// The length of the body; `None` if a header says anything else about body or connection.
fn body_length(headers: &[httparse::Header<'_>]) -> Option<usize> {
    /// Headers that are left to hyper. `origin` is one: the response may need CORS headers.
    const OTHERS: &[&str] = &["transfer-encoding", "expect", "upgrade", "origin"];
    let mut length = None;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let is_number = !header.value.is_empty() && header.value.iter().all(u8::is_ascii_digit);
            let digits = std::str::from_utf8(header.value).ok().filter(|_| is_number)?;
            if length.replace(digits.parse().ok()?).is_some() {
                return None;
            }
        }
        if is("connection") && !header.value.eq_ignore_ascii_case(b"keep-alive") {
            return None;
        }
        if OTHERS.iter().any(|name| is(name)) {
            return None;
        }
    }
    length
}
