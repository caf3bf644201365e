//! How fast a client asks, and whether to stay awake for its next question.
//!
//! To fall asleep and to be woken takes longer than most answers: tens of microseconds, far more in
//! a virtual machine. So where a client asks again as soon as it is answered, we look for its next
//! question for a while before we sleep, as a lock is looked at before it is waited for. A client
//! that takes its time is never waited for like that, and whatever else has to be done on this core
//! goes first.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long we stay awake. Whoever asks later than that need not be in a hurry with the next.
const PATIENCE: Duration = Duration::from_micros(200);

/// Where more clients than these are here, one of them is served at any time, and looking for
/// questions in between would only keep the others waiting.
const FEW: usize = 2;

/// How many clients are here, in all of this process.
static CLIENTS: AtomicUsize = AtomicUsize::new(0);

/// The pace of one client.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Whether it asked within our patience the last time.
    is_quick: bool,
    /// Who else is here.
    clients: &'static AtomicUsize,
}

impl Pace {
    /// A client comes, and is here until this is dropped.
    pub(crate) fn new() -> Self {
        Self::among(&CLIENTS)
    }

    fn among(clients: &'static AtomicUsize) -> Self {
        clients.fetch_add(1, Ordering::Relaxed);
        Self { is_quick: false, clients }
    }

    /// Waits for what the client says next.
    pub(crate) async fn next<T>(&mut self, question: impl Future<Output = T>) -> T {
        if self.clients.load(Ordering::Relaxed) > FEW {
            return question.await;
        }
        let mut question = pin!(question);
        // What is there already says nothing about the pace.
        if let Poll::Ready(question) = look(question.as_mut()).await {
            return question;
        }
        let start = Instant::now();
        while self.is_quick && start.elapsed() < PATIENCE {
            give_way().await;
            if let Poll::Ready(question) = look(question.as_mut()).await {
                return question;
            }
        }
        self.is_quick = false;
        let question = question.await;
        self.is_quick = start.elapsed() < PATIENCE;
        question
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Polls once.
async fn look<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// Lets all others go first: tasks of this runtime, and programs on this core.
async fn give_way() {
    std::thread::yield_now();
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Comes when it was looked for so often; nobody is woken for it.
    async fn after_looks(mut looks: usize) {
        poll_fn(|_| match looks.checked_sub(1) {
            None => Poll::Ready(()),
            Some(left) => {
                looks = left;
                Poll::Pending
            }
        })
        .await;
    }

    /// Whether something that nobody is woken for is found.
    async fn is_found<T>(pace: &mut Pace, question: impl Future<Output = T>) -> bool {
        tokio::select! {
            biased;
            // First, for to be woken by it is not to have been awake.
            () = tokio::time::sleep(Duration::from_millis(20)) => false,
            _ = pace.next(question) => true,
        }
    }

    /// Whether we stay awake for a client that was quick the last time. A machine may be too busy
    /// to let anybody be quick, but not for ever.
    async fn is_awake_for_the_quick(pace: &mut Pace) -> bool {
        for _ in 0..20 {
            make_quick(pace).await;
            if is_found(pace, after_looks(3)).await {
                return true;
            }
        }
        false
    }

    /// Whether we sleep for what comes after `question`. Where the machine keeps us from the core
    /// meanwhile, `question` may come while we are still awake, but not each time.
    async fn sleeps_after<F: Future>(pace: &mut Pace, question: impl Fn() -> F) -> bool {
        for _ in 0..20 {
            make_quick(pace).await;
            is_found(pace, question()).await;
            if !is_found(pace, after_looks(3)).await {
                return true;
            }
        }
        false
    }

    async fn make_quick(pace: &mut Pace) {
        while !pace.is_quick {
            pace.next(tokio::task::yield_now()).await;
        }
        // Whoever was to be woken for that is.
        tokio::task::yield_now().await;
    }

    #[tokio::test]
    async fn a_client_that_asks_at_once_is_waited_for_awake() {
        static CLIENTS: AtomicUsize = AtomicUsize::new(0);
        let mut pace = Pace::among(&CLIENTS);
        assert!(!is_found(&mut pace, after_looks(3)).await, "nobody knows it yet");
        assert!(is_awake_for_the_quick(&mut pace).await);
    }

    #[tokio::test]
    async fn a_client_that_takes_its_time_is_not() {
        static CLIENTS: AtomicUsize = AtomicUsize::new(0);
        let mut pace = Pace::among(&CLIENTS);
        assert!(sleeps_after(&mut pace, || tokio::time::sleep(20 * PATIENCE)).await);
    }

    #[tokio::test]
    async fn patience_ends() {
        static CLIENTS: AtomicUsize = AtomicUsize::new(0);
        let mut pace = Pace::among(&CLIENTS);
        let looks = &Cell::new(0);
        let endless = || {
            looks.set(0);
            poll_fn(|_| -> Poll<()> {
                looks.set(looks.get() + 1);
                Poll::Pending
            })
        };
        assert!(sleeps_after(&mut pace, endless).await);
        // Each look lets all others go first, which takes more than a tenth of a microsecond.
        assert!(looks.get() < 2000, "{looks:?}");
    }

    #[tokio::test]
    async fn nobody_is_waited_for_awake_where_many_are_here() {
        static CLIENTS: AtomicUsize = AtomicUsize::new(0);
        let mut pace = Pace::among(&CLIENTS);
        let mut others: Vec<Pace> = (1..FEW).map(|_| Pace::among(&CLIENTS)).collect();
        assert!(is_awake_for_the_quick(&mut pace).await);
        pace.is_quick = true;
        others.push(Pace::among(&CLIENTS));
        assert!(!is_found(&mut pace, after_looks(3)).await);
        others.pop();
        assert!(is_awake_for_the_quick(&mut pace).await, "whoever has left is not here");
    }

    #[tokio::test]
    async fn others_go_on_while_we_are_awake() {
        static CLIENTS: AtomicUsize = AtomicUsize::new(0);
        let mut pace = Pace::among(&CLIENTS);
        let mut tries = 0..20;
        let is_done = loop {
            make_quick(&mut pace).await;
            let is_done = Arc::new(AtomicBool::new(false));
            // What we look for is what another task does meanwhile.
            let question = poll_fn(|_| match is_done.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            });
            let other = is_done.clone();
            tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
            if is_found(&mut pace, question).await {
                break true;
            }
            if tries.next().is_none() {
                break false;
            }
        };
        assert!(is_done);
    }
}
