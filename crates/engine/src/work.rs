//! A call that is to be run: routed, polled once, and spawned if it has to wait.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sabir_registry::CallHandle as _;
use sabir_session::Outcome;
use sabir_wire::Request;
use tracing::Instrument as _;

use crate::calls::RunningCall;
use crate::context::{Answering, MethodContext};
use crate::guard::{Guarded, guarded};
use crate::router::route;
use crate::trace::Trace;

/// A call that is to be run. Dropped, it is never run.
#[derive(Debug)]
pub struct Work {
    pub(crate) request: Request,
    pub(crate) context: MethodContext,
}

/// What came of work that completed at once.
#[derive(Debug)]
pub struct Done {
    pub(crate) call: Arc<RunningCall>,
    pub(crate) outcome: Outcome,
}

impl Work {
    /// Runs the call as far as it gets without waiting. `None` if it has to wait: then a task goes
    /// on with it, and the connection gets its outcome as an event.
    pub fn run(self) -> Option<Done> {
        let Self { request, context } = self;
        let trace = Trace::begin(&request, &context.from);
        let call = context.call.clone();
        let grace = context.engine.settings.engine_limits.abort_grace;
        let entered = trace.span().clone().entered();
        let done = |outcome, trace: Trace| {
            trace.end(&outcome);
            Some(Done { call: call.clone(), outcome })
        };
        let mut running = match guarded(|| route(request, context)) {
            Ok(Answering::Done(outcome)) | Err(outcome) => return done(outcome, trace),
            Ok(Answering::Running(running)) => Guarded(running),
        };
        // The task that may take it over polls it again, with a waker of its own.
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(outcome) = Pin::new(&mut running).poll(&mut cx) {
            return done(outcome, trace);
        }
        drop(entered);
        let span = trace.span().clone();
        let waiting = async move {
            let unwanted = async {
                call.cancelled().await;
                tokio::time::sleep(grace).await;
            };
            tokio::select! {
                outcome = running => {
                    trace.end(&outcome);
                    call.finished(outcome);
                }
                () = unwanted => trace.aborted(),
            }
        };
        tokio::spawn(waiting.instrument(span));
        None
    }
}
