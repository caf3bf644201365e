//! The state that all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sabir_registry::{Announcement, Catalog, Registry, Source, ToolEntry};
use sabir_session::{Dialect, ElicitationIds, Limits, RequestMeta, SessionConfig};
use sabir_wire::types::{CacheHint, CacheScope, Implementation};
use sabir_wire::{Caller, Revision, Taps, WriteJson};
use tokio::sync::{broadcast, watch};

use crate::await_result::{AWAIT_RESULT, AwaitResult};
use crate::observe::{ClientEvent, Observer, Observers};
use crate::oversight::Oversee;
use crate::peers::{Changes, Outbox, PeerNews, Peers};
use crate::seal::{Seal, SealKey, random_name};
use crate::tasks::{TaskSettings, Tasks};

/// How a server behaves. Every field has a good default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The identity of the server.
    pub server: Implementation,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// The deviations of this deployment from the specification.
    pub dialect: Dialect,
    /// The limits of one client.
    pub limits: Limits,
    /// The limits of the engine.
    pub engine_limits: EngineLimits,
    /// Seals the state that clients keep for us. Replicas share the key; without one it is random.
    pub seal_key: Option<SealKey>,
    /// Decides which requests run, and is notified of their ends.
    pub overseer: Option<Arc<dyn Oversee>>,
    /// Observe every message of every client.
    pub tap: Option<Arc<Taps>>,
    /// How calls become tasks.
    pub tasks: TaskSettings,
    /// The name of this node, where several serve the same sessions: letters and digits. The ids of
    /// its questions begin with it and a hyphen.
    pub node: Option<Box<str>>,
    /// Notifies other nodes of changes here.
    pub peers: Option<Arc<dyn Peers>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            server: Implementation {
                name: "sabir".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                ..Implementation::default()
            },
            instructions: None,
            dialect: Dialect::default(),
            limits: Limits::default(),
            engine_limits: EngineLimits::default(),
            seal_key: None,
            overseer: None,
            tap: None,
            tasks: TaskSettings::default(),
            node: None,
            peers: None,
        }
    }
}

/// The limits of the engine, for all clients.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineLimits {
    /// The longest message, in bytes. A longer one is dropped and answered with an error.
    pub message_size: usize,
    /// How deep a message may be nested. A deeper one is answered with an error.
    pub depth: usize,
    /// How often one call may ask its client. Once more, and the call fails.
    pub questions: usize,
    /// Notifications that wait for one client. When full, further progress and log messages are
    /// dropped, and changes are announced together.
    pub notifications: usize,
    /// The number of items on one page of a list.
    pub page_size: usize,
    /// The time that an aborted call gets to clean up before it is dropped.
    pub abort_grace: Duration,
    /// How long a call of a tool may report nothing to a client that wants progress, before the
    /// client is told that it goes on. Needed by clients whose timeout restarts with every message.
    pub heartbeat: Duration,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            message_size: 16 << 20,
            depth: 128,
            questions: 16,
            notifications: 256,
            page_size: 1000,
            abort_grace: Duration::from_secs(1),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// A server, without its transports.
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) session_config: Arc<SessionConfig>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) seal: Seal,
    pub(crate) tasks: Arc<Tasks>,
    /// The tool of clients that get handles in words.
    await_result: Option<Arc<ToolEntry>>,
    changes: broadcast::Sender<Announcement>,
    pub(crate) outbox: Arc<Outbox>,
    stop: watch::Sender<bool>,
    ready: AtomicUsize,
    last_connection: AtomicU32,
    last_call: AtomicU64,
    observers: Observers,
    is_traced: bool,
}

impl Engine {
    /// A server that offers nothing yet.
    pub fn new(settings: Settings) -> Arc<Self> {
        Self::observed(settings, Vec::new())
    }

    /// The same, with observers.
    pub fn observed(settings: Settings, observers: Vec<Arc<dyn Observer>>) -> Arc<Self> {
        let server = settings.server.to_raw(Revision::NEWEST);
        let registry = Registry::new(server.clone(), settings.engine_limits.page_size);
        let (changes, _) = broadcast::channel(settings.engine_limits.notifications.max(1));
        let (announce, outbox) = (changes.clone(), Arc::new(Outbox::default()));
        let to_peers = settings.peers.is_some().then(|| outbox.clone());
        registry.on_change(move |announcement| {
            if let (Some(outbox), Announcement::Changed(topic)) = (&to_peers, &announcement) {
                outbox.change(topic.clone());
            }
            // Without a listener the event is dropped.
            let _ = announce.send(announcement);
        });
        let observers: Observers = observers.into();
        let watching = observers.clone();
        registry.on_link_end(move |end| watching.iter().for_each(|one| one.link_ended(end)));
        let config = SessionConfig {
            dialect: settings.dialect.clone(),
            limits: settings.limits.clone(),
            server,
            elicitation_ids: match &settings.node {
                Some(node) => ElicitationIds::of_node(node.clone()),
                None => ElicitationIds::new(random_name()),
            },
        };
        let tasks = settings.tasks.clone().within(settings.limits.call_time);
        let tasks = Tasks::new(tasks, settings.peers.clone(), outbox.clone());
        let await_result =
            ToolEntry::of(&(Arc::new(AwaitResult(tasks.clone())) as Arc<dyn Source>));
        debug_assert!(await_result.is_some(), "its offer is valid");
        let lifetime = settings.limits.question_time.unwrap_or(Duration::from_secs(3600));
        Arc::new(Self {
            seal: Seal::new(settings.seal_key.clone(), lifetime),
            tasks,
            await_result,
            session_config: Arc::new(config),
            registry,
            changes,
            outbox,
            stop: watch::Sender::new(false),
            ready: AtomicUsize::new(0),
            last_connection: AtomicU32::new(0),
            last_call: AtomicU64::new(0),
            is_traced: observers.iter().any(|observer| observer.is_tracing()),
            observers,
            settings,
        })
    }

