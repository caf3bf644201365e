//! Command-line programs as tools.
//!
//! A [`Command`] is checked once, when the configuration is read: its [`CommandLine`], its
//! [`Input`], that their names match, and its [`Program`]. A call of its [`CommandSource`] renders
//! its [`Values`], waits in the [`CallQueue`](sabir_budget::CallQueue), and is [`run()`] by the supervisor.
//!
//! A value never reaches a shell, never becomes a second argument, and never becomes a flag unless
//! the author of the command allows it.

mod capture; // reads output up to a limit
mod definition; // mistakes in a definition
mod extras; // files, a folder and progress
mod duplicate; // keys that occur twice
mod exec; // applies limits and the sandbox
pub mod fuzzing; // what fuzzers run
mod input; // the arguments
mod program; // the program and its limits
mod reply; // the result for the client
mod run; // one call
mod sandbox; // Landlock and seccomp
mod source; // the tool
mod template; // texts with placeholders
mod values; // the values of a call

pub use capture::{Observer, Stream};
pub use definition::{DefinitionError, Location, Place};
pub use extras::{Extras, OUTPUT_FILE};
pub use input::{Input, nearest};
pub use program::{Files, FindError, Finder, Limits, Program, Sandbox, Sockets, find_program};
pub use reply::{BadMimeType, MimeType, Output};
pub use run::{Finish, Limit, RunError, run, run_until};
pub use source::{Command, CommandSource};
pub use template::{CommandLine, RunItem, Stdin, TextTemplate};
pub use values::{RenderError, Values};

pub(crate) use exec::{EXEC, exec};
#[cfg(feature = "apis")]
pub(crate) use template::Piece;
#[cfg(feature = "apis")]
pub(crate) use values::{items, text};
