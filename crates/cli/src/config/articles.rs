//! `[[articles]]`: a folder of Markdown.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;
use sabir_articles::{FolderWeight, Language, OpenError, Settings, Store};
use sabir_sources::articles::{
    Appearance, ArticleSource, Embeddings, Git, NotFound, PDFTOTEXT, Services, pdf_reader,
    pdftotext,
};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, Place, RELATIVE, Text};
use super::sources::{OpenContext, SourceDescription};
use super::values::{one_of, variable};
use crate::progress;

/// An `[[articles]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Articles {
    pub(crate) path: Spanned<String>,
    name: Option<Spanned<String>>,
    about: Option<String>,
    statuses: Option<Vec<String>>,
    include: Option<Spanned<Vec<String>>>,
    exclude: Option<Spanned<Vec<String>>>,
    site: Option<Spanned<String>>,
    structured: Option<bool>,
    max_chars: Option<Spanned<i64>>,
    appearance: Option<Spanned<toml::Value>>,
    #[serde(default)]
    weight: Vec<Weight>,
    embeddings: Option<EmbeddingsTable>,
    language: Option<Spanned<String>>,
    write: Option<bool>,
    commit: Option<Spanned<bool>>,
    watch: Option<bool>,
    cache: Option<String>,
    not_found: Option<Spanned<toml::Value>>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
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
            embeddings: None,
            language: None,
            write: None,
            commit: None,
            watch: None,
            cache: None,
            not_found: None,
            scopes: None,
        }
    }
}

/// Settles a folder of articles. Several folders need names.
pub(super) fn settle(
    file: &Articles,
    text: &Text<'_>,
    is_only: bool,
) -> Result<SourceDescription, Mistake> {
    text.checked(check_name(file.name.as_ref(), text));
    let choices = [("\"result\"", NotFound::Result), ("-32602", NotFound::InvalidParams)];
    let written = file.path.get_ref();
    let folder = shown(text.path.parent().unwrap_or(Path::new("")), written);
    let appearance = Appearance {
        name: file.name.as_ref().map(|name| name.get_ref().clone()),
        about: file.about.clone(),
        not_found: text
            .checked(one_of(file.not_found.as_ref(), text, &choices))
            .flatten()
            .unwrap_or_default(),
        structured: file.structured.unwrap_or(false),
        max_chars: text.checked(max_chars(file.max_chars.as_ref(), text)).unwrap_or_default(),
        search_and_fetch: text
            .checked(one_of(file.appearance.as_ref(), text, &APPEARANCES))
            .flatten()
            .unwrap_or_default(),
        writes: file.write.unwrap_or(false),
        folder,
    };
    let commits = text.checked(commits(file, text)).unwrap_or_default();
    let mut settings = Settings::new(text.folder().join(written));
    settings.statuses = file.statuses.clone();
    let globs = |globs: &Option<Spanned<Vec<String>>>| globs.clone().map(Spanned::into_inner);
    settings.include = globs(&file.include).unwrap_or_default();
    settings.exclude = globs(&file.exclude).unwrap_or_default();
    settings.site = text.checked(site(file.site.as_ref(), text)).flatten();
    let weights = file.weight.iter().filter_map(|weight| text.checked(weight.settle(text)));
    settings.weights = weights.collect();
    let language = text.checked(language(file.language.as_ref(), text));
    settings.language = language.unwrap_or(Language::ENGLISH);
    settings.model = file.embeddings.as_ref().map(|table| table.model.clone());
    let embeddings = file.embeddings.as_ref().and_then(|it| text.checked(it.settle(text)));
    settings.watch = file.watch.unwrap_or(settings.watch);
    settings.cache = cache(file.cache.as_deref(), "articles", text);
    let place = text.place(file.path.span());
    let globs = Globs::of(file, text);
    let named = if is_only { place.clone() } else { place.clone().hint(NAMES) };
    let (looked_at, missing) = (settings.folder.clone(), place.clone());
    let look = move || match std::fs::read_dir(&looked_at) {
        Ok(_) => Ok(()),
        Err(source) => {
            let error = OpenError::Folder { path: looked_at.clone(), source };
            Err(unopened(missing.clone(), &error))
        }
    };
    let described = SourceDescription::new(named, move |context| async move {
        let search = std::env::var_os("PATH");
        if let Ok(program) = context.find_program(PDFTOTEXT, search.as_deref()) {
            let program = pdftotext(program);
            let supervisor = context.supervisor(program.grace.total());
            settings.pdf = Some(pdf_reader(program, supervisor));
        }
        let git = match commits {
            true => Some(open_git(&context, &settings.folder).await),
            false => None,
        };
        // The folder is read by a thread of the store, so this does not block for long.
        let store = Store::open(settings, progress::of_reading(&appearance.folder));
        let store = store.map_err(|error| match &error {
            OpenError::Glob(wrong) => globs.mistake(wrong.glob(), &error),
            _ => unopened(place, &error),
        })?;
        Ok(ArticleSource::with_services(Arc::new(store), appearance, Services { git, embeddings }))
    });
    Ok(described.looks(look))
}

