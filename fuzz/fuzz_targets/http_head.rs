//! Our reader of HTTP requests agrees with hyper.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::http_head(bytes));
