//! Finds and parses the frontmatter of a file.
//!
//! It is YAML between `---` lines, TOML between `+++` lines, or an object of JSON. An invalid
//! frontmatter is read as far as possible, and its faults are reported with their lines; a fence that
//! is never closed ends at the first line that cannot belong to it. `article` interprets the fields.

use toml::de::DeTable;
use toml::de::DeValue;

use crate::format::Format;
use crate::value::{Field, Value};
use crate::yaml::{self, Fault};

mod json; // frontmatter in JSON

/// The largest frontmatter in bytes. A closing fence further down is not considered.
const LARGEST: usize = 64 * 1024;

/// The frontmatter of a file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Frontmatter {
    /// The fields in the order of the file. Lines count from the top of the file.
    pub(crate) fields: Vec<Field>,
    /// Its mistakes.
    pub(crate) faults: Vec<Fault>,
    /// Whether the opening fence is never closed: the file may be half written.
    pub(crate) unclosed: bool,
}

impl Frontmatter {
    /// The fields with these names, in the order of the names. `lastUpdated`, `last_updated` and
    /// `Last-Updated` are the same name.
    pub(crate) fn named(&self, names: &[&str]) -> impl Iterator<Item = &Field> {
        names
            .iter()
            .flat_map(|name| self.fields.iter().filter(move |field| same_name(&field.key, name)))
    }
}

fn same_name(key: &str, name: &str) -> bool {
    let letters =
        key.bytes().filter(|b| !matches!(b, b'-' | b'_' | b' ')).map(|b| b.to_ascii_lowercase());
    letters.eq(name.bytes())
}

#[derive(Clone, Copy, PartialEq)]
enum Language {
    Yaml,
    Toml,
}

/// Splits a file into its frontmatter and its text.
pub(crate) fn split(file: &str, format: Format) -> (Frontmatter, &str) {
    // A text file may be JSON itself.
    if let Some(found) = json::split(file).filter(|_| format != Format::Text) {
        return found;
    }
    let start = file.len() - file.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let lines_above = file[..start].bytes().filter(|&b| b == b'\n').count();
    let Some((language, opening)) = opening_fence(&file[start..]) else {
        return (Frontmatter::default(), file);
    };
    let inside = &file[start + opening..];
    let first_line = lines_above + 2;
    let Some((length, rest)) = closing_fence(inside, language) else {
        // Below blank lines it is a thematic break.
        if start > 0 {
            return (Frontmatter::default(), file);
        }
        return unclosed(file, inside, language, first_line);
    };
    match read(&inside[..length], language, first_line) {
        Some(matter) if start == 0 || !matter.fields.is_empty() => (matter, &inside[rest..]),
        // Two thematic breaks with prose between them.
        _ => (Frontmatter::default(), file),
    }
}

/// The language and the length of an opening fence.
fn opening_fence(text: &str) -> Option<(Language, usize)> {
    let line = text.lines().next()?;
    let length = text.find('\n').map_or(text.len(), |at| at + 1);
    match line.trim_end() {
        "---" => Some((Language::Yaml, length)),
        "+++" => Some((Language::Toml, length)),
        _ => None,
    }
}

/// The start of the closing fence, and the start of the text after it.
fn closing_fence(inside: &str, language: Language) -> Option<(usize, usize)> {
    let mut at = 0;
    for line in inside.split_inclusive('\n') {
        if at > LARGEST {
            return None;
        }
        let closes = match language {
            Language::Yaml => matches!(line.trim_end(), "---" | "..."),
            Language::Toml => line.trim_end() == "+++",
        };
        if closes {
            return Some((at, at + line.len()));
        }
        at += line.len();
    }
    None
}

