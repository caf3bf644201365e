//! Calls whose results are fetched later. Their owners, their lifetimes and their stores.
//!
//! [`TaskTable`] has no I/O and no clock: time is an argument, in milliseconds since 1970. State
//! that must survive the process goes to a [`TaskStore`] before a client sees it.

mod disk; // a store that survives the process
mod record; // a task as it is stored
mod shared; // a store that several nodes share
mod store; // the trait of stores
mod table; // all tasks of a server

pub use disk::DiskStore;
pub use record::{Continuation, TaskRecord};
pub use shared::SharedStore;
pub use store::{Pending, StoreError, TaskStore};
pub use table::{Answered, TaskLimits, TaskTable, TooManyTasks, is_cursor, page};