fn unopened(place: Place, error: &OpenError) -> Mistake {
    place.mistake(format!("articles: {error}")).hint(RELATIVE)
}

/// The places of `include` and `exclude`, for an invalid glob in one of them.
struct Globs {
    include: Option<(Vec<String>, Place)>,
    exclude: Option<Place>,
    path: Place,
}

impl Globs {
    fn of(file: &Articles, text: &Text<'_>) -> Self {
        let include = file.include.as_ref();
        Self {
            include: include.map(|it| (it.get_ref().clone(), text.place(it.span()))),
            exclude: file.exclude.as_ref().map(|it| text.place(it.span())),
            path: text.place(file.path.span()),
        }
    }

    fn mistake(self, glob: Option<&str>, error: &OpenError) -> Mistake {
        let includes =
            |(globs, _): &(Vec<String>, Place)| globs.iter().any(|it| Some(&**it) == glob);
        let (key, place) = match self.include.filter(includes) {
            Some((_, place)) => ("include", place),
            None => ("exclude", self.exclude.unwrap_or(self.path)),
        };
        let hint = format!("write e.g. `{key} = [\"docs/**\", \"*.md\"]`");
        place.mistake(format!("articles: `{key}`: {error}")).hint(hint)
    }
}

/// The name of a folder, with which the names of its tools begin.
fn check_name(name: Option<&Spanned<String>>, text: &Text<'_>) -> Result<(), Mistake> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match name {
        Some(name) if name.get_ref().is_empty() || !name.get_ref().chars().all(is_plain) => {
            let plain = name.get_ref().replace(|c| !is_plain(c), "_");
            let plain = plain.trim_matches('_');
            let plain = if plain.is_empty() { "handbook" } else { plain };
            let expected = "letters, digits, `_`, `-` and `.`";
            let mistake = text.invalid(name, "name", expected);
            Err(mistake.hint(format!("write e.g. `name = \"{plain}\"`")))
        }
        _ => Ok(()),
    }
}

/// The address of the site, which links begin with.
fn site(written: Option<&Spanned<String>>, text: &Text<'_>) -> Result<Option<String>, Mistake> {
    let Some(written) = written else { return Ok(None) };
    let host = ["https://", "http://"].iter().find_map(|it| written.get_ref().strip_prefix(it));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
        return Err(text.invalid(written, "`site`", "e.g. \"https://docs.example.org\""));
    }
    Ok(Some(written.get_ref().clone()))
}

/// The language of articles that name none.
fn language(written: Option<&Spanned<String>>, text: &Text<'_>) -> Result<Language, Mistake> {
    let Some(written) = written else { return Ok(Language::ENGLISH) };
    Language::of_tag(written.get_ref()).ok_or_else(|| {
        let codes: Vec<&str> = Language::codes().collect();
        let (tag, codes) = (written.get_ref(), codes.join(", "));
        let what = format!("unknown language `{tag}` (expected one of: {codes})");
        text.place(written.span()).mistake(what)
    })
}

