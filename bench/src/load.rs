//! The load generator: one for all servers, and it checks every answer.

pub mod exchange; // what is asked, and what is right
pub mod http; // over many connections
pub mod pipe; // over standard input and output

use std::time::Duration;

/// What came of a load.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How many answers came, all of them right.
    pub answers: usize,
    /// In how long.
    pub time: Duration,
    /// How long each took, in nanoseconds, sorted.
    latencies: Vec<u32>,
}

impl Measured {
    fn new(mut latencies: Vec<u32>, time: Duration) -> Self {
        latencies.sort_unstable();
        Self { answers: latencies.len(), time, latencies }
    }

    /// Answers in a second.
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.time.as_secs_f64()
    }

    /// The time within which this share of the answers came, in microseconds.
    pub fn latency(&self, share: f64) -> f64 {
        let at = (self.latencies.len() as f64 * share).ceil() as usize;
        let at = at.clamp(1, self.latencies.len().max(1)) - 1;
        self.latencies.get(at).map_or(f64::NAN, |nanos| f64::from(*nanos) / 1e3)
    }
}
