//! The inputs and outputs of a conversation: the whole contract.

use std::sync::Arc;

use bytes::Bytes;
use sabir_wire::types::{
    DiscoverResult, LogMessage, Progress, Question, SubscriptionFilter, Topic,
};
use sabir_wire::{ErrorObject, Id, Incoming, Malformed, Method, Raw, Revision};

use crate::error::{CallError, OpenError};
use crate::request::CallRequest;

/// Identifies a call within one link. It is the id of the call's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub(crate) i64);

impl CallKey {
    pub(crate) fn id(self) -> Id {
        Id::from(self.0)
    }
}

/// The kind of a link, as far as the protocol differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// All messages share one channel in each direction.
    Pipe,
    /// Each message is an exchange of its own.
    Http,
}

/// An input of a conversation.
#[derive(Debug)]
pub(crate) enum Input {
    /// The link is connected.
    Open,
    /// A call begins.
    Start { call: CallKey, request: Arc<CallRequest> },
    /// A frame arrived; over HTTP, in the exchange of this call.
    Received { exchange: Option<CallKey>, frame: Result<Incoming, Malformed> },
    /// An exchange ended without an answer.
    Failed {
        exchange: CallKey,
        failure: CallError,
        /// The server wants other credentials; over HTTP only.
        challenge: Option<String>,
    },
    /// The caller cancels a call.
    Cancel(CallKey),
    /// A question of the server is answered.
    Answer { question: Id, answer: Result<Raw, ErrorObject> },
    /// The owner sends a notification.
    Notify { method: String, params: Option<Raw> },
    /// Time passed.
    Tick,
}

/// An output of a conversation.
#[derive(Debug)]
pub(crate) enum Output {
    /// An order to the transport.
    Order(Order),
    /// The server is known, and calls may begin.
    Ready(ServerInfo),
    /// The handshake failed: close the link.
    Refused(OpenError),
    /// A call ended.
    Finished { call: CallKey, result: Result<Raw, CallError> },
    /// A call reports progress.
    Progress { call: CallKey, progress: Progress },
    /// The server acknowledged a subscription to these changes.
    Listening { call: CallKey, filter: SubscriptionFilter },
    /// The server asks a question, on behalf of one of these calls.
    Ask { question: Id, asked: Box<Question>, calls: Vec<CallKey> },
    /// A question is withdrawn.
    Withdraw(Id),
    /// A log message, of one of these calls.
    Log { calls: Vec<CallKey>, message: LogMessage },
    /// Something that the server offers changed.
    Changed(Topic),
    /// A notification with an unknown method, of one of these calls.
    Notification { calls: Vec<CallKey>, method: Method, params: Option<Raw> },
}

impl Output {
    /// The call that the output belongs to, if that is certain.
    pub(crate) fn call(&self) -> Option<CallKey> {
        match self {
            Self::Finished { call, .. }
            | Self::Progress { call, .. }
            | Self::Listening { call, .. } => Some(*call),
            Self::Log { calls, .. }
            | Self::Notification { calls, .. }
            | Self::Ask { calls, .. } => only(calls),
            _ => None,
        }
    }
}

/// The only one of some calls.
pub(crate) fn only(calls: &[CallKey]) -> Option<CallKey> {
    if let [call] = calls { Some(*call) } else { None }
}

/// An order to a transport.
#[derive(Debug)]
pub enum Order {
    /// Sends a message.
    Send(Outgoing),
    /// Ends the exchange of this call without its answer. Pipes ignore it.
    Abort(CallKey),
}

/// A message to the server.
#[derive(Debug)]
pub struct Outgoing {
    /// The call that the message begins; `None` for notifications and answers.
    pub call: Option<CallKey>,
    /// One JSON-RPC message, without a newline.
    pub frame: Bytes,
    /// The parts that HTTP repeats in its headers.
    pub head: Head,
    /// Counts an answer that no table bounds, until it is sent or dropped.
    #[expect(dead_code, reason = "held only to be counted")]
    pub(crate) reply: Option<Arc<()>>,
}

/// The parts of a message that HTTP repeats in its headers.
#[derive(Clone, Debug)]
pub struct Head {
    /// The revision of the message; `None` before it is known.
    pub revision: Option<Revision>,
    /// The method; `None` for an answer.
    pub method: Option<Method>,
    /// The value of `Mcp-Name`, encoded.
    pub name: Option<String>,
    /// The names, in lower case, and the encoded values of the `Mcp-Param-*` headers.
    pub mirrored: Vec<(String, String)>,
}

/// The server, as it describes itself.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The negotiated revision.
    pub revision: Revision,
    /// Capabilities, instructions and name; of a legacy server in the shape of the newest revision.
    pub discovered: DiscoverResult,
    /// Whether the server's answers decided the era. A server that did not answer the probe in time
    /// may be modern and slow.
    pub is_certain: bool,
}
