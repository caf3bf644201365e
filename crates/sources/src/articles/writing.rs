//! The tools that change articles, where the settings allow it: write, append, move.

use std::sync::Arc;

use sabir_articles::{ArticleUris, ReadOptions, Store, WriteError, Written};
use sabir_wire::types::{Content, Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::appearance::Appearance;
use super::git::Git;
use super::mistakes::refuse_other_folder;
use super::{schema, tools};

/// The limit of named articles that link to a moved one.
const MOST_LINKING: usize = 20;

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    Write,
    Append,
    Move,
}

impl WriteKind {
    const ALL: [Self; 3] = [Self::Write, Self::Append, Self::Move];

    /// The tool of this name, if articles may be changed.
    pub(super) fn named(name: &str, appearance: &Appearance) -> Option<Self> {
        let all = Self::ALL.into_iter().filter(|_| appearance.writes);
        all.into_iter().find(|kind| kind.name(appearance) == name)
    }

    fn name(self, appearance: &Appearance) -> String {
        tools::prefixed(self.bare_name(), appearance)
    }

    /// The name in a folder without a name.
    fn bare_name(self) -> &'static str {
        match self {
            Self::Write => "write_article",
            Self::Append => "append_to_article",
            Self::Move => "move_article",
        }
    }

    fn describe(self, get: &str) -> (&'static str, String) {
        match self {
            Self::Write => (
                "Write an article",
                format!(
                    "Create an article, or replace one: read it first with `{get}` and raw=true, \
                     change what it returned, and pass its etag"
                ),
            ),
            Self::Append => {
                ("Append to an article", "Add text to the end of an article".to_owned())
            }
            Self::Move => (
                "Move an article",
                "Move or rename an article. Links to it are not changed: the result names the \
                 articles that have one"
                    .to_owned(),
            ),
        }
    }
}

/// The tools, if articles may be changed.
pub(super) fn offer(appearance: &Appearance) -> Vec<Tool> {
    if !appearance.writes {
        return Vec::new();
    }
    let get = tools::prefixed("get_article", appearance);
    let tool = |kind: WriteKind| {
        let input = match kind {
            WriteKind::Write => schema::input::<WriteArguments>(),
            WriteKind::Append => schema::input::<AppendArguments>(),
            WriteKind::Move => schema::input::<MoveArguments>(),
        };
        let (title, description) = kind.describe(&get);
        Tool {
            title: Some(title.to_owned()),
            output_schema: appearance.structured.then(|| tools::raw(&schema::output::<Changed>())),
            annotations: Some(ToolAnnotations {
                read_only_hint: Some(false),
                destructive_hint: Some(kind == WriteKind::Write),
                idempotent_hint: Some(false),
                open_world_hint: Some(false),
                ..ToolAnnotations::default()
            }),
            ..Tool::new(kind.name(appearance), description, tools::raw(&input))
        }
    };
    WriteKind::ALL.map(tool).into()
}

