//! Log messages. Spec: server/utilities/logging.

use sabir_wire::types::ServerResult;

use super::{Reply, declared};
use crate::context::MethodContext;

/// The session takes the level over once this has succeeded.
pub(crate) fn set_level(context: &MethodContext) -> Reply {
    declared(context.catalog.capabilities().logging, "logging/setLevel")?;
    Ok(ServerResult::Empty)
}
