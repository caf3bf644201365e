//! Why a function gives no result.

use sabir_registry::{Answer, Ask, Outcome};
use sabir_wire::{ErrorObject, Problem};

/// Why a function gives no result: it failed, or it must ask the client first.
///
/// Any error of Rust's becomes one with `?`; its text is what the model reads. So it does not
/// implement [`std::error::Error`] itself.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Failed(String),
    Problem(Problem),
    Ask(Ask),
}

impl Error {
    /// The function failed; the model is told why, and may try something else.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self(Kind::Failed(reason.into()))
    }

    /// The request itself is at fault: a JSON-RPC error with a code of yours.
    pub fn protocol(code: i64, message: impl Into<String>) -> Self {
        Self(Kind::Problem(Problem::Chosen(ErrorObject::new(code, message.into()))))
    }

    /// There is no such resource.
    pub fn no_such_resource(uri: impl Into<Box<str>>) -> Self {
        Self(Kind::Problem(Problem::UnknownResource(uri.into())))
    }

    pub(crate) fn ask(ask: Ask) -> Self {
        Self(Kind::Ask(ask))
    }

    pub(crate) fn problem(problem: Problem) -> Self {
        Self(Kind::Problem(problem))
    }

    /// As the source of a tool says it: a failure is for the model to read.
    pub(crate) fn into_tool_answer<T>(self) -> Answer<T> {
        match self.0 {
            Kind::Failed(reason) => Err(Problem::ToolFailed(reason.into())),
            other => Self(other).into_answer(),
        }
    }

    /// As the source of a prompt or a resource says it.
    pub(crate) fn into_answer<T>(self) -> Answer<T> {
        match self.0 {
            Kind::Failed(reason) => Err(Problem::Internal(reason.into())),
            Kind::Problem(problem) => Err(problem),
            Kind::Ask(ask) => Ok(Outcome::NeedInput(ask)),
        }
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self::failed(error.to_string())
    }
}
