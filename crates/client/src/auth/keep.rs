//! Where credentials are kept.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::identity::Registration;
use super::tokens::Tokens;

/// The credentials of one user at one server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Our registrations, by issuer. Each is only used at its own issuer.
    #[serde(default)]
    pub(crate) registrations: BTreeMap<String, Registration>,
    /// The issuer of the registration that an operator made.
    #[serde(default)]
    pub(crate) registered_at: Option<String>,
    /// The token, if there is one.
    #[serde(default)]
    pub tokens: Option<Tokens>,
    /// Scopes that the server demanded and the token lacks. The next login requests them.
    #[serde(default)]
    pub(crate) wanted: Vec<String>,
}

impl Kept {
    /// Removes a registration that the authorization server has forgotten: the next login registers
    /// again.
    pub(crate) fn remove_registration(&mut self, issuer: &str, client: &Registration) {
        if self.registrations.get(issuer).is_some_and(|known| known.client_id == client.client_id) {
            self.registrations.remove(issuer);
        }
    }
}

/// A place for the credentials of one user at one server. Several processes may share it.
pub trait Keep: fmt::Debug + Send + Sync + 'static {
    /// Waits for the exclusive right to change the credentials, until the guard is dropped.
    fn lock(&self) -> Keeping<'_, Locked>;

    /// Loads the credentials.
    fn load(&self) -> Keeping<'_, Kept>;

    /// Replaces the credentials atomically.
    fn save<'a>(&'a self, kept: &'a Kept) -> Keeping<'a, ()>;
}

/// The future of an operation on credentials. The error is for operators.
pub type Keeping<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Holds a lock until it is dropped.
pub struct Locked(#[allow(dead_code, reason = "it is only dropped")] Box<dyn Send>);

impl Locked {
    /// Wraps the value that holds the lock.
    pub fn new(guard: impl Send + 'static) -> Self {
        Self(Box::new(guard))
    }
}

/// Keeps credentials in memory, as long as the process runs.
#[derive(Debug, Default)]
pub struct InMemory {
    kept: Mutex<Kept>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Keep for InMemory {
    fn lock(&self) -> Keeping<'_, Locked> {
        let turn = self.turn.clone();
        Box::pin(async move { Ok(Locked::new(turn.lock_owned().await)) })
    }

    fn load(&self) -> Keeping<'_, Kept> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async { Ok(kept) })
    }

    fn save<'a>(&'a self, kept: &'a Kept) -> Keeping<'a, ()> {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = kept.clone();
        Box::pin(async { Ok(()) })
    }
}
