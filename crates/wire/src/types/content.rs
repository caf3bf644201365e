//! What results are made of. Spec: server/tools, "Tool Result"; server/resources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::raw::Raw;
use crate::types::Resource;

/// One block of content.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// What it is.
    pub kind: ContentKind,
    /// Hints for its use.
    pub annotations: Option<Annotations>,
    /// For programs.
    pub meta: Option<Raw>,
}

/// The kinds of content.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentKind {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// `image/png`, …
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Base64.
        data: String,
        /// `audio/wav`, …
        mime_type: String,
    },
    /// A resource that can be read later.
    Link(Box<Resource>),
    /// A resource, included.
    Resource(ResourceContents),
}

impl Content {
    /// Text.
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

    /// A resource, included.
    pub fn resource(contents: ResourceContents) -> Self {
        ContentKind::Resource(contents).into()
    }

    /// The same with annotations.
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        self.annotations = Some(annotations);
        self
    }
}

impl From<ContentKind> for Content {
    fn from(kind: ContentKind) -> Self {
        Self { kind, annotations: None, meta: None }
    }
}

/// Whom a thing is for, how much it matters, how old it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whom it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// From 0 (optional) to 1 (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// Who speaks or listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// What a resource holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    /// Where it was found.
    pub uri: String,
    /// What it is.
    pub mime_type: Option<String>,
    /// The text, or the bytes.
    pub body: ResourceBody,
    /// For programs.
    pub meta: Option<Raw>,
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
    /// Text.
    pub fn text(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let (uri, mime_type) = (uri.into(), Some(mime_type.into()));
        Self { uri, mime_type, body: ResourceBody::Text(text.into()), meta: None }
    }

    /// Bytes.
    pub fn blob(uri: impl Into<String>, mime_type: impl Into<String>, bytes: &[u8]) -> Self {
        let (uri, mime_type) = (uri.into(), Some(mime_type.into()));
        Self { uri, mime_type, body: ResourceBody::Blob(STANDARD.encode(bytes)), meta: None }
    }
}
