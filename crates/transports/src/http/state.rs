//! What all connections of a server share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sabir_engine::Engine;
use tokio::sync::OwnedSemaphorePermit;

use super::activity::{Activity, Clock};
use super::auth::Authentication;
use super::guard::Guard;
use super::settings::Settings;
use super::streams::Bounds;
use super::table::SessionTable;

/// What all connections of a server share.
pub(crate) struct ServerState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: Settings,
    pub(crate) guard: Guard,
    pub(crate) authentication: Authentication,
    pub(crate) table: SessionTable,
    /// How much is kept of the streams of one session.
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) clock: Arc<Clock>,
    /// Event streams and WebSockets that are open.
    pub(crate) streams: AtomicUsize,
    is_stopping: AtomicBool,
    activities: Mutex<Vec<Weak<Activity>>>,
}

impl ServerState {
    pub(crate) fn new(engine: Arc<Engine>, settings: Settings) -> Self {
        let clock = Arc::new(Clock::new());
        let limits = &settings.limits;
        let (events, bytes, streams) = (limits.replay, limits.replay_bytes, limits.streams);
        Self {
            table: SessionTable::new(clock.clone(), limits),
            bounds: Arc::new(Bounds { events, bytes, streams }),
            guard: Guard::new(&settings),
            authentication: Authentication::new(&settings),
            engine,
            clock,
            settings,
            streams: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            activities: Mutex::default(),
        }
    }

    /// Records a new connection, which keeps its place until nothing of it is left.
    pub(crate) fn connect(self: &Arc<Self>, place: Place) -> Arc<HttpConnection> {
        let activity = Arc::new(Activity::new(self.clock.clone()));
        self.lock().push(Arc::downgrade(&activity));
        Arc::new(HttpConnection { state: self.clone(), activity: Some(activity), _place: place })
    }

    /// All connections that are open; forgets those that are not.
    pub(crate) fn activities(&self) -> Vec<Arc<Activity>> {
        let mut open = Vec::new();
        self.lock().retain(|activity| {
            let activity = activity.upgrade();
            let is_open = activity.is_some();
            open.extend(activity);
            is_open
        });
        open
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Refuses new requests, and lets running calls finish within the grace period.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.engine.stop();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Activity>>> {
        self.activities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection, or one request where somebody else has the connection.
pub(crate) struct HttpConnection {
    pub(crate) state: Arc<ServerState>,
    /// `None` where somebody else has the connection.
    pub(crate) activity: Option<Arc<Activity>>,
    pub(crate) _place: Place,
}

/// One of the connections that a server may have at once; `None` where they are not counted.
pub(crate) type Place = Option<OwnedSemaphorePermit>;

/// A request that is in flight. Counted until it is dropped.
pub(crate) struct InFlight {
    pub(crate) connection: Arc<HttpConnection>,
}

impl InFlight {
    pub(crate) fn begin(connection: &Arc<HttpConnection>) -> Self {
        if let Some(activity) = &connection.activity {
            activity.begin();
        }
        Self { connection: connection.clone() }
    }

    pub(crate) fn state(&self) -> &Arc<ServerState> {
        &self.connection.state
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(activity) = &self.connection.activity {
            activity.end();
        }
    }
}

/// An open event stream or WebSocket, counted.
pub(crate) struct OpenStream {
    in_flight: InFlight,
}

impl OpenStream {
    pub(crate) fn open(in_flight: InFlight) -> Self {
        in_flight.state().streams.fetch_add(1, Ordering::Relaxed);
        Self { in_flight }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.in_flight.connection.state.settings
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.in_flight.connection.state.engine
    }

    pub(crate) fn activity(&self) -> Option<&Activity> {
        self.in_flight.connection.activity.as_deref()
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.in_flight.state().streams.fetch_sub(1, Ordering::Relaxed);
    }
}
