//! One span per request of a client, and one per request to an upstream that is made for it, by the
//! conventions of OpenTelemetry for MCP.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use sabir_engine::{Ended, Ending, ObservedCall, Observer};
use sabir_registry::{OutgoingObserver, OutgoingRequest};
use sabir_wire::{Method, Revision, TraceContext};

use super::OtlpSettings;
use super::context::{Sampler, SpanContext};
use crate::metrics::{ErrorType, network};

/// Spans that wait to be sent. When full, further ones are lost, and their number is logged.
const MAX_WAITING: usize = 2_048;

/// Spans that are sent together.
const BATCH: usize = 512;

/// The longest text of an attribute, in bytes. A longer one is cut.
const MAX_TEXT: usize = 1_000;

/// A span that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) context: SpanContext,
    pub(crate) parent: Option<[u8; 8]>,
    /// The span of the HTTP request, which is not the parent.
    pub(crate) link: Option<SpanContext>,
    pub(crate) is_client: bool,
    pub(crate) name: String,
    pub(crate) began: SystemTime,
    pub(crate) duration: Duration,
    pub(crate) attributes: Vec<(&'static str, Cow<'static, str>)>,
    /// The reason of a failure.
    pub(crate) error: Option<String>,
}

/// Makes spans of the requests of an engine.
#[derive(Debug)]
pub struct Tracer {
    sampler: Sampler,
    /// The spans of running calls, by their numbers; those that are not recorded only have a context.
    running: Mutex<FxHashMap<u64, Running>>,
    /// Shared with the spans of requests to upstreams, which may end after their calls.
    ended: Arc<Mutex<Waiting>>,
}

#[derive(Debug)]
struct Running {
    context: SpanContext,
    parent: Option<SpanContext>,
    began: SystemTime,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Span>,
    lost: usize,
}

impl Waiting {
    fn push(&mut self, span: Span) {
        match self.spans.len() < MAX_WAITING {
            true => self.spans.push_back(span),
            false => self.lost += 1,
        }
    }
}

impl Tracer {
    /// A tracer, if spans are to be sent.
    pub fn new(settings: &OtlpSettings) -> Option<Arc<Self>> {
        settings.has_traces().then(|| {
            let (running, ended) = (Mutex::default(), Arc::default());
            Arc::new(Self { sampler: settings.sampler, running, ended })
        })
    }

    /// The next spans to be sent.
    pub(super) fn take(&self) -> Vec<Span> {
        let mut waiting = lock(&self.ended);
        let lost = std::mem::take(&mut waiting.lost);
        if lost > 0 {
            tracing::warn!("{lost} spans were lost (at most {MAX_WAITING} wait to be sent)");
        }
        let most = waiting.spans.len().min(BATCH);
        waiting.spans.drain(..most).collect()
    }
}

impl Observer for Tracer {
    fn began(&self, call: &ObservedCall) {
        let given = call.meta.as_ref().and_then(|meta| meta.read::<TraceContext>().ok());
        let parent = given.and_then(|given| given.traceparent);
        let parent = parent.and_then(|parent| SpanContext::parse(&parent));
        let context = self.sampler.begin(parent);
        let running = Running { context, parent, began: SystemTime::now() };
        lock(&self.running).insert(call.number, running);
    }

    fn is_tracing(&self) -> bool {
        true
    }

    fn traceparent(&self, number: u64) -> Option<String> {
        lock(&self.running).get(&number).map(|running| running.context.text())
    }

    fn outgoing(
        &self,
        number: u64,
        request: &OutgoingRequest<'_>,
    ) -> Option<Box<dyn OutgoingObserver>> {
        let parent = lock(&self.running).get(&number)?.context;
        let OutgoingRequest { upstream, method, name, transport, .. } = *request;
        let mut attributes = operation(method, name);
        attributes.push(("network.transport", transport.into()));
        attributes.push(("sabir.upstream", upstream.to_owned().into()));
        Some(Box::new(OutgoingSpan {
            span: Span {
                context: parent.child(),
                parent: Some(parent.span),
                link: None,
                is_client: true,
                name: title(method, name),
                began: SystemTime::now(),
                duration: Duration::ZERO,
                attributes,
                error: None,
            },
            ended: self.ended.clone(),
        }))
    }

    fn ended(&self, call: &ObservedCall, ending: &Ending<'_>) {
        let Some(running) = lock(&self.running).remove(&call.number) else { return };
        let Running { context, parent, began } = running;
        if !context.is_sampled {
            return;
        }
        let mut attributes = operation(&call.method, call.name.as_deref());
        attributes.push(("mcp.protocol.version", call.revision.date().into()));
        if let Some(id) = &call.id {
            // As text, without the quotes of JSON.
            let text = serde_json::from_str(&id.to_string()).unwrap_or_else(|_| id.to_string());
            attributes.push(("jsonrpc.request.id", cut(&text).to_owned().into()));
        }
        let (transport, protocol) = network(call.transport);
        attributes.push(("network.transport", transport.into()));
        if !protocol.is_empty() {
            attributes.push(("network.protocol.name", protocol.into()));
        }
        let error_type = match ending.outcome {
            // Spans are not counted by their codes, so that of a source is not replaced.
            Ended::Failed(problem) => problem.to_error().code.to_string(),
            outcome => ErrorType::of(&outcome).label(),
        };
        let is_error = !error_type.is_empty();
        if let Ended::Failed(_) = ending.outcome {
            attributes.push(("rpc.response.status_code", error_type.clone().into()));
        }
        if is_error {
            attributes.push(("error.type", error_type.into()));
        }
        let link = call.http_trace.as_deref().and_then(SpanContext::parse);
        lock(&self.ended).push(Span {
            context,
            parent: parent.map(|parent| parent.span),
            link,
            is_client: false,
            name: title(&call.method, call.name.as_deref()),
            began,
            duration: ending.duration,
            attributes,
            error: is_error.then(|| cut(&ending.outcome.text()).to_owned()),
        });
    }
}

