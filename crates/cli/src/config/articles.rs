//! `[[articles]]`: a folder of Markdown.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use etcetera::BaseStrategy as _;
use sabir_articles::{Problem, Settings, Store};
use sabir_sources::articles::{Appearance, ArticleSource, NotFound};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, RELATIVE, Text};
use super::values::one_of;
use crate::progress;

/// An `[[articles]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Articles {
    pub(crate) path: Spanned<String>,
    name: Option<Spanned<String>>,
    about: Option<String>,
    statuses: Option<Vec<String>>,
    watch: Option<bool>,
    cache: Option<String>,
    not_found: Option<Spanned<toml::Value>>,
}

impl Articles {
    /// The folder in which the configuration would stand, with nothing else decided.
    pub(super) fn here() -> Self {
        Self {
            path: Spanned::new(0..0, ".".to_owned()),
            name: None,
            about: None,
            statuses: None,
            watch: None,
            cache: None,
            not_found: None,
        }
    }
}

/// A folder of articles that has been opened.
pub(crate) struct Folder {
    /// As a person would write it, from where we are.
    path: PathBuf,
    store: Arc<Store>,
}

impl Folder {
    /// Waits until the folder has been read, or the time is over.
    pub(crate) fn wait_ready(&self, most: Duration) -> bool {
        self.store.wait_ready(most)
    }

    /// What its keeper should put right, with the file as a person would write it.
    pub(crate) fn problems(&self) -> Vec<String> {
        let tell = |problem: Problem| match problem.file.as_str() {
            "" => format!("{}: {problem}", self.path.display()),
            _ => self.path.join(problem.to_string()).display().to_string(),
        };
        self.store.problems().into_iter().map(tell).collect()
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Folder").field(&self.path).finish()
    }
}

/// Settles a folder of articles, and begins to read it.
pub(super) fn settle(file: &Articles, text: &Text<'_>) -> Result<(ArticleSource, Folder), Mistake> {
    let choices = [("\"result\"", NotFound::Result), ("-32602", NotFound::InvalidParams)];
    let appearance = Appearance {
        name: file.name.as_ref().map(|name| name.get_ref().clone()),
        about: file.about.clone(),
        not_found: one_of(file.not_found.as_ref(), text, &choices)?.unwrap_or_default(),
    };
    let written = file.path.get_ref();
    let mut settings = Settings::new(text.folder().join(written));
    settings.statuses = file.statuses.clone().unwrap_or(settings.statuses);
    settings.watch = file.watch.unwrap_or(settings.watch);
    settings.cache = cache(file.cache.as_deref(), text);
    let path = shown(text.path.parent().unwrap_or(Path::new("")), written);
    let store = Store::open(settings, progress::of_reading(&path)).map_err(|error| {
        text.mistake(file.path.span(), format!("articles: {error}")).hint(RELATIVE)
    })?;
    let store = Arc::new(store);
    Ok((ArticleSource::new(store.clone(), appearance), Folder { path, store }))
}

/// Where the indexes of large folders are kept: where the file says, or else where this system
/// keeps what can be made again.
fn cache(written: Option<&str>, text: &Text<'_>) -> Option<PathBuf> {
    match written {
        Some("none") => None,
        Some(path) => Some(text.folder().join(path)),
        None => {
            let base = etcetera::choose_base_strategy().ok()?;
            Some(base.cache_dir().join("sabir").join("articles"))
        }
    }
}

fn shown(folder: &Path, written: &str) -> PathBuf {
    match written {
        "." => folder.to_owned(),
        written => folder.join(written),
    }
}
