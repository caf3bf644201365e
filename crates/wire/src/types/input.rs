//! Questions to the client, and its answers. Spec: client/elicitation, client/sampling,
//! client/roots; basic/patterns/mrtr.

use serde::{Deserialize, Serialize};

use crate::raw::Raw;
use crate::types::{ClientCapabilities, Content, Role, Tool};

/// Something that only the client can tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Ask the user.
    Elicit(Elicit),
    /// Ask the client's model.
    Sample(Box<Sample>),
    /// Which folders may be used.
    Roots,
}

impl Question {
    /// The method that asks it.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Elicit(_) => "elicitation/create",
            Self::Sample(_) => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// What a client must have declared to be asked.
    pub fn needs(&self) -> ClientCapabilities {
        let mut needs = ClientCapabilities::default();
        match self {
            Self::Elicit(Elicit::Form { .. }) => needs.elicitation_form = true,
            Self::Elicit(Elicit::Url { .. }) => needs.elicitation_url = true,
            Self::Sample(sample) if sample.uses_tools() => needs.sampling_tools = true,
            Self::Sample(_) => needs.sampling = true,
            Self::Roots => needs.roots = true,
        }
        needs
    }
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicit {
    /// A form to fill in.
    Form {
        /// What to tell the user.
        message: String,
        /// A JSON Schema of an object with flat, primitive properties.
        schema: Raw,
    },
    /// A web page to visit; what happens there stays there.
    Url {
        /// What to tell the user.
        message: String,
        /// Where.
        url: String,
    },
}

/// What the user did.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Elicited {
    /// Accepted, declined, or neither.
    pub action: Action,
    /// The form, if it was accepted.
    #[serde(default)]
    pub content: Option<Raw>,
}

/// What the user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Answered it.
    Accept,
    /// PostedMessage no.
    Decline,
    /// Went away.
    Cancel,
}

/// A question to the client's model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// How long the answer may be.
    pub max_tokens: u64,
    /// What the model should be told first.
    pub system_prompt: Option<String>,
    /// Which model would be best.
    pub preferences: Option<ModelPreferences>,
    /// How much chance is wanted.
    pub temperature: Option<f64>,
    /// Where to stop.
    pub stop_sequences: Vec<String>,
    /// For the model's provider.
    pub metadata: Option<Raw>,
    /// Tools that the model may ask for; the asker runs them.
    pub tools: Vec<Tool>,
    /// Whether it must.
    pub tool_choice: Option<ToolChoice>,
}

impl Sample {
    /// One message of the user.
    pub fn user(text: impl Into<String>, max_tokens: u64) -> Self {
        let content = vec![SamplingContent::Block(Content::text(text))];
        let messages = vec![SamplingMessage { role: Role::User, content }];
        Self { messages, max_tokens, ..Self::default() }
    }

    /// Whether it speaks of tools at all: offers them, or tells of their use.
    pub fn uses_tools(&self) -> bool {
        let tells = self.blocks().any(|block| !matches!(block, SamplingContent::Block(_)));
        tells || !self.tools.is_empty() || self.tool_choice.is_some()
    }

    /// All that is said, by whomever.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &SamplingContent> {
        self.messages.iter().flat_map(|message| &message.content)
    }
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Vec<SamplingContent>,
}

/// What such a message is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum SamplingContent {
    /// Text, a picture, a sound.
    Block(Content),
    /// The model wants a tool to be run.
    ToolUse {
        /// To be named in the result.
        id: String,
        /// Which tool.
        name: String,
        /// Its arguments.
        input: Raw,
    },
    /// A tool was run.
    ToolResult {
        /// Which use this answers.
        tool_use_id: String,
        /// What it gave.
        content: Vec<Content>,
        /// Whether it failed.
        is_error: bool,
    },
}

/// Which model would be best. Each from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Names or parts of names, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "hints")]
    pub hints: Vec<String>,
    /// How much price matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much speed matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much ability matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

fn hints<S: serde::Serializer>(names: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(names.iter().map(|name| serde_json::json!({ "name": name })))
}

/// Whether a model must use a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "mode")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
}

/// What the model said.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampled {
    /// Who speaks: the assistant.
    pub role: Role,
    /// What it said: one block, or an array of them.
    pub content: Raw,
    /// Which model it was.
    pub model: String,
    /// Why it stopped.
    #[serde(default)]
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// All text of the answer.
    pub fn text(&self) -> String {
        #[derive(Deserialize)]
        struct Block {
            #[serde(default)]
            text: String,
        }
        let blocks: Vec<Block> = if self.content.is_object() {
            self.content.read().map(|block| vec![block]).unwrap_or_default()
        } else {
            self.content.read().unwrap_or_default()
        };
        blocks.into_iter().map(|block| block.text).collect()
    }
}

/// The client's roots.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Roots {
    /// In the client's order.
    pub roots: Vec<Root>,
}

/// A folder that may be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// Its name, for people.
    #[serde(default)]
    pub name: Option<String>,
}
