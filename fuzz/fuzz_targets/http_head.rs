//! Our reader of HTTP requests and hyper hear the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::http_head(bytes));
