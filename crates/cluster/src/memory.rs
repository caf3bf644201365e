//! A store and a bus in this process: for one process with several servers, and for tests with
//! several nodes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::bus::{Bus, Received, To, WAITING, check_length};
use crate::store::{Append, Away, Count, Pending, Store, Swap, count_all, micros};

/// Records at once. One more is refused, once those that have expired are removed.
const MAX_RECORDS: usize = 1_000_000;

/// The store and the bus that the nodes of one process share.
#[derive(Debug, Default)]
pub struct Hub {
    records: Mutex<HashMap<String, (Bytes, Instant)>>,
    lists: Mutex<HashMap<String, (Vec<Bytes>, Instant)>>,
    counts: Mutex<HashMap<String, (u64, Instant)>>,
    nodes: Mutex<HashMap<String, mpsc::Sender<Received>>>,
    began: OnceLock<Instant>,
    is_away: AtomicBool,
}

/// One node's connection to its hub.
#[derive(Debug)]
pub struct HubNode {
    hub: Arc<Hub>,
    name: String,
}

impl Hub {
    /// The bus of a node.
    pub fn node(self: &Arc<Self>, name: impl Into<String>) -> HubNode {
        HubNode { hub: self.clone(), name: name.into() }
    }

    /// Makes it unreachable, or reachable again: a fault, for tests.
    pub fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Removes this node, as if it was killed: a fault, for tests.
    pub fn lose(&self, node: &str) {
        lock(&self.nodes).remove(node);
    }

    /// Reports lost messages to all nodes: a fault, for tests.
    pub async fn interrupt(&self) {
        let nodes: Vec<_> = lock(&self.nodes).values().cloned().collect();
        for node in nodes {
            let _ = node.send(Received::Gap).await;
        }
    }

    /// The number of records that have not expired.
    pub fn len(&self) -> usize {
        let now = Instant::now();
        lock(&self.records).values().filter(|(_, end)| *end > now).count()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn reach(&self) -> Result<(), Away> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(Away::new("the hub is away")),
            false => Ok(()),
        }
    }

    fn read(&self, name: &str, renew: Option<Duration>) -> Result<Option<Bytes>, Away> {
        self.reach()?;
        let now = Instant::now();
        let mut records = lock(&self.records);
        let Some((record, end)) = records.get_mut(name).filter(|(_, end)| *end > now) else {
            return Ok(None);
        };
        *end = renew.map_or(*end, |life| now + life);
        Ok(Some(record.clone()))
    }

    fn replace(&self, name: &str, swap: Swap<'_>) -> Result<bool, Away> {
        let Swap { old, new, life } = swap;
        self.reach()?;
        let now = Instant::now();
        let mut records = lock(&self.records);
        let known = records.get(name).filter(|(_, end)| *end > now);
        if known.map(|(record, _)| &**record) != old {
            return Ok(false);
        }
        if records.len() >= MAX_RECORDS {
            records.retain(|_, (_, end)| *end > now);
            if records.len() >= MAX_RECORDS {
                return Err(Away::new(format!("too many records (limit {MAX_RECORDS})")));
            }
        }
        records.insert(name.to_owned(), (Bytes::copy_from_slice(new), now + life));
        Ok(true)
    }
}

impl Store for Hub {
    fn get<'a>(&'a self, name: &'a str, renew: Option<Duration>) -> Pending<'a, Option<Bytes>> {
        Box::pin(async move { self.read(name, renew) })
    }

