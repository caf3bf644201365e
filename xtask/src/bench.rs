//! `cargo xtask bench` and `cargo xtask record`: build the programs, then run the measurement.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Runs the benchmark with programs of the profile `dist`, which the published binary has too;
/// whether it succeeded. The installer and the benchmark name the peers that cannot be installed
/// and continue without them.
pub(crate) fn bench(workspace: &Path, options: &[&str]) -> io::Result<bool> {
    let packages = ["--profile", "dist", "--package", "sabir-bench", "--package", "sabir-cli"];
    let programs = ["echo-server", "floor", "sabir-bench", "sabir"];
    if !build(workspace, &packages, &programs)? {
        return Ok(false);
    }
    copy(workspace, &programs)?;
    if let Some(parts) = peers(options) {
        let install = workspace.join("bench/peers/install");
        Command::new(install).args(parts).current_dir(workspace).status()?;
    }
    run(workspace, "bench/sabir-bench", options)
}

/// The parts of `bench/peers/install` that these options need: `None` for no peer, no part for all
/// peers.
fn peers(options: &[&str]) -> Option<&'static [&'static str]> {
    let value = |name: &str| {
        options.iter().position(|word| *word == name).and_then(|at| options.get(at + 1)).copied()
    };
    match value("--only") {
        _ if value("--part") == Some("relay") => Some(&["gateways"]),
        Some(names) if names.split(',').all(|name| name == "floor" || name == "sabir") => None,
        // A quick run measures one peer.
        None if options.contains(&"--quick") => Some(&["rmcp", "gateways"]),
        _ => Some(&[]),
    }
}

/// Copies the programs, as an installation does. The page cache holds a file that the linker wrote
/// in smaller pieces than a copied one, and the program takes longer to start.
fn copy(workspace: &Path, programs: &[&str]) -> io::Result<()> {
    let (from, to) = (target(workspace).join("dist"), target(workspace).join("bench"));
    fs::create_dir_all(&to)?;
    for program in programs {
        // A new file, because a running program cannot be written to.
        let new = to.join(format!("{program}.new"));
        fs::copy(from.join(program), &new)?;
        fs::rename(new, to.join(program))?;
    }
    Ok(())
}

/// Are these options of the benchmark? Checked before the build, which takes minutes.
pub(crate) fn are_options(words: &[&str]) -> bool {
    match words {
        [] => true,
        ["--quick", rest @ ..] => are_options(rest),
        ["--only" | "--part", names, rest @ ..] => !names.starts_with('-') && are_options(rest),
        _ => false,
    }
}

/// Counts the cost of the hot paths; whether none has grown.
pub(crate) fn record(workspace: &Path, options: &[&str]) -> io::Result<bool> {
    let package = ["--release", "--package", "sabir-bench"];
    if !build(workspace, &package, &["echo-server", "echo-server-counted", "hot-paths"])? {
        return Ok(false);
    }
    let options: Vec<&str> = options.iter().copied().chain(["bench/record.toml"]).collect();
    run(workspace, "release/hot-paths", &options)
}

fn build(workspace: &Path, options: &[&str], programs: &[&str]) -> io::Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet"]).args(options).current_dir(workspace);
    build.args(programs.iter().flat_map(|program| ["--bin", program]));
    Ok(build.status()?.success())
}

fn run(workspace: &Path, program: &str, options: &[&str]) -> io::Result<bool> {
    let program = target(workspace).join(program);
    Ok(Command::new(program).args(options).current_dir(workspace).status()?.success())
}

/// Cargo's target folder.
fn target(workspace: &Path) -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => env::current_dir().unwrap_or_default().join(folder),
        None => workspace.join("target"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_peers_that_are_measured_are_installed() {
        assert_eq!(peers(&["--quick", "--part", "http", "--only", "floor,sabir"]), None);
        assert_eq!(peers(&["--only", "sabir,ts-v2"]), Some(&[][..]));
        assert_eq!(peers(&["--quick", "--part", "http"]), Some(&["rmcp", "gateways"][..]));
        assert_eq!(peers(&["--part", "relay"]), Some(&["gateways"][..]));
        assert_eq!(peers(&[]), Some(&[][..]));
    }

    #[test]
    fn unknown_options_are_refused_before_the_build() {
        for right in [&[][..], &["--quick"], &["--only", "floor", "--part", "http"]] {
            assert!(are_options(right), "{right:?}");
        }
        for wrong in [&["--only"][..], &["--part", "--quick"], &["--fast"], &["sabir"]] {
            assert!(!are_options(wrong), "{wrong:?}");
        }
    }
}