#[derive(Deserialize, JsonSchema)]
struct WriteArguments {
    /// Where: category/slug
    slug: String,
    /// The whole Markdown. The frontmatter of an article stays as it is if this has none
    content: String,
    /// To replace an article: the etag of the content that you have read
    etag: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct AppendArguments {
    /// Article slug, or category/slug
    slug: String,
    /// The lines to add
    content: String,
    /// If given, nothing is added unless the article has this etag
    etag: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct MoveArguments {
    /// Article slug, or category/slug
    slug: String,
    /// Its new category/slug
    to: String,
    /// If given, it is not moved unless it has this etag
    etag: Option<String>,
}

/// A changed article
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Changed {
    /// Its id
    id: String,
    /// Identifies its new content
    etag: String,
    /// The URI of the article as a resource
    uri: String,
    /// The git commit, if it was committed
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// Why it was not committed
    #[serde(skip_serializing_if = "Option::is_none")]
    not_committed: Option<String>,
    /// Articles that link to the old place of a moved one
    #[serde(skip_serializing_if = "Vec::is_empty")]
    linked_from: Vec<String>,
}

/// Changes articles, one change after the other.
pub(super) struct Writer {
    pub(super) store: Arc<Store>,
    pub(super) appearance: Appearance,
    pub(super) uris: ArticleUris,
    pub(super) git: Option<Git>,
    /// Held during a change and its commit, so that each commit has one change.
    pub(super) turn: Mutex<()>,
}

impl Writer {
    /// Calls a tool. A change that has begun is finished even if the caller goes away.
    pub(super) async fn call(
        self: Arc<Self>,
        kind: WriteKind,
        arguments: Raw,
    ) -> Result<ToolReply, Problem> {
        let change = async move {
            let _turn = self.turn.lock().await;
            let writer = Arc::clone(&self);
            let made = tokio::task::spawn_blocking(move || writer.change(kind, &arguments));
            let (done, written, linked_from) = made.await.map_err(stopped)??;
            self.reply(&done, written, linked_from).await
        };
        tokio::spawn(change).await.map_err(stopped)?
    }

    /// Makes the change. Returns a description of it, and the articles that link to a moved one.
    fn change(
        &self,
        kind: WriteKind,
        arguments: &Raw,
    ) -> Result<(String, Written, Vec<String>), Problem> {
        let store = &self.store;
        let check = |slug: &str| refuse_other_folder(slug, &self.uris, kind.bare_name());
        let mut linked_from = Vec::new();
        let (verb, written) = match kind {
            WriteKind::Write => {
                let WriteArguments { slug, content, etag } = tools::read(arguments)?;
                check(&slug)?;
                ("Write", store.write(&slug, &content, etag.as_deref()))
            }
            WriteKind::Append => {
                let AppendArguments { slug, content, etag } = tools::read(arguments)?;
                check(&slug)?;
                ("Append to", store.append(&slug, &content, etag.as_deref()))
            }
            WriteKind::Move => {
                let MoveArguments { slug, to, etag } = tools::read(arguments)?;
                check(&slug)?;
                let options = ReadOptions { links: true, limit: Some(1), ..ReadOptions::default() };
                let links = store.read(&slug, &options).ok().and_then(|article| article.links);
                linked_from = links.map_or_else(Vec::new, |links| links.from);
                linked_from.truncate(MOST_LINKING);
                ("Move", store.rename(&slug, &to, etag.as_deref()))
            }
        };
        let written = written.map_err(failed)?;
        let done = match &written.files[..] {
            [to, from] => format!("{verb} {from} to {to}"),
            _ => format!("{verb} {}", written.id),
        };
        Ok((done, written, linked_from))
    }

    async fn reply(
        &self,
        done: &str,
        written: Written,
        linked_from: Vec<String>,
    ) -> Result<ToolReply, Problem> {
        let Written { id, etag, files } = written;
        let committed = match &self.git {
            Some(git) if !files.is_empty() => Some(git.commit(done, &files).await),
            _ => None,
        };
        let mut text = match files.is_empty() {
            true => format!("`{id}` is unchanged."),
            false => format!("Done: {done}."),
        };
        text.push_str(&format!("\nId: `{id}`\nEtag: `{etag}`"));
        let (mut commit, mut not_committed) = (None, None);
        match committed {
            Some(Ok(name)) => {
                text.push_str(&format!("\nCommit: {name}"));
                commit = Some(name);
            }
            Some(Err(reason)) => {
                text.push_str(&format!("\nNot committed: {reason}"));
                not_committed = Some(reason);
            }
            None => {}
        }
        if !linked_from.is_empty() {
            let names: Vec<String> = linked_from.iter().map(|id| format!("`{id}`")).collect();
            text.push_str(&format!("\nLinked from (not changed): {}", names.join(", ")));
        }
        let uri = self.uris.uri_of(&id);
        let changed = Changed { id, etag, uri, commit, not_committed, linked_from };
        let structured = self.appearance.structured.then(|| tools::structured(&changed));
        Ok(ToolReply {
            content: vec![Content::text(text)],
            structured: structured.transpose()?,
            ..ToolReply::default()
        })
    }
}

fn failed(error: WriteError) -> Problem {
    match error {
        WriteError::Find(error) => tools::failed(error),
        other => Problem::ToolFailed(other.to_string().into()),
    }
}

/// The runtime is ending, or the change panicked.
fn stopped(error: tokio::task::JoinError) -> Problem {
    Problem::Internal(format!("the change was not finished: {error}").into())
}
