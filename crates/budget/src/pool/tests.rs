use std::sync::mpsc;
use std::thread;

use super::*;

/// Work that runs until it is released.
fn blocker(pool: &Pool, share: u64) -> (Computing<()>, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let running = pool.run(share, move |_| {
        begun.send(()).unwrap();
        let _ = released.recv();
        Ok(())
    });
    has_begun.recv_timeout(Duration::from_secs(20)).unwrap();
    (running, release)
}

#[tokio::test]
async fn work_runs_on_another_thread_and_its_result_comes_back() {
    let here = thread::current().id();
    let there = compute(1, move |_| Ok(thread::current().id())).await.unwrap();
    assert_ne!(here, there);
}

#[tokio::test]
async fn callers_take_turns_and_one_caller_has_no_more_threads_than_cores() {
    let pool = Pool::new(1, 100, Duration::from_secs(60));
    let (first, release) = blocker(&pool, 1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = |name: &'static str| {
        let order = order.clone();
        move |_: &TimeBudget| {
            order.lock().unwrap().push(name);
            Ok(())
        }
    };
    let greedy: Vec<_> = (0..10).map(|_| pool.run(1, log("greedy"))).collect();
    // The greedy caller has its thread; other callers have the others.
    pool.run(2, log("other")).await.unwrap();
    assert_eq!(*order.lock().unwrap(), ["other"]);
    release.send(()).unwrap();
    first.await.unwrap();
    for work in greedy {
        work.await.unwrap();
    }
    assert_eq!(order.lock().unwrap().len(), 11);
}

#[tokio::test]
async fn a_full_pool_refuses_the_caller_who_has_most() {
    let pool = Pool::new(1, 2, Duration::from_secs(60));
    let (_running, release) = blocker(&pool, 1);
    let [second, third, fourth] = [(); 3].map(|()| pool.run(1, |_| Ok(())));
    assert_eq!(fourth.await, Err(ComputeError::Busy(2)));
    // It runs at once, but it had to be queued.
    pool.run(2, |_| Ok(())).await.unwrap();
    assert_eq!(third.await, Err(ComputeError::Busy(2)));
    release.send(()).unwrap();
    second.await.unwrap();
}

#[tokio::test]
async fn work_that_takes_too_long_is_spent() {
    let pool = Pool::new(1, 2, Duration::from_millis(20));
    let endless = pool.run(1, |time| -> Result<(), Spent> {
        loop {
            time.check()?;
            thread::yield_now();
        }
    });
    let spent = Spent(Duration::from_millis(20));
    assert_eq!(endless.await, Err(ComputeError::Spent(spent)));
}

#[tokio::test]
async fn dropping_the_result_stops_the_work_and_leaves_the_queue() {
    let pool = Pool::new(1, 2, Duration::from_secs(60));
    let (ended, has_ended) = oneshot::channel();
    let (begun, has_begun) = oneshot::channel();
    let endless = pool.run(1, move |time| -> Result<(), Spent> {
        begun.send(()).unwrap();
        while time.check().is_ok() {
            thread::yield_now();
        }
        ended.send(()).unwrap();
        Ok(())
    });
    has_begun.await.unwrap();
    let waiting = [(); 2].map(|()| pool.run(1, |_| Ok(())));
    drop(waiting);
    let last = pool.run(1, |_| Ok("run"));
    drop(endless);
    has_ended.await.unwrap();
    assert_eq!(last.await, Ok("run"));
}

#[tokio::test]
async fn a_panic_ends_its_own_work_only() {
    let pool = Pool::new(1, 2, Duration::from_secs(60));
    let panics = pool.run(1, |_| -> Result<(), Spent> { panic!("on purpose") });
    let joined = tokio::spawn(panics).await;
    assert!(joined.unwrap_err().is_panic());
    assert_eq!(pool.run(1, |_| Ok(1)).await, Ok(1));
}
