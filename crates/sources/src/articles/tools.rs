//! The three tools: list, get, search.
//!
//! An error that the caller can correct is a failed result with the store's message. An error of the
//! index is an internal error.

use sabir_articles::{
    Article, ArticleUris, List, ReadOptions, Search, SearchOptions, Store, StoreError, Summary,
    shortened,
};
use sabir_wire::types::{Content, Resource, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Code, ErrorObject, Problem, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::appearance::{Appearance, NotFound};
use super::mistakes::refuse_other_folder;
use super::plain::{PlainArticle, PlainFetchArguments, PlainHits, PlainSearchArguments};
use super::{budget, resources, schema, text};

/// Links in one result. Further URIs are in the structured result only.
const MOST_LINKS: usize = 10;

/// Categories in the description of a tool. If there are more, it names none.
const MOST_DESCRIBED: usize = 40;

/// The longest title of a category in the description of a tool, in characters.
const LONGEST_TITLE: usize = 60;

/// The bounds of one result, in bytes.
const LEAST_CHARS: usize = 300;
pub(super) const MOST_CHARS: usize = 1 << 20;

/// The shortest content of one result in bytes, however long the text around it: every part makes
/// progress.
const LEAST_CONTENT: usize = 50;

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolKind {
    List,
    Get,
    Search,
    /// `search` and `fetch`, the names that some clients require.
    PlainSearch,
    PlainFetch,
}

impl ToolKind {
    fn all(appearance: &Appearance) -> &'static [Self] {
        const ALL: [ToolKind; 5] = [
            ToolKind::List,
            ToolKind::Get,
            ToolKind::Search,
            ToolKind::PlainSearch,
            ToolKind::PlainFetch,
        ];
        if appearance.search_and_fetch { &ALL } else { &ALL[..3] }
    }

    /// The tool of this name.
    pub(super) fn named(name: &str, appearance: &Appearance) -> Option<Self> {
        Self::all(appearance).iter().copied().find(|kind| kind.name(appearance) == name)
    }

    /// The query of a call, if it is a search.
    pub(super) fn query(self, arguments: &Raw) -> Option<String> {
        match self {
            Self::Search | Self::PlainSearch => {
                read(arguments).ok().map(|PlainSearchArguments { query }| query)
            }
            Self::List | Self::Get | Self::PlainFetch => None,
        }
    }

    fn name(self, appearance: &Appearance) -> String {
        let name = match self {
            Self::List => "list_articles",
            Self::Get => "get_article",
            Self::Search => "search_articles",
            Self::PlainSearch => return "search".to_owned(),
            Self::PlainFetch => return "fetch".to_owned(),
        };
        prefixed(name, appearance)
    }

    fn describe(self, store: &Store, appearance: &Appearance) -> (&'static str, String) {
        let about = appearance.about.as_ref().map_or_else(String::new, |it| format!(" about {it}"));
        match self {
            Self::List => (
                "List articles",
                format!(
                    "List articles{about}, newest first, with their titles, descriptions and tags.{}",
                    contents(store)
                ),
            ),
            Self::Get => (
                "Read an article",
                format!(
                    "Get the full content of a specific article{about} by slug, or one section of it. \
                     Takes ids from the other tools and links as they are written in articles"
                ),
            ),
            Self::Search => (
                "Search articles",
                format!(
                    "Search articles{about} by title, tags, description or text. Takes keywords, \
                     questions and \"phrases\", forgives typos, and names the section of each article \
                     that matches: read it with `{}`",
                    Self::Get.name(appearance)
                ),
            ),
            Self::PlainSearch => ("Search", format!("Search articles{about}")),
            Self::PlainFetch => {
                ("Fetch", format!("Get the full content of an article{about} by its id"))
            }
        }
    }
}

/// The name of a tool of this folder.
pub(super) fn prefixed(name: &str, appearance: &Appearance) -> String {
    match &appearance.name {
        Some(folder) => format!("{folder}_{name}"),
        None => name.to_owned(),
    }
}

