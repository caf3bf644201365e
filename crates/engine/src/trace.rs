//! One span per request, one line in the log per call, and the events for observers.

use std::sync::Arc;
use std::time::Instant;

use sabir_session::Outcome;
use sabir_wire::{MASK, Raw, Request};
use serde::Deserialize;
use tracing::field::{Empty, display};
use tracing::{Level, Span, debug, enabled, info, info_span};

use crate::context::MethodContext;
use crate::engine::Engine;
use crate::observe::{Ended, Ending, ObservedCall, name_of};

/// A request that is being traced. Costs next to nothing without a log and without observers.
#[derive(Debug)]
pub(crate) struct Trace {
    span: Span,
    /// `None` without a log and without observers.
    observed: Option<Box<Observed>>,
}

#[derive(Debug)]
struct Observed {
    call: ObservedCall,
    engine: Arc<Engine>,
    began: Instant,
}

/// How much of a name, an outcome or arguments is logged, in bytes.
const MAX_TEXT: usize = 200;

impl Trace {
    /// A request begins. Where it is traced, its sources see its own position in the trace.
    pub(crate) fn begin(request: &Request, context: &mut MethodContext) -> Self {
        let span = info_span!(
            target: "sabir::call",
            "request",
            method = Empty,
            tool = Empty,
            caller = Empty,
        );
        if span.is_disabled() && !context.engine.is_observed() {
            return Self { span, observed: None };
        }
        let call = observed(request, context);
        if !span.is_disabled() {
            span.record("method", call.method.name());
            span.record("caller", display(&call.caller));
            if let Some(name) = &call.name {
                span.record("tool", cut(name));
            }
        }
        let engine = context.engine.clone();
        engine.observers().for_each(|observer| observer.began(&call));
        if let Some(trace) = engine.observers().find_map(|one| one.traceparent(call.number)) {
            let meta = context.from.meta.raw.take().unwrap_or_else(Raw::empty_object);
            let trace = format!("\"{trace}\"");
            context.from.meta.raw = Some(meta.with_members(&[("traceparent", Some(&*trace))]));
        }
        Self { span, observed: Some(Box::new(Observed { call, engine, began: Instant::now() })) }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The request has ended.
    pub(crate) fn end(self, outcome: &Outcome) {
        let bytes = match outcome {
            Outcome::Done(result) if self.observed.is_some() => result.size(),
            _ => 0,
        };
        self.finish(Ended::of(outcome), bytes);
    }

    /// The request was cancelled or took too long, and did not end by itself.
    pub(crate) fn aborted(self) {
        self.finish(Ended::Aborted, 0);
    }

    fn finish(self, outcome: Ended<'_>, bytes: usize) {
        let Some(observed) = self.observed else { return };
        let Observed { call, engine, began } = *observed;
        let ending = Ending { duration: began.elapsed(), bytes, outcome };
        engine.observers().for_each(|observer| observer.ended(&call, &ending));
        if !self.span.is_disabled() {
            self.span.in_scope(|| log(&call, &ending));
        }
    }
}

fn observed(request: &Request, context: &MethodContext) -> ObservedCall {
    let MethodContext { from, call, .. } = context;
    let (arguments, schema) = match request {
        Request::CallTool(call) => {
            let entry = context.catalog.tool(&call.name);
            (call.arguments.clone(), entry.map(|entry| entry.tool.input_schema.clone()))
        }
        _ => (None, None),
    };
    let is_offered = match request {
        Request::GetPrompt(get) => context.catalog.prompt(&get.name).is_some(),
        _ => schema.is_some(),
    };
    let client = match request {
        Request::Initialize(initialize) => initialize.client.clone(),
        _ => from.client.clone(),
    };
    ObservedCall {
        number: call.observed.number,
        link: call.observed.link,
        key: call.key.0,
        id: call.observed.id.clone(),
        method: request.method(),
        name: name_of(request),
        is_offered,
        arguments,
        schema,
        caller: from.caller.clone(),
        client,
        revision: from.revision,
        transport: context.transport,
        meta: from.meta.raw.clone().filter(|_| context.engine.is_traced()),
        http_trace: call.observed.http_trace.clone(),
    }
}

/// Calls of tools and prompts and reads of resources are logged at `info`; the rest is logged at
/// `debug`. Arguments are logged at `debug` only, and cut; those of a tool with secrets are not.
fn log(call: &ObservedCall, ending: &Ending<'_>) {
    let client = call.client.as_ref().and_then(|client| client.read::<ClientName<'_>>().ok());
    let client = client.map(|client| client.name);
    let client = client.as_deref().map(cut);
    let method = call.method.name();
    let tool = call.name.as_deref().map(cut);
    let caller = display(&call.caller);
    let revision = call.revision.date();
    let duration_us = u64::try_from(ending.duration.as_micros()).unwrap_or(u64::MAX);
    let (bytes, outcome) = (ending.bytes, ending.outcome.text());
    let outcome = cut(&outcome);
    let is_debug = enabled!(target: "sabir::call", Level::DEBUG);
    let arguments = call.arguments.as_ref().filter(|_| is_debug);
    let arguments = arguments.map(|arguments| match call.has_secrets() {
        true => MASK,
        false => cut(arguments.text()),
    });
    if tool.is_some() {
        info!(target: "sabir::call", method, tool, client, caller, revision, duration_us, bytes,
              outcome, arguments, "completed");
    } else {
        debug!(target: "sabir::call", method, client, caller, revision, duration_us, bytes,
               outcome, "completed");
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// The client's own name.
#[derive(Deserialize)]
struct ClientName<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
}
