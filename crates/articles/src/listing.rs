//! An immutable list of all files, in memory.
//!
//! It has one small entry per file, including hidden ones, so that changes are detected without the
//! index; titles and texts are in the index. Ids, names and dates are sorted once.
//!
//! The id of an article is its path without the extension: `category/slug`. The category is the first
//! folder; an article in the top folder has none. An article is found by the last parts of its id:
//! `slug`, `deep/slug`, `category/deep/slug`.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::article::Hidden;
use crate::folder::Stamp;
use crate::format::Format;
use crate::language::Language;
use crate::links::{Addresses, INDEXES, Link};
use crate::problem::Problem;
use crate::results::Completion;
use crate::roles::has_backquotes;

/// The limit of values of a completion, which is MCP's.
const MOST_COMPLETIONS: usize = 100;

/// The limit of choices for an ambiguous name.
const MOST_CHOICES: usize = 20;

/// Between the names in a record.
const NAME_SEPARATOR: &str = "\u{1f}";

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the folder.
    pub(crate) path: Box<str>,
    pub(crate) stamp: Stamp,
    pub(crate) hash: u64,
    /// Seconds since 1970: the date in the frontmatter, else the modification time.
    pub(crate) updated: i64,
    /// Why it is not served.
    pub(crate) hidden: Option<Hidden>,
    pub(crate) linked: bool,
    /// Read so soon after it was written that a later write may have the same time.
    pub(crate) unsure: bool,
    pub(crate) language: Language,
    /// The title, and the addresses on its site.
    pub(crate) names: Box<[Box<str>]>,
}

impl Entry {
    /// Whether a file with this stamp is unchanged.
    pub(crate) fn is_current(&self, stamp: Stamp) -> bool {
        self.stamp == stamp && !self.unsure
    }

    pub(crate) fn id(&self) -> &str {
        id_of(&self.path)
    }

    pub(crate) fn category(&self) -> Option<&str> {
        self.id().split_once('/').map(|(category, _)| category)
    }

    pub(crate) fn slug(&self) -> &str {
        self.id().split_once('/').map_or(self.id(), |(_, slug)| slug)
    }

    fn name(&self) -> &str {
        self.id().rsplit('/').next().unwrap_or_default()
    }

    /// Encodes the entry for [`Entry::from_record`].
    pub(crate) fn record(&self) -> String {
        let Self { path, stamp, hash, updated, .. } = self;
        let hidden = self.hidden.map_or('0', Hidden::letter);
        let [linked, unsure] = [self.linked, self.unsure].map(u8::from);
        let Stamp { size, mtime } = stamp;
        let language = self.language.letter();
        let names = self.names.join(NAME_SEPARATOR);
        format!(
            "{path}\t{size}\t{mtime}\t{hash:x}\t{updated}\t{hidden}{linked}{unsure}{language}\t{names}"
        )
    }

    pub(crate) fn from_record(record: &str) -> Option<Self> {
        let mut parts = record.split('\t');
        let path = parts.next()?.into();
        let stamp = Stamp { size: parts.next()?.parse().ok()?, mtime: parts.next()?.parse().ok()? };
        let hash = u64::from_str_radix(parts.next()?, 16).ok()?;
        let updated = parts.next()?.parse().ok()?;
        let &[hidden, linked, unsure, language] = parts.next()?.as_bytes() else { return None };
        let hidden = Hidden::of_letter(char::from(hidden));
        let [linked, unsure] = [linked, unsure].map(|flag| flag == b'1');
        let language = Language::of_letter(char::from(language))?;
        let names = parts.next()?.split(NAME_SEPARATOR).filter(|name| !name.is_empty());
        let names = names.map(Into::into).collect();
        Some(Self { path, stamp, hash, updated, hidden, linked, unsure, language, names })
    }
}

/// The path without its extension.
pub(crate) fn id_of(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(id, _)| id)
}

