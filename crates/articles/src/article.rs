//! Parses a file into an article.
//!
//! Parsing never fails: a file is served as far as it can be read, and mistakes are reported with
//! their lines. Only binary files are left out.
//!
//! **Visibility is decided here and nowhere else.** A file with a `status` is visible if the status is
//! one of those allowed; a status that cannot be read is not. `draft: true` and `published: false`
//! also hide a file.

use serde_json::Map;

use crate::date::{self, When};
use crate::format::Format;
use crate::frontmatter::{self, Frontmatter};
use crate::problem::Problem;
use crate::sections::Outline;

/// The longest description from a first paragraph, in characters.
const DESCRIPTION: usize = 300;

/// The most tags of an article. Further ones are dropped.
const MOST_TAGS: usize = 100;

/// A parsed file.
#[derive(Debug, Default)]
pub(crate) struct ParsedArticle {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) status: Option<String>,
    pub(crate) published: Option<When>,
    pub(crate) updated: Option<When>,
    /// All fields of the frontmatter.
    pub(crate) frontmatter: Map<String, serde_json::Value>,
    /// The text below the frontmatter, unchanged.
    pub(crate) text: String,
    pub(crate) outline: Outline,
    pub(crate) visible: bool,
    pub(crate) problems: Vec<Problem>,
    /// Whether the file looks as if it is still being written.
    pub(crate) unfinished: bool,
}

/// Parses a file. `path` is relative to the folder.
pub(crate) fn read(path: &str, bytes: &[u8], statuses: &[String]) -> ParsedArticle {
    let format = Format::of(path).unwrap_or(Format::Text);
    let (file, mut problems, is_text) = decode(path, bytes);
    let (matter, text) = frontmatter::split(&file);
    problems
        .extend(matter.faults.iter().map(|fault| Problem::at(path, fault.line, &fault.message)));
    let outline = Outline::read(text, format);
    let first = |names: &[&str]| {
        matter.named(names).find_map(|field| field.value.text()).map(str::to_owned)
    };
    let title =
        first(&["title"]).or_else(|| outline.heading.clone()).unwrap_or_else(|| title_of(path));
    let description = first(&["description", "summary", "excerpt", "abstract"])
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
    let (status, visible) = visibility(&matter, path, statuses, &mut problems);
    ParsedArticle {
        title,
        description,
        tags: tags(&matter),
        status,
        published,
        updated,
        frontmatter: matter
            .fields
            .iter()
            .map(|field| (field.key.clone(), field.value.json()))
            .collect(),
        // Empty, or only the beginning of a fence.
        unfinished: matter.unclosed || file.trim().trim_matches(['-', '+']).is_empty(),
        text: text.to_owned(),
        outline,
        visible: visible && is_text,
        problems,
    }
}

/// A file that could not be read.
pub(crate) fn unread(problem: Problem) -> ParsedArticle {
    ParsedArticle { problems: vec![problem], ..ParsedArticle::default() }
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

/// The status as written, and whether the article is visible.
fn visibility(
    matter: &Frontmatter,
    path: &str,
    statuses: &[String],
    problems: &mut Vec<Problem>,
) -> (Option<String>, bool) {
    let mut visible = true;
    let mut status = None;
    for field in matter.named(&["status"]) {
        let texts = field.value.texts();
        if texts.is_empty() {
            problems.push(Problem::at(path, field.line, "not served: `status` is empty"));
        }
        let allowed = |text: &&str| statuses.iter().any(|status| status.eq_ignore_ascii_case(text));
        visible &= !texts.is_empty() && texts.iter().all(allowed);
        status = status.or_else(|| texts.first().map(|&text| text.to_owned()));
    }
    let is_draft = matter.named(&["draft"]).any(|field| field.value.truth() == Some(true));
    let unpublished = matter.named(&["published"]).any(|field| field.value.truth() == Some(false));
    (status, visible && !is_draft && !unpublished)
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
