//! The protocol from the other side: find the era of a server, call it, listen to it, answer its
//! questions. Start at [`Client`].
//!
//! [`Client`] is a shared handle. It opens its [`Transport`] when it is needed and again after a
//! failure. The state machine of one link is the conversation, which does no I/O and reads no
//! clock; a transport only carries frames.

mod answerer; // who answers questions
mod auth; // the access token that a server demands
mod call; // one call: its events, its result
mod client; // the handle, and the task that keeps its link open
mod config; // who we are, and the limits
mod connection; // one link: the conversation and its waiters
mod conversation; // the state machine of one link
mod error; // reasons for failure
mod events; // events outside of calls
mod http; // Streamable HTTP of both eras, and the old HTTP+SSE
mod io; // the inputs and outputs of a conversation
mod link; // the boundary to a transport
mod methods; // one function per method
mod pending; // the memory of incoming messages
mod pipe; // any byte stream, one message a line
mod raw_link; // a link without a conversation
mod request; // a request, and its options
mod stdio; // a child process
mod ws; // WebSocket

pub use answerer::{Answerer, Answering, NoAnswers};
pub use auth::{
    ApiTokens, AuthError, ClientKey, Grant, InMemory, Keep, Keeping, Kept, Locked, Login, OAuth,
    OAuthSettings, Registration, SendError, SubjectType, Tokens, Visit, Visiting,
};
pub use call::{Asked, Call, CallEvent, Reply};
pub use client::Client;
pub use config::{ClientConfig, Limits, Reconnect};
pub use error::{CallError, OpenError};
pub use events::{ClientEvent, Events};
pub use http::{HttpTarget, HttpTransport};
pub use io::{CallKey, Head, LinkKind, Order, Outgoing, ServerInfo};
pub use link::{Inbox, Link, Opening, Transport};
pub use pipe::{PipeTransport, carry_lines};
pub use raw_link::RawLink;
pub use request::{CallOptions, CallRequest, RequestBody};
pub use stdio::{ChildTransport, Program};
pub use ws::WsTransport;