/// The result of looking up a name.
#[derive(Debug, PartialEq)]
pub(crate) enum Resolved<'a> {
    One(&'a Arc<Entry>),
    /// The ids of several articles with this name.
    Many(Vec<&'a str>),
    Nothing,
}

/// All files, and the articles among them.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// All files, by path.
    files: Vec<Arc<Entry>>,
    /// The articles, by id. Of files with the same id, one is an article.
    articles: Vec<Arc<Entry>>,
    /// Indices in `articles`, by name and then id.
    by_name: Vec<u32>,
    /// Indices in `articles`, newest first.
    by_date: Vec<u32>,
    /// Categories by name, each with its indices in `articles`, newest first.
    categories: BTreeMap<Box<str>, Vec<u32>>,
    shadowed: Vec<Problem>,
    /// Those of the articles, each once.
    languages: Vec<Language>,
    /// Made when the first link is followed.
    addresses: OnceLock<Addresses>,
}

impl Listing {
    pub(crate) fn new(mut files: Vec<Arc<Entry>>) -> Self {
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let (articles, shadowed) = articles(&files);
        let places = || (0..articles.len()).filter_map(|place| u32::try_from(place).ok());
        let at = |place: u32| &articles[place as usize];
        let mut by_name: Vec<u32> = places().collect();
        by_name.sort_by_cached_key(|&place| at(place).name());
        let mut by_date: Vec<u32> = places().collect();
        by_date.sort_by_key(|&place| std::cmp::Reverse(at(place).updated));
        let mut categories: BTreeMap<Box<str>, Vec<u32>> = BTreeMap::new();
        for &place in &by_date {
            match at(place).category() {
                None => {}
                Some(name) => match categories.get_mut(name) {
                    Some(places) => places.push(place),
                    None => drop(categories.insert(name.into(), vec![place])),
                },
            }
        }
        let mut languages: Vec<Language> = articles.iter().map(|entry| entry.language).collect();
        languages.sort_unstable();
        languages.dedup();
        let addresses = OnceLock::new();
        Self { files, articles, by_name, by_date, categories, shadowed, languages, addresses }
    }

    /// A listing with these files added, changed or (`None`) removed.
    pub(crate) fn with(&self, mut changes: Vec<(Box<str>, Option<Entry>)>) -> Self {
        changes.sort_by(|a, b| a.0.cmp(&b.0));
        let kept = self
            .files
            .iter()
            .filter(|file| changes.binary_search_by(|(path, _)| path.cmp(&file.path)).is_err());
        let mut files: Vec<_> = kept.cloned().collect();
        files.extend(changes.iter().filter_map(|(_, entry)| entry.clone()).map(Arc::new));
        Self::new(files)
    }

    pub(crate) fn files(&self) -> &[Arc<Entry>] {
        &self.files
    }

    /// The languages of the articles.
    pub(crate) fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// The articles, by id.
    pub(crate) fn articles(&self) -> &[Arc<Entry>] {
        &self.articles
    }

    /// The categories by name, with their numbers of articles.
    pub(crate) fn categories(&self) -> impl Iterator<Item = (&str, usize)> {
        self.categories.iter().map(|(name, places)| (&**name, places.len()))
    }

    /// Files that are not served because another has the same id.
    pub(crate) fn shadowed(&self) -> &[Problem] {
        &self.shadowed
    }

    pub(crate) fn file(&self, path: &str) -> Option<&Arc<Entry>> {
        self.files.binary_search_by(|file| (*file.path).cmp(path)).ok().map(|at| &self.files[at])
    }

