//! A call that is to be run: routed and polled once. If it has to wait, the owner of the connection
//! awaits it in place, or lets a task go on with it.
//!
//! Its outcome counts as used memory from here on, until it is rendered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use sabir_budget::memory;
use sabir_registry::CallHandle as _;
use sabir_session::Outcome;
use sabir_wire::Request;
use tracing::Instrument as _;

use crate::admitted::{Admitted, refused};
use crate::calls::RunningCall;
use crate::context::{Answering, MethodContext};
use crate::guard::{Guarded, Running, guarded};
use crate::router::route;
use crate::trace::Trace;

/// A call that is to be run. Dropped, it is never run.
#[derive(Debug)]
pub struct Work {
    pub(crate) request: Request,
    pub(crate) context: MethodContext,
}

/// The time that the calls of one message may use their thread before others get it.
const TURN: Duration = Duration::from_millis(5);

/// Runs the calls of one message: the first at once, and those of a batch as long as they are quick.
/// Tasks go on with the rest.
#[derive(Debug, Default)]
pub struct Turn(Option<Instant>);

impl Turn {
    /// Runs a call, or lets it wait.
    pub fn run(&mut self, work: Work) -> Progress {
        match self.0 {
            Some(began) if began.elapsed() >= TURN => Progress::Waiting(work.later()),
            Some(_) => work.run(),
            None => {
                self.0 = Some(Instant::now());
                work.run()
            }
        }
    }
}

/// A call after its first poll.
#[derive(Debug)]
pub enum Progress {
    /// It completed at once.
    Done(Done),
    /// It has to wait.
    Waiting(Waiting),
}

/// The outcome of a call.
#[derive(Debug)]
pub struct Done {
    pub(crate) call: Arc<RunningCall>,
    pub(crate) outcome: Admitted,
}

/// A call that has to wait. Awaiting it gives its outcome, for [`Connection::complete`]. Dropped, a
/// task goes on with it, and the connection gets its outcome as an event.
///
/// [`Connection::complete`]: crate::Connection::complete
#[derive(Debug)]
pub struct Waiting {
    call: Arc<RunningCall>,
    /// `None` once it has ended.
    running: Option<(Guarded, Trace)>,
    /// The time that it gets to clean up after it was cancelled.
    grace: Duration,
}

impl Work {
    /// The same work, to be run when it is first awaited, or by a task.
    pub(crate) fn later(self) -> Waiting {
        let (call, grace) = (self.context.call.clone(), self.grace());
        let Self { request, mut context } = self;
        let trace = Trace::begin(&request, &mut context);
        let running: Running = Box::pin(async move {
            match without_memory(&request, context.call.share) {
                Some(refused) => refused,
                None => route(request, context).outcome().await,
            }
        });
        Waiting { call, running: Some((Guarded(running), trace)), grace }
    }

    fn grace(&self) -> Duration {
        self.context.engine.settings.engine_limits.abort_grace
    }

    /// Runs the call as far as it gets without waiting.
    pub fn run(self) -> Progress {
        let grace = self.grace();
        let Self { request, mut context } = self;
        let trace = Trace::begin(&request, &mut context);
        let call = context.call.clone();
        if let Some(refused) = without_memory(&request, call.share) {
            return done(call, trace, refused);
        }
        let entered = trace.span().clone().entered();
        let mut running = match guarded(|| route(request, context)) {
            Ok(Answering::Done(outcome)) | Err(outcome) => return done(call, trace, outcome),
            Ok(Answering::Running(running)) => Guarded(running),
        };
        // Its next owner polls it again, with another waker.
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(outcome) = Pin::new(&mut running).poll(&mut cx) {
            return done(call, trace, outcome);
        }
        drop(entered);
        Progress::Waiting(Waiting { call, running: Some((running, trace)), grace })
    }
}

/// Refuses a request that may need much memory while none is left. Requests that only describe the
/// server do not need much.
fn without_memory(request: &Request, share: u64) -> Option<Outcome> {
    let is_heavy =
        matches!(request, Request::CallTool(_) | Request::GetPrompt(_) | Request::ReadResource(_));
    let full = if is_heavy { memory().check(share).err() } else { None };
    full.map(refused)
}

fn done(call: Arc<RunningCall>, trace: Trace, outcome: Outcome) -> Progress {
    trace.end(&outcome);
    let outcome = Admitted::new(outcome, call.share);
    Progress::Done(Done { call, outcome })
}

impl Future for Waiting {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        let Some((running, trace)) = &mut self.running else { return Poll::Pending };
        let polled = trace.span().in_scope(|| Pin::new(running).poll(cx));
        let Poll::Ready(outcome) = polled else { return Poll::Pending };
        if let Some((_, trace)) = self.running.take() {
            trace.end(&outcome);
        }
        let call = self.call.clone();
        let outcome = Admitted::new(outcome, call.share);
        Poll::Ready(Done { call, outcome })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some((running, trace)) = self.running.take() else { return };
        let (call, grace) = (self.call.clone(), self.grace);
        let span = trace.span().clone();
        let going_on = async move {
            let cancelled = async {
                call.cancelled().await;
                tokio::time::sleep(grace).await;
            };
            tokio::select! {
                outcome = running => {
                    trace.end(&outcome);
                    call.finished(Admitted::new(outcome, call.share));
                }
                () = cancelled => trace.aborted(),
            }
        };
        // Without a runtime no connection waits for the outcome.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(going_on.instrument(span));
        }
    }
}
