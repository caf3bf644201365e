//! What a tool may return.

use sabir_wire::types::{Content, ToolReply};
use serde::Serialize;

use crate::function::error::Error;

/// Something that a tool may return.
pub trait IntoReply {
    /// As the client gets it.
    fn into_reply(self) -> Result<ToolReply, Error>;
}

/// A value for programs: `structuredContent`, and its JSON as text for everybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl IntoReply for ToolReply {
    fn into_reply(self) -> Result<ToolReply, Error> {
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
        Ok(ToolReply { content: vec![self], ..ToolReply::default() })
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

impl<R: IntoReply> IntoReply for Result<R, Error> {
    fn into_reply(self) -> Result<ToolReply, Error> {
        self?.into_reply()
    }
}