fn read(text: &str, language: Language, first_line: usize) -> Option<Frontmatter> {
    let (fields, faults) = match language {
        Language::Yaml => {
            let reading = yaml::read(text)?;
            (reading.fields, reading.faults)
        }
        Language::Toml => read_toml(text),
    };
    let mut matter = Frontmatter { fields, faults, unclosed: false };
    matter.fields.iter_mut().for_each(|field| field.line += first_line - 1);
    // The parser reports a missing end below the last line.
    let last = text.trim_end().replace("\r\n", "\n").split(['\n', '\r']).count();
    for fault in &mut matter.faults {
        fault.line = fault.line.min(last) + first_line - 1;
    }
    Some(matter)
}

/// Takes the lines that look like fields; the rest is text.
fn unclosed<'a>(
    file: &'a str,
    inside: &'a str,
    language: Language,
    first_line: usize,
) -> (Frontmatter, &'a str) {
    let mut length = 0;
    let mut blank = 0;
    for line in inside.split_inclusive('\n') {
        if length + blank + line.len() > LARGEST {
            break;
        }
        if line.trim().is_empty() {
            blank += line.len();
            continue;
        }
        // Below a blank line, only a new key is accepted: it may be the `status`.
        let continues = language == Language::Yaml && blank == 0 && continues_field(line);
        if !continues && !starts_field(line, language) {
            break;
        }
        length += blank + line.len();
        blank = 0;
    }
    let matter =
        read(&inside[..length], language, first_line).filter(|matter| !matter.fields.is_empty());
    let Some(mut matter) = matter else {
        return (Frontmatter { unclosed: true, ..Frontmatter::default() }, file);
    };
    matter.unclosed = true;
    let fence = if language == Language::Yaml { "---" } else { "+++" };
    matter.faults.insert(
        0,
        Fault { line: first_line - 1, message: format!("this `{fence}` is never closed") },
    );
    (matter, &inside[length..])
}

fn continues_field(line: &str) -> bool {
    line.starts_with(['#', ' ', '\t']) || line.starts_with("- ")
}

fn starts_field(line: &str, language: Language) -> bool {
    let key = match language {
        Language::Yaml if yaml::starts_key(line) => line.split(':').next(),
        Language::Yaml => None,
        Language::Toml => line.split_once('=').map(|(key, _)| key),
    };
    key.is_some_and(|key| !key.trim().contains(' '))
}

