//! The start of a server.

use std::sync::Arc;

use sabir_registry::{SourceState, SourceStatus};

use crate::engine::Engine;
use crate::methods::continued;

impl Engine {
    /// Starts all sources that were added and not started, and waits until each is ready or has
    /// failed. Serving does not depend on it: offers are listed before. Tasks that the previous
    /// process has left are resumed.
    pub async fn start(self: &Arc<Self>) -> Vec<SourceStatus> {
        self.tasks.sweep();
        if let Some(peers) = &self.settings.peers {
            tokio::spawn(self.outbox.clone().run(peers.clone(), self.stopping()));
        }
        continued::resume(self);
        // As tasks, so that they go on if the caller does not wait.
        let tasks: Vec<_> = self.registry.start().into_iter().map(tokio::spawn).collect();
        for task in tasks {
            // A panic in a start has been reported by the runtime.
            let _ = task.await;
        }
        let status = self.registry.status();
        for source in &status {
            let mut failure = None;
            if let SourceState::Failed(reason) = &source.state {
                tracing::error!(source = source.name, "not started: {reason}");
                failure = Some(reason.to_string());
            }
            // The reason may be among the problems, too.
            for problem in
                source.problems.iter().filter(|problem| failure.as_ref() != Some(problem))
            {
                tracing::warn!(source = source.name, "{problem}");
            }
        }
        status
    }
}
