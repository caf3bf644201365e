//! What fuzzers and property tests run: the same functions, whoever makes the bytes.
//!
//! Each takes arbitrary bytes and panics where a promise is broken.
