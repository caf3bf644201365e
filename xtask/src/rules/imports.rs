//! No names from nowhere: a reader finds each name in the list of imports.

use crate::finding::Finding;
use crate::paths::imports;
use crate::source::Source;

/// No `use super::*`, `use crate::*` or `pub use …::*` outside tests.
///
/// A glob of one of our modules is the same thing by a longer name and is refused as
/// well; the variants of an enum (`use Phase::*`) and the prelude of another crate are not.
pub(crate) fn globs(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for import in imports(&source.shipped) {
        for path in import.paths.iter().filter(|path| path.is_glob()) {
            let written = path.segments.join("::");
            let (what, hint) = if import.public {
                (format!("glob re-export `pub use {written}`"), "list what is re-exported by name")
            } else if is_our_module(&path.segments) {
                (format!("glob import `use {written}`"), "list what is used by name")
            } else {
                continue;
            };
            findings.push(Finding::wrong(source.path, path.line, what, hint));
        }
    }
    findings
}

fn is_our_module(segments: &[&str]) -> bool {
    let [head, inner @ .., _glob] = segments else { return false };
    matches!(*head, "crate" | "super" | "self")
        && inner.last().is_none_or(|last| !last.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = globs(&Source::read(path, text));
        let found: Vec<_> = found.iter().map(|f| format!("{}: {}", f.line, f.what)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn globs_of_our_own_modules_are_refused() {
        check("a.rs", "use super::*;", &["1: glob import `use super::*`"]);
        check("a.rs", "\nuse crate::*;", &["2: glob import `use crate::*`"]);
        check("a.rs", "use super::{a, *};", &["1: glob import `use super::*`"]);
        check("a.rs", "use super::super::*;", &["1: glob import `use super::super::*`"]);
        check("a.rs", "fn f() { use crate::types::*; }", &["1: glob import `use crate::types::*`"]);
    }

    #[test]
    fn glob_reexports_are_refused() {
        check("a.rs", "pub use types::*;", &["1: glob re-export `pub use types::*`"]);
        check("a.rs", "pub(crate) use a::{b, c::*};", &["1: glob re-export `pub use a::c::*`"]);
        check("a.rs", "pub use Phase::*;", &["1: glob re-export `pub use Phase::*`"]);
    }

    #[test]
    fn variants_preludes_and_plain_imports_are_fine() {
        check("a.rs", "use super::a; use crate::{b, c}; pub use d::E;", &[]);
        check("a.rs", "fn f() { use Phase::*; use crate::Kind::*; }", &[]);
        check("a.rs", "use std::io::prelude::*;", &[]);
        check("a.rs", "// use super::*;\nlet a = \"use crate::*\";", &[]);
    }

    #[test]
    fn tests_may_use_what_is_above_them() {
        check("a.rs", "#[cfg(test)] mod tests { use super::*; }", &[]);
        check("a/tests.rs", "use super::*;", &[]);
        check("tests/a.rs", "use super::*;", &[]);
    }
}
