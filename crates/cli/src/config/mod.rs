//! The configuration: read as written, then settled. Only [`Settings`] leaves this module; it has
//! no `Option` that means "default".
//!
//! Sources are only described here. [`SourceDescription::open_all`] opens them.

mod app; // an HTML view of a tool
mod articles; // a folder of Markdown
mod auth; // who issues tokens, and what scopes cover
mod cluster; // where sessions survive this process
mod command; // a program as a tool
mod confine; // the limits and the sandbox of a program
mod expand; // references to variables
mod expected; // what a wrong key or type should have been
mod file; // the file, as written
mod folders; // several folders of articles
mod import; // servers of other clients' files
mod http; // how HTTP clients are served
mod input; // the arguments of a tool or a prompt
mod json; // tables as JSON
mod mistake; // what is wrong, where, and a hint
mod openapi; // an HTTP API as tools
mod oversight; // how often callers may call, and the audit log
mod prompt; // messages with placeholders
mod reader; // TOML into types, with all mistakes
mod reach; // hosts, credentials and limits of outgoing requests
mod request; // an HTTP request as a tool
mod resource; // a text or a file under a URI
mod settle; // defaults are filled in, values are checked
mod skills; // `[[skills]]`
mod sources; // describing and opening sources
mod tls; // the server's certificate, and those of its clients
mod trust; // files that were found, not named
mod upstream; // another MCP server
mod upstream_auth; // how access tokens are got
mod units; // parsing durations and sizes
mod values; // durations, sizes and counts, with their places

pub(crate) use articles::holds_markdown;
pub(crate) use auth::is_plain;
pub(crate) use cluster::{ClusterStore, IDLE_CLUSTER};
pub(crate) use expected::TEMPLATE;
pub(crate) use http::{ADDRESSES, TOKEN_CHARACTERS, parse_address};
pub(crate) use mistake::{Mistake, Mistakes};
pub(crate) use openapi::apis;
pub(crate) use oversight::Oversight;
pub(crate) use settle::{Settings, Tables};
pub(crate) use sources::{OpenContext, ServedSources, SourceDescription, Unstarted};
pub(crate) use units::{duration, size};
pub(crate) use upstream::COLLISION;
pub(crate) use upstream_auth::Login;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use mistake::Text;
use settle::settle;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "sabir.toml";

/// The note for a server that serves nothing.
pub(crate) const EMPTY: &str = "warning: nothing is served: there is neither a sabir.toml nor \
     Markdown in this folder\n  hint: name a folder of Markdown, or write a file: sabir init";

/// The note for a file without sources.
pub(crate) const NO_SOURCE: &str = "warning: nothing is served: the file has no source\n  hint: for \
     the Markdown of its folder, write `[[articles]]` and below it `path = \".\"`";

/// Reads the configuration at `paths`: none, one, or several folders of articles.
pub(crate) fn read_all(paths: &[PathBuf], ignore_found: bool) -> Result<Settings, Mistakes> {
    match paths {
        [] => read(None, ignore_found),
        [path] => read(Some(path), ignore_found),
        several => folders::settle_folders(several, ignore_found),
    }
}

/// Reads the configuration at `path`, which is a file, or a folder in which it may be found. A
/// folder without one is a folder of articles, and so is every folder if `ignore_found`. Without a
/// path, the configuration in the current folder is read if there is one; else the current folder is
/// served if it holds Markdown.
pub(crate) fn read(path: Option<&Path>, ignore_found: bool) -> Result<Settings, Mistakes> {
    if let Some(path) = path.filter(|path| !path.is_dir()) {
        if ignore_found {
            let what = "--no-config requires a folder of articles";
            return Err(Mistake::of_file(path, what).into());
        }
        if let Some(mistake) = articles::document(path) {
            return Err(mistake.into());
        }
        return settle_file(path, |_, _| Ok(()));
    }
    let place = path.unwrap_or(Path::new("")).join(FILE_NAME);
    if ignore_found {
        return folder(path.unwrap_or(Path::new(".")));
    }
    match (path, place.metadata()) {
        (_, Ok(found)) => {
            trust::check_owner(&place, &found)?;
            let mut settings = settle_file(&place, trust::check_settings)?;
            settings.found = Some(place);
            Ok(settings)
        }
        (Some(path), Err(error)) if error.kind() == ErrorKind::NotFound => folder(path),
        (None, Err(error)) if error.kind() == ErrorKind::NotFound => {
            let here = Path::new(".");
            if holds_markdown(here) {
                return folder(here);
            }
            settle(&file::File::default(), &Text::new(&place, ""))
        }
        (_, Err(error)) => Err(Mistake::unreadable(&place, &error).into()),
    }
}

/// Reads and settles a file. `check` may refuse what is written in it.
fn settle_file(
    path: &Path,
    check: impl FnOnce(&file::File, &Text<'_>) -> Result<(), Mistake>,
) -> Result<Settings, Mistakes> {
    let text = std::fs::read_to_string(path).map_err(|error| Mistake::unreadable(path, &error))?;
    let text = Text::new(path, &text);
    if path.extension().is_some_and(|extension| extension == "json") {
        return servers(&text);
    }
    let file = reader::read(&text);
    text.checked(check(&file, &text));
    settle(&file, &text)
}

/// The settings for an `mcpServers` JSON file: the server is named after its folder.
fn servers(text: &Text<'_>) -> Result<Settings, Mistakes> {
    let mut file = file::File::default();
    file.server.name = text.folder().file_name().map(|name| plain(&name.to_string_lossy()));
    file.upstream = import::upstreams(text)?;
    settle(&file, text)
}

/// The settings for a folder of articles: the server is named after it.
fn folder(path: &Path) -> Result<Settings, Mistakes> {
    std::fs::read_dir(path).map_err(|error| Mistake::unreadable(path, &error))?;
    let mut file = file::File::default();
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file.server.name = whole.file_name().map(|name| plain(&name.to_string_lossy()));
    file.articles.push(articles::Articles::here());
    settle(&file, &Text::new(&path.join(FILE_NAME), ""))
}

/// The name without characters that would need quoting in a shell, and not like an option.
pub(crate) fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    match plain.trim_matches('-') {
        "" => "sabir".to_owned(),
        plain => plain.to_owned(),
    }
}
