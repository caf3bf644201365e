//! Questions to the client's model, and its answers. Spec: client/sampling.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{deserialize, object, read_word, text_of, write_word};
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Content, Role, Tool};

object! {
    /// A question to the client's model.
    #[derive(Clone, Debug, Default, PartialEq)]
    Sample |sample, to| {
        /// The conversation so far.
        messages: Vec<SamplingMessage> = required "messages" as (&*sample.messages_in(to));
        /// Preferences in the choice of the model.
        preferences: Option<ModelPreferences> = optional "modelPreferences";
        /// System prompt for the model.
        system_prompt: Option<String> = optional "systemPrompt";
        /// Randomness of the answer.
        temperature: Option<f64> = optional "temperature";
        /// Greatest length of the answer.
        max_tokens: u64 = required "maxTokens";
        /// Texts that end the answer.
        stop_sequences: Vec<String> = optional "stopSequences";
        /// An object for the model's provider.
        metadata: Option<Raw> = optional "metadata";
        /// Tools that the model may ask for. The server runs them and asks again.
        tools: Vec<Tool> = optional "tools" if to.icons;
        /// Whether the model has to use a tool.
        tool_choice: Option<ToolChoice> = optional "toolChoice" if to.icons;
    }
}

impl Sample {
    /// One message of the user.
    pub fn user(text: impl Into<String>, max_tokens: u64) -> Self {
        let content = vec![SamplingContent::Block(Content::text(text))];
        let messages = vec![SamplingMessage::new(Role::User, content)];
        Self { messages, max_tokens, ..Self::default() }
    }

    /// Whether it offers tools, or its messages contain uses of tools.
    pub fn uses_tools(&self) -> bool {
        let tells = self.blocks().any(|block| !matches!(block, SamplingContent::Block(_)));
        tells || !self.tools.is_empty() || self.tool_choice.is_some()
    }

    /// Before 2025-11-25 each message has one block: several blocks become several messages.
    fn messages_in(&self, to: &Features) -> Cow<'_, [SamplingMessage]> {
        if to.icons {
            return Cow::Borrowed(&self.messages);
        }
        let split = self.messages.iter().flat_map(|message| {
            let SamplingMessage { role, content, extra } = message;
            let extra = extra.without_text("content");
            let blocks = content.iter().map(|block| vec![block.clone()]);
            blocks.map(move |content| SamplingMessage {
                role: *role,
                content,
                extra: extra.clone(),
            })
        });
        split.collect()
    }

    /// The content of all messages.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &SamplingContent> {
        self.messages.iter().flat_map(|message| &message.content)
    }
}

object! {
    /// One message of a conversation with a model.
    #[derive(Clone, Debug, PartialEq)]
    SamplingMessage {
        /// The speaker.
        role: Role = required "role";
        /// Blocks of content. Before 2025-11-25 each becomes a message.
        content: Vec<SamplingContent> = required "content" via Blocks;
    }
}

impl SamplingMessage {
    /// A message.
    pub fn new(role: Role, content: Vec<SamplingContent>) -> Self {
        Self { role, content, extra: Extra::NONE }
    }
}

/// One block, or an array of blocks. The text of an array is kept: it may have one block.
struct Blocks<'a>(Cow<'a, [SamplingContent]>);

impl ReadJson for Blocks<'_> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        if json.is_object() {
            return SamplingContent::read_json(json).map(|block| Self(vec![block].into()));
        }
        Vec::read_json(json).map(|blocks| Self(Cow::Owned(blocks)))
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for Blocks<'_> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        match &*self.0 {
            [one] => one.write_json(to, out),
            several => several.write_json(to, out),
        }
    }

    fn still_says(&self, text: &Raw) -> bool {
        !text.is_object() && Self::read_json(text).is_ok_and(|said| said.0 == self.0)
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
                members.maybe("type")?;
                let (id, name) = (members.take("id")?, members.take("name")?);
                Self::ToolUse { id, name, input: members.take("input")?, extra: members.rest() }
            }
            Some("tool_result") => {
                members.maybe("type")?;
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
                writer.word("type", "tool_use");
                writer.required("id", id);
                writer.required("name", name);
                writer.required("input", input);
            }
            Self::ToolResult { tool_use_id, content, is_error, .. } => {
                writer.word("type", "tool_result");
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

object! {
    /// Preferences in the choice of a model. Each priority is from 0 to 1.
    #[derive(Clone, Debug, Default, PartialEq)]
    ModelPreferences {
        /// Names or parts of names, best first.
        hints: Vec<String> = optional "hints" via Hints;
        /// Importance of a low price.
        cost_priority: Option<f64> = optional "costPriority";
        /// Importance of speed.
        speed_priority: Option<f64> = optional "speedPriority";
        /// Importance of capability.
        intelligence_priority: Option<f64> = optional "intelligencePriority";
    }
}

/// Hints, each an object with a name. Their text is kept for unknown members.
#[derive(PartialEq)]
struct Hints<'a>(Cow<'a, [String]>);

impl ReadJson for Hints<'_> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let hints: Vec<Raw> = ReadJson::read_json(json)?;
        let names = hints.iter().filter_map(|hint| hint.member("name"));
        names.map(|name| text_of(&name)).collect::<Result<_, _>>().map(Self)
    }

    fn absent() -> Option<Self> {
        Some(Self(Cow::Borrowed(&[])))
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for Hints<'_> {
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

/// An object whose text is kept for unknown members.
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

object! {
    /// The model's answer.
    #[derive(Clone, Debug, PartialEq)]
    Sampled |sampled, to| {
        /// The speaker: the assistant.
        role: Role = required "role";
        /// One block of content, or an array of blocks. Before 2025-11-25 an array is written as one
        /// block: its texts together, or else its first block.
        content: Raw = required "content"
            as (&if to.icons { sampled.content.clone() } else { sampled.single() });
        /// Name of the model.
        model: String = required "model";
        /// Why the answer ended, such as `endTurn` or `toolUse`.
        stop_reason: Option<String> = optional "stopReason";
    }
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
            let text = serde_json::json!({ "type": "text", "text": self.text() });
            return Raw::of(&text).unwrap_or_default();
        }
        blocks.swap_remove(0)
    }
}

impl<'de> Deserialize<'de> for Sampled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
