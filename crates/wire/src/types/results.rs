//! What requests are answered with.

use bytes::Bytes;

use crate::id::Id;
use crate::raw::Raw;
use crate::revision::Revision;
use crate::types::{ClientCapabilities, Completion, Implementation, PromptReply, Question};
use crate::types::{ResourceReply, ServerCapabilities, ToolReply};

/// The result of a request, in the newest shape.
#[derive(Clone, Debug)]
pub enum ServerResult {
    /// Nothing but "done".
    Empty,
    /// `initialize`.
    InitializeResult(Box<InitializeResult>),
    /// `server/discover`.
    DiscoverResult(Box<DiscoverResult>),
    /// A page of a list, ready-made in the asker's revision.
    Ready(Bytes),
    /// `tools/call`.
    Tool(ToolReply),
    /// `prompts/get`.
    Prompt(PromptReply),
    /// `resources/read`.
    Resource(ResourceReply),
    /// `completion/complete`.
    Completion(Completion),
    /// The request cannot be finished before the client has answered.
    InputRequired(Questions),
    /// A subscription ended: the id of the request that opened it.
    Listened(Id),
}

/// The answer to `initialize`.
#[derive(Clone, Debug)]
pub struct InitializeResult {
    /// What both will speak.
    pub revision: Revision,
    /// What is offered.
    pub capabilities: ServerCapabilities,
    /// Who answers.
    pub server: Implementation,
    /// How to use it, for the model.
    pub instructions: Option<String>,
    /// Repeat name and version at the top of the result, for clients that look there.
    pub flat: bool,
}

/// The answer to `server/discover`.
#[derive(Clone, Debug)]
pub struct DiscoverResult {
    /// What may be spoken.
    pub revisions: Vec<Revision>,
    /// What is offered.
    pub capabilities: ServerCapabilities,
    /// How to use it, for the model.
    pub instructions: Option<String>,
    /// How long this may be kept.
    pub cache: CacheHint,
}

/// A page of a list, to be rendered.
#[derive(Clone, Copy, Debug)]
pub struct ListPage<'a, T> {
    /// `tools`, `prompts`, …
    pub key: &'static str,
    /// What stands on it.
    pub items: &'a [T],
    /// Where the next one begins.
    pub next: Option<&'a str>,
    /// How long it may be kept.
    pub cache: CacheHint,
}

/// Questions that must be answered before a call can go on.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// By keys that are unique within the call.
    pub questions: Vec<(String, Question)>,
    /// What the client shall send back with the answers.
    pub state: Option<String>,
}

impl Questions {
    /// What a client must have declared to be asked all of them.
    pub fn needs(&self) -> ClientCapabilities {
        let all = self.questions.iter().map(|(_, question)| question.needs());
        all.fold(ClientCapabilities::default(), ClientCapabilities::union)
    }
}

/// How long a result may be kept, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheHint {
    /// Milliseconds; 0 means that it may be stale at once.
    pub ttl_ms: u64,
    /// Who may keep it.
    pub scope: CacheScope,
}

/// Who may keep a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CacheScope {
    /// Whoever asked with the same authority.
    #[default]
    Private,
    /// Anybody.
    Public,
}

impl CacheScope {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }
}

impl From<ToolReply> for ServerResult {
    fn from(reply: ToolReply) -> Self {
        Self::Tool(reply)
    }
}

impl From<PromptReply> for ServerResult {
    fn from(reply: PromptReply) -> Self {
        Self::Prompt(reply)
    }
}

impl From<ResourceReply> for ServerResult {
    fn from(reply: ResourceReply) -> Self {
        Self::Resource(reply)
    }
}

impl From<Completion> for ServerResult {
    fn from(completion: Completion) -> Self {
        Self::Completion(completion)
    }
}

impl ServerResult {
    /// What the result says about itself, if its kind can say anything.
    pub fn meta(&self) -> Option<&Raw> {
        match self {
            Self::Tool(reply) => reply.meta.as_ref(),
            Self::Prompt(reply) => reply.meta.as_ref(),
            Self::Resource(reply) => reply.meta.as_ref(),
            _ => None,
        }
    }
}
