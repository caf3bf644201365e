//! Runs every rule over the tree and prints the findings.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::finding::{Finding, Weight};
use crate::rules::{Check, RULES};
use crate::source::read_all;
use crate::tree::Tree;

/// Prints one line per finding to `out` and a summary to `log`. Returns the number of findings
/// without notes.
pub(crate) fn run(root: &Path, out: &mut dyn Write, log: &mut dyn Write) -> Result<usize, String> {
    let started = Instant::now();
    let tree = Tree::read(root)?;
    let findings = findings(&tree);
    for finding in &findings {
        // A closed pipe does not change the exit code.
        let _ = writeln!(out, "{finding}");
    }
    let wrong = findings.iter().filter(|f| f.weight == Weight::Wrong).count();
    let (rules, files, took) = (RULES.len(), tree.files.len(), started.elapsed().as_secs_f32());
    let notes = findings.len() - wrong;
    let _ = writeln!(
        log,
        "tidy: {rules} rules over {files} files in {took:.2} s: {wrong} findings, {notes} notes"
    );
    Ok(wrong)
}

/// All findings, by path and line.
fn findings(tree: &Tree) -> Vec<Finding> {
    let sources = read_all(&tree.files);
    let mut findings: Vec<_> = RULES
        .iter()
        .flat_map(|rule| match rule {
            Check::File(check) => tree.files.iter().flat_map(check).collect::<Vec<_>>(),
            Check::Source(check) => sources.iter().flat_map(check).collect(),
            Check::Sources(check) => check(&sources),
            Check::Packages(check) => check(&tree.packages),
        })
        .collect();
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_tree_has_no_findings() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let (mut out, mut log) = (Vec::new(), Vec::new());
        let wrong = run(root, &mut out, &mut log).unwrap();
        assert_eq!(wrong, 0, "\n{}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn the_rules_see_this_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tree = Tree::read(root).unwrap();
        assert!(tree.files.iter().any(|file| file.path == "xtask/src/tidy.rs"));
        assert!(tree.packages.iter().any(|package| package.folder() == Some("wire")));
        assert!(tree.packages.iter().all(|package| !package.manifest_text.is_empty()));
    }
}
