//! The three tools: list, get, search.
//!
//! An error that the caller can correct is a failed result with the store's message. An error of the
//! index is an internal error.

use sabir_articles::{Article, List, Search, SearchOptions, Store, StoreError, Summary};
use sabir_wire::types::{Content, Resource, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Code, ErrorObject, Problem, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::appearance::{Appearance, NotFound};
use super::{schema, text};

/// Links in one result. Further URIs are in the structured result only.
const MOST_LINKS: usize = 10;

/// One of the three tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolKind {
    List,
    Get,
    Search,
}

impl ToolKind {
    const ALL: [Self; 3] = [Self::List, Self::Get, Self::Search];

    /// The tool of this name.
    pub(super) fn named(name: &str, appearance: &Appearance) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name(appearance) == name)
    }

    fn name(self, appearance: &Appearance) -> String {
        let name = match self {
            Self::List => "list_articles",
            Self::Get => "get_article",
            Self::Search => "search_articles",
        };
        match &appearance.name {
            Some(folder) => format!("{folder}_{name}"),
            None => name.to_owned(),
        }
    }

    fn describe(self, appearance: &Appearance) -> (&'static str, String) {
        let about = appearance.about.as_ref().map_or_else(String::new, |it| format!(" about {it}"));
        match self {
            Self::List => (
                "List articles",
                format!(
                    "List articles{about}, newest first, with their titles, descriptions and tags"
                ),
            ),
            Self::Get => (
                "Read an article",
                format!(
                    "Get the full content of a specific article{about} by slug, or one section of it"
                ),
            ),
            Self::Search => (
                "Search articles",
                format!(
                    "Search articles{about} by title, tags, description or text. Takes keywords, \
                     questions and \"phrases\", forgives typos, and shows where each article matches"
                ),
            ),
        }
    }
}

/// The tools with their current schemas.
pub(super) fn offer(store: &Store, appearance: &Appearance) -> Vec<Tool> {
    ToolKind::ALL
        .into_iter()
        .map(|kind| {
            let (input, output) = match kind {
                ToolKind::List => (list_input(store), schema::output::<List>()),
                ToolKind::Get => (schema::input::<GetArguments>(), schema::output::<Article>()),
                ToolKind::Search => {
                    (schema::input::<SearchArguments>(), schema::output::<Search>())
                }
            };
            let (title, description) = kind.describe(appearance);
            Tool {
                title: Some(title.to_owned()),
                output_schema: Some(raw(&output)),
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

/// During indexing, a category that is not yet known must not be refused.
fn list_input(store: &Store) -> Value {
    let names: Vec<String> = store.categories().into_iter().map(|(name, _)| name).collect();
    let are_known = store.indexing().is_none() && names.len() <= schema::MOST_NAMED;
    schema::with_categories(schema::input::<ListArguments>(), are_known.then_some(&names))
}

/// A `Value` can always be written as JSON.
fn raw(schema: &Value) -> Raw {
    Raw::of(schema).unwrap_or_else(|_| Raw::empty_object())
}

#[derive(Deserialize, JsonSchema)]
struct ListArguments {
    /// Filter by content category
    category: Option<String>,
    /// Maximum number of articles to return (default 50, limit 1000)
    limit: Option<Number>,
}

/// `list_articles`. `link` sets the URI of an article, and returns a link to it.
pub(super) fn list(
    store: &Store,
    arguments: &Raw,
    link: impl Fn(&mut Summary) -> Resource,
) -> Result<ToolReply, Problem> {
    let ListArguments { category, limit } = read(arguments)?;
    let limit = limit.map(|limit| whole(&limit)).transpose()?;
    let mut found = store.list(category.as_deref(), limit).map_err(failed)?;
    let links: Vec<Resource> = found.articles.iter_mut().map(link).collect();
    reply(&found, text::list(&found), links)
}

#[derive(Deserialize, JsonSchema)]
struct GetArguments {
    /// Article slug (filename without extension), or category/slug
    slug: String,
    /// Return only this section: an id from the article's list of sections
    section: Option<String>,
}

/// `get_article`.
pub(super) fn get(
    store: &Store,
    arguments: &Raw,
    not_found: NotFound,
    link: impl Fn(&mut Summary) -> Resource,
) -> Result<ToolReply, Problem> {
    let GetArguments { slug, section } = read(arguments)?;
    let mut article = store.article(&slug, section.as_deref()).map_err(|error| {
        let is_unknown = matches!(error, StoreError::NotFound { .. });
        match not_found {
            NotFound::InvalidParams if is_unknown => Problem::Chosen(
                ErrorObject::new(Code::INVALID_PARAMS, error.to_string())
                    .with_data(&json!({ "slug": slug })),
            ),
            _ => failed(error),
        }
    })?;
    let links = vec![link(&mut article.summary)];
    reply(&article, text::article(&article), links)
}

#[derive(Deserialize, JsonSchema)]
struct SearchArguments {
    /// Search query: words, a question, or a "phrase in quotes"
    query: String,
    /// Include full markdown content in results
    #[serde(default)]
    include_content: bool,
}

/// `search_articles`.
pub(super) fn search(
    store: &Store,
    arguments: &Raw,
    link: impl Fn(&mut Summary) -> Resource,
) -> Result<ToolReply, Problem> {
    let SearchArguments { query, include_content } = read(arguments)?;
    let options = SearchOptions { include_content, ..SearchOptions::default() };
    let mut found = store.search(&query, options).map_err(failed)?;
    let links: Vec<Resource> = found.hits.iter_mut().map(|hit| link(&mut hit.summary)).collect();
    reply(&found, text::search(&query, &found), links)
}

/// The error of a failed index. Its reason is logged.
pub(super) fn internal(error: StoreError) -> Problem {
    tracing::error!("{error}");
    Problem::Internal("the index of the articles failed".into())
}

fn failed(error: StoreError) -> Problem {
    if error.is_internal() {
        internal(error)
    } else {
        Problem::ToolFailed(error.to_string().into())
    }
}

fn read<'a, T: Deserialize<'a>>(arguments: &'a Raw) -> Result<T, Problem> {
    arguments.read().map_err(|error| Problem::Arguments(error.to_string().into()))
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

fn reply(value: &impl Serialize, text: String, links: Vec<Resource>) -> Result<ToolReply, Problem> {
    let structured = Raw::of(value).map_err(|error| {
        Problem::Internal(format!("cannot write the result as JSON: {error}").into())
    })?;
    let links = links.into_iter().take(MOST_LINKS).map(Content::link);
    let content = [Content::text(text)].into_iter().chain(links).collect();
    Ok(ToolReply { content, structured: Some(structured), ..ToolReply::default() })
}