/// The contents of the folder, for the description of a tool: its own description, and its
/// categories.
fn contents(store: &Store) -> String {
    let mut text = store.about().map_or_else(String::new, |about| format!(" {about}"));
    let categories = store.category_titles();
    if !categories.is_empty() && categories.len() <= MOST_DESCRIBED {
        let named = categories.into_iter().map(|(name, title)| described(name, title.as_deref()));
        text.push_str(&format!(" Categories: {}", named.collect::<Vec<_>>().join(", ")));
    }
    text
}

/// A category with its title, unless both are the same.
fn described(name: String, title: Option<&str>) -> String {
    match title.filter(|title| !text::is_same(title, &name)) {
        Some(title) => format!("{name} ({})", shortened(title, LONGEST_TITLE)),
        None => name,
    }
}

/// The instructions for models: the contents of the folder, and how to answer a question with the
/// tools.
pub(super) fn instructions(store: &Store, appearance: &Appearance) -> String {
    let about = appearance.about.as_ref().map_or_else(String::new, |it| format!(" about {it}"));
    let how = format!(
        "To answer a question, search with `{}`, then read the section that a result names with \
         `{}` (`slug` and `section`), which also takes links as they are written in articles. `{}` \
         shows the newest articles.",
        ToolKind::Search.name(appearance),
        ToolKind::Get.name(appearance),
        ToolKind::List.name(appearance),
    );
    let parts = [format!("Articles{about}."), contents(store).trim().to_owned(), how];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The tools with their current schemas.
pub(super) fn offer(store: &Store, appearance: &Appearance) -> Vec<Tool> {
    ToolKind::all(appearance)
        .iter()
        .map(|kind| {
            let (input, output) = match kind {
                ToolKind::List => (list_input(store), schema::output::<List>()),
                ToolKind::Get => (get_input(appearance), schema::output::<Article>()),
                ToolKind::Search => {
                    (schema::input::<SearchArguments>(), schema::output::<Search>())
                }
                ToolKind::PlainSearch => {
                    (schema::input::<PlainSearchArguments>(), schema::output::<PlainHits>())
                }
                ToolKind::PlainFetch => {
                    (schema::input::<PlainFetchArguments>(), schema::output::<PlainArticle>())
                }
            };
            let is_plain = matches!(kind, ToolKind::PlainSearch | ToolKind::PlainFetch);
            let (title, description) = kind.describe(store, appearance);
            Tool {
                title: Some(title.to_owned()),
                output_schema: (appearance.structured || is_plain).then(|| raw(&output)),
                annotations: Some(ToolAnnotations {
                    read_only_hint: Some(true),
                    idempotent_hint: Some(true),
                    open_world_hint: Some(false),
                    ..ToolAnnotations::default()
                }),
                ..Tool::new(kind.name(appearance), description, raw(&input))
            }
        })
        .collect()
}

/// `raw` is offered only where articles may be written.
fn get_input(appearance: &Appearance) -> Value {
    let mut schema = schema::input::<GetArguments>();
    if !appearance.writes {
        schema["properties"].as_object_mut().map(|all| all.remove("raw"));
    }
    schema
}

/// During indexing, a category that is not yet known must not be refused.
fn list_input(store: &Store) -> Value {
    let names: Vec<String> = store.categories().into_iter().map(|(name, _)| name).collect();
    // Where folders have folders, each of them is a category.
    let is_flat = store.folders("").keys().all(|name| store.folders(name).is_empty());
    let are_known = store.indexing().is_none() && names.len() <= schema::MOST_NAMED && is_flat;
    schema::with_categories(schema::input::<ListArguments>(), are_known.then_some(&names))
}

/// A `Value` can always be written as JSON.
pub(super) fn raw(schema: &Value) -> Raw {
    Raw::of(schema).unwrap_or_else(|_| Raw::empty_object())
}

#[derive(Deserialize, JsonSchema)]
struct ListArguments {
    /// Filter by content category
    category: Option<String>,
    /// Another name for it, which is accepted and not offered.
    #[schemars(skip)]
    path: Option<String>,
    /// Maximum number of articles to return (default 50, limit 1000)
    limit: Option<Number>,
    /// How many to leave out, newest first: the offset that the last list names
    offset: Option<Number>,
}

/// The context of a call.
pub(super) struct Answering<'a> {
    pub(super) store: &'a Store,
    pub(super) appearance: &'a Appearance,
    pub(super) uris: &'a ArticleUris,
    /// The vector of the query, for a search by meaning.
    pub(super) vector: Option<Vec<f32>>,
}

