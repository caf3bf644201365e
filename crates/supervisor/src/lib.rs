//! Child processes that never outlive the process that started them.
//!
//! Sabir starts no program directly. Its only child is the *supervisor process*, which starts one
//! *monitor* process for every running program. The monitor starts the program and stays its
//! parent:
//!
//! ```text
//! sabir ── supervisor ─┬─ monitor ── program ── its descendants
//!                      ├─ monitor ── program
//!                      └─ monitor              (idle, waits for the next request)
//! ```
//!
//! Both are this same executable in a hidden mode (see [`hidden_mode`]). Each is a *child
//! subreaper* (`PR_SET_CHILD_SUBREAPER`): the kernel reparents every orphaned descendant to it,
//! even one that has moved to another process group or session. A monitor runs one program at a
//! time, so every process below it belongs to that program, and when the kernel reports that the
//! monitor has no children, nothing of the program is left. Nothing is guessed by name or
//! environment, and no walk over `/proc` can miss a process that forks meanwhile.
//!
//! A program is stopped by its own exit (then its remaining descendants are stopped),
//! [`Child::stop`], the drop of the [`Child`], or the end of Sabir for any reason. The last three
//! look the same to a monitor: its socket closes. The program's standard input is closed first;
//! after [`GracePeriod::after_stdin`] its process group gets SIGTERM; after
//! [`GracePeriod::after_term`] every descendant gets SIGKILL until none is left. Orphans outside
//! the process group get the same signals.
//!
//! Any one of these processes may be killed with SIGKILL, and Sabir together with any one other.
//! If Sabir is killed, the sockets close. If a monitor is killed, its descendants are reparented
//! to the supervisor process, which kills them. If the supervisor process is killed, the monitors
//! still have their sockets. (A monitor *and* the supervisor process killed at the same moment is
//! the one case that leaves processes behind.) The supervisor process and the monitors have their
//! own session and process groups, and their title is `supervisor of PID`, so that a signal to
//! Sabir's group, to its terminal or to every process named `sabir` does not reach them.
//!
//! # Alternatives
//!
//! The parent-death signal is bound to the thread that forked, is not inherited by grandchildren
//! and cannot be set before `exec` without unsafe code. A process that only knows process groups
//! cannot find a descendant that called `setsid`. If Sabir itself were the subreaper, nothing
//! would be stopped when Sabir dies, and the library would change a property of its user's
//! process. Control groups and PID namespaces do all of this, but creating them often needs
//! privileges. (The crate process-wrap offers the first two only.)
//!
//! # Cost and limits
//!
//! A call costs one message each way over a socket instead of an `exec`, and every program that
//! runs at the same time costs one small process, which is reused. A program that has changed its
//! user (`sudo`) cannot be signalled. On systems other than Linux, descendants that have left the
//! process group are not stopped.

#[cfg(not(unix))]
compile_error!("sabir-supervisor supports Unix only");

mod channel; // Sabir's end of a socket
mod child; // a running program
mod message; // the messages on the sockets
mod modes; // the hidden modes of the executable
mod monitor; // the process that runs one program
mod poll; // waiting for a socket, a signal or a timeout
mod root; // the supervisor process
mod socket; // bytes and file descriptors
mod supervisor; // starting programs, reusing monitors, closing
mod tree; // the descendants of a process

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

pub use child::{Child, Exit, WaitError};
pub use message::{GracePeriod, StartRequest};
pub use modes::current_executable;
pub use supervisor::{StartError, Supervisor, SupervisorSettings};

/// Runs the supervisor process or a monitor if this process was started as one. Otherwise returns
/// `None` immediately.
///
/// Every executable that starts programs calls this first in `main`, before it starts a thread or
/// reads its arguments: `if let Some(code) = hidden_mode() { return code }`.
pub fn hidden_mode() -> Option<ExitCode> {
    let run = match std::env::args_os().nth(1)?.to_str()? {
        modes::SUPERVISOR => root::run,
        modes::MONITOR => monitor::run,
        _ => return None,
    };
    // The output of these processes is not read: Sabir learns of an error by the closed socket.
    let result = close_to_others().and_then(|()| socket_on_stdin()).and_then(run);
    Some(ExitCode::from(u8::from(result.is_err())))
}

/// Keeps programs of the same user from tracing this process or reading the environments of others
/// in its memory, unless they are root.
fn close_to_others() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

fn socket_on_stdin() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
