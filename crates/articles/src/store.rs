//! The store: the entry point of this crate.
//!
//! A store answers questions from the moment it is opened, with the articles that are indexed so far.
//! Questions never read the folder, and are short enough for any thread.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::broadcast;

use crate::answer::{self, ReadOptions};
use crate::article::{Hidden, shortened};
use crate::context::Context;
use crate::events::{self, EventSender};
use crate::files::path_in;
use crate::folder::{Folder, LOST_LINK};
use crate::format::media_type;
use crate::ignored::Rules;
use crate::index::damaged;
use crate::problem::Problem;
use crate::results::{
    Article, Change, Completion, File, Hit, Indexing, List, Search, StoreError, Summary,
};
use crate::rewrite::Rewriting;
use crate::search::{SearchOptions, search};
use crate::settings::Settings;
use crate::snapshot::{Shared, Snapshot};
use crate::vectors::{Passage, Vectors};
use crate::worker;

mod writing; // changes of articles

/// The longest text of [`Store::about`], in characters.
const ABOUT: usize = 240;

/// The number of suggestions for an unknown name.
const SUGGESTIONS: i64 = 3;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be read.
    #[error("cannot read the folder {}: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A glob of the settings is invalid.
    #[error("invalid glob: {0}")]
    Glob(globset::Error),
    /// The thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Statistics of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Visible articles.
    pub articles: usize,
    /// All files, including hidden ones.
    pub files: usize,
    /// Files read since the store was opened.
    pub files_read: usize,
    /// Whether the index is on the disk.
    pub on_disk: bool,
    /// Files that are not served, by the reason.
    pub hidden: BTreeMap<Hidden, usize>,
    /// Articles and folders that `.gitignore` and the settings leave out.
    pub ignored: usize,
    /// Segments of the index.
    pub segments: usize,
}

/// The articles of one folder. Can be used from many threads at once.
pub struct Store {
    shared: Arc<Shared>,
    folder: Arc<ArcSwap<Folder>>,
    /// The address of the site that the articles are published at.
    site: Option<String>,
    vectors: Option<Vectors>,
    events: EventSender,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens a folder and starts to index it. `progress` is called from other threads.
    pub fn open(
        settings: Settings,
        progress: impl Fn(Indexing) + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let rules = Rules::new(&settings.include, &settings.exclude).map_err(OpenError::Glob)?;
        let folder = Folder::open(&settings.folder, rules)
            .map_err(|source| OpenError::Folder { path: settings.folder.clone(), source })?;
        let shared = Arc::new(Shared::new());
        let (sender, events) = events::channel();
        let folder = Arc::new(ArcSwap::from_pointee(folder));
        let site = settings.site.clone();
        let path = folder.load().path().to_owned();
        let open = |model: &String| Vectors::open(settings.cache.as_deref(), &path, model);
        let vectors = settings.model.as_ref().map(open);
        let context = Context {
            settings,
            folder: Arc::clone(&folder),
            shared: Arc::clone(&shared),
            events: sender.clone(),
            progress: Box::new(progress),
        };
        let thread = std::thread::Builder::new()
            .name("articles".to_owned())
            .spawn(move || worker::run(&context, &events));
        let thread = Some(thread.map_err(OpenError::Thread)?);
        Ok(Self { shared, folder, site, vectors, events: sender, thread })
    }

    /// Stops the worker thread and waits for it.
    pub fn close(mut self) {
        self.events.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }

