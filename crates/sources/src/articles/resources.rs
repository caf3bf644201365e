//! Articles as resources: the list, the templates, and how long clients may cache them.
//!
//! Up to [`MOST_LISTED`] articles are listed. In a larger folder none is listed, because a partial
//! list looks like a complete one: its articles are found with the tools and the templates.
//!
//! The list is cached and updated article by article, so that a change of one file does not read
//! ten thousand others again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use sabir_articles::{ArticleUris, Change, Store, StoreError, Summary};
use sabir_registry::Offer;
use sabir_wire::types::{Annotations, CacheHint, Completion, Resource, ResourceTemplate};

/// The limit of listed articles. With more, none is listed.
pub(super) const MOST_LISTED: usize = 10_000;

/// The media type of every article.
pub(super) const MARKDOWN: &str = "text/markdown";

/// The bounds of the time that clients may cache an article, in milliseconds.
const SHORTEST: i64 = 5_000;
const LONGEST: i64 = 3_600_000;

/// The resources that are offered.
pub(super) struct OfferedResources {
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) cache: CacheHint,
}

/// The list of articles.
pub(super) struct ResourceList {
    uris: ArticleUris,
    /// By id. `None`: not read yet, or too many.
    articles: Mutex<Option<BTreeMap<String, Summary>>>,
}

impl ResourceList {
    pub(super) fn new(uris: ArticleUris) -> Self {
        Self { uris, articles: Mutex::default() }
    }

    pub(super) fn uri_of(&self, id: &str) -> String {
        self.uris.uri_of(id)
    }

    /// Empties the cache.
    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    /// Updates the articles that have changed.
    pub(super) fn apply(&self, store: &Store, change: &Change) -> Result<(), StoreError> {
        if change.many {
            self.clear();
            return Ok(());
        }
        let mut articles = self.lock();
        let Some(known) = articles.as_mut() else { return Ok(()) };
        for id in change.removed.iter().chain(&change.added).chain(&change.updated) {
            match store.summary(id)? {
                Some(summary) => known.insert(id.clone(), summary),
                None => known.remove(id),
            };
        }
        if known.len() > MOST_LISTED {
            *articles = None;
        }
        Ok(())
    }

    pub(super) fn offer(&self, store: &Store) -> OfferedResources {
        let ids = store.ids();
        let templates = templates(&ids, self.uris.prefix(), store.has_files());
        let mut articles = self.lock();
        if ids.len() > MOST_LISTED {
            *articles = None;
        } else if articles.is_none() {
            *articles = read(store, &ids)
                .inspect_err(|error| tracing::error!(%error, "cannot list the articles"))
                .ok();
        }
        let listed = articles.iter().flat_map(BTreeMap::values);
        let resources = listed.clone().map(|summary| self.resource(summary)).collect();
        // During indexing the list changes all the time.
        let cache = match store.indexing() {
            Some(_) => hint(SHORTEST),
            None => fresh_for(listed),
        };
        OfferedResources { resources, templates, cache }
    }

