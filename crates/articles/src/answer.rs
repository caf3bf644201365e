//! Lists, articles and completions from a snapshot. The folder itself is not read.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::date::rfc3339;
use crate::edit::etag;
use crate::folder::Folder;
use crate::index::{Meta, Stored, View};
use crate::links::{Link, join, names_of};
use crate::listing::{Entry, Resolved};
use crate::results::{Article, Indexing, Links, List, SectionSummary, StoreError, Summary};
use crate::rewrite::Rewriting;
use crate::sections::{Section, find_section};
use crate::snapshot::Snapshot;
use crate::uri::ArticleUris;

/// The default length of a list.
const DEFAULT_LIST: usize = 50;

/// The longest list. The result has the total number.
const LONGEST_LIST: usize = 1000;

/// Folders of a list, unless there are more next to each other. Deeper levels are left out for it.
const MOST_FOLDERS: usize = 40;

/// The limit of links of each kind in a result.
const MOST_LINKS: usize = 100;

/// The limit of articles that are checked for links to another.
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
    if let Some(category) = category {
        known_folder(snapshot, category, indexing)?;
    }
    let newest = snapshot.listing.newest(category).unwrap_or_default();
    let total = newest.len();
    let page = newest.into_iter().skip(offset).take(limit);
    let articles = page.map(|entry| summary(snapshot, entry)).collect::<Result<_, _>>()?;
    let folders = snapshot.listing.tree(category.unwrap_or_default(), MOST_FOLDERS);
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
    /// Only this section. `None`: the one that the name has after `#`, if any.
    pub section: Option<String>,
    /// Where the content starts, in bytes.
    pub offset: usize,
    /// The longest content, in bytes.
    pub limit: Option<usize>,
    /// Links in the content become the ids of the articles that they lead to, or the URIs of files.
    pub uris: Option<ArticleUris>,
    /// Whether the links of the article are returned.
    pub links: bool,
    /// Whether the `etag` of the file is returned.
    pub etag: bool,
    /// Whether the content is the file as it is now: with its frontmatter, and its links as written.
    pub raw: bool,
}

/// An article, or one section of it.
pub(crate) fn article(
    snapshot: &Snapshot,
    asked: &str,
    options: &ReadOptions,
    site: Option<&str>,
    folder: &Folder,
) -> Result<Article, StoreError> {
    let (resolved, linked_section) = snapshot.listing.resolve(asked.trim(), site);
    let entry = match resolved {
        Resolved::One(entry) => entry,
        Resolved::Many(choices) => {
            let choices = choices.into_iter().map(str::to_owned).collect();
            return Err(StoreError::Ambiguous { asked: asked.to_owned(), choices });
        }
        Resolved::Nothing => return Err(nothing(snapshot, asked, site)),
    };
    let stored = stored(snapshot, entry)?;
    let frontmatter = stored.frontmatter()?;
    let links = options.links.then(|| links(snapshot, entry, &stored, site)).transpose()?;
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
    let mut hash = entry.hash;
    let part = section.map_or(0..text.len(), |section| section.range.clone());
    let content = if options.raw {
        let bytes = folder.read_file(&entry.path).map_err(|_| not_found(asked))?;
        hash = xxh3_64(&bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    } else if let Some(uris) = &options.uris {
        let Snapshot { listing, files, .. } = snapshot;
        Rewriting { listing, files, site, folder, uris }.text(&text, part, entry)
    } else {
        text[part].to_owned()
    };
    let (range, next_offset) = cut(&content, options);
    Ok(Article {
        frontmatter,
        summary: summarize(entry, meta, size),
        content: content[range].to_owned(),
        missing_section: linked_section.filter(|_| section.is_none()),
        section: section.map(section_summary),
        sections,
        next_offset,
        etag: (options.etag || options.raw).then(|| etag(hash)),
        links,
    })
}

/// The part of a content that is returned, which ends between lines, and where it goes on.
fn cut(content: &str, options: &ReadOptions) -> (Range<usize>, Option<usize>) {
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
fn links(
    snapshot: &Snapshot,
    entry: &Entry,
    stored: &Stored,
    site: Option<&str>,
) -> Result<Links, StoreError> {
    let targets = |from: &str, stored: &Stored| -> Vec<String> {
        let found = stored.links.iter().filter_map(|written| {
            let link = Link::parse(written, site).filter(|link| !link.path.is_empty())?;
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
pub(crate) fn stored(snapshot: &Snapshot, entry: &Entry) -> Result<Stored, StoreError> {
    let lost =
        || tantivy::TantivyError::InternalError(format!("{} is not in the index", entry.path));
    let view: &View = snapshot.view.as_ref().ok_or_else(lost)?;
    let address = view.find(&entry.path)?.ok_or_else(lost)?;
    Ok(view.read(address)?)
}

/// The error of a name that no article has.
fn nothing(snapshot: &Snapshot, asked: &str, site: Option<&str>) -> StoreError {
    let link = Link::parse(asked.trim_matches('`'), site);
    let folder = link.as_ref().and_then(|link| join("", &link.path)).unwrap_or_default();
    match link {
        Some(Link { path, section: Some(section), .. }) if path.is_empty() => {
            StoreError::OnlySection { asked: asked.to_owned(), section }
        }
        _ if snapshot.listing.has_folder(&folder) => {
            let articles = snapshot.listing.newest(Some(&folder)).map_or(0, |found| found.len());
            StoreError::Folder { folder, articles }
        }
        _ => not_found(asked),
    }
}

fn not_found(asked: &str) -> StoreError {
    StoreError::NotFound { asked: asked.to_owned(), suggestions: Vec::new(), indexing: None }
}

/// Whether there is such a folder. While articles are being indexed, an unknown one may still
/// appear.
pub(crate) fn known_folder(
    snapshot: &Snapshot,
    asked: &str,
    indexing: Option<Indexing>,
) -> Result<(), StoreError> {
    let listing = &snapshot.listing;
    if indexing.is_some() || listing.has_folder(asked.trim_matches('/')) {
        return Ok(());
    }
    let mut categories: Vec<String> =
        listing.categories().map(|(name, _)| name.to_owned()).collect();
    // If the parent exists, its folders are suggested.
    if let Some((parent, _)) = asked.trim_matches('/').rsplit_once('/') {
        categories.extend(listing.folders(parent).into_keys());
    }
    Err(StoreError::NoCategory { asked: asked.to_owned(), categories })
}
