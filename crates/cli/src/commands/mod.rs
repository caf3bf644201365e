//! What each command does.

mod check;
mod init;
mod serve;

use crate::args::Command;
use crate::report::Failure;

/// Does what was asked for.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Check { path } => check::run(path.as_deref()),
        Command::Init => init::run(),
    }
}
