//! How a folder is served.

use std::path::PathBuf;

use crate::language::Language;
use crate::pdf::PdfReader;

/// The default of [`Settings::small`], in bytes.
const SMALL: u64 = 16 * 1024 * 1024;

/// How a folder is served.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The folder.
    pub folder: PathBuf,
    /// An article with a status is served if the status is one of these, in any case. `None`: with
    /// any status.
    pub statuses: Option<Vec<String>>,
    /// Globs of the files that are served, relative to the folder. Empty: all.
    pub include: Vec<String>,
    /// Globs of files and folders that are not served.
    pub exclude: Vec<String>,
    /// The address of the site that the articles are published at, for links.
    pub site: Option<String>,
    /// The weights of the articles of some folders in the ranking of a search.
    pub weights: Vec<FolderWeight>,
    /// The folder for the indexes of large folders. `None`: all indexes are kept in memory.
    pub cache: Option<PathBuf>,
    /// The index of a folder with up to this many bytes of articles is kept in memory, and built at
    /// every start.
    pub small: u64,
    /// The language of articles that name none.
    pub language: Language,
    /// The model that makes vectors of passages, for a search by meaning. `None`: there are none.
    pub model: Option<String>,
    /// Reads PDF files. `None`: they are not served.
    pub pdf: Option<PdfReader>,
    /// Whether the folder is watched.
    pub watch: bool,
}

impl Settings {
    /// The defaults: any status, watched, no cache.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            statuses: None,
            include: Vec::new(),
            exclude: Vec::new(),
            site: None,
            weights: Vec::new(),
            cache: None,
            small: SMALL,
            language: Language::ENGLISH,
            model: None,
            pdf: None,
            watch: true,
        }
    }
}

/// The weight of the articles of a folder in the ranking of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct FolderWeight {
    /// The folder, relative to the folder of articles.
    pub path: String,
    /// The factor of their scores. Other articles have 1.
    pub factor: f32,
}
