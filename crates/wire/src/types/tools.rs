//! Tools. Spec: server/tools.

use std::borrow::Cow;

use serde::Serialize;

use crate::json::object;
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Content, Icon, TaskSupport};

object! {
    /// A tool, as a list has it.
    #[derive(Clone, Debug, Default, PartialEq)]
    Tool |tool, to| {
        /// Unique name, used in calls.
        name: String = required "name";
        /// Display name.
        title: Option<String> = optional "title" if to.structured;
        /// Description for the model.
        description: Option<String> = optional "description";
        /// JSON Schema of the arguments; always of type `object`.
        input_schema: Raw = required "inputSchema";
        /// JSON Schema of the structured result. Before 2026-07-28 only of type `object`.
        output_schema: Option<Raw> = optional "outputSchema"
            if to.structured && (to.stateless || tool.gives_object());
        /// Hints about the behaviour.
        annotations: Option<ToolAnnotations> = optional "annotations" if to.audio;
        /// Images for a user interface, best first.
        icons: Vec<Icon> = optional "icons" if to.icons;
        /// How the tool can be called, in 2025-11-25.
        execution: Option<ToolExecution> = optional "execution" if to.core_tasks;
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta" if to.structured;
    }
}

object! {
    /// How a tool can be called.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    ToolExecution {
        /// Whether a call can be a task; absent means no.
        task_support: Option<TaskSupport> = optional "taskSupport";
    }
}

impl Tool {
    /// A tool with a name, a description and the schema of its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Raw) -> Self {
        let (name, description) = (name.into(), Some(description.into()));
        Self { name, description, input_schema, ..Self::default() }
    }

    fn gives_object(&self) -> bool {
        let kind = self.output_schema.as_ref().and_then(|schema| schema.member("type"));
        kind.is_some_and(|kind| kind.read::<&str>().is_ok_and(|kind| kind == "object"))
    }
}

object! {
    /// Hints about the behaviour of a tool, which a client need not trust.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    ToolAnnotations {
        /// Display name, for clients that do not know [`Tool::title`].
        title: Option<String> = optional "title";
        /// The tool does not change its environment.
        read_only_hint: Option<bool> = optional "readOnlyHint";
        /// The tool may delete or overwrite.
        destructive_hint: Option<bool> = optional "destructiveHint";
        /// Repeating a call with the same arguments has no further effect.
        idempotent_hint: Option<bool> = optional "idempotentHint";
        /// The tool reaches systems beyond this server, such as the web.
        open_world_hint: Option<bool> = optional "openWorldHint";
    }
}

object! {
    /// The result of a tool call.
    #[derive(Clone, Debug, Default, PartialEq)]
    ToolReply |reply, to| result "complete" {
        /// Content for the model.
        content: Vec<Content> = required "content" as (&*reply.content_in(to));
        /// A JSON value that fits the tool's output schema. Before 2026-07-28 only an object. If
        /// there is no other content, it is also written as text, unless it was read without
        /// content and the revision has `structuredContent`.
        structured: Option<Raw> = maybe "structuredContent" as (reply.structured_in(to));
        /// The call failed, and the content says why.
        is_error: bool = optional "isError";
        /// The `_meta` object.
        meta: Option<Raw> = result_meta "_meta";
    }
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

    /// Whether the result of a tool, as JSON, reports a failure. Only a result that contains the
    /// word is parsed.
    pub fn is_failure(result: &Raw) -> bool {
        result.text().contains("\"isError\"")
            && result.member("isError").is_some_and(|value| value.text() == "true")
    }

    /// Adds a block of content.
    pub fn and(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// A value that is written as JSON, for programs and, without other content, as text.
    pub fn structured<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self { structured: Some(Raw::of(value)?), ..Self::default() })
    }

    fn content_in(&self, to: &Features) -> Cow<'_, [Content]> {
        let is_alone = self.extra.is_empty() || self.structured_in(to).is_none();
        match &self.structured {
            Some(value) if self.content.is_empty() && is_alone => {
                vec![Content::text(value.text())].into()
            }
            _ => Cow::Borrowed(&self.content),
        }
    }

    fn structured_in(&self, to: &Features) -> Option<&Raw> {
        let has_place = |value: &&Raw| to.stateless || (to.structured && value.is_object());
        self.structured.as_ref().filter(has_place)
    }
}
