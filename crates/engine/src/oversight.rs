//! Oversight: who may call how often is decided before a call, and what came of it is told after it.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sabir_wire::{Caller, Method, Raw};

/// Decides which requests run, and learns what came of them.
pub trait Oversee: Debug + Send + Sync {
    /// Whether a request may run.
    fn admit(&self, call: &OverseenCall) -> Admission;

    /// A request has ended.
    fn ended(&self, call: &OverseenCall, end: &CallEnd);
}

/// Whether a request may run.
pub enum Admission {
    /// It is decided.
    Decided(Result<(), Limited>),
    /// Somebody else is asked.
    Asked(Pin<Box<dyn Future<Output = Result<(), Limited>> + Send>>),
}

/// A request under oversight.
#[derive(Clone, Debug)]
pub struct OverseenCall {
    /// Who makes it.
    pub caller: Caller,
    /// Its method.
    pub method: Method,
    /// The tool, the prompt or the resource, if it names one.
    pub name: Option<Box<str>>,
    /// The name of the source that provides it, if there is one.
    pub source: Option<Arc<str>>,
    /// The arguments of a tool, as the client wrote them.
    pub arguments: Option<Raw>,
}

/// A request that may not run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The rule that it exceeds, for people.
    pub rule: Box<str>,
    /// When it may run.
    pub retry_after: Duration,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// Whether it was let through.
    pub decision: Decision,
    /// What came of it, in a few words.
    pub outcome: Box<str>,
    /// How long it took.
    pub duration: Duration,
    /// About how long its result is, in bytes.
    pub bytes: usize,
}

/// Whether a request was let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It ran.
    Allowed,
    /// Its caller lacks one of these scopes.
    Denied(Vec<Box<str>>),
    /// It exceeded a limit.
    Limited(Box<str>),
}
