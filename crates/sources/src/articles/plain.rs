//! `search` and `fetch`: the two tools, and their results, that some clients require.

use sabir_articles::{ReadOptions, SearchOptions};
use sabir_wire::types::{Content, ToolReply};
use sabir_wire::{Problem, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mistakes::refuse_other_folder;
use super::tools::{Answering, MOST_CHARS, failed, read, structured};

#[derive(Deserialize, JsonSchema)]
pub(super) struct PlainSearchArguments {
    /// Search query
    pub(super) query: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PlainFetchArguments {
    /// The id of an article
    id: String,
}

/// Results of a search
#[derive(Serialize, JsonSchema)]
pub(super) struct PlainHits {
    /// Best first
    results: Vec<PlainHit>,
}

/// A result of a search
#[derive(Serialize, JsonSchema)]
pub(super) struct PlainHit {
    /// For `fetch`
    id: String,
    /// The title
    title: String,
    /// The URI of the article
    url: String,
}

/// An article
#[derive(Serialize, JsonSchema)]
pub(super) struct PlainArticle {
    /// The id
    id: String,
    /// The title
    title: String,
    /// The Markdown
    text: String,
    /// The URI of the article
    url: String,
}

impl Answering<'_> {
    pub(super) fn plain_search(&self, arguments: &Raw) -> Result<ToolReply, Problem> {
        let PlainSearchArguments { query } = read(arguments)?;
        let options = SearchOptions { vector: self.vector.clone(), ..SearchOptions::default() };
        let found = self.store.search(&query, options).map_err(failed)?;
        let results = found.hits.into_iter().map(|hit| PlainHit {
            url: self.uris.uri_of(&hit.summary.id),
            id: hit.summary.id,
            title: hit.summary.title,
        });
        plain(&PlainHits { results: results.collect() })
    }

    pub(super) fn plain_fetch(&self, arguments: &Raw) -> Result<ToolReply, Problem> {
        let PlainFetchArguments { id } = read(arguments)?;
        refuse_other_folder(&id, self.uris, "get_article")?;
        let (limit, uris) = (Some(MOST_CHARS), Some(self.uris.clone()));
        let options = ReadOptions { limit, uris, ..ReadOptions::default() };
        let article = self.store.read(&id, &options).map_err(failed)?;
        let (mut text, id) = (article.content, article.summary.id);
        if let Some(end) = article.next_offset {
            let whole = article.summary.size;
            text.push_str(&format!(
                "\n\n[Cut at {end} of about {whole} characters. One section: `{id}#section`.]"
            ));
        }
        plain(&PlainArticle { url: self.uris.uri_of(&id), id, title: article.summary.title, text })
    }
}

/// The value as structured content, and the same as text.
fn plain(value: &impl Serialize) -> Result<ToolReply, Problem> {
    let structured = structured(value)?;
    let content = vec![Content::text(structured.text())];
    Ok(ToolReply { content, structured: Some(structured), ..ToolReply::default() })
}
