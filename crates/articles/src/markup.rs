//! Text in another markup as Markdown, for its outline: every byte stays at its place, so that the
//! sections found in it are those of the file.

use std::collections::HashMap;

/// A text that was prepared for the reader of Markdown.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    /// The levels of its headings and the ids that it gives them, by the place where they start.
    pub(crate) headings: HashMap<usize, (u8, Option<String>)>,
    /// An id that waits for its heading.
    id: Option<String>,
}

impl Prepared {
    /// Keeps the id for the next heading.
    pub(crate) fn name_next(&mut self, id: String) {
        self.id = Some(id).filter(|id| !id.is_empty());
    }

    /// A line of text. An id above it is not that of a heading.
    pub(crate) fn text(&mut self, line: &str) {
        if !line.trim().is_empty() {
            self.id = None;
        }
        self.text.push_str(line);
    }

    /// A line with these characters at its start as spaces.
    pub(crate) fn text_without(&mut self, line: &str, mark: char) {
        let start = line.len() - line.trim_start().len();
        let length = line.len() - start - line[start..].trim_start_matches(mark).len();
        self.text(&format!("{}{}", " ".repeat(start + length), &line[start + length..]));
    }

    /// A line, or several, without their text.
    pub(crate) fn blank(&mut self, lines: &str) {
        self.fill(lines, ' ');
    }

    /// A line of this character, as long as the other.
    pub(crate) fn fill(&mut self, line: &str, with: char) {
        let body = line.trim_end_matches(['\r', '\n']);
        self.text.extend(std::iter::repeat_n(with, body.len()));
        self.text.push_str(&line[body.len()..]);
    }

    /// A heading in place of these lines, which have at least two bytes beside its title.
    pub(crate) fn heading(&mut self, level: usize, title: &str, lines: &str) {
        let body = lines.trim_end_matches(['\r', '\n']);
        let level = u8::try_from(level.clamp(1, 6)).unwrap_or(6);
        self.headings.insert(self.text.len(), (level, self.id.take()));
        self.text.push_str(&format!("# {title}"));
        self.text.extend(std::iter::repeat_n(' ', body.len().saturating_sub(title.len() + 2)));
        self.text.push_str(&lines[body.len()..]);
    }
}

/// The character of a line that consists of one punctuation mark, at least `least` times.
pub(crate) fn rule(line: &str, least: usize) -> Option<char> {
    let line = line.trim_end();
    let mark = line.chars().next().filter(char::is_ascii_punctuation)?;
    (line.len() >= least && line.chars().all(|c| c == mark)).then_some(mark)
}

/// Whether Markdown takes the line for the underline of a heading.
pub(crate) fn is_underline(line: &str) -> bool {
    matches!(rule(line.trim(), 1), Some('=' | '-'))
}
