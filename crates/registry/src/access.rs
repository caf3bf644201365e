//! The scopes that callers need for what a source offers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::source::Source;

/// The scopes that a caller needs to see and use what a source offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// For everything of the source.
    pub scopes: Vec<Box<str>>,
    /// Beside them for single tools, by the names under which they are listed.
    pub tools: BTreeMap<String, Vec<Box<str>>>,
}

/// A source to be added, and what its callers need.
pub struct AddedSource {
    /// The source.
    pub source: Arc<dyn Source>,
    /// What its callers need.
    pub access: Access,
}

impl From<Arc<dyn Source>> for AddedSource {
    fn from(source: Arc<dyn Source>) -> Self {
        Self { source, access: Access::default() }
    }
}

impl std::fmt::Debug for AddedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddedSource").field("access", &self.access).finish_non_exhaustive()
    }
}

/// The scopes that one item needs, in alphabetical order.
pub(crate) type Needs = Arc<[Box<str>]>;

impl Access {
    /// What everything of the source needs.
    pub(crate) fn of_source(&self) -> Needs {
        needs(&self.scopes)
    }

    /// What a tool needs.
    pub(crate) fn of_tool(&self, name: &str) -> Needs {
        needs(self.scopes.iter().chain(self.tools.get(name).into_iter().flatten()))
    }
}

fn needs<'s>(scopes: impl IntoIterator<Item = &'s Box<str>>) -> Needs {
    let scopes: BTreeSet<_> = scopes.into_iter().cloned().collect();
    scopes.into_iter().collect()
}
