//! Tools. Spec: server/tools.

use serde::{Deserialize, Serialize};

use crate::raw::Raw;
use crate::types::{Content, Icon};

/// A tool, as listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// What it takes: a JSON Schema of an object.
    pub input_schema: Raw,
    /// What it gives: a JSON Schema.
    pub output_schema: Option<Raw>,
    /// Hints for its use.
    pub annotations: Option<ToolAnnotations>,
    /// How it looks.
    pub icons: Vec<Icon>,
    /// For programs.
    pub meta: Option<Raw>,
}

impl Tool {
    /// A tool that takes what `input_schema` says.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Raw) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: Some(description.into()),
            input_schema,
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        }
    }
}

/// What a tool may do. Hints: a client need not believe them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolAnnotations {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Doing it twice is doing it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// What a tool gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolReply {
    /// For the model.
    pub content: Vec<Content>,
    /// For programs; fits the tool's output schema.
    pub structured: Option<Raw>,
    /// The tool failed, and the content says why.
    pub is_error: bool,
    /// For programs.
    pub meta: Option<Raw>,
}

impl ToolReply {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// A failure that the model can read.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(reason) }
    }

    /// One block of content more.
    pub fn and(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// A value, written as JSON both for programs and, where there is no other content, as text.
    pub fn structured<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self { structured: Some(Raw::of(value)?), ..Self::default() })
    }
}
