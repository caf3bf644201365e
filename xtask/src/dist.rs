//! `cargo xtask dist`: the static binary, and all packages of it.

use std::io;
use std::path::Path;
use std::process::Command;

/// The architectures that can be built. Others than the machine's own need cargo-zigbuild.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// Whether these are options of `dist`.
pub(crate) fn are_options(options: &[&str]) -> bool {
    match options {
        [] => true,
        ["--arch", arch, rest @ ..] => ARCHITECTURES.contains(arch) && are_options(rest),
        ["--profile", profile, rest @ ..] => !profile.starts_with('-') && are_options(rest),
        _ => false,
    }
}

/// Builds the binary with musl, and packs it into `target/dist-packages`.
pub(crate) fn dist(root: &Path, options: &[&str]) -> io::Result<bool> {
    let option = |name: &str| {
        let at = options.iter().position(|option| *option == name)?;
        options.get(at + 1).copied()
    };
    let arch = option("--arch").unwrap_or(std::env::consts::ARCH);
    let profile = option("--profile").unwrap_or("dist");
    let target = format!("{arch}-unknown-linux-musl");
    let build = if arch == std::env::consts::ARCH { "build" } else { "zigbuild" };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut building = Command::new(cargo);
    building.current_dir(root);
    // The package has a program for its tests, too.
    building.args([build, "--package", "sabir-cli", "--bin", "sabir"]);
    building.args(["--profile", profile, "--target", &target]);
    if !building.status()?.success() {
        return Ok(false);
    }
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir));
    let packing = Command::new("python3")
        .args(["-B", "dist/package.py", "--arch", arch, "--binary"])
        .arg(folder.join(&target).join(profile).join("sabir"))
        .arg("--out")
        .arg(folder.join("dist-packages"))
        .current_dir(root)
        .status()?;
    Ok(packing.success())
}
