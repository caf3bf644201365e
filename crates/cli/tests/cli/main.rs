//! The real binary, as a person or a client sees it.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod acme;
mod apis;
mod apps;
mod articles;
mod asdlc;
mod auth;
mod calling;
mod children;
mod client;
mod cluster;
mod commands;
mod editors;
mod entries;
mod configuration;
mod extras;
mod folders;
mod greeting;
mod http;
mod install;
#[cfg(target_os = "linux")]
mod linking;
mod mistakes;
mod reload;
mod skills;
mod stdio;
mod tasks;
mod transcripts;
mod texts;
mod tls;
mod tools;
mod trust;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Runs `sabir` in `folder` with an empty standard input.
fn sabir(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).stdin(Stdio::null()).output().unwrap()
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
    command.current_dir(folder).args(args).env_remove("SABIR_LOG");
    command
}

/// A folder with a `sabir.toml`.
fn folder_with(file: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), file).unwrap();
    folder
}

/// The exit code, and the output of both streams unless it is empty. The lines of the file that
/// are shown with a mistake are left out; `mistakes` checks them.
fn seen(output: &Output) -> String {
    let mut seen = format!("exit {}", output.status.code().unwrap_or(-1));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8_lossy(bytes);
        let is_excerpt = |line: &&str| {
            line.starts_with("  ")
                && line
                    .trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                    .starts_with("| ")
        };
        let text: Vec<_> = text.lines().filter(|line| !is_excerpt(line)).collect();
        let text = text.join("\n");
        if !text.is_empty() {
            seen += &format!("\n{name}:\n{}", text.trim_end());
        }
    }
    seen
}
