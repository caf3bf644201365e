//! Parses a file into an article.
//!
//! Parsing never fails: a file is served as far as it can be read, and mistakes are reported with
//! their lines. Only binary files are left out.
//!
//! **Visibility is decided here and nowhere else.** `draft: true` and `published: false` hide a file.
//! If statuses are set, a file with a `status` is visible only if the status is one of them.

use serde_json::Map;

use crate::date::{self, When};
use crate::format::Format;
use crate::frontmatter::{self, Frontmatter};
use crate::html;
use crate::language::Language;
use crate::notebook;
use crate::problem::Problem;
use crate::roles::LABEL;
use crate::sections::Outline;

/// The longest description from a first paragraph, in characters.
const DESCRIPTION: usize = 300;

/// The limit of tags of an article. Further ones are dropped.
const MOST_TAGS: usize = 100;

/// The limit of names of an article. Further ones are dropped.
const MOST_NAMES: usize = 32;

/// The limit of labels of an article. Further ones are dropped.
const MOST_LABELS: usize = 100;

/// Why a file is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hidden {
    /// `draft: true`
    Draft,
    /// `published: false`
    Unpublished,
    /// A `status` that is not one of those in the settings.
    Status,
    /// The file is too large.
    TooLarge,
    /// The file is not text.
    Binary,
    /// The file cannot be read.
    Unreadable,
    /// A PDF file, and no program that reads it is installed.
    NoPdfReader,
    /// Another file has the same id.
    SameId,
    /// A link that leads outside the folder, to a hidden file, or nowhere.
    Link,
}

impl Hidden {
    /// The letter of each reason in the records of the index.
    const LETTERS: [(Self, char); 9] = [
        (Self::Draft, 'd'),
        (Self::Unpublished, 'p'),
        (Self::Status, 's'),
        (Self::TooLarge, 'l'),
        (Self::Binary, 'b'),
        (Self::Unreadable, 'u'),
        (Self::NoPdfReader, 'r'),
        (Self::SameId, 'i'),
        (Self::Link, 'k'),
    ];

    pub(crate) fn letter(self) -> char {
        Self::LETTERS.iter().find(|(reason, _)| *reason == self).map_or('u', |(_, letter)| *letter)
    }

    pub(crate) fn of_letter(letter: char) -> Option<Self> {
        Self::LETTERS.iter().find(|(_, known)| *known == letter).map(|(reason, _)| *reason)
    }
}

impl std::fmt::Display for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Draft => "`draft: true`",
            Self::Unpublished => "`published: false`",
            Self::Status => "`status`",
            Self::TooLarge => "size",
            Self::Binary => "being binary",
            Self::Unreadable => "being unreadable",
            Self::NoPdfReader => "missing `pdftotext`",
            Self::SameId => "having the id of another",
            Self::Link => "leading outside",
        })
    }
}

/// A parsed file.
#[derive(Debug, Default)]
pub(crate) struct ParsedArticle {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    /// Other titles: `aliases`, `short-title`, `sidebar_label`, …
    pub(crate) names: Vec<String>,
    /// The addresses of the page on its site: `permalink`, `url`, `slug`, and aliases. Also its labels.
    pub(crate) addresses: Vec<String>,
    pub(crate) status: Option<String>,
    /// The language that it names.
    pub(crate) language: Option<Language>,
    pub(crate) published: Option<When>,
    pub(crate) updated: Option<When>,
    /// All fields of the frontmatter.
    pub(crate) frontmatter: Map<String, serde_json::Value>,
    /// The text below the frontmatter, unchanged.
    pub(crate) text: String,
    pub(crate) outline: Outline,
    pub(crate) hidden: Option<Hidden>,
    pub(crate) problems: Vec<Problem>,
    /// Whether the file looks as if it is still being written.
    pub(crate) unfinished: bool,
}

/// Parses a file. `path` is relative to the folder.
pub(crate) fn read(path: &str, bytes: &[u8], statuses: Option<&[String]>) -> ParsedArticle {
    let format = Format::of(path).unwrap_or(Format::Text);
    let (file, mut problems, is_text) = decode(path, bytes);
    let file = match format {
        Format::Notebook => notebook::markdown(&file),
        Format::Html => html::markdown(&file),
        _ => file,
    };
    let (matter, text) = frontmatter::split(&file, format);
    problems
        .extend(matter.faults.iter().map(|fault| Problem::at(path, fault.line, &fault.message)));
    let outline = Outline::read(text, format);
    let first = |names: &[&str]| {
        matter.named(names).find_map(|field| field.value.text()).map(str::to_owned)
    };
    // Lists have one line for each article.
    let on_one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = first(&["title"])
        .map(on_one_line)
        .or_else(|| outline.heading.clone())
        .unwrap_or_else(|| title_of(path));
    let description = first(&["description", "summary", "excerpt", "abstract"])
        .map(on_one_line)
        .or_else(|| outline.paragraph.as_deref().map(|text| shortened(text, DESCRIPTION)));
    let updated = date_field(
        &matter,
        path,
        &["lastupdated", "updated", "updatedat", "lastmodified", "lastmod", "modified"],
        &mut problems,
    );
    let published = date_field(
        &matter,
        path,
        &["publisheddate", "publishedat", "published", "pubdate", "date", "created"],
        &mut problems,
    );
    let (status, hidden) = visibility(&matter, path, statuses, &mut problems);
    ParsedArticle {
        title,
        description,
        tags: tags(&matter),
        names: named(
            &matter,
            &["aliases", "alias", "shorttitle", "sidebarlabel", "linktitle", "navtitle"],
        ),
        addresses: addresses(&matter, &outline, format),
        status,
        language: first(&["lang", "language", "locale"])
            .and_then(|tag| Language::of_tag(&tag))
            .or_else(|| Language::of_path(path)),
        published,
        updated,
        frontmatter: matter
            .fields
            .iter()
            .map(|field| (field.key.clone(), field.value.json()))
            .collect(),
        // Empty, or only the beginning of a fence.
        unfinished: is_text && (matter.unclosed || file.trim().trim_matches(['-', '+']).is_empty()),
        text: text.to_owned(),
        outline,
        hidden: if is_text { hidden } else { Some(Hidden::Binary) },
        problems,
    }
}

