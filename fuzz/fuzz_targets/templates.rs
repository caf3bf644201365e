//! No value becomes an option, a second argument or another value.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_sources::command::fuzzing::templates(bytes));
