//! Messages of a server in the client's revision.
//!
//! Values are in the shape of the newest revision and stay so in memory. They are written without
//! the members that the client's revision lacks, and converted where content would be lost: a link
//! becomes text, a sound an embedded resource.

mod errors;
mod notifications;
mod questions;
mod results;

pub use errors::{error, settle};
pub use notifications::{
    acknowledged, cancelled, changed, ended, logged, progressed, task_changed,
};
pub use questions::{Unsupported, question};
pub use results::{page, response, result};

#[cfg(test)]
mod tests;
