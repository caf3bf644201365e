//! The players, the transcripts at each level, the schemas, and the seeds.

#![allow(clippy::unwrap_used, reason = "the helpers of tests may unwrap as the tests do")]

mod players;
mod properties;
mod schemas;
#[cfg(unix)]
mod stdio;
mod stream;
mod transcripts;
