//! News of the folder, gathered until it is quiet.
//!
//! The operating system tells of every step of a save; acting on each would read files that are
//! half written. So paths are gathered, each once, and handed on when nothing has happened for a
//! moment, or when the first has waited long enough.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// This long nothing must have happened.
const QUIET: Duration = Duration::from_millis(100);

/// This long the first path waits at most, however busy the folder is.
const LATEST: Duration = Duration::from_millis(400);

/// Paths that are gathered. When there are more, the whole folder is looked at instead.
const MOST_PATHS: usize = 4096;

/// Why the waiting is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Something happened here.
    Paths(Vec<String>),
    /// Something happened somewhere.
    Everywhere,
    /// The time is over.
    Time,
    /// Nobody wants us any more.
    Stop,
}

/// Where news of the folder are left.
#[derive(Default)]
pub(crate) struct Inbox {
    news: Mutex<News>,
    bell: Condvar,
}

#[derive(Default)]
struct News {
    paths: BTreeSet<String>,
    everywhere: bool,
    stop: bool,
    /// When the first and the last came.
    since: Option<(Instant, Instant)>,
}

impl Inbox {
    pub(crate) fn add(&self, path: String) {
        let mut news = self.open();
        if news.paths.len() >= MOST_PATHS {
            news.everywhere = true;
            news.paths.clear();
        }
        if !news.everywhere {
            news.paths.insert(path);
        }
        self.ring(news);
    }

    pub(crate) fn add_everywhere(&self) {
        let mut news = self.open();
        news.everywhere = true;
        news.paths.clear();
        self.ring(news);
    }

    pub(crate) fn stop(&self) {
        let mut news = self.open();
        news.stop = true;
        self.ring(news);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.open().stop
    }

    /// Waits for news that have become quiet, or for `until`.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Wake {
        let mut news = self.open();
        loop {
            let now = Instant::now();
            if news.stop {
                return Wake::Stop;
            }
            let due = news.since.map(|(first, last)| (last + QUIET).min(first + LATEST));
            if due.is_some_and(|due| due <= now) {
                return news.take();
            }
            if until.is_some_and(|until| until <= now) {
                return Wake::Time;
            }
            news = match due.into_iter().chain(until).min() {
                Some(next) => {
                    self.bell
                        .wait_timeout(news, next - now)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self.bell.wait(news).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// The news so far, quiet or not.
    pub(crate) fn peek(&self) -> Option<Wake> {
        let mut news = self.open();
        if news.stop {
            return Some(Wake::Stop);
        }
        news.since.is_some().then(|| news.take())
    }

    fn open(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, mut news: MutexGuard<'_, News>) {
        let now = Instant::now();
        news.since = Some((news.since.map_or(now, |(first, _)| first), now));
        self.bell.notify_all();
    }
}

impl News {
    fn take(&mut self) -> Wake {
        self.since = None;
        if std::mem::take(&mut self.everywhere) {
            return Wake::Everywhere;
        }
        Wake::Paths(std::mem::take(&mut self.paths).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn news_are_gathered_once_each_and_handed_on_when_quiet() {
        let inbox = Inbox::default();
        let start = Instant::now();
        for path in ["b", "a", "b"] {
            inbox.add(path.to_owned());
        }
        assert_eq!(inbox.wait(None), Wake::Paths(vec!["a".into(), "b".into()]));
        assert!(start.elapsed() >= QUIET);
        assert_eq!(inbox.wait(Some(Instant::now())), Wake::Time);
    }

    #[test]
    fn a_busy_folder_is_not_waited_for_for_ever() {
        let inbox = Arc::new(Inbox::default());
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let busy = {
            let (inbox, done) = (Arc::clone(&inbox), Arc::clone(&done));
            std::thread::spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    inbox.add("a".to_owned());
                    std::thread::yield_now();
                }
            })
        };
        let start = Instant::now();
        assert_eq!(inbox.wait(None), Wake::Paths(vec!["a".into()]));
        assert!(start.elapsed() < LATEST + Duration::from_secs(5));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        busy.join().unwrap();
    }

    #[test]
    fn too_many_paths_are_everywhere() {
        let inbox = Inbox::default();
        (0..MOST_PATHS).for_each(|n| inbox.add(n.to_string()));
        assert!(matches!(inbox.peek(), Some(Wake::Paths(paths)) if paths.len() == MOST_PATHS));
        (0..=MOST_PATHS).for_each(|n| inbox.add(n.to_string()));
        assert_eq!(inbox.peek(), Some(Wake::Everywhere));
        assert_eq!(inbox.peek(), None);
    }

    #[test]
    fn stop_comes_first_and_stays() {
        let inbox = Inbox::default();
        inbox.add("a".to_owned());
        inbox.stop();
        assert_eq!(inbox.wait(None), Wake::Stop);
        assert_eq!(inbox.wait(None), Wake::Stop);
        assert!(inbox.is_stopped());
    }
}
