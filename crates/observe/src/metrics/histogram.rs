//! Durations in the buckets that OpenTelemetry recommends for MCP.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds in seconds, as they are written and in milliseconds.
const BOUNDS: [(&str, u64); 14] = [
    ("0.01", 10),
    ("0.02", 20),
    ("0.05", 50),
    ("0.1", 100),
    ("0.2", 200),
    ("0.5", 500),
    ("1", 1_000),
    ("2", 2_000),
    ("5", 5_000),
    ("10", 10_000),
    ("30", 30_000),
    ("60", 60_000),
    ("120", 120_000),
    ("300", 300_000),
];

/// A histogram of durations. Threads do not wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// One per bound, and one for all that took longer.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    pub(crate) fn observe(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        // A bound belongs to its bucket.
        let bucket = BOUNDS.partition_point(|(_, millis)| millis * 1_000_000 < nanos);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The current counts.
    pub(crate) fn buckets(&self) -> Buckets {
        let buckets = std::array::from_fn(|nth| self.buckets[nth].load(Ordering::Relaxed));
        Buckets { buckets, sum: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)) }
    }
}

/// The counts of a histogram at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    /// One per bound, and one for all that took longer.
    pub(crate) buckets: [u64; BOUNDS.len() + 1],
    pub(crate) sum: Duration,
}

impl Buckets {
    /// The bounds as they are written, each with its count.
    pub(crate) fn labelled(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let bounds = BOUNDS.iter().map(|(text, _)| *text).chain(["+Inf"]);
        bounds.zip(self.buckets)
    }

    /// The bounds in seconds.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = f64> {
        BOUNDS.iter().map(|(_, millis)| Duration::from_millis(*millis).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::super::exposition::{Family, Sample};
    use super::*;

    #[test]
    fn a_duration_is_in_every_bucket_from_its_bound_on() {
        let histogram = Histogram::default();
        for millis in [0, 10, 11, 300_000, 300_001] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut text = String::new();
        let labels = vec![("a", "b".to_owned())];
        let sample = Sample::Histogram(histogram.buckets());
        Family::durations("d", "Help.").with_labels(labels, sample).write(&mut text);
        for line in [
            "d_seconds_bucket{a=\"b\",le=\"0.01\"} 2",
            "d_seconds_bucket{a=\"b\",le=\"0.02\"} 3",
            "d_seconds_bucket{a=\"b\",le=\"120\"} 3",
            "d_seconds_bucket{a=\"b\",le=\"300\"} 4",
            "d_seconds_bucket{a=\"b\",le=\"+Inf\"} 5",
            "d_seconds_sum{a=\"b\"} 600.022",
            "d_seconds_count{a=\"b\"} 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
