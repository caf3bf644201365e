//! Completion of arguments. Spec: server/utilities/completion.

use serde::Deserialize;

/// What an argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type")]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: Box<str>,
    },
    /// A resource template, or a resource.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its URI or template.
        uri: Box<str>,
    },
}

/// What could stand there, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// All that fit; a client gets the first hundred.
    pub values: Vec<String>,
    /// How many fit, if more than `values` holds.
    pub total: Option<usize>,
}

impl Completion {
    /// How many values one answer may carry.
    pub const MAX: usize = 100;
}

impl<T: Into<String>> FromIterator<T> for Completion {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), total: None }
    }
}
