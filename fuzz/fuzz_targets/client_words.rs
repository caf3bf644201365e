//! Whatever words a client uses, the rules of JSON-RPC hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::client_words(bytes));
