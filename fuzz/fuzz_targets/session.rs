//! Whatever happens to a session, the rules of JSON-RPC hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::session(bytes));
