//! The hidden modes of the executable.

use std::process::ExitCode;

use crate::command;

/// Runs a hidden mode if this process was started in one: the supervisor process, a monitor, or
/// the sandboxed start of a command. Otherwise returns `None` immediately.
///
/// Every executable that runs programs calls this first in `main`, before it starts a thread or
/// reads its arguments: `if let Some(code) = hidden_mode() { return code }`.
pub fn hidden_mode() -> Option<ExitCode> {
    sabir_supervisor::hidden_mode().or_else(|| {
        let mut args = std::env::args_os().skip(1);
        (args.next()? == command::EXEC).then(|| command::exec(args))
    })
}
