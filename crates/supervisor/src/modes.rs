//! The hidden modes in which this executable is a warden or a keeper.

use std::path::PathBuf;

/// The modes, as the first argument.
pub(crate) const KEEP_ALL: &str = "__keep";
pub(crate) const KEEP_ONE: &str = "__keep-one";

/// A variable that wardens and keepers have, so that one which does not know that it is one (an
/// executable that never calls `hidden_mode`) cannot start wardens of its own without end.
pub(crate) const MARK: &str = "SABIR_KEEPER";

/// This very executable, even if its file has been replaced or removed since.
pub fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}
