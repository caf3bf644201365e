//! What can be wrong with a request, and the JSON-RPC error it becomes.
//!
//! The inside says *what* is wrong, as a [`Problem`]. Its code is a total match, made once for the
//! newest revision; [`crate::render`] knows which older revisions named it otherwise.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::raw::Raw;
use crate::types::ClientCapabilities;

/// The error of a JSON-RPC response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// What kind of failure it is.
    pub code: i64,
    /// One sentence.
    pub message: Cow<'static, str>,
    /// Whatever helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

/// The codes that this crate gives.
#[derive(Debug)]
pub struct Code;

impl Code {
    /// Not JSON.
    pub const PARSE: i64 = -32700;
    /// Not a JSON-RPC 2.0 message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method here.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Our own failure.
    pub const INTERNAL: i64 = -32603;
    /// No such resource, up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Web pages must be visited first, in 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// An HTTP header disagrees with the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client did not declare what this request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The client speaks a revision that we do not.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The message is not JSON.
    Syntax(Box<str>),
    /// The message is JSON, but no JSON-RPC 2.0 request.
    Request(Cow<'static, str>),
    /// Nobody answers this method.
    Method(Box<str>),
    /// The params do not fit the method.
    Params(Cow<'static, str>),
    /// No tool has this name.
    UnknownTool(Box<str>),
    /// The arguments do not fit the tool's schema.
    Arguments(Box<str>),
    /// The tool says that it failed.
    ToolFailed(Box<str>),
    /// No resource has this URI.
    UnknownResource(Box<str>),
    /// An HTTP header disagrees with the body.
    Header(Box<str>),
    /// The client did not declare what this request needs.
    MissingCapability(ClientCapabilities),
    /// The request names a revision that is not served.
    Version {
        /// What it named.
        requested: Box<str>,
        /// What it may name instead.
        supported: Vec<&'static str>,
    },
    /// A bound was reached, or we failed. The reason may be shown to the client.
    Internal(Cow<'static, str>),
    /// An error that a source chose itself.
    Chosen(ErrorObject),
}

impl Problem {
    /// The error, as the newest revision names it.
    pub fn to_error(&self) -> ErrorObject {
        match self {
            Self::Syntax(reason) => ErrorObject::new(Code::PARSE, format!("Parse error: {reason}")),
            Self::Request(reason) => {
                ErrorObject::new(Code::INVALID_REQUEST, format!("Invalid request: {reason}"))
            }
            Self::Method(method) => {
                ErrorObject::new(Code::METHOD_NOT_FOUND, format!("Method not found: {method}"))
            }
            Self::Params(reason) => {
                ErrorObject::new(Code::INVALID_PARAMS, format!("Invalid params: {reason}"))
            }
            Self::UnknownTool(name) => {
                ErrorObject::new(Code::INVALID_PARAMS, format!("Unknown tool: {name}"))
            }
            Self::Arguments(reason) => {
                ErrorObject::new(Code::INVALID_PARAMS, format!("Invalid arguments: {reason}"))
            }
            Self::ToolFailed(reason) => {
                ErrorObject::new(Code::INTERNAL, String::from(reason.clone()))
            }
            Self::UnknownResource(uri) => {
                ErrorObject::new(Code::INVALID_PARAMS, format!("Resource not found: {uri}"))
                    .with_data(&json!({ "uri": uri }))
            }
            Self::Header(reason) => {
                ErrorObject::new(Code::HEADER_MISMATCH, format!("Header mismatch: {reason}"))
            }
            Self::MissingCapability(needed) => ErrorObject::new(
                Code::MISSING_CAPABILITY,
                format!("This request needs a client with {}", needed.names()),
            )
            .with_data(&json!({ "requiredCapabilities": needed })),
            Self::Version { requested, supported } => {
                ErrorObject::new(Code::UNSUPPORTED_VERSION, "Unsupported protocol version")
                    .with_data(&json!({ "supported": supported, "requested": requested }))
            }
            Self::Internal(reason) => ErrorObject::new(Code::INTERNAL, reason.clone()),
            Self::Chosen(error) => error.clone(),
        }
    }
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same with `data`. What cannot be written as JSON is left out.
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = Raw::of(data).ok();
        self
    }
}
