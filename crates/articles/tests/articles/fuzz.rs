//! Untrusted files, as the fuzzers run them.

use std::path::Path;

use proptest::prelude::*;
use sabir_articles::fuzzing;

/// Runs all files of a corpus.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 4, "{target} has {} files", files.len());
    files.iter().for_each(|file| run(&std::fs::read(file).unwrap()));
}

#[test]
fn the_corpus_of_frontmatters_holds() {
    replay("frontmatter", fuzzing::frontmatter);
}

#[test]
fn the_corpus_of_sections_holds() {
    replay("sections", fuzzing::sections);
}

/// Texts of the pieces that matter to a reader.
fn pieces(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_file_has_a_frontmatter_and_a_text(file in pieces(&[
        "---\n", "+++\n", "...\n", "---", "\r\n", "\n", " ", "title: a", "a: [b, {c: d}]\n", "- x\n",
        "a = 1\n", "[t]\n", "key: |\n  text\n", "&a *a", "<<: *a\n", "\"", "'", "# c\n", "\u{feff}",
    ])) {
        fuzzing::frontmatter(file.as_bytes());
    }

    #[test]
    fn any_text_has_an_outline(text in pieces(&[
        "# ", "## A\n", "### A {#id}\n", "A\n===\n", "B\n---\n", "\n\n", "> # q\n", "- # l\n", "```\n",
        "<div>", "[a](b)", "|a|b|\n|-|-|\n", "import x\n", "{#id}", "é", "\t", "[^1]: n\n", "\\#", "#",
    ])) {
        fuzzing::sections(text.as_bytes());
    }
}
