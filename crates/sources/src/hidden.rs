//! The hidden modes of the executable: work that needs a process of its own.

use std::process::ExitCode;

use crate::{command, keeper};

/// Does the work of a keeper or of a command's starter, if this process was started for that;
/// otherwise returns `None` at once.
///
/// Every executable that runs programs calls this first in `main`, before it starts a thread or
/// looks at its arguments: `if let Some(code) = hidden_mode() { return code }`.
pub fn hidden_mode() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let mode = args.next()?;
    // Nobody reads what a keeper might say: who listens to it is told by its socket's end.
    let code = |done: std::io::Result<()>| ExitCode::from(u8::from(done.is_err()));
    match mode.to_str()? {
        keeper::KEEP_ALL => Some(code(keeper::keep_all())),
        keeper::KEEP_ONE => Some(code(keeper::keep_one())),
        command::EXEC => Some(command::exec(args)),
        _ => None,
    }
}
