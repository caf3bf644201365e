//! Another MCP server, whose tools, prompts and resources are passed on.
//!
//! Start at [`UpstreamSource`]. Names are mapped in one place (`mapping`), URIs in another
//! (`uris`). A result passes as the bytes that the upstream sent. A call during which the upstream
//! asks a question stays alive while its client is asked (`parked`).

mod calls; // one call: begun, asked, resumed
mod catalog; // listing what an upstream offers
mod filter; // which names are passed on
mod instance; // one connection to the upstream, and the calls in it
mod link; // an open connection, whose end is reported
mod login; // callers who have not logged in
mod mapping; // names of the upstream and ours
mod memory; // the last known catalog, on disk
mod parked; // calls that wait for their clients' answers
mod reach; // how the upstream is reached
mod server; // its instances, its catalog, its events
mod settings; // how it is used
mod relay; // relays the calls of our clients
mod source; // the source
mod tasks; // tasks of the upstream
mod uris; // URIs of schemes that belong to one server

pub use filter::{BadPattern, Filter};
pub use mapping::Naming;
pub use memory::Memory;
pub use reach::{BadTarget, EXIT_TIME, Reach, WebTarget};
pub use settings::{Scope, Settings};
pub use source::UpstreamSource;
