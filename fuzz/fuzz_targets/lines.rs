//! However a stream is cut, its lines are the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::lines(bytes));
