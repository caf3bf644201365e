//! Our checker of schemas says what jsonschema says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sabir_testkit::fuzz::schema(bytes));
