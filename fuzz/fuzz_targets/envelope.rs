//! Any bytes are a message, or say why not.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::envelope(bytes));