fn read_toml(text: &str) -> (Vec<Field>, Vec<Fault>) {
    let line_of = |at: usize| {
        1 + text.as_bytes()[..at.min(text.len())].iter().filter(|&&b| b == b'\n').count()
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    let faults = errors
        .iter()
        .map(|error| Fault {
            line: line_of(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })
        .collect();
    let fields = table.into_inner().into_iter().map(|(key, value)| Field {
        line: line_of(key.span().start),
        key: key.into_inner().into_owned(),
        value: toml_value(value.into_inner()),
    });
    let mut fields: Vec<Field> = fields.collect();
    fields.sort_by_key(|field| field.line);
    (fields, faults)
}

fn toml_value(value: DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Value::Bare(number.as_str().to_owned()),
        DeValue::Integer(number) => Value::Text(number.to_string()),
        DeValue::Float(number) => Value::Bare(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Value::Bare(truth.to_string()),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(items) => {
            Value::List(items.into_iter().map(|item| toml_value(item.into_inner())).collect())
        }
        DeValue::Table(table) => {
            let entries = table.into_iter();
            Value::Map(
                entries
                    .map(|(key, value)| {
                        (key.into_inner().into_owned(), toml_value(value.into_inner()))
                    })
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields as `line:key=text`, then `!line` for each fault; and the text below.
    fn check(file: &str, fields: &str, body: &str) {
        let (matter, rest) = split(file, Format::Markdown);
        let shown = matter
            .fields
            .iter()
            .map(|f| format!("{}:{}={}", f.line, f.key, f.value.texts().join("|")));
        let faults = matter.faults.iter().map(|fault| format!("!{}", fault.line));
        assert_eq!(shown.chain(faults).collect::<Vec<_>>().join(" "), fields, "{file:?}");
        assert_eq!(rest, body, "{file:?}");
    }

    #[test]
    fn yaml_and_toml_are_found_and_lines_count_from_the_top() {
        check("---\ntitle: T\n---\n\nText", "2:title=T", "\nText");
        check("---\r\ntitle: T\r\n--- \r\nText", "2:title=T", "Text");
        check("---\ntitle: T\n...\nText", "2:title=T", "Text");
        check("---\ntitle: T\n---", "2:title=T", "");
        check(
            "+++\ntitle = \"T\"\ntags = [\"a\", \"b\"]\ndate = 2025-01-31\nn = 1\n+++\nText",
            "2:title=T 3:tags=a|b 4:date=2025-01-31 5:n=1",
            "Text",
        );
    }

    #[test]
    fn a_file_may_have_no_frontmatter() {
        for file in [
            "",
            "# Title\n",
            "Title\n---\n",
            "text\n---\na: b\n---\n",
            "----\na: b\n----\n",
            "--\na: b\n--\n",
        ] {
            check(file, "", file);
        }
    }

    #[test]
    fn an_empty_frontmatter_is_removed() {
        check("---\n---\nText", "", "Text");
        check("---\n# comment\n---\nText", "", "Text");
    }

    #[test]
    fn thematic_breaks_with_prose_between_them_are_text() {
        for file in
            ["---\nSome prose here.\n---\nMore", "---\n\nprose\n", "---\n", "\n\n---\nprose\n---\n"]
        {
            check(file, "", file);
        }
    }

    #[test]
    fn blank_lines_above_do_not_hide_a_draft() {
        check("\n \n---\nstatus: Draft\n---\nText", "4:status=Draft", "Text");
    }

    #[test]
    fn invalid_yaml_is_reported_with_its_line_in_the_file() {
        check(
            "---\ntitle: a: b\nstatus: Draft\n---\nText",
            "2:title=a: b 3:status=Draft !2",
            "Text",
        );
    }

    #[test]
    fn invalid_toml_keeps_its_other_lines() {
        let (matter, body) =
            split("+++\ntitle = \"T\"\nbad = \nstatus = \"Draft\"\n+++\nText", Format::Markdown);
        assert!(matter.named(&["title"]).next().is_some());
        assert!(matter.named(&["status"]).next().is_some());
        assert_eq!(matter.faults[0].line, 3);
        assert_eq!(body, "Text");
    }

    #[test]
    fn an_open_fence_ends_where_the_fields_end() {
        check(
            "---\ntitle: T\nstatus: Draft\n\nSome text: here\n",
            "2:title=T 3:status=Draft !1",
            "\nSome text: here\n",
        );
        check(
            "---\ntitle: T\n\nstatus: Draft\n\nText\n",
            "2:title=T 4:status=Draft !1",
            "\nText\n",
        );
        check("---\ntitle: T\ntags:\n  - a", "2:title=T 3:tags=a !1", "");
        check("+++\ntitle = \"T\"\n\nText", "2:title=T !1", "\nText");
        let (matter, _) = split("---\ntitle: T\n", Format::Markdown);
        assert!(matter.unclosed);
    }

    #[test]
    fn a_fence_far_below_is_not_the_closing_one() {
        let filler = "x".repeat(LARGEST);
        let (matter, _) = split(&format!("---\ntitle: T\n\n{filler}\n\n---\n"), Format::Markdown);
        assert!(matter.unclosed);
        let (matter, _) =
            split(&format!("---\ntitle: {}\n---\n", "x".repeat(LARGEST - 20)), Format::Markdown);
        assert!(!matter.unclosed && matter.faults.is_empty());
    }

    #[test]
    fn names_match_in_every_spelling_and_the_first_name_wins() {
        let (matter, _) = split(
            "---\ndate: 1\nLast-Updated: 2\nlast_updated: 3\nlastUpdated: 4\n---\n",
            Format::Markdown,
        );
        let found: Vec<_> =
            matter.named(&["lastupdated", "date"]).filter_map(|f| f.value.text()).collect();
        assert_eq!(found, ["2", "3", "4", "1"]);
    }
}
