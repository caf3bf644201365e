//! Threads for work that computes, so that the threads that do I/O never do.
//!
//! Callers take turns. One caller runs on at most as many threads as there are cores, and there are
//! several times as many threads: long work of one caller does not keep others waiting. The threads
//! have a lower priority than those that do I/O.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::limits::Limit;
use crate::queue::QueueLength;
use crate::turns::{Place, Turns};

/// How many pieces of work wait in the pool of the process. One more displaces the newest of the
/// caller who has most, or is refused.
const MAX_WAITING: usize = 1024;

/// Threads per core.
const THREADS_PER_CORE: usize = 4;

/// The niceness of the threads: others get more time while all cores are busy.
const NICENESS: i32 = 5;

/// Threads for work that computes. Clones are the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    work_arrived: Condvar,
    max_threads: usize,
    max_per_caller: usize,
    max_waiting: usize,
    /// Milliseconds.
    time: AtomicU64,
}

struct State {
    waiting: Turns<Job>,
    /// The number of threads that work for each caller.
    running: FxHashMap<u64, usize>,
    threads: usize,
    idle: usize,
}

type Job = Box<dyn FnOnce() + Send>;

/// Why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// It was not begun.
    #[error("the server is busy: too much work is waiting (limit {0}); try again later")]
    Busy(usize),
    /// It took too long.
    #[error(transparent)]
    Spent(#[from] Spent),
}

/// The work exceeded its time, or its caller has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request needs too much computing (limit {0:?})")]
pub struct Spent(pub Duration);

/// The time that work may take.
#[derive(Debug)]
pub struct TimeBudget {
    limit: Duration,
    until: Instant,
    is_abandoned: Arc<AtomicBool>,
}

impl TimeBudget {
    /// A budget that is never spent: for work that runs outside of a pool.
    pub fn unlimited() -> Self {
        let limit = Duration::from_secs(u64::from(u32::MAX));
        Self { limit, until: Instant::now() + limit, is_abandoned: Arc::default() }
    }

    /// Whether the work may go on. Work calls this at least every few milliseconds; it costs
    /// nanoseconds.
    pub fn check(&self) -> Result<(), Spent> {
        match self.is_abandoned.load(Ordering::Relaxed) || Instant::now() >= self.until {
            true => Err(Spent(self.limit)),
            false => Ok(()),
        }
    }
}

/// Runs work in the pool of this process, see [`Pool::run`].
pub fn compute<T, W>(share: u64, work: W) -> Computing<T>
where
    T: Send + 'static,
    W: FnOnce(&TimeBudget) -> Result<T, Spent> + Send + 'static,
{
    shared().run(share, work)
}

/// Sets how long one piece of work may take in the pool of this process. The default is 5 seconds.
pub fn set_compute_time(time: Duration) {
    shared().0.time.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// The running and waiting work of the pool of this process.
pub fn computing() -> QueueLength {
    let state = shared().0.lock();
    QueueLength { running: state.running.values().sum(), waiting: state.waiting.len() }
}

/// The cores belong to the process, so there is one pool for all of it.
fn shared() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Pool::new(cores, MAX_WAITING, Duration::from_secs(5))
    })
}

impl Pool {
    /// A pool for `cores`, in which at most `max_waiting` pieces of work wait and each may take
    /// `time`. Its threads are started as they are needed.
    pub fn new(cores: usize, max_waiting: usize, time: Duration) -> Self {
        let cores = cores.max(1);
        let state = State {
            waiting: Turns::new(max_waiting),
            running: FxHashMap::default(),
            threads: 0,
            idle: 0,
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            work_arrived: Condvar::new(),
            max_threads: cores * THREADS_PER_CORE,
            max_per_caller: cores,
            max_waiting,
            time: AtomicU64::new(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        }))
    }

    /// Runs work for the caller `share`: it is queued at once, and stops when the result is
    /// dropped. A panic in it is resumed where the result is awaited.
    pub fn run<T, W>(&self, share: u64, work: W) -> Computing<T>
    where
        T: Send + 'static,
        W: FnOnce(&TimeBudget) -> Result<T, Spent> + Send + 'static,
    {
        let (sender, result) = oneshot::channel();
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let limit = Duration::from_millis(self.0.time.load(Ordering::Relaxed));
        let abandoned = is_abandoned.clone();
        let job: Job = Box::new(move || {
            let until = Instant::now() + limit;
            let budget = TimeBudget { limit, until, is_abandoned: abandoned };
            let done = catch_unwind(AssertUnwindSafe(|| work(&budget)));
            if let Ok(Err(spent)) = &done
                && !budget.is_abandoned.load(Ordering::Relaxed)
            {
                Limit::ComputeTime.reach(spent);
            }
            // The caller may have stopped waiting.
            drop(sender.send(done));
        });
        let place = self.0.push(share, job);
        Computing { pool: self.0.clone(), place, result, is_abandoned }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("max_threads", &self.0.max_threads).finish_non_exhaustive()
    }
}

impl Shared {
    /// `None` if there is no room.
    fn push(self: &Arc<Self>, share: u64, job: Job) -> Option<Place> {
        let mut state = self.lock();
        let pushed = state.waiting.push(share, job);
        let is_short = state.idle < state.waiting.len() && state.threads < self.max_threads;
        if is_short {
            state.threads += 1;
        }
        drop(state);
        if is_short {
            let pool = self.clone();
            let started = std::thread::Builder::new().name("sabir-compute".into());
            if started.spawn(move || pool.work()).is_err() {
                self.lock().threads -= 1;
            }
        }
        self.work_arrived.notify_one();
        if !matches!(pushed, Ok((_, None))) {
            Limit::Computing.reach(ComputeError::Busy(self.max_waiting));
        }
        // Displaced work is dropped outside of the lock, which ends its `Computing`.
        pushed.ok().map(|(place, _displaced)| place)
    }

    fn work(&self) {
        // A failure is ignored: the work is done at the old priority.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
        let mut state = self.lock();
        loop {
            let State { waiting, running, .. } = &mut *state;
            let may = |share| running.get(&share).is_none_or(|count| *count < self.max_per_caller);
            let Some((share, job)) = waiting.pop_of(may) else {
                state.idle += 1;
                state = self.work_arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            *running.entry(share).or_default() += 1;
            drop(state);
            job();
            state = self.lock();
            if let Some(count) = state.running.get_mut(&share) {
                *count -= 1;
                if *count == 0 {
                    state.running.remove(&share);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work in a pool. Await it for the result; drop it to stop the work.
#[derive(Debug)]
#[must_use]
pub struct Computing<T> {
    pool: Arc<Shared>,
    place: Option<Place>,
    result: oneshot::Receiver<Result<Result<T, Spent>, Box<dyn Any + Send>>>,
    is_abandoned: Arc<AtomicBool>,
}

impl<T> Future for Computing<T> {
    type Output = Result<T, ComputeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.place.is_none() {
            return Poll::Ready(Err(ComputeError::Busy(self.pool.max_waiting)));
        }
        Pin::new(&mut self.result).poll(cx).map(|sent| match sent {
            Ok(Ok(result)) => result.map_err(ComputeError::Spent),
            Ok(Err(panic)) => resume_unwind(panic),
            // It was displaced.
            Err(_) => Err(ComputeError::Busy(self.pool.max_waiting)),
        })
    }
}

impl<T> Drop for Computing<T> {
    fn drop(&mut self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        if let Some(place) = self.place.filter(|_| !self.result.is_terminated()) {
            let job = self.pool.lock().waiting.remove(place);
            drop(job);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("max_threads", &self.max_threads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
