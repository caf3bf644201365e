//! The length of files and of test modules.

use crate::finding::Finding;
use crate::source::{Source, is_test_path};
use crate::tree::File;

/// A source file with more lines gets a note, or is too long.
const NOTED: usize = 400;
const TOO_LONG: usize = 500;

/// A file of tests with more lines is too long.
const TESTS_TOO_LONG: usize = 1200;

/// A test module with more lines moves to a file of its own.
const TEST_MODULE_TOO_LONG: usize = 150;

/// Source files of any language have a limited length. TOML files are lists and have none.
pub(crate) fn file_length(file: &File) -> Vec<Finding> {
    if !file.is_source() || file.path.ends_with(".toml") {
        return Vec::new();
    }
    let lines = file.text.lines().count();
    let (limit, advice) = match is_test_path(&file.path) {
        true => (TESTS_TOO_LONG, "split them by what they test"),
        false => (TOO_LONG, "split the file"),
    };
    let what = format!("{lines} lines");
    if lines > limit {
        let hint = format!("at most {limit}: {advice}");
        vec![Finding::wrong(&file.path, limit + 1, what, hint)]
    } else if lines > NOTED && limit == TOO_LONG {
        let hint = format!("over {NOTED}, at most {limit}: consider splitting it");
        vec![Finding::note(&file.path, NOTED + 1, what, hint)]
    } else {
        Vec::new()
    }
}

/// A long test module is a file of its own.
pub(crate) fn test_module_length(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for item in &source.test_items {
        let tokens = &source.all[item.clone()];
        // The head of the item only, not the body of a test function.
        let opening = tokens.iter().position(|token| token.is("{")).unwrap_or(0);
        let Some([keyword, _name]) = tokens[..opening].last_chunk() else { continue };
        if !keyword.is("mod") {
            continue;
        }
        let (first, last) = (keyword.line, tokens[tokens.len() - 1].line);
        let lines = last + 1 - first;
        if lines > TEST_MODULE_TOO_LONG {
            let what = format!("{lines} lines of tests inside the file");
            let beside = source.path.trim_end_matches(".rs");
            let hint = format!("over {TEST_MODULE_TOO_LONG}: move them to {beside}/tests.rs");
            findings.push(Finding::wrong(source.path, first, what, hint));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Weight;

    #[track_caller]
    fn check(path: &str, lines: usize, expected: Option<Weight>) {
        let file = File { path: path.into(), text: "x\n".repeat(lines) };
        let found = file_length(&file);
        assert_eq!(found.first().map(|f| f.weight), expected, "{path} with {lines} lines");
    }

    #[test]
    fn a_source_file_has_a_soft_and_a_hard_limit() {
        check("crates/a/src/b.rs", NOTED, None);
        check("crates/a/src/b.rs", NOTED + 1, Some(Weight::Note));
        check("crates/a/src/b.rs", TOO_LONG, Some(Weight::Note));
        check("crates/a/src/b.rs", TOO_LONG + 1, Some(Weight::Wrong));
        check("examples/a/tool.py", TOO_LONG + 1, Some(Weight::Wrong));
    }

    #[test]
    fn a_file_of_tests_may_be_longer() {
        for path in ["crates/a/tests/b.rs", "crates/a/src/b/tests.rs"] {
            check(path, TESTS_TOO_LONG, None);
            check(path, TESTS_TOO_LONG + 1, Some(Weight::Wrong));
        }
    }

    #[test]
    fn data_and_prose_have_no_limit() {
        check("schema/a.json", 5000, None);
        check("Cargo.lock", 5000, None);
        check("examples/a/queries.toml", 5000, None);
        check("README.md", 5000, None);
    }

    #[track_caller]
    fn check_module(head: &str, lines: usize, expected: &[usize]) {
        let body = "x;\n".repeat(lines - 2);
        let text = format!("fn a() {{}}\n#[cfg(test)]\n{head} {{\n{body}}}\nfn b() {{}}\n");
        let found: Vec<_> = test_module_length(&Source::read("crates/a/src/b.rs", &text))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(found, expected, "{head}, {lines} lines");
    }

    #[test]
    fn a_test_module_inside_its_file_is_short() {
        check_module("mod tests", TEST_MODULE_TOO_LONG, &[]);
        check_module("mod tests", TEST_MODULE_TOO_LONG + 1, &[3]);
        check_module("pub(crate) mod pair", TEST_MODULE_TOO_LONG + 1, &[3]);
        check_module("fn long_test()", TEST_MODULE_TOO_LONG + 1, &[]);
    }

    #[test]
    fn a_test_module_in_its_own_file_has_no_such_limit() {
        let text = "#[cfg(test)]\nmod tests;\n".to_owned() + &"fn a() {}\n".repeat(300);
        assert_eq!(test_module_length(&Source::read("a.rs", &text)), []);
    }
}
