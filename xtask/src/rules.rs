//! The rules that neither the compiler, clippy nor cargo-deny checks, one module per group.
//!
//! A rule is a pure function from its input to its findings. To add one, write the function beside
//! its tests and add a row to [`RULES`].

mod arrows; // dependencies between crates
mod leftovers; // paths of a machine, unfinished work
mod locks; // lock files name the official registries
mod macros; // few, and none exported
mod reexports; // by name, and no crate for another
mod repeats; // no six identical lines twice
mod revisions; // the files that may compare revisions
mod rings; // no ring of modules
mod sizes; // length of files and test modules
mod untagged; // no untagged types without a reason

use crate::finding::Finding;
use crate::package::Package;
use crate::source::Source;
use crate::tree::File;

/// A rule, by its input.
pub(crate) enum Check {
    /// Each text file alone.
    File(fn(&File) -> Vec<Finding>),
    /// Each Rust file alone.
    Source(fn(&Source<'_>) -> Vec<Finding>),
    /// All Rust files together.
    Sources(fn(&[Source<'_>]) -> Vec<Finding>),
    /// The packages of the workspace.
    Packages(fn(&[Package]) -> Vec<Finding>),
}

/// Every rule.
pub(crate) const RULES: &[Check] = &[
    Check::Packages(arrows::arrows),
    Check::Packages(arrows::features),
    Check::Packages(arrows::pure_dependencies),
    Check::Source(reexports::reexports),
    Check::Sources(rings::rings),
    Check::File(sizes::file_length),
    Check::Source(sizes::test_module_length),
    Check::Sources(repeats::repeats),
    Check::Source(untagged::untagged),
    Check::Source(revisions::dates),
    Check::Source(revisions::comparisons),
    Check::Sources(macros::own_macros),
    Check::Source(macros::exported_macros),
    Check::File(leftovers::machine_paths),
    Check::File(leftovers::placeholders),
    Check::File(locks::registries),
];
