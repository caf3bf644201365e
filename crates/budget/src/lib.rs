//! The resources of the process, shared fairly among callers.
//!
//! A caller is named here by its share, a number (`Caller::share` in `sabir-wire`): this crate knows
//! nothing of MCP.

mod files; // how many may be open
mod limits; // those that were reached
mod memory; // how much may be in use
mod pool; // threads for work that computes
mod queue; // calls that run at once, and those that wait
mod rate; // a number of times in a period
mod turns; // a queue in which callers take turns

pub use files::{files_for_connections, raise_file_limit};
pub use limits::Limit;
pub use memory::{Hold, Memory, MemoryFull, memory};
pub use pool::computing;
pub use pool::{ComputeError, Computing, Pool, Spent, TimeBudget, compute, set_compute_time};
pub use queue::{CallQueue, QueueFull, QueueLength, QueuedCall, RunningCall, queued_calls};
pub use rate::{Rate, network};
