//! The servers that are measured: the floor, Sabir, and the installed peers of
//! `bench/peers/peers.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::load::exchange::Era;
use crate::process::CommandLine;

/// Paths of the repository and of the programs.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The root of the repository.
    pub root: PathBuf,
    /// The folder of `echo-server`, `floor` and `sabir`.
    pub programs: PathBuf,
    /// The folder of the installed peers.
    pub peers: PathBuf,
}

impl Paths {
    /// Finds them from the working directory and from the path of this program.
    pub fn find() -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let root = std::env::current_dir().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let programs = program.parent().ok_or("this program has no parent folder")?.to_owned();
        let peers = programs.parent().ok_or("the target folder is missing")?.join("peers");
        if !root.join("bench/Cargo.toml").is_file() {
            return Err("bench/Cargo.toml not found (run it as `cargo xtask bench`)".into());
        }
        Ok(Self { root, programs, peers })
    }
}

/// The role of a server in the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The least that a server can do; others are compared with it.
    Floor,
    /// Sabir.
    Ours,
    /// A server of another SDK.
    Peer,
}

/// A server that is measured.
#[derive(Clone, Debug)]
pub struct Server {
    /// The name in tables.
    pub name: String,
    /// Its role.
    pub kind: Kind,
    /// SDK, version and settings.
    pub about: String,
    /// How it is started; `stdio`, or `http ADDRESS`, is added.
    pub command: CommandLine,
    /// The eras that it supports over HTTP.
    pub http: Vec<Era>,
    /// The eras that it supports over stdio.
    pub stdio: Vec<Era>,
    /// Whether it keeps legacy sessions.
    pub keeps_sessions: bool,
}

impl Server {
    /// How it is started for HTTP, up to the address.
    pub fn http_command(&self) -> CommandLine {
        self.command.and(&["http"])
    }
}

/// An entry of `peers.toml`.
#[derive(Deserialize)]
struct Peer {
    name: String,
    sdk: String,
    version: String,
    tuned: String,
    command: Vec<String>,
    eras: Vec<String>,
    stdio: Vec<String>,
    sessions: bool,
}

#[derive(Deserialize)]
struct Peers {
    #[serde(default)]
    peer: Vec<Peer>,
}

/// All installed servers, the floor first, and the missing ones with the reason.
pub fn servers(paths: &Paths) -> Result<(Vec<Server>, Vec<String>), String> {
    let mut all = vec![
        own(paths, "floor", Kind::Floor, "hyper alone; a bare loop over lines"),
        own(paths, "sabir", Kind::Ours, concat!("this repository, ", env!("CARGO_PKG_VERSION"))),
    ];
    let mut missing = Vec::new();
    let file = paths.root.join("bench/peers/peers.toml");
    let Ok(text) = fs::read_to_string(&file) else {
        missing.push("all peers: bench/peers/peers.toml not found".to_owned());
        return Ok((all, missing));
    };
    let peers: Peers = toml::from_str(&text).map_err(|error| format!("peers.toml: {error}"))?;
    for peer in peers.peer {
        match command(&peer.command, &paths.peers) {
            Ok(command) => all.push(Server {
                about: format!("{} {}: {}", peer.sdk, peer.version, peer.tuned),
                kind: Kind::Peer,
                command,
                http: eras(&peer.eras)?,
                stdio: eras(&peer.stdio)?,
                keeps_sessions: peer.sessions,
                name: peer.name,
            }),
            Err(file) => missing.push(format!("{}: {file} is not installed", peer.name)),
        }
    }
    Ok((all, missing))
}

fn own(paths: &Paths, name: &str, kind: Kind, about: &str) -> Server {
    let program = if kind == Kind::Ours { "echo-server" } else { "floor" };
    Server {
        name: name.to_owned(),
        kind,
        about: about.to_owned(),
        command: CommandLine::new(&paths.programs.join(program), &[]),
        http: Era::ALL.to_vec(),
        stdio: Era::ALL.to_vec(),
        keeps_sessions: kind == Kind::Ours,
    }
}

/// Resolves the words of a peer's command to files. The error is the first missing one.
fn command(words: &[String], installed: &Path) -> Result<CommandLine, String> {
    let mut files = Vec::new();
    for word in words {
        let file = match word.as_str() {
            "node" => installed.join("bin/node"),
            "python" => installed.join("venv/bin/python"),
            other => installed.join(other),
        };
        if !file.exists() {
            return Err(word.clone());
        }
        files.push(file.to_string_lossy().into_owned());
    }
    let (program, arguments) = files.split_first().ok_or("(empty command)")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Ok(CommandLine::new(Path::new(program), &arguments))
}

fn eras(names: &[String]) -> Result<Vec<Era>, String> {
    let era = |name: &String| {
        let found = Era::ALL.into_iter().find(|era| era.name() == name);
        found.ok_or_else(|| {
            format!("peers.toml: unknown era `{name}` (expected `modern` or `legacy`)")
        })
    };
    names.iter().map(era).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_are_installed_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("bin/node"), "").unwrap();
        let words = ["node".to_owned(), "server.mjs".to_owned()];
        assert_eq!(command(&words, folder.path()), Err("server.mjs".into()));
        fs::write(folder.path().join("server.mjs"), "").unwrap();
        let server = folder.path().join("server.mjs");
        let line = CommandLine::new(&folder.path().join("bin/node"), &[&server.to_string_lossy()]);
        assert_eq!(command(&words, folder.path()), Ok(line));
        assert!(command(&[], folder.path()).is_err());
    }

    #[test]
    fn an_unknown_era_is_an_error() {
        assert_eq!(eras(&["legacy".into(), "modern".into()]), Ok(vec![Era::Legacy, Era::Modern]));
        assert!(eras(&["old".into()]).unwrap_err().contains("`old`"));
    }
}