    /// Waits until the folder is indexed, or until `timeout` has passed. Returns whether it is.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        self.shared.wait_ready(timeout)
    }

    /// The progress of the first indexing; `None` when it is finished.
    pub fn indexing(&self) -> Option<Indexing> {
        self.shared.indexing()
    }

    /// The newest articles of one category or of all (default limit 50).
    pub fn list(&self, category: Option<&str>, limit: Option<i64>) -> Result<List, StoreError> {
        self.list_from(category, limit, 0)
    }

    /// The newest articles after the first `offset`.
    pub fn list_from(
        &self,
        category: Option<&str>,
        limit: Option<i64>,
        offset: usize,
    ) -> Result<List, StoreError> {
        self.guarded(|snapshot| answer::list(snapshot, category, limit, offset, self.indexing()))
    }

    /// The ids of all articles, in order.
    pub fn ids(&self) -> Vec<String> {
        let snapshot = self.shared.snapshot();
        snapshot.listing.articles().iter().map(|entry| entry.id().to_owned()).collect()
    }

    /// The summary of the article with exactly this id.
    pub fn summary(&self, id: &str) -> Result<Option<Summary>, StoreError> {
        self.guarded(|snapshot| answer::summary_of(snapshot, id))
    }

    /// An article by the last parts of its id or by a link, as a whole or one section.
    pub fn article(&self, name: &str, section: Option<&str>) -> Result<Article, StoreError> {
        let section = section.map(str::to_owned);
        self.read(name, &ReadOptions { section, ..ReadOptions::default() })
    }

    /// An article by the last parts of its id or by a link, read as the options say.
    pub fn read(&self, name: &str, options: &ReadOptions) -> Result<Article, StoreError> {
        let (site, folder) = (self.site.as_deref(), self.folder.load());
        let article = |snapshot: &Snapshot| answer::article(snapshot, name, options, site, &folder);
        self.guarded(article).map_err(|error| match error {
            StoreError::NotFound { asked, .. } => self.unknown(&asked),
            other => other,
        })
    }

    /// The error of a name that no article has, with similar ones.
    fn unknown(&self, asked: &str) -> StoreError {
        let suggestions = self.suggestions(asked);
        StoreError::NotFound { asked: asked.to_owned(), suggestions, indexing: self.indexing() }
    }

    /// A file of a known kind that is not an article, by its path in the folder.
    pub fn file(&self, path: &str) -> Option<File> {
        let media_type = media_type(path)?;
        let bytes = self.folder.load().read_file(path).ok()?;
        Some(File { bytes, media_type })
    }

    /// Whether there are files that [`Store::file`] finds.
    pub fn has_files(&self) -> bool {
        self.shared.snapshot().files.has_others()
    }

    /// The path of a file of a known kind that is not an article, if a name or a link leads to one.
    pub fn file_named(&self, name: &str) -> Option<String> {
        self.shared.snapshot().files.at(&path_in(name)?, "", &self.folder.load())
    }

    /// The articles that match a query best.
    pub fn search(&self, query: &str, options: SearchOptions) -> Result<Search, StoreError> {
        let vectors = self.vectors.as_ref();
        self.guarded(|snapshot| {
            let mut found = search(snapshot, query, &options, vectors, self.indexing())?;
            if let Some(uris) = options.uris.as_ref().filter(|_| options.include_content) {
                let (Snapshot { listing, files, .. }, folder) = (snapshot, self.folder.load());
                let rewriting =
                    Rewriting { listing, files, site: self.site.as_deref(), folder: &folder, uris };
                for Hit { summary, content, .. } in &mut found.hits {
                    if let (Some(content), Some(entry)) = (content, listing.article(&summary.id)) {
                        *content = rewriting.text(content, 0..content.len(), entry);
                    }
                }
            }
            Ok(found)
        })
    }

    /// Up to `most` passages that have no vectors yet. Reads articles, so it may block.
    pub fn missing_vectors(&self, most: usize) -> Result<Vec<Passage>, StoreError> {
        let Some(vectors) = &self.vectors else { return Ok(Vec::new()) };
        self.guarded(|snapshot| vectors.missing(snapshot, most))
    }

    /// Keeps the vectors of passages, by their keys. The error is that of writing them to the disk.
    pub fn add_vectors(&self, vectors: Vec<(u64, Vec<f32>)>) -> std::io::Result<()> {
        self.vectors.as_ref().map_or(Ok(()), |kept| kept.add(vectors))
    }

    /// Notes that a passage can have no vector.
    pub fn refuse_vector(&self, key: u64) {
        if let Some(vectors) = &self.vectors {
            vectors.refuse(key);
        }
    }

    /// The categories by name, with their numbers of articles.
    pub fn categories(&self) -> Vec<(String, usize)> {
        let snapshot = self.shared.snapshot();
        snapshot.listing.categories().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// The categories by name, with the titles of their index pages.
    pub fn category_titles(&self) -> Vec<(String, Option<String>)> {
        let listing = &self.shared.snapshot().listing;
        let titled =
            |(name, _): (&str, usize)| (name.to_owned(), listing.title_of(name).map(str::to_owned));
        listing.categories().map(titled).collect()
    }

    /// The folders in a folder (empty: the top), with their numbers of articles.
    pub fn folders(&self, folder: &str) -> BTreeMap<String, usize> {
        self.shared.snapshot().listing.folders(folder)
    }

    /// The folder's own description: the title and the description of its README or index.
    pub fn about(&self) -> Option<String> {
        let snapshot = self.shared.snapshot();
        let names = ["README", "readme", "index", "_index", "Home"];
        let id = names.into_iter().find(|id| snapshot.listing.article(id).is_some())?;
        let summary = self.summary(id).ok()??;
        let description = summary.description.map_or_else(String::new, |it| format!(": {it}"));
        Some(shortened(&format!("{}{description}", summary.title), ABOUT))
    }

    /// Categories with this prefix.
    pub fn complete_category(&self, prefix: &str) -> Completion {
        self.shared.snapshot().listing.complete_category(prefix)
    }

    /// Slugs of a category with this prefix.
    pub fn complete_slug(&self, category: &str, prefix: &str) -> Completion {
        self.shared.snapshot().listing.complete_slug(category, prefix)
    }

    /// Subscribes to changes from now on. A slow listener gets an error for the changes it missed.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.shared.listen()
    }

    /// The problems of the folder and its files, by file and line.
    pub fn problems(&self) -> Vec<Problem> {
        self.shared.snapshot().problems.clone()
    }

    /// Statistics.
    pub fn figures(&self) -> Figures {
        let snapshot = self.shared.snapshot();
        Figures {
            articles: snapshot.listing.articles().len(),
            files: snapshot.listing.files().len(),
            hidden: hidden(&snapshot),
            ignored: snapshot.ignored,
            files_read: self.shared.files_read.load(Ordering::Relaxed),
            on_disk: self.shared.on_disk.load(Ordering::Relaxed),
            segments: snapshot
                .view
                .as_ref()
                .map_or(0, |view| view.searcher.segment_readers().len()),
        }
    }

    /// Answers a question. If the index cannot be read, it is built again.
    fn guarded<T>(
        &self,
        answer: impl FnOnce(&Snapshot) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let snapshot = self.shared.snapshot();
        let panicked = |_| Err(StoreError::from(damaged("reading it panicked".to_owned())));
        // A snapshot never changes, so a panic leaves nothing half done.
        let result = catch_unwind(AssertUnwindSafe(|| answer(&snapshot))).unwrap_or_else(panicked);
        if result.as_ref().is_err_and(StoreError::is_internal) {
            self.shared.report_damage(snapshot.generation);
            self.events.wake();
        }
        result
    }

    fn suggestions(&self, asked: &str) -> Vec<String> {
        let words = asked.replace(['/', '-', '_', '.'], " ");
        let options = SearchOptions { limit: Some(SUGGESTIONS), ..SearchOptions::default() };
        let found = search(&self.shared.snapshot(), &words, &options, None, None);
        found.map_or_else(
            |_| Vec::new(),
            |found| found.hits.into_iter().map(|hit| hit.summary.id).collect(),
        )
    }
}

impl Drop for Store {
    /// The thread ends by itself, after its current file or commit.
    fn drop(&mut self) {
        self.events.stop();
    }
}

fn hidden(snapshot: &Snapshot) -> BTreeMap<Hidden, usize> {
    let Snapshot { listing, problems, .. } = snapshot;
    let of_files = listing.files().iter().filter_map(|entry| entry.hidden);
    let of_ids = listing.shadowed().iter().map(|_| Hidden::SameId);
    let of_links = problems.iter().filter(|problem| problem.message.starts_with(LOST_LINK));
    let mut reasons = BTreeMap::new();
    for reason in of_files.chain(of_ids).chain(of_links.map(|_| Hidden::Link)) {
        *reasons.entry(reason).or_default() += 1;
    }
    reasons
}
