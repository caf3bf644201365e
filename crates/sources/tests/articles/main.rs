//! A store as a source.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod serving;
mod support;
