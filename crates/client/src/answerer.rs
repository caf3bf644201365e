//! Who answers questions.

use std::future::Future;
use std::pin::Pin;

use sabir_wire::types::{LogMessage, Progress, Question};
use sabir_wire::{Code, ErrorObject, Raw};

/// Answers the questions of servers, and receives the progress and log messages of calls.
pub trait Answerer: std::fmt::Debug + Send + Sync + 'static {
    /// Answers a question with the result that the protocol demands: that of `elicitation/create`,
    /// `sampling/createMessage` or `roots/list`. The future is dropped if the question is
    /// withdrawn.
    fn answer(&self, question: Question) -> Answering<'_>;

    /// A call reports progress.
    fn progress(&self, _progress: &Progress) {}

    /// A call sends a log message.
    fn log(&self, _message: &LogMessage) {}
}

/// The future of an answer.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Raw, ErrorObject>> + Send + 'a>>;

/// Refuses every question.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAnswers;

impl Answerer for NoAnswers {
    fn answer(&self, _question: Question) -> Answering<'_> {
        Box::pin(async {
            Err(ErrorObject::new(Code::METHOD_NOT_FOUND, "no questions are answered"))
        })
    }
}
