//! Log messages. Spec: server/utilities/logging.

use sabir_wire::types::ServerResult;

use super::{Reply, declared};
use crate::desk::Desk;

/// The session takes the level over once this has succeeded.
pub(crate) fn set_level(desk: &Desk) -> Reply {
    declared(desk.catalog.capabilities().logging, "logging/setLevel")?;
    Ok(ServerResult::Empty)
}