/// Whether changes are committed, which needs `write`.
fn commits(file: &Articles, text: &Text<'_>) -> Result<bool, Mistake> {
    match &file.commit {
        Some(commit) if *commit.get_ref() && file.write != Some(true) => {
            let what = "`commit = true` commits what the tools write (expected `write = true`)";
            Err(text.place(commit.span()).mistake(what.to_owned()))
        }
        commit => Ok(commit.as_ref().is_some_and(|commit| *commit.get_ref())),
    }
}

/// The git repository of a folder, or why there is none.
async fn open_git(context: &OpenContext, folder: &Path) -> Result<Git, String> {
    let search = std::env::var_os("PATH");
    let program = context.find_program("git", search.as_deref()).map_err(|bad| bad.to_string())?;
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    Git::open(program, folder, context.supervisor(EXIT)).await
}

/// The time that git has to exit after SIGTERM.
const EXIT: std::time::Duration = std::time::Duration::from_secs(2);

/// Whether the tools are also offered as `search` and `fetch`.
const APPEARANCES: [(&str, bool); 2] = [("\"default\"", false), ("\"chatgpt\"", true)];

/// An `[articles.embeddings]`: an endpoint that makes vectors, for a search by meaning.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddingsTable {
    url: Spanned<String>,
    model: String,
    key_env: Option<Spanned<String>>,
}

impl EmbeddingsTable {
    fn settle(&self, text: &Text<'_>) -> Result<Arc<Embeddings>, Mistake> {
        let key = self.key_env.as_ref().map(|name| variable(name, text)).transpose()?;
        let embeddings = Embeddings::new(self.url.get_ref(), &self.model, key.as_deref());
        embeddings.map(Arc::new).map_err(|bad| {
            let hint = "write e.g. `url = \"http://localhost:11434/v1\"`, or one with https";
            text.mistake(self.url.span(), bad).hint(hint)
        })
    }
}

/// An `[[articles.weight]]`: what the articles of a folder count in a search.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Weight {
    path: String,
    factor: Spanned<f32>,
}

impl Weight {
    fn settle(&self, text: &Text<'_>) -> Result<FolderWeight, Mistake> {
        let factor = *self.factor.get_ref();
        if !(0.0..=1000.0).contains(&factor) {
            let what = format!("invalid `factor` {factor} (expected 0 to 1000, e.g. 0.7)");
            return Err(text.mistake(self.factor.span(), what));
        }
        Ok(FolderWeight { path: self.path.clone(), factor })
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
        "." if folder.as_os_str().is_empty() => PathBuf::from("."),
        "." => folder.to_owned(),
        written => folder.join(written),
    }
}

/// A document that was named in the place of its folder. Some would be read as an empty
/// configuration: a heading of Markdown is a comment of TOML.
pub(super) fn document(path: &Path) -> Option<Mistake> {
    const ENDINGS: [&str; 7] = ["md", "mdx", "markdown", "txt", "html", "pdf", "ipynb"];
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    if !ENDINGS.contains(&&*ending) || !path.is_file() {
        return None;
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let what = "a document, not a configuration (expected a folder or a sabir.toml)";
    Some(Mistake::of_file(path, what).hint(format!("serve its folder: {}", folder.display())))
}

/// Entries that are looked at to see whether a folder holds Markdown, and the levels of folders below it.
const LOOKED_AT: usize = 2000;
const DEEPEST: usize = 3;

/// Whether a folder, or one of those in it, holds Markdown. Those near the top are looked at first.
pub(crate) fn holds_markdown(folder: &Path) -> bool {
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    let mut left = LOOKED_AT;
    while let Some((folder, depth)) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(left) {
            left -= 1;
            let (path, name) = (entry.path(), entry.file_name());
            if name.as_encoded_bytes()[0] == b'.' {
                continue;
            }
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if matches!(ending, "md" | "mdx" | "markdown") && path.is_file() {
                return true;
            }
            if depth < DEEPEST && name != "node_modules" && path.is_dir() {
                folders.push_back((path, depth + 1));
            }
        }
    }
    false
}
