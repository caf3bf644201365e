//! A folder to write to, and a store over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sabir_articles::{Settings, Store};
use tempfile::TempDir;

/// Far longer than anything takes, so that a slow machine does not fail a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder of articles.
pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let home = Self { dir: TempDir::new().expect("a temporary folder") };
        fs::create_dir(home.folder()).expect("a folder");
        files.iter().for_each(|(path, text)| home.write(path, text));
        home
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("folder")
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
        let statuses = Some(vec!["Live".to_owned()]);
        Settings { statuses, ..Settings::new(self.folder()) }
    }

    /// A store in memory that has read the folder and watches it.
    pub(crate) fn store(&self) -> Store {
        ready(self.settings())
    }
}

pub(crate) fn ready(settings: Settings) -> Store {
    let store = Store::open(settings, |_| {}).expect("the folder can be opened");
    assert!(store.wait_ready(LONG), "the folder was not read in time");
    store
}
