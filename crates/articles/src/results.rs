//! The results of questions to a store, and the errors.
//!
//! The types serialize to the JSON that clients get as `structuredContent`; the schemas of the tools
//! are derived from them, with these comments as descriptions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most sections in an error.
const MOST_NAMED: usize = 50;

/// An article without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// category/slug, or the slug alone for an article in the top folder
    pub id: String,
    /// The first folder of the path
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The rest of the path, without the file extension
    pub slug: String,
    /// The title in the frontmatter, else the first heading of level 1, else the file name
    pub title: String,
    /// The description in the frontmatter, else the first paragraph
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tags in the frontmatter
    pub tags: Vec<String>,
    /// The status in the frontmatter
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Publication date in the frontmatter (ISO 8601)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_date: Option<String>,
    /// Date of the last update in the frontmatter (ISO 8601)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// When the file was written (RFC 3339)
    pub last_modified: String,
    /// Size of the Markdown without the frontmatter, in bytes
    pub size: u64,
    /// The URI of the article as a resource
    pub uri: String,
}

/// A section of an article
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SectionSummary {
    /// The anchor of the heading
    pub id: String,
    /// The heading
    pub title: String,
    /// The level of the heading; 0 for the text above the first heading
    pub level: u8,
    /// Size in bytes, including subsections
    pub size: usize,
}

/// An article with its text, or with one section of it
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Article {
    /// Everything but the text.
    #[serde(flatten)]
    pub summary: Summary,
    /// The Markdown without the frontmatter
    pub content: String,
    /// The section that was requested
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<SectionSummary>,
    /// The section that the slug names, if there is none of that name
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_section: Option<String>,
    /// All sections of the article
    pub sections: Vec<SectionSummary>,
    /// The whole frontmatter
    pub frontmatter: Map<String, Value>,
    /// Where the content goes on, if this is not its end: the next offset
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// Identifies the content of the file, if it was requested
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The links, if they were requested
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
}

/// The links between an article and others
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Links {
    /// The ids of the articles that it links to
    pub to: Vec<String>,
    /// The ids of articles that link to it
    pub from: Vec<String>,
}

/// A file that an article refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The content.
    pub bytes: Vec<u8>,
    /// The media type.
    pub media_type: &'static str,
}

impl File {
    /// The content, if it is text that a model can read.
    pub fn text(&self) -> Option<&str> {
        let is_text = self.media_type.starts_with("text/")
            || ["image/svg+xml", "application/json", "application/yaml"].contains(&self.media_type);
        is_text.then(|| str::from_utf8(&self.bytes).ok()).flatten()
    }
}

/// The folder is still being indexed: results may be incomplete
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Indexing {
    /// Files indexed so far
    pub done: usize,
    /// Files found; 0 while the folder is being scanned
    pub total: usize,
}

/// Articles, newest first
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// Newest first
    pub articles: Vec<Summary>,
    /// The number of articles in all
    pub total: usize,
    /// The folders below, and if they are few those in them, with their numbers of articles
    #[serde(default)]
    pub folders: BTreeMap<String, usize>,
    /// The offset of the next articles, if there are more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// Present while the folder is being indexed: the list may be incomplete
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexing: Option<Indexing>,
}

/// Articles that match a query, best first
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Search {
    /// Best first
    pub hits: Vec<Hit>,
    /// The number of matching articles; a lower bound for a phrase of common words
    pub total: usize,
    /// Words of the query that appear in no article, and what was searched for instead
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub corrections: Vec<Correction>,
    /// Present while the folder is being indexed: matches may be missing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexing: Option<Indexing>,
}

/// An article that matches a query
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Everything but the text.
    #[serde(flatten)]
    pub summary: Summary,
    /// Comparable within one search only
    pub score: f32,
    /// The part of the text that matches best
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
    /// The Markdown, if it was requested
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// A part of an article that matches a query
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snippet {
    /// Plain text, cut between words
    pub text: String,
    /// The words in it that match, as written there
    pub words: Vec<String>,
    /// The section that contains it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<SectionSummary>,
}

/// A word that was replaced by others
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Correction {
    /// The word in the query
    pub word: String,
    /// The words that were searched for
    pub taken_for: Vec<String>,
}

