//! A number of times in a period, counted without a timer.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// A number of times in a period, and how many of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many times. At least 1.
    pub calls: u32,
    /// In which time.
    pub period: Duration,
    /// How many at once. At least 1.
    pub burst: u32,
}

impl Rate {
    /// Counts one at `now` in a bucket, or returns how long it must wait. The bucket is the time at
    /// which it is empty again, in nanoseconds of the same clock; a new one is 0.
    pub fn count(&self, bucket: &mut u128, now: Duration) -> Result<(), Duration> {
        let wait = self.wait(*bucket, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        *bucket = (*bucket).max(now.as_nanos()) + self.each();
        Ok(())
    }

    /// How long the next one must wait.
    pub fn wait(&self, bucket: u128, now: Duration) -> Duration {
        let room = self.each() * u128::from(self.burst.max(1) - 1);
        let wait = bucket.saturating_sub(now.as_nanos() + room);
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    fn each(&self) -> u128 {
        self.period.as_nanos() / u128::from(self.calls.max(1))
    }
}

/// The network that is counted as one: a host can have all IPv6 addresses of its network.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_each_waits_for_its_turn() {
        let rate = Rate { calls: 10, period: Duration::from_secs(1), burst: 3 };
        let (mut bucket, now) = (0, Duration::from_secs(5));
        for _ in 0..3 {
            assert_eq!(rate.count(&mut bucket, now), Ok(()));
        }
        let wait = Duration::from_millis(100);
        assert_eq!(rate.count(&mut bucket, now), Err(wait));
        assert_eq!(rate.count(&mut bucket, now + wait), Ok(()));
        assert_eq!(rate.wait(bucket, now + wait), wait);
        assert_eq!(rate.wait(bucket, now + Duration::from_secs(9)), Duration::ZERO);
    }
}
