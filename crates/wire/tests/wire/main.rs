//! Values that are read are written without loss, and written values are read again, in every
//! revision.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod golden;
mod lossless;
mod members;
mod object;
mod relay;
mod requests;
mod round_trip;
mod values;
