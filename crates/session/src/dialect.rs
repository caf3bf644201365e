//! Deviations of a deployment from the default, which is the specification.

use sabir_wire::Revision;

/// The `[dialect]` of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// The one revision that is answered to every `initialize`; all are negotiated without it.
    pub revision: Option<Revision>,
    /// The answer to a call of an unknown tool.
    pub unknown_tool: UnknownTool,
    /// The form of a tool's failure.
    pub tool_failure: ToolFailure,
    /// The requests that are refused before the handshake; each transport has a default.
    pub require_ready: Option<RequireReady>,
    /// The error code for a message without a `method`.
    pub missing_method: MissingMethod,
    /// The treatment of a request with the id `null`.
    pub null_id: NullId,
    /// Whether `name` and `version` also appear at the top of the initialize result.
    pub flat_server_info: bool,
}

/// The answer to a call of an unknown tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownTool {
    /// The error -32602.
    #[default]
    InvalidParams,
    /// The error -32601, "Tool not found: NAME".
    MethodNotFound,
    /// A result with `isError`.
    Result,
}

/// The form of a tool's failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolFailure {
    /// A result with `isError`.
    #[default]
    Result,
    /// The error -32603 with the reason.
    InternalError,
}

/// Which requests of a legacy client need a complete handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequireReady {
    /// None.
    None,
    /// `tools/call`.
    Tools,
    /// All but `initialize` and `ping`.
    All,
}

/// The error code for a message without a `method`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingMethod {
    /// The error -32600.
    #[default]
    InvalidRequest,
    /// The error -32700.
    ParseError,
}

/// The treatment of a request with the id `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NullId {
    /// Refused: -32600.
    #[default]
    Refuse,
    /// Answered like any other.
    Answer,
}
