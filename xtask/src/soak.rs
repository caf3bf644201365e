//! `cargo xtask soak`, `siege`, `tasks` and `chaos`: the kill test for many rounds, the attacks and the
//! faults of a cluster for long, and tasks that survive a kill.

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

/// How often the binary is killed with tasks in it by default.
pub(crate) const TASK_ROUNDS: u32 = 100;

/// Kills the binary again and again with fifty tasks in all states, and has ten thousand at once;
/// whether those that had ended survived, the others say what happened, and all of them fit.
pub(crate) fn tasks(workspace: &Path, rounds: u32) -> io::Result<bool> {
    let sizes = [("SABIR_TASK_ROUNDS", rounds), ("SABIR_TASK_COUNT", 7), ("SABIR_TASKS", 10_000)];
    let which = |module: &'static str| ["--test", "relay", module];
    Ok(test_with(workspace, &which("tasks::killed"), &sizes)?
        && test_with(workspace, &which("tasks::many"), &sizes)?)
}

/// Attacks the binary, built as it is published; whether it held.
pub(crate) fn siege(workspace: &Path, seconds: u32) -> io::Result<bool> {
    test(workspace, &["--release", "--test", "siege"], "SABIR_SIEGE_SECONDS", seconds)
}

/// How long nodes are killed by default, in minutes.
pub(crate) const CHAOS: u32 = 30;

/// Kills and stops the nodes of a cluster under load; whether nothing was lost.
pub(crate) fn chaos(workspace: &Path, minutes: u32) -> io::Result<bool> {
    disturb(workspace, &minutes.saturating_mul(60).to_string())
}

/// Kills the nodes of a cluster under load so many times; whether nothing was lost.
pub(crate) fn kills(workspace: &Path, kills: u32) -> io::Result<bool> {
    disturb(workspace, &format!("--kills {kills}"))
}

fn disturb(workspace: &Path, extent: &str) -> io::Result<bool> {
    let seed = std::process::id();
    let status = Command::new(workspace.join("tests.d/90-cluster"))
        .env("SABIR_CHAOS", extent)
        .env("SABIR_CHAOS_SEED", seed.to_string())
        .status()?;
    Ok(status.success())
}

fn test(workspace: &Path, which: &[&str], variable: &str, value: u32) -> io::Result<bool> {
    test_with(workspace, which, &[(variable, value)])
}

fn test_with(workspace: &Path, which: &[&str], variables: &[(&str, u32)]) -> io::Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--package", "sabir-cli"])
        .args(which)
        .args(["--", "--nocapture"])
        .current_dir(workspace)
        .envs(variables.iter().map(|(name, value)| (name, value.to_string())))
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
