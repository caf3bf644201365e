//! The configuration, in two steps: as written, and as decided.
//!
//! Only the second leaves this module; it has no `Option` that means "default".

mod articles; // a folder of Markdown
mod command; // a program as a tool
mod confine; // what a program may use and touch
mod file; // the file, as written
mod http; // how HTTP clients are served
mod input; // what may be asked
mod json; // tables that are JSON inside
mod mistake; // what is wrong, where, and what to do
mod prompt; // messages with placeholders
mod resource; // a text or a file under a URI
mod settle; // defaults, file and flags, settled
mod sources; // all that is offered
mod units; // durations and sizes, as people write them
mod values; // times, sizes and counts, with their places

pub(crate) use mistake::Mistake;
pub(crate) use settle::{Settings, settle};
pub(crate) use sources::{Offered, Programs};

use std::path::{Path, PathBuf};

use mistake::Text;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "sabir.toml";

/// Reads the configuration at `path`, or the one in this folder, or none at all. A folder without
/// one is a folder of articles.
pub(crate) fn read(path: Option<&Path>) -> Result<Settings, Mistake> {
    let (path, text) = match path {
        Some(path) if path.is_dir() && !path.join(FILE_NAME).exists() => return folder(path),
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

/// The settings of a folder of articles that says nothing about itself but its name.
fn folder(path: &Path) -> Result<Settings, Mistake> {
    std::fs::read_dir(path).map_err(|error| Mistake::unreadable(path, &error))?;
    let mut file = file::File::default();
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file.server.name = whole.file_name().map(|name| plain(&name.to_string_lossy()));
    file.articles.push(articles::Articles::here());
    settle(&file, &Text { path: &path.join(FILE_NAME), text: "" })
}

/// A name that can be pasted into any shell and any client.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}
