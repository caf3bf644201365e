//! Types of tasks that other types use. The tasks themselves are in `task`.

use serde::{Deserialize, Serialize};

use crate::json::{Invalid, ReadJson, WriteJson, read_word, write_word};
use crate::raw::Raw;
use crate::revision::Features;

/// The name of the extension.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Whether calls of a tool can be tasks, in 2025-11-25.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// They cannot.
    Forbidden,
    /// They can.
    Optional,
    /// They must.
    Required,
}

impl ReadJson for TaskSupport {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        read_word(json, "`forbidden`, `optional` or `required`")
    }
}

impl WriteJson for TaskSupport {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_word(self, out);
    }
}
