//! How a folder is served.

use std::path::PathBuf;

/// The default of [`Settings::small`], in bytes.
const SMALL: u64 = 16 * 1024 * 1024;

/// How a folder is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder.
    pub folder: PathBuf,
    /// An article with a status is served if the status is one of these, in any case.
    pub statuses: Vec<String>,
    /// The folder for the indexes of large folders. `None`: all indexes are kept in memory.
    pub cache: Option<PathBuf>,
    /// The index of a folder with up to this many bytes of articles is kept in memory, and built at
    /// every start.
    pub small: u64,
    /// Whether the folder is watched.
    pub watch: bool,
}

impl Settings {
    /// The defaults: statuses `Live` and `Experimental`, watched, no cache.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            statuses: vec!["Live".to_owned(), "Experimental".to_owned()],
            cache: None,
            small: SMALL,
            watch: true,
        }
    }
}
