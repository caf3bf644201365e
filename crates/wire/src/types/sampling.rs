//! Questions to the client's model, and its answers. Spec: client/sampling.

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{deserialize, read_word, text_of, write_word};
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Content, Role, Tool};

/// A question to the client's model. Others of its members, such as `includeContext`, are unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Greatest length of the answer.
    pub max_tokens: u64,
    /// System prompt for the model.
    pub system_prompt: Option<String>,
    /// Preferences in the choice of the model.
    pub preferences: Option<ModelPreferences>,
    /// Randomness of the answer.
    pub temperature: Option<f64>,
    /// Texts that end the answer.
    pub stop_sequences: Vec<String>,
    /// An object for the model's provider.
    pub metadata: Option<Raw>,
    /// Tools that the model may ask for. The server runs them and asks again.
    pub tools: Vec<Tool>,
    /// Whether the model has to use a tool.
    pub tool_choice: Option<ToolChoice>,
    /// Unknown members.
    pub extra: Extra,
}

impl Sample {
    /// One message of the user.
    pub fn user(text: impl Into<String>, max_tokens: u64) -> Self {
        let content = vec![SamplingContent::Block(Content::text(text))];
        let messages = vec![SamplingMessage::new(Role::User, content)];
        Self { messages, max_tokens, ..Self::default() }
    }

    /// Whether it offers tools, or its messages tell of their use.
    pub fn uses_tools(&self) -> bool {
        let tells = self.blocks().any(|block| !matches!(block, SamplingContent::Block(_)));
        tells || !self.tools.is_empty() || self.tool_choice.is_some()
    }

    /// The content of all messages.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &SamplingContent> {
        self.messages.iter().flat_map(|message| &message.content)
    }
}

