//! A running call: what it reports to its connection, and how it learns that it was cancelled.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sabir_registry::{CallHandle, Source};
use sabir_session::{CallKey, CallNotification};
use sabir_wire::Raw;
use sabir_wire::types::Level;
use tokio::sync::Notify;

use crate::admitted::Admitted;
use crate::events::EventQueue;

/// A running call.
pub(crate) struct RunningCall {
    pub(crate) key: CallKey,
    /// Names it to observers.
    pub(crate) number: u64,
    events: Arc<EventQueue>,
    wants_progress: bool,
    /// The least severe log messages that are wanted.
    log_level: Option<Level>,
    cancelled: AtomicBool,
    cancellation: Notify,
    /// It has become a task: its connection has an answer, and hears nothing more of it.
    detached: AtomicBool,
    parked: Mutex<Option<Parked>>,
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
        number: u64,
        events: Arc<EventQueue>,
        wants_progress: bool,
        log_level: Option<Level>,
    ) -> Arc<Self> {
        Arc::new(Self {
            key,
            number,
            events,
            wants_progress,
            log_level,
            cancelled: AtomicBool::new(false),
            cancellation: Notify::new(),
            detached: AtomicBool::new(false),
            parked: Mutex::default(),
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

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let cancellation = self.cancellation.notified();
            tokio::pin!(cancellation);
            // Register before looking, or a cancellation in between would be missed.
            cancellation.as_mut().enable();
            if !self.is_cancelled() {
                cancellation.await;
            }
        })
    }
}

impl std::fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunningCall({})", self.key.0)
    }
}
