//! What is read is written again without loss, and what is written is read again, in every revision.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod golden;
mod lossless;
mod relay;
mod requests;
mod round_trip;
mod values;
