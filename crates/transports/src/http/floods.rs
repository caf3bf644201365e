//! Refuses requests of an address that sends too many, before anything of them is parsed.
//!
//! Two things are counted: requests, if the operator sets a limit, and requests without valid
//! credentials. After too many of the latter, an address is refused for a while, except with
//! credentials that were accepted before: other callers may share the address.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use lru::LruCache;
use sabir_budget::{Limit, Rate, network};

use super::reply::Refusal;
use super::settings::Limits;

/// How many addresses are counted. With more, the least recently used one is forgotten.
const MAX_ADDRESSES: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");

/// Counts requests by address.
pub(crate) struct Floods {
    requests: Option<Rate>,
    refusals: Option<Rate>,
    began: Instant,
    /// Nothing was ever counted.
    is_quiet: AtomicBool,
    addresses: Mutex<LruCache<IpAddr, Buckets>>,
}

#[derive(Clone, Copy, Default)]
struct Buckets {
    requests: u128,
    refusals: u128,
}

impl Floods {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            requests: limits.requests,
            refusals: limits.refusals,
            began: Instant::now(),
            is_quiet: AtomicBool::new(true),
            addresses: Mutex::new(LruCache::new(MAX_ADDRESSES)),
        }
    }

    /// Refuses a request if there were too many from this address. `is_known` tells whether its
    /// credentials were accepted before.
    pub(crate) fn admit(
        &self,
        address: Option<IpAddr>,
        is_known: impl FnOnce() -> bool,
    ) -> Result<(), Refusal> {
        let Some(address) = address else { return Ok(()) };
        if self.requests.is_none() && self.is_quiet.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (now, address) = (self.began.elapsed(), network(address));
        let buckets = self.lock().get(&address).copied().unwrap_or_default();
        let wait =
            |rate: Option<Rate>, bucket| rate.map_or(Duration::ZERO, |rate| rate.wait(bucket, now));
        let requests = wait(self.requests, buckets.requests);
        if !requests.is_zero() {
            return Err(too_many(requests));
        }
        let refusals = wait(self.refusals, buckets.refusals);
        if refusals.is_zero() || is_known() { Ok(()) } else { Err(too_many(refusals)) }
    }

    /// Counts a request that was admitted.
    pub(crate) fn note_request(&self, address: Option<IpAddr>) {
        let (Some(address), Some(rate)) = (address, self.requests) else { return };
        let now = self.began.elapsed();
        let mut addresses = self.lock();
        let buckets = addresses.get_or_insert_mut(network(address), Buckets::default);
        let _ = rate.count(&mut buckets.requests, now);
    }

    /// Counts a request without valid credentials.
    pub(crate) fn note_refusal(&self, address: Option<IpAddr>) {
        let (Some(address), Some(rate)) = (address, self.refusals) else { return };
        self.is_quiet.store(false, Ordering::Relaxed);
        let now = self.began.elapsed();
        let mut addresses = self.lock();
        let buckets = addresses.get_or_insert_mut(network(address), Buckets::default);
        // The request was admitted: the count only matters for the next one.
        let _ = rate.count(&mut buckets.refusals, now);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<IpAddr, Buckets>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_many(wait: Duration) -> Refusal {
    let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
    let reason = format!("too many requests from this address (wait {seconds} s)");
    Limit::Address.reach(&reason);
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason)
        .with(RETRY_AFTER, HeaderValue::from(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rate(calls: u32, burst: u32) -> Option<Rate> {
        // The period is so long that nothing is refilled during a test.
        Some(Rate { calls, period: Duration::from_secs(3600), burst })
    }

    fn floods(requests: Option<Rate>, refusals: Option<Rate>) -> Floods {
        Floods::new(&Limits { requests, refusals, ..Limits::default() })
    }

    fn four(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn after_bad_credentials_only_known_ones_are_admitted() {
        let floods = floods(None, rate(1, 3));
        for _ in 0..3 {
            assert!(floods.admit(four(1), || false).is_ok());
            floods.note_refusal(four(1));
        }
        let refusal = floods.admit(four(1), || false).unwrap_err();
        assert_eq!(refusal.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(floods.admit(four(1), || true).is_ok(), "others may share the address");
        assert!(floods.admit(four(2), || false).is_ok());
        assert!(floods.admit(None, || false).is_ok(), "a Unix socket has no address");
    }

    #[test]
    fn requests_are_limited_if_the_operator_says_so() {
        let floods = floods(rate(1, 2), None);
        for _ in 0..2 {
            assert!(floods.admit(four(1), || true).is_ok());
            floods.note_request(four(1));
        }
        assert!(floods.admit(four(1), || true).is_err());
        assert!(floods.admit(four(2), || true).is_ok());
        for _ in 0..100 {
            floods.note_refusal(four(3));
        }
        assert!(floods.admit(four(3), || false).is_ok(), "refusals are not limited");
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        let floods = floods(None, rate(1, 1));
        floods.note_refusal("2001:db8::1".parse().ok());
        assert!(floods.admit("2001:db8::ffff:2".parse().ok(), || false).is_err());
        assert!(floods.admit("2001:db8:0:1::1".parse().ok(), || false).is_ok());
    }

    #[test]
    fn addresses_are_bounded() {
        let floods = floods(None, rate(1, 1));
        for nth in 0..=u32::try_from(MAX_ADDRESSES.get()).unwrap() {
            floods.note_refusal(Some(IpAddr::from(nth.to_be_bytes())));
        }
        assert_eq!(floods.lock().len(), MAX_ADDRESSES.get());
        let is_refused =
            |nth: u32| floods.admit(Some(IpAddr::from(nth.to_be_bytes())), || false).is_err();
        assert!(is_refused(1) && !is_refused(0), "the oldest is forgotten");
    }
}
