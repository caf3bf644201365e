//! Any text has a frontmatter and a rest.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_articles::fuzzing::frontmatter(bytes));
