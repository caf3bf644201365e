//! The load generator. It is the same for all servers and checks every answer.

pub mod exchange; // requests, and the check of answers
pub mod http; // load over many connections
pub mod pipe; // load over standard input and output

use std::time::Duration;

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The number of answers, all of them right.
    pub answers: usize,
    /// The duration of the load.
    pub time: Duration,
    /// The latency of each answer in nanoseconds, sorted.
    latencies: Vec<u32>,
}

impl Measured {
    fn new(mut latencies: Vec<u32>, time: Duration) -> Self {
        latencies.sort_unstable();
        Self { answers: latencies.len(), time, latencies }
    }

    /// Answers per second.
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.time.as_secs_f64()
    }

    /// A quantile of the latency in microseconds: 0.99 is the p99.
    pub fn latency(&self, share: f64) -> f64 {
        let at = (self.latencies.len() as f64 * share).ceil() as usize;
        let at = at.clamp(1, self.latencies.len().max(1)) - 1;
        self.latencies.get(at).map_or(f64::NAN, |nanos| f64::from(*nanos) / 1e3)
    }
}
