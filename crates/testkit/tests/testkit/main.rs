//! The players, the transcripts at each level, the schemas, and the seeds.

mod players;
mod transcripts;
