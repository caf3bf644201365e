//! Opens regular files only: opening a pipe blocks until it has a writer.

use std::io;

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;

/// Opens a file for reading. Anything else, such as a pipe or a device, is an error, also if it has just
/// replaced a file.
pub(crate) fn open(dir: &Dir, path: &str) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = dir.open_with(path, OpenOptions::new().read(true).custom_flags(flags))?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}
