//! A store as a source.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod announcing;
mod answering;
mod mistaking;
mod meaning;
mod serving;
mod shop;
mod support;
mod writing;
