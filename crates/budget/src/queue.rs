//! How many calls of a program or a server run at once, and the queue of those that wait.
//!
//! A call takes its place when [`CallQueue::enter`] is called, not when its future is first polled:
//! calls of one caller run in the order in which they arrived, however their tasks are scheduled.
//! Callers take turns.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::limits::Limit;
use crate::turns::{Place, Turns};

/// A queue of calls in which callers take turns. Clones share the queue.
#[derive(Clone, Debug)]
pub struct CallQueue {
    state: Arc<Mutex<State>>,
    max_waiting: usize,
}

#[derive(Debug)]
struct State {
    /// How many may run.
    most: usize,
    /// How many more may run.
    free: usize,
    waiting: Turns<oneshot::Sender<RunningCall>>,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many calls are waiting (limit {0})")]
pub struct QueueFull(pub usize);

/// The right to run. When it is dropped, the next call runs.
#[derive(Debug)]
pub struct RunningCall(CallQueue);

/// A place in the queue. Await it to run; drop it to leave the queue. It fails if the queue is full
/// and another caller, who has fewer calls in it, needs the place.
#[derive(Debug)]
pub struct QueuedCall {
    queue: CallQueue,
    place: Option<Place>,
    turn: Turn,
}

#[derive(Debug)]
enum Turn {
    /// It may run at once. `None` once it does.
    Now(Option<RunningCall>),
    Later(oneshot::Receiver<RunningCall>),
}

impl CallQueue {
    /// At most `concurrency` calls (at least one) run, and at most `max_waiting` wait. Further calls
    /// fail with [`QueueFull`].
    pub fn new(concurrency: usize, max_waiting: usize) -> Self {
        let most = concurrency.max(1);
        let state = State { most, free: most, waiting: Turns::new(max_waiting) };
        let state = Arc::new(Mutex::new(state));
        let mut queues = lock(&QUEUES);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&state));
        drop(queues);
        Self { state, max_waiting }
    }

    /// Takes the next place in the queue for the caller `share`.
    pub fn enter(&self, share: u64) -> Result<QueuedCall, QueueFull> {
        let queue = self.clone();
        let mut state = self.lock();
        if state.free > 0 {
            state.free -= 1;
            drop(state);
            let turn = Turn::Now(Some(RunningCall(self.clone())));
            return Ok(QueuedCall { queue, place: None, turn });
        }
        let (sender, turn) = oneshot::channel();
        let pushed = state.waiting.push(share, sender);
        drop(state);
        let full = QueueFull(self.max_waiting);
        if !matches!(pushed, Ok((_, None))) {
            Limit::Calls.reach(full);
        }
        // Dropping the sender notifies the displaced call.
        let (place, _displaced) = pushed.map_err(|_| full)?;
        Ok(QueuedCall { queue, place: Some(place), turn: Turn::Later(turn) })
    }

    /// Lets the next call run, or keeps the right for a later one.
    fn next(&self) {
        let mut state = self.lock();
        match state.waiting.pop() {
            Some(next) => {
                drop(state);
                // If the call has just left the queue, dropping the right lets the next one run.
                drop(next.send(RunningCall(self.clone())));
            }
            None => state.free += 1,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The queues of the process, for metrics. Dropped queues are removed when the next one is created.
static QUEUES: Mutex<Vec<Weak<Mutex<State>>>> = Mutex::new(Vec::new());

/// The numbers of running and waiting calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLength {
    /// How many run.
    pub running: usize,
    /// How many wait.
    pub waiting: usize,
}

/// The calls of all queues of the process.
pub fn queued_calls() -> QueueLength {
    let queues: Vec<_> = lock(&QUEUES).iter().filter_map(Weak::upgrade).collect();
    queues.iter().fold(QueueLength::default(), |all, queue| {
        let state = lock(queue);
        QueueLength {
            running: all.running + state.most - state.free,
            waiting: all.waiting + state.waiting.len(),
        }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.next();
    }
}

impl Future for QueuedCall {
    type Output = Result<RunningCall, QueueFull>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let full = QueueFull(self.queue.max_waiting);
        match &mut self.turn {
            Turn::Now(running) => Poll::Ready(running.take().ok_or(full)),
            Turn::Later(turn) => Pin::new(turn).poll(cx).map(|turn| turn.map_err(|_| full)),
        }
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let left = self.queue.lock().waiting.remove(place);
            drop(left);
        }
    }
}

#[cfg(test)]
mod tests;