    /// The sources and their offers.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// How the server behaves.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Ends all sessions: running calls may finish within the grace period.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// The number of legacy clients whose handshake is complete.
    pub fn ready_clients(&self) -> usize {
        self.ready.load(Ordering::Relaxed)
    }

    /// The catalog of a client: the items that its caller may see, and the tool `await_result` if
    /// it may get a handle in words.
    pub(crate) fn catalog_for(&self, whole: &Arc<Catalog>, from: &RequestMeta) -> Arc<Catalog> {
        let catalog = whole.seen_by(&from.caller);
        let has_words = catalog.capabilities().tasks && self.tasks.settings.has_words_for(from);
        match &self.await_result {
            Some(tool) if has_words => catalog.with_tool(tool),
            _ => catalog,
        }
    }

    /// Whether a client with this catalog can fetch the result of a handle in words.
    pub(crate) fn can_await(&self, catalog: &Catalog) -> bool {
        let listed = catalog.tool(AWAIT_RESULT);
        self.await_result.as_ref().zip(listed).is_some_and(|(own, one)| Arc::ptr_eq(own, one))
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<Announcement> {
        self.changes.subscribe()
    }

    /// Takes in a message of another node.
    pub async fn hear(&self, news: PeerNews) {
        match news {
            PeerNews::Ping => {}
            PeerNews::Changed(Changes { everything, topics, tasks }) => {
                let topics = topics.into_iter().map(Announcement::Changed);
                let all = everything.then_some(Announcement::Everything);
                // Without a listener they are dropped.
                topics.chain(all).for_each(|announcement| drop(self.changes.send(announcement)));
                for ((issuer, subject), id) in tasks {
                    self.tasks.changed_elsewhere(&Caller::new(issuer, subject), &id).await;
                }
            }
            PeerNews::Answers { caller, id, answers } => {
                // The result is not needed: the state of the task shows it.
                let _ = self.tasks.answer(&caller, &id, answers).await;
            }
            PeerNews::Cancelled(id) => self.tasks.cancelled_elsewhere(&id).await,
        }
    }

    /// Whether [`Engine::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Ends all tasks, and closes all sources, within the grace period.
    pub async fn close(&self) {
        self.tasks.stop().await;
        let grace = self.settings.limits.grace;
        let closing: Vec<_> = self.registry.close(grace).into_iter().map(tokio::spawn).collect();
        let closed = async {
            for task in closing {
                let _ = task.await;
            }
        };
        if tokio::time::timeout(grace, closed).await.is_err() {
            tracing::warn!("sources were not closed within {grace:?}");
        }
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// A number for a connection whose handshake begins. Never 0.
    pub(crate) fn number_connection(&self) -> u32 {
        self.last_connection.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
    }

    /// Counts a client whose handshake is complete, or that has left after that.
    pub(crate) fn count_ready(&self, has_left: bool) {
        match has_left {
            false => self.ready.fetch_add(1, Ordering::Relaxed),
            true => self.ready.fetch_sub(1, Ordering::Relaxed),
        };
    }

    pub(crate) fn tell(&self, event: ClientEvent) {
        self.observers().for_each(|observer| observer.client(event.clone()));
    }

    pub(crate) fn observers(&self) -> impl Iterator<Item = &dyn Observer> {
        self.observers.iter().map(|observer| &**observer)
    }

    pub(crate) fn is_observed(&self) -> bool {
        !self.observers.is_empty()
    }

    /// The observers; `None` if there are none.
    pub(crate) fn shared_observers(&self) -> Option<Observers> {
        self.is_observed().then(|| self.observers.clone())
    }

    /// Whether a tap or an observer needs messages as they arrived, or their trace.
    pub fn wants_arrivals(&self) -> bool {
        self.is_traced || self.settings.tap.as_ref().is_some_and(|tap| tap.is_on())
    }

    /// Whether an observer needs the traces of HTTP requests.
    pub(crate) fn is_traced(&self) -> bool {
        self.is_traced
    }

    /// A number for a call; 0 without observers.
    pub(crate) fn number_call(&self) -> u64 {
        match self.is_observed() {
            true => self.last_call.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        }
    }

    /// How long clients may cache the description of the server: a restart may change it.
    pub(crate) fn discovery_cache(&self) -> CacheHint {
        CacheHint { ttl_ms: 300_000, scope: CacheScope::Public }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("server", &self.settings.server.name).finish_non_exhaustive()
    }
}
