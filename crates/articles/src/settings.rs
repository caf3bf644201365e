//! What the keeper of a folder decides.

use std::path::PathBuf;

/// Bytes of files up to which the index is kept in memory and built at every start.
const SMALL: u64 = 16 * 1024 * 1024;

/// How a folder is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder.
    pub folder: PathBuf,
    /// An article that has a status is served if it is one of these, in any case.
    pub statuses: Vec<String>,
    /// Where the indexes of large folders are kept. `None`: in memory, whatever their size.
    pub cache: Option<PathBuf>,
    /// A folder with more bytes of articles than this is large.
    pub small: u64,
    /// Whether changes of the folder are looked for.
    pub watch: bool,
}

impl Settings {
    /// The defaults: live and experimental articles, watched, nothing kept on the disk.
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
