//! Macros of site generators (`{{< ref "x" >}}`, `{{domxref("Window")}}`), which are not text.

/// The text with each macro replaced by what it shows: its `text="…"`, or its last quoted argument if it
/// is inside a sentence. A text of macros only becomes empty.
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

/// What a macro shows.
fn argument(inside: &str) -> &str {
    if let Some((_, rest)) = inside.split_once("text=\"") {
        return rest.split('"').next().unwrap_or_default();
    }
    // The odd parts are inside the quotes.
    let quoted = inside.split('"').skip(1).step_by(2);
    quoted.filter(|part| !part.is_empty()).last().unwrap_or_default()
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
