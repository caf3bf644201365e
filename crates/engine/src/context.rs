//! The context of a method, and its answer.

use std::sync::Arc;

use sabir_registry::{Catalog, Conversation};
use sabir_session::{Outcome, RequestMeta};
use sabir_wire::Extra;

use crate::calls::RunningCall;
use crate::engine::Engine;
use crate::guard::Running;
use crate::observe::TransportKind;

/// The answer to a request, complete or under way.
pub(crate) enum Answering {
    /// It needed no source.
    Done(Outcome),
    /// A source works on it.
    Running(Running),
}

/// Everything that a method needs besides its params.
#[derive(Clone, Debug)]
pub(crate) struct MethodContext {
    pub(crate) engine: Arc<Engine>,
    /// The catalog that the caller may see, as of the start of the call.
    pub(crate) catalog: Arc<Catalog>,
    /// The whole catalog, of which `catalog` is a view.
    pub(crate) whole: Arc<Catalog>,
    pub(crate) from: RequestMeta,
    /// The unknown members of the params.
    pub(crate) extra: Extra,
    /// The session of the legacy era that the call belongs to.
    pub(crate) conversation: Option<Arc<Conversation>>,
    pub(crate) transport: TransportKind,
    pub(crate) call: Arc<RunningCall>,
}

impl Answering {
    /// Waits for the outcome.
    pub(crate) async fn outcome(self) -> Outcome {
        match self {
            Self::Done(outcome) => outcome,
            Self::Running(running) => running.await,
        }
    }
}

impl MethodContext {
    /// The number of the conversation.
    pub(crate) fn conversation_number(&self) -> Option<u64> {
        self.conversation.as_ref().map(|conversation| conversation.number)
    }
}

impl<T: Into<Outcome>> From<T> for Answering {
    fn from(outcome: T) -> Self {
        Self::Done(outcome.into())
    }
}
