//! Log messages for the client. Spec: server/utilities/logging.

use serde::{Deserialize, Serialize};

/// How much a log message matters. Later ones matter more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Detail for debugging.
    Debug,
    /// What goes on.
    Info,
    /// Normal, but worth a look.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
    /// A part has failed.
    Critical,
    /// Act at once.
    Alert,
    /// Nothing works.
    Emergency,
}
