//! The methods, one module per page of the specification.

pub(crate) mod attempt;
pub(crate) mod background;
pub(crate) mod completion;
pub(crate) mod continued;
pub(crate) mod discover;
pub(crate) mod lists;
pub(crate) mod logging;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod skills;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
pub(crate) mod tools;

use sabir_budget::ComputeError;
use sabir_wire::Problem;

/// The result of a method that needs no source.
type Reply = Result<sabir_wire::types::ServerResult, Problem>;

/// The pool has no result.
fn busy(error: ComputeError) -> Problem {
    Problem::ToolFailed(error.to_string().into())
}

/// A method whose capability was not declared does not exist.
fn declared(has: bool, method: &str) -> Result<(), Problem> {
    if has { Ok(()) } else { Err(Problem::Method(method.into())) }
}
