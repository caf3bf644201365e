//! Macros of site generators (`{{< ref "x" >}}`, `{{domxref("Window")}}`), which are not text.

use std::ops::Range;

/// The text with each macro replaced by the text that it shows: its `text="…"`, or its last quoted
/// argument if it is inside a sentence. A text of macros only becomes empty.
pub(crate) fn without_macros(text: &str) -> String {
    if !text.contains("{{") {
        return text.trim().to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut shown = String::new();
    while let Some((before, inside, after)) = next_macro(rest) {
        out.push_str(before);
        shown.push_str(before);
        out.push_str(argument(inside));
        rest = after;
    }
    shown.push_str(rest);
    out.push_str(rest);
    if shown.trim().is_empty() { String::new() } else { out.trim().to_owned() }
}

/// The text before the next macro, its inside, and the text after it.
fn next_macro(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (inside, after) = rest.split_once("}}")?;
    Some((before, inside, after))
}

/// The text that a macro shows.
fn argument(inside: &str) -> &str {
    if let Some((_, rest)) = inside.split_once("text=\"") {
        return rest.split('"').next().unwrap_or_default();
    }
    // The odd parts are inside the quotes.
    let quoted = inside.split('"').skip(1).step_by(2);
    quoted.filter(|part| !part.is_empty()).last().unwrap_or_default()
}

/// The longest macro that is looked for in a link, in bytes.
const LONGEST_REFERENCE: usize = 400;

/// The places of Hugo's `{{< ref "x.md" >}}` and `relref` as addresses of links, outside of code. Markdown
/// sees no links in them.
pub(crate) fn references(text: &str, code: &[Range<usize>]) -> Vec<Range<usize>> {
    let found = text.match_indices("]({{").filter_map(|(at, _)| {
        let start = at + 2;
        let mut near = text.as_bytes()[start..].windows(3).take(LONGEST_REFERENCE);
        let length = near.position(|bytes| bytes == b"}})")? + 2;
        let inside =
            text[start + 2..start + length - 2].trim_start_matches(['<', '%']).trim_start();
        let is_reference = inside.starts_with("ref ") || inside.starts_with("relref ");
        let before = code.partition_point(|range| range.start <= at);
        let is_code = before > 0 && code[before - 1].contains(&at);
        (is_reference && !is_code).then(|| start..start + length)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_macro_in_a_sentence_becomes_what_it_shows() {
        for (text, shown) in [
            (" plain text ", "plain text"),
            ("the {{domxref(\"Window\")}} object", "the Window object"),
            ("call {{domxref(\"Window/fetch\", \"fetch()\")}} now", "call fetch() now"),
            ("{{< glossary_tooltip text=\"Pods\" term_id=\"pod\" >}} run", "Pods run"),
            ("{{APIRef(\"DOM\")}}{{SeeCompatTable}}", ""),
            ("{{< note >}} mind this {{< /note >}}", "mind this"),
            ("half {{ open", "half {{ open"),
            ("{{}}", ""),
        ] {
            assert_eq!(without_macros(text), shown, "{text}");
        }
    }
}
