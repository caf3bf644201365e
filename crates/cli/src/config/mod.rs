//! The configuration: read as written, then settled. Only [`Settings`] leaves this module; it has
//! no `Option` that means "default".
//!
//! Sources are only described here. [`SourceDescription::open_all`] opens them.

mod articles; // a folder of Markdown
mod command; // a program as a tool
mod confine; // the limits and the sandbox of a program
mod file; // the file, as written
mod http; // how HTTP clients are served
mod input; // the arguments of a tool or a prompt
mod json; // tables as JSON
mod mistake; // what is wrong, where, and a hint
mod prompt; // messages with placeholders
mod resource; // a text or a file under a URI
mod settle; // defaults are filled in, values are checked
mod sources; // describing and opening sources
mod units; // parsing durations and sizes
mod values; // durations, sizes and counts, with their places

pub(crate) use http::TOKEN_CHARACTERS;
pub(crate) use mistake::Mistakes;
pub(crate) use settle::Settings;
pub(crate) use sources::{OpenContext, SourceDescription};
pub(crate) use units::duration;

use std::path::{Path, PathBuf};

use mistake::{Mistake, Text};
use settle::settle;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "sabir.toml";

/// Reads the configuration at `path`. A folder without one is a folder of articles. Without a
/// path, the configuration in the current folder is read if there is one.
pub(crate) fn read(path: Option<&Path>) -> Result<Settings, Mistakes> {
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
                Err(error) => return Err(Mistake::unreadable(&path, &error).into()),
            }
        }
    };
    let text = Text { path: &path, text: &text };
    settle(&file::File::read(&text)?, &text)
}

/// The settings for a folder of articles: the server is named after it.
fn folder(path: &Path) -> Result<Settings, Mistakes> {
    std::fs::read_dir(path).map_err(|error| Mistake::unreadable(path, &error))?;
    let mut file = file::File::default();
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file.server.name = whole.file_name().map(|name| plain(&name.to_string_lossy()));
    file.articles.push(articles::Articles::here());
    settle(&file, &Text { path: &path.join(FILE_NAME), text: "" })
}

/// Replaces all characters that would need quoting in a shell.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}
