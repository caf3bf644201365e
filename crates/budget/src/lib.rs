//! The resources of the process, shared fairly among callers.
//!
//! A caller is named here by its share, a number (`Caller::share` in `sabir-wire`): this crate knows
//! nothing of MCP.

mod files; // the limit of open files
mod limits; // reached limits, counted and logged
mod memory; // the memory budget
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
