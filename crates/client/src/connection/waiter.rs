//! The holder of a call, and its notices.

use sabir_wire::Raw;
use sabir_wire::types::{LogMessage, Progress, SubscriptionFilter};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::question::QuestionHandle;
use crate::error::CallError;
use crate::io::CallKey;

/// Events of one call that its holder has not taken. When full, progress and log messages are
/// dropped, and questions are refused. There is always room for the result.
pub(super) const MAX_CALL_EVENTS: usize = 64;

/// A notice for the holder of a call.
#[derive(Debug)]
pub(crate) enum Notice {
    Progress(Progress),
    Log(LogMessage),
    Question(QuestionHandle),
    Listening(SubscriptionFilter),
    Notification {
        method: String,
        params: Option<Raw>,
    },
    /// The last one.
    Done(Result<Raw, CallError>),
}

/// A call that was begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) key: CallKey,
    pub(crate) notices: mpsc::Receiver<Notice>,
}

/// The sender of notices to the holder of a call.
#[derive(Debug)]
pub(super) struct Waiter {
    /// The call on whose behalf it is made, by its number for the tap.
    origin: u64,
    /// It is more than a list.
    pub(super) is_work: bool,
    notices: mpsc::Sender<Notice>,
}

impl Waiter {
    /// For a call on behalf of the call `origin`.
    pub(super) fn new(origin: u64, is_work: bool) -> (Self, mpsc::Receiver<Notice>) {
        let (notices, noticed) = mpsc::channel(MAX_CALL_EVENTS + 1);
        (Self { origin, is_work, notices }, noticed)
    }

    pub(super) fn origin(&self) -> u64 {
        self.origin
    }

    /// Sends a notice, and returns it if the queue is full. The last place is kept for the result.
    pub(super) fn tell(&self, notice: Notice) -> Result<(), Notice> {
        match self.notices.capacity() {
            0 | 1 => Err(notice),
            _ => self.notices.try_send(notice).map_err(TrySendError::into_inner),
        }
    }

    pub(super) fn finish(self, result: Result<Raw, CallError>) {
        // The holder may have dropped the call.
        let _ = self.notices.try_send(Notice::Done(result));
    }
}