    fn swap<'a>(&'a self, name: &'a str, swap: Swap<'a>) -> Pending<'a, bool> {
        Box::pin(async move { self.replace(name, swap) })
    }

    fn append<'a>(&'a self, name: &'a str, list: Append<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            self.reach()?;
            let Append { items, most, life } = list;
            let now = Instant::now();
            let mut lists = lock(&self.lists);
            lists.retain(|_, (_, end)| *end > now);
            if lists.len() >= MAX_RECORDS {
                return Err(Away::new(format!("too many lists (limit {MAX_RECORDS})")));
            }
            let (kept, end) = lists.entry(name.to_owned()).or_insert((Vec::new(), now));
            kept.extend(items.iter().map(|item| Bytes::copy_from_slice(item)));
            kept.drain(..kept.len().saturating_sub(most));
            *end = now + life;
            Ok(())
        })
    }

    fn items<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<Bytes>> {
        Box::pin(async move {
            self.reach()?;
            let now = Instant::now();
            let lists = lock(&self.lists);
            let list = lists.get(name).filter(|(_, end)| *end > now);
            Ok(list.map(|(items, _)| items.clone()).unwrap_or_default())
        })
    }

    fn count<'a>(&'a self, counts: &'a [Count<'a>]) -> Pending<'a, Option<(usize, Duration)>> {
        Box::pin(async move {
            self.reach()?;
            let now = Instant::now();
            let mut known = lock(&self.counts);
            if known.len() >= MAX_RECORDS {
                known.retain(|_, (_, end)| *end > now);
                if known.len() >= MAX_RECORDS {
                    return Err(Away::new(format!("too many counts (limit {MAX_RECORDS})")));
                }
            }
            let state = |count: &Count<'_>| match known.get(count.name) {
                Some((state, end)) if *end > now => *state,
                _ => 0,
            };
            let states: Vec<_> = counts.iter().map(state).collect();
            let age = now - *self.began.get_or_init(|| now);
            match count_all(counts, &states, micros(age)) {
                Err(refused) => Ok(Some(refused)),
                Ok(next) => {
                    let entries = counts.iter().zip(next);
                    known.extend(entries.map(|(count, (state, life))| {
                        (count.name.to_owned(), (state, now + life))
                    }));
                    Ok(None)
                }
            }
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            self.reach()?;
            lock(&self.records).remove(name);
            Ok(())
        })
    }
}

impl Bus for HubNode {
    fn send<'a>(&'a self, to: To<'a>, message: &'a [u8]) -> Pending<'a, bool> {
        Box::pin(async move {
            self.hub.reach()?;
            check_length(to, message)?;
            let receivers: Vec<_> = {
                let nodes = lock(&self.hub.nodes);
                let is_meant = |name: &String| to == To::All || to == To::Node(name);
                nodes.iter().filter(|(name, _)| is_meant(name)).map(|(_, to)| to.clone()).collect()
            };
            let mut is_received = false;
            for receiver in receivers {
                let message = Received::Message(Bytes::copy_from_slice(message));
                is_received |= receiver.send(message).await.is_ok();
            }
            Ok(is_received)
        })
    }

    fn listen(&self) -> mpsc::Receiver<Received> {
        let (send, receive) = mpsc::channel(WAITING);
        lock(&self.hub.nodes).insert(self.name.clone(), send);
        receive
    }
}

impl Drop for HubNode {
    fn drop(&mut self) {
        lock(&self.hub.nodes).remove(&self.name);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::MAX_FOR_ALL;
    use crate::store::tests::{
        a_list_keeps_the_newest_items, a_record_expires, a_record_is_replaced_by_compare_and_set,
        counts_are_shared_and_all_or_nothing,
    };

    #[tokio::test(start_paused = true)]
    async fn records_are_replaced_and_expire() {
        let hub = Hub::default();
        a_record_is_replaced_by_compare_and_set(&hub).await;
        a_list_keeps_the_newest_items(&hub).await;
        a_record_expires(&hub, tokio::time::advance).await;
        counts_are_shared_and_all_or_nothing(&hub, tokio::time::advance).await;
    }

    #[tokio::test]
    async fn a_message_reaches_the_node_or_all_of_them() {
        let hub = Arc::new(Hub::default());
        let [a, b] = ["a", "b"].map(|name| hub.node(name));
        let [mut to_a, mut to_b] = [a.listen(), b.listen()];
        assert!(a.send(To::Node("b"), b"1").await.unwrap());
        assert!(a.send(To::All, b"2").await.unwrap());
        assert!(!a.send(To::Node("c"), b"3").await.unwrap());
        let message = |text: &'static [u8]| Some(Received::Message(Bytes::from_static(text)));
        assert_eq!([to_b.recv().await, to_b.recv().await], [message(b"1"), message(b"2")]);
        assert_eq!(to_a.recv().await, message(b"2"));
        drop(b);
        assert!(!a.send(To::Node("b"), b"4").await.unwrap());
        assert!(a.send(To::All, &[0; MAX_FOR_ALL]).await.is_ok());
        assert!(a.send(To::All, &[0; MAX_FOR_ALL + 1]).await.is_err(), "it would be kept");
        hub.set_away(true);
        assert!(a.send(To::All, b"5").await.is_err());
    }
}
