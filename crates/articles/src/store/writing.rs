//! Changes of articles. The caller decides whether they are allowed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Store;
use crate::edit::{Edit, WriteError, Written, etag, path_of};
use crate::events::Changes;
use crate::listing::{Entry, Resolved, id_of};
use crate::results::StoreError;

/// How long to wait until a change is served. It is already made by then.
const SERVED_WITHIN: Duration = Duration::from_secs(10);

/// How often to check whether a change is served.
const LOOK: Duration = Duration::from_millis(10);

impl Store {
    /// Writes an article: a new one, or new content for the one with this `etag`. Waits until it is
    /// served.
    pub fn write(
        &self,
        name: &str,
        content: &str,
        etag: Option<&str>,
    ) -> Result<Written, WriteError> {
        if etag.is_some() {
            return self.edit(name, &Edit::Replace(content), etag);
        }
        let path = path_of(name, "md")?;
        if self.shared.snapshot().listing.article(id_of(&path)).is_some() {
            return Err(WriteError::Exists(id_of(&path).to_owned()));
        }
        let hash = self.folder.load().create(&path, content)?;
        Ok(self.served(hash, vec![path]))
    }

    /// Adds lines to the end of an article. Waits until they are served.
    pub fn append(
        &self,
        name: &str,
        content: &str,
        etag: Option<&str>,
    ) -> Result<Written, WriteError> {
        self.edit(name, &Edit::Append(content), etag)
    }

    /// Moves an article. Waits until it is served at its new place.
    pub fn rename(&self, name: &str, to: &str, etag: Option<&str>) -> Result<Written, WriteError> {
        let entry = self.existing(name)?;
        let extension = entry.path.rsplit_once('.').map_or("md", |(_, extension)| extension);
        path_of(&entry.path, extension)?;
        let to = path_of(to, extension)?;
        let taken = self.shared.snapshot().listing.article(id_of(&to)).cloned();
        if taken.is_some_and(|other| other.path != entry.path) {
            return Err(WriteError::Taken(id_of(&to).to_owned()));
        }
        let hash = self.folder.load().rename(&entry.path, &to, etag)?;
        Ok(self.served(hash, vec![to, entry.path.to_string()]))
    }

    fn edit(
        &self,
        name: &str,
        edit: &Edit<'_>,
        expected: Option<&str>,
    ) -> Result<Written, WriteError> {
        let entry = self.existing(name)?;
        path_of(&entry.path, "md")?;
        let (hash, changed) = self.folder.load().edit(&entry.path, edit, expected)?;
        if !changed {
            let id = entry.id().to_owned();
            return Ok(Written { id, etag: etag(hash), files: Vec::new() });
        }
        Ok(self.served(hash, vec![entry.path.to_string()]))
    }

    /// The file of an article.
    fn existing(&self, name: &str) -> Result<Arc<Entry>, WriteError> {
        let snapshot = self.shared.snapshot();
        match snapshot.listing.resolve(name.trim(), self.site.as_deref()).0 {
            Resolved::One(entry) => Ok(Arc::clone(entry)),
            Resolved::Many(choices) => {
                let choices = choices.into_iter().map(str::to_owned).collect();
                Err(StoreError::Ambiguous { asked: name.to_owned(), choices }.into())
            }
            Resolved::Nothing => Err(self.unknown(name).into()),
        }
    }

    /// Waits until the first of these files is served with this content.
    fn served(&self, hash: u64, files: Vec<String>) -> Written {
        self.events.send(Changes::Paths(files.iter().cloned().collect::<BTreeSet<_>>()));
        let until = Instant::now() + SERVED_WITHIN;
        let is_served = || {
            let snapshot = self.shared.snapshot();
            let current = snapshot.listing.file(&files[0]).is_some_and(|file| file.hash == hash);
            current && files[1..].iter().all(|old| snapshot.listing.file(old).is_none())
        };
        while !is_served() && Instant::now() < until && !self.events.is_stopped() {
            std::thread::sleep(LOOK);
        }
        Written { id: id_of(&files[0]).to_owned(), etag: etag(hash), files }
    }
}
