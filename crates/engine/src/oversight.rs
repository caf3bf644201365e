//! Oversight: a call is admitted before it runs, and its end is reported.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sabir_wire::{Caller, Method, Raw};

/// Decides which requests run, and is notified of their ends.
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
    /// The decision is pending.
    Asked(Pin<Box<dyn Future<Output = Result<(), Limited>> + Send>>),
}

/// A request under oversight.
#[derive(Clone, Debug)]
pub struct OverseenCall {
    /// The caller.
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
    /// The time until it may run.
    pub retry_after: Duration,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// Whether it was admitted.
    pub decision: Decision,
    /// Its outcome, in a few words.
    pub outcome: Box<str>,
    /// How long it took.
    pub duration: Duration,
    /// The approximate size of its result in bytes.
    pub bytes: usize,
}

/// Whether a request was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It ran.
    Allowed,
    /// Its caller lacks one of these scopes.
    Denied(Vec<Box<str>>),
    /// It exceeded a limit.
    Limited(Box<str>),
}
