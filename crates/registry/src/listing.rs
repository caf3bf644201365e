//! A list in pages, each rendered once per revision.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use sabir_wire::render;
use sabir_wire::types::{
    CacheHint, CacheScope, ListPage, Listed, Prompt, Resource, ResourceTemplate,
};
use sabir_wire::types::{Skill, Tool};
use sabir_wire::{Raw, Revision};

/// All items of one kind, in a stable order.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    items: Vec<T>,
    page_size: usize,
    cache: CacheHint,
    /// The first pages, rendered per revision. Later ones are rendered on request, so
    /// that a list of a million does not stay in memory five times.
    rendered: Vec<[OnceLock<Bytes>; Revision::ALL.len()]>,
}

/// A cursor that we did not issue, or whose item is no longer offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid or expired cursor (expected one from the previous page; start again without one)")]
pub(crate) struct BadCursor;

/// An item of a list.
pub(crate) trait Item: Listed {
    /// Its unique key in the list.
    fn key(&self) -> &str;
}

impl Item for Tool {
    fn key(&self) -> &str {
        &self.name
    }
}

impl Item for Prompt {
    fn key(&self) -> &str {
        &self.name
    }
}

impl Item for Resource {
    fn key(&self) -> &str {
        &self.uri
    }
}

impl Item for ResourceTemplate {
    fn key(&self) -> &str {
        &self.uri_template
    }
}

impl Item for Skill {
    fn key(&self) -> &str {
        &self.uri
    }
}

impl<T> Listing<T> {
    /// How many pages are kept rendered.
    const KEPT_PAGES: usize = 8;

    /// A page of so many items is rendered in microseconds.
    const SHORT: usize = 64;

    /// A list in pages of `page_size`.
    pub(crate) fn new(items: Vec<T>, page_size: usize, cache: CacheHint) -> Self {
        let page_size = page_size.max(1);
        let pages = items.len().div_ceil(page_size).clamp(1, Self::KEPT_PAGES);
        let rendered = (0..pages).map(|_| Default::default()).collect();
        Self { items, page_size, cache, rendered }
    }

    /// The list of the wanted items.
    pub(crate) fn filtered(&self, is_wanted: impl Fn(&T) -> bool) -> Self
    where
        T: Clone,
    {
        let items = self.items.iter().filter(|item| is_wanted(item)).cloned().collect();
        Self::new(items, self.page_size, self.cache)
    }

    /// The list with one more item, which only some clients see.
    pub(crate) fn with(&self, item: T) -> Self
    where
        T: Clone,
    {
        let items = self.items.iter().cloned().chain([item]).collect();
        let cache = CacheHint { scope: CacheScope::Private, ..self.cache };
        Self::new(items, self.page_size, cache)
    }

    /// All items.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }
}

impl<T: Item> Listing<T> {
    /// The page after `cursor`, or the first, rendered for `revision`.
    pub(crate) fn page(
        &self,
        cursor: Option<&str>,
        revision: Revision,
        server: &Raw,
    ) -> Result<Bytes, BadCursor> {
        let start = cursor.map_or(Ok(0), |cursor| self.start_after(cursor))?;
        let render = || Bytes::from(self.render(start, revision, server));
        let kept = self.rendered.get(start / self.page_size);
        match kept.filter(|_| start % self.page_size == 0) {
            Some(page) => Ok(page[revision.index()].get_or_init(render).clone()),
            None => Ok(render()),
        }
    }

    /// Whether a page was rendered before, or is short.
    pub(crate) fn is_ready(&self, cursor: Option<&str>, revision: Revision) -> bool {
        let is_short = self.items.len().min(self.page_size) <= Self::SHORT;
        let first = || self.rendered.first().and_then(|page| page[revision.index()].get());
        is_short || (cursor.is_none() && first().is_some())
    }

    fn render(&self, start: usize, revision: Revision, server: &Raw) -> Vec<u8> {
        let end = self.items.len().min(start + self.page_size);
        let items = &self.items[start..end];
        let next =
            items.last().filter(|_| end < self.items.len()).map(|last| cursor(end, last.key()));
        render::page(&ListPage::new(items, next, self.cache), revision, server)
    }

    /// A cursor names the last item of its page and its index: after a change elsewhere in the
    /// list, paging goes on at the same item.
    fn start_after(&self, cursor: &str) -> Result<usize, BadCursor> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor)?;
        let text = String::from_utf8(bytes).map_err(|_| BadCursor)?;
        let (end, key) = text.split_once(' ').ok_or(BadCursor)?;
        let end: usize = end.parse().map_err(|_| BadCursor)?;
        let is_last = |at: usize| self.items.get(at).is_some_and(|item| item.key() == key);
        if end > 0 && is_last(end - 1) {
            return Ok(end);
        }
        let at = self.items.iter().position(|item| item.key() == key).ok_or(BadCursor)?;
        Ok(at + 1)
    }
}

fn cursor(end: usize, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{end} {key}"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn listing(names: &[&str], page_size: usize) -> Listing<Prompt> {
        let prompt = |name: &&str| Prompt { name: (*name).to_owned(), ..Prompt::default() };
        Listing::new(names.iter().map(prompt).collect(), page_size, CacheHint::default())
    }

    /// The names on a page, and the cursor of the next.
    fn page(
        listing: &Listing<Prompt>,
        cursor: Option<&str>,
    ) -> Result<(Vec<String>, Option<String>), BadCursor> {
        let page = listing.page(cursor, Revision::NEWEST, &Raw::empty_object())?;
        let page: Value = serde_json::from_slice(&page).unwrap();
        let names = page["prompts"].as_array().unwrap().iter();
        let names = names.map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect();
        Ok((names, page["nextCursor"].as_str().map(str::to_owned)))
    }

    #[test]
    fn pages_cover_the_list_once() {
        for page_size in 1..=6 {
            let listing = listing(&["a", "b", "c", "d", "e"], page_size);
            let (mut all, mut next) = page(&listing, None).unwrap();
            while let Some(cursor) = next {
                let (more, after) = page(&listing, Some(&cursor)).unwrap();
                all.extend(more);
                next = after;
            }
            assert_eq!(all, ["a", "b", "c", "d", "e"], "pages of {page_size}");
        }
    }

    #[test]
    fn a_cursor_outlives_a_change_elsewhere() {
        let (_, cursor) = page(&listing(&["a", "b", "c"], 2), None).unwrap();
        let changed = listing(&["new", "a", "b", "c"], 2);
        assert_eq!(page(&changed, cursor.as_deref()).unwrap().0, ["c"]);
        let gone = listing(&["a", "c"], 2);
        assert_eq!(page(&gone, cursor.as_deref()), Err(BadCursor));
    }

    #[test]
    fn foreign_cursors_are_refused() {
        let listing = listing(&["a", "b"], 1);
        for foreign in ["", "1", "MQ", "%%%", &cursor(0, "z"), &cursor(usize::MAX, "z")] {
            assert_eq!(page(&listing, Some(foreign)), Err(BadCursor), "{foreign}");
        }
    }

    #[test]
    fn a_page_is_rendered_once_per_revision() {
        let listing = listing(&["a"], 10);
        let server = Raw::empty_object();
        let first = listing.page(None, Revision::NEWEST, &server).unwrap();
        let again = listing.page(None, Revision::NEWEST, &server).unwrap();
        assert_eq!(first.as_ptr(), again.as_ptr());
    }
}
