//! Answers from a snapshot: lists, articles, completions.
//!
//! Nothing here touches the folder: what is asked for is looked up in memory and read from the index.

use crate::date::rfc3339;
use crate::format::Format;
use crate::index::{Meta, Stored, View};
use crate::listing::{Completions, Entry, MOST_COMPLETIONS, Resolved};
use crate::results::{Article, AskError, Completion, Indexing, List, SectionSummary, Summary};
use crate::sections::{Outline, Section};
use crate::snapshot::Snapshot;
use crate::uri::uri_of;

/// Articles in a list, if nothing else is asked for.
const USUAL_LIST: usize = 50;

/// Articles in a list at most; the answer says how many there are.
const LONGEST_LIST: usize = 1000;

/// Categories that an error names.
const MOST_CATEGORIES: usize = 50;

/// A limit as it was asked for: at least one, and no more than `most`.
pub(crate) fn limit(asked: Option<i64>, usual: usize, most: usize) -> Result<usize, AskError> {
    match asked {
        None => Ok(usual),
        Some(asked) if asked < 1 => Err(AskError::Limit(asked)),
        Some(asked) => Ok(usize::try_from(asked).unwrap_or(most).min(most)),
    }
}

/// The newest articles.
pub(crate) fn list(
    snapshot: &Snapshot,
    category: Option<&str>,
    asked: Option<i64>,
    indexing: Option<Indexing>,
) -> Result<List, AskError> {
    let limit = limit(asked, USUAL_LIST, LONGEST_LIST)?;
    let newest =
        snapshot.listing.newest(category).ok_or_else(|| no_category(snapshot, category))?;
    let total = newest.len();
    let articles =
        newest.take(limit).map(|entry| summary(snapshot, entry)).collect::<Result<_, _>>()?;
    Ok(List { articles, total, indexing })
}

/// Articles by id, from one place on: to go through all of them.
pub(crate) fn summaries(
    snapshot: &Snapshot,
    from: usize,
    most: usize,
) -> Result<Vec<Summary>, AskError> {
    let page = snapshot.listing.articles().iter().skip(from).take(most.min(LONGEST_LIST));
    page.map(|entry| summary(snapshot, entry)).collect()
}

/// What is known of the article with exactly this id.
pub(crate) fn summary_of(snapshot: &Snapshot, id: &str) -> Result<Option<Summary>, AskError> {
    snapshot.listing.article(id).map(|entry| summary(snapshot, entry)).transpose()
}

/// An article, or one section of it.
pub(crate) fn article(
    snapshot: &Snapshot,
    asked: &str,
    section: Option<&str>,
) -> Result<Article, AskError> {
    let entry = match snapshot.listing.resolve(asked) {
        Resolved::One(entry) => entry,
        Resolved::Many(choices) => {
            let choices = choices.into_iter().map(str::to_owned).collect();
            return Err(AskError::Ambiguous { asked: asked.to_owned(), choices });
        }
        Resolved::Nothing => return Err(not_found(asked)),
    };
    let stored = stored(snapshot, entry)?;
    let frontmatter = stored.frontmatter()?;
    let Stored { meta, text, .. } = stored;
    let outline = Outline::read(&text, Format::of(&entry.path).unwrap_or(Format::Text));
    let sections: Vec<SectionSummary> = outline.sections.iter().map(section_summary).collect();
    let size = text.len();
    let (content, section) = match section {
        None => (text, None),
        Some(asked) => {
            let Some(found) = outline.section(asked) else {
                return Err(AskError::NoSection {
                    id: entry.id().to_owned(),
                    asked: asked.to_owned(),
                    sections,
                });
            };
            (text[found.range.clone()].to_owned(), Some(section_summary(found)))
        }
    };
    Ok(Article { frontmatter, summary: summarised(entry, meta, size), content, section, sections })
}

pub(crate) fn completion(found: Completions) -> Completion {
    Completion {
        has_more: found.total > MOST_COMPLETIONS,
        values: found.values,
        total: found.total,
    }
}

/// What is known of an article whose Markdown has `size` bytes.
pub(crate) fn summarised(entry: &Entry, meta: Meta, size: usize) -> Summary {
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
        uri: uri_of(entry.id()),
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

fn summary(snapshot: &Snapshot, entry: &Entry) -> Result<Summary, AskError> {
    stored(snapshot, entry).map(|stored| summarised(entry, stored.meta, stored.text.len()))
}

/// What the index has of an article that is on the listing.
fn stored(snapshot: &Snapshot, entry: &Entry) -> Result<Stored, AskError> {
    let lost =
        || tantivy::TantivyError::InternalError(format!("{} is not in the index", entry.path));
    let view: &View = snapshot.view.as_ref().ok_or_else(lost)?;
    let address = view.find(&entry.path)?.ok_or_else(lost)?;
    Ok(view.read(address)?)
}

fn not_found(asked: &str) -> AskError {
    AskError::NotFound { asked: asked.to_owned(), suggestions: Vec::new(), indexing: None }
}

fn no_category(snapshot: &Snapshot, asked: Option<&str>) -> AskError {
    let categories =
        snapshot.listing.categories().take(MOST_CATEGORIES).map(|(name, _)| name.to_owned());
    AskError::NoCategory {
        asked: asked.unwrap_or_default().to_owned(),
        categories: categories.collect(),
    }
}
