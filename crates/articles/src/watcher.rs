//! Watches the folder and reports its changes, debounced.
//!
//! The operating system reports every step of a save. The debouncer merges the events of a path and
//! reports them a moment later, so that a file is read once.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use notify_debouncer_full::notify::event::{AccessKind, AccessMode, EventKind};
use notify_debouncer_full::notify::{self, Config, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, NoCache, new_debouncer_opt};

use crate::events::{Changes, EventSender};
use crate::folder::Folder;
use crate::problem::Problem;

/// How long an event is held back to be merged with later ones, and how often that is checked.
const DEBOUNCE: Duration = Duration::from_millis(100);
const DEBOUNCE_CHECK: Duration = Duration::from_millis(50);

/// How often the folder is scanned if it cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Watches a folder until it is dropped.
pub(crate) struct Watcher {
    _debouncer: Option<Debouncer<RecommendedWatcher, NoCache>>,
    /// Why the folder, or a part of it, is not watched.
    failure: Arc<OnceLock<String>>,
}

impl Watcher {
    /// Starts to watch a folder and all folders in it.
    pub(crate) fn start(folder: &Arc<Folder>, events: &EventSender) -> Self {
        let failure = Arc::new(OnceLock::new());
        let debouncer = start(folder, events, &failure);
        if let Err(error) = &debouncer {
            fail(&failure, error);
        }
        Self { _debouncer: debouncer.ok(), failure }
    }

    /// Watches nothing.
    pub(crate) fn none() -> Self {
        Self { _debouncer: None, failure: Arc::default() }
    }

    /// How often the folder must be scanned because it is not watched completely.
    pub(crate) fn poll_interval(&self) -> Option<Duration> {
        self.failure.get().map(|_| POLL_INTERVAL)
    }

    pub(crate) fn problem(&self) -> Option<Problem> {
        self.failure.get().map(|reason| {
            let message =
                format!("cannot watch the folder, scanning it every {POLL_INTERVAL:?}: {reason}");
            Problem::of("", message)
        })
    }
}

fn start(
    folder: &Arc<Folder>,
    events: &EventSender,
    failure: &Arc<OnceLock<String>>,
) -> notify::Result<Debouncer<RecommendedWatcher, NoCache>> {
    let handler = {
        let (folder, events, failure) = (Arc::clone(folder), events.clone(), Arc::clone(failure));
        move |result| handle(&folder, &events, &failure, result)
    };
    // Symbolic links are followed by `folder`, or not at all.
    let config = Config::default().with_follow_symlinks(false);
    let mut debouncer =
        new_debouncer_opt(DEBOUNCE, Some(DEBOUNCE_CHECK), handler, NoCache::new(), config)?;
    debouncer.watch(folder.path(), RecursiveMode::Recursive)?;
    Ok(debouncer)
}

fn handle(
    folder: &Folder,
    events: &EventSender,
    failure: &OnceLock<String>,
    result: DebounceEventResult,
) {
    let changes = match result {
        // For example, the limit of watched folders was reached.
        Err(errors) => {
            errors.iter().for_each(|error| fail(failure, error));
            Changes::Everything
        }
        Ok(all) if all.iter().any(|event| event.need_rescan()) => Changes::Everything,
        Ok(all) => {
            let changed = all.iter().filter(|event| is_change(event.kind));
            let paths: BTreeSet<String> = changed
                .flat_map(|event| &event.paths)
                .filter_map(|path| folder.relative(path))
                .collect();
            if paths.is_empty() {
                return;
            }
            Changes::Paths(paths)
        }
    };
    events.send(changes);
}

/// Reading a file is not a change; we read the files ourselves.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

fn fail(failure: &OnceLock<String>, error: &notify::Error) {
    failure.get_or_init(|| error.to_string());
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::*;
    use crate::events::{Event, Events, channel};
    use crate::ignored::Rules;

    #[test]
    fn reading_is_not_a_change() {
        assert!(!is_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!is_change(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(is_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(is_change(EventKind::Create(notify::event::CreateKind::File)));
    }

    struct Watched {
        home: tempfile::TempDir,
        events: Events,
        watcher: Watcher,
    }

    impl Watched {
        fn new(folders: &[&str]) -> Self {
            let home = tempfile::TempDir::new().unwrap();
            folders.iter().for_each(|path| fs::create_dir_all(home.path().join(path)).unwrap());
            let folder =
                Arc::new(Folder::open(home.path(), Rules::new(&[], &[]).unwrap()).unwrap());
            let (sender, events) = channel();
            let watcher = Watcher::start(&folder, &sender);
            Self { home, events, watcher }
        }

        fn write(&self, path: &str) {
            fs::write(self.home.path().join(path), "x").unwrap();
        }

        /// All paths that are reported until each of `wanted` was.
        fn reported(&self, wanted: &[&str]) -> Vec<String> {
            let deadline = Instant::now() + Duration::from_secs(20);
            let mut reported = BTreeSet::new();
            while !wanted.iter().all(|path| reported.contains(*path)) {
                match self.events.wait(Some(deadline)) {
                    Event::Changes(Changes::Paths(paths)) => reported.extend(paths),
                    other => panic!("{other:?} after {reported:?}"),
                }
            }
            reported.into_iter().collect()
        }
    }

    #[test]
    fn the_folder_is_watched_and_its_hidden_files_are_not() {
        let watched = Watched::new(&["deep/er", ".hidden"]);
        watched.write(".hidden.md");
        watched.write(".hidden/a.md");
        watched.write("deep/er/b.md");
        watched.write("a.md");
        assert_eq!(watched.reported(&["a.md", "deep/er/b.md"]), ["a.md", "deep/er/b.md"]);
        assert_eq!((watched.watcher.poll_interval(), watched.watcher.problem()), (None, None));
    }

    #[test]
    fn a_new_folder_is_watched() {
        let watched = Watched::new(&[]);
        fs::create_dir_all(watched.home.path().join("new/deep")).unwrap();
        assert_eq!(watched.reported(&["new"])[0], "new");
        watched.write("new/deep/a.md");
        assert!(watched.reported(&["new/deep/a.md"]).contains(&"new/deep/a.md".to_owned()));
    }

    #[test]
    fn a_folder_that_cannot_be_watched_is_polled_and_a_problem() {
        let watched = Watched::new(&[]);
        let (sender, events) = channel();
        let folder = Folder::open(watched.home.path(), Rules::new(&[], &[]).unwrap()).unwrap();
        let limit = notify::Error::new(notify::ErrorKind::MaxFilesWatch);
        handle(&folder, &sender, &watched.watcher.failure, Err(vec![limit]));
        assert_eq!(events.pending(), Some(Changes::Everything));
        assert_eq!(watched.watcher.poll_interval(), Some(POLL_INTERVAL));
        let problem = watched.watcher.problem().unwrap().to_string();
        assert!(problem.contains("cannot watch the folder, scanning it every 2s"), "{problem}");
    }
}
