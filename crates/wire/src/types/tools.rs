//! Tools. Spec: server/tools.

use serde::Serialize;

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, object};
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Content, Icon};

/// A tool, as a list has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Unique name, used in calls.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description for the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments; always of type `object`.
    pub input_schema: Raw,
    /// JSON Schema of the structured result. Before 2026-07-28 only of type `object`.
    pub output_schema: Option<Raw>,
    /// Hints about the behaviour.
    pub annotations: Option<ToolAnnotations>,
    /// Images for a user interface, best first.
    pub icons: Vec<Icon>,
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
}

object!(Tool, tool, to {
    required "name": name;
    optional "title": title if to.structured;
    optional "description": description;
    required "inputSchema": input_schema;
    optional "outputSchema": output_schema if to.structured && (to.stateless || tool.gives_object());
    optional "annotations": annotations if to.audio;
    optional "icons": icons if to.icons;
    optional "_meta": meta if to.structured;
});

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

/// A tool without a name that takes any object.
impl Default for Tool {
    fn default() -> Self {
        Self {
            name: String::new(),
            title: None,
            description: None,
            input_schema: Raw::any_object_schema(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
            extra: Extra::NONE,
        }
    }
}

/// Hints about the behaviour of a tool, which a client need not trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// Display name, for clients that do not know [`Tool::title`].
    pub title: Option<String>,
    /// The tool does not change its environment.
    pub read_only_hint: Option<bool>,
    /// The tool may delete or overwrite.
    pub destructive_hint: Option<bool>,
    /// Repeating a call with the same arguments has no further effect.
    pub idempotent_hint: Option<bool>,
    /// The tool reaches systems beyond this server, such as the web.
    pub open_world_hint: Option<bool>,
    /// Unknown members.
    pub extra: Extra,
}

object!(ToolAnnotations, annotations, to {
    optional "title": title;
    optional "readOnlyHint": read_only_hint;
    optional "destructiveHint": destructive_hint;
    optional "idempotentHint": idempotent_hint;
    optional "openWorldHint": open_world_hint;
});

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolReply {
    /// Content for the model.
    pub content: Vec<Content>,
    /// A JSON value that fits the tool's output schema. Before 2026-07-28 only an object. If there
    /// is no other content, it is written as text too.
    pub structured: Option<Raw>,
    /// The call failed, and the content says why.
    pub is_error: bool,
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
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

    /// Adds a block of content.
    pub fn and(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// A value that is written as JSON, for programs and, without other content, as text.
    pub fn structured<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self { structured: Some(Raw::of(value)?), ..Self::default() })
    }
}

impl Object for ToolReply {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        members.take_raw("resultType")?;
        Ok(Self {
            content: members.take("content")?,
            structured: members.take_raw("structuredContent")?,
            is_error: members.take("isError")?,
            meta: members.take("_meta")?,
            extra: members.rest(),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let to = writer.to;
        writer.result_type("complete");
        match &self.structured {
            Some(value) if self.content.is_empty() => {
                writer.required("content", [Content::text(value.text())].as_slice());
            }
            _ => writer.required("content", &self.content),
        }
        let has_place = |value: &&Raw| to.stateless || (to.structured && value.is_object());
        writer.maybe("structuredContent", self.structured.as_ref().filter(has_place));
        writer.optional("isError", &self.is_error);
        writer.result_meta(self.meta.as_ref(), None);
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}