/// A file that could not be read.
pub(crate) fn unread(problem: Problem, hidden: Hidden) -> ParsedArticle {
    ParsedArticle { problems: vec![problem], hidden: Some(hidden), ..ParsedArticle::default() }
}

/// Decodes a file. Returns whether it is text.
fn decode(path: &str, bytes: &[u8]) -> (String, Vec<Problem>, bool) {
    let units = |pair: fn([u8; 2]) -> u16| {
        let units =
            bytes[2..].chunks(2).map(|two| pair([two[0], two.get(1).copied().unwrap_or(0)]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xFF, 0xFE, ..] => return (units(u16::from_le_bytes), Vec::new(), true),
        [0xFE, 0xFF, ..] => return (units(u16::from_be_bytes), Vec::new(), true),
        _ => {}
    }
    let bytes = bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]).unwrap_or(bytes);
    if bytes.contains(&0) {
        return (
            String::new(),
            vec![Problem::of(path, "not served: this is a binary file")],
            false,
        );
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), Vec::new(), true),
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
            let problem = Problem::at(path, line, "invalid UTF-8, shown as \u{FFFD}");
            (String::from_utf8_lossy(bytes).into_owned(), vec![problem], true)
        }
    }
}

fn date_field(
    matter: &Frontmatter,
    path: &str,
    names: &[&str],
    problems: &mut Vec<Problem>,
) -> Option<When> {
    for field in matter.named(names) {
        // `published: true` is neither a date nor a mistake.
        let Some(text) = field.value.text().filter(|_| field.value.truth().is_none()) else {
            continue;
        };
        match date::parse(text) {
            Some(when) => return Some(when),
            None => problems.push(Problem::at(
                path,
                field.line,
                &format!("invalid date in `{}`: {text}", field.key),
            )),
        }
    }
    None
}

fn tags(matter: &Frontmatter) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for field in matter.named(&["tags", "tag", "keywords"]) {
        for text in field.value.texts() {
            // `tags: a, b` is meant as a list.
            let parts =
                if field.value.text().is_some() { text.split(',').collect() } else { vec![text] };
            for part in parts.iter().map(|part| part.trim().trim_start_matches('#')) {
                if !part.is_empty() && tags.len() < MOST_TAGS && !tags.iter().any(|tag| tag == part)
                {
                    tags.push(part.to_owned());
                }
            }
        }
    }
    tags
}

/// The texts of these fields, each once.
fn named(matter: &Frontmatter, fields: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in matter.named(fields).flat_map(|field| field.value.texts()) {
        if names.len() < MOST_NAMES && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The addresses in the frontmatter, and the labels that links of reStructuredText use.
fn addresses(matter: &Frontmatter, outline: &Outline, format: Format) -> Vec<String> {
    let mut all = named(matter, &["permalink", "url", "slug", "aliases", "alias", "redirectfrom"]);
    if format == Format::ReStructured {
        let mut labels = outline.labels.clone();
        labels.sort_unstable();
        all.extend(labels.iter().take(MOST_LABELS).map(|label| format!("{LABEL}{label}")));
    }
    all
}

/// The status as written, and why the article is not visible.
fn visibility(
    matter: &Frontmatter,
    path: &str,
    statuses: Option<&[String]>,
    problems: &mut Vec<Problem>,
) -> (Option<String>, Option<Hidden>) {
    let mut hidden = None;
    let mut status = None;
    for field in matter.named(&["status"]) {
        let texts = field.value.texts();
        status = status.or_else(|| texts.first().map(|&text| text.to_owned()));
        let Some(statuses) = statuses else { continue };
        if texts.is_empty() {
            problems.push(Problem::at(path, field.line, "not served: `status` is empty"));
        }
        let allowed = |text: &&str| statuses.iter().any(|status| status.eq_ignore_ascii_case(text));
        if texts.is_empty() || !texts.iter().all(allowed) {
            hidden = Some(Hidden::Status);
        }
    }
    if matter.named(&["published"]).any(|field| field.value.truth() == Some(false)) {
        hidden = Some(Hidden::Unpublished);
    }
    if matter.named(&["draft"]).any(|field| field.value.truth() == Some(true)) {
        hidden = Some(Hidden::Draft);
    }
    (status, hidden)
}

/// A title from a file name: `deep/context-engineering.md` becomes `Context engineering`.
fn title_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let words =
        stem.split(['-', '_', ' ']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut chars = words.chars();
    chars
        .next()
        .map_or_else(|| stem.to_owned(), |first| first.to_uppercase().chain(chars).collect())
}

/// The start of a text, up to `limit` characters, cut between words.
pub fn shortened(text: &str, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let cut = text[..end].rfind(char::is_whitespace).filter(|&at| at > end / 2).unwrap_or(end);
    format!("{}…", text[..cut].trim_end())
}

#[cfg(test)]
mod tests;