    /// The files at `path` or in the folder of that name.
    pub(crate) fn under<'s>(
        &'s self,
        path: &str,
    ) -> impl Iterator<Item = &'s Arc<Entry>> + use<'s> {
        let below = format!("{path}/");
        let from = self.files.partition_point(|file| *file.path < *below);
        let inside =
            self.files[from..].iter().take_while(move |file| file.path.starts_with(&below));
        let all = if path.is_empty() { &self.files[..] } else { &[] };
        self.file(path).into_iter().chain(inside).chain(all)
    }

    pub(crate) fn article(&self, id: &str) -> Option<&Arc<Entry>> {
        self.articles.binary_search_by(|entry| entry.id().cmp(id)).ok().map(|at| &self.articles[at])
    }

    /// The article of this file, unless it is hidden or another file with its id is served.
    pub(crate) fn serves(&self, path: &str) -> Option<&Arc<Entry>> {
        self.article(id_of(path)).filter(|entry| *entry.path == *path)
    }

    /// Looks up an id, the last parts of one, or a link. Returns also the section that the link names.
    pub(crate) fn resolve(
        &self,
        asked: &str,
        site: Option<&str>,
    ) -> (Resolved<'_>, Option<String>) {
        // Models copy the backquotes, in which answers put ids.
        let asked = if has_backquotes(asked) { asked } else { asked.trim_matches('`') };
        if let Some(entry) = self.article(asked) {
            return (Resolved::One(entry), None);
        }
        let Some(link) = Link::parse(asked, site) else { return (Resolved::Nothing, None) };
        if link.path.is_empty() {
            return (Resolved::Nothing, None);
        }
        let bare = link.path.trim_matches('/');
        if let Some(entry) = self.article(bare) {
            return (Resolved::One(entry), link.section);
        }
        // A name may have `#`, `?` or `%` in it.
        if let [entry] = self.ending_in(asked)[..] {
            return (Resolved::One(entry), None);
        }
        let mut same = self.ending_in(bare);
        if same.is_empty() {
            let found = self.addresses().resolve(&link).iter();
            same = found.map(|&place| &self.articles[place as usize]).take(MOST_CHOICES).collect();
        }
        if same.is_empty() {
            let loose = self.articles.iter().filter(|entry| ends_in_parts(entry.id(), bare));
            same = loose.take(MOST_CHOICES).collect();
        }
        let resolved = match same[..] {
            [] => Resolved::Nothing,
            [entry] => Resolved::One(entry),
            _ => Resolved::Many(same.iter().map(|entry| entry.id()).collect()),
        };
        (resolved, link.section)
    }

    /// The one article that a link on the page `from` leads to.
    pub(crate) fn linked(&self, link: &Link, from: &str) -> Option<&Arc<Entry>> {
        match self.addresses().linked(link, from) {
            [place] => Some(&self.articles[*place as usize]),
            _ => None,
        }
    }

    fn addresses(&self) -> &Addresses {
        self.addresses.get_or_init(|| {
            let mut addresses = Addresses::default();
            for (place, entry) in (0..).zip(&self.articles) {
                addresses.add(place, entry.id(), &entry.names);
            }
            addresses
        })
    }

    fn ending_in(&self, asked: &str) -> Vec<&Arc<Entry>> {
        let name = asked.rsplit('/').next().unwrap_or_default();
        let entries = self.named_from(name).take_while(|entry| entry.name() == name);
        entries
            .filter(|entry| entry.id().ends_with(asked) && ends_in_parts(entry.id(), asked))
            .take(MOST_CHOICES)
            .collect()
    }

    /// The articles from `name` on, by name.
    fn named_from<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Arc<Entry>> + use<'s> {
        let from =
            self.by_name.partition_point(|&place| self.articles[place as usize].name() < name);
        self.by_name[from..].iter().map(|&place| &self.articles[place as usize])
    }

    /// The articles of a category or of a folder in one, or all, newest first. `None` if there are none.
    pub(crate) fn newest(&self, folder: Option<&str>) -> Option<Vec<&Arc<Entry>>> {
        let article = |place: &u32| &self.articles[*place as usize];
        let Some(folder) = folder.map(|folder| folder.trim_matches('/')) else {
            return Some(self.by_date.iter().map(article).collect());
        };
        let category = folder.split('/').next().unwrap_or(folder);
        let places = self.categories.get(category)?.iter().map(article);
        let inside = |entry: &&Arc<Entry>| is_inside(entry.id(), folder);
        Some(places.filter(inside).collect()).filter(|found: &Vec<_>| !found.is_empty())
    }

    /// The title of the index page of a folder.
    pub(crate) fn title_of(&self, folder: &str) -> Option<&str> {
        let page = INDEXES.iter().find_map(|name| self.article(&format!("{folder}/{name}")))?;
        page.names.first().map(|title| &**title)
    }

    /// Whether there are articles in a folder.
    pub(crate) fn has_folder(&self, folder: &str) -> bool {
        !folder.is_empty() && self.inside(folder).next().is_some()
    }

    /// The articles in a folder (empty: the top), which are next to each other.
    fn inside(&self, folder: &str) -> impl Iterator<Item = &Arc<Entry>> {
        let below = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let from = self.articles.partition_point(|entry| entry.id() < below.as_str());
        self.articles[from..].iter().take_while(move |entry| entry.id().starts_with(&below))
    }

    /// The folders in a folder, with their numbers of articles.
    pub(crate) fn folders(&self, folder: &str) -> BTreeMap<String, usize> {
        let mut folders = BTreeMap::new();
        let folder = folder.trim_matches('/');
        let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
        for entry in self.inside(folder) {
            if let Some(length) = entry.id()[start..].find('/') {
                *folders.entry(entry.id()[..start + length].to_owned()).or_default() += 1;
            }
        }
        folders
    }

    /// The folders in a folder and their subfolders, level by level, as long as there are at most
    /// `most`.
    pub(crate) fn tree(&self, folder: &str, most: usize) -> BTreeMap<String, usize> {
        let mut tree = self.folders(folder);
        let mut level: Vec<String> = tree.keys().cloned().collect();
        while !level.is_empty() && tree.len() <= most {
            let below: Vec<_> = level.iter().flat_map(|name| self.folders(name)).collect();
            if tree.len() + below.len() > most {
                break;
            }
            level = below.iter().map(|(name, _)| name.clone()).collect();
            tree.extend(below);
        }
        tree
    }

    /// The categories with this prefix, or else those that contain it.
    pub(crate) fn complete_category(&self, prefix: &str) -> Completion {
        complete(prefix, || self.categories.keys().map(|name| &**name))
    }

    /// The slugs of a category with this prefix, or else those that contain it.
    pub(crate) fn complete_slug(&self, category: &str, prefix: &str) -> Completion {
        let inside = |entry: &&Arc<Entry>| entry.category() == Some(category);
        complete(prefix, || self.articles.iter().filter(inside).map(|entry| entry.slug()))
    }
}

