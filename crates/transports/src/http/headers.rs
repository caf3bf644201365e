//! The headers of a request, parsed by hyper or by our own reader.

use http::{HeaderMap, HeaderValue, StatusCode};

use super::reply::Refusal;

/// Headers to look things up in.
pub(crate) trait Headers {
    /// All values of one header, whose name is in lower case, in their order.
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]>;

    /// All headers.
    fn each(&self) -> impl Iterator<Item = (&str, &[u8])>;

    /// The first value of one header.
    fn first<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        self.all(name).next()
    }
}

impl Headers for HeaderMap {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.get_all(name).iter().map(HeaderValue::as_bytes)
    }

    fn each(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
    }
}

/// The value of a header that must not be duplicated: two parsers might use different values.
pub(crate) fn only<'a>(
    headers: &'a impl Headers,
    name: &'static str,
) -> Result<Option<&'a [u8]>, Refusal> {
    let mut all = headers.all(name);
    match (all.next(), all.next()) {
        (first, None) => Ok(first),
        _ => {
            let reason = format!("duplicate header {name} (expected once)");
            Err(Refusal::new(StatusCode::BAD_REQUEST, reason))
        }
    }
}

/// The text of a value, if all its characters are printable ASCII or tabs.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    let is_visible = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    if is_visible { std::str::from_utf8(value).ok() } else { None }
}
