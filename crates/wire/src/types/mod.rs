//! The types of the specification, in the shape of its newest revision, one file per page.
//!
//! Each can be read from JSON of any revision and written in any ([`crate::ReadJson`],
//! [`crate::WriteJson`]), and keeps the members that it does not know ([`crate::Extra`]).

mod apps;
mod capabilities;
mod completion;
mod content;
mod logging;
mod notifications;
mod prompts;
mod questions;
mod resources;
mod results;
mod sampling;
mod skills;
mod subscriptions;
mod tasks;
mod tools;

pub use apps::{UI, UI_CLIENT, UiCsp, UiTool, UiView, VIEW};
pub use capabilities::{ClientCapabilities, Implementation, ServerCapabilities};
pub(crate) use completion::Texts;
pub use completion::{Completion, CompletionArgument, CompletionContext, Reference};
pub use content::{Annotations, Content, ContentKind, Icon, Role};
pub use logging::Level;
pub(crate) use notifications::subscription_meta;
pub use notifications::{Acknowledged, Cancelled, Changed, ElicitationComplete, LogMessage};
pub use notifications::{Progress, ServerNotification};
pub use prompts::{Prompt, PromptArgument, PromptMessage, PromptReply};
pub use questions::{Action, Elicit, Elicited, Question, Root, Roots};
pub use resources::{Resource, ResourceBody, ResourceContents, ResourceReply, ResourceTemplate};
pub use results::{CacheHint, CacheScope, DiscoverResult, InitializeResult, ListPage, Listed};
pub use results::{Questions, Relayed, ServerResult};
pub use sampling::{
    ModelPreferences, Sample, Sampled, SamplingContent, SamplingMessage, ToolChoice,
};
pub use skills::{FOLDER, SKILLS, Skill, SkillFile, SkillFiles};
pub use subscriptions::{SubscriptionFilter, Topic};
pub use tasks::{TASKS, TaskSupport};
pub use tools::{Tool, ToolAnnotations, ToolExecution, ToolReply};
