//! Newest shape to older shapes: the one place that knows how an older revision says it.
//!
//! Nothing is changed in memory. A value is *written* in a revision: what that revision cannot say
//! is left out, or said another way where something would be lost (a link becomes text, a sound
//! becomes an embedded resource). The newest revision is written by the same code.

mod content;
mod errors;
mod items;
mod notes;
mod questions;
mod results;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::raw::Raw;
use crate::revision::{Features, Revision};

pub use errors::{error, settle};
pub use notes::{acknowledged, cancelled, changed, ended, logged, progressed};
pub use questions::{Unsayable, question};
pub use results::{page, response};

/// A value, to be written as a revision can say it.
pub struct Lowered<'a, T: ?Sized> {
    value: &'a T,
    features: &'static Features,
}

impl<'a, T: ?Sized> Lowered<'a, T> {
    /// `value`, as `revision` says it.
    pub fn new(value: &'a T, revision: Revision) -> Self {
        Self { value, features: revision.features() }
    }

    fn part<U: ?Sized>(&self, value: &'a U) -> Lowered<'a, U> {
        Lowered { value, features: self.features }
    }

    fn parts<U>(&self, values: &'a [U]) -> Vec<Lowered<'a, U>> {
        values.iter().map(|value| self.part(value)).collect()
    }
}

/// Appends `value` to `out`.
fn append_json(out: &mut Vec<u8>, value: &impl Serialize) {
    // Our own types have string keys and finite shapes; writing them to memory does not fail.
    let _ = serde_json::to_writer(out, value);
}

/// A map that leaves out what is not there.
struct Object<M>(M);

fn object<S: Serializer>(serializer: S) -> Result<Object<S::SerializeMap>, S::Error> {
    serializer.serialize_map(None).map(Object)
}

impl<M: SerializeMap> Object<M> {
    fn set(&mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), M::Error> {
        self.0.serialize_entry(key, value)
    }

    fn may(
        &mut self,
        key: &str,
        value: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.set(key, value))
    }

    fn list<T: Serialize>(&mut self, key: &str, values: &[T]) -> Result<(), M::Error> {
        if values.is_empty() { Ok(()) } else { self.set(key, values) }
    }

    fn end(self) -> Result<M::Ok, M::Error> {
        self.0.end()
    }
}

/// Whether a schema describes an object: the only kind of output that older revisions know.
fn describes_object(schema: &Raw) -> bool {
    #[derive(serde::Deserialize)]
    struct Type {
        #[serde(default)]
        r#type: Option<serde_json::Value>,
    }
    schema
        .read()
        .is_ok_and(|Type { r#type }| r#type.as_ref().and_then(|t| t.as_str()) == Some("object"))
}

#[cfg(test)]
mod tests;
