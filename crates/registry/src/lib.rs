//! The catalog of a server, and the sources behind it.
//!
//! A [`Source`] provides tools, prompts or resources. The [`Registry`] keeps the sources and,
//! behind one pointer, the immutable [`Catalog`] of everything that they offer; a call keeps the
//! catalog that it started with. Nothing here knows a session, a transport or the clock.

mod access; // the scopes that callers need
mod catalog; // the immutable snapshot: look up, list
mod context; // the context of a call for its source
mod figures; // numbers about sources, for operators
mod listing; // a list in pages, rendered once per revision
mod names; // valid tool names
mod outgoing; // requests to other servers, for observers
mod registry; // replaces the snapshot, notifies listeners
mod schema; // checking of arguments and results
mod source; // the `Source` trait, its calls and answers
mod watching; // watched resources, and sources that are told of them

pub use access::{Access, AddedSource};
pub use catalog::{Catalog, FoundResource, List, ToolEntry};
pub use context::{CallHandle, Context, Conversation};
pub use figures::{Figure, LinkEnd};
pub use names::{BadName, ToolName};
pub use outgoing::{Outgoing, OutgoingObserver, OutgoingRequest};
pub use registry::ToolSight;
pub use registry::{Announcement, Exchanged, Registry, SourceId, SourceState, SourceStatus};
pub use schema::{BadSchema, Checker};
pub use source::{Answer, Ask, BadOffer, Closing, CompleteCall, Offer, Outcome, Pending};
pub use source::{
    FolderCall, PromptCall, ResourceCall, Source, SourceHandle, StartError, Starting,
};
pub use source::{TaskMode, TaskPolicy, ToolCall};
