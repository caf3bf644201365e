//! Templates and values, as the fuzzer runs them.

use std::path::Path;

use proptest::prelude::*;
use sabir_sources::command::fuzzing::templates;

#[test]
fn the_corpus_of_templates_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/templates");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    assert!(files.len() > 4, "{} files", files.len());
    for file in files {
        templates(&std::fs::read(file.path()).unwrap());
    }
}

proptest! {
    #[test]
    fn no_value_becomes_an_option_or_changes(
        run in prop::collection::vec(
            prop::sample::select(vec![
                "{a}", "{a?}", "{a?x}", "x{a}", "--", "{b}", "{{", "}}", "{", "\n", "é", "{a}{b}",
            ]),
            0..8,
        ),
        values in prop::collection::vec(
            ("[ab]", prop::sample::select(vec![
                "\"-x\"", "\"--\"", "[\"-1\",2]", "-1", "true", "null", "\"a\\u0000b\"", "\"\\ud800\"",
                "{\"a\":1,\"a\":2}", "\"\"", "[]", "1.50",
            ])),
            0..3,
        ),
    ) {
        let members: Vec<_> = values.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
        templates(format!("{}\n\n{{{}}}", run.join("\n"), members.join(",")).as_bytes());
    }
}
