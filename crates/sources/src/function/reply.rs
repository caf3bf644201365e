//! The return types of handlers.

use sabir_wire::types::{Content, PromptReply, ResourceContents, ResourceReply, ToolReply};
use serde::Serialize;

use crate::function::error::Error;

/// Something that a handler may return for a reply of type `T`: a [`ToolReply`], a [`PromptReply`]
/// or a [`ResourceReply`].
///
/// | handler of a | may return |
/// |---|---|
/// | tool | text, a [`Content`] or several, [`Json`], `()`, a [`ToolReply`] |
/// | prompt | text (what the user says), a [`PromptReply`] |
/// | resource | text, bytes (`Vec<u8>`), [`ResourceContents`], a [`ResourceReply`] |
///
/// or a `Result` of these with any error that converts into [`Error`].
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}` for a `{T}`",
    note = "a closure that ends with `Ok(…)` must name its error: `Ok::<_, Error>(…)`"
)]
pub trait IntoReply<T = ToolReply> {
    /// The reply that the client gets.
    fn into_reply(self) -> Result<T, Error>;
}

/// A value for programs: it becomes `structuredContent`, and its JSON text for all other clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T, R: IntoReply<T>, E: Into<Error>> IntoReply<T> for Result<R, E> {
    fn into_reply(self) -> Result<T, Error> {
        self.map_err(Into::into)?.into_reply()
    }
}

impl IntoReply for ToolReply {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl IntoReply for String {
    fn into_reply(self) -> Result<ToolReply, Error> {
        Ok(ToolReply::text(self))
    }
}

impl IntoReply for &'static str {
    fn into_reply(self) -> Result<ToolReply, Error> {
        Ok(ToolReply::text(self))
    }
}

impl IntoReply for () {
    fn into_reply(self) -> Result<ToolReply, Error> {
        Ok(ToolReply::default())
    }
}

impl IntoReply for Content {
    fn into_reply(self) -> Result<ToolReply, Error> {
        vec![self].into_reply()
    }
}

impl IntoReply for Vec<Content> {
    fn into_reply(self) -> Result<ToolReply, Error> {
        Ok(ToolReply { content: self, ..ToolReply::default() })
    }
}

impl<T: Serialize> IntoReply for Json<T> {
    fn into_reply(self) -> Result<ToolReply, Error> {
        Ok(ToolReply::structured(&self.0)?)
    }
}

impl IntoReply<PromptReply> for PromptReply {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl IntoReply<PromptReply> for String {
    fn into_reply(self) -> Result<PromptReply, Error> {
        Ok(PromptReply::user(self))
    }
}

impl IntoReply<PromptReply> for &'static str {
    fn into_reply(self) -> Result<PromptReply, Error> {
        Ok(PromptReply::user(self))
    }
}

impl IntoReply<ResourceReply> for ResourceReply {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl IntoReply<ResourceReply> for ResourceContents {
    fn into_reply(self) -> Result<ResourceReply, Error> {
        Ok(self.into())
    }
}

// The URI and the media type are those of the resource: its source completes them.
impl IntoReply<ResourceReply> for String {
    fn into_reply(self) -> Result<ResourceReply, Error> {
        Ok(ResourceContents { mime_type: None, ..ResourceContents::text("", "", self) }.into())
    }
}

impl IntoReply<ResourceReply> for &'static str {
    fn into_reply(self) -> Result<ResourceReply, Error> {
        self.to_owned().into_reply()
    }
}

impl IntoReply<ResourceReply> for Vec<u8> {
    fn into_reply(self) -> Result<ResourceReply, Error> {
        Ok(ResourceContents { mime_type: None, ..ResourceContents::blob("", "", &self) }.into())
    }
}
