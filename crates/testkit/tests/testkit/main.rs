//! The players, the transcripts at each level, the schemas, and the seeds.

mod players;
mod properties;
mod schemas;
mod stream;
mod transcripts;
