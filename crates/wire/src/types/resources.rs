//! Resources and their templates. Spec: server/resources.

use crate::raw::Raw;
use crate::types::{Annotations, CacheHint, Icon, ResourceContents};

/// A resource, as listed or linked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// What it is.
    pub mime_type: Option<String>,
    /// Hints for its use.
    pub annotations: Option<Annotations>,
    /// In bytes.
    pub size: Option<u64>,
    /// How it looks.
    pub icons: Vec<Icon>,
    /// For programs.
    pub meta: Option<Raw>,
}

/// A family of resources, as listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceTemplate {
    /// Where they are, with variables.
    pub uri_template: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What they are about.
    pub description: Option<String>,
    /// What they are, if all are the same.
    pub mime_type: Option<String>,
    /// Hints for their use.
    pub annotations: Option<Annotations>,
    /// How it looks.
    pub icons: Vec<Icon>,
    /// For programs.
    pub meta: Option<Raw>,
}

/// A resource, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceReply {
    /// What it holds; several for a folder.
    pub contents: Vec<ResourceContents>,
    /// How long it may be kept.
    pub cache: CacheHint,
    /// For programs.
    pub meta: Option<Raw>,
}

impl From<ResourceContents> for ResourceReply {
    fn from(contents: ResourceContents) -> Self {
        Self { contents: vec![contents], ..Self::default() }
    }
}
