//! The activity of a connection, for the task that sweeps all of them.
//!
//! A timer for every request would be expensive. A connection only notes when something began, by a
//! coarse clock; one task ticks that clock, checks all connections and ends those that take too
//! long.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::settings::Limits;

/// A clock with coarse ticks: milliseconds since it was created, never 0.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    now: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), now: AtomicU64::new(1) }
    }

    pub(crate) fn tick(&self) -> u64 {
        let now = 1 + u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.now.store(now, Ordering::Relaxed);
        now
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// Milliseconds, for the clock.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Orders to a connection.
const RUN: u8 = 0;
const FINISH: u8 = 1;
const ABANDON: u8 = 2;

/// The activity of one connection. A time of 0 means that this activity is not going on.
#[derive(Debug)]
pub(crate) struct Activity {
    clock: Arc<Clock>,
    in_flight: AtomicU32,
    /// The number of requests that have begun; it wraps.
    begun: AtomicU32,
    idle_since: AtomicU64,
    body_since: AtomicU64,
    body_is_late: AtomicBool,
    body: AtomicWaker,
    stalled_since: AtomicU64,
    order: AtomicU8,
    driver: AtomicWaker,
    /// It has made a request.
    is_used: AtomicBool,
    /// Over HTTP/2: the numbers and deadlines of answers that the peer has not read. Flow control
    /// hides a stalled peer from the socket.
    untaken: Mutex<Vec<(u64, u64)>>,
    last_untaken: AtomicU64,
}

/// An answer that the peer has not read, until this is dropped.
#[derive(Debug)]
pub(crate) struct Untaken {
    activity: Arc<Activity>,
    number: u64,
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.activity.untaken().retain(|(number, _)| *number != self.number);
    }
}

/// Bytes that a peer must read per second, after the time in which it may read nothing.
const LEAST_RATE: u64 = 64 << 10;

impl Activity {
    pub(crate) fn new(clock: Arc<Clock>) -> Self {
        let now = clock.now();
        Self {
            clock,
            in_flight: AtomicU32::new(0),
            begun: AtomicU32::new(0),
            idle_since: AtomicU64::new(now),
            body_since: AtomicU64::new(0),
            body_is_late: AtomicBool::new(false),
            body: AtomicWaker::new(),
            stalled_since: AtomicU64::new(0),
            order: AtomicU8::new(RUN),
            driver: AtomicWaker::new(),
            is_used: AtomicBool::new(false),
            untaken: Mutex::default(),
            last_untaken: AtomicU64::new(0),
        }
    }

    /// A request begins.
    pub(crate) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether it can be closed without harm to a request: none is in flight, or only one whose
    /// body has not arrived.
    pub(crate) fn is_dispensable(&self) -> bool {
        let is_waiting = self.body_since.load(Ordering::Relaxed) != 0;
        !self.is_told() && (self.in_flight() == 0 || is_waiting)
    }

    /// Orders connections: those that never made a request come first, then the longest idle.
    pub(crate) fn worth(&self) -> (bool, u64) {
        let since = self.idle_since.load(Ordering::Relaxed);
        (self.is_used.load(Ordering::Relaxed), since)
    }

    /// Notes an answer of `bytes` bytes, which the peer must read in time.
    pub(crate) fn expect_taken(self: &Arc<Self>, bytes: usize, stall: Duration) -> Untaken {
        let number = self.last_untaken.fetch_add(1, Ordering::Relaxed);
        let time = millis(stall).saturating_add(bytes as u64 * 1000 / LEAST_RATE);
        self.untaken().push((number, self.clock.now().saturating_add(time)));
        Untaken { activity: self.clone(), number }
    }

    fn untaken(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered in full.
    pub(crate) fn end(&self) {
        self.idle_since.store(self.clock.now(), Ordering::Relaxed);
        self.in_flight.fetch_sub(1, Ordering::Release);
    }

    /// Changes with every request that begins.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire) as usize
    }

    /// Lets running requests finish, and accepts no others.
    pub(crate) fn finish(&self) {
        self.tell(FINISH);
    }

    /// Whether the connection was ordered to finish or to end.
    pub(crate) fn is_told(&self) -> bool {
        self.order.load(Ordering::Acquire) != RUN
    }

    /// Ends everything that takes too long.
    pub(crate) fn check(&self, now: u64, limits: &Limits) {
        let over = |since: &AtomicU64, limit| {
            let since = since.load(Ordering::Relaxed);
            since != 0 && now.saturating_sub(since) >= millis(limit)
        };
        let is_idle = self.in_flight() == 0 && over(&self.idle_since, limits.idle);
        let is_late = self.untaken().iter().any(|(_, due)| *due <= now);
        if is_idle || is_late || over(&self.stalled_since, limits.stall) {
            self.abandon();
        }
        if over(&self.body_since, limits.body_time) {
            self.body_is_late.store(true, Ordering::Release);
            self.body.wake();
        }
    }

    /// Ends the connection now.
    pub(crate) fn abandon(&self) {
        self.tell(ABANDON);
    }

    fn tell(&self, order: u8) {
        self.order.fetch_max(order, Ordering::Release);
        self.driver.wake();
    }

    /// Waits for `body` within its time limit. Only one body of a connection may be waited for at a
    /// time.
    pub(crate) async fn body_in_time<T>(&self, body: impl Future<Output = T>) -> Option<T> {
        let mut body = std::pin::pin!(body);
        poll_fn(|cx| {
            if let Poll::Ready(done) = body.as_mut().poll(cx) {
                self.body_since.store(0, Ordering::Relaxed);
                return Poll::Ready(Some(done));
            }
            if self.body_since.load(Ordering::Relaxed) == 0 {
                self.body_since.store(self.clock.now(), Ordering::Relaxed);
            }
            self.body.register(cx.waker());
            if !self.body_is_late.load(Ordering::Acquire) {
                return Poll::Pending;
            }
            self.body_since.store(0, Ordering::Relaxed);
            Poll::Ready(None)
        })
        .await
    }

    /// Drives a connection until it has ended, or is ordered to end: then `None`. `shut` asks it to
    /// finish.
    pub(crate) async fn drive<C: Future>(
        &self,
        connection: C,
        shut: impl Fn(Pin<&mut C>),
    ) -> Option<C::Output> {
        let mut connection = std::pin::pin!(connection);
        let mut heard = None;
        poll_fn(|cx| {
            loop {
                // Data that was read before an order is handled before it.
                if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                    return Poll::Ready(Some(ended));
                }
                let order = self.order.load(Ordering::Acquire);
                if heard.replace(order) == Some(order) {
                    return Poll::Pending;
                }
                // An order consumes the waker, so it is registered again.
                self.driver.register(cx.waker());
                match order {
                    FINISH => shut(connection.as_mut()),
                    ABANDON => return Poll::Ready(None),
                    _ => {}
                }
            }
        })
        .await
    }

    /// Notes whether the peer reads.
    pub(crate) fn note_write<T>(&self, written: Poll<T>) -> Poll<T> {
        let since = match written {
            Poll::Ready(_) => 0,
            Poll::Pending if self.stalled_since.load(Ordering::Relaxed) != 0 => return written,
            Poll::Pending => self.clock.now(),
        };
        self.stalled_since.store(since, Ordering::Relaxed);
        written
    }
}
