//! One span per request, and one line in the log per call.

use std::borrow::Cow;

use sabir_session::{Outcome, RequestMeta};
use sabir_wire::Request;
use sabir_wire::types::ServerResult;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, debug, info, info_span};

/// A request that is being traced. Costs nothing without a subscriber.
#[derive(Debug)]
pub(crate) struct Trace {
    span: Span,
    /// Calls of tools and prompts and reads of resources: what operators want to see.
    is_call: bool,
    began: Option<Instant>,
}

impl Trace {
    pub(crate) fn begin(request: &Request, from: &RequestMeta) -> Self {
        let span = info_span!(
            target: "sabir::call",
            "request",
            method = Empty,
            tool = Empty,
            caller = Empty,
            revision = Empty,
            duration_us = Empty,
            outcome = Empty,
        );
        let name: Option<&str> = match request {
            Request::CallTool(call) => Some(&call.name),
            Request::GetPrompt(get) => Some(&get.name),
            Request::ReadResource(read) => Some(&read.uri),
            _ => None,
        };
        if span.is_disabled() {
            return Self { span, is_call: name.is_some(), began: None };
        }
        span.record("method", request.method().name());
        span.record("caller", tracing::field::display(&from.caller));
        span.record("revision", from.revision.date());
        if let Some(name) = name {
            span.record("tool", name);
        }
        Self { span, is_call: name.is_some(), began: Some(Instant::now()) }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The request has ended.
    pub(crate) fn end(self, outcome: &Outcome) {
        let outcome: Cow<'static, str> = match outcome {
            Outcome::Done(ServerResult::Tool(reply)) if reply.is_error => "tool error".into(),
            Outcome::Done(_) => "ok".into(),
            Outcome::NeedInput(_) => "input required".into(),
            Outcome::Listening(_) => "listening".into(),
            Outcome::Failed(problem) => problem.to_error().message,
        };
        self.log(&outcome);
    }

    /// The request was cancelled or took too long, and did not end by itself.
    pub(crate) fn aborted(self) {
        self.log("aborted");
    }

    fn log(&self, outcome: &str) {
        let Some(began) = self.began else { return };
        let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.span.record("duration_us", duration_us);
        self.span.record("outcome", outcome);
        let _entered = self.span.enter();
        if self.is_call {
            info!(target: "sabir::call", "completed");
        } else {
            debug!(target: "sabir::call", "completed");
        }
    }
}
