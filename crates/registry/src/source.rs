//! The trait of everything that can be served, and what goes through it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use sabir_wire::types::{
    CacheHint, CacheScope, Completion, Prompt, PromptReply, Question, Reference, Resource,
    ResourceReply, ResourceTemplate, Tool, ToolReply,
};
use sabir_wire::{ByteString, Problem, Raw};

use crate::context::Context;
use crate::headers::BadAnnotation;
use crate::names::BadName;
use crate::schema::BadSchema;

/// Something that offers tools, prompts or resources: a Rust function, a folder, another server.
///
/// A source never sees an id, a session or a transport, and knows only the newest revision.
pub trait Source: Send + Sync {
    /// What it offers now. ParsedRequest again after [`Handle::changed`].
    fn offer(&self) -> Offer;

    /// Runs a tool. The arguments fit its schema.
    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        nothing_of_the_kind(&call.name)
    }

    /// Fills in a prompt. The required arguments are there.
    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        nothing_of_the_kind(&call.name)
    }

    /// Reads a resource that it listed, or one of a family that it listed.
    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        nothing_of_the_kind(&call.uri)
    }

    /// Completes an argument of a prompt or a template that it listed.
    fn complete(&self, _call: CompleteCall) -> Pending<Completion> {
        Box::pin(async { Ok(Outcome::Done(Completion::default())) })
    }

    /// Takes the handle by which it can tell that its offer, or a resource, has changed.
    fn attach(&self, _handle: Handle) {}
}

/// Takes in what a source tells of itself.
pub trait Announce: Send + Sync {
    /// See [`Handle::changed`].
    fn changed(&self) -> Result<(), BadOffer>;

    /// See [`Handle::updated`].
    fn updated(&self, uri: Box<str>);
}

/// How a source tells that something has changed. Does nothing once the source was removed.
#[derive(Clone)]
pub struct Handle(Arc<dyn Announce>);

impl Handle {
    /// A handle that leads to `announce`.
    pub fn new(announce: impl Announce + 'static) -> Self {
        Self(Arc::new(announce))
    }

    /// The offer has changed: it is asked for again. If the new one is no good, the old one stays.
    pub fn changed(&self) -> Result<(), BadOffer> {
        self.0.changed()
    }

    /// What a resource holds has changed.
    pub fn updated(&self, uri: impl Into<Box<str>>) {
        self.0.updated(uri.into());
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

fn nothing_of_the_kind<T>(name: &str) -> Pending<T> {
    let problem = Problem::Internal(format!("`{name}` was listed, but nobody provides it").into());
    Box::pin(async { Err(problem) })
}

/// Work that will have an answer.
pub type Pending<T> = Pin<Box<dyn Future<Output = Answer<T>> + Send>>;

/// What came of it.
pub type Answer<T> = Result<Outcome<T>, Problem>;

/// Done, or not yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// Done.
    Done(T),
    /// The client must answer first; the source will be called again with the answers.
    NeedInput(Ask),
}

/// Questions to the client, and what to keep until it has answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// By keys that are unique within the call.
    pub questions: Vec<(String, Question)>,
    /// Given back with the answers. The client keeps it, but can neither read nor change it.
    pub state: Option<Raw>,
}

/// What a source offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Tools, in the order in which they are listed.
    pub tools: Vec<Tool>,
    /// Prompts, in the order in which they are listed.
    pub prompts: Vec<Prompt>,
    /// Resources, in the order in which they are listed.
    pub resources: Vec<Resource>,
    /// Families of resources.
    pub templates: Vec<ResourceTemplate>,
    /// It completes arguments.
    pub completes: bool,
    /// It writes to the client's log.
    pub logs: bool,
    /// It tells when a resource has changed.
    pub updates: bool,
    /// What it offers may change.
    pub changes: bool,
    /// How long its part of a list may be kept.
    pub cache: CacheHint,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            completes: false,
            logs: false,
            updates: false,
            changes: false,
            cache: CacheHint { ttl_ms: 300_000, scope: CacheScope::Public },
        }
    }
}

/// Why an offer is refused.
#[derive(Debug, thiserror::Error)]
pub enum BadOffer {
    /// A tool's name is no good.
    #[error("tool `{tool}`: {reason}")]
    Name {
        /// Which one.
        tool: String,
        /// Why.
        #[source]
        reason: BadName,
    },
    /// A tool's schema is no good.
    #[error("tool `{tool}`, {which}: {reason}")]
    Schema {
        /// Which one.
        tool: String,
        /// `input schema` or `output schema`.
        which: &'static str,
        /// Why.
        #[source]
        reason: BadSchema,
    },
    /// An `x-mcp-header` stands where it may not.
    #[error("tool `{tool}`: {reason}")]
    Header {
        /// Which one.
        tool: String,
        /// Why.
        #[source]
        reason: BadAnnotation,
    },
    /// A URI template is no good.
    #[error("resource template `{template}`: {reason}")]
    Template {
        /// Which one.
        template: String,
        /// Why.
        #[source]
        reason: sabir_wire::BadTemplate,
    },
    /// Something of this name is offered already.
    #[error("there is a {kind} `{name}` already")]
    Taken {
        /// `tool`, `prompt`, …
        kind: &'static str,
        /// Its name.
        name: String,
    },
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Which one.
    pub name: ByteString,
    /// An object that fits the tool's schema, as the client wrote it.
    pub arguments: Raw,
    /// Who asks.
    pub context: Context,
}

/// A call of a prompt.
#[derive(Clone, Debug)]
pub struct PromptCall {
    /// Which one.
    pub name: Box<str>,
    /// By name.
    pub arguments: BTreeMap<String, String>,
    /// Who asks.
    pub context: Context,
}

/// A call of a resource.
#[derive(Clone, Debug)]
pub struct ResourceCall {
    /// Which one.
    pub uri: Box<str>,
    /// The family that it belongs to, unless it was listed by itself.
    pub template: Option<String>,
    /// What the variables of the family are here.
    pub variables: BTreeMap<String, String>,
    /// Who asks.
    pub context: Context,
}

/// A call for completion.
#[derive(Clone, Debug)]
pub struct CompleteCall {
    /// What the argument belongs to.
    pub reference: Reference,
    /// The argument.
    pub argument: Box<str>,
    /// What was typed so far.
    pub value: Box<str>,
    /// Arguments that were given already.
    pub given: BTreeMap<String, String>,
}
