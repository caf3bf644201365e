//! Lists, articles and completions from a snapshot. The folder itself is not read.

use crate::date::rfc3339;
use crate::index::{Meta, Stored, View};
use crate::listing::{Entry, Resolved};
use crate::results::{Article, Indexing, List, SectionSummary, StoreError, Summary};
use crate::sections::{Section, find_section};
use crate::snapshot::Snapshot;
use crate::uri::ArticleUris;

/// The default length of a list.
const DEFAULT_LIST: usize = 50;

/// The longest list. The result has the total number.
const LONGEST_LIST: usize = 1000;

/// The most categories in an error.
const MOST_CATEGORIES: usize = 50;

/// A requested limit: at least one, and at most `max`.
pub(crate) fn limit(asked: Option<i64>, default: usize, max: usize) -> Result<usize, StoreError> {
    match asked {
        None => Ok(default),
        Some(asked) if asked < 1 => Err(StoreError::Limit(asked)),
        Some(asked) => Ok(usize::try_from(asked).unwrap_or(max).min(max)),
    }
}

/// The newest articles.
pub(crate) fn list(
    snapshot: &Snapshot,
    category: Option<&str>,
    asked: Option<i64>,
    indexing: Option<Indexing>,
) -> Result<List, StoreError> {
    let limit = limit(asked, DEFAULT_LIST, LONGEST_LIST)?;
    let newest =
        snapshot.listing.newest(category).ok_or_else(|| no_category(snapshot, category))?;
    let total = newest.len();
    let articles =
        newest.take(limit).map(|entry| summary(snapshot, entry)).collect::<Result<_, _>>()?;
    Ok(List { articles, total, indexing })
}

/// The summary of the article with exactly this id.
pub(crate) fn summary_of(snapshot: &Snapshot, id: &str) -> Result<Option<Summary>, StoreError> {
    snapshot.listing.article(id).map(|entry| summary(snapshot, entry)).transpose()
}

/// An article, or one section of it.
pub(crate) fn article(
    snapshot: &Snapshot,
    asked: &str,
    section: Option<&str>,
) -> Result<Article, StoreError> {
    let entry = match snapshot.listing.resolve(asked) {
        Resolved::One(entry) => entry,
        Resolved::Many(choices) => {
            let choices = choices.into_iter().map(str::to_owned).collect();
            return Err(StoreError::Ambiguous { asked: asked.to_owned(), choices });
        }
        Resolved::Nothing => return Err(not_found(asked)),
    };
    let stored = stored(snapshot, entry)?;
    let frontmatter = stored.frontmatter()?;
    let Stored { meta, text, sections: outline, .. } = stored;
    let sections: Vec<SectionSummary> = outline.iter().map(section_summary).collect();
    let size = text.len();
    let (content, section) = match section {
        None => (text, None),
        Some(asked) => {
            let Some(found) = find_section(&outline, asked) else {
                return Err(StoreError::NoSection {
                    id: entry.id().to_owned(),
                    asked: asked.to_owned(),
                    sections,
                });
            };
            (text[found.range.clone()].to_owned(), Some(section_summary(found)))
        }
    };
    Ok(Article { frontmatter, summary: summarize(entry, meta, size), content, section, sections })
}

/// The summary of an article whose Markdown has `size` bytes.
pub(crate) fn summarize(entry: &Entry, meta: Meta, size: usize) -> Summary {
    Summary {
        id: entry.id().to_owned(),
        category: entry.category().map(str::to_owned),
        slug: entry.slug().to_owned(),
        title: meta.title,
        description: meta.description,
        tags: meta.tags,
        status: meta.status,
        published_date: meta.published,
        last_updated: meta.updated,
        last_modified: rfc3339(entry.stamp.mtime.div_euclid(1_000_000_000)),
        size: size as u64,
        uri: ArticleUris::default().uri_of(entry.id()),
    }
}

pub(crate) fn section_summary(section: &Section) -> SectionSummary {
    SectionSummary {
        id: section.id.clone(),
        title: section.title.clone(),
        level: section.level,
        size: section.range.len(),
    }
}

fn summary(snapshot: &Snapshot, entry: &Entry) -> Result<Summary, StoreError> {
    stored(snapshot, entry).map(|stored| summarize(entry, stored.meta, stored.text.len()))
}

/// The stored fields of an article.
fn stored(snapshot: &Snapshot, entry: &Entry) -> Result<Stored, StoreError> {
    let lost =
        || tantivy::TantivyError::InternalError(format!("{} is not in the index", entry.path));
    let view: &View = snapshot.view.as_ref().ok_or_else(lost)?;
    let address = view.find(&entry.path)?.ok_or_else(lost)?;
    Ok(view.read(address)?)
}

fn not_found(asked: &str) -> StoreError {
    StoreError::NotFound { asked: asked.to_owned(), suggestions: Vec::new(), indexing: None }
}

fn no_category(snapshot: &Snapshot, asked: Option<&str>) -> StoreError {
    let categories =
        snapshot.listing.categories().take(MOST_CATEGORIES).map(|(name, _)| name.to_owned());
    StoreError::NoCategory {
        asked: asked.unwrap_or_default().to_owned(),
        categories: categories.collect(),
    }
}
