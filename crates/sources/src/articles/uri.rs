//! The address of an article as a resource: `article:///category/slug`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// How addresses of articles begin.
pub const URI_PREFIX: &str = "article:///";

/// What stays as it is in a path: letters, digits, and the marks that RFC 3986 leaves alone.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of an article.
pub fn uri_of(id: &str) -> String {
    format!("{URI_PREFIX}{}", utf8_percent_encode(id, ESCAPED))
}

/// The id in an address, if it is one of ours.
pub fn id_in(uri: &str) -> Option<String> {
    let path = uri.strip_prefix(URI_PREFIX)?;
    percent_decode_str(path)
        .decode_utf8()
        .ok()
        .map(|id| id.into_owned())
        .filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back() {
        for (id, uri) in [
            ("concepts/context-engineering", "article:///concepts/context-engineering"),
            ("a b/ü?#%", "article:///a%20b/%C3%BC%3F%23%25"),
            ("v1.2_x~", "article:///v1.2_x~"),
        ] {
            assert_eq!(uri_of(id), uri);
            assert_eq!(id_in(uri).as_deref(), Some(id));
        }
    }

    #[test]
    fn other_addresses_are_not_ours() {
        for uri in ["", "article:///", "article://a", "file:///etc/passwd", "article:///%FF"] {
            assert_eq!(id_in(uri), None, "{uri}");
        }
    }
}
