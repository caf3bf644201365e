//! `cargo xtask soak` and `cargo xtask siege`: the kill test for many rounds, the attacks for long.

use std::path::Path;
use std::process::Command;
use std::{env, io};

/// The default number of rounds.
pub(crate) const ROUNDS: u32 = 10_000;

/// The maximum: about two days.
const MAX_ROUNDS: u32 = 1_000_000;

/// Parses the number of rounds.
pub(crate) fn rounds(written: &str) -> Option<u32> {
    written.parse().ok().filter(|rounds| (1..=MAX_ROUNDS).contains(rounds))
}

/// How long the attacks go on by default, in seconds.
pub(crate) const SIEGE: u32 = 1800;

/// Runs the kill test of the binary; whether it passed.
pub(crate) fn run(workspace: &Path, rounds: u32) -> io::Result<bool> {
    test(workspace, &["--test", "kill"], "SABIR_KILL_ROUNDS", rounds)
}

/// Attacks the binary, built as it is published; whether it held.
pub(crate) fn siege(workspace: &Path, seconds: u32) -> io::Result<bool> {
    test(workspace, &["--release", "--test", "siege"], "SABIR_SIEGE_SECONDS", seconds)
}

fn test(workspace: &Path, which: &[&str], variable: &str, value: u32) -> io::Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--package", "sabir-cli"])
        .args(which)
        .args(["--", "--nocapture"])
        .current_dir(workspace)
        .env(variable, value.to_string())
        .status()?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_bounded() {
        assert_eq!(rounds("1"), Some(1));
        assert_eq!(rounds("1000000"), Some(MAX_ROUNDS));
        for wrong in ["0", "1000001", "-1", "many", ""] {
            assert_eq!(rounds(wrong), None, "{wrong}");
        }
    }
}
