//! Lists, articles and completions from a snapshot. The folder itself is not read.

use std::ops::Range;

use crate::date::rfc3339;
use crate::format::Format;
use crate::index::{Meta, Stored, View};
use crate::links::{Link, names_of};
use crate::listing::{Entry, Resolved};
use crate::results::{Article, Indexing, Links, List, SectionSummary, StoreError, Summary};
use crate::rewrite::with_ids;
use crate::sections::{Section, find_section};
use crate::snapshot::Snapshot;
use crate::uri::ArticleUris;

/// The default length of a list.
const DEFAULT_LIST: usize = 50;

/// The longest list. The result has the total number.
const LONGEST_LIST: usize = 1000;

/// The most links of each kind in a result.
const MOST_LINKS: usize = 100;

/// The most articles that are looked at for links to another.
const MOST_LINKING: usize = 500;

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
    offset: usize,
    indexing: Option<Indexing>,
) -> Result<List, StoreError> {
    let limit = limit(asked, DEFAULT_LIST, LONGEST_LIST)?;
    let newest =
        snapshot.listing.newest(category).ok_or_else(|| no_category(snapshot, category))?;
    let total = newest.len();
    let page = newest.into_iter().skip(offset).take(limit);
    let articles = page.map(|entry| summary(snapshot, entry)).collect::<Result<_, _>>()?;
    let folders = snapshot.listing.folders(category.unwrap_or_default());
    let next_offset = Some(offset + limit).filter(|&next| next < total);
    Ok(List { articles, total, folders, next_offset, indexing })
}

/// The summary of the article with exactly this id.
pub(crate) fn summary_of(snapshot: &Snapshot, id: &str) -> Result<Option<Summary>, StoreError> {
    snapshot.listing.article(id).map(|entry| summary(snapshot, entry)).transpose()
}

/// How an article is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Only this section. Without it, the one that the name has after `#`.
    pub section: Option<String>,
    /// Where the content starts, in bytes.
    pub offset: usize,
    /// The longest content, in bytes.
    pub limit: Option<usize>,
    /// Whether links in the content become the ids of the articles that they lead to.
    pub with_ids: bool,
    /// Whether the links of the article are returned.
    pub links: bool,
}

/// An article, or one section of it.
pub(crate) fn article(
    snapshot: &Snapshot,
    asked: &str,
    options: &ReadOptions,
    site: Option<&str>,
) -> Result<Article, StoreError> {
    let (resolved, linked_section) = snapshot.listing.resolve(asked.trim(), site);
    let entry = match resolved {
        Resolved::One(entry) => entry,
        Resolved::Many(choices) => {
            let choices = choices.into_iter().map(str::to_owned).collect();
            return Err(StoreError::Ambiguous { asked: asked.to_owned(), choices });
        }
        Resolved::Nothing => return Err(not_found(asked)),
    };
    let stored = stored(snapshot, entry)?;
    let frontmatter = stored.frontmatter()?;
    let links = options.links.then(|| links(snapshot, entry, &stored)).transpose()?;
    let Stored { meta, text, sections: outline, .. } = stored;
    let sections: Vec<SectionSummary> = outline.iter().map(section_summary).collect();
    let size = text.len();
    let section = match (&options.section, &linked_section) {
        (None, None) => None,
        // A link to a section that is gone still leads to its page.
        (None, Some(linked)) => find_section(&outline, linked),
        (Some(asked), _) => {
            let found = find_section(&outline, asked);
            Some(found.ok_or_else(|| StoreError::NoSection {
                id: entry.id().to_owned(),
                asked: asked.clone(),
                sections: sections.clone(),
            })?)
        }
    };
    let mut content =
        text[section.map_or(0..text.len(), |section| section.range.clone())].to_owned();
    if options.with_ids {
        let format = Format::of(&entry.path).unwrap_or(Format::Text);
        content = with_ids(&content, format, entry.id(), &snapshot.listing, site);
    }
    let (range, next_offset) = part(&content, options);
    Ok(Article {
        frontmatter,
        summary: summarize(entry, meta, size),
        content: content[range].to_owned(),
        section: section.map(section_summary),
        sections,
        next_offset,
        links,
    })
}

/// The part of a content that is returned, which ends between lines, and where it goes on.
fn part(content: &str, options: &ReadOptions) -> (Range<usize>, Option<usize>) {
    let boundary =
        |at: usize| (0..=at.min(content.len())).rfind(|&at| content.is_char_boundary(at));
    let start = boundary(options.offset).unwrap_or(0);
    let limit = options.limit.unwrap_or(usize::MAX).max(1);
    if content.len() - start <= limit {
        return (start..content.len(), None);
    }
    let most = boundary(start + limit).filter(|&end| end > start).unwrap_or(content.len());
    let line = content[start..most].rfind('\n').map(|at| start + at + 1);
    let end = line.filter(|&end| end > start + limit / 2).unwrap_or(most);
    (start..end, Some(end))
}

/// The articles that an article links to, and those that link to it.
fn links(snapshot: &Snapshot, entry: &Entry, stored: &Stored) -> Result<Links, StoreError> {
    let targets = |from: &str, stored: &Stored| -> Vec<String> {
        let found = stored.links.iter().filter_map(|written| {
            let link = Link::parse(written, None).filter(|link| !link.path.is_empty())?;
            snapshot.listing.linked(&link, from).map(|entry| entry.id().to_owned())
        });
        let mut found: Vec<String> = found.filter(|id| id != from).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let mut links = Links { to: targets(entry.id(), stored), from: Vec::new() };
    links.to.truncate(MOST_LINKS);
    let Some(view) = &snapshot.view else { return Ok(links) };
    for address in view.linking_to(&names_of(entry.id(), &entry.names), MOST_LINKING)? {
        let other = view.read(address)?;
        let from = snapshot.listing.serves(&other.meta.path).map(|entry| entry.id());
        if let Some(from) =
            from.filter(|from| targets(from, &other).iter().any(|id| id == entry.id()))
        {
            links.from.push(from.to_owned());
        }
    }
    links.from.sort_unstable();
    links.from.truncate(MOST_LINKS);
    Ok(links)
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
    let categories = snapshot.listing.categories().map(|(name, _)| name.to_owned());
    StoreError::NoCategory {
        asked: asked.unwrap_or_default().to_owned(),
        categories: categories.collect(),
    }
}
