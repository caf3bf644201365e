//! Re-exports name each item, and no crate hands on another crate of the workspace.

use crate::finding::Finding;
use crate::paths::{Named, imports};
use crate::source::Source;

/// The crates that may re-export single items of others: the library's public face, and the tests'.
const FACADES: &[&str] = &["crates/sabir/", "crates/testkit/"];

/// No `pub use a::*`, and no `pub use sabir_x` that gets around an arrow.
///
/// Clippy's `wildcard_imports` checks globs that are not re-exported.
pub(crate) fn reexports(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for import in imports(&source.shipped).iter().filter(|import| import.public) {
        for path in &import.paths {
            let written = path.segments.join("::");
            let (what, hint) = if path.is_glob() {
                (format!("glob re-export `pub use {written}`"), "list the re-exported names")
            } else if import.exported && hands_on_a_crate(source.path, path) {
                (
                    format!("re-export of another crate: `pub use {written}`"),
                    "depend on it directly",
                )
            } else {
                continue;
            };
            findings.push(Finding::wrong(source.path, path.line, what, hint));
        }
    }
    findings
}

fn hands_on_a_crate(file: &str, path: &Named<'_>) -> bool {
    let name = path.segments[0];
    let is_ours = name.starts_with("sabir_") && file.starts_with("crates/");
    let is_whole = matches!(path.segments.as_slice(), [_] | [_, "self"]);
    let may_name_items = FACADES.iter().any(|facade| file.starts_with(facade));
    is_ours && (is_whole || !may_name_items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = reexports(&Source::read(path, text));
        let found: Vec<_> = found.iter().map(|f| format!("{}: {}", f.line, f.what)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_glob_reexport_is_refused() {
        check("a.rs", "\npub use types::*;", &["2: glob re-export `pub use types::*`"]);
        check("a.rs", "pub(crate) use a::{b, c::*};", &["1: glob re-export `pub use a::c::*`"]);
        check(
            "crates/sabir/src/lib.rs",
            "pub use sabir_wire::*;",
            &["1: glob re-export `pub use sabir_wire::*`"],
        );
    }

    #[test]
    fn a_private_glob_is_left_to_clippy() {
        check("a.rs", "use super::*; fn f() { use Phase::*; }", &[]);
        check("a.rs", "#[cfg(test)] mod tests { pub use super::*; }", &[]);
    }

    #[test]
    fn no_crate_hands_on_a_whole_crate_of_the_workspace() {
        let whole = "1: re-export of another crate: `pub use sabir_wire`";
        for file in ["crates/engine/src/lib.rs", "crates/sabir/src/lib.rs"] {
            check(file, "pub use sabir_wire;", &[whole]);
            check(file, "pub mod a { pub use sabir_wire as wire; }", &[whole]);
            check(file, "pub use sabir_wire::{self};", &[&whole.replace("wire`", "wire::self`")]);
            check(file, "pub(crate) use sabir_wire as wire; use sabir_wire as w;", &[]);
            check(file, "pub use bytes; pub use sabir::x;", &[]);
        }
    }

    #[test]
    fn only_a_facade_reexports_items() {
        let item = "pub use sabir_wire::{Id, Revision};";
        for facade in FACADES {
            check(&format!("{facade}src/lib.rs"), item, &[]);
        }
        check(
            "crates/engine/src/lib.rs",
            item,
            &[
                "1: re-export of another crate: `pub use sabir_wire::Id`",
                "1: re-export of another crate: `pub use sabir_wire::Revision`",
            ],
        );
        check("examples/axum/src/main.rs", item, &[]);
    }
}
