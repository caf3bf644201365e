//! Prompts. Spec: server/prompts.

use crate::json::{Extra, object};
use crate::raw::Raw;
use crate::types::{Content, Icon, Role};

object! {
    /// A prompt, as a list has it.
    #[derive(Clone, Debug, Default, PartialEq)]
    Prompt |prompt, to| {
        /// Unique name, used in requests.
        name: String = required "name";
        /// Display name.
        title: Option<String> = optional "title" if to.structured;
        /// Description for people.
        description: Option<String> = optional "description";
        /// Arguments, in the order in which a form should show them.
        arguments: Vec<PromptArgument> = optional "arguments";
        /// Images for a user interface, best first.
        icons: Vec<Icon> = optional "icons" if to.icons;
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta" if to.structured;
    }
}

object! {
    /// An argument of a prompt. Its value is always a string.
    #[derive(Clone, Debug, Default, PartialEq)]
    PromptArgument |argument, to| {
        /// Unique name within the prompt.
        name: String = required "name";
        /// Display name.
        title: Option<String> = optional "title" if to.structured;
        /// Description for people.
        description: Option<String> = optional "description";
        /// Whether a request without it is refused.
        required: bool = optional "required";
    }
}

object! {
    /// One message of a prompt.
    #[derive(Clone, Debug, PartialEq)]
    PromptMessage {
        /// The speaker.
        role: Role = required "role";
        /// One block of content.
        content: Content = required "content";
    }
}

object! {
    /// The result of `prompts/get`: the prompt with its arguments filled in.
    #[derive(Clone, Debug, Default, PartialEq)]
    PromptReply result "complete" {
        /// Description for people.
        description: Option<String> = optional "description";
        /// Messages for the model.
        messages: Vec<PromptMessage> = required "messages";
        /// The `_meta` object.
        meta: Option<Raw> = result_meta "_meta";
    }
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
