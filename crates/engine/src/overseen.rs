//! Answers requests under oversight.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use sabir_budget::Limit;
use sabir_session::Outcome;
use sabir_wire::{ErrorObject, Problem, Request};
use tokio::time::Instant;

use crate::context::{Answering, MethodContext};
use crate::guard::Running;
use crate::observe::Ended;
use crate::oversight::{Admission, CallEnd, Decision, Limited, Oversee, OverseenCall};

/// A code of our own, outside of the range that JSON-RPC reserves.
const TOO_MANY_REQUESTS: i64 = 429;

type Answer = fn(Request, MethodContext) -> Answering;

/// Answers a request under oversight; `answer` does the work.
pub(crate) fn oversee(
    overseer: Arc<dyn Oversee>,
    request: Request,
    context: MethodContext,
    answer: Answer,
) -> Answering {
    let call = call(&request, &context);
    let mut record = Record { overseer, call, began: Instant::now(), is_told: false };
    if let Some(needed) = context.whole.missing_scopes(&request, &context.from.caller) {
        let outcome = Outcome::Failed(Problem::Scopes(needed.clone()));
        record.tell(Decision::Denied(needed), &outcome);
        return outcome.into();
    }
    match record.overseer.admit(&record.call) {
        Admission::Decided(decision) => decided(decision, record, request, context, answer),
        Admission::Asked(asked) => Answering::Running(Box::pin(async move {
            decided(asked.await, record, request, context, answer).outcome().await
        })),
    }
}

/// Runs or refuses the request, as the decision says.
fn decided(
    decision: Result<(), Limited>,
    mut record: Record,
    request: Request,
    context: MethodContext,
    answer: Answer,
) -> Answering {
    if let Err(limited) = decision {
        Limit::Rate.reach(format_args!("{} of {}", limited.rule, context.from.caller));
        let outcome = Outcome::Failed(too_many(&request, &limited));
        record.tell(Decision::Limited(limited.rule), &outcome);
        return outcome.into();
    }
    match answer(request, context) {
        Answering::Done(outcome) => {
            record.tell(Decision::Allowed, &outcome);
            Answering::Done(outcome)
        }
        Answering::Running(running) => Answering::Running(Box::pin(Overseen { running, record })),
    }
}

/// A model reads the result of a tool; other errors are for the client.
fn too_many(request: &Request, limited: &Limited) -> Problem {
    let seconds = limited.retry_after.as_secs_f64().ceil().max(1.0);
    let reason = format!("rate limit exceeded ({}); try again in {seconds} s", limited.rule);
    match request {
        Request::CallTool(_) => Problem::ToolFailed(reason.into()),
        _ => Problem::Chosen(ErrorObject::new(TOO_MANY_REQUESTS, reason)),
    }
}

fn call(request: &Request, context: &MethodContext) -> OverseenCall {
    let catalog = &context.whole;
    let (name, source, arguments): (Option<&str>, _, _) = match request {
        Request::CallTool(call) => {
            let source = catalog.tool(&call.name).map(|entry| entry.source_name().clone());
            (Some(&call.name), source, call.arguments.clone())
        }
        Request::GetPrompt(get) => (Some(&get.name), None, None),
        Request::ReadResource(read) => {
            let source = catalog.resource(&read.uri).map(|found| found.source_name().clone());
            (Some(&read.uri), source, None)
        }
        _ => (None, None, None),
    };
    OverseenCall {
        caller: context.from.caller.clone(),
        method: request.method(),
        name: name.map(Into::into),
        source,
        arguments,
    }
}

/// Reports the end of the request, however it ends.
struct Record {
    overseer: Arc<dyn Oversee>,
    call: OverseenCall,
    began: Instant,
    is_told: bool,
}

impl Record {
    fn tell(&mut self, decision: Decision, outcome: &Outcome) {
        let (words, bytes) = match (outcome, Ended::of(outcome)) {
            (Outcome::Failed(problem), _) => (problem.to_error().message, 0),
            (Outcome::Done(result), ended @ Ended::Ok) => (ended.text(), result.size()),
            (_, ended) => (ended.text(), 0),
        };
        self.end(decision, words.into(), bytes);
    }

    fn end(&mut self, decision: Decision, outcome: Box<str>, bytes: usize) {
        self.is_told = true;
        let duration = self.began.elapsed();
        self.overseer.ended(&self.call, &CallEnd { decision, outcome, duration, bytes });
    }
}

/// A call that is dropped before its end was cancelled, or took too long.
impl Drop for Record {
    fn drop(&mut self) {
        if !self.is_told {
            self.end(Decision::Allowed, "aborted".into(), 0);
        }
    }
}

struct Overseen {
    running: Running,
    record: Record,
}

impl Future for Overseen {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let polled = self.running.as_mut().poll(cx);
        if let Poll::Ready(outcome) = &polled {
            self.record.tell(Decision::Allowed, outcome);
        }
        polled
    }
}
