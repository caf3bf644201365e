//! The hidden modes in which this executable is the supervisor process or a monitor.

use std::path::PathBuf;

/// The first argument that selects a mode.
pub(crate) const SUPERVISOR: &str = "__supervisor";
pub(crate) const MONITOR: &str = "__monitor";

/// An environment variable of the supervisor process and the monitors. An executable that never
/// calls `hidden_mode` inherits it, and so cannot start supervisor processes recursively.
pub(crate) const MARKER: &str = "SABIR_SUPERVISOR";

/// The path of the running executable. On Linux it is valid even if the file has been replaced or
/// removed.
pub fn current_executable() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}
