//! The headings of AsciiDoc.
//!
//! A heading begins with `=`, or is underlined. Blocks of code, which `----` and `....` surround, become
//! those of Markdown. The lines around other blocks, attributes, and the author and revision below the
//! title are left out. An id above a heading (`[#id]`, `[[id]]`) is its id.

use crate::markup::{Prepared, is_underline, rule};

/// The shortest line around a block.
const SHORTEST: usize = 4;

/// The most words of an author's name.
const NAME_WORDS: usize = 3;

/// The text with the headings and the code of Markdown, at the same places.
pub(crate) fn prepared(text: &str) -> Prepared {
    let mut pass = Pass { out: Prepared::default(), open: Vec::new(), last: Line::Blank };
    let mut lines = text.split_inclusive('\n').peekable();
    let mut place = 0;
    while let Some(line) = lines.next() {
        let below = lines.peek().copied().unwrap_or_default();
        if let Some(level) = pass.underlined(line, below) {
            lines.next();
            let both = &text[place..place + line.len() + below.len()];
            pass.heading(level, line.trim(), both);
            place += both.len();
        } else {
            pass.line(line);
            place += line.len();
        }
    }
    pass.out
}

/// What a line was.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    Blank,
    /// The title of the document.
    Title,
    Author,
    /// An attribute of the document, or of the block below it.
    Attribute,
    Other,
}

struct Pass<'a> {
    out: Prepared,
    /// The lines that opened the blocks around.
    open: Vec<&'a str>,
    last: Line,
}

impl<'a> Pass<'a> {
    fn heading(&mut self, level: usize, title: &str, lines: &str) {
        let is_title = level == 1 && self.out.headings.is_empty();
        self.out.heading(level, title, lines);
        self.last = if is_title { Line::Title } else { Line::Other };
    }

    /// The level of a heading, if the line below underlines it.
    fn underlined(&self, line: &str, below: &str) -> Option<usize> {
        let (title, below) = (line.trim_end(), below.trim_end());
        let level = "=-~^+".find(rule(below, 2)?)? + 1;
        let is_title = title.starts_with(char::is_alphanumeric)
            && title.chars().count().abs_diff(below.len()) <= 1;
        let may_start = matches!(self.last, Line::Blank | Line::Attribute);
        (is_title && may_start && !self.open.contains(&below)).then_some(level)
    }

    fn line(&mut self, line: &'a str) {
        let trimmed = line.trim_end();
        let mut is = Line::Other;
        match self.open.last().copied().filter(|open| is_verbatim(open)) {
            Some(open) if ends(open, trimmed) => {
                self.open.pop();
                self.edge(line, open);
            }
            Some(open) if open.starts_with('/') => self.out.blank(line),
            // The end of the block is the only fence.
            Some(_) if trimmed.trim_start().starts_with("```") => self.out.text_without(line, '`'),
            Some(_) => self.out.text(line),
            None => is = self.outside_code(line, trimmed),
        }
        self.last = is;
    }

    fn outside_code(&mut self, line: &'a str, trimmed: &'a str) -> Line {
        let level = trimmed.bytes().take_while(|&byte| byte == b'=').count();
        if trimmed.is_empty() {
            self.out.text(line);
            return Line::Blank;
        } else if is_edge(trimmed) {
            match self.open.iter().rposition(|open| *open == trimmed) {
                // Blocks inside that were not closed end with it.
                Some(at) => self.open.truncate(at),
                None => self.open.push(trimmed),
            }
            self.edge(line, trimmed);
        } else if (1..=6).contains(&level) && trimmed[level..].starts_with(' ') {
            self.heading(level, trimmed[level..].trim(), line);
            return self.last;
        } else if is_attribute(trimmed) || trimmed.starts_with("//") {
            if let Some(id) = id_in(trimmed) {
                self.out.name_next(id.to_owned());
            }
            self.out.blank(line);
            // Those of the document may be above its author.
            let is_header = matches!(self.last, Line::Title | Line::Author);
            return if is_header { self.last } else { Line::Attribute };
        } else if self.last == Line::Title && is_author(trimmed) {
            self.out.blank(line);
            return Line::Author;
        } else if (self.last == Line::Author && is_revision(trimmed))
            || trimmed == "+"
            || is_underline(line)
        {
            self.out.blank(line);
        } else {
            self.out.text(line);
        }
        Line::Other
    }

    /// The line that opens or closes a block.
    fn edge(&mut self, line: &str, open: &str) {
        match open.as_bytes()[0] {
            b'`' => self.out.text(line),
            b'/' => self.out.blank(line),
            _ if is_verbatim(open) => self.out.fill(line, '`'),
            _ => self.out.blank(line),
        }
    }
}

/// Whether a line opens or closes a block.
fn is_edge(line: &str) -> bool {
    let is_table = ["|===", "!===", ",===", ":==="].contains(&line);
    let is_rule = rule(line, SHORTEST).is_some_and(|mark| "-.+/=*_".contains(mark));
    is_table || is_rule || line == "--" || line.starts_with("```")
}

/// Whether the text of the block that this line opens is not markup.
fn is_verbatim(open: &str) -> bool {
    let is_rule = rule(open, SHORTEST).is_some_and(|mark| "-.+/".contains(mark));
    is_rule || open.starts_with("```")
}

/// Whether the line closes the block. A language may follow the mark that opens it.
fn ends(open: &str, line: &str) -> bool {
    open == line || (open.starts_with("```") && line == "```")
}

