//! One client's conversation, without I/O. Start at [`Session::handle`].
//!
//! A session is nothing but remembered request metadata: every request, of either era, becomes the
//! same self-describing [`Call`], and every result is written in the revision of its client.

mod batches; // requests that are answered together
mod config; // the configuration of all sessions of a server
mod dialect; // how a deployment deviates from the default
mod handshake; // the revision, and the metadata of the client
mod inflight; // calls that have not ended
mod io; // inputs and outputs
mod phase; // the phases and their transitions
mod questions; // calls that need the client's input
mod record; // the saved state of a session
mod session; // the one entry point
mod subscriptions; // subscriptions of both eras
mod words; // bounds for the client's own data

pub use config::{ElicitationIds, Limits, SessionConfig, SessionKind};
pub use dialect::{Dialect, MissingMethod, NullId, RequireReady, ToolFailure, UnknownTool};
pub use handshake::era;
pub use io::{
    Call, CallKey, CallNotification, Input, MessageKind, Outcome, Output, RequestMeta, StreamId,
};
pub use phase::SessionState;
pub use record::SessionRecord;
pub use session::Session;
