//! The types of the specification, in the shape of its newest revision, one file per page.
//!
//! They are written by [`crate::render::Lowered`], which knows what each revision can say.

mod capabilities;
mod completion;
mod content;
mod input;
mod logging;
mod prompts;
mod resources;
mod results;
mod subscriptions;
mod tools;

pub use capabilities::{ClientCapabilities, Icon, Implementation, ServerCapabilities};
pub use completion::{Completion, Reference};
pub use content::{Annotations, Content, ContentKind, ResourceContents, Role};
pub use input::{
    Action, Elicit, Elicited, Question, Root, Roots, Sample, Sampled, SamplingContent,
};
pub use input::{ModelPreferences, SamplingMessage, ToolChoice};
pub use logging::Level;
pub use prompts::{Prompt, PromptArgument, PromptMessage, PromptReply};
pub use resources::{Resource, ResourceReply, ResourceTemplate};
pub use results::{
    CacheHint, CacheScope, DiscoverResult, InitializeResult, ListPage, Questions, ServerResult,
};
pub use subscriptions::{SubscriptionFilter, Topic};
pub use tools::{Tool, ToolAnnotations, ToolReply};
