//! What a method works with, and what it gives.

use std::sync::Arc;

use sabir_registry::{Catalog, Line};
use sabir_session::{Outcome, RequestMeta};

use crate::engine::Engine;
use crate::guard::Running;

/// Work, done or under way.
pub(crate) enum Work {
    /// It needed nobody.
    Done(Outcome),
    /// A source is at it.
    Running(Running),
}

/// What a method needs to know beside its params.
pub(crate) struct MethodContext {
    pub(crate) engine: Arc<Engine>,
    /// The call keeps this catalog, whatever changes meanwhile.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) from: RequestMeta,
    /// Who is known to ask, where somebody has checked.
    pub(crate) caller: Option<Arc<str>>,
    pub(crate) line: Arc<dyn Line>,
}

impl<T: Into<Outcome>> From<T> for Work {
    fn from(outcome: T) -> Self {
        Self::Done(outcome.into())
    }
}
