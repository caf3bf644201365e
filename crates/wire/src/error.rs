//! Reasons for which a request fails, and the JSON-RPC errors that they become.
//!
//! Other crates give the reason as a [`Problem`]. Its code is that of the newest revision;
//! [`crate::render::error`] has the codes of older revisions.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::raw::Raw;
use crate::types::ClientCapabilities;

/// The error of a JSON-RPC response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// Kind of the failure, such as one of [`Code`].
    pub code: i64,
    /// Description in one sentence.
    pub message: Cow<'static, str>,
    /// Details, of any type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

/// The error codes of JSON-RPC and of the protocol.
#[derive(Debug)]
pub struct Code;

impl Code {
    /// The message is not JSON.
    pub const PARSE: i64 = -32700;
    /// The message is not a JSON-RPC 2.0 request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is unknown or not offered.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed.
    pub const INTERNAL: i64 = -32603;
    /// The resource does not exist; up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The user must visit web pages first; only in 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// An HTTP header disagrees with the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client has not declared a capability that the request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The request names a revision that is not served.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// The caller may not do this: a code of our own, outside of the range that JSON-RPC reserves.
    pub const FORBIDDEN: i64 = 403;
}

/// A reason for which a request fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The message is not JSON.
    Syntax(Box<str>),
    /// The message is JSON, but not a JSON-RPC 2.0 request.
    Request(Cow<'static, str>),
    /// The method is unknown or not offered.
    Method(Box<str>),
    /// The params do not fit the method.
    Params(Cow<'static, str>),
    /// No tool has this name.
    UnknownTool(Box<str>),
    /// The arguments do not fit the tool's schema.
    Arguments(Box<str>),
    /// The tool reported a failure.
    ToolFailed(Box<str>),
    /// No resource has this URI.
    UnknownResource(Box<str>),
    /// An HTTP header disagrees with the body.
    Header(Box<str>),
    /// The client has not declared a capability that the request needs.
    MissingCapability(ClientCapabilities),
    /// The request names a revision that is not served.
    Version {
        /// The revision that the request names.
        requested: Box<str>,
        /// The revisions that are served.
        supported: Vec<&'static str>,
    },
    /// The caller was not granted all of these scopes.
    Scopes(Vec<Box<str>>),
    /// The server failed, or reached a limit. The client sees the reason.
    Internal(Cow<'static, str>),
    /// An error that a source chose.
    Chosen(ErrorObject),
}

impl Problem {
    /// The error with the code of the newest revision.
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
            Self::Scopes(needed) => ErrorObject::new(
                Code::FORBIDDEN,
                format!("Insufficient scope (expected {})", needed.join(", ")),
            )
            .with_data(&json!({ "requiredScopes": needed })),
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

    /// Sets the data; leaves it out if it cannot be written as JSON.
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = Raw::of(data).ok();
        self
    }
}
