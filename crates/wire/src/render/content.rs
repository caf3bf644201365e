//! Content blocks, as each revision says them.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Lowered, Object, object};
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
            ContentKind::Audio { data, mime_type } if self.features.audio => {
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
                map.set("resource", &Lowered { value: &contents, features: self.features })?;
            }
            ContentKind::Link(resource) if self.features.structured => {
                map.set("type", "resource_link")?;
                self.part(resource.as_ref()).write_fields(&mut map)?;
                // The block and the resource it names share these; the resource's own come first.
                let (annotations, meta) = (&resource.annotations, &resource.meta);
                return self.write_extras(map, annotations.is_none(), meta.is_none());
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
        self.write_extras(map, true, true)
    }
}

impl Lowered<'_, Content> {
    /// What every kind of content may carry, as far as it is wanted; then the end.
    fn write_extras<M: SerializeMap>(
        &self,
        mut map: Object<M>,
        annotations: bool,
        meta: bool,
    ) -> Result<M::Ok, M::Error> {
        let hints = self.value.annotations.as_ref().filter(|_| annotations);
        map.may("annotations", hints.map(|hints| self.part(hints)).as_ref())?;
        if self.features.structured {
            map.may("_meta", self.value.meta.as_ref().filter(|_| meta))?;
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
        if self.features.structured {
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
        if self.features.structured {
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
