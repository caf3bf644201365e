//! URIs of schemes that belong to one server: two upstreams may use the same URI.
//!
//! `ui://app/page` of the upstream `files` is `ui://files/app/page` to our clients, in lists, in
//! results and when it is read. The last segments stay, since skills are named by them.

use std::borrow::Cow;

use memchr::memmem;
use sabir_wire::Raw;

/// The schemes whose URIs are rewritten.
const SCHEMES: [&str; 2] = ["ui", "skill"];

/// The members that have such URIs as their values.
const MEMBERS: [&str; 4] = ["uri", "uriTemplate", "resourceUri", "ui/resourceUri"];

/// Rewrites URIs of one upstream.
#[derive(Clone, Debug)]
pub(super) struct UriNames {
    /// The first segment of rewritten URIs; `None` rewrites nothing.
    segment: Option<Box<str>>,
}

impl UriNames {
    pub(super) fn new(segment: Option<&str>) -> Self {
        Self { segment: segment.map(Into::into) }
    }

    /// The prefixes of all rewritten URIs.
    pub(super) fn beginnings(&self) -> Vec<String> {
        let segment = self.segment.iter();
        segment.flat_map(|name| SCHEMES.map(|scheme| format!("{scheme}://{name}/"))).collect()
    }

    /// A URI of the upstream, as our clients see it.
    pub(super) fn outward<'a>(&self, uri: &'a str) -> Cow<'a, str> {
        match (&self.segment, rest(uri)) {
            (Some(segment), Some((scheme, rest))) => format!("{scheme}://{segment}/{rest}").into(),
            _ => uri.into(),
        }
    }

    /// A URI of our clients, as the upstream knows it.
    pub(super) fn inward<'a>(&self, uri: &'a str) -> Cow<'a, str> {
        let own = self.segment.as_ref().and_then(|segment| {
            let (scheme, rest) = rest(uri)?;
            let rest = rest.strip_prefix(&**segment)?.strip_prefix('/')?;
            Some(format!("{scheme}://{rest}"))
        });
        own.map_or(Cow::Borrowed(uri), Cow::Owned)
    }

    /// JSON of the upstream with its URIs as our clients see them; all other bytes stay.
    pub(super) fn outward_json(&self, json: &Raw) -> Raw {
        let Some(segment) = &self.segment else { return json.clone() };
        let has_any = SCHEMES.iter().any(|scheme| {
            memmem::find(json.as_bytes(), format!("\"{scheme}:").as_bytes()).is_some()
        });
        let rewritten = has_any.then(|| rewrite(json.text(), segment));
        rewritten.and_then(|text| Raw::parse(text).ok()).unwrap_or_else(|| json.clone())
    }
}

/// The scheme and the rest of a URI that is rewritten. A slash may be escaped in JSON.
fn rest(uri: &str) -> Option<(&'static str, &str)> {
    SCHEMES.into_iter().find_map(|scheme| {
        let rest = uri.strip_prefix(scheme)?.strip_prefix(':')?;
        Some((scheme, rest.strip_prefix("//").or_else(|| rest.strip_prefix("\\/\\/"))?))
    })
}

/// Rewrites the values of [`MEMBERS`] in valid JSON.
fn rewrite(json: &str, segment: &str) -> String {
    let mut out = String::with_capacity(json.len() + 64);
    let (mut left, mut is_named) = (json, false);
    while let Some(open) = left.find('"') {
        let (before, from) = left.split_at(open + 1);
        out.push_str(before);
        let (text, after) = from.split_at(string_end(from));
        let is_name = after[1..].trim_start().starts_with(':');
        match rest(text).filter(|_| is_named && !is_name) {
            Some((scheme, rest)) => out.extend([scheme, "://", segment, "/", rest]),
            None => out.push_str(text),
        }
        out.push('"');
        left = &after[1..];
        // The value itself must be a string: the next string of a list or an object is not the
        // value.
        let value = left.trim_start().strip_prefix(':').unwrap_or_default();
        is_named = is_name && MEMBERS.contains(&text) && value.trim_start().starts_with('"');
    }
    out.push_str(left);
    out
}

/// The offset of the closing quote. `text` begins after the opening one.
fn string_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    // Not reached in valid JSON, in which every string ends.
    bytes.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_uris_get_a_segment_and_lose_it_again() {
        let names = UriNames::new(Some("files"));
        for (uri, seen) in [
            ("ui://app/page", "ui://files/app/page"),
            ("skill://a/b/SKILL.md", "skill://files/a/b/SKILL.md"),
            ("file:///x", "file:///x"),
            ("ui:/x", "ui:/x"),
            ("gui://x", "gui://x"),
        ] {
            assert_eq!(names.outward(uri), seen);
            assert_eq!(names.inward(seen), uri);
        }
        assert_eq!(names.inward("ui://other/app"), "ui://other/app");
        assert_eq!(UriNames::new(None).outward("ui://app"), "ui://app");
    }

    #[test]
    fn only_uris_in_their_members_are_rewritten() {
        let names = UriNames::new(Some("f"));
        for (json, expected) in [
            (r#"{"uri":"ui://a","n":1.0}"#, r#"{"uri":"ui://f/a","n":1.0}"#),
            (
                r#"{"text":"ui://a","x": {"uri" : "ui://b"}}"#,
                r#"{"text":"ui://a","x": {"uri" : "ui://f/b"}}"#,
            ),
            (r#"{"ui":{"resourceUri":"ui:\/\/a\/b"}}"#, r#"{"ui":{"resourceUri":"ui://f/a\/b"}}"#),
            (
                r#"{"uri":["ui://a"],"uri":"x\"\\","a":"uri"}"#,
                r#"{"uri":["ui://a"],"uri":"x\"\\","a":"uri"}"#,
            ),
            (r#"["uri","ui://a"]"#, r#"["uri","ui://a"]"#),
            (
                r#"{"text":"\"uri\":\"ui://a\"","uri":"ui://é"}"#,
                r#"{"text":"\"uri\":\"ui://a\"","uri":"ui://f/é"}"#,
            ),
            (
                r#"{"big":123456789012345678901234567890,"uri":"skill://s"}"#,
                r#"{"big":123456789012345678901234567890,"uri":"skill://f/s"}"#,
            ),
        ] {
            assert_eq!(names.outward_json(&Raw::parse(json).unwrap()).text(), expected);
        }
    }
}
