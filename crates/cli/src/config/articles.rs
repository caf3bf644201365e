//! `[[articles]]`: a folder of Markdown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;
use sabir_articles::{FolderWeight, Settings, Store};
use sabir_sources::articles::{Appearance, ArticleSource, NotFound};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, RELATIVE, Text};
use super::sources::SourceDescription;
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
    include: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
    site: Option<String>,
    structured: Option<bool>,
    max_chars: Option<Spanned<i64>>,
    appearance: Option<Spanned<toml::Value>>,
    #[serde(default)]
    weight: Vec<Weight>,
    watch: Option<bool>,
    cache: Option<String>,
    not_found: Option<Spanned<toml::Value>>,
}

impl Articles {
    /// The folder of the configuration file, with all defaults.
    pub(super) fn here() -> Self {
        Self::with(".", None)
    }

    /// A folder with a name.
    pub(super) fn named(path: &str, name: String) -> Self {
        Self::with(path, Some(Spanned::new(0..0, name)))
    }

    fn with(path: &str, name: Option<Spanned<String>>) -> Self {
        Self {
            path: Spanned::new(0..0, path.to_owned()),
            name,
            about: None,
            statuses: None,
            include: None,
            exclude: None,
            site: None,
            structured: None,
            max_chars: None,
            appearance: None,
            weight: Vec::new(),
            watch: None,
            cache: None,
            not_found: None,
        }
    }
}

/// Settles a folder of articles. Several folders need names.
pub(super) fn settle(
    file: &Articles,
    text: &Text<'_>,
    is_only: bool,
) -> Result<SourceDescription, Mistake> {
    let choices = [("\"result\"", NotFound::Result), ("-32602", NotFound::InvalidParams)];
    let written = file.path.get_ref();
    let folder = shown(text.path.parent().unwrap_or(Path::new("")), written);
    let appearance = Appearance {
        name: file.name.as_ref().map(|name| name.get_ref().clone()),
        about: file.about.clone(),
        not_found: one_of(file.not_found.as_ref(), text, &choices)?.unwrap_or_default(),
        structured: file.structured.unwrap_or(false),
        max_chars: max_chars(file.max_chars.as_ref(), text)?,
        search_and_fetch: one_of(file.appearance.as_ref(), text, &APPEARANCES)?.unwrap_or(false),
        folder,
    };
    let mut settings = Settings::new(text.folder().join(written));
    settings.statuses = file.statuses.clone();
    settings.include = file.include.clone().unwrap_or_default();
    settings.exclude = file.exclude.clone().unwrap_or_default();
    settings.site = file.site.clone();
    settings.weights = file.weight.iter().map(Weight::settle).collect();
    settings.watch = file.watch.unwrap_or(settings.watch);
    settings.cache = cache(file.cache.as_deref(), "articles", text);
    let place = text.place(file.path.span());
    let named = if is_only { place.clone() } else { place.clone().hint(NAMES) };
    Ok(SourceDescription::new(named, |_| async {
        // The folder is read by a thread of the store, so this does not block for long.
        let store = Store::open(settings, progress::of_reading(&appearance.folder));
        let store =
            store.map_err(|error| place.mistake(format!("articles: {error}")).hint(RELATIVE))?;
        Ok(ArticleSource::new(Arc::new(store), appearance))
    }))
}

/// Whether the tools are also offered as `search` and `fetch`.
const APPEARANCES: [(&str, bool); 2] = [("\"default\"", false), ("\"chatgpt\"", true)];

/// An `[[articles.weight]]`: what the articles of a folder count in a search.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Weight {
    path: String,
    factor: f32,
}

impl Weight {
    fn settle(&self) -> FolderWeight {
        FolderWeight { path: self.path.clone(), factor: self.factor.max(0.0) }
    }
}

/// The longest content of a result.
fn max_chars(written: Option<&Spanned<i64>>, text: &Text<'_>) -> Result<usize, Mistake> {
    let Some(written) = written else { return Ok(Appearance::default().max_chars) };
    match usize::try_from(*written.get_ref()) {
        Ok(chars) if (1000..=1_000_000).contains(&chars) => Ok(chars),
        _ => Err(text.place(written.span()).mistake(format!(
            "invalid `max_chars` {} (expected 1000 to 1000000)",
            written.get_ref()
        ))),
    }
}

const NAMES: &str = "give one of the folders a `name`";

/// The folder for what a kind of sources keeps: by default, one in the user's cache folder.
pub(super) fn cache(written: Option<&str>, kind: &str, text: &Text<'_>) -> Option<PathBuf> {
    match written {
        Some("none") => None,
        Some(path) => Some(text.folder().join(path)),
        None => {
            let base = etcetera::choose_base_strategy().ok()?;
            Some(base.cache_dir().join("sabir").join(kind))
        }
    }
}

/// The path of a folder as a person would type it.
fn shown(folder: &Path, written: &str) -> PathBuf {
    match written {
        "." => folder.to_owned(),
        written => folder.join(written),
    }
}

/// Entries that are looked at to see whether a folder holds Markdown.
const LOOKED_AT: usize = 1000;

/// Whether a folder, or one of the folders in it, holds Markdown.
pub(super) fn holds_markdown(folder: &Path) -> bool {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).take(LOOKED_AT).collect::<Vec<_>>()
    };
    let is_hidden =
        |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
    let is_markdown = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        !is_hidden(path) && matches!(ending, "md" | "mdx" | "markdown") && path.is_file()
    };
    let top = entries(folder);
    let below = top.iter().filter(|path| !is_hidden(path) && path.is_dir());
    top.iter().any(is_markdown)
        || below.take(LOOKED_AT).any(|path| entries(path).iter().any(is_markdown))
}
