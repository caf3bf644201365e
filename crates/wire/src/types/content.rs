//! Blocks of content. Spec: server/tools, "Tool Result"; server/prompts; client/sampling.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{object, read_word, text_of, write_word};
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Resource, ResourceBody, ResourceContents};

/// One block of content.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The content itself.
    pub kind: ContentKind,
    /// Hints for its use. A link has those of its resource.
    pub annotations: Option<Annotations>,
    /// The `_meta` object. A link has that of its resource.
    pub meta: Option<Raw>,
    /// Unknown members. A link has those of its resource.
    pub extra: Extra,
}

/// The kinds of content.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentKind {
    /// Plain text.
    Text(String),
    /// A picture.
    Image {
        /// The bytes, encoded as Base64.
        data: String,
        /// The format, such as `image/png`.
        mime_type: String,
    },
    /// A sound. In 2024-11-05 it is written as an embedded resource.
    Audio {
        /// The bytes, encoded as Base64.
        data: String,
        /// The format, such as `audio/wav`.
        mime_type: String,
    },
    /// A resource that the client can read. Before 2025-06-18 it is written as text.
    Link(Box<Resource>),
    /// An embedded resource.
    Resource(ResourceContents),
    /// A block of a type that this crate does not know, kept as it is.
    Other(Raw),
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        ContentKind::Text(text.into()).into()
    }

    /// A picture from its bytes.
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        ContentKind::Image { data: STANDARD.encode(bytes), mime_type: mime_type.into() }.into()
    }

    /// A sound from its bytes.
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        ContentKind::Audio { data: STANDARD.encode(bytes), mime_type: mime_type.into() }.into()
    }

    /// A link to a resource.
    pub fn link(resource: Resource) -> Self {
        ContentKind::Link(Box::new(resource)).into()
    }

    /// An embedded resource.
    pub fn resource(contents: ResourceContents) -> Self {
        ContentKind::Resource(contents).into()
    }

    /// Approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        match &self.kind {
            ContentKind::Text(text) => text.len(),
            ContentKind::Image { data, .. } | ContentKind::Audio { data, .. } => data.len(),
            ContentKind::Link(link) => link.uri.len() + link.name.len(),
            ContentKind::Resource(contents) => contents.size(),
            ContentKind::Other(json) => json.text().len(),
        }
    }

    /// Sets the annotations.
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        self.annotations = Some(annotations);
        self
    }
}

impl From<ContentKind> for Content {
    fn from(kind: ContentKind) -> Self {
        Self { kind, annotations: None, meta: None, extra: Extra::NONE }
    }
}

impl Object for Content {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let name = members.peek("type").ok_or_else(|| Invalid::missing("type"))?;
        let name = text_of(name).map_err(|error| error.in_member("type"))?;
        if !["text", "image", "audio", "resource", "resource_link"].contains(&name.as_str()) {
            return Ok(ContentKind::Other(members.take_whole()).into());
        }
        members.maybe("type")?;
        let kind = match name.as_str() {
            "text" => ContentKind::Text(members.take("text")?),
            "resource" => ContentKind::Resource(members.take("resource")?),
            "resource_link" => return Ok(Self::link(Resource::read_members(members)?)),
            name => {
                let (data, mime_type) = (members.take("data")?, members.take("mimeType")?);
                match name {
                    "image" => ContentKind::Image { data, mime_type },
                    _ => ContentKind::Audio { data, mime_type },
                }
            }
        };
        let (annotations, meta) = (members.take("annotations")?, members.take("_meta")?);
        Ok(Self { kind, annotations, meta, extra: members.rest() })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let to = writer.to;
        let (mut annotations, mut meta) = (self.annotations.as_ref(), self.meta.as_ref());
        match &self.kind {
            ContentKind::Text(text) => {
                writer.word("type", "text");
                writer.required("text", text);
            }
            ContentKind::Image { data, mime_type } => {
                writer.word("type", "image");
                writer.required("data", data);
                writer.required("mimeType", mime_type);
            }
            ContentKind::Audio { data, mime_type } if to.audio => {
                writer.word("type", "audio");
                writer.required("data", data);
                writer.required("mimeType", mime_type);
            }
            ContentKind::Audio { data, mime_type } => {
                let body = ResourceBody::Blob(data.clone());
                writer.word("type", "resource");
                let contents = ResourceContents::new("embedded:audio", mime_type, body);
                writer.required("resource", &contents);
            }
            ContentKind::Link(resource) if to.structured => {
                writer.word("type", "resource_link");
                resource.write_members(writer);
                annotations = annotations.filter(|_| resource.annotations.is_none());
                meta = meta.filter(|_| resource.meta.is_none());
            }
            ContentKind::Link(resource) => {
                writer.word("type", "text");
                writer.required("text", &link_text(resource));
            }
            ContentKind::Resource(contents) => {
                writer.word("type", "resource");
                writer.required("resource", contents);
            }
            ContentKind::Other(_) => {}
        }
        writer.maybe("annotations", annotations);
        if to.structured {
            writer.maybe("_meta", meta);
        }
    }

    /// A block that is written as one of another kind has no unknown members.
    fn extra(&self, to: &Features) -> &Extra {
        match &self.kind {
            ContentKind::Link(resource) if to.structured => &resource.extra,
            ContentKind::Link(_) => Extra::none(),
            ContentKind::Audio { .. } if !to.audio => Extra::none(),
            _ => &self.extra,
        }
    }

    fn whole(&self) -> Option<&Raw> {
        match &self.kind {
            ContentKind::Other(json) => Some(json),
            _ => None,
        }
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

object! {
    /// Hints for the use of content.
    #[derive(Clone, Debug, Default, PartialEq)]
    Annotations |annotations, to| {
        /// Intended readers; all if empty.
        audience: Vec<Role> = optional "audience";
        /// Importance from 0 (optional) to 1 (required).
        priority: Option<f64> = optional "priority";
        /// Time of the last change, in ISO 8601.
        last_modified: Option<String> = optional "lastModified" if to.structured;
    }
}

/// The speaker of a message, or the reader of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person who uses the client.
    User,
    /// The model.
    Assistant,
}

impl ReadJson for Role {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        read_word(json, "`user` or `assistant`")
    }
}

impl WriteJson for Role {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_word(self, out);
    }
}

object! {
    /// A picture for a user interface. Spec: basic, "icons".
    #[derive(Clone, Debug, Default, PartialEq)]
    Icon {
        /// `https:` or `data:` URI of the picture.
        src: String = required "src";
        /// Format of the picture, if its URI does not show it.
        mime_type: Option<String> = optional "mimeType";
        /// Sizes in which it can be shown, such as `48x48` or `any`.
        sizes: Vec<String> = optional "sizes";
        /// Background that it is made for: `light` or `dark`.
        theme: Option<String> = optional "theme";
    }
}
