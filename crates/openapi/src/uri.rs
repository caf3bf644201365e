//! References relative to a URI.

use fluent_uri::{Uri, UriRef};

/// Whether the text is a URL with a scheme.
pub fn is_absolute(url: &str) -> bool {
    Uri::parse(url).is_ok()
}

/// A reference resolved against a base URI. `None` if one of them is not a URI.
pub fn join(base: &str, reference: &str) -> Option<String> {
    let reference = UriRef::parse(reference).ok()?;
    let base = Uri::parse(base).ok()?;
    Some(reference.resolve_against(&base.strip_fragment()).ok()?.as_str().to_owned())
}
