//! The configuration, in two steps: as written, and as decided.
//!
//! Only the second leaves this module; it has no `Option` that means "default".

mod file; // the file, as written
mod http; // how HTTP clients are served
mod mistake; // what is wrong, where, and what to do
mod settle; // defaults, file and flags, settled
mod units; // durations and sizes, as people write them

pub(crate) use mistake::Mistake;
pub(crate) use settle::{Settings, settle};

use std::path::{Path, PathBuf};

use mistake::Text;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "sabir.toml";

/// Reads the configuration at `path`, or the one in this folder, or none at all.
pub(crate) fn read(path: Option<&Path>) -> Result<Settings, Mistake> {
    let (path, text) = match path {
        Some(path) => {
            let path = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Mistake::unreadable(&path, &error))?;
            (path, text)
        }
        None => {
            let path = PathBuf::from(FILE_NAME);
            match std::fs::read_to_string(&path) {
                Ok(text) => (path, text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => (path, String::new()),
                Err(error) => return Err(Mistake::unreadable(&path, &error)),
            }
        }
    };
    let text = Text { path: &path, text: &text };
    settle(&file::File::read(&text)?, &text)
}
