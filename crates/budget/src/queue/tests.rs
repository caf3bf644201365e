use std::task::Waker;

use super::*;

/// On one thread, where a task that may run is also the next to run.
#[tokio::test]
async fn sixty_four_calls_run_in_order_and_never_more_than_four_at_once() {
    let queue = CallQueue::new(4, 64);
    let log = Arc::new(Mutex::new((Vec::new(), 0, 0)));
    let tasks: Vec<_> = (0..64)
        .map(|number| (number, queue.enter(1).unwrap(), Arc::clone(&log)))
        .collect::<Vec<_>>()
        .into_iter()
        .rev() // the order in which the tasks start does not matter
        .map(|(number, queued, log)| {
            tokio::spawn(async move {
                let running = queued.await.unwrap();
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
    let calls: Vec<_> = (0..100).map(|number| (number, queue.enter(1).unwrap())).collect();
    let tasks: Vec<_> = calls
        .into_iter()
        .rev()
        .map(|(number, queued)| {
            let order = Arc::clone(&order);
            tokio::spawn(async move {
                let _running = queued.await.unwrap();
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
    let first = queue.enter(1).unwrap().await.unwrap();
    let second = queue.enter(1).unwrap();
    let third = queue.enter(1).unwrap();
    assert_eq!(queue.enter(1).err(), Some(QueueFull(2)));
    drop(second);
    let mut fourth = queue.enter(1).unwrap();
    assert!(poll(&mut fourth).is_pending());
    drop(first);
    assert!(poll(&mut fourth).is_pending(), "the third comes before the fourth");
    drop(third.await);
    fourth.await.unwrap();
}

#[tokio::test]
async fn a_call_that_may_run_but_is_dropped_makes_room() {
    let queue = CallQueue::new(1, 2);
    let first = queue.enter(1).unwrap().await.unwrap();
    let (second, third) = (queue.enter(1).unwrap(), queue.enter(1).unwrap());
    drop(first); // now the second may run, but has not been polled
    drop(second);
    third.await.unwrap();
}

fn poll(call: &mut QueuedCall) -> Poll<Result<RunningCall, QueueFull>> {
    Pin::new(call).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn one_caller_does_not_fill_the_queue_for_others() {
    let queue = CallQueue::new(1, 8);
    let first = queue.enter(1).unwrap().await.unwrap();
    let mut greedy: Vec<_> = (0..8).map(|_| queue.enter(1).unwrap()).collect();
    assert_eq!(queue.enter(1).err(), Some(QueueFull(8)));
    let mut other = queue.enter(2).unwrap();
    let displaced = greedy.pop().unwrap();
    assert_eq!(displaced.await.err(), Some(QueueFull(8)));
    // The greedy caller was first; then they take turns.
    drop(first);
    let second = greedy.remove(0).await.unwrap();
    assert!(poll(&mut other).is_pending());
    drop(second);
    other.await.unwrap();
}