/// The span of a request to an upstream.
#[derive(Debug)]
struct OutgoingSpan {
    span: Span,
    ended: Arc<Mutex<Waiting>>,
}

impl OutgoingObserver for OutgoingSpan {
    fn traceparent(&self) -> Option<String> {
        Some(self.span.context.text())
    }

    fn ended(self: Box<Self>, revision: Option<Revision>, error: Option<&str>) {
        let Self { mut span, ended } = *self;
        if !span.context.is_sampled {
            return;
        }
        span.duration = span.began.elapsed().unwrap_or_default();
        if let Some(revision) = revision {
            span.attributes.push(("mcp.protocol.version", revision.date().into()));
        }
        if let Some(error) = error {
            if error.parse::<i64>().is_ok() {
                span.attributes.push(("rpc.response.status_code", error.to_owned().into()));
            }
            span.attributes.push(("error.type", error.to_owned().into()));
            span.error = Some(error.to_owned());
        }
        lock(&ended).push(span);
    }
}

/// The name of a span: tools and prompts are a part of it, URIs are not.
fn title(method: &Method, name: Option<&str>) -> String {
    match name.filter(|_| matches!(method, Method::CallTool | Method::GetPrompt)) {
        Some(name) => format!("{} {}", method.name(), cut(name)),
        None => method.name().to_owned(),
    }
}

fn operation(method: &Method, name: Option<&str>) -> Vec<(&'static str, Cow<'static, str>)> {
    let mut attributes = vec![("mcp.method.name", method.name().to_owned().into())];
    let named = match method {
        Method::CallTool => {
            attributes.push(("gen_ai.operation.name", "execute_tool".into()));
            Some("gen_ai.tool.name")
        }
        Method::GetPrompt => Some("gen_ai.prompt.name"),
        Method::ReadResource => Some("mcp.resource.uri"),
        _ => None,
    };
    attributes
        .extend(named.zip(name).map(|(attribute, name)| (attribute, cut(name).to_owned().into())));
    attributes
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use sabir_engine::{Connection, Engine, Settings};
    use sabir_registry::{Offer, Pending, Source, ToolCall};
    use sabir_session::{SessionKind, StreamId};
    use sabir_wire::types::{Tool, ToolReply};
    use sabir_wire::{Caller, ErrorObject, Problem, Raw};

    use super::*;

    /// Fails with a code of its own.
    struct Odd;

    impl Source for Odd {
        fn offer(&self) -> Offer {
            let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
            Offer { tools: vec![Tool::new("odd", "d", schema)], ..Offer::default() }
        }

        fn call_tool(&self, _call: ToolCall) -> Pending<ToolReply> {
            Box::pin(async { Err(Problem::Chosen(ErrorObject::new(42, "odd"))) })
        }
    }

    #[test]
    fn spans_have_the_id_of_the_request_and_the_code_of_the_error() {
        let sampler = Sampler { follows_parent: false, ratio: 1.0 };
        let (running, ended) = (Mutex::default(), Arc::default());
        let tracer = Arc::new(Tracer { sampler, running, ended });
        let engine = Engine::observed(Settings::default(), vec![tracer.clone()]);
        engine.registry().add(Arc::new(Odd)).unwrap();
        let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
        for id in ["7", "\"seven\""] {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"odd"}}}}"#
            );
            connection.receive(StreamId(0), Caller::local(), &call.into());
        }
        let value = |span: &Span, name| {
            let found = span.attributes.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| value.to_string())
        };
        let spans = tracer.take();
        assert_eq!(spans.len(), 2);
        for (span, id) in spans.iter().zip(["7", "seven"]) {
            assert_eq!(value(span, "jsonrpc.request.id").as_deref(), Some(id));
            assert_eq!(value(span, "rpc.response.status_code").as_deref(), Some("42"));
        }
        let context = sampler.begin(None);
        let running = Running { context, parent: None, began: SystemTime::now() };
        lock(&tracer.running).insert(77, running);
        for (error, code) in [("-31999", Some("-31999")), ("timeout", None)] {
            let (upstream, method, transport) = ("u", &Method::CallTool, "pipe");
            let request = OutgoingRequest { upstream, method, name: None, transport };
            tracer.outgoing(77, &request).unwrap().ended(None, Some(error));
            let spans = tracer.take();
            assert_eq!(value(&spans[0], "rpc.response.status_code").as_deref(), code);
            assert_eq!(value(&spans[0], "error.type").as_deref(), Some(error));
        }
    }
}
