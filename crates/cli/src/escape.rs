//! Foreign text for a terminal.

use std::borrow::Cow;

/// Text with its control characters escaped: a terminal would obey them, and the text may come from
/// an untrusted file. Line ends are escaped too, so that no text can pretend to be another message.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_control(c) || c == '\n')
}

/// The same for a text of several lines, which keeps its line ends.
pub(crate) fn escaped_lines(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// Whether a terminal would obey a character instead of showing it. Includes the characters that
/// reorder the text around them, but neither line ends nor tabs.
pub(crate) fn is_control(c: char) -> bool {
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || (c.is_control() && c != '\n' && c != '\t')
}

fn escape(text: &str, must: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&must) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if must(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_other_text_is_kept() {
        assert_eq!(escaped("naïve → 日本\tx"), "naïve → 日本\tx");
        assert_eq!(escaped("a\u{1b}[31m\u{7}\r\nb\u{9b}c"), "a\\u{1b}[31m\\u{7}\\r\\nb\\u{9b}c");
        assert_eq!(escaped("\u{202e}exe.txt\u{2069}"), "\\u{202e}exe.txt\\u{2069}");
        assert_eq!(escaped_lines("one\n\u{1b}two"), "one\n\\u{1b}two");
    }
}
