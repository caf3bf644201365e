//! The outcome of a call, and the memory that it takes until it is rendered.

use sabir_budget::{Hold, MemoryFull, memory};
use sabir_session::Outcome;
use sabir_wire::Problem;
use sabir_wire::types::ServerResult;

/// An outcome, with the memory that it takes.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) outcome: Outcome,
    /// `None` for a small one.
    pub(crate) hold: Option<Hold>,
}

/// The size from which an outcome takes from the memory of the process.
const COUNTED: usize = 1 << 10;

impl Admitted {
    /// Replaces an outcome for which no memory is left; `share` is the client's.
    pub(crate) fn new(outcome: Outcome, share: u64) -> Self {
        let size = match &outcome {
            Outcome::Done(result) => result.size(),
            _ => 0,
        };
        if size < COUNTED {
            return Self { outcome, hold: None };
        }
        let copies = match &outcome {
            // It is counted where it is kept.
            Outcome::Done(ServerResult::Ready(_)) => 1,
            // The value, and its rendered text.
            _ => 2,
        };
        match memory().take_for(share, copies * size) {
            Ok(hold) => Self { outcome, hold: Some(hold) },
            Err(full) => Self { outcome: refused(full), hold: None },
        }
    }
}

/// The outcome of a call for which no memory is left.
pub(crate) fn refused(full: MemoryFull) -> Outcome {
    Outcome::Failed(Problem::ToolFailed(full.to_string().into()))
}