/// Completions of a partial value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// At most 100.
    pub values: Vec<String>,
    /// The number of completions in all.
    pub total: usize,
    /// Whether there are more than `values`.
    pub has_more: bool,
}

/// The ids of articles that were added, removed or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// New articles.
    pub added: Vec<String>,
    /// Articles that were removed, or are no longer visible.
    pub removed: Vec<String>,
    /// Articles with changed content.
    pub updated: Vec<String>,
    /// Too many to list: the lists are empty, and any article may have changed.
    pub many: bool,
}

impl Change {
    /// Whether articles were added or removed, so that a list of them is outdated.
    pub fn changes_list(&self) -> bool {
        self.many || !self.added.is_empty() || !self.removed.is_empty()
    }
}

/// Why a question failed. Except for the last, the caller can correct it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No article has this name.
    #[error("no article `{asked}`{}{}", suggest(.suggestions), still(.indexing))]
    NotFound {
        /// The name.
        asked: String,
        /// Ids of similar articles.
        suggestions: Vec<String>,
        /// The folder is still being indexed.
        indexing: Option<Indexing>,
    },
    /// The name is that of a folder, which has no index page.
    #[error("`{folder}` is a folder with {}, not an article", counted(*.articles))]
    Folder {
        /// The folder.
        folder: String,
        /// The number of articles in it.
        articles: usize,
    },
    /// A section is named without its article.
    #[error(
        "`{asked}` is a section without its article (expected the id of the article as `slug`, and `{section}` as `section`)"
    )]
    OnlySection {
        /// The name.
        asked: String,
        /// The section.
        section: String,
    },
    /// Several articles have this name.
    #[error("`{asked}` is ambiguous (expected one of: {})", .choices.join(", "))]
    Ambiguous {
        /// The name.
        asked: String,
        /// Their ids.
        choices: Vec<String>,
    },
    /// The article has no such section.
    #[error("`{id}` has no section `{asked}` ({})", sections_of(.sections))]
    NoSection {
        /// The article.
        id: String,
        /// The requested section.
        asked: String,
        /// The sections that exist.
        sections: Vec<SectionSummary>,
    },
    /// The category does not exist.
    #[error("unknown category `{asked}` ({})", categories_of(.categories))]
    NoCategory {
        /// The category.
        asked: String,
        /// The categories that exist.
        categories: Vec<String>,
    },
    /// A limit below one.
    #[error("limit must be at least 1, not {0}")]
    Limit(i64),
    /// A query without a letter or digit.
    #[error("the query has no word to search for")]
    NoWords,
    /// A query that is too long.
    #[error("the query is too long: {size} bytes (limit {most})")]
    QueryTooLong {
        /// The bytes of the query.
        size: usize,
        /// The limit.
        most: usize,
    },
    /// The index failed.
    #[error("the index of the articles failed: {0}")]
    Index(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<tantivy::TantivyError> for StoreError {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Index(Box::new(error))
    }
}

impl StoreError {
    /// Whether the error is internal, not the caller's.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Index(_))
    }
}

fn counted(articles: usize) -> String {
    if articles == 1 { "1 article".to_owned() } else { format!("{articles} articles") }
}

fn suggest(ids: &[String]) -> String {
    if ids.is_empty() { String::new() } else { format!("; perhaps one of: {}", ids.join(", ")) }
}

fn still(indexing: &Option<Indexing>) -> String {
    indexing.map_or_else(String::new, |Indexing { done, total }| {
        format!("; the folder is still being read ({done} of {total} files)")
    })
}

fn categories_of(categories: &[String]) -> String {
    match categories {
        [] => "there are no categories".to_owned(),
        all => format!("expected one of: {}", all.join(", ")),
    }
}

fn sections_of(sections: &[SectionSummary]) -> String {
    if sections.is_empty() {
        return "it has no sections".to_owned();
    }
    let ids: Vec<&str> =
        sections.iter().take(MOST_NAMED).map(|section| section.id.as_str()).collect();
    let more = match sections.len() {
        0..=MOST_NAMED => String::new(),
        all => format!(", … {all} in all: a search in the articles names the one that matches"),
    };
    format!("expected one of: {}{more}", ids.join(", "))
}
