//! What all connections of a server share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sabir_engine::Engine;

use super::activity::{Activity, Clock};
use super::guard::Guard;
use super::settings::Settings;
use super::streams::Bounds;
use super::table::SessionTable;

/// What all connections of a server share.
pub(crate) struct ServerState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: Settings,
    pub(crate) guard: Guard,
    pub(crate) table: SessionTable,
    /// How much is kept of the streams of one session.
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) clock: Arc<Clock>,
    /// Who is known to speak, where a token was checked.
    pub(crate) caller: Option<Arc<str>>,
    /// Streams of events that are open.
    pub(crate) streams: AtomicUsize,
    pub(crate) is_stopping: AtomicBool,
    activities: Mutex<Vec<Weak<Activity>>>,
}

impl ServerState {
    pub(crate) fn new(engine: Arc<Engine>, settings: Settings, guard: Guard) -> Self {
        let clock = Arc::new(Clock::new());
        let table = SessionTable::new(clock.clone(), &settings.limits);
        let limits = &settings.limits;
        let (events, bytes, streams) = (limits.replay, limits.replay_bytes, limits.streams);
        let bounds = Arc::new(Bounds { events, bytes, streams });
        let caller = guard.demands_token().then(|| Arc::from("bearer"));
        Self {
            engine,
            settings,
            guard,
            table,
            bounds,
            clock,
            caller,
            streams: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            activities: Mutex::default(),
        }
    }

    /// A new connection.
    pub(crate) fn welcome(&self) -> Arc<Activity> {
        let activity = Arc::new(Activity::new(self.clock.clone()));
        self.lock().push(Arc::downgrade(&activity));
        activity
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Activity>>> {
        self.activities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered, and what it may need.
pub(crate) struct InFlight {
    pub(crate) connection: Arc<HttpConnection>,
}

/// One connection.
pub(crate) struct HttpConnection {
    pub(crate) shared: Arc<ServerState>,
    pub(crate) activity: Arc<Activity>,
}

impl InFlight {
    pub(crate) fn begin(connection: &Arc<HttpConnection>) -> Self {
        connection.activity.begin();
        Self { connection: connection.clone() }
    }

    pub(crate) fn shared(&self) -> &Arc<ServerState> {
        &self.connection.shared
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.connection.activity.end();
    }
}

/// An open stream of events, counted.
pub(crate) struct OpenStream {
    in_flight: InFlight,
}

impl OpenStream {
    pub(crate) fn open(in_flight: InFlight) -> Self {
        in_flight.shared().streams.fetch_add(1, Ordering::Relaxed);
        Self { in_flight }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.in_flight.connection.shared.settings
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.in_flight.shared().streams.fetch_sub(1, Ordering::Relaxed);
    }
}
