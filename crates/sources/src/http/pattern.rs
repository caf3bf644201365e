//! Names with `*`, which stands for any characters.

/// Whether the whole text matches the pattern.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("*", "abc"),
            ("/a/*", "/a/b/c"),
            ("*/b", "/a/b"),
            ("a*c*e", "abcde"),
            ("a*a", "aa"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a", "ab"), ("", "a"), ("/a/*", "/a"), ("a*a", "a"), ("a*c*e", "aec")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
