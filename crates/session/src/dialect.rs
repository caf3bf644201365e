//! How a deployment deviates from the default, which is the specification's.

use sabir_wire::Revision;

/// The `[dialect]` of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// The one revision that is answered to every `initialize`; all are negotiated without it.
    pub revision: Option<Revision>,
    /// What a call of an unknown tool gets.
    pub unknown_tool: UnknownTool,
    /// What a tool's failure becomes.
    pub tool_failure: ToolFailure,
    /// What a legacy client may do before the handshake is complete; each transport has a default.
    pub require_ready: Option<RequireReady>,
    /// What a message without a `method` gets.
    pub missing_method: MissingMethod,
    /// What a request with the id `null` is.
    pub null_id: NullId,
    /// Whether `name` and `version` stand at the top of the initialize result too.
    pub flat_server_info: bool,
}

/// What a call of an unknown tool gets.
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

/// What a tool's failure becomes.
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

/// What a message without a `method` gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingMethod {
    /// The error -32600.
    #[default]
    InvalidRequest,
    /// The error -32700.
    ParseError,
}

/// What a request with the id `null` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NullId {
    /// Refused: -32600.
    #[default]
    Refuse,
    /// Answered like any other.
    Answer,
}
