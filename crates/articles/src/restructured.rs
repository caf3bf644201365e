//! The headings of reStructuredText.
//!
//! A heading is a line with a line of punctuation below it, and perhaps the same above it. The first
//! such style in a file is that of level 1, the next new one that of level 2, and so on. A label above
//! a heading (`.. _name:`) is its id.

use crate::markup::{Prepared, is_underline, rule};

/// The shortest line of punctuation.
const SHORTEST: usize = 3;

/// From this length on, a line below a longer title is accepted, too.
const LONG_ENOUGH: usize = 4;

/// The text with the headings of Markdown, at the same places.
pub(crate) fn prepared(text: &str) -> Prepared {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = Prepared::default();
    let mut styles: Vec<(char, bool)> = Vec::new();
    let (mut at, mut place, mut may_start) = (0, 0, true);
    while at < lines.len() {
        let (count, style) = match heading(&lines[at..], may_start) {
            Some((mark, true)) => (3, Some((mark, true))),
            Some((mark, false)) => (2, Some((mark, false))),
            None => (1, None),
        };
        let length: usize = lines[at..at + count].iter().map(|line| line.len()).sum();
        let source = &text[place..place + length];
        match style {
            Some(style) => {
                let known = styles.iter().position(|known| *known == style);
                let level = known.unwrap_or(styles.len()) + 1;
                if known.is_none() {
                    styles.push(style);
                }
                let title = lines[at + usize::from(style.1)].trim();
                out.heading(level, title, source);
            }
            None => body(&mut out, source),
        }
        may_start = style.is_some() || source.trim().is_empty() || source.starts_with("..");
        place += length;
        at += count;
    }
    out
}

/// The style of the heading that starts here: its character, and whether there is a line above it.
fn heading(lines: &[&str], may_start: bool) -> Option<(char, bool)> {
    let is_title = |line: &str| !line.trim().is_empty() && rule(line, SHORTEST).is_none();
    if let [above, title, below, ..] = lines
        && let Some(mark) = rule(above, SHORTEST)
    {
        let fits = title.trim().chars().count() <= above.trim_end().len();
        let is_heading = is_title(title) && above.trim_end() == below.trim_end() && fits;
        return is_heading.then_some((mark, true));
    }
    let [title, below, ..] = lines else { return None };
    let mark = rule(below, SHORTEST)?;
    let length = below.trim_end().len();
    let fits = title.trim_end().chars().count() <= length || length >= LONG_ENOUGH;
    let is_text = is_title(title) && !title.starts_with([' ', '\t']) && !title.starts_with("..");
    (may_start && is_text && fits).then_some((mark, false))
}

/// A line that is not part of a heading. What Markdown would take for one, or for a fence, is none.
fn body(out: &mut Prepared, line: &str) {
    let start = line.trim_start();
    if let Some(label) = label(line) {
        out.name_next(id_of(label));
        out.blank(line);
    } else if is_underline(line) || rule(line, SHORTEST).is_some() {
        out.blank(line);
    } else if let Some((_, mark)) = [("#", '#'), ("```", '`'), ("~~~", '~')]
        .into_iter()
        .find(|(mark, _)| start.starts_with(mark))
    {
        out.text_without(line, mark);
    } else {
        out.text(line);
    }
}

/// The name in `.. _name:`.
fn label(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_prefix(".. _")?.strip_suffix(':')?;
    Some(name.trim_matches('`'))
}

/// The id that a label has in the pages that are made of the file: `My_Label` is `my-label`.
pub(crate) fn id_of(label: &str) -> String {
    let lower = label.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::sections::Outline;

    /// The sections as `level id: title`.
    fn sections(text: &str) -> Vec<String> {
        let outline = Outline::read(text, Format::ReStructured);
        let shown = |section: &crate::sections::Section| {
            assert!(text.is_char_boundary(section.range.start), "{text}");
            format!("{} {}: {}", section.level, section.id, section.title)
        };
        outline.sections.iter().map(shown).collect()
    }

    #[test]
    fn the_level_of_a_heading_is_the_order_of_its_style() {
        let text = "=====\nTitle\n=====\n\nText.\n\nOne\n===\n\nTwo\n~~~\n\nx\n\nThree\n^^^^^\n\n\
                    Four\n++++\n\nFive\n\"\"\"\"\n\nNext two\n~~~~~~~~\n\nLast\n=====\nEnd.\n";
        assert_eq!(
            sections(text),
            [
                "1 title: Title",
                "2 one: One",
                "3 two: Two",
                "4 three: Three",
                "5 four: Four",
                "6 five: Five",
                "3 next-two: Next two",
                "2 last: Last",
            ]
        );
        let outline = Outline::read(text, Format::ReStructured);
        assert_eq!(outline.heading.as_deref(), Some("Title"));
        assert_eq!(outline.paragraph.as_deref(), Some("Text."));
        assert_eq!(&text[outline.sections[7].range.clone()], "Last\n=====\nEnd.\n");
    }

    #[test]
    fn code_tables_and_lines_between_paragraphs_are_not_headings() {
        let text = "Title\n*****\n\n.. code-block:: sh\n\n   # a comment\n   x\n   ---\n   ~~~\n\n----\n\n\
                    Text\nmore text\n=========\n\n=== ===\na   b\n=== ===\n1   2\n=== ===\n\n\
                    | x |\n\nEnd\n***\n";
        assert_eq!(sections(text), ["1 title: Title", "1 end: End"]);
        assert!(Outline::read(text, Format::ReStructured).plain.contains("a comment"));
    }

    #[test]
    fn a_label_above_a_heading_is_its_id() {
        let text = ".. _The_Label:\n\nTitle\n=====\n\n.. _other:\n\nText.\n\nÜber\n====\n";
        assert_eq!(sections(text), ["1 the-label: Title", "1 über: Über"]);
    }

    proptest::proptest! {
        #[test]
        fn every_byte_stays_at_its_place(text in "(=====\n|~~~\n|Title\n|ü#\r\n|\\.\\. _a:\n|  # x\n|```\n|\n|\\PC){0,30}") {
            let prepared = prepared(&text);
            proptest::prop_assert_eq!(prepared.text.len(), text.len());
            for section in Outline::read(&text, Format::ReStructured).sections {
                proptest::prop_assert!(text.get(section.range).is_some());
            }
        }
    }
}
