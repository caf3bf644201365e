//! The life of the thread behind a store: where the index lies, who writes it, and when it ends.
//!
//! A small folder is indexed in memory. The index of a large one lies in the cache; whoever holds
//! its claim writes it, and everybody else follows what is written until the claim is free.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::cache::{Claim, Place};
use crate::folder::{Folder, Scan};
use crate::inbox::{Inbox, Wake};
use crate::index::Index;
use crate::indexer::{COMPLETE, Indexer, Progress};
use crate::problem::Problem;
use crate::results::Change;
use crate::settings::Settings;
use crate::listing::Listing;
use crate::snapshot::{Shared, Snapshot, change_between};
use crate::watch::Lookout;

/// An index that another program writes is looked at this often.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// Everything that the thread works with.
pub(crate) struct Worker {
    pub(crate) settings: Settings,
    pub(crate) folder: Arc<Folder>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) progress: Arc<Progress>,
}

impl Worker {
    /// Serves the folder until it is told to stop.
    pub(crate) fn run(self) {
        let mut lookout = self.look_out();
        let mut scan = lookout.scan("");
        let mut problems: Vec<Problem> = Vec::new();
        let mut on_disk = None;
        if let Some(place) = self.place(&scan) {
            match place.claim() {
                Ok(Some(claim)) => on_disk = Some((place, claim)),
                Ok(None) => {
                    drop(lookout);
                    let Some(claim) = self.follow(&place) else { return };
                    on_disk = Some((place, claim));
                    lookout = self.look_out();
                    scan = lookout.scan("");
                }
                Err(error) => problems.push(cache_problem(&error)),
            }
        }
        let lookout = Arc::new(lookout);
        if let Some((place, claim)) = &on_disk {
            match self.serve_from_disk(place, claim, &lookout, &scan, &problems) {
                Ok(()) => return,
                Err(error) => {
                    problems.push(cache_problem(&error));
                    scan = lookout.scan("");
                }
            }
        }
        if let Err(error) = self.serve(Index::in_memory(), &lookout, scan, &problems) {
            tracing::error!(%error, "the articles cannot be indexed");
        }
    }

    /// Serves with the index on the disk; if that is broken, with a new one.
    fn serve_from_disk(
        &self,
        place: &Place,
        claim: &Claim,
        lookout: &Arc<Lookout>,
        scan: &Scan,
        problems: &[Problem],
    ) -> tantivy::Result<()> {
        let index = Index::on_disk(&place.index());
        self.serve(index, lookout, scan.clone(), problems).or_else(|error| {
            tracing::warn!(%error, "the index of the articles cannot be used and is built anew");
            place.clear(claim)?;
            self.serve(Index::on_disk(&place.index()), lookout, lookout.scan(""), problems)
        })
    }

    fn serve(
        &self,
        index: tantivy::Result<Index>,
        lookout: &Arc<Lookout>,
        scan: Scan,
        problems: &[Problem],
    ) -> tantivy::Result<()> {
        let index = index?;
        self.shared.on_disk.store(index.is_on_disk(), Ordering::Relaxed);
        let mut indexer = Indexer::new(
            Arc::clone(lookout),
            self.settings.statuses.clone(),
            Arc::clone(&self.shared),
            Arc::clone(&self.inbox),
            Arc::clone(&self.progress),
            index,
        )?;
        problems.iter().for_each(|problem| indexer.note(problem.clone()));
        self.shared.begin();
        indexer.start(scan)?;
        indexer.keep()
    }

    /// Where the index of this folder belongs on the disk; `None`: in memory.
    fn place(&self, scan: &Scan) -> Option<Place> {
        let bytes: u64 = scan.found.iter().map(|found| found.stamp.size).sum();
        let cache = self.settings.cache.as_ref().filter(|_| bytes > self.settings.small)?;
        Some(Place::new(cache, self.folder.path(), &self.settings.statuses))
    }

    fn look_out(&self) -> Lookout {
        if self.settings.watch {
            Lookout::watching(&self.folder, &self.inbox)
        } else {
            Lookout::looking(&self.folder)
        }
    }

    /// Serves what another program writes, until its claim is free (`Some`) or we must stop.
    fn follow(&self, place: &Place) -> Option<Claim> {
        self.shared.on_disk.store(true, Ordering::Relaxed);
        let mut index: Option<Index> = None;
        let mut seen = None;
        loop {
            if index.is_none() {
                // It may not have been made yet.
                index = Index::of_another(&place.index()).ok();
            }
            if let Some(index) = &index
                && let Err(error) = self.read_along(index, &mut seen)
            {
                tracing::warn!(%error, "the index of another program could not be read");
            }
            if let Ok(Some(claim)) = place.claim() {
                return Some(claim);
            }
            if self.inbox.wait(Some(Instant::now() + FOLLOW_EVERY)) == Wake::Stop {
                return None;
            }
        }
    }

    /// Publishes the last commit of another program, if it is new.
    fn read_along(&self, index: &Index, seen: &mut Option<u64>) -> tantivy::Result<()> {
        let (commit, said) = index.last_commit()?;
        if *seen == Some(commit) {
            return Ok(());
        }
        let view = index.reload()?;
        let loaded = index.load(&view)?;
        let listing = Arc::new(Listing::new(loaded.entries));
        let old = self.shared.snapshot();
        let change = match *seen {
            None => Change { many: true, ..Change::default() },
            Some(_) => change_between(&old.listing, &listing, None),
        };
        let mut problems: Vec<Problem> =
            loaded.problems.into_iter().chain(listing.shadowed().iter().cloned()).collect();
        problems.sort_unstable();
        self.shared.publish(Snapshot { listing, view: Some(view), problems }, Change::default());
        *seen = Some(commit);
        let said = said.unwrap_or_default();
        match said.split_once(' ').map(|(done, total)| (done.parse(), total.parse())) {
            Some((Ok(done), Ok(total))) => {
                self.shared.expect(total, done);
                self.shared.tell(change);
            }
            _ if said == COMPLETE => self.shared.finish(change),
            _ => {}
        }
        Ok(())
    }
}

fn cache_problem(error: &dyn std::error::Error) -> Problem {
    Problem::of(
        "",
        format!("the index is kept in memory, because the cache cannot be used: {error}"),
    )
}
