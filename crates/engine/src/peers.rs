//! Other nodes that serve the same clients.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sabir_wire::types::Topic;
use sabir_wire::{Caller, Raw};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

/// Sends messages to other nodes.
pub trait Peers: Debug + Send + Sync {
    /// Sends to one node, or to all others. `false` if the node is gone.
    fn tell<'a>(&'a self, node: Option<&'a str>, news: &'a PeerNews) -> Telling<'a>;

    /// The route to this node, for the states of calls that only it can go on with: letters,
    /// digits, `-` and `_`. `None` if other nodes cannot forward such calls.
    fn route(&self) -> Option<String> {
        None
    }
}

/// Separates the route from the seal of a state. Neither contains it.
const ROUTE_END: char = '.';

/// The state of a call that only the node of `route` can go on with.
pub(crate) fn with_route(route: &str, sealed: &str) -> String {
    format!("{route}{ROUTE_END}{sealed}")
}

/// The route of a state, if it has one ([`Peers::route`]), and its seal.
pub fn split_route(state: &str) -> (Option<&str>, &str) {
    match state.split_once(ROUTE_END) {
        Some((route, sealed)) => (Some(route), sealed),
        None => (None, state),
    }
}

/// A message being sent. The error says why no node can be reached now.
pub type Telling<'a> = Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>>;

/// A message between nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PeerNews {
    /// Shows that the sender is alive, or checks whether one receiver is.
    Ping,
    /// The changes on a node.
    Changed(Changes),
    /// Answers to questions of a task.
    Answers {
        /// The owner of the task.
        caller: Caller,
        /// The task.
        id: Box<str>,
        /// The answers, by the keys of their questions.
        answers: Vec<(String, Raw)>,
    },
    /// A task was cancelled. The store has it already.
    Cancelled(Box<str>),
}

/// The changes on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Everything may have changed.
    #[serde(default)]
    pub everything: bool,
    /// Changed lists and resources.
    #[serde(default)]
    pub topics: Vec<Topic>,
    /// The tasks whose state has changed, each after its owner.
    #[serde(default)]
    pub tasks: VecDeque<(Owner, Box<str>)>,
}

/// The owner of a task: an issuer and a subject.
pub type Owner = (Box<str>, Box<str>);

/// The changes that wait to be sent. With more topics everything counts as changed; of more tasks
/// the oldest are dropped, as a waiter polls its task from time to time.
const MAX_WAITING: usize = 1024;

/// Changes within this time are sent together.
const TOGETHER: Duration = Duration::from_millis(50);

/// The pause before changes are sent again, if no node could be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// The interval of pings.
const PING: Duration = Duration::from_secs(5);

/// The changes that other nodes do not know yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Changes>,
    news: Notify,
}

impl Outbox {
    /// Something that is offered has changed.
    pub(crate) fn change(&self, topic: Topic) {
        let mut waiting = self.lock();
        if waiting.topics.len() >= MAX_WAITING {
            waiting.everything = true;
            waiting.topics.clear();
        }
        if !waiting.everything && !waiting.topics.contains(&topic) {
            waiting.topics.push(topic);
        }
        drop(waiting);
        self.news.notify_one();
    }

    /// The state of a task has changed.
    pub(crate) fn change_task(&self, owner: &Caller, id: &str) {
        let mut waiting = self.lock();
        let task = ((owner.issuer().into(), owner.subject().into()), id.into());
        if !waiting.tasks.contains(&task) {
            waiting.tasks.push_back(task);
        }
        if waiting.tasks.len() > MAX_WAITING {
            waiting.tasks.pop_front();
        }
        drop(waiting);
        self.news.notify_one();
    }

    /// Sends changes to other nodes, until the server stops.
    pub(crate) async fn run(
        self: Arc<Self>,
        peers: Arc<dyn Peers>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut is_stopping = false;
        let mut pings = tokio::time::interval(PING);
        while !is_stopping {
            tokio::select! {
                () = self.news.notified() => tokio::time::sleep(TOGETHER).await,
                _ = pings.tick() => drop(peers.tell(None, &PeerNews::Ping).await),
                () = async { drop(stop.wait_for(|stop| *stop).await) } => is_stopping = true,
            }
            let changes = std::mem::take(&mut *self.lock());
            if changes == Changes::default() {
                continue;
            }
            let news = PeerNews::Changed(changes);
            if let Err(error) = peers.tell(None, &news).await
                && let PeerNews::Changed(changes) = news
            {
                tracing::debug!("other nodes were not told of a change: {error}");
                self.put_back(changes);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn put_back(&self, changes: Changes) {
        self.lock().everything |= changes.everything;
        changes.topics.into_iter().for_each(|topic| self.change(topic));
        let mut waiting = self.lock();
        let newer = std::mem::replace(&mut waiting.tasks, changes.tasks);
        waiting.tasks.extend(newer);
        let excess = waiting.tasks.len().saturating_sub(MAX_WAITING);
        waiting.tasks.drain(..excess);
        drop(waiting);
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Told {
        news: Mutex<Vec<Changes>>,
        is_away: Mutex<bool>,
    }

    impl Peers for Told {
        fn tell<'a>(&'a self, _: Option<&'a str>, news: &'a PeerNews) -> Telling<'a> {
            Box::pin(async move {
                if *self.is_away.lock().unwrap() {
                    return Err("away".to_owned());
                }
                if let PeerNews::Changed(changes) = news {
                    self.news.lock().unwrap().push(changes.clone());
                }
                Ok(true)
            })
        }
    }

    fn resource(nth: usize) -> Topic {
        Topic::Resource(format!("x:{nth}").into())
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_sent_together_and_again_until_they_arrive() {
        let (told, outbox) = (Arc::new(Told::default()), Arc::new(Outbox::default()));
        let stop = watch::Sender::new(false);
        let running = tokio::spawn(outbox.clone().run(told.clone(), stop.subscribe()));
        *told.is_away.lock().unwrap() = true;
        for topic in [Topic::Tools, resource(1), Topic::Tools] {
            outbox.change(topic);
        }
        outbox.change_task(&Caller::new("i", "ann"), "a");
        tokio::time::sleep(Duration::from_secs(2)).await;
        outbox.change(Topic::Prompts);
        *told.is_away.lock().unwrap() = false;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let news = told.news.lock().unwrap().clone();
        assert_eq!(news.len(), 1, "{news:?}");
        assert!(!news[0].everything && news[0].tasks.len() == 1, "{news:?}");
        for topic in [Topic::Tools, resource(1), Topic::Prompts] {
            assert!(news[0].topics.contains(&topic), "{news:?}");
        }
        stop.send_replace(true);
        running.await.unwrap();
    }

    #[test]
    fn too_many_changes_are_everything_and_the_oldest_tasks_are_dropped() {
        let outbox = Outbox::default();
        (0..MAX_WAITING).for_each(|nth| outbox.change(resource(nth)));
        assert!(!outbox.lock().everything);
        outbox.change(Topic::Tools);
        assert!(outbox.lock().everything && outbox.lock().topics.is_empty());
        for nth in 0..=MAX_WAITING {
            outbox.change_task(&Caller::new("i", "ann"), &nth.to_string());
        }
        assert_eq!(outbox.lock().tasks.len(), MAX_WAITING);
        assert_eq!(&*outbox.lock().tasks[0].1, "1");
    }
}
