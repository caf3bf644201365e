//! How many calls of a command run at once, and the queue of those that wait.
//!
//! A call takes its place when [`CallQueue::enter`] is called, not when its future is first polled:
//! calls run in the order in which they arrived, however their tasks are scheduled.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::coop::unconstrained;

/// A first-in, first-out queue of calls. Clones share the queue.
#[derive(Clone, Debug)]
pub struct CallQueue {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    max_waiting: usize,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many calls are waiting (limit {0})")]
pub struct QueueFull(pub usize);

/// A place in the queue. Await it to run; drop it to leave the queue.
pub type QueuedCall = Pin<Box<dyn Future<Output = RunningCall> + Send>>;

/// The right to run. When it is dropped, the next call runs.
#[derive(Debug)]
pub struct RunningCall(
    #[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>,
);

impl CallQueue {
    /// At most `concurrency` calls (at least one) run, and at most `max_waiting` wait. Further calls
    /// fail with [`QueueFull`].
    pub fn new(concurrency: usize, max_waiting: usize) -> Self {
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let max_waiting = max_waiting.min(Semaphore::MAX_PERMITS);
        let [running, waiting] = [concurrency, max_waiting].map(|n| Arc::new(Semaphore::new(n)));
        Self { running, waiting, max_waiting }
    }

    /// Takes the next place in the queue.
    pub fn enter(&self) -> Result<QueuedCall, QueueFull> {
        // Outside of tokio's cooperative budget: a poll that is put off would not queue.
        let mut acquire = Box::pin(unconstrained(Arc::clone(&self.running).acquire_owned()));
        // The semaphore is fair: the first poll takes the place. It is never closed.
        match acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Ok(Box::pin(async { RunningCall(permit.ok()) })),
            Poll::Pending => {
                let room = Arc::clone(&self.waiting).try_acquire_owned();
                let room = room.map_err(|_| QueueFull(self.max_waiting))?;
                Ok(Box::pin(async move {
                    let permit = acquire.await.ok();
                    drop(room);
                    RunningCall(permit)
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// On one thread, where a task that may run is also the next to run.
    #[tokio::test]
    async fn sixty_four_calls_run_in_order_and_never_more_than_four_at_once() {
        let queue = CallQueue::new(4, 64);
        let log = Arc::new(Mutex::new((Vec::new(), 0, 0)));
        let tasks: Vec<_> = (0..64)
            .map(|number| (number, queue.enter().unwrap(), Arc::clone(&log)))
            .collect::<Vec<_>>()
            .into_iter()
            .rev() // the order in which the tasks start does not matter
            .map(|(number, queued, log)| {
                tokio::spawn(async move {
                    let running = queued.await;
                    {
                        let mut log = log.lock().unwrap();
                        log.0.push(number);
                        log.1 += 1;
                        log.2 = log.1.max(log.2);
                    }
                    for _ in 0..10 {
                        tokio::task::yield_now().await;
                    }
                    log.lock().unwrap().1 -= 1;
                    drop(running);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let log = log.lock().unwrap();
        assert_eq!((log.1, log.2), (0, 4));
        // The first four do not wait, and run in the order of their tasks.
        let (first, rest) = log.0.split_at(4);
        assert_eq!(first, [3, 2, 1, 0]);
        assert_eq!(rest, (4..64).collect::<Vec<_>>());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn with_a_concurrency_of_one_the_order_is_exact() {
        let queue = CallQueue::new(1, 100);
        let order = Arc::new(Mutex::new(Vec::new()));
        let calls: Vec<_> = (0..100).map(|number| (number, queue.enter().unwrap())).collect();
        let tasks: Vec<_> = calls
            .into_iter()
            .rev()
            .map(|(number, queued)| {
                let order = Arc::clone(&order);
                tokio::spawn(async move {
                    let _running = queued.await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_call_that_leaves_the_queue_is_skipped_and_makes_room() {
        let queue = CallQueue::new(1, 2);
        let first = queue.enter().unwrap().await;
        let second = queue.enter().unwrap();
        let third = queue.enter().unwrap();
        assert_eq!(queue.enter().err(), Some(QueueFull(2)));
        drop(second);
        let mut fourth = queue.enter().unwrap();
        assert!(poll(&mut fourth).is_pending());
        drop(first);
        assert!(poll(&mut fourth).is_pending(), "the third comes before the fourth");
        drop(third.await);
        fourth.await;
    }

    #[tokio::test]
    async fn a_call_that_may_run_but_is_dropped_makes_room() {
        let queue = CallQueue::new(1, 2);
        let first = queue.enter().unwrap().await;
        let (second, third) = (queue.enter().unwrap(), queue.enter().unwrap());
        drop(first); // now the second may run, but has not been polled
        drop(second);
        third.await;
    }

    fn poll(call: &mut QueuedCall) -> Poll<RunningCall> {
        call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }
}
