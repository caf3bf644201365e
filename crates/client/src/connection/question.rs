//! A question that waits for its answer.

use std::sync::Weak;

use sabir_wire::types::Question;
use sabir_wire::{ErrorObject, Id, Raw};
use tokio::sync::watch;

use super::Connection;
use crate::io::{CallKey, Input};

/// A question that waits for its answer. Dropping it refuses the question.
#[derive(Debug)]
pub(crate) struct QuestionHandle {
    pub(super) asked: Option<Box<Question>>,
    pub(super) id: Id,
    pub(crate) calls: Vec<CallKey>,
    pub(super) withdrawn: watch::Receiver<bool>,
    pub(super) connection: Weak<Connection>,
}

impl QuestionHandle {
    pub(crate) fn question(&self) -> &Question {
        self.asked.as_deref().unwrap_or(&Question::Roots { params: None })
    }

    pub(crate) async fn withdrawn(&mut self) {
        // The sender is dropped when the question is answered or the link ends.
        let _ = self.withdrawn.wait_for(|withdrawn| *withdrawn).await;
    }

    pub(crate) fn answer(&mut self, answer: Result<Raw, ErrorObject>) {
        if self.asked.take().is_none() {
            return;
        }
        if let Some(connection) = self.connection.upgrade() {
            connection.lock().questions.remove(&self.id);
            connection.handle(Input::Answer { question: self.id.clone(), answer });
        }
    }
}

impl Drop for QuestionHandle {
    fn drop(&mut self) {
        let code = sabir_wire::Code::INTERNAL;
        self.answer(Err(ErrorObject::new(code, "the question was not answered")));
    }
}
