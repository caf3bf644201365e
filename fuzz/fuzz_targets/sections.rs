//! Any text has an outline.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_articles::fuzzing::sections(bytes));
