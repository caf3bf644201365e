//! A folder of articles, ready to be asked.
//!
//! A store answers from the moment it is opened: what has been read so far, and whether more is to
//! come. Its questions never wait for the disk of the folder; they are short enough to be
//! asked where they are needed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::broadcast;

use crate::answer;
use crate::context::Context;
use crate::events::{self, EventSender};
use crate::folder::Folder;
use crate::problem::Problem;
use crate::results::{Article, AskError, Change, Completion, Indexing, List, Search, Summary};
use crate::search::{SearchOptions, search};
use crate::settings::Settings;
use crate::snapshot::Shared;
use crate::worker;

/// Ids that are suggested for a name that is not found.
const SUGGESTIONS: i64 = 3;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder is not there, is no folder, or may not be read.
    #[error("cannot read the folder {}: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Sizes of a store, for the curious and for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Articles that can be asked for.
    pub articles: usize,
    /// Files that were looked at, hidden ones included.
    pub files: usize,
    /// Files that were read since the store was opened.
    pub files_read: usize,
    /// Whether the index lies on the disk.
    pub on_disk: bool,
    /// Parts of the index that are searched one after another.
    pub segments: usize,
}

/// The articles of one folder. Cheap to ask from many threads at once.
pub struct Store {
    shared: Arc<Shared>,
    events: EventSender,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens a folder and starts to read it. `progress` is told how far that is, from other threads.
    pub fn open(
        settings: Settings,
        progress: impl Fn(Indexing) + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let folder = Folder::open(&settings.folder)
            .map_err(|source| OpenError::Folder { path: settings.folder.clone(), source })?;
        let shared = Arc::new(Shared::new());
        let (sender, events) = events::channel();
        let context = Context {
            settings,
            folder: Arc::new(folder),
            shared: Arc::clone(&shared),
            events: sender.clone(),
            progress: Box::new(progress),
        };
        let thread = std::thread::Builder::new()
            .name("articles".to_owned())
            .spawn(move || worker::run(&context, &events));
        Ok(Self { shared, events: sender, thread: Some(thread.map_err(OpenError::Thread)?) })
    }

    /// Stops reading and waits until everything is put away.
    pub fn close(mut self) {
        self.events.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }

    /// Waits until the folder has been read for the first time, or the time is over.
    pub fn wait_ready(&self, most: Duration) -> bool {
        self.shared.wait_ready(most)
    }

    /// How far the first reading of the folder is; `None` when it is done.
    pub fn indexing(&self) -> Option<Indexing> {
        self.shared.indexing()
    }

    /// The newest articles, of one category or of all. `limit` is 50 if `None`.
    pub fn list(&self, category: Option<&str>, limit: Option<i64>) -> Result<List, AskError> {
        answer::list(&self.shared.snapshot(), category, limit, self.indexing())
    }

    /// Articles by id, from one place on, to go through all of them in pages.
    pub fn summaries(&self, from: usize, most: usize) -> Result<Vec<Summary>, AskError> {
        answer::summaries(&self.shared.snapshot(), from, most)
    }

    /// The ids of all articles, in order.
    pub fn ids(&self) -> Vec<String> {
        let snapshot = self.shared.snapshot();
        snapshot.listing.articles().iter().map(|entry| entry.id().to_owned()).collect()
    }

    /// What is known of the article with exactly this id.
    pub fn summary(&self, id: &str) -> Result<Option<Summary>, AskError> {
        answer::summary_of(&self.shared.snapshot(), id)
    }

    /// An article by id, or by the end of its id; the whole of it, or one section.
    pub fn article(&self, name: &str, section: Option<&str>) -> Result<Article, AskError> {
        answer::article(&self.shared.snapshot(), name, section).map_err(|error| match error {
            AskError::NotFound { asked, .. } => {
                let suggestions = self.suggestions(&asked);
                AskError::NotFound { asked, suggestions, indexing: self.indexing() }
            }
            other => other,
        })
    }

    /// The articles that answer a query best.
    pub fn search(&self, query: &str, options: SearchOptions) -> Result<Search, AskError> {
        search(&self.shared.snapshot(), query, options, self.indexing())
    }

    /// The categories, by name, and how many articles each has.
    pub fn categories(&self) -> Vec<(String, usize)> {
        let snapshot = self.shared.snapshot();
        snapshot.listing.categories().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// Categories that begin like this.
    pub fn complete_category(&self, prefix: &str) -> Completion {
        answer::completion(self.shared.snapshot().listing.complete_category(prefix))
    }

    /// Slugs that begin like this: of a category, or names of all articles.
    pub fn complete_slug(&self, category: Option<&str>, prefix: &str) -> Completion {
        answer::completion(self.shared.snapshot().listing.complete_slug(category, prefix))
    }

    /// What changes from now on. Who listens too slowly hears that it missed something.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.shared.listen()
    }

    /// What the keeper of the folder should put right, by file and line.
    pub fn problems(&self) -> Vec<Problem> {
        self.shared.snapshot().problems.clone()
    }

    /// Sizes, for the curious and for tests.
    pub fn figures(&self) -> Figures {
        let snapshot = self.shared.snapshot();
        Figures {
            articles: snapshot.listing.articles().len(),
            files: snapshot.listing.files().len(),
            files_read: self.shared.files_read.load(Ordering::Relaxed),
            on_disk: self.shared.on_disk.load(Ordering::Relaxed),
            segments: snapshot
                .view
                .as_ref()
                .map_or(0, |view| view.searcher.segment_readers().len()),
        }
    }

    fn suggestions(&self, asked: &str) -> Vec<String> {
        let words = asked.replace(['/', '-', '_', '.'], " ");
        let options = SearchOptions { limit: Some(SUGGESTIONS), include_content: false };
        let found = search(&self.shared.snapshot(), &words, options, None);
        found.map_or_else(
            |_| Vec::new(),
            |found| found.hits.into_iter().map(|hit| hit.summary.id).collect(),
        )
    }
}

impl Drop for Store {
    /// Nobody asks any more: the thread ends by itself, after the file or commit that it is at.
    fn drop(&mut self) {
        self.events.stop();
    }
}
