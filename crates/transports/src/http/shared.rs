//! What all connections of a server share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sabir_engine::Engine;

use super::guard::Guard;
use super::pulse::{Clock, Pulse};
use super::settings::Settings;
use super::streams::Bounds;
use super::table::Table;

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: Settings,
    pub(crate) guard: Guard,
    pub(crate) table: Table,
    /// How much is kept of the streams of one session.
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) clock: Arc<Clock>,
    /// Who is known to speak, where a token was checked.
    pub(crate) principal: Option<Arc<str>>,
    /// Streams of events that are open.
    pub(crate) streams: AtomicUsize,
    pub(crate) is_stopping: AtomicBool,
    pulses: Mutex<Vec<Weak<Pulse>>>,
}

impl Shared {
    pub(crate) fn new(engine: Arc<Engine>, settings: Settings, guard: Guard) -> Self {
        let clock = Arc::new(Clock::new());
        let table = Table::new(clock.clone(), &settings.limits);
        let limits = &settings.limits;
        let (events, bytes, streams) = (limits.replay, limits.replay_bytes, limits.streams);
        let bounds = Arc::new(Bounds { events, bytes, streams });
        let principal = guard.demands_token().then(|| Arc::from("bearer"));
        Self {
            engine,
            settings,
            guard,
            table,
            bounds,
            clock,
            principal,
            streams: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            pulses: Mutex::default(),
        }
    }

    /// A new connection.
    pub(crate) fn welcome(&self) -> Arc<Pulse> {
        let pulse = Arc::new(Pulse::new(self.clock.clone()));
        self.lock().push(Arc::downgrade(&pulse));
        pulse
    }

    /// All connections that are open; forgets those that are not.
    pub(crate) fn pulses(&self) -> Vec<Arc<Pulse>> {
        let mut open = Vec::new();
        self.lock().retain(|pulse| {
            let pulse = pulse.upgrade();
            let is_open = pulse.is_some();
            open.extend(pulse);
            is_open
        });
        open
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Pulse>>> {
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered, and what it may need.
pub(crate) struct Flight {
    pub(crate) connection: Arc<Connection>,
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pulse: Arc<Pulse>,
}

impl Flight {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        connection.pulse.begin();
        Self { connection: connection.clone() }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.connection.shared
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.connection.pulse.end();
    }
}

/// An open stream of events, counted.
pub(crate) struct OpenStream {
    flight: Flight,
}

impl OpenStream {
    pub(crate) fn open(flight: Flight) -> Self {
        flight.shared().streams.fetch_add(1, Ordering::Relaxed);
        Self { flight }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.flight.connection.shared.settings
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.flight.shared().streams.fetch_sub(1, Ordering::Relaxed);
    }
}
