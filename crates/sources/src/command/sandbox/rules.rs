//! The Landlock rules of a sandbox.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use crate::command::program::{Files, Sandbox, Sockets};

/// The version that every sandbox requires: it has scopes for signals and abstract Unix sockets.
const VERSION: ABI = ABI::V6;

/// Paths that programs need in order to start, if they exist.
const SYSTEM: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/ld.so.cache",
    "/nix/store",
    "/gnu/store",
    "/dev/urandom",
];
const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// Whether the kernel can enforce the rules of `sandbox`.
pub(super) fn check(sandbox: &Sandbox) -> Result<(), String> {
    create(sandbox).map(drop)
}

/// Applies the rules of `sandbox` to this process.
pub(super) fn restrict(sandbox: &Sandbox, program: &Path) -> Result<(), String> {
    let mut rules = create(sandbox)?;
    if let Some(files) = &sandbox.files {
        rules = allow_files(rules, files, program)?;
    }
    if let Sockets::Named(sockets) = &sandbox.sockets {
        for path in sockets {
            rules = allow(rules, path, AccessFs::ResolveUnix.into())?;
        }
    }
    rules.restrict_self().map(drop).map_err(|error| unavailable(&error))
}

/// Rules that allow nothing of what `sandbox` restricts.
fn create(sandbox: &Sandbox) -> Result<RulesetCreated, String> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(VERSION))
        .map_err(|error| unavailable(&error))?;
    if sandbox.files.is_some() {
        rules = rules.handle_access(AccessFs::from_all(VERSION)).map_err(|e| unavailable(&e))?;
    }
    if !sandbox.network {
        rules = rules.handle_access(AccessNet::from_all(VERSION)).map_err(|e| unavailable(&e))?;
    }
    if let Sockets::Named(_) = sandbox.sockets {
        rules = rules.handle_access(AccessFs::ResolveUnix).map_err(|error| {
            format!("named `sockets` require Landlock 9 (Linux 7.1 or newer): {error}")
        })?;
    }
    rules.create().map_err(|error| unavailable(&error))
}

fn unavailable(error: &RulesetError) -> String {
    format!("the sandbox requires Landlock 6 (Linux 6.12 or newer): {error}")
}

fn allow_files(
    mut rules: RulesetCreated,
    files: &Files,
    program: &Path,
) -> Result<RulesetCreated, String> {
    let read = AccessFs::from_read(VERSION);
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    let write = AccessFs::from_all(VERSION) & !devices;
    let there = |path: &&&str| Path::new(**path).exists();
    for path in SYSTEM.iter().filter(there) {
        rules = allow(rules, Path::new(path), read)?;
    }
    for path in SINKS.iter().filter(there) {
        rules = allow(rules, Path::new(path), write)?;
    }
    rules = allow(rules, program, read)?;
    for path in &files.read {
        rules = allow(rules, path, read)?;
    }
    for path in &files.write {
        rules = allow(rules, path, write)?;
    }
    Ok(rules)
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    let cannot = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI::V9) };
    let opened = PathFd::new(path).map_err(|error| cannot(&error))?;
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| cannot(&error))
}
