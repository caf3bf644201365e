//! The players, the transcripts at each level, the schemas, and the seeds.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod players;
mod properties;
mod schemas;
mod stream;
mod transcripts;
