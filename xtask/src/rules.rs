//! The rules of the house that no compiler checks, one module per group.
//!
//! A rule is a pure function from what it looks at to what it finds. To add one,
//! write the function beside its tests and add a row to [`RULES`].

mod arrows; // who may depend on whom
mod imports; // no names from nowhere
mod leftovers; // nothing of the workshop stays in the house
mod locks; // lock files name the official registries
mod macros; // few, and none for others
mod purity; // the inner crates touch no clock, file, socket or runtime
mod revisions; // who may know the revisions apart
mod rings; // modules do not go in circles
mod sizes; // a file is read in one sitting
mod untagged; // no guessing of types

use crate::finding::Finding;
use crate::package::Package;
use crate::source::Source;
use crate::tree::File;

/// What a rule looks at.
pub(crate) enum Check {
    /// Each text file alone.
    File(fn(&File) -> Vec<Finding>),
    /// Each Rust file alone.
    Source(fn(&Source<'_>) -> Vec<Finding>),
    /// All Rust files together.
    Sources(fn(&[Source<'_>]) -> Vec<Finding>),
    /// What cargo says about the crates.
    Packages(fn(&[Package]) -> Vec<Finding>),
}

/// Every rule.
pub(crate) const RULES: &[Check] = &[
    Check::Packages(arrows::arrows),
    Check::Packages(arrows::features),
    Check::Sources(rings::rings),
    Check::File(sizes::file_length),
    Check::Source(sizes::test_module_length),
    Check::Source(imports::globs),
    Check::Source(untagged::untagged),
    Check::Source(revisions::dates),
    Check::Source(revisions::comparisons),
    Check::Source(purity::pure_code),
    Check::Packages(purity::pure_manifest),
    Check::Sources(macros::own_macros),
    Check::Source(macros::exported_macros),
    Check::File(leftovers::machine_paths),
    Check::File(leftovers::placeholders),
    Check::File(locks::registries),
];
