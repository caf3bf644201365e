//! A panic in one call ends that call only.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use sabir_session::Outcome;
use sabir_wire::Problem;

/// Work that will have an outcome.
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Work, with panics turned into outcomes.
pub(crate) struct Guarded(pub(crate) Running);

impl Future for Guarded {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // The state of the call is dropped with it; no other call can see it.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(panicked(panic.as_ref())),
        }
    }
}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guarded")
    }
}

/// Runs the part of a call that is done at once.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Outcome> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(panic.as_ref()))
}

/// The log gets the reason; the client gets an internal error.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let reason = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given");
    tracing::error!("a call panicked: {reason}");
    Outcome::Failed(Problem::Internal("Internal error".into()))
}