/// `:name: value`, `[source,ruby]`, `[[id]]`.
fn is_attribute(line: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim_matches('!');
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c))
    };
    let entry = line.strip_prefix(':').and_then(|rest| rest.split_once(':'));
    let is_entry = entry
        .is_some_and(|(name, value)| is_name(name) && (value.is_empty() || value.starts_with(' ')));
    is_entry || (line.starts_with('[') && line.ends_with(']'))
}

/// The id in `[#id]`, `[#id.role]`, `[[id]]`, `[[id,text]]` and `[id=name]`.
fn id_in(line: &str) -> Option<&str> {
    let inside = line.strip_prefix('[')?.strip_suffix(']')?;
    if let Some(id) = inside.strip_prefix('[') {
        return id.strip_suffix(']')?.split(',').next();
    }
    let named = inside.split(',').find_map(|part| part.trim().strip_prefix("id="));
    if let Some(id) = named {
        return Some(id.trim_matches(['"', '\'']));
    }
    inside.split_once('#').and_then(|(_, rest)| rest.split(['.', '%', ',']).next())
}

/// Whether the line below the title names its authors: `Ada Lovelace <ada@example.org>; Alan Turing`.
fn is_author(line: &str) -> bool {
    line.split(';').map(str::trim).all(|author| {
        let name = author.split('<').next().unwrap_or(author);
        let words: Vec<&str> = name.split_whitespace().collect();
        let is_name = |word: &&str| word.starts_with(char::is_uppercase);
        (1..=NAME_WORDS).contains(&words.len())
            && (author.ends_with('>') || words.iter().all(is_name))
    })
}

/// Whether the line below the authors is a version or a date: `v1.0, 2024-01-02`.
fn is_revision(line: &str) -> bool {
    line.trim_start_matches(['v', 'V']).starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::sections::Outline;

    fn outline(text: &str) -> (Outline, Vec<String>) {
        let outline = Outline::read(text, Format::AsciiDoc);
        let shown = |section: &crate::sections::Section| {
            format!("{} {}: {}", section.level, section.id, section.title)
        };
        let sections = outline.sections.iter().map(shown).collect();
        (outline, sections)
    }

    #[test]
    fn lines_around_blocks_and_attributes_are_not_headings() {
        let text = "= The title\nAda Lovelace <ada@example.org>\nv1.2, 2024-01-02\n:toc: left\n:icons:\n\n\
                    :next: x\n[NOTE]\n====\nA note.\n====\n\nThe first words.\n\n[source,ruby]\n----\n\
                    = not a heading\nputs 1\n```\n----\n\nMore\ntext\n--\nInside.\n--\n\n\
                    |===\n| a | b\n|===\n\n== Second\n\n....\n== nor this\n....\n\n\
                    ////\n== hidden\n////\n\n++++\n<b>x</b>\n++++\n\n____\nSaid.\n____\n\nItem\n+\n****\nAside.\n****\n";
        let (outline, sections) = outline(text);
        assert_eq!(sections, ["1 the-title: The title", "2 second: Second"]);
        assert_eq!(outline.heading.as_deref(), Some("The title"));
        assert_eq!(outline.paragraph.as_deref(), Some("A note."));
        for word in ["puts 1", "nor this", "Said.", "Aside.", "a | b"] {
            assert!(outline.plain.contains(word), "{word}: {}", outline.plain);
        }
        for word in ["hidden", "NOTE", "toc", "Ada", "v1.2"] {
            assert!(!outline.plain.contains(word), "{word}: {}", outline.plain);
        }
    }

    #[test]
    fn an_id_above_a_heading_is_its_id() {
        let (_, sections) = outline(
            "= T\n\n[#one]\n== First\n\n[[two,Two]]\n== Second\n\n[#three.big%x]\n\n=== Third\n\n\
             [id=\"four\"]\n== Fourth\n\n[#gone]\nText.\n\n== Fifth\n",
        );
        assert_eq!(
            sections,
            [
                "1 t: T",
                "2 one: First",
                "2 two: Second",
                "3 three: Third",
                "2 four: Fourth",
                "2 fifth: Fifth"
            ]
        );
    }

    #[test]
    fn a_heading_may_be_underlined() {
        let text = "The title\n=========\n\nWords.\n\nSecond\n------\n\nThird\n~~~~~\n\nText\n\nCode:\n\n----\nx\n----\n";
        let (found, sections) = outline(text);
        assert_eq!(sections, ["1 the-title: The title", "2 second: Second", "3 third: Third"]);
        assert!(text[found.sections[2].range.clone()].starts_with("Third\n~~~~~\n"));
        assert_eq!(outline("====\n\ntext\n====\n").1, Vec::<String>::new());
    }

    #[test]
    fn words_below_a_title_are_text() {
        let (found, _) = outline("= Title\nThis is the first paragraph of it.\n");
        assert_eq!(found.paragraph.as_deref(), Some("This is the first paragraph of it."));
    }

    proptest::proptest! {
        #[test]
        fn every_byte_stays_at_its_place(text in "(----\n|====\n|--\n|= T\n|Ü\n|\\[#a\\]\r\n|:a: b\n|```\n|\n|Tüte\n|\\PC){0,30}") {
            let prepared = prepared(&text);
            proptest::prop_assert_eq!(prepared.text.len(), text.len());
            for section in Outline::read(&text, Format::AsciiDoc).sections {
                proptest::prop_assert!(text.get(section.range).is_some());
            }
        }
    }
}
