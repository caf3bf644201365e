//! How a folder of articles appears to clients.

/// How a folder of articles appears to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appearance {
    /// Tells this folder from others of the same server: the tools are `name_list_articles` and so
    /// on, the addresses `article://name/id`.
    pub name: Option<String>,
    /// What the articles are about, to end a sentence that begins with "articles about".
    pub about: Option<String>,
    /// How a slug that does not exist is answered.
    pub not_found: NotFound,
}

/// How a slug that does not exist is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotFound {
    /// By a failed result, which the model can read.
    #[default]
    Result,
    /// By the error -32602, whose `data.slug` is what was asked for.
    InvalidParams,
}
