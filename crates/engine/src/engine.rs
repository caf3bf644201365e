//! The state that all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sabir_registry::{Announcement, Registry, SourceState, SourceStatus};
use sabir_session::{Dialect, ElicitationIds, Limits, SessionConfig};
use sabir_wire::types::{CacheHint, CacheScope, Implementation};
use sabir_wire::{Revision, WriteJson};
use tokio::sync::{broadcast, watch};

use crate::await_result::AwaitResult;
use crate::observe::{ClientEvent, Observer};
use crate::oversight::Oversee;
use crate::seal::{Seal, SealKey, random_name};
use crate::tasks::{TaskSettings, Tasks};

/// How a server behaves. Every field has a good default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The identity of the server.
    pub server: Implementation,
    /// How to use it, for the model.
    pub instructions: Option<String>,
    /// How this deployment deviates from the specification.
    pub dialect: Dialect,
    /// The limits of one client.
    pub limits: Limits,
    /// The limits of the engine.
    pub engine_limits: EngineLimits,
    /// Seals what clients keep for us. Replicas share it; without one it is drawn at random.
    pub seal_key: Option<SealKey>,
    /// Decides which requests run, and learns what came of them.
    pub overseer: Option<Arc<dyn Oversee>>,
    /// How calls become tasks.
    pub tasks: TaskSettings,
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
            tasks: TaskSettings::default(),
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
    /// dropped, and changes are told together.
    pub notifications: usize,
    /// The number of items on one page of a list.
    pub page_size: usize,
    /// The time that an aborted call gets to clean up before it is dropped.
    pub abort_grace: Duration,
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
    changes: broadcast::Sender<Announcement>,
    stop: watch::Sender<bool>,
    ready: AtomicUsize,
    last_connection: AtomicU32,
    last_call: AtomicU64,
    observers: Vec<Arc<dyn Observer>>,
}

impl Engine {
    /// A server that offers nothing yet.
    pub fn new(settings: Settings) -> Arc<Self> {
        Self::observed(settings, Vec::new())
    }

    /// The same, which tells these what happens.
    pub fn observed(settings: Settings, observers: Vec<Arc<dyn Observer>>) -> Arc<Self> {
        let server = settings.server.to_raw(Revision::NEWEST);
        let registry = Registry::new(server.clone(), settings.engine_limits.page_size);
        let (changes, _) = broadcast::channel(settings.engine_limits.notifications.max(1));
        let announce = changes.clone();
        // Without a listener the event is dropped.
        registry.on_change(move |announcement| drop(announce.send(announcement)));
        let config = SessionConfig {
            dialect: settings.dialect.clone(),
            limits: settings.limits.clone(),
            server,
            elicitation_ids: ElicitationIds::new(random_name()),
        };
        let tasks = Tasks::new(settings.tasks.clone());
        if settings.tasks.in_words.is_some() {
            // The registry is empty: the name is free.
            let added = registry.add(Arc::new(AwaitResult(tasks.clone())));
            debug_assert!(added.is_ok(), "{added:?}");
        }
        let lifetime = settings.limits.question_time.unwrap_or(Duration::from_secs(3600));
        Arc::new(Self {
            seal: Seal::new(settings.seal_key.clone(), lifetime),
            tasks,
            session_config: Arc::new(config),
            registry,
            changes,
            stop: watch::Sender::new(false),
            ready: AtomicUsize::new(0),
            last_connection: AtomicU32::new(0),
            last_call: AtomicU64::new(0),
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

    /// Ends all conversations: running calls may finish within the grace.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// The number of legacy clients whose handshake is complete.
    pub fn ready_clients(&self) -> usize {
        self.ready.load(Ordering::Relaxed)
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<Announcement> {
        self.changes.subscribe()
    }

    /// Whether [`Engine::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Starts all sources that were added and not started, and waits until each is ready or has
    /// failed. Serving does not depend on it: what is offered is listed before.
    pub async fn start(&self) -> Vec<SourceStatus> {
        self.tasks.sweep();
        // As tasks, so that they go on if the caller does not wait.
        let tasks: Vec<_> = self.registry.start().into_iter().map(tokio::spawn).collect();
        for task in tasks {
            // A panic in a start has been reported by the runtime.
            let _ = task.await;
        }
        let status = self.registry.status();
        for source in &status {
            if let SourceState::Failed(reason) = &source.state {
                tracing::error!(source = source.name, "not started: {reason}");
            }
            for problem in &source.problems {
                tracing::warn!(source = source.name, "{problem}");
            }
        }
        status
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

    /// Counts a client whose handshake is complete, or that has left after it was.
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

    /// A number for a call; 0 where nobody observes calls.
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
