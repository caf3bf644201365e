//! How a folder of articles appears to clients.

/// How a folder of articles appears to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appearance {
    /// Distinguishes this folder from others of the same server: it is the prefix of the tool names
    /// (`name_list_articles`) and part of the URIs (`article://name/id`).
    pub name: Option<String>,
    /// The topic of the articles; it completes "articles about …" in the tool descriptions.
    pub about: Option<String>,
    /// The response to an unknown slug.
    pub not_found: NotFound,
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
