//! Prompts. Spec: server/prompts.

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, object};
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Content, Icon, Role};

/// A prompt, as a list has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Unique name, used in requests.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Arguments, in the order in which a form should show them.
    pub arguments: Vec<PromptArgument>,
    /// Images for a user interface, best first.
    pub icons: Vec<Icon>,
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
}

object!(Prompt, prompt, to {
    required "name": name;
    optional "title": title if to.structured;
    optional "description": description;
    optional "arguments": arguments;
    optional "icons": icons if to.icons;
    optional "_meta": meta if to.structured;
});

/// An argument of a prompt. Its value is always a string.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptArgument {
    /// Unique name within the prompt.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Whether a request without it is refused.
    pub required: bool,
    /// Unknown members.
    pub extra: Extra,
}

object!(PromptArgument, argument, to {
    required "name": name;
    optional "title": title if to.structured;
    optional "description": description;
    optional "required": required;
});

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// The speaker.
    pub role: Role,
    /// One block of content.
    pub content: Content,
    /// Unknown members.
    pub extra: Extra,
}

object!(PromptMessage, message, to {
    required "role": role;
    required "content": content;
});

/// The result of `prompts/get`: the prompt with its arguments filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptReply {
    /// Description for people.
    pub description: Option<String>,
    /// Messages for the model.
    pub messages: Vec<PromptMessage>,
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
}

impl PromptReply {
    /// One message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::default().says(Role::User, Content::text(text))
    }

    /// Adds a message.
    pub fn says(mut self, role: Role, content: Content) -> Self {
        self.messages.push(PromptMessage { role, content, extra: Extra::NONE });
        self
    }
}

impl Object for PromptReply {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        members.take_raw("resultType")?;
        let (description, messages) = (members.take("description")?, members.take("messages")?);
        Ok(Self { description, messages, meta: members.take("_meta")?, extra: members.rest() })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.result_type("complete");
        writer.optional("description", &self.description);
        writer.required("messages", &self.messages);
        writer.result_meta(self.meta.as_ref(), None);
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}
