//! Looking at the folder, and after it.
//!
//! Where the system watches folders one by one (inotify), each is watched just before it is listed:
//! nothing happens unseen in between, whatever is made, moved or removed, and nothing hidden is
//! watched. Where it watches whole trees, it is asked once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{
    Config, ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher as _, WatcherKind,
};

use crate::folder::{Folder, Scan};
use crate::inbox::Inbox;
use crate::problem::Problem;

/// A folder that cannot be watched is looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Who looks at a folder. What has been looked at is watched from then on, if that is wanted.
pub(crate) struct Lookout {
    folder: Arc<Folder>,
    watcher: Option<Mutex<RecommendedWatcher>>,
    /// Why not everything can be watched.
    failure: OnceLock<String>,
}

impl Lookout {
    /// One that tells `inbox` of what happens, until it is dropped.
    pub(crate) fn watching(folder: &Arc<Folder>, inbox: &Arc<Inbox>) -> Self {
        let mut lookout = Self::looking(folder);
        match watcher(folder, inbox) {
            Ok(watcher) => lookout.watcher = Some(Mutex::new(watcher)),
            Err(error) => lookout.fail(&error),
        }
        lookout
    }

    /// One that looks when it is asked to.
    pub(crate) fn looking(folder: &Arc<Folder>) -> Self {
        Self { folder: Arc::clone(folder), watcher: None, failure: OnceLock::new() }
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Everything at or below `under`; see [`Folder::scan`].
    pub(crate) fn scan(&self, under: &str) -> Scan {
        self.folder.scan(under, &|folder| self.watch(folder))
    }

    /// How often everything must be looked at, because not everything is watched.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.failure.get().map(|_| LOOK_EVERY)
    }

    /// What its keeper should know.
    pub(crate) fn problem(&self) -> Option<Problem> {
        self.failure.get().map(|why| {
            let message = format!(
                "the folder cannot be watched, so it is looked at every {LOOK_EVERY:?}: {why}"
            );
            Problem::of("", message)
        })
    }

    /// Watches one folder, relative to ours. Again is not too often: it may have been another then.
    fn watch(&self, folder: &str) {
        let Some(watcher) = self.watcher.as_ref().filter(|_| is_one_by_one()) else { return };
        let path = self.folder.path().join(folder);
        let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        match watcher.watch(&path, RecursiveMode::NonRecursive) {
            Err(error) if !is_gone(&error) => self.fail(&error),
            _ => {}
        }
    }

    fn fail(&self, error: &notify::Error) {
        self.failure.get_or_init(|| error.to_string());
    }
}

fn is_one_by_one() -> bool {
    RecommendedWatcher::kind() == WatcherKind::Inotify
}

/// A folder that went away meanwhile needs no watching; above it, that is news.
fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn watcher(folder: &Arc<Folder>, inbox: &Arc<Inbox>) -> notify::Result<RecommendedWatcher> {
    let root = folder.path().to_owned();
    let (folder, inbox) = (Arc::clone(folder), Arc::clone(inbox));
    // Links are followed by us, or not at all.
    let config = Config::default().with_follow_symlinks(false);
    let mut watcher = RecommendedWatcher::new(move |event| tell(&folder, &inbox, event), config)?;
    if !is_one_by_one() {
        watcher.watch(&root, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}

fn tell(folder: &Folder, inbox: &Inbox, event: notify::Result<Event>) {
    match event {
        Ok(event) if event.need_rescan() => inbox.add_everywhere(),
        Ok(event) if matters(event.kind) => {
            let relative = |path: &PathBuf| folder.relative(path);
            event.paths.iter().filter_map(relative).for_each(|path| inbox.add(path));
        }
        Ok(_) => {}
        Err(_) => inbox.add_everywhere(),
    }
}

/// Reading is nothing; our own reading least of all.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::time::Instant;

    use super::*;
    use crate::inbox::Wake;

    #[test]
    fn reading_is_no_news() {
        assert!(!matters(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!matters(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(matters(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(matters(EventKind::Create(notify::event::CreateKind::File)));
    }

    struct Watched {
        home: tempfile::TempDir,
        inbox: Arc<Inbox>,
        lookout: Lookout,
    }

    impl Watched {
        fn new(folders: &[&str]) -> Self {
            let home = tempfile::TempDir::new().unwrap();
            folders.iter().for_each(|path| fs::create_dir_all(home.path().join(path)).unwrap());
            let folder = Arc::new(Folder::open(home.path()).unwrap());
            let inbox = Arc::new(Inbox::default());
            let lookout = Lookout::watching(&folder, &inbox);
            lookout.scan("");
            Self { home, inbox, lookout }
        }

        fn write(&self, path: &str) {
            fs::write(self.home.path().join(path), "x").unwrap();
        }

        /// All that is told until each of `wanted` was.
        fn told(&self, wanted: &[&str]) -> Vec<String> {
            let deadline = Instant::now() + Duration::from_secs(20);
            let mut told = BTreeSet::new();
            while !wanted.iter().all(|path| told.contains(*path)) {
                match self.inbox.wait(Some(deadline)) {
                    Wake::Paths(paths) => told.extend(paths),
                    other => panic!("{other:?} after {told:?}"),
                }
            }
            told.into_iter().collect()
        }
    }

    #[test]
    fn the_folder_is_watched_and_its_hidden_files_are_not() {
        let watched = Watched::new(&["deep/er", ".hidden"]);
        watched.write(".hidden.md");
        watched.write(".hidden/a.md");
        watched.write("deep/er/b.md");
        watched.write("a.md");
        assert_eq!(watched.told(&["a.md", "deep/er/b.md"]), ["a.md", "deep/er/b.md"]);
        assert_eq!((watched.lookout.every(), watched.lookout.problem()), (None, None));
    }

    #[test]
    fn a_new_folder_is_watched_when_it_has_been_looked_at() {
        let watched = Watched::new(&[]);
        fs::create_dir_all(watched.home.path().join("new/deep")).unwrap();
        assert_eq!(watched.told(&["new"])[0], "new");
        watched.lookout.scan("new");
        watched.write("new/deep/a.md");
        assert!(watched.told(&["new/deep/a.md"]).contains(&"new/deep/a.md".to_owned()));
    }

    #[test]
    fn what_is_gone_needs_no_watching() {
        let watched = Watched::new(&[]);
        watched.lookout.watch("gone");
        assert_eq!((watched.lookout.every(), watched.lookout.problem()), (None, None));
    }

    #[test]
    fn what_cannot_be_watched_is_looked_at_and_told() {
        let watched = Watched::new(&[]);
        watched.lookout.fail(&notify::Error::new(ErrorKind::MaxFilesWatch));
        assert_eq!(watched.lookout.every(), Some(LOOK_EVERY));
        let problem = watched.lookout.problem().unwrap().to_string();
        assert!(problem.contains("cannot be watched, so it is looked at every 2s"), "{problem}");
    }
}
