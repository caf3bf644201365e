//! Calls whose results are fetched later. Who they belong to, how long they are kept, and where.
//!
//! [`TaskTable`] has no I/O and no clock: time is an argument, in milliseconds since 1970. What is to
//! survive the process goes to a [`TaskStore`] before a client is told of it.

mod disk; // a store that survives the process
mod record; // a task as it is kept
mod shared; // a store that several nodes share
mod store; // where tasks are kept
mod table; // all tasks of a server

pub use disk::DiskStore;
pub use record::{Continuation, TaskRecord};
pub use shared::SharedStore;
pub use store::{Pending, StoreError, TaskStore};
pub use table::{Answered, TaskLimits, TaskTable, TooManyTasks, is_cursor, page};
