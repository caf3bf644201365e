//! Verdicts on tokens, under the digests of the tokens.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use lru::LruCache;
use sabir_wire::Caller;

use crate::claims::{Accepted, Reason};

/// How many accepted tokens are remembered. With more, the least recently used one is forgotten,
/// and checked again with its next request.
const ACCEPTED: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");

/// The same for refused tokens, in a cache of their own: an attacker can make any number of them.
const REFUSED: NonZeroUsize = NonZeroUsize::new(1000).expect("not zero");

/// How long a refusal is remembered, in seconds: a token that is not valid yet may be valid soon.
const REFUSED_FOR: u64 = 10;

/// The digest of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(token: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }
}

/// Verdicts on tokens.
pub(crate) struct Cache {
    accepted: Mutex<LruCache<Digest, Accepted>>,
    refused: Mutex<LruCache<Digest, (Reason, u64)>>,
    keep: u64,
}

impl Cache {
    /// Verdicts are kept for `keep` at most.
    pub(crate) fn new(keep: Duration) -> Self {
        Self {
            accepted: Mutex::new(LruCache::new(ACCEPTED)),
            refused: Mutex::new(LruCache::new(REFUSED)),
            keep: keep.as_secs(),
        }
    }

    /// The verdict on a token, if it is known and still valid.
    pub(crate) fn find(&self, token: &Digest, now: Duration) -> Option<Result<Caller, Reason>> {
        let now = now.as_secs();
        if let Some(known) = lock(&self.accepted).get(token)
            && now < known.until
        {
            return Some(Ok(known.caller.clone()));
        }
        let refused = lock(&self.refused).get(token).copied();
        refused.filter(|(_, until)| now < *until).map(|(reason, _)| Err(reason))
    }

    /// Whether a token was accepted, and the verdict is still valid.
    pub(crate) fn is_accepted(&self, token: &Digest, now: Duration) -> bool {
        lock(&self.accepted).peek(token).is_some_and(|known| now.as_secs() < known.until)
    }

    /// Remembers a verdict, and returns it.
    pub(crate) fn keep(
        &self,
        token: Digest,
        verdict: Result<Accepted, Reason>,
        now: Duration,
    ) -> Result<Caller, Reason> {
        let now = now.as_secs();
        match verdict {
            Ok(Accepted { caller, until }) => {
                let until = until.min(now.saturating_add(self.keep));
                lock(&self.accepted).put(token, Accepted { caller: caller.clone(), until });
                Ok(caller)
            }
            Err(reason) => {
                lock(&self.refused).put(token, (reason, now + REFUSED_FOR));
                Err(reason)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn accepted(name: &str, until: u64) -> Result<Accepted, Reason> {
        Ok(Accepted { caller: Caller::new("i", name), until })
    }

    #[test]
    fn a_verdict_never_outlives_its_token() {
        let cache = Cache::new(at(300));
        let (short, long) = (Digest::of("short"), Digest::of("long"));
        cache.keep(short, accepted("short", 110), at(100)).unwrap();
        cache.keep(long, accepted("long", 9000), at(100)).unwrap();
        assert!(cache.find(&short, at(109)).is_some_and(|found| found.is_ok()));
        assert!(cache.find(&short, at(110)).is_none());
        assert!(cache.find(&long, at(399)).is_some());
        assert!(cache.find(&long, at(400)).is_none(), "keys may have been withdrawn");
    }

    #[test]
    fn a_refusal_is_forgotten_soon() {
        let cache = Cache::new(at(300));
        let token = Digest::of("x");
        assert!(cache.keep(token, Err("bad"), at(100)).is_err());
        assert_eq!(cache.find(&token, at(109)), Some(Err("bad")));
        assert_eq!(cache.find(&token, at(110)), None);
    }

    #[test]
    fn bad_tokens_do_not_displace_good_ones_and_both_are_bounded() {
        let cache = Cache::new(at(300));
        let good = Digest::of("good");
        cache.keep(good, accepted("good", 9000), at(0)).unwrap();
        for nth in 0..2 * REFUSED.get() {
            let _ = cache.keep(Digest::of(&format!("bad {nth}")), Err("bad"), at(0));
        }
        assert_eq!(lock(&cache.refused).len(), REFUSED.get());
        assert!(cache.find(&good, at(1)).is_some());
        for nth in 0..ACCEPTED.get() {
            cache.keep(Digest::of(&nth.to_string()), accepted("x", 9000), at(0)).unwrap();
        }
        assert_eq!(lock(&cache.accepted).len(), ACCEPTED.get());
        assert!(cache.find(&good, at(1)).is_none());
    }
}
