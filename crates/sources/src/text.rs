//! Prompts and resources that are written down: in the configuration, or in files beside it.
//!
//! A file is read anew for every call, within a bound, so that what is served is what is there.
//!
//! Not here: folders of articles, which can be searched.

mod file; // one file, read when it is asked for
mod prompt; // messages with placeholders
mod resource; // a text or a file under a URI

pub use file::{BadFile, File};
pub use prompt::{Body, Message, NotText, TextPrompt};
pub use resource::{Holding, TextResource};
