//! The inputs and outputs of a session.

use bytes::Bytes;
use sabir_wire::types::{
    ClientCapabilities, Level, Questions, ServerResult, SubscriptionFilter, Topic,
};
use sabir_wire::{
    Caller, Incoming, Malformed, Meta, ParsedRequest, Problem, Raw, Request, Revision, Task,
};
use serde::{Deserialize, Serialize};

/// Something that happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all values are the large variant")]
pub enum Input {
    /// A frame arrived.
    Received {
        /// Where replies to it are sent.
        stream: StreamId,
        /// The caller who sent it.
        caller: Caller,
        /// The frame, decoded.
        frame: Result<Incoming, Malformed>,
    },
    /// A request arrived whose params the transport has parsed.
    Request {
        /// Where replies to it are sent.
        stream: StreamId,
        /// The caller who sent it.
        caller: Caller,
        /// The request.
        request: ParsedRequest,
    },
    /// A call ended.
    Finished {
        /// The call.
        call: CallKey,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A running call notifies its client.
    Notified {
        /// The call.
        call: CallKey,
        /// The notification.
        note: CallNotification,
    },
    /// Something that is offered changed.
    Changed(Topic),
    /// The state of a task changed. Its listeners are notified.
    Task(Box<Task>),
    /// The stream has no reader any more: its calls are stopped and not answered.
    Gone(StreamId),
    /// A notification that the protocol does not know, a whole message, for a legacy client whose
    /// handshake is complete.
    Announced(Bytes),
    /// Time passed.
    Tick,
    /// The client sends nothing more, or the server stops: running calls may finish within the
    /// grace period.
    Eof,
}

/// Something to be done.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all values are the large variant")]
pub enum Output {
    /// Send a message to the client.
    Send {
        /// The stream of its request; `None` if it belongs to no request.
        stream: Option<StreamId>,
        /// One JSON-RPC message, or the answers to a batch. No newline in it.
        frame: Bytes,
        /// The kind of the message.
        kind: MessageKind,
    },
    /// Begin to work, and report [`Input::Finished`] with the call's key.
    Start(Call),
    /// Stop this call: its result is no longer wanted.
    Abort(CallKey),
    /// The questions of this call will not be answered: its source may stop waiting for them.
    Abandon(CallKey),
    /// The client wants to know when this resource changes.
    Watch(Box<str>),
    /// The client no longer wants to know when this resource changes.
    Unwatch(Box<str>),
    /// The handshake is complete; with the `clientInfo` of the client.
    Ready(Option<Raw>),
    /// The client sent a notification that the protocol does not know.
    Notified {
        /// Its method.
        method: Box<str>,
        /// Its params.
        params: Option<Raw>,
    },
    /// The session is over.
    Close,
}

/// The kind of a message to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// The answer to a request, or the answers to a batch; the code, where it is an error.
    Answer(Option<i64>),
    /// An error that answers no request: the message was not a request, or its id could not be
    /// used.
    Refusal(i64),
    /// A request of ours. The call that asks waits for its answer.
    Question,
    /// A notification. It may be dropped if it is not delivered in time.
    Notification,
}

/// A running request. Unique within a session, for its whole life: a late result of a cancelled
/// call can never be taken for that of another which reuses its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallKey(pub u64);

/// The client's stream that a message belongs to. On a pipe there is only one; over HTTP each
/// exchange is one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct StreamId(pub u64);

/// A self-describing request, of a client of either era.
#[derive(Clone, Debug)]
pub struct Call {
    /// Names the call.
    pub key: CallKey,
    /// The metadata of the request.
    pub from: RequestMeta,
    /// The request.
    pub request: Request,
}

/// The metadata of a request: its caller, and the capabilities of its client.
#[derive(Clone, Debug)]
pub struct RequestMeta {
    /// The caller, established by the transport.
    pub caller: Caller,
    /// The revision of the response.
    pub revision: Revision,
    /// The client's declared capabilities.
    pub capabilities: ClientCapabilities,
    /// The client's own name for itself.
    pub client: Option<Raw>,
    /// The lowest level of the log messages that it wants; `None` if it wants none.
    pub log_level: Option<Level>,
    /// The request's metadata object.
    pub meta: Meta,
}

/// The outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// It is done.
    Done(ServerResult),
    /// The client must answer first.
    NeedInput {
        /// Their state is sealed already.
        questions: Questions,
        /// Whether the errors of a legacy client are passed on to the call. Otherwise they end it.
        takes_refusals: bool,
    },
    /// The changes that the client will be notified of.
    Listening(SubscriptionFilter),
    /// It failed.
    Failed(Problem),
}

/// A notification of a running call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallNotification {
    /// Progress of the call.
    Progress {
        /// Must grow.
        progress: f64,
        /// Progress at the end, if known.
        total: Option<f64>,
        /// For people.
        message: Option<String>,
    },
    /// A log message.
    Log {
        /// The level of the message.
        level: Level,
        /// The name of the logger.
        logger: Option<String>,
        /// The message.
        data: Raw,
    },
    /// A notification of another server that has no type here.
    Other {
        /// Its method.
        method: Box<str>,
        /// Its params.
        params: Option<Raw>,
    },
}

impl From<Result<ServerResult, Problem>> for Outcome {
    fn from(result: Result<ServerResult, Problem>) -> Self {
        result.map_or_else(Self::Failed, Self::Done)
    }
}