/// The names with this prefix; if there are none, those that contain it.
fn complete<'a, I: Iterator<Item = &'a str>>(prefix: &str, names: impl Fn() -> I) -> Completion {
    let starting = first_of(names().filter(|name| name.starts_with(prefix)));
    if starting.total > 0 {
        return starting;
    }
    first_of(names().filter(|name| contains(name, prefix)))
}

fn first_of<'a>(mut names: impl Iterator<Item = &'a str>) -> Completion {
    let values: Vec<String> = names.by_ref().take(MOST_COMPLETIONS).map(str::to_owned).collect();
    let total = values.len() + names.count();
    Completion { has_more: total > values.len(), values, total }
}

fn contains(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

/// Whether an id is in a folder.
fn is_inside(id: &str, folder: &str) -> bool {
    id.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether an id ends in these parts, in any case.
fn ends_in_parts(id: &str, asked: &str) -> bool {
    let Some(start) = id.len().checked_sub(asked.len()).filter(|_| !asked.is_empty()) else {
        return false;
    };
    id.as_bytes()[start..].eq_ignore_ascii_case(asked.as_bytes())
        && (start == 0 || id.as_bytes()[start - 1] == b'/')
}

/// The visible files by id. Of files with the same id, the first in the order of [`Format`] is served.
fn articles(files: &[Arc<Entry>]) -> (Vec<Arc<Entry>>, Vec<Problem>) {
    let mut articles: Vec<Arc<Entry>> =
        files.iter().filter(|file| file.hidden.is_none()).cloned().collect();
    articles.sort_unstable_by(|a, b| {
        (a.id(), Format::of(&a.path), &a.path).cmp(&(b.id(), Format::of(&b.path), &b.path))
    });
    let mut shadowed = Vec::new();
    articles.dedup_by(|other, kept| {
        let same = other.id() == kept.id();
        if same {
            shadowed.push(Problem::of(
                &other.path,
                format!("not served: {} has the same id", kept.path),
            ));
        }
        same
    });
    (articles, shadowed)
}

#[cfg(test)]
mod tests;
