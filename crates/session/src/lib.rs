//! One client's conversation, without I/O. Start at [`Session::handle`].
//!
//! A session is nothing but remembered request metadata: every request, of either era, leaves here
//! as the same self-describing [`Call`], and every result comes back to be said in the revision of
//! the one who asked.

mod batches; // requests that are answered together
mod config; // what holds for all sessions of a server
mod dialect; // how a deployment deviates from the default
mod handshake; // which revision is spoken, and by whom
mod inflight; // calls that have not ended
mod io; // what goes in, what comes out
mod phase; // which steps are legal
mod questions; // calls that need the client's input
mod record; // what is saved of a session
mod session; // the one entry point
mod subscriptions; // who listens to what
mod words; // how much of a client's words is kept

pub use config::{ElicitationIds, Limits, SessionConfig, SessionKind};
pub use dialect::{Dialect, MissingMethod, NullId, RequireReady, ToolFailure, UnknownTool};
pub use handshake::era;
pub use io::{
    Call, CallKey, CallNotification, Input, MessageKind, Outcome, Output, RequestMeta, StreamId,
};
pub use phase::SessionState;
pub use record::SessionRecord;
pub use session::Session;
