//! The URIs of articles: `article:///category/slug`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::links::Link;

/// The characters that are escaped: all but letters, digits, `/`, and the unreserved characters of
/// RFC 3986.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The URIs of one folder: `article:///id`, or `article://name/id` for a folder with a name.
#[derive(Clone, Debug)]
pub struct ArticleUris {
    prefix: String,
}

impl Default for ArticleUris {
    fn default() -> Self {
        Self::new(None)
    }
}

impl ArticleUris {
    /// The URIs of a folder with this name.
    pub fn new(name: Option<&str>) -> Self {
        Self { prefix: format!("article://{}/", name.unwrap_or_default()) }
    }

    /// The common prefix of all URIs.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The URI of an article.
    pub fn uri_of(&self, id: &str) -> String {
        format!("{}{}", self.prefix, utf8_percent_encode(id, ESCAPED))
    }

    /// The id in a URI of this folder.
    pub fn id_in(&self, uri: &str) -> Option<String> {
        let id = percent_decode_str(uri.strip_prefix(&self.prefix)?).decode_utf8().ok()?;
        (!id.is_empty()).then(|| id.into_owned())
    }

    /// The name of the folder that a link with a URI leads to, if it is another one. The name may be
    /// empty.
    pub fn other_folder(&self, link: &str) -> Option<String> {
        let folder = Link::parse(link.trim_matches('`'), None)?.folder;
        folder.filter(|name| self.prefix != Self::new(Some(name)).prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_name_has_uris_of_its_own() {
        let (plain, named) = (ArticleUris::new(None), ArticleUris::new(Some("wiki")));
        assert_eq!(plain.uri_of("a b/c"), "article:///a%20b/c");
        assert_eq!(named.uri_of("a b/c"), "article://wiki/a%20b/c");
        assert_eq!(named.id_in("article://wiki/a%20b/c").as_deref(), Some("a b/c"));
        assert_eq!(named.id_in("article:///a%20b/c"), None);
        assert_eq!(plain.id_in("article://wiki/a%20b/c"), None);
        for (uris, link, other) in [
            (&plain, "article://wiki/a", Some("wiki")),
            (&plain, "[x](article://wiki/a#b)", Some("wiki")),
            (&plain, "article:///a", None),
            (&named, "`article:///a`", Some("")),
            (&named, "article://wiki/a", None),
            (&named, "../a.md", None),
        ] {
            assert_eq!(uris.other_folder(link).as_deref(), other, "{link}");
        }
    }

    #[test]
    fn a_uri_is_parsed_back() {
        for (id, uri) in [
            ("concepts/context-engineering", "article:///concepts/context-engineering"),
            ("a b/ü?#%", "article:///a%20b/%C3%BC%3F%23%25"),
            ("v1.2_x~", "article:///v1.2_x~"),
        ] {
            assert_eq!(ArticleUris::default().uri_of(id), uri);
            assert_eq!(ArticleUris::default().id_in(uri).as_deref(), Some(id));
        }
    }

    #[test]
    fn other_uris_are_not_parsed() {
        for uri in ["", "article:///", "article://a", "file:///etc/passwd", "article:///%FF"] {
            assert_eq!(ArticleUris::default().id_in(uri), None, "{uri}");
        }
    }
}
