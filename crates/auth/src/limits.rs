//! How often callers may call: token buckets, and quotas per day.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use sabir_budget::{Rate, network};
use sabir_engine::{Limited, OverseenCall};
use sabir_wire::Method;

/// How many buckets are kept. With more, the least recently used one is forgotten, and starts empty
/// with its next call.
const MAX_BUCKETS: NonZeroUsize = NonZeroUsize::new(100_000).expect("not zero");

pub(crate) const DAY: u64 = 24 * 60 * 60;

/// How often something may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// The calls that share one bucket.
    pub per: Vec<Per>,
    /// The only tools that are limited; `*` at the end matches the rest of a name. All if empty.
    pub tools: Vec<String>,
    /// The only source that is limited.
    pub source: Option<String>,
    /// How often in the long run.
    pub rate: Option<Rate>,
    /// How often in each day, which begins at midnight UTC.
    pub quota: Option<u64>,
}

/// The calls that share one bucket. If a limit has none of these, all calls share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Per {
    /// The calls of one caller.
    Caller,
    /// The calls from one address, or from one network of IPv6 (/64).
    Address,
    /// The calls of one tool, prompt or resource.
    Tool,
    /// The calls of one source.
    Source,
}

/// Counts calls.
pub(crate) struct Limits {
    limits: Vec<Limit>,
    buckets: Mutex<LruCache<u64, Bucket>>,
    hasher: RandomState,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    /// When the bucket will be empty again, in nanoseconds.
    empty_at: u128,
    day: u64,
    used: u64,
}

impl Limit {
    fn fits(&self, call: &OverseenCall) -> bool {
        let is_source = self.source.is_none() || self.source.as_deref() == call.source.as_deref();
        let name = call.name.as_deref().unwrap_or_default();
        let is_tool = self.tools.is_empty()
            || call.method == Method::CallTool
                && self.tools.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => name == pattern,
                });
        is_source && is_tool
    }

    /// The values that the calls of the same bucket have in common.
    pub(crate) fn bucket<'a>(&self, call: &'a OverseenCall) -> Shared<'a> {
        let has = |per| self.per.contains(&per);
        let caller = has(Per::Caller).then(|| (call.caller.issuer(), call.caller.subject()));
        let address = call.caller.address().filter(|_| has(Per::Address)).map(network);
        // Unknown names share a bucket, or they could displace all others.
        let name = call.name.as_deref().filter(|_| has(Per::Tool) && call.source.is_some());
        let source = call.source.as_deref().filter(|_| has(Per::Source));
        (caller, address, name, source)
    }

    /// The part of the limit for one of `nodes` nodes.
    fn part(&self, nodes: usize) -> Self {
        let count = u32::try_from(nodes.max(1)).unwrap_or(u32::MAX);
        let rate = |rate: Rate| Rate {
            period: rate.period.saturating_mul(count),
            burst: (rate.burst / count).max(1),
            ..rate
        };
        let quota = self.quota.map(|quota| quota.div_ceil(u64::from(count)));
        Self { rate: self.rate.map(rate), quota, ..self.clone() }
    }

    /// Counts one call in a bucket, or says how long it must wait.
    fn count(&self, bucket: &mut Bucket, now: Duration) -> Result<(), Duration> {
        if let Some(rate) = self.rate {
            rate.count(&mut bucket.empty_at, now)?;
        }
        if let Some(quota) = self.quota {
            let day = now.as_secs() / DAY;
            if bucket.day != day {
                (bucket.day, bucket.used) = (day, 0);
            }
            if bucket.used >= quota {
                return Err(Duration::from_secs((day + 1) * DAY).saturating_sub(now));
            }
            bucket.used += 1;
        }
        Ok(())
    }
}

/// The values that the calls of one bucket have in common.
pub(crate) type Shared<'a> =
    (Option<(&'a str, &'a str)>, Option<IpAddr>, Option<&'a str>, Option<&'a str>);