    fn resource(&self, summary: &Summary) -> Resource {
        let annotations = Annotations {
            last_modified: Some(summary.last_modified.clone()),
            ..Annotations::default()
        };
        Resource {
            uri: self.uri_of(&summary.id),
            description: summary.description.clone(),
            annotations: Some(annotations),
            size: Some(summary.size),
            ..link(summary)
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<String, Summary>>> {
        self.articles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(store: &Store, ids: &[String]) -> Result<BTreeMap<String, Summary>, StoreError> {
    let known = ids.iter().filter_map(|id| {
        // An article that has just been removed is left out.
        store.summary(id).transpose().map(|summary| summary.map(|it| (id.clone(), it)))
    });
    known.collect()
}

/// A link to an article, with the required fields only.
pub(super) fn link(summary: &Summary) -> Resource {
    Resource {
        uri: summary.uri.clone(),
        name: summary.id.clone(),
        title: Some(summary.title.clone()),
        mime_type: Some(MARKDOWN.to_owned()),
        ..Resource::default()
    }
}

/// How long clients may cache these articles: a tenth of the age of the newest, the heuristic of
/// HTTP caches.
pub(super) fn fresh_for<'a>(articles: impl IntoIterator<Item = &'a Summary>) -> CacheHint {
    let now = Timestamp::now().as_millisecond();
    let written = |article: &Summary| article.last_modified.parse::<Timestamp>().ok();
    let written = articles.into_iter().filter_map(written).max();
    hint(written.map_or(SHORTEST, |written| tenth_of_age(now - written.as_millisecond())))
}

fn tenth_of_age(age: i64) -> i64 {
    (age / 10).clamp(SHORTEST, LONGEST)
}

fn hint(milliseconds: i64) -> CacheHint {
    CacheHint { ttl_ms: milliseconds.unsigned_abs(), ..Offer::default().cache }
}

/// The templates for the ids that exist: with a category, without one, or both; and for other files.
fn templates(ids: &[String], prefix: &str, has_files: bool) -> Vec<ResourceTemplate> {
    let has_flat = ids.iter().any(|id| !id.contains('/'));
    let has_categories = ids.iter().any(|id| id.contains('/'));
    let is_deep = ids.iter().any(|id| id.matches('/').count() > 1);
    let template = |path: &str, name: &str, description: &str| ResourceTemplate {
        uri_template: format!("{prefix}{path}"),
        name: name.to_owned(),
        title: Some("Article".to_owned()),
        description: Some(description.to_owned()),
        mime_type: Some(MARKDOWN.to_owned()),
        ..ResourceTemplate::default()
    };
    let mut templates = Vec::new();
    // An empty folder gets the usual template.
    if has_categories || !has_flat {
        let path = if is_deep { "{category}/{+slug}" } else { "{category}/{slug}" };
        templates.push(template(path, "article", "An article, by its category and slug"));
    }
    if has_flat {
        templates.push(template(
            "{slug}",
            "top-article",
            "An article without a category, by its slug",
        ));
    }
    if has_files {
        templates.push(ResourceTemplate {
            title: Some("File".to_owned()),
            mime_type: None,
            ..template("{+path}", "file", "An image or another file that articles refer to")
        });
    }
    templates
}

/// Slugs with this prefix, of all categories or of articles without one.
pub(super) fn complete_slug(ids: &[String], in_category: bool, prefix: &str) -> Completion {
    let slug = |id: &'_ String| match (id.split_once('/'), in_category) {
        (Some((_, slug)), true) => Some(slug.to_owned()),
        (None, false) => Some(id.clone()),
        _ => None,
    };
    let matching: BTreeSet<String> =
        ids.iter().filter_map(slug).filter(|slug| slug.starts_with(prefix)).collect();
    let total = Some(matching.len()).filter(|total| *total > Completion::MAX);
    let values = matching.into_iter().take(Completion::MAX).collect();
    Completion { values, total, ..Completion::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn templates_match_the_ids_of_the_folder() {
        let of = |list: &[&str]| -> Vec<String> {
            let templates = templates(&ids(list), "article:///", false);
            templates.into_iter().map(|template| template.uri_template).collect()
        };
        let flat = "article:///{slug}";
        assert_eq!(of(&[]), ["article:///{category}/{slug}"]);
        assert_eq!(of(&["a"]), [flat]);
        assert_eq!(of(&["c/a", "d/b"]), ["article:///{category}/{slug}"]);
        assert_eq!(of(&["c/a", "c/d/b"]), ["article:///{category}/{+slug}"]);
        assert_eq!(of(&["a", "c/b"]), ["article:///{category}/{slug}", flat]);
        let with_files = templates(&ids(&["a"]), "article:///", true);
        assert_eq!(with_files[1].uri_template, "article:///{+path}");
    }

    #[test]
    fn an_article_is_cached_for_a_tenth_of_its_age() {
        const HOUR: i64 = 3_600_000;
        assert_eq!(tenth_of_age(-HOUR), SHORTEST);
        assert_eq!(tenth_of_age(0), SHORTEST);
        assert_eq!(tenth_of_age(10 * SHORTEST + 9), SHORTEST);
        assert_eq!(tenth_of_age(10 * SHORTEST + 10), SHORTEST + 1);
        assert_eq!(tenth_of_age(HOUR), HOUR / 10);
        assert_eq!(tenth_of_age(10 * HOUR), LONGEST);
        assert_eq!(tenth_of_age(1000 * HOUR), LONGEST);
    }

    #[test]
    fn slugs_are_completed_without_duplicates_and_at_most_a_hundred() {
        let some = ids(&["top", "c/pages", "d/pages", "c/parts", "c/deep/parts"]);
        assert_eq!(complete_slug(&some, true, "p").values, ["pages", "parts"]);
        assert_eq!(complete_slug(&some, true, "deep/").values, ["deep/parts"]);
        assert_eq!(complete_slug(&some, false, "").values, ["top"]);
        let slugs = |count: usize| -> Vec<String> {
            (0..count).map(|number| format!("c/s{number:04}")).collect()
        };
        let edge = complete_slug(&slugs(100), true, "s");
        assert_eq!((edge.values.len(), edge.total), (100, None));
        let beyond = complete_slug(&slugs(101), true, "s");
        assert_eq!((beyond.values.len(), beyond.total), (100, Some(101)));
    }
}
