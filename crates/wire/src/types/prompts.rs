//! Prompts. Spec: server/prompts.

use crate::raw::Raw;
use crate::types::{Content, Icon, Role};

/// A prompt, as listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
    /// How it looks.
    pub icons: Vec<Icon>,
    /// For programs.
    pub meta: Option<Raw>,
}

/// An argument of a prompt. Always a string.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptArgument {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt cannot do without.
    pub required: bool,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

/// A prompt, filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptReply {
    /// What it is for.
    pub description: Option<String>,
    /// What to say to the model.
    pub messages: Vec<PromptMessage>,
    /// For programs.
    pub meta: Option<Raw>,
}

impl PromptReply {
    /// One message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::default().says(Role::User, Content::text(text))
    }

    /// One message more.
    pub fn says(mut self, role: Role, content: Content) -> Self {
        self.messages.push(PromptMessage { role, content });
        self
    }
}
