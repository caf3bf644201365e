//! Stores of records.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

/// A pending answer of a store or a bus.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Away>> + Send + 'a>>;

/// The store or the bus cannot be reached now, or has no room. Nothing is known about the record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Away(String);

impl Away {
    /// An error for operators.
    pub fn new(reason: impl ToString) -> Self {
        Self(reason.to_string())
    }
}

/// A change of a record.
#[derive(Clone, Copy, Debug)]
pub struct Swap<'a> {
    /// The record that is replaced; `None` if there must be none.
    pub old: Option<&'a [u8]>,
    /// The new one. It is not empty.
    pub new: &'a [u8],
    /// How long it is kept.
    pub life: Duration,
}

/// New items of a list.
#[derive(Clone, Copy, Debug)]
pub struct Append<'a> {
    /// The items, oldest first.
    pub items: &'a [Vec<u8>],
    /// How many are kept in all; the oldest are dropped.
    pub most: usize,
    /// How long the list is kept.
    pub life: Duration,
}

/// One more count against a limit.
#[derive(Clone, Copy, Debug)]
pub struct Count<'a> {
    /// The name of the counter. No record or list has the same name.
    pub name: &'a str,
    /// The limit of a counter.
    pub bound: Bound,
}

/// The limit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A bucket, which has room for `burst`; each of them drains in the time `each`.
    Rate {
        /// Counted in microseconds, at least one.
        each: Duration,
        /// At least one.
        burst: u32,
    },
    /// At most `most` within the time `left`. Then the count is dropped.
    Quota {
        /// Zero refuses all.
        most: u64,
        /// How much of the time is left.
        left: Duration,
    },
}

impl Bound {
    /// Counts one in a `state`, which is 0 at first, at `now`, in microseconds. Returns the next
    /// state and how long it is kept, or how long to wait.
    pub(crate) fn count(&self, state: u64, now: u64) -> Result<(u64, Duration), Duration> {
        match *self {
            Self::Rate { each, burst } => {
                let each = micros(each).max(1);
                let room = each.saturating_mul(u64::from(burst.max(1) - 1));
                match state.saturating_sub(now.saturating_add(room)) {
                    0 => {
                        let next = state.max(now).saturating_add(each);
                        Ok((next, Duration::from_micros(next - now)))
                    }
                    wait => Err(Duration::from_micros(wait)),
                }
            }
            Self::Quota { most, left } if state >= most => Err(left),
            Self::Quota { left, .. } => Ok((state + 1, left)),
        }
    }
}