impl Answering<'_> {
    /// Calls a tool.
    pub(super) fn call(&self, kind: ToolKind, arguments: &Raw) -> Result<ToolReply, Problem> {
        match kind {
            ToolKind::List => self.list(arguments),
            ToolKind::Get => self.get(arguments),
            ToolKind::Search => self.search(arguments),
            ToolKind::PlainSearch => self.plain_search(arguments),
            ToolKind::PlainFetch => self.plain_fetch(arguments),
        }
    }

    fn list(&self, arguments: &Raw) -> Result<ToolReply, Problem> {
        let ListArguments { category, path, limit, offset } = read(arguments)?;
        let limit = limit.map(|limit| whole(&limit)).transpose()?;
        let offset = size(offset.as_ref())?.unwrap_or(0);
        let category = given(category).or_else(|| given(path));
        let found = self.store.list_from(category.as_deref(), limit, offset);
        let mut found = found.map_err(failed)?;
        let Appearance { max_chars, structured, .. } = *self.appearance;
        budget::cut_list(&mut found, offset, max_chars, structured);
        let links = found.articles.iter_mut().map(|summary| self.link(summary)).collect();
        let text = text::list(&found, offset);
        self.reply(&found, text, links)
    }

    fn get(&self, arguments: &Raw) -> Result<ToolReply, Problem> {
        let GetArguments { slug, section, offset, max_chars, links, raw } = read(arguments)?;
        let most = size(max_chars.as_ref())?.unwrap_or(self.appearance.max_chars);
        let most = most.clamp(LEAST_CHARS, MOST_CHARS);
        let mut options = ReadOptions {
            section: given(section),
            offset: size(offset.as_ref())?.unwrap_or(0),
            limit: Some(most),
            uris: Some(self.uris.clone()),
            links,
            etag: self.appearance.writes,
            raw: raw && self.appearance.writes,
        };
        let mut article = self.read_article(&slug, &options)?;
        let search = ToolKind::Search.name(self.appearance);
        let mut text = text::article(&article, options.offset, most, &search);
        // The outline and the hint how to go on count, too. Cutting the content for them may add
        // them, so there are two rounds.
        for _ in 0..2 {
            let over = text.len().saturating_sub(most);
            let Some(limit) = options.limit.filter(|_| over > 0) else { break };
            options.limit =
                Some(limit.min(article.content.len()).saturating_sub(over).max(LEAST_CONTENT));
            article = self.read_article(&slug, &options)?;
            text = text::article(&article, options.offset, most, &search);
        }
        let links = vec![self.link(&mut article.summary)];
        self.reply(&article, text, links)
    }

    fn read_article(&self, slug: &str, options: &ReadOptions) -> Result<Article, Problem> {
        refuse_other_folder(slug, self.uris, "get_article")?;
        self.store.read(slug, options).map_err(|error| {
            let named = self.uris.id_in(slug).unwrap_or_else(|| slug.to_owned());
            let told = match &error {
                StoreError::NotFound { .. } => match self.store.file_named(&named) {
                    Some(path) => {
                        let uri = self.uris.uri_of(&path);
                        let told = format!(
                            "`{path}` is a file, not an article: read the resource `{uri}`"
                        );
                        return Problem::ToolFailed(told.into());
                    }
                    None => error.to_string(),
                },
                StoreError::Folder { folder, .. } => {
                    let list = ToolKind::List.name(self.appearance);
                    format!("{error} (list it with `{list}`, category `{folder}`)")
                }
                StoreError::OnlySection { .. } => error.to_string(),
                _ => return failed(error),
            };
            match self.appearance.not_found {
                NotFound::InvalidParams => Problem::Chosen(
                    ErrorObject::new(Code::INVALID_PARAMS, told)
                        .with_data(&json!({ "slug": slug })),
                ),
                NotFound::Result => Problem::ToolFailed(told.into()),
            }
        })
    }

    fn search(&self, arguments: &Raw) -> Result<ToolReply, Problem> {
        let SearchArguments { query, include_content, category, path, limit, offset } =
            read(arguments)?;
        let options = SearchOptions {
            include_content,
            folder: given(category).or_else(|| given(path)),
            limit: limit.map(|limit| whole(&limit)).transpose()?,
            offset: size(offset.as_ref())?.unwrap_or(0),
            uris: Some(self.uris.clone()),
            vector: self.vector.clone(),
        };
        let offset = options.offset;
        let mut found = self.store.search(&query, options).map_err(failed)?;
        let Appearance { max_chars, structured, .. } = *self.appearance;
        let get = ToolKind::Get.name(self.appearance);
        budget::cut_search(&mut found, max_chars, structured, &get);
        let links = found.hits.iter_mut().map(|hit| self.link(&mut hit.summary)).collect();
        let text = text::search(&query, &found, offset);
        self.reply(&found, text, links)
    }

    /// Sets the URI of an article, and returns a link to it.
    fn link(&self, summary: &mut Summary) -> Resource {
        summary.uri = self.uris.uri_of(&summary.id);
        resources::link(summary)
    }

    fn reply(
        &self,
        value: &impl Serialize,
        text: String,
        links: Vec<Resource>,
    ) -> Result<ToolReply, Problem> {
        if !self.appearance.structured {
            return Ok(ToolReply { content: vec![Content::text(text)], ..ToolReply::default() });
        }
        let links = links.into_iter().take(MOST_LINKS).map(Content::link);
        let content = [Content::text(text)].into_iter().chain(links).collect();
        Ok(ToolReply { content, structured: Some(structured(value)?), ..ToolReply::default() })
    }
}

