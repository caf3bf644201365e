//! The scopes that callers need for the items of a source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::source::Source;

/// The scopes that a caller needs to see and use the items of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// For everything of the source.
    pub scopes: Vec<Box<str>>,
    /// Further scopes for single tools, by their listed names.
    pub tools: BTreeMap<String, Vec<Box<str>>>,
}

/// A source to add, and the scopes that its callers need.
pub struct AddedSource {
    /// The source.
    pub source: Arc<dyn Source>,
    /// The scopes that its callers need.
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
    /// The scopes for everything of the source.
    pub(crate) fn of_source(&self) -> Needs {
        needs(&self.scopes)
    }

    /// The scopes for a tool.
    pub(crate) fn of_tool(&self, name: &str) -> Needs {
        needs(self.scopes.iter().chain(self.tools.get(name).into_iter().flatten()))
    }
}

fn needs<'s>(scopes: impl IntoIterator<Item = &'s Box<str>>) -> Needs {
    let scopes: BTreeSet<_> = scopes.into_iter().cloned().collect();
    scopes.into_iter().collect()
}
