//! The place where credentials are kept, and a token that could not be written there yet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::keep::{Keep, Kept, Locked};
use super::tokens::Tokens;

/// How often the writing of a renewed token is tried while the lock is held, with a pause between.
const TRIES: usize = 4;
const PAUSE: Duration = Duration::from_millis(600);

/// The interval of further attempts.
const AGAIN: Duration = Duration::from_secs(2);

/// A place for credentials. The server may have invalidated the old refresh token when it issued a
/// new one, so a token that cannot be written is kept in memory, and is written later.
#[derive(Debug)]
pub(super) struct Keeper {
    place: Arc<dyn Keep>,
    /// The access token in that place, and the tokens that replace it.
    unsaved: Mutex<Option<(String, Tokens)>>,
}

impl Keeper {
    pub(super) fn new(place: Arc<dyn Keep>) -> Arc<Self> {
        Arc::new(Self { place, unsaved: Mutex::default() })
    }

    pub(super) async fn lock(&self) -> Result<Locked, String> {
        self.place.lock().await
    }

    /// Loads the credentials, with the tokens that could not be written.
    pub(super) async fn load(&self) -> Result<Kept, String> {
        let mut kept = self.place.load().await?;
        if let (Some(tokens), Some((replaced, next))) = (&mut kept.tokens, &*self.unsaved())
            && tokens.access == *replaced
        {
            tokens.clone_from(next);
        }
        Ok(kept)
    }

    /// Replaces the credentials, which were loaded while the lock was held.
    pub(super) async fn save(&self, kept: &Kept) -> Result<(), String> {
        self.place.save(kept).await?;
        *self.unsaved() = None;
        Ok(())
    }

    /// The same for `next`, which replaces `old`. If it cannot be written now, it is written later.
    pub(super) async fn save_renewed(self: &Arc<Self>, kept: &Kept, old: &Tokens, next: &Tokens) {
        for _ in 0..TRIES {
            match self.save(kept).await {
                Ok(()) => return,
                Err(error) => tracing::warn!("a renewed token was not stored: {error}"),
            }
            tokio::time::sleep(PAUSE).await;
        }
        let unsaved = &mut *self.unsaved();
        if let Some((_, waiting)) = unsaved {
            waiting.clone_from(next);
            return;
        }
        *unsaved = Some((old.access.clone(), next.clone()));
        let keeper = self.clone();
        tokio::spawn(async move {
            while keeper.unsaved().is_some() {
                tokio::time::sleep(AGAIN).await;
                if let Err(error) = keeper.save_again().await {
                    tracing::debug!("a renewed token was not stored: {error}");
                }
            }
        });
    }

    async fn save_again(&self) -> Result<(), String> {
        let _locked = self.lock().await?;
        let kept = self.load().await?;
        self.save(&kept).await
    }

    fn unsaved(&self) -> MutexGuard<'_, Option<(String, Tokens)>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
