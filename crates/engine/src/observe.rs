//! The events of an engine for observers: metrics, a console, the host of an editor.
//!
//! Without an observer and without a log nothing here is computed.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sabir_registry::{LinkEnd, OutgoingObserver, OutgoingRequest};
use sabir_session::{CallNotification, Outcome, SessionKind};
use sabir_wire::types::{ServerResult, ToolReply};
use sabir_wire::{ByteString, Caller, Code, Id, Method, Problem, Raw, Request, Revision};

/// Observes an engine. It is called on the thread that serves the call, so it must be quick.
pub trait Observer: Send + Sync {
    /// A request begins.
    fn began(&self, _call: &ObservedCall) {}

    /// A call reports progress, or logs.
    fn noted(&self, _number: u64, _note: &CallNotification) {}

    /// A request has ended.
    fn ended(&self, _call: &ObservedCall, _ending: &Ending<'_>) {}

    /// The response to a request is about to be sent.
    fn answered(&self, _number: u64, _response: &Bytes) {}

    /// Whether it needs the trace of the HTTP request of a call.
    fn is_tracing(&self) -> bool {
        false
    }

    /// The position in a trace that the sources of a call see, if the call is traced.
    fn traceparent(&self, _number: u64) -> Option<String> {
        None
    }

    /// A request to another server begins, which is made for a call.
    fn outgoing(
        &self,
        _number: u64,
        _request: &OutgoingRequest<'_>,
    ) -> Option<Box<dyn OutgoingObserver>> {
        None
    }

    /// Something happened to a legacy client.
    fn client(&self, _event: ClientEvent) {}

    /// A connection to an upstream has ended.
    fn link_ended(&self, _end: &LinkEnd<'_>) {}
}

/// All observers of an engine.
pub(crate) type Observers = Arc<[Arc<dyn Observer>]>;

/// A function observes the events of clients.
impl<F: Fn(ClientEvent) + Send + Sync> Observer for F {
    fn client(&self, event: ClientEvent) {
        self(event);
    }
}

/// Something that happened to a legacy client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientEvent {
    /// Numbers the connection: all events of one client have the same.
    pub connection: u64,
    /// As the client named itself.
    pub client: Option<Raw>,
    /// The event.
    pub kind: ClientEventKind,
}

/// An event of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientEventKind {
    /// Its handshake began.
    Initializing,
    /// Its handshake is complete.
    Ready,
    /// It sent a notification that the protocol does not know.
    Notified {
        /// The method of the notification.
        method: Box<str>,
        /// The params of the notification.
        params: Option<Raw>,
    },
    /// It has left; its handshake had begun.
    Left,
}

/// A request that is observed. A call that asks its client is one request per attempt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObservedCall {
    /// Numbers the requests of an engine, from 1.
    pub number: u64,
    /// The link of its client, as a [`Tap`](sabir_wire::Tap) numbered it; 0 without one.
    pub link: u64,
    /// Names it on its link: all attempts of a call that asks a legacy client have the same.
    pub key: u64,
    /// The id of its request: all attempts of a call that asks a legacy client have the same.
    pub id: Option<Id>,
    /// The method.
    pub method: Method,
    /// The tool or the prompt, or the URI of the resource.
    pub name: Option<ByteString>,
    /// Whether a tool or a prompt of that name is offered: only then is the number of names bounded.
    pub is_offered: bool,
    /// The arguments of a tool.
    pub arguments: Option<Raw>,
    /// The schema of these arguments; `None` if the tool is not offered.
    pub schema: Option<Raw>,
    /// The caller.
    pub caller: Caller,
    /// The client's own name for itself, as JSON.
    pub client: Option<Raw>,
    /// The revision of the response.
    pub revision: Revision,
    /// The way in.
    pub transport: TransportKind,
    /// The metadata of the request, if calls are traced.
    pub meta: Option<Raw>,
    /// The `traceparent` of the HTTP request, if calls are traced.
    pub http_trace: Option<Box<str>>,
}

impl ObservedCall {
    /// Whether an argument may be a secret: the schema marks one, or the tool is not offered.
    pub fn has_secrets(&self) -> bool {
        let is_marked = |schema: &Raw| {
            // The words may be written with escapes.
            ["\"writeOnly\"", "\"password\"", "\\u"].iter().any(|one| schema.text().contains(one))
        };
        self.method == Method::CallTool && self.schema.as_ref().is_none_or(is_marked)
    }
}

/// How a client reaches us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportKind {
    /// Standard input and output.
    Pipe,
    /// HTTP.
    Http,
    /// A WebSocket, or another stream over a network.
    WebSocket,
}

impl TransportKind {
    /// As recordings name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Http => "http",
            Self::WebSocket => "websocket",
        }
    }

    pub(crate) fn of(kind: SessionKind, owner: &Caller) -> Self {
        match kind {
            // Only stdio has the local user: transports over a network authenticate.
            SessionKind::Stream if owner.is_same_as(&Caller::local()) => Self::Pipe,
            SessionKind::Stream => Self::WebSocket,
            SessionKind::LegacyHttp(_) | SessionKind::ModernHttp => Self::Http,
        }
    }
}

/// How a request ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ending<'a> {
    /// How long it took.
    pub duration: Duration,
    /// The approximate size of the result in bytes.
    pub bytes: usize,
    /// The outcome.
    pub outcome: Ended<'a>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended<'a> {
    /// It has a result.
    Ok,
    /// The tool failed.
    ToolError,
    /// The client is asked first.
    InputRequired,
    /// The client is notified of changes from now on.
    Listening,
    /// It failed.
    Failed(&'a Problem),
    /// It was cancelled or took too long, and did not end by itself.
    Aborted,
}

impl<'a> Ended<'a> {
    pub(crate) fn of(outcome: &'a Outcome) -> Self {
        match outcome {
            Outcome::Done(ServerResult::Tool(reply)) if reply.is_error => Self::ToolError,
            Outcome::Done(ServerResult::Relayed(relayed))
                if ToolReply::is_failure(&relayed.json) =>
            {
                Self::ToolError
            }
            Outcome::Done(_) => Self::Ok,
            Outcome::NeedInput { .. } => Self::InputRequired,
            Outcome::Listening(_) => Self::Listening,
            Outcome::Failed(Problem::ToolFailed(_)) => Self::ToolError,
            Outcome::Failed(problem) => Self::Failed(problem),
        }
    }

    /// For people. It quotes no argument: those may be secret.
    pub fn text(&self) -> Cow<'static, str> {
        match self {
            Self::Ok => "ok".into(),
            Self::ToolError => "tool error".into(),
            Self::InputRequired => "input required".into(),
            Self::Listening => "listening".into(),
            Self::Failed(Problem::Arguments(_)) => "Invalid arguments".into(),
            Self::Failed(Problem::Chosen(error)) if error.code == Code::INVALID_PARAMS => {
                "Invalid params".into()
            }
            Self::Failed(problem) => problem.to_error().message,
            Self::Aborted => "aborted".into(),
        }
    }
}

/// The tool or prompt that a request names, or its URI.
pub(crate) fn name_of(request: &Request) -> Option<ByteString> {
    match request {
        Request::CallTool(call) => Some(call.name.clone()),
        Request::GetPrompt(get) => Some((&*get.name).into()),
        Request::ReadResource(read) => Some((&*read.uri).into()),
        _ => None,
    }
}
