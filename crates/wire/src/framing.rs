//! Bytes to frames, with bounds: lines (stdio) and server-sent events (HTTP).

mod lines;
mod sse;

pub use lines::{Line, LineSplitter};
pub use sse::{EventTooLong, SseEvent, SseReader};
