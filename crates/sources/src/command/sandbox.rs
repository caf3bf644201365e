//! The sandbox: Landlock restricts file access, seccomp prevents sockets.
//!
//! It fails closed: a restriction that cannot be enforced is an error. Landlock version 3 (Linux 6.2)
//! is required, because earlier versions allow truncating files that may not be written. Landlock
//! restricts TCP only, so seccomp refuses every socket that is not a Unix socket, and io_uring, which
//! could open sockets. Landlock's network rules are added where they exist.
//!
//! A program in the sandbox cannot signal processes outside, if the kernel supports that (6.12).

use std::path::Path;

use super::program::Sandbox;

#[cfg(not(target_os = "linux"))]
pub(super) fn enter(sandbox: &Sandbox, _program: &Path) -> Result<(), String> {
    match sandbox {
        Sandbox { files: None, network: true } => Ok(()),
        _ => Err("the sandbox is supported on Linux only".to_owned()),
    }
}

/// Applies the sandbox to this process. `program` may be read and executed.
#[cfg(target_os = "linux")]
pub(super) fn enter(sandbox: &Sandbox, program: &Path) -> Result<(), String> {
    if let Some(files) = &sandbox.files {
        linux::restrict_files(files, program)?;
    }
    if !sandbox.network {
        linux::refuse_sockets()?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
        Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    use crate::command::program::Files;

    const VERSION: ABI = ABI::V3;

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

    pub(super) fn restrict_files(files: &Files, program: &Path) -> Result<(), String> {
        let read = AccessFs::from_read(VERSION);
        let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
        let write = AccessFs::from_all(VERSION) & !devices;
        let none = |error| format!("cannot restrict file access (Landlock 3 is required): {error}");

        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(VERSION))
            .map_err(none)?
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::Signal)
            .map_err(none)?
            .set_compatibility(CompatLevel::HardRequirement)
            .create()
            .map_err(none)?;
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
        rules.restrict_self().map_err(none)?;
        Ok(())
    }

    fn allow(
        rules: RulesetCreated,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, String> {
        let cannot = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(VERSION) };
        let opened = PathFd::new(path).map_err(|error| cannot(&error))?;
        rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| cannot(&error))
    }

    pub(super) fn refuse_sockets() -> Result<(), String> {
        let cannot = |error: &dyn std::fmt::Display| format!("cannot restrict sockets: {error}");
        let tcp = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessNet::from_all(ABI::V4))
            .and_then(Ruleset::create)
            .and_then(RulesetCreated::restrict_self);
        tcp.map_err(|error| cannot(&error))?;

        let filter = socket_filter().map_err(|error| cannot(&error))?;
        seccompiler::apply_filter(&filter).map_err(|error| cannot(&error))
    }

    fn socket_filter() -> Result<BpfProgram, seccompiler::BackendError> {
        let unix = libc::AF_UNIX as u64;
        let not_unix = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, unix)?;
        let sockets = vec![SeccompRule::new(vec![not_unix])?];
        let mut rules = vec![(libc::SYS_socket, sockets), (libc::SYS_io_uring_setup, vec![])];
        if cfg!(target_arch = "x86_64") {
            // The same calls under their numbers of the x32 interface, whatever they ask for.
            const X32: libc::c_long = 0x4000_0000;
            rules.push((X32 + libc::SYS_socket, vec![]));
            rules.push((X32 + libc::SYS_io_uring_setup, vec![]));
        }
        SeccompFilter::new(
            rules.into_iter().collect(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM as u32),
            std::env::consts::ARCH.try_into()?,
        )?
        .try_into()
    }
}