/// As shown to people: `10 in 1s per caller`.
impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(Rate { calls, period, .. }) = self.rate {
            write!(f, "{calls} in {period:?}")?;
        }
        if let Some(quota) = self.quota {
            let comma = if self.rate.is_some() { ", " } else { "" };
            write!(f, "{comma}{quota} in a day")?;
        }
        for (nth, per) in self.per.iter().enumerate() {
            let word = match per {
                Per::Caller => "caller",
                Per::Address => "address",
                Per::Tool => "tool",
                Per::Source => "source",
            };
            write!(f, "{}{word}", if nth == 0 { " per " } else { " and " })?;
        }
        Ok(())
    }
}

impl Limits {
    pub(crate) fn new(limits: Vec<Limit>) -> Self {
        let buckets = Mutex::new(LruCache::new(MAX_BUCKETS));
        Self { limits, buckets, hasher: RandomState::new() }
    }

    /// The limits that apply to a call, each with its number.
    pub(crate) fn of<'a>(
        &'a self,
        call: &'a OverseenCall,
    ) -> impl Iterator<Item = (usize, &'a Limit)> {
        let is_counted = matches!(
            call.method,
            Method::CallTool | Method::GetPrompt | Method::ReadResource | Method::Complete
        );
        let limits = self.limits.iter().enumerate().filter(move |_| is_counted);
        limits.filter(|(_, limit)| limit.fits(call))
    }

    /// Counts a call at `now`, the time since 1970, on one of `nodes` nodes. No limit counts a call
    /// that another limit refuses.
    pub(crate) fn admit(
        &self,
        call: &OverseenCall,
        now: Duration,
        nodes: usize,
    ) -> Result<(), Limited> {
        let mut of = self.of(call).peekable();
        if of.peek().is_none() {
            return Ok(());
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counted = Vec::new();
        let mut refused: Option<Limited> = None;
        for (nth, limit) in of {
            let key = self.hasher.hash_one((nth, limit.bucket(call)));
            let mut bucket = buckets.get(&key).copied().unwrap_or_default();
            let part = (nodes > 1).then(|| limit.part(nodes));
            match part.as_ref().unwrap_or(limit).count(&mut bucket, now) {
                Ok(()) => counted.push((key, bucket)),
                Err(wait) if refused.as_ref().is_none_or(|other| other.retry_after < wait) => {
                    refused = Some(Limited { rule: limit.to_string().into(), retry_after: wait });
                }
                Err(_) => {}
            }
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        for (key, bucket) in counted {
            buckets.put(key, bucket);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use sabir_wire::{Caller, Remote};

    use super::*;

    fn call(subject: &str, tool: &str) -> OverseenCall {
        OverseenCall {
            caller: Caller::new("i", subject),
            method: Method::CallTool,
            name: Some(tool.into()),
            source: Some("command x".into()),
            arguments: None,
        }
    }

    fn rate(calls: u32, burst: u32) -> Option<Rate> {
        Some(Rate { calls, period: Duration::from_secs(1), burst })
    }

    fn at(millis: u64) -> Duration {
        Duration::from_secs(100 * DAY) + Duration::from_millis(millis)
    }

    #[test]
    fn a_bucket_has_its_burst_and_refills_at_its_rate() {
        let limits = Limits::new(vec![Limit { rate: rate(10, 3), ..Limit::default() }]);
        let ask = |millis| limits.admit(&call("ann", "t"), at(millis), 1);
        for _ in 0..3 {
            assert_eq!(ask(0), Ok(()));
        }
        let refused = ask(0).unwrap_err();
        assert_eq!((&*refused.rule, refused.retry_after), ("10 in 1s", Duration::from_millis(100)));
        assert!(ask(99).is_err());
        assert_eq!(ask(100), Ok(()));
        assert!(ask(100).is_err());
        for _ in 0..3 {
            assert_eq!(ask(10_000), Ok(()), "it is full again");
        }
        assert!(ask(10_000).is_err());
    }

    #[test]
    fn a_quota_ends_at_midnight() {
        let per = vec![Per::Caller];
        let limits = Limits::new(vec![Limit { per, quota: Some(2), ..Limit::default() }]);
        let ask = |who: &str, millis| limits.admit(&call(who, "t"), at(millis), 1);
        assert!(ask("ann", 0).is_ok() && ask("ann", 1000).is_ok() && ask("bob", 0).is_ok());
        let refused = ask("ann", 2000).unwrap_err();
        assert_eq!(refused.retry_after, Duration::from_secs(DAY - 2));
        assert_eq!(&*refused.rule, "2 in a day per caller");
        assert!(ask("ann", DAY * 1000).is_ok());
    }

    #[test]
    fn buckets_are_shared_by_what_the_limit_says() {
        for (per, free) in [
            (vec![], [false, false]),
            (vec![Per::Caller], [true, false]),
            (vec![Per::Tool], [false, true]),
            (vec![Per::Caller, Per::Tool], [true, true]),
            (vec![Per::Source], [false, false]),
            (vec![Per::Address], [false, false]),
        ] {
            let limits =
                Limits::new(vec![Limit { per: per.clone(), rate: rate(1, 1), ..Limit::default() }]);
            assert!(limits.admit(&call("ann", "t"), at(0), 1).is_ok());
            assert!(limits.admit(&call("ann", "t"), at(0), 1).is_err());
            let others = [("bob", "t"), ("ann", "u")];
            let found = others.map(|(who, what)| limits.admit(&call(who, what), at(0), 1).is_ok());
            assert_eq!(found, free, "{per:?}");
        }
    }

    #[test]
    fn callers_of_one_address_can_share_a_bucket() {
        let per = vec![Per::Address];
        let limits = Limits::new(vec![Limit { per, quota: Some(1), ..Limit::default() }]);
        let from = |who: &str, address: &str| {
            let one = call(who, "t");
            let remote = Remote { connection: 1, address: Some(address.parse().unwrap()) };
            let caller = one.caller.clone().at(remote.into());
            limits.admit(&OverseenCall { caller, ..one }, at(0), 1).is_ok()
        };
        assert!(from("ann", "192.0.2.1") && !from("bob", "192.0.2.1") && from("bob", "192.0.2.2"));
        // One host can have every address of a /64 network.
        assert!(from("ann", "2001:db8::1") && !from("ann", "2001:db8::2"));
        assert!(from("ann", "2001:db8:0:1::1"));
    }

    #[test]
    fn a_limit_is_for_some_tools_or_a_source() {
        let tools = vec!["deploy".to_owned(), "db_*".to_owned()];
        let limits = Limits::new(vec![
            Limit { tools, quota: Some(0), ..Limit::default() },
            Limit { source: Some("other".into()), quota: Some(0), ..Limit::default() },
        ]);
        for (tool, is_free) in [("deploy", false), ("db_drop", false), ("deploys", true)] {
            assert_eq!(limits.admit(&call("ann", tool), at(0), 1).is_ok(), is_free, "{tool}");
        }
        let other = OverseenCall { source: Some("other".into()), ..call("ann", "x") };
        assert!(limits.admit(&other, at(0), 1).is_err());
        let list = OverseenCall { method: Method::ListTools, name: None, ..call("ann", "") };
        assert!(limits.admit(&list, at(0), 1).is_ok());
    }

    #[test]
    fn a_call_that_one_limit_refuses_is_counted_by_none() {
        let limits = Limits::new(vec![
            Limit { quota: Some(2), ..Limit::default() },
            Limit { rate: rate(1, 1), ..Limit::default() },
        ]);
        assert!(limits.admit(&call("ann", "t"), at(0), 1).is_ok());
        for _ in 0..10 {
            assert!(limits.admit(&call("ann", "t"), at(0), 1).is_err());
        }
        assert!(limits.admit(&call("ann", "t"), at(1000), 1).is_ok(), "one of the quota was left");
        assert!(limits.admit(&call("ann", "t"), at(9000), 1).is_err());
    }

    #[test]
    fn buckets_are_bounded() {
        let per = vec![Per::Caller];
        let limits = Limits::new(vec![Limit { per, quota: Some(1), ..Limit::default() }]);
        for nth in 0..=MAX_BUCKETS.get() {
            assert!(limits.admit(&call(&nth.to_string(), "t"), at(0), 1).is_ok());
        }
        assert_eq!(limits.buckets.lock().unwrap().len(), MAX_BUCKETS.get());
        assert!(limits.admit(&call("1", "t"), at(0), 1).is_err(), "still known");
        assert!(limits.admit(&call("0", "t"), at(0), 1).is_ok(), "forgotten");
    }
}
