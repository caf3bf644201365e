//! Command-line programs as tools.
//!
//! Everything that can be decided is decided once, when the configuration is read: the command
//! line ([`CommandLine`]), what may be asked ([`Input`]), that the two agree, and the [`Program`].
//! Together they are a [`Command`]. A call of its [`CommandSource`] then fills in its [`Values`],
//! waits for its turn at the [`Gate`], and is [`run()`].
//!
//! No value ever reaches a shell, becomes a second argument, or becomes a flag unless the author
//! of the command said so.
//!
//! Not here: the supervision of processes (`sabir-supervisor`), the protocol, and the reading of `sabir.toml`.

mod capture; // reading output within bounds
mod exec; // putting on limits and sandbox
mod gate; // how many at once
mod input; // what may be asked
mod program; // what is run, and within which limits
mod reply; // what came of it, for the client
mod run; // one call
mod sandbox; // what Linux enforces
mod source; // the tool
mod template; // text with placeholders
mod values; // what was asked

pub use capture::{Observer, Stream};
pub use gate::{Busy, Gate, Pass, Turn};
pub use input::{Disagreement, Input, InputError};
pub use program::{Files, FindError, Finder, Limits, Program, Sandbox, find_program};
pub use reply::{BadMimeType, MimeType, Output};
pub use run::{Finish, Limit, RunError, run, run_until};
pub use source::{Command, CommandSource};
pub use template::{CommandLine, Place, RunItem, Stdin, TemplateError, TextTemplate, Wrong};
pub use values::{RenderError, Values};

pub(crate) use exec::{EXEC, exec};