pub(super) fn structured(value: &impl Serialize) -> Result<Raw, Problem> {
    Raw::of(value).map_err(|error| {
        Problem::Internal(format!("cannot write the result as JSON: {error}").into())
    })
}

#[derive(Deserialize, JsonSchema)]
struct GetArguments {
    /// Article slug (filename without extension), or category/slug
    slug: String,
    /// Return only this section: an id from the article's list of sections
    section: Option<String>,
    /// Where the content starts: the offset that the last part names
    offset: Option<Number>,
    /// Maximum length of the answer in characters (at least 300)
    max_chars: Option<Number>,
    /// Also return the articles that it links to and those that link to it
    #[serde(default)]
    links: bool,
    /// Return the file as it is, with its frontmatter and its own links, to be changed and written back
    #[serde(default)]
    raw: bool,
}

#[derive(Deserialize, JsonSchema)]
struct SearchArguments {
    /// Search query: words, a question, or a "phrase in quotes"
    query: String,
    /// Include full markdown content in results
    #[serde(default)]
    include_content: bool,
    /// Only articles in this category, or in a folder of it
    category: Option<String>,
    /// Another name for it, which is accepted and not offered.
    #[schemars(skip)]
    path: Option<String>,
    /// Maximum number of results (default 10, limit 100)
    limit: Option<Number>,
    /// How many of the best results to leave out
    offset: Option<Number>,
}

/// The error of a failed index. Its reason is logged.
pub(super) fn internal(error: StoreError) -> Problem {
    tracing::error!("{error}");
    Problem::Internal("the index of the articles failed".into())
}

pub(super) fn failed(error: StoreError) -> Problem {
    if error.is_internal() {
        internal(error)
    } else {
        Problem::ToolFailed(error.to_string().into())
    }
}

pub(super) fn read<'a, T: Deserialize<'a>>(arguments: &'a Raw) -> Result<T, Problem> {
    arguments.read().map_err(|error| Problem::Arguments(error.to_string().into()))
}

/// An optional text. Models pass an empty one for none.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// A whole number; numbers out of range become the nearest one in range.
fn whole(number: &Number) -> Result<i64, Problem> {
    if let Some(whole) = number.as_i64() {
        return Ok(whole);
    }
    match number.as_f64() {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is a whole number, and the cast saturates"
        )]
        Some(float) if float.fract() == 0.0 => Ok(float as i64),
        _ => Err(Problem::ToolFailed(format!("limit must be a whole number, not {number}").into())),
    }
}

/// A length or an offset.
fn size(number: Option<&Number>) -> Result<Option<usize>, Problem> {
    let Some(number) = number else { return Ok(None) };
    usize::try_from(whole(number)?).map(Some).map_err(|_| {
        Problem::ToolFailed(format!("expected a number of at least 0, not {number}").into())
    })
}
