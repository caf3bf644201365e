//! What goes into a conversation and what comes out: the whole contract.

use std::sync::Arc;

use bytes::Bytes;
use sabir_wire::types::{
    DiscoverResult, LogMessage, Progress, Question, SubscriptionFilter, Topic,
};
use sabir_wire::{ErrorObject, Id, Incoming, Malformed, Method, Raw, Revision};

use crate::error::{CallError, OpenError};
use crate::request::CallRequest;

/// Names a call within one link. It is the id of its request.
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

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// The link is there.
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
    /// A call is no longer wanted.
    Cancel(CallKey),
    /// A question of the server is answered.
    Answer { question: Id, answer: Result<Raw, ErrorObject> },
    /// A notification of the owner's own.
    Notify { method: String, params: Option<Raw> },
    /// Time passed.
    Tick,
}

/// Something to be done.
#[derive(Debug)]
pub(crate) enum Output {
    /// Tell the transport.
    Order(Order),
    /// The server is known, and calls may begin.
    Ready(ServerInfo),
    /// The handshake failed: close the link.
    Refused(OpenError),
    /// A call ended.
    Finished { call: CallKey, result: Result<Raw, CallError> },
    /// A call goes on.
    Progress { call: CallKey, progress: Progress },
    /// The server listens for changes, of these.
    Listening { call: CallKey, filter: SubscriptionFilter },
    /// The server asks. It is one of these calls that asks.
    Ask { question: Id, asked: Box<Question>, calls: Vec<CallKey> },
    /// A question needs no answer any more.
    Withdraw(Id),
    /// A log message, of this call if it is known.
    Log { call: Option<CallKey>, message: LogMessage },
    /// Something that the server offers changed.
    Changed(Topic),
    /// A notification that is not known here.
    Notification { call: Option<CallKey>, method: Method, params: Option<Raw> },
}

impl Output {
    /// The call that it belongs to, if that is certain.
    pub(crate) fn call(&self) -> Option<CallKey> {
        match self {
            Self::Finished { call, .. }
            | Self::Progress { call, .. }
            | Self::Listening { call, .. } => Some(*call),
            Self::Log { call, .. } | Self::Notification { call, .. } => *call,
            Self::Ask { calls, .. } => <[CallKey; 1]>::try_from(&**calls).ok().map(|[call]| call),
            _ => None,
        }
    }
}

/// Something that a transport does.
#[derive(Debug)]
pub enum Order {
    /// Send a message.
    Send(Outgoing),
    /// End the exchange of this call; its answer is not wanted. Pipes have nothing to do.
    Abort(CallKey),
}

/// A message to the server.
#[derive(Debug)]
pub struct Outgoing {
    /// The call that the message begins; `None` for notifications and answers.
    pub call: Option<CallKey>,
    /// One JSON-RPC message. No newline in it.
    pub frame: Bytes,
    /// What HTTP repeats in its headers.
    pub head: Head,
    /// Counts an answer that no table of ours bounds, until it is sent or given up.
    #[expect(dead_code, reason = "what counts is how long it is held")]
    pub(crate) reply: Option<Arc<()>>,
}

/// What HTTP repeats in its headers.
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

/// The server, as it named itself.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The revision that is spoken.
    pub revision: Revision,
    /// Abilities, instructions and name; of a legacy server in the shape of the newest revision.
    pub discovered: DiscoverResult,
    /// Whether the server itself decided the era. A legacy server that did not answer the question
    /// for it may have been slow only.
    pub is_certain: bool,
}