impl Object for Sample {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        Ok(Self {
            messages: members.take("messages")?,
            max_tokens: members.take("maxTokens")?,
            system_prompt: members.take("systemPrompt")?,
            preferences: members.take("modelPreferences")?,
            temperature: members.take("temperature")?,
            stop_sequences: members.take("stopSequences")?,
            metadata: members.take("metadata")?,
            tools: members.take("tools")?,
            tool_choice: members.take("toolChoice")?,
            extra: members.rest(),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let to = writer.to;
        if to.icons {
            writer.required("messages", &self.messages);
        } else {
            // Each message has one block; several blocks become several messages.
            let split = self.messages.iter().flat_map(|message| {
                let alone = |block: &SamplingContent| vec![block.clone()];
                let blocks = message.content.iter().map(alone);
                blocks.map(|content| SamplingMessage { content, ..message.clone() })
            });
            writer.required("messages", &split.collect::<Vec<_>>());
        }
        writer.optional("modelPreferences", &self.preferences);
        writer.optional("systemPrompt", &self.system_prompt);
        writer.optional("temperature", &self.temperature);
        writer.required("maxTokens", &self.max_tokens);
        writer.optional("stopSequences", &self.stop_sequences);
        writer.optional("metadata", &self.metadata);
        if to.icons {
            writer.optional("tools", &self.tools);
            writer.optional("toolChoice", &self.tool_choice);
        }
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingMessage {
    /// The speaker.
    pub role: Role,
    /// Blocks of content. Before 2025-11-25 each becomes a message.
    pub content: Vec<SamplingContent>,
    /// Unknown members.
    pub extra: Extra,
}

impl SamplingMessage {
    /// A message.
    pub fn new(role: Role, content: Vec<SamplingContent>) -> Self {
        Self { role, content, extra: Extra::NONE }
    }
}

impl Object for SamplingMessage {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let Blocks(content) = members.take("content")?;
        Ok(Self { role: members.take("role")?, content, extra: members.rest() })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.required("role", &self.role);
        match self.content.as_slice() {
            [one] => writer.required("content", one),
            several => writer.required("content", several),
        }
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

/// One block, or an array of blocks.
struct Blocks(Vec<SamplingContent>);

impl ReadJson for Blocks {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        if json.is_object() {
            return SamplingContent::read_json(json).map(|block| Self(vec![block]));
        }
        ReadJson::read_json(json).map(Self)
    }
}

/// A block of content of a sampling message.
#[derive(Clone, Debug, PartialEq)]
pub enum SamplingContent {
    /// Text, a picture or a sound.
    Block(Content),
    /// The model asks for a tool.
    ToolUse {
        /// Name of this use, which the result repeats.
        id: String,
        /// Name of the tool.
        name: String,
        /// Arguments, an object.
        input: Raw,
        /// Unknown members.
        extra: Extra,
    },
    /// The result of a tool.
    ToolResult {
        /// Name of the use that it answers.
        tool_use_id: String,
        /// Content for the model.
        content: Vec<Content>,
        /// The tool failed, and the content says why.
        is_error: bool,
        /// Unknown members.
        extra: Extra,
    },
}

impl Object for SamplingContent {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let name = members.peek("type").and_then(|name| text_of(name).ok());
        Ok(match name.as_deref() {
            Some("tool_use") => {
                members.take_raw("type")?;
                let (id, name) = (members.take("id")?, members.take("name")?);
                Self::ToolUse { id, name, input: members.take("input")?, extra: members.rest() }
            }
            Some("tool_result") => {
                members.take_raw("type")?;
                let (tool_use_id, content) = (members.take("toolUseId")?, members.take("content")?);
                let is_error = members.take("isError")?;
                Self::ToolResult { tool_use_id, content, is_error, extra: members.rest() }
            }
            _ => Self::Block(Content::read_members(members)?),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        match self {
            Self::Block(content) => content.write_members(writer),
            Self::ToolUse { id, name, input, .. } => {
                writer.required("type", "tool_use");
                writer.required("id", id);
                writer.required("name", name);
                writer.required("input", input);
            }
            Self::ToolResult { tool_use_id, content, is_error, .. } => {
                writer.required("type", "tool_result");
                writer.required("toolUseId", tool_use_id);
                writer.required("content", content);
                writer.optional("isError", is_error);
            }
        }
    }

    fn extra(&self, to: &Features) -> &Extra {
        match self {
            Self::Block(content) => content.extra(to),
            Self::ToolUse { extra, .. } | Self::ToolResult { extra, .. } => extra,
        }
    }

    fn whole(&self) -> Option<&Raw> {
        match self {
            Self::Block(content) => content.whole(),
            _ => None,
        }
    }
}

/// Preferences in the choice of a model. Each priority is from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelPreferences {
    /// Names or parts of names, best first.
    pub hints: Vec<String>,
    /// Importance of a low price.
    pub cost_priority: Option<f64>,
    /// Importance of speed.
    pub speed_priority: Option<f64>,
    /// Importance of capability.
    pub intelligence_priority: Option<f64>,
    /// Unknown members.
    pub extra: Extra,
}

impl Object for ModelPreferences {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        Ok(Self {
            hints: members.take::<Option<Hints>>("hints")?.map(|hints| hints.0).unwrap_or_default(),
            cost_priority: members.take("costPriority")?,
            speed_priority: members.take("speedPriority")?,
            intelligence_priority: members.take("intelligencePriority")?,
            extra: members.rest(),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.optional("hints", &Hints(self.hints.clone()));
        writer.optional("costPriority", &self.cost_priority);
        writer.optional("speedPriority", &self.speed_priority);
        writer.optional("intelligencePriority", &self.intelligence_priority);
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

/// Hints, each an object with a name. Their text is kept, for what else they may hold.
#[derive(PartialEq)]
struct Hints(Vec<String>);

impl ReadJson for Hints {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let hints: Vec<Raw> = ReadJson::read_json(json)?;
        let names = hints.iter().filter_map(|hint| hint.member("name"));
        names.map(|name| text_of(&name)).collect::<Result<_, _>>().map(Self)
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for Hints {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        let hints: serde_json::Value =
            self.0.iter().map(|name| serde_json::json!({ "name": name })).collect();
        out.extend_from_slice(hints.to_string().as_bytes());
    }

    fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    fn still_says(&self, text: &Raw) -> bool {
        Self::read_json(text).is_ok_and(|said| said == *self)
    }
}

/// Whether a model has to use a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "mode")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model uses at least one tool.
    Required,
    /// The model uses no tool.
    None,
}

/// An object, whose text is kept for what else it may hold.
impl ReadJson for ToolChoice {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        if json.is_object() && json.member("mode").is_none() {
            return Ok(Self::Auto);
        }
        read_word(json, "a mode of `auto`, `required` or `none`")
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for ToolChoice {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_word(self, out);
    }

    fn still_says(&self, text: &Raw) -> bool {
        Self::read_json(text).is_ok_and(|said| said == *self)
    }
}

/// The model's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The speaker: the assistant.
    pub role: Role,
    /// One block of content, or an array of blocks. Before 2025-11-25 an array is written as one
    /// block: its texts together, or else its first block.
    pub content: Raw,
    /// Name of the model.
    pub model: String,
    /// Why the answer ended, such as `endTurn` or `toolUse`.
    pub stop_reason: Option<String>,
    /// Unknown members.
    pub extra: Extra,
}

impl Sampled {
    /// All text of the answer.
    pub fn text(&self) -> String {
        let text = |block: &Raw| block.member("text").and_then(|text| text_of(&text).ok());
        self.blocks().iter().filter_map(text).collect()
    }

    fn blocks(&self) -> Vec<Raw> {
        self.content.items().unwrap_or_else(|| vec![self.content.clone()])
    }

    /// The content as one block.
    fn single(&self) -> Raw {
        let is_text = |block: &Raw| block.member("text").is_some();
        let mut blocks = self.blocks();
        if blocks.len() != 1 && blocks.iter().all(is_text) {
            return Content::text(self.text()).to_raw(crate::Revision::V2024_11_05);
        }
        blocks.swap_remove(0)
    }
}

impl Object for Sampled {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let (role, content) = (members.take("role")?, members.take("content")?);
        let (model, stop_reason) = (members.take("model")?, members.take("stopReason")?);
        Ok(Self { role, content, model, stop_reason, extra: members.rest() })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.required("role", &self.role);
        match writer.to.icons {
            true => writer.required("content", &self.content),
            false => writer.required("content", &self.single()),
        }
        writer.required("model", &self.model);
        writer.optional("stopReason", &self.stop_reason);
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

impl<'de> Deserialize<'de> for Sampled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
