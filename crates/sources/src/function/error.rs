//! Why a function gives no result.

use std::error::Error as StdError;

use sabir_registry::{Answer, Ask, Outcome};
use sabir_wire::{ErrorObject, Problem};

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a handler gives no result: it failed, or it must ask the client first.
///
/// Any error becomes one with `?`, `anyhow::Error` and `&str` included; so it does not implement
/// [`std::error::Error`] itself. The model reads the message of the error, without its causes, and
/// may correct itself; the log gets the causes too.
///
/// ```
/// use sabir_sources::function::Error;
///
/// async fn double(number: String) -> Result<String, Error> {
///     let number: i64 = number.parse()?;            // the model reads why it is not a number
///     let double = number.checked_mul(2).ok_or("the number is too large")?;
///     std::fs::read("/etc/secret").map_err(Error::internal)?; // only the log says why
///     if double == 0 {
///         return Err(Error::failed("zero cannot be doubled"));
///     }
///     Ok(double.to_string())
/// }
/// ```
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Failed(String),
    Caused { error: BoxError, is_internal: bool },
    Problem(Problem),
    Ask(Ask),
}

/// How functions behave, the same for all functions of a server.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FunctionOptions {
    /// Whether the messages of errors are hidden from clients, as by [`Error::internal`].
    pub mask_errors: bool,
}

/// A function, as its errors are reported.
#[derive(Debug)]
pub(crate) struct Function {
    /// `tool`, `prompt` or `resource`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) options: FunctionOptions,
}

impl Error {
    /// The handler failed for a reason that is written for the model, which may try something else.
    /// It is shown even if the server masks errors.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self(Kind::Failed(reason.into()))
    }

    /// The handler failed for a reason that only the log shows: the model reads "the tool failed".
    pub fn internal(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(Kind::Caused { error: error.into(), is_internal: true })
    }

    /// The request itself is at fault: the client gets a JSON-RPC error with this code.
    pub fn protocol(code: i64, message: impl Into<String>) -> Self {
        Self::problem(Problem::Chosen(ErrorObject::new(code, message.into())))
    }

    /// The URI names no resource.
    pub fn no_such_resource(uri: impl Into<Box<str>>) -> Self {
        Self::problem(Problem::UnknownResource(uri.into()))
    }

    pub(crate) fn ask(ask: Ask) -> Self {
        Self(Kind::Ask(ask))
    }

    pub(crate) fn problem(problem: Problem) -> Self {
        Self(Kind::Problem(problem))
    }

    /// The answer of the source that offers `function`.
    pub(crate) fn into_answer<T>(self, function: &Function) -> Answer<T> {
        let Function { kind, name, options } = function;
        let reason = match self.0 {
            Kind::Ask(ask) => return Ok(Outcome::NeedInput(ask)),
            Kind::Problem(problem) => return Err(problem),
            Kind::Failed(reason) => reason,
            Kind::Caused { error, is_internal } => {
                tracing::warn!("{kind} `{name}` failed: {}", with_causes(&*error));
                let is_hidden = is_internal || options.mask_errors;
                if is_hidden { format!("the {kind} failed") } else { error.to_string() }
            }
        };
        // Only tools are called by models, who read why they failed.
        let is_tool = *kind == "tool";
        Err(if is_tool {
            Problem::ToolFailed(reason.into())
        } else {
            Problem::Internal(reason.into())
        })
    }
}

/// The message of an error, then those of its causes.
fn with_causes(error: &dyn StdError) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl<E: Into<BoxError>> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Kind::Caused { error: error.into(), is_internal: false })
    }
}

/// The text that the model would read.
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Failed(reason) => f.write_str(reason),
            Kind::Caused { error, .. } => error.fmt(f),
            Kind::Problem(problem) => f.write_str(&problem.to_error().message),
            Kind::Ask(ask) => write!(f, "{} questions are not answered yet", ask.questions.len()),
        }
    }
}
