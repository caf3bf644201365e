//! How a folder of articles appears to clients and operators.

use std::path::PathBuf;

/// The default of [`Appearance::max_chars`]: what the usual clients pass on to their models.
const MAX_CHARS: usize = 24_000;

/// How a folder of articles appears to clients and operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appearance {
    /// Distinguishes this folder from others of the same server: it is the prefix of the tool names
    /// (`name_list_articles`) and part of the URIs (`article://name/id`).
    pub name: Option<String>,
    /// The topic of the articles; it completes "articles about …" in the tool descriptions.
    pub about: Option<String>,
    /// The response to an unknown slug.
    pub not_found: NotFound,
    /// Whether results are also structured content, with links to the articles. Clients then show their
    /// models the structured content only, which is several times as long.
    pub structured: bool,
    /// The longest content of a result in bytes, unless the caller asks for another length.
    pub max_chars: usize,
    /// Whether the tools are also offered as `search` and `fetch`, which some clients require.
    pub search_and_fetch: bool,
    /// Whether articles may be written, appended to and moved.
    pub writes: bool,
    /// The path of the folder in logs and reports, which clients do not see.
    pub folder: PathBuf,
}

impl Default for Appearance {
    fn default() -> Self {
        Self {
            name: None,
            about: None,
            not_found: NotFound::default(),
            structured: false,
            max_chars: MAX_CHARS,
            search_and_fetch: false,
            writes: false,
            folder: PathBuf::new(),
        }
    }
}

/// The response to an unknown slug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotFound {
    /// A failed result, which the model can read.
    #[default]
    Result,
    /// The error -32602 with the requested slug in `data.slug`.
    InvalidParams,
}
