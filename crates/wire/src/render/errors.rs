//! Problems, as each revision names them.

use crate::error::{Code, ErrorObject, Problem};
use crate::revision::Revision;
use crate::types::{ServerResult, ToolReply};

/// What a client of `revision` is told of `problem`: an error, or a result that the model can read.
pub fn settle(problem: &Problem, revision: Revision) -> Result<ServerResult, ErrorObject> {
    match problem {
        Problem::ToolFailed(reason) => Ok(ToolReply::failed(reason.as_ref()).into()),
        Problem::Arguments(reason) if revision.features().icons => {
            Ok(ToolReply::failed(format!("Invalid arguments: {reason}")).into())
        }
        other => Err(error(other, revision)),
    }
}

/// The error that `revision` knows `problem` by.
pub fn error(problem: &Problem, revision: Revision) -> ErrorObject {
    let error = problem.to_error();
    let code = match (problem, error.code, revision.features().stateless) {
        (Problem::Chosen(_), code, true) => allowed(code),
        (_, code, true) => code,
        (Problem::UnknownResource(_), ..) => Code::RESOURCE_NOT_FOUND,
        (Problem::MissingCapability(_), ..) => Code::INVALID_REQUEST,
        (_, code, _) => code,
    };
    ErrorObject { code, ..error }
}

/// What a source chose, or an older server that we relay, as far as the newest revision allows it:
/// codes that were retired must not be used, nor those that the specification keeps for itself.
fn allowed(code: i64) -> i64 {
    match code {
        Code::RESOURCE_NOT_FOUND => Code::INVALID_PARAMS,
        Code::HEADER_MISMATCH | Code::MISSING_CAPABILITY | Code::UNSUPPORTED_VERSION => code,
        -32099..=-32020 => Code::INTERNAL,
        code => code,
    }
}
