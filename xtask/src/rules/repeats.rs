//! No six identical lines twice in the shipped code of `crates/`.
//!
//! Compared are trimmed lines that say something: no blank lines, comments, attributes, imports or
//! single brackets. The tool `duplicates` also finds code of the same shape; this rule can fail.

use std::collections::HashMap;

use crate::finding::Finding;
use crate::source::Source;

/// This many identical lines in a row are too many.
const LINES: usize = 6;

/// One finding per pair of places, at the later place.
pub(crate) fn repeats(sources: &[Source<'_>]) -> Vec<Finding> {
    let is_ours = |source: &&Source<'_>| source.path.starts_with("crates/") && !source.is_test();
    let files: Vec<(&str, Vec<Line<'_>>)> = sources
        .iter()
        .filter(is_ours)
        .filter(|source| source.path.contains("/src/"))
        .map(|source| (source.path, lines(source)))
        .collect();
    let mut seen: HashMap<Vec<&str>, (usize, usize)> = HashMap::new();
    let mut findings = Vec::new();
    for (file, (path, lines)) in files.iter().enumerate() {
        let mut run_ends_before = usize::MAX;
        for at in 0..(lines.len() + 1).saturating_sub(LINES) {
            let texts = lines[at..at + LINES].iter().map(|line| line.text).collect();
            let (first_file, first) = *seen.entry(texts).or_insert((file, at));
            if first_file == file && first + LINES > at {
                continue; // the same lines, or lines that overlap them
            }
            let is_same_run = run_ends_before == at;
            run_ends_before = at + 1;
            let (other, other_lines) = &files[first_file];
            if !is_same_run {
                let what = format!("{LINES} lines repeat {other}:{}", other_lines[first].number);
                let hint = "write one function for both";
                findings.push(Finding::wrong(path, lines[at].number, what, hint));
            }
        }
    }
    findings
}

/// The first words of an import, which may span several lines.
const IMPORTS: &[&str] = &["use ", "pub use ", "pub(crate) use ", "pub(super) use "];

struct Line<'t> {
    number: usize,
    text: &'t str,
}

/// The lines of shipped code that count.
fn lines<'t>(source: &Source<'t>) -> Vec<Line<'t>> {
    let tests: Vec<_> = source
        .test_items
        .iter()
        .map(|item| &source.all[item.clone()])
        .map(|item| item[0].line..=item[item.len() - 1].line)
        .collect();
    let lines = (1..).zip(source.text.lines()).map(|(number, line)| (number, line.trim()));
    let shipped = lines.filter(|(number, _)| !tests.iter().any(|range| range.contains(number)));
    let mut in_import = false;
    let counted = shipped.filter(|(_, text)| {
        in_import |= IMPORTS.iter().any(|head| text.starts_with(head));
        let is_import = in_import;
        in_import &= !text.ends_with(';');
        let is_comment = text.starts_with("//") || text.starts_with('#');
        !is_import && !is_comment && text.contains(char::is_alphanumeric)
    });
    counted.map(|(number, text)| Line { number, text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: &str =
        "fn f() {\n    a();\n\n    b(); \n    // why\n    c();\n    d();\n    e();\n}\n";

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::read(path, text)).collect();
        let found: Vec<_> = repeats(&sources)
            .iter()
            .map(|f| format!("{}:{}: {}", f.path, f.line, f.what))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn six_identical_lines_are_found_in_two_files_and_in_one() {
        let indented = SIX.replace("    ", "  ").replace("\n\n", "\n");
        check(
            &[("crates/a/src/x.rs", SIX), ("crates/b/src/y.rs", &format!("struct S;\n{indented}"))],
            &["crates/b/src/y.rs:2: 6 lines repeat crates/a/src/x.rs:1"],
        );
        check(
            &[("crates/a/src/x.rs", &format!("{SIX}struct S;\n{SIX}"))],
            &["crates/a/src/x.rs:11: 6 lines repeat crates/a/src/x.rs:1"],
        );
    }

    #[test]
    fn a_longer_run_is_found_once() {
        let long = SIX.replace("}\n", "    g();\n    h();\n}\n");
        check(
            &[("crates/a/src/x.rs", &long), ("crates/a/src/y.rs", &long)],
            &["crates/a/src/y.rs:1: 6 lines repeat crates/a/src/x.rs:1"],
        );
    }

    #[test]
    fn five_lines_tests_imports_and_other_folders_do_not_count() {
        let five = SIX.replace("    e();\n", "");
        let imports = "use a;\nuse b::{\n    c,\n    d,\n    e,\n    f,\n};\nuse g;\n";
        let test = format!("struct S;\n#[cfg(test)]\nmod tests {{\n{SIX}}}\n");
        for text in [&five, imports, &test] {
            check(&[("crates/a/src/x.rs", text), ("crates/a/src/y.rs", text)], &[]);
        }
        check(&[("crates/a/tests/x.rs", SIX), ("crates/a/tests/y.rs", SIX)], &[]);
        check(&[("bench/src/x.rs", SIX), ("bench/src/y.rs", SIX)], &[]);
    }
}
