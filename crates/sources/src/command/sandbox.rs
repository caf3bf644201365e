//! The sandbox: Landlock restricts files, signals and connections, seccomp refuses the system calls
//! that Landlock does not know.
//!
//! It fails closed: a restriction that cannot be enforced is an error. Landlock version 6 (Linux
//! 6.12) is required by every sandbox, because earlier versions cannot keep a program from
//! signalling Sabir and its helper processes.
//!
//! seccomp sees the numbers that are passed to a system call, but not the paths. It therefore
//! refuses Unix sockets and changes of file metadata altogether, unless the configuration allows
//! them.

#[cfg(target_os = "linux")]
mod filter; // the system calls that are refused
#[cfg(target_os = "linux")]
mod rules; // Landlock

use std::path::Path;

use super::program::Sandbox;

/// Applies the sandbox to this process. `program` may be read and executed.
#[cfg(target_os = "linux")]
pub(super) fn enter(sandbox: &Sandbox, program: &Path) -> Result<(), String> {
    drop_capabilities(sandbox.network)
        .map_err(|error| format!("cannot drop capabilities: {error}"))?;
    rules::restrict(sandbox, program)?;
    // Afterwards: the filter must not refuse what Landlock needs.
    filter::apply(sandbox)
}

/// Keeps only the capabilities that concern files, and networks if they are allowed. Only root has
/// others, among them some that undo a sandbox: loading modules, tracing, reading any memory. The
/// program cannot regain them, because a sandbox excludes new privileges.
#[cfg(target_os = "linux")]
fn drop_capabilities(network: bool) -> rustix::io::Result<()> {
    use rustix::thread::{CapabilitySet as Set, CapabilitySets, capabilities, set_capabilities};
    let mut kept =
        Set::CHOWN | Set::DAC_OVERRIDE | Set::DAC_READ_SEARCH | Set::FOWNER | Set::FSETID;
    if network {
        kept |= Set::NET_BIND_SERVICE | Set::NET_RAW;
    }
    let ours = capabilities(None)?;
    let sets = CapabilitySets {
        effective: ours.effective & kept,
        permitted: ours.permitted & kept,
        inheritable: ours.inheritable & kept,
    };
    set_capabilities(None, sets)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn enter(_sandbox: &Sandbox, _program: &Path) -> Result<(), String> {
    Err("the sandbox is supported on Linux only".to_owned())
}

impl Sandbox {
    /// Whether this system can enforce the sandbox; otherwise the reason.
    pub fn check(&self) -> Result<(), String> {
        #[cfg(target_os = "linux")]
        return rules::check(self);
        #[cfg(not(target_os = "linux"))]
        Err("the sandbox is supported on Linux only".to_owned())
    }
}
