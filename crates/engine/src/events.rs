//! What running calls have to say to their connection: notes on the way, and how they ended.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sabir_registry::Line;
use sabir_session::{CallKey, CallNotification, Outcome};
use sabir_wire::Raw;
use sabir_wire::types::Level;
use tokio::sync::Notify;

/// The one place where all calls of a connection leave word.
pub(crate) struct EventQueue {
    letters: Mutex<Letters>,
    arrival: Notify,
    /// How many notes may wait. When full, further ones are dropped: the next progress says more
    /// than the last, and a log is no promise. An ending is never dropped.
    max_notes: usize,
}

#[derive(Default)]
struct Letters {
    waiting: VecDeque<CallEvent>,
    notes: usize,
}

pub(crate) enum CallEvent {
    Notified(CallKey, CallNotification),
    Finished(CallKey, Outcome),
}

impl std::fmt::Debug for EventQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventQueue")
    }
}

impl EventQueue {
    pub(crate) fn new(max_notes: usize) -> Arc<Self> {
        Arc::new(Self { letters: Mutex::default(), arrival: Notify::new(), max_notes })
    }

    pub(crate) fn finished(&self, call: CallKey, outcome: Outcome) {
        self.lock().waiting.push_back(CallEvent::Finished(call, outcome));
        self.arrival.notify_one();
    }

    fn noted(&self, call: CallKey, note: CallNotification) {
        let mut letters = self.lock();
        if letters.notes < self.max_notes {
            letters.notes += 1;
            letters.waiting.push_back(CallEvent::Notified(call, note));
            drop(letters);
            self.arrival.notify_one();
        }
    }

    /// The oldest letter.
    pub(crate) fn take(&self) -> Option<CallEvent> {
        let mut letters = self.lock();
        let letter = letters.waiting.pop_front()?;
        if matches!(letter, CallEvent::Notified(..)) {
            letters.notes -= 1;
        }
        Some(letter)
    }

    /// Comes back when there may be a letter.
    pub(crate) async fn arrival(&self) {
        self.arrival.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's way back to its connection.
pub(crate) struct RunningCall {
    pub(crate) key: CallKey,
    /// Made when there is something to put in: most calls only end.
    events: OnceLock<Arc<EventQueue>>,
    max_notes: usize,
    pub(crate) wants_progress: bool,
    /// The least of the log messages that are wanted.
    pub(crate) log_level: Option<Level>,
    cancelled: AtomicBool,
    cancellation: Notify,
}

impl RunningCall {
    pub(crate) fn new(
        key: CallKey,
        events: Option<Arc<EventQueue>>,
        max_notes: usize,
        wants_progress: bool,
        log_level: Option<Level>,
    ) -> Arc<Self> {
        let events = events.map_or_else(OnceLock::new, OnceLock::from);
        let (cancelled, cancellation) = (AtomicBool::new(false), Notify::new());
        Arc::new(Self {
            key,
            events,
            max_notes,
            wants_progress,
            log_level,
            cancelled,
            cancellation,
        })
    }

    /// Where the call leaves word.
    pub(crate) fn events(&self) -> &Arc<EventQueue> {
        self.events.get_or_init(|| EventQueue::new(self.max_notes))
    }

    /// The same, if there is one already.
    pub(crate) fn made_mailbox(&self) -> Option<&Arc<EventQueue>> {
        self.events.get()
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.cancellation.notify_waiters();
    }
}

impl Line for RunningCall {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        // NaN and infinities cannot be written as JSON.
        let is_number = progress.is_finite() && total.is_none_or(f64::is_finite);
        if self.wants_progress && is_number {
            self.events().noted(self.key, CallNotification::Progress { progress, total, message });
        }
    }

    fn log(&self, level: Level, logger: Option<String>, data: Raw) {
        if self.log_level.is_some_and(|least| level >= least) {
            self.events().noted(self.key, CallNotification::Log { level, logger, data });
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let told = self.cancellation.notified();
            tokio::pin!(told);
            // Register before looking, or a cancellation in between would be missed.
            told.as_mut().enable();
            if !self.is_cancelled() {
                told.await;
            }
        })
    }
}
