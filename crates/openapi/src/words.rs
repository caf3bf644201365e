//! Shortening of texts.

/// The text with at most `limit` characters, cut at a space, with `…` at the end if it was cut.
/// White space at its ends is removed, and several blank lines become one.
pub fn shortened(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut blank = 0;
    // Enough to fill the limit: descriptions of 100 KB exist.
    for line in text.trim().lines().take(limit + 1) {
        let line = line.trim_end();
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank < 2 {
            out.push_str(line);
            out.push('\n');
        }
        if out.len() > limit * 4 + 4 {
            break;
        }
    }
    let text = out.trim_end();
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let head = &text[..text[..end].char_indices().last().map_or(0, |(last, _)| last)];
    // A word is cut only if it is longer than half of the text.
    let cut = head.rfind(char::is_whitespace).filter(|space| *space > head.len() / 2);
    format!("{}…", head[..cut.unwrap_or(head.len())].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_space_and_never_longer_than_its_limit() {
        assert_eq!(shortened(" one two \n\n\n\n three ", 100), "one two\n\n three");
        assert_eq!(shortened("one two three", 10), "one two…");
        assert_eq!(shortened("onetwothree", 5), "onet…");
        assert_eq!(shortened("ééééé", 5), "ééééé");
        assert_eq!(shortened("éééééé", 5), "éééé…");
        assert_eq!(shortened("abc", 0), "…");
        assert_eq!(shortened("", 0), "");
    }
}
