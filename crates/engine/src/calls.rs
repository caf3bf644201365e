//! A running call: its reports to the connection, and its cancellation.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sabir_registry::{CallHandle, Outgoing, OutgoingRequest, Source};
use sabir_session::{CallKey, CallNotification};
use sabir_wire::types::Level;
use sabir_wire::{Id, Raw};
use tokio::sync::Notify;

use crate::admitted::Admitted;
use crate::events::EventQueue;
use crate::observe::Observers;

/// The identity of a call for observers.
#[derive(Default)]
pub(crate) struct Observation {
    /// The number of the call; 0 without observers.
    pub(crate) number: u64,
    /// The number of its client's link for taps.
    pub(crate) link: u64,
    /// The id of its request; `None` without observers.
    pub(crate) id: Option<Id>,
    /// The `traceparent` of the HTTP request.
    pub(crate) http_trace: Option<Box<str>>,
    pub(crate) observers: Option<Observers>,
}

/// A running call.
pub(crate) struct RunningCall {
    pub(crate) key: CallKey,
    pub(crate) observed: Observation,
    /// The share of the caller, from whose memory the outcome takes.
    pub(crate) share: u64,
    events: Arc<EventQueue>,
    wants_progress: bool,
    /// The lowest level of the wanted log messages.
    log_level: Option<Level>,
    cancelled: AtomicBool,
    cancellation: Notify,
    /// Its source has reported that it takes long.
    long: AtomicBool,
    lengthened: Notify,
    /// The state from which its source can go on after a restart.
    continuing: Mutex<Option<Raw>>,
    /// It is left to the next process.
    left: AtomicBool,
    /// It has become a task: its connection has an answer, and gets no more events of it.
    detached: AtomicBool,
    parked: Mutex<Option<Parked>>,
    reported: Mutex<Reported>,
}

/// The progress that was last reported.
#[derive(Default)]
struct Reported {
    progress: f64,
    total: Option<f64>,
    /// Reported since the last heartbeat.
    is_new: bool,
}

/// The state of a source while its client is asked.
pub(crate) struct Parked {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) state: Raw,
}

impl Parked {
    /// The questions will not be answered.
    pub(crate) fn abandon(self) {
        self.source.abandon(&self.state);
    }
}

impl RunningCall {
    pub(crate) fn new(
        key: CallKey,
        observed: Observation,
        share: u64,
        events: Arc<EventQueue>,
        wants_progress: bool,
        log_level: Option<Level>,
    ) -> Arc<Self> {
        Arc::new(Self {
            key,
            observed,
            share,
            events,
            wants_progress,
            log_level,
            cancelled: AtomicBool::new(false),
            cancellation: Notify::new(),
            long: AtomicBool::new(false),
            lengthened: Notify::new(),
            continuing: Mutex::default(),
            left: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            parked: Mutex::default(),
            reported: Mutex::default(),
        })
    }

    /// Hands the outcome to the connection.
    pub(crate) fn finished(&self, outcome: Admitted) {
        self.events.finished(self.key, outcome);
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.cancellation.notify_waiters();
    }

    /// Sends a heartbeat as progress, unless progress was reported since the last heartbeat.
    pub(crate) fn still_runs(&self, since: Duration) {
        let (progress, total) = {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::take(&mut reported.is_new) {
                return;
            }
            // Progress must grow, and stay below the next value of the source.
            reported.progress += 1e-9 * (1.0 + reported.progress.abs());
            (reported.progress, reported.total)
        };
        let message = Some(format!("running for {} s", since.as_secs()));
        self.notified(CallNotification::Progress { progress, total, message });
    }

    /// Completes when its source reports that it takes long.
    pub(crate) async fn long(&self) {
        once(&self.long, &self.lengthened).await;
    }

    /// The state from which its source can go on after a restart, if the source has given one.
    pub(crate) fn continuing(&self) -> Option<Raw> {
        self.continuing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the call in this process, but not its work elsewhere.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Release);
        self.cancel();
    }

    /// The call goes on without its connection.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }

    fn notified(&self, note: CallNotification) {
        if !self.detached.load(Ordering::Acquire) {
            self.events.notified(self.key, note);
        }
    }

    /// The source has asked the client, and keeps `parked` meanwhile.
    pub(crate) fn park(&self, parked: Parked) {
        *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(parked);
    }

    pub(crate) fn take_parked(&self) -> Option<Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl CallHandle for RunningCall {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        // NaN and infinities cannot be written as JSON.
        let is_number = progress.is_finite() && total.is_none_or(f64::is_finite);
        if self.wants_progress && is_number {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            *reported = Reported { progress, total, is_new: true };
            drop(reported);
            self.notified(CallNotification::Progress { progress, total, message });
        }
    }

    fn log(&self, level: Level, logger: Option<String>, data: Raw) {
        if self.log_level.is_some_and(|least| level >= least) {
            self.notified(CallNotification::Log { level, logger, data });
        }
    }

    fn notify(&self, method: &str, params: Option<Raw>) {
        self.notified(CallNotification::Other { method: method.into(), params });
    }

    fn log_level(&self) -> Option<Level> {
        self.log_level
    }

    fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    fn number(&self) -> u64 {
        self.observed.number
    }

    fn outgoing(&self, request: &OutgoingRequest<'_>) -> Outgoing {
        let Observation { number, observers, .. } = &self.observed;
        let observers = observers.iter().flat_map(|all| all.iter());
        Outgoing::new(observers.filter_map(|one| one.outgoing(*number, request)).collect())
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(once(&self.cancelled, &self.cancellation))
    }

    fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    fn takes_long(&self, state: Option<Raw>) {
        *self.continuing.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.long.store(true, Ordering::Release);
        self.lengthened.notify_waiters();
    }
}

/// Completes when `is_so` is set, which `told` signals.
async fn once(is_so: &AtomicBool, told: &Notify) {
    let notified = told.notified();
    tokio::pin!(notified);
    // Register before looking, or a change in between would be missed.
    notified.as_mut().enable();
    if !is_so.load(Ordering::Acquire) {
        notified.await;
    }
}

impl std::fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunningCall({})", self.key.0)
    }
}
