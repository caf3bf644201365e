//! Resources and their templates. Spec: server/resources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, object};
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{Annotations, CacheHint, Icon};

object! {
    /// A resource, as a list or a link has it.
    #[derive(Clone, Debug, Default, PartialEq)]
    Resource |resource, to| {
        /// Unique URI.
        uri: String = required "uri";
        /// Name for programs.
        name: String = required "name";
        /// Display name.
        title: Option<String> = optional "title" if to.structured;
        /// Description for the model.
        description: Option<String> = optional "description";
        /// MIME type of the contents.
        mime_type: Option<String> = optional "mimeType";
        /// Hints for the use of the contents.
        annotations: Option<Annotations> = optional "annotations";
        /// Size of the contents in bytes, before Base64.
        size: Option<u64> = optional "size";
        /// Images for a user interface, best first.
        icons: Vec<Icon> = optional "icons" if to.icons;
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta" if to.structured;
    }
}

object! {
    /// A family of resources, as a list has it.
    #[derive(Clone, Debug, Default, PartialEq)]
    ResourceTemplate |template, to| {
        /// URI with variables (RFC 6570).
        uri_template: String = required "uriTemplate";
        /// Name for programs.
        name: String = required "name";
        /// Display name.
        title: Option<String> = optional "title" if to.structured;
        /// Description for the model.
        description: Option<String> = optional "description";
        /// MIME type of the contents, if all resources have the same.
        mime_type: Option<String> = optional "mimeType";
        /// Hints for the use of the contents.
        annotations: Option<Annotations> = optional "annotations";
        /// Images for a user interface, best first.
        icons: Vec<Icon> = optional "icons" if to.icons;
        /// The `_meta` object.
        meta: Option<Raw> = optional "_meta" if to.structured;
    }
}

/// The contents of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    /// URI of the resource.
    pub uri: String,
    /// MIME type of the body.
    pub mime_type: Option<String>,
    /// The text, or the bytes.
    pub body: ResourceBody,
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
}

/// The body of a resource: text or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    /// UTF-8 text.
    Text(String),
    /// Bytes, encoded as Base64.
    Blob(String),
}

impl ResourceBody {
    /// The text; `None` for bytes.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Blob(_) => None,
        }
    }
}

impl ResourceContents {
    /// Approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        let (ResourceBody::Text(body) | ResourceBody::Blob(body)) = &self.body;
        body.len() + self.uri.len()
    }

    /// Contents with this body.
    pub fn new(uri: impl Into<String>, mime_type: impl Into<String>, body: ResourceBody) -> Self {
        let (uri, mime_type) = (uri.into(), Some(mime_type.into()));
        Self { uri, mime_type, body, meta: None, extra: Extra::NONE }
    }

    /// Text.
    pub fn text(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self::new(uri, mime_type, ResourceBody::Text(text.into()))
    }

    /// Bytes.
    pub fn blob(uri: impl Into<String>, mime_type: impl Into<String>, bytes: &[u8]) -> Self {
        Self::new(uri, mime_type, ResourceBody::Blob(STANDARD.encode(bytes)))
    }
}

impl Object for ResourceContents {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let body = match members.take("text")? {
            Some(text) => ResourceBody::Text(text),
            None => ResourceBody::Blob(members.take("blob")?),
        };
        let (uri, mime_type) = (members.take("uri")?, members.take("mimeType")?);
        Ok(Self { uri, mime_type, body, meta: members.take("_meta")?, extra: members.rest() })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.required("uri", &self.uri);
        writer.optional("mimeType", &self.mime_type);
        match &self.body {
            ResourceBody::Text(text) => writer.required("text", text),
            ResourceBody::Blob(blob) => writer.required("blob", blob),
        }
        if writer.to.structured {
            writer.optional("_meta", &self.meta);
        }
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

object! {
    /// The result of `resources/read`.
    #[derive(Clone, Debug, Default, PartialEq)]
    ResourceReply result "complete" {
        /// Contents of the resource; several for a folder.
        contents: Vec<ResourceContents> = required "contents";
        /// How long a client may keep the contents.
        cache: CacheHint = flat "ttlMs";
        /// The `_meta` object.
        meta: Option<Raw> = result_meta "_meta";
    }
}

impl From<ResourceContents> for ResourceReply {
    fn from(contents: ResourceContents) -> Self {
        Self { contents: vec![contents], ..Self::default() }
    }
}
