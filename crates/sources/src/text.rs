//! Prompts and resources from the configuration, or from files next to it.
//!
//! A file is read for every request, up to a limit.

mod file; // a file that is read for every request
mod prompt; // messages with placeholders
mod resource; // a text or a file under a URI

pub use file::{BadFile, File};
pub use prompt::{Body, Message, NotText, TextPrompt};
pub use resource::{Holding, TextResource};
