//! Headers that pass say what the body says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::headers(bytes));
