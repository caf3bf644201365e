//! What is answered, and why a question is not.
//!
//! The types serialise to the JSON that clients see as `structuredContent`. They own their text:
//! an answer outlives the snapshot that it was taken from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An article without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// `category/slug`; an article at the top of the folder has its slug alone.
    pub id: String,
    /// The first folder of its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The rest of its path, without the ending of the file.
    pub slug: String,
    /// What the author, the first heading or the file name says.
    pub title: String,
    /// What the author or the first paragraph says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The author's tags.
    pub tags: Vec<String>,
    /// The author's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When the author first published it: a day, or a day and a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_date: Option<String>,
    /// When the author last changed it: a day, or a day and a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// When the file was last written (RFC 3339).
    pub last_modified: String,
    /// The bytes of its Markdown, without the frontmatter.
    pub size: u64,
    /// `article:///category/slug`.
    pub uri: String,
}

/// One section of an article, by its heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SectionSummary {
    /// What to ask for: the anchor of the heading.
    pub id: String,
    /// The heading.
    pub title: String,
    /// The level of the heading, from 1. 0: what stands above the first heading.
    pub level: u8,
    /// The bytes of the section, its subsections included.
    pub size: usize,
}

/// An article with its text, or with one section of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Article {
    /// What is known of it.
    #[serde(flatten)]
    pub summary: Summary,
    /// The Markdown, without the frontmatter.
    pub content: String,
    /// The section that `content` is, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<SectionSummary>,
    /// All sections that can be asked for.
    pub sections: Vec<SectionSummary>,
    /// Everything that the author wrote above the text.
    pub frontmatter: Map<String, Value>,
}

/// How far the first reading of the folder has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Indexing {
    /// Files read.
    pub done: usize,
    /// Files found. 0: still looking.
    pub total: usize,
}

/// Articles, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// As many as were asked for.
    pub articles: Vec<Summary>,
    /// How many there are.
    pub total: usize,
    /// The folder is still being read: more may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexing: Option<Indexing>,
}

/// Articles that answer a query, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Search {
    /// As many as were asked for.
    pub hits: Vec<Hit>,
    /// How many articles match; for a phrase of common words, at least so many.
    pub total: usize,
    /// Words that stand in no article and were taken for others.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub corrections: Vec<Correction>,
    /// The folder is still being read: more may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexing: Option<Indexing>,
}

/// One article that answers a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// What is known of it.
    #[serde(flatten)]
    pub summary: Summary,
    /// How well it matches. Scores of different queries cannot be compared.
    pub score: f32,
    /// The place that matches best, if it is in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
    /// The whole Markdown, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// A piece of an article's text around the words that match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snippet {
    /// The text, without Markdown. `…` stands where it was cut.
    pub text: String,
    /// The words in it that match, as they are written there.
    pub words: Vec<String>,
    /// The section that it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<SectionSummary>,
}

/// A word that was taken for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Correction {
    /// What was asked.
    pub word: String,
    /// What was looked for.
    pub taken_for: Vec<String>,
}

/// Values that complete what a person is typing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// At most a hundred.
    pub values: Vec<String>,
    /// How many there are.
    pub total: usize,
    /// Whether some were left out.
    pub has_more: bool,
}

/// Articles that came, went or changed, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// New articles.
    pub added: Vec<String>,
    /// Articles that are no longer there, or no longer visible.
    pub removed: Vec<String>,
    /// Articles that say something else now.
    pub updated: Vec<String>,
    /// More changed than is worth naming: the lists are empty, and anything may have changed.
    pub many: bool,
}

impl Change {
    /// Whether articles came or went, so that a list of them is out of date.
    pub fn changes_list(&self) -> bool {
        self.many || !self.added.is_empty() || !self.removed.is_empty()
    }
}

/// Why a question has no answer. All but the last are the asker's to put right.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No article has this name.
    #[error("no article `{asked}`{}{}", suggest(.suggestions), still(.indexing))]
    NotFound {
        /// The name.
        asked: String,
        /// Ids of articles that may be meant.
        suggestions: Vec<String>,
        /// The folder is still being read.
        indexing: Option<Indexing>,
    },
    /// Several articles have this name.
    #[error("`{asked}` stands in several categories; ask for one of: {}", .choices.join(", "))]
    Ambiguous {
        /// The name.
        asked: String,
        /// Their ids.
        choices: Vec<String>,
    },
    /// The article has no such section.
    #[error("`{id}` has no section `{asked}`; its sections are: {}", sections_of(.sections))]
    NoSection {
        /// The article.
        id: String,
        /// What was asked for.
        asked: String,
        /// What can be asked for.
        sections: Vec<SectionSummary>,
    },
    /// No article is in this category.
    #[error("no category `{asked}`; the categories are: {}", .categories.join(", "))]
    NoCategory {
        /// The category.
        asked: String,
        /// Those that there are.
        categories: Vec<String>,
    },
    /// A limit below one.
    #[error("limit must be at least 1, not {0}")]
    Limit(i64),
    /// A query without a letter or digit.
    #[error("the query has no word to search for")]
    NoWords,
    /// A query beyond the bound.
    #[error("the query has {size} bytes; {most} are allowed")]
    QueryTooLong {
        /// The bytes of the query.
        size: usize,
        /// The bound.
        most: usize,
    },
    /// The index failed. This is ours.
    #[error("the index of the articles failed: {0}")]
    Index(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<tantivy::TantivyError> for AskError {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Index(Box::new(error))
    }
}

impl AskError {
    /// Whether the fault is ours, not the asker's.
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Index(_))
    }
}

fn suggest(ids: &[String]) -> String {
    if ids.is_empty() { String::new() } else { format!("; perhaps one of: {}", ids.join(", ")) }
}

fn still(indexing: &Option<Indexing>) -> String {
    indexing.map_or_else(String::new, |Indexing { done, total }| {
        format!("; the folder is still being read ({done} of {total} files)")
    })
}

fn sections_of(sections: &[SectionSummary]) -> String {
    if sections.is_empty() {
        return "none".to_owned();
    }
    sections.iter().map(|section| section.id.as_str()).collect::<Vec<_>>().join(", ")
}