/// Counts one in each state. Returns the next states, or the index of the longest wait and that
/// wait.
pub(crate) fn count_all(
    counts: &[Count<'_>],
    states: &[u64],
    now: u64,
) -> Result<Vec<(u64, Duration)>, (usize, Duration)> {
    let counted = counts.iter().zip(states).map(|(count, state)| count.bound.count(*state, now));
    let counted: Vec<_> = counted.collect();
    let refused = counted.iter().enumerate().filter_map(|(nth, one)| Some((nth, one.err()?)));
    match refused.max_by_key(|(_, wait)| *wait) {
        Some(refused) => Err(refused),
        None => Ok(counted.into_iter().flatten().collect()),
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Keeps records until they expire. A record is replaced as a whole, by compare-and-set.
pub trait Store: std::fmt::Debug + Send + Sync {
    /// The record of that name. With `renew` it is kept for that long from now on.
    fn get<'a>(&'a self, name: &'a str, renew: Option<Duration>) -> Pending<'a, Option<Bytes>>;

    /// Replaces the record, if it is still the old one. `false` if it was another.
    fn swap<'a>(&'a self, name: &'a str, swap: Swap<'a>) -> Pending<'a, bool>;

    /// Appends items to a list.
    fn append<'a>(&'a self, name: &'a str, list: Append<'a>) -> Pending<'a, ()>;

    /// The items of a list, oldest first; none if there is no such list. A list and a record have
    /// different names.
    fn items<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<Bytes>>;

    /// The last item of a list.
    fn last<'a>(&'a self, name: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async move { Ok(self.items(name).await?.pop()) })
    }

    /// Counts one for each name, or for none if one of them is at its limit. Returns the index of
    /// the longest wait and that wait; `None` if all were counted.
    fn count<'a>(&'a self, counts: &'a [Count<'a>]) -> Pending<'a, Option<(usize, Duration)>>;

    /// Removes a record. When this completes, no node finds it any more.
    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, ()>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Part of the test of every store.
    pub(crate) async fn a_record_is_replaced_by_compare_and_set(store: &dyn Store) {
        let life = Duration::from_secs(60);
        assert_eq!(store.get("a", None).await.unwrap(), None);
        assert!(
            !store.swap("a", Swap { old: Some(b"0"), new: b"1", life }).await.unwrap(),
            "there is none"
        );
        assert!(store.swap("a", Swap { old: None, new: b"1", life }).await.unwrap());
        assert!(
            !store.swap("a", Swap { old: None, new: b"2", life }).await.unwrap(),
            "there is one"
        );
        assert!(
            !store.swap("a", Swap { old: Some(b"0"), new: b"2", life }).await.unwrap(),
            "it is another"
        );
        assert!(store.swap("a", Swap { old: Some(b"1"), new: b"2", life }).await.unwrap());
        assert_eq!(store.get("a", None).await.unwrap().as_deref(), Some(b"2".as_slice()));
        store.remove("a").await.unwrap();
        assert_eq!(store.get("a", None).await.unwrap(), None);
        store.remove("a").await.unwrap();
    }

    /// The same for lists.
    pub(crate) async fn a_list_keeps_the_newest_items(store: &dyn Store) {
        let life = Duration::from_secs(60);
        assert!(store.items("l").await.unwrap().is_empty());
        for items in [&[b"1".to_vec(), b"".to_vec()], &[b"3".to_vec(), b"4".to_vec()]] {
            store.append("l", Append { items, most: 3, life }).await.unwrap();
        }
        let kept = store.items("l").await.unwrap();
        assert_eq!(store.last("l").await.unwrap().as_deref(), Some(b"4".as_slice()));
        assert_eq!(store.last("none").await.unwrap(), None);
        assert_eq!(
            kept.iter().map(|item| &**item).collect::<Vec<_>>(),
            [b"".as_slice(), b"3", b"4"]
        );
    }

    /// The same for counts.
    pub(crate) async fn counts_are_shared_and_all_or_nothing<F: Future<Output = ()>>(
        store: &dyn Store,
        pass: impl Fn(Duration) -> F,
    ) {
        let rate = Bound::Rate { each: Duration::from_millis(1000), burst: 2 };
        let quota = |most| Bound::Quota { most, left: Duration::from_millis(3000) };
        let both = |most| [("rate", rate), ("quota", quota(most))];
        let count = async |counts: &[(&str, Bound)]| {
            let counts = counts.iter().map(|(name, bound)| Count { name, bound: *bound });
            store.count(&counts.collect::<Vec<_>>()).await.unwrap()
        };
        assert_eq!(count(&both(2)).await, None);
        assert_eq!(count(&both(2)).await, None);
        let (which, wait) = count(&both(2)).await.expect("both are full");
        assert_eq!(which, 1, "the quota takes longer");
        assert!(wait > Duration::from_millis(1500) && wait <= Duration::from_millis(3000));
        let (_, wait) = count(&[("rate", rate)]).await.expect("the bucket is full");
        assert!(wait <= Duration::from_millis(1000), "{wait:?}");
        // A refused count is counted nowhere.
        assert_eq!(count(&[("quota", quota(3))]).await, None);
        assert!(count(&[("quota", quota(3))]).await.is_some());
        pass(Duration::from_millis(1010)).await;
        assert_eq!(count(&[("rate", rate)]).await, None, "one has drained");
        pass(Duration::from_millis(3010)).await;
        assert_eq!(count(&both(2)).await, None, "the quota is forgotten");
        assert_eq!(count(&[]).await, None);
    }

    /// The same for time, which `pass` lets pass.
    pub(crate) async fn a_record_expires<F: Future<Output = ()>>(
        store: &dyn Store,
        pass: impl Fn(Duration) -> F,
    ) {
        let life = Duration::from_millis(1000);
        for name in ["used", "unused"] {
            assert!(store.swap(name, Swap { old: None, new: b"1", life }).await.unwrap());
        }
        pass(Duration::from_millis(600)).await;
        assert!(store.get("used", Some(life)).await.unwrap().is_some());
        pass(Duration::from_millis(600)).await;
        assert!(store.get("used", None).await.unwrap().is_some());
        assert_eq!(store.get("unused", Some(life)).await.unwrap(), None);
        assert!(
            store.swap("unused", Swap { old: None, new: b"2", life }).await.unwrap(),
            "its name is free again"
        );
    }
}
