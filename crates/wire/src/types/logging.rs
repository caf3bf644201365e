//! Log messages for the client. Spec: server/utilities/logging.

use serde::{Deserialize, Serialize};

use crate::json::{Invalid, ReadJson, WriteJson, read_word, write_word};
use crate::raw::Raw;
use crate::revision::Features;

/// The severity of a log message (RFC 5424). More severe ones compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// Normal, but significant.
    Notice,
    /// A possible problem.
    Warning,
    /// A failed operation.
    Error,
    /// A failed component.
    Critical,
    /// Action is needed at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl ReadJson for Level {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        read_word(json, "a log level")
    }
}

impl WriteJson for Level {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_word(self, out);
    }
}
