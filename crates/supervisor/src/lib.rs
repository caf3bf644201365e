//! Children that never outlive us.
//!
//! Sabir starts no program itself. It has one child, the *warden*, which has a *keeper* for every
//! program that runs; the keeper starts the program and stays its parent:
//!
//! ```text
//! sabir ── warden ─┬─ keeper ── program ── its children, and theirs
//!                  ├─ keeper ── program
//!                  └─ keeper              (idle, waits for the next order)
//! ```
//!
//! Both are this same executable, started again in a hidden mode. Each is a *child subreaper*
//! (`PR_SET_CHILD_SUBREAPER`): the kernel gives it every orphan below, whatever group or session
//! the orphan has put itself into. A keeper keeps one program at a time, so all that lives below
//! it belongs to that program, and when the kernel says that it has no children, nothing is left.
//! No guess by names or environment, no walk that can miss what forks meanwhile.
//!
//! What ends a program: its own exit (then what it left behind is ended), [`Child::end`], the
//! drop of the [`Child`], and the end of Sabir, by whatever means. The last three are one thing
//! to a keeper: its socket closes. First the program's standard input is closed, after
//! [`Patience::after_stdin`] the group gets SIGTERM, after [`Patience::after_term`] everything
//! below gets SIGKILL until nothing is left. Orphans outside the group get the same signals.
//!
//! Any one of these processes may be killed with SIGKILL, and Sabir together with any one other.
//! If it is Sabir, the sockets close; if a keeper, its tree becomes the warden's, which kills it;
//! if the warden, the keepers still have their sockets. (A keeper *and* the warden at the same
//! moment is the one case that leaves something behind.) Warden and keepers live in a session and
//! in groups of their own and are not called `sabir` but `keeper of PID`, so that a signal to
//! Sabir's group, to its terminal or to everything of that name does not take them along.
//!
//! Why not otherwise. The parent-death signal is bound to the thread that forked, is not
//! inherited by grandchildren and cannot be set before `exec` without unsafe code. A process that
//! is merely told the process groups cannot find who has left them with `setsid`. Making Sabir
//! itself the subreaper does nothing at its own death, and would change the process of whoever
//! uses the library. Control groups and PID namespaces do all of it, where one is permitted to
//! make them: often not.
//!
//! What it costs: per call one message each way over a socket, instead of an `exec`; per program
//! that runs at the same time one small process, which is used again. What it cannot do: signal a
//! program that has changed its user (`sudo`); and, off Linux, end what has left its group.
//!
//! Not here: what is read from a program and for how long. See `command::run`.

#[cfg(not(unix))]
compile_error!("sabir-supervisor is for Unix only");

mod child; // a program that is kept
mod line; // our end of a socket
mod modes; // how this executable becomes a keeper
mod one; // the process that keeps one program
mod order; // what goes over the sockets
mod pool; // starting, using again, closing
mod socket; // bytes, and open files beside them
mod tree; // the processes below this one
mod wake; // what wakes a keeper
mod warden; // the process that keeps the keepers

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

pub use child::{Child, Exit, WaitError};
pub use modes::this_program;
pub use order::{Order, Patience, YEAR};
pub use pool::{KeeperSettings, Keepers, StartError, refusal};

/// Does the work of a warden or of a keeper, if this process was started for that; otherwise
/// returns `None` at once.
///
/// Every executable that runs programs calls this first in `main`, before it starts a thread or
/// looks at its arguments: `if let Some(code) = hidden_mode() { return code }`.
pub fn hidden_mode() -> Option<ExitCode> {
    let work = match std::env::args_os().nth(1)?.to_str()? {
        modes::KEEP_ALL => warden::watch,
        modes::KEEP_ONE => one::keep,
        _ => return None,
    };
    // Nobody reads what a keeper might say: who listens to it is told by its socket's end.
    Some(ExitCode::from(u8::from(socket_on_stdin().and_then(work).is_err())))
}

fn socket_on_stdin() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
