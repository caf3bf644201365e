//! How many calls of a command run at once, and in which order the others follow.
//!
//! The place in the queue is taken when [`Gate::enter`] is called, not when somebody first waits:
//! so the order is that of the calls, however their tasks are scheduled. Whoever drops a [`Turn`]
//! leaves the queue and never runs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::unconstrained;

/// Lets so many through at once, first come first served.
#[derive(Clone, Debug)]
pub struct Gate {
    inside: Arc<Semaphore>,
    /// Room in the queue.
    queue: Arc<Semaphore>,
    max_waiting: usize,
}

/// As many calls wait as are allowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} calls are waiting already")]
pub struct Busy(pub usize);

impl Gate {
    /// At most `concurrency` inside (at least one), at most `max_waiting` in the queue: one more
    /// is refused.
    pub fn new(concurrency: usize, max_waiting: usize) -> Self {
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let max_waiting = max_waiting.min(Semaphore::MAX_PERMITS);
        let [inside, queue] = [concurrency, max_waiting].map(|n| Arc::new(Semaphore::new(n)));
        Self { inside, queue, max_waiting }
    }

    /// Takes the next place in the queue, or goes in at once.
    pub fn enter(&self) -> Result<Turn, Busy> {
        // Outside of tokio's budget for a task: a poll that is put off would not queue.
        let acquire = unconstrained(Arc::clone(&self.inside).acquire_owned());
        let mut acquire: Acquire = Box::pin(acquire);
        match acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(pass) => Ok(Turn(State::Ready(pass.ok().map(Pass)))),
            Poll::Pending => {
                let room = Arc::clone(&self.queue).try_acquire_owned();
                let room = room.map_err(|_| Busy(self.max_waiting))?;
                Ok(Turn(State::Waiting { acquire, _room: room }))
            }
        }
    }
}

type Acquire = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A place in the queue. Await it for the [`Pass`]; drop it to leave.
#[must_use = "a turn that is dropped is given up"]
pub struct Turn(State);

enum State {
    Ready(Option<Pass>),
    Waiting { acquire: Acquire, _room: OwnedSemaphorePermit },
}

/// The right to run. The next one goes in when it is dropped.
#[derive(Debug)]
pub struct Pass(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Future for Turn {
    type Output = Pass;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Pass> {
        let pass = match &mut self.0 {
            State::Ready(pass) => pass.take(),
            State::Waiting { acquire, .. } => match acquire.as_mut().poll(context) {
                Poll::Ready(pass) => {
                    self.0 = State::Ready(None);
                    pass.ok().map(Pass)
                }
                Poll::Pending => None,
            },
        };
        // Our semaphore is never closed, so that a turn without a pass is one still waiting
        // (or one polled after its end, which stays pending).
        pass.map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// On one thread, where a task that is let in is also the next to run.
    #[tokio::test]
    async fn sixty_four_at_a_gate_of_four_go_in_order_and_never_more_than_four() {
        let gate = Gate::new(4, 64);
        let log = Arc::new(Mutex::new((Vec::new(), 0, 0)));
        let tasks: Vec<_> = (0..64)
            .map(|number| (number, gate.enter().unwrap(), Arc::clone(&log)))
            .collect::<Vec<_>>()
            .into_iter()
            .rev() // the tasks start in the opposite order: it must not matter
            .map(|(number, turn, log)| {
                tokio::spawn(async move {
                    let pass = turn.await;
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
                    drop(pass);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let log = log.lock().unwrap();
        assert_eq!((log.1, log.2), (0, 4));
        // The first four find the gate open, and look in the order of their tasks.
        let (first, rest) = log.0.split_at(4);
        assert_eq!(first, [3, 2, 1, 0]);
        assert_eq!(rest, (4..64).collect::<Vec<_>>());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn with_one_at_a_time_the_order_is_exact() {
        let gate = Gate::new(1, 100);
        let order = Arc::new(Mutex::new(Vec::new()));
        let turns: Vec<_> = (0..100).map(|number| (number, gate.enter().unwrap())).collect();
        let tasks: Vec<_> = turns
            .into_iter()
            .rev()
            .map(|(number, turn)| {
                let order = Arc::clone(&order);
                tokio::spawn(async move {
                    let _pass = turn.await;
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
    async fn who_leaves_the_queue_is_skipped_and_makes_room() {
        let gate = Gate::new(1, 2);
        let first = gate.enter().unwrap().await;
        let second = gate.enter().unwrap();
        let third = gate.enter().unwrap();
        assert_eq!(gate.enter().err(), Some(Busy(2)));
        drop(second);
        let mut fourth = std::pin::pin!(gate.enter().unwrap());
        assert!(futures_poll(&mut fourth).is_pending());
        drop(first);
        assert!(futures_poll(&mut fourth).is_pending(), "the third comes before the fourth");
        drop(third.await);
        fourth.await;
    }

    #[tokio::test]
    async fn a_turn_that_was_reached_but_dropped_is_passed_on() {
        let gate = Gate::new(1, 2);
        let first = gate.enter().unwrap().await;
        let (second, third) = (gate.enter().unwrap(), gate.enter().unwrap());
        drop(first); // now it is the second's turn, who has not looked yet
        drop(second);
        third.await;
    }

    fn futures_poll(turn: &mut Pin<&mut Turn>) -> Poll<Pass> {
        turn.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }
}
