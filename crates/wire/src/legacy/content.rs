//! Content blocks, as each revision says them.

use serde::{Serialize, Serializer};

use super::{Lowered, object};
use crate::types::{
    Annotations, Content, ContentKind, Resource, ResourceContents, SamplingContent,
};

impl Serialize for Lowered<'_, Content> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = self.value;
        let mut map = object(serializer)?;
        match &content.kind {
            ContentKind::Text(text) => {
                map.set("type", "text")?;
                map.set("text", text)?;
            }
            ContentKind::Image { data, mime_type } => {
                map.set("type", "image")?;
                map.set("data", data)?;
                map.set("mimeType", mime_type)?;
            }
            ContentKind::Audio { data, mime_type } if self.speech.audio => {
                map.set("type", "audio")?;
                map.set("data", data)?;
                map.set("mimeType", mime_type)?;
            }
            // A client that has no word for sounds can still keep the bytes.
            ContentKind::Audio { data, mime_type } => {
                let contents = ResourceContents {
                    uri: "embedded:audio".into(),
                    mime_type: Some(mime_type.clone()),
                    body: Err(data.clone()),
                    meta: None,
                };
                map.set("type", "resource")?;
                map.set("resource", &Lowered { value: &contents, speech: self.speech })?;
            }
            ContentKind::Link(resource) if self.speech.structured => {
                map.set("type", "resource_link")?;
                self.part(resource.as_ref()).write_fields(&mut map)?;
                return map.end();
            }
            ContentKind::Link(resource) => {
                map.set("type", "text")?;
                map.set("text", &link_text(resource))?;
            }
            ContentKind::Resource(contents) => {
                map.set("type", "resource")?;
                map.set("resource", &self.part(contents))?;
            }
        }
        map.may("annotations", content.annotations.as_ref().map(|a| self.part(a)).as_ref())?;
        if self.speech.structured {
            map.may("_meta", content.meta.as_ref())?;
        }
        map.end()
    }
}

/// A link for clients that know only text.
fn link_text(resource: &Resource) -> String {
    let name = resource.title.as_ref().unwrap_or(&resource.name);
    match &resource.description {
        Some(description) => format!("{name}: {} ({description})", resource.uri),
        None => format!("{name}: {}", resource.uri),
    }
}

impl Serialize for Lowered<'_, ResourceContents> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let contents = self.value;
        let mut map = object(serializer)?;
        map.set("uri", &contents.uri)?;
        map.may("mimeType", contents.mime_type.as_ref())?;
        match &contents.body {
            Ok(text) => map.set("text", text)?,
            Err(blob) => map.set("blob", blob)?,
        }
        if self.speech.structured {
            map.may("_meta", contents.meta.as_ref())?;
        }
        map.end()
    }
}

impl Serialize for Lowered<'_, Annotations> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        map.list("audience", &self.value.audience)?;
        map.may("priority", self.value.priority.as_ref())?;
        if self.speech.structured {
            map.may("lastModified", self.value.last_modified.as_ref())?;
        }
        map.end()
    }
}

impl Serialize for Lowered<'_, SamplingContent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            SamplingContent::Block(content) => self.part(content).serialize(serializer),
            SamplingContent::ToolUse { id, name, input } => {
                let mut map = object(serializer)?;
                map.set("type", "tool_use")?;
                map.set("id", id)?;
                map.set("name", name)?;
                map.set("input", input)?;
                map.end()
            }
            SamplingContent::ToolResult { tool_use_id, content, is_error } => {
                let mut map = object(serializer)?;
                map.set("type", "tool_result")?;
                map.set("toolUseId", tool_use_id)?;
                map.set("content", &self.parts(content))?;
                if *is_error {
                    map.set("isError", is_error)?;
                }
                map.end()
            }
        }
    }
}
