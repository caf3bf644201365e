//! Problems, as each revision names them.

use crate::error::{Code, ErrorObject, Problem};
use crate::revision::Revision;
use crate::types::{ServerResult, ToolReply};

/// What a client of `revision` is told of `problem`: an error, or a result that the model can read.
pub fn settle(problem: &Problem, revision: Revision) -> Result<ServerResult, ErrorObject> {
    match problem {
        Problem::ToolFailed(reason) => Ok(ToolReply::failed(reason.as_ref()).into()),
        Problem::Arguments(reason) if revision.speech().icons => {
            Ok(ToolReply::failed(format!("Invalid arguments: {reason}")).into())
        }
        other => Err(error(other, revision)),
    }
}

/// The error that `revision` knows `problem` by.
pub fn error(problem: &Problem, revision: Revision) -> ErrorObject {
    let error = problem.to_error();
    if revision.speech().stateless {
        return error;
    }
    let code = match problem {
        Problem::UnknownResource(_) => Code::RESOURCE_NOT_FOUND,
        Problem::MissingCapability(_) => Code::INVALID_REQUEST,
        _ => error.code,
    };
    ErrorObject { code, ..error }
}
