//! A folder to write to, and a store over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sabir_articles::{Change, SearchOptions, Settings, Store, StoreError};
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;

/// Far longer than anything takes, so that a slow machine does not fail a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder of articles, and a cache.
pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let home = Self { dir: TempDir::new().expect("a temporary folder") };
        fs::create_dir(home.folder()).expect("a folder");
        for (path, text) in files {
            home.write(path, text);
        }
        home
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("folder")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    /// Writes a file beside the folder and moves it in, as careful editors do.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let beside = self.dir.path().join("beside");
        fs::write(&beside, text).expect("a file");
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a folder");
        fs::rename(beside, path).expect("a rename");
    }

    pub(crate) fn settings(&self) -> Settings {
        let statuses = Some(vec!["Live".to_owned(), "Experimental".to_owned()]);
        Settings { statuses, ..Settings::new(self.folder()) }
    }

    /// A store in memory that has indexed the folder and watches it.
    pub(crate) fn store(&self) -> Store {
        ready(self.settings())
    }

    /// A store on the disk that has indexed the folder and watches it.
    pub(crate) fn store_on_disk(&self) -> Store {
        ready(self.settings_on_disk())
    }

    pub(crate) fn settings_on_disk(&self) -> Settings {
        Settings { cache: Some(self.cache()), small: 0, ..self.settings() }
    }
}

pub(crate) fn ready(settings: Settings) -> Store {
    let store = Store::open(settings, |_| {}).expect("the folder can be opened");
    assert!(store.wait_ready(LONG), "the folder was not read in time");
    store
}

pub(crate) fn found(store: &Store, query: &str) -> Vec<String> {
    match store.search(query, SearchOptions::default()) {
        Ok(found) => found.hits.into_iter().map(|hit| hit.summary.id).collect(),
        Err(error) => panic!("{query:?}: {error}"),
    }
}

pub(crate) fn listed(store: &Store) -> Vec<String> {
    let list = store.list(None, None).expect("a list");
    list.articles.into_iter().map(|article| article.id).collect()
}

pub(crate) fn error(result: Result<impl Sized, StoreError>) -> String {
    result.err().map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

/// Waits for a matching change.
pub(crate) async fn change(
    changes: &mut Receiver<Arc<Change>>,
    fits: impl Fn(&Change) -> bool,
) -> Arc<Change> {
    let waiting = async {
        loop {
            let change = changes.recv().await.expect("the store is open");
            if fits(&change) {
                return change;
            }
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("the change was not seen in time")
}

/// Waits until the condition holds, checking it after every change.
pub(crate) async fn until(changes: &mut Receiver<Arc<Change>>, is_so: impl Fn() -> bool) {
    while !is_so() {
        change(changes, |_| true).await;
    }
}
