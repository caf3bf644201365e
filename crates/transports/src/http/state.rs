//! The state that all connections of a server share.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sabir_budget::{Hold, memory};
use sabir_engine::Engine;
use sabir_wire::{Caller, Remote};
use tokio::sync::OwnedSemaphorePermit;

use super::activity::{Activity, Clock};
use super::auth::Authentication;
use super::denials::Denials;
use super::floods::Floods;
use super::guard::Guard;
use super::headers::Headers;
use super::listener::Peer;
use super::proxies;
use super::reply::Refusal;
use super::settings::Settings;
use super::sharing::Sharing;
use super::streams::Bounds;
use super::table::SessionTable;

/// The state that all connections of a server share.
pub(crate) struct ServerState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: Settings,
    pub(crate) guard: Guard,
    pub(crate) authentication: Authentication,
    pub(crate) table: SessionTable,
    /// The store of sessions beside the table.
    pub(crate) sharing: Option<Sharing>,
    /// The bounds of the streams of one session.
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) clock: Arc<Clock>,
    /// Event streams and WebSockets that are open.
    pub(crate) streams: AtomicUsize,
    /// Numbers connections.
    last_connection: AtomicU64,
    /// The log of denied requests.
    pub(crate) denials: Denials,
    /// Addresses that send too many requests.
    pub(crate) floods: Floods,
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
            sharing: settings.cluster.clone().map(|cluster| Sharing::new(cluster, limits)),
            bounds: Arc::new(Bounds { events, bytes, streams, unsent: limits.unsent }),
            guard: Guard::new(&settings),
            floods: Floods::new(limits),
            authentication: Authentication::new(&settings),
            engine,
            clock,
            settings,
            streams: AtomicUsize::new(0),
            last_connection: AtomicU64::new(0),
            denials: Denials::default(),
            is_stopping: AtomicBool::new(false),
            activities: Mutex::default(),
        }
    }

    /// Records a new connection, which keeps its place until it is dropped.
    pub(crate) fn connect(self: &Arc<Self>, place: Place, peer: Peer) -> Arc<HttpConnection> {
        let activity = Arc::new(Activity::new(self.clock.clone()));
        self.lock().push(Arc::downgrade(&activity));
        HttpConnection::new(self, Some(activity), place, peer)
    }

    /// Closes idle connections to make room, those first that never made a request. Whether there
    /// were any.
    pub(crate) fn make_room(&self, most: usize) -> bool {
        let mut idle: Vec<_> = self.activities();
        idle.retain(|activity| activity.is_dispensable());
        idle.sort_by_cached_key(|activity| activity.worth());
        idle.truncate(most.max(1));
        idle.iter().for_each(|activity| activity.abandon());
        !idle.is_empty()
    }

    /// All open connections; forgets closed ones.
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

    /// How bodies are parsed.
    pub(crate) fn parsing(&self) -> Parsing {
        let depth = self.engine.settings().engine_limits.depth;
        Parsing { depth, keeps_body: self.engine.wants_arrivals() }
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

/// How a body is parsed.
#[derive(Clone, Copy)]
pub(crate) struct Parsing {
    /// The maximum nesting.
    pub(crate) depth: usize,
    /// Whether a tap records the body.
    pub(crate) keeps_body: bool,
}

/// One connection, or one request where the application owns the connection.
pub(crate) struct HttpConnection {
    pub(crate) state: Arc<ServerState>,
    /// `None` where the application owns the connection.
    pub(crate) activity: Option<Arc<Activity>>,
    /// The caller whom the certificate of this connection identifies.
    pub(crate) certified: Option<Caller>,
    remote: Arc<Remote>,
    _place: Place,
    _memory: Hold,
}

/// The memory of a connection without long messages.
const CONNECTION_MEMORY: usize = 16 << 10;

impl HttpConnection {
    pub(crate) fn new(
        state: &Arc<ServerState>,
        activity: Option<Arc<Activity>>,
        place: Place,
        peer: Peer,
    ) -> Arc<Self> {
        // The number distinguishes anonymous callers from each other.
        let connection = 1 + state.last_connection.fetch_add(1, Ordering::Relaxed);
        let Peer { address, caller: certified } = peer;
        let remote = Arc::new(Remote { connection, address });
        // Connections have their own limit; their memory is counted so that messages get less.
        let memory = memory().take_anyway(CONNECTION_MEMORY);
        let state = state.clone();
        Arc::new(Self { state, activity, certified, remote, _place: place, _memory: memory })
    }

    /// The caller, on this connection.
    pub(crate) fn caller(&self, caller: Caller, address: Option<IpAddr>) -> Caller {
        caller.at(match address == self.remote.address {
            true => self.remote.clone(),
            false => Arc::new(Remote { address, ..*self.remote }),
        })
    }

    /// The address of the client, as far as it is known.
    pub(crate) fn client(&self, headers: &impl Headers) -> Option<IpAddr> {
        let trusted = &self.state.settings.trusted_proxies;
        let peer = self.remote.address?;
        Some(if trusted.is_empty() { peer } else { proxies::client(trusted, peer, headers) })
    }

    /// Refuses a request of a client that sends too many.
    pub(crate) fn admit(
        &self,
        client: Option<IpAddr>,
        headers: &impl Headers,
    ) -> Result<(), Refusal> {
        let certified = self.certified.as_ref();
        let is_known = || self.state.authentication.recognizes(headers, certified);
        self.state.floods.admit(client, is_known)
    }
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

/// What an open stream costs beside the messages that wait in it, in bytes.
const STREAM_COST: usize = 16 << 10;

/// An open event stream or WebSocket, counted.
pub(crate) struct OpenStream {
    in_flight: InFlight,
    /// One HTTP/2 connection can have many.
    _memory: Hold,
}

impl OpenStream {
    pub(crate) fn open(in_flight: InFlight) -> Self {
        in_flight.state().streams.fetch_add(1, Ordering::Relaxed);
        Self { in_flight, _memory: memory().take_anyway(STREAM_COST) }
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
