//! The context that the parts of the worker thread share.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::events::EventSender;
use crate::folder::Folder;
use crate::results::Indexing;
use crate::settings::Settings;
use crate::snapshot::Shared;

/// The settings, the folder, and the connection to the store.
pub(crate) struct Context {
    pub(crate) settings: Settings,
    /// Replaced when another folder appears at its path.
    pub(crate) folder: Arc<ArcSwap<Folder>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: EventSender,
    pub(crate) progress: Box<dyn Fn(Indexing) + Send + Sync>,
}

impl Context {
    /// Reports how much of the folder has been indexed, if it is still being indexed.
    pub(crate) fn report_progress(&self) {
        if let Some(indexing) = self.shared.indexing() {
            (self.progress)(indexing);
        }
    }
}
