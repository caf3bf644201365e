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

/// The addresses of one folder: `article:///id`, or `article://name/id` for a folder with a name.
#[derive(Clone, Debug)]
pub struct Addresses {
    prefix: String,
}

impl Addresses {
    /// The addresses of a folder with this name.
    pub fn new(name: Option<&str>) -> Self {
        let prefix =
            name.map_or_else(|| URI_PREFIX.to_owned(), |name| format!("article://{name}/"));
        Self { prefix }
    }

    /// How the addresses begin.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The address of an article.
    pub fn uri_of(&self, id: &str) -> String {
        format!("{}{}", self.prefix, utf8_percent_encode(id, ESCAPED))
    }

    /// The id in an address of this folder.
    pub fn id_in(&self, uri: &str) -> Option<String> {
        let path = uri.strip_prefix(&self.prefix)?;
        id_in(&format!("{URI_PREFIX}{path}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_name_has_addresses_of_its_own() {
        let (plain, named) = (Addresses::new(None), Addresses::new(Some("wiki")));
        assert_eq!(plain.uri_of("a b/c"), "article:///a%20b/c");
        assert_eq!(named.uri_of("a b/c"), "article://wiki/a%20b/c");
        assert_eq!(named.id_in("article://wiki/a%20b/c").as_deref(), Some("a b/c"));
        assert_eq!(named.id_in("article:///a%20b/c"), None);
        assert_eq!(plain.id_in("article://wiki/a%20b/c"), None);
    }

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
